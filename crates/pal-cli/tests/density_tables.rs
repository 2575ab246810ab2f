//! Tables in and out: CSV and `.npy`, standard input and output, bit by bit.

mod common;

use std::collections::BTreeMap;

use common::density::{INTERVALS, TETRAHEDRON, csv, flat, model, npy, npy_file, rows, uniform};
use common::{Folder, SQUARE_WITHOUT_TRIANGLE};
use safetensors::SafeTensors;
use serde_json::json;

fn little(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The tensors of a file by name: parameters and what is compiled.
fn tensors(folder: &Folder, name: &str) -> BTreeMap<String, (Vec<usize>, Vec<u8>)> {
    let bytes = folder.read(name);
    let file = SafeTensors::deserialize(&bytes).unwrap();
    file.tensors().into_iter().map(|(name, view)| (name, (view.shape().to_vec(), view.data().to_vec()))).collect()
}

/// A model with two random rows, `m.safetensors`.
fn random(folder: &Folder, script: &str) {
    folder.write("r.smt2", script);
    folder.pal(&["compile", "r.smt2", "--knots", "4", "--components", "3", "-o", "f.safetensors", "-q"]).done();
    folder.pal(&["model", "f.safetensors", "--random", "5", "--rows", "2", "-o", "m.safetensors", "-q"]).done();
}

#[test]
fn samples_satisfy_the_constraint_and_are_the_same_in_every_form() {
    let folder = Folder::new("tables-samples");
    random(&folder, SQUARE_WITHOUT_TRIANGLE);
    let sample = |extra: &[&str]| folder.pal(&[&["sample", "m.safetensors", "--seed", "9"], extra].concat()).done().out;
    let printed = sample(&["-n", "3000"]);
    let (header, found) = csv(&printed);
    assert_eq!((header, found.len()), (vec!["x", "y"], 3000));
    for point in &found {
        let [x, y] = point[..] else { panic!("{point:?}") };
        assert!((-1.0..=1.0).contains(&x) && (-1.0..=1.0).contains(&y) && (x < 0.0 || y < 0.0 || x + y > 1.0));
    }
    // The same seed, the same bytes, whatever the threads and wherever they go.
    assert_eq!(sample(&["-n", "3e3", "--threads", "1", "-o", "-"]), printed);
    assert_eq!(sample(&["-n", "3000", "-o", "s.csv"]), "s.csv: 3000 samples\n");
    assert_eq!(folder.read("s.csv"), printed.as_bytes());
    assert!(printed.starts_with(&sample(&["-n", "1000"])));
    assert_ne!(folder.pal(&["sample", "m.safetensors", "--seed", "10", "-n", "3000"]).done().out, printed);
    // Decimals read back to the bits that .npy has.
    let report = sample(&["-n", "3000", "-o", "s.npy", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(
        (&report["output"], &report["rows"], &report["columns"]),
        (&json!("s.npy"), &json!(3000), &json!(["x", "y"]))
    );
    assert!(report["seconds"].as_f64().unwrap() > 0.0);
    let (shape, values) = npy(&folder.read("s.npy"));
    assert_eq!((shape.as_str(), values), ("3000, 2", found.concat()));
    // Files that are there are replaced; JSON objects have the same numbers.
    assert_eq!(sample(&["-n", "1", "-o", "s.npy"]), "s.npy: 1 sample\n");
    assert_eq!(npy(&folder.read("s.npy")).1, found[0]);
    let lines = folder.pal(&["sample", "m.safetensors", "--seed", "9", "-n", "2", "--json"]).done().json_lines();
    assert_eq!(lines, [0, 1].map(|k| json!({"x": found[k][0], "y": found[k][1]})));
    // Conditions hold for every sample, and rows are counted.
    let part = sample(&["-n", "500", "--row", "all", "--condition", "(< x y)", "--condition", "(< y 0)"]);
    let (header, found) = csv(&part);
    assert_eq!((header, found.len(), found[0][0], found[999][0]), (vec!["row", "x", "y"], 1000, 0.0, 1.0));
    assert!(found.iter().all(|row| row[1] < row[2] && row[2] < 0.0));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 5, "a temporary file was left behind");
}

#[test]
fn samples_are_spread_as_they_should_be() {
    let folder = Folder::new("tables-spread");
    for model in uniform(&folder, TETRAHEDRON, 3) {
        let samples = rows(&folder.pal(&["sample", &model, "-n", "4000", "--seed", "2"]).done().out);
        let fraction = samples.iter().filter(|s| s[1] <= 0.5).count() as f64 / 4000.0;
        let mean = samples.iter().map(|s| s[2]).sum::<f64>() / 4000.0;
        // Five standard errors.
        assert!((fraction - 0.875).abs() < 5.0 * (0.875f64 * 0.125 / 4000.0).sqrt(), "{fraction}");
        assert!((mean - 0.25).abs() < 5.0 * (3.0f64 / 80.0 / 4000.0).sqrt(), "{mean}");
    }
}

#[test]
fn uniform_numbers_in_place_of_random_ones() {
    let folder = Folder::new("tables-uniforms");
    let [spline, ..] = uniform(&folder, INTERVALS, 1);
    folder.write("u.npy", npy_file("<f8", false, "3, 2", &little(&[0.0, 0.1, 0.5, 0.5, 1.0, 0.9])));
    let samples = rows(&folder.pal(&["sample", &spline, "--uniforms", "u.npy"]).done().out);
    assert!(samples.iter().all(|s| (0.0..=1.0).contains(&s[0]) || (2.0..=4.0).contains(&s[0])), "{samples:?}");
    assert_eq!(samples.len(), 3);
    assert_eq!(rows(&folder.pal(&["sample", &spline, "--uniforms", "u.npy"]).done().out), samples);
    let wrong = |text: &str| folder.pal_reading(&["sample", &spline, "--uniforms", "-"], text);
    wrong("0.5,0.5,0.5\n").failed("pal: standard input: 3 columns, but a sample of t takes 2 numbers");
    wrong("0.5,0.5\n1.5,0\n")
        .failed("pal: standard input: uniform number 0 of row 1 is 1.5; give numbers between 0 and 1");
}

#[test]
fn parameters_in_every_form_make_the_same_model() {
    let folder = Folder::new("tables-params");
    let params: [f64; 7] = [0.5, 1.0, -2.0, 3.0, 0.25, -0.5, 0.75];
    let text = params.map(|value| format!("{value}")).join(",");
    let options = ["--knots", "3", "--components", "1"];
    let first = model(&folder, "a", "(declare-const t Real)(assert (<= 0 t 1))", &options, &text);
    let wanted = tensors(&folder, &first);
    let single: Vec<u8> = params.iter().flat_map(|value| (*value as f32).to_le_bytes()).collect();
    let big: Vec<u8> = params.iter().flat_map(|value| value.to_be_bytes()).collect();
    folder
        .write("p.npy", npy_file("<f8", false, "1, 7", &little(&params)))
        .write("fortran.npy", npy_file("<f8", true, "1, 7", &little(&params)))
        .write("single.npy", npy_file("<f4", false, "1, 7", &single))
        .write("big.npy", npy_file(">f8", false, "1, 7", &big))
        .write("named.csv", format!("a,b,c,d,e,f,g\r\n{text}\r\n"));
    for table in ["p.npy", "fortran.npy", "single.npy", "big.npy", "named.csv"] {
        folder.pal(&["model", "a.safetensors", "--params", table, "-o", "b.safetensors", "-q"]).done();
        assert_eq!(tensors(&folder, "b.safetensors"), wanted, "{table}");
    }
    folder.pal_reading(&["model", &first, "--params", "-", "-o", "b.safetensors", "-q"], &text).done();
    assert_eq!(tensors(&folder, "b.safetensors"), wanted);
    // Two rows by columns, of whole numbers: the second one is flat.
    let by_columns = [0, 0, 1, 1, 2, 1, 3, 1, 0, 0, 0, 0, 0, 0].map(i64::to_le_bytes).concat();
    folder.write("two.npy", npy_file("<i8", true, "2, 7", &by_columns));
    let run = folder.pal(&["model", "a.safetensors", "--params", "two.npy", "-o", "b.safetensors", "--json"]).done();
    assert_eq!(run.json(), json!({"output": "b.safetensors", "rows": 2, "parameters": 7}));
    folder.write("flat.csv", flat(3, 1));
    folder.pal(&["model", "a.safetensors", "--params", "flat.csv", "-o", "c.safetensors", "-q"]).done();
    let samples = |name: &str, row: &str| folder.pal(&["sample", name, "-n", "5", "--row", row]).done().out;
    assert_eq!(samples("b.safetensors", "1"), samples("c.safetensors", "0"));
    assert_ne!(samples("b.safetensors", "0"), samples("c.safetensors", "0"));
    // The same seed gives the same model.
    let random = |seed: &str| {
        folder.pal(&["model", "a.safetensors", "--random", seed, "-o", "d.safetensors", "-q"]).done();
        tensors(&folder, "d.safetensors")
    };
    assert!(random("1") == random("1") && random("1") != random("2"));
}

#[test]
fn log_densities_of_tables() {
    let folder = Folder::new("tables-points");
    random(&folder, SQUARE_WITHOUT_TRIANGLE);
    // Columns by name in any order, or by position in an array; samples go from one command to the next.
    let array = npy_file("<f8", false, "2, 2", &little(&[0.25, -0.5, 0.25, 0.25]));
    folder.write("p.csv", "t,y,x\n1,-0.5,0.25\n2,0.25,0.25\n").write("p.npy", array);
    let logprob = |extra: &[&str]| folder.pal(&[&["logprob", "m.safetensors", "--points"], extra].concat()).done().out;
    let named = logprob(&["p.csv"]);
    assert_eq!((named.lines().next(), named.lines().last()), (Some("x,y,log_density"), Some("0.25,0.25,-inf")));
    assert_eq!(logprob(&["p.npy"]), named);
    assert_eq!(logprob(&["p.npy", "-o", "answers.npy"]), "answers.npy: 2 points\n");
    let (shape, answers) = npy(&folder.read("answers.npy"));
    assert_eq!((shape.as_str(), answers), ("2, 3", rows(&named).concat()));
    let lines = folder.pal(&["logprob", "m.safetensors", "--points", "p.csv", "--row", "all", "--json"]).done();
    let lines = lines.json_lines();
    assert_eq!(lines[3], json!({"row": 1, "x": 0.25, "y": 0.25, "log_density": null}));
    assert_eq!(lines[0]["log_density"].as_f64(), Some(rows(&named)[0][2]));
    let samples = folder.pal(&["sample", "m.safetensors", "-n", "20"]).done().out;
    let answers = rows(&folder.pal_reading(&["logprob", "m.safetensors", "--points", "-"], &samples).done().out);
    assert!(answers.len() == 20 && answers.iter().all(|row| row[2].is_finite()));
    // Bayes: the density given a condition is larger by its probability.
    let term = "(< x y)";
    let query = folder.pal(&["query", "m.safetensors", "--event", term, "--row", "0", "--json"]).done().json();
    let point = "x,y\n-0.5,0.5\n";
    let ask = |extra: &[&str]| {
        let command = [&["logprob", "m.safetensors", "--points", "-"], extra].concat();
        rows(&folder.pal_reading(&command, point).done().out)[0][2]
    };
    let ratio = (ask(&[]) - ask(&["--condition", term])).exp();
    assert!((ratio - query["probability"].as_f64().unwrap()).abs() < 1e-12);
}

#[test]
fn the_pieces_of_a_marginal_are_its_polynomials() {
    let folder = Folder::new("tables-pieces");
    random(&folder, SQUARE_WITHOUT_TRIANGLE);
    let pieces = folder.pal(&["marginal", "m.safetensors", "--variable", "x", "--pieces"]).done().out;
    let (header, found) = csv(&pieces);
    assert_eq!(header[..3], ["low", "high", "legendre0"]);
    assert!(found.iter().zip(&found[1..]).all(|(a, b)| (a[1] - b[0]).abs() < 1e-15) && found[0][0] == -1.0);
    // All other Legendre polynomials integrate to 0.
    let mass: f64 = found.iter().map(|row| (row[1] - row[0]) * row[2]).sum();
    assert!((mass - 1.0).abs() < 1e-12, "{mass}");
    let middle = |row: &Vec<f64>| {
        let mut value = 0.0;
        for (k, c) in row[2..].iter().enumerate().step_by(2) {
            let at_zero = (1..=k / 2).fold(1.0, |p, j| -p * (2 * j - 1) as f64 / (2 * j) as f64);
            value += c * at_zero;
        }
        ((row[0] + row[1]) / 2.0, value)
    };
    let (at, value) = middle(&found[1]);
    let curve = folder.pal(&["marginal", "m.safetensors", "--variable", "x", "--at", &format!("{at}")]).done().out;
    assert!((rows(&curve)[0][1] - value).abs() < 1e-12 * value.max(1.0));
    let whole = rows(&folder.pal(&["marginal", "m.safetensors", "--variable", "x"]).done().out);
    assert!(whole.len() > 50 && whole.iter().zip(&whole[1..]).all(|(a, b)| a[0] <= b[0] && a[2] <= b[2] + 1e-15));
}
