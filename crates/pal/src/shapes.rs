//! Shapes with known volumes, for tests, benchmarks, demonstrations and first steps.

use crate::formula::{Constraint, Formula, Linear, Var};
use crate::number::{Integer, Rational};

/// Declares the variables `x1 .. xn`.
fn axes(n: usize) -> (Vec<Var>, Vec<Linear>) {
    let names: Vec<String> = (1..=n).map(|j| format!("x{j}")).collect();
    let variables = Var::declare_all(&names);
    let terms = variables.iter().cloned().map(Linear::from).collect();
    (variables, terms)
}

fn constraint(formula: Formula, reals: Vec<Var>) -> Constraint {
    Constraint { formula, reals, booleans: Vec::new() }
}

/// Returns the cube `[0, 1]^n`, whose volume is 1.
pub fn cube(n: usize) -> Constraint {
    let (vars, x) = axes(n);
    constraint(Formula::all(x.iter().map(|x| x.between(0, 1))), vars)
}

/// Returns the simplex `x >= 0, sum x <= 1`, whose volume is `1 / n!`.
pub fn simplex(n: usize) -> Constraint {
    let (vars, x) = axes(n);
    let sum = x.iter().fold(Linear::default(), |sum, x| sum + x);
    constraint(Formula::all(x.iter().map(|x| x.ge(0))) & sum.le(1), vars)
}

/// Returns the cross-polytope `sum |x_j| <= 1`, whose volume is `2^n / n!`.
pub fn cross_polytope(n: usize) -> Constraint {
    let (vars, x) = axes(n);
    let facets = (0..1usize << n).map(|signs| {
        let signed = x.iter().enumerate().map(|(j, x)| if signs >> j & 1 == 1 { -x } else { x.clone() });
        signed.fold(Linear::default(), |sum, x| sum + x).le(1)
    });
    constraint(Formula::all(facets), vars)
}

/// Returns the corners of a regular polygon whose first corner is at the top, rounded to six decimals.
pub fn regular_polygon(corners: usize, radius: f64) -> Vec<[Rational; 2]> {
    let micro = |x: f64| Rational::from_parts(Integer::from((x * 1e6).round() as i64), 1_000_000u32.into());
    (0..corners)
        .map(|k| {
            let angle = std::f64::consts::TAU * k as f64 / corners as f64;
            [micro(-radius * angle.sin()), micro(radius * angle.cos())]
        })
        .collect()
}

/// Returns the outline of the N-pointed star in which every corner is joined to the two corners opposite to it.
///
/// N must be odd and at least 3; otherwise the list is empty. For N = 3 the outline is a triangle. Corners are rounded
/// to six decimals. The notches are the exact points where the chords meet, so that the two edges on one chord stay on
/// one line.
pub fn star(corners: usize, radius: f64) -> Vec<[Rational; 2]> {
    if corners < 3 || corners.is_multiple_of(2) {
        return Vec::new();
    }
    let tips = regular_polygon(corners, radius);
    if corners == 3 {
        return tips;
    }
    let reach = (corners - 1) / 2;
    let chord = |from: usize, to: usize| (&tips[from % corners], &tips[to % corners]);
    let mut outline = Vec::new();
    for (k, tip) in tips.iter().enumerate() {
        outline.push(tip.clone());
        outline.push(meet(chord(k, k + reach), chord(k + 1, k + 1 + corners - reach)));
    }
    outline
}

/// Returns the point where two lines meet, each given by two points. The lines must not be parallel.
fn meet(p: (&[Rational; 2], &[Rational; 2]), q: (&[Rational; 2], &[Rational; 2])) -> [Rational; 2] {
    let line = |(a, b): (&[Rational; 2], &[Rational; 2])| {
        let (u, v) = (&b[1] - &a[1], &a[0] - &b[0]);
        let w = &u * &a[0] + &v * &a[1];
        (u, v, w)
    };
    let ((a, b, c), (d, e, f)) = (line(p), line(q));
    let det = &a * &e - &b * &d;
    [(&c * &e - &b * &f) / &det, (&a * &f - &c * &d) / &det]
}

/// Returns twice the signed area of an outline, by the shoelace formula; it is positive for counterclockwise outlines.
pub fn twice_area(outline: &[[Rational; 2]]) -> Rational {
    let next = outline.iter().cycle().skip(1);
    outline.iter().zip(next).fold(Rational::ZERO, |sum, (a, b)| sum + &a[0] * &b[1] - &a[1] * &b[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::to_f64;

    #[test]
    fn the_star_has_the_area_of_elementary_geometry() {
        // A star {N/k} with k = (N-1)/2 consists of 2N triangles centre-tip-notch. Its notches are at the distance
        // R cos(pi k/N) / cos(pi (k-1)/N) from the centre.
        for n in [5, 7, 11, 19] {
            let (angle, k) = (std::f64::consts::PI / n as f64, ((n - 1) / 2) as f64);
            let notch = 10.0 * (angle * k).cos() / (angle * (k - 1.0)).cos();
            let area = n as f64 * 10.0 * notch * angle.sin();
            assert!((to_f64(&twice_area(&star(n, 10.0))) / 2.0 / area - 1.0).abs() < 1e-5, "{n}");
        }
        assert_eq!(star(3, 10.0).len(), 3);
        assert!(star(4, 10.0).is_empty());
    }
}
