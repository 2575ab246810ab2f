//! A part of a map in local coordinates.

use std::sync::Arc;

use super::error::BatchError;
use super::map::{CellIndex, CellScalar};
use crate::formula::{Constraint, Formula, ImagePoint, Linear, Membership, Substitution, Var};
use crate::number::{self, Rational};
use crate::region::planar::{AxisLine, Corner, Doubt, split};

/// A box in local coordinates and the exact map from these to coordinates of the map: see
/// [`RegionMap::windows`](super::RegionMap::windows).
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Window {
    pub centre: Vec<f64>,
    /// The heading times the scale. The second number is 0 except in the plane.
    pub turn: [f64; 2],
    pub half_width: Arc<[f64]>,
}

/// The number of the lower side of a window among lines: no line of a grid has it.
const OWN_LINE: u32 = u32::MAX - 1;

impl Window {
    /// Windows from flat arrays, checked.
    pub fn all(
        n: usize,
        centres: &[f64],
        half_width: &[f64],
        headings: Option<&[f64]>,
        scales: Option<&[f64]>,
    ) -> Result<Vec<Window>, BatchError> {
        if n == 0 {
            return Err(BatchError::NoVariables);
        }
        let length = |what, given: usize, wanted: usize| {
            if given == wanted { Ok(()) } else { Err(BatchError::Length { what, given, wanted }) }
        };
        length("coordinates of centres", centres.len(), centres.len().div_ceil(n) * n)?;
        let count = centres.len() / n;
        if half_width.len() != 1 {
            length("half widths, one for all variables or one for each", half_width.len(), n)?;
        }
        if let Some(bad) = half_width.iter().find(|w| !(w.is_finite() && **w > 0.0)) {
            return Err(BatchError::HalfWidth(*bad));
        }
        if headings.is_some() && n != 2 {
            return Err(BatchError::Headings(n));
        }
        headings.map_or(Ok(()), |headings| length("coordinates of headings", headings.len(), 2 * count))?;
        scales.map_or(Ok(()), |scales| length("scales", scales.len(), count))?;
        let half_width: Arc<[f64]> = (0..n).map(|j| half_width[if half_width.len() == 1 { 0 } else { j }]).collect();
        let window = |(row, centre): (usize, &[f64])| {
            if let Some(value) = centre.iter().find(|x| !x.is_finite()) {
                return Err(BatchError::Value { what: "a coordinate of the centre", row, value: *value });
            }
            let scale = scales.map_or(1.0, |scales| scales[row]);
            if !(scale.is_finite() && scale > 0.0) {
                return Err(BatchError::Value { what: "the scale, which must be positive,", row, value: scale });
            }
            let turn = match headings {
                None => [scale, 0.0],
                Some(headings) => {
                    let [x, y] = [headings[2 * row], headings[2 * row + 1]];
                    let length = x.hypot(y);
                    let turn = [scale * (x / length), scale * (y / length)];
                    if !(length > 0.0 && turn.iter().all(|t| t.is_finite())) {
                        let value = if x == 0.0 { y } else { x };
                        return Err(BatchError::Value {
                            what: "the heading, which must have a direction,",
                            row,
                            value,
                        });
                    }
                    turn
                }
            };
            Ok(Window { centre: centre.to_vec(), turn, half_width: half_width.clone() })
        };
        centres.chunks(n).enumerate().map(window).collect()
    }

    /// A window from its numbers in a file.
    pub fn restore(n: usize, numbers: &[f64]) -> Result<Window, BatchError> {
        let (centre, rest) = numbers.split_at(n);
        let (turn, half_width) = rest.split_at(2);
        let wrong = numbers.iter().find(|x| !x.is_finite());
        if let Some(value) = wrong.or_else(|| half_width.iter().find(|w| **w <= 0.0)) {
            return Err(BatchError::HalfWidth(*value));
        }
        Ok(Window { centre: centre.to_vec(), turn: [turn[0], turn[1]], half_width: half_width.into() })
    }

    /// The constraint in local coordinates, which have the names of those of the map.
    pub fn constraint(&self, map: &Constraint) -> Constraint {
        let [a, b] = self.turn.map(exact);
        let n = map.reals.len();
        let mut substitution = Substitution::new();
        for (j, var) in map.reals.iter().enumerate() {
            let mut terms: Vec<(Var, Rational)> = vec![(var.clone(), a.clone())];
            if n == 2 && !b.is_zero() {
                terms.push((map.reals[1 - j].clone(), if j == 0 { -&b } else { b.clone() }));
            }
            substitution = substitution.real(var.name(), Linear::new(terms, exact(self.centre[j])));
        }
        let sides = map.reals.iter().zip(&*self.half_width).map(|(var, w)| {
            let width = exact(*w);
            Linear::from(var.clone()).between(-&width, width)
        });
        let formula = Formula::all(sides.chain([map.formula.substitute(&substitution)]).collect::<Vec<_>>());
        Constraint { formula, reals: map.reals.clone(), booleans: Vec::new() }
    }

    /// Whether the box of the window contains a point in local coordinates; a NaN is outside.
    pub fn box_contains(&self, point: &[f64]) -> bool {
        point.iter().zip(&*self.half_width).all(|(u, w)| u.abs() <= *w)
    }

    /// Whether a point in local coordinates is inside, exactly.
    pub fn contains(&self, map: &Membership, point: &[f64]) -> bool {
        if !self.box_contains(point) {
            return false;
        }
        let [a, b] = self.turn;
        let n = point.len();
        // At most four roundings of numbers up to the sum of magnitudes.
        let (mut image, mut error) = ([0.0; 16], [0.0; 16]);
        let image = &mut image[..n];
        let error = &mut error[..n];
        for j in 0..n {
            let (across, sign) = if n == 2 { (point[1 - j] * b, if j == 0 { -1.0 } else { 1.0 }) } else { (0.0, 0.0) };
            let along = point[j] * a;
            image[j] = self.centre[j] + (along + sign * across);
            let size = self.centre[j].abs() + along.abs() + across.abs();
            error[j] = 4.0 * f64::EPSILON * size + f64::MIN_POSITIVE;
        }
        map.contains_image(&ImagePoint { approximate: image, error, exact: &|| self.exact_image(point) })
    }

    /// The local coordinates of a point of the map, rounded.
    pub fn local(&self, point: &[f64]) -> Vec<f64> {
        let [a, b] = self.turn;
        let away: Vec<f64> = point.iter().zip(&self.centre).map(|(y, centre)| y - centre).collect();
        match away[..] {
            [x, y] => {
                // The heading is divided out first: squares of large scales would overflow.
                let scale = a.hypot(b);
                let (a, b) = (a / scale, b / scale);
                vec![(a * x + b * y) / scale, (a * y - b * x) / scale]
            }
            _ => away.iter().map(|x| x / a).collect(),
        }
    }

    /// The point of the map that a local point stands for, rounded.
    pub fn image(&self, point: &[f64]) -> Vec<f64> {
        let [a, b] = self.turn;
        let turned = match *point {
            [u, v] => vec![a * u - b * v, b * u + a * v],
            _ => point.iter().map(|u| a * u).collect(),
        };
        turned.iter().zip(&self.centre).map(|(x, centre)| x + centre).collect()
    }

    /// The exact point of the map that a local point stands for.
    fn exact_image(&self, point: &[f64]) -> Vec<Rational> {
        let [a, b] = self.turn.map(exact);
        let n = point.len();
        let coordinate = |j: usize| {
            let along = exact(self.centre[j]) + &a * exact(point[j]);
            match (n, j) {
                (2, 0) => along - &b * exact(point[1]),
                (2, 1) => along + &b * exact(point[0]),
                _ => along,
            }
        };
        (0..n).map(coordinate).collect()
    }

    /// The cells of the map as far as they are in the window, in local coordinates. What lies outside of a box that is not
    /// larger than the window is not cut off.
    pub fn pieces<N: CellScalar>(
        &self,
        cells: &CellIndex,
        ends: &[[Rational; 2]; 2],
    ) -> Result<Vec<Vec<Corner<N>>>, Doubt> {
        self.within(self.cells_near(cells), ends)
    }

    /// Pieces cut to the window, unless a box that is not larger than it does that.
    pub fn within<N: CellScalar>(
        &self,
        mut pieces: Vec<Vec<Corner<N>>>,
        ends: &[[Rational; 2]; 2],
    ) -> Result<Vec<Vec<Corner<N>>>, Doubt> {
        let (mut below, mut above) = (Vec::new(), Vec::new());
        for (axis, [low, high]) in ends.iter().enumerate() {
            let width = exact(self.half_width[axis]);
            if width >= *high && -&width <= *low {
                continue;
            }
            for piece in &mut pieces {
                for sign in [-1.0, 1.0] {
                    let at = N::from_float(sign * self.half_width[axis]);
                    let line = AxisLine { at, error: 0.0, number: OWN_LINE + u32::from(sign > 0.0) };
                    split(piece, axis, &line, &mut below, &mut above)?;
                    std::mem::swap(piece, if sign > 0.0 { &mut below } else { &mut above });
                }
            }
        }
        Ok(pieces)
    }

    /// The ends of a box along the axes of the map that contains the window in the plane.
    pub fn reach(&self) -> [[f64; 2]; 2] {
        let [a, b] = self.turn.map(f64::abs);
        let reach = |j: usize| {
            let extent = a * self.half_width[j] + b * self.half_width[1 - j];
            extent * (1.0 + 1e-12) + 1e-12 * self.centre[j].abs()
        };
        [-1.0, 1.0].map(|sign| [0, 1].map(|j| self.centre[j] + sign * reach(j)))
    }

    /// The cells of the map that may meet the window, in local coordinates.
    fn cells_near<N: CellScalar>(&self, cells: &CellIndex) -> Vec<Vec<Corner<N>>> {
        let [low, high] = self.reach();
        let (local, polygons) = (LocalFrame::<N>::new(self), N::kept(cells.polygons()));
        let centre = [self.centre[0], self.centre[1]];
        let piece = |index: u32| {
            let corners = polygons[index as usize].iter().map(|corner| {
                let moved = N::seen_from(corner, centre);
                local.corner(moved.at, moved.error)
            });
            corners.collect()
        };
        cells.near(low, high).into_iter().map(piece).collect()
    }
}

/// How differences to the centre of a window become local coordinates, in numbers with known errors.
pub(super) struct LocalFrame<N> {
    turn: [N; 2],
    squares: N,
    is_turned: bool,
    /// What an error grows by.
    factor: f64,
}

impl<N: CellScalar> LocalFrame<N> {
    pub fn new(window: &Window) -> LocalFrame<N> {
        let turn = window.turn.map(N::from_float);
        let squares = turn[0].times(&turn[0]).plus(&turn[1].times(&turn[1]));
        // Where squares are close to overflow or underflow, nothing is certain.
        let safe = (1e-200..1e200).contains(&squares.rounded());
        let size = window.turn[0].abs() + window.turn[1].abs();
        let factor = if safe { size / squares.rounded() } else { f64::NAN };
        LocalFrame { turn, squares, is_turned: window.turn != [1.0, 0.0], factor }
    }

    /// The corner at a difference to the centre.
    pub fn corner(&self, [x, y]: [N; 2], error: [f64; 2]) -> Corner<N> {
        if !self.is_turned {
            return Corner::new([x, y], error);
        }
        let turn = &self.turn;
        let u = turn[0].times(&x).plus(&turn[1].times(&y)).over(&self.squares);
        let v = turn[0].times(&y).minus(&turn[1].times(&x)).over(&self.squares);
        if N::EXACT {
            return Corner::new([u, v], [0.0; 2]);
        }
        let size = x.rounded().abs() + y.rounded().abs();
        let error = 1.01 * self.factor * (error[0].max(error[1]) + 8.0 * N::ROUNDING * size);
        Corner::new([u, v], [error; 2])
    }
}

/// The rational that a float64 denotes. Numbers of windows and their points are checked to be finite.
pub(super) fn exact(x: f64) -> Rational {
    number::from_f64(x).expect("the numbers of a window are finite")
}
