//! Booleans, categories and integers in the program: from constraints and tables to answers, with closed forms.

mod common;

use common::Folder;
use common::density::{model, near, npy, number};
use serde_json::{Value, json};

/// A position from 0 to 4: on foot at most 1, and in the rain not by bike. With equal density everywhere, walking has
/// mass 2 (wet or dry, from 0 to 1), cycling 4 and driving 8: 14 in all, of which 1 + 4 is wet.
const TRIP: &str = "(declare-datatype Mode ((walk) (bike) (car)))
(declare-const x Real) (declare-const mode Mode) (declare-const wet Bool)
(assert (<= 0 x 4)) (assert (=> (= mode walk) (<= x 1))) (assert (=> wet (distinct mode bike)))
";

/// The uniform density on the trips.
fn uniform_trips(folder: &Folder) -> String {
    let histogram = ["--family", "histogram", "--bins", "4", "--components", "1"];
    model(folder, "trip", TRIP, &histogram, &["0"; 9].join(","))
}

/// Header and fields of CSV text.
fn fields(text: &str) -> (Vec<&str>, Vec<Vec<&str>>) {
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    (lines.next().unwrap(), lines.collect())
}

#[test]
fn a_constraint_is_described() {
    let folder = Folder::new("mixed-check");
    folder.write("trip.smt2", TRIP);
    let text = folder.pal(&["check", "trip.smt2"]).done().out;
    for line in [
        "variables  x",
        "booleans   wet",
        "categories mode: walk, bike, car",
        "parts      2, of 1 Boolean and 1 category",
        "volume     14",
    ] {
        assert!(text.lines().any(|own| own.starts_with(line)), "{line}\n{text}");
    }
    let report = folder.pal(&["check", "trip.smt2", "--json"]).done().json();
    assert_eq!(report["categories"], json!([{"name": "mode", "values": ["walk", "bike", "car"]}]));
    assert_eq!((&report["parts"], &report["volume"]), (&json!(2), &json!(14.0)));
    let options = ["--family", "histogram", "--bins", "4", "--components", "2", "-o", "f.safetensors"];
    let report = folder.pal(&[&["compile", "trip.smt2", "--json"], &options[..]].concat()).done().json();
    assert_eq!((&report["variables"], &report["parts"]), (&json!(["x", "mode", "wet"]), &json!(2)));
    // Two components with a weight, four bins and four Boolean variables each.
    assert_eq!(report["parameters"], 18);
    let made = folder.pal(&["model", "f.safetensors", "--random", "1", "--rows", "3", "-o", "m.safetensors"]).done();
    assert_eq!(made.out, "m.safetensors: 3 densities, 18 parameters each\n");
}

#[test]
fn events_conditions_and_given_values() {
    let folder = Folder::new("mixed-query");
    let trips = uniform_trips(&folder);
    let ask = |options: &[&str]| {
        let run = folder.pal(&[&["query", &trips, "--json"], options].concat()).done();
        number(&run.json(), "/probability")
    };
    for (options, want) in [
        (&["--event", "(= mode walk)"][..], 2.0 / 14.0),
        (&["--event", "(distinct mode walk)"], 12.0 / 14.0),
        (&["--event", "((_ is car) mode)"], 8.0 / 14.0),
        (&["--event", "(and wet (<= x 1))"], 2.0 / 14.0),
        (&["--event", "wet"], 5.0 / 14.0),
        (&["--event", "wet", "--condition", "(= mode car)"], 0.5),
        (&["--event", "(= mode car)", "--given", "wet=true"], 0.8),
        (&["--event", "(<= x 1)", "--given", "wet=1,mode=car"], 0.25),
        (&["--event", "(<= x 1)", "--given", "wet=false", "--given", "mode=walk"], 1.0),
        (&["--event", "(= mode walk)", "--condition", "(<= x 1)", "--given", "wet=0"], 1.0 / 3.0),
    ] {
        near(ask(options), want);
    }
    let given = ["--event", "(<= x 1)", "--given", "wet=true,mode=car"];
    let text = folder.pal(&[&["query", &trips], &given[..]].concat()).done().out;
    assert!(text.starts_with("given wet = true\ngiven mode = car\nrow"), "{text}");
    let line = folder.pal(&[&["query", &trips, "--json"], &given[..]].concat()).done().json();
    assert_eq!(line["given"], json!({"wet": true, "mode": "car"}));
}

#[test]
fn marginals_are_tables() {
    let folder = Folder::new("mixed-marginal");
    let trips = uniform_trips(&folder);
    let table = |options: &[&str]| folder.pal(&[&["marginal", &trips], options].concat()).done().out;
    let text = table(&["--variable", "mode"]);
    let (header, rows) = fields(&text);
    assert_eq!(header, ["mode", "probability"]);
    for (row, (label, want)) in rows.iter().zip([("walk", 2.0), ("bike", 4.0), ("car", 8.0)]) {
        assert_eq!(row[0], label);
        near(row[1].parse().unwrap(), want / 14.0);
    }
    let text = table(&["--variable", "wet", "--variable", "mode"]);
    let (header, rows) = fields(&text);
    assert_eq!((header, rows.len()), (vec!["wet", "mode", "probability"], 6));
    let want = [("false", "walk", 1.0), ("false", "bike", 4.0), ("false", "car", 4.0)];
    let want = want.into_iter().chain([("true", "walk", 1.0), ("true", "bike", 0.0), ("true", "car", 4.0)]);
    for (row, (wet, mode, mass)) in rows.iter().zip(want) {
        assert_eq!((row[0], row[1]), (wet, mode));
        near(row[2].parse().unwrap(), mass / 14.0);
    }
    // At a point: what a classifier would say.
    let lines = folder.pal(&["marginal", &trips, "--variable", "mode", "--given", "x=0.5", "--json"]).done();
    let want = [("walk", 0.4), ("bike", 0.2), ("car", 0.4)];
    for (line, (label, probability)) in lines.json_lines().iter().zip(want) {
        assert_eq!(line["mode"], label);
        near(number(line, "/probability"), probability);
    }
    let lines = folder.pal(&["marginal", &trips, "--variable", "wet", "--given", "x=3,mode=car", "--json"]).done();
    assert_eq!(lines.json_lines()[1]["wet"], true);
    near(number(&lines.json_lines()[1], "/probability"), 0.5);
    // Of a real variable: the density from 0 to 1 is 5/14, beyond 3/14.
    let text = table(&["--variable", "x", "--at", "0.5,3"]);
    let (_, rows) = fields(&text);
    near(rows[0][1].parse().unwrap(), 5.0 / 14.0);
    near(rows[1][1].parse().unwrap(), 3.0 / 14.0);
    near(rows[1][2].parse().unwrap(), 11.0 / 14.0);
}

#[test]
fn points_have_truth_values_and_labels() {
    let folder = Folder::new("mixed-points");
    let trips = uniform_trips(&folder);
    folder.write("p.csv", "wet,mode,note,x\ntrue,walk,a,0.5\n0,bike,b,3\n1,bike,c,3\nFALSE,walk,d,2\n");
    let text = folder.pal(&["logprob", &trips, "--points", "p.csv"]).done().out;
    let (header, rows) = fields(&text);
    assert_eq!(header, ["x", "mode", "wet", "log_density"]);
    assert_eq!(rows[0][..3], ["0.5", "walk", "true"]);
    for row in &rows[..2] {
        near(row[3].parse().unwrap(), -14f64.ln());
    }
    assert_eq!([rows[2][3], rows[3][3]], ["-inf", "-inf"]);
    // A category may also have a column for each of its values.
    folder.write("q.csv", "x,mode=walk,mode=bike,mode=car,wet\n0.5,1,0,0,1\n");
    let line = folder.pal(&["logprob", &trips, "--points", "q.csv", "--json"]).done().json();
    assert_eq!((&line["mode"], &line["wet"]), (&json!("walk"), &json!(true)));
    near(number(&line, "/log_density"), -14f64.ln());
    // Samples come back as points, from text and from arrays.
    folder.pal(&["sample", &trips, "-n", "3000", "--seed", "1", "-o", "s.csv", "-q"]).done();
    let text = String::from_utf8(folder.read("s.csv")).unwrap();
    let (header, rows) = fields(&text);
    assert_eq!((header, rows.len()), (vec!["x", "mode", "wet"], 3000));
    let share = rows.iter().filter(|row| row[1] == "car").count() as f64 / 3000.0;
    assert!((share - 8.0 / 14.0).abs() < 0.03, "{share}");
    let logs = folder.pal(&["logprob", &trips, "--points", "s.csv"]).done().out;
    assert!(fields(&logs).1.iter().all(|row| row[3].parse::<f64>().unwrap().is_finite()));
    folder.pal(&["sample", &trips, "-n", "3000", "--seed", "1", "-o", "s.npy", "-q"]).done();
    let (shape, values) = npy(&folder.read("s.npy"));
    assert_eq!(shape, "3000, 5");
    let first: Vec<f64> = ["walk", "bike", "car"].iter().map(|mode| f64::from(u8::from(rows[0][1] == *mode))).collect();
    assert_eq!(values[1..4], first);
    let logs = folder.pal(&["logprob", &trips, "--points", "s.npy", "-o", "l.npy", "-q"]).done();
    assert_eq!((logs.code, npy(&folder.read("l.npy")).0.as_str()), (0, "3000, 6"));
    let line = folder.pal(&["sample", &trips, "-n", "1", "--given", "mode=bike", "--json"]).done().json();
    assert_eq!((line.get("mode"), &line["wet"]), (None, &json!(false)));
}

#[test]
fn modes_and_moments() {
    let folder = Folder::new("mixed-mode");
    // The bin from 2 to 3 and the bike are favoured: exp(1) and exp(2) to one.
    let histogram = ["--family", "histogram", "--bins", "4", "--components", "1"];
    let trips = model(&folder, "trip", TRIP, &histogram, "0,0,0,1,0,0,2,0,0");
    let line = folder.pal(&["mode", &trips, "--json"]).done().json();
    assert_eq!((&line["variables"], &line["stop"]), (&json!(["x", "mode", "wet"]), &json!("certified")));
    assert_eq!((&line["point"][1], &line["point"][2]), (&json!("bike"), &json!(false)));
    assert!((2.0..=3.0).contains(&line["point"][0].as_f64().unwrap()), "{line}");
    assert!(number(&line, "/gap") <= 1e-6);
    let text = folder.pal(&["mode", &trips]).done().out;
    assert!(text.contains("mode = bike\n") && text.contains("wet = false\n"), "{text}");
    let flat = uniform_trips(&folder);
    let line = folder.pal(&["moments", &flat, "--json", "--poly", "x^2", "--entropy"]).done().json();
    assert_eq!(line["variables"], json!(["x", "mode=walk", "mode=bike", "mode=car", "wet"]));
    // The mean of x: walking 2 * 1/2, all others 12 * 2.
    for (at, want) in [25.0 / 14.0, 2.0 / 14.0, 4.0 / 14.0, 8.0 / 14.0, 5.0 / 14.0].into_iter().enumerate() {
        near(number(&line, &format!("/mean/{at}")), want);
    }
    near(number(&line, "/expectations/0/value"), (2.0 / 3.0 + 3.0 * 64.0 / 3.0) / 14.0);
    near(number(&line, "/entropy/value"), 14f64.ln());
}

#[test]
fn integers_are_categories() {
    let folder = Folder::new("mixed-integers");
    // x from n to 3, for n = 0, 1, 2: lengths 3, 2, 1.
    let script = "(declare-const n Int)(declare-const x Real)(assert (and (<= 0 n 2) (<= n x 3)))";
    let histogram = ["--family", "histogram", "--bins", "3", "--components", "1"];
    let stops = model(&folder, "stops", script, &histogram, &["0"; 7].join(","));
    let text = folder.pal(&["marginal", &stops, "--variable", "n"]).done().out;
    let (header, rows) = fields(&text);
    assert_eq!(header, ["n", "probability"]);
    for (row, (label, want)) in rows.iter().zip([("0", 3.0), ("1", 2.0), ("2", 1.0)]) {
        assert_eq!(row[0], label);
        near(row[1].parse().unwrap(), want / 6.0);
    }
    let ask = |event: &str| {
        let run = folder.pal(&["query", &stops, "--event", event, "--given", "n=1", "--json"]).done();
        number(&run.json(), "/probability")
    };
    near(ask("(<= x 2)"), 0.5);
    let run = folder.pal(&["query", &stops, "--event", "(<= x (+ n 1))", "--json"]).done();
    near(number(&run.json(), "/probability"), 0.5);
    folder.write("p.csv", "x,n\n2.5,2\n1.5,2\n2.5,1.0\n");
    let text = folder.pal(&["logprob", &stops, "--points", "p.csv"]).done().out;
    let (_, rows) = fields(&text);
    near(rows[0][2].parse().unwrap(), -6f64.ln());
    assert_eq!((rows[1][2], rows[2][1]), ("-inf", "1"));
}

#[test]
fn errors_name_what_is_wrong() {
    let folder = Folder::new("mixed-errors");
    let trips = uniform_trips(&folder);
    let base = format!("pal: {trips}: ");
    for (options, message) in [
        (&["query", "--event", "wet", "--given", "wet=maybe"][..], "--given wet: `maybe` is neither true nor false"),
        (
            &["query", "--event", "wet", "--given", "mode=run"],
            "--given mode: `run` is not a value of `mode`; it has walk",
        ),
        (&["query", "--event", "wet", "--given", "x=far"], "--given: `far` is not a number"),
        (&["query", "--event", "wet", "--given", "z=true"], "--given: there is no variable `z`; there is x, mode, wet"),
        (&["query", "--event", "wet", "--given", "mode=car,mode=car"], "--given: `mode` is given twice"),
        (&["query", "--event", "wte"], "--event \"wte\": column 1: `wte` is not declared; did you mean `wet`?"),
        (&["query", "--event", "mode"], "--event \"mode\": column 1: `mode` has sort mode where a Bool is needed"),
        (&["sample", "--given", "mode=walk,x=3"], "--given: all variables are given; leave at least one free"),
    ] {
        let words = [&options[..1], &[trips.as_str()], &options[1..]].concat();
        folder.pal(&words).failed(&format!("{base}{message}"));
    }
    for (options, message) in [
        (&["--variable", "mode", "--variable", "x"][..], "--variable: `mode` has a table of probabilities"),
        (&["--variable", "mode", "--quantiles", "0.5"], "--quantiles is for real variables"),
        (&["--variable", "wet", "--variable", "wet"], "--variable: `wet` is named twice"),
    ] {
        folder.pal(&[&["marginal", &trips], options].concat()).failed(&format!("pal: {message}"));
    }
    folder
        .pal(&["sample", &trips, "--uniforms", "u.csv"])
        .failed("pal: --uniforms is for densities over real variables");
    for (table, message) in [
        ("x,mode,wet\n1,run,true\n", "line 2, column `mode`: `run` is not a value of `mode`; it has walk, bike, car"),
        ("x,mode,wet\n1,car,true\n1,car,so\n", "line 3, column `wet`: `so` is neither true nor false"),
        ("x,mode\n1,car\n", "there is no column `wet`; the columns are x, mode"),
        ("x,mode,wet\n1,car,true\n1,,true\n", "row 1 (counted from 0), `mode`: NaN; give a value in every row"),
    ] {
        folder.write("p.csv", table);
        folder.pal(&["logprob", &trips, "--points", "p.csv"]).failed(&format!("pal: p.csv: {message}"));
    }
}

/// Trips whose mode the input decides.
fn data(folder: &Folder) {
    let trips = uniform_trips(folder);
    let mut text = "hurry,x,mode,wet\n".to_string();
    for (hurry, given) in [("0", "mode=walk"), ("1", "mode=car")] {
        let run = folder.pal(&["sample", &trips, "-n", "300", "--given", given, "--seed", hurry]).done();
        let mode = given.strip_prefix("mode=").unwrap();
        fields(&run.out).1.iter().for_each(|row| text += &format!("{hurry},{},{mode},{}\n", row[0], row[1]));
    }
    folder.write("data.csv", text).write("trip.smt2", TRIP);
}

const SMALL: [&str; 6] = ["--family", "histogram", "--bins", "4", "--components", "2"];

#[test]
fn fitting_and_evaluating() {
    let folder = Folder::new("mixed-fit");
    data(&folder);
    let fit =
        ["fit", "--constraint", "trip.smt2", "--data", "data.csv", "--epochs", "60", "--violation-samples", "5000"];
    let report = folder.pal(&[&fit[..], &SMALL, &["-o", "m.safetensors", "--json"]].concat()).done().json();
    // Half of the rows are on foot, with density 1/2 on their two assignments, half by car, with density 1/8.
    let truth = 0.5f64.ln() + 0.5 * (0.5f64.ln() + 0.125f64.ln());
    assert!((number(&report, "/test_ll") - truth).abs() < 0.15, "{report} {truth}");
    assert_eq!((&report["outside"], &report["samples"]), (&json!(0), &json!(5000)));
    let eval = folder.pal(&["eval", "m.safetensors", "--data", "data.csv", "--violation-samples", "1000", "--json"]);
    let eval = eval.done().json();
    assert!((number(&eval, "/ll") - truth).abs() < 0.1 && eval["rows"] == 600, "{eval} {truth}");
    let walks = folder.pal(&["query", "m.safetensors", "--event", "(= mode walk)", "--json"]).done().json();
    assert!((number(&walks, "/probability") - 0.5).abs() < 0.06, "{walks}");
    // Rows outside are named.
    folder.write("bad.csv", "x,mode,wet\n1,car,true\n3,walk,true\n2,bike,\n");
    let eval = ["eval", "m.safetensors", "--data", "bad.csv"];
    folder.pal(&eval).failed(
        "pal: bad.csv: 2 of 3 rows cannot be used: line 3: outside the constraint; line 4: `wet` is missing; --drop-invalid",
    );
    folder
        .pal(&[&fit[..], &["--baseline", "gmm", "-o", "g.safetensors"]].concat())
        .failed("pal: trip.smt2: --baseline: ");
}

#[test]
fn networks_predict_mixed_densities() {
    let folder = Folder::new("mixed-train");
    data(&folder);
    let train = ["train", "--constraint", "trip.smt2", "--data", "data.csv", "--inputs", "hurry", "--hidden", "16"];
    let options = ["--epochs", "40", "--learning-rate", "0.02", "--violation-samples", "5000"];
    let report = folder.pal(&[&train[..], &SMALL, &options, &["-o", "n.safetensors", "--json"]].concat()).done().json();
    // The input decides: density 1/2 on foot, 1/8 by car.
    let truth = 0.5 * (0.5f64.ln() + 0.125f64.ln());
    assert!((number(&report, "/test_ll") - truth).abs() < 0.2 && report["outside"] == 0, "{report} {truth}");
    folder.write("now.csv", "hurry\n0\n1\n");
    folder.pal(&["predict", "n.safetensors", "--data", "now.csv", "-o", "d.safetensors", "-q"]).done();
    let lines = folder.pal(&["query", "d.safetensors", "--event", "(= mode car)", "--json"]).done().json_lines();
    assert!(number(&lines[0], "/probability") < 0.1 && number(&lines[1], "/probability") > 0.9, "{lines:?}");
    let eval = folder.pal(&["eval", "n.safetensors", "--data", "data.csv", "--violation-samples", "1000", "--json"]);
    assert!((number(&eval.done().json(), "/ll") - truth).abs() < 0.2);
    let samples = folder.pal(&["sample", "d.safetensors", "--row", "all", "-n", "2", "--json"]).done().json_lines();
    assert_eq!(samples.iter().map(|line| line["row"].clone()).collect::<Vec<Value>>(), [0, 0, 1, 1].map(Value::from));
}

#[test]
fn a_picture_has_a_panel_for_each_assignment() {
    let folder = Folder::new("mixed-plot");
    let trips = uniform_trips(&folder);
    let plot = ["plot", &trips, "-o", "p.svg", "--samples", "100", "--mode", "--event", "(or wet (<= x 2))", "--json"];
    let report = folder.pal(&plot).done().json();
    let panels = report["panels"].as_array().unwrap();
    let values: Vec<&Value> = panels.iter().map(|panel| &panel["values"]).collect();
    assert_eq!(values.len(), 5);
    near(panels.iter().map(|panel| number(panel, "/probability")).sum(), 1.0);
    near(number(&panels[0], "/probability"), 4.0 / 14.0);
    near(number(&panels[4], "/probability"), 1.0 / 14.0);
    assert!(values.contains(&&json!({"mode": "bike", "wet": false})), "{report}");
    // Wet: 1 + 4; dry: walking 1, cycling and driving 2 each.
    near(number(&report, "/probability"), 10.0 / 14.0);
    let svg = String::from_utf8(folder.read("p.svg")).unwrap();
    for text in ["mode = bike, not wet", "mode = walk, wet", "probability 0.2857", "probability 0.0714"] {
        assert!(svg.contains(text), "{text}");
    }
    let run = folder.pal(&["plot", &trips, "-o", "p.png", "--given", "mode=car", "--title", "Cars"]).done();
    assert_eq!(run.out, "p.png: density on 2 cells in 2 panels\n");
    assert_eq!(&folder.read("p.png")[1..4], b"PNG");
}

/// Shares of three that sum to one, of which the first is at most 1/4 unless it is active. By area, 7/16 of the triangle are
/// possible without: active is 16 of 23.
#[test]
fn shares_that_sum_to_one_beside_a_truth_value() {
    let folder = Folder::new("mixed-flat");
    let shares = "(declare-const a Real) (declare-const b Real) (declare-const c Real) (declare-const active Bool)
(assert (and (= (+ a b c) 1) (>= a 0) (>= b 0) (>= c 0) (or active (<= a 0.25))))
";
    let squares = ["--family", "sum-of-squares", "--degree", "0", "--components", "1"];
    let even = model(&folder, "shares", shares, &squares, "0,0,0");
    let active = folder.pal(&["query", &even, "--event", "active", "--json"]).done().json();
    near(number(&active, "/probability"), 16.0 / 23.0);
    // Dependent shares are rounded, and their rows can be used all the same.
    let samples = folder.pal(&["sample", &even, "-n", "400", "--seed", "1"]).done().out;
    folder.write("data.csv", samples).write("shares.smt2", shares);
    let few = ["--violation-samples", "5000", "--json"];
    let fit = ["fit", "--constraint", "shares.smt2", "--data", "data.csv", "--epochs", "300", "-o", "m.safetensors"];
    let report = folder.pal(&[&fit[..], &squares, &few].concat()).done().json();
    assert_eq!(report["outside"], 0, "{report}");
    let eval = folder.pal(&[&["eval", "m.safetensors", "--data", "data.csv"], &few[..]].concat()).done().json();
    // The area of the triangle is sqrt(3) / 2, and of what is possible without being active 7/16 of it.
    assert!(
        eval["rows"] == 400 && (number(&eval, "/ll") + (23.0f64 / 16.0 * 3f64.sqrt() / 2.0).ln()).abs() < 0.05,
        "{eval}"
    );
}
