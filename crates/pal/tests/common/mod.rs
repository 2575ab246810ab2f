//! Seeded random formulas and slow exact oracles for the integration tests. The oracles use nothing of the library but
//! [`Formula::node`].
#![allow(dead_code)] // each test binary uses only some of these functions

pub mod algebra;
pub mod densities;

use std::collections::BTreeMap;

use pal::formula::{Connective, Constraint, Formula, Linear, Node, Relation, Var};
use pal::number::Rational;
use pal::region::{Region, Unbounded};

pub fn ratio(p: i64, q: i64) -> Rational {
    Rational::from_parts_signed(p.into(), q.into())
}

/// SplitMix64: the same numbers on every machine and with every version of every dependency.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A random integer in `low..=high`.
    pub fn int(&mut self, low: i64, high: i64) -> i64 {
        low + (self.next() % (high - low + 1) as u64) as i64
    }

    pub fn chance(&mut self, percent: i64) -> bool {
        self.int(0, 99) < percent
    }

    /// A random number in `[0, 1)` with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn rational(&mut self) -> Rational {
        ratio(self.int(-6, 6), self.int(1, 4))
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for k in (1..items.len()).rev() {
            items.swap(k, self.int(0, k as i64) as usize);
        }
    }
}

/// The set that a random formula is intersected with, in most cases to make it bounded.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum BoundingShape {
    /// The cube `[-REACH, REACH]^n`.
    Cube,
    /// The cross-polytope `sum |x_j| <= REACH`: bounded, although no atom bounds a single variable.
    CrossPolytope,
    /// All of `R^n`: the formula may be unbounded.
    WholeSpace,
}

/// The bounded shapes lie in `[-REACH, REACH]^n`.
pub const REACH: i64 = 2;

/// A random constraint with the seed that it was made from and the shape that bounds it.
pub struct Case {
    pub seed: u64,
    pub shape: BoundingShape,
    pub constraint: Constraint,
}

pub fn variables(n: usize) -> (Vec<Var>, Vec<Linear>) {
    let vars: Vec<Var> = (1..=n).map(|j| Var::new(&format!("x{j}"))).collect();
    let terms = vars.iter().cloned().map(Linear::from).collect();
    (vars, terms)
}

/// The formula of a bounding shape over the variables `x`.
pub fn bounding_formula(shape: BoundingShape, x: &[Linear]) -> Formula {
    match shape {
        BoundingShape::WholeSpace => Formula::yes(),
        BoundingShape::Cube => Formula::all(x.iter().map(|x| x.between(-REACH, REACH))),
        BoundingShape::CrossPolytope => Formula::all((0..1usize << x.len()).map(|signs| {
            let side = |(j, x): (usize, &Linear)| if signs >> j & 1 == 1 { -x } else { x.clone() };
            x.iter().enumerate().map(side).fold(Linear::default(), |sum, x| sum + x).le(REACH)
        })),
    }
}

/// Random terms with degenerate zero sets on purpose: some meet in a common point, some are parallel or coincide.
pub fn random_terms(dice: &mut Dice, x: &[Linear], count: usize) -> Vec<Linear> {
    let hub: Vec<Rational> = x.iter().map(|_| ratio(dice.int(-3, 3), dice.int(1, 2))).collect();
    let mut terms: Vec<Linear> = Vec::new();
    while terms.len() < count {
        let earlier = (!terms.is_empty()).then(|| terms[dice.int(0, terms.len() as i64 - 1) as usize].clone());
        let term = match (dice.int(0, 9), earlier) {
            (0, Some(old)) => old + dice.rational(),
            (1, Some(old)) => old.scaled(&ratio([-2, -1, 3][dice.int(0, 2) as usize], dice.int(1, 3))),
            (kind, _) => {
                let normal: Vec<Rational> = x.iter().map(|_| ratio(dice.int(-3, 3), dice.int(1, 2))).collect();
                let sum = x.iter().zip(&normal).fold(Linear::default(), |sum, (x, a)| sum + x.scaled(a));
                let at_hub = hub.iter().zip(&normal).fold(Rational::ZERO, |sum, (h, a)| sum + h * a);
                sum - if kind < 5 { at_hub } else { dice.rational() }
            }
        };
        terms.push(term);
    }
    terms
}

pub fn random_literal(dice: &mut Dice, term: &Linear) -> Formula {
    match dice.int(0, 9) {
        0..=2 => term.le(0),
        3..=4 => term.lt(0),
        5..=6 => term.ge(0),
        7 => term.gt(0),
        8 => term.equals(0),
        _ => term.differs(0),
    }
}

/// Joins the parts by random connectives until one is left.
pub fn random_tree(dice: &mut Dice, mut parts: Vec<Formula>) -> Formula {
    dice.shuffle(&mut parts);
    while parts.len() > 1 {
        let at = dice.int(0, parts.len() as i64 - 2) as usize;
        let (a, b) = (parts.remove(at), parts.remove(at));
        let joined = match dice.int(0, 11) {
            0..=3 => a & b,
            4..=6 => a | b,
            7 => a.iff(b),
            8 => a ^ b,
            9 => a.implies(b),
            10 => !(a & b),
            // This `ite` mentions a part twice, so that the formula has shared nodes.
            _ if parts.is_empty() => a.clone().ite(b, !a),
            _ => {
                let c = parts.remove(0);
                c.ite(a, b)
            }
        };
        parts.push(joined);
    }
    parts.pop().unwrap_or_else(Formula::yes)
}

/// A random formula over the variables `x` and the Booleans, with 2 to `most` atoms.
pub fn random_formula(dice: &mut Dice, x: &[Linear], most: i64, booleans: &[Var]) -> Formula {
    let count = dice.int(2, most) as usize;
    let terms = random_terms(dice, x, count);
    let mut parts: Vec<Formula> = terms.iter().map(|term| random_literal(dice, term)).collect();
    parts.extend(booleans.iter().map(|b| Formula::boolean(b.name())));
    random_tree(dice, parts)
}

pub fn random_case(seed: u64, n: usize, most: i64) -> Case {
    let mut dice = Dice::new(seed);
    let (reals, x) = variables(n);
    let count = if dice.chance(30) { dice.int(1, 2) } else { 0 };
    let booleans: Vec<Var> = (1..=count).map(|k| Var::new(&format!("b{k}"))).collect();
    let shape = match dice.int(0, 9) {
        0 => BoundingShape::WholeSpace,
        // The cross-polytope alone has 2^n hyperplanes.
        1..=2 if n <= 3 => BoundingShape::CrossPolytope,
        _ => BoundingShape::Cube,
    };
    let formula = bounding_formula(shape, &x) & random_formula(&mut dice, &x, most, &booleans);
    Case { seed, shape, constraint: Constraint { formula, reals, booleans } }
}

/// All assignments of truth values to `count` Booleans.
pub fn assignments(count: usize) -> impl Iterator<Item = Vec<bool>> {
    (0..1usize << count).map(move |bits| (0..count).map(|k| bits >> k & 1 == 1).collect())
}

/// Whether a formula holds at an exact point: the oracle for everything that decides membership.
pub fn holds(constraint: &Constraint, point: &[Rational], booleans: &[bool]) -> bool {
    let reals: BTreeMap<&Var, &Rational> = constraint.reals.iter().zip(point).collect();
    let truth: BTreeMap<&Var, bool> = constraint.booleans.iter().zip(booleans.iter().copied()).collect();
    evaluate(&constraint.formula, &reals, &truth)
}

fn evaluate(formula: &Formula, reals: &BTreeMap<&Var, &Rational>, truth: &BTreeMap<&Var, bool>) -> bool {
    let is = |f: &Formula| evaluate(f, reals, truth);
    match formula.node() {
        Node::Constant(value) => *value,
        Node::Bool(var) => truth[var],
        Node::Atom(atom) => {
            let plane = atom.plane();
            let value = plane.normal().iter().fold(-Rational::from(plane.offset().clone()), |sum, (var, a)| {
                sum + Rational::from(a.clone()) * reals[var]
            });
            match atom.relation() {
                Relation::Lt => value < Rational::ZERO,
                Relation::Le => value <= Rational::ZERO,
                Relation::Eq => value.is_zero(),
            }
        }
        Node::Connective(connective, parts) => match connective {
            Connective::Not => !is(&parts[0]),
            Connective::And => parts.iter().all(is),
            Connective::Or => parts.iter().any(is),
            Connective::Iff => is(&parts[0]) == is(&parts[1]),
            Connective::Ite => is(if is(&parts[0]) { &parts[1] } else { &parts[2] }),
        },
    }
}

/// Whether the point lies on the hyperplane of some atom.
pub fn on_some_plane(formula: &Formula, constraint: &Constraint, point: &[Rational]) -> bool {
    let reals: BTreeMap<&Var, &Rational> = constraint.reals.iter().zip(point).collect();
    formula.atoms().iter().any(|atom| {
        let plane = atom.plane();
        let value = plane.normal().iter().map(|(var, a)| Rational::from(a.clone()) * reals[var]);
        value.fold(Rational::ZERO, |sum, v| sum + v) == Rational::from(plane.offset().clone())
    })
}

pub fn region(formula: &Formula, reals: &[Var]) -> Region {
    let booleans = formula.boolean_variables().into_iter().collect();
    Region::new(&Constraint { formula: formula.clone(), reals: reals.to_vec(), booleans }).unwrap()
}

pub fn try_volume(formula: &Formula, reals: &[Var]) -> Result<Rational, Unbounded> {
    region(formula, reals).exact_volume()
}

pub fn volume(formula: &Formula, reals: &[Var]) -> Rational {
    try_volume(formula, reals).unwrap_or_else(|ray| panic!("{ray}: {formula}"))
}
