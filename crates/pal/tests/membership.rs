//! Membership is exact: it agrees with rational evaluation, on boundaries, one ulp beside them, and at the ends of the
//! range of float64.

mod common;

use common::{Dice, assignments, holds, random_case, ratio};
use pal::formula::{Constraint, Formula, Linear, Var, real, reals};
use pal::number::{Integer, Rational, from_f64, to_f64};

fn exact(point: &[f64]) -> Vec<Rational> {
    point.iter().map(|x| from_f64(*x).unwrap()).collect()
}

fn beside(x: f64) -> [f64; 3] {
    [x.next_down(), x, x.next_up()]
}

#[test]
fn random_formulas_at_random_and_at_lattice_points() {
    for seed in 0..400 {
        let constraint = random_case(200_000 + seed, 1 + seed as usize % 5, 12).constraint;
        let members = constraint.membership().unwrap();
        let mut dice = Dice::new(seed);
        for k in 0..40 {
            // Half of the points are on a lattice where atoms are often equalities.
            let point: Vec<f64> = (0..members.dimension())
                .map(|_| if k % 2 == 0 { dice.int(-6, 6) as f64 / 2.0 } else { 6.0 * dice.unit() - 3.0 })
                .collect();
            for truth in assignments(constraint.booleans.len()) {
                let want = holds(&constraint, &exact(&point), &truth);
                assert_eq!(members.contains_with(&point, &truth), want, "seed {seed} {point:?} {}", constraint.formula);
            }
        }
    }
}

/// Random lines through points that float64 represents exactly: there, and one ulp to either side, the filter cannot
/// decide.
#[test]
fn on_edges_and_vertices_and_one_ulp_beside_them() {
    let [x, y] = reals(["x", "y"]);
    let (mut fallbacks, mut tests) = (0, 0);
    for seed in 0..300 {
        let mut dice = Dice::new(300_000 + seed);
        let vertex = [dice.unit() * 10.0 - 5.0, dice.unit() * 10.0 - 5.0];
        let v = exact(&vertex);
        let line = |dice: &mut Dice| {
            let (a, b) = (ratio(dice.int(1, 97), dice.int(1, 9)), ratio(dice.int(-97, 97), dice.int(1, 9)));
            let offset = &a * &v[0] + &b * &v[1];
            x.scaled(&a) + y.scaled(&b) - offset
        };
        let (p, q) = (line(&mut dice), line(&mut dice));
        let corner = [p.le(0) & q.le(0), p.lt(0) | q.gt(0), p.equals(0) & q.equals(0), p.ge(0).iff(q.lt(0))];
        for formula in corner {
            let constraint = Constraint { formula, reals: vec![Var::new("x"), Var::new("y")], booleans: Vec::new() };
            let members = constraint.membership().unwrap();
            assert!(members.exact_evaluations(&vertex, &[]) > 0, "on the vertex float64 decides nothing");
            for px in beside(vertex[0]) {
                for py in beside(vertex[1]) {
                    let want = holds(&constraint, &exact(&[px, py]), &[]);
                    assert_eq!(members.contains(&[px, py]), want, "{px:e} {py:e} {}", constraint.formula);
                    fallbacks += members.exact_evaluations(&[px, py], &[]).min(1);
                    tests += 1;
                }
            }
        }
    }
    assert!(fallbacks * 10 >= tests * 9, "one ulp from the vertex only {fallbacks} of {tests} tests were in doubt");
}

/// Points along an edge that hardly any point with float64 coordinates lies on: the sign is right on both sides of it.
#[test]
fn along_an_edge_between_the_numbers_of_float64() {
    let [x, y] = reals(["x", "y"]);
    let formula = (x.scaled(&ratio(1, 3)) + y.scaled(&ratio(1, 7))).le(ratio(1, 10));
    let constraint = Constraint::new(formula);
    let members = constraint.membership().unwrap();
    let (mut inside, mut fallbacks) = (0, 0);
    for k in 0..2000 {
        let px = k as f64 / 777.0 - 1.0;
        let py = to_f64(&((ratio(1, 10) - from_f64(px).unwrap() * ratio(1, 3)) * ratio(7, 1)));
        for py in beside(py) {
            let want = holds(&constraint, &exact(&[px, py]), &[]);
            assert_eq!(members.contains(&[px, py]), want, "{px:e} {py:e}");
            inside += usize::from(want);
            fallbacks += members.exact_evaluations(&[px, py], &[]);
        }
        assert_eq!(members.exact_evaluations(&[px, py + 1.0], &[]), 0, "far from the edge float64 suffices");
    }
    assert!((2000..=4000).contains(&inside) && fallbacks > 5000, "{inside} inside, {fallbacks} exact evaluations");
}

/// Numbers at the ends of the range of float64, and some in between.
const EXTREME: [f64; 13] = [
    0.0,
    -0.0,
    5e-324,
    -5e-324,
    f64::MIN_POSITIVE,
    1e-300,
    1.0,
    -1.0,
    1.0 + f64::EPSILON,
    1e300,
    -1e300,
    f64::MAX,
    f64::MIN,
];

fn power_of_ten(exponent: usize) -> Rational {
    Rational::from(Integer::from(10).pow(exponent))
}

fn check_at_extremes(terms: &[Linear]) {
    let reals = vec![Var::new("x"), Var::new("y")];
    for term in terms {
        for formula in [term.le(0), term.lt(0), term.equals(0)] {
            let constraint = Constraint { formula, reals: reals.clone(), booleans: Vec::new() };
            let members = constraint.membership().unwrap();
            for px in EXTREME {
                for py in EXTREME {
                    let want = holds(&constraint, &exact(&[px, py]), &[]);
                    assert_eq!(members.contains(&[px, py]), want, "{px:e} {py:e}: {}", constraint.formula);
                }
            }
        }
    }
}

#[test]
fn huge_and_tiny_coefficients() {
    let [x, y] = reals(["x", "y"]);
    let mut terms = Vec::new();
    for exponent in [0, 100, 300, 308, 400] {
        let (huge, tiny) = (power_of_ten(exponent), Rational::ONE / power_of_ten(exponent));
        for factor in [&huge, &tiny] {
            terms.push(x.scaled(factor) - &y);
            terms.push(x.scaled(factor) + &y - factor.clone());
            terms.push(x.scaled(factor) - y.scaled(factor) + Rational::ONE);
            terms.push(&x + &y - factor.clone());
        }
        terms.push(x.scaled(&huge) - y.scaled(&tiny));
        terms.push(x.scaled(&huge) + y.scaled(&(&huge + Rational::ONE)));
    }
    check_at_extremes(&terms);
}

/// Coefficients further apart than the range of float64 is wide: the smaller one is lost when both are scaled into
/// range, but times a huge coordinate it decides the sign.
#[test]
fn coefficients_further_apart_than_the_range_of_float64() {
    let [x, y] = reals(["x", "y"]);
    let power = |k: usize| Rational::from(Integer::ONE << k);
    let mut terms = Vec::new();
    for (large, small) in [(3000, 925), (3000, 930), (2200, 100), (5000, 2900), (2100, 0)] {
        terms.push(x.scaled(&power(large)) + y.scaled(&power(small)));
        terms.push(x.scaled(&power(large)) + y.scaled(&(power(small) * ratio(3, 2))) + Rational::ONE);
    }
    check_at_extremes(&terms);
}

#[test]
fn not_a_number_and_infinities_are_never_members() {
    let [x, y] = reals(["x", "y"]);
    for formula in [x.le(0) | !x.le(0) | y.le(0), x.differs(0) & y.ge(0), !(x.le(&y))] {
        let members = Constraint::new(formula.clone()).membership().unwrap();
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for point in [[bad, 1.0], [1.0, bad], [bad, bad]] {
                assert!(!members.contains(&point) && !formula.contains(&point), "{formula} {point:?}");
                assert_eq!(members.contains_batch(&point), [false]);
                assert_eq!(members.exact_evaluations(&point, &[]), 0);
            }
        }
        assert!(!members.contains(&[1.0]) && !members.contains(&[1.0, 2.0, 3.0]), "wrong length");
    }
}

#[test]
fn a_batch_equals_one_by_one() {
    // Sizes around the block size and an incomplete last row.
    for (seed, rows) in [(1, 0), (2, 1), (3, 4095), (4, 4096), (5, 4097), (6, 10_000)] {
        let n = 1 + seed as usize % 4;
        let case =
            (0..).map(|k| random_case(400_000 + 100 * seed + k, n, 10)).find(|c| c.constraint.booleans.is_empty());
        let members = case.unwrap().constraint.membership().unwrap();
        let mut dice = Dice::new(seed);
        let mut points: Vec<f64> = (0..rows * n).map(|_| dice.int(-8, 8) as f64 / 4.0).collect();
        let single: Vec<bool> = points.chunks_exact(n).map(|point| members.contains(point)).collect();
        assert_eq!(members.contains_batch(&points), single, "{rows} rows");
        if n > 1 {
            points.push(0.0);
            assert_eq!(members.contains_batch(&points), single, "{rows} rows and a bit");
        }
    }
}

/// Large batches in up to three dimensions go through a grid over the bounds. Its bins end at multiples of the steps
/// below, where atoms of a random case have their hyperplanes too. Points are tried on these ends, one ulp beside them,
/// on the bounds and beyond them.
#[test]
fn a_large_batch_equals_one_by_one() {
    const ROWS: usize = 20_000;
    let (mut inside, mut all) = (0, 0);
    for seed in 0..36 {
        let n = 1 + seed as usize % 3;
        let steps = [4.0 / 2048.0, 4.0 / 96.0, 4.0 / 20.0][n - 1];
        let mut cases = (0..).map(|k| random_case(450_000 + 100 * seed + k, n, 10).constraint);
        let members = cases.find(|c| c.booleans.is_empty()).unwrap().membership().unwrap();
        let mut dice = Dice::new(seed);
        let mut coordinate = || -> f64 {
            let at = match dice.int(0, 3) {
                0 => 4.4 * dice.unit() - 2.2,
                1 => dice.int(-9, 9) as f64 / 4.0,
                2 => [-2.0, 2.0][dice.int(0, 1) as usize],
                _ => -2.0 + dice.int(-2, 2050) as f64 * steps,
            };
            beside(at)[dice.int(0, 2) as usize]
        };
        let mut points: Vec<f64> = (0..ROWS * n).map(|_| coordinate()).collect();
        for (k, extreme) in EXTREME.iter().chain(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]).enumerate() {
            points[7 * k] = *extreme;
        }
        let single: Vec<bool> = points.chunks_exact(n).map(|point| members.contains(point)).collect();
        let batch = members.contains_batch(&points);
        let differs = (0..ROWS).find(|k| batch[*k] != single[*k]);
        assert_eq!(differs.map(|k| &points[k * n..(k + 1) * n]), None, "seed {seed}");
        inside += single.iter().filter(|m| **m).count();
        all += ROWS;
    }
    assert!((all / 20..all).contains(&inside), "{inside} of {all} points are members");
}

#[test]
fn formulas_with_shared_parts_compile_to_the_same_truth() {
    // A chain of iffs and ites over the same few atoms: many paths, few nodes. Each ite that mentions the chain twice
    // doubles the decision program, hence only 14 of them.
    let x = real("x");
    let mut formula = x.le(0);
    for k in 0..140 {
        let atom = x.lt(ratio(k % 9, 2));
        formula = if k % 10 == 0 { formula.clone().ite(atom, !formula) } else { formula.iff(atom) };
    }
    let constraint = Constraint::new(formula & Formula::yes());
    let members = constraint.membership().unwrap();
    for k in -4..40 {
        let point = [k as f64 / 8.0];
        // The oracle is recursive and would take exponential time on the shared parts; fold visits each node once.
        let truth = fold_truth(&constraint.formula, &ratio(k, 8));
        assert_eq!(members.contains(&point), truth, "{point:?}");
    }
}

fn fold_truth(formula: &Formula, x: &Rational) -> bool {
    use pal::formula::{Connective, Node};
    formula.fold(|node, parts: &[bool]| match node.node() {
        Node::Connective(Connective::Not, _) => !parts[0],
        Node::Connective(Connective::And, _) => parts.iter().all(|p| *p),
        Node::Connective(Connective::Or, _) => parts.iter().any(|p| *p),
        Node::Connective(Connective::Iff, _) => parts[0] == parts[1],
        Node::Connective(Connective::Ite, _) => parts[if parts[0] { 1 } else { 2 }],
        _ => {
            let reals = vec![Var::new("x")];
            holds(&Constraint { formula: node.clone(), reals, booleans: Vec::new() }, std::slice::from_ref(x), &[])
        }
    })
}
