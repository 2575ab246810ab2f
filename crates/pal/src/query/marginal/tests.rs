//! Marginals compared with closed forms and with sums over points, and under changes that must not matter.

use std::sync::Arc;

use super::case::{Case, on_threads};
use super::joint::joint_density;
use super::slices::Slices;
use super::*;
use crate::density::functions::ComponentFunctions;
use crate::density::mesh::Mesh;
use crate::formula::{Formula, Linear, reals};
use crate::number::Rational;

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance, "{a} {b}");
}

/// The marginal of a variable, after checking the laws.
fn lawful(case: &Case, axis: usize) -> Marginal {
    let marginal = case.marginal(axis);
    check_laws(&marginal);
    marginal
}

/// Checks the laws that hold for every marginal.
fn check_laws(marginal: &Marginal) {
    close(marginal.total(), 1.0, 1e-12);
    let (low, high) = marginal.support();
    assert_eq!((marginal.cdf(low), marginal.cdf(high)), (0.0, 1.0));
    assert_eq!((marginal.cdf(low - 1.0), marginal.cdf(high + 1.0)), (0.0, 1.0));
    assert_eq!((marginal.density(low - 1e-9), marginal.density(high + 1e-9)), (0.0, 0.0));
    assert_eq!((marginal.quantile(0.0), marginal.quantile(1.0)), (Ok(low), Ok(high)));
    for p in [-0.1, 1.1, f64::NAN] {
        assert!(marginal.quantile(p).is_err());
    }
    assert!(marginal.density(f64::NAN) == 0.0 && marginal.cdf(f64::NAN).is_nan());
    let (mut last, mut last_p) = (low, 0.0);
    for k in 1..1000 {
        let p = f64::from(k) / 1000.0;
        let y = marginal.quantile(p).unwrap();
        assert!(y >= last && y <= high);
        close(marginal.cdf(y), p, 1e-13);
        last = y;
        let y = low + p * (high - low);
        let p = marginal.cdf(y);
        assert!(p >= last_p - 1e-15);
        last_p = p;
        if marginal.density(y) > 1e-3 {
            close(marginal.quantile(p).unwrap(), y, 1e-11 * (high - low));
        }
    }
    // Moments by quadrature over the pieces, from values of the density.
    let gauss = Gauss::with_points(20);
    let moment = |f: &dyn Fn(f64) -> f64| {
        let piece = |piece: MarginalPiece| {
            let length = piece.high - piece.low;
            let nodes = gauss.nodes.iter().zip(&gauss.weights);
            nodes
                .map(|(s, w)| (piece.low + s * length, w))
                .map(|(y, w)| w * length * marginal.density(y) * f(y))
                .sum::<f64>()
        };
        marginal.pieces().map(piece).sum::<f64>()
    };
    close(moment(&|_| 1.0), 1.0, 1e-11);
    let mean = moment(&|y| y);
    close(marginal.mean(), mean, 1e-11 * (1.0 + mean.abs()));
    let variance = moment(&|y| (y - mean) * (y - mean));
    close(marginal.variance(), variance, 1e-11 * (1.0 + variance));
    let line = marginal.polyline(3);
    assert!(line.windows(2).all(|pair| pair[0].0 <= pair[1].0) && line[0].1 == 0.0 && line[line.len() - 1].1 == 0.0);
}

fn triangle(f: impl Fn(&[f64]) -> f64 + Send + Sync + 'static, degree: usize) -> Case {
    let [x, y] = reals(["x", "y"]);
    Case::new(x.ge(0) & y.ge(0) & (&x + &y).le(2), &[&[0, 2], &[0, 2]], degree, f)
}

#[test]
fn uniform_triangle() {
    let case = triangle(|_| 1.0, 0);
    for axis in 0..2 {
        let marginal = lawful(&case, axis);
        assert_eq!(marginal.pieces().len(), 1);
        for y in [0.0, 0.1, 1.0, 1.7, 2.0] {
            close(marginal.density(y), (2.0 - y) / 2.0, 1e-15);
            close(marginal.cdf(y), y - y * y / 4.0, 1e-15);
        }
        close(marginal.quantile(0.5).unwrap(), 2.0 - 2f64.sqrt(), 1e-15);
        close(marginal.mean(), 2.0 / 3.0, 1e-15);
        close(marginal.variance(), 2.0 / 9.0, 1e-15);
    }
}

#[test]
fn square_of_a_sum_on_a_triangle() {
    // The integral of (x + y)^2 over y from 0 to 2 - x is (8 - x^3) / 3; its integral over x is 4.
    let case = triangle(|y| (y[0] + y[1]).powi(2), 2);
    for axis in 0..2 {
        let marginal = lawful(&case, axis);
        for k in 0..=20 {
            let y = f64::from(k) / 10.0;
            close(marginal.density(y), (8.0 - y.powi(3)) / 12.0, 2e-15);
            close(marginal.cdf(y), (8.0 * y - y.powi(4) / 4.0) / 12.0, 2e-15);
        }
        close(marginal.mean(), (16.0 - 32.0 / 5.0) / 12.0, 1e-14);
    }
    // Legendre coefficients of (8 - 8 s^3) / 12 on [0, 2].
    let piece = lawful(&case, 0).pieces().next().unwrap();
    let s3 = [0.25, 0.45, 0.25, 0.05];
    for (k, c) in piece.legendre.iter().enumerate() {
        close(*c, if k == 0 { 0.5 } else { -2.0 / 3.0 * s3[k] }, 1e-14);
    }
}

/// An L-shaped region with a hole and slanted walls, cut into bins.
fn room() -> Formula {
    let [x, y] = reals(["x", "y"]);
    let l = x.between(0, 4) & y.between(0, 3) & ((2 * &x).le(5) | (2 * &y).ge(3));
    l & !(x.gt(1) & x.lt(2) & y.gt(1) & y.lt(2))
}

#[test]
fn rooms_with_holes() {
    let heights = |x: f64| match x {
        x if x < 1.0 => 3.0,
        x if x < 2.0 => 2.0,
        x if x < 2.5 => 3.0,
        _ => 1.5,
    };
    let edges: [[&[i32]; 2]; 2] = [[&[0, 4], &[0, 3]], [&[0, 1, 3, 4], &[0, 2, 3]]];
    for edges in edges {
        let uniform = lawful(&Case::new(room(), &edges, 0, |_| 1.0), 0);
        for k in 0..400 {
            let x = f64::from(k) / 100.0 + 0.005;
            close(uniform.density(x), heights(x) / 8.75, 1e-14);
        }
        assert_eq!(uniform.density(1.0), uniform.density(1.5));
        close(uniform.cdf(2.0), 5.0 / 8.75, 1e-15);
        // x^2 times the height, over its integral 1 + 2 7/3 + 61/8 + 1.5 (64 - 125/8) / 3.
        let area = 1.0 + 14.0 / 3.0 + (15.625 - 8.0) + 0.5 * (64.0 - 15.625);
        let square = lawful(&Case::new(room(), &edges, 2, |y| y[0] * y[0]), 0);
        for x in [0.0, 0.3, 1.4, 2.2, 3.0, 4.0] {
            close(square.density(x), x * x * heights(x) / area, 1e-14);
        }
    }
}

#[test]
fn sloping_walls_against_sums_over_points() {
    let [x, y] = reals(["x", "y"]);
    let wedge = (&x + 2 * &y).ge(2) & (2 * &x - &y).le(5) & (&y - &x).le(2);
    let pillar = (&x + &y).gt(3) & (&x + &y).lt(4) & (&x - &y).lt(1) & (&x - &y).gt(-1);
    let region = x.between(0, 4) & y.between(0, 3) & wedge & !pillar;
    let inside = |x: f64, y: f64| {
        let pillar = x + y > 3.0 && x + y < 4.0 && x - y < 1.0 && x - y > -1.0;
        x + 2.0 * y >= 2.0 && 2.0 * x - y <= 5.0 && y - x <= 2.0 && !pillar
    };
    let f = |y: &[f64]| (y[0] * y[1] - 2.0).powi(2) + 0.1;
    for edges in [[&[0, 4][..], &[0, 3][..]], [&[0, 1, 2, 3, 4], &[0, 1, 2, 3]]] {
        let case = Case::new(region.clone(), &edges, 4, f);
        let marginal = lawful(&case, 0);
        let mass = 12.0 / (case.weights[0] + 3.0 * case.weights[1]);
        for x in [0.1, 0.77, 1.3, 1.5, 2.05, 3.33, 3.9] {
            // The midpoint rule along the other axis.
            let heights = (0..200_000).map(|k| (f64::from(k) + 0.5) / 200_000.0 * 3.0);
            let sum: f64 = heights.filter(|y| inside(x, *y)).map(|y| f(&[x, y])).sum();
            close(marginal.density(x), sum * 3.0 / 200_000.0 / mass, 2e-5);
        }
    }
}

#[test]
fn three_dimensions_and_joint_marginals() {
    // The density 24 x where x + y + z <= 1.
    let [x, y, z] = reals(["x", "y", "z"]);
    let corner = x.ge(0) & y.ge(0) & z.ge(0) & (&x + &y + &z).le(1);
    let case = Case::new(corner, &[&[0, 1], &[0, 1], &[0, 1]], 1, |y| y[0]);
    let (mx, my) = (lawful(&case, 0), lawful(&case, 1));
    for t in [0.0, 0.2, 0.5, 0.9, 1.0] {
        close(mx.density(t), 12.0 * t * (1.0 - t).powi(2), 1e-14);
        close(my.density(t), 4.0 * (1.0 - t).powi(3), 1e-14);
    }
    let points = [0.2, 0.3, 0.1, 0.0, 0.0, 0.4, 0.9, 0.2, 0.5, 0.5, -0.1, 0.2, f64::NAN, 0.1];
    let joint = case.joint(&[0, 1], &points);
    let swapped: Vec<f64> = points.chunks(2).flat_map(|p| [p[1], p[0]]).collect();
    let other = case.joint(&[1, 0], &swapped);
    for ((value, again), p) in joint.iter().zip(&other).zip(points.chunks(2)) {
        let inside = p[0] >= 0.0 && p[1] >= 0.0 && p[0] + p[1] <= 1.0;
        close(*value, if inside { 24.0 * p[0] * (1.0 - p[0] - p[1]) } else { 0.0 }, 1e-14);
        close(*value, *again, 1e-14);
    }
    for (y, value) in [0.0, 0.25, 0.5, 1.0].iter().zip(case.joint(&[1], &[0.0, 0.25, 0.5, 1.0])) {
        close(value, my.density(*y), 1e-14);
    }
    let all = case.joint(&[2, 0, 1], &[0.1, 0.2, 0.3]);
    close(all[0], 24.0 * 0.2, 1e-14);
    assert!(case.joint(&[], &[]).is_empty());
}

#[test]
fn a_solid_with_a_tilted_slot_in_bins() {
    let [x, y, z] = reals(["x", "y", "z"]);
    let solid = x.between(0, 3) & y.between(0, 3) & z.between(0, 3) & (&x + &y + &z).le(6);
    let slot = (&x + 2 * &y - &z).gt(2) & (&x + 2 * &y - &z).lt(3) & z.lt(2);
    let f = |y: &[f64]| (y[0] - y[1] * y[2] + 1.0).powi(2) + y[2];
    let case = Case::new(solid & !slot, &[&[0, 1, 3], &[0, 3], &[0, 2, 3]], 4, f);
    for axis in 0..3 {
        let marginal = lawful(&case, axis);
        let points: Vec<f64> = (0..30).map(|k| f64::from(k) / 10.0 + 0.03).collect();
        for (y, value) in points.iter().zip(case.joint(&[axis], &points)) {
            close(value, marginal.density(*y), 1e-13);
        }
        // The joint marginal with another variable, summed over that.
        let other = (axis + 1) % 3;
        let row: Vec<f64> = (0..2000).flat_map(|k| [1.37, (f64::from(k) + 0.5) * 3.0 / 2000.0]).collect();
        let sum: f64 = case.joint(&[axis, other], &row).iter().sum::<f64>() * 3.0 / 2000.0;
        close(sum, marginal.density(1.37), 1e-5);
    }
}

#[test]
fn joint_marginals_on_edges_count_once() {
    let case = Case::new(room(), &[&[0, 1, 3, 4], &[0, 2, 3]], 2, |y| y[0] * y[0] + y[1]);
    let marginal = lawful(&case, 0);
    let points = [0.0, 1.0, 2.0, 2.5, 3.0, 4.0, 0.3, 5.0];
    for (x, value) in points.iter().zip(case.joint(&[0], &points)) {
        close(value, marginal.density(*x), 1e-14);
    }
    // A gap: the end of its left wall is closed for both.
    let [x, y] = reals(["x", "y"]);
    let gap = x.between(0, 3) & y.between(0, 1) & (x.le(1) | x.ge(2));
    for edges in [&[0, 3][..], &[0, 1, 3], &[0, 1, 2, 3]] {
        let case = Case::new(gap.clone(), &[edges, &[0, 1]], 1, |y| y[0]);
        let marginal = lawful(&case, 0);
        let points = [0.5, 1.0, 1.5, 2.0, 3.0];
        for (x, value) in points.iter().zip(case.joint(&[0], &points)) {
            close(value, if *x == 1.5 { 0.0 } else { x / 3.0 }, 1e-15);
            close(value, marginal.density(*x), 1e-15);
        }
        close(marginal.cdf(1.0), 1.0 / 6.0, 1e-15);
        assert_eq!(marginal.quantile(marginal.cdf(1.0)), Ok(1.0));
        assert_eq!(marginal.cdf(1.2), marginal.cdf(1.9));
        let positions: Vec<f64> = marginal.polyline(0).iter().map(|point| point.0).collect();
        assert!(positions.starts_with(&[0.0, 0.0, 1.0, 1.0, 2.0, 2.0]) && positions.ends_with(&[3.0, 3.0]));
    }
}

#[test]
fn one_variable() {
    let [x] = reals(["x"]);
    let parts = x.between(0, 1) | x.between(2, 3);
    let case = Case::new(parts, &[&[0, 1, 2, 3]], 4, |y| y[0].powi(4));
    let marginal = lawful(&case, 0);
    let mass = (1.0 + 243.0 - 32.0) / 5.0;
    for y in [0.0, 0.5, 1.0, 2.0, 2.5, 3.0] {
        close(marginal.density(y), f64::powi(y, 4) / mass, 1e-14);
        close(case.joint(&[0], &[y])[0], f64::powi(y, 4) / mass, 1e-14);
    }
    assert_eq!(marginal.density(1.5), 0.0);
    close(marginal.quantile(0.5).unwrap(), (5.0 * mass / 2.0 - 1.0 + 32.0).powf(0.2), 1e-14);
}

#[test]
fn permuting_variables_permutes_answers() {
    let f = |x: f64, y: f64| (x - y * y + 1.0).powi(2);
    let [x, y] = reals(["x", "y"]);
    let region = |x: &Linear, y: &Linear| x.between(0, 4) & y.between(0, 3) & (x + 2 * y).ge(2) & (2 * x - y).le(5);
    let one = Case::new(region(&x, &y), &[&[0, 2, 4], &[0, 3]], 4, move |p| f(p[0], p[1]));
    let other = Case::new(region(&y, &x), &[&[0, 3], &[0, 2, 4]], 4, move |p| f(p[1], p[0]));
    for axis in 0..2 {
        let (a, b) = (lawful(&one, axis), lawful(&other, 1 - axis));
        for k in 0..40 {
            let y = f64::from(k) / 10.0;
            close(a.density(y), b.density(y), 1e-13);
            close(a.cdf(y), b.cdf(y), 1e-13);
        }
        close(a.variance(), b.variance(), 1e-13);
    }
}

#[test]
fn slivers_lose_nothing() {
    let [x, y] = reals(["x", "y"]);
    let tiny = Rational::from_parts(1.into(), 1_000_000_000_000_u64.into());
    // A wedge of 1e-12 between two triangles' worth of space, along the axis and across it.
    let wedge = |x: &Linear, y: &Linear| {
        let lean = tiny.clone() * y;
        x.between(0, 2) & y.between(0, 1) & !((x - lean).gt(1) & x.lt(Rational::from(1) + tiny.clone() + tiny.clone()))
    };
    let thin = |x: &Linear, y: &Linear| x.ge(1) & y.between(0, 1) & (x - tiny.clone() * y).le(1);
    let block = x.between(0, 1) & y.between(0, 1);
    for region in [wedge(&x, &y), block | thin(&x, &y)] {
        let case = Case::new(region, &[&[0, 2], &[0, 1]], 2, |p| 1.0 + p[0] * p[1]);
        lawful(&case, 0);
        lawful(&case, 1);
    }
}

#[test]
fn no_mass_gives_no_marginal() {
    let case = triangle(|_| 1.0, 0);
    assert!(Slices::new(&case.mesh, 0, case.functions.degree()).marginal(&case.functions, &[0.0, 0.0]).is_none());
    let empty = Arc::new(Mesh { elements: Vec::new(), cell_ends: Vec::new(), ..(*case.mesh).clone() });
    assert!(Slices::new(&empty, 0, case.functions.degree()).marginal(&case.functions, &case.weights).is_none());
    assert_eq!(joint_density(&empty, &case.functions, &case.weights, &[0], &[0.5]), [0.0]);
}

#[test]
fn threads_change_nothing() {
    let case = Case::new(room(), &[&[0, 1, 3, 4], &[0, 2, 3]], 6, |y| (y[0] * y[1] - y[0] + 1.0).powi(2) * y[1] * y[1]);
    let all = [1, 2, 5].map(|threads| {
        on_threads(threads, || {
            let points: Vec<f64> = (0..100).map(|k| f64::from(k) / 25.0).collect();
            (lawful(&case, 0).pieces().collect::<Vec<_>>(), case.joint(&[0], &points))
        })
    });
    assert!(all[0] == all[1] && all[0] == all[2]);
}
