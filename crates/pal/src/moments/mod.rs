//! Integrals of polynomials over polytopes and regions.

mod exact;
mod exponents;
mod faces;
mod frame;
pub mod gasp;
mod integrand;
pub mod rejection;
mod simplex;

pub use exponents::{Exponents, ExponentsError};
pub use frame::Frame;
pub use integrand::{Estimate, Integrand, IntegrandError};
