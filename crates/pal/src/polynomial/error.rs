//! Errors of polynomials, and the limits that keep an innocent-looking expression from filling the memory.

use crate::number::NumberError;

/// The largest total degree that a polynomial may have.
pub const MAX_DEGREE: u32 = 10_000;
/// The most terms that a product, a power or a substitution may expand to.
pub const MAX_TERMS: usize = 2_000_000;
/// The longest numerator or denominator that arithmetic may produce: about 300,000 decimal digits.
pub const MAX_COEFFICIENT_BITS: usize = 1 << 20;
/// The largest number of levels to which parentheses and exponents may nest in text.
pub const MAX_NESTING: usize = 256;

/// The largest number of machine words that all coefficients of one result may take together (half a gigabyte).
pub(super) const MAX_WORDS: usize = 1 << 26;
/// The largest number of elementary steps, of about a nanosecond each, that one operation may take: some ten seconds.
const MAX_WORK: u64 = 10_000_000_000;
/// The number of steps to multiply two terms and find the place of their product, which is mostly a cache miss.
pub(super) const TERM_STEPS: u64 = 30;

/// Why an operation on polynomials has no result.
///
/// ```
/// use pal::polynomial::{Polynomial, PolynomialError};
/// let high = Polynomial::parse("x^10000").unwrap();
/// assert_eq!(high.mul(&high), Err(PolynomialError::Degree { degree: 20_000 }));
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PolynomialError {
    /// The total degree passes [`MAX_DEGREE`].
    #[error("a polynomial of degree {degree} is above the limit of {MAX_DEGREE}")]
    Degree {
        /// the degree that was asked for
        degree: u64,
    },
    /// The expanded form passes [`MAX_TERMS`], or the memory set aside for its coefficients.
    #[error("the expanded form has more than {limit} terms; keep it factored, or lower its degree")]
    TooManyTerms {
        /// the number of terms that was allowed
        limit: usize,
    },
    /// A coefficient passes [`MAX_COEFFICIENT_BITS`].
    #[error("a coefficient of about {bits} bits is above the limit of {MAX_COEFFICIENT_BITS}")]
    LongCoefficient {
        /// an upper bound for the bits of its numerator or denominator
        bits: usize,
    },
    /// The expansion would run for minutes.
    #[error("expanding this takes too many steps; lower the degree, or the number of terms that are multiplied")]
    TooMuchWork,
    /// A variable of the polynomial has no coordinate.
    #[error("the polynomial depends on `{variable}`, which is not among the given variables ({given})")]
    MissingVariable {
        /// the variable without a coordinate
        variable: String,
        /// the variables that were given
        given: String,
    },
    /// The number of coordinates or exponents is not the number of variables.
    #[error("{expected} variables were given with {found} values; give one value for each variable")]
    Length {
        /// how many variables there are
        expected: usize,
        /// how many values were given
        found: usize,
    },
    /// A coordinate is NaN or infinite.
    #[error("the value of `{variable}`: {problem}")]
    NotFinite {
        /// the variable whose value it is
        variable: String,
        /// what is wrong with the value
        problem: NumberError,
    },
}

/// Why a text is not a polynomial, and where.
///
/// ```
/// use pal::polynomial::{ParseProblem, Polynomial};
/// let error = Polynomial::parse("x + 2y").unwrap_err();
/// assert_eq!(error.column, 6);
/// assert_eq!(error.to_string(), "column 6: an operator is missing; write `2*y` for a product");
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("column {column}: {problem}")]
pub struct ParseError {
    /// The position of the error, in characters counted from 1.
    pub column: usize,
    /// What is wrong at this position.
    pub problem: ParseProblem,
}

/// What is wrong with the text of a polynomial.
///
/// ```
/// use pal::polynomial::{ParseProblem, Polynomial};
/// let error = Polynomial::parse("1/(3 - 3)").unwrap_err();
/// assert_eq!(error.problem, ParseProblem::DivisionByZero);
/// ```
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ParseProblem {
    /// The text is empty.
    #[error("the text is empty; write a polynomial such as 3*x^2*y - 1/2")]
    Empty,
    /// A character that begins no number, name or operator.
    #[error(
        "`{}` has no meaning here; operators are + - * / ^ and other names are quoted, as in |{}|",
        .0.escape_debug(), .0.escape_debug()
    )]
    Character(char),
    /// A quoted name that is never closed.
    #[error("this quoted name is never closed; add `|`")]
    UnclosedQuote,
    /// A number that cannot be read.
    #[error(transparent)]
    Number(NumberError),
    /// An operator or the end of the text where a number, a variable or `(` is expected.
    #[error("expected a number, a variable or `(`, found {found}")]
    Operand {
        /// what is there instead
        found: String,
    },
    /// Two operands without an operator between them.
    #[error("an operator is missing; write `{left}*{right}` for a product")]
    MissingOperator {
        /// the last token of the first operand
        left: String,
        /// the first token of the second operand
        right: String,
    },
    /// `(` without `)`.
    #[error("this `(` is never closed; add `)`")]
    Unclosed,
    /// `)` without `(`.
    #[error("this `)` closes nothing; remove it or add `(`")]
    Unopened,
    /// Parentheses and exponents nest deeper than [`MAX_NESTING`] levels.
    #[error("parentheses and exponents nest deeper than {MAX_NESTING} levels; expand some of them")]
    Nesting,
    /// A name that is not among the known variables.
    #[error("unknown variable `{name}`; {hint}")]
    UnknownVariable {
        /// the name as written
        name: String,
        /// a suggestion: the nearest known name, or the known names
        hint: String,
    },
    /// An exponent that is not a constant.
    #[error("an exponent has to be a constant, such as x^2")]
    VariableExponent,
    /// An exponent below zero.
    #[error("the exponent {0} is negative; polynomials have exponents 0, 1, 2, ..")]
    NegativeExponent(String),
    /// An exponent that is not an integer.
    #[error("the exponent {0} is not whole; polynomials have exponents 0, 1, 2, ..")]
    FractionalExponent(String),
    /// An exponent above [`MAX_DEGREE`].
    #[error("the exponent {0} is above the limit of {MAX_DEGREE}")]
    LargeExponent(String),
    /// A divisor that is not a constant.
    #[error("the divisor has variables in it; only division by a constant gives a polynomial")]
    VariableDivisor,
    /// A divisor that is zero.
    #[error("division by zero")]
    DivisionByZero,
    /// The expanded polynomial passes a limit.
    #[error(transparent)]
    Limit(#[from] PolynomialError),
}

/// The number of elementary steps that an operation may still take.
pub(super) struct WorkLimit(u64);

impl WorkLimit {
    pub(super) fn new() -> Self {
        WorkLimit(MAX_WORK)
    }

    /// Fails if an estimate of the work ahead is beyond what is left.
    pub(super) fn check(&self, steps: f64) -> Result<(), PolynomialError> {
        if steps > self.0 as f64 { Err(PolynomialError::TooMuchWork) } else { Ok(()) }
    }

    pub(super) fn charge(&mut self, steps: u64) -> Result<(), PolynomialError> {
        self.0 = self.0.checked_sub(steps).ok_or(PolynomialError::TooMuchWork)?;
        Ok(())
    }
}

pub(super) fn check_degree(degree: u64) -> Result<(), PolynomialError> {
    if degree > u64::from(MAX_DEGREE) { Err(PolynomialError::Degree { degree }) } else { Ok(()) }
}

pub(super) fn check_bits(bits: usize) -> Result<(), PolynomialError> {
    if bits > MAX_COEFFICIENT_BITS { Err(PolynomialError::LongCoefficient { bits }) } else { Ok(()) }
}
