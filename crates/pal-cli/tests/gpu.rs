//! `pal train --device gpu` on a GPU, or on a driver that plays one. Without either this test fails.
#![cfg(feature = "wgpu")]

mod common;

use common::density::uniform;
use common::{Folder, SQUARE_WITHOUT_TRIANGLE};

const TRAIN: [&str; 19] = [
    "train",
    "--constraint",
    "r.smt2",
    "--data",
    "train.csv",
    "--inputs",
    "a",
    "--outputs",
    "x,y",
    "--hidden",
    "8",
    "--knots",
    "4",
    "--components",
    "2",
    "--device",
    "gpu",
    "-o",
    "m.safetensors",
];

#[test]
fn what_a_gpu_trained_is_the_same_on_the_processor() {
    let folder = Folder::new("train-gpu");
    let [model, ..] = uniform(&folder, SQUARE_WITHOUT_TRIANGLE, 2);
    folder.write("r.smt2", SQUARE_WITHOUT_TRIANGLE);
    folder.pal(&["sample", &model, "-n", "600", "--seed", "1", "-o", "points.csv", "--quiet"]).done();
    let table = std::fs::read_to_string(folder.path().join("points.csv")).unwrap();
    // An input that tells nothing.
    let rows = table.lines().enumerate().map(|(k, row)| match k {
        0 => "a,x,y\n".to_string(),
        _ => format!("{},{row}\n", k % 7),
    });
    folder.write("train.csv", rows.collect::<String>());

    let quick = ["--epochs", "3", "--batch", "200", "--violation-samples", "2000", "--seed", "1", "--json"];
    let report = folder.pal(&[&TRAIN[..], &quick].concat()).done().json();
    let reported = report["test_ll"].as_f64().unwrap();
    // The uniform density on an area of 7/2 is the truth.
    assert!((reported + 3.5f64.ln()).abs() < 0.5, "{report}");
    assert_eq!(report["outside"], 0);
    // All rows, on the processor: between the means of the three parts.
    let parts = ["train_ll", "val_ll", "test_ll"].map(|part| report[part].as_f64().unwrap());
    let shares = ["train", "validation", "test"].map(|part| report["rows"][part].as_f64().unwrap());
    let expected = parts.iter().zip(&shares).map(|(ll, rows)| ll * rows).sum::<f64>() / shares.iter().sum::<f64>();
    let again = folder.pal(&["eval", "m.safetensors", "--data", "train.csv", "--violation-samples", "100", "--json"]);
    let found = again.done().json()["ll"].as_f64().unwrap();
    assert!((found - expected).abs() < 1e-4, "{found} instead of {expected}");

    // Float64 logarithms are wrong on GPUs: an error, not a model.
    folder.pal(&[&TRAIN[..], &["--precision", "f64", "--restart"]].concat()).failed("pal: --device gpu: ");
}
