//! What the density commands print beside their numbers: text, JSON fields, exit codes, pictures.

mod common;

use common::density::{INTERVALS, TETRAHEDRON, uniform};
use common::{Folder, SQUARE_WITHOUT_TRIANGLE};
use serde_json::{Value, json};

/// The object has these fields and no others.
#[track_caller]
fn assert_fields(value: &Value, fields: &str) {
    let mut found: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let mut wanted: Vec<&str> = fields.split(' ').collect();
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
}

/// A model of two random rows.
fn random() -> Folder {
    let folder = Folder::new(&format!("density-commands-{:?}", std::thread::current().id()).replace(['(', ')'], ""));
    folder.write("r.smt2", SQUARE_WITHOUT_TRIANGLE);
    folder.pal(&["compile", "r.smt2", "--knots", "5", "--components", "2", "-o", "f.safetensors", "-q"]).done();
    folder.pal(&["model", "f.safetensors", "--random", "7", "--rows", "2", "-o", "m.safetensors", "-q"]).done();
    folder
}

#[test]
fn reports_have_the_documented_fields() {
    let folder = random();
    let mut report = folder.pal(&["compile", "r.smt2", "--knots", "5", "-o", "g.safetensors", "--json"]).done().json();
    assert!(report.as_object_mut().unwrap().remove("seconds").unwrap().as_f64().unwrap() > 0.0);
    let want = json!({
        "file": "r.smt2", "variables": ["x", "y"], "family": "spline", "parameters": 8 * (2 * 5 * 2 + 1), "components": 8,
        "cells": 15, "elements": report["elements"], "conditioning": null, "output": "g.safetensors"
    });
    assert_eq!(report, want);
    let squares = ["compile", "r.smt2", "--family", "sum-of-squares", "--degree", "3", "--terms", "6", "--check"];
    let report = folder.pal(&[&squares[..], &["-o", "g.safetensors", "--json"]].concat()).done().json();
    assert_eq!((&report["parameters"], &report["components"]), (&json!(4 * 7), &json!(4)));
    assert_fields(&report["conditioning"], "start basis orthonormality");
    assert!((report["conditioning"]["basis"].as_f64().unwrap() - 1.0).abs() < 1e-10);

    let histogram = ["compile", "r.smt2", "--family", "histogram", "--bins", "4", "--components", "3"];
    let report = folder.pal(&[&histogram[..], &["-o", "g.safetensors", "--json"]].concat()).done().json();
    assert_eq!((&report["parameters"], &report["components"]), (&json!(3 * (2 * 4 + 1)), &json!(3)));
    assert_eq!((&report["family"], &report["conditioning"]), (&json!("histogram"), &json!(null)));

    let modes = folder.pal(&["mode", "m.safetensors", "--json"]).done().json_lines();
    assert_eq!(modes.len(), 2);
    assert_fields(&modes[1], "row variables point log_density log_upper gap nodes stop seconds");
    let moments = folder.pal(&["moments", "m.safetensors", "--entropy", "--poly", "y*x", "--json"]).done().json_lines();
    assert_eq!(moments.len(), 2);
    assert_fields(&moments[1], "row variables mean standard_deviation covariance expectations entropy");
    assert_eq!(moments[0]["expectations"][0]["polynomial"], "x*y");
    assert_fields(&moments[0]["entropy"], "value error converged");
    let line = folder.pal(&["query", "m.safetensors", "--event", "true", "--row", "1", "--json"]).done().json();
    assert_fields(&line, "row event condition probability");
    assert!((line["probability"].as_f64().unwrap() - 1.0).abs() < 1e-13);
}

#[test]
fn the_mode_is_the_best_of_many_points_and_limits_are_exit_code_1() {
    let folder = random();
    let mode = folder.pal(&["mode", "m.safetensors", "--row", "0", "--json"]).done().json();
    let best = mode["log_upper"].as_f64().unwrap();
    folder.pal(&["sample", "m.safetensors", "-n", "2000", "-o", "s.csv", "-q"]).done();
    let values = folder.pal(&["logprob", "m.safetensors", "--points", "s.csv", "--json"]).done().json_lines();
    assert!(values.iter().all(|line| line["log_density"].as_f64().unwrap() <= best));
    let stopped = folder.pal(&["mode", "m.safetensors", "--nodes", "1", "--json"]);
    assert_eq!((stopped.code, stopped.err.as_str()), (1, ""));
    assert!(
        stopped.json_lines().iter().all(|line| line["stop"] == "node-limit" && line["gap"].as_f64().unwrap() > 1e-6)
    );
    assert!(stopped.json_lines()[0]["log_upper"].as_f64().unwrap() >= best - 1e-6);
    // The limit on the whole run may come before the first node of the search.
    let stopped = folder.pal(&["mode", "m.safetensors", "--time-limit", "0", "--row", "0"]);
    let answered = stopped.out.ends_with("stop         time-limit\n");
    assert!(stopped.code == 1 && (answered || stopped.err == "pal: note: the time limit was reached\n"), "{stopped:?}");
    let doubtful = folder.pal(&["moments", "m.safetensors", "--entropy", "--tolerance", "0", "--row", "0"]);
    assert!(doubtful.code == 1 && doubtful.out.contains("more than asked for"), "{doubtful:?}");
}

#[test]
fn a_condition_number_beyond_float64() {
    let folder = Folder::new("density-commands-check");
    folder.write("r.smt2", INTERVALS);
    let check = |extra: &[&str]| {
        let start =
            ["compile", "r.smt2", "--family", "sum-of-squares", "--basis", "monomial", "--degree", "40", "--check"];
        folder.pal(&[&start[..], &["-o", "f.safetensors"], extra].concat()).done()
    };
    let text = check(&[]).out;
    assert!(text.contains("condition   > 1e16 at the start, > 1e16 in use\n"), "{text}");
    assert_eq!(check(&["--json"]).json()["conditioning"]["start"], Value::Null);
}

#[test]
fn pictures_of_densities() {
    let folder = random();
    let plot = |extra: &[&str]| folder.pal(&[&["plot", "m.safetensors", "--width", "500"], extra].concat()).done();
    let run = plot(&["-o", "p.png", "--samples", "300", "--mode", "--marginals", "--event", "(<= x 0)", "--cells"]);
    assert!(run.out.starts_with("p.png: density on 3 cells, 300 samples, mode at ("), "{}", run.out);
    let query = folder.pal(&["query", "m.safetensors", "--event", "(<= x 0)", "--row", "0", "--json"]).done().json();
    let probability = format!("probability {:.6}", query["probability"].as_f64().unwrap());
    assert!(run.out.trim_end().ends_with(&probability), "{} {probability}", run.out);
    let png = folder.read("p.png");
    let reader = png::Decoder::new(std::io::Cursor::new(&png)).read_info().unwrap();
    assert_eq!(reader.info().width, 500);
    // The same picture again, byte by byte, over the old one; another row is another picture.
    let again = ["-o", "p.png", "--samples", "300", "--mode", "--marginals", "--event", "(<= x 0)", "--cells", "-q"];
    assert_eq!(plot(&again).out, "");
    assert!(folder.read("p.png") == png);
    plot(&["-o", "q.png", "-q"]);
    plot(&["-o", "r.png", "--row", "1", "-q"]);
    assert!(folder.read("q.png") != folder.read("r.png"));
    let report = plot(&["-o", "p.svg", "--title", "Fish & <chips>", "--samples", "5", "--seed", "1", "--json"]).json();
    assert_fields(&report, "output row cells samples mode probability width seconds");
    assert_eq!((&report["samples"], &report["mode"]), (&json!(5), &Value::Null));
    let svg = String::from_utf8(folder.read("p.svg")).unwrap();
    assert!(svg.starts_with("<svg width=\"500\"") && svg.contains("Fish &amp; &lt;chips&gt;"));
    assert!(svg.contains("spline mixture: 5 knots per axis, 2 components") && svg.contains("5 samples"));
    // A slice is a curve over the other variable.
    plot(&["-o", "slice.svg", "--given", "y=-0.5", "--mode", "-q"]);
    let svg = String::from_utf8(folder.read("slice.svg")).unwrap();
    assert!(svg.contains("\ndensity\n") && svg.contains("\nx\n") && svg.contains("\nmode\n"));
    folder.write("p.png", "old");
    let run = folder.pal(&["plot", "m.safetensors", "-o", "p.png", "--given", "y=-0.5", "--marginals"]);
    run.failed("pal: m.safetensors: --marginals: over one variable the curve is the marginal; leave it out");
    assert_eq!(folder.read("p.png"), b"old");
}

#[test]
fn pictures_in_one_and_three_dimensions() {
    let folder = Folder::new("density-commands-dimensions");
    for line in uniform(&folder, INTERVALS, 1) {
        let run = folder.pal(&["plot", &line, "-o", "t.png", "--samples", "50", "--event", "(<= t 1)", "--json"]);
        assert!((run.done().json()["probability"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(&folder.read("t.png")[1..4], b"PNG");
    }
    let [_, space, steps] = uniform(&folder, TETRAHEDRON, 3);
    let slice =
        ["plot", &steps, "-o", "z.svg", "--given", "z=0.25", "--mode", "--marginals", "--title", "A slice", "-q"];
    folder.pal(&slice).done();
    let svg = String::from_utf8(folder.read("z.svg")).unwrap();
    assert!(svg.contains("histogram mixture: 3 bins per axis, 1 component, given z = 0.25\n"));
    let message = "a picture needs 1 or 2 variables, this density has 3; fix the others with --given";
    folder.pal(&["plot", &space, "-o", "z.png"]).failed(&format!("pal: {space}: {message}"));
    folder.pal(&["plot", &space, "-o", "z.svg", "--given", "z=0.25", "--title", "A slice", "-q"]).done();
    let svg = String::from_utf8(folder.read("z.svg")).unwrap();
    assert!(svg.contains("sum of squares: degree 0, 1 component, given z = 0.25\n"));
}
