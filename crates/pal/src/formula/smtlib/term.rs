//! Evaluates terms: turns s-expressions into formulas and linear terms.
//!
//! A stack of tasks takes the place of recursion. Visiting a list pushes a task that applies its operator and, on top
//! of it, a visit for each argument; values collect on a second stack. An `and` directly inside an `and` pushes no task
//! of its own: its arguments become arguments of the outer one.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::super::{Formula, Var};
use super::SmtError;
use super::choice::Choice;
use super::numeral;
use super::operator::{Argument, Operator};
use super::scope::{Definition, Macro, Scope, Sort, Value, new_name};
use super::sexpr::{Kind, Sexpr};
use crate::number::Rational;

/// At most this many terms are visited inside macros, which takes a few seconds: calls inside calls can double the work
/// at each level.
const MAX_EXPANSION: usize = 10_000_000;

/// The formula that a term of sort Bool denotes.
pub(crate) fn bool_term<'t>(term: Sexpr<'t>, scope: &mut Scope<'t>) -> Result<Formula, SmtError> {
    match value(term, scope)? {
        Value::Bool(formula) => Ok(formula),
        Value::Real(_) => Err(term.error(format!(
            "`{}` has sort Real where a Bool is needed; compare it with something, for instance (<= .. 0)",
            term.excerpt()
        ))),
        Value::Choice(choice) => Err(term.error(format!(
            "`{}` has sort {} where a Bool is needed; compare it with a value, for instance (= .. {})",
            term.excerpt(),
            choice.sort().name,
            choice.sort().values[0]
        ))),
    }
}

/// The value of a term of any sort.
pub(crate) fn value<'t>(term: Sexpr<'t>, scope: &mut Scope<'t>) -> Result<Value, SmtError> {
    Evaluation::new(scope, EvaluationTask::Visit(term, None)).run(term)
}

/// The sort of a macro's body, found by evaluating it on stand-in arguments. Reals are replaced by an unlikely
/// constant and not by variables, because `(* a x)` is fine when every call passes a number for `a`.
pub(super) fn body_sort<'t>(definition: &Rc<Macro<'t>>, scope: &mut Scope<'t>) -> Result<Sort, SmtError> {
    let stand_in = |sort: &Sort| match sort {
        Sort::Real => Value::real(Rational::from_parts(1_299_709.into(), 15_485_863u32.into())),
        Sort::Bool => Value::boolean(Var::new("")),
        Sort::Enumerated(sort) => Value::Choice(Rc::new(Choice::value(sort, 0))),
    };
    let body = definition.body;
    let arguments = definition.parameters.iter().map(|(_, sort)| (stand_in(sort), body)).collect();
    let mut evaluation =
        Evaluation::new(scope, EvaluationTask::Call { definition: definition.clone(), call: None, base: 0 });
    evaluation.values = arguments;
    evaluation.run(body).map(|value| value.sort())
}

enum EvaluationTask<'t> {
    /// Evaluate a term. Directly inside `and` or `or`, a term with the same operator may push its arguments instead.
    Visit(Sexpr<'t>, Option<Operator>),
    /// Apply an operator to all values from `base` on.
    Apply { operator: Operator, term: Sexpr<'t>, base: usize },
    /// Bind the values from `base` on to the names of a `let` and go on with its body.
    Bind { names: Vec<&'t str>, body: Sexpr<'t>, inside: Option<Operator>, base: usize },
    /// Remove the innermost binding of each name.
    Unbind(Vec<&'t str>),
    /// Expand a macro whose arguments are the values from `base` on. Without a call, the macro is only being checked.
    Call { definition: Rc<Macro<'t>>, call: Option<Sexpr<'t>>, base: usize },
    /// Leave the expansion of a macro and return to the frame of its caller.
    Return { definition: Rc<Macro<'t>>, caller: CallFrame<'t> },
    /// Give a global name to the last value.
    Name(Sexpr<'t>),
}

/// The frame of one expansion of a macro, or of the script itself. Local names belong to a frame: a macro's body does
/// not see the caller's `let`s.
#[derive(Clone, Copy)]
struct CallFrame<'t> {
    id: usize,
    horizon: usize,
    call: Option<Sexpr<'t>>,
}

struct Evaluation<'s, 't> {
    scope: &'s mut Scope<'t>,
    locals: HashMap<&'t str, Vec<(usize, Value)>>,
    frame: CallFrame<'t>,
    frames: usize,
    tasks: Vec<EvaluationTask<'t>>,
    values: Vec<Argument<'t>>,
}

impl<'s, 't> Evaluation<'s, 't> {
    fn new(scope: &'s mut Scope<'t>, first: EvaluationTask<'t>) -> Self {
        let frame = CallFrame { id: 0, horizon: usize::MAX, call: None };
        Evaluation { scope, locals: HashMap::new(), frame, frames: 0, tasks: vec![first], values: Vec::new() }
    }

    fn run(mut self, term: Sexpr<'t>) -> Result<Value, SmtError> {
        while let Some(task) = self.tasks.pop() {
            self.step(task).map_err(|error| self.with_call(error))?;
        }
        self.values.pop().map(|(value, _)| value).ok_or_else(|| term.error("this is not a term"))
    }

    /// Adds to an error inside a macro which call led there.
    fn with_call(&self, mut error: SmtError) -> SmtError {
        if let Some(call) = self.frame.call {
            let (line, column) = call.position();
            if (line, column) != (error.line, error.column) {
                error.message +=
                    &format!(" (in the expansion of `{}` at line {line}, column {column})", call.excerpt());
            }
        }
        error
    }

    fn step(&mut self, task: EvaluationTask<'t>) -> Result<(), SmtError> {
        match task {
            EvaluationTask::Visit(term, inside) => return self.visit(term, inside),
            EvaluationTask::Apply { operator, term, base } => {
                let arguments = self.values.split_off(base);
                let value = operator.apply(term, arguments)?;
                self.values.push((value, term));
            }
            EvaluationTask::Bind { names, body, inside, base } => {
                for (name, (value, _)) in names.iter().zip(self.values.split_off(base)) {
                    self.locals.entry(name).or_default().push((self.frame.id, value));
                }
                self.tasks.extend([EvaluationTask::Unbind(names), EvaluationTask::Visit(body, inside)]);
            }
            EvaluationTask::Unbind(names) => self.unbind(names.into_iter()),
            EvaluationTask::Call { definition, call, base } => self.call(definition, call, base)?,
            EvaluationTask::Return { definition, caller } => {
                self.unbind(definition.parameters.iter().map(|(name, _)| *name));
                if let (Some(call), Some(last)) = (self.frame.call, self.values.last_mut()) {
                    last.1 = call;
                }
                self.frame = caller;
            }
            EvaluationTask::Name(symbol) => {
                if let Some((value, _)) = self.values.last() {
                    self.scope.define(symbol, Definition::Value(value.clone()))?;
                }
            }
        }
        Ok(())
    }

    fn unbind(&mut self, names: impl Iterator<Item = &'t str>) {
        for name in names {
            self.locals.get_mut(name).and_then(Vec::pop);
        }
    }

    fn call(&mut self, definition: Rc<Macro<'t>>, call: Option<Sexpr<'t>>, base: usize) -> Result<(), SmtError> {
        let id = self.frames + 1;
        let arguments = self.values.split_off(base);
        for ((name, sort), (value, place)) in definition.parameters.iter().zip(arguments) {
            if value.sort() != *sort {
                return Err(place.error(format!(
                    "`{}` has sort {}, but parameter `{name}` of `{}` has sort {}",
                    place.excerpt(),
                    value.sort().name(),
                    definition.name,
                    sort.name()
                )));
            }
            self.locals.entry(name).or_default().push((id, value));
        }
        self.frames = id;
        let body = definition.body;
        let frame = CallFrame { id, horizon: definition.serial, call };
        let caller = std::mem::replace(&mut self.frame, frame);
        self.tasks.extend([EvaluationTask::Return { definition, caller }, EvaluationTask::Visit(body, None)]);
        Ok(())
    }

    fn visit(&mut self, term: Sexpr<'t>, inside: Option<Operator>) -> Result<(), SmtError> {
        if self.frame.id > 0 {
            self.scope.expanded += 1;
            if self.scope.expanded > MAX_EXPANSION {
                return Err(term.error(format!(
                    "calls of define-fun expand to more than {MAX_EXPANSION} terms; \
                     bind repeated calls with `let`, or define them without parameters"
                )));
            }
        }
        let value = match term.kind() {
            Kind::List => return self.visit_list(term, inside),
            Kind::Number => Value::real(numeral::read(term)?),
            Kind::Symbol | Kind::Quoted => self.constant(term)?,
            Kind::Keyword | Kind::Text => {
                return Err(term.error(format!("expected a term, found `{}`", term.excerpt())));
            }
        };
        self.values.push((value, term));
        Ok(())
    }

    fn local(&self, name: &str) -> Option<&Value> {
        let (frame, value) = self.locals.get(name)?.last()?;
        // Bindings of the current frame are always on top of those of its callers.
        (*frame == self.frame.id).then_some(value)
    }

    /// The value of a symbol that is a term by itself.
    fn constant(&self, symbol: Sexpr<'t>) -> Result<Value, SmtError> {
        match symbol.plain_symbol() {
            Some("true") => return Ok(Value::Bool(Formula::yes())),
            Some("false") => return Ok(Value::Bool(Formula::no())),
            Some(name) if Operator::named(name).is_some() => {
                return Err(
                    symbol.error(format!("`{name}` is an operator; write it as ({name} ..) with its arguments"))
                );
            }
            _ => {}
        }
        let name = symbol.symbol().unwrap_or("");
        if let Some(value) = self.local(name) {
            return Ok(value.clone());
        }
        match self.scope.definition(name, self.frame.horizon) {
            Some(Definition::Value(value)) => Ok(value.clone()),
            Some(Definition::Macro(definition)) => Err(symbol.error(count_complaint(definition, 0))),
            None => Err(self.unknown(symbol, false)),
        }
    }

    fn unknown(&self, symbol: Sexpr<'t>, called: bool) -> SmtError {
        let visible = |values: &Vec<(usize, Value)>| values.last().is_some_and(|(frame, _)| *frame == self.frame.id);
        let locals = self.locals.iter().filter(|(_, values)| visible(values)).map(|(name, _)| *name);
        self.scope.unknown(symbol, locals, called)
    }

    fn visit_list(&mut self, term: Sexpr<'t>, inside: Option<Operator>) -> Result<(), SmtError> {
        let Some(head) = term.items().next() else {
            return Err(term.error("`()` is not a term; write a name, a number or (operator argument ..)"));
        };
        match head.plain_symbol() {
            Some("let") => return self.visit_let(term, inside),
            Some("!") => return self.visit_annotation(term, inside),
            Some(word @ ("forall" | "exists")) => {
                return Err(head.error(format!("quantifiers such as `{word}` are not supported; eliminate them first")));
            }
            Some(word @ ("_" | "as" | "match" | "par" | "lambda")) => {
                return Err(
                    head.error(format!("`({word} ..)` is not supported; only linear arithmetic and Booleans work"))
                );
            }
            _ => {}
        }
        let count = term.items().count() - 1;
        let base = self.values.len();
        if let Some(tester) = head.list() {
            self.visit_tester(head, &tester)?;
            if count != 1 {
                return Err(term.error(format!("`{}` takes exactly one argument", head.excerpt())));
            }
            self.tasks.push(EvaluationTask::Apply { operator: Operator::Equal, term, base });
            self.visit_in_order(term.items().skip(1).map(|argument| EvaluationTask::Visit(argument, None)));
            return Ok(());
        }
        let mut within = None;
        if let Some((name, operator)) = head.plain_symbol().and_then(|name| Some((name, Operator::named(name)?))) {
            operator.check_count(term, name, count)?;
            if matches!(operator, Operator::And | Operator::Or) {
                within = Some(operator);
            }
            if within.is_none() || within != inside {
                self.tasks.push(EvaluationTask::Apply { operator, term, base });
            }
        } else {
            let definition = self.function(head)?;
            if definition.parameters.len() != count {
                return Err(term.error(count_complaint(&definition, count)));
            }
            self.tasks.push(EvaluationTask::Call { definition, call: Some(term), base });
        }
        self.visit_in_order(term.items().skip(1).map(|argument| EvaluationTask::Visit(argument, within)));
        Ok(())
    }

    /// Pushes the value that a tester `(_ is walk)` asks for: `((_ is walk) mode)` means `(= walk mode)`.
    fn visit_tester(&mut self, head: Sexpr<'t>, parts: &[Sexpr<'t>]) -> Result<(), SmtError> {
        let [underscore, is, symbol] = parts else { return Err(self.no_operator(head)) };
        if underscore.plain_symbol() != Some("_") || is.plain_symbol() != Some("is") || symbol.symbol().is_none() {
            return Err(self.no_operator(head));
        }
        let value = self.constant(*symbol)?;
        if !matches!(&value, Value::Choice(choice) if choice.is_value()) {
            return Err(symbol.error(format!("`{}` is not a value of a declared datatype", symbol.excerpt())));
        }
        self.values.push((value, *symbol));
        Ok(())
    }

    fn no_operator(&self, head: Sexpr<'t>) -> SmtError {
        head.error(format!(
            "expected the name of an operator, found `{}`; of lists only testers such as (_ is walk) work here",
            head.excerpt()
        ))
    }

    /// Pushes tasks so that the first of them is executed first.
    fn visit_in_order(&mut self, tasks: impl Iterator<Item = EvaluationTask<'t>>) {
        let start = self.tasks.len();
        self.tasks.extend(tasks);
        if let Some(pushed) = self.tasks.get_mut(start..) {
            pushed.reverse();
        }
    }

    fn function(&self, head: Sexpr<'t>) -> Result<Rc<Macro<'t>>, SmtError> {
        let shown = head.excerpt();
        let not_a_function = || head.error(format!("`{shown}` is not a function; write it without parentheses"));
        let Some(name) = head.symbol() else {
            return Err(head.error(format!("expected the name of an operator, found `{shown}`")));
        };
        if self.local(name).is_some() || matches!(head.plain_symbol(), Some("true" | "false")) {
            return Err(not_a_function());
        }
        match self.scope.definition(name, self.frame.horizon) {
            Some(Definition::Macro(definition)) => Ok(definition.clone()),
            Some(Definition::Value(_)) => Err(not_a_function()),
            None => Err(self.unknown(head, true)),
        }
    }

    fn visit_let(&mut self, term: Sexpr<'t>, inside: Option<Operator>) -> Result<(), SmtError> {
        let form = "write (let ((name term) ..) body)";
        let parts: Vec<_> = term.items().skip(1).take(3).collect();
        let [bindings, body] = parts.as_slice() else {
            return Err(term.error(format!("`let` takes a list of bindings and one body; {form}")));
        };
        let (mut names, mut terms, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        for binding in bindings.list().ok_or_else(|| bindings.error(format!("expected bindings; {form}")))? {
            match binding.items().take(3).collect::<Vec<_>>().as_slice() {
                [symbol, bound] => {
                    let name = new_name(*symbol)?;
                    if !seen.insert(name) {
                        return Err(symbol.error(format!("this `let` binds `{name}` twice; nest two `let`s instead")));
                    }
                    names.push(name);
                    terms.push(EvaluationTask::Visit(*bound, None));
                }
                _ => return Err(binding.error(format!("`{}` is not a binding; {form}", binding.excerpt()))),
            }
        }
        if names.is_empty() {
            return Err(bindings.error(format!("this `let` binds nothing; {form}")));
        }
        self.tasks.push(EvaluationTask::Bind { names, body: *body, inside, base: self.values.len() });
        self.visit_in_order(terms.into_iter());
        Ok(())
    }

    fn visit_annotation(&mut self, term: Sexpr<'t>, inside: Option<Operator>) -> Result<(), SmtError> {
        let mut parts = term.items().skip(1);
        let Some(inner) = parts.next() else {
            return Err(term.error("`!` annotates a term; write (! term :named name)"));
        };
        let mut named = None;
        let mut attributes = parts.peekable();
        if attributes.peek().is_none() {
            return Err(term.error("`!` needs an attribute; write (! term :named name)"));
        }
        while let Some(keyword) = attributes.next() {
            if keyword.kind() != Kind::Keyword {
                return Err(
                    keyword.error(format!("expected an attribute such as :named, found `{}`", keyword.excerpt()))
                );
            }
            let argument = attributes.next_if(|next| next.kind() != Kind::Keyword);
            if keyword.text() == ":named" {
                let symbol = argument.ok_or_else(|| keyword.error("`:named` needs a name"))?;
                new_name(symbol)?;
                named = Some(symbol);
            }
        }
        // A name inside a macro would be defined anew by every call.
        match named.filter(|_| self.frame.id == 0) {
            Some(symbol) => self.tasks.extend([EvaluationTask::Name(symbol), EvaluationTask::Visit(inner, None)]),
            None => self.tasks.push(EvaluationTask::Visit(inner, inside)),
        }
        Ok(())
    }
}

fn count_complaint(definition: &Macro<'_>, count: usize) -> String {
    let wanted = match definition.parameters.len() {
        1 => "one argument".to_string(),
        n => format!("{n} arguments"),
    };
    format!("`{}` takes {wanted}, but here it has {count}", definition.name)
}
