//! Reads polynomials in ordinary notation.
//!
//! ```text
//! sum      =  product { (+ | -) product }
//! product  =  signed { (* | /) signed }
//! signed   =  { + | - } power
//! power    =  atom [ (^ | **) signed ]          right to left: 2^3^2 = 2^9, and -x^2 = -(x^2)
//! atom     =  number | name | ( sum )
//! ```

use std::collections::BTreeMap;
use std::str::FromStr;

use super::error::{MAX_DEGREE, MAX_NESTING, ParseError, ParseProblem, PolynomialError, WorkLimit, check_bits};
use super::lexer::{Symbol, Token, shorten, tokens};
use super::monomial::Monomial;
use super::nearest::nearest;
use super::product::{check_memory, power, product};
use super::terms::{Terms, coefficient_bits};
use super::{Polynomial, print, sorted_union};
use crate::formula::Var;
use crate::number::Rational;

impl Polynomial {
    /// Reads a polynomial such as `3*x^2*y - 1/2`, in which every name is a variable.
    ///
    /// Operators are `+ - * / ^` (`**` is the same as `^`) and parentheses; a product needs a `*`. Numbers are exact:
    /// `0.1` is 1/10 and `1e-3` is 1/1000 (so `2e5` is a number; write `2*e5` for a variable `e5`). Division is by
    /// constants other than 0. Names are `[A-Za-z_][A-Za-z0-9_.!@]*`, or any text between bars, `|wind speed|`.
    ///
    /// ```
    /// use pal::polynomial::Polynomial;
    /// let p = Polynomial::parse("(x - 0.1)**2 / 3")?;
    /// assert_eq!(p.to_string(), "1/3*x^2 - 1/15*x + 1/300");
    /// # Ok::<(), pal::polynomial::ParseError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Polynomial, ParseError> {
        parse(text, None)
    }

    /// Reads a polynomial in which only the given variables may occur.
    ///
    /// ```
    /// use pal::{formula::Var, polynomial::Polynomial};
    /// let scope = ["speed", "height"].map(Var::new);
    /// let error = Polynomial::parse_in("2*sped", &scope).unwrap_err();
    /// assert_eq!(error.to_string(), "column 3: unknown variable `sped`; did you mean `speed`?");
    /// ```
    pub fn parse_in(text: &str, scope: &[Var]) -> Result<Polynomial, ParseError> {
        parse(text, Some(scope))
    }
}

impl FromStr for Polynomial {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Polynomial, ParseError> {
        Polynomial::parse(text)
    }
}

fn parse(text: &str, scope: Option<&[Var]>) -> Result<Polynomial, ParseError> {
    let tokens = tokens(text)?;
    if tokens.len() == 1 {
        return Err(ParseError { column: 1, problem: ParseProblem::Empty });
    }
    let known = scope.map(|scope| sorted_union([scope]));
    let variables = variables(&tokens, known.as_deref().unwrap_or_default());
    let mut parser =
        Parser { tokens: &tokens, at: 0, variables: &variables, known, depth: 0, budget: WorkLimit::new() };
    let terms = parser.sum()?;
    let token = parser.peek();
    match token.symbol {
        Symbol::End => Ok(Polynomial::trimmed(variables, terms)),
        Symbol::Close => Err(at(token, ParseProblem::Unopened)),
        _ => Err(parser.missing_operator()),
    }
}

/// Returns the variables of the text in name order. Unknown ones are declared in the order of first occurrence.
fn variables(tokens: &[Token], known: &[Var]) -> Vec<Var> {
    let mut found: BTreeMap<&str, Var> = BTreeMap::new();
    for token in tokens {
        if let Symbol::Name(name) = &token.symbol {
            let declare = || known.iter().find(|var| var.name() == name).cloned().unwrap_or_else(|| Var::new(name));
            found.entry(name).or_insert_with(declare);
        }
    }
    found.into_values().collect()
}

struct Parser<'t> {
    tokens: &'t [Token<'t>],
    at: usize,
    /// all variables of the text, so that every subexpression is over the same list
    variables: &'t [Var],
    known: Option<Vec<Var>>,
    depth: usize,
    budget: WorkLimit,
}

fn at(token: &Token, problem: ParseProblem) -> ParseError {
    ParseError { column: token.column, problem }
}

fn limit<T>(token: &Token, result: Result<T, PolynomialError>) -> Result<T, ParseError> {
    result.map_err(|error| at(token, error.into()))
}

impl<'t> Parser<'t> {
    fn peek(&self) -> &'t Token<'t> {
        &self.tokens[self.at]
    }

    /// Moves on to the next token, but never past the end.
    fn next(&mut self) -> &'t Token<'t> {
        let token = self.peek();
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        token
    }

    fn sum(&mut self) -> Result<Terms, ParseError> {
        let mut sum = self.product()?;
        loop {
            let operator = self.peek();
            if !matches!(operator.symbol, Symbol::Plus | Symbol::Minus) {
                return Ok(sum);
            }
            self.next();
            let mut term = self.product()?;
            if operator.symbol == Symbol::Minus {
                term.negate();
            }
            limit(operator, check_bits(sum.absorb(term)))?;
            limit(operator, check_memory(sum.len(), 0))?;
        }
    }

    fn product(&mut self) -> Result<Terms, ParseError> {
        let mut result = self.signed()?;
        loop {
            let operator = self.peek();
            match operator.symbol {
                Symbol::Times => {
                    self.next();
                    let factor = self.signed()?;
                    result = limit(operator, product(&result, &factor, &mut self.budget))?;
                }
                Symbol::Divide => {
                    self.next();
                    let token = self.peek();
                    let divisor =
                        self.signed()?.as_constant().ok_or_else(|| at(token, ParseProblem::VariableDivisor))?;
                    if divisor.is_zero() {
                        return Err(at(token, ParseProblem::DivisionByZero));
                    }
                    let inverse = Terms::constant(Rational::ONE / divisor);
                    result = limit(operator, product(&result, &inverse, &mut self.budget))?;
                }
                _ => return Ok(result),
            }
        }
    }

    fn signed(&mut self) -> Result<Terms, ParseError> {
        let mut negative = false;
        loop {
            match self.peek().symbol {
                Symbol::Minus => negative = !negative,
                Symbol::Plus => {}
                _ => break,
            }
            self.next();
        }
        let mut terms = self.power()?;
        if negative {
            terms.negate();
        }
        Ok(terms)
    }

    fn power(&mut self) -> Result<Terms, ParseError> {
        let base = self.atom()?;
        let operator = self.peek();
        if operator.symbol != Symbol::Power {
            return Ok(base);
        }
        self.next();
        let token = self.peek();
        let exponent = self.nested(operator, Self::signed)?;
        let exponent = exponent.as_constant().ok_or_else(|| at(token, ParseProblem::VariableExponent))?;
        // Printing a number of 300,000 digits would be slow, and nobody would read them.
        let shown =
            || if coefficient_bits(&exponent) > 4096 { "given here".into() } else { shorten(&exponent.to_string()) };
        if exponent < Rational::ZERO {
            return Err(at(token, ParseProblem::NegativeExponent(shown())));
        }
        if !exponent.is_int() {
            return Err(at(token, ParseProblem::FractionalExponent(shown())));
        }
        match u64::try_from(exponent.numerator()) {
            Ok(whole) if whole <= u64::from(MAX_DEGREE) => limit(operator, power(&base, whole, &mut self.budget)),
            _ => Err(at(token, ParseProblem::LargeExponent(shown()))),
        }
    }

    fn atom(&mut self) -> Result<Terms, ParseError> {
        let token = self.next();
        match &token.symbol {
            Symbol::Number(value) => Ok(Terms::constant(value.clone())),
            Symbol::Name(name) => self.variable(token, name),
            Symbol::Open => {
                let inner = self.nested(token, Self::sum)?;
                match self.peek().symbol {
                    Symbol::Close => {
                        self.next();
                        Ok(inner)
                    }
                    Symbol::End => Err(at(token, ParseProblem::Unclosed)),
                    _ => Err(self.missing_operator()),
                }
            }
            Symbol::End => Err(at(token, ParseProblem::Operand { found: "the end of the text".to_string() })),
            _ => Err(at(token, ParseProblem::Operand { found: format!("`{}`", token.text) })),
        }
    }

    fn variable(&self, token: &Token, name: &str) -> Result<Terms, ParseError> {
        if let Some(known) = &self.known
            && !known.iter().any(|variable| variable.name() == name)
        {
            let hint = match nearest(name, known) {
                Some(other) => format!("did you mean `{}`?", print::quoted(other)),
                None => format!("known variables: {}", print::list(known)),
            };
            return Err(at(token, ParseProblem::UnknownVariable { name: shorten(name), hint }));
        }
        let place = self.variables.binary_search_by(|variable| variable.name().cmp(name));
        let v = place.expect("the list has every name of the text");
        Ok(Terms::single(Monomial::power(v as u32, 1), Rational::ONE))
    }

    /// Descends one level of nesting. The limit keeps hostile text from overflowing the stack.
    fn nested(
        &mut self,
        token: &Token,
        read: impl FnOnce(&mut Self) -> Result<Terms, ParseError>,
    ) -> Result<Terms, ParseError> {
        if self.depth == MAX_NESTING {
            return Err(at(token, ParseProblem::Nesting));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Returns the error for an operand that follows another one without an operator.
    fn missing_operator(&self) -> ParseError {
        let left = self.tokens[..self.at].last().map_or(String::new(), Token::excerpt);
        let right = self.peek();
        at(right, ParseProblem::MissingOperator { left, right: right.excerpt() })
    }
}
