//! Weights built in code rather than read from text.

use std::sync::Arc;

use super::term;
use super::weight::{MAX_DEPTH, SymbolicWeight, Weight};
use crate::formula::smtlib::Scope;
use crate::formula::smtlib::sexpr::Tree;
use crate::formula::{Constraint, Formula, SmtError};
use crate::polynomial::Polynomial;

/// A piecewise polynomial: a weight with cases.
///
/// Sums, products and powers of piecewise polynomials are worked out case by case when they are integrated.
///
/// ```
/// use pal::formula::{Constraint, Formula, reals};
/// use pal::moments::Method;
/// use pal::polynomial::Polynomial;
/// use pal::wmi::{Piecewise, Problem};
/// let [x] = reals(["x"]);
/// let a = Formula::boolean("a");
/// let once = Piecewise::from(Polynomial::parse("x")?);
/// let weight = Piecewise::ite(a.clone(), &once, &once.plus(&once)?)?;
/// let support = Constraint::new(x.between(0, 1) & (a.clone() | (2 * x).le(1)));
/// let solution = Problem::new(support, &weight, vec![a]).solve(Method::Exact)?;
/// assert_eq!(solution.total.exact.unwrap().to_string(), "3/4");
/// assert_eq!(solution.queries[0].exact.as_ref().unwrap().to_string(), "1/2");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Piecewise {
    pub(super) weight: Arc<SymbolicWeight>,
    depth: usize,
    /// The number of parts when written out, where a shared part counts as often as it occurs.
    parts: usize,
}

/// The error for a weight that is nested too deeply or has too many parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a weight nested {depth} deep with {parts} parts is too large: at most {MAX_DEPTH} levels and {MAX_PARTS} parts \
     are possible, counting shared parts as often as they occur"
)]
pub struct TooManyCases {
    depth: usize,
    parts: usize,
}

/// The largest number of parts that a weight may have when it is written out.
const MAX_PARTS: usize = 1_000_000;

impl From<Polynomial> for Piecewise {
    fn from(polynomial: Polynomial) -> Self {
        Piecewise { weight: Weight::constant(polynomial), depth: 1, parts: 1 }
    }
}

impl Piecewise {
    /// Returns the weight that is `yes` where the condition holds and `no` elsewhere.
    pub fn ite(condition: Formula, yes: &Piecewise, no: &Piecewise) -> Result<Piecewise, TooManyCases> {
        Piecewise::combine([yes, no], |[yes, no]| Weight::ite(condition, yes, no))
    }

    /// Returns `self + other`.
    pub fn plus(&self, other: &Piecewise) -> Result<Piecewise, TooManyCases> {
        Piecewise::combine([self, other], Weight::sum)
    }

    /// Returns `self * other`.
    pub fn times(&self, other: &Piecewise) -> Result<Piecewise, TooManyCases> {
        Piecewise::combine([self, other], Weight::product)
    }

    /// Returns `self^exponent`.
    pub fn pow(&self, exponent: u32) -> Result<Piecewise, TooManyCases> {
        Piecewise::combine([self], |[base]| Weight::power(base, exponent))
    }

    /// Reads an SMT-LIB-like term with `+ - * / pow ite` over the variables of the constraint `scope`.
    pub fn parse(text: &str, scope: &Constraint) -> Result<Piecewise, SmtError> {
        let tree = Tree::parse(text)?;
        let root = tree.single("a term of sort Real")?;
        let mut names = Scope::of_constraint(scope).map_err(|message| SmtError { line: 1, column: 1, message })?;
        let weight = term::weight(root, scope, &mut names)?;
        Ok(Piecewise { depth: weight.depth(), parts: text.len(), weight })
    }

    fn combine<const N: usize>(
        parts: [&Piecewise; N],
        make: impl FnOnce([Arc<SymbolicWeight>; N]) -> Arc<SymbolicWeight>,
    ) -> Result<Piecewise, TooManyCases> {
        let depth = 1 + parts.iter().map(|part| part.depth).max().unwrap_or(0);
        let count = parts.iter().fold(1usize, |sum, part| sum.saturating_add(part.parts));
        if depth > MAX_DEPTH || count > MAX_PARTS {
            return Err(TooManyCases { depth, parts: count });
        }
        let made = make(parts.map(|part| part.weight.clone()));
        // Operations on plain polynomials are carried out at once; the result is a single part.
        let plain = matches!(&*made, Weight::Polynomial(_));
        let (depth, parts) = if plain { (1, 1) } else { (depth, count) };
        Ok(Piecewise { weight: made, depth, parts })
    }
}
