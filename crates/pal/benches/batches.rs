//! Measures how long it takes to compile a region for each row of a batch, and to evaluate densities on them.
//!
//! `cargo bench -p pal --bench batches` measures windows of the campus map of `pal demo` and, with `PAL_DATA` set,
//! windows of drone scene 12 around positions of its tracks.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use pal::density::{Family, Knots, RowInput, SplineSettings};
use pal::formula::{GeoJsonOptions, parse_geojson, reals};
use pal::number::from_f64;
use pal::random::Stream;
use pal::region::{Region, RegionBatch, RegionMap};

const HALF_WIDTH: f64 = 1.2;
const ROWS: usize = 10_000;
const BATCH: usize = 128;

/// The positions of a track file, with the directions in which they move on.
fn tracks(path: &Path) -> Vec<[f64; 4]> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let row = |line: &str| -> Vec<f64> { line.split(',').map(|x| x.parse().unwrap()).collect() };
    let rows: Vec<Vec<f64>> = text.lines().skip(1).map(row).collect();
    let steps = rows.windows(2).filter(|pair| pair[0][0] == pair[1][0]);
    let places = steps.map(|pair| [pair[0][2], pair[0][3], pair[1][2] - pair[0][2], pair[1][3] - pair[0][3]]);
    places.filter(|place| place[2] != 0.0 || place[3] != 0.0).collect()
}

/// Maps with places to look at them from.
fn maps() -> Vec<(String, RegionMap, Vec<[f64; 4]>)> {
    let map = |text: &str| {
        let constraint = parse_geojson(text, &GeoJsonOptions::default()).unwrap();
        RegionMap::new(&Region::new(&constraint).unwrap()).unwrap()
    };
    let campus = map(include_str!("../../pal-cli/assets/campus.geojson"));
    let mut stream = Stream::new(1, 0);
    let corners = campus.region().bounding_box().unwrap().unwrap();
    let ends: Vec<(f64, f64)> =
        corners.iter().map(|(low, high)| (pal::number::to_f64(low), pal::number::to_f64(high))).collect();
    let mut at = |(low, high): (f64, f64)| low + (high - low) * stream.unit();
    let random: Vec<[f64; 4]> =
        (0..ROWS).map(|_| [at(ends[0]), at(ends[1]), at((-1.0, 1.0)), at((0.1, 1.0))]).collect();
    let mut all = vec![("campus".to_string(), campus, random)];
    match std::env::var_os("PAL_DATA") {
        None => println!("drone scene skipped: PAL_DATA is not set"),
        Some(folder) => {
            let folder = PathBuf::from(folder).join("sdd");
            let text = std::fs::read_to_string(folder.join("scene12_constraints.geojson")).unwrap();
            all.push(("scene12".to_string(), map(&text), tracks(&folder.join("scene12_trajectories.csv"))));
        }
    }
    all
}

fn layer(knots: usize, components: usize) -> Family {
    let [x, y] = reals(["x", "y"]);
    let width = from_f64(HALF_WIDTH).unwrap();
    let square = x.between(-&width, width.clone()) & y.between(-&width, width);
    let settings = SplineSettings { knots: Knots::Uniform(knots), components };
    Family::new(&Region::new(&square.into()).unwrap(), &settings.into()).unwrap()
}

/// As many windows with volume as asked for, repeated if there are fewer.
fn windows(map: &RegionMap, places: &[[f64; 4]], rows: usize) -> RegionBatch {
    let centres: Vec<f64> = places.iter().flat_map(|place| [place[0], place[1]]).collect();
    let headings: Vec<f64> = places.iter().flat_map(|place| [place[2], place[3]]).collect();
    let all = map.windows(&centres, &[HALF_WIDTH], Some(&headings), None).unwrap();
    let volumes = all.volumes();
    let kept: Vec<usize> = (0..all.len()).filter(|row| volumes[*row] > 0.0).collect();
    // Spread over all tracks rather than the first ones.
    let step = (kept.len() / rows).max(1);
    let chosen: Vec<usize> = (0..rows).map(|k| kept[(k * step) % kept.len()]).collect();
    all.select(&chosen).unwrap()
}

fn compile(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("compile");
    group.sample_size(10).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(5));
    let family = layer(14, 8);
    for (name, map, places) in maps() {
        let rows = windows(&map, &places, ROWS);
        let forms = family.on_regions(&rows).unwrap();
        println!("{name}: {} cells, {} bytes per window", map.region().cells().count(), forms.bytes() / forms.len());
        group.throughput(Throughput::Elements(ROWS as u64));
        group.bench_function(format!("windows/{name}"), |b| b.iter(|| family.on_regions(black_box(&rows)).unwrap()));
    }
    group.finish();
}

fn step(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("log_prob_with_gradient");
    let family = layer(14, 8);
    let params: Vec<f32> = family.random_params(BATCH, 1).iter().map(|x| *x as f32 / 4.0).collect();
    let points = vec![0.01; 2 * BATCH];
    for (name, map, places) in maps() {
        let rows = windows(&map, &places, BATCH);
        let forms = family.on_regions(&rows).unwrap();
        group.throughput(Throughput::Elements(BATCH as u64));
        group.bench_function(format!("a_window_per_row/{name}"), |b| {
            b.iter(|| forms.log_prob(black_box(&params), &points, true).unwrap());
        });
        group.bench_function(format!("compiled_in_the_step/{name}"), |b| {
            b.iter(|| family.on_regions(&rows).unwrap().log_prob(black_box(&params), &points, true).unwrap());
        });
        // One of the windows for all rows, as a family of its own.
        let region = rows.region(0).unwrap();
        let settings = SplineSettings { knots: Knots::Uniform(14), components: 8 };
        let fixed = Family::new(&region, &settings.into()).unwrap();
        group.bench_function(format!("fixed/{name}"), |b| {
            b.iter(|| fixed.log_prob_rows(RowInput::Parameters, black_box(&params), &points, true).unwrap());
        });
    }
    group.finish();
}

fn half_spaces(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("half_spaces");
    group.sample_size(10).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(3));
    let (rows, count) = (1024, 8);
    for (n, knots) in [(2, 14), (3, 5)] {
        let names = &["x", "y", "z"][..n];
        let [x, y, z] = reals(["x", "y", "z"]);
        let sides: Vec<_> = [x, y, z].into_iter().take(n).map(|x| x.between(-1, 1)).collect();
        let region = Region::new(&pal::formula::Formula::all(sides).into()).unwrap();
        assert_eq!(region.variables().iter().map(|var| var.name()).collect::<Vec<_>>(), names);
        let settings = SplineSettings { knots: Knots::Uniform(knots), components: 8 };
        let family = Family::new(&region, &settings.into()).unwrap();
        let mut stream = Stream::new(2, 0);
        let normals: Vec<f64> = (0..rows * count * n).map(|_| stream.normal()).collect();
        let offsets: Vec<f64> = (0..rows * count).map(|_| 0.5 + stream.unit()).collect();
        let params = family.random_params(rows, 3);
        let points = vec![0.0; rows * n];
        let variables = region.variables().to_vec();
        group.throughput(Throughput::Elements(rows as u64));
        group.bench_function(format!("{n}_variables_{knots}_knots"), |b| {
            let make = || RegionBatch::half_spaces(&variables, [rows, 1, count], &normals, &offsets, None).unwrap();
            let work = |batch| family.on_regions(&batch).unwrap().log_prob(&params, &points, false).unwrap();
            b.iter_batched(make, work, BatchSize::LargeInput);
        });
    }
    group.finish();
}

criterion_group!(benches, compile, step, half_spaces);
criterion_main!(benches);
