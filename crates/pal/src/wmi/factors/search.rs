//! The search: a problem is taken apart, and a component that does not fall apart is cut in two by a decision.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::amount::Amount;
use super::arena::{Arena, ClauseId, Decision, FactorId, FactorNode};
use super::component::{Assumed, FactorComponent, Factored, ends, separate};
use super::forest::{RealTree, TreeFailure};
use super::order::SeparatingOrder;
use crate::formula::{Constraint, Formula, Var};
use crate::interrupt::checkpoint;
use crate::moments::{Integral, Method};
use crate::number::Rational;
use crate::polynomial::Polynomial;
use crate::region::{MAX_DIMENSION, RegionError, Unbounded};
use crate::wmi::solve::{WmiError, integrate_cells};
use crate::wmi::weight::SymbolicWeight;

/// When components are cut into cells, and when a problem is refused. Results do not depend on it, only the work does.
#[derive(Clone, Copy)]
pub(super) struct Thresholds {
    /// A component with at most so many reals and Boolean variables is cut into cells as it is.
    pub reals: usize,
    pub booleans: usize,
    /// A component that no variable separates is cut into cells if it has at most so many Boolean variables.
    pub entangled: usize,
    /// The memory that nodes and known components may take before a problem is refused, in bytes.
    pub memory: usize,
}

impl Default for Thresholds {
    fn default() -> Self {
        Thresholds { reals: 3, booleans: 4, entangled: 12, memory: 1 << 30 }
    }
}

/// Known integrals by formulas and weights.
type Known = HashMap<(Vec<ClauseId>, Vec<FactorId>), Amount>;

/// Work that waits for the values of its parts.
enum PendingWork {
    /// A product over components.
    Product { pending: Vec<FactorComponent>, amount: Amount, failed: Option<WmiError> },
    /// A sum over cases of one component.
    Sum { pending: Vec<Assumed>, amount: Amount, component: FactorComponent },
}

/// What a component comes to: a value, or cases to be summed.
enum ComponentStep {
    Value(Result<Amount, WmiError>),
    Cases(Vec<Assumed>),
}

/// The state of the search. Components that are known stay known from one question to the next.
pub(in crate::wmi) struct FactorSearch {
    arena: Arena,
    method: Method,
    weight: FactorId,
    known: Known,
    known_bytes: usize,
    /// How near to the centre of its component a variable is.
    distances: BTreeMap<u32, u32>,
    /// The variables of components that no small set of variables separates.
    entangled: BTreeSet<u32>,
    pub(super) thresholds: Thresholds,
    /// Whether the problem is a single component as it stands.
    whole: bool,
    cells: usize,
    exact_cells: usize,
    simplices: usize,
}

impl FactorSearch {
    /// Prepares a weight over the variables of a constraint; `None` if there is something wrong with them.
    pub fn new(constraint: &Constraint, weight: &SymbolicWeight, method: Method) -> Option<FactorSearch> {
        let mut names = HashSet::new();
        if !constraint.reals.iter().chain(&constraint.booleans).all(|var| names.insert(var)) {
            return None;
        }
        let mut arena = Arena::new(constraint);
        let weight = arena.add_weight(weight)?;
        Some(FactorSearch {
            arena,
            method,
            weight,
            known: HashMap::new(),
            known_bytes: 0,
            distances: BTreeMap::new(),
            entangled: BTreeSet::new(),
            thresholds: Thresholds::default(),
            whole: true,
            cells: 0,
            exact_cells: 0,
            simplices: 0,
        })
    }

    /// The integral of the weight where a formula holds; `None` if there is something wrong with its variables.
    pub fn integrate(&mut self, formula: &Formula) -> Option<Result<Integral, WmiError>> {
        let clause = self.arena.add_formula(formula)?;
        let count = self.arena.constraint.booleans.len() + self.arena.constraint.reals.len();
        let component = FactorComponent {
            clauses: vec![clause],
            factors: vec![self.weight],
            variables: (0..count as u32).collect(),
        };
        (self.cells, self.exact_cells, self.simplices) = (0, 0, 0);
        Some(self.run(component).map(|amount| {
            let (value, error) = amount.rounded();
            let exact = match amount {
                Amount::Nothing => Some(Rational::ZERO),
                Amount::Exact(exact) => Some(exact),
                Amount::Near { .. } => None,
            };
            Integral {
                value,
                exact,
                error,
                cells: self.cells,
                exact_cells: self.exact_cells,
                simplices: self.simplices,
            }
        }))
    }

    /// Sums and multiplies with a stack of its own: the depth of the search is limited by memory only.
    fn run(&mut self, root: FactorComponent) -> Result<Amount, WmiError> {
        let Some(Factored { constant, components }) =
            Assumed { component: root, known: Vec::new() }.factored(&mut self.arena)
        else {
            return Ok(Amount::Nothing);
        };
        self.whole = components.len() == 1;
        for component in &components {
            let order = SeparatingOrder::new(&self.arena, component);
            if order.width * 3 > component.variables.len() * 2 {
                self.entangled.extend(&component.variables);
            } else {
                component.variables.iter().for_each(|v| _ = self.entangled.remove(v));
            }
            self.distances.extend(order.distances);
        }
        let mut frames = vec![product(constant, components)];
        let mut done: Option<Result<Amount, WmiError>> = None;
        loop {
            if let Some(result) = done.take() {
                match (frames.last_mut(), result) {
                    (None, result) => return result,
                    (Some(PendingWork::Product { .. }), Ok(Amount::Nothing)) => {
                        frames.pop();
                        done = Some(Ok(Amount::Nothing));
                        continue;
                    }
                    (Some(PendingWork::Product { amount, .. }), Ok(factor)) => *amount = amount.times(&factor),
                    // Another factor may be nothing, and then so is the product.
                    (Some(PendingWork::Product { failed, .. }), Err(error)) => _ = failed.get_or_insert(error),
                    (Some(PendingWork::Sum { amount, .. }), Ok(part)) => *amount = amount.plus(&part),
                    (Some(PendingWork::Sum { .. }), Err(error)) => {
                        frames.pop();
                        done = Some(Err(error));
                        continue;
                    }
                }
            }
            let Some(frame) = frames.last_mut() else { return Ok(Amount::Nothing) };
            match frame {
                PendingWork::Product { pending, .. } => match pending.pop() {
                    Some(component) => match self.recall(&component) {
                        Some(amount) => done = Some(Ok(amount)),
                        None => match self.expand(&component)? {
                            ComponentStep::Value(result) => {
                                if let Ok(amount) = &result {
                                    self.remember(component, amount);
                                }
                                done = Some(result);
                            }
                            ComponentStep::Cases(mut pending) => {
                                pending.reverse();
                                frames.push(PendingWork::Sum { pending, amount: Amount::Nothing, component });
                            }
                        },
                    },
                    None => {
                        if let Some(PendingWork::Product { amount, failed, .. }) = frames.pop() {
                            done = Some(failed.map_or(Ok(amount), Err));
                        }
                    }
                },
                PendingWork::Sum { pending, .. } => match pending.pop() {
                    Some(case) => match case.factored(&mut self.arena) {
                        Some(Factored { constant, components }) => frames.push(product(constant, components)),
                        None => done = Some(Ok(Amount::Nothing)),
                    },
                    None => {
                        if let Some(PendingWork::Sum { amount, component, .. }) = frames.pop() {
                            self.remember(component, &amount);
                            done = Some(Ok(amount));
                        }
                    }
                },
            }
        }
    }

    fn recall(&self, component: &FactorComponent) -> Option<Amount> {
        // Every variable of a component occurs in its formulas or weights, except a single real without bounds.
        if component.clauses.is_empty() && component.factors.is_empty() {
            return None;
        }
        self.known.get(&(component.clauses.clone(), component.factors.clone())).cloned()
    }

    fn remember(&mut self, component: FactorComponent, amount: &Amount) {
        self.known_bytes += 4 * (component.clauses.len() + component.factors.len()) + 160;
        self.known.insert((component.clauses, component.factors), amount.clone());
    }

    /// Integrates a component, or divides it into cases.
    fn expand(&mut self, component: &FactorComponent) -> Result<ComponentStep, WmiError> {
        checkpoint();
        if self.arena.bytes + self.known_bytes > self.thresholds.memory {
            return Err(WmiError::TooEntangled { parts: self.known.len() });
        }
        let (reals, all) = (component.reals(&self.arena), component.variables.len());
        let booleans = all - reals;
        if reals > 0 {
            let entangled = component.variables.iter().any(|v| self.entangled.contains(v));
            let small = reals <= self.thresholds.reals && booleans <= self.thresholds.booleans;
            if self.whole && small {
                return Ok(ComponentStep::Value(self.cells(component)));
            }
            let free = self.separable(component);
            let tangle = entangled
                && reals <= MAX_DIMENSION
                && booleans <= self.thresholds.entangled
                && free.len() <= self.thresholds.reals;
            if small && reals > 1 || self.whole && tangle && reals <= self.thresholds.reals + 1 {
                return Ok(ComponentStep::Value(self.cells(component)));
            }
            if let Some(tree) = RealTree::new(&self.arena, component) {
                match tree.value(&mut self.arena) {
                    Ok((value, pieces)) => {
                        self.cells += pieces;
                        self.exact_cells += pieces;
                        return Ok(ComponentStep::Value(Ok(Amount::Exact(value))));
                    }
                    Err(TreeFailure::Polynomial(error)) => return Ok(ComponentStep::Value(Err(error.into()))),
                    Err(TreeFailure::TooManyIntervals) => {}
                }
            }
            if small || tangle {
                return Ok(ComponentStep::Value(self.cells(component)));
            }
            if let Some(cases) = self.fork(component) {
                return Ok(ComponentStep::Cases(cases));
            }
            return Ok(match self.choose(component, &free) {
                Some(decision) => cases(component, decision),
                None => ComponentStep::Value(self.cells(component)),
            });
        }
        if let Some(cases) = self.fork(component) {
            return Ok(ComponentStep::Cases(cases));
        }
        Ok(match self.choose(component, &BTreeSet::new()) {
            Some(decision) => cases(component, decision),
            None => ComponentStep::Value(Ok(Amount::Nothing)),
        })
    }

    /// The real variables that occur with no other real variable in any hyperplane or polynomial: once they lie between
    /// two of their bounds, nothing else depends on them.
    fn separable(&self, component: &FactorComponent) -> BTreeSet<u32> {
        let shift = self.arena.boolean_count();
        let mut single: BTreeSet<u32> = component.variables.iter().copied().filter(|v| *v >= shift).collect();
        let mut decisions = component.open_decisions(&self.arena);
        decisions.extend(component.sides(&self.arena).map(|(decision, _)| decision));
        for plane in decisions.into_iter().filter_map(|decision| self.arena.plane(decision)) {
            if plane.terms.len() > 1 {
                plane.terms.iter().for_each(|(real, _)| _ = single.remove(&(shift + real)));
            }
        }
        for factor in &component.factors {
            let reals: BTreeSet<u32> = self.arena.polynomial_reals(*factor).map(|real| shift + real).collect();
            if reals.len() > 1 {
                single.retain(|real| !reals.contains(real));
            }
        }
        single
    }

    /// The decision to branch on. Boolean variables and separable reals near the centre of the decomposition come
    /// first; a component that can be cut into cells is not branched on in any other way.
    fn choose(&self, component: &FactorComponent, separable: &BTreeSet<u32>) -> Option<Decision> {
        let open = component.open_decisions(&self.arena);
        // Deciding a variable of short conditions leads to more consequences.
        let mut uses: HashMap<Decision, usize> = HashMap::new();
        let clauses = component.clauses.iter().map(|id| self.arena.clause_decisions(*id));
        for decisions in clauses.chain(component.factors.iter().map(|id| self.arena.factor_decisions(*id))) {
            let weight = 1 + (4096 >> decisions.len().min(12));
            decisions.iter().for_each(|d| *uses.entry(*d).or_default() += weight);
        }
        // A decomposition into large parts says little about where to begin.
        let entangled = component.variables.iter().any(|v| self.entangled.contains(v));
        let fits = component.reals(&self.arena) <= MAX_DIMENSION;
        let shift = self.arena.boolean_count();
        let rank = |decision: &Decision| {
            let (variable, kind) = match self.arena.plane(*decision).map(|plane| (&plane.terms[..], plane)) {
                None => (decision.0, 0),
                Some(([(real, _)], _)) if separable.contains(&(shift + real)) => (shift + real, 0),
                Some(_) if fits => return None,
                Some(([(real, _)], _)) => (shift + real, 2),
                Some((terms, _)) => (shift + terms.first().map_or(0, |(real, _)| *real), 1),
            };
            let distance = self.distances.get(&variable).copied().filter(|_| !entangled).unwrap_or(u32::MAX);
            Some((kind, distance, std::cmp::Reverse(uses.get(decision).copied().unwrap_or(0)), *decision))
        };
        let best = open.iter().filter_map(rank).min()?;
        // Of the bounds of one real the middle one halves what is left.
        let threshold = |decision: &Decision| self.arena.plane(*decision).and_then(|plane| plane.threshold());
        let Some((real, _)) = threshold(&best.3) else { return Some(best.3) };
        let same = open.iter().filter_map(|d| threshold(d).filter(|(other, _)| *other == real).map(|(_, c)| (c, *d)));
        let mut bounds: Vec<(Rational, Decision)> = same.collect();
        bounds.sort_unstable();
        bounds.get(bounds.len() / 2).map(|(_, decision)| *decision)
    }

    /// The cases of a sum among the weights that ties together what would be independent without it.
    fn fork(&mut self, component: &FactorComponent) -> Option<Vec<Assumed>> {
        let bounds = ends(&self.arena, component.sides(&self.arena));
        let shift = self.arena.boolean_count();
        let bounded = |v: &u32| match v.checked_sub(shift).map(|real| bounds.get(&real)) {
            Some(Some(ends)) => ends.low.is_some() && ends.high.is_some(),
            Some(None) => false,
            None => true,
        };
        // Terms may cancel where a region is unbounded: they must meet there.
        if !component.variables.iter().all(bounded) {
            return None;
        }
        let at = (0..component.factors.len()).find(|at| {
            let parts = match self.arena.factor(component.factors[*at]) {
                FactorNode::Sum(parts) => parts.len(),
                FactorNode::Polynomial(p) => p.len(),
                _ => 0,
            };
            let mut others = component.factors.clone();
            others.remove(*at);
            parts > 1 && {
                let apart = separate(&self.arena, component.clauses.clone(), others, component.variables.clone());
                apart.len() > 1
            }
        })?;
        let parts: Vec<FactorId> = match self.arena.factor(component.factors[at]).clone() {
            FactorNode::Sum(parts) => parts.to_vec(),
            FactorNode::Polynomial(p) => {
                let variables: Vec<Var> = p.variables().to_vec();
                let terms = p.aligned(&variables).ok()?;
                let term = |(exponents, c)| Polynomial::from_terms(&variables, [(exponents, c)]).ok();
                let terms = terms.into_iter().map(term).collect::<Option<Vec<_>>>()?;
                terms.into_iter().map(|term| self.arena.polynomial(term)).collect()
            }
            _ => return None,
        };
        let case = |part: FactorId| {
            let mut component = component.clone();
            component.factors[at] = part;
            Assumed { component, known: Vec::new() }
        };
        Some(parts.into_iter().map(case).collect())
    }

    /// Cuts a component into cells and integrates over them.
    fn cells(&mut self, component: &FactorComponent) -> Result<Amount, WmiError> {
        let shift = self.arena.boolean_count();
        let (booleans, reals): (Vec<u32>, Vec<u32>) = component.variables.iter().partition(|v| **v < shift);
        if reals.len() > MAX_DIMENSION {
            return Err(RegionError::TooManyVariables(reals.len()).into());
        }
        let all = &self.arena.constraint;
        let constraint = Constraint {
            formula: self.arena.formula(&component.clauses),
            reals: reals.iter().map(|v| all.reals[(v - shift) as usize].clone()).collect(),
            booleans: booleans.iter().map(|v| all.booleans[*v as usize].clone()).collect(),
        };
        let weight = self.arena.weight(&component.factors);
        match integrate_cells(&constraint, &weight, self.method) {
            Ok(answer) => {
                self.cells += answer.cells;
                self.exact_cells += answer.exact_cells;
                self.simplices += answer.simplices;
                Ok(answer.into())
            }
            Err(WmiError::Unbounded(ray)) => {
                // The direction in the coordinates of the whole problem.
                let along = |var: &Var| {
                    let at = ray.variables.iter().position(|own| own == var);
                    at.map_or(Rational::ZERO, |at| ray.direction[at].clone())
                };
                let direction = all.reals.iter().map(along).collect();
                Err(Unbounded { variables: all.reals.clone(), direction }.into())
            }
            Err(error) => Err(error),
        }
    }
}

fn product(constant: Rational, mut components: Vec<FactorComponent>) -> PendingWork {
    components.reverse();
    PendingWork::Product { pending: components, amount: Amount::Exact(constant), failed: None }
}

fn cases(component: &FactorComponent, decision: Decision) -> ComponentStep {
    let case = |value| Assumed { component: component.clone(), known: vec![(decision, value)] };
    ComponentStep::Cases([true, false].map(case).into())
}
