//! The formula and the weight of a problem as one table of nodes, in which equal nodes are one node.
//!
//! Formulas are in negation normal form over decisions: Boolean variables and sides of hyperplanes. A node comes after
//! its operands, so that passes over the table need no recursion. Under assumptions a node becomes a smaller one, which
//! is looked up before it is made: parts of a problem that are equal have equal numbers, however they came about.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use crate::formula::{Connective, Constraint, Formula, Node, Plane, Relation, Var};
use crate::number::Rational;
use crate::polynomial::Polynomial;
use crate::wmi::weight::{SymbolicWeight, Weight};

/// A Boolean variable or a hyperplane: something that is decided one way or the other. Boolean variables come first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Decision(pub u32);

/// A node of a formula.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct ClauseId(u32);

/// A node of a weight.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct FactorId(u32);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum ClauseNode {
    Constant(bool),
    /// The Boolean variable has this value, or the point is below (`true`) or above the hyperplane.
    Literal(Decision, bool),
    /// A conjunction (`true`) or a disjunction of at least two nodes.
    Junction(bool, Box<[ClauseId]>),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum FactorNode {
    Polynomial(Polynomial),
    Sum(Box<[FactorId]>),
    Product(Box<[FactorId]>),
    Power(FactorId, u32),
    Case(ClauseId, FactorId, FactorId),
}

/// A hyperplane `sum_j a_j x_j = b` over the numbers of its real variables.
#[derive(Debug)]
pub(super) struct PlaneFacts {
    pub terms: Vec<(u32, Rational)>,
    pub offset: Rational,
    /// The hyperplane itself, for the way back to formulas.
    pub below: Formula,
}

impl PlaneFacts {
    /// The variable and the value of a hyperplane `x = c`. Its first coefficient is positive: below means `x < c`.
    pub fn threshold(&self) -> Option<(u32, Rational)> {
        match &self.terms[..] {
            [(real, a)] => Some((*real, &self.offset / a)),
            _ => None,
        }
    }
}

/// A node with the decisions below it, in order, and for weights the real variables of its polynomials.
struct NodeEntry<N> {
    node: N,
    decisions: Box<[Decision]>,
    reals: Box<[u32]>,
}

/// Nodes by number, and numbers by node.
struct NodeTable<N> {
    entries: Vec<NodeEntry<N>>,
    numbers: HashMap<N, u32>,
}

impl<N> Default for NodeTable<N> {
    fn default() -> Self {
        NodeTable { entries: Vec::new(), numbers: HashMap::new() }
    }
}

impl<N: Clone + Eq + Hash> NodeTable<N> {
    /// The number of a node, and the bytes that it takes if it is new.
    fn insert(&mut self, node: N, decisions: Vec<Decision>, reals: Vec<u32>) -> (u32, usize) {
        if let Some(number) = self.numbers.get(&node) {
            return (*number, 0);
        }
        let number = self.entries.len() as u32;
        let bytes = 2 * size_of::<N>() + size_of::<NodeEntry<N>>() + 4 * (decisions.len() + reals.len()) + 16;
        self.numbers.insert(node.clone(), number);
        self.entries.push(NodeEntry { node, decisions: decisions.into(), reals: reals.into() });
        (number, bytes)
    }
}

/// All nodes of a problem and what they are over.
pub(super) struct Arena {
    /// The variables of the problem: Boolean variables are numbered first, then real ones.
    pub constraint: Constraint,
    pub planes: Vec<PlaneFacts>,
    clauses: NodeTable<ClauseNode>,
    factors: NodeTable<FactorNode>,
    plane_of: HashMap<Plane, Decision>,
    /// An estimate of the memory that nodes take.
    pub bytes: usize,
}

/// Nested junctions of at most this many operands are joined.
const JOINED: usize = 32;

impl Arena {
    /// An empty table over the variables of a constraint.
    pub fn new(constraint: &Constraint) -> Arena {
        Arena {
            constraint: constraint.clone(),
            planes: Vec::new(),
            clauses: NodeTable::default(),
            factors: NodeTable::default(),
            plane_of: HashMap::new(),
            bytes: 0,
        }
    }

    pub fn boolean_count(&self) -> u32 {
        self.constraint.booleans.len() as u32
    }

    /// The hyperplane of a decision; `None` for a Boolean variable.
    pub fn plane(&self, decision: Decision) -> Option<&PlaneFacts> {
        let at = decision.0.checked_sub(self.boolean_count())?;
        Some(&self.planes[at as usize])
    }

    /// The variables that a decision is about.
    pub fn variables_of(&self, decision: Decision) -> impl Iterator<Item = u32> {
        let plane = self.plane(decision);
        let boolean = plane.is_none().then_some(decision.0);
        let shift = self.boolean_count();
        boolean.into_iter().chain(plane.into_iter().flat_map(move |plane| plane.terms.iter().map(move |t| shift + t.0)))
    }

    pub fn clause(&self, id: ClauseId) -> &ClauseNode {
        &self.clauses.entries[id.0 as usize].node
    }

    pub fn factor(&self, id: FactorId) -> &FactorNode {
        &self.factors.entries[id.0 as usize].node
    }

    pub fn clause_decisions(&self, id: ClauseId) -> &[Decision] {
        &self.clauses.entries[id.0 as usize].decisions
    }

    pub fn factor_decisions(&self, id: FactorId) -> &[Decision] {
        &self.factors.entries[id.0 as usize].decisions
    }

    /// The variables of a formula, with repetitions.
    pub fn clause_variables(&self, id: ClauseId) -> impl Iterator<Item = u32> {
        self.clause_decisions(id).iter().flat_map(|d| self.variables_of(*d))
    }

    /// The variables of a weight, with repetitions.
    pub fn factor_variables(&self, id: FactorId) -> impl Iterator<Item = u32> {
        let reals = self.factors.entries[id.0 as usize].reals.iter().map(|real| self.boolean_count() + real);
        reals.chain(self.factor_decisions(id).iter().flat_map(|d| self.variables_of(*d)))
    }

    /// The real variables in the polynomials of a weight.
    pub fn polynomial_reals(&self, id: FactorId) -> impl Iterator<Item = u32> {
        self.factors.entries[id.0 as usize].reals.iter().copied()
    }

    /// The number of a real variable among those of the constraint.
    fn real(&self, var: &Var) -> Option<u32> {
        self.constraint.reals.iter().position(|other| other == var).map(|at| at as u32)
    }

    fn push_clause(&mut self, node: ClauseNode) -> ClauseId {
        let mut decisions: Vec<Decision> = match &node {
            ClauseNode::Constant(_) => Vec::new(),
            ClauseNode::Literal(decision, _) => vec![*decision],
            ClauseNode::Junction(_, operands) => {
                operands.iter().flat_map(|operand| self.clause_decisions(*operand)).copied().collect()
            }
        };
        decisions.sort_unstable();
        decisions.dedup();
        let operands = if let ClauseNode::Junction(_, operands) = &node { 8 * operands.len() } else { 0 };
        let (number, bytes) = self.clauses.insert(node, decisions, Vec::new());
        self.bytes += if bytes > 0 { bytes + operands } else { 0 };
        ClauseId(number)
    }

    pub fn constant(&mut self, value: bool) -> ClauseId {
        self.push_clause(ClauseNode::Constant(value))
    }

    pub fn literal(&mut self, decision: Decision, value: bool) -> ClauseId {
        self.push_clause(ClauseNode::Literal(decision, value))
    }

    /// A conjunction or disjunction in its normal form: without constants, repetitions and contradicting literals.
    pub fn junction(&mut self, conjunction: bool, operands: impl IntoIterator<Item = ClauseId>) -> ClauseId {
        let mut list: Vec<ClauseId> = Vec::new();
        for operand in operands {
            match self.clause(operand) {
                ClauseNode::Constant(value) if *value == conjunction => {}
                ClauseNode::Constant(_) => return operand,
                ClauseNode::Junction(kind, inner) if *kind == conjunction && inner.len() <= JOINED => {
                    list.extend_from_slice(inner);
                }
                _ => list.push(operand),
            }
        }
        list.sort_unstable();
        list.dedup();
        let mut seen = HashMap::new();
        for operand in &list {
            if let ClauseNode::Literal(decision, value) = self.clause(*operand)
                && seen.insert(*decision, *value).is_some_and(|other| other != *value)
            {
                return self.constant(!conjunction);
            }
        }
        match list[..] {
            [] => self.constant(conjunction),
            [only] => only,
            _ => self.push_clause(ClauseNode::Junction(conjunction, list.into())),
        }
    }

    /// Adds a formula. `None` if it uses a variable that the constraint does not declare.
    pub fn add_formula(&mut self, formula: &Formula) -> Option<ClauseId> {
        let booleans: HashMap<Var, u32> = self.constraint.booleans.iter().cloned().zip(0..).collect();
        // Every node together with its negation.
        let root = formula.fold(|node, children: &[Option<(ClauseId, ClauseId)>]| {
            let children: Vec<(ClauseId, ClauseId)> = children.iter().copied().collect::<Option<_>>()?;
            Some(match node.node() {
                Node::Constant(value) => (self.constant(*value), self.constant(!value)),
                Node::Bool(var) => {
                    let decision = Decision(*booleans.get(var)?);
                    (self.literal(decision, true), self.literal(decision, false))
                }
                // Equalities have no volume.
                Node::Atom(atom) if atom.relation() == Relation::Eq => (self.constant(false), self.constant(true)),
                Node::Atom(atom) => {
                    let decision = self.add_plane(atom.plane())?;
                    (self.literal(decision, true), self.literal(decision, false))
                }
                Node::Connective(connective, _) => self.connect(*connective, &children),
            })
        });
        root.map(|(holds, _)| holds)
    }

    fn connect(&mut self, connective: Connective, children: &[(ClauseId, ClauseId)]) -> (ClauseId, ClauseId) {
        let either = |arena: &mut Arena, pairs: [(ClauseId, ClauseId); 2]| {
            let options = pairs.map(|(a, b)| arena.junction(true, [a, b]));
            arena.junction(false, options)
        };
        match (connective, children) {
            (Connective::Not, [(holds, fails), ..]) => (*fails, *holds),
            (Connective::Iff, [(a, not_a), (b, not_b), ..]) => {
                (either(self, [(*a, *b), (*not_a, *not_b)]), either(self, [(*a, *not_b), (*not_a, *b)]))
            }
            (Connective::Ite, [(c, not_c), (a, not_a), (b, not_b), ..]) => {
                (either(self, [(*c, *a), (*not_c, *b)]), either(self, [(*c, *not_a), (*not_c, *not_b)]))
            }
            (_, children) => {
                let conjunction = connective == Connective::And;
                let holds = self.junction(conjunction, children.iter().map(|child| child.0));
                (holds, self.junction(!conjunction, children.iter().map(|child| child.1)))
            }
        }
    }

    fn add_plane(&mut self, plane: &Plane) -> Option<Decision> {
        if let Some(known) = self.plane_of.get(plane) {
            return Some(*known);
        }
        let term = |(var, a): &(Var, _)| Some((self.real(var)?, Rational::from(Clone::clone(a))));
        let terms: Vec<(u32, Rational)> = plane.normal().iter().map(term).collect::<Option<_>>()?;
        let below = Formula::compare(&plane.to_linear(), Relation::Le);
        let decision = Decision(self.boolean_count() + self.planes.len() as u32);
        self.planes.push(PlaneFacts { terms, offset: Rational::from(plane.offset().clone()), below });
        self.plane_of.insert(plane.clone(), decision);
        Some(decision)
    }

    fn push_factor(&mut self, node: FactorNode) -> FactorId {
        let (mut decisions, mut reals) = (Vec::new(), Vec::new());
        let mut below = |id: FactorId| {
            let entry = &self.factors.entries[id.0 as usize];
            decisions.extend_from_slice(&entry.decisions);
            reals.extend_from_slice(&entry.reals);
        };
        let mut own = 0;
        match &node {
            FactorNode::Polynomial(p) => {
                reals = p.variables().iter().filter_map(|var| self.real(var)).collect();
                own = 64 * p.len();
            }
            FactorNode::Sum(parts) | FactorNode::Product(parts) => parts.iter().for_each(|part| below(*part)),
            FactorNode::Power(base, _) => below(*base),
            FactorNode::Case(condition, yes, no) => {
                below(*yes);
                below(*no);
                decisions.extend_from_slice(self.clause_decisions(*condition));
            }
        }
        decisions.sort_unstable();
        decisions.dedup();
        reals.sort_unstable();
        reals.dedup();
        let (number, bytes) = self.factors.insert(node, decisions, reals);
        self.bytes += if bytes > 0 { bytes + own } else { 0 };
        FactorId(number)
    }

    pub fn polynomial(&mut self, polynomial: Polynomial) -> FactorId {
        self.push_factor(FactorNode::Polynomial(polynomial))
    }

    /// The value of a node that is a polynomial.
    pub fn as_polynomial(&self, id: FactorId) -> Option<&Polynomial> {
        match self.factor(id) {
            FactorNode::Polynomial(p) => Some(p),
            _ => None,
        }
    }

    pub fn sum(&mut self, parts: impl IntoIterator<Item = FactorId>) -> FactorId {
        let (mut known, mut open) = (Polynomial::zero(), Vec::new());
        for part in parts {
            match self.factor(part) {
                FactorNode::Polynomial(p) => known = known + p.clone(),
                FactorNode::Sum(inner) => open.extend_from_slice(inner),
                _ => open.push(part),
            }
        }
        if open.is_empty() {
            return self.polynomial(known);
        }
        if !known.is_zero() {
            open.push(self.polynomial(known));
        }
        open.sort_unstable();
        if let [only] = open[..] { only } else { self.push_factor(FactorNode::Sum(open.into())) }
    }

    /// A product; only constants are multiplied.
    fn product(&mut self, parts: impl IntoIterator<Item = FactorId>) -> FactorId {
        let (mut constant, mut open) = (Rational::ONE, Vec::new());
        for part in parts {
            let inner = match self.factor(part) {
                FactorNode::Product(inner) => inner.to_vec(),
                _ => vec![part],
            };
            for part in inner {
                match self.as_polynomial(part).and_then(Polynomial::as_constant) {
                    Some(value) => constant *= value,
                    None => open.push(part),
                }
            }
        }
        if open.is_empty() || constant.is_zero() {
            return self.polynomial(Polynomial::constant(constant));
        }
        if !constant.is_one() {
            open.push(self.polynomial(Polynomial::constant(constant)));
        }
        open.sort_unstable();
        if let [only] = open[..] { only } else { self.push_factor(FactorNode::Product(open.into())) }
    }

    fn power(&mut self, base: FactorId, exponent: u32) -> FactorId {
        match self.as_polynomial(base).map(|p| p.pow(exponent)) {
            Some(Ok(power)) => self.polynomial(power),
            _ => self.push_factor(FactorNode::Power(base, exponent)),
        }
    }

    fn case(&mut self, condition: ClauseId, yes: FactorId, no: FactorId) -> FactorId {
        match self.clause(condition) {
            ClauseNode::Constant(value) => {
                if *value {
                    yes
                } else {
                    no
                }
            }
            _ if yes == no => yes,
            _ => self.push_factor(FactorNode::Case(condition, yes, no)),
        }
    }

    /// Adds a weight. `None` if it uses a variable that the constraint does not declare, or failed when it was made.
    pub fn add_weight(&mut self, weight: &SymbolicWeight) -> Option<FactorId> {
        let list = |arena: &mut Arena, parts: &[std::sync::Arc<SymbolicWeight>]| {
            parts.iter().map(|part| arena.add_weight(part)).collect::<Option<Vec<_>>>()
        };
        Some(match weight {
            Weight::Failed(_) => return None,
            Weight::Polynomial(p) => {
                p.variables().iter().map(|var| self.real(var)).collect::<Option<Vec<_>>>()?;
                self.polynomial(p.clone())
            }
            Weight::Sum(parts) => {
                let parts = list(self, parts)?;
                self.sum(parts)
            }
            Weight::Product(parts) => {
                let parts = list(self, parts)?;
                self.product(parts)
            }
            Weight::Power(base, exponent) => {
                let base = self.add_weight(base)?;
                self.power(base, *exponent)
            }
            Weight::Ite(condition, yes, no) => {
                let condition = self.add_formula(condition)?;
                let (yes, no) = (self.add_weight(yes)?, self.add_weight(no)?);
                self.case(condition, yes, no)
            }
        })
    }

    /// What becomes of formulas and weights under assumptions.
    pub fn assume(&mut self, clauses: &mut [ClauseId], factors: &mut [FactorId], known: &HashMap<Decision, bool>) {
        let touched = |decisions: &[Decision]| {
            if known.len() < decisions.len() {
                known.keys().any(|d| decisions.binary_search(d).is_ok())
            } else {
                decisions.iter().any(|d| known.contains_key(d))
            }
        };
        // Nodes come after their operands: going through them in the order of their numbers needs no recursion.
        let (mut weights, mut formulas) = (Vec::new(), Vec::new());
        let (mut seen, mut stack) = (HashSet::new(), factors.to_vec());
        let mut conditions = clauses.to_vec();
        while let Some(id) = stack.pop() {
            if !touched(self.factor_decisions(id)) || !seen.insert(id) {
                continue;
            }
            weights.push(id);
            match self.factor(id) {
                FactorNode::Polynomial(_) => {}
                FactorNode::Sum(parts) | FactorNode::Product(parts) => stack.extend_from_slice(parts),
                FactorNode::Power(base, _) => stack.push(*base),
                FactorNode::Case(condition, yes, no) => {
                    conditions.push(*condition);
                    stack.extend([*yes, *no]);
                }
            }
        }
        let mut seen = HashSet::new();
        while let Some(id) = conditions.pop() {
            if !touched(self.clause_decisions(id)) || !seen.insert(id) {
                continue;
            }
            formulas.push(id);
            if let ClauseNode::Junction(_, operands) = self.clause(id) {
                conditions.extend_from_slice(operands);
            }
        }
        formulas.sort_unstable();
        weights.sort_unstable();
        let mut new_clauses: HashMap<ClauseId, ClauseId> = HashMap::new();
        for id in formulas {
            let new = match self.clause(id).clone() {
                ClauseNode::Constant(_) => id,
                ClauseNode::Literal(decision, value) => match known.get(&decision) {
                    Some(decided) => self.constant(*decided == value),
                    None => id,
                },
                ClauseNode::Junction(kind, operands) => {
                    self.junction(kind, operands.iter().map(|o| *new_clauses.get(o).unwrap_or(o)))
                }
            };
            new_clauses.insert(id, new);
        }
        let mut new_factors: HashMap<FactorId, FactorId> = HashMap::new();
        for id in weights {
            let moved = |part: &FactorId| *new_factors.get(part).unwrap_or(part);
            let new = match self.factor(id).clone() {
                FactorNode::Polynomial(_) => id,
                FactorNode::Sum(parts) => self.sum(parts.iter().map(moved)),
                FactorNode::Product(parts) => self.product(parts.iter().map(moved)),
                FactorNode::Power(base, exponent) => self.power(moved(&base), exponent),
                FactorNode::Case(condition, yes, no) => {
                    let condition = *new_clauses.get(&condition).unwrap_or(&condition);
                    self.case(condition, moved(&yes), moved(&no))
                }
            };
            new_factors.insert(id, new);
        }
        clauses.iter_mut().for_each(|id| *id = *new_clauses.get(id).unwrap_or(id));
        factors.iter_mut().for_each(|id| *id = *new_factors.get(id).unwrap_or(id));
    }

    /// The way back: the conjunction of nodes as a formula.
    pub fn formula(&self, clauses: &[ClauseId]) -> Formula {
        let mut reached = HashSet::new();
        let mut stack = clauses.to_vec();
        while let Some(id) = stack.pop() {
            if reached.insert(id)
                && let ClauseNode::Junction(_, operands) = self.clause(id)
            {
                stack.extend_from_slice(operands);
            }
        }
        let mut order: Vec<ClauseId> = reached.into_iter().collect();
        order.sort_unstable();
        let mut made: HashMap<ClauseId, Formula> = HashMap::new();
        for id in order {
            let formula = match self.clause(id) {
                ClauseNode::Constant(value) => Formula::constant(*value),
                ClauseNode::Literal(decision, value) => {
                    let positive = match self.plane(*decision) {
                        Some(plane) => plane.below.clone(),
                        None => Formula::from(self.constraint.booleans[decision.0 as usize].clone()),
                    };
                    if *value { positive } else { !positive }
                }
                ClauseNode::Junction(true, operands) => Formula::all(operands.iter().map(|o| made[o].clone())),
                ClauseNode::Junction(false, operands) => Formula::any(operands.iter().map(|o| made[o].clone())),
            };
            made.insert(id, formula);
        }
        Formula::all(clauses.iter().map(|id| made[id].clone()))
    }

    /// The way back: the product of nodes as a weight.
    pub fn weight(&self, factors: &[FactorId]) -> std::sync::Arc<SymbolicWeight> {
        let one = |id: &FactorId| match self.factor(*id) {
            FactorNode::Polynomial(p) => Weight::constant(p.clone()),
            FactorNode::Sum(parts) => Weight::sum(parts.iter().map(|part| self.weight(&[*part]))),
            FactorNode::Product(parts) => self.weight(parts),
            FactorNode::Power(base, exponent) => Weight::power(self.weight(&[*base]), *exponent),
            FactorNode::Case(condition, yes, no) => {
                Weight::ite(self.formula(&[*condition]), self.weight(&[*yes]), self.weight(&[*no]))
            }
        };
        Weight::product(factors.iter().map(one))
    }
}
