//! Normalised atoms.
//!
//! Every linear (in)equality is brought to `a . x - b  (< | <= | =)  0` where `a` and `b` are integers
//! without a common divisor and the first coefficient is positive. `2x <= 4`, `x <= 2` and the
//! negation of `x > 2` are then one and the same [`Atom`], and `x < 2` shares its [`Plane`].

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, Weak};

use super::print::{readable, readable_sides};
use super::{Linear, Var};
use crate::linear_algebra::{common_denominator, common_divisor, numerator_over};
use crate::number::{Integer, Rational};

/// How the value of a plane compares with zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Relation {
    /// The value is negative.
    Lt,
    /// The value is negative or zero.
    Le,
    /// The value is zero.
    Eq,
}

/// A hyperplane `a . x = b` in lowest integer terms with a positive leading coefficient.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Plane {
    normal: Vec<(Var, Integer)>,
    offset: Integer,
}

impl Plane {
    /// The variables with their non-zero coefficients, in alphabetical order.
    pub fn normal(&self) -> &[(Var, Integer)] {
        &self.normal
    }

    /// The right-hand side `b` of `a . x = b`.
    pub fn offset(&self) -> &Integer {
        &self.offset
    }

    /// The term `a . x - b`.
    pub fn to_linear(&self) -> Linear {
        let terms = self.normal.iter().map(|(v, a)| (v.clone(), Rational::from(a.clone())));
        Linear::new(terms, Rational::from(-&self.offset))
    }
}

impl fmt::Debug for Plane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = 0", self.to_linear())
    }
}

/// A normalised atom `plane(x) relation 0`. The plane is hash-consed: equal planes over the same declarations share
/// memory.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Atom {
    plane: Arc<Plane>,
    relation: Relation,
}

/// What a comparison of a linear term with zero comes down to.
pub(super) enum Normalised {
    Constant(bool),
    Atom { atom: Atom, negated: bool },
}

impl Atom {
    /// The hyperplane on which the atom changes.
    pub fn plane(&self) -> &Plane {
        &self.plane
    }

    /// The relation between the plane's value and zero.
    pub fn relation(&self) -> Relation {
        self.relation
    }

    /// Normalises `term relation 0`.
    pub(super) fn normalise(term: &Linear, relation: Relation) -> Normalised {
        let Some((_, leading)) = term.terms().next() else {
            return Normalised::Constant(relation.holds(term.constant().cmp(&Rational::ZERO)));
        };
        let flip = leading < &Rational::ZERO;
        let plane = intern(Plane::from_linear(term, flip));
        // -t < 0 means t > 0, the negation of t <= 0; and -t <= 0 is the negation of t < 0.
        let (relation, negated) = match (relation, flip) {
            (Relation::Lt, true) => (Relation::Le, true),
            (Relation::Le, true) => (Relation::Lt, true),
            (same, _) => (same, false),
        };
        Normalised::Atom { atom: Atom { plane, relation }, negated }
    }
}

impl Relation {
    /// Whether the relation holds for a value that compares like this with zero.
    pub fn holds(self, sign: std::cmp::Ordering) -> bool {
        match self {
            Relation::Lt => sign.is_lt(),
            Relation::Le => sign.is_le(),
            Relation::Eq => sign.is_eq(),
        }
    }

    /// The relation as text: `<`, `<=` or `=`.
    pub fn symbol(self) -> &'static str {
        match self {
            Relation::Lt => "<",
            Relation::Le => "<=",
            Relation::Eq => "=",
        }
    }
}

impl Plane {
    fn from_linear(term: &Linear, flip: bool) -> Plane {
        let denominator = common_denominator(term.terms().map(|(_, a)| a).chain([term.constant()]));
        let integral = |a: &Rational| {
            let p = numerator_over(a, &denominator);
            if flip { -p } else { p }
        };
        let mut normal: Vec<_> = term.terms().map(|(v, a)| (v.clone(), integral(a))).collect();
        let mut offset = -integral(term.constant());
        let divisor = Integer::from(common_divisor(normal.iter().map(|(_, a)| a).chain([&offset])));
        if !divisor.is_one() {
            normal.iter_mut().for_each(|(_, a)| *a = &*a / &divisor);
            offset /= divisor;
        }
        Plane { normal, offset }
    }
}

/// The planes that are alive anywhere in the program. Sharing them makes a big formula small; dead entries are removed
/// whenever the table has doubled.
static PLANES: LazyLock<Mutex<PlaneTable>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct PlaneTable {
    entries: HashMap<Declared, Weak<Plane>>,
    sweep_at: usize,
}

/// A plane together with the declarations of its variables. Planes over different declarations of a variable are equal
/// but not shared: a formula would otherwise take over the order of variables of another one that happens to have the
/// same atom.
struct Declared(Plane);

impl Declared {
    fn declarations(&self) -> impl Iterator<Item = u64> {
        self.0.normal.iter().map(|(var, _)| var.declared())
    }
}

impl PartialEq for Declared {
    fn eq(&self, other: &Declared) -> bool {
        self.0 == other.0 && self.declarations().eq(other.declarations())
    }
}

impl Eq for Declared {}

impl Hash for Declared {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
        self.declarations().for_each(|declared| declared.hash(state));
    }
}

fn intern(plane: Plane) -> Arc<Plane> {
    let mut table = PLANES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let plane = Declared(plane);
    if let Some(shared) = table.entries.get(&plane).and_then(Weak::upgrade) {
        return shared;
    }
    if table.entries.len() >= table.sweep_at {
        table.entries.retain(|_, weak| weak.strong_count() > 0);
        table.sweep_at = 1024.max(2 * table.entries.len());
    }
    let shared = Arc::new(plane.0.clone());
    table.entries.insert(plane, Arc::downgrade(&shared));
    shared
}

/// Writes the atom with its constant on the right: `2*x - y <= 3`.
impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<Integer> =
            self.plane.normal.iter().map(|(_, a)| a).chain([&self.plane.offset]).cloned().collect();
        let mut sides = readable_sides(&numbers);
        let right = sides.pop().unwrap_or_default();
        let left = Linear::new(self.plane.normal.iter().map(|(v, _)| v.clone()).zip(sides), Rational::ZERO);
        let (sign, size) = if right < Rational::ZERO { ("-", -right) } else { ("", right) };
        // The mark of a rounded number stands before its sign.
        let text = readable(&size);
        let right = text.strip_prefix('~').map_or_else(|| format!("{sign}{text}"), |rest| format!("~{sign}{rest}"));
        write!(f, "{left} {} {right}", self.relation.symbol())
    }
}

impl fmt::Debug for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formula::reals;

    fn atoms(formula: &crate::formula::Formula) -> Vec<Atom> {
        formula.atoms()
    }

    #[test]
    fn scaling_and_negation_give_one_atom() {
        let [x, y] = reals(["x", "y"]);
        let half = Rational::from_parts(1.into(), 2u8.into());
        let same = [
            (2 * &x + 4 * &y).le(6),
            (&x + 2 * &y).le(3),
            !(&x + 2 * &y).gt(3),
            (half.clone() * &x + &y).le(Rational::from_parts(3.into(), 2u8.into())),
            (-&x - 2 * &y).ge(-3),
        ];
        for f in &same {
            assert_eq!(atoms(f), atoms(&same[0]));
            assert!(Arc::ptr_eq(&atoms(f)[0].plane, &atoms(&same[0])[0].plane), "planes are shared");
        }
        assert_eq!(same[0].to_string(), "x + 2*y <= 3");
        assert_eq!(atoms(&(x.lt(1) & x.ge(1))).len(), 1);
        assert_eq!(atoms(&(x.lt(1) & x.gt(1))).len(), 2);
    }

    #[test]
    fn sharing_keeps_the_order_of_declaration_of_each_formula() {
        let names = |formula: &crate::formula::Formula| {
            formula.real_variables().iter().map(|var| var.name().to_string()).collect::<Vec<_>>()
        };
        let [x, y] = reals(["x", "y"]);
        let early = (&x + &y).le(1);
        let [y, x] = reals(["y", "x"]);
        let late = (&x + &y).le(1);
        assert_eq!(atoms(&early), atoms(&late));
        assert_eq!((names(&early), names(&late)), (vec!["x".into(), "y".into()], vec!["y".into(), "x".into()]));
        // Together they are one atom, in the earliest order.
        let both = early.clone() & late.clone();
        assert_eq!((atoms(&both).len(), names(&both), names(&(late & early))), (1, names(&both), names(&both)));
        assert_eq!(names(&both), ["x", "y"]);
    }

    #[test]
    fn constants_fold() {
        let [x] = reals(["x"]);
        assert!((&x - &x).le(0).is_true());
        assert!((&x - &x).lt(0).is_false());
        assert!(Linear::from(1).equals(1).is_true());
    }

    #[test]
    fn planes_through_the_origin_normalise() {
        let [x, y] = reals(["x", "y"]);
        assert_eq!((6 * &x - 4 * &y).le(0).to_string(), "3*x - 2*y <= 0");
    }
}
