//! Unions of intersections of half-spaces with float64 coefficients.

use std::cmp::Ordering;

use super::error::BatchError;
use super::window::exact;
use crate::formula::{Constraint, Formula, Linear, Var};
use crate::number::Rational;
use crate::region::planar::{Corner, Doubt, Scalar, certain_sign};

/// A union of sets `A y <= b`. The numbers are the exact rationals that they denote.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HalfSpaceUnion {
    pub dimension: usize,
    /// For every set its normals, row by row, and its offsets.
    pub parts: Vec<(Vec<f64>, Vec<f64>)>,
}

impl HalfSpaceUnion {
    /// One union per row: `normals` are rows x parts x half-spaces x variables, `offsets` rows x parts x half-spaces,
    /// and `mask` rows x parts says which parts there are.
    pub fn all(
        dimension: usize,
        [rows, parts, count]: [usize; 3],
        normals: &[f64],
        offsets: &[f64],
        mask: Option<&[bool]>,
    ) -> Result<Vec<HalfSpaceUnion>, BatchError> {
        let length = |what, given: usize, wanted: usize| {
            if given == wanted { Ok(()) } else { Err(BatchError::Length { what, given, wanted }) }
        };
        length("numbers in A", normals.len(), rows * parts * count * dimension)?;
        length("numbers in b", offsets.len(), rows * parts * count)?;
        mask.map_or(Ok(()), |mask| length("flags in the mask", mask.len(), rows * parts))?;
        let take = |row: usize, part: usize| {
            let at = (row * parts + part) * count;
            let own = (&normals[at * dimension..(at + count) * dimension], &offsets[at..at + count]);
            let check = |what, numbers: &[f64]| match numbers.iter().find(|x| !x.is_finite()) {
                Some(value) => Err(BatchError::Value { what, row, value: *value }),
                None => Ok(()),
            };
            check("a number in A", own.0)?;
            check("a number in b", own.1)?;
            Ok::<_, BatchError>((own.0.to_vec(), own.1.to_vec()))
        };
        let union = |row: usize| {
            let present = (0..parts).filter(|part| mask.is_none_or(|mask| mask[row * parts + part]));
            Ok(HalfSpaceUnion { dimension, parts: present.map(|part| take(row, part)).collect::<Result<_, _>>()? })
        };
        (0..rows).map(union).collect()
    }

    /// The same as a formula.
    pub fn constraint(&self, reals: &[Var]) -> Constraint {
        let half_space = |(normal, offset): (&[f64], &f64)| {
            let terms = reals.iter().cloned().zip(normal.iter().map(|a| exact(*a)));
            Linear::new(terms, Rational::ZERO).le(exact(*offset))
        };
        let part = |(normals, offsets): &(Vec<f64>, Vec<f64>)| {
            Formula::all(normals.chunks(self.dimension).zip(offsets).map(half_space).collect::<Vec<_>>())
        };
        let formula = Formula::any(self.parts.iter().map(part).collect::<Vec<_>>());
        Constraint { formula, reals: reals.to_vec(), booleans: Vec::new() }
    }

    /// Whether a point is inside, exactly.
    pub fn contains(&self, point: &[f64]) -> bool {
        let finite = point.iter().all(|x| x.is_finite());
        let holds = |(normal, offset): (&[f64], &f64)| below(normal, *offset, point);
        let inside = |(normals, offsets): &(Vec<f64>, Vec<f64>)| normals.chunks(self.dimension).zip(offsets).all(holds);
        finite && self.parts.iter().any(inside)
    }

    /// The part of a convex polygon that is inside, if the union is a single set.
    pub fn clip<N: Scalar>(&self, mut polygon: Vec<Corner<N>>) -> Option<Result<Vec<Corner<N>>, Doubt>> {
        let (normals, offsets) = match &self.parts[..] {
            [] => return Some(Ok(Vec::new())),
            [part] => part,
            _ => return None,
        };
        for (normal, offset) in normals.chunks(self.dimension).zip(offsets) {
            match clip([normal[0], normal[1]], *offset, &polygon) {
                Ok(clipped) => polygon = clipped,
                Err(doubt) => return Some(Err(doubt)),
            }
        }
        Some(Ok(polygon))
    }
}

/// Whether `normal . point <= offset`, exactly; float64 decides where its error bound leaves no doubt.
fn below(normal: &[f64], offset: f64, point: &[f64]) -> bool {
    let (mut value, mut magnitude) = (-offset, offset.abs());
    for (a, x) in normal.iter().zip(point) {
        let product = a * x;
        value += product;
        magnitude += product.abs();
    }
    let error = magnitude * (point.len() as f64 + 3.0) * f64::EPSILON + f64::MIN_POSITIVE;
    if value.abs() > error {
        return value < 0.0;
    }
    let terms = normal.iter().zip(point).map(|(a, x)| exact(*a) * exact(*x));
    terms.fold(-exact(offset), |sum, term| sum + term) <= Rational::ZERO
}

/// The part of a convex polygon where `normal . y <= offset`; empty if it has no area.
fn clip<N: Scalar>(normal: [f64; 2], offset: f64, polygon: &[Corner<N>]) -> Result<Vec<Corner<N>>, Doubt> {
    let (a, b) = (normal.map(N::from_float), N::from_float(offset));
    let mut values = Vec::with_capacity(polygon.len());
    let mut any_inside = false;
    for corner in polygon {
        let terms = [a[0].times(&corner.at[0]), a[1].times(&corner.at[1])];
        let value = terms[0].plus(&terms[1]).minus(&b);
        let sign = if N::EXACT {
            value.order(&N::from_float(0.0)).ok_or(Doubt)?
        } else {
            let magnitude = terms[0].rounded().abs() + terms[1].rounded().abs() + offset.abs();
            let inherited = normal[0].abs() * corner.error[0] + normal[1].abs() * corner.error[1];
            let exact = terms.iter().all(|term| term.rounded() == 0.0) && offset == 0.0 && inherited == 0.0;
            let rounding = if exact { 0.0 } else { 16.0 * N::ROUNDING * magnitude + f64::MIN_POSITIVE };
            certain_sign(value.rounded(), inherited + rounding, N::ROUNDING)?
        };
        any_inside |= sign == Ordering::Less;
        values.push((value, sign));
    }
    let mut clipped = Vec::with_capacity(polygon.len() + 1);
    if !any_inside {
        // A half-space that does not restrict anything contains a polygon whose corners are all on its boundary.
        return Ok(if normal == [0.0; 2] && offset >= 0.0 { polygon.to_vec() } else { clipped });
    }
    for (k, corner) in polygon.iter().enumerate() {
        let last = if k == 0 { polygon.len() - 1 } else { k - 1 };
        let ((p, from), (q, to)) = (&values[last], &values[k]);
        if *from != Ordering::Equal && *to == from.reverse() {
            clipped.push(crossing(&polygon[last], corner, p, q, normal));
        }
        if *to != Ordering::Greater {
            clipped.push(corner.clone());
        }
    }
    Ok(clipped)
}

/// Where the edge between two corners, with values of opposite signs, crosses a line.
fn crossing<N: Scalar>(from: &Corner<N>, to: &Corner<N>, p: &N, q: &N, normal: [f64; 2]) -> Corner<N> {
    let way = p.over(&p.minus(q));
    let mut corner = from.clone();
    for axis in [0, 1] {
        if from.line[axis] != 0 && from.line[axis] == to.line[axis] {
            continue;
        }
        corner.line[axis] = 0;
        let rise = to.at[axis].minus(&from.at[axis]);
        corner.at[axis] = from.at[axis].plus(&way.times(&rise));
        if !N::EXACT {
            // What is wrong with a value shifts the crossing along the edge.
            let size = [0, 1].map(|k| {
                let reach = from.at[k].rounded().abs().max(to.at[k].rounded().abs());
                let error = from.error[k].max(to.error[k]);
                normal[k].abs() * (error + 32.0 * N::ROUNDING * reach)
            });
            let values = 32.0 * N::ROUNDING * (p.rounded().abs() + q.rounded().abs());
            let shift = (size[0] + size[1] + values + f64::MIN_POSITIVE) / p.minus(q).rounded().abs();
            let rise = rise.rounded().abs();
            let rounding = 32.0 * N::ROUNDING * (from.at[axis].rounded().abs() + rise);
            corner.error[axis] = from.error[axis].max(to.error[axis]) + 4.0 * shift * rise + rounding;
        }
    }
    corner
}
