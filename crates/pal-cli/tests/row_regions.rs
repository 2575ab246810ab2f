//! `pal train` where every row has a region of its own: windows of a map, and maps that rows name. Trained networks are
//! evaluated, turned into densities and asked, from files to files.

mod common;

use common::density::{number, rows};
use common::{Folder, MAP};
use pal::random::Stream;

/// Whether a place is on the free part of the map `MAP`, moved by an offset, with some tolerance.
fn is_free([x, y]: [f64; 2], offset: [f64; 2], tolerance: f64) -> bool {
    let (x, y) = (x - offset[0], y - offset[1]);
    let within = |low: f64, value: f64, high: f64| low + tolerance < value && value < high - tolerance;
    let first = within(1.0, x, 3.0) && within(1.0, y, 4.0);
    let second = x > 5.0 + tolerance && y > 5.0 + tolerance && x + y < 11.0 - tolerance;
    within(0.0, x, 10.0 + 2.0 * tolerance) && within(0.0, y, 10.0 + 2.0 * tolerance) && !first && !second
}

/// Walkers who look ahead and go at most 0.8 ahead and 0.3 to each side, uniformly; x1 and y1 are where they were.
fn walks(count: usize, seed: u64, offset: [f64; 2]) -> String {
    let mut stream = Stream::new(seed, 0);
    let mut table = "track,x0,y0,hx,hy,x1,y1,x,y\n".to_string();
    let mut written = 0;
    while written < count {
        // Short binary fractions, so that a moved map has exactly moved rows.
        let [cx, cy] = [0, 1].map(|_| (stream.unit() * 1e4).floor() / 1024.0);
        let angle = stream.unit() * std::f64::consts::TAU;
        let (hx, hy) = (angle.cos(), angle.sin());
        let (ahead, left) = (0.8 * stream.unit(), 0.6 * stream.unit() - 0.3);
        let place = |u: f64, v: f64| [cx + hx * u - hy * v, cy + hx * v + hy * u].map(|x| (x * 1e6).round() / 1e6);
        let (before, after) = (place(-0.5, 0.0), place(ahead, left));
        if is_free([cx, cy], [0.0; 2], 1e-6) && is_free(after, [0.0; 2], 1e-5) {
            let [ox, oy] = offset;
            let numbers =
                [cx + ox, cy + oy, 3.0 * hx, 3.0 * hy, before[0] + ox, before[1] + oy, after[0] + ox, after[1] + oy];
            let numbers: Vec<String> = numbers.iter().map(f64::to_string).collect();
            table += &format!("t{},{}\n", written / 4, numbers.join(","));
            written += 1;
        }
    }
    table
}

const TRAIN: [&str; 30] = [
    "train",
    "--constraint",
    "map.geojson",
    "--data",
    "train.csv",
    "--val-data",
    "val.csv",
    "--windows",
    "1",
    "--centre",
    "x0,y0",
    "--heading",
    "hx,hy",
    "--inputs",
    "x1,y1",
    "--places",
    "x1,y1",
    "--outputs",
    "x,y",
    "--hidden",
    "8",
    "--violation-samples",
    "5000",
    "--epochs",
    "40",
    "--batch",
    "100",
    "--json",
    "-o",
    "net.safetensors",
];
const SMALL: [&str; 4] = ["--knots", "6", "--components", "3"];

fn walkers(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder
        .write("map.geojson", MAP)
        .write("train.csv", walks(1500, 1, [0.0; 2]))
        .write("val.csv", walks(400, 2, [0.0; 2]));
    folder
}

#[test]
fn windows_are_learnt_and_asked() {
    let folder = walkers("windows");
    let report = folder.pal(&[&TRAIN[..], &SMALL, &["--learning-rate", "0.01"]].concat()).done().json();
    // Walkers are uniform on 0.48 of a window of 4; splines are smooth, so that they reach the truth from below.
    let (truth, uniform) = (-0.48f64.ln(), -4f64.ln());
    let val = number(&report, "/val_ll");
    assert!(val > uniform + 1.3 && val < truth + 0.1, "{report}");
    assert_eq!((&report["outside"], &report["half_width"]), (&0.into(), &serde_json::json!([1.0, 1.0])));
    // Evaluation by itself finds the same, with one log-density for each row.
    let eval = ["eval", "net.safetensors", "--data", "val.csv", "--violation-samples", "2000", "--json"];
    let again = folder.pal(&[&eval[..], &["-o", "logs.csv"]].concat()).done().json();
    assert!((number(&again, "/ll") - val).abs() < 1e-9 && again["outside"] == 0, "{again}");
    let logs = rows(&String::from_utf8(folder.read("logs.csv")).unwrap());
    // The same walks on the same map elsewhere: nothing is different in local coordinates.
    let far = [128.0, -64.0];
    let moved = MAP.replace("[0, 0, 10, 10]", "[128, -64, 138, -54]");
    let moved = ["[[1,1],[3,1],[3,4],[1,4],[1,1]]", "[[5,5],[6,5],[5,6],[5,5]]"].iter().fold(moved, |text, ring| {
        let corners: Vec<[f64; 2]> = serde_json::from_str(ring).unwrap();
        text.replace(
            ring,
            &serde_json::to_string(&corners.iter().map(|[x, y]| [x + far[0], y + far[1]]).collect::<Vec<_>>()).unwrap(),
        )
    });
    folder.write("moved.geojson", moved).write("moved.csv", walks(400, 2, far));
    let elsewhere = ["eval", "net.safetensors", "--constraint", "moved.geojson", "--data", "moved.csv"];
    let elsewhere = folder.pal(&[&elsewhere[..], &["--violation-samples", "2000", "--json"]].concat()).done().json();
    assert!((number(&elsewhere, "/ll") - val).abs() < 1e-4 && elsewhere["outside"] == 0, "{elsewhere} {val}");
    // Densities of rows, which all commands take.
    folder.pal(&["predict", "net.safetensors", "--data", "val.csv", "-o", "d.safetensors", "--quiet"]).done();
    let sampled = folder.pal(&["sample", "d.safetensors", "--row", "all", "-n", "20", "--seed", "3"]).done();
    let local = rows(&sampled.out);
    assert!(local.len() == 8000 && local.iter().all(|row| row[1].abs() <= 1.0 && row[2].abs() <= 1.0));
    let ahead = local.iter().filter(|row| row[1] > 0.0).count() as f64 / 8000.0;
    assert!(ahead > 0.8, "{ahead}");
    let on_map = ["sample", "d.safetensors", "--row", "all", "-n", "20", "--seed", "3", "--map-coordinates"];
    let places = rows(&folder.pal(&on_map).done().out);
    let data = String::from_utf8(folder.read("val.csv")).unwrap();
    let centres: Vec<Vec<f64>> =
        data.lines().skip(1).map(|line| line.split(',').skip(1).map(|x| x.parse().unwrap()).collect()).collect();
    for (place, local) in places.iter().zip(&local) {
        assert!(is_free([place[1], place[2]], [0.0; 2], 1e-9), "{place:?}");
        let own = &centres[place[0] as usize];
        let distance = (place[1] - own[0]).hypot(place[2] - own[1]);
        assert!((distance - local[1].hypot(local[2])).abs() < 1e-12);
    }
    let events = ["query", "d.safetensors", "--row", "all", "--event", "(>= x 0)", "--event", "(>= x 2)", "--json"];
    let answers = folder.pal(&events).done().json_lines();
    assert_eq!(answers.len(), 800);
    // The log-density of a row at its own point, which is (x, y) - (x0, y0) turned by the heading.
    let own = &centres[7];
    let (dx, dy, length) = (own[6] - own[0], own[7] - own[1], own[2].hypot(own[3]));
    let point = [(own[2] * dx + own[3] * dy) / length, (own[2] * dy - own[3] * dx) / length];
    folder.write("point.csv", format!("x,y\n{},{}\n", point[0], point[1]));
    let one = folder.pal(&["logprob", "d.safetensors", "--row", "7", "--points", "point.csv"]).done();
    assert!((rows(&one.out)[0][2] - logs[7][0]).abs() < 1e-4, "{} {:?}", one.out, logs[7]);
    folder.pal(&["mode", "d.safetensors", "--row", "7", "--json"]).done();
    let moments = folder.pal(&["moments", "d.safetensors", "--row", "all", "--json"]).done().json_lines();
    assert_eq!(moments.len(), 400);
    folder.pal(&["marginal", "d.safetensors", "--row", "7", "--variable", "x", "-o", "m.csv", "--quiet"]).done();
    folder.pal(&["plot", "d.safetensors", "--row", "7", "-o", "p.svg", "--quiet"]).done();
    folder
        .pal(&["eval", "d.safetensors", "--data", "val.csv"])
        .failed("pal: d.safetensors: the densities of this model have regions of their own");
}

#[test]
fn kernels_learn_windows_and_are_asked() {
    let folder = walkers("windows-kernels");
    let kernels = ["--family", "kernel", "--components", "3", "--learning-rate", "0.01"];
    let report = folder.pal(&[&TRAIN[..], &kernels].concat()).done().json();
    let (truth, uniform) = (-0.48f64.ln(), -4f64.ln());
    let val = number(&report, "/val_ll");
    assert!(val > uniform + 1.3 && val < truth + 0.1, "{report}");
    assert_eq!(report["outside"], 0);
    let eval = ["eval", "net.safetensors", "--data", "val.csv", "--violation-samples", "2000", "--json"];
    let again = folder.pal(&[&eval[..], &["-o", "logs.csv"]].concat()).done().json();
    assert!((number(&again, "/ll") - val).abs() < 1e-9 && again["outside"] == 0, "{again}");
    let logs = rows(&String::from_utf8(folder.read("logs.csv")).unwrap());
    folder.pal(&["predict", "net.safetensors", "--data", "val.csv", "-o", "d.safetensors", "--quiet"]).done();
    let on_map = ["sample", "d.safetensors", "--row", "all", "-n", "5", "--seed", "3", "--map-coordinates"];
    let places = rows(&folder.pal(&on_map).done().out);
    assert!(places.len() == 2000 && places.iter().all(|place| is_free([place[1], place[2]], [0.0; 2], 1e-9)));
    let data = String::from_utf8(folder.read("val.csv")).unwrap();
    let own: Vec<f64> = data.lines().nth(8).unwrap().split(',').skip(1).map(|x| x.parse().unwrap()).collect();
    let (dx, dy, length) = (own[6] - own[0], own[7] - own[1], own[2].hypot(own[3]));
    let point = [(own[2] * dx + own[3] * dy) / length, (own[2] * dy - own[3] * dx) / length];
    folder.write("point.csv", format!("x,y\n{},{}\n", point[0], point[1]));
    let one = folder.pal(&["logprob", "d.safetensors", "--row", "7", "--points", "point.csv"]).done();
    assert!((rows(&one.out)[0][2] - logs[7][0]).abs() < 1e-4, "{} {:?}", one.out, logs[7]);
    // Halves of a window have all of its mass.
    let halves = ["query", "d.safetensors", "--row", "7", "--event", "(>= x 0)", "--event", "(<= x 0)", "--json"];
    let halves = folder.pal(&halves).done().json_lines();
    let sum: f64 = halves.iter().map(|line| number(line, "/probability")).sum();
    assert!((sum - 1.0).abs() < 1e-12, "{halves:?}");
    folder.pal(&["mode", "d.safetensors", "--row", "7", "--json"]).done();
    folder.pal(&["moments", "d.safetensors", "--row", "7", "--json"]).done();
    folder.pal(&["marginal", "d.safetensors", "--row", "7", "--variable", "x", "-o", "m.csv", "--quiet"]).done();
    folder
        .pal(&["plot", "d.safetensors", "--row", "7", "-o", "p.svg", "--quiet"])
        .failed("pal: d.safetensors: kernels are drawn in Python");
    // A flipped bit is noticed.
    let mut bytes = folder.read("d.safetensors");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    folder.write("d.safetensors", bytes).pal(&["mode", "d.safetensors"]).failed("pal: d.safetensors: the checksum");
}

#[test]
fn baselines_see_the_same_rows_and_leave_the_windows() {
    let folder = walkers("windows-mdn");
    let baseline = ["--baseline", "mdn", "--components", "3"];
    let report = folder.pal(&[&TRAIN[..], &baseline].concat()).done().json();
    assert!(number(&report, "/val_ll") > -1.0 && number(&report, "/violation") > 0.0, "{report}");
    folder
        .pal(&[&TRAIN[..], &["--baseline", "dsp", "--restart"]].concat())
        .failed("pal: --baseline dsp relaxes one constraint for all rows");
}

#[test]
fn what_is_wrong_with_windows_is_said() {
    let folder = walkers("windows-errors");
    let with = |changes: &[(&str, &str)]| {
        let mut all: Vec<&str> = TRAIN.to_vec();
        for (option, value) in changes {
            match all.iter().position(|text| text == option) {
                Some(at) => all[at + 1] = value,
                None => all.extend([*option, *value]),
            }
        }
        folder.pal(&all)
    };
    with(&[("--windows", "0")]).failed("pal: --windows: a half width of windows is 0; it must be a positive number");
    with(&[("--windows", "1,2,3")]).failed("pal: --windows: 3 half widths of windows, but there are 2 variables");
    with(&[("--centre", "x0")]).failed("pal: --windows: 1 columns for the centre");
    with(&[("--places", "x0,y0")]).failed("pal: --windows: the column `x0` for a place of the map is not an input");
    with(&[("--centre", "x0,nowhere")]).failed("pal: train.csv: there is no column `nowhere`");
    with(&[("--family", "histogram")]).failed("pal: --family histogram: rows can have regions of their own with");
    with(&[("--constraint", ".")]).failed("pal: .: this is a directory; --constraint-column names the column");
    with(&[("--constraint-column", "track")]).failed("pal: map.geojson: this is a file; with the column `track`");
    with(&[("--windows", "0.25")]).failed("pal: train.csv: ");
    folder.write("zero.csv", "x0,y0,hx,hy,x1,y1,x,y\n8,8,0,0,7,8,8,8\n8,8,1,0,7,8,8,8\n2,2,1,0,7,8,2,2\n");
    let told = with(&[("--data", "zero.csv")]).failed("pal: zero.csv: 2 of 3 rows cannot be used");
    assert!(
        told.err.contains("line 2: the heading `hx,hy` is 0") && told.err.contains("line 4: outside the constraint")
    );
    // A window without free space has no density.
    let mut all = TRAIN.to_vec();
    all.extend(["--knots", "4", "--components", "1", "--epochs", "1"]);
    let epochs = all.iter().position(|text| *text == "--epochs").unwrap();
    all.drain(epochs..epochs + 2);
    folder.pal(&all).done();
    folder.write("inside.csv", "x0,y0,hx,hy,x1,y1\n8,8,1,0,7,8\n2,2.5,1,0,1,2.5\n");
    folder
        .pal(&["predict", "net.safetensors", "--data", "inside.csv", "-o", "d.safetensors"])
        .failed("pal: inside.csv: line 3: the region of the row has no volume");
}

/// The map as a file of a folder: a square of some width, whose rows are uniform in it.
fn square(width: u32) -> String {
    format!(
        r#"{{"type": "FeatureCollection", "features": [{{"type": "Feature", "properties": {{}}, "geometry":
           {{"type": "Polygon", "coordinates": [[[0,0],[{width},0],[{width},{width}],[0,{width}],[0,0]]]}}}}]}}"#
    )
}

#[test]
fn rows_name_their_maps() {
    let folder = Folder::new("maps");
    std::fs::create_dir(folder.path().join("maps")).unwrap();
    for width in [1, 2, 4] {
        folder.write(&format!("maps/s{width}.geojson"), square(width));
    }
    let mut stream = Stream::new(5, 0);
    let mut table = |widths: &[u32], count: usize| {
        let mut text = "map,a,x,y\n".to_string();
        for k in 0..count {
            let width = widths[k % widths.len()];
            let [x, y] = [0, 1].map(|_| stream.unit() * f64::from(width));
            text += &format!("s{width},{},{x},{y}\n", stream.normal());
        }
        text
    };
    folder
        .write("train.csv", table(&[1, 4], 1200))
        .write("val.csv", table(&[1, 4], 400))
        .write("new.csv", table(&[2], 300));
    let train = [
        "train",
        "--constraint",
        "maps",
        "--meaning",
        "walkable",
        "--constraint-column",
        "map",
        "--data",
        "train.csv",
        "--val-data",
        "val.csv",
        "--inputs",
        "a",
        "--outputs",
        "x,y",
        "--hidden",
        "8",
        "--violation-samples",
        "4000",
        "--epochs",
        "15",
        "--json",
        "-o",
        "net.safetensors",
    ];
    let plain = ["--head", "plain", "--learning-rate", "0.01"];
    let report = folder.pal(&[&train[..], &SMALL, &plain].concat()).done().json();
    // Uniform on 1 and on 16, in equal parts.
    let truth = -16f64.ln() / 2.0;
    assert!((number(&report, "/val_ll") - truth).abs() < 0.1 && report["outside"] == 0, "{report}");
    // A map that training has not seen.
    let eval = ["eval", "net.safetensors", "--data", "new.csv", "--violation-samples", "4000", "--json"];
    folder.pal(&eval).failed("pal: net.safetensors: the column `map` names the map of each row");
    let maps = ["--constraint", "maps", "--meaning", "walkable"];
    let unseen = folder.pal(&[&eval[..], &maps].concat()).done().json();
    assert!((number(&unseen, "/ll") + 4f64.ln()).abs() < 0.1 && unseen["outside"] == 0, "{unseen}");
    folder
        .pal(
            &[&["predict", "net.safetensors", "--data", "new.csv", "-o", "d.safetensors", "--quiet"][..], &maps]
                .concat(),
        )
        .done();
    let samples = rows(&folder.pal(&["sample", "d.safetensors", "--row", "all", "-n", "5"]).done().out);
    assert!(samples.len() == 1500 && samples.iter().all(|row| row[1] <= 2.0 && row[2] <= 2.0));
    let lost = String::from_utf8(folder.read("new.csv")).unwrap().replacen("s2", "s3", 1);
    folder.write("lost.csv", lost);
    folder
        .pal(&[&["eval", "net.safetensors", "--data", "lost.csv"][..], &maps].concat())
        .failed("pal: lost.csv: line 2: maps/s3: no such file");
    let without: Vec<&str> = train.iter().copied().filter(|text| !["--outputs", "x,y"].contains(text)).collect();
    folder.pal(&without).failed("pal: --constraint-column: the maps are read row by row");
}

#[test]
fn the_same_seed_gives_the_same_network() {
    let folder = walkers("windows-seed");
    let short = [&TRAIN[..], &SMALL].concat();
    folder.pal(&short).done();
    let bytes = folder.read("net.safetensors");
    folder.pal(&short).done();
    assert!(bytes == folder.read("net.safetensors"));
}
