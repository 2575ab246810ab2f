//! Walls of no thickness: lines in the plane that a map forbids although both of their sides are free.
//!
//! They have no area, so no obstacle piece stands for them, but what lies behind them is hidden. A map with one is refused
//! where views are computed. Off all hyperplanes and along one of them, between the places where it meets the others, every
//! atom has one sign. So a line has to be asked once between any two such places: on it, and on both of its sides, which
//! differ from it in the signs of the atoms on its own hyperplane alone. One kind of atom per hyperplane (`<` or `<=`) takes
//! the side of its boundary, and there is nothing to ask.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::formula::{Connective, Constraint, Formula, Node, Plane, Relation};
use crate::number::Rational;

/// A line in the plane: `normal . y = offset`.
struct ExactLine {
    normal: [Rational; 2],
    offset: Rational,
}

impl ExactLine {
    fn new(plane: &Plane, constraint: &Constraint) -> ExactLine {
        let coefficient = |j: usize| {
            let found = plane.normal().iter().find(|(var, _)| *var == constraint.reals[j]);
            found.map_or(Rational::ZERO, |(_, a)| Rational::from(a.clone()))
        };
        ExactLine { normal: [coefficient(0), coefficient(1)], offset: Rational::from(plane.offset().clone()) }
    }

    fn value(&self, point: &[Rational; 2]) -> Rational {
        &self.normal[0] * &point[0] + &self.normal[1] * &point[1] - &self.offset
    }
}

/// The first line of a constraint in the plane on which there is a wall of no thickness.
pub(super) fn thin_wall(constraint: &Constraint) -> Option<Plane> {
    let mut relations: BTreeMap<Plane, Vec<Relation>> = BTreeMap::new();
    for atom in constraint.formula.atoms() {
        relations.entry(atom.plane().clone()).or_default().push(atom.relation());
    }
    let lines: BTreeMap<&Plane, ExactLine> =
        relations.keys().map(|plane| (plane, ExactLine::new(plane, constraint))).collect();
    let suspects = relations.iter().filter(|(_, kinds)| kinds.len() > 1 || kinds.contains(&Relation::Eq));
    let mut walls = suspects.map(|(plane, _)| plane).filter(|plane| {
        let line = &lines[plane];
        places(line, &lines).into_iter().any(|point| {
            let mut signs: BTreeMap<&Plane, Ordering> =
                lines.iter().map(|(plane, line)| (*plane, line.value(&point).cmp(&Rational::ZERO))).collect();
            let mut holds = |side: Ordering| {
                signs.insert(*plane, side);
                is_true(&constraint.formula, &signs)
            };
            !holds(Ordering::Equal) && holds(Ordering::Less) && holds(Ordering::Greater)
        })
    });
    walls.next().cloned()
}

/// Points of a line, one between any two neighbouring places where other lines cross it.
fn places(line: &ExactLine, others: &BTreeMap<&Plane, ExactLine>) -> Vec<[Rational; 2]> {
    let [a, b] = &line.normal;
    let squares = a * a + b * b;
    let at = |t: &Rational| [a * &line.offset / &squares - b * t, b * &line.offset / &squares + a * t];
    let start = at(&Rational::ZERO);
    let mut crossings: Vec<Rational> = others
        .values()
        .filter_map(|other| {
            let step = &other.normal[1] * a - &other.normal[0] * b;
            (step != Rational::ZERO).then(|| -other.value(&start) / step)
        })
        .collect();
    crossings.sort_unstable();
    crossings.dedup();
    let (Some(first), Some(last)) = (crossings.first(), crossings.last()) else { return vec![start] };
    let ends = [first - Rational::ONE, last + Rational::ONE];
    let between = crossings.windows(2).map(|pair| (&pair[0] + &pair[1]) / Rational::from(2));
    between.chain(ends).map(|t| at(&t)).collect()
}

/// The value of a formula without Boolean variables where hyperplanes have these signs.
fn is_true(formula: &Formula, signs: &BTreeMap<&Plane, Ordering>) -> bool {
    formula.fold(|formula, parts: &[bool]| match formula.node() {
        Node::Constant(value) => *value,
        Node::Atom(atom) => atom.relation().holds(signs[atom.plane()]),
        Node::Bool(_) => false,
        Node::Connective(connective, _) => match connective {
            Connective::Not => !parts[0],
            Connective::And => parts.iter().all(|part| *part),
            Connective::Or => parts.iter().any(|part| *part),
            Connective::Iff => parts[0] == parts[1],
            Connective::Ite => parts[if parts[0] { 1 } else { 2 }],
        },
    })
}
