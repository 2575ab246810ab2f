//! Moments.
mod exact;
mod exponents;
mod frame;
mod simplex;
pub use exponents::{Exponents, ExponentsError};
pub use frame::Frame;
