//! The global names of an SMT-LIB script and what they stand for.

use std::collections::HashMap;
use std::rc::Rc;

use super::super::{Constraint, Formula, Linear, Var};
use super::SmtError;
use super::edit_distance::nearest;
use super::linear_cases::LinearCases;
use super::operator::Operator;
use super::sexpr::{Kind, Sexpr};

/// The sorts of SMT-LIB that are supported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sort {
    /// The sort of truth values.
    Bool,
    /// The sort of real numbers.
    Real,
}

impl Sort {
    /// Reads the name of a sort.
    pub(super) fn read(text: Sexpr<'_>) -> Result<Sort, SmtError> {
        match text.symbol() {
            Some("Real") => Ok(Sort::Real),
            Some("Bool") => Ok(Sort::Bool),
            _ => Err(text.error(format!("sort `{}` is not supported; the sorts Real and Bool work", text.excerpt()))),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Sort::Bool => "Bool",
            Sort::Real => "Real",
        }
    }
}

/// The value of a term of either sort, as a function of the variables.
#[derive(Clone)]
pub(crate) enum Value {
    /// A truth value that depends on the variables.
    Bool(Formula),
    /// A real number that depends on the variables.
    Real(Rc<LinearCases>),
}

impl Value {
    /// The value of a variable of the given sort.
    pub(super) fn variable(var: Var, sort: Sort) -> Value {
        match sort {
            Sort::Bool => Value::Bool(Formula::from(var)),
            Sort::Real => Value::real(Linear::from(var)),
        }
    }

    pub(super) fn real(term: impl Into<Linear>) -> Value {
        Value::Real(Rc::new(LinearCases::from(term.into())))
    }

    /// The sort of the value.
    pub(crate) fn sort(&self) -> Sort {
        match self {
            Value::Bool(_) => Sort::Bool,
            Value::Real(_) => Sort::Real,
        }
    }
}

/// A `define-fun` with parameters, which is expanded wherever it is called.
pub(super) struct Macro<'t> {
    pub(super) name: &'t str,
    pub(super) parameters: Vec<(&'t str, Sort)>,
    pub(super) body: Sexpr<'t>,
    /// The number of names that were declared before this one: only these are visible in the body.
    pub(super) serial: usize,
}

/// What a global name stands for.
#[derive(Clone)]
pub(super) enum Definition<'t> {
    Value(Value),
    Macro(Rc<Macro<'t>>),
}

struct Global<'t> {
    definition: Definition<'t>,
    serial: usize,
    /// The place of the declaration, if it is in this text.
    declared: Option<Sexpr<'t>>,
}

/// The global names of a script, and the work that was spent on expanding its macros.
#[derive(Default)]
pub(crate) struct Scope<'t> {
    globals: HashMap<&'t str, Global<'t>>,
    /// The number of terms that were visited inside macros so far.
    pub(super) expanded: usize,
}

/// Words that are part of the language of terms.
pub(super) const RESERVED: [&str; 9] = ["let", "!", "_", "as", "forall", "exists", "match", "par", "lambda"];

/// Whether the name belongs to the theory, so that a script cannot declare it.
pub(super) fn is_built_in(name: &str) -> bool {
    matches!(name, "true" | "false") || Operator::named(name).is_some()
}

impl<'t> Scope<'t> {
    /// The scope in which the variables of a constraint are declared. The error is a message without a position.
    pub(crate) fn of_constraint(constraint: &'t Constraint) -> Result<Scope<'t>, String> {
        let mut scope = Scope::default();
        let reals = constraint.reals.iter().map(|var| (var, Sort::Real));
        for (var, sort) in reals.chain(constraint.booleans.iter().map(|var| (var, Sort::Bool))) {
            let serial = scope.globals.len();
            let definition = Definition::Value(Value::variable(var.clone(), sort));
            if scope.globals.insert(var.name(), Global { definition, serial, declared: None }).is_some() {
                return Err(format!("the constraint declares `{var}` twice; rename one of the two"));
            }
        }
        Ok(scope)
    }

    /// The serial number of the next declaration.
    pub(super) fn serial(&self) -> usize {
        self.globals.len()
    }

    /// Declares a global name and returns it.
    pub(super) fn define(&mut self, symbol: Sexpr<'t>, definition: Definition<'t>) -> Result<&'t str, SmtError> {
        let name = new_name(symbol)?;
        if let Some(earlier) = self.globals.get(name) {
            let (line, column) = symbol.position();
            let first = match earlier.declared.map(Sexpr::position) {
                Some((first_line, first_column)) => format!("first at line {first_line}, column {first_column}, "),
                None => String::new(),
            };
            return Err(symbol.error(format!(
                "`{name}` is declared twice: {first}and again at line {line}, column {column}; rename or remove one"
            )));
        }
        let serial = self.serial();
        self.globals.insert(name, Global { definition, serial, declared: Some(symbol) });
        Ok(name)
    }

    /// What the name stands for, if the serial number of its declaration is below `horizon`.
    pub(super) fn definition(&self, name: &str, horizon: usize) -> Option<&Definition<'t>> {
        self.globals.get(name).filter(|global| global.serial < horizon).map(|global| &global.definition)
    }

    /// The error for a name that is not declared, or not yet.
    pub(super) fn unknown(&self, symbol: Sexpr<'t>, locals: impl Iterator<Item = &'t str>, called: bool) -> SmtError {
        let name = symbol.symbol().unwrap_or("");
        let shown = symbol.excerpt();
        if let Some(declared) = self.globals.get(name).and_then(|global| global.declared) {
            let (line, column) = declared.position();
            return symbol.error(format!(
                "`{shown}` is used before or inside its own definition (line {line}, column {column}); \
                 define-fun bodies are expanded, so they can only use what was declared earlier"
            ));
        }
        if let Some(advice) = advice(name) {
            return symbol.error(format!("`{shown}` is not known; {advice}"));
        }
        let operators = Operator::NAMES.into_iter().filter(|_| called);
        let candidates = self.globals.keys().copied().chain(locals).chain(operators);
        let hint = match nearest(name, candidates) {
            Some(near) => format!("did you mean `{near}`?"),
            None if called => {
                "only the operators of linear arithmetic and functions given by define-fun work".to_string()
            }
            None => format!("declare it first, for instance (declare-const {shown} Real)"),
        };
        symbol.error(format!("`{shown}` is not declared; {hint}"))
    }
}

/// The name of a symbol that may be declared or bound.
pub(super) fn new_name<'t>(symbol: Sexpr<'t>) -> Result<&'t str, SmtError> {
    let shown = symbol.excerpt();
    match symbol.symbol() {
        Some(name) if is_built_in(name) => {
            Err(symbol.error(format!("`{shown}` is a built-in name and cannot be declared; choose another")))
        }
        Some(name) if symbol.kind() == Kind::Symbol && RESERVED.contains(&name) => {
            Err(symbol.error(format!("`{shown}` is a reserved word; choose another name or write |{name}|")))
        }
        Some(name) => Ok(name),
        None if symbol.kind() == Kind::Number => {
            Err(symbol.error(format!("`{shown}` looks like a number; as a name it must be written |{shown}|")))
        }
        None => Err(symbol.error(format!("expected a name, found `{shown}`"))),
    }
}

/// What to write instead of names from other languages and other theories.
fn advice(name: &str) -> Option<&'static str> {
    Some(match name {
        "&&" | "&" | "AND" => "write `and`",
        "OR" => "write `or`",
        "==" | "iff" | "<=>" | "<->" => "write `=`",
        "!=" | "<>" | "/=" => "write `distinct`",
        "implies" | "->" => "write `=>`",
        "if" => "write `ite`",
        "~" => "write `not` for a formula and `-` for a number",
        "^" | "**" | "pow" => "powers are not linear; only linear terms work",
        "div" | "mod" | "abs" | "to_int" | "is_int" => {
            "integer operations are not supported; only linear real arithmetic works"
        }
        "min" | "max" => "write it with `ite`, for instance (ite (<= x y) x y)",
        "True" | "TRUE" => "write `true`",
        "False" | "FALSE" => "write `false`",
        _ if name.starts_with('#') => "bit vectors are not supported; write numbers in decimal",
        _ => return None,
    })
}
