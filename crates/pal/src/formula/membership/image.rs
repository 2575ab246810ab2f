//! Membership of points that float64 cannot represent: images of float64 points under an exact map.

use std::cmp::Ordering;

use super::{ACCEPT, Membership, REJECT, Subject};
use crate::number::Rational;

/// A point known to some digits, and exactly on demand.
pub(crate) struct ImagePoint<'p> {
    /// Coordinates in float64.
    pub approximate: &'p [f64],
    /// Bounds on the errors of the coordinates.
    pub error: &'p [f64],
    /// Computes the exact coordinates.
    pub exact: &'p dyn Fn() -> Vec<Rational>,
}

impl Membership {
    /// Whether a point satisfies the formula, strictness included. Exact coordinates are computed only where those in
    /// float64 leave the sign of an atom in doubt. A formula with Boolean variables contains no points.
    pub(crate) fn contains_image(&self, point: &ImagePoint<'_>) -> bool {
        if self.booleans > 0 || point.approximate.len() != self.dimension {
            return false;
        }
        let mut exact: Option<Vec<Rational>> = None;
        let mut at = self.entry;
        loop {
            match at {
                ACCEPT => return true,
                REJECT => return false,
                _ => {}
            }
            let test = self.tests[at as usize];
            let Subject::Atom(id) = test.subject else { return false };
            let sign = self.image_sign(id as usize, point).unwrap_or_else(|| {
                let coordinates = exact.get_or_insert_with(point.exact);
                let atom = &self.atoms[id as usize];
                let terms = atom.exact_normal.iter().map(|(j, a)| &coordinates[*j] * Rational::from(a.clone()));
                terms.fold(Rational::from(-&atom.exact_offset), |sum, term| sum + term).cmp(&Rational::ZERO)
            });
            at = if self.atoms[id as usize].relation.holds(sign) { test.on_true } else { test.on_false };
        }
    }

    /// The sign of an atom, if float64 leaves no doubt: the bound is that of points with exact coordinates, and what the
    /// errors of the coordinates contribute.
    #[inline]
    fn image_sign(&self, id: usize, point: &ImagePoint<'_>) -> Option<Ordering> {
        let normal = &self.normals[id * self.dimension..(id + 1) * self.dimension];
        let offset = self.atoms[id].offset;
        let (mut value, mut magnitude, mut inherited) = (-offset, offset.abs(), 0.0);
        for ((a, x), e) in normal.iter().zip(point.approximate).zip(point.error) {
            let product = a * x;
            value += product;
            magnitude += product.abs();
            inherited += a.abs() * e;
        }
        let error =
            magnitude * (self.dimension as f64 + 3.0) * f64::EPSILON + inherited * (1.0 + 1e-10) + f64::MIN_POSITIVE;
        if value > error {
            Some(Ordering::Greater)
        } else if value < -error {
            Some(Ordering::Less)
        } else {
            None
        }
    }
}
