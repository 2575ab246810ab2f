//! The nested prefix notation of pywmi and wmi-pa, rewritten as SMT-LIB terms.
//!
//! `(& (<= (const real 0.5) (var real x)) (~ (var bool a)))` is `(and (<= 0.5 x) (not a))`.

use crate::formula::SmtError;
use crate::formula::smtlib::sexpr::{Sexpr, Tree};

/// Rewrites a term in nested prefix notation as an SMT-LIB term. `kinds` says of which type the domain declares a
/// variable, and a term must say the same.
pub(super) fn to_smtlib(text: &str, kinds: &impl Fn(&str) -> Option<&'static str>) -> Result<String, SmtError> {
    // `|` opens a quoted name in SMT-LIB but is an operator here. It is replaced by `%`, which is as long, so that
    // columns in error messages stay right.
    let text = [" ", "\n", "\t", "("]
        .iter()
        .fold(text.to_string(), |t, after| t.replace(&format!("(|{after}"), &format!("(%{after}")));
    let tree = Tree::parse(&text)?;
    let root = tree.single("a term")?;
    let mut out = String::with_capacity(text.len());
    // The pieces still to be written; the next one is on top.
    let mut stack = vec![Piece::Term(root)];
    while let Some(piece) = stack.pop() {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Term(term) => write(term, kinds, &mut out, &mut stack)?,
        }
    }
    Ok(out)
}

/// A piece of the output that is still to be written.
enum Piece<'t> {
    Text(&'static str),
    Term(Sexpr<'t>),
}

/// Writes a leaf, or the head of a list, and pushes the remaining pieces of the list onto the stack.
fn write<'t>(
    term: Sexpr<'t>,
    kinds: &impl Fn(&str) -> Option<&'static str>,
    out: &mut String,
    stack: &mut Vec<Piece<'t>>,
) -> Result<(), SmtError> {
    let Some(items) = term.list() else {
        out.push_str(term.text());
        return Ok(());
    };
    let Some((head, arguments)) = items.split_first() else { return Err(term.error("an empty term")) };
    let operator = match head.text() {
        "const" => return constant(term, arguments, out),
        "var" => match arguments {
            [kind, name] => {
                let text = name.symbol().unwrap_or_else(|| name.text());
                if let Some(declared) = kinds(text).filter(|declared| *declared != kind.text()) {
                    let message = format!("`{text}` is declared as {declared}, but used as {}", kind.text());
                    return Err(term.error(message));
                }
                quote(text, out);
                return Ok(());
            }
            _ => return Err(term.error("write (var TYPE NAME)")),
        },
        "&" => "and",
        "%" => "or",
        "~" | "!" => "not",
        "->" => "=>",
        "<->" => "=",
        "^" => "pow",
        same @ ("<" | "<=" | ">" | ">=" | "=" | "+" | "-" | "*" | "ite" | "pow" | "and" | "or" | "not") => same,
        other => return Err(head.error(format!("unknown operator `{other}`"))),
    };
    out.push('(');
    out.push_str(operator);
    stack.push(Piece::Text(")"));
    for argument in arguments.iter().rev() {
        stack.push(Piece::Term(*argument));
        stack.push(Piece::Text(" "));
    }
    Ok(())
}

/// Writes the constant of a term `(const TYPE VALUE)`.
fn constant(term: Sexpr<'_>, arguments: &[Sexpr<'_>], out: &mut String) -> Result<(), SmtError> {
    let [kind, value] = arguments else { return Err(term.error("write (const TYPE VALUE)")) };
    match kind.text() {
        "bool" => out.push_str(&value.text().to_lowercase()),
        _ => {
            let exact = crate::number::parse_rational(value.text()).map_err(|e| value.error(e.to_string()))?;
            out.push_str(&format!("(/ {} {})", exact.numerator(), exact.denominator()));
        }
    }
    Ok(())
}

/// Writes a name as a quoted symbol, `|name|`.
fn quote(name: &str, out: &mut String) {
    out.push('|');
    out.push_str(name);
    out.push('|');
}
