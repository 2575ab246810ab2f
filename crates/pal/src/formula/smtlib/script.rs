//! Executes the commands of an SMT-LIB script.

use std::collections::HashSet;
use std::rc::Rc;

use super::super::{Category, Constraint, Formula, Linear, Var};
use super::SmtError;
use super::choice::Choice;
use super::datatype;
use super::integer::{DeclaredInteger, list_values};
use super::scope::{Definition, Macro, Scope, Sort, Value, new_name};
use super::sexpr::{Sexpr, Tree};
use super::term;

#[derive(Default)]
struct Script<'t> {
    scope: Scope<'t>,
    reals: Vec<Var>,
    discrete: Vec<Discrete<'t>>,
    integers: Vec<DeclaredInteger<'t>>,
    asserted: Vec<Formula>,
}

/// A declared constant that is no real variable.
enum Discrete<'t> {
    Bool(Var),
    Category(Sexpr<'t>, Category),
    /// The position among the integers, whose values are known when all asserts are.
    Integer(usize),
}

/// The constraint that a script states.
pub(super) fn read<'t>(tree: &'t Tree<'t>) -> Result<Constraint, SmtError> {
    let mut script = Script::default();
    for command in tree.items() {
        let Some(parts) = command.list() else {
            return Err(command.error(format!(
                "expected a command such as (declare-const x Real) or (assert ..), found `{}`",
                command.excerpt()
            )));
        };
        let Some((head, arguments)) = parts.split_first() else {
            return Err(command.error("`()` is not a command; write for instance (assert (<= x 1))"));
        };
        if head.plain_symbol() == Some("exit") {
            break;
        }
        script.execute(command, *head, arguments)?;
    }
    // A formula asserted twice is flattened once: repeating a large one must not multiply its parts.
    let mut seen = HashSet::new();
    script.asserted.retain(|formula| seen.insert(formula.key()));
    script.finish()
}

impl<'t> Script<'t> {
    /// The constraint: the asserts, with the values of integers listed, and the rules of all categories.
    fn finish(self) -> Result<Constraint, SmtError> {
        let (mut formula, integers) = list_values(Formula::all(self.asserted), &self.integers)?;
        let mut booleans: Vec<Var> = Vec::new();
        for declared in self.discrete {
            let (symbol, category) = match declared {
                Discrete::Bool(var) => {
                    booleans.push(var);
                    continue;
                }
                Discrete::Category(symbol, category) => (symbol, category),
                Discrete::Integer(at) => (self.integers[at].symbol, integers[at].clone()),
            };
            formula = formula & category.exactly_one();
            booleans.extend_from_slice(category.variables());
            if let Some(twice) =
                category.variables().iter().find(|var| self.scope.definition(var.name(), usize::MAX).is_some())
            {
                return Err(symbol.error(format!(
                    "`{twice}` is declared, which is also the name of a column of `{}`; rename it",
                    category.name()
                )));
            }
        }
        Ok(Constraint { formula, reals: self.reals, booleans })
    }

    fn execute(&mut self, command: Sexpr<'t>, head: Sexpr<'t>, arguments: &[Sexpr<'t>]) -> Result<(), SmtError> {
        let shape = |wanted: &str| command.error(format!("`{}` must look like {wanted}", command.excerpt()));
        let name = head.plain_symbol().unwrap_or("");
        match (name, arguments) {
            ("assert", [formula]) => {
                let formula = term::bool_term(*formula, &mut self.scope)?;
                self.asserted.push(formula);
            }
            ("assert", _) => return Err(shape("(assert term), with one term")),
            ("declare-const", [name, sort]) => self.declare(*name, *sort)?,
            ("declare-const", _) => return Err(shape("(declare-const name Real) or (declare-const name Bool)")),
            ("declare-datatype", [name, values]) => datatype::declare(*name, *values, &mut self.scope)?,
            ("declare-datatype", _) => return Err(shape(datatype::FORM)),
            ("declare-datatypes", [sorts, values]) => datatype::declare_all(*sorts, *values, &mut self.scope)?,
            ("declare-datatypes", _) => {
                return Err(shape("(declare-datatypes ((Mode 0)) (((walk) (bike) (car))))"));
            }
            ("declare-fun", [name, parameters, sort]) => match parameters.list() {
                Some(list) if list.is_empty() => self.declare(*name, *sort)?,
                Some(_) => {
                    return Err(parameters.error(format!(
                        "`{}` has arguments, and functions without a definition are not supported; \
                         use () for a variable, or define-fun",
                        name.excerpt()
                    )));
                }
                None => return Err(parameters.error("expected the argument sorts; write () for a variable")),
            },
            ("declare-fun", _) => return Err(shape("(declare-fun name () Real)")),
            ("define-const", [name, sort, body]) => self.define(*name, Vec::new(), *sort, *body)?,
            ("define-const", _) => return Err(shape("(define-const name Real term)")),
            ("define-fun", [name, parameters, sort, body]) => {
                let parameters = parameter_list(*parameters, &self.scope)?;
                self.define(*name, parameters, *sort, *body)?;
            }
            ("define-fun", _) => return Err(shape("(define-fun name ((x Real) ..) Bool term)")),
            ("set-logic" | "set-info" | "set-option" | "echo" | "check-sat", _) => {}
            ("get-model" | "get-value" | "get-info" | "get-option" | "get-assertions" | "get-assignment", _) => {}
            ("get-proof" | "get-unsat-core" | "get-unsat-assumptions", _) => {}
            _ => return Err(refused(head)),
        }
        Ok(())
    }

    fn declare(&mut self, symbol: Sexpr<'t>, sort: Sexpr<'t>) -> Result<(), SmtError> {
        let name = new_name(symbol)?;
        let var = Var::new(name);
        let value = match self.scope.sort(sort)? {
            Sort::Bool => {
                self.discrete.push(Discrete::Bool(var.clone()));
                Value::boolean(var)
            }
            Sort::Real => {
                if sort.symbol() == Some("Int") {
                    self.discrete.push(Discrete::Integer(self.integers.len()));
                    self.integers.push(DeclaredInteger::new(symbol, var.clone()));
                } else {
                    self.reals.push(var.clone());
                }
                Value::real(Linear::from(var))
            }
            Sort::Enumerated(sort) => {
                let category = Category::new(name, &sort.values).map_err(|error| symbol.error(error.to_string()))?;
                let value = Value::Choice(Rc::new(Choice::variable(&sort, &category)));
                self.discrete.push(Discrete::Category(symbol, category));
                value
            }
        };
        self.scope.define(symbol, Definition::Value(value))?;
        Ok(())
    }

    fn define(
        &mut self,
        symbol: Sexpr<'t>,
        parameters: Vec<(&'t str, Sort)>,
        sort: Sexpr<'t>,
        body: Sexpr<'t>,
    ) -> Result<(), SmtError> {
        let name = new_name(symbol)?;
        let wanted = self.scope.sort(sort)?;
        let (definition, found) = if parameters.is_empty() {
            let value = term::value(body, &mut self.scope)?;
            let found = value.sort();
            (Definition::Value(value), found)
        } else {
            let function = Rc::new(Macro { name, parameters, body, serial: self.scope.serial() });
            let found = term::body_sort(&function, &mut self.scope)?;
            (Definition::Macro(function), found)
        };
        if found != wanted {
            return Err(body.error(format!(
                "`{name}` is defined with sort {}, but its body `{}` has sort {}",
                wanted.name(),
                body.excerpt(),
                found.name()
            )));
        }
        self.scope.define(symbol, definition)?;
        Ok(())
    }
}

fn parameter_list<'t>(list: Sexpr<'t>, scope: &Scope<'t>) -> Result<Vec<(&'t str, Sort)>, SmtError> {
    let form = "write parameters as ((x Real) (b Bool))";
    let mut parameters: Vec<(&str, Sort)> = Vec::new();
    for parameter in list.list().ok_or_else(|| list.error(form))? {
        match parameter.items().take(3).collect::<Vec<_>>().as_slice() {
            [symbol, sort] => {
                let name = new_name(*symbol)?;
                if parameters.iter().any(|(other, _)| *other == name) {
                    return Err(symbol.error(format!("parameter `{name}` occurs twice; rename one")));
                }
                parameters.push((name, scope.sort(*sort)?));
            }
            _ => return Err(parameter.error(format!("`{}` is not a parameter; {form}", parameter.excerpt()))),
        }
    }
    Ok(parameters)
}

/// The error for a command that is not supported.
fn refused(head: Sexpr<'_>) -> SmtError {
    let shown = head.excerpt();
    let reason = match head.plain_symbol().unwrap_or("") {
        "push" | "pop" | "reset" | "reset-assertions" => {
            "a constraint is one set of assertions, without a stack; \
             keep the assertions you mean and remove this command"
        }
        "check-sat-assuming" => "assert the assumptions instead",
        "declare-sort" | "define-sort" => {
            "only the sorts Real, Bool and Int work, and those that declare-datatype lists the values of"
        }
        "define-fun-rec" | "define-funs-rec" => {
            "recursive functions cannot be expanded; use define-fun without recursion"
        }
        "minimize" | "maximize" | "assert-soft" => "a constraint has no objective; remove this command",
        _ => {
            "the commands that work are declare-const, declare-fun, declare-datatype, declare-datatypes, define-fun, \
             define-const, assert, set-logic, set-info, set-option, check-sat, get-.., echo and exit"
        }
    };
    head.error(format!("command `{shown}` is not supported: {reason}"))
}
