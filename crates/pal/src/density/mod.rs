//! Densities on a constraint: families of non-negative piecewise polynomials with compiled normalisers.

pub(crate) mod chebyshev;
pub(crate) mod gauss;
pub(crate) mod grid;
pub(crate) mod mesh;
pub(crate) mod pieces;

pub use grid::{Axis, Grid};
pub use mesh::{Degree, MeshError};
