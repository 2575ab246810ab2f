//! Enumerated sorts and integers in SMT-LIB text: what they mean, checked against all values one by one, what is refused
//! at which place, and what is written.

use pal::formula::{Category, Constraint, Var, parse_smtlib, parse_smtlib_term, reals, write_smtlib};

fn names(vars: &[Var]) -> Vec<&str> {
    vars.iter().map(Var::name).collect()
}

/// All assignments of some Boolean variables.
fn assignments(count: usize) -> impl Iterator<Item = Vec<bool>> {
    (0..1u32 << count).map(move |bits| (0..count).map(|k| bits >> k & 1 == 1).collect())
}

/// The label that each category has under an assignment, if each has exactly one.
fn labels(constraint: &Constraint, assignment: &[bool]) -> Option<Vec<String>> {
    let value = |var: &Var| assignment[constraint.booleans.iter().position(|own| own == var).unwrap()];
    let label = |category: &Category| {
        let chosen: Vec<&String> =
            category.variables().iter().zip(category.values()).filter(|(var, _)| value(var)).map(|(_, v)| v).collect();
        match chosen[..] {
            [only] => Some(only.clone()),
            _ => None,
        }
    };
    Category::all_of(constraint).iter().map(label).collect()
}

/// Compares a constraint with a rule on labels and reals, under all assignments.
fn agrees(constraint: &Constraint, points: &[f64], rule: impl Fn(&[String], f64) -> bool) {
    let membership = constraint.membership().unwrap();
    let (mut inside, mut outside) = (0, 0);
    for assignment in assignments(constraint.booleans.len()) {
        for x in points {
            let want = labels(constraint, &assignment).is_some_and(|labels| rule(&labels, *x));
            assert_eq!(membership.contains_with(&[*x], &assignment), want, "{assignment:?} {x}");
            *(if want { &mut inside } else { &mut outside }) += 1;
        }
    }
    assert!(inside > 0 && outside > 0, "{inside} inside, {outside} outside");
}

const TRIP: &str = "(declare-datatypes ((Mode 0)) (((walk) (bike) (car))))
    (declare-const x Real) (declare-const m Mode) (declare-const wet Bool) (declare-const k Mode)
    (assert (<= 0 x 9))";

#[test]
fn enumerated_sorts_are_categories() {
    let points = [0.0, 1.0, 2.5, 4.0, 9.0];
    type Rule = fn(&str, &str, f64) -> bool;
    let cases: [(&str, Rule); 8] = [
        ("(=> (= m walk) (<= x 1))", |m, _, x| m != "walk" || x <= 1.0),
        ("(and (distinct m k) (distinct walk m))", |m, k, _| m != k && m != "walk"),
        ("(= m k)", |m, k, _| m == k),
        ("((_ is bike) m)", |m, _, _| m == "bike"),
        ("(not ((_ is car) k))", |_, k, _| k != "car"),
        ("(= (ite (<= x 2) m k) car)", |m, k, x| (if x <= 2.0 { m } else { k }) == "car"),
        ("(<= x (ite (= m walk) 1 (ite (= k m) 3 5)))", |m, k, x| {
            x <= if m == "walk" {
                1.0
            } else if k == m {
                3.0
            } else {
                5.0
            }
        }),
        ("(let ((v (ite (= k walk) bike k))) (= v m bike))", |m, k, _| m == "bike" && (k == "walk" || k == "bike")),
    ];
    for (text, rule) in cases {
        let constraint = parse_smtlib(&format!("{TRIP}(assert {text})(assert (or wet (not wet)))")).unwrap();
        assert_eq!(names(&constraint.booleans), ["m=walk", "m=bike", "m=car", "wet", "k=walk", "k=bike", "k=car"]);
        agrees(&constraint, &points, |labels, x| rule(&labels[0], &labels[1], x));
    }
    let one = "(declare-datatype Mode ((walk) (|by car|))) (declare-const m Mode) (declare-const x Real)
        (define-fun slow ((v Mode)) Bool (= v walk)) (assert (and (<= 0 x 5) (=> (slow m) (<= x 2))))";
    agrees(&parse_smtlib(one).unwrap(), &points, |labels, x| x <= if labels[0] == "walk" { 2.0 } else { 5.0 });
}

#[test]
fn integers_are_categories_of_their_values() {
    let script = "(declare-const n Int) (declare-const x Real) (declare-const k Int)
        (assert (and (< -2 n) (<= (* 2 n) 5) (<= 0 k 2) (distinct n 1)))
        (assert (<= (+ n (* 2 k)) x 4))
        (assert (=> (= k 1) (>= n 0)))";
    let constraint = parse_smtlib(script).unwrap();
    // -2 and 1 are possible nowhere and have no column; columns are in the order of declaration.
    assert_eq!(names(&constraint.booleans), ["n=-1", "n=0", "n=2", "k=0", "k=1", "k=2"]);
    assert_eq!(names(&Constraint::new(constraint.formula.clone()).booleans), names(&constraint.booleans));
    agrees(&constraint, &[-1.5, -1.0, 0.0, 1.0, 2.0, 3.0, 3.5, 4.0, 4.5], |labels, x| {
        let (n, k): (f64, f64) = (labels[0].parse().unwrap(), labels[1].parse().unwrap());
        n + 2.0 * k <= x && x <= 4.0 && (k != 1.0 || n >= 0.0)
    });
    // Bounds may come from the reals.
    let through = parse_smtlib("(declare-const x Real) (declare-const n Int) (assert (<= 0.5 n x 2.5))").unwrap();
    assert_eq!(names(&through.booleans), ["n=1", "n=2"]);
}

#[test]
fn terms_know_categories_and_integers() {
    let constraint = parse_smtlib(
        "(declare-datatype Mode ((walk) (bike) (car))) (declare-const m Mode) (declare-const n Int)
         (declare-const x Real) (assert (and (<= 0 n 3) (<= 0 x 9)))",
    )
    .unwrap();
    type Rule = fn(&str, f64, f64) -> bool;
    let cases: [(&str, Rule); 5] = [
        ("(= m walk)", |m, _, _| m == "walk"),
        ("(distinct m walk car)", |m, _, _| m == "bike"),
        ("(<= (+ x n) 4)", |_, n, x| x + n <= 4.0),
        ("(and ((_ is car) m) (> n 1))", |m, n, _| m == "car" && n > 1.0),
        ("(or |m=bike| (= n 3))", |m, n, _| m == "bike" || n == 3.0),
    ];
    for (text, rule) in cases {
        let event = parse_smtlib_term(text, &constraint).unwrap();
        let both = Constraint { formula: constraint.formula.clone() & event, ..constraint.clone() };
        agrees(&both, &[0.0, 1.0, 2.0, 3.5, 5.0], |labels, x| rule(&labels[0], labels[1].parse().unwrap(), x));
    }
    // Categories made by hand, two of which have a value in common.
    let [x] = reals(["x"]);
    let (a, b) = (Category::new("a", &["low", "high"]).unwrap(), Category::new("b", &["high", "top"]).unwrap());
    let by_hand = Constraint::new(x.between(0, 1) & a.exactly_one() & b.exactly_one());
    assert_eq!(parse_smtlib_term("(= a low)", &by_hand).unwrap().to_string(), "a=low");
    let error = parse_smtlib_term("(= a high)", &by_hand).unwrap_err();
    assert_eq!((error.line, error.column), (1, 6));
    assert!(error.message.contains("a value of `a` and of `b`; write |b=high|"), "{}", error.message);
}

#[test]
fn errors_name_the_place_and_the_way_out() {
    let mode = "(declare-datatype Mode ((walk) (bike)))\n";
    for (text, line, column, part) in [
        ("(declare-datatype L ((nil) (cons (head Real))))", 2, 28, "the value `cons` has arguments"),
        ("(declare-datatypes ((P 1)) (((a) (b))))", 2, 24, "must be 0"),
        ("(declare-datatypes ((P 0) (Q 0)) (((a) (b))))", 2, 34, "2 sorts are named and 1 lists"),
        ("(declare-datatypes (P) (((a) (b))))", 2, 21, "must look like (Mode 0)"),
        ("(declare-datatype P ((a)))", 2, 21, "at least two values"),
        ("(declare-datatype P a)", 2, 21, "a list of values"),
        ("(declare-datatype P)", 2, 1, "(declare-datatype Mode"),
        ("(declare-datatype Mode ((a) (b)))", 2, 19, "a sort `Mode` already"),
        ("(declare-datatype P ((walk) (run)))", 2, 23, "`walk` is a value of the sort `Mode` already"),
        ("(declare-datatype P ((a) (a)))", 2, 27, "`a` is a value of the sort `P` already"),
        ("(declare-const m Moed)", 2, 18, "the sorts Real, Bool, Int and those of declare-datatype"),
        ("(declare-const m Mode)(assert m)", 2, 31, "sort Mode where a Bool is needed; compare it"),
        ("(declare-const m Mode)(assert (= m 1))", 2, 36, "`1` has sort Real, but `=` needs sort Mode"),
        ("(declare-const m Mode)(assert (< m walk))", 2, 34, "`m` has sort Mode, but `<` needs sort Real"),
        ("(declare-const m Mode)(assert (= m run))", 2, 36, "`run` is not declared"),
        ("(declare-const m Mode)(assert ((_ is m) m))", 2, 38, "`m` is not a value"),
        ("(declare-const m Mode)(assert ((_ at walk) m))", 2, 32, "only testers"),
        ("(declare-const m Mode)(declare-const |m=walk| Bool)", 2, 16, "`m=walk` is declared"),
        ("(declare-const |a=b| Mode)", 2, 16, "choose another name"),
        ("(declare-const n Int)(assert (>= n 0))", 2, 16, "`n` has no upper bound"),
        ("(declare-const n Int)(assert (<= n 3))", 2, 16, "`n` has no lower bound in the asserts"),
        ("(declare-const n Int)(assert (<= 0 n 999))", 2, 16, "has 1000 values, and at most 64"),
        ("(declare-const n Int)(assert (<= 0.2 n 0.8))", 2, 16, "no value of the integer `n`"),
        ("(declare-const n Int)(assert (<= 0.2 n 1.8))", 2, 16, "can only be 1"),
        (
            "(declare-const i Int)(declare-const j Int)(declare-const k Int)\
             (assert (<= 0 i 19))(assert (<= 0 j 19))(assert (<= 0 k 19))(assert (<= (+ i j k) 55))",
            2,
            16,
            "more than 4096 combinations",
        ),
    ] {
        let error = parse_smtlib(&format!("{mode}{text}")).unwrap_err();
        assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
        assert!(error.message.contains(part), "{text}: {error}");
    }
}

#[test]
fn written_scripts_read_back_as_the_same_constraint() {
    let script = "(declare-const x Real) (declare-datatype Mode ((walk) (|by car|) (or_so)))
        (declare-const m Mode) (declare-const wet Bool) (declare-const k Mode) (declare-const n Int)
        (assert (<= 0 x 9)) (assert (and (<= -1 n 3) (distinct n 1)))
        (assert (=> (= m walk) (<= x n))) (assert (or wet (distinct m k) (= n 2)))";
    let constraint = parse_smtlib(script).unwrap();
    let text = write_smtlib(&constraint).unwrap();
    for line in [
        "(declare-datatype m-value ((walk) (|by car|) (or_so)))",
        "(declare-const m m-value)",
        "(declare-const k m-value)",
        "(declare-const n Int)",
        "(assert (<= (- 1) n 3))",
        "(assert (distinct n 1))",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let back = parse_smtlib(&text).unwrap();
    assert_eq!(names(&back.booleans), names(&constraint.booleans));
    assert_eq!(back.formula.to_string(), constraint.formula.to_string());
    assert_eq!(write_smtlib(&back).unwrap(), text);
    assert_eq!(Category::enforce(&back).formula.to_string(), back.formula.to_string());
}

/// Where the names of a script cannot tell categories apart, and where a constraint does not say that a category has one
/// value, its Boolean variables are written: nothing is added to what the constraint says.
#[test]
fn what_cannot_be_a_sort_is_written_as_booleans() {
    let [x] = reals(["x"]);
    let (a, b) = (Category::new("a", &["low", "high"]).unwrap(), Category::new("b", &["high", "x"]).unwrap());
    let free = Constraint::new(x.between(0, 1) & (a.is("low").unwrap() | x.le(0)));
    let clash = Constraint::new(x.between(0, 1) & b.exactly_one() & a.exactly_one());
    let wide = Category::new("n", &["0", "1000"]).unwrap();
    let far = Constraint::new(x.between(0, 1) & wide.exactly_one());
    for (constraint, part) in [
        (&free, "(declare-const a=low Bool)"),
        (&clash, "(declare-const b=x Bool)"),
        (&clash, "(declare-const a a-value)"),
        (&far, "(declare-datatype n-value ((|0|) (|1000|)))"),
    ] {
        let text = write_smtlib(constraint).unwrap();
        assert!(text.contains(part), "{text}");
        let back = parse_smtlib(&text).unwrap();
        assert_eq!(back.formula.to_string(), constraint.formula.to_string());
        assert_eq!(names(&back.booleans), names(&constraint.booleans));
    }
}
