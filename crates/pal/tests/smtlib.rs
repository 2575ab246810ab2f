//! SMT-LIB text: what is read, what is refused at which place, and what is written.

use std::time::{Duration, Instant};

use pal::formula::{
    Constraint, Formula, Linear, SmtWriteError, Var, parse_smtlib, parse_smtlib_questions, parse_smtlib_term, reals,
    write_smtlib,
};

/// The formula that a term over reals `x`, `y` and Booleans `a`, `b` reads as.
fn term(text: &str) -> String {
    let scope = Constraint {
        formula: Formula::yes(),
        reals: vec![Var::new("x"), Var::new("y")],
        booleans: vec![Var::new("a"), Var::new("b")],
    };
    match parse_smtlib_term(text, &scope) {
        Ok(formula) => formula.to_string(),
        Err(error) => panic!("{text}: {error}"),
    }
}

fn names(vars: &[Var]) -> Vec<&str> {
    vars.iter().map(Var::name).collect()
}

#[test]
fn a_script_is_the_conjunction_of_its_asserts_in_declaration_order() {
    let script = r#"
        (set-info :source "a string with ""quotes"" and ) ; (")
        (set-option :produce-models true) ; a comment ( with a parenthesis
        (set-logic QF_LRA)
        (declare-fun z () Real)
        (declare-const b Bool)
        (declare-const |a b| Real)
        (declare-const a Bool)
        (define-const third Real (/ 1 3))
        (define-fun inside ((t Real) (r Real)) Bool (<= (- r) t r))
        (assert (inside z third))
        (assert (! (=> b (< |a b| 0.1)) :named rule))
        (assert (or rule a))
        (check-sat) (get-model) (get-value (z)) (get-info :name) (echo "done")
        (exit)
        (this is not read)
    "#;
    let constraint = parse_smtlib(script).unwrap();
    assert_eq!(names(&constraint.reals), ["z", "a b"]);
    assert_eq!(names(&constraint.booleans), ["b", "a"]);
    assert_eq!(constraint.formula.to_string(), "3*z >= -1 & 3*z <= 1 & (!b | 10*a b < 1) & (!b | 10*a b < 1 | a)");
    assert!(parse_smtlib("").unwrap().formula.is_true());
}

#[test]
fn operators_mean_what_the_standard_says() {
    for (text, want) in [
        ("(<= 0 x y 1)", "x >= 0 & x - y <= 0 & y <= 1"),
        ("(> x y)", "x - y > 0"),
        ("(>= 1 x 0)", "x <= 1 & x >= 0"),
        ("(= x y 2)", "x - y = 0 & y = 2"),
        ("(distinct x y 2)", "x - y != 0 & x != 2 & y != 2"),
        ("(= a b)", "a <-> b"),
        ("(distinct a b)", "!(a <-> b)"),
        ("(distinct a b a)", "false"),
        ("(=> a b false)", "!a | !b"),
        ("(xor a b true)", "a <-> b"),
        ("(ite a (< x 0) b)", "ite(a, x < 0, b)"),
        ("(and a (and b (or a (or b true))))", "a & b"),
        ("(not (not a))", "a"),
        ("|a|", "a"),
        ("(<= (+ x y x) (- y 3 1))", "x <= -2"),
        ("(< (- x) (- 1.5))", "2*x > 3"),
        ("(<= (* 2 x 3) (/ x 2 2))", "x <= 0"),
        ("(= (/ (* 2 x) 3) (/ 1 3))", "2*x = 1"),
        ("(<= x -0.5)", "2*x <= -1"),
        ("(<= x -3)", "x <= -3"),
        ("(= (to_real 2) (to_real x))", "x = 2"),
        ("(<= (* (- x x) y) 0)", "true"),
        ("(= x 0.1)", "10*x = 1"),
        ("(! (< x 1) :weight 3 :named n)", "x < 1"),
    ] {
        assert_eq!(term(text), want, "{text}");
    }
}

#[test]
fn let_is_parallel_and_shadows() {
    assert_eq!(term("(let ((x y) (y x)) (< x y))"), "x - y > 0");
    assert_eq!(term("(let ((x 1)) (and (let ((x 2)) (< y x)) (< y x)))"), "y < 2 & y < 1");
    assert_eq!(term("(let ((c (< x 1))) (let ((c (not c))) c))"), "x >= 1");
}

#[test]
fn macros_see_globals_and_not_the_lets_of_their_caller() {
    let script = "(declare-const x Real) (declare-const y Real)
        (define-fun scaled ((k Real) (t Real)) Real (* k (+ t y)))
        (define-fun both ((p Bool) (t Real)) Bool (and p (< (scaled 2 t) 0)))
        (assert (let ((y 100) (t 5)) (both (< x t) y)))";
    assert_eq!(parse_smtlib(script).unwrap().formula.to_string(), "x < 5 & y < -100");
}

#[test]
fn real_ite_is_lifted_out_of_atoms() {
    assert_eq!(term("(<= (ite a x y) 1)"), "ite(a, x <= 1, y <= 1)");
    assert_eq!(term("(<= (+ (ite a x y) (ite b 1 2)) 1)"), "ite(a, ite(b, x <= 0, x <= -1), ite(b, y <= 0, y <= -1))");
    assert_eq!(term("(let ((t (ite a x y))) (<= (+ t t (* 2 t)) 4))"), "ite(a, x <= 1, y <= 1)");
    assert_eq!(term("(= (* (ite a 2 3) x) 6)"), "ite(a, x = 3, x = 2)");
    assert_eq!(term("(<= (ite (< x 0) (ite (>= x 0) 7 y) x) 1)"), "ite(x < 0, y <= 1, x <= 1)");
    let [x, y] = reals(["x", "y"]);
    let absolute = parse_smtlib_term("(<= (ite (>= x 0) x (- x)) 1)", &Constraint::new(x.le(&y))).unwrap();
    for (at, inside) in [(-1.5, false), (-1.0, true), (-0.5, true), (0.0, true), (1.0, true), (1.25, false)] {
        assert_eq!(absolute.contains(&[at]), inside, "{at}");
    }
}

#[test]
fn levels_and_assumptions_have_the_effects_of_the_standard() {
    let questions = |text: &str| -> Vec<(usize, String)> {
        let questions = parse_smtlib_questions(text).unwrap();
        questions.iter().map(|question| (question.line, question.constraint.formula.to_string())).collect()
    };
    let script = "(declare-const x Real)\n(assert (< x 1))\n(check-sat)\n(push 2)\n(declare-const y Real)\n\
                  (assert (< y x))\n(check-sat)\n(push)\n(assert (< 0 y))\n(check-sat)\n(pop 2)\n(check-sat)\n(pop)\n\
                  (declare-const y Bool)\n(check-sat-assuming ((not y)))\n(reset)\n(declare-const x Bool)\n\
                  (assert x)\n(check-sat)";
    let asked = [
        (3, "x < 1"),
        (7, "x < 1 & x - y > 0"),
        (10, "x < 1 & x - y > 0 & y > 0"),
        (12, "x < 1"),
        (15, "x < 1 & !y"),
        (19, "x"),
    ];
    assert_eq!(questions(script), asked.map(|(line, formula)| (line, formula.to_string())));
    // Without levels a script is one constraint, whatever it asks on the way.
    let plain = "(declare-const x Real) (assert (< x 1)) (check-sat) (assert (> x 0)) (check-sat)";
    assert_eq!(parse_smtlib(plain).unwrap().formula.to_string(), "x < 1 & x > 0");
    assert_eq!(questions(plain), [(1, "x < 1".to_string()), (1, "x < 1 & x > 0".to_string())]);
    // Levels with one question: what is asserted there.
    let once = "(declare-const x Real) (push 1) (assert (< x 1)) (check-sat) (pop 1) (assert (> x 5))";
    assert_eq!(parse_smtlib(once).unwrap().formula.to_string(), "x < 1");
    // Declarations may be told to stay.
    let stay = "(set-option :global-declarations true) (push 1) (declare-const x Real) (assert (< x 1)) (pop 1) \
                (assert (< x 2)) (check-sat)";
    assert_eq!(questions(stay), [(1, "x < 2".to_string())]);
    let call = "(define-fun near ((a Real) (b Real)) Bool (< (- a b) 1)) (declare-const x Real) (push 1) \
                (define-fun twice ((a Real)) Real (+ a a)) (assert (near (twice x) 3)) (check-sat) (pop 1) (check-sat)";
    assert_eq!(questions(call), [(1, "x < 2".to_string()), (1, "true".to_string())]);
}

/// Every class of error, with the position and a part of the message that says what would work.
#[test]
fn errors_name_the_place_and_the_way_out() {
    let declared = "(declare-const x Real)\n(declare-const y Real)\n(declare-const b Bool)\n";
    for (text, line, column, part) in [
        // script
        ("(assert (< x 1)\n(check-sat)", 4, 1, "never closed; one `)` is missing"),
        ("(assert (and (< x 1) (< y 1)", 4, 9, "2 `)` are missing"),
        ("(check-sat))", 4, 12, "closes nothing"),
        ("(echo \"never\n", 4, 7, "string is never closed"),
        ("(assert |b)\n", 4, 9, "never closed"),
        ("(assert |b\\|)", 4, 11, "cannot contain"),
        ("x", 4, 1, "expected a command"),
        ("()", 4, 1, "not a command"),
        ("(push a)", 4, 1, "must look like (push 1)"),
        ("(push 1)(pop 2)", 4, 9, "pop 2 where 1 levels have been pushed"),
        ("(push)(assert b)(check-sat)(pop)(check-sat)", 4, 33, "the second of 2 questions"),
        ("(check-sat-assuming b)", 4, 1, "(check-sat-assuming (a (not b)))"),
        ("(assert (forall ((t Real)) (< t x)))", 4, 10, "forall"),
        ("(push)(declare-const z Real)(pop)(assert (< z 1))", 4, 45, "`z` is not declared"),
        ("(frobnicate)", 4, 2, "the commands that work are"),
        ("(declare-sort S 0)", 4, 2, "Real, Bool and Int"),
        ("(declare-const n Text)", 4, 18, "the sorts Real, Bool, Int and those"),
        ("(declare-fun f (Real) Real)", 4, 16, "define-fun"),
        ("(declare-fun f Real)", 4, 1, "(declare-fun name () Real)"),
        ("(declare-const x Bool)", 4, 16, "first at line 1, column 16, and again at line 4, column 16"),
        ("(declare-const and Bool)", 4, 16, "built-in"),
        ("(declare-const let Bool)", 4, 16, "reserved"),
        ("(declare-const 3 Real)", 4, 16, "|3|"),
        ("(assert)", 4, 1, "(assert term)"),
        ("(assert x)", 4, 9, "sort Real where a Bool is needed"),
        ("(define-fun f () Real b)", 4, 23, "its body `b` has sort Bool"),
        ("(define-fun f ((t Real)) Bool (+ t 1))", 4, 31, "has sort Real"),
        ("(define-fun f ((t Real)) Bool (f t))", 4, 32, "not declared"),
        ("(define-fun f ((t Real) (t Real)) Bool true)", 4, 26, "occurs twice"),
        ("(define-fun f ((t Text)) Bool true)", 4, 19, "Real, Bool, Int"),
        ("(define-fun-rec f () Bool f)", 4, 2, "recursi"),
        // names
        ("(declare-const width Real)(assert (< widht 1))", 4, 38, "did you mean `width`?"),
        ("(assert (< z 1))", 4, 12, "(declare-const z Real)"),
        ("(assert (ad b b))", 4, 10, "did you mean `and`?"),
        ("(assert (&& b b))", 4, 10, "write `and`"),
        ("(assert (== x 1))", 4, 10, "write `=`"),
        ("(assert (x))", 4, 10, "without parentheses"),
        ("(assert (and b or))", 4, 16, "is an operator"),
        // sorts and counts
        ("(assert (and b x))", 4, 16, "`x` has sort Real, but `and` needs sort Bool"),
        ("(assert (<= (+ x b) 1))", 4, 18, "`b` has sort Bool, but `+` needs sort Real"),
        ("(assert (= x b))", 4, 14, "needs sort Real"),
        ("(assert (= b x))", 4, 14, "needs sort Bool"),
        ("(assert (< (ite b x b) 0))", 4, 21, "needs sort Real"),
        ("(assert (ite x b b))", 4, 14, "needs sort Bool"),
        ("(assert (not b b))", 4, 9, "exactly one argument, but here it has 2"),
        ("(assert (<= x))", 4, 9, "at least two arguments"),
        ("(assert (and))", 4, 9, "at least one argument"),
        ("(assert (ite b b))", 4, 9, "exactly three arguments"),
        ("(assert ())", 4, 9, "not a term"),
        ("(assert (let ((t)) b))", 4, 15, "(let ((name term) ..) body)"),
        ("(assert (let ((t b) (t b)) t))", 4, 22, "binds `t` twice"),
        ("(assert (let b))", 4, 9, "(let ((name term) ..) body)"),
        ("(assert (! b))", 4, 9, ":named"),
        ("(define-fun f ((t Real)) Bool (< t 0))\n(assert (f x y))", 5, 9, "takes one argument, but here it has 2"),
        ("(define-fun f ((t Real)) Bool (< t 0))\n(assert (f b))", 5, 12, "parameter `t` of `f` has sort Real"),
        // arithmetic
        ("(assert (<= (* x y) 1))", 4, 13, "at most one factor may contain variables"),
        ("(assert (<= (/ 1 x) 1))", 4, 13, "divisors must be constants"),
        ("(assert (<= (/ 1 0) 1))", 4, 13, "divides by zero"),
        ("(assert (<= (/ x (- 1 1.0)) 1))", 4, 13, "divides by zero"),
        ("(define-fun f ((s Real)) Real (* s x))\n(assert (< (f y) 1))", 4, 31, "`(f y)` at line 5, column 12"),
        ("(assert (<= x 1e-3))", 4, 15, "does not have; write a decimal or a quotient, here (/ 1 1000)"),
        ("(assert (<= x -2.5E2))", 4, 15, "here (- 250)"),
        ("(assert (<= x 1/3))", 4, 15, "(/ 1 3)"),
        ("(assert (<= x .5))", 4, 15, "here (/ 1 2)"),
        ("(assert (<= x 1_0))", 4, 15, "is not a number"),
        ("(assert (<= x #b01))", 4, 15, "bit vectors"),
        ("(assert (forall ((z Real)) (< z x)))", 4, 10, "quantifiers"),
        ("(assert (< (mod x 2) 1))", 4, 13, "integer operations"),
        ("; é\n(assert (|ö é| (< x 1) (< ξ 1)))", 5, 10, "not declared"),
        ("(assert (= |x| \"s\"))", 4, 16, "expected a term"),
    ] {
        let error = parse_smtlib(&format!("{declared}{text}")).err().unwrap_or_else(|| panic!("{text} was accepted"));
        assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
        assert!(error.message.contains(part), "{text}: {error}");
        assert!(error.to_string().starts_with(&format!("line {line}, column {column}: ")));
    }
    let columns = parse_smtlib("(declare-const |é ö| Real) (assert (< |é ö| w))").unwrap_err();
    assert_eq!((columns.line, columns.column), (1, 45), "columns count characters");
}

#[test]
fn a_single_term_must_be_all_of_the_text() {
    let scope = Constraint::new(reals(["x"])[0].le(1));
    for (text, line, column) in
        [("(< x 1)\n (< x 2)", 2, 2), ("", 1, 1), (" x", 1, 2), ("(< x y)", 1, 6), ("(< x 1", 1, 1)]
    {
        let error = parse_smtlib_term(text, &scope).unwrap_err();
        assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
    }
}

fn quickly<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    // Generous, because test machines are slow and busy; quadratic behaviour would take minutes.
    assert!(start.elapsed() < Duration::from_secs(30), "{what} took {:?}", start.elapsed());
    result
}

const HEAD: &str = "(declare-const x Real)(declare-const b Bool)";

#[test]
fn deep_input_neither_overflows_nor_slows_down() {
    let error = quickly("open parentheses", || parse_smtlib(&"(".repeat(10_000_000)).unwrap_err());
    assert!(error.message.contains("never closed"));
    const DEPTH: usize = 100_000;
    let close = ")".repeat(DEPTH);
    let nested = |open: &str, core: &str| format!("{HEAD}(assert {}{core}{close})", open.repeat(DEPTH));
    for (open, want) in [("(not ", "b"), ("(or ", "b"), ("(let ((c b)) ", "b"), ("(! ", "error"), ("(- ", "error")] {
        match quickly(open, || parse_smtlib(&nested(open, "b"))) {
            Ok(constraint) => assert_eq!(constraint.formula.to_string(), want, "{open}"),
            Err(error) => assert_eq!(want, "error", "{open}: {error}"),
        }
    }
    for open in ["(=> (< x 1) ", "(xor (< x 1) ", "(ite b (< x 1) ", "(and (< x 1) ", "(or (< x 1) (and (< x 2) b) "] {
        let constraint = quickly(open, || parse_smtlib(&nested(open, "b")).unwrap());
        assert_eq!(constraint.formula.boolean_variables().len(), 1, "{open}");
    }
    let sum = format!("{HEAD}(assert (< {}x{close} 1))", "(+ 1 ".repeat(DEPTH));
    assert_eq!(quickly("sum", || parse_smtlib(&sum)).unwrap().formula.to_string(), "x < -99999");
}

#[test]
fn let_chains_keep_sharing() {
    for step in
        ["(and p p)", "(or p p)", "(xor p (< x 2))", "(and (or p b) (or p (< x 3)))", "(= p (not p))", "(ite p b p)"]
    {
        let mut text = format!("{HEAD}(assert (let ((p (< x 1))) ");
        for _ in 0..60 {
            text += &format!("(let ((p {step})) ");
        }
        text += &format!("p{}))", ")".repeat(60));
        let constraint = quickly(step, || parse_smtlib(&text)).unwrap();
        let again = quickly(step, || parse_smtlib(&write_smtlib(&constraint).unwrap())).unwrap();
        assert!(again.formula.atoms().len() <= 3);
    }
    // Sharing that flat conjunctions would copy: quadratic without care, 40 GB here.
    let mut text = format!("{HEAD}(assert (let ((p b)) ");
    for k in 0..100_000 {
        text += &format!("(let ((p (and (< x {k}) p))) ");
    }
    text += &format!("p{}))", ")".repeat(100_000));
    let constraint = quickly("growing conjunction", || parse_smtlib(&text)).unwrap();
    assert_eq!(constraint.formula.atoms().len(), 100_000);
    let mut nodes = 0;
    constraint.formula.fold(|_, _: &[()]| nodes += 1);
    assert!(nodes < 500_000, "{nodes} nodes");
}

#[test]
fn what_would_explode_is_refused_with_a_reason() {
    let refused = |body: &str, part: &str| {
        let error = quickly(part, || parse_smtlib(&format!("{HEAD}{body}"))).err().unwrap_or_else(|| panic!("{part}"));
        assert!(error.message.contains(part), "{error}");
    };
    let independent: String = (0..13).map(|k| format!(" (ite (< x {k}) {k} x)")).collect();
    refused(&format!("(assert (< (+{independent}) 0))"), "more than 4096 cases");
    let chain = format!("{}0{}", "(ite (< x 1.25) x ".repeat(100_000), ")".repeat(100_000));
    assert!(quickly("equal conditions", || parse_smtlib(&format!("{HEAD}(assert (< {chain} 0))"))).is_ok());
    let chain: String = (0..100_000).map(|k| format!("(ite (< x {k}) {k} ")).collect();
    refused(&format!("(assert (< {chain}0{} 0))", ")".repeat(100_000)), "more than 4096 cases");
    let square = "(let ((t (* t t))) ".repeat(60);
    refused(&format!("(assert (let ((t 3)) {square}(< t x){}))", ")".repeat(60)), "bits");
    refused(&format!("(assert (< x {}))", "7".repeat(10_001)), "digits");
    refused(&format!("(assert (distinct{}))", " x".repeat(2000)), "pairs");
    let mut doubling = "(define-fun f0 ((t Real)) Real (+ t 1))".to_string();
    for k in 1..60 {
        doubling += &format!("(define-fun f{k} ((t Real)) Real (f{0} (f{0} t)))", k - 1);
    }
    refused(&doubling, "expand to more than");
}

#[test]
fn ten_megabytes_take_seconds() {
    let mut text = String::from("(declare-const x Real)(declare-const y Real)\n");
    let mut k = 0;
    while text.len() < 10_000_000 {
        text += &format!("(assert (or (<= (+ (* {k} x) (* 0.5 y)) (/ 1 3)) (not (< x (- {k})))))\n");
        k += 1;
    }
    let constraint = quickly("10 MB", || parse_smtlib(&text)).unwrap();
    assert!(constraint.formula.atoms().len() > 200_000);
}

/// Numbers that are random enough for tests and the same on every run.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }

    fn linear(&mut self) -> Linear {
        let [x, y] = reals(["x", "y z"]);
        let mut coefficient = || self.below(7) as i64 - 3;
        let sum = coefficient() * x + coefficient() * y + coefficient();
        pal::number::Rational::from_parts(1.into(), (1 + self.below(3)).into()) * sum
    }

    /// Formulas over earlier ones, so that parts are shared.
    fn formula(&mut self, steps: usize) -> Formula {
        let mut pool = vec![Formula::boolean("b"), Formula::boolean("and so on"), Formula::boolean("let")];
        for _ in 0..6 {
            let term = self.linear();
            pool.push(match self.below(4) {
                0 => term.le(0),
                1 => term.lt(0),
                2 => term.equals(0),
                _ => term.differs(0),
            });
        }
        for _ in 0..steps {
            // Two recent parts and an old one make formulas both deep and shared.
            let recent = pool.len() as u64 - 4;
            let mut pick = |from: u64, of: u64| pool[(from + self.below(of)) as usize].clone();
            let (a, b, c) = (pick(recent, 4), pick(recent, 4), pick(0, recent + 4));
            pool.push(match self.below(6) {
                0 => !a,
                1 => a & c,
                2 => a | b | c,
                3 => a.iff(b),
                4 => a ^ c,
                _ => a.ite(b, c),
            });
        }
        pool.pop().unwrap_or_else(Formula::yes)
    }
}

#[test]
fn written_scripts_read_back_with_the_same_meaning() {
    let mut random = Lcg(7);
    let (mut shared, mut several, mut members) = (0, 0, 0);
    for round in 0..300 {
        let formula = if round % 4 == 0 {
            let part = random.formula(12);
            (part.clone() | random.formula(5)) & (part | random.formula(6))
        } else {
            random.formula(3 + round / 8)
        };
        let vars = |names: &[&str]| names.iter().map(|name| Var::new(name)).collect::<Vec<_>>();
        let before = Constraint { formula, reals: vars(&["y z", "x"]), booleans: vars(&["let", "b", "and so on"]) };
        let text = write_smtlib(&before).unwrap();
        let after = parse_smtlib(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!((&after.reals, &after.booleans), (&before.reals, &before.booleans));
        shared += usize::from(text.contains("(let "));
        several += usize::from(text.contains("(define-fun "));
        let (Ok(old), Ok(new)) = (before.membership(), after.membership()) else { continue };
        // Coefficients are small integers, so that many points of a half-integer grid lie on the planes.
        for (i, j) in (-7..=7).flat_map(|i| (-7..=7).map(move |j| (i, j))) {
            let point = [f64::from(i) / 2.0, f64::from(j) / 2.0];
            for bits in 0..8 {
                let truth = [bits & 1 > 0, bits & 2 > 0, bits & 4 > 0];
                let member = old.contains_with(&point, &truth);
                assert_eq!(member, new.contains_with(&point, &truth), "{point:?} {truth:?}\n{text}");
                members += usize::from(member);
            }
        }
    }
    assert!(shared > 20 && several > 5, "{shared} texts with let, {several} with define-fun");
    assert!((100_000..400_000).contains(&members), "{members} members: the formulas are neither empty nor everything");
}

#[test]
fn the_writer_is_readable_on_simple_formulas() {
    let [x, y] = reals(["x", "y"]);
    let b = Formula::boolean("b");
    let formula = (3 * &x).le(1) & (x.gt(&y) | !b.clone()) & x.differs(-2) & b.iff((2 * &x - 3 * &y).ge(0));
    let want = "(set-logic QF_LRA)\n\
                (declare-const x Real)\n\
                (declare-const y Real)\n\
                (declare-const b Bool)\n\
                (assert (<= x (/ 1 3)))\n\
                (assert (or (> (+ x (* (- 1) y)) 0) (not b)))\n\
                (assert (not (= x (- 2))))\n\
                (assert (= b (>= (+ (* 2 x) (* (- 3) y)) 0)))\n\
                (check-sat)\n";
    assert_eq!(write_smtlib(&Constraint::new(formula)).unwrap(), want);
    assert!(write_smtlib(&Constraint::new(Formula::no())).unwrap().contains("(assert false)"));
}

#[test]
fn names_are_quoted_or_refused() {
    for name in ["a b", "", "3", "-3", ".5", "let", "assert", "é", "x;y", "(", "part1", "true-ish", "\"", "Real"] {
        let before = Constraint::new(Linear::from(Var::new(name)).le(1) & Formula::boolean("q"));
        let text = write_smtlib(&before).unwrap();
        let after = parse_smtlib(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        assert_eq!(after.reals, before.reals);
        assert_eq!(after.formula.to_string(), before.formula.to_string());
    }
    let x = || Var::new("x");
    let at_most_one = |name: &str| Linear::from(Var::new(name)).le(1);
    for (constraint, want) in [
        (Constraint::new(at_most_one("a|b")), SmtWriteError::Name(Var::new("a|b"))),
        (Constraint::new(at_most_one("a\\b")), SmtWriteError::Name(Var::new("a\\b"))),
        (Constraint::new(at_most_one("and")), SmtWriteError::BuiltIn(Var::new("and"))),
        (Constraint::new(at_most_one("x") & Formula::boolean("x")), SmtWriteError::Twice(x())),
        (Constraint { formula: at_most_one("x"), reals: vec![], booleans: vec![x()] }, SmtWriteError::Undeclared(x())),
        (
            Constraint { formula: Formula::boolean("x"), reals: vec![], booleans: vec![] },
            SmtWriteError::Undeclared(x()),
        ),
    ] {
        assert_eq!(write_smtlib(&constraint).unwrap_err(), want);
    }
}

#[test]
fn shared_formulas_are_written_in_linear_size() {
    let [x] = reals(["x"]);
    let mut formula = x.le(0);
    for k in 0..2000 {
        formula = formula.clone().iff(x.le(k)).ite(formula.clone().iff(x.lt(-k)), !formula);
    }
    let before = Constraint::new(formula);
    let text = write_smtlib(&before).unwrap();
    assert!(text.len() < 2000 * 300, "{} bytes", text.len());
    let after = quickly("reading it back", || parse_smtlib(&text)).unwrap();
    assert_eq!(after.formula.atoms(), before.formula.atoms());
}
