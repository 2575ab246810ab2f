//! Polygons cut along all lines of a grid.

use std::cmp::Ordering;

use super::{AxisLine, Corner, Doubt, Scalar, split};
use crate::number::Rational;

/// The lines of a grid in the plane, which is what polygons are cut along.
#[derive(Clone, Debug)]
pub(crate) struct PlanarGrid<N> {
    pub(super) lines: [Vec<AxisLine<N>>; 2],
    /// For each axis and bin one over its width.
    pub(super) inverse_widths: [Vec<N>; 2],
    pub(super) zero: N,
    pub(super) one: N,
}

/// The part of a polygon in one bin.
pub(crate) enum BinPart<'p, N> {
    /// All of the bin.
    Full,
    /// Some of it.
    Polygon(&'p [Corner<N>]),
}

/// Memory that is used for one polygon after the other.
#[derive(Debug)]
pub(crate) struct CutMemory<N> {
    columns: [Vec<Corner<N>>; 3],
    ends: [Vec<Corner<N>>; 3],
    rows: [Vec<Corner<N>>; 3],
}

impl<N> Default for CutMemory<N> {
    fn default() -> Self {
        let three = || [Vec::new(), Vec::new(), Vec::new()];
        CutMemory { columns: three(), ends: three(), rows: three() }
    }
}

impl<N: Scalar> PlanarGrid<N> {
    /// The grid with these edges along both axes, which increase.
    pub fn new(edges: [&[Rational]; 2]) -> PlanarGrid<N> {
        let line = |(k, edge): (usize, &Rational)| {
            let (at, error) = N::nearest(edge);
            AxisLine { at, error, number: k as u32 + 1 }
        };
        let (zero, one) = (N::nearest(&Rational::ZERO).0, N::nearest(&Rational::ONE).0);
        let inverse = |pair: &[Rational]| N::nearest(&(Rational::ONE / (&pair[1] - &pair[0]))).0;
        PlanarGrid {
            lines: edges.map(|edges| edges.iter().enumerate().map(line).collect()),
            inverse_widths: edges.map(|edges| edges.windows(2).map(inverse).collect()),
            zero,
            one,
        }
    }

    /// The number of bins along an axis.
    pub fn bins(&self, axis: usize) -> usize {
        self.inverse_widths[axis].len()
    }

    /// The corners of the box, counter-clockwise.
    pub fn box_corners(&self) -> Vec<Corner<N>> {
        let [x, y] = &self.lines;
        let corner = |x: &AxisLine<N>, y: &AxisLine<N>| Corner {
            at: [x.at.clone(), y.at.clone()],
            error: [x.error, y.error],
            line: [x.number, y.number],
        };
        let (left, right, low, high) = (&x[0], &x[x.len() - 1], &y[0], &y[y.len() - 1]);
        vec![corner(left, low), corner(right, low), corner(right, high), corner(left, high)]
    }

    /// Cuts a convex polygon along all lines and visits its parts, each with its bin along both axes. What lies outside
    /// of the box is left out.
    pub fn cut(
        &self,
        polygon: &[Corner<N>],
        memory: &mut CutMemory<N>,
        visit: &mut impl FnMut(usize, usize, BinPart<'_, N>) -> Result<(), Doubt>,
    ) -> Result<(), Doubt> {
        let CutMemory { columns, ends, rows } = memory;
        self.strips(0, polygon, columns, &mut |i, column| {
            let full = self.full_rows(i, column)?;
            let Some((first, end)) = full else {
                return self.strips(1, column, rows, &mut |j, part| visit(i, j, self.part(part)));
            };
            (first..end).try_for_each(|j| visit(i, j, BinPart::Full))?;
            let [below, above, rest] = ends;
            split(column, 1, &self.lines[1][first], below, rest)?;
            self.strips(1, below, rows, &mut |j, part| visit(i, j, self.part(part)))?;
            split(column, 1, &self.lines[1][end], rest, above)?;
            self.strips(1, above, rows, &mut |j, part| visit(i, j, self.part(part)))
        })
    }

    /// The part of a convex polygon in one bin.
    pub fn part_in<'m>(
        &self,
        bin: [usize; 2],
        polygon: &[Corner<N>],
        memory: &'m mut CutMemory<N>,
    ) -> Result<&'m [Corner<N>], Doubt> {
        let [rest, below, above] = &mut memory.columns;
        rest.clear();
        rest.extend_from_slice(polygon);
        for axis in [0, 1] {
            split(rest, axis, &self.lines[axis][bin[axis]], below, above)?;
            split(above, axis, &self.lines[axis][bin[axis] + 1], rest, below)?;
        }
        Ok(rest)
    }

    /// A part as it is, or as a full bin if its four corners are those of the bin.
    fn part<'p>(&self, corners: &'p [Corner<N>]) -> BinPart<'p, N> {
        // Lines that are not of the grid have larger numbers.
        let on_grid =
            |corner: &Corner<N>, axis: usize| (1..=self.lines[axis].len()).contains(&(corner.line[axis] as usize));
        let full = corners.len() == 4 && corners.iter().all(|corner| on_grid(corner, 0) && on_grid(corner, 1));
        if full { BinPart::Full } else { BinPart::Polygon(corners) }
    }

    /// Divides a polygon along the lines of one axis.
    fn strips(
        &self,
        axis: usize,
        polygon: &[Corner<N>],
        [rest, below, above]: &mut [Vec<Corner<N>>; 3],
        visit: &mut impl FnMut(usize, &[Corner<N>]) -> Result<(), Doubt>,
    ) -> Result<(), Doubt> {
        let lines = &self.lines[axis];
        // Lines that all corners are beyond, up to rounding. One too few only costs an empty part.
        let reach = |corner: &Corner<N>| {
            let at = corner.at[axis].rounded();
            at - 4.0 * (corner.error[axis] + f64::EPSILON * at.abs())
        };
        let least = polygon.iter().map(reach).fold(f64::INFINITY, f64::min);
        let first = lines.partition_point(|line| line.at.rounded() < least);
        rest.clear();
        rest.extend_from_slice(polygon);
        for (k, line) in lines.iter().enumerate().skip(first) {
            split(rest, axis, line, below, above)?;
            if k > 0 && !below.is_empty() {
                visit(k - 1, below)?;
            }
            std::mem::swap(rest, above);
            if rest.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// The bins of a column that are full, from the first one up to an end; `None` if there are none. The lower end of a
    /// convex polygon that reaches from line to line is highest on one of them, and its upper end is lowest there.
    fn full_rows(&self, i: usize, column: &[Corner<N>]) -> Result<Option<(usize, usize)>, Doubt> {
        let on = |k: usize| column.iter().filter(move |corner| corner.line[0] == k as u32 + 1);
        if on(i).count() != 2 || on(i + 1).count() != 2 {
            return Ok(None);
        }
        let lines = &self.lines[1];
        let (mut first, mut end) = (0, lines.len() - 1);
        // Where rounded coordinates say that the ends are; exact signs move on from there, never back.
        let below = |y: f64| lines.partition_point(|line| line.at.rounded() < y - 1e-9 * (1.0 + y.abs()));
        let above = |y: f64| lines.partition_point(|line| line.at.rounded() <= y + 1e-9 * (1.0 + y.abs()));
        for side in [i, i + 1] {
            let mut ends = on(side);
            let (Some(a), Some(b)) = (ends.next(), ends.next()) else { return Ok(None) };
            let ordered = a.at[1].order(&b.at[1]).ok_or(Doubt)? == Ordering::Less;
            let (low, high) = if ordered { (a, b) } else { (b, a) };
            first = first.max(below(low.at[1].rounded()));
            end = end.min(above(high.at[1].rounded()));
            while first < lines.len() && low.side(1, &lines[first])? == Ordering::Greater {
                first += 1;
            }
            while end > first && high.side(1, &lines[end])? == Ordering::Less {
                end -= 1;
            }
        }
        Ok((first < end).then_some((first, end)))
    }
}
