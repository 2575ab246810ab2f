//! Reads weights from SMT-LIB-like terms of sort Real with `+ - * / pow ite`.

use std::sync::Arc;

use super::weight::{MAX_DEPTH, SymbolicWeight, Weight};
use crate::formula::smtlib::sexpr::{Kind, Sexpr};
use crate::formula::smtlib::{Scope, term};
use crate::formula::{Constraint, Formula, SmtError, Var};
use crate::number::{Rational, parse_rational};
use crate::polynomial::{MAX_DEGREE, Polynomial};

/// Terms nested deeper than this are refused before anything is built from them.
const MAX_NESTING: usize = 10_000;

/// An operator waiting for its arguments.
struct Pending<'t> {
    term: Sexpr<'t>,
    operator: &'t str,
    condition: Option<Formula>,
    /// The arguments still to be read; the next one is at the end.
    unread: Vec<Sexpr<'t>>,
    arguments: Vec<Arc<SymbolicWeight>>,
}

/// Reads a weight over the variables of the constraint.
pub(super) fn weight<'t>(
    root: Sexpr<'t>,
    constraint: &Constraint,
    scope: &mut Scope<'t>,
) -> Result<Arc<SymbolicWeight>, SmtError> {
    let mut stack: Vec<Pending<'t>> = Vec::new();
    let mut next = Some(root);
    loop {
        let mut done = match next.take() {
            Some(term) => match open(term, constraint, scope)? {
                Opened::Leaf(weight) => Some(weight),
                Opened::Operator(pending) => {
                    if stack.len() >= MAX_NESTING {
                        return Err(term.error(format!("terms nested deeper than {MAX_NESTING}")));
                    }
                    stack.push(pending);
                    None
                }
            },
            None => None,
        };
        // Hand finished terms to the operators that wait for them.
        loop {
            let Some(top) = stack.last_mut() else {
                let result = done.unwrap_or_else(|| Weight::constant(Polynomial::zero()));
                return match result.depth() {
                    depth if depth > MAX_DEPTH => {
                        Err(root.error(format!("cases nested {depth} deep; at most {MAX_DEPTH} are possible")))
                    }
                    _ => Ok(result),
                };
            };
            top.arguments.extend(done.take());
            match top.unread.pop() {
                Some(argument) => {
                    next = Some(argument);
                    break;
                }
                None => {
                    if let Some(finished) = stack.pop() {
                        done = Some(apply(finished)?);
                    }
                }
            }
        }
    }
}

/// A term whose first token has been read.
enum Opened<'t> {
    Leaf(Arc<SymbolicWeight>),
    Operator(Pending<'t>),
}

fn open<'t>(term: Sexpr<'t>, constraint: &Constraint, scope: &mut Scope<'t>) -> Result<Opened<'t>, SmtError> {
    let Some(items) = term.list() else { return leaf(term, constraint).map(Opened::Leaf) };
    let mut items = items.into_iter();
    let head = items.next().ok_or_else(|| term.error("an empty term; write a number, a variable or an operation"))?;
    let Some(operator) = head.plain_symbol() else {
        return Err(head.error("expected an operator such as + * ite here"));
    };
    let mut rest: Vec<Sexpr<'t>> = items.collect();
    let wanted = match operator {
        "+" | "*" | "-" if !rest.is_empty() => rest.len(),
        "/" if rest.len() >= 2 => rest.len(),
        "pow" | "^" => 2,
        "ite" => 3,
        "to_real" => 1,
        "+" | "*" | "-" | "/" => return Err(term.error(format!("`{operator}` needs arguments"))),
        _ => {
            return Err(head.error(format!(
                "unknown operator `{operator}` in a weight; + - * / pow and ite over numbers and real variables work"
            )));
        }
    };
    if rest.len() != wanted {
        return Err(term.error(format!("`{operator}` takes {wanted} arguments, {} given", rest.len())));
    }
    rest.reverse();
    let condition = match operator {
        "ite" => rest.pop().map(|c| self::term::bool_term(c, scope)).transpose()?,
        _ => None,
    };
    Ok(Opened::Operator(Pending { term, operator, condition, unread: rest, arguments: Vec::new() }))
}

fn leaf(term: Sexpr<'_>, constraint: &Constraint) -> Result<Arc<SymbolicWeight>, SmtError> {
    if term.kind() == Kind::Number {
        let value = parse_rational(term.text()).map_err(|e| term.error(e.to_string()))?;
        return Ok(Weight::constant(Polynomial::constant(value)));
    }
    let name = term.symbol().unwrap_or_else(|| term.text());
    let named = |var: &&Var| var.name() == name;
    if let Some(var) = constraint.reals.iter().find(named) {
        return Ok(Weight::constant(Polynomial::var(var)));
    }
    if constraint.booleans.iter().any(|var| var.name() == name) {
        return Err(term.error(format!("`{name}` is Boolean; in a weight write (ite {name} 1 0)")));
    }
    match parse_rational(name) {
        Ok(value) => Ok(Weight::constant(Polynomial::constant(value))),
        Err(_) => Err(term.error(format!("unknown variable `{name}`"))),
    }
}

fn apply(mut pending: Pending<'_>) -> Result<Arc<SymbolicWeight>, SmtError> {
    let term = pending.term;
    let constant = |weight: &SymbolicWeight| match weight {
        Weight::Polynomial(p) => p.as_constant(),
        _ => None,
    };
    let minus = |weight: Arc<SymbolicWeight>| Weight::product([weight, scalar(Rational::from(-1))]);
    let result = match pending.operator {
        "+" => Weight::sum(pending.arguments),
        "*" => Weight::product(pending.arguments),
        "to_real" => Weight::sum(pending.arguments),
        "-" if pending.arguments.len() == 1 => minus(pending.arguments.swap_remove(0)),
        "-" => {
            let mut arguments = pending.arguments.into_iter();
            let first = arguments.next();
            Weight::sum(first.into_iter().chain(arguments.map(minus)))
        }
        "/" => {
            let mut arguments = pending.arguments.into_iter();
            let mut factors: Vec<_> = arguments.next().into_iter().collect();
            for divisor in arguments {
                match constant(&divisor) {
                    Some(c) if c.is_zero() => return Err(term.error("division by zero")),
                    Some(c) => factors.push(scalar(Rational::ONE / c)),
                    None => return Err(term.error("only division by a constant gives a polynomial")),
                }
            }
            Weight::product(factors)
        }
        "pow" | "^" => {
            let exponent = pending.arguments.get(1).and_then(|e| constant(e)).filter(|e| e.is_int());
            let exponent = exponent.and_then(|e| u32::try_from(e.numerator().clone()).ok());
            match exponent {
                Some(k) if k <= MAX_DEGREE => Weight::power(pending.arguments.swap_remove(0), k),
                _ => {
                    let message = format!("the exponent must be a whole number from 0 to {MAX_DEGREE}");
                    return Err(term.error(message));
                }
            }
        }
        _ => {
            let mut arguments = pending.arguments.into_iter();
            match (pending.condition, arguments.next(), arguments.next()) {
                (Some(condition), Some(yes), Some(no)) => match condition.as_constant() {
                    Some(true) => yes,
                    Some(false) => no,
                    None => Weight::ite(condition, yes, no),
                },
                _ => return Err(term.error("`ite` takes a condition and two terms")),
            }
        }
    };
    match &*result {
        Weight::Failed(error) => Err(term.error(error.to_string())),
        _ => Ok(result),
    }
}

fn scalar(value: Rational) -> Arc<SymbolicWeight> {
    Weight::constant(Polynomial::constant(value))
}
