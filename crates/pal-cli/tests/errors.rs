//! What is wrong is said on standard error, with the file, the place and what would work; the exit code is 2.

mod common;

use common::{Folder, MAP, SQUARE_WITHOUT_TRIANGLE};

#[test]
fn files_that_cannot_be_read() {
    let folder = Folder::new("errors-files");
    folder
        .write("a.txt", "x")
        .write("noext", "x")
        .write("empty.smt2", " \n")
        .write("latin.smt2", b"(assert true) ; caf\xe9\n");
    std::fs::create_dir(folder.path().join("dir.smt2")).unwrap();
    for command in ["check", "cells", "volume"] {
        folder.pal(&[command, "nope.smt2"]).failed("pal: nope.smt2: no such file");
        folder.pal(&[command, "nope"]).failed("pal: nope: no such file");
        folder.pal(&[command, "dir.smt2"]).failed("pal: dir.smt2: this is a directory; give a .smt2");
        folder
            .pal(&[command, "a.txt"])
            .failed("pal: a.txt: unknown extension `.txt`; use .smt2, .geojson, .json, .wkt,");
        folder.pal(&[command, "noext"]).failed("pal: noext: no extension; use .smt2, .geojson, .json, .wkt,");
        folder.pal(&[command, "empty.smt2"]).failed("pal: empty.smt2: the file is empty");
        folder.pal(&[command, "latin.smt2"]).failed("pal: latin.smt2: not UTF-8 text at byte offset 19 (0xe9)");
        folder.pal(&[command, "-"]).failed("pal: standard input: say what it is with --format");
    }
}

#[test]
fn mistakes_in_the_text_have_a_position() {
    let folder = Folder::new("errors-text");
    folder.write("bad.smt2", "(declare-const x Real)\n(assert (<= 0 z))\n").write("bad.geojson", "{\"type\": \n oops}");
    let run = folder.pal(&["check", "bad.smt2"]).failed("pal: bad.smt2: line 2, column 15: ");
    assert!(run.err.contains('z'), "{}", run.err);
    folder.pal(&["check", "bad.geojson"]).failed("pal: bad.geojson: line 2, column ");
    // Another extension is no obstacle when the format is given; a byte-order mark is none either.
    folder.write("script.txt", format!("\u{feff}{SQUARE_WITHOUT_TRIANGLE}"));
    folder.pal(&["check", "script.txt", "--format", "smt2"]).done();
}

#[test]
fn options_that_do_not_fit() {
    let folder = Folder::new("errors-options");
    folder.write("r.smt2", SQUARE_WITHOUT_TRIANGLE).write("m.geojson", MAP);
    folder
        .pal(&["check", "r.smt2", "--bounds", "0,0,1,1"])
        .failed("pal: r.smt2: --meaning and --bounds are for GeoJSON");
    for (arguments, message) in [
        (&["check", "m.geojson", "--bounds", "0,0,1"][..], "3 numbers given, four needed"),
        (&["check", "m.geojson", "--bounds", "0,0,x,1"], "`x` is not a number"),
        (&["check", "m.geojson", "--bounds", "1,0,0,1"], "x0 must be below x1"),
        (&["cells", "m.geojson", "--limit", "0"], "--limit"),
        (&["cells", "m.geojson", "--time-limit", "-1"], "at least 0"),
        (&["cells", "m.geojson", "--time-limit", "nan"], "at least 0"),
        (&["plot", "m.geojson"], "--output"),
        (&["plot", "m.geojson", "-o", "m.png", "--width", "7"], "100..=4000"),
        (&["check", "m.geojson", "--threads", "5000"], "1024"),
        (&["check"], "FILE"),
        (&["frobnicate"], "frobnicate"),
        (&["completions", "tcsh"], "tcsh"),
    ] {
        let run = folder.pal(arguments);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{arguments:?}");
        assert!(run.err.contains(message), "{arguments:?}: {}", run.err);
    }
}

#[test]
fn outputs_that_cannot_be_written() {
    let folder = Folder::new("errors-output");
    folder.write("m.geojson", MAP).write("file", "");
    std::fs::create_dir(folder.path().join("dir.png")).unwrap();
    folder.pal(&["plot", "m.geojson", "-o", "m.pdf"]).failed("pal: m.pdf: pictures are written as .png or .svg");
    folder.pal(&["plot", "m.geojson", "-o", "no/m.png"]).failed("pal: no/m.png: cannot write: ");
    folder.pal(&["plot", "m.geojson", "-o", "dir.png"]).failed("pal: dir.png: cannot write: ");
    folder.pal(&["demo", "-o", "file/below"]).failed("pal: file/below: cannot make the directory: ");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_named() {
    let folder = Folder::new("errors-full");
    folder.write("r.smt2", SQUARE_WITHOUT_TRIANGLE).write("p.jsonl", "{}");
    for command in [
        &["check", "r.smt2"][..],
        &["cells", "r.smt2", "--json"],
        &["volume", "r.smt2"],
        &["integrate", "r.smt2", "--poly", "x"],
        &["integrate", "r.smt2", "--degree", "2", "--json"],
        &["wmi", "p.jsonl"],
        &["completions", "bash"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let run = common::Run::of(folder.command(command).stdout(full).output().unwrap());
        run.failed("pal: standard output: cannot write: ");
    }
}

#[test]
fn help_has_examples_and_exit_codes_and_the_examples_parse() {
    let folder = Folder::new("errors-help");
    let commands = [
        "check",
        "cells",
        "volume",
        "integrate",
        "wmi",
        "compile",
        "model",
        "sample",
        "query",
        "marginal",
        "mode",
        "moments",
        "logprob",
        "plot",
        "demo",
        "completions",
        "man",
    ];
    for command in commands {
        for flag in ["-h", "--help"] {
            let help = folder.pal(&[command, flag]).done().out;
            let examples: Vec<&str> = help.lines().filter(|line| line.starts_with("  pal ")).collect();
            assert!(examples.len() >= 2, "{help}");
            assert!(examples.iter().all(|line| line.contains(command)));
            assert!(help.contains("Exit codes: 0 done") && help.contains("2 error"), "{help}");
        }
    }
    assert!(folder.pal(&["--version"]).done().out.starts_with("pal 0."));
    assert!(folder.pal(&["--help"]).done().out.contains("completions"));
}

#[test]
fn completions_for_every_shell() {
    let folder = Folder::new("completions");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = folder.pal(&["completions", shell]).done().out;
        assert!(script.contains("triangulate") && script.contains("completions"), "{shell}");
    }
}

#[test]
fn what_is_misspelt_gets_a_suggestion() {
    let folder = Folder::new("errors-suggestions");
    folder.write("region.smt2", SQUARE_WITHOUT_TRIANGLE).write("points.csv", "easting,y\n0.5,0.75\n");
    assert!(folder.pal(&["volum", "region.smt2"]).err.contains("similar"), "subcommands");
    folder.pal(&["compile", "region.smt2", "--knots", "4", "-o", "f.safetensors"]).done();
    let fit =
        ["fit", "--constraint", "region.smt2", "--data", "points.csv", "--outputs", "eastin,y", "-o", "m.safetensors"];
    let run = folder.pal(&fit).failed("pal: ");
    assert!(
        run.err.contains("there is no column `eastin`; the columns are easting, y; did you mean `easting`?"),
        "{}",
        run.err
    );
}

#[test]
fn what_beginners_try_is_told_what_would_work() {
    let folder = Folder::new("errors-beginners");
    folder.write("region.smt2", SQUARE_WITHOUT_TRIANGLE).write("walks.csv", "speed,east,north\n1,0.5,0.75\n");
    let data = ["--constraint", "region.smt2", "--data", "walks.csv", "-o", "m.safetensors"];
    for command in [&["fit"][..], &["train", "--inputs", "speed"]] {
        folder.pal(&[command, &data].concat()).failed(
            "pal: walks.csv: there is no column `x`; the columns are speed, east, north; --outputs names the columns",
        );
    }
    let [model, ..] = common::density::uniform(&folder, SQUARE_WITHOUT_TRIANGLE, 2);
    folder.write("points.csv", "x,y,kind\n0.5,0.75,a\n");
    folder
        .pal(&["logprob", &model, "--points", "points.csv"])
        .failed("pal: points.csv: line 2, column `kind`: `a` is not a number; tables of points and parameters hold");
    let rows: String = (0..40).map(|k| format!("{k},-0.{},0.5\n", k + 10)).collect();
    folder.write("walks.csv", format!("speed,x,y\n{rows}"));
    let small = ["--inputs", "speed", "--hidden", "4", "--knots", "4", "--components", "1", "--epochs", "1"];
    folder.pal(&[&["train", "--violation-samples", "10"], &small[..], &data].concat()).done();
    let network = folder.pal(&["query", "m.safetensors", "--event", "(<= x 1)"]);
    network.failed("pal: m.safetensors: this is a trained network; `pal predict` makes densities of it");
}

#[test]
fn manual_pages() {
    let folder = Folder::new("errors-man");
    let page = folder.pal(&["man"]).done().out;
    assert!(page.contains(".TH pal 1") && page.contains("check"), "{page}");
    assert!(folder.pal(&["man", "train"]).done().out.contains("hidden"));
    folder.pal(&["man", "trian"]).failed("pal: there is no command `trian`; the commands are check, ");
}
