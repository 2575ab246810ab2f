//! Slices of boxes and simplices at fixed coordinates: what marginals integrate over.
//!
//! The plane `t_axis = c` divides the vertices of a simplex into those below, at depths `h_i = c - v_i`, and those
//! above, at heights `g_j = v_j - c`. It meets the edge from i to j in
//!
//! ```text
//! v_ij = (g_j v_i + h_i v_j) / (h_i + g_j)
//! ```
//!
//! and the slice is the projective image of a product of two simplices. Its staircases triangulate it: paths (i, j)
//! that raise one of the two indices at a time, from the first of both to the last of both. In barycentric coordinates
//! each point of a path brings one vertex that was not there before, so that the determinant of the path is a product,
//! and with V the volume of the simplex
//!
//! ```text
//! volume of the slice along a path  =  n V / (h_i0 + g_j0)
//!                                      prod over steps to i of g_j / (h_i + g_j)
//!                                      prod over steps to j of h_i / (h_i + g_j)
//! ```
//!
//! Nothing cancels: slices of a sliver are as accurate as its own volume, and their integral over `c` is V whatever the
//! rounding of the vertices.

#[cfg(test)]
mod tests;

use crate::density::grid::Grid;
use crate::density::mesh::{Element, Shape};

/// The side from which a slice through a vertex is approached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SliceSide {
    /// From smaller coordinates: vertices in the plane count as above it.
    Left,
    /// From larger coordinates: vertices in the plane count as below it.
    Right,
}

impl SliceSide {
    /// Whether a coordinate lies below the plane.
    fn below(self, coordinate: f64, plane: f64) -> bool {
        match self {
            SliceSide::Left => coordinate < plane,
            SliceSide::Right => coordinate <= plane,
        }
    }

    /// Whether a plane meets a shape that extends from one coordinate to another.
    pub fn meets(self, (low, high): (f64, f64), plane: f64) -> bool {
        self.below(low, plane) && !self.below(high, plane)
    }
}

/// A plane orthogonal to an axis of an element, at a local coordinate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlicePlane {
    pub axis: usize,
    pub at: f64,
    pub side: SliceSide,
}

/// The smallest and the largest coordinate of a shape along an axis.
pub(crate) fn extent(shape: &Shape, dimension: usize, axis: usize) -> (f64, f64) {
    match shape {
        Shape::Cuboid(low, high) => (low[axis], high[axis]),
        Shape::Simplex(v) => {
            let start = (f64::INFINITY, f64::NEG_INFINITY);
            v.iter().skip(axis).step_by(dimension).fold(start, |(low, high), x| (low.min(*x), high.max(*x)))
        }
    }
}

/// Cuts elements at planes, in memory that is used again for every slice.
#[derive(Debug)]
pub(crate) struct Slicer {
    cuboid: Element,
    simplex: Element,
    below: Vec<usize>,
    above: Vec<usize>,
}

impl Slicer {
    pub fn new() -> Slicer {
        let empty = |shape| Element { bin: Vec::new(), shape, volume: 0.0 };
        Slicer {
            cuboid: empty(Shape::Cuboid(Vec::new(), Vec::new())),
            simplex: empty(Shape::Simplex(Vec::new())),
            below: Vec::new(),
            above: Vec::new(),
        }
    }

    /// Visits the elements, in the remaining coordinates, that make up the slice of an element.
    ///
    /// `width_fraction` is the width of the bin as a fraction of the length of its axis. It makes the volumes of the
    /// slices relative to the box of the remaining axes, if that of the element is relative to the box of all its axes.
    pub fn cut(&mut self, element: &Element, plane: SlicePlane, width_fraction: f64, mut visit: impl FnMut(&Element)) {
        let SlicePlane { axis, at, side } = plane;
        let (low, high) = match &element.shape {
            Shape::Cuboid(low, high) => (low, high),
            Shape::Simplex(vertices) => {
                without(&element.bin, axis, &mut self.simplex.bin);
                return self.cut_simplex(vertices, element.bin.len(), element.volume / width_fraction, plane, visit);
            }
        };
        if let (true, Shape::Cuboid(low_kept, high_kept)) =
            (side.meets((low[axis], high[axis]), at), &mut self.cuboid.shape)
        {
            without(low, axis, low_kept);
            without(high, axis, high_kept);
            without(&element.bin, axis, &mut self.cuboid.bin);
            self.cuboid.volume = element.volume / ((high[axis] - low[axis]) * width_fraction);
            visit(&self.cuboid);
        }
    }

    fn cut_simplex(&mut self, v: &[f64], n: usize, volume: f64, plane: SlicePlane, mut visit: impl FnMut(&Element)) {
        let SlicePlane { axis, at, side } = plane;
        self.below.clear();
        self.above.clear();
        for vertex in 0..=n {
            let list = if side.below(v[vertex * n + axis], at) { &mut self.below } else { &mut self.above };
            list.push(vertex);
        }
        if self.below.is_empty() || self.above.is_empty() {
            return;
        }
        let height = |vertex: usize| v[vertex * n + axis];
        let steps_below = self.below.len() - 1;
        // A set bit k means that step k goes to the next vertex below.
        let mut path: u64 = (1 << steps_below) - 1;
        while path >> (n - 1) == 0 {
            let (mut i, mut j) = (self.below[0], self.above[0]);
            self.simplex.volume = n as f64 * volume / (height(j) - height(i));
            let Shape::Simplex(slice) = &mut self.simplex.shape else {
                unreachable!("the element for slices of simplices is made as a simplex")
            };
            slice.clear();
            meeting_point(v, n, (i, j), axis, at, slice);
            let (mut next_i, mut next_j) = (1, 1);
            for step in 0..n - 1 {
                let up = if path >> step & 1 == 1 {
                    i = self.below[next_i];
                    next_i += 1;
                    height(j) - at
                } else {
                    j = self.above[next_j];
                    next_j += 1;
                    at - height(i)
                };
                self.simplex.volume *= up / (height(j) - height(i));
                meeting_point(v, n, (i, j), axis, at, slice);
            }
            if self.simplex.volume > 0.0 {
                visit(&self.simplex);
            }
            if steps_below == 0 {
                break;
            }
            // The next larger number with as many set bits (Gosper's hack).
            let lowest = path & path.wrapping_neg();
            let carried = path + lowest;
            path = carried | (((path ^ carried) >> 2) / lowest);
        }
    }
}

/// Appends the coordinates, except that of the axis, of the point where an edge meets the plane.
fn meeting_point(v: &[f64], n: usize, (i, j): (usize, usize), axis: usize, at: f64, out: &mut Vec<f64>) {
    let (low, high) = (&v[i * n..(i + 1) * n], &v[j * n..(j + 1) * n]);
    let length = high[axis] - low[axis];
    let (to_low, to_high) = ((high[axis] - at) / length, (at - low[axis]) / length);
    let points = low.iter().zip(high).enumerate().filter(|(k, _)| *k != axis);
    out.extend(points.map(|(_, (a, b))| to_low * a + to_high * b));
}

/// Copies all entries but one.
fn without<T: Copy>(all: &[T], left_out: usize, out: &mut Vec<T>) {
    out.clear();
    out.extend_from_slice(&all[..left_out]);
    out.extend_from_slice(&all[left_out + 1..]);
}

/// The elements that make up the slice of an element at several planes of different axes.
pub(crate) fn slice(element: &Element, grid: &Grid, planes: &[SlicePlane]) -> Vec<Element> {
    let mut planes = planes.to_vec();
    // The last axis first, so that the others keep their numbers.
    planes.sort_by_key(|plane| std::cmp::Reverse(plane.axis));
    let mut slicer = Slicer::new();
    let mut parts = vec![element.clone()];
    for plane in planes {
        let width_fraction = grid.axes()[plane.axis].width_fraction(element.bin[plane.axis]);
        let mut next = Vec::new();
        parts.iter().for_each(|part| slicer.cut(part, plane, width_fraction, |slice| next.push(slice.clone())));
        parts = next;
    }
    parts
}
