//! Files of weighted model integration problems: one JSON object per line, or a single one over many lines.

use std::collections::BTreeMap;

use pal::wmi::ProblemError;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The text of a problem and its place in the file.
pub struct Entry {
    /// The line at which it begins, counted from 1.
    pub line: usize,
    /// The name that the problem gives itself, or else `line 7`.
    pub name: String,
    /// The problem in JSON.
    pub text: String,
}

/// Returns the problems of a file, in order, without checking them.
pub fn entries(text: &str) -> Vec<Entry> {
    let lines: Vec<(usize, &str)> =
        text.lines().enumerate().map(|(at, line)| (at + 1, line)).filter(|(_, line)| !line.trim().is_empty()).collect();
    // One object over many lines, or one with a mistake in it: then the first line is only the beginning of an object.
    let is_one = object(text).is_ok()
        || lines.first().is_some_and(|(_, line)| object(line).is_err_and(|error| error.is_eof()))
            && lines.iter().all(|(_, line)| object(line).is_err());
    match lines.first() {
        Some((line, _)) if is_one => {
            let start = text.lines().take(line - 1).map(|skipped| skipped.len() + 1).sum::<usize>();
            vec![Entry::new(*line, text.get(start..).unwrap_or(text))]
        }
        _ => lines.into_iter().map(|(line, text)| Entry::new(line, text)).collect(),
    }
}

fn object(text: &str) -> serde_json::Result<BTreeMap<String, IgnoredAny>> {
    serde_json::from_str(text)
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

impl Entry {
    fn new(line: usize, text: &str) -> Entry {
        let named = serde_json::from_str(text).map(|Named { name }| name).ok();
        let name = named.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("line {line}"));
        Entry { line, name, text: text.to_string() }
    }

    /// Describes an error with its place in the file.
    pub fn explain(&self, error: &ProblemError) -> String {
        match error {
            ProblemError::Json(json) if json.line() > 0 => {
                let message = json.to_string();
                let place = format!(" at line {} column {}", json.line(), json.column());
                let what = message.strip_suffix(&place).unwrap_or(&message);
                let (line, column) = (self.line + json.line() - 1, json.column().max(1));
                format!("line {line}, column {column}: not a problem in JSON: {what}")
            }
            // Most terms are strings on one line.
            ProblemError::Term { field, error } if error.line == 1 => {
                format!("line {}: {field}, column {}: {}", self.line, error.column, error.message)
            }
            other => format!("line {}: {other}", self.line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, String)> {
        entries(text).into_iter().map(|entry| (entry.line, entry.name)).collect()
    }

    #[test]
    fn lines_or_the_whole_file() {
        let named = |line: usize, name: &str| (line, name.to_string());
        assert_eq!(found("{\"name\": \"a\"}\n\n  \r\n{}\n"), [named(1, "a"), named(4, "line 4")]);
        assert_eq!(found("\n{\n\"name\":\n\"a\"}\n"), [named(2, "a")]);
        assert_eq!(found("\n{}"), [named(2, "line 2")]);
        // One broken object, a broken line among others, and lines that are no objects.
        assert_eq!(found("{\n\"name\": oops\n}"), [named(1, "line 1")]);
        assert_eq!(found("{\"name\": \n{\"name\": \"b\"}"), [named(1, "line 1"), named(2, "b")]);
        assert_eq!(found("oops\n[]"), [named(1, "line 1"), named(2, "line 2")]);
        assert_eq!(found(" \n"), []);
    }
}
