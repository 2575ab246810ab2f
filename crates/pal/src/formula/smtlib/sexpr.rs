//! S-expressions with positions.
//!
//! The whole text becomes one flat list of entries in the order of their first characters; a list knows where its
//! last descendant ends. Reading uses an explicit stack of open parentheses, and dropping is dropping one vector,
//! so ten million nested lists are as harmless as ten million symbols.

use super::SmtError;

/// The kinds of s-expressions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A list in parentheses: `( .. )`.
    List,
    /// A plain symbol such as `x` or `<=`.
    Symbol,
    /// A symbol in bars, `|a symbol|`, which is never a reserved word of the language.
    Quoted,
    /// A token that starts like a number. Whether it is one is decided where terms are read.
    Number,
    /// A keyword such as `:named`.
    Keyword,
    /// A string: `"text"`.
    Text,
}

#[derive(Clone, Copy)]
struct Entry {
    /// The range of bytes in the text.
    start: u32,
    end: u32,
    /// The index of the entry that follows this one and all its descendants.
    next: u32,
    kind: Kind,
}

/// All s-expressions of a text.
pub(crate) struct Tree<'t> {
    text: &'t str,
    entries: Vec<Entry>,
}

/// One s-expression of a [`Tree`]. Copying it is free.
#[derive(Clone, Copy)]
pub(crate) struct Sexpr<'t> {
    tree: &'t Tree<'t>,
    index: usize,
}

/// The 1-based line and column (in characters) of a byte offset.
pub(super) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
    (line, before.get(line_start..).unwrap_or("").chars().count() + 1)
}

fn ends_token(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'(' | b')' | b';' | b'"' | b'|')
}

/// Whether a token starts like a number: `3`, `0.5`, `1e-3` and, with a sign or a leading point, `-3`, `.5`, `-.5`.
pub(super) fn looks_numeric(token: &str) -> bool {
    let unsigned = token.strip_prefix(['-', '+']).unwrap_or(token);
    let digits = unsigned.strip_prefix('.').unwrap_or(unsigned);
    digits.starts_with(|c: char| c.is_ascii_digit())
}

impl<'t> Tree<'t> {
    /// Reads all s-expressions of the text.
    pub(crate) fn parse(text: &'t str) -> Result<Tree<'t>, SmtError> {
        if u32::try_from(text.len()).is_err() {
            return Err(SmtError::at(text, 0, "the text is larger than 4 GiB; split it"));
        }
        let bytes = text.as_bytes();
        let mut tree = Tree { text, entries: Vec::new() };
        let mut open: Vec<usize> = Vec::new();
        // Some editors start a file with a byte order mark.
        let mut at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        while let Some(&byte) = bytes.get(at) {
            let start = at;
            at += 1;
            match byte {
                b'(' => {
                    open.push(tree.entries.len());
                    tree.push(Kind::List, start, at);
                }
                b')' => {
                    let Some(list) = open.pop() else {
                        return Err(SmtError::at(text, start, "this `)` closes nothing; remove it or add a `(`"));
                    };
                    let next = tree.entries.len() as u32;
                    if let Some(entry) = tree.entries.get_mut(list) {
                        (entry.end, entry.next) = (at as u32, next);
                    }
                }
                b';' => at = find(bytes, at, |b| b == b'\n'),
                b'"' => {
                    at = string_end(bytes, at)
                        .ok_or_else(|| SmtError::at(text, start, "this string is never closed; add a `\"`"))?;
                    tree.push(Kind::Text, start, at);
                }
                b'|' => {
                    at = find(bytes, at, |b| matches!(b, b'|' | b'\\'));
                    match bytes.get(at) {
                        Some(b'|') => at += 1,
                        Some(_) => return Err(SmtError::at(text, at, "a |quoted symbol| cannot contain `\\`")),
                        None => {
                            return Err(SmtError::at(text, start, "this |quoted symbol| is never closed; add a `|`"));
                        }
                    }
                    tree.push(Kind::Quoted, start, at);
                }
                b if b.is_ascii_whitespace() => {}
                _ => {
                    at = find(bytes, at, ends_token);
                    let token = text.get(start..at).unwrap_or("");
                    let kind = match byte {
                        b':' => Kind::Keyword,
                        _ if looks_numeric(token) => Kind::Number,
                        _ => Kind::Symbol,
                    };
                    tree.push(kind, start, at);
                }
            }
        }
        match open.last() {
            None => Ok(tree),
            Some(&list) => {
                let missing = match open.len() {
                    1 => "one `)` is".to_string(),
                    n => format!("{n} `)` are"),
                };
                let start = tree.entries.get(list).map_or(0, |e| e.start as usize);
                Err(SmtError::at(text, start, format!("this `(` is never closed; {missing} missing before the end")))
            }
        }
    }

    fn push(&mut self, kind: Kind, start: usize, end: usize) {
        let next = self.entries.len() as u32 + 1;
        self.entries.push(Entry { start: start as u32, end: end as u32, next, kind });
    }

    /// The s-expressions that are in no list.
    pub(crate) fn items(&'t self) -> impl Iterator<Item = Sexpr<'t>> {
        Items { tree: self, at: 0, end: self.entries.len() }
    }

    /// The only s-expression of the text; `wanted` names it in the error.
    pub(crate) fn single(&'t self, wanted: &str) -> Result<Sexpr<'t>, SmtError> {
        let mut items = self.items();
        match (items.next(), items.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => Err(SmtError::at(self.text, 0, format!("the text is empty; write {wanted}"))),
            (Some(_), Some(extra)) => Err(extra.error("this stands after the end of the term; write one term only")),
        }
    }
}

/// The first byte from `at` on that satisfies the test, or the end.
fn find(bytes: &[u8], at: usize, wanted: impl Fn(u8) -> bool) -> usize {
    bytes.iter().skip(at).position(|b| wanted(*b)).map_or(bytes.len(), |k| at + k)
}

/// The position after the closing quote of a string, in which two quotes in a row stand for one quote.
fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at = find(bytes, at, |b| b == b'"') + 1;
        match bytes.get(at) {
            _ if at > bytes.len() => return None,
            Some(b'"') => at += 1,
            _ => return Some(at),
        }
    }
}

struct Items<'t> {
    tree: &'t Tree<'t>,
    at: usize,
    end: usize,
}

impl<'t> Iterator for Items<'t> {
    type Item = Sexpr<'t>;

    fn next(&mut self) -> Option<Sexpr<'t>> {
        let index = self.at;
        if index >= self.end {
            return None;
        }
        self.at = self.tree.entries[index].next as usize;
        Some(Sexpr { tree: self.tree, index })
    }
}

impl<'t> Sexpr<'t> {
    fn entry(self) -> Entry {
        self.tree.entries[self.index]
    }

    /// The kind of the s-expression.
    pub(crate) fn kind(self) -> Kind {
        self.entry().kind
    }

    /// The text of the s-expression as written, including bars and quotes.
    pub(crate) fn text(self) -> &'t str {
        let entry = self.entry();
        self.tree.text.get(entry.start as usize..entry.end as usize).unwrap_or("")
    }

    /// The name that a symbol denotes: `|a|` and `a` are the same.
    pub(crate) fn symbol(self) -> Option<&'t str> {
        match self.kind() {
            Kind::Symbol => Some(self.text()),
            Kind::Quoted => Some(self.text().trim_matches('|')),
            _ => None,
        }
    }

    /// The name of a plain symbol; bars take away any special meaning.
    pub(crate) fn plain_symbol(self) -> Option<&'t str> {
        if self.kind() == Kind::Symbol { Some(self.text()) } else { None }
    }

    /// The elements of a list; anything else has no elements.
    pub(crate) fn items(self) -> impl Iterator<Item = Sexpr<'t>> {
        Items { tree: self.tree, at: self.index + 1, end: self.entry().next as usize }
    }

    /// The elements of a list, or nothing if this is not a list.
    pub(crate) fn list(self) -> Option<Vec<Sexpr<'t>>> {
        if self.kind() == Kind::List { Some(self.items().collect()) } else { None }
    }

    /// The line and column of the first character, both counted from 1.
    pub(crate) fn position(self) -> (usize, usize) {
        position(self.tree.text, self.entry().start as usize)
    }

    /// The text of the s-expression on one line, cut to a length that fits into a message.
    pub(crate) fn excerpt(self) -> String {
        const LENGTH: usize = 40;
        let mut words = self.text().split_whitespace();
        let mut short = String::new();
        while let Some(word) = words.next().filter(|_| short.len() <= LENGTH) {
            short.push_str(if short.is_empty() { "" } else { " " });
            short.extend(word.chars().take(LENGTH + 1));
        }
        match short.char_indices().nth(LENGTH) {
            None => short,
            Some((cut, _)) => format!("{}..", short.get(..cut).unwrap_or("")),
        }
    }

    /// An error at the first character of the s-expression.
    pub(crate) fn error(self, message: impl Into<String>) -> SmtError {
        SmtError::at(self.tree.text, self.entry().start as usize, message)
    }
}
