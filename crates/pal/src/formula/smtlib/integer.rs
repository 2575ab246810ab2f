//! Integer constants: categories whose values are the integers within their bounds.
//!
//! While a script is read, an integer stands for a real variable. When all asserts are known, their bounds tell which
//! integers are possible; each of them becomes a value of a category, and every atom over integers a distinction by
//! their values. Sums of several integers distinguish the combinations of their values.

use std::rc::Rc;

use super::super::{Bounds, Category, Formula, Linear, Node, Relation, Substitution, Var};
use super::SmtError;
use super::linear_cases::{LinearCases, MAX_CASES};
use super::numeral::written;
use super::sexpr::Sexpr;
use crate::number::{Integer, Rational};

/// The largest number of values of an integer.
pub(super) const MAX_VALUES: usize = 64;

/// A declared integer, whose values are not known yet.
#[derive(Clone)]
pub(super) struct DeclaredInteger<'t> {
    pub(super) symbol: Sexpr<'t>,
    /// The variable that stands for the integer in the formula.
    pub(super) var: Var,
    /// Variables for the values, declared together with the integer so that columns are in the order of declaration.
    slots: Vec<Var>,
}

impl<'t> DeclaredInteger<'t> {
    pub(super) fn new(symbol: Sexpr<'t>, var: Var) -> DeclaredInteger<'t> {
        let slots = Var::declare_all(&vec![var.name(); MAX_VALUES]);
        DeclaredInteger { symbol, var, slots }
    }

    /// The category of the integers that the bounds of a formula leave over.
    fn category(&self, formula: &Formula) -> Result<Category, SmtError> {
        let name = self.var.name();
        let none = || self.symbol.error(format!("no value of the integer `{name}` satisfies the asserts"));
        let Bounds::Box(bounds) = formula.bounds() else { return Err(none()) };
        let interval = bounds.get(&self.var);
        let end = |bound: Option<&Rational>, what: &str, example: &str| {
            bound.cloned().ok_or_else(|| {
                self.symbol.error(format!(
                    "the integer `{name}` has no {what} bound in the asserts, so its values cannot be listed; assert one, \
                     for instance ({example})"
                ))
            })
        };
        let low = end(interval.and_then(|i| i.low.as_ref()), "lower", &format!(">= {name} 0"))?.ceil();
        let high = end(interval.and_then(|i| i.high.as_ref()), "upper", &format!("<= {name} 9"))?.floor();
        let count: Integer = high - &low + 1;
        if count > Integer::from(MAX_VALUES) {
            return Err(self.symbol.error(format!(
                "the integer `{name}` has {count} values, and at most {MAX_VALUES} can be listed; tighten its bounds, or \
                 declare it as a Real"
            )));
        }
        let count = usize::try_from(count).unwrap_or(0);
        let possible = |value: &Integer| {
            let at = formula.substitute(&Substitution::new().real(name, Linear::from(Rational::from(value.clone()))));
            !matches!(at.bounds(), Bounds::Empty)
        };
        let values: Vec<Integer> = (0..count).map(|k| &low + Integer::from(k)).filter(possible).collect();
        match &values[..] {
            [] => Err(none()),
            [only] => Err(self.symbol.error(format!(
                "the integer `{name}` can only be {only}; write that number in its place, or give it more room"
            ))),
            several => {
                let labels: Vec<String> = several.iter().map(Integer::to_string).collect();
                Category::in_slots(name, &labels, &self.slots).map_err(|error| self.symbol.error(error.to_string()))
            }
        }
    }
}

/// Lists the values of all integers and distinguishes the atoms of a formula by them.
pub(super) fn list_values(
    formula: Formula,
    integers: &[DeclaredInteger<'_>],
) -> Result<(Formula, Vec<Category>), SmtError> {
    let Some(first) = integers.first() else { return Ok((formula, Vec::new())) };
    let categories = integers.iter().map(|integer| integer.category(&formula)).collect::<Result<Vec<_>, _>>()?;
    let numbers = |category: &Category| -> Vec<(Formula, Rational)> { literals(category).collect() };
    let values: Vec<(&Var, Vec<(Formula, Rational)>)> =
        integers.iter().zip(&categories).map(|(integer, category)| (&integer.var, numbers(category))).collect();
    let mut refused = None;
    let listed = formula.fold(|formula, children: &[Formula]| match formula.node() {
        Node::Constant(_) | Node::Bool(_) => formula.clone(),
        Node::Connective(connective, _) => connective.apply(children),
        Node::Atom(atom) => {
            let mut term = Linear::from(Rational::from(-atom.plane().offset()));
            let mut factors = Vec::new();
            for (var, a) in atom.plane().normal() {
                let a = Rational::from(a.clone());
                match values.iter().find(|(integer, _)| *integer == var) {
                    Some((_, values)) => factors.push((a, &values[..])),
                    None => term.add_term(var.clone(), a),
                }
            }
            let combinations =
                factors.iter().try_fold(1usize, |product, (_, values)| product.checked_mul(values.len()));
            if combinations.is_none_or(|count| count > MAX_CASES) {
                refused.get_or_insert_with(|| formula.to_string());
                return Formula::no();
            }
            if factors.is_empty() { formula.clone() } else { distinguish(&term, &factors, atom.relation()) }
        }
    });
    match refused {
        None => Ok((listed, categories)),
        Some(atom) => Err(first.symbol.error(format!(
            "the integers in `{atom}` have more than {MAX_CASES} combinations of values; tighten their bounds"
        ))),
    }
}

/// The relation of a sum with 0, distinguished by the values of integers with their factors. The depth of the recursion
/// is the number of integers, of which a dozen with two values each reach the largest number of combinations.
fn distinguish(term: &Linear, factors: &[(Rational, &[(Formula, Rational)])], relation: Relation) -> Formula {
    let Some(((factor, values), others)) = factors.split_first() else { return Formula::compare(term, relation) };
    let case = |(_, value): &(Formula, Rational)| {
        let mut sum = term.clone();
        sum.add_scaled(&Linear::from(value.clone()), factor);
        distinguish(&sum, others, relation)
    };
    let cases: Vec<Formula> = values.iter().map(case).collect();
    let literals = values.iter().map(|(literal, _)| literal.clone()).zip(&cases);
    // One of the values holds, so that what is true for most of them is written as what is not true for the rest.
    let holds = cases.iter().filter(|case| case.is_true()).count();
    if 2 * holds > cases.len() && cases.iter().all(|case| case.as_constant().is_some()) {
        return !Formula::any(literals.filter(|(_, case)| !case.is_true()).map(|(literal, _)| literal));
    }
    Formula::any(literals.map(|(literal, case)| literal & case.clone()))
}

/// The literals of a category of integers with their numbers.
fn literals(category: &Category) -> impl ExactSizeIterator<Item = (Formula, Rational)> {
    let number = |label: &String| Rational::from(integer(label).unwrap_or_default());
    category.variables().iter().cloned().map(Formula::from).zip(category.values().iter().map(number))
}

/// The number that a category of integers has, as a distinction by its values.
pub(super) fn cases_of(category: &Category) -> LinearCases {
    LinearCases::by_value(literals(category).map(|(formula, number)| (formula, Rc::new(Linear::from(number)))))
}

/// The integer that a label writes in the usual way: without a plus sign and leading zeros.
fn integer(label: &str) -> Option<Integer> {
    label.parse::<Integer>().ok().filter(|value| value.to_string() == label)
}

/// Whether the values of a category are integers in increasing order, as those of a declared integer are.
pub(super) fn is_integer(category: &Category) -> bool {
    numbers(category).is_some()
}

fn numbers(category: &Category) -> Option<Vec<Integer>> {
    let values: Option<Vec<Integer>> = category.values().iter().map(|label| integer(label)).collect();
    values.filter(|values| values.windows(2).all(|pair| pair[0] < pair[1]))
}

/// The asserts that give a declared integer exactly the values of a category; `None` if no integer could have them.
pub(super) fn written_bounds(category: &Category, name: &str) -> Option<String> {
    let values = numbers(category)?;
    let (low, high) = (values.first()?, values.last()?);
    if high - low >= Integer::from(MAX_VALUES) {
        return None;
    }
    let number = |value: &Integer| written(&Rational::from(value.clone()));
    let mut text = format!("(assert (<= {} {name} {}))\n", number(low), number(high));
    let mut between = low.clone();
    while between < *high {
        if !values.contains(&between) {
            text.push_str(&format!("(assert (distinct {name} {}))\n", number(&between)));
        }
        between += 1;
    }
    Some(text)
}
