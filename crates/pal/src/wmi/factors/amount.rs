//! Integrals on the way: exact, or in float64 with a bound on the error.

use crate::moments::Integral;
use crate::number::{self, Rational, SMALLEST};

/// The integral of a part of a problem.
#[derive(Clone, Debug)]
pub(super) enum Amount {
    /// There is nothing to integrate: no volume, or no weight on it. Not the same as terms that cancel.
    Nothing,
    Exact(Rational),
    Near {
        value: f64,
        error: f64,
    },
}

impl Amount {
    /// The value in float64 and a bound on its error.
    pub fn rounded(&self) -> (f64, f64) {
        match self {
            Amount::Nothing => (0.0, 0.0),
            Amount::Exact(exact) => {
                let value = number::to_f64(exact);
                (value, number::rounding_error(exact, value))
            }
            Amount::Near { value, error } => (*value, *error),
        }
    }

    pub fn times(&self, other: &Amount) -> Amount {
        match (self, other) {
            (Amount::Nothing, _) | (_, Amount::Nothing) => Amount::Nothing,
            (Amount::Exact(a), Amount::Exact(b)) => Amount::Exact(a * b),
            _ => {
                let ((a, a_error), (b, b_error)) = (self.rounded(), other.rounded());
                let value = a * b;
                near(value, a.abs() * b_error + b.abs() * a_error + a_error * b_error)
            }
        }
    }

    pub fn plus(&self, other: &Amount) -> Amount {
        match (self, other) {
            (Amount::Nothing, some) | (some, Amount::Nothing) => some.clone(),
            (Amount::Exact(a), Amount::Exact(b)) => Amount::Exact(a + b),
            _ => {
                let ((a, a_error), (b, b_error)) = (self.rounded(), other.rounded());
                near(a + b, a_error + b_error)
            }
        }
    }
}

/// A value with an error, to which the roundings of the last operation and of the bound itself are added.
fn near(value: f64, error: f64) -> Amount {
    Amount::Near { value, error: error * (1.0 + 8.0 * f64::EPSILON) + value.abs() * f64::EPSILON + 4.0 * SMALLEST }
}

impl From<Integral> for Amount {
    fn from(integral: Integral) -> Amount {
        match integral.exact {
            _ if integral.cells == 0 => Amount::Nothing,
            Some(exact) => Amount::Exact(exact),
            None => Amount::Near { value: integral.value, error: integral.error },
        }
    }
}
