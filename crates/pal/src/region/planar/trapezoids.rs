//! The part of a polygon in a bin as trapezoids between two verticals.

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::{Corner, Doubt, PlanarGrid, Scalar};

/// A trapezoid between two verticals, in coordinates that run from 0 to 1 over its bin. Differences are rounded once, so
/// that a thin one is as accurate as a thick one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trapezoid {
    /// The left end.
    pub x: f64,
    pub width: f64,
    /// The lower ends of the left and of the right vertical.
    pub low: [f64; 2],
    /// The lengths of both verticals.
    pub height: [f64; 2],
}

impl Trapezoid {
    /// The area as a fraction of the bin.
    pub fn area(&self) -> f64 {
        self.width * (self.height[0] + self.height[1]) / 2.0
    }
}

/// An edge of a polygon in coordinates that run from 0 to 1 over its bin, with the polygon on its left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LocalEdge {
    pub from: [f64; 2],
    pub to: [f64; 2],
}

impl<N: Scalar> PlanarGrid<N> {
    /// Appends the edges of a convex polygon in a bin, given counter-clockwise, that are neither vertical nor on the
    /// lower side of the bin. Returns a bound on the error that its area has because of the errors of its corners.
    pub fn local_edges(&self, bin: [usize; 2], polygon: &[Corner<N>], out: &mut Vec<LocalEdge>) -> f64 {
        let place = |corner: &Corner<N>| [0, 1].map(|axis| self.local(axis, bin[axis], corner).rounded());
        let Some(last) = polygon.last() else { return 0.0 };
        let mut from = place(last);
        for corner in polygon {
            let to = place(corner);
            if from[0] != to[0] && (from[1] != 0.0 || to[1] != 0.0) {
                out.push(LocalEdge { from, to });
            }
            from = to;
        }
        self.area_error(bin, polygon)
    }

    /// A bound on the error that the area of a part has because of the errors of its corners, as a fraction of the bin:
    /// a shift of all corners by their errors moves the boundary, whose length is at most 4.
    fn area_error(&self, bin: [usize; 2], polygon: &[Corner<N>]) -> f64 {
        let scale = [0, 1].map(|axis| self.inverse_widths[axis][bin[axis]].rounded());
        let error = |corner: &Corner<N>| corner.error[0] * scale[0] + corner.error[1] * scale[1];
        4.0 * polygon.iter().map(error).fold(8.0 * N::ROUNDING, |a, b| if a > b { a } else { b })
    }

    /// Appends the trapezoids of a convex polygon in a bin, and returns its area as a fraction of the bin. It is in
    /// doubt, and nothing is appended, if it may have a larger relative error than `tolerance`.
    pub fn trapezoids(
        &self,
        bin: [usize; 2],
        polygon: &[Corner<N>],
        tolerance: f64,
        out: &mut Vec<Trapezoid>,
    ) -> Result<f64, Doubt> {
        let start = out.len();
        let local: SmallVec<[[N; 2]; 8]> =
            polygon.iter().map(|corner| [0, 1].map(|axis| self.local(axis, bin[axis], corner))).collect();
        let order = |a: &N, b: &N| a.order(b).ok_or(Doubt);
        let mut abscissae: SmallVec<[&N; 8]> = SmallVec::new();
        for [x, _] in &local {
            let mut place = abscissae.len();
            let mut known = false;
            for (k, other) in abscissae.iter().enumerate() {
                match order(x, other)? {
                    Ordering::Less => {
                        place = k;
                        break;
                    }
                    Ordering::Equal => {
                        known = true;
                        break;
                    }
                    Ordering::Greater => {}
                }
            }
            if !known {
                abscissae.insert(place, x);
            }
        }
        let ends = abscissae.iter().map(|x| chain_ends(&local, x)).collect::<Result<SmallVec<[[N; 2]; 8]>, Doubt>>()?;
        let mut area = 0.0;
        for (x, ends) in abscissae.windows(2).zip(ends.windows(2)) {
            let height = |[low, high]: &[N; 2]| high.minus(low).rounded().max(0.0);
            let trapezoid = Trapezoid {
                x: x[0].rounded(),
                width: x[1].minus(x[0]).rounded(),
                low: [ends[0][0].rounded(), ends[1][0].rounded()],
                height: [height(&ends[0]), height(&ends[1])],
            };
            if trapezoid.area() > 0.0 {
                area += trapezoid.area();
                out.push(trapezoid);
            }
        }
        if !N::EXACT && !(self.area_error(bin, polygon) <= tolerance * area) {
            out.truncate(start);
            return Err(Doubt);
        }
        Ok(area)
    }

    /// The area of a convex polygon in a bin as a fraction of the bin, to a few units of rounding of the whole bin.
    pub fn rough_area(&self, bin: [usize; 2], polygon: &[Corner<N>]) -> f64 {
        let local = |corner: &Corner<N>, axis: usize| {
            let distance = corner.at[axis].minus(&self.lines[axis][bin[axis]].at).rounded();
            distance * self.inverse_widths[axis][bin[axis]].rounded()
        };
        let Some(last) = polygon.last() else { return 0.0 };
        let (mut before, mut twice) = ([local(last, 0), local(last, 1)], 0.0);
        for corner in polygon {
            let here = [local(corner, 0), local(corner, 1)];
            twice += before[0] * here[1] - before[1] * here[0];
            before = here;
        }
        twice.abs() / 2.0
    }

    /// A coordinate of a corner in its bin.
    #[inline(always)]
    fn local(&self, axis: usize, bin: usize, corner: &Corner<N>) -> N {
        let number = corner.line[axis] as usize;
        if number == bin + 1 {
            return self.zero.clone();
        }
        if number == bin + 2 {
            return self.one.clone();
        }
        corner.at[axis].minus(&self.lines[axis][bin].at).times(&self.inverse_widths[axis][bin])
    }
}

/// The lower and the upper end of a convex polygon at an abscissa between those of its corners.
fn chain_ends<N: Scalar>(corners: &[[N; 2]], x: &N) -> Result<[N; 2], Doubt> {
    let mut ends: Option<[N; 2]> = None;
    let mut meet = |y: N| -> Result<(), Doubt> {
        match &mut ends {
            None => ends = Some([y.clone(), y]),
            Some([low, high]) => {
                if y.order(low).ok_or(Doubt)? == Ordering::Less {
                    *low = y;
                } else if y.order(high).ok_or(Doubt)? == Ordering::Greater {
                    *high = y;
                }
            }
        }
        Ok(())
    };
    let mut before = &corners[corners.len() - 1];
    for corner in corners {
        let ([p, p_y], [q, q_y]) = (before, corner);
        let (from, to) = (p.order(x).ok_or(Doubt)?, q.order(x).ok_or(Doubt)?);
        if to == Ordering::Equal {
            meet(q_y.clone())?;
        } else if from != Ordering::Equal && from != to {
            let way = x.minus(p).times(&q_y.minus(p_y)).over(&q.minus(p));
            meet(p_y.plus(&way))?;
        }
        before = corner;
    }
    ends.ok_or(Doubt)
}
