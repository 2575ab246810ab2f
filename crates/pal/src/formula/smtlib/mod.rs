//! Reads and writes SMT-LIB 2 text: quantifier-free linear real arithmetic with Booleans, enumerated sorts and integers.
//!
//! Reading goes text -> [`sexpr`] (a flat tree with positions) -> [`script`] (commands) -> [`term`] (formulas). Nothing
//! on the way recurses, so deep nesting takes memory but cannot overflow the stack; a `let` or a `define-fun` without
//! parameters is evaluated once and its value shared, so that formulas stay as small as their text.
//!
//! Constants of enumerated sorts (`declare-datatype`) and integers with finite bounds are categories: see
//! [`Category`](super::Category). The values of an integer are labelled `0`, `1`, `-2`.
//!
//! Beyond the standard, a bare negative number such as `-3` is read as a number, since people write it.

mod choice;
mod datatype;
mod declaration;
mod edit_distance;
mod integer;
mod linear_cases;
mod numeral;
mod operator;
mod scope;
mod script;
pub(crate) mod sexpr;
mod symbol;
pub(crate) mod term;
mod writer;

pub(crate) use scope::Scope;
pub use writer::{SmtWriteError, write_smtlib};

use super::{Constraint, Formula};

/// A problem in SMT-LIB text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct SmtError {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted in characters from 1.
    pub column: usize,
    /// What is wrong and what would work.
    pub message: String,
}

impl SmtError {
    /// A problem at a byte offset of the text.
    fn at(text: &str, offset: usize, message: impl Into<String>) -> SmtError {
        let (line, column) = sexpr::position(text, offset);
        SmtError { line, column, message: message.into() }
    }
}

/// Reads a script: the conjunction of its asserts over its declared variables, in the order of declaration. If it has
/// levels (`push`) or assumptions, it must ask one question, and what is asserted there is meant;
/// [`parse_smtlib_questions`] reads scripts with several.
///
/// A constant of an enumerated sort is a [`Category`](super::Category) of the same name, and so is an integer, with the
/// integers as values that the bounds in the asserts allow: at most 64. Exactly one of the values holds.
///
/// ```
/// use pal::formula::parse_smtlib;
/// let triangle = parse_smtlib(
///     "(declare-const y Real) (declare-const x Real)
///      (assert (and (>= x 0) (>= y 0)))
///      (assert (<= (+ x (* 2 y)) (/ 1 3)))",
/// )
/// .unwrap();
/// assert_eq!(triangle.reals[0].name(), "y");
/// assert_eq!(triangle.formula.to_string(), "x >= 0 & y >= 0 & 3*x + 6*y <= 1");
/// let error = parse_smtlib("(declare-const width Real)\n(assert (< widht 1))").unwrap_err();
/// assert_eq!((error.line, error.column), (2, 12));
/// assert!(error.message.contains("did you mean `width`?"));
///
/// let trip = parse_smtlib(
///     "(declare-datatype Mode ((walk) (bike) (car)))
///      (declare-const mode Mode) (declare-const stops Int) (declare-const hours Real)
///      (assert (and (<= 0 stops 2) (<= (* 0.5 stops) hours 3)))
///      (assert (=> (= mode walk) (= stops 0)))",
/// )
/// .unwrap();
/// let columns: Vec<&str> = trip.booleans.iter().map(|var| var.name()).collect();
/// assert_eq!(columns, ["mode=walk", "mode=bike", "mode=car", "stops=0", "stops=1", "stops=2"]);
/// ```
pub fn parse_smtlib(text: &str) -> Result<Constraint, SmtError> {
    script::read(&sexpr::Tree::parse(text)?)
}

/// A question of a script: a `check-sat` with what is asserted there.
#[derive(Debug, Clone)]
pub struct SmtQuestion {
    /// The line of the command, counted from 1.
    pub line: usize,
    /// What is asserted at that point, over the variables that are declared there.
    pub constraint: Constraint,
}

/// Reads all questions of a script: what is asserted at every `check-sat` and `check-sat-assuming`, where `push`, `pop`
/// and `reset` have the effects of the standard. A script that asks nothing is one question about all its assertions.
///
/// ```
/// use pal::formula::parse_smtlib_questions;
/// let questions = parse_smtlib_questions(
///     "(declare-const x Real) (declare-const late Bool) (assert (<= 0 x 4))
///      (push 1) (assert (=> late (>= x 3))) (check-sat-assuming (late)) (pop 1)
///      (assert (< x 1)) (check-sat)",
/// )
/// .unwrap();
/// let asked: Vec<String> = questions.iter().map(|question| question.constraint.formula.to_string()).collect();
/// assert_eq!(asked, ["x >= 0 & x <= 4 & (!late | x >= 3) & late", "x >= 0 & x <= 4 & x < 1"]);
/// ```
pub fn parse_smtlib_questions(text: &str) -> Result<Vec<SmtQuestion>, SmtError> {
    script::questions(&sexpr::Tree::parse(text)?)
}

/// Reads one term of sort Bool over the variables of `scope`; the text must hold nothing else.
///
/// ```
/// use pal::formula::{parse_smtlib, parse_smtlib_term};
/// let strip = parse_smtlib("(declare-const x Real) (assert (<= 0 x 1))").unwrap();
/// assert_eq!(parse_smtlib_term("(> (* 2 x) 1)", &strip).unwrap().to_string(), "2*x > 1");
/// ```
pub fn parse_smtlib_term(text: &str, scope: &Constraint) -> Result<Formula, SmtError> {
    let tree = sexpr::Tree::parse(text)?;
    let term = tree.single("a term such as (<= x 1)")?;
    let mut scope = Scope::of_constraint(scope).map_err(|message| term.error(message))?;
    term::bool_term(term, &mut scope)
}
