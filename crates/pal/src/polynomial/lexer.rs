//! Splits the text of a polynomial into tokens with their columns.

use std::borrow::Cow;

use super::error::{ParseError, ParseProblem, check_bits};
use super::terms::coefficient_bits;
use crate::number::{NumberError, Rational, parse_rational};

/// The kind of a token, with the value of a number or a name.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Symbol<'t> {
    Number(Rational),
    Name(Cow<'t, str>),
    Plus,
    Minus,
    Times,
    Divide,
    Power,
    Open,
    Close,
    End,
}

/// A token, its text and the column where it starts, in characters counted from 1.
#[derive(Debug, Clone)]
pub(super) struct Token<'t> {
    pub(super) symbol: Symbol<'t>,
    pub(super) text: &'t str,
    pub(super) column: usize,
}

impl Token<'_> {
    /// Returns the text of the token for a message, shortened if it is long.
    pub(super) fn excerpt(&self) -> String {
        shorten(self.text)
    }
}

/// Returns the text, cut after 40 characters.
pub(super) fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text.to_string(),
    }
}

/// Returns whether a name can be written without quotes: `[A-Za-z_][A-Za-z0-9_.!@]*`.
pub(super) fn is_plain_name(name: &str) -> bool {
    name.starts_with(begins_name) && name.chars().all(continues_name)
}

fn begins_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn continues_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '!' | '@')
}

/// Splits a text into tokens, of which the last one is always [`Symbol::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, ParseError> {
    let mut tokens = Vec::new();
    let (mut rest, mut column) = (text, 1);
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
            column += 1;
            continue;
        }
        let (symbol, length) = symbol(rest, first).map_err(|problem| ParseError { column, problem })?;
        let (text, after) = rest.split_at(length);
        tokens.push(Token { symbol, text, column });
        column += text.chars().count();
        rest = after;
    }
    tokens.push(Token { symbol: Symbol::End, text: "", column });
    Ok(tokens)
}

/// Returns the symbol at the start of a text, and its length in bytes.
fn symbol(rest: &str, first: char) -> Result<(Symbol<'_>, usize), ParseProblem> {
    let single = match first {
        '+' => Symbol::Plus,
        '-' => Symbol::Minus,
        '*' if rest.starts_with("**") => return Ok((Symbol::Power, 2)),
        '*' => Symbol::Times,
        '/' => Symbol::Divide,
        '^' => Symbol::Power,
        '(' => Symbol::Open,
        ')' => Symbol::Close,
        '|' => return quoted_name(rest),
        c if c.is_ascii_digit() || c == '.' => return number(rest),
        c if begins_name(c) => {
            let length = rest.find(|c| !continues_name(c)).unwrap_or(rest.len());
            return Ok((Symbol::Name(Cow::Borrowed(&rest[..length])), length));
        }
        c => return Err(ParseProblem::Character(c)),
    };
    Ok((single, first.len_utf8()))
}

/// Reads a quoted name `|any name|`, in which `||` stands for one `|`. Returns its length in bytes as well.
fn quoted_name(rest: &str) -> Result<(Symbol<'_>, usize), ParseProblem> {
    let mut at = 1;
    while let Some(bar) = rest[at..].find('|') {
        at += bar;
        if !rest[at + 1..].starts_with('|') {
            let name = &rest[1..at];
            let name = if name.contains('|') { Cow::Owned(name.replace("||", "|")) } else { Cow::Borrowed(name) };
            return Ok((Symbol::Name(name), at + 1));
        }
        at += 2;
    }
    Err(ParseProblem::UnclosedQuote)
}

/// Reads a number such as `12`, `0.5`, `.5` or `1e-3`, and returns its length in bytes as well. An `e` without digits
/// after it does not belong to the number.
fn number(rest: &str) -> Result<(Symbol<'_>, usize), ParseProblem> {
    let digits = |from: usize| rest[from..].bytes().take_while(u8::is_ascii_digit).count();
    let mut length = digits(0);
    if rest[length..].starts_with('.') {
        length += 1;
        length += digits(length);
    }
    if rest[length..].starts_with(['e', 'E']) {
        let sign = usize::from(rest[length + 1..].starts_with(['+', '-']));
        let exponent = digits(length + 1 + sign);
        if exponent > 0 {
            length += 1 + sign + exponent;
        }
    }
    let text = &rest[..length];
    let value = parse_rational(text).map_err(|error| match error {
        NumberError::Exponent(_) => ParseProblem::Number(NumberError::Exponent(shorten(text))),
        // `parse_rational` reports an exponent of more than 64 bits as a syntax error.
        NumberError::Syntax(_) if text != "." => ParseProblem::Number(NumberError::Exponent(shorten(text))),
        error => ParseProblem::Number(error),
    })?;
    check_bits(coefficient_bits(&value))?;
    Ok((Symbol::Number(value), length))
}
