//! Densities on a constraint: families of non-negative piecewise polynomials with compiled normalisers.

pub(crate) mod chebyshev;
pub(crate) mod cubature;
mod error;
mod family;
mod file;
pub(crate) mod functions;
pub(crate) mod gauss;
pub(crate) mod grid;
mod histogram;
mod kind;
mod knots;
pub(crate) mod mesh;
pub(crate) mod occupied;
mod registry;
mod single;
mod spline;
mod sum_of_squares;
mod support;
pub(crate) mod weights;

pub use error::DensityError;
pub use family::Family;
pub(crate) use family::Row;
pub use file::{FileError, FileTensors, Model, NamedTensor};
pub use functions::{ChebyshevSeries, ComponentFunctions, Differentiable};
pub use grid::{Axis, BinIndex, Grid};
pub use histogram::{HistogramMixture, HistogramRecipe, HistogramSettings};
pub use kind::{Compile, Expansion, FamilyKind, Form};
pub use knots::Knots;
pub use mesh::{Degree, Mesh, MeshError};
pub use registry::Settings;
pub use single::Density;
pub use spline::{MAX_SPLINE_DIMENSION, SplineAxis, SplineMixture, SplineRecipe, SplineSettings};
pub use sum_of_squares::{Basis, Conditioning, Subset, SumOfSquares, SumOfSquaresRecipe, SumOfSquaresSettings};
pub use support::{Chart, Part, Support};
