//! A search for truth values with learning from conflicts (CDCL).

use std::collections::HashSet;

/// A variable or its negation: twice the number of the variable, plus one for the negation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct TruthLiteral(pub u32);

impl TruthLiteral {
    pub fn new(variable: usize, value: bool) -> TruthLiteral {
        TruthLiteral(2 * variable as u32 + u32::from(!value))
    }

    pub fn variable(self) -> usize {
        (self.0 / 2) as usize
    }

    pub fn value(self) -> bool {
        self.0.is_multiple_of(2)
    }

    pub fn negated(self) -> TruthLiteral {
        TruthLiteral(self.0 ^ 1)
    }
}

/// Clauses, and an assignment that grows and shrinks.
#[derive(Default)]
pub(super) struct ClauseSearch {
    clauses: Vec<Vec<TruthLiteral>>,
    /// Per literal the clauses that watch it.
    watches: Vec<Vec<usize>>,
    values: Vec<Option<bool>>,
    levels: Vec<usize>,
    reasons: Vec<Option<usize>>,
    activities: Vec<f64>,
    growth: f64,
    /// Literals in the order in which they became true.
    pub trail: Vec<TruthLiteral>,
    /// Where on the trail each level begins.
    starts: Vec<usize>,
    propagated: usize,
}

impl ClauseSearch {
    pub fn variable(&mut self) -> usize {
        self.values.push(None);
        self.levels.push(0);
        self.reasons.push(None);
        self.activities.push(0.0);
        self.watches.extend([Vec::new(), Vec::new()]);
        self.values.len() - 1
    }

    pub fn level(&self) -> usize {
        self.starts.len()
    }

    pub fn value(&self, literal: TruthLiteral) -> Option<bool> {
        self.values[literal.variable()].map(|value| value == literal.value())
    }

    fn make_true(&mut self, literal: TruthLiteral, reason: Option<usize>) {
        self.values[literal.variable()] = Some(literal.value());
        self.levels[literal.variable()] = self.level();
        self.reasons[literal.variable()] = reason;
        self.trail.push(literal);
    }

    /// Adds a clause before the search begins; false if that makes the clauses contradictory.
    pub fn add(&mut self, mut clause: Vec<TruthLiteral>) -> bool {
        clause.sort_unstable();
        clause.dedup();
        if clause.windows(2).any(|pair| pair[0] == pair[1].negated()) {
            return true;
        }
        match clause[..] {
            [] => false,
            [only] => match self.value(only) {
                Some(value) => value,
                None => {
                    self.make_true(only, None);
                    true
                }
            },
            _ => {
                self.watch(clause);
                true
            }
        }
    }

    fn watch(&mut self, clause: Vec<TruthLiteral>) -> usize {
        let at = self.clauses.len();
        self.watches[clause[0].0 as usize].push(at);
        self.watches[clause[1].0 as usize].push(at);
        self.clauses.push(clause);
        at
    }

    /// Follows clauses with one literal left. The error is a clause that is false.
    pub fn propagate(&mut self) -> Result<(), Vec<TruthLiteral>> {
        while self.propagated < self.trail.len() {
            let failed = self.trail[self.propagated].negated();
            self.propagated += 1;
            let watching = std::mem::take(&mut self.watches[failed.0 as usize]);
            let mut kept = Vec::with_capacity(watching.len());
            let mut conflict = None;
            for (k, at) in watching.iter().enumerate() {
                let clause = &mut self.clauses[*at];
                if clause[0] == failed {
                    clause.swap(0, 1);
                }
                let (values, first) = (&self.values, clause[0]);
                let value = |literal: TruthLiteral| values[literal.variable()].map(|v| v == literal.value());
                if value(first) == Some(true) {
                    kept.push(*at);
                    continue;
                }
                if let Some(other) = (2..clause.len()).find(|k| value(clause[*k]) != Some(false)) {
                    clause.swap(1, other);
                    let watched = clause[1];
                    self.watches[watched.0 as usize].push(*at);
                    continue;
                }
                kept.push(*at);
                if value(first) == Some(false) {
                    conflict = Some(clause.clone());
                    kept.extend_from_slice(&watching[k + 1..]);
                    break;
                }
                self.make_true(first, Some(*at));
            }
            self.watches[failed.0 as usize] = kept;
            if let Some(clause) = conflict {
                return Err(clause);
            }
        }
        Ok(())
    }

    /// The variable without a value that took part in the most recent conflicts.
    pub fn open_variable(&self) -> Option<usize> {
        let open = (0..self.values.len()).filter(|variable| self.values[*variable].is_none());
        open.max_by(|a, b| self.activities[*a].total_cmp(&self.activities[*b]).then(b.cmp(a)))
    }

    pub fn decide(&mut self, literal: TruthLiteral) {
        self.starts.push(self.trail.len());
        self.make_true(literal, None);
    }

    fn return_to(&mut self, level: usize) {
        if let Some(start) = self.starts.get(level).copied() {
            for literal in self.trail.drain(start..) {
                self.values[literal.variable()] = None;
            }
            self.starts.truncate(level);
            self.propagated = self.propagated.min(self.trail.len());
        }
    }

    /// Learns from a clause that is false, and goes back to where that could have been known; false if there is no
    /// such place.
    pub fn learn(&mut self, conflict: Vec<TruthLiteral>) -> bool {
        let deepest = conflict.iter().map(|literal| self.levels[literal.variable()]).max().unwrap_or(0);
        if deepest == 0 {
            return false;
        }
        self.return_to(deepest);
        self.growth = if self.growth > 1e200 || self.growth == 0.0 { 1.0 } else { self.growth * 1.05 };
        if self.growth == 1.0 {
            self.activities.iter_mut().for_each(|activity| *activity *= 1e-200);
        }
        // Resolves backwards along the trail until one literal of the deepest level is left.
        let mut seen: HashSet<usize> = HashSet::new();
        let (mut learned, mut open) = (Vec::new(), 0);
        let mut clause = conflict;
        let mut at = self.trail.len();
        let last = loop {
            for literal in clause {
                let variable = literal.variable();
                if self.levels[variable] > 0 && seen.insert(variable) {
                    self.activities[variable] += self.growth;
                    if self.levels[variable] == deepest {
                        open += 1;
                    } else {
                        learned.push(literal);
                    }
                }
            }
            let literal = loop {
                at -= 1;
                if seen.contains(&self.trail[at].variable()) && self.levels[self.trail[at].variable()] == deepest {
                    break self.trail[at];
                }
            };
            open -= 1;
            if open == 0 {
                break literal.negated();
            }
            let reason = self.reasons[literal.variable()].map(|at| self.clauses[at].clone()).unwrap_or_default();
            clause = reason.into_iter().filter(|other| *other != literal).collect();
        };
        let back = learned.iter().map(|literal| self.levels[literal.variable()]).max().unwrap_or(0);
        // The second watched literal is one of the level to return to.
        if let Some(second) = learned.iter().position(|literal| self.levels[literal.variable()] == back) {
            learned.swap(0, second);
        }
        self.return_to(back);
        learned.insert(0, last);
        let reason = if learned.len() > 1 { Some(self.watch(learned)) } else { None };
        self.make_true(last, reason);
        true
    }
}
