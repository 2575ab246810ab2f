//! `pal wmi`: what problems mean, which files are read, and how a run goes on after a problem without answer.

mod common;

use std::io::{BufRead, BufReader};

use common::Folder;
use serde_json::{Value, json};

/// A problem over x and y in [0, 1] and the Booleans a and b.
fn problem(name: &str, support: &str, weight: &str, queries: &[&str]) -> String {
    let domain = json!({"reals": {"x": ["0", "1"], "y": ["0", "1"]}, "booleans": ["a", "b"]});
    json!({"name": name, "domain": domain, "support": support, "weight": weight, "queries": queries}).to_string()
}

/// Millions of cells, which a sum of all variables ties together: too many to wait for.
fn endless() -> String {
    let names = ["u", "v", "w", "x", "y", "z"];
    let strips = |name: &str| (0..15).map(|k| format!("(<= {} {name} {})", 2 * k, 2 * k + 1)).collect::<Vec<_>>();
    let mut support: Vec<String> = names.iter().map(|name| format!("(or {})", strips(name).join(" "))).collect();
    support.push(format!("(<= (+ {}) 100)", names.join(" ")));
    let reals: serde_json::Map<String, Value> =
        names.iter().map(|name| (name.to_string(), json!(["0", "100"]))).collect();
    json!({
        "name": "endless", "domain": {"reals": reals}, "support": format!("(and {})", support.join(" ")), "weight": "u"
    })
    .to_string()
}

fn solve(text: &str, extra: &[&str]) -> Vec<Value> {
    let folder = Folder::new(&format!("wmi-solve-{:?}", std::thread::current().id()));
    folder.pal_reading(&[&["wmi", "-", "--json"], extra].concat(), text).done().json_lines()
}

#[test]
fn answers_have_all_fields() {
    let text = problem("one", "(=> a (<= x 0.5))", "(* 3 x x)", &["a", "(>= y 0.75)"]);
    let mut exact = solve(&text, &["--exact"]).remove(0);
    assert!(exact.as_object_mut().unwrap().remove("seconds").unwrap().as_f64().unwrap() >= 0.0);
    assert!(exact.as_object_mut().unwrap().remove("error_bound").unwrap().as_f64().unwrap() < 1e-14);
    // Not a: 1; a: 1/8; b doubles both.
    let want = json!({
        "name": "one", "value": 2.25, "exact": "9/4", "cells": 3, "simplices": exact["simplices"], "status": "ok",
        "queries": [{"value": 0.25, "exact": "1/4", "probability": 1.0 / 9.0},
                    {"value": 0.5625, "exact": "9/16", "probability": 0.25}]
    });
    assert_eq!(exact, want);
    let plain = solve(&text, &[]).remove(0);
    assert_eq!((&plain["exact"], &plain["queries"][0]["exact"]), (&Value::Null, &Value::Null));
    for extra in [&[][..], &["--integrator", "gasp"], &["--method", "recurrence"]] {
        let line = solve(&text, extra).remove(0);
        let (value, error) = (line["value"].as_f64().unwrap(), line["error_bound"].as_f64().unwrap());
        assert!((value - 2.25).abs() <= error && error < 1e-9, "{line}");
        assert!((line["queries"][1]["probability"].as_f64().unwrap() - 0.25).abs() < 1e-12);
    }
    let line = solve(&text, &["--integrator", "rejection", "--samples", "40000", "--seed", "3"]).remove(0);
    let (value, error) = (line["value"].as_f64().unwrap(), line["error_bound"].as_f64().unwrap());
    assert!((value - 2.25).abs() < 5.0 * error && error < 0.1, "{line}");
}

/// Supports, weights and what they are worth, times 4 for the Booleans where these are free.
#[test]
fn the_meaning_of_problems() {
    let cases = [
        ("true", "1", "4"),
        ("false", "1", "0"),
        ("a", "1", "2"),
        ("(xor a b)", "x", "1"),
        ("(distinct a b)", "x", "1"),
        ("(= a b)", "x", "1"),
        ("(=> a b (not a))", "1", "3"),
        // Boundaries have no measure.
        ("(= x 0.5)", "1", "0"),
        ("(distinct x 0.5)", "1", "4"),
        ("(and (< 0.25 x) (< x 0.75))", "1", "2"),
        ("(and (<= 0.25 x) (<= x 0.75))", "1", "2"),
        ("(<= 0.25 x 0.75)", "1", "2"),
        ("(<= x 0.1)", "1", "2/5"),
        // The box belongs to the support.
        ("(<= x 7)", "1", "4"),
        ("(and (>= x (/ 1 3)) (<= x 1 2))", "1", "8/3"),
        // Overlaps count once.
        ("(or (<= x 0.5) (<= y 0.5))", "1", "3"),
        ("(not (or (<= x 0.5) (<= y 0.5)))", "1", "1"),
        ("(ite (<= x 0.5) (<= y 0.5) true)", "1", "3"),
        // Weights.
        ("true", "(- 1)", "-4"),
        ("true", "(- x y)", "0"),
        ("true", "(* x y (+ x y))", "4/3"),
        ("true", "(pow x 0)", "4"),
        ("true", "(pow (+ x y) 2)", "14/3"),
        ("true", "(/ x 3)", "2/3"),
        ("true", "(ite a x (* 2 x))", "3"),
        ("true", "(ite (<= x y) x (ite b 0 y))", "1"),
        ("true", "(+ (ite a 1 0) (ite (< x 0.5) 1 0))", "4"),
        ("(<= (ite a x y) 0.5)", "1", "2"),
        ("true", "0", "0"),
    ];
    let text: String = cases.iter().map(|(support, weight, _)| problem("p", support, weight, &[]) + "\n").collect();
    let (exact, plain) = (solve(&text, &["--exact"]), solve(&text, &[]));
    assert_eq!((exact.len(), plain.len()), (cases.len(), cases.len()));
    for (((support, weight, want), line), plain) in cases.iter().zip(&exact).zip(&plain) {
        assert_eq!(&line["exact"], want, "{support} {weight}");
        let error = plain["error_bound"].as_f64().unwrap();
        let difference = line["value"].as_f64().unwrap() - plain["value"].as_f64().unwrap();
        assert!(difference.abs() <= error + 1e-15 && error < 1e-9, "{support} {weight}: {plain}");
    }
}

#[test]
fn probabilities_of_nothing_are_null() {
    let lines = solve(
        &[problem("p", "false", "1", &["a"]), problem("q", "true", "(- x y)", &["a", "(< x y)"])].join("\n"),
        &[],
    );
    for line in lines {
        for query in line["queries"].as_array().unwrap() {
            assert!(query["value"].is_number() && query["probability"].is_null(), "{line}");
        }
    }
}

#[test]
fn density_files() {
    let folder = Folder::new("wmi-density");
    let density = r#"
{
  "domain": [["x", "real", [0, 1]], ["a", "bool", null]],
  "formula": "(| (var bool a) (<= (var real x) (const real 0.5)))",
  "weights": "(ite (var bool a) (var real x) (* (const real 2) (var real x)))",
  "queries": ["(var bool a)"]
}
"#;
    folder.write("density.json", density).write("broken.json", density.replace("\"queries\"", "queries"));
    let line = folder.pal(&["wmi", "density.json", "--exact", "--json"]).done().json();
    assert_eq!((&line["name"], &line["exact"], &line["status"]), (&json!("line 2"), &json!("3/4"), &json!("ok")));
    assert_eq!(line["queries"], json!([{"value": 0.5, "exact": "1/2", "probability": 2.0 / 3.0}]));
    let run = folder.pal(&["wmi", "broken.json", "--json"]);
    assert_eq!(run.code, 1);
    assert!(run.json()["status"].as_str().unwrap().starts_with("line 6, column 3: not a problem in JSON: key must be"));
    // Density problems can stand in lines as well.
    folder.write("two.jsonl", format!("{}\n{}\n", density.replace('\n', " "), problem("p", "true", "1", &[])));
    assert_eq!(folder.pal(&["wmi", "two.jsonl", "--json"]).done().json_lines().len(), 2);
}

#[test]
fn a_bad_line_does_not_stop_the_others() {
    let folder = Folder::new("wmi-bad");
    let good = |name: &str| problem(name, "true", "1", &[]);
    let lines = [
        good("first"),
        String::new(),
        "{\"name\": ".to_string(),
        problem("no z", "(<= z 1)", "1", &[]),
        problem("no q", "true", "1", &["a", "(<= q 1)"]),
        problem("not linear", "(<= (* x y) 1)", "1", &[]),
        problem("", "true", "(/ 1 x)", &[]),
        json!({"name": "open", "domain": {"reals": {"x": ["0", null]}}, "support": "true", "weight": "x"}).to_string(),
        json!({"name": "bound", "domain": {"reals": {"x": ["0", "y"]}}, "support": "true", "weight": "x"}).to_string(),
        "[1, 2]".to_string(),
        "\t".to_string(),
        json!({"name": "no weight", "domain": {"reals": {}}, "support": "true"}).to_string(),
        good("last"),
    ];
    folder.write("p.jsonl", lines.join("\n"));
    let run = folder.pal(&["wmi", "p.jsonl", "--json"]);
    assert_eq!((run.code, run.err.as_str()), (1, ""));
    let answers = run.json_lines();
    let starts = [
        ("first", "ok"),
        ("line 3", "line 3, column 9: not a problem in JSON: EOF"),
        ("no z", "line 4: support, column 5: `z` is not declared"),
        ("no q", "line 5: query 2, column 5: `q` is not declared"),
        ("not linear", "line 6: support, column "),
        ("line 7", "line 7: weight, column "),
        ("open", "the region is unbounded in direction x; add bounds"),
        ("bound", "line 9: the bounds of `x`: `y` is not a number"),
        ("line 10", "line 10, column 1: not a problem in JSON: "),
        ("no weight", "line 12, column "),
        ("last", "ok"),
    ];
    assert_eq!(answers.len(), starts.len());
    for (answer, (name, start)) in answers.iter().zip(starts) {
        assert_eq!(answer["name"], name);
        assert!(answer["status"].as_str().unwrap().starts_with(start), "{answer}");
        assert_eq!(answer["value"].is_null(), start != "ok", "{answer}");
    }
    let text = folder.pal(&["wmi", "p.jsonl"]);
    assert_eq!((text.code, text.err.as_str()), (1, ""));
    assert_eq!(text.out.lines().count(), 1 + starts.len());
    assert!(text.out.contains("unbounded in direction x"), "{}", text.out);
}

#[test]
fn text_shows_values_fractions_and_queries() {
    let folder = Folder::new("wmi-text");
    folder.write("p.jsonl", problem("a long name for a problem", "true", "x", &["a", "(<= x 0.5)"]));
    let text = folder.pal(&["wmi", "p.jsonl"]).done().out;
    let lines: Vec<&str> = text.lines().collect();
    let words = |line: &str| line.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    assert_eq!(words(lines[0]), ["name", "value", "error", "bound", "cells", "seconds", "status"]);
    assert!(lines[1].starts_with("a long name for a problem  2.0 ") && lines[1].ends_with("  ok"), "{text}");
    assert_eq!(lines[2..], ["  query 1: 1.0, probability 0.5", "  query 2: 0.5, probability 0.25"]);
    let exact = folder.pal(&["wmi", "p.jsonl", "--exact"]).done().out;
    assert!(exact.contains("\n  exact 2\n  query 1: 1, probability 0.5\n  query 2: 1/2 = 0.5, "), "{exact}");
}

#[test]
fn values_beyond_float64_are_fractions_only() {
    let far = format!("1{}", "0".repeat(400));
    let text =
        json!({"name": "p", "domain": {"reals": {"x": ["0", far]}}, "support": "true", "weight": "1"}).to_string();
    let line = solve(&text, &["--exact"]).remove(0);
    assert_eq!((&line["value"], &line["exact"], &line["status"]), (&Value::Null, &json!(far), &json!("ok")));
    let folder = Folder::new("wmi-far");
    let run = folder.pal_reading(&["wmi", "-", "--json"], &text);
    assert_eq!(run.code, 1);
    assert!(run.json()["status"].as_str().unwrap().contains("--exact gives it as a fraction"));
}

#[test]
fn files_that_cannot_be_read() {
    let folder = Folder::new("wmi-files");
    folder.write("empty.jsonl", "\n \n").write("latin.jsonl", b"{\"name\": \"caf\xe9\"}");
    std::fs::create_dir(folder.path().join("dir")).unwrap();
    folder.pal(&["wmi", "nope.jsonl"]).failed("pal: nope.jsonl: no such file");
    folder.pal(&["wmi", "dir"]).failed("pal: dir: this is a directory; give a file of problems in JSON");
    folder.pal(&["wmi", "empty.jsonl"]).failed("pal: empty.jsonl: the file is empty; it should hold problems in JSON");
    folder.pal(&["wmi", "latin.jsonl"]).failed("pal: latin.jsonl: not UTF-8 text at byte offset 13 (0xe9)");
    folder.pal(&["wmi", "-"]).failed("pal: standard input: the file is empty");
    let conflict = "pal: --exact goes with the recurrence only; gasp and rejection compute in float64";
    folder.pal(&["wmi", "p.jsonl", "--exact", "--integrator", "gasp"]).failed(conflict);
    folder.pal(&["wmi", "p.jsonl", "--exact", "--integrator", "rejection"]).failed(conflict);
    folder.pal(&["wmi", "p.jsonl", "--samples", "5"]).failed("pal: --samples and --seed are for rejection");
}

/// The abandoned problem would keep the only thread busy for hours; the next one must not wait for it.
#[test]
fn a_time_limit_is_for_each_problem() {
    let folder = Folder::new("wmi-limit");
    folder.write("p.jsonl", [endless(), problem("quick", "true", "x", &[]), endless()].join("\n"));
    let run = folder.pal(&["wmi", "p.jsonl", "--json", "--time-limit", "1.5", "--threads", "1"]);
    assert_eq!((run.code, run.err.as_str()), (1, ""));
    let lines = run.json_lines();
    let statuses: Vec<&str> = lines.iter().map(|line| line["status"].as_str().unwrap()).collect();
    assert_eq!(statuses, ["time limit of 1.5 s reached", "ok", "time limit of 1.5 s reached"]);
    assert_eq!(
        (&lines[0]["value"], &lines[0]["queries"], &lines[0]["cells"]),
        (&json!(null), &json!([]), &json!(null))
    );
    assert_eq!(lines[1]["value"], 2.0);
    assert!(lines[0]["seconds"].as_f64().unwrap() >= 1.5);
    // No time at all, and more than a clock can tell.
    folder.write("q.jsonl", problem("quick", "true", "x", &[]));
    assert_eq!(folder.pal(&["wmi", "q.jsonl", "--time-limit", "0"]).code, 1);
    folder.pal(&["wmi", "q.jsonl", "--time-limit", "1e300"]).done();
}

#[test]
fn the_number_of_threads_does_not_show() {
    let folder = Folder::new("wmi-threads");
    let support = "(or (<= (+ x y) 0.7) (and a (>= (- x y) 0.1)) (and b (<= (* 3 x) y)))";
    let weight = "(ite (<= x y) (pow (+ x (* 2 y)) 5) (ite a (* x y) 1))";
    folder.write(
        "p.jsonl",
        [problem("p", support, weight, &["a", "(<= x 0.3)"]), problem("q", "a", "x", &[])].join("\n"),
    );
    for extra in [&[][..], &["--exact"], &["--integrator", "gasp"], &["--integrator", "rejection", "--samples", "9000"]]
    {
        let run = |threads: &str| {
            let mut lines =
                folder.pal(&[&["wmi", "p.jsonl", "--json", "--threads", threads], extra].concat()).done().json_lines();
            for line in &mut lines {
                line.as_object_mut().unwrap().remove("seconds");
            }
            lines
        };
        assert_eq!(run("1"), run("2"), "{extra:?}");
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let folder = Folder::new("wmi-pipe");
    // Far more than a pipe holds.
    let name = "x".repeat(500);
    folder.write("p.jsonl", (0..1000).map(|_| problem(&name, "true", "1", &[]) + "\n").collect::<String>());
    let mut child = folder.command(&["wmi", "p.jsonl", "--json"]).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with("{\"name\":\"xxx"));
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

/// Ctrl-C while a problem takes long: the answers so far are there, and the exit code is 1.
#[cfg(unix)]
#[test]
fn ctrl_c_ends_with_what_there_is() {
    let folder = Folder::new("wmi-interrupt");
    folder.write("p.jsonl", [problem("quick", "true", "x", &[]), endless(), endless()].join("\n"));
    let mut child = folder.command(&["wmi", "p.jsonl", "--json"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().starts_with("{\"name\":\"quick\",\"value\":2.0"));
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let rest: Vec<Value> = lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert_eq!((rest.len(), &rest[0]["status"]), (1, &json!("interrupted")));
    assert_eq!(child.wait().unwrap().code(), Some(1));
}
