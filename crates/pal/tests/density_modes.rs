//! The mode is a point of the constraint, no other point is higher by more than the gap, and the bound holds whatever
//! ends the search.

mod common;

use std::time::Duration;

use common::densities::{Case, catalogue, in_float64, spline, sum_of_squares};
use common::{Dice, ratio, variables};
use pal::density::Basis;
use pal::density::Density;
use pal::formula::{Constraint, Formula};
use pal::number::{from_f64, parse_rational};
use pal::query::{Mode, ModeOptions, ModeStop};

/// Checks the properties that every mode has, whatever ended the search.
fn sound(case: &Case, constraint: &Constraint, density: &Density, mode: &Mode) {
    let exact: Vec<_> = mode.point.iter().map(|x| from_f64(*x).unwrap()).collect();
    assert!(common::holds(constraint, &exact, &[]), "{case}: {mode:?}");
    let here = density.log_prob(&mode.point)[0];
    assert!((mode.log_density - here).abs() < 1e-11, "{case}: {mode:?} {here}");
    assert!(mode.log_density <= mode.log_upper && mode.gap >= 0.0, "{case}: {mode:?}");
    let gap = (mode.log_upper - mode.log_density).exp_m1();
    assert!((gap - mode.gap).abs() < 1e-9 * (1.0 + gap), "{case}: {mode:?}");
}

/// Local search upwards from a point, by smaller and smaller random steps.
fn climb(density: &Density, ends: &[(f64, f64)], start: &[f64], dice: &mut Dice) -> f64 {
    let (mut here, mut best) = (start.to_vec(), density.log_prob(start)[0]);
    let mut step = 0.1;
    while step > 1e-6 {
        // Some coordinates at a time, and not out of the box: corners are reached as well.
        let tries = (0..24).flat_map(|_| {
            let moved = here.iter().zip(ends).map(|(x, (low, length))| {
                let by = if dice.chance(60) { step * length * (2.0 * dice.unit() - 1.0) } else { 0.0 };
                (x + by).clamp(*low, low + length)
            });
            moved.collect::<Vec<f64>>()
        });
        let tries: Vec<f64> = tries.collect();
        let logs = density.log_prob(&tries);
        let (k, top) = logs.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap();
        if *top > best {
            (here, best) = (tries[k * here.len()..][..here.len()].to_vec(), *top);
        } else {
            step *= 0.6;
        }
    }
    best
}

/// The highest log-density of many points, and of local searches from the best of them.
fn search(case: &Case, density: &Density, count: usize) -> f64 {
    let n = density.dimension();
    let ends: Vec<(f64, f64)> = case.ends().iter().map(in_float64).collect();
    let points = density.sample(count, 77).unwrap();
    let mut order: Vec<(f64, &[f64])> = density.log_prob(&points).into_iter().zip(points.chunks(n)).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut dice = Dice::new(4);
    let climbs = order.iter().take(count / 10).step_by(count / 80 + 1).map(|(_, point)| *point);
    climbs.fold(order[0].0, |best, point| best.max(climb(density, &ends, point, &mut dice)))
}

#[test]
fn nothing_is_higher_than_the_mode() {
    let mut certified = 0;
    for (k, case) in catalogue().iter().enumerate() {
        let density = case.density(50 + k as u64);
        let mode = density.mode(&ModeOptions { nodes: Some(100_000), ..ModeOptions::default() }).unwrap();
        sound(case, &case.constraint, &density, &mode);
        // Nodes of a cubature are in every element, also where a histogram jumps up on so little volume that no sample
        // hits it.
        let nodes = density.log_prob(&case.inside(usize::MAX)).into_iter().fold(f64::NEG_INFINITY, f64::max);
        let best = search(case, &density, 2_000).max(nodes);
        assert!(best <= mode.log_upper + 1e-12, "{case}: {mode:?} {best}");
        if mode.stop == ModeStop::Certified {
            assert!(mode.gap <= 1e-6, "{case}: {mode:?}");
            // The local search comes close to the maximum as well, so that the certificate is of the right peak.
            assert!(best > mode.log_density - 0.05, "{case}: {mode:?} {best}");
            certified += 1;
        }
    }
    assert!(certified >= 30, "{certified}");
}

#[test]
fn no_sample_is_higher() {
    for (region, settings) in
        [("star", spline(5, 3)), ("notched", sum_of_squares(4, 2, Basis::Orthonormal)), ("far", spline(3, 2))]
    {
        let case = Case::new(region, settings);
        let density = case.density(61);
        let mode = density.mode(&ModeOptions::default()).unwrap();
        assert_eq!(mode.stop, ModeStop::Certified, "{case}: {mode:?}");
        let logs = density.log_prob(&density.sample(100_000, 3).unwrap());
        let highest = logs.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
        assert!(highest <= mode.log_upper && highest <= mode.log_density + 1.1e-6, "{case}: {mode:?} {highest}");
        // A dense grid over the box.
        let ends: Vec<(f64, f64)> = case.ends().iter().map(in_float64).collect();
        let at = |axis: usize, k: usize| ends[axis].0 + ends[axis].1 * k as f64 / 256.0;
        let grid: Vec<f64> = (0..257 * 257).flat_map(|k| [at(0, k % 257), at(1, k / 257)]).collect();
        let highest = density.log_prob(&grid).into_iter().fold(highest, f64::max);
        assert!(highest <= mode.log_upper && highest > mode.log_density - 0.02, "{case}: {mode:?} {highest}");
    }
}

#[test]
#[ignore = "a million samples per case"]
fn no_sample_of_a_million_is_higher() {
    let mut certified = 0;
    for case in catalogue() {
        let density = case.density(61);
        let mode = density.mode(&ModeOptions { nodes: Some(100_000), ..ModeOptions::default() }).unwrap();
        let logs = density.log_prob(&density.sample(1_000_000, 3).unwrap());
        let highest = logs.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
        assert!(highest <= mode.log_upper, "{case}: {mode:?} {highest}");
        if mode.stop == ModeStop::Certified {
            certified += 1;
            assert!(highest <= mode.log_density + 1.1e-6, "{case}: {mode:?} {highest}");
        }
    }
    assert!(certified >= 30, "{certified}");
}

/// The square of a linear function on a simplex is highest at a vertex, and has the integral
/// `vol (sum l_i^2 + (sum l_i)^2) / ((n + 1) (n + 2))` of its values there.
#[test]
fn squares_of_linear_functions_are_highest_at_vertices() {
    let regions = [("triangle", 0.5), ("simplex 3", 1.0 / 6.0), ("simplex 4", 1.0 / 24.0), ("simplex 5", 1.0 / 120.0)];
    for (region, volume) in regions {
        let case = Case::new(region, sum_of_squares(1, 1, Basis::Legendre));
        let n = case.dimension();
        let family = case.compile();
        for seed in 0..4 {
            let theta = family.random_params(1, 100 + seed);
            // Legendre polynomials on the box: 1 and sqrt(3) (2 x - 1).
            let root = 3f64.sqrt();
            let at_origin = theta[1] - root * theta[2..].iter().sum::<f64>();
            let values: Vec<f64> =
                (0..=n).map(|k| if k == 0 { at_origin } else { at_origin + 2.0 * root * theta[k + 1] }).collect();
            let (sum, squares) = (values.iter().sum::<f64>(), values.iter().map(|l| l * l).sum::<f64>());
            let integral = volume * (squares + sum * sum) / ((n + 1) * (n + 2)) as f64;
            let highest = (0..=n).max_by(|i, j| values[*i].abs().total_cmp(&values[*j].abs())).unwrap();
            let want = (values[highest].powi(2) / integral).ln();
            let density = family.density(&family.params_of(&theta)).unwrap();
            let mode = density.mode(&ModeOptions::default()).unwrap();
            assert!(
                (mode.log_density - want).abs() < 2e-6 && mode.log_upper >= want - 1e-13,
                "{case}: {mode:?} {want}"
            );
            for (j, x) in mode.point.iter().enumerate() {
                assert!((x - f64::from(u8::from(j + 1 == highest))).abs() < 1e-5, "{case}: {mode:?} vertex {highest}");
            }
        }
    }
}

/// t (1 - t) squared, in one and in two variables: 30 t^2 (1 - t)^2 has its maximum 15/8 in the middle.
#[test]
fn a_spline_with_a_peak_in_the_middle() {
    for n in [1, 2, 3] {
        let (reals, x) = variables(n);
        let formula = Formula::all(x.iter().map(|x| x.gt(0) & x.lt(1)));
        let case =
            Case { constraint: Constraint { formula, reals, booleans: Vec::new() }, ..Case::new("box", spline(2, 1)) };
        let theta = [vec![0.0], [0.0, 0.0, 1.0, -1.0].repeat(n)].concat();
        let family = case.compile();
        let mode = family.density(&family.params_of(&theta)).unwrap().mode(&ModeOptions::default()).unwrap();
        let want = n as f64 * 1.875f64.ln();
        assert!((mode.log_density - want).abs() < 2e-6 && mode.log_upper >= want - 1e-14, "{mode:?}");
        assert!(mode.point.iter().all(|x| (x - 0.5).abs() < 1e-2), "{mode:?}");
    }
}

/// Where the highest point is excluded, the mode comes as near as float64 allows, and the bound covers the supremum.
#[test]
fn an_excluded_supremum_is_approached() {
    let (reals, x) = variables(2);
    let open = x[0].gt(0) & x[1].gt(0) & (&x[0] + &x[1]).lt(parse_rational("1").unwrap());
    let constraint = Constraint { formula: open, reals, booleans: Vec::new() };
    let case = Case { constraint, ..Case::new("triangle", sum_of_squares(1, 1, Basis::Legendre)) };
    // x itself: 1/2 + (2 x - 1) / 2. Its square integrates to 1/12, so the supremum is 12 at (1, 0).
    let family = case.compile();
    let density = family.density(&family.params_of(&[0.0, 0.5, 0.5 / 3f64.sqrt(), 0.0])).unwrap();
    let mode = density.mode(&ModeOptions::default()).unwrap();
    sound(&case, &case.constraint, &density, &mode);
    assert!(mode.log_upper >= 12f64.ln() - 1e-14 && mode.log_density > 12f64.ln() - 2e-6, "{mode:?}");
    assert!(mode.log_density < 12f64.ln() + 1e-14, "{mode:?}");
}

#[test]
fn limits_end_the_search_with_a_valid_bound() {
    for case in [Case::new("star", spline(4, 2)), Case::new("notched", sum_of_squares(4, 2, Basis::Orthonormal))] {
        let density = case.density(3);
        let fine = ModeOptions { gap: 1e-9, nodes: None, time: None };
        let truth = density.mode(&fine).unwrap();
        assert!(truth.stop == ModeStop::Certified && truth.gap <= 1e-9, "{case}: {truth:?}");
        let few = density.mode(&ModeOptions { gap: 1e-9, nodes: Some(1), time: None }).unwrap();
        assert_eq!(few.stop, ModeStop::NodeLimit, "{case}: {few:?}");
        let hurried = density.mode(&ModeOptions { gap: 1e-9, nodes: None, time: Some(Duration::ZERO) }).unwrap();
        assert_eq!(hurried.stop, ModeStop::TimeLimit, "{case}: {hurried:?}");
        let coarse = density.mode(&ModeOptions { gap: 0.5, ..ModeOptions::default() }).unwrap();
        assert!(
            coarse.stop == ModeStop::Certified && coarse.gap <= 0.5 && coarse.nodes <= truth.nodes,
            "{case}: {coarse:?}"
        );
        for mode in [&few, &hurried, &coarse] {
            sound(&case, &case.constraint, &density, mode);
            assert!(mode.log_upper >= truth.log_density && mode.log_density <= truth.log_upper, "{case}: {mode:?}");
            assert!(mode.nodes <= truth.nodes, "{case}: {mode:?} {truth:?}");
        }
        // A gap below the precision of float64 ends the search too, and the mode says why.
        let endless = density.mode(&ModeOptions { gap: 0.0, nodes: Some(200_000), time: None }).unwrap();
        sound(&case, &case.constraint, &density, &endless);
        assert!(endless.stop != ModeStop::TimeLimit && endless.log_upper >= truth.log_density, "{case}: {endless:?}");
    }
}

#[test]
fn modes_of_conditioned_densities_and_of_batches() {
    let case = Case::new("notched", spline(4, 2));
    let family = case.compile();
    let params = family.random_params(3, 8);
    let modes = family.modes(&params, &ModeOptions::default()).unwrap();
    let (_, x) = variables(2);
    for (density, together) in family.densities(&params).unwrap().iter().zip(modes) {
        let whole = density.mode(&ModeOptions::default()).unwrap();
        assert_eq!((&whole.point, whole.log_density), (&together.point, together.log_density));
        // Half of the region on either side: the higher of the two modes is the mode.
        let sides = [x[0].le(ratio(1, 3)), x[0].gt(ratio(1, 3))].map(|side| {
            let p = density.probability(&side).unwrap();
            let part = density.condition(&side).unwrap();
            let mode = part.mode(&ModeOptions::default()).unwrap();
            let formula = case.constraint.formula.clone() & side;
            sound(&case, &Constraint { formula, ..case.constraint.clone() }, &part, &mode);
            mode.log_density + p.ln()
        });
        assert!((sides[0].max(sides[1]) - whole.log_density).abs() < 3e-6, "{sides:?} {whole:?}");
        let at = 0.371;
        let slice = density.given(&[("x2", at)]).unwrap();
        let mode = slice.mode(&ModeOptions::default()).unwrap();
        let fine: Vec<f64> = (0..=20_000).map(|k| f64::from(k) / 20_000.0).collect();
        let highest = slice.log_prob(&fine).into_iter().fold(f64::NEG_INFINITY, f64::max);
        assert!(highest <= mode.log_upper && highest > mode.log_density - 1e-3, "{mode:?} {highest}");
    }
}
