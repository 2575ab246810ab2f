//! Integrals of polynomials over polytopes and regions.

mod exact;
mod exponents;
mod faces;
mod frame;
mod integrand;
mod simplex;

pub use exponents::{Exponents, ExponentsError};
pub use frame::Frame;
pub use integrand::{Estimate, Integrand, IntegrandError};
