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
