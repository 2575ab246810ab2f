//! Files are not destroyed, damage is noticed, and no input takes more than its limits.

mod common;

use std::fs;
use std::time::{Duration, Instant};

use common::density::uniform;
use common::{Folder, SQUARE_WITHOUT_TRIANGLE};

const SQUARE: &str = "(declare-const x Real)\n(declare-const y Real)\n(assert (and (<= 0 x 1) (<= 0 y 1)))\n";

/// The unit cube.
fn cube(dimension: usize) -> String {
    (0..dimension).map(|k| format!("(declare-const x{k} Real)\n(assert (<= 0 x{k} 1))\n")).collect()
}

fn names(folder: &Folder) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_is_read_is_not_written() {
    let folder = Folder::new("own-input");
    folder.write("r.smt2", SQUARE);
    folder
        .pal(&["integrate", "r.smt2", "--degree", "2", "-o", "r.smt2"])
        .failed("pal: r.smt2: this file would be read and written; choose another name");
    folder.pal(&["integrate", "r.smt2", "--degree", "2", "-o", "./r.smt2"]).failed("pal: ./r.smt2: this file would");
    fs::hard_link(folder.path().join("r.smt2"), folder.path().join("same.smt2")).unwrap();
    folder.pal(&["integrate", "r.smt2", "--degree", "2", "-o", "same.smt2"]).failed("pal: same.smt2: this file would");
    assert_eq!(folder.read("r.smt2"), SQUARE.as_bytes());
    let [model, ..] = uniform(&folder, SQUARE, 2);
    let before = folder.read(&model);
    let again = folder.pal(&["model", &model, "--random", "1", "-o", &model]);
    assert!(again.code == 2 && again.err.contains("this file would be read and written"), "{again:?}");
    assert_eq!(folder.read(&model), before);
    folder.pal(&["sample", &model, "-n", "20", "-o", "s.csv", "--quiet"]).done();
    let before = folder.read("s.csv");
    let logs = folder.pal(&["logprob", &model, "--points", "s.csv", "-o", "s.csv"]);
    assert!(logs.code == 2 && logs.err.contains("this file would be read and written"), "{logs:?}");
    assert_eq!(folder.read("s.csv"), before);
}

#[test]
fn two_results_do_not_share_a_file() {
    let folder = Folder::new("two-results");
    let star = ["data", "nstar", "--n", "5", "--points", "10"];
    folder
        .pal(&[&star[..], &["-o", "s.csv", "--write-constraint", "s.csv"]].concat())
        .failed("pal: s.csv: choose a name that ends in .smt2");
    // A constraint is what other commands read under this name.
    let old = folder.pal(&[&star[..], &["-o", "s.csv", "--constraint", "s.smt2"]].concat());
    assert!(old.code == 2 && old.err.contains("--constraint"), "{old:?}");
    assert!(names(&folder).is_empty());
    folder.write("precious.txt", "precious");
    folder.pal(&["demo", "-o", "."]).failed("pal: .: this directory has files that are not from an earlier `pal demo`");
    assert_eq!(names(&folder), ["precious.txt"]);
}

#[test]
fn moments_files_are_the_same_in_every_run() {
    let folder = Folder::new("same-moments");
    folder.write("r.smt2", SQUARE);
    for name in ["a.safetensors", "b.safetensors"] {
        folder.pal(&["integrate", "r.smt2", "--degree", "3", "-o", name, "--quiet"]).done();
    }
    assert_eq!(folder.read("a.safetensors"), folder.read("b.safetensors"));
}

#[cfg(unix)]
#[test]
fn links_and_devices_stay_what_they_are() {
    let folder = Folder::new("links");
    let [model, ..] = uniform(&folder, SQUARE, 2);
    folder.write("target.csv", "old");
    std::os::unix::fs::symlink("target.csv", folder.path().join("link.csv")).unwrap();
    folder.pal(&["sample", &model, "-n", "3", "-o", "link.csv", "--quiet"]).done();
    assert!(fs::symlink_metadata(folder.path().join("link.csv")).unwrap().is_symlink());
    assert!(folder.read("target.csv").starts_with(b"x,y\n"));
    std::os::unix::fs::symlink("/dev/null", folder.path().join("null.csv")).unwrap();
    folder.pal(&["sample", &model, "-n", "3", "-o", "null.csv", "--quiet"]).done();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[cfg(unix)]
#[test]
fn a_signal_leaves_no_temporary_file() {
    let folder = Folder::new("terminated");
    let [model, ..] = uniform(&folder, SQUARE, 2);
    let before = names(&folder);
    let child = folder.command(&["sample", &model, "-n", "1000000000", "-o", "s.csv"]).spawn().unwrap();
    let start = Instant::now();
    while names(&folder).len() == before.len() && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(names(&folder).len(), before.len() + 1, "the temporary file is there");
    let terminate = std::process::Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(terminate.success());
    let ended = common::Run::of(child.wait_with_output().unwrap());
    assert_eq!(ended.code, 1, "{ended:?}");
    assert_eq!(names(&folder), before);
}

const FIT: [&str; 12] = [
    "fit",
    "--data",
    "t.csv",
    "--val-data",
    "t.csv",
    "--knots",
    "3",
    "--violation-samples",
    "100",
    "--quiet",
    "-o",
    "m.safetensors",
];

#[test]
fn a_checkpoint_belongs_to_its_constraint() {
    let folder = Folder::new("other-constraint");
    let [model, ..] = uniform(&folder, SQUARE_WITHOUT_TRIANGLE, 2);
    folder.pal(&["sample", &model, "-n", "200", "--seed", "3", "-o", "t.csv", "--quiet"]).done();
    folder.write("r.smt2", SQUARE_WITHOUT_TRIANGLE);
    // The same variables and the same box, but no hole.
    folder.write("other.smt2", SQUARE.replace("<= 0", "<= (- 1)"));
    let long = ["--epochs", "100000000", "--patience", "0", "--time-limit", "2"];
    let stopped = folder.pal(&[&FIT[..], &["--constraint", "r.smt2"], &long].concat());
    assert_eq!(stopped.code, 1, "{stopped:?}");
    let resume = |constraint: &str| folder.pal(&[&FIT[..], &["--constraint", constraint, "--resume"], &long].concat());
    resume("other.smt2").failed(
        "pal: m.safetensors.checkpoint: the checkpoint belongs to another training: its data or its predictor differ",
    );
    let checkpoint = folder.read("m.safetensors.checkpoint");
    for at in [30, checkpoint.len() / 3, checkpoint.len() - 9] {
        let mut damaged = checkpoint.clone();
        damaged[at] ^= 1;
        folder.write("m.safetensors.checkpoint", damaged);
        let refused = resume("r.smt2");
        assert!(refused.code == 2 && refused.err.contains("not a checkpoint"), "{refused:?}");
    }
    folder.write("m.safetensors.checkpoint", checkpoint);
    let resumed = resume("r.smt2");
    assert_eq!(resumed.code, 1, "{resumed:?}");
}

#[test]
fn memory_has_a_limit() {
    let folder = Folder::new("memory");
    folder.write("cube8.smt2", cube(8)).write("cube11.smt2", cube(11)).write("r.smt2", SQUARE);
    let start = Instant::now();
    let moments = folder.pal(&["integrate", "cube8.smt2", "--degree", "20", "--memory-limit", "300M"]);
    assert_eq!((moments.code, moments.err.as_str()), (1, "pal: note: the memory limit was reached\n"), "{moments:?}");
    let gasp = ["--poly", "x0", "--method", "gasp", "--memory-limit", "200M"];
    let gasp = folder.pal(&[&["integrate", "cube11.smt2"], &gasp[..]].concat());
    assert_eq!((gasp.code, gasp.err.as_str()), (1, "pal: note: the memory limit was reached\n"), "{gasp:?}");
    let cells = folder.pal(&["cells", "cube11.smt2", "--triangulate", "--memory-limit", "200M", "--json"]);
    assert!(cells.code == 1 && cells.out.contains("memory-limit"), "{:?} {}", cells.code, cells.err);
    // One problem that takes too much does not take the others with it.
    let bounds: Vec<String> = (0..11).map(|k| format!(r#""x{k}": ["0", "1"]"#)).collect();
    let bad = format!(
        r#"{{"name": "bad", "domain": {{"reals": {{{}}}}}, "support": "true", "weight": "x0"}}"#,
        bounds.join(", ")
    );
    let good = r#"{"name": "good", "domain": {"reals": {"x": ["0", "1"]}}, "support": "true", "weight": "x"}"#;
    folder.write("p.jsonl", format!("{bad}\n{good}\n"));
    let both = folder.pal(&["wmi", "p.jsonl", "--integrator", "gasp", "--memory-limit", "200M", "--json"]);
    let lines = both.json_lines();
    assert_eq!(
        (both.code, &lines[0]["status"], &lines[1]["status"]),
        (1, &"memory limit reached".into(), &"ok".into())
    );
    assert_eq!(lines[1]["value"], 0.5);
    assert!(start.elapsed() < Duration::from_secs(120));
    let flow = ["--baseline", "flow", "--transforms", "1000000000", "-o", "m.safetensors"];
    folder.write("t.csv", "x,y\n0.5,0.5\n0.25,0.5\n");
    let data = ["fit", "--constraint", "r.smt2", "--data", "t.csv", "--val-data", "t.csv"];
    let flow = folder.pal(&[&data[..], &flow].concat());
    assert!(flow.code == 2 && flow.err.contains("of memory; the limit is"), "{flow:?}");
}

#[test]
fn time_has_a_limit_in_every_command() {
    let folder = Folder::new("time");
    folder.write("r.smt2", SQUARE).write("cube8.smt2", cube(8));
    let start = Instant::now();
    let power = folder.pal(&["integrate", "r.smt2", "--poly", "(x+y+1)^2000", "--time-limit", "0.5"]);
    assert!(power.code == 1 || power.code == 2, "{power:?}");
    let moments = folder.pal(&["integrate", "cube8.smt2", "--degree", "12", "--time-limit", "0.2"]);
    assert_eq!((moments.code, moments.err.as_str()), (1, "pal: note: the time limit was reached\n"), "{moments:?}");
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn numbers_at_the_ends_of_64_bits_are_refused() {
    let folder = Folder::new("exponents");
    let number = "1e-9223372036854775808";
    folder.write("r.smt2", SQUARE);
    folder.write(
        "map.geojson",
        format!(r#"{{"type": "Polygon", "coordinates": [[[0, 0], [{number}, 0], [1, 1], [0, 0]]]}}"#),
    );
    folder.write(
        "p.jsonl",
        format!(r#"{{"domain": {{"reals": {{"x": ["0", "{number}"]}}}}, "support": "true", "weight": "1"}}"#),
    );
    for arguments in [
        &["integrate", "r.smt2", "--poly", number][..],
        &["check", "map.geojson", "--meaning", "walkable"],
        &["check", "r.smt2", "--bounds", &format!("0,0,1,{number}")],
    ] {
        let run = folder.pal(arguments);
        assert!(run.code == 2 && !run.err.contains("panicked"), "{run:?}");
    }
    let wmi = folder.pal(&["wmi", "p.jsonl"]);
    assert!(wmi.code == 1 && wmi.out.contains("the exponent of"), "{wmi:?}");
}

/// Values whose squares are below the normal range of float64 once made the search for a mode endless.
#[test]
fn a_mode_of_very_small_values_is_found() {
    let folder = Folder::new("small-mode");
    folder.write("i.smt2", "(declare-const x Real)\n(assert (<= 0 x 1))\n");
    let family = ["--family", "spline", "--knots", "3", "--components", "1", "-o", "f.safetensors"];
    folder.pal(&[&["compile", "i.smt2", "--quiet"], &family[..]].concat()).done();
    for exponent in 155..=163 {
        // One falls to 0 at the middle knot; from there on only two derivatives are not 0.
        folder.write("p.csv", format!("a,b,c,d,e,f,g\n0,0,-1,-1,0,1e-{exponent},-1e-{exponent}\n"));
        folder.pal(&["model", "f.safetensors", "--params", "p.csv", "-o", "m.safetensors", "--quiet"]).done();
        let mode = folder.pal(&["mode", "m.safetensors", "--time-limit", "20", "--json"]).done().json();
        assert_eq!((&mode["stop"], &mode["point"][0]), (&"certified".into(), &0.0.into()), "{mode}");
    }
}
