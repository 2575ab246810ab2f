//! Densities on a constraint: families of non-negative piecewise polynomials with compiled normalisers.

pub(crate) mod chebyshev;
pub(crate) mod cubature;
mod error;
mod family;
mod file;
pub(crate) mod functions;
pub(crate) mod gauss;
pub(crate) mod grid;
mod kind;
pub(crate) mod mesh;
mod recipe;
mod single;
mod spline;
mod sum_of_squares;
mod support;
pub(crate) mod weights;

use serde::{Deserialize, Serialize};

pub use error::DensityError;
pub use family::Family;
pub(crate) use family::Row;
pub use file::{FileError, Model};
pub use functions::{ChebyshevSeries, ComponentFunctions, Differentiable};
pub use grid::{Axis, BinIndex, Grid};
pub use kind::{Expansion, FamilyKind, Form};
pub use mesh::{Degree, Mesh, MeshError};
pub use recipe::{Recipe, SplineAxis, SplineRecipe, SumOfSquaresRecipe};
pub use single::Density;
pub use spline::{Knots, MAX_SPLINE_DIMENSION, SplineMixture, SplineSettings};
pub use sum_of_squares::{Basis, Conditioning, Subset, SumOfSquares, SumOfSquaresSettings};
pub use support::Support;

/// Which family, and how it is set up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "kebab-case")]
pub enum Settings {
    /// A [`SplineMixture`].
    Spline(SplineSettings),
    /// A [`SumOfSquares`].
    SumOfSquares(SumOfSquaresSettings),
}

/// Exact numbers as text in files.
mod rational_text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

    use crate::number::{Rational, parse_rational};

    pub fn serialize<S: Serializer>(lists: &[Vec<Rational>], serializer: S) -> Result<S::Ok, S::Error> {
        let text: Vec<Vec<String>> = lists.iter().map(|list| list.iter().map(ToString::to_string).collect()).collect();
        text.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Vec<Rational>>, D::Error> {
        let text = Vec::<Vec<String>>::deserialize(deserializer)?;
        let number = |text: &String| parse_rational(text).map_err(D::Error::custom);
        text.iter().map(|list| list.iter().map(number).collect()).collect()
    }
}
