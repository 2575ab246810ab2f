//! Prints formulas in the notation that people read: `x <= 1 & !(y < 2 | b)`.

use std::fmt;
use std::sync::Arc;

use super::{Connective, Formula, Node, Relation};

/// Beyond this many characters a subformula is abbreviated: sharing can make the written-out text astronomically long.
const LIMIT: usize = 4000;

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.fold(|formula, children: &[Arc<str>]| Arc::from(write_node(formula.node(), children)));
        f.write_str(&text)
    }
}

fn write_node(node: &Node, children: &[Arc<str>]) -> String {
    let text = match node {
        Node::Constant(value) => value.to_string(),
        Node::Bool(var) => var.to_string(),
        Node::Atom(atom) => atom.to_string(),
        Node::Connective(connective, parts) => {
            let child = |k: usize| bracketed(&parts[k], &children[k]);
            let joined = |with: &str| (0..parts.len()).map(child).collect::<Vec<_>>().join(with);
            match connective {
                Connective::Not => negation(&parts[0], &children[0]),
                Connective::And => joined(" & "),
                Connective::Or => joined(" | "),
                Connective::Iff => joined(" <-> "),
                Connective::Ite => format!("ite({})", children.join(", ")),
            }
        }
    };
    if text.len() > LIMIT { "(...)".to_string() } else { text }
}

/// The text of a negation. `!(t <= b)` is written as `t > b`, which reads better.
fn negation(inner: &Formula, text: &str) -> String {
    match inner.node() {
        Node::Atom(atom) => {
            let (from, to) = match atom.relation() {
                Relation::Lt => (" < ", " >= "),
                Relation::Le => (" <= ", " > "),
                Relation::Eq => (" = ", " != "),
            };
            text.replacen(from, to, 1)
        }
        Node::Bool(_) => format!("!{text}"),
        _ => format!("!({text})"),
    }
}

fn bracketed(child: &Formula, text: &str) -> String {
    match child.node() {
        Node::Connective(inner, _) if *inner != Connective::Not && *inner != Connective::Ite => {
            format!("({text})")
        }
        _ => text.to_string(),
    }
}

impl fmt::Debug for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use crate::formula::{Formula, reals};

    #[test]
    fn reads_like_mathematics() {
        let [x, y] = reals(["x", "y"]);
        let b = Formula::boolean("b");
        let f = (x.le(1) | !y.lt(2)) & !b.clone() & x.differs(0);
        assert_eq!(f.to_string(), "(x <= 1 | y >= 2) & !b & x != 0");
        assert_eq!(b.clone().iff(x.le(1)).to_string(), "b <-> x <= 1");
        assert_eq!((!(b & x.le(1))).to_string(), "!(b & x <= 1)");
    }
}
