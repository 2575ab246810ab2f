//! Executes the commands of an SMT-LIB script.

use std::collections::HashSet;
use std::rc::Rc;

use super::super::{Constraint, Formula, Var};
use super::SmtError;
use super::scope::{Definition, Macro, Scope, Sort, Value, new_name};
use super::sexpr::{Sexpr, Tree};
use super::term;

#[derive(Default)]
struct Script<'t> {
    scope: Scope<'t>,
    reals: Vec<Var>,
    booleans: Vec<Var>,
    asserted: Vec<Formula>,
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
    let formula = Formula::all(script.asserted);
    Ok(Constraint { formula, reals: script.reals, booleans: script.booleans })
}

impl<'t> Script<'t> {
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
                let parameters = parameter_list(*parameters)?;
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
        let sort = Sort::read(sort)?;
        let var = Var::new(name);
        self.scope.define(symbol, Definition::Value(Value::variable(var.clone(), sort)))?;
        match sort {
            Sort::Real => self.reals.push(var),
            Sort::Bool => self.booleans.push(var),
        }
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
        let wanted = Sort::read(sort)?;
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

fn parameter_list<'t>(list: Sexpr<'t>) -> Result<Vec<(&'t str, Sort)>, SmtError> {
    let form = "write parameters as ((x Real) (b Bool))";
    let mut parameters: Vec<(&str, Sort)> = Vec::new();
    for parameter in list.list().ok_or_else(|| list.error(form))? {
        match parameter.items().take(3).collect::<Vec<_>>().as_slice() {
            [symbol, sort] => {
                let name = new_name(*symbol)?;
                if parameters.iter().any(|(other, _)| *other == name) {
                    return Err(symbol.error(format!("parameter `{name}` occurs twice; rename one")));
                }
                parameters.push((name, Sort::read(*sort)?));
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
        "declare-sort" | "define-sort" | "declare-datatype" | "declare-datatypes" => {
            "only the sorts Real and Bool work; declare variables of these"
        }
        "define-fun-rec" | "define-funs-rec" => {
            "recursive functions cannot be expanded; use define-fun without recursion"
        }
        "minimize" | "maximize" | "assert-soft" => "a constraint has no objective; remove this command",
        _ => {
            "the commands that work are declare-const, declare-fun, define-fun, define-const, assert, set-logic, \
             set-info, set-option, check-sat, get-.., echo and exit"
        }
    };
    head.error(format!("command `{shown}` is not supported: {reason}"))
}
