//! Marginal densities of one variable: piecewise polynomials of degree 13.
//!
//! Between the projections of the corners of all trapezoids, the integral along a line through a trapezoid is a
//! polynomial in the position of the line. Its values at 14 Gauss nodes determine it.

use rayon::prelude::*;

use super::KernelFamily;
use super::head::KernelRow;
use super::integral::Kernel;
use super::pieces::{KernelTrapezoid, trapezoids};
use super::triweight;
use crate::density::gauss::Gauss;
use crate::interrupt::checkpoint;
use crate::query::{Marginal, QueryError};

/// The number of values that determine a polynomial of degree 13.
const VALUES: usize = 14;

/// A trapezoid of a kernel, or of the uniform part, and where it lies along the axis.
struct Projected {
    trapezoid: KernelTrapezoid,
    /// `None` for the uniform part, whose trapezoids are in coordinates of the box.
    kernel: Option<Kernel>,
    weight: f64,
    ends: [f64; 2],
}

impl KernelFamily {
    /// The marginal density of one variable, by its position, for each row of parameters.
    pub fn marginals(&self, params: &[f64], axis: usize) -> Result<Vec<Marginal>, QueryError> {
        if axis >= 2 {
            return Err(QueryError::Variables(format!("there is no variable at position {axis}; there are two")));
        }
        let rows = self.rows(params)?;
        rows.iter().map(|row| self.marginal(row, axis)).collect()
    }

    fn marginal(&self, row: &KernelRow, axis: usize) -> Result<Marginal, QueryError> {
        let (parts, breaks) = self.projected(row, axis);
        let gauss = Gauss::with_points(VALUES);
        let intervals: Vec<[f64; 2]> = breaks.windows(2).map(|pair| [pair[0], pair[1]]).collect();
        let pieces = intervals.par_iter().map(|[low, high]| {
            checkpoint();
            let middle = 0.5 * (low + high);
            let here: Vec<&Projected> = parts.iter().filter(|p| p.ends[0] < middle && middle < p.ends[1]).collect();
            let value = |t: &f64| {
                let at = low + t * (high - low);
                here.iter().map(|part| part.line_integral(axis, at)).sum::<f64>()
            };
            let values: Vec<f64> = gauss.nodes.iter().map(value).collect();
            (0.5 * (low + 1.0), 0.5 * (high + 1.0), values)
        });
        let pieces: Vec<(f64, f64, Vec<f64>)> = pieces.filter(|(.., values)| values.iter().any(|v| *v > 0.0)).collect();
        Marginal::of_one_bin(&self.0.grid, axis, pieces).ok_or(QueryError::Impossible)
    }

    /// The trapezoids of all parts of a mixture, and the projections of their corners in increasing order.
    fn projected(&self, row: &KernelRow, axis: usize) -> (Vec<Projected>, Vec<f64>) {
        let mut parts = Vec::new();
        let mut push = |trapezoid: KernelTrapezoid, kernel: Option<Kernel>, weight: f64| {
            let ends = trapezoid.corners().map(|corner| kernel.map_or(corner, |k| k.to_box(corner))[axis]);
            let low = ends.iter().copied().fold(f64::INFINITY, f64::min);
            let high = ends.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            parts.push(Projected { trapezoid, kernel, weight, ends: [low, high] });
            ends
        };
        let mut breaks = Vec::new();
        for (kernel, weight) in row.kernels.iter().zip(&row.weights).filter(|(_, weight)| **weight > 0.0) {
            let cut = trapezoids(&self.0.pieces, kernel);
            breaks.extend(cut.into_iter().flat_map(|trapezoid| push(trapezoid, Some(*kernel), *weight)));
        }
        let height = row.uniform / self.0.whole_volume;
        let whole = self.0.pieces.iter().flat_map(|piece| piece.trapezoids());
        breaks.extend(whole.flat_map(|trapezoid| push(trapezoid, None, height)));
        breaks.iter_mut().for_each(|at| *at = at.clamp(-1.0, 1.0));
        breaks.sort_unstable_by(f64::total_cmp);
        // Corners that differ by rounding are one break.
        breaks.dedup_by(|b, a| *b - *a <= 8.0 * f64::EPSILON);
        (parts, breaks)
    }
}

impl Projected {
    /// The integral along the line where the coordinate of the axis has a value.
    fn line_integral(&self, axis: usize, at: f64) -> f64 {
        let trapezoid = &self.trapezoid;
        let Some(kernel) = self.kernel else {
            let length = if axis == 0 { trapezoid.vertical(at).map(|[low, high]| high - low) } else { None };
            let across = || trapezoid.line(at, 0.0).map(|[low, high]| high - low);
            return self.weight * length.or_else(|| if axis == 1 { across() } else { None }).unwrap_or(0.0);
        };
        let [a, b, c] = kernel.factor;
        if axis == 0 {
            let u1 = (at - kernel.place[0]) / a;
            let Some([low, high]) = trapezoid.vertical(u1) else { return 0.0 };
            return self.weight * triweight::value(u1) * triweight::integral_between(low, high) / a;
        }
        // Along the line u_2 = (at - place_2 - b u_1) / c.
        let (start, slope) = ((at - kernel.place[1]) / c, -b / c);
        let Some([low, high]) = trapezoid.line(start, slope) else { return 0.0 };
        let gauss = Gauss::with_points(7);
        let node = |(t, weight): (&f64, &f64)| {
            let u1 = low + t * (high - low);
            weight * triweight::value(u1) * triweight::value(start + slope * u1)
        };
        self.weight * (high - low) / c * gauss.nodes.iter().zip(&gauss.weights).map(node).sum::<f64>()
    }
}

impl KernelTrapezoid {
    /// The four corners.
    fn corners(&self) -> [[f64; 2]; 4] {
        let [left, right] = self.sides;
        [[left, self.below[0]], [right, self.below[1]], [right, self.above[1]], [left, self.above[0]]]
    }

    /// The part of a vertical inside.
    fn vertical(&self, at: f64) -> Option<[f64; 2]> {
        let t = (at - self.sides[0]) / (self.sides[1] - self.sides[0]);
        (0.0..=1.0).contains(&t).then(|| self.heights(t)).filter(|[low, high]| low < high)
    }

    /// The part of the line `u_2 = start + slope u_1` inside, as an interval of `u_1`.
    fn line(&self, start: f64, slope: f64) -> Option<[f64; 2]> {
        let width = self.sides[1] - self.sides[0];
        let (mut low, mut high) = (0.0, 1.0);
        let on_line = self.sides.map(|side| start + slope * side);
        // Inside means that both differences are not negative; they are linear between the sides.
        for [left, right] in [
            [on_line[0] - self.below[0], on_line[1] - self.below[1]],
            [self.above[0] - on_line[0], self.above[1] - on_line[1]],
        ] {
            if left < 0.0 && right < 0.0 {
                return None;
            }
            let crossing = left / (left - right);
            if left < 0.0 {
                low = f64::max(low, crossing);
            } else if right < 0.0 {
                high = f64::min(high, crossing);
            }
        }
        (low < high).then(|| [self.sides[0] + low * width, self.sides[0] + high * width])
    }
}
