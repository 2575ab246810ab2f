//! Areas of parts against exact arithmetic, and doubt where it is due.

use super::*;
use crate::double_double::DoubleDouble;
use crate::number::Rational;
use crate::random::Stream;

fn rational(numerator: i64, denominator: i64) -> Rational {
    Rational::from(numerator) / Rational::from(denominator)
}

fn corners<N: Scalar>(points: &[[Rational; 2]]) -> Vec<Corner<N>> {
    let corner = |point: &[Rational; 2]| {
        let [(x, x_error), (y, y_error)] = [N::nearest(&point[0]), N::nearest(&point[1])];
        Corner::new([x, y], [x_error, y_error])
    };
    points.iter().map(corner).collect()
}

/// For every bin the area of a polygon in it, as a fraction of the bin.
fn areas<N: Scalar>(edges: &[Rational], polygon: &[[Rational; 2]]) -> Result<Vec<f64>, Doubt> {
    areas_to::<N>(edges, polygon, 1e-13)
}

/// The same, to a relative error.
fn areas_to<N: Scalar>(edges: &[Rational], polygon: &[[Rational; 2]], tolerance: f64) -> Result<Vec<f64>, Doubt> {
    let grid = PlanarGrid::<N>::new([edges, edges]);
    let bins = edges.len() - 1;
    let mut areas = vec![0.0; bins * bins];
    let mut trapezoids = Vec::new();
    grid.cut(&corners(polygon), &mut CutMemory::default(), &mut |i, j, part| {
        areas[i * bins + j] = match part {
            BinPart::Full => 1.0,
            BinPart::Polygon(part) => grid.trapezoids([i, j], part, tolerance, &mut trapezoids)?,
        };
        Ok(())
    })?;
    Ok(areas)
}

/// The area of a polygon by the formula of Gauss.
fn exact_area(polygon: &[[Rational; 2]]) -> Rational {
    let next = polygon.iter().cycle().skip(1);
    let twice = polygon.iter().zip(next).fold(Rational::ZERO, |sum, (p, q)| sum + &p[0] * &q[1] - &p[1] * &q[0]);
    twice / Rational::from(2)
}

#[test]
fn parts_of_random_triangles_have_the_exact_areas() {
    let edges: Vec<Rational> = (0..=6).map(|k| rational(k, 3)).collect();
    let (mut stream, mut doubts, mut short) = (Stream::new(11, 0), 0, 0);
    for case in 0..300 {
        // Every third one is thin, and every fifth one reaches beyond the grid.
        let thin = if case % 3 == 0 { 1_000_000_000 } else { 1 };
        let size = if case % 5 == 0 { 4.0 } else { 2.0 };
        let mut number = || rational((stream.unit() * size * 1e6) as i64, 1_000_003);
        let (p, q) = ([number(), number()], [number(), number()]);
        let r = [&q[0] + number() / Rational::from(thin), &q[1] + number() / Rational::from(thin)];
        let mut triangle = vec![p, q, r];
        if exact_area(&triangle) < Rational::ZERO {
            triangle.reverse();
        }
        if exact_area(&triangle).is_zero() {
            continue;
        }
        let exact = areas::<Rational>(&edges, &triangle).unwrap();
        // float64 knows areas to fewer digits, and says so.
        match areas_to::<f64>(&edges, &triangle, 1e-9) {
            Ok(near) => near.iter().zip(&exact).for_each(|(a, b)| assert!((a - b).abs() <= 1e-9 * b, "{a} {b}")),
            Err(Doubt) => short += 1,
        }
        let Ok(fast) = areas::<DoubleDouble>(&edges, &triangle) else {
            // The tip of a sliver in a bin of its own may be too small.
            doubts += 1;
            continue;
        };
        for (a, b) in fast.iter().zip(&exact) {
            assert!((a - b).abs() <= 2e-13 * b, "{a} {b}");
        }
        if case % 5 != 0 && triangle.iter().flatten().all(|x| *x <= Rational::from(2)) {
            let want = exact_area(&triangle).to_f64().value() * 9.0;
            assert!((exact.iter().sum::<f64>() / want - 1.0).abs() < 1e-13);
        }
    }
    assert!(doubts < 20 && (20..200).contains(&short), "{doubts} {short}");
}

#[test]
fn walls_on_lines_are_decided_exactly_or_not_at_all() {
    let dyadic: Vec<Rational> = (0..=4).map(|k| rational(k, 4)).collect();
    let square = |low: Rational, high: Rational| {
        vec![[low.clone(), low.clone()], [high.clone(), low.clone()], [high.clone(), high.clone()], [low, high]]
    };
    // Numbers that float64 has leave no doubt even on a line.
    let inner = square(rational(1, 4), rational(3, 4));
    let want: Vec<f64> = (0..16).map(|k| f64::from(u8::from([5, 6, 9, 10].contains(&k)))).collect();
    assert_eq!(areas::<DoubleDouble>(&dyadic, &inner), Ok(want.clone()));
    assert_eq!(areas::<f64>(&dyadic, &inner), Ok(want.clone()));
    assert_eq!(areas::<Rational>(&dyadic, &inner), Ok(want));
    // Others do, and a sliver of 1e-40 does.
    let thirds: Vec<Rational> = (0..=3).map(|k| rational(k, 3)).collect();
    let touching = square(rational(1, 3), rational(2, 3));
    assert_eq!(areas::<DoubleDouble>(&thirds, &touching), Err(Doubt));
    assert_eq!(areas::<f64>(&thirds, &touching), Err(Doubt));
    assert_eq!(areas::<Rational>(&thirds, &touching).unwrap().iter().sum::<f64>(), 1.0);
    let beyond = rational(3, 4) + Rational::ONE / Rational::from(10).pow(40);
    assert_eq!(areas::<DoubleDouble>(&dyadic, &square(rational(1, 4), beyond.clone())), Err(Doubt));
    let exact = areas::<Rational>(&dyadic, &square(rational(1, 4), beyond)).unwrap();
    assert!((exact[7] / 4e-40 - 1.0).abs() < 1e-15);
}
