//! Densities on a constraint: families of non-negative piecewise polynomials with compiled normalisers.

pub(crate) mod chebyshev;
mod compiled;
mod domain;
mod error;
mod family;
mod file;
pub(crate) mod gauss;
pub(crate) mod grid;
pub(crate) mod mesh;
pub(crate) mod pieces;
mod recipe;
pub(crate) mod rules;
mod sos;
mod spline;
pub(crate) mod weights;

use serde::{Deserialize, Serialize};

pub use compiled::Compiled;
pub(crate) use compiled::Row;
pub use domain::Domain;
pub use error::DensityError;
pub use family::{Expansion, Family, Form};
pub use file::{FileError, Model};
pub use grid::{Axis, Grid};
pub use mesh::{Degree, Mesh, MeshError};
pub use pieces::{Differentiable, Pieces, Series};
pub use recipe::{Recipe, SosRecipe, SplineAxis, SplineRecipe};
pub use sos::{Basis, Conditioning, SosSettings, Subset, SumOfSquares};
pub use spline::{Knots, MAX_SPLINE_DIMENSION, SplineMixture, SplineSettings};

/// Which family, and how it is set up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "family", rename_all = "kebab-case")]
pub enum Settings {
    /// A [`SplineMixture`].
    Spline(SplineSettings),
    /// A [`SumOfSquares`].
    Sos(SosSettings),
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
