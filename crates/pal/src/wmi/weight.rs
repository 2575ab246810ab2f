//! Weights: piecewise polynomials.
//!
//! A weight is built from polynomials by sums, products, powers and `ite`. While the search narrows a cell down, more
//! and more conditions are decided and branches disappear. Sums and products of polynomials are carried out as soon as
//! both sides are known. A weight that is zero ends the search on its cell.

use std::sync::Arc;

use crate::formula::{Formula, Membership, Var};
use crate::polynomial::{Polynomial, PolynomialError};
use crate::region::{Literal, Load, PlaneIndex, Residue, Skeleton};

/// Weights with more nested levels than this are refused.
pub(super) const MAX_DEPTH: usize = 2_000;

/// A weight whose conditions have type `C`: formulas when it is read, skeletons during the search.
#[derive(Debug)]
pub(crate) enum Weight<C> {
    Polynomial(Polynomial),
    Sum(Vec<Arc<Weight<C>>>),
    Product(Vec<Arc<Weight<C>>>),
    Power(Arc<Weight<C>>, u32),
    Ite(C, Arc<Weight<C>>, Arc<Weight<C>>),
    /// A product or power that would be too large. It makes the sums, products and powers around it fail as well.
    Failed(PolynomialError),
}

/// A weight as it is read, with formulas as conditions.
pub(crate) type SymbolicWeight = Weight<Formula>;

/// A condition of a weight, and whether products of polynomials are multiplied out beside it.
pub(crate) trait CaseCondition {
    /// Formulas keep polynomials over different variables apart, as they are written: their product may have far more
    /// terms, and parts that share no variable are integrated one by one.
    const MULTIPLIES_OUT: bool;
}

impl CaseCondition for Formula {
    const MULTIPLIES_OUT: bool = false;
}

impl CaseCondition for Arc<Skeleton> {
    const MULTIPLIES_OUT: bool = true;
}

impl<C: CaseCondition> Weight<C> {
    pub fn constant(polynomial: Polynomial) -> Arc<Self> {
        Arc::new(Weight::Polynomial(polynomial))
    }

    fn is_zero(&self) -> bool {
        matches!(self, Weight::Polynomial(p) if p.is_zero())
    }

    /// Returns the sum of the parts, with the polynomials among them added up.
    pub fn sum(parts: impl IntoIterator<Item = Arc<Self>>) -> Arc<Self> {
        let mut known: Vec<Polynomial> = Vec::new();
        let mut open: Vec<Arc<Self>> = Vec::new();
        for part in parts {
            match &*part {
                Weight::Polynomial(p) => known.push(p.clone()),
                Weight::Failed(_) => return part,
                Weight::Sum(inner) => {
                    for part in inner {
                        match &**part {
                            Weight::Polynomial(p) => known.push(p.clone()),
                            _ => open.push(part.clone()),
                        }
                    }
                }
                _ => open.push(part),
            }
        }
        let known = sum_by_halves(known);
        if open.is_empty() {
            return Weight::constant(known);
        }
        if !known.is_zero() {
            open.push(Weight::constant(known));
        }
        match open.len() {
            1 => open.swap_remove(0),
            _ => Arc::new(Weight::Sum(open)),
        }
    }

    /// Returns the product of the parts, with the polynomials among them multiplied.
    pub fn product(parts: impl IntoIterator<Item = Arc<Self>>) -> Arc<Self> {
        let mut known = Polynomial::one();
        let mut open: Vec<Arc<Self>> = Vec::new();
        for part in parts {
            let factors = match &*part {
                Weight::Product(inner) => inner.clone(),
                _ => vec![part],
            };
            for factor in factors {
                match &*factor {
                    Weight::Polynomial(p) if p.is_zero() => return factor,
                    Weight::Polynomial(p) if !C::MULTIPLIES_OUT && are_apart(&known, p) => open.push(factor),
                    Weight::Polynomial(p) => match known.mul(p) {
                        Ok(product) => known = product,
                        Err(error) => return Arc::new(Weight::Failed(error)),
                    },
                    Weight::Failed(_) => return factor,
                    _ => open.push(factor),
                }
            }
        }
        if open.is_empty() {
            return Weight::constant(known);
        }
        if known != Polynomial::one() {
            open.push(Weight::constant(known));
        }
        match open.len() {
            1 => open.swap_remove(0),
            _ => Arc::new(Weight::Product(open)),
        }
    }

    /// Returns `base^exponent`; the power of a polynomial is expanded at once.
    pub fn power(base: Arc<Self>, exponent: u32) -> Arc<Self> {
        match (&*base, exponent) {
            (_, 0) => Weight::constant(Polynomial::one()),
            (_, 1) => base,
            (Weight::Polynomial(p), k) => match p.pow(k) {
                Ok(power) => Weight::constant(power),
                Err(error) => Arc::new(Weight::Failed(error)),
            },
            (Weight::Failed(_), _) => base,
            _ => Arc::new(Weight::Power(base, exponent)),
        }
    }

    /// Returns the weight that is `yes` where the condition holds and `no` elsewhere. There is no case
    /// distinction if both are the same polynomial.
    pub fn ite(condition: C, yes: Arc<Self>, no: Arc<Self>) -> Arc<Self> {
        match (&*yes, &*no) {
            (Weight::Polynomial(p), Weight::Polynomial(q)) if p == q => yes,
            _ => Arc::new(Weight::Ite(condition, yes, no)),
        }
    }

    /// Returns the number of nested levels.
    pub fn depth(&self) -> usize {
        // An explicit stack of pairs (weight, depth), because recursion could overflow the call stack.
        let (mut deepest, mut stack) = (0, vec![(self, 1)]);
        while let Some((weight, depth)) = stack.pop() {
            deepest = deepest.max(depth);
            match weight {
                Weight::Sum(parts) | Weight::Product(parts) => stack.extend(parts.iter().map(|p| (&**p, depth + 1))),
                Weight::Power(base, _) => stack.push((base, depth + 1)),
                Weight::Ite(_, yes, no) => stack.extend([(&**yes, depth + 1), (&**no, depth + 1)]),
                Weight::Polynomial(_) | Weight::Failed(_) => {}
            }
        }
        deepest
    }
}

/// Whether two polynomials with several terms each share no variable.
fn are_apart(p: &Polynomial, q: &Polynomial) -> bool {
    p.len() > 1 && q.len() > 1 && !p.variables().iter().any(|var| q.variables().contains(var))
}

/// Returns the sum of many polynomials, added in pairs. If they were added one by one, a sum of thousands of monomials
/// would be copied thousands of times.
fn sum_by_halves(mut polynomials: Vec<Polynomial>) -> Polynomial {
    while polynomials.len() > 1 {
        let mut pairs = polynomials.into_iter();
        let mut sums = Vec::with_capacity(pairs.len().div_ceil(2));
        while let Some(first) = pairs.next() {
            sums.push(match pairs.next() {
                Some(second) => first + second,
                None => first,
            });
        }
        polynomials = sums;
    }
    polynomials.pop().unwrap_or_else(Polynomial::zero)
}

impl SymbolicWeight {
    /// Returns all conditions, in the order in which [`Weight::compile`] and [`Weight::at`] take them.
    pub fn conditions(&self) -> Vec<Formula> {
        let (mut conditions, mut stack) = (Vec::new(), vec![self]);
        while let Some(weight) = stack.pop() {
            match weight {
                Weight::Sum(parts) | Weight::Product(parts) => stack.extend(parts.iter().map(|p| &**p)),
                Weight::Power(base, _) => stack.push(base),
                Weight::Ite(condition, yes, no) => {
                    conditions.push(condition.clone());
                    stack.extend([&**yes, &**no]);
                }
                Weight::Polynomial(_) | Weight::Failed(_) => {}
            }
        }
        conditions
    }

    /// Returns the value at a point in float64, given tests of the conditions in the order of [`Weight::conditions`].
    pub fn at<'t>(&self, variables: &[Var], point: &[f64], tests: &mut impl Iterator<Item = &'t Membership>) -> f64 {
        match self {
            Weight::Polynomial(p) => p.eval_f64(variables, point).map_or(f64::NAN, |approximation| approximation.value),
            Weight::Failed(_) => f64::NAN,
            Weight::Sum(parts) | Weight::Product(parts) => {
                let mut values: Vec<f64> = Vec::with_capacity(parts.len());
                for part in parts.iter().rev() {
                    values.push(part.at(variables, point, tests));
                }
                if matches!(self, Weight::Sum(_)) { values.iter().sum() } else { values.iter().product() }
            }
            Weight::Power(base, exponent) => base.at(variables, point, tests).powi(*exponent as i32),
            Weight::Ite(_, yes, no) => {
                let holds = tests.next().is_some_and(|test| test.contains(point));
                let no = no.at(variables, point, tests);
                let yes = yes.at(variables, point, tests);
                if holds { yes } else { no }
            }
        }
    }

    /// Returns the weight with its conditions replaced by compiled ones, given in the order of [`Weight::conditions`].
    pub fn compile(&self, compiled: &mut impl Iterator<Item = Residue>) -> Arc<Weight<Arc<Skeleton>>> {
        // `conditions` visits the tree in pre-order, later siblings first.
        match self {
            Weight::Polynomial(p) => Weight::constant(p.clone()),
            Weight::Failed(error) => Arc::new(Weight::Failed(error.clone())),
            Weight::Sum(parts) | Weight::Product(parts) => {
                let mut done: Vec<_> = parts.iter().rev().map(|part| part.compile(compiled)).collect();
                done.reverse();
                if matches!(self, Weight::Sum(_)) { Weight::sum(done) } else { Weight::product(done) }
            }
            Weight::Power(base, exponent) => Weight::power(base.compile(compiled), *exponent),
            Weight::Ite(_, yes, no) => {
                let condition = compiled.next();
                let no = no.compile(compiled);
                let yes = yes.compile(compiled);
                match condition {
                    Some(Residue::Decided(false)) | None => no,
                    Some(Residue::Decided(true)) => yes,
                    Some(Residue::Open(skeleton)) => Weight::ite(Arc::new(skeleton), yes, no),
                }
            }
        }
    }
}

/// A weight during the search, with skeletons as conditions.
pub(crate) type CompiledWeight = Arc<Weight<Arc<Skeleton>>>;

/// Returns the weight with the conditions that `decide` settles replaced by the branch that applies.
fn simplify(weight: &CompiledWeight, decide: &dyn Fn(Literal) -> Option<bool>) -> CompiledWeight {
    match &**weight {
        Weight::Polynomial(_) | Weight::Failed(_) => weight.clone(),
        Weight::Sum(parts) => Weight::sum(parts.iter().map(|part| simplify(part, decide))),
        Weight::Product(parts) => {
            // One zero factor makes the product zero; then the other factors are not multiplied.
            let simple: Vec<_> = parts.iter().map(|part| simplify(part, decide)).collect();
            match simple.iter().find(|part| part.is_zero()) {
                Some(zero) => zero.clone(),
                None => Weight::product(simple),
            }
        }
        Weight::Power(base, exponent) => Weight::power(simplify(base, decide), *exponent),
        Weight::Ite(condition, yes, no) => match condition.simplify(decide) {
            Residue::Decided(true) => simplify(yes, decide),
            Residue::Decided(false) => simplify(no, decide),
            Residue::Open(skeleton) => Weight::ite(Arc::new(skeleton), simplify(yes, decide), simplify(no, decide)),
        },
    }
}

impl Load for CompiledWeight {
    fn planes(&self) -> Vec<PlaneIndex> {
        let (mut planes, mut stack) = (Vec::new(), vec![&**self]);
        while let Some(weight) = stack.pop() {
            match weight {
                Weight::Sum(parts) | Weight::Product(parts) => stack.extend(parts.iter().map(|p| &**p)),
                Weight::Power(base, _) => stack.push(base),
                Weight::Ite(condition, yes, no) => {
                    planes.extend_from_slice(&condition.planes);
                    stack.extend([&**yes, &**no]);
                }
                Weight::Polynomial(_) | Weight::Failed(_) => {}
            }
        }
        planes.sort_unstable();
        planes.dedup();
        planes
    }

    fn assume(&mut self, decide: &dyn Fn(Literal) -> Option<bool>) -> bool {
        if !matches!(**self, Weight::Polynomial(_)) {
            *self = simplify(self, decide);
        }
        !self.is_zero()
    }

    fn choose(&self) -> Option<Literal> {
        let mut weight = &**self;
        loop {
            weight = match weight {
                Weight::Polynomial(_) | Weight::Failed(_) => return None,
                // In sums and products the known polynomial comes last, so the first part still has conditions.
                Weight::Sum(parts) | Weight::Product(parts) => parts.first()?,
                Weight::Power(base, _) => base,
                Weight::Ite(condition, ..) => return condition.choose(),
            };
        }
    }

    /// The integral of a sum is the sum of the integrals. Integrated separately, the cases of one summand need not be
    /// combined with the cases of another.
    fn fork(&self) -> Vec<Self> {
        match &**self {
            Weight::Sum(parts) => parts.clone(),
            _ => Vec::new(),
        }
    }
}
