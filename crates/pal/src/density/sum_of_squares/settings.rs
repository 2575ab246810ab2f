//! What there is to choose about sums of squares.

use serde::{Deserialize, Serialize};

/// The basis of polynomials that the coefficients refer to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Orthonormal on the constraint, in graded order, relative to the volume of the box around it.
    #[default]
    Orthonormal,
    /// Products of Legendre polynomials, orthonormal on the box around the constraint.
    Legendre,
    /// Monomials with the reparametrisation of the PAL paper, for comparison:
    /// `u_i = sign(z_i) (sqrt(|z_i| + 0.1) - sqrt(0.1)) / sqrt(G_ii)`.
    Monomial,
}

/// A random choice among the members of a basis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subset {
    /// The number of members; the constant is always among them.
    pub terms: usize,
    /// The seed of the choice: equal seeds choose equal members.
    pub seed: u64,
}

/// The settings of a [`SumOfSquares`](super::SumOfSquares).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SumOfSquaresSettings {
    /// The total degree of the polynomials that are squared. `None` chooses it by the number of variables: 7 for one or
    /// two, 4 for three, 3 for four and 2 for more.
    pub degree: Option<u16>,
    /// The number of squares.
    pub components: usize,
    /// The basis of polynomials.
    #[serde(default)]
    pub basis: Basis,
    /// A random choice of members of the basis; `None` for all of them.
    #[serde(default)]
    pub subset: Option<Subset>,
}

impl Default for SumOfSquaresSettings {
    /// Four squares of an automatically chosen degree, in the whole orthonormal basis.
    fn default() -> SumOfSquaresSettings {
        SumOfSquaresSettings { degree: None, components: 4, basis: Basis::Orthonormal, subset: None }
    }
}

impl SumOfSquaresSettings {
    /// The same settings with everything automatic chosen for this number of variables.
    pub fn chosen(&self, dimension: usize) -> SumOfSquaresSettings {
        let automatic = match dimension {
            ..=2 => 7,
            3 => 4,
            4 => 3,
            _ => 2,
        };
        SumOfSquaresSettings { degree: Some(self.degree.unwrap_or(automatic)), ..*self }
    }

    pub(super) fn total_degree(&self) -> u16 {
        self.degree.expect("the degree is chosen before anything is compiled")
    }
}
