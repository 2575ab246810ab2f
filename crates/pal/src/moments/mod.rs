//! Moments.
mod exact;
mod exponents;
mod frame;
pub mod gasp;
pub mod rejection;
mod simplex;
pub use exponents::{Exponents, ExponentsError};
pub use frame::Frame;
