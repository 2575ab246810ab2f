//! The order of variables is that of their declaration, in everything that the program reads and writes.

mod common;

use common::Folder;
use common::density::{csv, npy_file};
use serde_json::json;

/// `0 <= speed <= 30` and `2 <= gap <= 9`: a point with its coordinates swapped is outside, unless both lie in [2, 9].
const SAFE: &str = "\
(declare-const speed Real)
(declare-const gap Real)
(assert (and (<= 2 gap 9) (<= 0 speed 30)))
";

fn model(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.write("r.smt2", SAFE);
    folder.pal(&["compile", "r.smt2", "--knots", "4", "--components", "2", "-o", "f.safetensors", "-q"]).done();
    folder.pal(&["model", "f.safetensors", "--random", "5", "-o", "m.safetensors", "-q"]).done();
    folder
}

#[test]
fn the_order_is_that_of_declaration_and_is_shown() {
    let folder = Folder::new("order-check");
    folder.write("r.smt2", SAFE);
    let shown = folder.pal(&["check", "r.smt2"]).done().out;
    assert!(shown.contains("variables  speed, gap\n"), "{shown}");
    let report = folder.pal(&["check", "r.smt2", "--json"]).done().json();
    assert_eq!(report["variables"], json!(["speed", "gap"]));
    assert_eq!(report["bounding_box"], json!([[0.0, 30.0], [2.0, 9.0]]));
    let many: String = (1..=11).map(|k| format!("(declare-const x{k} Real) (assert (<= 0 x{k} 1))\n")).collect();
    folder.write("many.smt2", many);
    let report = folder.pal(&["check", "many.smt2", "--json"]).done().json();
    assert_eq!(report["variables"], json!((1..=11).map(|k| format!("x{k}")).collect::<Vec<_>>()));
    let map = r#"{"type": "Polygon", "coordinates": [[[1, 10], [2, 10], [2, 20], [1, 20], [1, 10]]]}"#;
    folder.write("map.geojson", map);
    let report = folder.pal(&["check", "map.geojson", "--bounds", "0,0,3,30", "--json"]).done().json();
    assert_eq!(report["variables"], json!(["x", "y"]));
}

#[test]
fn samples_have_their_columns_in_order() {
    let folder = model("order-samples");
    let printed = folder.pal(&["sample", "m.safetensors", "-n", "200", "--seed", "1"]).done().out;
    let (header, rows) = csv(&printed);
    assert_eq!(header, ["speed", "gap"]);
    assert!(rows.iter().all(|row| (0.0..=30.0).contains(&row[0]) && (2.0..=9.0).contains(&row[1])));
    assert!(rows.iter().any(|row| row[0] > 9.0));
}

#[test]
fn points_are_taken_by_name_and_without_names_in_order() {
    let folder = model("order-points");
    folder.write("named.csv", "gap,note,speed\n3,7,20\n");
    folder.write("bare.csv", "20,3\n");
    folder.write("swapped.csv", "3,20\n");
    folder.write("points.npy", npy_file("<f8", false, "1, 2", &[20.0f64, 3.0].map(f64::to_le_bytes).concat()));
    let answer = |points: &str| folder.pal(&["logprob", "m.safetensors", "--points", points]).done().out;
    let named = answer("named.csv");
    assert!(named.starts_with("speed,gap,log_density\n20,3,") && !named.contains("inf"), "{named}");
    assert_eq!(answer("bare.csv"), named);
    assert_eq!(answer("points.npy"), named);
    assert!(answer("swapped.csv").ends_with("-inf\n"));
    folder.write("three.csv", "1,2,3\n");
    folder.pal(&["logprob", "m.safetensors", "--points", "three.csv"]).failed(
        "pal: three.csv: the table has no column names and 3 columns, but there are 2 variables, in this order: speed, gap",
    );
    let help = folder.pal(&["logprob", "--help"]).done().out.replace('\n', " ");
    assert!(help.contains("in the order of their declaration"), "{help}");
}

#[test]
fn fitting_takes_the_order_of_the_columns() {
    let folder = Folder::new("order-fit");
    folder.write("r.smt2", SAFE);
    let rows: String = (0..60).map(|k| format!("{},{}\n", 2.5 + f64::from(k % 6), 10.0 + f64::from(k % 19))).collect();
    folder.write("train.csv", format!("gap,speed\n{rows}"));
    let fit = |more: &[&str]| {
        let start = ["fit", "--constraint", "r.smt2", "--data", "train.csv", "--knots", "3", "--components", "1"];
        let rest = ["--epochs", "2", "--violation-samples", "100", "-q", "-o", "m.safetensors"];
        folder.pal(&[&start[..], &rest, more].concat()).done();
        let printed = folder.pal(&["sample", "m.safetensors", "-n", "50", "--seed", "1"]).done().out;
        let (header, rows) = csv(&printed);
        (header.join(","), rows)
    };
    let (header, rows) = fit(&[]);
    assert_eq!(header, "speed,gap");
    assert!(rows.iter().all(|row| (2.0..=9.0).contains(&row[1])));
    let (header, rows) = fit(&["--columns", "gap,speed"]);
    assert_eq!(header, "gap,speed");
    assert!(rows.iter().all(|row| (2.0..=9.0).contains(&row[0])));
    // Columns that are the variables are found by name, in whatever order they are listed.
    let evaluate = |more: &[&str]| {
        let start = ["eval", "m.safetensors", "--data", "train.csv", "--violation-samples", "100", "--json"];
        folder.pal(&[&start[..], more].concat()).done().json()["ll"].as_f64().unwrap()
    };
    assert_eq!(evaluate(&["--outputs", "speed,gap"]), evaluate(&[]));
    assert_eq!(evaluate(&["--outputs", "gap,speed"]), evaluate(&[]));
}

#[test]
fn wmi_problems_keep_the_order_of_their_domain() {
    let folder = Folder::new("order-wmi");
    // Rejection sampling draws coordinate by coordinate: the weight tells which is which.
    folder.write(
        "p.jsonl",
        r#"{"domain": {"reals": {"speed": [0, 30], "gap": [2, 9]}}, "support": "true", "weight": "(* speed speed gap)"}"#,
    );
    let answer = folder.pal(&["wmi", "p.jsonl", "--json"]).done().json();
    // 30^3 / 3 * (9^2 - 2^2) / 2.
    assert_eq!(answer["value"], json!(346500.0), "{answer}");
}
