//! Variable names as SMT-LIB symbols.

use std::collections::HashSet;

use super::super::{Constraint, Var};
use super::scope::{RESERVED, is_built_in};
use super::sexpr::looks_numeric;
use super::writer::SmtWriteError;

/// The beginnings of names of commands. Commands are reserved words, which are not plain symbols.
const COMMAND_PREFIXES: [&str; 5] = ["declare-", "define-", "get-", "set-", "check-sat"];
/// Other words that are reserved in scripts and are therefore not plain symbols.
const RESERVED_IN_SCRIPTS: [&str; 14] = [
    "assert",
    "exit",
    "echo",
    "push",
    "pop",
    "reset",
    "reset-assertions",
    "BINARY",
    "DECIMAL",
    "HEXADECIMAL",
    "NUMERAL",
    "STRING",
    "Real",
    "Bool",
];

/// The name as a symbol, in bars if need be.
pub(super) fn symbol(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "~!@$%^&*_-+=<>.?/".contains(c);
    let special = RESERVED.contains(&name)
        || RESERVED_IN_SCRIPTS.contains(&name)
        || COMMAND_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    // Names that start with `.` or `@` are reserved for solvers.
    let odd_start = name.is_empty() || name.starts_with(['.', '@']) || looks_numeric(name);
    if !special && !odd_start && name.chars().all(plain) { name.to_string() } else { format!("|{name}|") }
}

/// The variables of a constraint, all of which can be written.
pub(super) struct Names {
    pub(super) reals: HashSet<Var>,
    pub(super) booleans: HashSet<Var>,
    /// A prefix for names of definitions: no variable has a name that consists of it and digits.
    pub(super) prefix: String,
}

impl Names {
    pub(super) fn of(constraint: &Constraint) -> Result<Names, SmtWriteError> {
        let mut seen = HashSet::new();
        for var in constraint.reals.iter().chain(&constraint.booleans) {
            if var.name().contains(['|', '\\']) {
                return Err(SmtWriteError::Name(var.clone()));
            }
            if is_built_in(var.name()) {
                return Err(SmtWriteError::BuiltIn(var.clone()));
            }
            if !seen.insert(var) {
                return Err(SmtWriteError::Twice(var.clone()));
            }
        }
        let mut prefix = "part".to_string();
        // Categories and their values have names of their own, the two halves of those of their variables.
        while seen.iter().any(|var| var.name().split('=').any(|half| half.starts_with(&prefix))) {
            prefix.push('_');
        }
        let set = |vars: &[Var]| vars.iter().cloned().collect();
        Ok(Names { reals: set(&constraint.reals), booleans: set(&constraint.booleans), prefix })
    }
}
