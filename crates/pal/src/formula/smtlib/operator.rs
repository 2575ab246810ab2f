//! The operators of linear real arithmetic with Booleans.

use std::rc::Rc;

use super::super::{Formula, Relation};
use super::SmtError;
use super::choice::Choice;
use super::linear_cases::{LinearCases, MAX_BITS, MAX_CASES, Refusal};
use super::scope::{Sort, Value};
use super::sexpr::Sexpr;
use crate::number::Rational;

/// `distinct` has one part for each pair of its arguments; more pairs than this are refused.
const MAX_PAIRS: usize = 1_000_000;

/// A built-in function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operator {
    Not,
    And,
    Or,
    Implies,
    Xor,
    Ite,
    Equal,
    Distinct,
    LessEqual,
    Less,
    GreaterEqual,
    Greater,
    Add,
    Subtract,
    Multiply,
    Divide,
    ToReal,
}

/// The value of an argument and its place in the text.
pub(super) type Argument<'t> = (Value, Sexpr<'t>);

impl Operator {
    pub(super) const NAMES: [&'static str; 17] =
        ["not", "and", "or", "=>", "xor", "ite", "=", "distinct", "<=", "<", ">=", ">", "+", "-", "*", "/", "to_real"];

    pub(super) fn named(name: &str) -> Option<Operator> {
        Some(match name {
            "not" => Operator::Not,
            "and" => Operator::And,
            "or" => Operator::Or,
            "=>" => Operator::Implies,
            "xor" => Operator::Xor,
            "ite" => Operator::Ite,
            "=" => Operator::Equal,
            "distinct" => Operator::Distinct,
            "<=" => Operator::LessEqual,
            "<" => Operator::Less,
            ">=" => Operator::GreaterEqual,
            ">" => Operator::Greater,
            "+" => Operator::Add,
            "-" => Operator::Subtract,
            "*" => Operator::Multiply,
            "/" => Operator::Divide,
            "to_real" => Operator::ToReal,
            _ => return None,
        })
    }

    /// Returns an error if the operator does not take this number of arguments.
    pub(super) fn check_count(self, term: Sexpr<'_>, name: &str, count: usize) -> Result<(), SmtError> {
        let (least, most, wanted) = match self {
            Operator::Not | Operator::ToReal => (1, 1, "exactly one argument"),
            Operator::Ite => (3, 3, "exactly three arguments: condition, then, else"),
            Operator::And | Operator::Or | Operator::Add | Operator::Subtract | Operator::Multiply => {
                (1, usize::MAX, "at least one argument")
            }
            _ => (2, usize::MAX, "at least two arguments"),
        };
        if (least..=most).contains(&count) {
            return Ok(());
        }
        Err(term.error(format!("`{name}` takes {wanted}, but here it has {count}")))
    }

    /// The value of the operator on its arguments, whose number was checked before.
    pub(super) fn apply<'t>(self, term: Sexpr<'t>, arguments: Vec<Argument<'t>>) -> Result<Value, SmtError> {
        let refused = |refusal| explain(refusal, term);
        Ok(match self {
            Operator::Not => Value::Bool(!Formula::all(truths(term, arguments)?)),
            Operator::And => Value::Bool(Formula::all(truths(term, arguments)?)),
            Operator::Or => Value::Bool(Formula::any(truths(term, arguments)?)),
            Operator::Implies => {
                let mut parts = truths(term, arguments)?;
                let conclusion = parts.pop();
                Value::Bool(Formula::any(parts.into_iter().map(|part| !part).chain(conclusion)))
            }
            Operator::Xor => {
                let parts = truths(term, arguments)?;
                Value::Bool(parts.into_iter().reduce(|a, b| a ^ b).unwrap_or_else(Formula::no))
            }
            Operator::Ite => choose(term, arguments)?,
            Operator::Equal => Value::Bool(equal(term, arguments)?),
            Operator::Distinct => Value::Bool(distinct(term, arguments)?),
            Operator::LessEqual => Value::Bool(chain(term, arguments, Relation::Le, false)?),
            Operator::Less => Value::Bool(chain(term, arguments, Relation::Lt, false)?),
            Operator::GreaterEqual => Value::Bool(chain(term, arguments, Relation::Le, true)?),
            Operator::Greater => Value::Bool(chain(term, arguments, Relation::Lt, true)?),
            Operator::Add | Operator::ToReal => sum(term, arguments, 1)?,
            Operator::Subtract if arguments.len() == 1 => {
                let minus_one = LinearCases::from(crate::formula::Linear::from(-1));
                let negated = numbers(term, arguments)?.iter().map(|t| minus_one.times(t)).next();
                Value::Real(Rc::new(negated.unwrap_or(Err(Refusal::NonLinear)).map_err(refused)?))
            }
            Operator::Subtract => sum(term, arguments, -1)?,
            Operator::Multiply => fold(term, arguments, LinearCases::times)?,
            Operator::Divide => fold(term, arguments, LinearCases::divided_by)?,
        })
    }
}

/// The error for a term that the arithmetic refuses.
fn explain(refusal: Refusal, term: Sexpr<'_>) -> SmtError {
    let shown = term.excerpt();
    term.error(match refusal {
        Refusal::Cases => format!(
            "the `ite` terms inside `{shown}` have more than {MAX_CASES} cases together; \
             introduce a real variable for an inner one and assert what it equals"
        ),
        Refusal::Bits => format!("`{shown}` has a constant of more than {MAX_BITS} bits; scale the problem"),
        Refusal::NonLinear => {
            format!("`{shown}` is not linear; at most one factor may contain variables, and divisors must be constants")
        }
        Refusal::ZeroDivisor => format!("`{shown}` divides by zero; divide by a non-zero constant"),
    })
}

fn wrong_sort(term: Sexpr<'_>, argument: &Argument<'_>, wanted: Sort) -> SmtError {
    let operator = term.items().next().map_or(String::new(), Sexpr::excerpt);
    let (value, place) = argument;
    place.error(format!(
        "`{}` has sort {}, but `{operator}` needs sort {} here",
        place.excerpt(),
        value.sort().name(),
        wanted.name()
    ))
}

fn truths(term: Sexpr<'_>, arguments: Vec<Argument<'_>>) -> Result<Vec<Formula>, SmtError> {
    let truth = |argument: Argument<'_>| match argument.0 {
        Value::Bool(formula) => Ok(formula),
        _ => Err(wrong_sort(term, &argument, Sort::Bool)),
    };
    arguments.into_iter().map(truth).collect()
}

fn numbers(term: Sexpr<'_>, arguments: Vec<Argument<'_>>) -> Result<Vec<Rc<LinearCases>>, SmtError> {
    let number = |argument: Argument<'_>| match argument.0 {
        Value::Real(number) => Ok(number),
        _ => Err(wrong_sort(term, &argument, Sort::Real)),
    };
    arguments.into_iter().map(number).collect()
}

/// Terms of the enumerated sort that the first one has.
fn choices(term: Sexpr<'_>, arguments: Vec<Argument<'_>>) -> Result<Vec<Rc<Choice>>, SmtError> {
    let Some(sort) = arguments.first().map(|(value, _)| value.sort()) else { return Ok(Vec::new()) };
    let choice = |argument: Argument<'_>| match argument.0 {
        Value::Choice(ref choice) if argument.0.sort() == sort => Ok(choice.clone()),
        _ => Err(wrong_sort(term, &argument, sort.clone())),
    };
    arguments.into_iter().map(choice).collect()
}

/// The first argument plus `sign` times each of the others.
fn sum(term: Sexpr<'_>, arguments: Vec<Argument<'_>>, sign: i64) -> Result<Value, SmtError> {
    let sign = Rational::from(sign);
    let mut parts = numbers(term, arguments)?.into_iter();
    let mut total =
        parts.next().map_or_else(|| LinearCases::from(crate::formula::Linear::default()), Rc::unwrap_or_clone);
    // An upper bound on the bits of the total, made exact again only when it could matter: looking at the total after
    // every addend would be quadratic.
    let mut bits = total.bits();
    for part in parts {
        total.add_scaled(&part, &sign).map_err(|refusal| explain(refusal, term))?;
        bits += part.bits() + 1;
        if bits > MAX_BITS {
            bits = total.bits();
            if bits > MAX_BITS {
                return Err(explain(Refusal::Bits, term));
            }
        }
    }
    Ok(Value::Real(Rc::new(total)))
}

fn fold(
    term: Sexpr<'_>,
    arguments: Vec<Argument<'_>>,
    operation: impl Fn(&LinearCases, &LinearCases) -> Result<LinearCases, Refusal>,
) -> Result<Value, SmtError> {
    let mut parts = numbers(term, arguments)?.into_iter();
    let Some(mut result) = parts.next() else { return Err(explain(Refusal::NonLinear, term)) };
    for part in parts {
        result = Rc::new(operation(&result, &part).map_err(|refusal| explain(refusal, term))?);
    }
    Ok(Value::Real(result))
}

/// The formula `left - right relation 0`, case by case.
fn compare(term: Sexpr<'_>, left: &LinearCases, right: &LinearCases, relation: Relation) -> Result<Formula, SmtError> {
    let mut difference = left.clone();
    difference.add_scaled(right, &Rational::from(-1)).map_err(|refusal| explain(refusal, term))?;
    Ok(difference.test(|leaf| Formula::compare(leaf, relation)))
}

/// The formula that every argument is in the relation with the next one; `swapped` exchanges the two sides.
fn chain(
    term: Sexpr<'_>,
    arguments: Vec<Argument<'_>>,
    relation: Relation,
    swapped: bool,
) -> Result<Formula, SmtError> {
    let parts = numbers(term, arguments)?;
    let mut links = Vec::new();
    for (a, b) in parts.iter().zip(parts.iter().skip(1)) {
        let (a, b) = if swapped { (b, a) } else { (a, b) };
        links.push(compare(term, a, b, relation)?);
    }
    Ok(Formula::all(links))
}

/// The formula that all arguments are equal. The first one decides the sort of the others.
fn equal(term: Sexpr<'_>, arguments: Vec<Argument<'_>>) -> Result<Formula, SmtError> {
    match arguments.first() {
        Some((Value::Bool(_), _)) => {
            let parts = truths(term, arguments)?;
            Ok(Formula::all(parts.iter().zip(parts.iter().skip(1)).map(|(a, b)| a.clone().iff(b.clone()))))
        }
        Some((Value::Choice(_), _)) => {
            let parts = choices(term, arguments)?;
            Ok(Formula::all(parts.iter().zip(parts.iter().skip(1)).map(|(a, b)| a.same(b))))
        }
        _ => chain(term, arguments, Relation::Eq, false),
    }
}

fn distinct(term: Sexpr<'_>, arguments: Vec<Argument<'_>>) -> Result<Formula, SmtError> {
    match arguments.first() {
        Some((Value::Bool(_), _)) => {
            let parts = truths(term, arguments)?;
            // There are only two truth values, so three of them are never distinct.
            Ok(match parts.as_slice() {
                [a, b] => a.clone() ^ b.clone(),
                _ => Formula::no(),
            })
        }
        Some((Value::Choice(_), _)) => {
            let parts = choices(term, arguments)?;
            all_pairs(term, &parts, |a, b| Ok(!a.same(b)))
        }
        _ => {
            let parts = numbers(term, arguments)?;
            all_pairs(term, &parts, |a, b| Ok(!compare(term, a, b, Relation::Eq)?))
        }
    }
}

/// The formula that every two of the terms are in a relation.
fn all_pairs<T>(
    term: Sexpr<'_>,
    parts: &[T],
    relation: impl Fn(&T, &T) -> Result<Formula, SmtError>,
) -> Result<Formula, SmtError> {
    if parts.len().saturating_mul(parts.len() - 1) / 2 > MAX_PAIRS {
        return Err(term.error(format!(
            "`distinct` over {} terms compares more than {MAX_PAIRS} pairs; order the terms with `<` instead",
            parts.len()
        )));
    }
    let mut pairs = Vec::new();
    for (k, a) in parts.iter().enumerate() {
        for b in parts.iter().skip(k + 1) {
            pairs.push(relation(a, b)?);
        }
    }
    Ok(Formula::all(pairs))
}

fn choose<'t>(term: Sexpr<'t>, arguments: Vec<Argument<'t>>) -> Result<Value, SmtError> {
    let mut arguments = arguments.into_iter();
    let (Some(test), Some(yes), Some(no)) = (arguments.next(), arguments.next(), arguments.next()) else {
        return Err(term.error("`ite` takes exactly three arguments: condition, then, else"));
    };
    let Value::Bool(condition) = test.0 else { return Err(wrong_sort(term, &test, Sort::Bool)) };
    match (yes.0, no.0) {
        (Value::Bool(yes), Value::Bool(no)) => Ok(Value::Bool(condition.ite(yes, no))),
        (Value::Real(yes), Value::Real(no)) => {
            let cases = LinearCases::ite(&condition, &yes, &no).map_err(|refusal| explain(refusal, term))?;
            Ok(Value::Real(Rc::new(cases)))
        }
        (Value::Choice(yes), Value::Choice(no)) if yes.sort() == no.sort() => {
            Ok(Value::Choice(Rc::new(Choice::ite(&condition, &yes, &no))))
        }
        (yes, other) => Err(wrong_sort(term, &(other, no.1), yes.sort())),
    }
}
