//! Convex polygons cut along the lines of a grid, fast and with certain signs.
//!
//! The general way to cut a region along a grid searches the formula again for every region. Many regions that are seen
//! through one grid, such as windows of one map, are cut piece by piece here: from convex polygons to their parts in the
//! bins, and from these parts to trapezoids between two verticals ([`Trapezoid`]), which integrals are computed on.
//!
//! Everything is written once, for any [`Scalar`]: in float64 and in double-doubles, where every coordinate carries a
//! bound on its error, and in fractions. A sign that rounded numbers leave in doubt, or an area that they do not know to
//! the relative error that was asked for, ends the work with [`Doubt`]; whoever called it then starts again with more
//! digits, and at last in fractions.

mod cut;
mod scalar;
mod trapezoids;

pub(crate) use cut::{BinPart, CutMemory, PlanarGrid};
pub(crate) use scalar::Scalar;
pub(crate) use trapezoids::{LocalEdge, Trapezoid};

use std::cmp::Ordering;

/// Rounded numbers leave a sign in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Doubt;

/// A line orthogonal to an axis, with a number from 1 on that tells it from the other lines of its axis.
#[derive(Clone, Debug)]
pub(crate) struct AxisLine<N> {
    pub at: N,
    pub error: f64,
    pub number: u32,
}

/// A corner of a polygon.
#[derive(Clone, Debug)]
pub(crate) struct Corner<N> {
    pub at: [N; 2],
    /// Bounds on the errors of the coordinates.
    pub error: [f64; 2],
    /// For each axis the line that the corner is known to lie on; 0 for none.
    pub line: [u32; 2],
}

impl<N: Scalar> Corner<N> {
    /// A corner on no line.
    pub fn new(at: [N; 2], error: [f64; 2]) -> Corner<N> {
        Corner { at, error, line: [0, 0] }
    }

    /// On which side of a line the corner lies.
    #[inline(always)]
    pub fn side(&self, axis: usize, line: &AxisLine<N>) -> Result<Ordering, Doubt> {
        if self.line[axis] == line.number {
            return Ok(Ordering::Equal);
        }
        if N::EXACT {
            return self.at[axis].order(&line.at).ok_or(Doubt);
        }
        // Most corners are so far from a line that float64 decides. A NaN goes on.
        let (at, to) = (self.at[axis].rounded(), line.at.rounded());
        let near = at - to;
        let doubt = 1e-15 * (at.abs() + to.abs()) + 4.0 * (self.error[axis] + line.error);
        if near > doubt {
            return Ok(Ordering::Greater);
        }
        if near < -doubt {
            return Ok(Ordering::Less);
        }
        let distance = self.at[axis].minus(&line.at).rounded();
        certain_sign(distance, self.error[axis] + line.error, N::ROUNDING)
    }
}

/// The sign of a difference of numbers that are off by at most `error` together, computed with a relative error of
/// `rounding`.
pub(crate) fn certain_sign(difference: f64, error: f64, rounding: f64) -> Result<Ordering, Doubt> {
    let bound = 2.0 * error + 4.0 * rounding * difference.abs();
    if difference > bound {
        Ok(Ordering::Greater)
    } else if difference < -bound {
        Ok(Ordering::Less)
    } else if difference == 0.0 && bound == 0.0 {
        Ok(Ordering::Equal)
    } else {
        Err(Doubt)
    }
}

/// Where the edge between two corners on different sides of a line crosses it.
#[inline(always)]
fn crossing<N: Scalar>(p: &Corner<N>, q: &Corner<N>, axis: usize, line: &AxisLine<N>) -> Corner<N> {
    let other = 1 - axis;
    let mut corner = p.clone();
    (corner.at[axis], corner.error[axis], corner.line[axis]) = (line.at.clone(), line.error, line.number);
    if p.line[other] != 0 && p.line[other] == q.line[other] {
        return corner;
    }
    corner.line[other] = 0;
    if p.at[other].order(&q.at[other]) == Some(Ordering::Equal) {
        // The edge is parallel to the other axis, and nothing has to be rounded.
        corner.error[other] = p.error[other].max(q.error[other]);
        return corner;
    }
    let (run, rise) = (q.at[axis].minus(&p.at[axis]), q.at[other].minus(&p.at[other]));
    let way = line.at.minus(&p.at[axis]).times(&rise).over(&run);
    corner.at[other] = p.at[other].plus(&way);
    if !N::EXACT {
        let rise = rise.rounded().abs();
        let slope = rise / run.rounded().abs();
        let across = p.error[axis].max(q.error[axis]) + line.error;
        // Both corners are further from the line than twice their errors, so that the run is known to a half.
        // The product of two small numbers may have lost digits to underflow.
        let underflow = 4.0 * f64::MIN_POSITIVE / run.rounded().abs();
        let rounding = 8.0 * N::ROUNDING * (p.at[other].rounded().abs() + rise) + underflow;
        corner.error[other] = p.error[other].max(q.error[other]) + 2.0 * slope * across + rounding;
    }
    corner
}

/// Divides a convex polygon in the parts below and above a line. A part without area comes out empty.
pub(crate) fn split<N: Scalar>(
    polygon: &[Corner<N>],
    axis: usize,
    line: &AxisLine<N>,
    below: &mut Vec<Corner<N>>,
    above: &mut Vec<Corner<N>>,
) -> Result<(), Doubt> {
    below.clear();
    above.clear();
    let Some(last) = polygon.last() else { return Ok(()) };
    let mut before = (last, last.side(axis, line)?);
    let (mut any_below, mut any_above) = (false, false);
    for corner in polygon {
        let side = corner.side(axis, line)?;
        if before.1 != Ordering::Equal && side == before.1.reverse() {
            let crossing = crossing(before.0, corner, axis, line);
            below.push(crossing.clone());
            above.push(crossing);
        }
        match side {
            Ordering::Less => {
                any_below = true;
                below.push(corner.clone());
            }
            Ordering::Greater => {
                any_above = true;
                above.push(corner.clone());
            }
            Ordering::Equal => {
                let mut on = corner.clone();
                (on.at[axis], on.error[axis], on.line[axis]) = (line.at.clone(), line.error, line.number);
                below.push(on.clone());
                above.push(on);
            }
        }
        before = (corner, side);
    }
    if !any_below {
        below.clear();
    }
    if !any_above {
        above.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests;
