//! Per-variable bounds that a formula implies.
//!
//! A conjunction intersects the boxes of its parts and then propagates its linear atoms (`x + y <= 1` with
//! `x, y >= 0` gives `x <= 1`); a disjunction takes the hull. The result contains every point that
//! satisfies the formula; it need not be the smallest such box.

use std::collections::BTreeMap;

use super::{Connective, Formula, Linear, Node, Relation, Var};
use crate::number::Rational;

/// An interval with optional ends; a missing end is unbounded as far as the analysis can tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// The lower end, if there is one.
    pub low: Option<Rational>,
    /// The upper end, if there is one.
    pub high: Option<Rational>,
}

/// Bounds of all variables, or the knowledge that nothing satisfies the formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bounds {
    /// No point satisfies the formula.
    Empty,
    /// Every point that satisfies the formula lies in these intervals; variables not listed are unbounded.
    Box(BTreeMap<Var, Interval>),
}

/// Rounds of propagation per conjunction. More rounds would only tighten chains that converge slowly.
const ROUNDS: usize = 4;

impl Formula {
    /// Bounds per variable that hold for every point satisfying the formula.
    ///
    /// ```
    /// use pal::formula::{reals, Bounds};
    /// let [x, y] = reals(["x", "y"]);
    /// let triangle = x.ge(0) & y.ge(0) & (&x + &y).le(1);
    /// let Bounds::Box(bounds) = triangle.bounds() else { panic!() };
    /// assert_eq!(bounds.values().next().unwrap().high, Some(1.into()));
    /// ```
    pub fn bounds(&self) -> Bounds {
        self.to_nnf().fold(|formula, children: &[Bounds]| match formula.node() {
            Node::Constant(false) => Bounds::Empty,
            Node::Constant(true) | Node::Bool(_) => Bounds::Box(BTreeMap::new()),
            Node::Atom(_) | Node::Connective(Connective::Not, _) => match half_space(formula) {
                Some(term) => tighten(Bounds::Box(BTreeMap::new()), &[term]),
                None => Bounds::Box(BTreeMap::new()),
            },
            Node::Connective(Connective::Or, _) => children.iter().cloned().fold(Bounds::Empty, Bounds::hull),
            Node::Connective(_, parts) => {
                let met = children.iter().cloned().fold(Bounds::Box(BTreeMap::new()), Bounds::intersection);
                let planes: Vec<Linear> = parts.iter().filter_map(half_space).collect();
                tighten(met, &planes)
            }
        })
    }
}

/// The term `t` for which the literal implies `t <= 0`. Strictness does not matter for bounds.
fn half_space(literal: &Formula) -> Option<Linear> {
    match literal.node() {
        Node::Atom(atom) if atom.relation() != Relation::Eq => Some(atom.plane().to_linear()),
        Node::Connective(Connective::Not, inner) => match inner[0].node() {
            Node::Atom(atom) => Some(-atom.plane().to_linear()),
            _ => None,
        },
        _ => None,
    }
}

fn tighten(bounds: Bounds, half_spaces: &[Linear]) -> Bounds {
    let Bounds::Box(mut intervals) = bounds else { return Bounds::Empty };
    for _ in 0..ROUNDS {
        let mut changed = false;
        for term in half_spaces {
            // From sum_j a_j x_j + c <= 0 follows a bound on a_k x_k: the other terms are at their least values.
            let least: Vec<Option<Rational>> = term
                .terms()
                .map(|(var, a)| {
                    let interval = intervals.get(var)?;
                    let end = if a > &Rational::ZERO { &interval.low } else { &interval.high };
                    end.as_ref().map(|e| a * e)
                })
                .collect();
            let unknown = least.iter().filter(|l| l.is_none()).count();
            if unknown > 1 {
                continue;
            }
            for (k, (var, a)) in term.terms().enumerate() {
                if unknown == 1 && least[k].is_some() {
                    continue;
                }
                let others = least.iter().enumerate().filter(|(j, _)| *j != k).filter_map(|(_, l)| l.as_ref());
                let rest = others.fold(term.constant().clone(), |sum, l| sum + l);
                let end = -rest / a;
                let interval = intervals.entry(var.clone()).or_default();
                changed |= interval.cut(end, a > &Rational::ZERO);
                if interval.is_empty() {
                    return Bounds::Empty;
                }
            }
        }
        if !changed {
            break;
        }
    }
    Bounds::Box(intervals)
}

impl Interval {
    fn is_empty(&self) -> bool {
        matches!((&self.low, &self.high), (Some(low), Some(high)) if low > high)
    }

    fn cut(&mut self, end: Rational, upper: bool) -> bool {
        let slot = if upper { &mut self.high } else { &mut self.low };
        let tighter = slot.as_ref().is_none_or(|old| if upper { &end < old } else { &end > old });
        if tighter {
            *slot = Some(end);
        }
        tighter
    }
}

impl Bounds {
    /// The bounds of one variable. Both ends are missing if it is not listed, or if nothing satisfies the formula.
    pub fn of(&self, var: &Var) -> Interval {
        match self {
            Bounds::Empty => Interval::default(),
            Bounds::Box(intervals) => intervals.get(var).cloned().unwrap_or_default(),
        }
    }

    fn intersection(self, other: Bounds) -> Bounds {
        let (Bounds::Box(mut met), Bounds::Box(more)) = (self, other) else { return Bounds::Empty };
        for (var, interval) in more {
            let slot: &mut Interval = met.entry(var).or_default();
            interval.high.map(|high| slot.cut(high, true));
            interval.low.map(|low| slot.cut(low, false));
            if slot.is_empty() {
                return Bounds::Empty;
            }
        }
        Bounds::Box(met)
    }

    fn hull(self, other: Bounds) -> Bounds {
        let (left, right) = match (self, other) {
            (Bounds::Empty, other) | (other, Bounds::Empty) => return other,
            (Bounds::Box(left), Bounds::Box(right)) => (left, right),
        };
        let both = left.into_iter().filter_map(|(var, a)| {
            let b = right.get(&var)?;
            let low = a.low.zip(b.low.clone()).map(|(p, q)| p.min(q));
            let high = a.high.zip(b.high.clone()).map(|(p, q)| p.max(q));
            Some((var, Interval { low, high }))
        });
        Bounds::Box(both.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formula::reals;

    fn interval(bounds: &Bounds, name: &str) -> (Option<f64>, Option<f64>) {
        let i = bounds.of(&Var::new(name));
        (i.low.as_ref().map(crate::number::to_f64), i.high.as_ref().map(crate::number::to_f64))
    }

    #[test]
    fn conjunction_propagates_and_disjunction_takes_the_hull() {
        let [x, y] = reals(["x", "y"]);
        let triangle = x.ge(0) & y.ge(0) & (2 * &x + &y).le(4);
        let b = triangle.bounds();
        assert_eq!((interval(&b, "x"), interval(&b, "y")), ((Some(0.0), Some(2.0)), (Some(0.0), Some(4.0))));
        let b = (triangle | (x.between(5, 6) & y.le(1))).bounds();
        assert_eq!((interval(&b, "x"), interval(&b, "y")), ((Some(0.0), Some(6.0)), (None, Some(4.0))));
    }

    #[test]
    fn equalities_bound_and_contradictions_are_empty() {
        let [x, y] = reals(["x", "y"]);
        let b = (x.equals(3) & y.equals(&x)).bounds();
        assert_eq!(interval(&b, "y"), (Some(3.0), Some(3.0)));
        assert_eq!((x.le(0) & x.ge(1)).bounds(), Bounds::Empty);
        assert_eq!(interval(&x.le(y).bounds(), "x"), (None, None));
    }
}
