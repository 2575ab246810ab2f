//! Compares weighted model integrals with the answers of an independent exact evaluator, and with closed forms.

use std::path::PathBuf;

use pal::moments::Method;
use pal::number::{self, Rational, parse_rational};
use pal::wmi::{Answer, Problem};
use serde_json::Value;

/// Reads the problems of a file in the data folder. Returns none, and prints a message, if the folder is absent.
fn problems(file: &str) -> Vec<Value> {
    let Some(folder) = std::env::var_os("PAL_DATA") else {
        println!("skipped: PAL_DATA is not set");
        return Vec::new();
    };
    let path = PathBuf::from(folder).join("wmi").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Checks one answer. The relative tolerance is 1e-9; if the reference is a Monte Carlo estimate, the tolerance is five
/// standard errors. An exact reference must also lie within the reported error bound, and equal an exact answer.
fn check(name: &str, answer: &Answer, value: &Value, exact: &Value, stderr: f64) {
    let want = value.as_f64().unwrap();
    let tolerance = if stderr > 0.0 { 5.0 * stderr } else { 1e-9 * want.abs() };
    assert!((answer.value - want).abs() <= tolerance, "{name}: {} instead of {want}", answer.value);
    assert!(answer.error <= 1e-9 * answer.value.abs(), "{name}: bound {:e} on {}", answer.error, answer.value);
    if let Some(exact) = exact.as_str() {
        let exact = parse_rational(exact).unwrap();
        match &answer.exact {
            Some(ours) => assert_eq!(ours, &exact, "{name}"),
            None => {
                let off = number::from_f64(answer.value).unwrap() - exact;
                assert!(number::to_f64(&off).abs() <= answer.error, "{name}: off by more than {:e}", answer.error);
            }
        }
    }
}

/// Solves and checks the problems of a file for which `chosen` holds, and returns their number.
fn solve_all(file: &str, method: Method, chosen: impl Fn(&Value) -> bool) -> usize {
    let mut count = 0;
    for case in problems(file).iter().filter(|case| chosen(case)) {
        let name = case["name"].as_str().unwrap();
        let problem = Problem::parse(&case.to_string()).unwrap_or_else(|e| panic!("{name}: {e}"));
        let solution = problem.solve(method);
        count += 1;
        if case["expect"] == "error:unbounded" {
            assert!(solution.unwrap_err().to_string().contains("unbounded"), "{name}");
            continue;
        }
        let solution = solution.unwrap_or_else(|e| panic!("{name}: {e}"));
        let stderr = if case["method"] == "mc" { case["stderr"].as_f64().unwrap_or(0.0) } else { 0.0 };
        check(name, &solution.total, &case["value"], &case["value_exact"], stderr);
        if let Some(wanted) = case["query_answers"].as_array() {
            assert_eq!(wanted.len(), solution.queries.len(), "{name}");
            for (answer, want) in solution.queries.iter().zip(wanted) {
                let (value, exact) =
                    if want.is_object() { (&want["value"], &want["value_exact"]) } else { (want, &Value::Null) };
                check(&format!("{name}, query"), answer, value, exact, stderr);
            }
        }
    }
    if std::env::var_os("PAL_DATA").is_some() {
        println!("{file}: {count} problems solved by {method:?}");
    }
    count
}

fn data_present() -> bool {
    std::env::var_os("PAL_DATA").is_some()
}

#[test]
fn all_published_problems_in_float64() {
    let count = solve_all("cases.jsonl", Method::Recurrence, |_| true);
    assert!(count == 372 || !data_present(), "{count} problems");
}

#[test]
fn all_corner_cases_in_float64_and_exactly() {
    for method in [Method::Recurrence, Method::Exact] {
        let count = solve_all("edge.jsonl", method, |_| true);
        assert!(count == 44 || !data_present(), "{count} problems");
    }
}

/// Exact answers equal exact references. Unoptimised builds leave out the expensive problems.
#[test]
fn published_problems_exactly() {
    let moderate = |case: &Value| case["time_s"].as_f64().unwrap_or(0.0) < 2.0 || !cfg!(debug_assertions);
    let count = solve_all("cases.jsonl", Method::Exact, |case| case["value_exact"].is_string() && moderate(case));
    assert!(count >= 250 || !data_present(), "{count} problems");
}

fn exact(json: &str) -> Rational {
    Problem::parse(json).unwrap().solve(Method::Exact).unwrap().total.exact.unwrap()
}

#[test]
fn cases_may_stand_anywhere_in_a_weight() {
    let domain = r#""domain": {"reals": {"x": ["0", "1"], "y": ["0", "1"]}, "booleans": ["a"]}"#;
    for (weight, want) in [
        ("(* (ite a x 1) (ite (<= x y) 2 0))", "4/3"),
        ("(pow (ite (<= x 0.5) 1 2) 3)", "9"),
        ("(- (ite a 3 1) (ite a 1 3))", "0"),
        ("(/ (ite (< y x) (* x y) 0) 2)", "1/8"),
        ("(+ 1 (ite (and a (<= (+ x y) 1)) (ite (>= x 0.5) 8 0) 0))", "3"),
    ] {
        let json = format!(r#"{{{domain}, "support": "true", "weight": "{weight}"}}"#);
        assert_eq!(exact(&json), parse_rational(want).unwrap(), "{weight}");
        let rounded = Problem::parse(&json).unwrap().solve(Method::Recurrence).unwrap().total;
        assert!(
            (rounded.value - number::to_f64(&parse_rational(want).unwrap())).abs() <= rounded.error + 1e-15,
            "{weight}"
        );
    }
}

#[test]
fn an_unbounded_support_is_fine_where_the_weight_vanishes() {
    let json = |weight: &str| {
        format!(r#"{{"domain": {{"reals": {{"x": ["0", null]}}}}, "support": "true", "weight": "{weight}"}}"#)
    };
    assert_eq!(exact(&json("(ite (<= x 2) x 0)")), Rational::from(2));
    // The summands cancel on the unbounded part.
    assert_eq!(exact(&json("(+ (ite (<= x 3) x 1) (- 1))")), parse_rational("3/2").unwrap());
    let error = Problem::parse(&json("(ite (<= x 2) 0 x)")).unwrap().solve(Method::Recurrence).unwrap_err();
    assert!(error.to_string().contains("unbounded in direction x"), "{error}");
}

#[test]
fn density_files_of_other_tools_are_read() {
    let as_list = r#"{"domain": [["x", "real", [0, 1]], ["a", "bool", null]], "formula":
        "(& (<= (const real 0.25) (var real x)) (| (var bool a) (~ (<= (var real x) (const real 0.5)))))",
        "weights": "(ite (var bool a) (* (var real x) (var real x)) (^ (var real x) (const real 1)))",
        "queries": ["(var bool a)"]}"#;
    let as_tables = r#"{
        "domain": {"variables": ["x", "a"], "var_types": {"x": "real", "a": "bool"}, "var_domains": {"x": [0, 1]}},
        "formula": "(& (<= (const real 0.25) (var real x)) (| (var bool a) (~ (<= (var real x) (const real 0.5)))))",
        "weights": "(ite (var bool a) (* (var real x) (var real x)) (var real x))", "queries": []}"#;
    // The integral of x^2 over [1/4, 1] plus the integral of x over [1/2, 1].
    for json in [as_list, as_tables] {
        assert_eq!(exact(json), parse_rational("45/64").unwrap());
    }
    // Bounds are read exactly: float64 cannot hold this decimal.
    let long = r#"{"domain": [["x", "real", [0, 0.12345678901234567890123]]], "formula": "(const bool True)",
        "weights": "(const real 1.0)"}"#;
    assert_eq!(exact(long), parse_rational("0.12345678901234567890123").unwrap());
}

#[test]
fn all_integrators_agree_on_a_problem() {
    let json = r#"{"domain": {"reals": {"x": ["0", "2"], "y": ["-1", "1"]}, "booleans": ["a"]},
        "support": "(or a (<= (+ x y) 1))", "weight": "(ite (< x y) (* x x) (+ 1 (* x y y)))"}"#;
    let problem = Problem::parse(json).unwrap();
    let exact = number::to_f64(&problem.solve(Method::Exact).unwrap().total.exact.unwrap());
    for method in [Method::Recurrence, Method::Gasp, Method::Rejection { samples: 200_000, seed: 7 }] {
        let answer = problem.solve(method).unwrap().total;
        let slack = if matches!(method, Method::Rejection { .. }) { 5.0 * answer.error } else { answer.error };
        assert!((answer.value - exact).abs() <= slack, "{method:?}: {} instead of {exact}", answer.value);
        assert!(answer.error < 0.02 * exact, "{method:?}");
    }
}

#[test]
fn bad_problems_are_refused_with_a_reason() {
    let problem = |domain: &str, support: &str, weight: &str| {
        let json = format!(r#"{{"domain": {domain}, "support": "{support}", "weight": "{weight}"}}"#);
        Problem::parse(&json).unwrap_err().to_string()
    };
    let x = r#"{"reals": {"x": ["0", "1"]}}"#;
    for (error, part) in [
        (problem(x, "(<= z 1)", "1"), "support: line 1, column 5"),
        (problem(x, "true", "(* x z)"), "weight: line 1, column 6: unknown variable `z`"),
        (problem(x, "true", "(/ 1 x)"), "division by a constant"),
        (problem(x, "true", "(pow x 1.5)"), "whole number"),
        (
            problem(x, "true", &format!("{}x{}", "(ite (<= x 0.1) (pow ".repeat(100_000), " 1) 2)".repeat(100_000))),
            "nested deeper",
        ),
        (problem(x, "true", "(sin x)"), "unknown operator `sin`"),
        (problem(r#"{"reals": {"x": ["zero", "1"]}}"#, "true", "1"), "the bounds of `x`"),
        (problem(r#"{"reals": {"x": ["0", "1"]}, "booleans": ["x"]}"#, "true", "1"), "declared twice"),
        (Problem::parse("{").unwrap_err().to_string(), "not a problem in JSON"),
    ] {
        assert!(error.contains(part), "{error}");
    }
}

/// What would be left out, or read in one of two ways, is an error.
#[test]
fn names_that_are_misspelt_or_repeated_are_refused() {
    let read = |fields: &str| {
        let json =
            format!(r#"{{"domain": {{"reals": {{"x": ["0", "1"]}}}}, "support": "true", "weight": "1"{fields}}}"#);
        Problem::parse(&json).map(|problem| problem.queries.len()).map_err(|error| error.to_string())
    };
    assert_eq!(
        read(r#", "queries": ["(<= x 0.5)"], "note": 1, "value": 2, "query_answers": [3], "family": "f""#),
        Ok(1)
    );
    for (fields, part) in [
        (r#", "querys": []"#, "unknown field `querys`; `queries` is probably meant"),
        (r#", "query": []"#, "`queries` is probably meant"),
        (r#", "Queries": []"#, "`queries` is probably meant"),
        (r#", "suport": "false""#, "`support` is probably meant"),
        (r#", "weights": "2""#, "`weight` is probably meant"),
        (r#", "weight": "2""#, "the name `weight` occurs twice"),
        (r#", "note": 1, "note": 2"#, "the name `note` occurs twice"),
    ] {
        let error = read(fields).unwrap_err();
        assert!(error.contains(part), "{fields}: {error}");
    }
    let domain = |domain: &str| {
        let json = format!(r#"{{"domain": {domain}, "support": "true", "weight": "1"}}"#);
        Problem::parse(&json).unwrap_err().to_string()
    };
    let twice = domain(r#"{"reals": {"x": ["0", "1"], "x": ["0", "2"]}}"#);
    assert!(twice.contains("the name `x` occurs twice"), "{twice}");
    let unknown = domain(r#"{"reals": {"x": ["0", "1"]}, "bools": ["a"]}"#);
    assert!(unknown.contains("unknown field `bools`, expected `reals` or `booleans`"), "{unknown}");
    let density = |formula: &str, types: &str| {
        let json = format!(
            r#"{{"domain": {{"variables": ["x", "b"], "var_types": {{{types}}}, "var_domains": {{"x": [0, 1]}}}},
                "formula": "{formula}", "weights": "(const real 1)"}}"#
        );
        Problem::parse(&json).map(|_| ()).map_err(|error| error.to_string())
    };
    let types = r#""x": "real", "b": "bool""#;
    assert_eq!(density("(var bool b)", types), Ok(()));
    let other_kind = density("(& (var bool b) (<= (var bool x) (const real 0.5)))", types).unwrap_err();
    assert!(other_kind.contains("`x` is declared as real, but used as bool"), "{other_kind}");
    let two_types = density("(var bool b)", r#""x": "real", "b": "bool", "x": "bool""#).unwrap_err();
    assert!(two_types.contains("the name `x` occurs twice"), "{two_types}");
}
