//! Random problems on which all ways to an answer have to agree: `make differential SECONDS=600`.
//!
//! Constraints have one to six reals and up to three Booleans. Their hyperplanes meet in common points, coincide, or miss that
//! by a hair, and coordinates are stretched by factors from 1e-300 to 1e300. A problem that fails is made smaller for as long
//! as it still fails, and written to the folder that `PAL_DIFFERENTIAL` names.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use common::{BoundingShape, Dice, bounding_formula, random_formula, random_terms, variables};
use pal::density::{Family, HistogramSettings, Knots};
use pal::formula::{Connective, Constraint, Formula, Linear, Node, Var, parse_smtlib, write_smtlib};
use pal::moments::{Integral, Method, integrate};
use pal::number::{Rational, from_f64, to_f64};
use pal::polynomial::Polynomial;
use pal::region::{Enumeration, Region};
use pal::wmi::{Piecewise, Problem};

/// A random constraint and a polynomial, both also in coordinates that are not stretched.
struct RandomProblem {
    seed: u64,
    constraint: Constraint,
    polynomial: Polynomial,
    plain: (Constraint, Polynomial),
    /// The volume of the image of a unit cube.
    stretch: Rational,
}

fn power_of_ten(exponent: i64) -> Rational {
    let ten = Rational::from(10);
    let power = (0..exponent.abs()).fold(Rational::ONE, |product, _| product * &ten);
    if exponent < 0 { Rational::ONE / power } else { power }
}

impl RandomProblem {
    fn new(seed: u64) -> RandomProblem {
        let mut dice = Dice::new(seed);
        let n = [1, 2, 2, 2, 3, 3, 3, 4, 5, 6][dice.int(0, 9) as usize];
        let (reals, x) = variables(n);
        let exponent = |dice: &mut Dice| match dice.int(0, 5) {
            0 => dice.int(-300, 300),
            1 => dice.int(-20, 20),
            _ => 0,
        };
        let scales: Vec<Rational> = (0..n).map(|_| power_of_ten(exponent(&mut dice))).collect();
        let stretch = scales.iter().fold(Rational::ONE, |product, scale| product * scale);
        let stretched: Vec<Linear> =
            x.iter().zip(&scales).map(|(x, scale)| x.scaled(&(Rational::ONE / scale))).collect();
        let count = if dice.chance(30) { dice.int(1, 3) } else { 0 };
        let booleans: Vec<Var> = (1..=count).map(|k| Var::new(&format!("b{k}"))).collect();
        let most = [8, 8, 8, 7, 6, 5, 4][n];
        let next = dice.next();
        // The same dice make the same formula over other terms.
        let formula = |x: &[Linear]| {
            let mut dice = Dice::new(next);
            let shape = if n <= 3 && dice.chance(20) { BoundingShape::CrossPolytope } else { BoundingShape::Cube };
            let mut formula = bounding_formula(shape, x) & random_formula(&mut dice, x, most, &booleans);
            if dice.chance(25) {
                // Two hyperplanes that miss each other by a hair.
                let term = &random_terms(&mut dice, x, 1)[0];
                let hair = power_of_ten(-dice.int(9, 40));
                formula = formula & (term.le(0) | term.ge(hair));
            }
            formula
        };
        let mut dice = Dice::new(next ^ 1);
        let factors: Vec<Vec<i64>> = (0..dice.int(0, 3)).map(|_| (0..=n).map(|_| dice.int(-3, 3)).collect()).collect();
        let polynomial = |scales: &[Rational]| {
            let factor = |factor: &Vec<i64>| {
                let terms = (0..n).map(|j| format!("({}) * x{}", Rational::from(factor[j]) / &scales[j], j + 1));
                format!("({} + {})", factor[n], terms.collect::<Vec<_>>().join(" + "))
            };
            let text = factors.iter().map(factor).collect::<Vec<_>>().join(" * ");
            let one = if text.is_empty() { "1".to_string() } else { text };
            Polynomial::parse(&one).unwrap()
        };
        let constraint =
            |x: &[Linear]| Constraint { formula: formula(x), reals: reals.clone(), booleans: booleans.clone() };
        RandomProblem {
            seed,
            constraint: constraint(&stretched),
            polynomial: polynomial(&scales),
            plain: (constraint(&x), polynomial(&vec![Rational::ONE; n])),
            stretch,
        }
    }
}

fn region(constraint: &Constraint) -> Region {
    Region::new(constraint).unwrap()
}

fn exact(constraint: &Constraint, polynomial: &Polynomial) -> Rational {
    integrate(&region(constraint), polynomial, Method::Exact).unwrap().exact.unwrap()
}

/// The difference of an answer from the truth is within its bound.
fn assert_bound(what: &str, answer: &Integral, truth: &Rational) {
    if answer.value.is_infinite() {
        assert!(answer.error.is_infinite(), "{what}: {answer:?} for {truth}");
        return;
    }
    let off = from_f64(answer.value).unwrap() - truth;
    let off = if off < Rational::ZERO { -off } else { off };
    let within = answer.error.is_infinite() || off <= from_f64(answer.error).unwrap();
    assert!(within, "{what}: {} differs from {} by more than {}", answer.value, to_f64(truth), answer.error);
}

/// A law that an answer breaks makes it panic.
type Law = fn(&Constraint, &Polynomial);

const LAWS: [(&str, Law); 8] = [
    ("partial and total enumeration", |constraint, _| {
        let total = region(constraint).with_enumeration(Enumeration::Total).exact_volume().unwrap();
        assert_eq!(region(constraint).exact_volume().unwrap(), total);
    }),
    ("volumes and integrals of 1", |constraint, _| {
        let one = Polynomial::parse("1").unwrap();
        assert_eq!(exact(constraint, &one), region(constraint).exact_volume().unwrap());
    }),
    ("bounds of the recurrence", |constraint, polynomial| {
        let answer = integrate(&region(constraint), polynomial, Method::Recurrence).unwrap();
        assert_bound("recurrence", &answer, &exact(constraint, polynomial));
    }),
    ("bounds of GASP!", |constraint, polynomial| {
        if let Ok(answer) = integrate(&region(constraint), polynomial, Method::Gasp) {
            assert_bound("GASP!", &answer, &exact(constraint, polynomial));
        }
    }),
    ("weighted model integration", |constraint, polynomial| {
        let problem = Problem::new(constraint.clone(), &polynomial.clone().into(), Vec::new());
        let truth = exact(constraint, polynomial);
        assert_eq!(problem.solve(Method::Exact).unwrap().total.exact.unwrap(), truth);
        assert_bound("wmi", &problem.solve(Method::Recurrence).unwrap().total, &truth);
    }),
    ("the order of variables", |constraint, polynomial| {
        let mut other = constraint.clone();
        other.reals.reverse();
        assert_eq!(exact(&other, polynomial), exact(constraint, polynomial));
    }),
    ("writing and reading", |constraint, polynomial| {
        let again = parse_smtlib(&write_smtlib(constraint).unwrap()).unwrap();
        assert_eq!(exact(&again, polynomial), exact(constraint, polynomial));
        assert_eq!(Polynomial::parse(&polynomial.to_string()).unwrap(), *polynomial);
    }),
    ("rejection, 6 standard errors", |constraint, polynomial| {
        let sampled = integrate(&region(constraint), polynomial, Method::Rejection { samples: 4000, seed: 1 });
        // The error is a standard error here; rare hits make it worthless.
        let Ok(sampled) = sampled else { return };
        let truth = to_f64(&exact(constraint, polynomial));
        if sampled.value.is_normal() && truth.is_normal() && sampled.error < 0.1 * sampled.value.abs() {
            let off = (sampled.value - truth).abs();
            // Where all points hit, the standard error is 0 although a small part of the box may be missing.
            let slack = if sampled.error == 0.0 { 20.0 / 4000.0 } else { 1e-12 } * truth.abs();
            assert!(
                off <= 6.0 * sampled.error + slack,
                "{} instead of {truth}, standard error {}",
                sampled.value,
                sampled.error
            );
        }
    }),
];

/// The normaliser of a uniform density, and its probabilities.
fn check_density(constraint: &Constraint) {
    let volume = region(constraint).exact_volume().unwrap();
    let (n, total) = (constraint.reals.len(), to_f64(&volume));
    if n > 3 || !constraint.booleans.is_empty() || !(total.is_normal() && total > 0.0) {
        return;
    }
    let settings = HistogramSettings { knots: Knots::Uniform(4), components: 1 };
    // Boxes that are too narrow for float64 are refused.
    let Ok(family) = Family::new(&region(constraint), &settings.into()) else { return };
    let Ok(density) = family.density(&vec![0.0; family.num_params()]) else { return };
    let half = Linear::from(constraint.reals[0].clone()).le(0);
    let part = region(&Constraint { formula: constraint.formula.clone() & half.clone(), ..constraint.clone() });
    let share = to_f64(&(part.exact_volume().unwrap() / &volume));
    let probability = density.probability(&half).unwrap();
    assert!((probability - share).abs() <= 1e-9, "probability {probability} instead of {share}");
    for point in density.sample(50, 1).unwrap().chunks(n) {
        let exact: Vec<Rational> = point.iter().map(|y| from_f64(*y).unwrap()).collect();
        assert!(common::holds(constraint, &exact, &[]), "the sample {point:?} is outside");
    }
}

/// The laws that a constraint breaks, with what they say.
fn broken(constraint: &Constraint, polynomial: &Polynomial) -> Option<(&'static str, String)> {
    let density: (&str, Law) = ("densities", |constraint, _| check_density(constraint));
    LAWS.iter().chain([&density]).find_map(|(name, law)| {
        let caught = catch_unwind(AssertUnwindSafe(|| law(constraint, polynomial))).err()?;
        let said = caught.downcast_ref::<String>().cloned();
        let said = said.or_else(|| caught.downcast_ref::<&str>().map(|text| text.to_string()));
        Some((*name, said.unwrap_or_default()))
    })
}

/// Formulas with one part less, or with a part in place of the whole.
fn smaller(formula: &Formula) -> Vec<Formula> {
    let Node::Connective(connective, parts) = formula.node() else { return Vec::new() };
    let mut found = parts.to_vec();
    for at in 0..parts.len() {
        let others = || parts.iter().enumerate().filter(move |(k, _)| *k != at).map(|(_, part)| part.clone());
        let inner = smaller(&parts[at]).into_iter().map(|part| {
            let all = parts.iter().enumerate().map(|(k, old)| if k == at { part.clone() } else { old.clone() });
            let all: Vec<Formula> = all.collect();
            match (connective, &all[..]) {
                (Connective::And, _) => Formula::all(all),
                (Connective::Or, _) => Formula::any(all),
                (Connective::Not, [part]) => !part.clone(),
                (Connective::Iff, [a, b]) => a.clone().iff(b.clone()),
                (Connective::Ite, [a, b, c]) => a.clone().ite(b.clone(), c.clone()),
                _ => formula.clone(),
            }
        });
        found.extend(inner);
        match connective {
            Connective::And => found.push(Formula::all(others())),
            Connective::Or => found.push(Formula::any(others())),
            _ => {}
        }
    }
    found
}

/// The smallest constraint found that still breaks the same law.
fn minimised(mut constraint: Constraint, polynomial: &Polynomial, law: &str) -> Constraint {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let length = constraint.formula.to_string().len();
        let next = smaller(&constraint.formula).into_iter().find_map(|formula| {
            let smaller = Constraint { formula, ..constraint.clone() };
            let fails = || {
                broken(&smaller, polynomial).is_some_and(|(name, said)| {
                    name == law && !said.contains("unbounded") && !said.contains("Unbounded")
                })
            };
            (Instant::now() < until && smaller.formula.to_string().len() < length && fails()).then_some(smaller)
        });
        match next {
            Some(smaller) => constraint = smaller,
            None => return constraint,
        }
    }
}

/// Checks one problem; says what is wrong with it.
fn check(seed: u64) -> Result<(), String> {
    let problem = RandomProblem::new(seed);
    let (plain, polynomial) = &problem.plain;
    if let Some((law, said)) = broken(&problem.constraint, &problem.polynomial) {
        let least = minimised(problem.constraint.clone(), &problem.polynomial, law);
        let script = write_smtlib(&least).unwrap_or_default();
        return Err(format!("; seed {}: {law}: {said}\n; polynomial {}\n{script}", problem.seed, problem.polynomial));
    }
    let stretched = catch_unwind(AssertUnwindSafe(|| {
        let over_plain = exact(plain, polynomial);
        (exact(&problem.constraint, &problem.polynomial), over_plain * &problem.stretch)
    }));
    match stretched {
        Ok((found, wanted)) if found == wanted => Ok(()),
        _ => Err(format!("; seed {seed}: stretching\n{}", write_smtlib(&problem.constraint).unwrap_or_default())),
    }
}

/// A problem of weighted model integration that falls apart: formulas and factors of the weight concern neighbouring
/// variables. Its value has to be the sum over all cases of the weight of integrals over cells.
fn check_chain(seed: u64) -> Result<(), String> {
    let mut dice = Dice::new(seed ^ 0xc4a1);
    let n = dice.int(2, 5) as usize;
    let (reals, x) = variables(n);
    let booleans: Vec<Var> = (1..=dice.int(0, 3)).map(|k| Var::new(&format!("b{k}"))).collect();
    let mut formula = bounding_formula(BoundingShape::Cube, &x);
    let mut cases: Vec<(Formula, Polynomial)> = vec![(Formula::yes(), Polynomial::one())];
    let mut weight = Piecewise::from(Polynomial::one());
    for at in 0..n {
        // Some neighbours have nothing to do with each other, and a loop is no tree any more.
        let next = if at + 1 < n { at + 1 } else { 0 };
        let own: Vec<Var> = booleans.iter().filter(|_| dice.chance(30)).cloned().collect();
        if dice.chance(if next == 0 { 10 } else { 70 }) {
            formula = formula & random_formula(&mut dice, &[x[at].clone(), x[next].clone()], 2, &own);
        }
        if dice.chance(10) {
            formula = formula & x[at].between(1, dice.int(1, 2));
        }
        let linear = |dice: &mut Dice| {
            let text = format!("({}) * x{} + ({})", dice.int(-3, 3), at + 1, dice.int(-3, 3));
            Polynomial::parse(&text).unwrap()
        };
        let (yes, no) = (linear(&mut dice), linear(&mut dice));
        let condition = match own.first() {
            Some(b) if dice.chance(50) => Formula::boolean(b.name()),
            _ => random_terms(&mut dice, &[x[at].clone(), x[next.max(at)].clone()], 1)[0].le(0),
        };
        let factor = Piecewise::ite(condition.clone(), &yes.clone().into(), &no.clone().into()).unwrap();
        weight = weight.times(&factor).unwrap();
        let multiplied = cases.iter().flat_map(|(when, product)| {
            let yes = (when.clone() & condition.clone(), product.mul(&yes).unwrap());
            [yes, (when.clone() & !condition.clone(), product.mul(&no).unwrap())]
        });
        cases = multiplied.collect();
    }
    let constraint = Constraint { formula, reals, booleans };
    let answers = catch_unwind(AssertUnwindSafe(|| {
        let problem = Problem::new(constraint.clone(), &weight, Vec::new());
        let truth = cases.iter().fold(Rational::ZERO, |sum, (when, polynomial)| {
            let formula = constraint.formula.clone() & when.clone();
            sum + exact(&Constraint { formula, ..constraint.clone() }, polynomial)
        });
        let found = problem.solve(Method::Exact).unwrap().total.exact.unwrap();
        assert_eq!(found, truth);
        assert_bound("wmi", &problem.solve(Method::Recurrence).unwrap().total, &truth);
    }));
    let script = || write_smtlib(&constraint).unwrap_or_default();
    answers.map_err(|_| format!("; seed {seed}: a problem that falls apart\n{}", script()))
}

/// A few of the problems are checked by `make test`.
#[test]
fn a_few_random_problems_obey_all_laws() {
    let failed: Vec<String> = (0..60).filter_map(|seed| check(seed).and_then(|()| check_chain(seed)).err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
#[ignore = "make differential"]
fn random_problems_obey_all_laws() {
    let seconds = std::env::var("SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60);
    let first = std::env::var("SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let folder = std::env::var_os("PAL_DIFFERENTIAL").map(PathBuf::from);
    let until = Instant::now() + Duration::from_secs(seconds);
    let (mut seed, mut failed) = (first, 0);
    while Instant::now() < until {
        if let Err(finding) = check(seed).and_then(|()| check_chain(seed)) {
            failed += 1;
            println!("{finding}");
            if let Some(folder) = &folder {
                std::fs::create_dir_all(folder).unwrap();
                std::fs::write(folder.join(format!("{seed}.smt2")), finding).unwrap();
            }
        }
        seed += 1;
    }
    println!("{} random problems, {failed} findings", seed - first);
    assert_eq!(failed, 0);
}
