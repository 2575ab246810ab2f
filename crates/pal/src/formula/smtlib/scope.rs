//! The global names of an SMT-LIB script and what they stand for.

use std::collections::HashMap;
use std::rc::Rc;

use super::super::{Category, Constraint, Formula, Linear, Var};
use super::SmtError;
use super::choice::{Choice, EnumeratedSort};
use super::edit_distance::nearest;
use super::integer::{cases_of, is_integer};
use super::linear_cases::LinearCases;
use super::operator::Operator;
use super::sexpr::{Kind, Sexpr};

/// The sorts of SMT-LIB that are supported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Sort {
    /// The sort of truth values.
    Bool,
    /// The sort of real numbers. Integers are among them: a script that mixes both means what it says.
    Real,
    /// A sort that lists its values.
    Enumerated(Rc<EnumeratedSort>),
}

impl Sort {
    pub(super) fn name(&self) -> &str {
        match self {
            Sort::Bool => "Bool",
            Sort::Real => "Real",
            Sort::Enumerated(sort) => &sort.name,
        }
    }
}

/// The value of a term of any sort, as a function of the variables.
#[derive(Clone)]
pub(crate) enum Value {
    /// A truth value that depends on the variables.
    Bool(Formula),
    /// A real number that depends on the variables.
    Real(Rc<LinearCases>),
    /// A value of an enumerated sort that depends on the variables.
    Choice(Rc<Choice>),
}

impl Value {
    /// The value of a Boolean variable.
    pub(super) fn boolean(var: Var) -> Value {
        Value::Bool(Formula::from(var))
    }

    pub(super) fn real(term: impl Into<Linear>) -> Value {
        Value::Real(Rc::new(LinearCases::from(term.into())))
    }

    /// The sort of the value.
    pub(crate) fn sort(&self) -> Sort {
        match self {
            Value::Bool(_) => Sort::Bool,
            Value::Real(_) => Sort::Real,
            Value::Choice(choice) => Sort::Enumerated(choice.sort().clone()),
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

#[derive(Clone)]
struct Global<'t> {
    definition: Definition<'t>,
    serial: usize,
    /// The place of the declaration, if it is in this text.
    declared: Option<Sexpr<'t>>,
}

/// The global names of a script, and the work that was spent on expanding its macros.
#[derive(Clone, Default)]
pub(crate) struct Scope<'t> {
    globals: HashMap<&'t str, Global<'t>>,
    /// Enumerated sorts, which have names of their own.
    sorts: HashMap<&'t str, Rc<EnumeratedSort>>,
    /// Names of values that several categories of a constraint have, with what to write instead.
    ambiguous: HashMap<&'t str, String>,
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
        let reals = constraint.reals.iter().map(|var| (var, Value::real(Linear::from(var.clone()))));
        let booleans = constraint.booleans.iter().map(|var| (var, Value::boolean(var.clone())));
        for (var, value) in reals.chain(booleans) {
            if !scope.declare(var.name(), value) {
                return Err(format!("the constraint declares `{var}` twice; rename one of the two"));
            }
        }
        scope.declare_categories(constraint);
        Ok(scope)
    }

    /// Declares a name without a place in the text, unless it is declared already; tells whether it was not.
    fn declare(&mut self, name: &'t str, value: Value) -> bool {
        let serial = self.globals.len();
        let global = Global { definition: Definition::Value(value), serial, declared: None };
        self.globals.insert(name, global).is_none()
    }

    /// Declares the categories of a constraint and their values, in so far as variables do not have these names.
    fn declare_categories(&mut self, constraint: &'t Constraint) {
        let mut sorts: Vec<(Rc<EnumeratedSort>, String)> = Vec::new();
        for category in Category::all_of(constraint) {
            // Names are borrowed from the variables, which are called `category=value`.
            let split = |var: &Var| constraint.booleans.iter().find(|own| *own == var)?.name().split_once('=');
            let names: Vec<(&str, &str)> = category.variables().iter().filter_map(split).collect();
            let Some((name, _)) = names.first().filter(|(name, _)| !self.globals.contains_key(name)) else { continue };
            if is_integer(&category) {
                self.declare(name, Value::Real(Rc::new(cases_of(&category))));
                continue;
            }
            let values = category.values();
            if let Some((sort, _)) = sorts.iter().find(|(sort, _)| sort.values == values) {
                // Categories with the same values have the same sort.
                self.declare(name, Value::Choice(Rc::new(Choice::variable(sort, &category))));
                continue;
            }
            let sort = Rc::new(EnumeratedSort { name: category.name().to_string(), values: values.to_vec() });
            self.declare(name, Value::Choice(Rc::new(Choice::variable(&sort, &category))));
            for (at, (_, label)) in names.iter().enumerate() {
                if let Some((_, other)) = sorts.iter().find(|(sort, _)| sort.values.iter().any(|own| own == label)) {
                    let advice = format!("`{label}` is a value of `{other}` and of `{name}`; write |{name}={label}|");
                    self.ambiguous.insert(label, advice);
                    self.globals.remove(label);
                } else if !self.globals.contains_key(label) {
                    self.declare(label, Value::Choice(Rc::new(Choice::value(&sort, at))));
                }
            }
            sorts.push((sort, category.name().to_string()));
        }
    }

    /// Reads the name of a sort.
    pub(super) fn sort(&self, text: Sexpr<'_>) -> Result<Sort, SmtError> {
        match text.symbol() {
            Some("Real" | "Int") => Ok(Sort::Real),
            Some("Bool") => Ok(Sort::Bool),
            name => match name.and_then(|name| self.sorts.get(name)) {
                Some(sort) => Ok(Sort::Enumerated(sort.clone())),
                None => Err(text.error(format!(
                    "sort `{}` is not known; the sorts Real, Bool, Int and those of declare-datatype work",
                    text.excerpt()
                ))),
            },
        }
    }

    /// Declares an enumerated sort.
    pub(super) fn define_sort(&mut self, symbol: Sexpr<'t>, sort: Rc<EnumeratedSort>) -> Result<(), SmtError> {
        let name = new_name(symbol)?;
        if matches!(name, "Real" | "Bool" | "Int") || self.sorts.contains_key(name) {
            return Err(symbol.error(format!("there is a sort `{name}` already; choose another name")));
        }
        self.sorts.insert(name, sort);
        Ok(())
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
        if let Some(advice) = self.ambiguous.get(name) {
            return symbol.error(advice.clone());
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
