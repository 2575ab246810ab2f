//! Membership of whole segments: every point between two points, not only the ends.
//!
//! Along a segment every atom is linear, so its sign changes at most once, where it vanishes. Between and at these places
//! the formula is constant: it is asked there, in their order along the segment. Signs at the ends and the order of the
//! places come from float64 where an error bound leaves no doubt, and else from fractions. Nothing is assumed about the
//! formula: obstacles may be open, closed, or as thin as a line.

use std::cmp::Ordering;

use super::{ACCEPT, CompiledAtom, Membership, REJECT, Subject};
use crate::number::{self, Rational};

/// An atom that changes its sign strictly between the ends.
struct SignChange {
    atom: usize,
    /// Its sign at the second end.
    after: Ordering,
    /// Where it vanishes, from 0 to 1, and a bound on the error.
    place: f64,
    error: f64,
}

impl Membership {
    /// Whether all points of the segment between two points, ends included, satisfy the formula, strictness included. The
    /// answer is exact. Points that [`Membership::contains`] refuses are ends of no such segment.
    ///
    /// ```
    /// use pal::formula::{reals, Constraint};
    /// let [x, y] = reals(["x", "y"]);
    /// let pillar = x.between(1, 2) & y.between(1, 2);
    /// let free = Constraint::new(x.between(0, 3) & y.between(0, 3) & !pillar).membership().unwrap();
    /// assert!(free.contains_segment(&[0.0, 0.0], &[3.0, 0.5]));
    /// assert!(!free.contains_segment(&[0.0, 0.0], &[3.0, 3.0]));
    /// // The pillar has its walls, so that a segment along one of them touches it.
    /// assert!(!free.contains_segment(&[0.0, 1.0], &[3.0, 1.0]));
    /// ```
    pub fn contains_segment(&self, from: &[f64], to: &[f64]) -> bool {
        let usable = |point: &[f64]| point.len() == self.dimension && point.iter().all(|x| x.is_finite());
        if self.booleans > 0 || !usable(from) || !usable(to) {
            return false;
        }
        let mut signs = Vec::with_capacity(self.atoms.len());
        let (mut first, mut last, mut changes) = (Vec::new(), Vec::new(), Vec::new());
        for (atom, compiled) in self.atoms.iter().enumerate() {
            let [(p, p_error), (q, q_error)] = [from, to].map(|point| self.atom_value(atom, point));
            let before = certain(p, p_error).unwrap_or_else(|| compiled.exact_sign(from));
            let after = certain(q, q_error).unwrap_or_else(|| compiled.exact_sign(to));
            signs.push(before);
            if before == after {
                continue;
            }
            if before.is_eq() {
                first.push((atom, after));
            } else if after.is_eq() {
                last.push(atom);
            } else {
                let way = p.abs() + q.abs();
                let error = 2.0 * (p_error + q_error) / way + 8.0 * f64::EPSILON;
                changes.push(SignChange { atom, after, place: p.abs() / way, error });
            }
        }
        if !self.holds_for(&signs) {
            return false;
        }
        // Right behind the first end.
        first.iter().for_each(|(atom, after)| signs[*atom] = *after);
        if !first.is_empty() && !self.holds_for(&signs) {
            return false;
        }
        changes.sort_by(|a, b| self.order_along(a, b, from, to));
        let mut rest = &changes[..];
        while let Some(next) = rest.first() {
            let same = rest.iter().take_while(|other| self.order_along(next, other, from, to).is_eq()).count();
            let (here, later) = rest.split_at(same);
            here.iter().for_each(|change| signs[change.atom] = Ordering::Equal);
            if !self.holds_for(&signs) {
                return false;
            }
            here.iter().for_each(|change| signs[change.atom] = change.after);
            if !self.holds_for(&signs) {
                return false;
            }
            rest = later;
        }
        last.iter().for_each(|atom| signs[*atom] = Ordering::Equal);
        last.is_empty() || self.holds_for(&signs)
    }

    /// Whether the formula holds where its atoms have these signs.
    fn holds_for(&self, signs: &[Ordering]) -> bool {
        let mut at = self.entry;
        loop {
            match at {
                ACCEPT => return true,
                REJECT => return false,
                _ => {}
            }
            let test = self.tests[at as usize];
            let Subject::Atom(id) = test.subject else { return false };
            let holds = self.atoms[id as usize].relation.holds(signs[id as usize]);
            at = if holds { test.on_true } else { test.on_false };
        }
    }

    /// Which of two atoms vanishes first on the way from one point to another.
    fn order_along(&self, a: &SignChange, b: &SignChange, from: &[f64], to: &[f64]) -> Ordering {
        let apart = a.place - b.place;
        // Written so that a NaN is in doubt.
        if apart.abs() > a.error + b.error {
            return apart.total_cmp(&0.0);
        }
        let place = |atom: &CompiledAtom| {
            let (p, q) = (atom.exact_value(from), atom.exact_value(to));
            &p / (&p - &q)
        };
        place(&self.atoms[a.atom]).cmp(&place(&self.atoms[b.atom]))
    }
}

/// The sign of a value that is off by at most `error`, if that leaves no doubt.
fn certain(value: f64, error: f64) -> Option<Ordering> {
    if value > error {
        Some(Ordering::Greater)
    } else if value < -error {
        Some(Ordering::Less)
    } else {
        None
    }
}

impl CompiledAtom {
    /// The value `a . x - b` at a point with finite coordinates.
    pub(super) fn exact_value(&self, point: &[f64]) -> Rational {
        let mut sum = Rational::from(-&self.exact_offset);
        for (at, a) in &self.exact_normal {
            // A coordinate that is not finite was refused before.
            let x = number::from_f64(point[*at]).unwrap_or(Rational::ZERO);
            sum += x * Rational::from(a.clone());
        }
        sum
    }
}
