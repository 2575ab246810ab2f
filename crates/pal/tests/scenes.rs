//! Compares exact areas of polygons with the shoelace formula, and real maps with an independent polygon library.
//!
//! The maps are not part of the repository. Set `PAL_DATA` to a folder that holds `sdd/*.geojson`; otherwise the tests
//! that need the maps are skipped with a message.

mod common;

use std::path::PathBuf;

use common::algebra::absolute;
use common::{Dice, ratio, variables, volume};
use i_overlay::core::fill_rule::FillRule;
use i_overlay::core::overlay_rule::OverlayRule;
use i_overlay::float::single::SingleFloatOverlay;
use pal::formula::{Formula, GeoJsonOptions, Meaning, Polygon, Ring, parse_geojson};
use pal::number::{Rational, from_f64, to_f64};
use pal::region::Region;
use pal::shapes::{regular_polygon, star, twice_area};

type Point = [Rational; 2];

fn area(formula: &Formula) -> Rational {
    volume(formula, &variables(2).0)
}

fn polygon(outer: &[Point], holes: &[&[Point]]) -> Formula {
    let (_, x) = variables(2);
    let holes = holes.iter().map(|hole| Ring::new(hole.to_vec()).unwrap()).collect();
    Polygon::new(Ring::new(outer.to_vec()).unwrap(), holes).unwrap().to_formula(&x[0], &x[1])
}

fn shoelace(outline: &[Point]) -> Rational {
    absolute(twice_area(outline)) / Rational::from(2)
}

#[test]
fn regular_polygons_and_stars_have_the_area_of_the_shoelace_formula() {
    for n in 3..=19 {
        let round = regular_polygon(n, 10.0);
        assert_eq!(area(&polygon(&round, &[])), shoelace(&round), "{n}-gon");
        if n % 2 == 1 {
            let tips = star(n, 10.0);
            assert_eq!(area(&polygon(&tips, &[])), shoelace(&tips), "{n}-star");
            let mut reversed = tips.clone();
            reversed.reverse();
            assert_eq!(area(&polygon(&reversed, &[])), shoelace(&tips), "{n}-star, clockwise");
            // A star-shaped hole in a larger polygon.
            let outer = regular_polygon(n + 1, 20.0);
            let want = shoelace(&outer) - shoelace(&tips);
            assert_eq!(area(&polygon(&outer, &[&tips])), want, "{n}-star as a hole");
        }
    }
}

/// Returns a random outline around the origin. Its corners are at increasing angles, so it does not cross itself.
fn random_outline(dice: &mut Dice, corners: usize) -> Vec<Point> {
    (0..corners)
        .map(|k| {
            let angle = std::f64::consts::TAU * (k as f64 + 0.8 * dice.unit()) / corners as f64;
            let radius = 1.0 + 9.0 * dice.unit();
            [radius * angle.cos(), radius * angle.sin()].map(|x| from_f64((x * 1024.0).round() / 1024.0).unwrap())
        })
        .collect()
}

#[test]
fn random_outlines_have_the_area_of_the_shoelace_formula() {
    for seed in 0..60 {
        let mut dice = Dice::new(600_000 + seed);
        let corners = dice.int(5, 24) as usize;
        let outline = random_outline(&mut dice, corners);
        assert_eq!(area(&polygon(&outline, &[])), shoelace(&outline), "seed {seed}: {outline:?}");
    }
}

/// The areas of unions and intersections of two outlines agree with a library that shares no code with this one.
#[test]
fn unions_and_intersections_agree_with_an_independent_library() {
    for seed in 0..25 {
        let mut dice = Dice::new(610_000 + seed);
        let outlines = [12, 9].map(|corners| random_outline(&mut dice, corners));
        let [p, q] = outlines.each_ref().map(|outline| polygon(outline, &[]));
        let [a, b] = outlines.each_ref().map(|outline| in_float64(outline));
        let pairs = [
            (p.clone() | q.clone(), OverlayRule::Union),
            (p.clone() & q.clone(), OverlayRule::Intersect),
            (p & !q, OverlayRule::Difference),
        ];
        for (formula, rule) in pairs {
            let want = area_of_shapes(&a.overlay_as::<i64>(&b, rule, FillRule::NonZero));
            let got = to_f64(&area(&formula));
            assert!((got / want - 1.0).abs() < TOLERANCE, "seed {seed}: {rule:?} {got} {want}");
        }
    }
}

/// The relative tolerance for areas: the polygon library snaps to a 64-bit integer grid, which moves a point by about
/// 1e-15 of the extent, and a map has a few hundred corners.
const TOLERANCE: f64 = 1e-11;

fn in_float64(outline: &[Point]) -> Vec<[f64; 2]> {
    outline.iter().map(|p| [to_f64(&p[0]), to_f64(&p[1])]).collect()
}

/// Returns the area of shapes of the polygon library. It winds holes the opposite way, so their areas are negative.
fn area_of_shapes(shapes: &[Vec<Vec<[f64; 2]>>]) -> f64 {
    shapes.iter().flatten().map(|contour| signed_area(contour)).sum::<f64>().abs()
}

fn signed_area(contour: &[[f64; 2]]) -> f64 {
    let next = contour.iter().cycle().skip(1);
    contour.iter().zip(next).map(|(a, b)| a[0] * b[1] - a[1] * b[0]).sum::<f64>() / 2.0
}

fn maps() -> Option<Vec<PathBuf>> {
    let Some(folder) = std::env::var_os("PAL_DATA") else {
        println!("skipped: PAL_DATA is not set");
        return None;
    };
    let folder = PathBuf::from(folder).join("sdd");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "geojson"));
    paths.sort();
    assert!(!paths.is_empty(), "no maps in {}", folder.display());
    Some(paths)
}

fn numbers(value: &serde_json::Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

/// Returns the free area of a map by the independent library, computed from the JSON itself.
fn oracle(text: &str) -> f64 {
    let map: serde_json::Value = serde_json::from_str(text).unwrap();
    let [x0, y0, x1, y1] = numbers(&map["bounds"])[..] else { panic!("bounds") };
    let mut rings: Vec<Vec<[f64; 2]>> = Vec::new();
    for feature in map["features"].as_array().unwrap() {
        let geometry = &feature["geometry"];
        assert_eq!(geometry["type"], "Polygon");
        for (k, ring) in geometry["coordinates"].as_array().unwrap().iter().enumerate() {
            let mut ring: Vec<[f64; 2]> =
                ring.as_array().unwrap().iter().map(|p| [0, 1].map(|j| numbers(p)[j])).collect();
            ring.pop();
            // Outer rings run counterclockwise and holes clockwise, so that winding numbers of overlapping polygons
            // add up.
            if (signed_area(&ring) > 0.0) != (k == 0) {
                ring.reverse();
            }
            rings.push(ring);
        }
    }
    let bounds = vec![[x0, y0], [x1, y0], [x1, y1], [x0, y1]];
    area_of_shapes(&bounds.overlay_as::<i64>(&rings, OverlayRule::Difference, FillRule::NonZero))
}

#[test]
fn free_space_of_real_maps() {
    for path in maps().unwrap_or_default() {
        let (text, name) = (std::fs::read_to_string(&path).unwrap(), path.display());
        let free = Region::new(&parse_geojson(&text, &GeoJsonOptions::default()).unwrap()).unwrap();
        let volume = free.exact_volume().unwrap();
        let want = oracle(&text);
        let off = (to_f64(&volume) / want - 1.0).abs();
        assert!(off < TOLERANCE, "{name}: {} against {want}", to_f64(&volume));
        // The free and the covered area add up to the area of the bounds, exactly.
        let covered = GeoJsonOptions { meaning: Meaning::Walkable, ..GeoJsonOptions::default() };
        let covered = Region::new(&parse_geojson(&text, &covered).unwrap()).unwrap().exact_volume().unwrap();
        let map: serde_json::Value = serde_json::from_str(&text).unwrap();
        let ends = numbers(&map["bounds"]);
        let decimal = |x: f64| pal::number::parse_rational(&x.to_string()).unwrap();
        let [x0, y0, x1, y1] = [0, 1, 2, 3].map(|k| decimal(ends[k]));
        assert_eq!(volume.clone() + covered, (x1 - x0) * (y1 - y0), "{name}");
        // A grid as fine as the grids of splines does not change the area.
        assert_eq!(free.with_uniform_knots(14).unwrap().exact_volume().unwrap(), volume, "{name}");
    }
}

/// A random point of a map lies in a cell iff it is a member of the free space, and in the interior of at most one.
#[test]
fn cells_of_real_maps_tile_the_free_space() {
    for path in maps().unwrap_or_default() {
        let text = std::fs::read_to_string(&path).unwrap();
        let constraint = parse_geojson(&text, &GeoJsonOptions::default()).unwrap();
        let region = Region::new(&constraint).unwrap();
        let (members, cells) = (constraint.membership().unwrap(), region.decompose().unwrap());
        let ends = region.bounding_box().unwrap().unwrap();
        let mut dice = Dice::new(77);
        let mut inside = 0;
        for _ in 0..400 {
            let point: Vec<f64> = ends
                .iter()
                .map(|(low, high)| to_f64(&(low + (high - low) * ratio(dice.int(1, 9_999_999), 10_000_001))))
                .collect();
            let around = cells.iter().filter(|cell| cell.polytope().contains(&point)).count();
            assert_eq!(around, usize::from(members.contains(&point)), "{}: {point:?}", path.display());
            inside += around;
        }
        assert!((1..400).contains(&inside), "{}: {inside} of 400 points", path.display());
    }
}
