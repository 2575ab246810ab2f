//! Densities on a constraint: families of non-negative piecewise polynomials with compiled normalisers.
//!
//! # Mathematics
//!
//! A constraint `phi` and a family `q(y; params) >= 0`, polynomial in `y` on every bin of a grid, make densities that
//! give exactly zero mass to everything outside the constraint (PAL paper, Section 3):
//!
//! ```text
//! p(y; params)  =  q(y; params) 1[y |= phi] / I(params),        I(params) = integral of q over phi
//! ```
//!
//! `q` is a mixture of components, and `I` is compiled once per constraint: after that, a batch of parameter vectors
//! costs one small matrix product. Three kinds of families exist:
//!
//! | kind | components | variables |
//! |---|---|---|
//! | [`SplineMixture`] | products of squared cubic splines, one per variable | 1 to 4 |
//! | [`SumOfSquares`] | squares of polynomials of a total degree | any number, at low degrees |
//! | [`HistogramMixture`] | products of histograms, one per variable | any number, as long as the grid is not too large |
//!
//! # The way through
//!
//! ```text
//! region  --Settings::compile-->  Family  --density(params)-->  Density  --query-->  answers
//! ```
//!
//! A [`Family`] is compiled on a [`Support`]: the region cut along a [`Grid`] into a [`Mesh`] of boxes and simplices,
//! each inside one bin. It evaluates batches (`log_prob`, normalisers and their vector-Jacobian products). A
//! [`Density`] is the member of a family with one parameter vector; what can be asked of it is in
//! [`query`](crate::query).
//!
//! # What lives where
//!
//! - `registry`: the list of all kinds. [`Settings`].
//! - `kind`: what a kind of family implements. [`FamilyKind`], [`Compile`], [`Form`].
//! - `spline`, `sum_of_squares`, `histogram`: one folder per kind, with its settings, normaliser, functions, starting
//!   values and the recipe with which tensor frameworks compute log-densities by themselves.
//! - `family`: batches and their gradients. [`Family`].
//! - `single`: one density. [`Density`].
//! - `flat`: constraints with equalities, whose points are translated to free coordinates and back.
//! - `offset`: why parameters of zero are close to the uniform density.
//! - `functions`: the components of one density as functions of a point, which queries are written against.
//!   [`ComponentFunctions`].
//! - `patches`: where samples of a component lie. [`PatchSearch`].
//! - `support`, `grid`, `mesh`, `occupied`, `knots`: what densities live on. [`Support`], [`Grid`], [`Mesh`],
//!   [`Knots`].
//! - `cubature`, `gauss`, `chebyshev`, `weights`: numerical tools.
//! - `file`: safetensors files. [`Model`], [`FileError`].
//!
//! A new kind of family is a folder beside `spline` and one line in `registry.rs`.

pub(crate) mod chebyshev;
pub(crate) mod cubature;
mod error;
mod family;
mod file;
mod flat;
pub(crate) mod functions;
pub(crate) mod gauss;
pub(crate) mod gradient;
pub(crate) mod grid;
mod histogram;
mod kind;
mod knots;
pub(crate) mod lanes;
pub(crate) mod mesh;
pub(crate) mod occupied;
mod offset;
pub(crate) mod parts;
pub(crate) mod patches;
mod registry;
mod row_kernel;
mod single;
mod spline;
mod sum_of_squares;
mod support;
pub(crate) mod weights;

pub use error::DensityError;
pub use family::Family;
pub(crate) use family::Row;
pub use file::{FileError, FileTensors, Model, NamedTensor};
pub(crate) use file::{read_mixed_file, write_mixed_file};
pub use functions::{ChebyshevSeries, ComponentFunctions, Differentiable};
pub use grid::{Axis, BinIndex, Grid};
pub use histogram::{HistogramMixture, HistogramRecipe, HistogramSettings};
pub use kind::{Compile, Expansion, FamilyKind, Form};
pub use knots::Knots;
pub use lanes::Real;
pub use mesh::{Degree, Mesh, MeshError};
pub use parts::SupportParts;
pub use patches::{ChosenPatch, PatchQuery, PatchSearch};
pub use registry::Settings;
pub(crate) use row_kernel::check_rows;
pub use row_kernel::{LocatedPoints, PartKernels, Precision, RowInput, RowKernel, RowLogProb};
pub use single::Density;
pub use spline::{
    MAX_SPLINE_DIMENSION, RegionForms, RegionPrecision, SplineAxis, SplineMixture, SplineRecipe, SplineSettings,
    TablePrecision, student_t_shape,
};
pub use sum_of_squares::{Basis, Conditioning, Subset, SumOfSquares, SumOfSquaresRecipe, SumOfSquaresSettings};
pub use support::{Part, Support};
