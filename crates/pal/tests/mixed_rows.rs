//! The fused pass of mixed families against the generic one, which integrates part by part: log-densities and gradients
//! of every kind of family over a catalogue of constraints, in both precisions.

mod common;

use common::densities::{histogram, spline, sum_of_squares};
use common::ratio;
use pal::density::{Basis, DensityError, RowInput, Settings};
use pal::formula::{Category, Constraint, Formula, reals};
use pal::mixed::MixedFamily;
use pal::region::Region;

fn boolean(name: &str) -> Formula {
    Formula::boolean(name)
}

/// Clauses of three Booleans and a half-plane, as in the benchmark of mixed layers.
fn clauses(booleans: usize, clauses: usize) -> Formula {
    let [x, y] = reals(["x", "y"]);
    let mut formula = x.between(0, 10) & y.between(0, 10);
    for k in 0..clauses {
        let of = |step: usize| boolean(&format!("b{}", (k * step + k / 3) % booleans));
        let side = (((k % 4) as i64 - 1) * &x + ((k % 3) as i64 + 1) * &y).le(3 + 2 * k as i64);
        formula = formula & (of(1) | !of(3) | of(7) | side);
    }
    formula
}

/// Constraints with slanted and straight walls, shared and own bins, one to three variables, free and fixed Booleans.
fn catalogue() -> Vec<(&'static str, Constraint)> {
    let [x, y, z] = reals(["x", "y", "z"]);
    let (a, b) = (boolean("a"), boolean("b"));
    let square = x.between(0, 1) & y.between(0, 1);
    let mode = Category::new("mode", &["walk", "ride", "drive"]).unwrap();
    let is = |value: &str| mode.is(value).unwrap();
    vec![
        ("a line", (x.between(0, 3) & (a.clone() | x.le(1)) & (b.clone() | x.ge(ratio(1, 2)))).into()),
        ("a free Boolean", (square.clone() & (a.clone() | b.clone()) & (&x + &y).le(ratio(3, 2))).into()),
        ("straight walls", (square.clone() & (a.clone() | x.le(ratio(2, 5))) & (b.clone() | y.ge(ratio(1, 3)))).into()),
        ("parts that fill the square", (square.clone() & a.clone().iff((&x + &y).le(1))).into()),
        ("bins cut alike", (square.clone() & (a.clone() | (&x - &y).le(0)) & (b.clone() | (&x + &y).le(1))).into()),
        ("a fixed Boolean", (square.clone() & a.clone() & (b.clone() | x.le(&y))).into()),
        ("a sliver", (square.clone() & (a.clone() | (&x + 1000 * &y).le(1)) & (b.clone() | !a.clone())).into()),
        (
            "a category",
            (square.clone() & (!is("walk") | (&x + &y).le(1)) & (!is("ride") | y.le(&x)) & (b.clone() | x.le(&y)))
                .into(),
        ),
        ("clauses", clauses(8, 6).into()),
        (
            "three variables",
            (square & z.between(0, 1) & (a.clone() | (&x + &y + &z).le(1)) & (b | !a | z.ge(&x))).into(),
        ),
    ]
}

fn settings(dimension: usize) -> Vec<Settings> {
    vec![
        spline(if dimension == 3 { 3 } else { 5 }, 3),
        histogram(4, 3),
        sum_of_squares(2, 3, Basis::Orthonormal),
        sum_of_squares(1, 2, Basis::Monomial),
    ]
}

/// More rows than lanes, so that there is a block that is not full, and points of which some are outside.
const ROWS: usize = 21;

fn points(family: &MixedFamily, params: &[f64]) -> Vec<f64> {
    let columns = family.support().columns();
    let mut points = family.sample(params, 1, 11).unwrap();
    let last = points.len() - 1;
    points[last] = 1.0 - points[last];
    points[2 * columns] = 1e3;
    points
}

#[test]
fn one_pass_for_all_parts_is_the_sum_over_parts() {
    let mut outside = 0;
    for (name, constraint) in catalogue() {
        for settings in settings(constraint.reals.len()) {
            let family = MixedFamily::new(&Region::new(&constraint).unwrap(), &settings).unwrap();
            for scale in [1.0, 6.0] {
                let mut params = family.random_params(ROWS, 17);
                params.iter_mut().for_each(|x| *x *= scale);
                let points = points(&family, &params);
                let rows = family.row_log_prob(RowInput::Parameters, &params, &points, true).unwrap().unwrap();
                let (want, ones) = (family.log_prob(&params, &points).unwrap(), [1.0; ROWS]);
                let gradient = family.log_prob_vjp(&params, &points, &ones).unwrap();
                for (got, want) in rows.log_prob.iter().zip(&want) {
                    outside += usize::from(*want == f64::NEG_INFINITY);
                    let close = got == want || (got - want).abs() < 1e-12 * (1.0 + want.abs());
                    assert!(close, "{name}, {settings:?}: {got} for {want}");
                }
                let got = rows.gradient.unwrap();
                let per = family.num_params();
                for (row, (got, want)) in got.chunks(per).zip(gradient.chunks(per)).enumerate() {
                    let size = want.iter().fold(1.0, |size: f64, x| size.max(x.abs()));
                    for (at, (got, want)) in got.iter().zip(want).enumerate() {
                        assert!(
                            (got - want).abs() < 1e-9 * size,
                            "{name}, {settings:?}, {row}, {at}: {got} for {want}"
                        );
                    }
                }
                let short: Vec<f32> = params.iter().map(|x| *x as f32).collect();
                let in_short = family.row_log_prob(RowInput::Parameters, &short, &points, false).unwrap().unwrap();
                assert!(in_short.gradient.is_none());
                for (got, want) in in_short.log_prob.iter().zip(&want) {
                    let close = f64::from(*got) == *want || (f64::from(*got) - want).abs() < 2e-3 * (1.0 + want.abs());
                    assert!(close, "{name}, {settings:?}, float32: {got} for {want}");
                }
            }
        }
    }
    assert!(outside > 40, "{outside} points outside");
}

/// Logits far beyond what float64 can tell from certainty.
#[test]
fn extreme_logits_leave_no_infinities() {
    for (name, constraint) in catalogue() {
        let family = MixedFamily::new(&Region::new(&constraint).unwrap(), &spline(4, 2)).unwrap();
        let mut params = family.random_params(ROWS, 3);
        let points = points(&family, &params);
        let reals = family.base().num_params();
        let per = family.num_params();
        for (row, params) in params.chunks_mut(per).enumerate() {
            params[reals..].iter_mut().for_each(|x| *x *= 10f64.powi(row as i32 % 6));
        }
        let rows = family.row_log_prob(RowInput::Parameters, &params, &points, true).unwrap().unwrap();
        assert!(rows.gradient.unwrap().iter().all(|x| x.is_finite()), "{name}");
        assert!(rows.log_prob.iter().all(|x| !x.is_nan()), "{name}");
    }
}

#[test]
fn rows_are_checked() {
    let family = MixedFamily::new(&Region::new(&clauses(4, 3).into()).unwrap(), &spline(4, 2)).unwrap();
    let params = family.random_params(2, 1);
    let points = family.sample(&params, 1, 1).unwrap();
    assert_eq!(family.row_len(RowInput::Parameters), Some(family.num_params()));
    let few = family.row_log_prob(RowInput::Parameters, &params[1..], &points, true);
    assert!(matches!(few, Err(DensityError::Length { .. })), "{few:?}");
    let mut wrong = params.clone();
    wrong[family.num_params() + 2] = f64::NAN;
    let wrong = family.row_log_prob(RowInput::Parameters, &wrong, &points, true);
    assert!(matches!(wrong, Err(DensityError::Parameter { row: 1, column: 2, .. })), "{wrong:?}");
}
