//! Marginals and conditional densities are integrals of the density over slices, and obey the chain rule.

mod common;

use common::densities::cubature::Cubature;
use common::densities::{Case, catalogue, in_float64, spline, sum_of_squares};
use common::ratio;
use pal::density::Basis;
use pal::density::Density;
use pal::formula::{Constraint, Formula, Linear, Substitution};
use pal::number::from_f64;

/// Fractions at which to cut an axis, where no vertices meet by chance.
const FRACTIONS: [f64; 3] = [0.1371, 0.4117, 0.8293];

fn at(case: &Case, axis: usize, fraction: f64) -> f64 {
    let (low, length) = in_float64(&case.ends()[axis]);
    low + length * fraction
}

fn names(case: &Case) -> Vec<&str> {
    case.constraint.reals.iter().map(|var| var.name()).collect()
}

fn tolerance(case: &Case) -> f64 {
    1e-10 + 1e3 * case.resolution
}

/// A cubature rule over the slice of the region at given values: nodes with all coordinates, weights of the slice.
fn slice(case: &Case, fixed: &[(usize, f64)]) -> Cubature {
    let mut substitution = Substitution::new();
    for (axis, value) in fixed {
        substitution = substitution.real(names(case)[*axis], Linear::from(from_f64(*value).unwrap()));
    }
    let n = case.dimension();
    let free: Vec<usize> = (0..n).filter(|axis| fixed.iter().all(|(a, _)| a != axis)).collect();
    let constraint = Constraint {
        formula: case.constraint.formula.substitute(&substitution),
        reals: free.iter().map(|axis| case.constraint.reals[*axis].clone()).collect(),
        booleans: Vec::new(),
    };
    let knots = case.knots();
    let knots: Vec<_> = free.iter().map(|axis| knots[*axis].clone()).collect();
    let mut rule = Cubature::new(&constraint, &knots, case.degree());
    let mut points = Vec::new();
    for point in rule.points.chunks(free.len()) {
        let mut full = vec![0.0; n];
        free.iter().zip(point).for_each(|(axis, x)| full[*axis] = *x);
        fixed.iter().for_each(|(axis, x)| full[*axis] = *x);
        points.extend(full);
    }
    (rule.points, rule.dimension) = (points, n);
    rule
}

fn planar_and_more() -> Vec<Case> {
    catalogue().into_iter().filter(|case| (2..=4).contains(&case.dimension())).collect()
}

#[test]
fn the_marginal_of_one_variable_is_an_integral_over_slices() {
    for case in planar_and_more() {
        let density = case.density(8);
        for axis in [0, case.dimension() - 1] {
            let name = names(&case)[axis];
            let marginal = density.marginal(name).unwrap();
            assert!((marginal.total() - 1.0).abs() < 1e-11, "{case}: {}", marginal.total());
            let length = in_float64(&case.ends()[axis]).1;
            for fraction in FRACTIONS {
                let y = at(&case, axis, fraction);
                let want = slice(&case, &[(axis, y)]).mass(&density);
                let got = marginal.density(y);
                assert!((got - want).abs() * length < tolerance(&case), "{case}: {name} = {y}: {got} {want}");
                let joint = density.marginal_density(&[name], &[y]).unwrap()[0];
                assert!((joint - want).abs() * length < tolerance(&case), "{case}: {name} = {y}: {joint} {want}");
            }
        }
    }
}

#[test]
fn distribution_functions_and_quantiles() {
    for case in catalogue() {
        let density = case.density(9);
        let axis = case.dimension() / 2;
        let (name, (low, length)) = (names(&case)[axis], in_float64(&case.ends()[axis]));
        let marginal = density.marginal(name).unwrap();
        let below = |y: f64| Linear::from(case.constraint.reals[axis].clone()).le(from_f64(y).unwrap());
        for fraction in FRACTIONS {
            let y = at(&case, axis, fraction);
            let want = case.cubature(&below(y), 0).mass(&density);
            let [a, b] = [marginal.cdf(y), density.cdf(&[(name, y)]).unwrap()];
            assert!(
                (a - want).abs() < tolerance(&case) && (b - want).abs() < tolerance(&case),
                "{case}: {a} {b} {want}"
            );
            // The mass up to the quantile of a probability is that probability.
            let quantile = marginal.quantile(fraction).unwrap();
            let mass = case.cubature(&below(quantile), 0).mass(&density);
            let rounding = f64::EPSILON * quantile.abs() * marginal.density(quantile);
            assert!((mass - fraction).abs() < tolerance(&case) + rounding, "{case}: {quantile} {mass} {fraction}");
        }
        assert_eq!([marginal.cdf(low - length), marginal.cdf(low + 2.0 * length)], [0.0, 1.0], "{case}");
        let ends = [0.0, 1.0].map(|p| marginal.quantile(p).unwrap());
        assert!((ends[0] - low).abs() <= 1e-12 * low.abs() + 1e-14 * length, "{case}: {ends:?} {low} {length}");
        assert!(
            (ends[1] - low - length).abs() <= 1e-12 * low.abs() + 1e-14 * length,
            "{case}: {ends:?} {low} {length}"
        );
        assert!(marginal.quantile(-0.1).is_err() && marginal.quantile(f64::NAN).is_err());
        let mut before = -1.0;
        for k in 0..=40 {
            let here = marginal.cdf(low + length * f64::from(k) / 40.0);
            assert!(here >= before, "{case}: a distribution function falls");
            before = here;
        }
    }
}

/// Pieces are polynomials in Legendre form: their constant terms times their widths are their masses.
#[test]
fn pieces_of_a_marginal_spell_it_out() {
    for case in [Case::new("boxes", spline(3, 2)), Case::new("star", sum_of_squares(3, 2, Basis::Orthonormal))] {
        let marginal = case.density(2).marginal("x1").unwrap();
        let mut mass = 0.0;
        for piece in marginal.pieces() {
            mass += piece.legendre[0] * (piece.high - piece.low);
            assert!((marginal.cdf(piece.high) - mass).abs() < 1e-12, "{case}");
            for s in [0.2, 0.7] {
                let x = 2.0 * s - 1.0;
                let (mut before, mut here, mut sum) = (0.0, 1.0, 0.0);
                for (k, c) in piece.legendre.iter().enumerate() {
                    sum += c * here;
                    let k = k as f64;
                    (before, here) = (here, ((2.0 * k + 1.0) * x * here - k * before) / (k + 1.0));
                }
                let got = marginal.density(piece.low + s * (piece.high - piece.low));
                assert!((got - sum).abs() < 1e-9 * (1.0 + sum), "{case}: {got} {sum}");
            }
        }
        assert!((mass - 1.0).abs() < 1e-12, "{case}: {mass}");
    }
}

#[test]
fn joint_marginals_of_pairs() {
    for case in planar_and_more().into_iter().filter(|case| case.dimension() > 2) {
        let density = case.density(4);
        let names = names(&case);
        // In either order.
        for (i, j) in [(0, 1), (2, 0)] {
            for (a, b) in [
                (FRACTIONS[0], FRACTIONS[0]),
                (FRACTIONS[1], FRACTIONS[0]),
                (FRACTIONS[1], FRACTIONS[1]),
                (FRACTIONS[2], FRACTIONS[2]),
            ] {
                let (x, y) = (at(&case, i, a), at(&case, j, b));
                let want = slice(&case, &[(i, x), (j, y)]).mass(&density);
                let got = density.marginal_density(&[names[i], names[j]], &[x, y]).unwrap()[0];
                assert!((got - want).abs() < 1e-10 * (1.0 + want), "{case}: {x} {y}: {got} {want}");
            }
        }
        let full = case.inside(5);
        let want: Vec<f64> = density.log_prob(&full).iter().map(|log| log.exp()).collect();
        assert_eq!(density.marginal_density(&names, &full).unwrap(), want, "{case}");
    }
}

#[test]
fn joint_distribution_functions() {
    for case in planar_and_more() {
        let density = case.density(5);
        let x: Vec<Linear> = case.constraint.reals.iter().cloned().map(Linear::from).collect();
        for (a, b) in [(0.8293, 0.4117), (0.4117, 0.8293), (0.9, 0.95)] {
            let (u, v) = (at(&case, 0, a), at(&case, 1, b));
            let below = x[0].le(from_f64(u).unwrap()) & x[1].le(from_f64(v).unwrap());
            let want = case.cubature(&below, 0).mass(&density);
            let got = density.cdf(&[("x1", u), ("x2", v)]).unwrap();
            assert!((got - want).abs() < tolerance(&case), "{case}: {got} {want}");
        }
        assert!((density.cdf(&[("x1", f64::INFINITY)]).unwrap() - 1.0).abs() < 1e-11, "{case}");
        assert_eq!(density.cdf(&[("x1", f64::NEG_INFINITY)]).unwrap(), 0.0, "{case}");
    }
}

/// p(x, y) = p(x) p(y | x), and the conditional density has mass one on its slice.
#[test]
fn the_chain_rule() {
    let mut checked = 0;
    for case in planar_and_more() {
        let density = case.density(6);
        for (axis, fraction) in [(0, FRACTIONS[1]), (case.dimension() - 1, FRACTIONS[0])] {
            let (name, value) = (names(&case)[axis], at(&case, axis, fraction));
            let marginal = density.marginal_density(&[name], &[value]).unwrap()[0];
            let Ok(given) = density.given(&[(name, value)]) else {
                assert_eq!(marginal, 0.0, "{case}: {name} = {value}");
                continue;
            };
            let rule = slice(&case, &[(axis, value)]);
            let joint = density.log_prob(&rule.points);
            let (mut mass, mut worst) = (0.0, 0.0f64);
            for ((point, weight), joint) in rule.points.chunks(case.dimension()).zip(&rule.weights).zip(joint) {
                let rest: Vec<f64> = (0..point.len()).filter(|j| *j != axis).map(|j| point[j]).collect();
                let conditional = given.log_prob(&rest)[0];
                mass += weight * conditional.exp();
                let both = marginal * conditional.exp();
                worst = worst.max((both - joint.exp()).abs() / (1.0 + joint.exp()));
                checked += 1;
            }
            assert!((mass - 1.0).abs() < tolerance(&case), "{case}: {name} = {value}: {mass}");
            assert!(worst < tolerance(&case), "{case}: {name} = {value}: {worst}");
        }
    }
    assert!(checked > 1000, "{checked}");
}

#[test]
fn conditioning_twice_in_either_order() {
    for (k, case) in planar_and_more().into_iter().enumerate() {
        let density = case.density(7);
        let [both, only_first, only_second, _] = case.partition(300 + k as u64);
        let (first, second) = (both.clone() | only_first, both.clone() | only_second);
        if density.probability(&both).unwrap() < 1e-6 {
            continue;
        }
        let twice = |a: &Formula, b: &Formula| density.condition(a).unwrap().condition(b).unwrap();
        let all = [twice(&first, &second), twice(&second, &first), density.condition(&both).unwrap()];
        let points = case.inside(40);
        let logs = all.each_ref().map(|density| density.log_prob(&points));
        for ((a, b), c) in logs[0].iter().zip(&logs[1]).zip(&logs[2]) {
            assert!(a == b || (a - b).abs() < 1e-10 && (a - c).abs() < 1e-10, "{case}: {a} {b} {c}");
        }
        // A value after a condition, and a condition after a value.
        let x = at(&case, 0, FRACTIONS[1]);
        let before: Option<Density> = density.condition(&first).unwrap().given(&[("x1", x)]).ok();
        let fixed = first.substitute(&Substitution::new().real("x1", Linear::from(from_f64(x).unwrap())));
        let after = density.given(&[("x1", x)]).ok().and_then(|given| given.condition(&fixed).ok());
        assert_eq!(before.is_some(), after.is_some(), "{case}");
        if let (Some(before), Some(after)) = (before, after) {
            let rest: Vec<f64> = points.chunks(case.dimension()).flat_map(|p| p[1..].to_vec()).collect();
            for (a, b) in before.log_prob(&rest).iter().zip(after.log_prob(&rest)) {
                assert!(*a == b || (a - b).abs() < 1e-9, "{case}: {a} {b}");
            }
        }
    }
}

#[test]
fn the_marginal_of_a_conditioned_density() {
    for (k, case) in planar_and_more().into_iter().enumerate() {
        let condition = &case.partition(400 + k as u64)[0];
        let density = case.density(3);
        let probability = density.probability(condition).unwrap();
        if probability < 1e-6 {
            continue;
        }
        let marginal = density.condition(condition).unwrap().marginal("x2").unwrap();
        let x2 = Linear::from(case.constraint.reals[1].clone());
        for fraction in FRACTIONS {
            let y = at(&case, 1, fraction);
            let below = condition.clone() & x2.le(from_f64(y).unwrap());
            let want = case.cubature(&below, 0).mass(&density) / probability;
            let got = marginal.cdf(y);
            assert!((got - want).abs() < tolerance(&case) / probability, "{case}: {got} {want}");
        }
    }
}

#[test]
fn nothing_is_given_where_there_is_no_density() {
    let density = Case::new("boxes", spline(3, 1)).density(0);
    assert!(density.given(&[("x1", 1.5)]).is_err());
    assert!(density.given(&[("x1", f64::NAN)]).is_err() && density.given(&[("z", 0.5)]).is_err());
    assert!(density.given(&[("x1", 0.5), ("x2", 0.5)]).is_err());
    // Half of the second box lies above the first: there x1 is in the second only.
    assert_eq!(density.marginal_density(&["x1"], &[1.5, -1.0, f64::NAN, f64::INFINITY]).unwrap(), [0.0; 4]);
    let above = density.given(&[("x2", 2.0)]).unwrap().marginal("x1").unwrap();
    assert_eq!(above.support(), (2.0, 3.0));
    assert_eq!(above.quantile(0.0).unwrap(), pal::number::to_f64(&ratio(2, 1)));
}
