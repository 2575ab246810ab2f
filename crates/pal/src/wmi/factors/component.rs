//! What is left of a problem under assumptions, and its independent components.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::arena::{Arena, ClauseId, ClauseNode, Decision, FactorId, FactorNode};
use crate::formula::Var;
use crate::number::Rational;
use crate::polynomial::Polynomial;

/// A conjunction of formulas and a product of weights over some variables, to be summed and integrated over them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FactorComponent {
    /// In the order of their numbers. Single sides of hyperplanes are among them.
    pub clauses: Vec<ClauseId>,
    pub factors: Vec<FactorId>,
    /// In order.
    pub variables: Vec<u32>,
}

/// A component with further assumptions.
pub(super) struct Assumed {
    pub component: FactorComponent,
    pub known: Vec<(Decision, bool)>,
}

/// A constant times independent components.
pub(super) struct Factored {
    pub constant: Rational,
    pub components: Vec<FactorComponent>,
}

/// The ends of a real variable, as far as single bounds say.
#[derive(Clone, Default)]
pub(super) struct Ends {
    pub low: Option<Rational>,
    pub high: Option<Rational>,
}

impl Ends {
    /// Takes a bound into account.
    fn cut(&mut self, value: Rational, below: bool) {
        let end = if below { &mut self.high } else { &mut self.low };
        let tighter = end.as_ref().is_none_or(|old| if below { &value < old } else { &value > old });
        if tighter {
            *end = Some(value);
        }
    }

    fn has_no_length(&self) -> bool {
        matches!((&self.low, &self.high), (Some(low), Some(high)) if low >= high)
    }
}

/// The bounds that the sides of hyperplanes give.
pub(super) fn ends(arena: &Arena, sides: impl IntoIterator<Item = (Decision, bool)>) -> HashMap<u32, Ends> {
    let mut ends: HashMap<u32, Ends> = HashMap::new();
    for (decision, below) in sides {
        if let Some((real, value)) = arena.plane(decision).and_then(|plane| plane.threshold()) {
            ends.entry(real).or_default().cut(value, below);
        }
    }
    ends
}

/// The side of a hyperplane on which the whole box lies, if it lies on one.
fn side_of_box(arena: &Arena, decision: Decision, ends: &HashMap<u32, Ends>) -> Option<bool> {
    let plane = arena.plane(decision)?;
    let extreme = |highest: bool| {
        plane.terms.iter().try_fold(-&plane.offset, |sum, (real, a)| {
            let ends = ends.get(real)?;
            let end = if (a > &Rational::ZERO) == highest { &ends.high } else { &ends.low };
            Some(sum + a * end.as_ref()?)
        })
    };
    if extreme(true).is_some_and(|most| most <= Rational::ZERO) {
        return Some(true);
    }
    extreme(false).is_some_and(|least| least >= Rational::ZERO).then_some(false)
}

impl FactorComponent {
    /// The sides of hyperplanes among the formulas.
    pub fn sides<'a>(&'a self, arena: &'a Arena) -> impl Iterator<Item = (Decision, bool)> + 'a {
        self.clauses.iter().filter_map(|clause| match arena.clause(*clause) {
            ClauseNode::Literal(decision, value) => Some((*decision, *value)),
            _ => None,
        })
    }

    /// The number of real variables.
    pub fn reals(&self, arena: &Arena) -> usize {
        self.variables.iter().filter(|variable| **variable >= arena.boolean_count()).count()
    }

    /// The decisions that are still open: those of formulas that are no single sides, and those of weights.
    pub fn open_decisions(&self, arena: &Arena) -> BTreeSet<Decision> {
        let clauses = self.clauses.iter().filter(|id| !matches!(arena.clause(**id), ClauseNode::Literal(..)));
        let mut open: BTreeSet<Decision> = clauses.flat_map(|id| arena.clause_decisions(*id)).copied().collect();
        open.extend(self.factors.iter().flat_map(|id| arena.factor_decisions(*id)));
        open
    }
}

/// What is known while consequences are followed.
#[derive(Default)]
struct Narrowing {
    /// Sides of hyperplanes that bound the region.
    sides: BTreeMap<Decision, bool>,
    /// Boolean variables with a value.
    assigned: BTreeSet<u32>,
    /// What formulas and weights have not been told yet.
    fresh: HashMap<Decision, bool>,
}

impl Narrowing {
    /// Notes what holds; false if it contradicts what is known.
    fn learn(&mut self, arena: &Arena, decision: Decision, value: bool) -> bool {
        let known = match arena.plane(decision) {
            Some(_) => self.sides.insert(decision, value),
            None if self.assigned.insert(decision.0) => None,
            // Formulas that have been told the value no longer mention the variable.
            None => self.fresh.get(&decision).copied(),
        };
        if known.is_none() {
            self.fresh.insert(decision, value);
        }
        known.is_none_or(|known| known == value)
    }
}

impl Assumed {
    /// Follows the assumptions to their consequences and takes apart what is left; `None` if nothing is.
    pub fn factored(self, arena: &mut Arena) -> Option<Factored> {
        let FactorComponent { clauses: mut pending, mut factors, variables } = self.component;
        let mut narrowing = Narrowing::default();
        if !self.known.into_iter().all(|(decision, value)| narrowing.learn(arena, decision, value)) {
            return None;
        }
        let mut disjunctions: Vec<ClauseId> = Vec::new();
        let ends = loop {
            while let Some(id) = pending.pop() {
                match arena.clause(id) {
                    ClauseNode::Constant(true) => {}
                    ClauseNode::Constant(false) => return None,
                    ClauseNode::Junction(true, operands) => pending.extend_from_slice(operands),
                    ClauseNode::Junction(false, _) => disjunctions.push(id),
                    ClauseNode::Literal(decision, value) => {
                        if !narrowing.learn(arena, *decision, *value) {
                            return None;
                        }
                    }
                }
            }
            let ends = ends(arena, narrowing.sides.iter().map(|(d, below)| (*d, *below)));
            if ends.values().any(Ends::has_no_length) {
                return None;
            }
            if narrowing.fresh.is_empty() {
                // The box may decide more: `x <= 2` where `x <= 1` is known.
                let mentioned = disjunctions.iter().flat_map(|id| arena.clause_decisions(*id));
                let mentioned = mentioned.chain(factors.iter().flat_map(|id| arena.factor_decisions(*id)));
                for decision in mentioned.copied().collect::<BTreeSet<_>>() {
                    if let Some(below) = side_of_box(arena, decision, &ends) {
                        narrowing.fresh.insert(decision, below);
                    }
                }
            }
            if narrowing.fresh.is_empty() {
                break ends;
            }
            arena.assume(&mut disjunctions, &mut factors, &std::mem::take(&mut narrowing.fresh));
            pending.append(&mut disjunctions);
        };
        let mut clauses = disjunctions;
        for (decision, below) in narrowing.sides {
            // Of several bounds the tightest one counts, and hyperplanes that do not reach into the box do not.
            let needed = match arena.plane(decision).and_then(|plane| plane.threshold()) {
                Some((real, value)) => {
                    let ends = ends.get(&real)?;
                    (if below { &ends.high } else { &ends.low }).as_ref() == Some(&value)
                }
                None => match side_of_box(arena, decision, &ends) {
                    Some(side) if side != below => return None,
                    side => side.is_none(),
                },
            };
            if needed {
                clauses.push(arena.literal(decision, below));
            }
        }
        let (mut constant, factors) = simple_factors(arena, factors)?;
        let variables: Vec<u32> = variables.into_iter().filter(|v| !narrowing.assigned.contains(v)).collect();
        let mut components = separate(arena, clauses, factors, variables);
        components.retain(|component| {
            // A Boolean variable that nothing depends on counts twice. A real one is a component without bounds.
            let free = component.clauses.is_empty()
                && component.factors.is_empty()
                && component.variables.iter().all(|v| *v < arena.boolean_count());
            if free {
                constant *= Rational::from(2);
            }
            !free
        });
        Some(Factored { constant, components })
    }
}

/// A product as a constant and factors over as few variables as is seen at once: monomials fall apart into powers.
/// `None` if it is zero.
fn simple_factors(arena: &mut Arena, mut pending: Vec<FactorId>) -> Option<(Rational, Vec<FactorId>)> {
    let (mut constant, mut factors) = (Rational::ONE, Vec::new());
    let mut powers: BTreeMap<Var, u32> = BTreeMap::new();
    while let Some(id) = pending.pop() {
        match arena.factor(id) {
            FactorNode::Product(parts) => pending.extend_from_slice(parts),
            FactorNode::Polynomial(p) if p.is_zero() => return None,
            FactorNode::Polynomial(p) if p.len() == 1 => {
                for (monomial, coefficient) in p.terms() {
                    constant *= coefficient;
                    for (var, exponent) in monomial {
                        *powers.entry(var.clone()).or_default() += u32::from(exponent);
                    }
                }
            }
            _ => factors.push(id),
        }
    }
    for (var, exponent) in powers {
        let single = Polynomial::var(&var);
        match single.pow(exponent) {
            Ok(power) => factors.push(arena.polynomial(power)),
            // Beyond the largest degree: the integrators say so.
            Err(_) => {
                let single = arena.polynomial(single);
                factors.extend(std::iter::repeat_n(single, exponent as usize));
            }
        }
    }
    factors.sort_unstable();
    Some((constant, factors))
}

/// Sorts formulas and weights into groups that share no variable.
pub(super) fn separate(
    arena: &Arena,
    clauses: Vec<ClauseId>,
    factors: Vec<FactorId>,
    variables: Vec<u32>,
) -> Vec<FactorComponent> {
    let mut groups = Groups::new(&variables);
    for id in &clauses {
        groups.join(arena.clause_variables(*id));
    }
    for id in &factors {
        groups.join(arena.factor_variables(*id));
    }
    // The first variable of a group stands for it; components come in the order of their first variables.
    let mut components: BTreeMap<u32, FactorComponent> = BTreeMap::new();
    for variable in variables {
        let empty = || FactorComponent { clauses: Vec::new(), factors: Vec::new(), variables: Vec::new() };
        components.entry(groups.first(variable)).or_insert_with(empty).variables.push(variable);
    }
    for id in clauses {
        if let Some(variable) = arena.clause_variables(id).next()
            && let Some(component) = components.get_mut(&groups.first(variable))
        {
            component.clauses.push(id);
        }
    }
    for id in factors {
        if let Some(variable) = arena.factor_variables(id).next()
            && let Some(component) = components.get_mut(&groups.first(variable))
        {
            component.factors.push(id);
        }
    }
    let mut components: Vec<FactorComponent> = components.into_values().collect();
    for component in &mut components {
        component.clauses.sort_unstable();
        component.factors.sort_unstable();
    }
    components
}

/// Disjoint sets of variables, each known by its smallest one.
pub(super) struct Groups(HashMap<u32, u32>);

impl Groups {
    pub fn new(variables: &[u32]) -> Groups {
        Groups(variables.iter().map(|v| (*v, *v)).collect())
    }

    pub fn first(&mut self, variable: u32) -> u32 {
        let mut at = variable;
        while let Some(next) = self.0.get(&at).copied().filter(|next| *next != at) {
            let further = self.0.get(&next).copied().unwrap_or(next);
            self.0.insert(at, further);
            at = further;
        }
        at
    }

    pub fn join(&mut self, variables: impl Iterator<Item = u32>) {
        let mut one: Option<u32> = None;
        for variable in variables {
            let other = self.first(variable);
            let first = one.map_or(other, |one| one.min(other));
            self.0.insert(other, first);
            if let Some(one) = one {
                self.0.insert(one, first);
            }
            one = Some(first);
        }
    }
}
