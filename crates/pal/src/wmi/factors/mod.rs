//! Problems that fall apart: independent components are integrated one by one and multiplied.
//!
//! ```text
//! integral over (x, y) of f(x) g(y)  =  (integral over x of f(x)) * (integral over y of g(y))
//! ```
//!
//! Formula and weight are kept in one table ([`arena`]). What shares no variable is separated before the search and at
//! every node of it ([`component`]); a component that is met again is known. Where nothing separates, the search decides
//! a Boolean variable, or a bound of a real that depends on no other real, near the centre of a tree decomposition
//! ([`order`]). Reals that interact pair by pair along a tree are integrated from its leaves to its root ([`forest`]).
//! What is left goes to the search for cells of [`crate::region`].
//!
//! The search runs on one thread, and only cells are integrated on all cores, so that results do not depend on the
//! number of threads.

mod amount;
mod arena;
mod component;
mod dense;
mod forest;
mod order;
mod search;
#[cfg(test)]
mod tests;

pub(super) use search::FactorSearch;
