//! Laws of mixed densities that need no reference: partitions, permutations, and batches against single densities.

mod common;

use common::densities::{histogram, spline, sum_of_squares};
use common::{Dice, assignments, random_formula, ratio, variables};
use pal::density::{Basis, RowInput, Settings};
use pal::formula::{Constraint, Formula, Var, reals};
use pal::mixed::MixedFamily;
use pal::polynomial::Polynomial;
use pal::region::Region;

fn boolean(name: &str) -> Formula {
    Formula::boolean(name)
}

/// Goods that are shipped by road or not, with limits of weight and volume.
fn goods() -> Constraint {
    let [x, y] = reals(["x", "y"]);
    let (road, cold, large) = (boolean("road"), boolean("cold"), boolean("large"));
    Constraint::new(
        x.between(0, 3)
            & y.between(0, 2)
            & road.clone().implies((&x + &y).le(3))
            & cold.clone().implies((&x - 2 * &y).le(ratio(1, 2)))
            & (large.clone() | !cold | y.le(1))
            & large.implies(!road | x.ge(1)),
    )
}

fn kinds() -> [Settings; 3] {
    [spline(4, 3), histogram(3, 3), sum_of_squares(2, 2, Basis::Orthonormal)]
}

fn compile(constraint: &Constraint, settings: &Settings) -> MixedFamily {
    MixedFamily::new(&Region::new(constraint).unwrap(), settings).unwrap()
}

/// The formula that Boolean variables have given values.
fn literals(booleans: &[Var], values: &[bool]) -> Formula {
    let literal = |(var, value): (&Var, &bool)| if *value { boolean(var.name()) } else { !boolean(var.name()) };
    Formula::all(booleans.iter().zip(values).map(literal))
}

#[test]
fn probabilities_of_a_partition_add_up_to_one() {
    let [x, y] = reals(["x", "y"]);
    let walls = [x.le(ratio(4, 3)), (&x + &y).le(2), (&x - &y).le(ratio(1, 7))];
    for settings in kinds() {
        let constraint = goods();
        let family = compile(&constraint, &settings);
        let density = family.density(&family.random_params(1, 4)).unwrap();
        let (mut total, mut positive) = (0.0, 0);
        for values in assignments(constraint.booleans.len()) {
            for sides in assignments(walls.len()) {
                let side = |(wall, side): (&Formula, &bool)| if *side { wall.clone() } else { !wall.clone() };
                let cell = Formula::all(walls.iter().zip(&sides).map(side));
                let p = density.probability(&(cell & literals(&constraint.booleans, &values))).unwrap();
                total += p;
                positive += usize::from(p > 1e-6);
            }
        }
        assert!((total - 1.0).abs() < 1e-12 && positive > 20, "{settings:?}: {total}, {positive}");
    }
}

#[test]
fn the_order_of_reals_changes_nothing() {
    let constraint = goods();
    let turned = Constraint { reals: constraint.reals.iter().rev().cloned().collect(), ..constraint.clone() };
    for settings in [spline(4, 2), histogram(3, 2)] {
        let (first, second) = (compile(&constraint, &settings), compile(&turned, &settings));
        let params = first.random_params(1, 3);
        let (reals, logits) = params.split_at(first.base().num_params());
        // What is added to parameters tells components apart along every axis, and is not the same for all axes.
        let theta: Vec<f64> = reals.iter().zip(first.base().offset()).map(|(x, offset)| x + offset).collect();
        let per = theta.len() / 2;
        let turn = |part: &[f64]| {
            let (x, y) = part[1..].split_at((per - 1) / 2);
            [&part[..1], y, x].concat()
        };
        let swapped: Vec<f64> = theta.chunks(per).flat_map(turn).collect();
        let swapped = second.base().params_of(&swapped);
        let (a, b) = (first.density(&params).unwrap(), second.density(&[&swapped, logits].concat()).unwrap());
        for point in a.sample(40, 2).unwrap().chunks(5) {
            let other = [point[1], point[0], point[2], point[3], point[4]];
            let (a, b) = (a.log_prob(point).unwrap()[0], b.log_prob(&other).unwrap()[0]);
            assert!((a - b).abs() < 1e-10, "{settings:?}: {a} {b}");
        }
        let (a, b) = (a.mean(), b.mean());
        assert!([(0, 1), (1, 0), (2, 2), (3, 3), (4, 4)].iter().all(|(i, j)| (a[*i] - b[*j]).abs() < 1e-10));
    }
}

/// A condition on Boolean variables keeps the meshes; with a wall far away it is cut like any other.
#[test]
fn conditions_on_booleans_alone_are_conditions() {
    let x = pal::formula::real("x");
    let event = boolean("road") | (boolean("cold") & !boolean("large"));
    for settings in kinds() {
        let family = compile(&goods(), &settings);
        let params = family.random_params(3, 6);
        let (quick, cut) = (family.event(&event).unwrap(), family.event(&(event.clone() & x.le(100))).unwrap());
        let (p, q) = (quick.probability(&params).unwrap(), cut.probability(&params).unwrap());
        assert!(p.iter().zip(&q).all(|(p, q)| (p - q).abs() < 1e-12 && *p > 0.01), "{settings:?}: {p:?} {q:?}");
        let g = [1.0, -2.0, 0.5];
        let (a, b) = (quick.probability_vjp(&params, &g).unwrap(), cut.probability_vjp(&params, &g).unwrap());
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-11), "{settings:?}");
        let (first, second) = (&quick.condition(&params).unwrap()[0], &cut.condition(&params).unwrap()[0]);
        assert!(first.mean().iter().zip(second.mean()).all(|(a, b)| (a - b).abs() < 1e-11), "{settings:?}");
        for point in first.sample(50, 1).unwrap().chunks(5) {
            let (a, b) = (first.log_prob(point).unwrap()[0], second.log_prob(point).unwrap()[0]);
            assert!(a.is_finite() && (a - b).abs() < 1e-11, "{settings:?}: {a} {b}");
        }
        let outside = [0.5, 0.5, 0.0, 0.0, 0.0];
        assert_eq!(first.log_prob(&outside).unwrap(), [f64::NEG_INFINITY]);
        assert_eq!(quick.support().contains(&[outside, [0.5, 0.5, 1.0, 0.0, 0.0]].concat()).unwrap(), [false, true]);
        assert_eq!(quick.support().contains(&[0.5, 0.5, 1.0, 0.5, 0.0]).unwrap(), [false], "half a truth");
    }
}

#[test]
fn expectations_of_batches_are_those_of_densities_and_have_derivatives() {
    let x = pal::formula::real("x");
    let polynomial = |text: &str| Polynomial::parse(text).unwrap();
    let wanted = [
        (polynomial("x"), Formula::yes()),
        (polynomial("x * y"), boolean("road")),
        (Polynomial::one(), boolean("cold") & !boolean("large")),
        (polynomial("y^2 + x"), x.le(2) & boolean("cold")),
    ];
    for settings in kinds() {
        let family = compile(&goods(), &settings);
        let params = family.random_params(2, 12);
        let compiled = family.expectation(&wanted).unwrap();
        let values = compiled.values(&params).unwrap();
        for (row, density) in family.densities(&params).unwrap().iter().enumerate() {
            for (k, (polynomial, condition)) in wanted.iter().enumerate() {
                let want = density.expectation(polynomial, condition).unwrap();
                let got = values[row * wanted.len() + k];
                assert!((got - want).abs() < 1e-11, "{settings:?} {row} {k}: {got} for {want}");
            }
        }
        let g: Vec<f64> = (0..values.len()).map(|k| 1.0 - 0.3 * k as f64).collect();
        let gradient = compiled.values_vjp(&params, &g).unwrap();
        let value = |params: &[f64]| -> f64 {
            compiled.values(params).unwrap().iter().zip(&g).map(|(value, g)| value * g).sum()
        };
        for at in (0..params.len()).step_by(7).chain(params.len() - 6..params.len()) {
            let step = |h: f64| {
                let mut moved = params.clone();
                moved[at] += h;
                value(&moved)
            };
            let want = (step(1e-5) - step(-1e-5)) / 2e-5;
            assert!((gradient[at] - want).abs() < 1e-7, "{settings:?} {at}: {} for {want}", gradient[at]);
        }
    }
}

#[test]
fn the_fused_pass_is_the_sum_over_parts_on_random_constraints() {
    let mut compared = 0;
    for seed in 0..150u64 {
        let mut dice = Dice::new(seed);
        let (n, k) = (dice.int(1, 3) as usize, dice.int(1, 6) as usize);
        let (vars, x) = variables(n);
        let booleans: Vec<Var> = (0..k).map(|i| Var::new(&format!("b{i}"))).collect();
        let bounds = Formula::all(x.iter().map(|x| x.between(-2, 2)));
        let formula = bounds & random_formula(&mut dice, &x, 4, &booleans);
        let constraint = Constraint { formula, reals: vars, booleans };
        let settings = if seed % 2 == 0 { spline(if n == 3 { 2 } else { 4 }, 2) } else { histogram(3, 2) };
        let Ok(family) = MixedFamily::new(&Region::new(&constraint).unwrap(), &settings) else { continue };
        let params = family.random_params(3, seed);
        let Ok(points) = family.sample(&params, 1, seed) else { continue };
        let rows = family.row_log_prob(RowInput::Parameters, &params, &points, true).unwrap().unwrap();
        let want = family.log_prob(&params, &points).unwrap();
        let gradient = family.log_prob_vjp(&params, &points, &[1.0; 3]).unwrap();
        assert!(want.iter().all(|x| x.is_finite()), "seed {seed}");
        for (got, want) in rows.log_prob.iter().zip(&want) {
            assert!((got - want).abs() < 1e-11 * (1.0 + want.abs()), "seed {seed}: {got} for {want}");
        }
        let size = gradient.iter().fold(1.0, |size: f64, x| size.max(x.abs()));
        for (got, want) in rows.gradient.unwrap().iter().zip(&gradient) {
            assert!((got - want).abs() < 1e-9 * size, "seed {seed}: {got} for {want}");
        }
        compared += 1;
    }
    assert!(compared > 90, "{compared}");
}
