//! Measures how long it takes to compile families of densities, to evaluate and query densities, and to sample.
//!
//! `cargo bench -p pal --bench densities` prints the figures of `docs/benchmarks.md`. The campus map of `pal demo` is
//! always measured. With `PAL_DATA` set the maps of drone scenes 2 and 12 are measured as well; the performance
//! targets are about scene 12.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use pal::density::{
    Basis, Compile, Family, Knots, RowInput, Settings, SplineSettings, SumOfSquares, SumOfSquaresSettings,
};
use pal::formula::{Constraint, Formula, GeoJsonOptions, Linear, Polygon, Ring, Var, parse_geojson, real, reals};
use pal::query::{EntropyOptions, ModeOptions};
use pal::region::Region;
use pal::shapes;

fn maps() -> Vec<(String, Constraint)> {
    let parse = |text: &str| parse_geojson(text, &GeoJsonOptions::default()).unwrap();
    let mut maps = vec![("campus".to_string(), parse(include_str!("../../pal-cli/assets/campus.geojson")))];
    match std::env::var_os("PAL_DATA") {
        None => println!("drone scenes skipped: PAL_DATA is not set"),
        Some(folder) => {
            for scene in [2, 12] {
                let path = PathBuf::from(&folder).join(format!("sdd/scene{scene}_constraints.geojson"));
                let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                maps.push((format!("scene{scene}"), parse(&text)));
            }
        }
    }
    maps
}

fn star(corners: usize) -> Constraint {
    let [x, y] = reals(["x", "y"]);
    let outline = Polygon::new(Ring::new(shapes::star(corners, 10.0)).unwrap(), Vec::new()).unwrap();
    let formula = outline.to_formula(&x, &y);
    Constraint { formula, reals: vec![Var::new("x"), Var::new("y")], booleans: Vec::new() }
}

fn group<'c>(criterion: &'c mut Criterion, name: &str) -> BenchmarkGroup<'c, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group.sample_size(10).warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(3));
    group
}

fn spline(constraint: &Constraint, knots: usize, components: usize) -> Family {
    let settings = Settings::Spline(SplineSettings { knots: Knots::Uniform(knots), components });
    Family::new(&Region::new(constraint).unwrap(), &settings).unwrap()
}

fn sum_of_squares(constraint: &Constraint, degree: u16) -> SumOfSquares {
    let settings =
        SumOfSquaresSettings { degree: Some(degree), components: 4, basis: Basis::Orthonormal, subset: None };
    SumOfSquares::compile(&Region::new(constraint).unwrap(), &settings).unwrap()
}

/// Returns points of a low-discrepancy sequence in the box around the support.
fn points(family: &Family, count: usize) -> Vec<f64> {
    let ends: Vec<(f64, f64)> =
        family.support().grid().axes().iter().map(|a| (a.positions()[0], a.positions()[a.bins()])).collect();
    let steps = [0.754_877_666_246_693, 0.569_840_290_998_053_2];
    (0..count)
        .flat_map(|k| ends.iter().zip(steps).map(move |((a, b), step)| a + (b - a) * (k as f64 * step).fract()))
        .collect()
}

/// Returns an obstacle in the middle of the box around the support.
fn obstacle(family: &Family) -> Formula {
    let axes = family.support().grid().axes();
    let at = |j: usize, fraction: f64| {
        let (low, high) = (axes[j].positions()[0], axes[j].positions()[axes[j].bins()]);
        pal::number::from_f64((low + fraction * (high - low)).round()).unwrap()
    };
    let variable = |j: usize| -> Linear { real(family.support().constraint().reals[j].name()) };
    let (x, y) = (variable(0), variable(1));
    let far = at(0, 0.7) + at(1, 0.6);
    x.ge(at(0, 0.3)) & y.ge(at(1, 0.3)) & (&x + &y).le(far)
}

fn bench_splines(criterion: &mut Criterion) {
    for (name, constraint) in maps() {
        let family = spline(&constraint, 14, 8);
        println!("{name}: {} cells, {} boxes and triangles", family.support().cells(), family.support().elements());
        let width = family.num_params();
        let params = family.random_params(10_000, 1);
        let one = &params[..width];
        let cloud = points(&family, 1_000_000);
        let density = family.density(one).unwrap();
        let sampler = density.sampler().unwrap();
        let gamma = obstacle(&family);
        let mut group = group(criterion, &format!("{name}, 14 knots, 8 components"));
        group.bench_function("compile, from the formula", |b| b.iter(|| spline(&constraint, 14, 8)));
        group.bench_function("log-density of 10^6 points", |b| b.iter(|| family.log_prob(one, &cloud).unwrap()));
        group.bench_function("gradient of 10^6 log-densities", |b| {
            let ones = vec![1.0; 1_000_000];
            b.iter(|| family.log_prob_vjp(one, &cloud, &ones).unwrap())
        });
        group.bench_function("normalisers of 10^4 parameter vectors", |b| {
            b.iter(|| family.log_normaliser(&params).unwrap())
        });
        group.bench_function("a new obstacle, its probability under 1000 parameter vectors", |b| {
            b.iter(|| family.event(&gamma).unwrap().probability(&params[..1000 * width]).unwrap())
        });
        group.bench_function("mode to 1e-6", |b| b.iter(|| density.mode(&ModeOptions::default()).unwrap()));
        group.bench_function("marginal of one variable", |b| {
            let variable = constraint.reals[0].name();
            b.iter(|| density.marginal(variable).unwrap())
        });
        group.bench_function("entropy to 1e-6", |b| b.iter(|| density.entropy(&EntropyOptions::default())));
        group.throughput(Throughput::Elements(1_000_000));
        group.bench_function("10^6 samples", |b| b.iter(|| sampler.sample(1_000_000, 1)));
        group.finish();
        let mode = density.mode(&ModeOptions::default()).unwrap();
        println!("mode: gap {:.1e}, {} nodes, {:?}", mode.gap, mode.nodes, mode.stop);
    }
}

/// What a training step asks for: the log-density of one point per row, and its gradient.
fn bench_rows(criterion: &mut Criterion) {
    for (name, constraint) in maps() {
        let mut group = group(criterion, &format!("{name}, 128 rows of 8 components"));
        for knots in [14, 56] {
            let family = spline(&constraint, knots, 8);
            let (params, points) = (family.random_params(128, 3), points(&family, 128));
            let short: Vec<f32> = params.iter().map(|p| *p as f32).collect();
            group.bench_function(format!("{knots} knots, float64, log-densities"), |bencher| {
                bencher.iter(|| family.log_prob_rows(RowInput::Parameters, &params, &points, false).unwrap())
            });
            group.bench_function(format!("{knots} knots, float64, with gradients"), |bencher| {
                bencher.iter(|| family.log_prob_rows(RowInput::Parameters, &params, &points, true).unwrap())
            });
            let outputs = &short[..128 * 8 * 7];
            group.bench_function(format!("{knots} knots, float32, with gradients, outputs of a network"), |bencher| {
                bencher.iter(|| family.log_prob_rows(RowInput::StudentT, outputs, &points, true).unwrap())
            });
            group.bench_function(format!("{knots} knots, float32, with gradients"), |bencher| {
                bencher.iter(|| family.log_prob_rows(RowInput::Parameters, &short, &points, true).unwrap())
            });
        }
    }
}

/// Prints, for each region, the time to compile an orthonormal basis, measured once, and how well it is conditioned;
/// then measures evaluation and sampling.
fn bench_sums_of_squares(criterion: &mut Criterion) {
    let mut cases: Vec<(String, Constraint, u16)> = [3, 7, 11, 19].map(|n| (format!("{n}-star"), star(n), 18)).to_vec();
    cases.extend(maps().into_iter().map(|(name, constraint)| (name, constraint, 24)));
    println!("| region | degree | basis | compile | cond(G), Legendre | cond(G), basis | orthonormality error |");
    println!("|---|---|---|---|---|---|---|");
    for (name, constraint, degree) in &cases {
        let start = Instant::now();
        let family = sum_of_squares(constraint, *degree);
        let seconds = start.elapsed().as_secs_f64();
        let found = family.conditioning();
        println!(
            "| {name} | {degree} | {} | {seconds:.2} s | {:.1e} | 1 + {:.1e} | {:.1e} |",
            family.basis_len(),
            found.start,
            found.basis - 1.0,
            found.orthonormality
        );
    }
    for (name, constraint, degree) in [("7-star", star(7), 7), ("7-star", star(7), 14)] {
        let family: Family = sum_of_squares(&constraint, degree).into();
        let params = family.random_params(1000, 1);
        let one = &params[..family.num_params()];
        let cloud = points(&family, 1_000_000);
        let density = family.density(one).unwrap();
        let sampler = density.sampler().unwrap();
        let mut group = group(criterion, &format!("{name}, 4 squares of degree {degree}"));
        group.bench_function("compile, from the formula", |b| b.iter(|| sum_of_squares(&constraint, degree)));
        group.bench_function("log-density of 10^6 points", |b| b.iter(|| family.log_prob(one, &cloud).unwrap()));
        group.bench_function("normalisers of 1000 parameter vectors", |b| {
            b.iter(|| family.log_normaliser(&params).unwrap())
        });
        group.bench_function("mode to 1e-6", |b| b.iter(|| density.mode(&ModeOptions::default()).unwrap()));
        group.throughput(Throughput::Elements(100_000));
        group.bench_function("10^5 samples", |b| b.iter(|| black_box(sampler.sample(100_000, 1))));
        group.finish();
    }
}

criterion_group!(benches, bench_splines, bench_rows, bench_sums_of_squares);
criterion_main!(benches);
