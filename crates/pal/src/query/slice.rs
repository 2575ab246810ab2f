//! Slices of boxes and simplices at fixed coordinates: what marginals integrate over.
//!
//! The plane `t_axis = c` parts the vertices of a simplex into those below, at depths `h_i = c - v_i`, and those above, at heights
//! `g_j = v_j - c`. It meets the edge from i to j in
//!
//! ```text
//! v_ij = (g_j v_i + h_i v_j) / (h_i + g_j)
//! ```
//!
//! and the slice is the projective image of a product of two simplices. Its staircases triangulate it: paths (i, j) that raise one of
//! the two indices at a time, from the first of both to the last of both. In barycentric coordinates each point of a path brings one
//! vertex that was not there before, so that the determinant of the path is a product, and with V the volume of the simplex
//!
//! ```text
//! volume of the slice along a path = n V / (h_i0 + g_j0)  prod over steps to i of g_j / (h_i + g_j)  prod over steps to j of h_i / (h_i + g_j)
//! ```
//!
//! Nothing cancels: slices of a sliver are as accurate as its own volume, and their integral over `c` is V whatever the rounding of the
//! vertices.

use crate::density::grid::Grid;
use crate::density::mesh::{Element, Shape};

/// From where a slice through a vertex is approached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// From smaller coordinates: vertices in the plane count as above it.
    Left,
    /// From larger coordinates: vertices in the plane count as below it.
    Right,
}

impl Side {
    /// Whether a coordinate lies below the plane.
    fn below(self, coordinate: f64, plane: f64) -> bool {
        match self {
            Side::Left => coordinate < plane,
            Side::Right => coordinate <= plane,
        }
    }

    /// Whether a plane meets what lies between two coordinates.
    pub fn meets(self, (low, high): (f64, f64), plane: f64) -> bool {
        self.below(low, plane) && !self.below(high, plane)
    }
}

/// Where to cut: `axis` counts the coordinates of the element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plane {
    pub axis: usize,
    pub at: f64,
    pub side: Side,
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

/// Cuts elements, in memory that is used again for every slice.
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

    /// Visits the pieces of the slice of an element: elements in the coordinates that remain.
    ///
    /// `share` is the width of the bin as a part of its axis. It makes the volumes of the pieces relative to the box of the remaining
    /// axes, if that of the element is relative to the box of its own.
    pub fn cut(&mut self, element: &Element, plane: Plane, share: f64, mut visit: impl FnMut(&Element)) {
        let Plane { axis, at, side } = plane;
        match (&element.shape, &mut self.cuboid.shape) {
            (Shape::Cuboid(low, high), Shape::Cuboid(low_left, high_left))
                if side.meets((low[axis], high[axis]), at) =>
            {
                without(low, axis, low_left);
                without(high, axis, high_left);
                without(&element.bin, axis, &mut self.cuboid.bin);
                self.cuboid.volume = element.volume / ((high[axis] - low[axis]) * share);
                visit(&self.cuboid);
            }
            (Shape::Simplex(vertices), _) => {
                without(&element.bin, axis, &mut self.simplex.bin);
                self.cut_simplex(vertices, element.bin.len(), element.volume / share, plane, visit);
            }
            // A box beside the plane; and the shape of `self.cuboid` never changes.
            _ => {}
        }
    }

    fn cut_simplex(&mut self, v: &[f64], n: usize, volume: f64, plane: Plane, mut visit: impl FnMut(&Element)) {
        let Plane { axis, at, side } = plane;
        self.below.clear();
        self.above.clear();
        for vertex in 0..=n {
            let part = if side.below(v[vertex * n + axis], at) { &mut self.below } else { &mut self.above };
            part.push(vertex);
        }
        if self.below.is_empty() || self.above.is_empty() {
            return;
        }
        let height = |vertex: usize| v[vertex * n + axis];
        let steps_below = self.below.len() - 1;
        // A set bit k is a step to the next vertex below after k steps.
        let mut path: u64 = (1 << steps_below) - 1;
        while path >> (n - 1) == 0 {
            let (mut i, mut j) = (self.below[0], self.above[0]);
            self.simplex.volume = n as f64 * volume / (height(j) - height(i));
            let Shape::Simplex(slice) = &mut self.simplex.shape else { return };
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
            // The next larger number with as many bits set.
            let lowest = path & path.wrapping_neg();
            let carried = path + lowest;
            path = carried | (((path ^ carried) >> 2) / lowest);
        }
    }
}

/// Appends the coordinates, but for that of the axis, of the point where an edge meets the plane.
fn meeting_point(v: &[f64], n: usize, (i, j): (usize, usize), axis: usize, at: f64, out: &mut Vec<f64>) {
    let (low, high) = (&v[i * n..(i + 1) * n], &v[j * n..(j + 1) * n]);
    let length = high[axis] - low[axis];
    let (to_low, to_high) = ((high[axis] - at) / length, (at - low[axis]) / length);
    let points = low.iter().zip(high).enumerate().filter(|(k, _)| *k != axis);
    out.extend(points.map(|(_, (a, b))| to_low * a + to_high * b));
}

/// All entries but one.
fn without<T: Copy>(all: &[T], leave: usize, out: &mut Vec<T>) {
    out.clear();
    out.extend_from_slice(&all[..leave]);
    out.extend_from_slice(&all[leave + 1..]);
}

/// The pieces of an element of a mesh that lie in several planes of different axes.
pub(crate) fn slice(element: &Element, grid: &Grid, planes: &[Plane]) -> Vec<Element> {
    let mut planes = planes.to_vec();
    // The last axis first, so that the others keep their numbers.
    planes.sort_by_key(|plane| std::cmp::Reverse(plane.axis));
    let mut slicer = Slicer::new();
    let mut pieces = vec![element.clone()];
    for plane in planes {
        let axis = &grid.axes()[plane.axis];
        let share = axis.width(element.bin[plane.axis] as usize) / axis.length();
        let mut next = Vec::new();
        pieces.iter().for_each(|piece| slicer.cut(piece, plane, share, |slice| next.push(slice.clone())));
        pieces = next;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::density::gauss::Gauss;
    use crate::density::grid::Axis;
    use crate::number::Rational;

    /// Two bins per axis, of different widths.
    fn grid(dimension: usize) -> Arc<Grid> {
        let edges = || [0, 1, 3].map(Rational::from).to_vec();
        Arc::new(Grid::new((0..dimension).map(|_| Axis::new(edges()).unwrap()).collect()))
    }

    fn determinant(mut a: Vec<Vec<f64>>) -> f64 {
        let n = a.len();
        let mut product = 1.0;
        for k in 0..n {
            let pivot = (k..n).max_by(|x, y| a[*x][k].abs().total_cmp(&a[*y][k].abs())).unwrap();
            a.swap(k, pivot);
            product *= a[k][k];
            for row in k + 1..n {
                let factor = a[row][k] / a[k][k];
                (k..n).for_each(|j| a[row][j] -= factor * a[k][j]);
            }
        }
        product.abs()
    }

    /// The volume in local coordinates.
    fn local_volume(v: &[f64], n: usize) -> f64 {
        let edges = (1..=n).map(|i| (0..n).map(|j| v[i * n + j] - v[j]).collect()).collect();
        determinant(edges) / (1..=n).map(|k| k as f64).product::<f64>()
    }

    fn simplex(grid: &Grid, bin: Vec<u32>, v: Vec<f64>) -> Element {
        let volume = grid.share(&bin) * local_volume(&v, bin.len());
        Element { bin, shape: Shape::Simplex(v), volume }
    }

    /// Reproducible numbers in [0, 1).
    fn numbers(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    fn total(slices: &[Element]) -> f64 {
        slices.iter().map(|s| s.volume).sum()
    }

    fn at(axis: usize, at: f64) -> Plane {
        Plane { axis, at, side: Side::Right }
    }

    /// The integral of the slices' volumes over the coordinate, relative to the length of the axis.
    fn sum_of_slices(element: &Element, grid: &Grid, axis: usize) -> f64 {
        let n = element.bin.len();
        let mut breaks: Vec<f64> = match &element.shape {
            Shape::Cuboid(low, high) => vec![low[axis], high[axis]],
            Shape::Simplex(v) => v.iter().skip(axis).step_by(n).copied().collect(),
        };
        breaks.sort_by(f64::total_cmp);
        let gauss = Gauss::with_points(n + 1);
        let share = grid.axes()[axis].width(element.bin[axis] as usize) / grid.axes()[axis].length();
        let one = |low: f64, high: f64| {
            let nodes = gauss.nodes.iter().zip(&gauss.weights);
            nodes.map(|(s, w)| w * total(&slice(element, grid, &[at(axis, low + s * (high - low))]))).sum::<f64>()
                * (high - low)
        };
        breaks.windows(2).map(|pair| one(pair[0], pair[1])).sum::<f64>() * share
    }

    #[test]
    fn slices_add_up_to_the_element() {
        let mut next = numbers(1);
        for n in 1..=6 {
            let grid = grid(n);
            for round in 0..10 {
                let bin: Vec<u32> = (0..n).map(|_| (next() * 2.0) as u32).collect();
                let v: Vec<f64> = (0..n * (n + 1)).map(|_| next()).collect();
                let low: Vec<f64> = (0..n).map(|_| next() / 2.0).collect();
                let high: Vec<f64> = (0..n).map(|_| 0.5 + next() / 2.0).collect();
                let volume = grid.share(&bin) * low.iter().zip(&high).map(|(a, b)| b - a).product::<f64>();
                let cuboid = Element { bin: bin.clone(), shape: Shape::Cuboid(low, high), volume };
                for element in [simplex(&grid, bin, v), cuboid] {
                    let sum = sum_of_slices(&element, &grid, round % n);
                    assert!((sum / element.volume - 1.0).abs() < 1e-12, "{n}: {sum} {}", element.volume);
                }
            }
        }
    }

    #[test]
    fn volumes_agree_with_determinants_and_staircases_are_counted() {
        let mut next = numbers(2);
        for n in 2..=6 {
            let grid = grid(n);
            for _ in 0..20 {
                let element = simplex(&grid, vec![1; n], (0..n * (n + 1)).map(|_| next()).collect());
                let Shape::Simplex(v) = &element.shape else { unreachable!() };
                let plane = at(n - 1, 0.5);
                let below = (0..=n).filter(|i| v[i * n + n - 1] <= 0.5).count();
                let slices = slice(&element, &grid, &[plane]);
                let paths = |k: usize| (0..k).map(|i| (n - 1 - i) as f64 / (i + 1) as f64).product::<f64>().round();
                let want = if (1..=n).contains(&below) { paths(below - 1) as usize } else { 0 };
                assert_eq!(slices.len(), want, "{n} {below}");
                for piece in slices {
                    let Shape::Simplex(v) = &piece.shape else { unreachable!() };
                    let want = grid.share(&piece.bin) * local_volume(v, n - 1);
                    assert!((piece.volume - want).abs() < 1e-12, "{} {want}", piece.volume);
                }
            }
        }
    }

    #[test]
    fn vertices_in_the_plane_belong_to_one_side() {
        let grid = grid(2);
        let triangle = simplex(&grid, vec![0, 0], vec![0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
        let length = |at, side| total(&slice(&triangle, &grid, &[Plane { axis: 0, at, side }]));
        assert!((length(0.0, Side::Right) - 1.0 / 3.0).abs() < 1e-15);
        assert_eq!(length(0.0, Side::Left), 0.0);
        assert_eq!((length(1.0, Side::Right), length(1.0, Side::Left)), (0.0, 0.0));
        assert_eq!((length(-0.1, Side::Right), length(1.1, Side::Left)), (0.0, 0.0));
        let mirrored = simplex(&grid, vec![0, 0], vec![1.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
        let length = |at, side| total(&slice(&mirrored, &grid, &[Plane { axis: 0, at, side }]));
        assert!((length(1.0, Side::Left) - 1.0 / 3.0).abs() < 1e-15);
        assert_eq!(length(1.0, Side::Right), 0.0);
        // A vertex between the others: from both sides the same.
        let kite = simplex(&grid, vec![0, 0], vec![0.0, 0.0, 1.0, 0.0, 0.5, 1.0]);
        let length = |side| total(&slice(&kite, &grid, &[Plane { axis: 0, at: 0.5, side }]));
        assert_eq!(length(Side::Left), length(Side::Right));
        assert!((length(Side::Right) - 1.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn several_planes_leave_a_length() {
        // {x, y, z >= 0, x + y + z <= 1} at x = 0.2, y = 0.3: z from 0 to 0.5, on an axis of length 3.
        let grid = grid(3);
        let v = vec![0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
        let corner = simplex(&grid, vec![0; 3], v);
        for planes in [[at(0, 0.2), at(1, 0.3)], [at(1, 0.3), at(0, 0.2)]] {
            let slices = slice(&corner, &grid, &planes);
            assert!((total(&slices) - 0.5 / 3.0).abs() < 1e-15);
            let ends = slices.iter().map(|s| extent(&s.shape, 1, 0));
            let (low, high) = ends.fold((1.0, 0.0), |(a, b): (f64, f64), (c, d)| (a.min(c), b.max(d)));
            assert!(low.abs() < 1e-15 && (high - 0.5).abs() < 1e-15);
        }
        let point = slice(&corner, &grid, &[at(0, 0.2), at(1, 0.3), at(2, 0.1)]);
        assert!((total(&point) - 1.0).abs() < 1e-14);
    }

    #[test]
    fn slivers_keep_their_volume() {
        let grid = grid(2);
        for width in [1e-9, 1e-12, 1e-14] {
            let v = vec![0.5, 0.0, 0.5 + width, 1.0, 0.5 + width / 3.0, 0.2];
            let volume = 1e-13;
            let sliver = Element { bin: vec![1, 0], shape: Shape::Simplex(v), volume };
            for axis in 0..2 {
                // Nodes of a sliver 1e-14 wide are a few doubles apart: only there is the quadrature, not the slice, inexact.
                let allowed = if axis == 0 { 1e-16 / width * 4.0 } else { 1e-12 };
                let sum = sum_of_slices(&sliver, &grid, axis);
                assert!((sum / volume - 1.0).abs() < allowed.max(1e-12), "{width} {axis} {sum}");
            }
        }
    }
}
