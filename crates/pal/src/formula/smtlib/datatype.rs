//! The commands `declare-datatype` and `declare-datatypes`, for sorts that list their values.

use std::rc::Rc;

use super::SmtError;
use super::choice::{Choice, EnumeratedSort};
use super::scope::{Definition, Scope, Value, new_name};
use super::sexpr::Sexpr;

/// How the commands are written, for messages.
pub(super) const FORM: &str = "(declare-datatype Mode ((walk) (bike) (car)))";

/// Declares the sorts of `(declare-datatypes ((Mode 0) ..) (((walk) (bike)) ..))`.
pub(super) fn declare_all<'t>(sorts: Sexpr<'t>, values: Sexpr<'t>, scope: &mut Scope<'t>) -> Result<(), SmtError> {
    let wanted =
        |place: Sexpr<'t>| place.error("expected lists; write (declare-datatypes ((Mode 0)) (((walk) (bike) (car))))");
    let names = sorts.list().ok_or_else(|| wanted(sorts))?;
    let lists = values.list().ok_or_else(|| wanted(values))?;
    if names.len() != lists.len() {
        return Err(values.error(format!(
            "{} sorts are named and {} lists of values given; give one list for each sort",
            names.len(),
            lists.len()
        )));
    }
    for (name, list) in names.into_iter().zip(lists) {
        match name.list().as_deref() {
            Some([symbol, arity]) if arity.text() == "0" => declare(*symbol, list, scope)?,
            Some([_, arity]) => {
                return Err(arity.error("sorts with parameters are not supported; the number after the name must be 0"));
            }
            _ => return Err(name.error(format!("`{}` must look like (Mode 0)", name.excerpt()))),
        }
    }
    Ok(())
}

/// Declares one sort and its values.
pub(super) fn declare<'t>(symbol: Sexpr<'t>, list: Sexpr<'t>, scope: &mut Scope<'t>) -> Result<(), SmtError> {
    let name = new_name(symbol)?;
    let constructors = list.list().ok_or_else(|| list.error(format!("expected a list of values; write {FORM}")))?;
    let mut places = Vec::new();
    for constructor in constructors {
        let place = match constructor.list().as_deref() {
            None => constructor,
            Some([value]) => *value,
            Some([value, ..]) if value.plain_symbol() != Some("par") => {
                return Err(constructor.error(format!(
                    "the value `{}` has arguments; only sorts that list their values are supported, such as {FORM}",
                    value.excerpt()
                )));
            }
            Some(_) => {
                return Err(constructor.error(format!("`{}` is not a value; write {FORM}", constructor.excerpt())));
            }
        };
        new_name(place)?;
        places.push(place);
    }
    if places.len() < 2 {
        return Err(list.error(format!("the sort `{name}` needs at least two values; write {FORM}")));
    }
    let values = places.iter().map(|place| place.symbol().unwrap_or_default().to_string()).collect();
    let sort = Rc::new(EnumeratedSort { name: name.to_string(), values });
    scope.define_sort(symbol, sort.clone())?;
    for (at, place) in places.into_iter().enumerate() {
        let text = place.symbol().unwrap_or_default();
        if let Some(Definition::Value(Value::Choice(other))) = scope.definition(text, usize::MAX)
            && other.is_value()
        {
            return Err(place.error(format!(
                "`{text}` is a value of the sort `{}` already, and of two sorts one could not tell which is meant; \
                 rename one",
                other.sort().name
            )));
        }
        scope.define(place, Definition::Value(Value::Choice(Rc::new(Choice::value(&sort, at)))))?;
    }
    Ok(())
}
