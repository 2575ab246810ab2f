//! Mistakes with densities: exit code 2, the file, the place and what would work; nothing is overwritten.

mod common;

use common::density::{flat, npy_file};
use common::{Folder, SQUARE_WITHOUT_TRIANGLE};

/// A compiled family `f.safetensors` with 9 parameters on [0, 1], a model `m.safetensors` of it, and one on the square
/// without a triangle, `s.safetensors`; `old.safetensors` must not change.
fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.write("u.smt2", "(declare-const x Real)(assert (<= 0 x 1))").write("r.smt2", SQUARE_WITHOUT_TRIANGLE);
    folder.write("old.safetensors", "old").write("flat.csv", flat(4, 1));
    folder.pal(&["compile", "u.smt2", "--knots", "4", "--components", "1", "-o", "f.safetensors", "-q"]).done();
    folder.pal(&["model", "f.safetensors", "--params", "flat.csv", "-o", "m.safetensors", "-q"]).done();
    folder.pal(&["compile", "r.smt2", "--knots", "3", "--components", "1", "-o", "g.safetensors", "-q"]).done();
    folder.pal(&["model", "g.safetensors", "--random", "1", "--rows", "2", "-o", "s.safetensors", "-q"]).done();
    folder
}

fn unchanged(folder: &Folder) {
    assert_eq!(folder.read("old.safetensors"), b"old");
    let names = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().ends_with(".tmp")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn files_that_are_no_models() {
    let folder = folder("density-errors-files");
    folder.write("text.safetensors", "hello, this is no tensor").write("notes.txt", "hello");
    folder.write("cut.safetensors", &folder.read("m.safetensors")[..300]);
    let mut changed = folder.read("m.safetensors");
    *changed.last_mut().unwrap() ^= 1;
    folder.write("changed.safetensors", changed);
    folder.pal(&["integrate", "r.smt2", "--degree", "2", "-o", "eta.safetensors", "-q"]).done();
    std::fs::create_dir(folder.path().join("dir")).unwrap();
    for (file, message) in [
        ("nowhere.safetensors", "no such file"),
        ("dir", "this is a directory; give a .safetensors file"),
        ("text.safetensors", "not a safetensors file, or a damaged one; `pal compile` makes"),
        ("cut.safetensors", "not a safetensors file, or a damaged one; `pal compile` makes"),
        ("changed.safetensors", "the checksum does not match: the file was changed or damaged"),
        ("notes.txt", "not a model; `pal compile` makes a .safetensors file of a constraint, and `pal model` a model"),
        ("r.smt2", "not a model; `pal compile` makes"),
        ("eta.safetensors", "not a density file of this version: its version is `pal-moments-2`"),
        ("f.safetensors", "the file holds a compiled family without parameters; `pal model` adds some"),
    ] {
        let start = format!("pal: {file}: {message}");
        folder.pal(&["mode", file]).failed(&start);
        folder.pal(&["sample", file, "-o", "samples.csv"]).failed(&start);
        if file != "f.safetensors" {
            folder.pal(&["model", file, "--random", "1", "-o", "old.safetensors"]).failed(&start);
        }
    }
    for command in ["compile", "check"] {
        let output = if command == "compile" { &["-o", "old.safetensors"][..] } else { &[] };
        let run = folder.pal(&[&[command, "m.safetensors"], output].concat());
        run.failed("pal: m.safetensors: this is a compiled family or a model; give the constraint: a .smt2");
    }
    unchanged(&folder);
}

#[test]
fn parameters_that_do_not_fit() {
    let folder = folder("density-errors-params");
    let numbers = |count: usize, shape: &str| npy_file("<f8", false, shape, &vec![0; 8 * count]);
    folder
        .write("few.csv", "1,2,3\n")
        .write("nan.csv", format!("{}\n{}\n", flat(4, 1), flat(4, 1).replacen('1', "nan", 1)))
        .write("inf.csv", format!("a,b,c,d,e,f,g,h,i\n{}\n", flat(4, 1).replacen('1', "-inf", 2)))
        .write("zero.csv", "0,-1,-1,-1,-1,0,0,0,0\n")
        .write("ragged.csv", format!("{}\n1,2\n", flat(4, 1)))
        .write("text.csv", format!("{}\n\n0,1,1,one,1,0,0,0,0\n", flat(4, 1)))
        .write("empty.csv", "")
        .write("names.csv", "a,b,c,d,e,f,g,h,i\n")
        .write("semicolon.csv", "a;b\n1;2\n")
        .write("bool.npy", npy_file("|b1", false, "1, 9", &[0; 9]))
        .write("cube.npy", numbers(9, "1, 3, 3"))
        .write("cut.npy", numbers(8, "1, 9"))
        .write("wide.npy", numbers(10, "1, 10"))
        .write("not.npy", "1,2,3\n")
        .write("table.xlsx", "");
    for (table, message) in [
        ("few.csv", "3 columns per row, but the family has 9 parameters"),
        ("nan.csv", "row 1 (counted from 0), column 2: NaN; parameters must be finite"),
        ("inf.csv", "row 0 (counted from 0), column `b`: -inf; parameters must be finite"),
        ("zero.csv", "parameter row 0 gives a density of 0 everywhere"),
        ("ragged.csv", "line 2: 2 fields, but the first line has 9"),
        ("text.csv", "line 3, column 4: `one` is not a number"),
        ("empty.csv", "the file is empty"),
        ("names.csv", "no rows; give one row of parameters per density"),
        ("semicolon.csv", "line 2, column `a;b`: `1;2` is not a number; fields are separated by commas"),
        ("bool.npy", "values of type `|b1` are not read; float64, float32, int64 and int32 are"),
        ("cube.npy", "an array of shape (1, 3, 3) is no table"),
        ("cut.npy", "the file is cut short: 8 of 9 values are there"),
        ("wide.npy", "10 columns per row, but the family has 9 parameters"),
        ("not.npy", "this is not an .npy file"),
        ("table.xlsx", "tables are read from .csv or .npy files, or as CSV from `-`"),
        ("nowhere.csv", "no such file"),
    ] {
        let run = folder.pal(&["model", "f.safetensors", "--params", table, "-o", "old.safetensors"]);
        run.failed(&format!("pal: {table}: {message}"));
    }
    unchanged(&folder);
}

#[test]
fn constraints_and_settings_without_a_family() {
    let folder = folder("density-errors-compile");
    let reals = |names: &[&str]| -> String {
        names.iter().map(|v| format!("(declare-const {v} Real)(assert (<= 0 {v} 1))")).collect()
    };
    folder
        .write("empty.smt2", "(declare-const x Real)(assert (< x 0 x))")
        .write("point.smt2", "(declare-const x Real)(assert (= x 1))")
        .write("open.smt2", "(declare-const x Real)(assert (> x 0))")
        .write("five.smt2", reals(&["a", "b", "c", "d", "e"]))
        .write("four.smt2", reals(&["a", "b", "c", "d"]));
    for (file, options, message) in [
        ("empty.smt2", &[][..], "the region is empty and has no volume"),
        ("point.smt2", &[], "the region is a single point, so that no density exists on it"),
        ("open.smt2", &["--family", "sum-of-squares"], "the region is unbounded in direction x; add bounds"),
        (
            "five.smt2",
            &[],
            "--family spline is for 1 to 4 variables, the constraint has 5; use --family sum-of-squares or histogram",
        ),
        ("four.smt2", &["--knots", "40"], "the knots make 2313441 bins; at most 1000000 are possible: use fewer knots"),
        ("u.smt2", &["--knots", "1"], "1 knot per axis; give between 2 and"),
        ("u.smt2", &["--components", "0"], "0 components; give between 1 and"),
        ("u.smt2", &["--knots-at", "x=0,2,1"], "the knots along `x` must increase"),
        (
            "u.smt2",
            &["--knots-at", "x=0.5,1"],
            "the knots along `x` must enclose the constraint, which runs from 0 to 1",
        ),
        ("u.smt2", &["--knots-at", "z=0,1"], "--knots-at: no variable `z`; there is x"),
        ("u.smt2", &["--knots-at", "x=0,1", "--knots-at", "x=0,1"], "--knots-at: `x` is given twice"),
        (
            "r.smt2",
            &["--family", "sum-of-squares", "--degree", "9999"],
            "degree 9999 in 2 variables has too many monomials",
        ),
        ("r.smt2", &["--family", "sum-of-squares", "--components", "0"], "0 components; give between 1 and"),
        ("r.smt2", &["--family", "sum-of-squares", "--terms", "0"], "0 terms of 36; give between 1 and all of them"),
        ("r.smt2", &["--family", "histogram", "--bins", "0"], "--bins 0: give at least one bin per axis"),
        ("r.smt2", &["--family", "histogram", "--components", "0"], "0 components; give between 1 and"),
        (
            "r.smt2",
            &["--family", "histogram", "--knots-at", "x=0,2"],
            "the knots along `x` must enclose the constraint",
        ),
        ("nowhere.smt2", &[], "no such file"),
    ] {
        let run = folder.pal(&[&["compile", file, "-o", "old.safetensors"], options].concat());
        run.failed(&format!("pal: {file}: {message}"));
    }
    let compile = |extra: &[&str]| folder.pal(&[&["compile", "u.smt2"], extra].concat());
    compile(&["-o", "old.safetensors", "--degree", "3"])
        .failed("pal: --degree is for --family sum-of-squares; this family has --knots");
    compile(&["-o", "old.safetensors", "--family", "sum-of-squares", "--knots", "3"])
        .failed("pal: --knots is for --family spline; this family has --degree, --basis, --terms, --components");
    compile(&["-o", "old.safetensors", "--bins", "3"])
        .failed("pal: --bins is for --family histogram; this family has --knots, --knots-at, --components");
    compile(&["-o", "old.safetensors", "--family", "sum-of-squares", "--knots-at", "x=0,1"])
        .failed("pal: --knots-at is for --family spline or histogram");
    compile(&["-o", "old.safetensors", "--family", "histogram", "--check"])
        .failed("pal: --check is for --family sum-of-squares; this family has no basis of polynomials");
    compile(&["-o", "u.smt2"]).failed("pal: u.smt2: families and models are written as .safetensors");
    compile(&["-o", "no/f.safetensors"]).failed("pal: no/f.safetensors: cannot write: there is no folder `no`");
    std::fs::create_dir(folder.path().join("dir.safetensors")).unwrap();
    compile(&["-o", "dir.safetensors"]).failed("pal: dir.safetensors: cannot write: this is a directory");
    // In four dimensions the default is small enough.
    folder.pal(&["compile", "four.smt2", "-o", "four.safetensors", "--components", "1", "-q"]).done();
    unchanged(&folder);
}

#[test]
fn questions_without_an_answer() {
    let folder = folder("density-errors-questions");
    folder.write("xz.csv", "x,z\n1,2\n").write("three.csv", "1,2,3\n").write("nan.csv", "x,y\n0,0\n0,nan\n");
    for (command, message) in [
        (
            &["query", "--event", "(<= z 0)"][..],
            "--event \"(<= z 0)\": column 5: `z` is not declared; the variables are x, y",
        ),
        (&["query", "--event", "(<= x"], "--event \"(<= x\": column 1: this `(` is never closed"),
        (&["query", "--event", "(<= x 0))"], "--event \"(<= x 0))\": column 9: this `)` closes nothing"),
        (
            &["query", "--event", "x < 1"],
            "--event \"x < 1\": column 3: this stands after the end of the term; write one term only; operators come first, as in (<= x 1)",
        ),
        (&["query", "--event", "(< (* x y) 1)"], "--event \"(< (* x y) 1)\": column 4: `(* x y)` is not linear"),
        (
            &["query", "--event", "true", "--condition", "(> x 1)"],
            "--condition, row 0: the condition has probability 0 under this density",
        ),
        (&["query", "--event", "true", "--row", "2"], "--row 2: the model has 2 rows, counted from 0"),
        (&["sample", "--condition", "(> x 1)"], "--condition, row 0: the condition has probability 0"),
        (
            &["mode", "--condition", "(= x 0)"],
            "--condition, row 0: the condition x = 0 has probability 0 under this density. To condition on the value of a \
             variable, use given: given(x=0), or --given x=0 in the program",
        ),
        (&["sample", "--given", "x=5"], "--given: the density of x = 5 is 0"),
        (&["sample", "--given", "z=5"], "--given: there is no variable `z`"),
        (&["moments", "--given", "x=0", "--given", "y=0"], "--given: all variables are given; leave at least one free"),
        (&["moments", "--poly", "x*z"], "--poly \"x*z\": column 3: unknown variable `z`; known variables: x, y"),
        (&["marginal", "--variable", "z"], "there is no variable `z`"),
        (&["marginal", "--variable", "x", "--quantiles", "1.5"], "--quantiles: 1.5 is not a probability"),
        (&["plot", "-o", "p.png", "--row", "7"], "--row 7: the model has 2 rows"),
        (&["plot", "-o", "p.png", "--event", "(< q 1)"], "--event \"(< q 1)\": column 4: `q` is not declared"),
        (
            &["plot", "-o", "p.png", "--row", "all"],
            "--row all: a picture shows one density; give the number of its row",
        ),
        (
            &["query", "--event", "(<= y 0)", "--given", "y=0"],
            "--event \"(<= y 0)\": column 5: `y` is not declared; the",
        ),
        (&["plot", "-o", "p.png", "--knots", "3"], "--knots is for constraints, and this is a model"),
    ] {
        let line = [&[command[0], "s.safetensors"], &command[1..]].concat();
        folder.pal(&line).failed(&format!("pal: s.safetensors: {message}"));
    }
    for (points, message) in [
        ("xz.csv", "there is no column `y`; the columns are x, z"),
        ("three.csv", "the table has no column names and 3 columns, but there are 2 variables, in this order: x, y"),
        ("nan.csv", "row 1 (counted from 0), `y`: NaN; give numbers"),
    ] {
        folder.pal(&["logprob", "s.safetensors", "--points", points]).failed(&format!("pal: {points}: {message}"));
    }
    let joint = folder.pal(&["marginal", "s.safetensors", "--variable", "x", "--variable", "y", "--at", "0"]);
    joint.failed("pal: --variable y: --at is for one variable; for the joint density of several give --points");
    folder.pal(&["sample", "-"]).failed("pal: -: families and models are read from files only");
    folder.pal(&["sample", "s.safetensors", "-o", "s.txt"]).failed("pal: s.txt: tables are written as .csv or .npy");
    folder
        .pal(&["sample", "s.safetensors", "-o", "no/s.csv"])
        .failed("pal: no/s.csv: cannot write: there is no folder");
    folder.pal(&["plot", "s.safetensors", "-o", "p.pdf"]).failed("pal: p.pdf: pictures are written as .png or .svg");
    folder.pal(&["plot", "r.smt2", "-o", "p.png", "--mode"]).failed("pal: r.smt2: --mode is for models");
    for (command, message) in [
        (&["sample", "-n", "0"][..], "at least 1"),
        (&["sample", "-n", "-1"], "at least 1"),
        (&["sample", "-n", "1.5"], "at least 1"),
        (&["sample", "--given", "x"], "such as x=1.5"),
        (&["sample", "--row", "-1"], "-1"),
        (&["sample", "--uniforms", "u.csv", "-n", "3"], "cannot be used with"),
        (&["query"], "--event <TERM>"),
        (&["marginal"], "--variable <VAR>"),
        (&["marginal", "--variable", "x", "--at", "a"], "not a number"),
        (&["moments", "--entropy", "--tolerance", "nan"], "at least 0"),
        (&["mode", "--gap", "-1"], "at least 0"),
        (&["plot", "-o", "p.png", "--samples", "0"], "0 is not in 1.."),
    ] {
        let run = folder.pal(&[&[command[0], "s.safetensors"], &command[1..]].concat());
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{command:?}");
        assert!(run.err.contains(message), "{command:?}: {}", run.err);
    }
    assert!(!folder.path().join("p.png").exists());
    unchanged(&folder);
}
