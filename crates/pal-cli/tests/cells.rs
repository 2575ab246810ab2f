//! `pal cells`: the stream, its limits and its end.

mod common;

use std::io::{BufRead, BufReader};

use common::{Folder, MAP, SQUARE_WITHOUT_TRIANGLE};
use serde_json::json;

/// `n` disjoint intervals per axis of the plane: n^2 cells of area 1.
fn checkerboard(n: usize) -> String {
    let axis = |name: &str| {
        let strips: Vec<String> = (0..n).map(|k| format!("(<= {} {name} {})", 2 * k, 2 * k + 1)).collect();
        format!("(assert (or false {}))", strips.join(" "))
    };
    format!("(declare-const x Real)(declare-const y Real){}{}", axis("x"), axis("y"))
}

#[test]
fn json_lines_describe_cells_simplices_and_the_summary() {
    let folder = Folder::new("cells-json");
    folder.write("r.smt2", SQUARE_WITHOUT_TRIANGLE);
    let lines = folder.pal(&["cells", "r.smt2", "--json", "--exact", "--triangulate"]).done().json_lines();
    let of = |kind: &str| lines.iter().filter(|line| line["type"] == kind).collect::<Vec<_>>();
    let (cells, simplices, summary) = (of("cell"), of("simplex"), lines.last().unwrap());
    assert_eq!((cells.len(), simplices.len()), (3, 5));
    assert_eq!(summary["type"], "summary");
    assert_eq!(
        (&summary["cells"], &summary["simplices"], &summary["stop"]),
        (&json!(3), &json!(5), &json!("complete"))
    );
    assert_eq!((&summary["volume"], &summary["volume_exact"]), (&json!(3.5), &json!("7/2")));
    let volumes: f64 = cells.iter().map(|cell| cell["volume"].as_f64().unwrap()).sum();
    assert_eq!(volumes, 3.5);
    for (index, cell) in cells.iter().enumerate() {
        assert_eq!(cell["index"], index);
        assert_eq!((&cell["bin"], &cell["booleans"]), (&json!(null), &json!({})));
        let vertices = cell["vertices"].as_array().unwrap();
        assert_eq!(vertices.len(), cell["vertices_exact"].as_array().unwrap().len());
        // Every vertex satisfies every half-space, with equality exactly on the facets that list it.
        let half_spaces = cell["half_spaces"].as_array().unwrap();
        for (half, on) in half_spaces.iter().zip(cell["facets"].as_array().unwrap()) {
            for (v, vertex) in vertices.iter().enumerate() {
                let dot: f64 = (0..2).map(|j| half["normal"][j].as_f64().unwrap() * vertex[j].as_f64().unwrap()).sum();
                let slack = half["offset"].as_f64().unwrap() - dot;
                assert!(slack >= 0.0 && (slack == 0.0) == on.as_array().unwrap().contains(&json!(v)));
            }
        }
    }
    for simplex in simplices {
        assert_eq!(simplex["vertices"].as_array().unwrap().len(), 3);
        let cell = cells[simplex["cell"].as_u64().unwrap() as usize];
        let corner = simplex["corners"][2].as_u64().unwrap() as usize;
        assert_eq!(simplex["vertices"][2], cell["vertices"][corner]);
    }
}

#[test]
fn knots_put_every_cell_into_a_bin() {
    let folder = Folder::new("cells-knots");
    folder.write("m.geojson", MAP);
    let lines = folder.pal(&["cells", "m.geojson", "--knots", "3", "--json"]).done().json_lines();
    for cell in lines.iter().filter(|line| line["type"] == "cell") {
        for axis in 0..2 {
            let low = 5.0 * cell["bin"][axis].as_f64().unwrap();
            let inside = |v: &serde_json::Value| (low..=low + 5.0).contains(&v[axis].as_f64().unwrap());
            assert!(cell["vertices"].as_array().unwrap().iter().all(inside), "{cell}");
        }
    }
    assert_eq!(lines.last().unwrap()["volume_exact"], "187/2");
    folder.pal(&["cells", "m.geojson", "--knots", "1"]).failed("pal: m.geojson: at least 2 knots per axis");
}

#[test]
fn limits_stop_with_exit_code_1_and_what_there_is() {
    let folder = Folder::new("cells-limit");
    folder.write("r.smt2", SQUARE_WITHOUT_TRIANGLE);
    let run = folder.pal(&["cells", "r.smt2", "--limit", "2", "--json"]);
    assert_eq!((run.code, run.err.as_str()), (1, ""));
    let lines = run.json_lines();
    assert_eq!((lines.len(), &lines[2]["stop"], &lines[2]["cells"]), (3, &json!("cell-limit"), &json!(2)));
    // The limit is not reached when there is nothing more to find.
    let all = folder.pal(&["cells", "r.smt2", "--limit", "3", "--json"]).done().json_lines();
    assert_eq!(all[3]["stop"], "complete");
    let late = folder.pal(&["cells", "r.smt2", "--time-limit", "0", "--json"]);
    assert_eq!((late.code, &late.json()["stop"], &late.json()["volume_exact"]), (1, &json!("time-limit"), &json!("0")));
    let text = folder.pal(&["cells", "r.smt2", "--limit", "1", "--time-limit", "1e300"]);
    assert_eq!(text.code, 1);
    assert!(text.out.ends_with("cell-limit\n") && text.out.contains("\n1 cell, volume"), "{}", text.out);
}

#[test]
fn text_shows_booleans_fractions_and_inequalities() {
    let folder = Folder::new("cells-text");
    let script = "(declare-const x Real)(declare-const b Bool)(assert (and b (<= (/ 1 3) x 1)))";
    let text = folder.write("r.smt2", script).pal(&["cells", "r.smt2"]).done().out;
    for part in
        ["cell 0: volume 2/3 ~ 0.6666666666666666, b = true", "(1/3)", "x <= 1", "1 cell, volume 2/3", "complete"]
    {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn an_unbounded_region_is_an_error() {
    let folder = Folder::new("cells-unbounded");
    folder.write("r.smt2", "(declare-const x Real)(assert (>= x 0))");
    folder.pal(&["cells", "r.smt2"]).failed("pal: r.smt2: the region is unbounded in direction x");
    folder.pal(&["cells", "r.smt2", "--knots", "4"]).failed("pal: r.smt2: the region is unbounded in direction x");
}

#[test]
fn a_region_without_volume_has_no_cells() {
    let folder = Folder::new("cells-none");
    let run =
        folder.write("r.smt2", "(declare-const x Real)(assert (= x 0))").pal(&["cells", "r.smt2", "--json"]).done();
    assert_eq!((&run.json()["cells"], &run.json()["volume_exact"]), (&json!(0), &json!("0")));
}

#[test]
fn the_number_of_threads_does_not_show() {
    let folder = Folder::new("cells-threads");
    folder.write("r.smt2", checkerboard(12)).write("m.geojson", MAP);
    for arguments in [&["cells", "r.smt2", "--json", "--triangulate"][..], &["check", "m.geojson", "--json"]] {
        let run = |threads: &str| {
            let mut lines = folder.pal(&[arguments, &["--threads", threads]].concat()).done().json_lines();
            lines.last_mut().unwrap().as_object_mut().unwrap().remove("seconds");
            lines
        };
        assert_eq!(run("1"), run("2"));
    }
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let folder = Folder::new("cells-pipe");
    folder.write("r.smt2", checkerboard(60));
    let mut child = folder.command(&["cells", "r.smt2", "--json"]).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    assert!(first.starts_with("{\"type\":\"cell\",\"index\":0"));
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

/// Ctrl-C while the reader waits: a summary follows, and the exit code is 1.
#[cfg(unix)]
#[test]
fn ctrl_c_ends_with_a_summary() {
    let folder = Folder::new("cells-interrupt");
    folder.write("r.smt2", checkerboard(60));
    let mut child = folder.command(&["cells", "r.smt2", "--json"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    // The pipe holds far less than all cells, so the program cannot have finished.
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    std::thread::sleep(std::time::Duration::from_millis(100));
    let last: serde_json::Value = serde_json::from_str(&lines.last().unwrap().unwrap()).unwrap();
    assert_eq!(last["stop"], "interrupted");
    assert!(last["cells"].as_u64().unwrap() < 3600);
    assert_eq!(child.wait().unwrap().code(), Some(1));
}
