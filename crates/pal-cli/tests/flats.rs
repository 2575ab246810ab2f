//! Constraints on which equalities hold, through the whole program.

mod common;

use common::Folder;
use common::density::{csv, near, number, rows};
use serde_json::json;

const SHARES: &str = "\
(declare-const a Real) (declare-const b Real) (declare-const c Real)
(assert (and (= (+ a b c) 1) (>= a 0) (>= b 0) (>= c 0)))
";

#[test]
fn check_volume_and_integrate_speak_of_the_surface() {
    let folder = Folder::new("flats-check");
    folder.write("s.smt2", SHARES);
    let report = folder.pal(&["check", "s.smt2", "--json"]).done().json();
    assert_eq!(report["status"], "lower-dimensional");
    assert_eq!(report["flat"]["dimension"], 2);
    assert_eq!(report["flat"]["free"], json!(["a", "b"]));
    assert_eq!(report["flat"]["dependents"], json!(["c = -a - b + 1"]));
    assert_eq!(report["flat"]["surface_measure"]["free_volume"], "1/2");
    let text = folder.pal(&["check", "s.smt2"]).done().out;
    assert!(text.contains("note       flat of dimension 2 in 3 variables, free: a, b"), "{text}");
    let run = folder.pal(&["volume", "s.smt2", "--json"]);
    assert!(run.err.contains("measured by surface measure"), "{run:?}");
    near(number(&run.json(), "/surface_measure/value"), 3f64.sqrt() / 2.0);
    assert_eq!(run.json()["volume_exact"], "0");
    let run = folder.pal(&["integrate", "s.smt2", "--poly", "c^2", "--exact", "--json"]);
    assert!(run.err.contains("integrated by surface measure"), "{run:?}");
    near(number(&run.json(), "/value"), 3f64.sqrt() / 12.0);
    assert_eq!((&run.json()["exact"], &run.json()["square_factor"]), (&json!("1/12"), &json!("3")));
    // Parts without a common flat.
    folder.write(
        "cross.smt2",
        "(declare-const x Real)(declare-const y Real)(assert (and (<= 0 x 1) (<= 0 y 1) (or (= x 0) (= y 0))))",
    );
    let text = folder.pal(&["check", "cross.smt2"]).done().out;
    assert!(text.contains("do not lie in one flat"), "{text}");
}

#[test]
fn models_on_a_flat_answer_every_question() {
    let folder = Folder::new("flats-model");
    folder.write("s.smt2", SHARES).write("zeros.csv", "0,0\n");
    let compile = ["compile", "s.smt2", "--family", "sum-of-squares", "--degree", "0", "--components", "1"];
    folder.pal(&[&compile[..], &["-o", "f.safetensors", "--quiet"]].concat()).done();
    folder.pal(&["model", "f.safetensors", "--params", "zeros.csv", "-o", "m.safetensors", "--quiet"]).done();
    // Uniform: every share is below a half with probability 3/4, and has the density 2 (1 - y).
    for name in ["a", "b", "c"] {
        let event = format!("(<= {name} 0.5)");
        near(
            number(&folder.pal(&["query", "m.safetensors", "--event", &event, "--json"]).done().json(), "/probability"),
            0.75,
        );
        let table = folder.pal(&["marginal", "m.safetensors", "--variable", name, "--at", "0.25"]).done().out;
        near(rows(&table)[0][1], 1.5);
        near(rows(&table)[0][2], 0.4375);
    }
    let table = folder.pal(&["sample", "m.safetensors", "-n", "50", "--seed", "1"]).done().out;
    let (header, samples) = csv(&table);
    assert_eq!(header, ["a", "b", "c"]);
    assert!(samples.len() == 50 && samples.iter().all(|y| (y[0] + y[1] + y[2] - 1.0).abs() < 5e-16));
    let answers = folder.pal_reading(&["logprob", "m.safetensors", "--points", "-"], &table).done().out;
    csv(&answers).1.iter().for_each(|row| near(row[3], (2.0 / 3f64.sqrt()).ln()));
    let line = folder.pal(&["moments", "m.safetensors", "--entropy", "--poly", "a*c", "--json"]).done().json();
    near(number(&line, "/mean/2"), 1.0 / 3.0);
    near(number(&line, "/covariance/2/2"), 1.0 / 18.0);
    near(number(&line, "/covariance/0/2"), -1.0 / 36.0);
    near(number(&line, "/expectations/0/value"), 1.0 / 12.0);
    near(number(&line, "/entropy/value"), (3f64.sqrt() / 2.0).ln());
    let mode = folder.pal(&["mode", "m.safetensors", "--json"]).done().json();
    assert_eq!(mode["point"].as_array().unwrap().len(), 3);
    folder.pal(&["plot", "m.safetensors", "-o", "p.svg", "--event", "(<= c 0.5)", "--quiet"]).done();
    let picture = String::from_utf8(folder.read("p.svg")).unwrap();
    assert!(picture.contains("<svg"));
    // Another chart, and a choice that is none.
    let other = [&compile[..], &["--free", "b,c", "-o", "g.safetensors", "--quiet"]].concat();
    folder.pal(&other).done();
    let wrong = [&compile[..], &["--free", "a,b,c", "-o", "g.safetensors"]].concat();
    let run = folder.pal(&wrong);
    assert!(run.code == 2 && run.err.contains("--free") && run.err.contains("cannot all be free"), "{run:?}");
}

#[test]
fn training_on_shares() {
    let folder = Folder::new("flats-train");
    folder.write("s.smt2", SHARES);
    // Dirichlet-like rows without a random generator: shares of three numbers.
    let rows: Vec<String> = (0..300)
        .map(|k| {
            let parts = [1.0 + f64::from(k % 7), 2.0 + f64::from(k % 5), 1.0 + f64::from(k % 3)];
            let sum: f64 = parts.iter().sum();
            format!("{:?},{:?},{:?}", parts[0] / sum, parts[1] / sum, parts[2] / sum)
        })
        .collect();
    folder.write("d.csv", format!("a,b,c\n{}\n", rows.join("\n")));
    let run = folder.pal(&[
        "fit",
        "--data",
        "d.csv",
        "--constraint",
        "s.smt2",
        "--family",
        "spline",
        "--knots",
        "6",
        "--components",
        "2",
        "--epochs",
        "3",
        "-o",
        "m.safetensors",
        "--json",
        "--quiet",
    ]);
    assert_eq!(run.code, 0, "{run:?}");
    let eval =
        folder.pal(&["eval", "m.safetensors", "--data", "d.csv", "--violation-samples", "500", "--json", "--quiet"]);
    assert_eq!(eval.code, 0, "{eval:?}");
    assert!(eval.out.contains("\"outside\":0") || eval.out.contains("\"violation\":0"), "{}", eval.out);
}
