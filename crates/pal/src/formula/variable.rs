//! Variables, and the order in which they were declared.
//!
//! The order of declaration is the order of coordinates, so every variable carries the moment of its declaration: a
//! number, its stamp, that grows from one declaration to the next in the whole process. The stamp takes no part in
//! comparisons. Two variables of one name are equal, hash alike and are printed alike, and the normal form of an atom
//! depends on names only; only lists of variables, such as
//! [`Formula::real_variables`](super::Formula::real_variables), look at the stamp. It is part of the variable and not
//! of a table of names, so that declaring a name again somewhere else does not change formulas that exist already.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{self, AtomicU64};

/// A named variable. Two variables with the same name are the same variable.
///
/// Making a variable declares it, and variables are listed in the order in which they were declared. A formula in which
/// one name stems from several declarations takes the earliest of them: joining a condition to a region does not move
/// the region's columns, even where the condition declares a variable of the region anew.
///
/// ```
/// use pal::formula::Var;
/// let [speed, gap] = Var::declare(["speed", "gap"]);
/// assert!(speed.by_declaration(&gap).is_lt());
/// let again = Var::new("speed");
/// assert!(again == speed && again.by_declaration(&gap).is_gt());
/// ```
#[derive(Clone)]
pub struct Var {
    name: Arc<str>,
    declared: u64,
}

/// The number of declarations in this process so far.
static DECLARATIONS: AtomicU64 = AtomicU64::new(0);

impl Var {
    /// Declares the variable of that name.
    pub fn new(name: &str) -> Self {
        let [var] = Var::declare([name]);
        var
    }

    /// Declares several variables at once, in the order given whatever other threads declare meanwhile.
    pub fn declare<const N: usize>(names: [&str; N]) -> [Var; N] {
        let mut declared = reserve(N);
        names.map(|name| {
            declared += 1;
            Var { name: Arc::from(name), declared }
        })
    }

    /// Declares the variables of a list, in the order of the list.
    pub fn declare_all<S: AsRef<str>>(names: &[S]) -> Vec<Var> {
        let first = reserve(names.len()) + 1;
        names.iter().zip(first..).map(|(name, declared)| Var { name: Arc::from(name.as_ref()), declared }).collect()
    }

    /// The name of the variable, as written.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Compares the moments of declaration: sorting by it gives the order of coordinates.
    pub fn by_declaration(&self, other: &Var) -> Ordering {
        self.declared.cmp(&other.declared)
    }

    /// The stamp of the declaration: a number that is larger for later declarations and has no other meaning.
    pub(super) fn declared(&self) -> u64 {
        self.declared
    }

    /// A variable of another name, declared at the same moment.
    pub(super) fn renamed(&self, name: &str) -> Var {
        Var { name: Arc::from(name), declared: self.declared }
    }

    /// Of two declarations of one variable, the earlier one.
    pub(crate) fn earliest(self, other: Var) -> Var {
        assert_eq!(self, other, "two declarations of one variable have one name");
        if self.by_declaration(&other).is_gt() { other } else { self }
    }
}

/// Reserves `count` stamps and returns the last one before them.
fn reserve(count: usize) -> u64 {
    DECLARATIONS.fetch_add(count as u64, atomic::Ordering::Relaxed)
}

/// Collects variables with their earliest declarations.
#[derive(Default)]
pub(super) struct Declarations(BTreeSet<Var>);

impl Declarations {
    /// Adds an occurrence of a variable.
    pub(super) fn insert(&mut self, var: &Var) {
        if self.0.get(var).is_none_or(|known| known.by_declaration(var).is_gt()) {
            self.0.replace(var.clone());
        }
    }

    /// The variables in order of declaration.
    pub(super) fn in_order(self) -> Vec<Var> {
        let mut variables: Vec<Var> = self.0.into_iter().collect();
        variables.sort_by(Var::by_declaration);
        variables
    }
}

impl PartialEq for Var {
    fn eq(&self, other: &Var) -> bool {
        self.name == other.name
    }
}

impl Eq for Var {}

impl PartialOrd for Var {
    fn partial_cmp(&self, other: &Var) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Variables compare by name. Sorting them gives alphabetical order, not the order of coordinates.
impl Ord for Var {
    fn cmp(&self, other: &Var) -> Ordering {
        self.name.cmp(&other.name)
    }
}

impl Hash for Var {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl AsRef<str> for Var {
    fn as_ref(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_call_declares_in_its_own_order_on_every_thread() {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                std::thread::spawn(|| {
                    for _ in 0..1000 {
                        let [b, a, c] = Var::declare(["b", "a", "c"]);
                        assert_eq!((a.declared(), c.declared()), (b.declared() + 1, b.declared() + 2));
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }

    #[test]
    fn the_earliest_declaration_counts_whatever_the_order_of_occurrence() {
        let [x, y] = Var::declare(["x", "y"]);
        let again = Var::new("x");
        for occurrences in [[&x, &y, &again], [&again, &y, &x], [&y, &again, &x]] {
            let mut found = Declarations::default();
            occurrences.into_iter().for_each(|var| found.insert(var));
            let order: Vec<String> = found.in_order().iter().map(Var::to_string).collect();
            assert_eq!(order, ["x", "y"]);
        }
    }
}
