//! Laws of mixed densities: sums over all assignments, each integrated by an independent integrator, are the reference.

mod common;

use common::densities::cubature::Cubature;
use common::densities::{Case, histogram, spline, sum_of_squares};
use common::{Dice, assignments, random_formula, ratio, region, variables};
use pal::density::{Basis, Density, Family, Settings};
use pal::formula::{Category, Constraint, Formula, Substitution, Var, reals};
use pal::mixed::{MixedDensity, MixedFamily, MixedModel};
use pal::moments::Method;
use pal::number::to_f64;
use pal::polynomial::Polynomial;
use pal::query::{EntropyOptions, ModeOptions, ModeStop};
use pal::region::Region;
use pal::wmi::Problem;

fn boolean(name: &str) -> Formula {
    Formula::boolean(name)
}

fn substituted(constraint: &Constraint, values: &[bool]) -> Constraint {
    let pairs = constraint.booleans.iter().zip(values);
    let change =
        |change: Substitution, (var, value): (&Var, &bool)| change.boolean(var.name(), Formula::constant(*value));
    let formula = constraint.formula.substitute(&pairs.fold(Substitution::new(), change));
    Constraint { formula, booleans: Vec::new(), ..constraint.clone() }
}

/// Cubature rules for every assignment that has volume.
struct BruteForce {
    rules: Vec<(Vec<bool>, Cubature)>,
}

impl BruteForce {
    fn new(case: &Case, condition: &Formula, extra: usize) -> BruteForce {
        let formula = case.constraint.formula.clone() & condition.clone();
        let constraint = Constraint { formula, ..case.constraint.clone() };
        let (total, axis) = case.degree();
        let rule = |values: Vec<bool>| {
            let rule = Cubature::new(&substituted(&constraint, &values), &case.knots(), (total + extra, axis + extra));
            (values, rule)
        };
        BruteForce { rules: assignments(constraint.booleans.len()).map(rule).collect() }
    }

    /// The sum over assignments of the integrals of the density times a function.
    fn expectation(&self, density: &MixedDensity, f: impl Fn(&[f64]) -> f64) -> f64 {
        let mut sum = 0.0;
        for (values, rule) in &self.rules {
            let booleans: Vec<f64> = values.iter().map(|value| f64::from(u8::from(*value))).collect();
            for (point, weight) in rule.points.chunks(rule.dimension).zip(&rule.weights) {
                let point = [point, &booleans].concat();
                sum += weight * density.log_prob(&point).unwrap()[0].exp() * f(&point);
            }
        }
        sum
    }
}

/// A street: pedestrians keep to the sides, and where it is wet nobody goes beyond 3.
fn street() -> Constraint {
    let [x, y] = reals(["x", "y"]);
    let (car, wet) = (boolean("car"), boolean("wet"));
    let road = (&x - &y).between(-1, 1);
    Constraint::new(
        x.between(0, 4) & y.between(0, 2) & car.clone().iff(road) & (!wet.clone() | x.le(3)) & !(wet & !car & y.ge(1)),
    )
}

/// Three Booleans under a clause that depends on one real.
fn line() -> Constraint {
    let [x] = reals(["x"]);
    let (a, b, c) = (boolean("a"), boolean("b"), boolean("c"));
    Constraint::new(
        x.between(0, 3) & (a.clone() | x.le(1) | b.clone()) & (x.ge(2) | !c.clone() | !a) & (b | c | x.lt(2)),
    )
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, constraint) in [("street", street()), ("line", line())] {
        for settings in [spline(4, 3), histogram(3, 3), sum_of_squares(2, 3, Basis::Orthonormal)] {
            cases.push(Case::on(name, constraint.clone(), settings));
        }
    }
    cases
}

fn compiled(case: &Case) -> MixedFamily {
    MixedFamily::new(&case.region(), &case.settings).unwrap_or_else(|error| panic!("{case}: {error}"))
}

fn random(case: &Case, seed: u64) -> MixedDensity {
    let family = compiled(case);
    family.density(&family.random_params(1, seed)).unwrap()
}

#[test]
fn densities_integrate_to_one_and_probabilities_are_integrals() {
    let (a, x) = (boolean("a"), pal::formula::real("x"));
    for case in cases() {
        let density = random(&case, 3);
        let total = BruteForce::new(&case, &Formula::yes(), 0).expectation(&density, |_| 1.0);
        assert!((total - 1.0).abs() < 1e-9, "{case}: {total}");
        let first = if case.constraint.booleans.len() == 2 { boolean("car") } else { a.clone() };
        let second = if case.constraint.booleans.len() == 2 { boolean("wet") } else { boolean("b") };
        let event = (first.clone() | x.le(1)) & !second;
        let want = BruteForce::new(&case, &event, 0).expectation(&density, |_| 1.0);
        let got = density.probability(&event).unwrap();
        assert!((got - want).abs() < 1e-9 && got > 0.0 && got < 1.0, "{case}: {got} for {want}");
        // A partition adds up to one, and the family agrees with its density.
        let rest = density.probability(&!event.clone()).unwrap();
        assert!((got + rest - 1.0).abs() < 1e-12, "{case}");
        let family = compiled(&case);
        let batch = family.event(&event).unwrap().probability(&family.random_params(2, 3)).unwrap();
        assert!((batch[0] - got).abs() < 1e-10, "{case}");
        // Conditioning divides by the probability.
        let given = density.condition(&event).unwrap();
        let joint = density.probability(&(event.clone() & first.clone())).unwrap();
        assert!((given.probability(&first).unwrap() - joint / got).abs() < 1e-10, "{case}");
        assert!(density.condition(&(first.clone() & !first)).is_err());
    }
}

#[test]
fn gradients_are_differences() {
    for case in cases() {
        let family = compiled(&case);
        let params = family.random_params(2, 5);
        let samples = family.sample(&params, 2, 9).unwrap();
        let columns = family.support().columns();
        let points: Vec<f64> = [&samples[..columns], &samples[2 * columns..3 * columns]].concat();
        let gradient = family.log_prob_vjp(&params, &points, &[1.0, -0.5]).unwrap();
        let value = |params: &[f64]| {
            let logs = family.log_prob(params, &points).unwrap();
            logs[0] - 0.5 * logs[1]
        };
        let (log_prob, rows) = family.log_prob_rows(&params, &points).unwrap();
        let again = family.log_prob(&params, &points).unwrap();
        assert!(log_prob.iter().zip(&again).all(|(a, b)| (a - b).abs() < 1e-10), "{case}");
        let event = family.event(&(pal::formula::real("x").le(2) & !family_boolean(&case))).unwrap();
        let of_event = event.probability_vjp(&params, &[1.0, 2.0]).unwrap();
        let probability = |params: &[f64]| {
            let values = event.probability(params).unwrap();
            values[0] + 2.0 * values[1]
        };
        let per = family.num_params();
        for k in (0..params.len()).filter(|k| k % 3 == 0 || k % per >= family.base().num_params()) {
            let moved = |h: f64| {
                let mut params = params.clone();
                params[k] += h;
                params
            };
            let want = (value(&moved(1e-5)) - value(&moved(-1e-5))) / 2e-5;
            assert!((gradient[k] - want).abs() < 1e-6 * (1.0 + want.abs()), "{case}, {k}: {} {want}", gradient[k]);
            let factor = if k < per { 1.0 } else { -0.5 };
            assert!((rows[k] * factor - gradient[k]).abs() < 1e-10 * (1.0 + want.abs()), "{case}, {k}");
            let want = (probability(&moved(1e-5)) - probability(&moved(-1e-5))) / 2e-5;
            assert!((of_event[k] - want).abs() < 1e-6, "{case}, {k}: {} {want}", of_event[k]);
        }
    }
}

fn family_boolean(case: &Case) -> Formula {
    boolean(case.constraint.booleans[0].name())
}

#[test]
fn moments_tables_and_marginals_are_sums_over_assignments() {
    for case in cases() {
        let density = random(&case, 11);
        let brute = BruteForce::new(&case, &Formula::yes(), 2);
        let columns = density.support().columns();
        let (mean, covariance) = (density.mean(), density.covariance());
        for i in 0..columns {
            let want = brute.expectation(&density, |point| point[i]);
            assert!((mean[i] - want).abs() < 1e-9, "{case}: mean {i}");
            for j in 0..=i {
                let want = brute.expectation(&density, |point| (point[i] - mean[i]) * (point[j] - mean[j]));
                assert!((covariance[i * columns + j] - want).abs() < 1e-8, "{case}: covariance {i} {j}");
            }
        }
        let n = density.support().dimension();
        let names: Vec<&str> = density.support().booleans().iter().map(|var| var.name()).collect();
        let table = density.table(&[names[1], names[0]]).unwrap();
        assert!((table.probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        for (values, probability) in table.values.iter().zip(&table.probabilities) {
            let matches = |point: &[f64]| (point[n + 1] == 1.0) == values[0] && (point[n] == 1.0) == values[1];
            let want = brute.expectation(&density, |point| f64::from(u8::from(matches(point))));
            assert!((probability - want).abs() < 1e-9, "{case}: {values:?}");
        }
        let polynomial = "x^2 + 2*x".parse().unwrap();
        let condition = family_boolean(&case);
        let want = brute.expectation(&density, |point| (point[0] * point[0] + 2.0 * point[0]) * point[n]);
        assert!((density.expectation(&polynomial, &condition).unwrap() - want).abs() < 1e-8, "{case}");
        // The marginal of a real against probabilities of half-spaces.
        let marginal = density.marginal("x").unwrap();
        for at in [0.3, 1.0, 1.7, 2.5] {
            let exact = pal::number::from_f64(at).unwrap();
            let want = density.probability(&pal::formula::real("x").le(exact)).unwrap();
            assert!((marginal.cdf(at) - want).abs() < 1e-9, "{case}: at {at}");
        }
        assert!((marginal.total() - 1.0).abs() < 1e-9, "{case}: {}", marginal.total());
        assert!((marginal.mean() - mean[0]).abs() < 1e-9, "{case}");
        assert!(density.marginal(names[0]).is_err());
    }
}

#[test]
fn given_values_are_ratios_of_densities() {
    for case in cases() {
        let density = random(&case, 17);
        let name = case.constraint.booleans[0].name().to_string();
        let n = density.support().dimension();
        let samples = density.sample(8, 1).unwrap();
        let table = density.table(&[&name]).unwrap();
        for point in samples.chunks(density.support().columns()) {
            let value = point[n] == 1.0;
            let given = density.given(&[], &[(&name, value)]).unwrap();
            let rest = [&point[..n], &point[n + 1..]].concat();
            let want = density.log_prob(point).unwrap()[0] - table.probabilities[usize::from(value)].ln();
            assert!((given.log_prob(&rest).unwrap()[0] - want).abs() < 1e-8, "{case}");
            // What a classifier would say: the ratio of densities at the same reals.
            let at = density.table_at(&point[..n], &[&name]).unwrap();
            let total: f64 = assignments(case.constraint.booleans.len())
                .map(|b| b.iter().map(|b| f64::from(u8::from(*b))).collect::<Vec<f64>>())
                .map(|b| (density.log_prob(&[&point[..n], &b].concat()).unwrap()[0].exp(), b[0] == 1.0))
                .filter(|(_, first)| *first == value)
                .map(|(p, _)| p)
                .sum();
            let all: f64 = assignments(case.constraint.booleans.len())
                .map(|b| b.iter().map(|b| f64::from(u8::from(*b))).collect::<Vec<f64>>())
                .map(|b| density.log_prob(&[&point[..n], &b].concat()).unwrap()[0].exp())
                .sum();
            assert!((at.probabilities[usize::from(value)] - total / all).abs() < 1e-10, "{case}");
            if n == 2 {
                let slice = density.given(&[("y", point[1])], &[]).unwrap();
                let at_y = density.marginal_density(&["y"], &[point[1]]).unwrap()[0];
                let sliced = [&point[..1], &point[2..]].concat();
                let want = density.log_prob(point).unwrap()[0] - at_y.ln();
                assert!((slice.log_prob(&sliced).unwrap()[0] - want).abs() < 1e-8, "{case}");
            }
        }
        assert!(density.table_at(&vec![100.0; n], &[&name]).is_err());
        assert!(density.given(&[], &[("nobody", true)]).is_err());
    }
}

#[test]
fn samples_satisfy_the_constraint_and_follow_the_masses() {
    for case in cases() {
        let density = random(&case, 23);
        let (n, columns) = (density.support().dimension(), density.support().columns());
        let membership = case.constraint.membership().unwrap();
        let count = 20_000;
        let samples = density.sample(count, 5).unwrap();
        // Assignments times two halves of the axis.
        let k = columns - n;
        let mut counts = vec![0.0; 2 << k];
        for point in samples.chunks(columns) {
            let values: Vec<bool> = point[n..].iter().map(|b| *b == 1.0).collect();
            assert!(membership.contains_with(&point[..n], &values), "{case}");
            let bits = values.iter().fold(0, |bits, b| 2 * bits + usize::from(*b));
            counts[2 * bits + usize::from(point[0] > 1.5)] += 1.0;
        }
        let (mut chi_square, mut degrees) = (0.0, 0.0);
        for (at, values) in assignments(k).enumerate() {
            let literal = |(var, value): (&Var, &bool)| {
                let b = boolean(var.name());
                if *value { b } else { !b }
            };
            let all = Formula::all(case.constraint.booleans.iter().zip(&values).map(literal));
            let bits = values.iter().fold(0, |bits, b| 2 * bits + usize::from(*b));
            let x = pal::formula::real("x");
            for (half, side) in [x.le(ratio(3, 2)), x.gt(ratio(3, 2))].into_iter().enumerate() {
                let expected = count as f64 * density.probability(&(all.clone() & side)).unwrap();
                let seen = counts[2 * bits + half];
                if expected > 5.0 {
                    chi_square += (seen - expected).powi(2) / expected;
                    degrees += 1.0;
                } else {
                    assert!(seen < expected + 25.0, "{case}: {at}");
                }
            }
        }
        // Four standard deviations of the distribution above its mean.
        assert!(chi_square < degrees + 4.0 * f64::sqrt(2.0 * degrees), "{case}: {chi_square} for {degrees}");
        assert_eq!(samples, density.sample(count, 5).unwrap());
    }
}

#[test]
fn entropies_are_means_of_log_densities_and_modes_are_not_exceeded() {
    for case in cases() {
        let density = random(&case, 29);
        let entropy = density.entropy(&EntropyOptions { tolerance: 1e-5, ..Default::default() }).unwrap();
        let samples = density.sample(20_000, 3).unwrap();
        let logs = density.log_prob(&samples).unwrap();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        let deviation = (logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / logs.len() as f64).sqrt();
        let error = 5.0 * deviation / (logs.len() as f64).sqrt();
        assert!((entropy.value + mean).abs() < error + entropy.error, "{case}: {} {mean} {error}", entropy.value);
        let mode = density.mode(&ModeOptions { gap: 1e-4, ..Default::default() }).unwrap();
        assert_eq!(mode.stop, ModeStop::Certified, "{case}: {mode:?}");
        assert!((density.log_prob(&mode.point).unwrap()[0] - mode.log_density).abs() < 1e-9, "{case}");
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert!(mode.log_upper >= largest && mode.log_density >= largest - 1e-4, "{case}: {mode:?} {largest}");
    }
}

#[test]
fn a_boolean_with_one_value_is_a_substitution() {
    let [x, y] = reals(["x", "y"]);
    let triangle = x.ge(0) & y.ge(0) & (&x + &y).le(1);
    let fixed: Constraint = (triangle.clone() & boolean("a")).into();
    for settings in [spline(4, 2), histogram(3, 2), sum_of_squares(3, 2, Basis::Orthonormal)] {
        let plain = Family::new(&Region::new(&triangle.clone().into()).unwrap(), &settings).unwrap();
        let mixed = MixedFamily::new(&Region::new(&fixed).unwrap(), &settings).unwrap();
        assert_eq!(mixed.support().num_parts(), 1);
        let params = plain.random_params(1, 8);
        // The same logit for all components: components share the factor, which drops out.
        let logits = vec![0.7; mixed.num_components()];
        let want: Density = plain.density(&params).unwrap();
        let got = mixed.density(&[&params[..], &logits].concat()).unwrap();
        for point in [[0.2, 0.3], [0.5, 0.5], [0.7, 0.1]] {
            let (a, b) = (want.log_prob(&point)[0], got.log_prob(&[point[0], point[1], 1.0]).unwrap()[0]);
            assert!((a - b).abs() < 1e-10, "{settings:?}: {a} {b}");
            assert_eq!(got.log_prob(&[point[0], point[1], 0.0]).unwrap()[0], f64::NEG_INFINITY);
        }
    }
}

#[test]
fn the_order_of_booleans_changes_nothing() {
    let constraint = street();
    let turned = Constraint { booleans: constraint.booleans.iter().rev().cloned().collect(), ..constraint.clone() };
    let settings = spline(4, 2);
    let compile = |constraint: &Constraint| MixedFamily::new(&Region::new(constraint).unwrap(), &settings).unwrap();
    let (first, second) = (compile(&constraint), compile(&turned));
    let params = first.random_params(1, 31);
    let (reals, logits) = params.split_at(first.base().num_params());
    let swapped: Vec<f64> = logits.chunks(2).flat_map(|pair| [pair[1], pair[0]]).collect();
    let (a, b) = (first.density(&params).unwrap(), second.density(&[reals, &swapped].concat()).unwrap());
    for point in a.sample(50, 2).unwrap().chunks(4) {
        let other = [point[0], point[1], point[3], point[2]];
        assert!((a.log_prob(point).unwrap()[0] - b.log_prob(&other).unwrap()[0]).abs() < 1e-10);
    }
}

#[test]
fn normalisers_are_sums_over_assignments_on_random_constraints() {
    let mut compared = 0;
    for seed in 0..500u64 {
        let mut dice = Dice::new(seed);
        let (n, k) = (dice.int(1, 3) as usize, dice.int(1, 6) as usize);
        let (vars, x) = variables(n);
        let booleans: Vec<Var> = (0..k).map(|i| Var::new(&format!("b{i}"))).collect();
        let bounds = Formula::all(x.iter().map(|x| x.between(-2, 2)));
        let formula = bounds & random_formula(&mut dice, &x, 4, &booleans);
        let constraint = Constraint { formula, reals: vars.clone(), booleans: booleans.clone() };
        // One bin and constant components: an integral is a volume.
        let family = MixedFamily::new(&Region::new(&constraint).unwrap(), &histogram(1, 2));
        let Some(family) = family.ok().filter(|family| family.support().chart().is_none()) else {
            // No assignment has volume: at most equalities hold on all of them.
            for values in assignments(k) {
                let volume = region(&substituted(&constraint, &values).formula, &vars).exact_volume().unwrap();
                assert_eq!(volume, ratio(0, 1), "seed {seed}");
            }
            continue;
        };
        let params = family.random_params(1, seed);
        let logits = &params[family.base().num_params()..];
        let got = family.log_normaliser(&params).unwrap();
        let mut want = [0.0; 2];
        for values in assignments(k) {
            let volume = to_f64(&region(&substituted(&constraint, &values).formula, &vars).exact_volume().unwrap());
            for (m, want) in want.iter_mut().enumerate() {
                let sigmoid = |(z, value): (&f64, &bool)| 1.0 / (1.0 + if *value { (-z).exp() } else { z.exp() });
                *want += volume * logits[m * k..(m + 1) * k].iter().zip(&values).map(sigmoid).product::<f64>();
            }
        }
        // Components of one bin are constants, which the ratio of two normalisers does not show.
        let constant = family.base().log_normaliser(&params[..family.base().num_params()]).unwrap();
        let projection = family.support().base_volume();
        for m in 0..2 {
            let got = (got[m] - constant[m]).exp() * projection;
            assert!((got - want[m]).abs() < 1e-9 * want[m].max(1e-3), "seed {seed}: {got} {}", want[m]);
        }
        compared += 1;
    }
    assert!(compared > 300, "{compared}");
}

#[test]
fn bad_points_name_the_row_and_the_variable() {
    let density = random(&cases()[0], 1);
    let message = density.log_prob(&[1.0, 1.0, 0.5, 0.0]).unwrap_err().to_string();
    assert!(message.contains("row 0") && message.contains("`car`") && message.contains("0 or 1"), "{message}");
    let message = density.log_prob(&[1.0; 5]).unwrap_err().to_string();
    assert!(message.contains("x, y, car, wet"), "{message}");
    let plain = Family::new(&Region::new(&street()).unwrap(), &Settings::named("spline").unwrap()).unwrap_err();
    assert!(plain.to_string().contains("car, wet"), "{plain}");
}

#[test]
fn many_booleans_are_few_parts() {
    let [x, y] = reals(["x", "y"]);
    let b = |k: usize| boolean(&format!("b{k}"));
    let clauses = (0..10).map(|k| b(2 * k) | !b(2 * k + 1) | (&x + (k as i64 % 3) * &y).le(1 + k as i64 % 4));
    let constraint = Constraint::new(x.between(0, 4) & y.between(0, 4) & Formula::all(clauses));
    assert_eq!(constraint.booleans.len(), 20);
    let family = MixedFamily::new(&Region::new(&constraint).unwrap(), &Settings::named("spline").unwrap()).unwrap();
    assert!(family.support().num_parts() < 100, "{}", family.support().num_parts());
    let density = family.density(&family.random_params(1, 1)).unwrap();
    let samples = density.sample(200, 1).unwrap();
    assert!(density.log_prob(&samples).unwrap().iter().all(|log| log.is_finite()));
    let mean = density.mean();
    assert!(mean[2..].iter().all(|p| *p > 0.0 && *p < 1.0));
    assert!(density.entropy(&EntropyOptions::default()).unwrap_err().to_string().contains("samples"));
}

#[test]
fn a_category_has_one_value_and_one_of_two_is_a_boolean() {
    let [x] = reals(["x"]);
    let mode = Category::new("mode", &["walk", "bike", "car"]).unwrap();
    let limits = mode.is("walk").unwrap().implies(x.le(1)) & mode.is("bike").unwrap().implies(x.le(2));
    let region = Region::new(&(x.between(0, 3) & limits).into()).unwrap();
    let family = MixedFamily::new(&region, &histogram(3, 2)).unwrap();
    assert_eq!(family.support().assignments(10).unwrap().len(), 3);
    let density = family.density(&family.random_params(1, 2)).unwrap();
    for point in density.sample(300, 4).unwrap().chunks(4) {
        assert_eq!(point[1..].iter().sum::<f64>(), 1.0);
    }
    let total: f64 = ["walk", "bike", "car"].map(|v| density.probability(&mode.is(v).unwrap()).unwrap()).iter().sum();
    assert!((total - 1.0).abs() < 1e-12);

    // Renaming changes nothing.
    let other = Category::new("how", &["on foot", "on two wheels", "on four"]).unwrap();
    let limits = other.is("on foot").unwrap().implies(x.le(1)) & other.is("on two wheels").unwrap().implies(x.le(2));
    let renamed =
        MixedFamily::new(&Region::new(&(x.between(0, 3) & limits).into()).unwrap(), &histogram(3, 2)).unwrap();
    let again = renamed.density(&family.random_params(1, 2)).unwrap();
    assert_eq!(again.log_prob(&[0.5, 0.0, 1.0, 0.0]).unwrap(), density.log_prob(&[0.5, 0.0, 1.0, 0.0]).unwrap());

    // A category of two values is a Boolean whose logit is the difference of theirs.
    let two = Category::new("wet", &["no", "yes"]).unwrap();
    let compile = |phi: Formula| MixedFamily::new(&Region::new(&phi.into()).unwrap(), &spline(4, 2)).unwrap();
    let category = compile(x.between(0, 3) & two.is("yes").unwrap().implies(x.le(1)));
    let plain = compile(x.between(0, 3) & boolean("b").implies(x.le(1)));
    let params = plain.random_params(1, 6);
    let (reals, logits) = params.split_at(plain.base().num_params());
    let one_hot: Vec<f64> = logits.iter().flat_map(|z| [0.3 - z, 0.3]).collect();
    let (a, b) = (category.density(&[reals, &one_hot].concat()).unwrap(), plain.density(&params).unwrap());
    for (point, value) in [(0.5, 0.0), (0.5, 1.0), (2.5, 0.0), (2.5, 1.0)] {
        let (a, b) = (a.log_prob(&[point, 1.0 - value, value]).unwrap()[0], b.log_prob(&[point, value]).unwrap()[0]);
        assert!(a == b || (a - b).abs() < 1e-10, "{point} {value}: {a} {b}");
    }
    assert!(Category::new("a", &["x"]).is_err() && Category::new("a", &["x", "x"]).is_err());
    assert!(Category::new("a=b", &["x", "y"]).is_err());
}

#[test]
fn files_keep_families_and_parameters() {
    for case in cases() {
        let family = compiled(&case);
        let params = family.random_params(2, 41);
        let model = MixedModel::new(family.clone(), params.clone()).unwrap();
        let bytes = model.to_bytes().unwrap();
        let again = MixedModel::from_bytes(&bytes).unwrap();
        assert_eq!(again.params(), &params[..], "{case}");
        let points = family.sample(&params[..family.num_params()], 20, 1).unwrap();
        let one = &params[..family.num_params()];
        assert_eq!(again.family().log_prob(one, &points).unwrap(), family.log_prob(one, &points).unwrap(), "{case}");
        assert!(Family::from_bytes(&bytes).unwrap_err().to_string().contains("Boolean"), "{case}");
        assert!(MixedModel::from_bytes(&family.to_bytes().unwrap()).is_err(), "{case}");
        assert!(MixedFamily::from_bytes(&family.to_bytes().unwrap()).is_ok(), "{case}");
    }
}

/// The published problems of weighted model integration with at most four reals: with a constant weight their integral
/// is the normaliser of a constant density, times the number of assignments.
#[test]
fn normalisers_are_weighted_model_integrals_of_published_supports() {
    let Some(folder) = std::env::var_os("PAL_DATA") else {
        println!("skipped: PAL_DATA is not set");
        return;
    };
    let text = std::fs::read_to_string(std::path::Path::new(&folder).join("wmi/cases.jsonl")).unwrap();
    let (mut compared, mut mixed) = (0, 0);
    for line in text.lines() {
        let problem = Problem::parse(line).unwrap();
        let support = problem.support.clone();
        if support.reals.is_empty() || support.reals.len() > 4 {
            continue;
        }
        let constant = Problem::new(support.clone(), &Polynomial::one().into(), Vec::new());
        let Ok(solution) = constant.solve(Method::Recurrence) else { continue };
        let family = MixedFamily::new(&Region::new(&support).unwrap(), &histogram(1, 1));
        let Some(family) = family.ok().filter(|family| family.support().chart().is_none()) else {
            assert_eq!(solution.total.value, 0.0, "{}", problem.name);
            continue;
        };
        let log = family.log_normaliser(&vec![0.0; family.num_params()]).unwrap()[0];
        let got = (log + support.booleans.len() as f64 * 2f64.ln()).exp();
        let want = solution.total.value;
        assert!((got - want).abs() <= 1e-9 * want, "{}: {got} instead of {want}", problem.name);
        compared += 1;
        mixed += usize::from(!support.booleans.is_empty());
    }
    println!("{compared} problems, {mixed} of them with Boolean variables");
    assert!(compared >= 200 && mixed >= 30, "{compared} {mixed}");
}
