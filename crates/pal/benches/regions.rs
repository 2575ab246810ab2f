//! Measures how long it takes to decompose a constraint into cells, and how many points per second can be tested.
//!
//! `cargo bench -p pal --bench regions` prints the figures of `docs/benchmarks.md`. The campus map of `pal demo` is
//! always measured; with `PAL_DATA` set the map of drone scene 12 (`sdd/scene12_constraints.geojson`) is as well.
//! A library that we compare with runs in the same group on the same input.

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Duration;

use common::{BoundingShape, Dice, bounding_formula, holds, random_literal, random_terms, random_tree, variables};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use i_overlay::core::fill_rule::FillRule;
use i_overlay::core::overlay_rule::OverlayRule;
use i_overlay::float::single::SingleFloatOverlay;
use pal::formula::{Constraint, Formula, GeoJsonOptions, Polygon, Ring, parse_geojson, parse_smtlib, write_smtlib};
use pal::number::{Rational, from_f64, to_f64};
use pal::region::{Cell, Enumeration, Region};
use pal::shapes;

/// A map: the text of a GeoJSON file and the constraint that it describes.
struct Map {
    name: &'static str,
    text: String,
    constraint: Constraint,
}

impl Map {
    fn new(name: &'static str, text: String) -> Map {
        let constraint = parse_geojson(&text, &GeoJsonOptions::default()).unwrap();
        Map { name, text, constraint }
    }
}

fn maps() -> Vec<Map> {
    let campus = include_str!("../../pal-cli/assets/campus.geojson");
    let mut maps = vec![Map::new("campus", campus.to_string())];
    match std::env::var_os("PAL_DATA") {
        None => println!("scene 12 skipped: PAL_DATA is not set"),
        Some(folder) => {
            let path = PathBuf::from(folder).join("sdd/scene12_constraints.geojson");
            let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            maps.push(Map::new("scene12", text));
        }
    }
    maps
}

fn group<'c>(criterion: &'c mut Criterion, name: &str) -> BenchmarkGroup<'c, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.sample_size(20).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(3));
    group
}

/// Decomposes a constraint into cells, preparation included.
fn cells(constraint: &Constraint) -> Vec<Cell> {
    Region::new(constraint).unwrap().decompose().unwrap()
}

fn cells_of_bins(constraint: &Constraint, knots: usize) -> Vec<Cell> {
    Region::new(constraint).unwrap().with_uniform_knots(knots).unwrap().decompose().unwrap()
}

/// The number of knots per axis, for 13 x 13 bins.
const KNOTS: usize = 14;

fn bench_maps(criterion: &mut Criterion) {
    for Map { name, text, constraint } in maps() {
        let found = cells(&constraint);
        let triangles: usize = found.iter().map(|cell| cell.polytope().triangulate().len()).sum();
        let in_bins = cells_of_bins(&constraint, KNOTS).len();
        let atoms = constraint.formula.atoms().len();
        println!(
            "{name}: {atoms} atoms, {} cells, {triangles} triangles, {in_bins} cells with {KNOTS} knots",
            found.len()
        );
        let rings = Rings::new(&text);
        let area = to_f64(&Region::new(&constraint).unwrap().exact_volume().unwrap());
        assert!((rings.area() / area - 1.0).abs() < 1e-11);
        let mut group = group(criterion, name);
        group.bench_function("cells", |b| b.iter(|| cells(&constraint)));
        group
            .bench_function(format!("cells, {KNOTS} knots per axis"), |b| b.iter(|| cells_of_bins(&constraint, KNOTS)));
        group.bench_function("triangles of its cells", |b| {
            b.iter(|| found.iter().map(|cell| cell.polytope().triangulate().len()).sum::<usize>())
        });
        group.bench_function("exact area", |b| b.iter(|| Region::new(&constraint).unwrap().exact_volume().unwrap()));
        group.bench_function("area by i_overlay, in float64", |b| b.iter(|| rings.area()));
        group.finish();
    }
}

/// The polygons of a map in float64, outer rings counterclockwise and holes clockwise, for the polygon library.
struct Rings {
    bounds: Vec<[f64; 2]>,
    rings: Vec<Vec<[f64; 2]>>,
}

impl Rings {
    fn new(text: &str) -> Rings {
        let map: serde_json::Value = serde_json::from_str(text).unwrap();
        let numbers = |value: &serde_json::Value| -> Vec<f64> {
            value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
        };
        let [x0, y0, x1, y1] = numbers(&map["bounds"])[..] else { panic!("bounds") };
        let mut rings = Vec::new();
        for feature in map["features"].as_array().unwrap() {
            for (k, ring) in feature["geometry"]["coordinates"].as_array().unwrap().iter().enumerate() {
                let point = |p: &serde_json::Value| [numbers(p)[0], numbers(p)[1]];
                let mut ring: Vec<[f64; 2]> = ring.as_array().unwrap().iter().map(point).collect();
                ring.pop();
                if (signed_area(&ring) > 0.0) != (k == 0) {
                    ring.reverse();
                }
                rings.push(ring);
            }
        }
        Rings { bounds: vec![[x0, y0], [x1, y0], [x1, y1], [x0, y1]], rings }
    }

    /// Returns the area of the bounds without the polygons.
    fn area(&self) -> f64 {
        let free = self.bounds.overlay_as::<i64>(&self.rings, OverlayRule::Difference, FillRule::NonZero);
        free.iter().flatten().map(|contour| signed_area(contour)).sum::<f64>().abs()
    }
}

fn signed_area(contour: &[[f64; 2]]) -> f64 {
    let next = contour.iter().cycle().skip(1);
    contour.iter().zip(next).map(|(a, b)| a[0] * b[1] - a[1] * b[0]).sum::<f64>() / 2.0
}

fn bench_star(criterion: &mut Criterion) {
    let (reals, x) = variables(2);
    let outline = Polygon::new(Ring::new(shapes::star(19, 10.0)).unwrap(), Vec::new()).unwrap();
    let formula = outline.to_formula(&x[0], &x[1]);
    let star = Constraint { formula, reals, booleans: Vec::new() };
    println!("19-star: {} atoms, {} cells", star.formula.atoms().len(), cells(&star).len());
    group(criterion, "19-star").bench_function("cells", |b| b.iter(|| cells(&star)));
}

/// Returns a random formula in five dimensions with 20 atoms, intersected with a cube.
fn random_constraint(seed: u64) -> Constraint {
    let mut dice = Dice::new(seed);
    let (reals, x) = variables(5);
    let terms = random_terms(&mut dice, &x, 20);
    let literals = terms.iter().map(|term| random_literal(&mut dice, term)).collect();
    let formula = bounding_formula(BoundingShape::Cube, &x) & random_tree(&mut dice, literals);
    Constraint { formula, reals, booleans: Vec::new() }
}

/// The number of random formulas that are measured together: a single one may be decided by two atoms.
const SEEDS: u64 = 32;

fn bench_random(criterion: &mut Criterion) {
    let regions = |enumeration: Enumeration| -> Vec<Region> {
        let constraints = (0..SEEDS).map(random_constraint);
        constraints.map(|c| Region::new(&c).unwrap().with_enumeration(enumeration)).collect()
    };
    let count = |regions: &[Region]| -> usize { regions.iter().map(|r| r.decompose().unwrap().len()).sum() };
    let mut group = group(criterion, &format!("{SEEDS} random formulas, 5 dimensions, 20 atoms"));
    group.sample_size(10);
    for enumeration in [Enumeration::Partial, Enumeration::Total] {
        let regions = regions(enumeration);
        let cells = count(&regions);
        println!("random formulas, {enumeration:?}: {cells} cells");
        group.throughput(Throughput::Elements(cells as u64));
        group.bench_function(format!("{enumeration:?} enumeration"), |b| b.iter(|| count(&regions)));
    }
    group.finish();
}

/// Returns the disjunction of `n` half-planes tangent to a circle, within a square. It has `n` cells.
fn half_planes(n: usize) -> Constraint {
    let (reals, x) = variables(2);
    let half_planes = shapes::regular_polygon(n, 1.0).into_iter().map(|[a, b]| {
        let half = Rational::from_parts(1.into(), 2u8.into());
        (x[0].scaled(&a) + x[1].scaled(&b)).ge(half)
    });
    let formula = Formula::all(x.iter().map(|x| x.between(-1, 1))) & Formula::any(half_planes);
    Constraint { formula, reals, booleans: Vec::new() }
}

fn bench_disjunction(criterion: &mut Criterion) {
    let mut group = group(criterion, "disjunction of half-planes");
    for n in [5, 10, 20, 40] {
        let constraint = half_planes(n);
        let found = cells(&constraint).len();
        println!("disjunction of {n} half-planes: {found} cells");
        assert_eq!(found, n);
        group.throughput(Throughput::Elements(n as u64));
        group.bench_with_input(BenchmarkId::from_parameter(n), &constraint, |b, constraint| {
            b.iter(|| cells(constraint))
        });
    }
    group.finish();
}

fn random_points(region: &Region, count: usize) -> Vec<f64> {
    let ends = region.bounding_box().unwrap().unwrap();
    let ends: Vec<(f64, f64)> = ends.iter().map(|(low, high)| (to_f64(low), to_f64(high))).collect();
    let mut dice = Dice::new(1);
    (0..count).flat_map(|_| ends.clone()).map(|(low, high)| low + (high - low) * dice.unit()).collect()
}

/// Counts the points inside, evaluating atom by atom in rationals. This slow reference stops early in conjunctions and
/// disjunctions.
fn exact_membership(constraint: &Constraint, points: &[f64]) -> usize {
    let inside = |point: &&[f64]| {
        let point: Vec<Rational> = point.iter().map(|x| from_f64(*x).unwrap()).collect();
        holds(constraint, &point, &[])
    };
    points.chunks_exact(constraint.reals.len()).filter(inside).count()
}

fn bench_membership(criterion: &mut Criterion) {
    let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for Map { name, constraint, .. } in maps() {
        let region = Region::new(&constraint).unwrap();
        let members = constraint.membership().unwrap();
        let points = random_points(&region, 10_000_000);
        let mut group = group(criterion, &format!("membership, {name}"));
        group.sample_size(10);
        for count in [1_000_000, 10_000_000] {
            let points = &points[..2 * count];
            group.throughput(Throughput::Elements(count as u64));
            group.bench_function(format!("{count} points, all threads"), |b| {
                b.iter(|| members.contains_batch(black_box(points)))
            });
            group.bench_function(format!("{count} points, one thread"), |b| {
                b.iter(|| one_thread.install(|| members.contains_batch(black_box(points))))
            });
        }
        let few = &points[..2 * 2_000];
        let want = members.contains_batch(few).into_iter().filter(|inside| *inside).count();
        assert_eq!(exact_membership(&constraint, few), want);
        group.throughput(Throughput::Elements(2_000));
        group.bench_function("2000 points in rationals, one thread", |b| {
            b.iter(|| exact_membership(&constraint, black_box(few)))
        });
        group.finish();
    }
}

fn bench_parsers(criterion: &mut Criterion) {
    for Map { name, text, constraint } in maps() {
        let smtlib = write_smtlib(&constraint).unwrap();
        println!("{name}: {} bytes of GeoJSON, {} bytes of SMT-LIB", text.len(), smtlib.len());
        let mut group = group(criterion, &format!("parse, {name}"));
        group.throughput(Throughput::Bytes(text.len() as u64));
        let options = GeoJsonOptions::default();
        group.bench_function("GeoJSON", |b| b.iter(|| parse_geojson(black_box(&text), &options).unwrap()));
        group.throughput(Throughput::Bytes(smtlib.len() as u64));
        group.bench_function("SMT-LIB", |b| b.iter(|| parse_smtlib(black_box(&smtlib)).unwrap()));
        group.finish();
    }
}

criterion_group!(regions, bench_maps, bench_star, bench_random, bench_disjunction, bench_membership, bench_parsers);
criterion_main!(regions);
