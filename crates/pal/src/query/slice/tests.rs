//! Volumes of slices compared with determinants and with the volume of the element.

use std::sync::Arc;

use super::*;
use crate::density::BinIndex;
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

fn simplex(grid: &Grid, bin: Vec<BinIndex>, v: Vec<f64>) -> Element {
    let volume = grid.bin_fraction(&bin) * local_volume(&v, bin.len());
    Element { bin, shape: Shape::Simplex(v), volume }
}

/// A generator of reproducible numbers in [0, 1).
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

fn at(axis: usize, at: f64) -> SlicePlane {
    SlicePlane { axis, at, side: SliceSide::Right }
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
    let width_fraction = grid.axes()[axis].width_fraction(element.bin[axis]);
    let one = |low: f64, high: f64| {
        let nodes = gauss.nodes.iter().zip(&gauss.weights);
        nodes.map(|(s, w)| w * total(&slice(element, grid, &[at(axis, low + s * (high - low))]))).sum::<f64>()
            * (high - low)
    };
    breaks.windows(2).map(|pair| one(pair[0], pair[1])).sum::<f64>() * width_fraction
}

#[test]
fn slices_add_up_to_the_element() {
    let mut next = numbers(1);
    for n in 1..=6 {
        let grid = grid(n);
        for round in 0..10 {
            let bin: Vec<BinIndex> = (0..n).map(|_| BinIndex::new((next() * 2.0) as usize)).collect();
            let v: Vec<f64> = (0..n * (n + 1)).map(|_| next()).collect();
            let low: Vec<f64> = (0..n).map(|_| next() / 2.0).collect();
            let high: Vec<f64> = (0..n).map(|_| 0.5 + next() / 2.0).collect();
            let volume = grid.bin_fraction(&bin) * low.iter().zip(&high).map(|(a, b)| b - a).product::<f64>();
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
            let element = simplex(&grid, vec![BinIndex::new(1); n], (0..n * (n + 1)).map(|_| next()).collect());
            let Shape::Simplex(v) = &element.shape else { unreachable!() };
            let plane = at(n - 1, 0.5);
            let below = (0..=n).filter(|i| v[i * n + n - 1] <= 0.5).count();
            let slices = slice(&element, &grid, &[plane]);
            let paths = |k: usize| (0..k).map(|i| (n - 1 - i) as f64 / (i + 1) as f64).product::<f64>().round();
            let want = if (1..=n).contains(&below) { paths(below - 1) as usize } else { 0 };
            assert_eq!(slices.len(), want, "{n} {below}");
            for piece in slices {
                let Shape::Simplex(v) = &piece.shape else { unreachable!() };
                let want = grid.bin_fraction(&piece.bin) * local_volume(v, n - 1);
                assert!((piece.volume - want).abs() < 1e-12, "{} {want}", piece.volume);
            }
        }
    }
}

#[test]
fn vertices_in_the_plane_belong_to_one_side() {
    let grid = grid(2);
    let triangle = simplex(&grid, vec![BinIndex::default(); 2], vec![0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    let length = |at, side| total(&slice(&triangle, &grid, &[SlicePlane { axis: 0, at, side }]));
    assert!((length(0.0, SliceSide::Right) - 1.0 / 3.0).abs() < 1e-15);
    assert_eq!(length(0.0, SliceSide::Left), 0.0);
    assert_eq!((length(1.0, SliceSide::Right), length(1.0, SliceSide::Left)), (0.0, 0.0));
    assert_eq!((length(-0.1, SliceSide::Right), length(1.1, SliceSide::Left)), (0.0, 0.0));
    let mirrored = simplex(&grid, vec![BinIndex::default(); 2], vec![1.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
    let length = |at, side| total(&slice(&mirrored, &grid, &[SlicePlane { axis: 0, at, side }]));
    assert!((length(1.0, SliceSide::Left) - 1.0 / 3.0).abs() < 1e-15);
    assert_eq!(length(1.0, SliceSide::Right), 0.0);
    // A vertex between the others: from both sides the same.
    let kite = simplex(&grid, vec![BinIndex::default(); 2], vec![0.0, 0.0, 1.0, 0.0, 0.5, 1.0]);
    let length = |side| total(&slice(&kite, &grid, &[SlicePlane { axis: 0, at: 0.5, side }]));
    assert_eq!(length(SliceSide::Left), length(SliceSide::Right));
    assert!((length(SliceSide::Right) - 1.0 / 3.0).abs() < 1e-15);
}

#[test]
fn several_planes_leave_a_length() {
    // {x, y, z >= 0, x + y + z <= 1} at x = 0.2, y = 0.3: z from 0 to 0.5, on an axis of length 3.
    let grid = grid(3);
    let v = vec![0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0];
    let corner = simplex(&grid, vec![BinIndex::default(); 3], v);
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
        let sliver = Element { bin: [1, 0].map(BinIndex::new).to_vec(), shape: Shape::Simplex(v), volume };
        for axis in 0..2 {
            // Nodes of a sliver 1e-14 wide are a few ulp apart, so that the quadrature is inexact there, not the slice.
            let allowed = if axis == 0 { 1e-16 / width * 4.0 } else { 1e-12 };
            let sum = sum_of_slices(&sliver, &grid, axis);
            assert!((sum / volume - 1.0).abs() < allowed.max(1e-12), "{width} {axis} {sum}");
        }
    }
}
