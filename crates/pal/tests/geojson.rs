//! Maps in GeoJSON, read from outside the crate.

use pal::formula::{Constraint, GeoJsonError, GeoJsonOptions, Meaning, Membership, parse_geojson};
use pal::number::{Rational, from_f64, parse_rational};

fn options(meaning: Meaning) -> GeoJsonOptions {
    GeoJsonOptions { meaning, bounds: None }
}

fn read(text: &str, meaning: Meaning) -> Result<Constraint, GeoJsonError> {
    parse_geojson(text, &options(meaning))
}

fn members(text: &str, meaning: Meaning) -> Membership {
    read(text, meaning).unwrap_or_else(|error| panic!("{error}")).membership().unwrap()
}

#[track_caller]
fn refuses(text: &str, wanted: &str) {
    match read(text, Meaning::Walkable) {
        Ok(constraint) => panic!("read as {}", constraint.formula),
        Err(error) => assert!(error.to_string().contains(wanted), "{error}"),
    }
}

fn collection(members: &str, geometries: &[&str]) -> String {
    let features: Vec<String> =
        geometries.iter().map(|g| format!(r#"{{"type": "Feature", "properties": {{}}, "geometry": {g}}}"#)).collect();
    format!(r#"{{"type": "FeatureCollection"{members}, "features": [{}]}}"#, features.join(",\n"))
}

const SQUARE: &str = r#"{"type": "Polygon", "coordinates": [[[1, 1], [3, 1], [3, 3], [1, 3], [1, 1]]]}"#;

#[test]
fn forbidden_is_the_complement_within_bounds() {
    let map = collection(r#", "bounds": [0, 0, 5, 5]"#, &[SQUARE]);
    let free = members(&map, Meaning::Forbidden);
    for (point, wanted) in [
        ([0.0, 0.0], true),
        ([5.0, 5.0], true),
        ([5.0f64.next_up(), 5.0], false),
        ([2.0, 2.0], false),
        ([1.0, 2.0], false),
        ([1.0f64.next_down(), 2.0], true),
        ([3.0, 3.0], false),
        ([3.0, 3.0f64.next_up()], true),
    ] {
        assert_eq!(free.contains(&point), wanted, "{point:?}");
    }
    let walkable = members(&map, Meaning::Walkable);
    assert!(walkable.contains(&[1.0, 2.0]) && !walkable.contains(&[0.5, 2.0]));
}

#[test]
fn every_container_is_read() {
    let feature = format!(r#"{{"type": "Feature", "geometry": {SQUARE}}}"#);
    let multi = r#"{"type": "MultiPolygon", "coordinates": [[[[1,1],[3,1],[3,3],[1,3]]], [[[7,7],[9,7],[7,9]]]]}"#;
    let nested = format!(
        r#"{{"type":"GeometryCollection","geometries":[{{"type":"GeometryCollection","geometries":[{multi}]}}]}}"#
    );
    for text in [SQUARE, &feature, &format!("\u{feff}{SQUARE}\n"), multi, &nested, &collection("", &["null", multi])] {
        let inside = members(text, Meaning::Walkable);
        assert!(inside.contains(&[2.0, 2.0]) && !inside.contains(&[5.0, 5.0]), "{text}");
        assert_eq!(inside.contains(&[7.5, 7.5]), text.contains("Multi"), "{text}");
    }
}

#[test]
fn holes_touching_and_overlapping_polygons() {
    let frame =
        r#"{"type": "Polygon", "coordinates": [[[0,0],[8,0],[8,8],[0,8],[0,0]], [[2,2],[2,6],[6,6],[6,2],[2,2]]]}"#;
    let island = r#"{"type": "Polygon", "coordinates": [[[2,2],[4,2],[4,4],[2,4]]]}"#;
    let inside = members(&collection("", &[frame, island]), Meaning::Walkable);
    for (point, wanted) in [
        ([1.0, 1.0], true),
        ([2.0, 5.0], true),
        ([3.0, 3.0], true),
        ([4.0, 4.0], true),
        ([4.0f64.next_up(), 4.0], false),
        ([6.0, 6.0], true),
        ([6.0f64.next_down(), 6.0f64.next_down()], false),
    ] {
        assert_eq!(inside.contains(&point), wanted, "{point:?}");
    }
}

#[test]
fn obstacles_keep_the_order_of_the_file() {
    let tall = SQUARE.replace('3', "4");
    let text = read(&collection(r#", "bounds": [0,0,9,9]"#, &[&tall, SQUARE]), Meaning::Forbidden).unwrap();
    assert_eq!(
        text.formula.to_string(),
        "x >= 0 & x <= 9 & y >= 0 & y <= 9 & !(y >= 1 & x <= 4 & y <= 4 & x >= 1) \
         & !(y >= 1 & x <= 3 & y <= 3 & x >= 1)"
    );
}

#[test]
fn numbers_keep_every_digit() {
    let map = r#"{"type": "Polygon", "coordinates": [[[0.1, 0], [1e-3, 2.50E+1], [0.10000000000000000000000001, 0]]]}"#;
    let constraint = read(map, Meaning::Walkable).unwrap();
    let planes = constraint.formula.to_string();
    assert!(planes.contains("y >= 0"), "{planes}");
    let square = r#"{"type":"Polygon","coordinates":[[[0.1,0],[0.3,0],[0.3,1],[0.1,1]]]}"#;
    assert_eq!(read(square, Meaning::Walkable).unwrap().formula.to_string(), "y >= 0 & 10*x <= 3 & y <= 1 & 10*x >= 1");
    // The float64 0.1 is a little more than 1/10 and the float64 0.3 a little less than 3/10: both are members.
    let inside = members(square, Meaning::Walkable);
    assert!(inside.contains(&[0.1, 0.5]) && !inside.contains(&[0.1f64.next_down(), 0.5]));
    assert!(inside.contains(&[0.3, 0.5]) && !inside.contains(&[0.3f64.next_up(), 0.5]));
    refuses(
        r#"{"type":"Polygon","coordinates":[[[1e99999,0],[0.3,0],[0.3,1]]]}"#,
        "exponent of `1e99999` is too large",
    );
}

#[test]
fn altitudes_are_ignored() {
    let inside = members(&SQUARE.replace("[3, 3]", "[3, 3, 120.5]"), Meaning::Walkable);
    assert!(inside.contains(&[3.0, 3.0]));
    refuses(&SQUARE.replace("[3, 3]", r#"[3, 3, "high"]"#), r#"ring 0, point 2: needs a number, not "high""#);
}

#[test]
fn bounds_come_from_the_option_then_the_file_then_its_bbox() {
    let free = |extra: &str, bounds: Option<[i32; 4]>| {
        let bounds = bounds.map(|b| b.map(Rational::from));
        let options = GeoJsonOptions { meaning: Meaning::Forbidden, bounds };
        parse_geojson(&collection(extra, &[SQUARE]), &options).map(|c| c.formula.to_string())
    };
    let starts = |text: Result<String, GeoJsonError>, wanted: &str| {
        assert!(text.clone().unwrap().starts_with(wanted), "{text:?}")
    };
    let both = r#", "bbox": [0, 0, 8, 8], "bounds": [0, 0, 7, 7]"#;
    starts(free(both, Some([0, 0, 6, 6])), "x >= 0 & x <= 6 &");
    starts(free(both, None), "x >= 0 & x <= 7 &");
    starts(free(r#", "bbox": [0, 0, 8, 8]"#, None), "x >= 0 & x <= 8 &");
    starts(free(r#", "bbox": [0, 0, -5, 8, 9, 100]"#, None), "x >= 0 & x <= 8 & y >= 0 & y <= 9 &");
    for (extra, bounds, wanted) in [
        ("", None, "give bounds [x0, y0, x1, y1] as an option, or as a member `bounds` or `bbox`"),
        ("", Some([0, 5, 5, 5]), "bounds [0, 5, 5, 5] are empty: they are [x0, y0, x1, y1] with x0 < x1 and y0 < y1"),
        (r#", "bounds": [3, 0, 1, 1]"#, None, "bounds [3, 0, 1, 1] are empty"),
        (
            r#", "bounds": [3, 0, 1]"#,
            None,
            "line 1, column 41: member `bounds`: needs the form [x0, y0, x1, y1], but has 3 numbers",
        ),
        (r#", "bounds": {"x0": 3}"#, None, "member `bounds`: needs [x0, y0, x1, y1], not {"),
        (r#", "bbox": [0, 0, 1, null]"#, None, "member `bbox`: needs a number, not null"),
    ] {
        let error = free(extra, bounds).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
    }
    // A bbox does not restrict what is walkable; bounds do.
    let wide = |extra: &str| members(&collection(extra, &[SQUARE]), Meaning::Walkable).contains(&[3.0, 3.0]);
    assert!(wide("") && wide(r#", "bbox": [0, 0, 2, 2]"#) && !wide(r#", "bounds": [0, 0, 2, 2]"#));
}

#[test]
fn a_map_without_polygons_is_all_of_bounds_or_nothing() {
    for geometries in [&[][..], &["null"], &[r#"{"type": "Polygon", "coordinates": []}"#]] {
        let map = collection(r#", "bounds": [0, 0, 5, 5]"#, geometries);
        let free = read(&map, Meaning::Forbidden).unwrap();
        assert_eq!(free.formula.to_string(), "x >= 0 & x <= 5 & y >= 0 & y <= 5");
        let none = read(&map, Meaning::Walkable).unwrap();
        assert!(none.formula.is_false());
        assert_eq!(none.reals.len(), 2);
    }
}

#[test]
fn text_that_is_not_json_gives_line_and_column() {
    for (text, wanted) in [
        ("", "line 1, column 1: not JSON: EOF while parsing a value"),
        (
            "{\n  \"type\": \"Polygon\",\n  \"coordinates\": [[[NaN, 0]]]}",
            "line 3, column 21: not JSON: expected value",
        ),
        (r#"{"type": "Polygon", "coordinates": [[[Infinity, 0]]]}"#, "not JSON: expected value"),
        (r#"{"type": "Polygon", "coordinates": [[[1., 0]]]}"#, "not JSON: invalid number"),
        (r#"{"type": "Polygon",}"#, "not JSON: "),
        (r#"{"name": "éé" x}"#, "line 1, column 15: not JSON: expected `,` or `}`"),
        (r#"{"type": "Polygon"} x"#, "line 1, column 21: not JSON: trailing characters"),
    ] {
        refuses(text, wanted);
    }
}

#[test]
fn wrong_structure_names_the_place() {
    let in_feature = |geometry: &str| {
        format!(
            "{{\"type\": \"FeatureCollection\", \"features\": [\n{{\"type\": \"Feature\", \"geometry\": null}},\n \
             {{\"type\": \"Feature\", \"id\": \"b7\", \"geometry\": {geometry}}}]}}"
        )
    };
    let multi = |rings: &str| {
        in_feature(&format!(r#"{{"type": "MultiPolygon", "coordinates": [[[[0,0],[1,0],[0,1]]], {rings}]}}"#))
    };
    for (text, wanted) in [
        ("[1, 2]".into(), "the map: needs a GeoJSON object, not [1, 2]"),
        ("{}".into(), "the map: has no member `type`"),
        (r#"{"type": 7}"#.into(), "needs a text as its `type`, not 7"),
        (r#"{"type": "Topology"}"#.into(), "the map: is a Topology"),
        (r#"{"type": "FeatureCollection"}"#.into(), "the map: has no member `features`"),
        (r#"{"type": "FeatureCollection", "features": [5]}"#.into(), "feature 0: needs a Feature object, not 5"),
        (
            r#"{"type": "FeatureCollection", "features": [{"type": "Feature"}]}"#.into(),
            "feature 0: has no member `geometry`",
        ),
        (
            in_feature(r#"{"type": "Point", "coordinates": [1, 2]}"#),
            "line 3, column 46: feature 1 (id \"b7\"): is a Point, which encloses no area; only Polygon, MultiPolygon",
        ),
        (in_feature(r#"{"type": "LineString", "coordinates": []}"#), "is a LineString"),
        (
            in_feature(r#"{"type": "GeometryCollection", "geometries": [{"type": "Point"}]}"#),
            "feature 1 (id \"b7\"), geometry 0: is a Point",
        ),
        (in_feature(r#"{"type": "Polygon", "coordinates": 3}"#), "needs a list of rings, not 3"),
        (
            in_feature(r#"{"type": "Polygon", "coordinates": [[[1], [2, 3]]]}"#),
            "ring 0, point 0: needs the form [x, y], but has 1 numbers",
        ),
        (
            in_feature(r#"{"type": "Polygon", "coordinates": [[1, 2, 3]]}"#),
            "ring 0, point 0: needs a point [x, y], not 1",
        ),
        (multi("[[]]"), "polygon 1, outer ring: a ring needs at least 3 distinct points, this one has 0"),
        (
            multi("[[[0,0],[1,1],[0,0]]]"),
            "feature 1 (id \"b7\"), polygon 1, outer ring: a ring needs at least 3 distinct points, this one has 2",
        ),
        (multi("[[[0,0],[1,1],[2.5,2.5]]]"), "all 3 points of the ring lie on one line"),
        (
            multi("[[[0,0],[9,0],[9,9],[0,9]], [[1,1],[2.5,2],[2.5,1],[1,2]]]"),
            "polygon 1, ring 1 (hole 0): edge 0 from (1, 1) to (2.5, 2) meets edge 2 from (2.5, 1) to (1, 2)",
        ),
        (
            multi("[[[0,0],[9,0],[9,9],[0,9]], [[11,1],[12,2],[12,1]]]"),
            "polygon 1: hole 0 leaves the outer ring at (12, 1.5)",
        ),
    ] {
        refuses(&text, wanted);
    }
}

#[test]
fn deep_nesting_is_no_danger() {
    let deep = |open: &str, inner: &str, close: &str, n: usize| format!("{}{inner}{}", open.repeat(n), close.repeat(n));
    let lists = deep("[", "", "]", 200_000);
    refuses(&lists, "the map: needs a GeoJSON object, not [[[");
    refuses(
        &format!(r#"{{"type": "Polygon", "coordinates": {lists}}}"#),
        "point 0: needs the form [x, y], but has 1 numbers",
    );
    refuses(&format!(r#"{{"type": "Polygon", "coordinates": [[[{lists}, 0]]]}}"#), "point 0: needs a number, not [[[");
    members(&format!(r#"{{"foreign": {lists}, {}"#, &SQUARE[1..]), Meaning::Walkable);
    let nested = deep(r#"{"type": "GeometryCollection", "geometries": ["#, SQUARE, "]}", 5000);
    refuses(&nested, "geometry collections nest more than 32 deep; flatten them");
    refuses(&deep(r#"{"type": "Feature", "geometry": "#, SQUARE, "}", 5000), "is a Feature");
}

/// The polygons of a drone scene by another route: `serde_json` values, and crossing numbers in rationals.
#[test]
fn drone_scenes_agree_with_crossing_numbers() {
    let Some(folder) = std::env::var_os("PAL_DATA") else {
        println!("skipped: PAL_DATA does not name the folder that holds sdd/*.geojson");
        return;
    };
    let mut scenes = 0;
    for name in ["scene2_constraints", "scene2_window_constraints", "scene12_constraints", "scene12_window_constraints"]
    {
        let path = std::path::Path::new(&folder).join("sdd").join(format!("{name}.geojson"));
        let Ok(text) = std::fs::read_to_string(&path) else {
            println!("skipped: no {}", path.display());
            continue;
        };
        scenes += 1;
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        let exact = |value: &serde_json::Value| parse_rational(&value.to_string()).unwrap();
        let bounds: Vec<Rational> = json["bounds"].as_array().unwrap().iter().map(exact).collect();
        let rings: Vec<Vec<[Rational; 2]>> = json["features"]
            .as_array()
            .unwrap()
            .iter()
            .map(|feature| {
                let rings = feature["geometry"]["coordinates"].as_array().unwrap();
                assert_eq!((feature["geometry"]["type"].as_str(), rings.len()), (Some("Polygon"), 1));
                rings[0].as_array().unwrap().iter().map(|p| [exact(&p[0]), exact(&p[1])]).collect()
            })
            .collect();
        let (free, walkable) = (members(&text, Meaning::Forbidden), members(&text, Meaning::Walkable));
        let corners = rings.iter().flatten().map(|p| [0, 1].map(|axis| pal::number::to_f64(&p[axis])));
        let mut seed = 1u64;
        let random = (0..2000).map(|_| {
            [(); 2].map(|()| {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (seed >> 11) as f64 / (1u64 << 53) as f64 * 10.5 - 0.25
            })
        });
        let mut inside_count = 0;
        for point in corners.chain(random) {
            let p = point.map(|c| from_f64(c).unwrap());
            let within = bounds[0] <= p[0] && p[0] <= bounds[2] && bounds[1] <= p[1] && p[1] <= bounds[3];
            let blocked = rings.iter().any(|ring| covers(ring, &p));
            assert_eq!(free.contains(&point), within && !blocked, "{name} {point:?}");
            assert_eq!(walkable.contains(&point), within && blocked, "{name} {point:?}");
            inside_count += usize::from(within && !blocked);
        }
        assert!((100..1900).contains(&inside_count), "{name}: {inside_count}");
    }
    println!("{scenes} scenes read");
}

fn covers(ring: &[[Rational; 2]], p: &[Rational; 2]) -> bool {
    let mut odd = false;
    for (a, b) in ring.iter().zip(ring.iter().cycle().skip(1)) {
        let cross = (&b[0] - &a[0]) * (&p[1] - &a[1]) - (&b[1] - &a[1]) * (&p[0] - &a[0]);
        let dot = (&a[0] - &p[0]) * (&b[0] - &p[0]) + (&a[1] - &p[1]) * (&b[1] - &p[1]);
        if cross.is_zero() && dot <= Rational::ZERO {
            return true;
        }
        if (a[1] > p[1]) != (b[1] > p[1]) {
            odd ^= &a[0] + (&p[1] - &a[1]) * (&b[0] - &a[0]) / (&b[1] - &a[1]) > p[0];
        }
    }
    odd
}

/// A name that occurs twice in an object could be read in two ways.
#[test]
fn repeated_names_are_refused() {
    let ring = "[[[0, 0], [1, 0], [1, 1], [0, 0]]]";
    for (map, place) in [
        (format!(r#"{{"type": "Polygon", "type": "Polygon", "coordinates": {ring}}}"#), "`type`"),
        (
            format!(
                r#"{{"type": "Feature", "geometry": {{"type": "Polygon", "coordinates": [], "coordinates": {ring}}}}}"#
            ),
            "`coordinates`",
        ),
    ] {
        let error = parse_geojson(&map, &GeoJsonOptions::default()).unwrap_err().to_string();
        assert!(error.contains(&format!("the name {place} occurs twice")), "{error}");
    }
}
