//! Real variables that interact pair by pair along a tree, integrated from the leaves to the root.
//!
//! Integrating out a leaf leaves a function of the variable that it hangs on, its message: a polynomial on every one of
//! some intervals. It is multiplied into what that variable has of its own, and so on up to the root. All numbers are
//! fractions, so the result is exact; the work grows with the number of intervals and the square of the degree, not
//! with the number of cells.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::arena::{Arena, ClauseId, ClauseNode, Decision, FactorId, FactorNode};
use super::component::{Ends, FactorComponent, Groups, ends};
use super::dense::DensePolynomial;
use crate::formula::Var;
use crate::interrupt::checkpoint;
use crate::number::Rational;
use crate::polynomial::{Polynomial, PolynomialError};

/// At most this many Boolean variables that belong to one pair of reals are summed over with it.
const MOST_BOOLEANS: usize = 8;

/// A message with more intervals than this is given up.
const MOST_INTERVALS: usize = 5_000;

/// One or two real variables, in order.
type Owner = (u32, Option<u32>);

/// What belongs to one real variable or to a pair of them.
#[derive(Default)]
struct TreePart {
    clauses: Vec<ClauseId>,
    factors: Vec<FactorId>,
    /// The number of Boolean variables that occur nowhere else.
    booleans: usize,
}

/// A component whose real variables interact pair by pair along a tree.
pub(super) struct RealTree {
    parts: HashMap<Owner, TreePart>,
    ends: HashMap<u32, (Rational, Rational)>,
    /// Every variable with the one that it hangs on; children come first, the root comes last.
    order: Vec<(u32, Option<u32>)>,
}

/// Why there is no value.
pub(super) enum TreeFailure {
    TooManyIntervals,
    Polynomial(PolynomialError),
}

impl From<PolynomialError> for TreeFailure {
    fn from(error: PolynomialError) -> Self {
        TreeFailure::Polynomial(error)
    }
}

/// A function of one variable: polynomials between knots.
struct Message {
    knots: Vec<Rational>,
    pieces: Vec<DensePolynomial>,
}

impl Message {
    fn one((low, high): &(Rational, Rational)) -> Message {
        let pieces = vec![DensePolynomial::new(&[Rational::ONE])];
        Message { knots: vec![low.clone(), high.clone()], pieces }
    }

    /// The piece in which a point that is no knot lies.
    fn piece(&self, at: &Rational) -> usize {
        self.knots.partition_point(|knot| knot < at).clamp(1, self.pieces.len()) - 1
    }

    fn times(&self, other: &Message) -> Message {
        let mut knots: Vec<Rational> = self.knots.iter().chain(&other.knots).cloned().collect();
        knots.sort_unstable();
        knots.dedup();
        let piece = |pair: &[Rational]| {
            let middle = between(&pair[0], &pair[1]);
            self.pieces[self.piece(&middle)].times(&other.pieces[other.piece(&middle)])
        };
        let pieces = knots.windows(2).map(piece).collect();
        Message { knots, pieces }.joined()
    }

    /// Joins neighbouring pieces that are the same polynomial.
    fn joined(self) -> Message {
        let mut knots = self.knots.into_iter();
        let mut joined = Message { knots: knots.next().into_iter().collect(), pieces: Vec::new() };
        for (piece, end) in self.pieces.into_iter().zip(knots) {
            if joined.pieces.last() == Some(&piece) {
                joined.knots.pop();
            } else {
                joined.pieces.push(piece);
            }
            joined.knots.push(end);
        }
        joined
    }
}

fn between(a: &Rational, b: &Rational) -> Rational {
    (a + b) / Rational::from(2)
}

impl RealTree {
    /// The tree of a component with bounds for all its real variables; `None` if it is none.
    pub fn new(arena: &Arena, component: &FactorComponent) -> Option<RealTree> {
        let shift = arena.boolean_count();
        let sort = |variables: &mut dyn Iterator<Item = u32>| {
            let (mut booleans, mut reals) = (BTreeSet::new(), BTreeSet::new());
            for v in variables {
                match v.checked_sub(shift) {
                    Some(real) => reals.insert(real),
                    None => booleans.insert(v),
                };
            }
            (booleans, reals)
        };
        let clauses: Vec<_> = component.clauses.iter().map(|id| sort(&mut arena.clause_variables(*id))).collect();
        let factors: Vec<_> = component.factors.iter().map(|id| sort(&mut arena.factor_variables(*id))).collect();
        // Boolean variables that occur together belong to the same real variables.
        let mut groups = Groups::new(&component.variables);
        for (booleans, _) in clauses.iter().chain(&factors) {
            groups.join(booleans.iter().copied());
        }
        let mut reals_of: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for (booleans, reals) in clauses.iter().chain(&factors) {
            if let Some(first) = booleans.first() {
                reals_of.entry(groups.first(*first)).or_default().extend(reals);
            }
        }
        let mut owner = |(booleans, reals): &(BTreeSet<u32>, BTreeSet<u32>)| {
            let reals = booleans.first().map_or(reals, |first| &reals_of[&groups.first(*first)]);
            let mut list = reals.iter();
            match (list.next(), list.next(), list.next()) {
                (Some(real), other, None) => Some((*real, other.copied())),
                _ => None,
            }
        };
        let mut parts: HashMap<Owner, TreePart> = HashMap::new();
        let mut places: BTreeMap<u32, Owner> = BTreeMap::new();
        for (id, sorted) in component.clauses.iter().zip(&clauses) {
            let owner = owner(sorted)?;
            sorted.0.iter().for_each(|boolean| _ = places.insert(*boolean, owner));
            parts.entry(owner).or_default().clauses.push(*id);
        }
        for (id, sorted) in component.factors.iter().zip(&factors) {
            let owner = owner(sorted)?;
            sorted.0.iter().for_each(|boolean| _ = places.insert(*boolean, owner));
            parts.entry(owner).or_default().factors.push(*id);
        }
        for owner in places.values() {
            parts.entry(*owner).or_default().booleans += 1;
        }
        if parts.values().any(|part| part.booleans > MOST_BOOLEANS) {
            return None;
        }
        let box_ends = ends(arena, component.sides(arena));
        let reals: Vec<u32> = component.variables.iter().filter_map(|v| v.checked_sub(shift)).collect();
        let bounded = |real: &u32| match box_ends.get(real) {
            Some(Ends { low: Some(low), high: Some(high) }) => Some((*real, (low.clone(), high.clone()))),
            _ => None,
        };
        let ends = reals.iter().map(bounded).collect::<Option<_>>()?;
        let order = hang(&reals, parts.keys())?;
        Some(RealTree { parts, ends, order })
    }

    /// The integral, and the number of polynomials that were integrated.
    pub fn value(&self, arena: &mut Arena) -> Result<(Rational, usize), TreeFailure> {
        let mut messages: HashMap<u32, Message> = HashMap::new();
        let mut count = 0;
        for (real, parent) in &self.order {
            let own = messages.remove(real).unwrap_or_else(|| Message::one(&self.ends[real]));
            let message = self.integrate_out(arena, *real, *parent, &own, &mut count)?;
            let Some(parent) = parent else { return Ok((message.pieces[0].constant(), count)) };
            let product = match messages.remove(parent) {
                Some(other) => other.times(&message),
                None => message,
            };
            messages.insert(*parent, product);
        }
        Ok((Rational::ZERO, count))
    }

    /// The integral over one variable as a function of its parent. Without a parent it is a constant on an interval.
    fn integrate_out(
        &self,
        arena: &mut Arena,
        real: u32,
        parent: Option<u32>,
        own: &Message,
        count: &mut usize,
    ) -> Result<Message, TreeFailure> {
        let owners = [Some((real, None)), parent.map(|parent| (real.min(parent), Some(real.max(parent))))];
        let parts: Vec<&TreePart> = owners.iter().flatten().filter_map(|owner| self.parts.get(owner)).collect();
        let mut pair = PairIntegrand::new(arena, real, parent, &parts);
        let (low, high) = &self.ends[&real];
        let unit = (Rational::ZERO, Rational::ONE);
        let (from, to) = parent.map_or(&unit, |parent| &self.ends[&parent]);
        let inside = |value: &Rational, low: &Rational, high: &Rational| low < value && value < high;
        // Where the variable may start or stop being integrated: constants and lines over the parent.
        let thresholds = pair.planes.iter().filter_map(|plane| plane.constant()).filter(|c| inside(c, low, high));
        let constants: BTreeSet<Rational> = thresholds.chain(own.knots.iter().cloned()).collect();
        let lines: BTreeSet<BoundaryLine> = pair.planes.iter().filter_map(|plane| plane.line()).collect();
        let constant_lines = constants.into_iter().map(|c| BoundaryLine { slope: Rational::ZERO, shift: c });
        let boundaries: Vec<BoundaryLine> = constant_lines.chain(lines).collect();
        // Where the order of these changes.
        let mut stops: BTreeSet<Rational> = [from.clone(), to.clone()].into();
        stops.extend(pair.planes.iter().filter_map(|plane| plane.parent_constant()).filter(|c| inside(c, from, to)));
        for (k, line) in boundaries.iter().enumerate() {
            checkpoint();
            let crossings = boundaries[k + 1..].iter().filter_map(|other| line.meets(other));
            stops.extend(crossings.filter(|c| inside(c, from, to)));
            if stops.len() > MOST_INTERVALS {
                return Err(TreeFailure::TooManyIntervals);
            }
        }
        let knots: Vec<Rational> = stops.into_iter().collect();
        let mut pieces = Vec::with_capacity(knots.len());
        let mut primitives =
            Primitives { own, boundaries: &boundaries, known: HashMap::new(), composed: HashMap::new() };
        for ends in knots.windows(2) {
            checkpoint();
            let at = between(&ends[0], &ends[1]);
            let values = boundaries.iter().map(|line| line.at(&at)).zip(0usize..);
            let mut sorted: Vec<(Rational, usize)> =
                values.filter(|(value, _)| low <= value && value <= high).collect();
            sorted.sort_unstable();
            sorted.dedup_by(|a, b| a.0 == b.0);
            let mut sum = DensePolynomial::zero();
            let mut run: Option<SlabRun> = None;
            for slab in sorted.windows(2) {
                let middle = between(&slab[0].0, &slab[1].0);
                let integrand = pair.at(arena, &middle, &at)?;
                let piece = own.piece(&middle);
                match &mut run {
                    Some(run) if run.integrand == integrand && run.piece == piece => run.to = slab[1].1,
                    _ => {
                        let next = SlabRun { integrand, piece, from: slab[0].1, to: slab[1].1 };
                        if let Some(run) = run.replace(next) {
                            sum = sum.plus(&primitives.integral(&pair, &run));
                            *count += 1;
                        }
                    }
                }
            }
            if let Some(run) = run {
                sum = sum.plus(&primitives.integral(&pair, &run));
                *count += 1;
            }
            pieces.push(sum);
        }
        Ok(Message { knots, pieces }.joined())
    }
}

/// Hangs the variables on a root along the pairs, children first; `None` if the pairs are no tree.
fn hang<'o>(reals: &[u32], owners: impl Iterator<Item = &'o Owner>) -> Option<Vec<(u32, Option<u32>)>> {
    let mut neighbours: BTreeMap<u32, BTreeSet<u32>> = reals.iter().map(|real| (*real, BTreeSet::new())).collect();
    let mut edges = 0;
    for (a, b) in owners {
        if let Some(b) = b {
            edges += 1;
            neighbours.get_mut(a)?.insert(*b);
            neighbours.get_mut(b)?.insert(*a);
        }
    }
    if edges + 1 != reals.len() {
        return None;
    }
    // Of the variables with the most neighbours the first: leaves stay leaves.
    let root = *neighbours.iter().max_by_key(|(real, around)| (around.len(), std::cmp::Reverse(**real)))?.0;
    let mut order = vec![(root, None)];
    let mut at = 0;
    while at < order.len() {
        let (real, parent) = order[at];
        order.extend(neighbours[&real].iter().filter(|next| Some(**next) != parent).map(|next| (*next, Some(real))));
        at += 1;
        if order.len() > reals.len() {
            return None;
        }
    }
    order.reverse();
    (order.len() == reals.len()).then_some(order)
}

/// The line `x = slope * t + shift` over the parent `t`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct BoundaryLine {
    slope: Rational,
    shift: Rational,
}

impl BoundaryLine {
    fn at(&self, t: &Rational) -> Rational {
        if self.slope.is_zero() { self.shift.clone() } else { &self.slope * t + &self.shift }
    }

    fn meets(&self, other: &BoundaryLine) -> Option<Rational> {
        let slope = &self.slope - &other.slope;
        (!slope.is_zero()).then(|| (&other.shift - &self.shift) / slope)
    }
}

/// A hyperplane `a x + b t = c` of the variable and its parent.
struct PairPlane {
    decision: Decision,
    a: Rational,
    b: Rational,
    c: Rational,
}

impl PairPlane {
    fn constant(&self) -> Option<Rational> {
        (self.b.is_zero() && !self.a.is_zero()).then(|| &self.c / &self.a)
    }

    fn parent_constant(&self) -> Option<Rational> {
        (self.a.is_zero() && !self.b.is_zero()).then(|| &self.c / &self.b)
    }

    fn line(&self) -> Option<BoundaryLine> {
        let slanted = !self.a.is_zero() && !self.b.is_zero();
        slanted.then(|| BoundaryLine { slope: -&self.b / &self.a, shift: &self.c / &self.a })
    }
}

/// A polynomial in the variable: per power of it the coefficient, a polynomial in the parent.
type Graded = Vec<(usize, DensePolynomial)>;

/// What is integrated over one variable, as a function of it and its parent.
struct PairIntegrand {
    clauses: Vec<ClauseId>,
    factors: Vec<FactorId>,
    booleans: usize,
    planes: Vec<PairPlane>,
    variables: [Option<Var>; 2],
    /// Polynomials by the sides of all hyperplanes, as positions in `graded`.
    known: HashMap<Vec<bool>, usize>,
    numbers: HashMap<Polynomial, usize>,
    graded: Vec<Graded>,
}

impl PairIntegrand {
    fn new(arena: &Arena, real: u32, parent: Option<u32>, parts: &[&TreePart]) -> PairIntegrand {
        let clauses: Vec<ClauseId> = parts.iter().flat_map(|part| &part.clauses).copied().collect();
        let factors: Vec<FactorId> = parts.iter().flat_map(|part| &part.factors).copied().collect();
        let mentioned = clauses.iter().flat_map(|id| arena.clause_decisions(*id));
        let mentioned = mentioned.chain(factors.iter().flat_map(|id| arena.factor_decisions(*id)));
        let decisions: BTreeSet<Decision> = mentioned.copied().collect();
        let pair_plane = |decision: Decision| {
            let plane = arena.plane(decision)?;
            let along = |wanted: Option<u32>| {
                let term = plane.terms.iter().find(|(real, _)| Some(*real) == wanted);
                term.map_or(Rational::ZERO, |(_, a)| a.clone())
            };
            Some(PairPlane { decision, a: along(Some(real)), b: along(parent), c: plane.offset.clone() })
        };
        let name = |real: u32| arena.constraint.reals[real as usize].clone();
        PairIntegrand {
            planes: decisions.into_iter().filter_map(pair_plane).collect(),
            booleans: parts.iter().map(|part| part.booleans).sum(),
            variables: [Some(name(real)), parent.map(name)],
            clauses,
            factors,
            known: HashMap::new(),
            numbers: HashMap::new(),
            graded: Vec::new(),
        }
    }

    /// The number of the polynomial that is integrated around a point on no hyperplane.
    fn at(&mut self, arena: &mut Arena, x: &Rational, t: &Rational) -> Result<usize, PolynomialError> {
        let sides: Vec<bool> = self.planes.iter().map(|plane| &plane.a * x + &plane.b * t < plane.c).collect();
        if let Some(known) = self.known.get(&sides) {
            return Ok(*known);
        }
        let decided = self.planes.iter().map(|plane| plane.decision).zip(sides.iter().copied()).collect();
        let (mut clauses, mut factors) = (self.clauses.clone(), self.factors.clone());
        arena.assume(&mut clauses, &mut factors, &decided);
        let polynomial = summed(arena, clauses, factors, self.booleans)?;
        let number = match self.numbers.get(&polynomial) {
            Some(number) => *number,
            None => {
                self.graded.push(self.by_power(&polynomial)?);
                self.numbers.insert(polynomial, self.graded.len() - 1);
                self.graded.len() - 1
            }
        };
        self.known.insert(sides, number);
        Ok(number)
    }

    fn by_power(&self, polynomial: &Polynomial) -> Result<Graded, PolynomialError> {
        let variables: Vec<Var> = self.variables.iter().flatten().cloned().collect();
        let mut powers: BTreeMap<usize, Vec<Rational>> = BTreeMap::new();
        for (exponents, coefficient) in polynomial.aligned(&variables)? {
            let list = powers.entry(usize::from(exponents[0])).or_default();
            let at = exponents.get(1).copied().map_or(0, usize::from);
            if list.len() <= at {
                list.resize(at + 1, Rational::ZERO);
            }
            list[at] = coefficient;
        }
        Ok(powers.into_iter().map(|(power, list)| (power, DensePolynomial::new(&list))).collect())
    }
}

/// The sum over all values of Boolean variables, `count` of them, of the product of weights where the formulas hold.
fn summed(
    arena: &mut Arena,
    clauses: Vec<ClauseId>,
    factors: Vec<FactorId>,
    count: usize,
) -> Result<Polynomial, PolynomialError> {
    if clauses.iter().any(|id| matches!(arena.clause(*id), ClauseNode::Constant(false))) {
        return Ok(Polynomial::zero());
    }
    let mut mentioned = clauses.iter().flat_map(|id| arena.clause_decisions(*id));
    let first = mentioned.next().or_else(|| factors.iter().flat_map(|id| arena.factor_decisions(*id)).next()).copied();
    let Some(first) = first else {
        let mut product = Polynomial::constant(Rational::from(1u64 << count.min(63)));
        for factor in factors {
            product = product.mul(&expanded(arena, factor)?)?;
        }
        return Ok(product);
    };
    let mut sum = Polynomial::zero();
    for value in [false, true] {
        let (mut clauses, mut factors) = (clauses.clone(), factors.clone());
        arena.assume(&mut clauses, &mut factors, &[(first, value)].into());
        sum = sum + summed(arena, clauses, factors, count.saturating_sub(1))?;
    }
    Ok(sum)
}

/// A weight without conditions, multiplied out.
fn expanded(arena: &Arena, id: FactorId) -> Result<Polynomial, PolynomialError> {
    match arena.factor(id) {
        FactorNode::Polynomial(p) => Ok(p.clone()),
        FactorNode::Sum(parts) => {
            parts.iter().try_fold(Polynomial::zero(), |sum, part| Ok(sum + expanded(arena, *part)?))
        }
        FactorNode::Product(parts) => {
            parts.iter().try_fold(Polynomial::one(), |product, part| product.mul(&expanded(arena, *part)?))
        }
        FactorNode::Power(base, exponent) => expanded(arena, *base)?.pow(*exponent),
        FactorNode::Case(..) => unreachable!("all decisions of the weight are made"),
    }
}

/// Neighbouring slabs with the same integrand: from one boundary to another.
struct SlabRun {
    integrand: usize,
    piece: usize,
    from: usize,
    to: usize,
}

/// Antiderivatives of the message times powers of the variable, and their values on boundaries.
struct Primitives<'m> {
    own: &'m Message,
    boundaries: &'m [BoundaryLine],
    known: HashMap<(usize, usize), DensePolynomial>,
    composed: HashMap<(usize, usize, usize), DensePolynomial>,
}

impl Primitives<'_> {
    fn on(&mut self, piece: usize, power: usize, boundary: usize) -> DensePolynomial {
        let primitive =
            self.known.entry((piece, power)).or_insert_with(|| self.own.pieces[piece].antiderivative(power));
        let line = &self.boundaries[boundary];
        let composed = self.composed.entry((piece, power, boundary));
        composed.or_insert_with(|| primitive.at_line(&line.slope, &line.shift)).clone()
    }

    /// The integral over a run, as a polynomial in the parent.
    fn integral(&mut self, pair: &PairIntegrand, run: &SlabRun) -> DensePolynomial {
        if self.own.pieces[run.piece].is_zero() {
            return DensePolynomial::zero();
        }
        pair.graded[run.integrand].iter().fold(DensePolynomial::zero(), |sum, (power, coefficient)| {
            let difference = self.on(run.piece, *power, run.to).minus(&self.on(run.piece, *power, run.from));
            sum.plus(&difference.times(coefficient))
        })
    }
}
