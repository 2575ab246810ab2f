//! `pal check`: statuses, volumes and the JSON object.

mod common;

use common::{Folder, MAP, SQUARE_WITHOUT_TRIANGLE};
use serde_json::{Value, json};

fn check(script: &str) -> Value {
    let folder = Folder::new("check");
    let run = folder.pal_reading(&["check", "-", "--format", "smt2", "--json"], script).done();
    run.json()
}

#[test]
fn a_bounded_region() {
    let folder = Folder::new("check-bounded");
    let run = folder.write("r.smt2", SQUARE_WITHOUT_TRIANGLE).pal(&["check", "r.smt2", "--json"]).done();
    let mut report = run.json();
    assert!(report["seconds"].as_f64().unwrap() >= 0.0);
    report.as_object_mut().unwrap().remove("seconds");
    let want = json!({
        "status": "bounded", "variables": ["x", "y"], "booleans": [], "atoms": 7, "cells": 3,
        "volume": 3.5, "volume_exact": "7/2", "bounding_box": [[-1.0, 1.0], [-1.0, 1.0]],
        "ray": null, "witness": null, "file": "r.smt2"
    });
    assert_eq!(report, want);
    let text = folder.pal(&["check", "r.smt2"]).done().out;
    for line in
        ["variables  x, y", "status     bounded", "cells      3", "volume     7/2 = 3.5", "box        x in [-1, 1]"]
    {
        assert!(text.lines().any(|l| l == line), "{line}\n{text}");
    }
}

#[test]
fn unbounded_regions_name_a_ray() {
    let report = check("(declare-const x Real)(declare-const y Real)(assert (and (>= x 0) (<= 0 y 1)))");
    assert_eq!(report["status"], "unbounded");
    assert_eq!(report["ray"], json!([1.0, 0.0]));
    for field in ["volume", "volume_exact", "bounding_box", "cells", "witness"] {
        assert_eq!(report[field], Value::Null, "{field}");
    }
}

#[test]
fn empty_and_lower_dimensional_regions_have_volume_zero() {
    let empty = check("(declare-const x Real)(assert (and (< x 0) (> x 0)))");
    assert_eq!(
        (&empty["status"], &empty["volume"], &empty["volume_exact"]),
        (&json!("empty"), &json!(0.0), &json!("0"))
    );
    assert_eq!(empty["witness"], Value::Null);
    let point = check("(declare-const x Real)(declare-const y Real)(assert (and (= x (/ 1 3)) (= y 2)))");
    assert_eq!(point["status"], "lower-dimensional");
    assert_eq!(point["volume_exact"], "0");
    assert_eq!(point["witness"], json!(["1/3", "2"]));
}

#[test]
fn booleans_count_every_assignment() {
    // b: [0, 1]; not b: [0, 1/2]; c is free and doubles both.
    let report = check(
        "(declare-const x Real)(declare-const b Bool)(declare-const c Bool)
         (assert (<= 0 x 1))(assert (or b (<= x 0.5)))",
    );
    assert_eq!(report["booleans"], json!(["b", "c"]));
    assert_eq!(report["volume_exact"], "3");
}

#[test]
fn maps_with_their_options() {
    let folder = Folder::new("check-map");
    folder.write("m.geojson", MAP).write("m.json", MAP);
    let volume = |arguments: &[&str]| {
        let run = folder.pal(&[&["check", "--json"], arguments].concat()).done();
        run.json()["volume_exact"].as_str().unwrap().to_string()
    };
    assert_eq!(volume(&["m.geojson"]), "187/2");
    assert_eq!(volume(&["m.json", "--meaning", "walkable"]), "13/2");
    // x from -1 to 2.5 and y from 0 to 5 leave 3.5 * 5 - 1.5 * 3.
    assert_eq!(volume(&["m.geojson", "--bounds", "-1,0,2.5,5"]), "13");
    assert_eq!(volume(&["m.geojson", "--bounds", "0,0,0.1,0.3"]), "3/100");
}

#[test]
fn long_fractions_are_short_in_text_and_whole_in_json() {
    let folder = Folder::new("check-long");
    folder.write("r.smt2", "(declare-const x Real)(assert (<= 0 x (/ 1 123456789012345678901234567890123)))");
    let text = folder.pal(&["check", "r.smt2"]).done().out;
    assert!(text.contains("volume     1 / 12345678...67890123 (1 / 33 digits) ~ 8.100000072900001e-33"), "{text}");
    let exact = folder.pal(&["check", "r.smt2", "--json"]).done().json()["volume_exact"].clone();
    assert_eq!(exact, "1/123456789012345678901234567890123");
}

#[test]
fn every_question_of_a_script_has_its_answer() {
    let folder = Folder::new("check-questions");
    let script = "(declare-const x Real)\n(assert (<= 0 x 4))\n(push 1)\n(assert (> x 5))\n(check-sat)\n(pop 1)\n\
                  (check-sat-assuming ((<= x 1)))\n(check-sat)\n";
    folder.write("r.smt2", script);
    let answers = folder.pal(&["check", "r.smt2", "--json"]).done().json_lines();
    let told: Vec<_> = answers.iter().map(|answer| (&answer["line"], &answer["status"], &answer["volume"])).collect();
    let want =
        [(5, "empty", 0.0), (7, "bounded", 1.0), (8, "bounded", 4.0)].map(|(l, s, v)| (json!(l), json!(s), json!(v)));
    assert_eq!(told, want.iter().map(|(l, s, v)| (l, s, v)).collect::<Vec<_>>());
    // A region is one constraint.
    let start = "pal: r.smt2: line 7, column 1: this is the second of 3 questions";
    folder.pal(&["volume", "r.smt2"]).failed(start);
}

#[test]
fn many_variables_are_decided_and_measured_where_they_fall_apart() {
    let declare =
        |n: usize| (0..n).map(|k| format!("(declare-const x{k} Real)(assert (<= 0 x{k} 1))")).collect::<String>();
    // Twenty numbers in order: 1 / 20!.
    let order: String = (1..20).map(|k| format!("(assert (<= x{} x{k}))", k - 1)).collect();
    let report = check(&(declare(20) + &order));
    assert_eq!((&report["status"], &report["volume_exact"]), (&json!("bounded"), &json!("1/2432902008176640000")));
    let circle = check(&(declare(20) + &order + "(assert (< x19 x0))"));
    assert_eq!((&circle["status"], &circle["volume"]), (&json!("empty"), &json!(0.0)));
    // All of them in one sum belong together: a solution is all that is known.
    let names: String = (0..20).map(|k| format!(" x{k}")).collect();
    let sum = check(&(declare(20) + &format!("(assert (>= (+{names}) 19))")));
    assert_eq!((&sum["status"], &sum["volume"]), (&json!("satisfiable"), &Value::Null));
    assert_eq!(sum["witness"].as_array().unwrap().len(), 20);
    // Seven pigeons and six holes.
    let mut pigeons: String = (0..42).map(|k| format!("(declare-const p{k} Bool)")).collect();
    for p in 0..7 {
        let holes: String = (0..6).map(|h| format!(" p{}", 6 * p + h)).collect();
        pigeons += &format!("(assert (or{holes}))");
        for q in 0..p {
            pigeons.extend((0..6).map(|h| format!("(assert (not (and p{} p{})))", 6 * p + h, 6 * q + h)));
        }
    }
    assert_eq!(check(&pigeons)["status"], "empty");
    let folder = Folder::new("check-wide");
    folder.write("r.smt2", &(declare(20) + &order));
    assert_eq!(folder.pal(&["volume", "r.smt2", "--json"]).done().json()["volume_exact"], "1/2432902008176640000");
    // The last of twenty numbers in order is 20/21 on average.
    let run = folder.pal(&["integrate", "r.smt2", "--poly", "x19", "--exact", "--json"]).done();
    assert_eq!(run.json()["exact"], "1/2554547108585472000");
}
