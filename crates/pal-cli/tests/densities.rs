//! `pal compile`, `model` and the questions about models: closed forms, in one to three dimensions and in all kinds of
//! families.

mod common;

use common::density::{INTERVALS, TETRAHEDRON, csv, model, near, number, rows, uniform};
use common::{Folder, SQUARE_WITHOUT_TRIANGLE};

fn probability(folder: &Folder, model: &str, term: &str) -> f64 {
    number(&folder.pal(&["query", model, "--event", term, "--json"]).done().json(), "/probability")
}

#[test]
fn the_uniform_density_on_a_square_without_a_triangle() {
    let folder = Folder::new("densities-square");
    // Area 7/2; the triangle has area 1/2, first moments 1/6, second moments 1/12 and the mixed one 1/24.
    let (mean, second, mixed) = (-1.0 / 21.0, 5.0 / 14.0, -1.0 / 84.0);
    for model in uniform(&folder, SQUARE_WITHOUT_TRIANGLE, 2) {
        near(probability(&folder, &model, "(<= x 0)"), 4.0 / 7.0);
        near(probability(&folder, &model, "(> x 0)"), 3.0 / 7.0);
        near(probability(&folder, &model, "(or (< (+ x y) 1) (> x 2))"), 6.0 / 7.0);
        assert_eq!(probability(&folder, &model, "(and (> x 0) (> y 0) (< (+ x y) 1))"), 0.0);
        let given = ["query", &model, "--event", "(<= x 0)", "--condition", "(>= y 0)", "--json"];
        near(number(&folder.pal(&given).done().json(), "/probability"), 2.0 / 3.0);
        // All conditions must hold: -1 <= y <= -1/2 is a strip without any part of the triangle.
        let both =
            ["query", &model, "--event", "(<= x 0)", "--condition", "(<= y (- 0.5))", "--condition", "(<= x 0.5)"];
        let line = folder.pal(&[&both[..], &["--json"]].concat()).done().json();
        near(number(&line, "/probability"), 2.0 / 3.0);
        assert_eq!(line["condition"], "(and (<= y (- 0.5)) (<= x 0.5))");
        // Along y = 1/2 the triangle leaves -1 <= x <= 0 and 1/2 <= x <= 1.
        let line = folder.pal(&["query", &model, "--event", "(<= x 0)", "--given", "y=0.5", "--json"]).done().json();
        near(number(&line, "/probability"), 2.0 / 3.0);
        assert_eq!(number(&line, "/given/y"), 0.5);

        let line =
            folder.pal(&["moments", &model, "--poly", "x*y", "--poly", "7", "--entropy", "--json"]).done().json();
        for k in 0..2 {
            let variance = second - mean * mean;
            near(number(&line, &format!("/mean/{k}")), mean);
            near(number(&line, &format!("/covariance/{k}/{k}")), variance);
            near(number(&line, &format!("/standard_deviation/{k}")), variance.sqrt());
            near(number(&line, &format!("/covariance/{k}/{}", 1 - k)), mixed - mean * mean);
        }
        near(number(&line, "/expectations/0/value"), mixed);
        near(number(&line, "/expectations/1/value"), 7.0);
        near(number(&line, "/entropy/value"), 3.5f64.ln());
        assert_eq!((&line["row"], &line["entropy"]["converged"]), (&0.into(), &true.into()));

        // Right of 0 the allowed values of y have length 1 + x.
        let table = folder.pal(&["marginal", &model, "--variable", "x", "--at", "-0.5,0.5,-3,3"]).done().out;
        let (header, found) = csv(&table);
        assert_eq!(header, ["x", "density", "cdf"]);
        let want = [[-0.5, 4.0 / 7.0, 2.0 / 7.0], [0.5, 3.0 / 7.0, 0.75], [-3.0, 0.0, 0.0], [3.0, 0.0, 1.0]];
        found.iter().flatten().zip(want.iter().flatten()).for_each(|(found, want)| near(*found, *want));
        let quantiles = folder.pal(&["marginal", &model, "--variable", "x", "--quantiles", "0,0.75,1"]).done().out;
        let found: Vec<f64> = rows(&quantiles).iter().map(|row| row[1]).collect();
        [-1.0, 0.5, 1.0].iter().zip(&found).for_each(|(want, found)| near(*found, *want));
        // Given x = 0.5, y is in [-1, 0) or (1/2, 1].
        let slice = ["marginal", &model, "--variable", "y", "--given", "x=0.5", "--at", "-0.5,0.25,1"];
        let found = rows(&folder.pal(&slice).done().out);
        near(found[0][1], 2.0 / 3.0);
        near(found[0][2], 1.0 / 3.0);
        assert_eq!(found[1][1], 0.0);
        near(found[2][2], 1.0);

        let points = "y,x\n-0.5,0.5\n0.25,0.25\n1,1\n";
        let answers = folder.pal_reading(&["logprob", &model, "--points", "-"], points).done().out;
        let (header, found) = csv(&answers);
        assert_eq!((header, found[1][2]), (vec!["x", "y", "log_density"], f64::NEG_INFINITY));
        near(found[0][2], -(3.5f64.ln()));
        near(found[2][2], -(3.5f64.ln()));
        let joint = ["marginal", &model, "--variable", "y", "--variable", "x", "--points", "-"];
        near(rows(&folder.pal_reading(&joint, points).done().out)[0][2], 2.0 / 7.0);

        let mode = folder.pal(&["mode", &model, "--json"]).done().json();
        near(number(&mode, "/log_density"), -(3.5f64.ln()));
        assert!(number(&mode, "/log_upper") >= number(&mode, "/log_density") && number(&mode, "/gap") < 1e-6);
        assert_eq!(mode["stop"], "certified");
    }
}

#[test]
fn one_dimension() {
    let folder = Folder::new("densities-line");
    for model in uniform(&folder, INTERVALS, 1) {
        near(probability(&folder, &model, "(<= t 1.5)"), 1.0 / 3.0);
        let line = folder.pal(&["moments", &model, "--entropy", "--json"]).done().json();
        near(number(&line, "/mean/0"), 13.0 / 6.0);
        near(number(&line, "/covariance/0/0"), 59.0 / 36.0);
        near(number(&line, "/entropy/value"), 3.0f64.ln());
        let quantiles = folder.pal(&["marginal", &model, "--variable", "t", "--quantiles", "0.5"]).done().out;
        near(rows(&quantiles)[0][1], 2.5);
        // Under a condition it is the uniform density on a smaller interval.
        let part = ["moments", &model, "--condition", "(>= t 3)", "--condition", "(<= t 3.5)", "--entropy", "--json"];
        let line = folder.pal(&part).done().json();
        near(number(&line, "/mean/0"), 3.25);
        near(number(&line, "/entropy/value"), 0.5f64.ln());
    }
    let unit = "(declare-const x Real)(assert (<= 0 x 1))";
    // A spline through (k/4, k/4), squared: the density is 3 x^2. Values are differences to 1, derivatives are per
    // distance of the knots.
    let square = model(
        &folder,
        "square",
        unit,
        &["--knots", "5", "--components", "1"],
        "0, -1,-0.75,-0.5,-0.25,0, 0.25,0.25,0.25,0.25,0.25\n",
    );
    let line = folder.pal(&["moments", &square, "--poly", "x^2", "--json"]).done().json();
    near(number(&line, "/mean/0"), 0.75);
    near(number(&line, "/expectations/0/value"), 0.6);
    near(probability(&folder, &square, "(< x 0.5)"), 0.125);
    let found = rows(&folder.pal(&["marginal", &square, "--variable", "x", "--quantiles", "0.5"]).done().out);
    near(found[0][1], 0.5f64.cbrt());
    let mode = folder.pal(&["mode", &square, "--json"]).done().json();
    assert_eq!(mode["point"], serde_json::json!([1.0]));
    near(number(&mode, "/log_density"), 3.0f64.ln());
    // The second orthonormal polynomial on [0, 1] is proportional to 2 x - 1: the density is 3 (2 x - 1)^2.
    // The offset is the constant.
    let options = ["--family", "sum-of-squares", "--degree", "1", "--components", "1"];
    let bowl = model(&folder, "bowl", unit, &options, "0,-1,1\n");
    let line = folder.pal(&["moments", &bowl, "--json"]).done().json();
    near(number(&line, "/mean/0"), 0.5);
    near(number(&line, "/covariance/0/0"), 0.15);
    near(probability(&folder, &bowl, "(<= x 0.25)"), 0.4375);
    // A histogram of two components on [0, 1]: half of the mass is uniform, the other half has weights 1 : 3 on its two
    // bins. The offset tilts one component to the left and the other to the right, by 3/4 cos(pi x) in the middle of
    // bins.
    let options = ["--family", "histogram", "--bins", "2", "--components", "2"];
    let tilt = 0.75 * 0.5f64.sqrt();
    let params = format!("0,{},{tilt}, 0,{tilt},{}\n", -tilt, 3f64.ln() - tilt);
    let steps = model(&folder, "steps", unit, &options, &params);
    let line = folder.pal(&["moments", &steps, "--poly", "x^2", "--entropy", "--json"]).done().json();
    // The density is 3/4 on the left and 5/4 on the right.
    near(number(&line, "/mean/0"), 0.75 / 8.0 + 1.25 * 3.0 / 8.0);
    near(number(&line, "/expectations/0/value"), 0.75 / 24.0 + 1.25 * 7.0 / 24.0);
    near(number(&line, "/entropy/value"), -(0.375 * 0.75f64.ln() + 0.625 * 1.25f64.ln()));
    near(probability(&folder, &steps, "(<= x 0.25)"), 0.1875);
    near(probability(&folder, &steps, "(<= x 0.75)"), 0.6875);
    let found = rows(&folder.pal(&["marginal", &steps, "--variable", "x", "--quantiles", "0.6875"]).done().out);
    near(found[0][1], 0.75);
    let mode = folder.pal(&["mode", &steps, "--json"]).done().json();
    near(number(&mode, "/log_density"), 1.25f64.ln());
    assert!(number(&mode, "/point/0") >= 0.5 && mode["stop"] == "certified");
    let found = rows(&folder.pal_reading(&["logprob", &steps, "--points", "-"], "x\n0.1\n0.9\n1.1\n").done().out);
    near(found[0][1], 0.75f64.ln());
    near(found[1][1], 1.25f64.ln());
    assert_eq!(found[2][1], f64::NEG_INFINITY);
    let samples = rows(&folder.pal(&["sample", &steps, "-n", "4000"]).done().out);
    let right = samples.iter().filter(|s| s[0] > 0.5).count() as f64 / 4000.0;
    assert!((right - 0.625).abs() < 5.0 * (0.625f64 * 0.375 / 4000.0).sqrt(), "{right}");
    // Knots at given places: bins of widths 1/4 and 3/4 with weights 1 : 1 per length.
    let uneven = ["--family", "histogram", "--knots-at", "x=0,1/4,1", "--components", "1"];
    let uneven = model(&folder, "uneven", unit, &uneven, &format!("0,0,{}\n", 2f64.ln()));
    near(probability(&folder, &uneven, "(<= x 0.25)"), 0.25 / (0.25 + 2.0 * 0.75));
}

#[test]
fn three_dimensions() {
    let folder = Folder::new("densities-space");
    for model in uniform(&folder, TETRAHEDRON, 3) {
        near(probability(&folder, &model, "(<= x 0.5)"), 7.0 / 8.0);
        let line = folder.pal(&["moments", &model, "--json", "--poly", "x*y*z"]).done().json();
        for (j, k) in [(0, 0), (1, 0), (2, 1), (2, 2)] {
            near(number(&line, &format!("/mean/{j}")), 0.25);
            near(number(&line, &format!("/covariance/{j}/{k}")), if j == k { 3.0 / 80.0 } else { -1.0 / 80.0 });
        }
        // The integral of x y z over the corner is 1 / 6!.
        near(number(&line, "/expectations/0/value"), 6.0 / 720.0);
        let found = rows(&folder.pal(&["marginal", &model, "--variable", "z", "--at", "0.25"]).done().out);
        near(found[0][1], 3.0 * 0.75 * 0.75);
        near(found[0][2], 1.0 - 0.75f64.powi(3));
        let joint = ["marginal", &model, "--variable", "x", "--variable", "z", "--points", "-"];
        let found = rows(&folder.pal_reading(&joint, "0.25,0.25\n0.75,0.75\n").done().out);
        near(found[0][2], 3.0);
        assert_eq!(found[1][2], 0.0);
        let samples = rows(&folder.pal(&["sample", &model, "-n", "200", "--given", "x=0.5"]).done().out);
        assert!(samples.iter().all(|s| s.len() == 2 && s[0] >= 0.0 && s[1] >= 0.0 && s[0] + s[1] <= 0.5));
    }
}

#[test]
fn random_models_of_many_rows() {
    let folder = Folder::new("densities-rows");
    folder.write("r.smt2", SQUARE_WITHOUT_TRIANGLE);
    for options in [
        &["--knots", "5", "--components", "2"][..],
        &["--family", "sum-of-squares", "--degree", "4", "--components", "2"],
        &["--family", "histogram", "--bins", "6", "--components", "3"],
    ] {
        folder.pal(&[&["compile", "r.smt2", "-o", "f.safetensors", "--quiet"], options].concat()).done();
        folder.pal(&["model", "f.safetensors", "--random", "3", "--rows", "20", "-o", "m.safetensors", "-q"]).done();
        let query = ["query", "m.safetensors", "--event", "(< x y)", "--event", "(>= x y)", "--json"];
        let lines = folder.pal(&query).done().json_lines();
        assert_eq!(lines.len(), 40);
        for (k, pair) in lines.chunks(2).enumerate() {
            assert!(pair.iter().all(|line| line["row"] == k));
            near(number(&pair[0], "/probability") + number(&pair[1], "/probability"), 1.0);
        }
        // All rows at once and one by one agree; so do the mean and the marginal.
        let all = folder.pal(&["moments", "m.safetensors", "--poly", "x^2*y", "--json"]).done().json_lines();
        let one = folder.pal(&["moments", "m.safetensors", "--poly", "x^2*y", "--row", "17", "--json"]).done().json();
        for path in ["/mean/0", "/mean/1", "/covariance/0/0", "/covariance/1/0", "/expectations/0/value"] {
            near(number(&all[17], path), number(&one, path));
        }
        let at = ["marginal", "m.safetensors", "--variable", "x", "--row", "all", "--quantiles", "0.25,0.5"];
        let table = folder.pal(&at).done().out;
        let (header, found) = csv(&table);
        assert_eq!((header, found.len(), found[35][0]), (vec!["row", "probability", "x"], 40, 17.0));
        let median = found[35][2];
        let size = format!("{:.17}", median.abs());
        let below = if median < 0.0 { format!("(<= x (- {size}))") } else { format!("(<= x {size})") };
        let lines = folder.pal(&["query", "m.safetensors", "--event", &below, "--row", "17", "--json"]).done().json();
        assert!((number(&lines, "/probability") - 0.5).abs() < 1e-9, "{lines}");
    }
}
