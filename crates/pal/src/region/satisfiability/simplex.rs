//! The general simplex method of Dutertre and de Moura in fractions: are these bounds on linear terms consistent?
//!
//! Reference: B. Dutertre, L. de Moura, A fast linear-arithmetic solver for DPLL(T), CAV 2006.

use std::collections::BTreeMap;
use std::ops::{Add, Sub};

use super::clauses::TruthLiteral;
use crate::interrupt::checkpoint;
use crate::number::Rational;

/// `value + excess * epsilon` for a positive epsilon below every positive number: what strict bounds are about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(super) struct Nudged {
    pub value: Rational,
    pub excess: Rational,
}

impl Add for &Nudged {
    type Output = Nudged;

    fn add(self, other: &Nudged) -> Nudged {
        Nudged { value: &self.value + &other.value, excess: &self.excess + &other.excess }
    }
}

impl Sub for &Nudged {
    type Output = Nudged;

    fn sub(self, other: &Nudged) -> Nudged {
        Nudged { value: &self.value - &other.value, excess: &self.excess - &other.excess }
    }
}

impl Nudged {
    fn scaled(&self, by: &Rational) -> Nudged {
        Nudged { value: &self.value * by, excess: &self.excess * by }
    }
}

/// A bound and the literal that states it.
type Stated = (Nudged, TruthLiteral);

/// Bounds on variables, of which some are sums of others.
#[derive(Default)]
pub(super) struct Simplex {
    /// Per basic variable its sum over the others.
    rows: BTreeMap<usize, BTreeMap<usize, Rational>>,
    values: Vec<Nudged>,
    /// Lower and upper bounds.
    bounds: Vec<[Option<Stated>; 2]>,
    /// Bounds that were replaced: variable, which bound, and what it was.
    replaced: Vec<(usize, usize, Option<Stated>)>,
}

impl Simplex {
    /// Adds a variable without bounds.
    pub fn variable(&mut self) -> usize {
        self.values.push(Nudged::default());
        self.bounds.push([None, None]);
        self.values.len() - 1
    }

    /// Adds a variable that is a sum of others. Nothing may have been bounded yet.
    pub fn sum(&mut self, terms: impl IntoIterator<Item = (usize, Rational)>) -> usize {
        let variable = self.variable();
        self.rows.insert(variable, terms.into_iter().collect());
        variable
    }

    pub fn value(&self, variable: usize) -> &Nudged {
        &self.values[variable]
    }

    /// A place to return to.
    pub fn mark(&self) -> usize {
        self.replaced.len()
    }

    pub fn return_to(&mut self, mark: usize) {
        while self.replaced.len() > mark {
            if let Some((variable, which, old)) = self.replaced.pop() {
                self.bounds[variable][which] = old;
            }
        }
    }

    /// States an upper or lower bound. The error is a set of literals that contradict each other.
    pub fn bound(
        &mut self,
        variable: usize,
        upper: bool,
        bound: Nudged,
        by: TruthLiteral,
    ) -> Result<(), Vec<TruthLiteral>> {
        let beyond = |a: &Nudged, b: &Nudged| if upper { a > b } else { a < b };
        let (which, other) = (usize::from(upper), usize::from(!upper));
        if self.bounds[variable][which].as_ref().is_some_and(|(known, _)| !beyond(known, &bound)) {
            return Ok(());
        }
        if let Some((opposite, stated)) = &self.bounds[variable][other]
            && beyond(opposite, &bound)
        {
            return Err(vec![*stated, by]);
        }
        let old = self.bounds[variable][which].replace((bound.clone(), by));
        self.replaced.push((variable, which, old));
        if !self.rows.contains_key(&variable) && beyond(&self.values[variable], &bound) {
            self.move_to(variable, bound);
        }
        Ok(())
    }

    /// Moves a variable that is no sum, and with it the sums it is in.
    fn move_to(&mut self, variable: usize, to: Nudged) {
        let by = &to - &self.values[variable];
        for (basic, row) in &self.rows {
            if let Some(a) = row.get(&variable) {
                self.values[*basic] = &self.values[*basic] + &by.scaled(a);
            }
        }
        self.values[variable] = to;
    }

    /// Finds values within all bounds. The error is a set of literals that contradict each other.
    pub fn check(&mut self) -> Result<(), Vec<TruthLiteral>> {
        // The smallest variable that is out of bounds, and the smallest that can help: this never runs in circles.
        loop {
            checkpoint();
            let outside = self.rows.keys().find_map(|basic| {
                let value = &self.values[*basic];
                match &self.bounds[*basic] {
                    [Some((low, _)), _] if value < low => Some((*basic, false, low.clone())),
                    [_, Some((high, _))] if value > high => Some((*basic, true, high.clone())),
                    _ => None,
                }
            });
            let Some((basic, above, target)) = outside else { return Ok(()) };
            let row = &self.rows[&basic];
            let helps = |(variable, a): (&usize, &Rational)| {
                // To lower the sum, raise what counts negatively and lower what counts positively.
                let raise = (a > &Rational::ZERO) != above;
                let limit = &self.bounds[*variable][usize::from(raise)];
                let value = &self.values[*variable];
                limit.as_ref().is_none_or(|(limit, _)| if raise { value < limit } else { value > limit })
            };
            let entering = row.iter().find(|(variable, a)| helps((variable, a))).map(|(variable, _)| *variable);
            let Some(entering) = entering else {
                let limits = row.iter().map(|(variable, a)| (*variable, usize::from((a > &Rational::ZERO) != above)));
                let own = (basic, usize::from(above));
                let stated =
                    |(variable, which): (usize, usize)| self.bounds[variable][which].as_ref().map(|(_, by)| *by);
                return Err(std::iter::once(own).chain(limits).filter_map(stated).collect());
            };
            let a = row[&entering].clone();
            let by = (&target - &self.values[basic]).scaled(&(Rational::ONE / &a));
            let moved = &self.values[entering] + &by;
            self.move_to(entering, moved);
            self.pivot(basic, entering);
        }
    }

    /// Makes `entering` a sum in place of `leaving`.
    fn pivot(&mut self, leaving: usize, entering: usize) {
        let Some(mut row) = self.rows.remove(&leaving) else { return };
        let Some(a) = row.remove(&entering) else { return };
        // leaving = a entering + rest, so entering = (leaving - rest) / a.
        let mut solved: BTreeMap<usize, Rational> = row.into_iter().map(|(v, b)| (v, -b / &a)).collect();
        solved.insert(leaving, Rational::ONE / &a);
        for row in self.rows.values_mut() {
            if let Some(b) = row.remove(&entering) {
                for (variable, c) in &solved {
                    let sum = row.entry(*variable).or_insert(Rational::ZERO);
                    *sum += &b * c;
                    if sum.is_zero() {
                        row.remove(variable);
                    }
                }
            }
        }
        self.rows.insert(entering, solved);
    }

    /// The values with a number in place of epsilon that is small enough for all bounds.
    pub fn concrete(&self) -> Vec<Rational> {
        let mut epsilon = Rational::ONE;
        for (value, bounds) in self.values.iter().zip(&self.bounds) {
            let low = bounds[0].as_ref().map(|(low, _)| (low, value));
            let high = bounds[1].as_ref().map(|(high, _)| (value, high));
            for (low, high) in low.into_iter().chain(high) {
                // low <= high holds for a tiny epsilon: up to where the two meet.
                if low.value < high.value && low.excess > high.excess {
                    epsilon = epsilon.min((&high.value - &low.value) / (&low.excess - &high.excess));
                }
            }
        }
        self.values.iter().map(|value| &value.value + &value.excess * &epsilon).collect()
    }
}
