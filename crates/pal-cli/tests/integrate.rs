//! `pal integrate` and `pal volume`: closed forms, files of moments, and regions without volume or without end.

mod common;

use common::{Folder, MAP, SQUARE_WITHOUT_TRIANGLE};
use pal::wmi::MomentsFile;
use safetensors::SafeTensors;
use serde_json::{Value, json};

/// The triangle with corners (0, 0), (1, 0), (0, 1): the integral of x^a y^b is a! b! / (a + b + 2)!.
const TRIANGLE: &str = "(declare-const x Real)(declare-const y Real)(assert (and (>= x 0) (>= y 0) (<= (+ x y) 1)))";

fn triangle(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.write("t.smt2", TRIANGLE);
    folder
}

fn factorial(n: u64) -> f64 {
    (1..=n).map(|k| k as f64).product()
}

fn moment(a: u64, b: u64) -> f64 {
    factorial(a) * factorial(b) / factorial(a + b + 2)
}

/// The value is within the bound that comes with it, and the bound is tight.
fn assert_near(report: &Value, truth: f64) {
    let (value, error) = (report["value"].as_f64().unwrap(), report["error_bound"].as_f64().unwrap());
    assert!((value - truth).abs() <= error && error <= 1e-9 * truth.abs(), "{report} {truth}");
}

#[test]
fn long_polynomials_are_not_repeated() {
    let folder = triangle("integrate-long");
    let terms: Vec<String> = (1..200).map(|k| format!("{k}/7*x^{}*y^{}", k % 20, k / 20)).collect();
    folder.write("long.txt", terms.join(" + "));
    let report = folder.pal(&["integrate", "t.smt2", "--json", "--poly-file", "long.txt"]).done().json();
    assert_eq!(report["polynomial"], "199 terms of degree 28");
    assert_eq!(report["exact_cells"], 0);
}

#[test]
fn every_method_knows_the_triangle() {
    let folder = triangle("integrate-triangle");
    let run = |extra: &[&str]| {
        let mut report = folder.pal(&[&["integrate", "t.smt2", "--json"], extra].concat()).done().json();
        assert!(report.as_object_mut().unwrap().remove("seconds").unwrap().as_f64().unwrap() >= 0.0);
        report
    };
    let mut exact = run(&["--poly", "x^2*y", "--exact"]);
    assert!(exact.as_object_mut().unwrap().remove("error_bound").unwrap().as_f64().unwrap() < 1e-17);
    let want = json!({
        "value": 1.0 / 60.0, "exact": "1/60", "cells": 1, "exact_cells": 1, "simplices": 1, "method": "exact", "polynomial": "x^2*y",
        "file": "t.smt2"
    });
    assert_eq!(exact, want);
    for method in ["recurrence", "gasp"] {
        let report = run(&["--poly", "x^2*y", "--method", method]);
        assert_near(&report, 1.0 / 60.0);
        assert_eq!((&report["exact"], &report["method"]), (&Value::Null, &json!(method)));
        assert_near(&run(&["--poly=-3*x^2*y + (x - y)^4/2", "--method", method]), {
            let quartic = 2.0 * moment(4, 0) - 8.0 * moment(3, 1) + 6.0 * moment(2, 2);
            -3.0 / 60.0 + quartic / 2.0
        });
    }
    let sampled = ["--poly", "x^2*y", "--method", "rejection", "--samples", "20000", "--seed", "5"];
    let report = run(&sampled);
    let (value, error) = (report["value"].as_f64().unwrap(), report["error_bound"].as_f64().unwrap());
    assert!((value - 1.0 / 60.0).abs() < 5.0 * error && error < 1e-3, "{report}");
    assert_eq!(run(&sampled), report);
    assert_ne!(run(&["--poly", "x^2*y", "--method", "rejection", "--samples", "20000"])["value"], report["value"]);
    // What float64 cannot represent is not lost.
    let tiny = run(&["--poly", "1e-400*x", "--exact"]);
    assert_eq!((&tiny["value"], tiny["exact"].as_str().unwrap().len()), (&json!(0.0), "1/6".len() + 400));
}

#[test]
fn text_output() {
    let folder = triangle("integrate-text");
    let text = |extra: &[&str]| folder.pal(&[&["integrate", "t.smt2"], extra].concat()).done().out;
    let exact = text(&["--poly", "y*x^2", "--exact"]);
    for line in ["polynomial   x^2*y", "method       exact", "exact        1/60 ~ 0.016666666666666666"] {
        assert!(exact.lines().any(|l| l == line), "{line}\n{exact}");
    }
    let plain = text(&["--poly", "6*x"]);
    assert!(plain.contains("value        1.0\n") && plain.contains("error bound  ") && !plain.contains("exact"));
    let sampled = text(&["--poly", "x", "--integrator", "rejection", "--samples", "100"]);
    assert!(sampled.contains("samples      100\n") && sampled.contains("std error    "), "{sampled}");
    let long = text(&["--poly", "(x + y + 1)^20"]);
    assert!(long.contains("polynomial   231 terms of degree 20\n"), "{long}");
}

#[test]
fn booleans_count_every_assignment_and_names_may_be_quoted() {
    let folder = Folder::new("integrate-booleans");
    let script = "(declare-const |wind speed| Real)(declare-const b Bool)(declare-const c Bool)
        (assert (<= 0 |wind speed| 1))(assert (or b (<= |wind speed| 0.5)))";
    folder.write("r.smt2", script);
    let run = folder.pal(&["integrate", "r.smt2", "--poly", "|wind speed|", "--exact", "--json"]).done();
    // b: 1/2; not b: 1/8; c doubles both.
    assert_eq!(run.json()["exact"], "5/4");
}

#[test]
fn mistakes_in_polynomials_have_a_place() {
    let folder = triangle("integrate-polynomials");
    let fails = |extra: &[&str], start: &str| folder.pal(&[&["integrate", "t.smt2"], extra].concat()).failed(start);
    fails(&["--poly", "x^2*z"], "pal: --poly: column 5: unknown variable `z`");
    fails(&["--poly", "x + 2y"], "pal: --poly: column 6: an operator is missing");
    fails(&["--poly", ""], "pal: --poly: column 1: the text is empty");
    folder.write("p.txt", "x +\n  2y\n").write("empty.txt", "\n").write("latin.txt", b"x \xe9");
    fails(&["--poly-file", "p.txt"], "pal: p.txt: line 2, column 4: an operator is missing");
    fails(&["--poly-file", "empty.txt"], "pal: empty.txt: the file is empty; it should hold a polynomial");
    fails(&["--poly-file", "latin.txt"], "pal: latin.txt: not UTF-8 text at byte offset 2");
    fails(&["--poly-file", "nope.txt"], "pal: nope.txt: no such file");
    fails(&["--poly-file", "."], "pal: .: this is a directory; give a text file");
    folder.write("q.txt", "\u{feff}x^2\n  * y\n");
    let report = folder.pal(&["integrate", "t.smt2", "--poly-file", "q.txt", "--exact", "--json"]).done().json();
    assert_eq!(report["exact"], "1/60");
}

#[test]
fn options_that_do_not_fit() {
    let folder = triangle("integrate-options");
    for (extra, message) in [
        (&[][..], "--poly"),
        (&["--poly", "x", "--degree", "2"], "cannot be used with"),
        (&["--poly", "x", "--poly-file", "p"], "cannot be used with"),
        (&["--poly", "x", "-o", "f"], "cannot be used with"),
        (&["--poly", "x", "--exact", "--method", "gasp"], "--exact goes with the recurrence only"),
        (&["--poly", "x", "--exact", "--integrator", "rejection"], "--exact goes with the recurrence only"),
        (&["--poly", "x", "--samples", "9"], "--samples and --seed are for rejection"),
        (&["--poly", "x", "--method", "gasp", "--seed", "9"], "--samples and --seed are for rejection"),
        (&["--poly", "x", "--method", "rejection", "--samples", "0"], "--samples"),
        (&["--degree", "2", "--exact"], "--exact is for --poly"),
        (&["--degree", "2", "--method", "rejection"], "--method rejection is for --poly"),
        (&["--degree", "65535"], "monomials are too many"),
        (&["--degree", "65536"], "--degree"),
    ] {
        let run = folder.pal(&[&["integrate", "t.smt2"], extra].concat());
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{extra:?}");
        assert!(run.err.contains(message), "{extra:?}: {}", run.err);
    }
}

#[test]
fn moments_of_the_triangle() {
    let folder = triangle("integrate-moments");
    for method in ["recurrence", "gasp"] {
        let run = folder.pal(&["integrate", "t.smt2", "--degree", "5", "--method", method, "--json"]).done();
        let report = run.json();
        let exponents = report["exponents"].as_array().unwrap();
        assert_eq!((exponents.len(), &report["count"], &report["variables"]), (21, &json!(21), &json!(["x", "y"])));
        for (at, pair) in exponents.iter().enumerate() {
            let truth = moment(pair[0].as_u64().unwrap(), pair[1].as_u64().unwrap());
            let (value, error) = (report["moments"][at].as_f64().unwrap(), report["errors"][at].as_f64().unwrap());
            assert!((value - truth).abs() <= error && error < 1e-12, "{method} {pair}: {value} {truth}");
        }
    }
    let text = folder.pal(&["integrate", "t.smt2", "--degree", "1"]).done().out;
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["x", "y", "moment", "error", "bound"]);
    assert_eq!((&rows[1][..3], &rows[2][..3]), (&["0", "0", "0.5"][..], &["1", "0", "0.16666666666666666"][..]));
    assert_eq!(rows.len(), 4);
}

#[test]
fn moments_as_a_file() {
    let folder = triangle("integrate-file");
    let run = folder.pal(&["integrate", "t.smt2", "--degree", "3", "-o", "eta.safetensors"]).done();
    assert_eq!(run.out, "eta.safetensors: 10 moments\n");
    let moments = MomentsFile::from_bytes(&folder.read("eta.safetensors")).unwrap().moments;
    // Compared as text: reading float64 back may change their last digit.
    let shown = folder.pal(&["integrate", "t.smt2", "--degree", "3", "--json"]).done().out;
    let exponents: Vec<&[u16]> = moments.exponents().iter().collect();
    for (field, want) in
        [("moments", json!(moments.values())), ("errors", json!(moments.errors())), ("exponents", json!(exponents))]
    {
        assert!(shown.contains(&format!("\"{field}\":{want}")), "{field} {want}\n{shown}");
    }
    let arguments = ["integrate", "t.smt2", "--degree", "3", "-o", "g.safetensors", "--method", "gasp", "--json"];
    let mut report = folder.pal(&arguments).done().json();
    report.as_object_mut().unwrap().remove("seconds");
    let want = json!({
        "output": "g.safetensors", "variables": ["x", "y"], "degree": 3, "count": 10, "cells": 1, "simplices": 1,
        "method": "gasp", "file": "t.smt2"
    });
    assert_eq!(report, want);
    let bytes = folder.read("g.safetensors");
    let file = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(file.tensor("exponents").unwrap().shape(), [10, 2]);
    let data = file.tensor("moments").unwrap();
    let first = f64::from_le_bytes(data.data()[..8].try_into().unwrap());
    assert!((first - 0.5).abs() < 1e-14 && data.shape() == [10]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3, "a temporary file was left behind");
}

#[test]
fn a_run_that_fails_leaves_the_old_file() {
    let folder = triangle("integrate-old");
    folder.write("old", "old").write("open.smt2", "(declare-const x Real)(assert (>= x 0))");
    let far = format!("1{}", "0".repeat(200));
    folder.write("far.smt2", format!("(declare-const x Real)(assert (<= 0 x {far}))"));
    let fails = |file: &str, extra: &[&str], start: &str| {
        folder.pal(&[&["integrate", file, "-o", "old", "--degree"], extra].concat()).failed(start)
    };
    for method in ["recurrence", "gasp"] {
        fails("open.smt2", &["1", "--method", method], "pal: open.smt2: the region is unbounded in direction x");
    }
    let run = fails("far.smt2", &["2"], "pal: far.smt2: the moment of x");
    assert!(run.err.contains("beyond the range of float64"), "{}", run.err);
    fails("t.smt2", &["65535"], "pal: t.smt2: ");
    assert_eq!(folder.read("old"), b"old");
    std::fs::create_dir(folder.path().join("dir")).unwrap();
    folder.pal(&["integrate", "t.smt2", "--degree", "1", "-o", "dir"]).failed("pal: dir: cannot write: ");
    folder.pal(&["integrate", "t.smt2", "--degree", "1", "-o", "no/m"]).failed("pal: no/m: cannot write: ");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 5, "a temporary file was left behind");
    folder.pal(&["integrate", "t.smt2", "--degree", "1", "-o", "old", "--quiet"]).done();
    assert_ne!(folder.read("old"), b"old");
}

#[test]
fn regions_without_volume_give_zero_and_a_note() {
    let folder = Folder::new("integrate-flat");
    folder.write("empty.smt2", "(declare-const x Real)(assert (< x 0 x))");
    folder.write("point.smt2", "(declare-const x Real)(declare-const y Real)(assert (and (= x y) (= (* 2 x) 1)))");
    for (file, word) in [("empty.smt2", "empty"), ("point.smt2", "lower-dimensional")] {
        let note = format!("pal: note: {file}: the region is {word}; every integral over it is 0\n");
        for arguments in [
            &["integrate", file, "--poly", "x", "--exact"][..],
            &["integrate", file, "--poly", "x"],
            &["integrate", file, "--poly", "x", "--method", "gasp"],
            &["integrate", file, "--poly", "x", "--method", "rejection"],
            &["volume", file],
        ] {
            let run = folder.pal(&[arguments, &["--json"]].concat());
            assert_eq!((run.code, &run.err), (0, &note), "{arguments:?}");
            let report = run.json();
            assert!([&report["value"], &report["volume"]].contains(&&json!(0.0)), "{report}");
            assert_eq!(folder.pal(&[arguments, &["--json", "--quiet"]].concat()).done().json()["cells"], 0);
        }
        for method in ["recurrence", "gasp"] {
            let run = folder.pal(&["integrate", file, "--degree", "1", "--json", "--method", method]);
            assert_eq!((run.code, &run.err, &run.json()["moments"][1]), (0, &note, &json!(0.0)));
        }
    }
    // 0 for another reason needs no note.
    folder.write("line.smt2", "(declare-const x Real)(assert (<= (- 1) x 1))");
    let odd = folder.pal(&["integrate", "line.smt2", "--poly", "x", "--exact", "--json"]).done().json();
    assert_eq!((&odd["value"], &odd["exact"]), (&json!(0.0), &json!("0")));
    folder.pal(&["integrate", "line.smt2", "--poly", "0"]).done();
}

#[test]
fn unbounded_regions_name_a_ray() {
    let folder = Folder::new("integrate-unbounded");
    folder.write("r.smt2", "(declare-const x Real)(declare-const y Real)(assert (and (>= x 0) (<= 0 y 1)))");
    let start = "pal: r.smt2: the region is unbounded in direction x; add bounds such as x <= 1000";
    folder.pal(&["volume", "r.smt2"]).failed(start);
    for method in ["recurrence", "gasp", "rejection"] {
        folder.pal(&["integrate", "r.smt2", "--poly", "y", "--method", method]).failed(start);
    }
    folder.pal(&["integrate", "r.smt2", "--poly", "y", "--exact"]).failed(start);
    folder.pal(&["integrate", "r.smt2", "--degree", "1"]).failed(start);
}

#[test]
fn values_beyond_float64_are_fractions_only() {
    let folder = Folder::new("integrate-huge");
    let far = format!("1{}", "0".repeat(400));
    folder.write("r.smt2", format!("(declare-const x Real)(assert (<= 0 x {far}))"));
    let exact = folder.pal(&["integrate", "r.smt2", "--poly", "1", "--exact", "--json"]).done().json();
    assert_eq!((&exact["value"], &exact["exact"]), (&Value::Null, &json!(far)));
    let volume = folder.pal(&["volume", "r.smt2", "--json"]).done().json();
    assert_eq!((&volume["volume"], &volume["volume_exact"]), (&Value::Null, &json!(far)));
    let run = folder.pal(&["integrate", "r.smt2", "--poly", "1"]).failed("pal: r.smt2: the integral is beyond");
    assert!(run.err.contains("--exact"), "{}", run.err);
}

#[test]
fn volumes_are_exact() {
    let folder = Folder::new("volume");
    folder.write("r.smt2", SQUARE_WITHOUT_TRIANGLE).write("m.geojson", MAP);
    assert_eq!(folder.pal(&["volume", "r.smt2"]).done().out, "file       r.smt2\ncells      3\nvolume     7/2 = 3.5\n");
    let mut report = folder.pal(&["volume", "r.smt2", "--json", "--exact"]).done().json();
    report.as_object_mut().unwrap().remove("seconds");
    assert_eq!(report, json!({"volume": 3.5, "volume_exact": "7/2", "cells": 3, "file": "r.smt2"}));
    let map = folder.pal(&["volume", "m.geojson", "--json"]).done().json();
    assert_eq!(map["volume_exact"], "187/2");
    let run =
        folder.pal_reading(&["volume", "-", "--format", "smt2"], "(declare-const x Real)(assert (<= 0 x (/ 1 3)))");
    assert!(run.done().out.ends_with("volume     1/3 ~ 0.3333333333333333\n"));
}

#[test]
fn the_number_of_threads_does_not_show() {
    let folder = Folder::new("integrate-threads");
    folder.write("m.geojson", MAP);
    for arguments in [
        &["integrate", "m.geojson", "--poly", "(x - y/3)^7"][..],
        &["integrate", "m.geojson", "--poly", "(x - y/3)^7", "--exact"],
        &["integrate", "m.geojson", "--poly", "(x - y/3)^7", "--method", "gasp"],
        &["integrate", "m.geojson", "--poly", "x", "--method", "rejection", "--samples", "30000"],
        &["integrate", "m.geojson", "--degree", "6"],
        &["volume", "m.geojson"],
    ] {
        let run = |threads: &str| {
            let mut report = folder.pal(&[arguments, &["--json", "--threads", threads]].concat()).done().json();
            report.as_object_mut().unwrap().remove("seconds");
            report
        };
        assert_eq!(run("1"), run("2"), "{arguments:?}");
    }
}
