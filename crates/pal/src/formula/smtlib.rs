//! SMT-LIB 2 text: reader and writer.
use super::{Constraint, Formula};

/// A problem in SMT-LIB text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct SmtError {
    /// 1-based.
    pub line: usize,
    /// 1-based, in characters.
    pub column: usize,
    /// What is wrong and what would work.
    pub message: String,
}

/// Reads a script.
pub fn parse_smtlib(_text: &str) -> Result<Constraint, SmtError> {
    todo!()
}
/// Reads one term of sort Bool over the variables of `scope`.
pub fn parse_smtlib_term(_text: &str, _scope: &Constraint) -> Result<Formula, SmtError> {
    todo!()
}
/// Writes a script that `parse_smtlib` reads back with the same meaning.
pub fn write_smtlib(_constraint: &Constraint) -> String {
    todo!()
}
