//! Executes the commands of an SMT-LIB script.

use std::collections::HashSet;
use std::rc::Rc;

use super::super::{Category, Constraint, Formula, Linear, Var};
use super::choice::Choice;
use super::datatype;
use super::integer::{DeclaredInteger, list_values};
use super::scope::{Definition, Macro, Scope, Sort, Value, new_name};
use super::sexpr::{Sexpr, Tree};
use super::term;
use super::{SmtError, SmtQuestion};

/// What a script has declared and asserted so far.
#[derive(Clone, Default)]
struct Script<'t> {
    scope: Scope<'t>,
    reals: Vec<Var>,
    discrete: Vec<Discrete<'t>>,
    integers: Vec<DeclaredInteger<'t>>,
    asserted: Vec<Formula>,
}

/// A declared constant that is no real variable.
#[derive(Clone)]
enum Discrete<'t> {
    Bool(Var),
    Category(Sexpr<'t>, Category),
    /// The position among the integers, whose values are known when all asserts are.
    Integer(usize),
}

/// The most levels of assertions that a script may push.
const MAX_LEVELS: usize = 100_000;

/// A script with its stack of assertion levels and the questions that it asked.
#[derive(Default)]
struct Session<'t> {
    script: Script<'t>,
    /// What to return to, and how many levels stand for it.
    levels: Vec<(Script<'t>, usize)>,
    /// Whether declarations outlive their level.
    global_declarations: bool,
    /// The command that first made the order of assertions matter, if there was one.
    staged: bool,
    questions: Vec<(Sexpr<'t>, Script<'t>)>,
}

/// The constraint that a script states: all its assertions, or those of its only question if it has a stack.
pub(super) fn read<'t>(tree: &'t Tree<'t>) -> Result<Constraint, SmtError> {
    let mut session = Session::run(tree)?;
    if !session.staged {
        return session.script.finish();
    }
    match session.questions.get(1) {
        Some((second, _)) => Err(second.error(format!(
            "this is the second of {} questions, and each has assertions of its own; keep one check-sat for a region, \
             or let `pal check` answer them all",
            session.questions.len()
        ))),
        None => session.questions.pop().map_or(session.script, |(_, asked)| asked).finish(),
    }
}

/// The constraints that a script asks about, one for every check-sat, with the lines of these. A script with at most one
/// question and no stack asks about all its assertions.
pub(super) fn questions<'t>(tree: &'t Tree<'t>) -> Result<Vec<SmtQuestion>, SmtError> {
    let session = Session::run(tree)?;
    if !session.staged && session.questions.len() < 2 || session.questions.is_empty() {
        let line = session.questions.first().map_or(1, |(command, _)| command.position().0);
        return Ok(vec![SmtQuestion { line, constraint: session.script.finish()? }]);
    }
    let question = |(command, script): (Sexpr<'t>, Script<'t>)| {
        Ok(SmtQuestion { line: command.position().0, constraint: script.finish()? })
    };
    session.questions.into_iter().map(question).collect()
}

impl<'t> Session<'t> {
    fn run(tree: &'t Tree<'t>) -> Result<Session<'t>, SmtError> {
        let mut session = Session::default();
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
            session.execute(command, *head, arguments)?;
        }
        Ok(session)
    }

    /// Commands about levels and questions; all others are about declarations and assertions.
    fn execute(&mut self, command: Sexpr<'t>, head: Sexpr<'t>, arguments: &[Sexpr<'t>]) -> Result<(), SmtError> {
        let shape = |wanted: &str| command.error(format!("`{}` must look like {wanted}", command.excerpt()));
        match (head.plain_symbol().unwrap_or(""), arguments) {
            ("push", _) => {
                let count = levels(arguments).ok_or_else(|| shape("(push 1)"))?;
                if self.depth() + count > MAX_LEVELS {
                    return Err(command.error(format!("at most {MAX_LEVELS} levels of assertions are possible")));
                }
                self.staged = true;
                if count > 0 {
                    self.levels.push((self.script.clone(), count));
                }
            }
            ("pop", _) => {
                let count = levels(arguments).ok_or_else(|| shape("(pop 1)"))?;
                let depth = self.depth();
                if count > depth {
                    return Err(command.error(format!("pop {count} where {depth} levels have been pushed")));
                }
                self.staged = true;
                self.pop(count);
            }
            ("reset", []) => {
                // Only assertions that were there before make the order of commands matter.
                let staged = self.staged || !self.script.asserted.is_empty();
                let questions = std::mem::take(&mut self.questions);
                *self = Session { staged, questions, ..Session::default() };
            }
            ("reset-assertions", []) => {
                self.staged |= !self.script.asserted.is_empty();
                self.levels.clear();
                self.return_to(Script::default());
            }
            ("reset" | "reset-assertions", _) => return Err(shape("(reset)")),
            ("check-sat", []) => self.questions.push((command, self.script.clone())),
            ("check-sat", _) => return Err(shape("(check-sat)")),
            ("check-sat-assuming", [assumptions]) => {
                let list = assumptions.list().ok_or_else(|| shape("(check-sat-assuming (a (not b)))"))?;
                let mut asked = self.script.clone();
                for term in list {
                    asked.asserted.push(term::bool_term(term, &mut asked.scope)?);
                }
                self.staged = true;
                self.questions.push((command, asked));
            }
            ("check-sat-assuming", _) => return Err(shape("(check-sat-assuming (a (not b)))")),
            ("set-option", [option, value]) if option.text() == ":global-declarations" => {
                self.global_declarations = value.text() == "true";
            }
            _ => self.script.execute(command, head, arguments)?,
        }
        Ok(())
    }

    fn depth(&self) -> usize {
        self.levels.iter().map(|(_, count)| count).sum()
    }

    fn pop(&mut self, mut count: usize) {
        let mut earlier = None;
        while count > 0 {
            let Some((script, levels)) = self.levels.last_mut() else { break };
            earlier = Some(script.clone());
            let taken = count.min(*levels);
            count -= taken;
            *levels -= taken;
            if *levels == 0 {
                self.levels.pop();
            }
        }
        if let Some(earlier) = earlier {
            self.return_to(earlier);
        }
    }

    /// Takes back what was asserted, and declared unless declarations stay, since an earlier state.
    fn return_to(&mut self, earlier: Script<'t>) {
        if self.global_declarations {
            self.script.asserted = earlier.asserted;
            return;
        }
        // Work that was spent stays spent.
        let expanded = self.script.scope.expanded;
        self.script = earlier;
        self.script.scope.expanded = expanded;
    }
}

/// The number of levels that `push` or `pop` is about: 1 if none is given.
fn levels(arguments: &[Sexpr<'_>]) -> Option<usize> {
    match arguments {
        [] => Some(1),
        [count] => count.text().parse().ok(),
        _ => None,
    }
}

impl<'t> Script<'t> {
    /// The constraint: the asserts, with the values of integers listed, and the rules of all categories.
    fn finish(mut self) -> Result<Constraint, SmtError> {
        // A formula asserted twice is flattened once: repeating a large one must not multiply its parts.
        let mut seen = HashSet::new();
        self.asserted.retain(|formula| seen.insert(formula.key()));
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
            ("set-logic" | "set-info" | "set-option" | "echo", _) => {}
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
        "declare-sort" | "define-sort" => {
            "only the sorts Real, Bool and Int work, and those that declare-datatype lists the values of"
        }
        "define-fun-rec" | "define-funs-rec" => {
            "recursive functions cannot be expanded; use define-fun without recursion"
        }
        "minimize" | "maximize" | "assert-soft" => "a constraint has no objective; remove this command",
        _ => {
            "the commands that work are declare-const, declare-fun, declare-datatype, declare-datatypes, define-fun, \
             define-const, assert, push, pop, reset, reset-assertions, check-sat, check-sat-assuming, set-logic, \
             set-info, set-option, get-.., echo and exit"
        }
    };
    head.error(format!("command `{shown}` is not supported: {reason}"))
}
