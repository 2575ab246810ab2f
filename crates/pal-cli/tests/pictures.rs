//! `pal plot` and `pal demo`: the pictures are there, decode, and show what they should.

mod common;

use common::{Folder, MAP, SQUARE_WITHOUT_TRIANGLE};

/// Width, height and pixels of a PNG.
fn decode(bytes: &[u8]) -> (u32, u32, Vec<u8>) {
    assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    (info.width, info.height, pixels)
}

#[test]
fn a_png_shows_the_cells_where_they_are() {
    let folder = Folder::new("plot-png");
    folder.write("r.smt2", SQUARE_WITHOUT_TRIANGLE);
    let run = folder.pal(&["plot", "r.smt2", "-o", "r.png", "--width", "720"]).done();
    assert_eq!(run.out, "r.png: 3 cells\n");
    let (width, height, pixels) = decode(&folder.read("r.png"));
    assert_eq!(width, 720);
    let at = |x: u32, y: u32| {
        let k = 3 * (y * width + x) as usize;
        [pixels[k], pixels[k + 1], pixels[k + 2]]
    };
    // The middles of the left, lower right and upper right cells have three different colours, and none is white.
    let (left, lower, upper) = (at(200, 300), at(550, 500), at(640, 100));
    assert!(left != lower && lower != upper && left != upper);
    assert!([left, lower, upper].iter().all(|c| c.iter().min() < c.iter().max()));
    assert_eq!(at(2, 2), [255, 255, 255]);
    assert!(height > 600);
    let y_down = folder.pal(&["plot", "r.smt2", "-o", "d.png", "--width", "720", "--y-down"]).done();
    assert_eq!(y_down.out, "d.png: 3 cells\n");
    assert_ne!(folder.read("d.png"), folder.read("r.png"));
}

#[test]
fn an_svg_has_shapes_labels_and_the_width_asked_for() {
    let folder = Folder::new("plot-svg");
    folder.write("m.geojson", MAP);
    let draw = |extra: &[&str]| {
        folder.pal(&[&["plot", "m.geojson", "-o", "m.svg", "--width", "500", "--quiet"], extra].concat()).done();
        String::from_utf8(folder.read("m.svg")).unwrap()
    };
    let plain = draw(&["--title", "Fish & <chips>"]);
    assert!(plain.starts_with("<svg width=\"500\"") && plain.trim_end().ends_with("</svg>"));
    let polygons = |svg: &str| svg.matches("<polygon").count();
    let cells = folder.pal(&["cells", "m.geojson", "--json"]).done().json_lines().len() - 1;
    assert_eq!(polygons(&plain), cells);
    assert!(plain.contains("Fish &amp; &lt;chips&gt;"));
    for label in ["\nx\n", "\ny\n", "\n0\n", "\n10\n"] {
        assert!(plain.contains(label), "{label}");
    }
    let lines = |svg: &str| svg.matches("<polyline").count();
    assert!(lines(&draw(&["--triangulate"])) > lines(&plain));
    assert!(polygons(&draw(&["--knots", "5"])) > cells);
    assert!(lines(&draw(&["--no-cells"])) < lines(&plain));
}

#[test]
fn one_dimension_is_an_interval_picture() {
    let folder = Folder::new("plot-line");
    folder.write("r.smt2", "(declare-const t Real)(assert (or (<= 0 t 1) (<= 2 t 4)))");
    let run = folder.pal(&["plot", "r.smt2", "-o", "r.png", "--json"]).done();
    assert_eq!((run.json()["cells"].as_u64(), run.json()["output"].as_str()), (Some(2), Some("r.png")));
    let (width, height, _) = decode(&folder.read("r.png"));
    assert!(width == 1080 && height < 400);
}

#[test]
fn what_cannot_be_drawn_leaves_the_old_picture() {
    let folder = Folder::new("plot-errors");
    folder.write("old.png", "old");
    folder
        .write("r3.smt2", "(declare-const x Real)(declare-const y Real)(declare-const z Real)(assert (<= 0 x y z 1))");
    folder.write("empty.smt2", "(declare-const x Real)(assert (< x 0 x))");
    folder.write("open.smt2", "(declare-const x Real)(assert (< x 0))");
    let far = format!("1{}", "0".repeat(300));
    folder.write("far.smt2", format!("(declare-const x Real)(assert (<= {far} x (+ {far} 1)))"));
    let fails = |file: &str, start: &str| folder.pal(&["plot", file, "-o", "old.png"]).failed(start).err;
    assert!(fails("r3.smt2", "pal: r3.smt2: a picture needs").contains("this one has 3"));
    fails("empty.smt2", "pal: empty.smt2: nothing to draw: the region is empty");
    fails("open.smt2", "pal: open.smt2: the region is unbounded");
    fails("far.smt2", "pal: far.smt2: the region is too small, too large or too far away");
    assert_eq!(folder.read("old.png"), b"old");
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 5, "a temporary file was left behind");
}

#[test]
fn the_demo_needs_no_input() {
    let folder = Folder::new("demo");
    let rows = folder.pal(&["demo", "--json", "-o", "new/pictures"]).done().json_lines();
    let area = |k: usize| rows[k]["area"].as_f64().unwrap();
    assert_eq!((rows.len(), &rows[0]["area_exact"]), (7, &serde_json::json!("7/2")));
    let kinds: Vec<&str> = rows.iter().map(|row| row["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["region", "region", "region", "density", "density", "fit", "fit"]);
    assert!(rows[3..5].iter().all(|row| row["gap"].as_f64().unwrap() <= 1e-6));
    // The fit stays on the map and is at least as likely as the mixture, which does not.
    let (fit, mixture) = (&rows[5], &rows[6]);
    assert_eq!((&fit["outside"], &fit["samples"]), (&0.into(), &1_000_000.into()));
    assert!(mixture["violation"].as_f64().unwrap() > 0.005, "{mixture}");
    assert!(fit["test_ll"].as_f64().unwrap() >= mixture["test_ll"].as_f64().unwrap(), "{fit} {mixture}");
    // Seven points: 7 R r sin(pi/7), with the notches at r = R cos(3 pi/7) / cos(2 pi/7).
    let angle = std::f64::consts::PI / 7.0;
    let star = 7.0 * 100.0 * (3.0 * angle).cos() / (2.0 * angle).cos() * angle.sin();
    assert!((area(2) / star - 1.0).abs() < 1e-6, "{} {star}", area(2));
    let drawn = rows[..5].iter().flat_map(|row| row["pictures"].as_array().unwrap());
    for picture in drawn.chain(rows[5..].iter().map(|row| &row["picture"])) {
        assert_eq!(decode(&folder.read(picture.as_str().unwrap())).0, 1080);
    }
    // The map can be used as an input, and says the same.
    let report = folder.pal(&["check", "new/pictures/campus.geojson", "--json"]).done().json();
    assert_eq!((&report["volume_exact"], &report["cells"]), (&rows[1]["area_exact"], &rows[1]["cells"]));
    // The model too, and it says the same.
    let query = ["query", "new/pictures/campus-model.safetensors", "--event", "(< x 60)", "--json"];
    let (asked, drawn) = (&folder.pal(&query).done().json()["probability"], &rows[3]["probability"]);
    assert!((asked.as_f64().unwrap() - drawn.as_f64().unwrap()).abs() < 1e-12);
}
