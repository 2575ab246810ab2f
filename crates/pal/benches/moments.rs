//! Measures the speed of the integrators: `cargo bench -p pal --bench moments`.
//!
//! The same run measures, for comparison, our own implementation of the paper's cubature (GASP!) and rejection
//! sampling. Other programs are compared by `bench/run.py`.

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pal::formula::{Constraint, Polygon, Ring, real};
use pal::moments::{Exponents, Method, Moments, integrate};
use pal::polynomial::Polynomial;
use pal::region::Region;
use pal::shapes;

fn star(corners: usize) -> Constraint {
    let ring = Ring::new(shapes::star(corners, 10.0)).unwrap();
    Polygon::new(ring, Vec::new()).unwrap().to_formula(&real("x"), &real("y")).into()
}

/// All moments of the 17-star up to degree 12: from the formula, and by the paper's cubature for one polynomial of that
/// degree.
fn stars(c: &mut Criterion) {
    let mut group = c.benchmark_group("star 17, degree 12");
    let constraint = star(17);
    let set = Exponents::total_degree(2, 12).unwrap();
    group.bench_function("all moments from cells", |b| {
        let region = Region::new(&constraint).unwrap();
        b.iter(|| Moments::compile(&region, &set).unwrap());
    });
    group.bench_function("all moments from the formula", |b| {
        b.iter(|| Moments::compile(&Region::new(&constraint).unwrap(), &set).unwrap());
    });
    let p = Polynomial::parse("(x + y + 1)^12").unwrap();
    let region = Region::new(&constraint).unwrap();
    for (name, method) in [
        ("one polynomial, recurrence", Method::Recurrence),
        ("one polynomial, exact", Method::Exact),
        ("one polynomial, GASP!", Method::Gasp),
        ("one polynomial, rejection with 10^5 samples", Method::Rejection { samples: 100_000, seed: 1 }),
    ] {
        group.bench_function(name, |b| b.iter(|| integrate(&region, &p, method).unwrap()));
    }
    group.finish();
}

/// All 646,646 moments of degree at most 12 of a simplex in ten dimensions, and how the cost grows on the way there.
fn dimensions(c: &mut Criterion) {
    let mut group = c.benchmark_group("all moments of a simplex, degree 12");
    group.sample_size(10);
    for n in [2usize, 4, 6, 8, 10] {
        let region = Region::new(&shapes::simplex(n)).unwrap();
        let set = Exponents::total_degree(n, 12).unwrap();
        group.throughput(Throughput::Elements(set.len() as u64));
        group.bench_with_input(BenchmarkId::from_parameter(n), &n, |b, _| {
            b.iter(|| Moments::compile(&region, &set).unwrap());
        });
    }
    group.finish();
}

/// Faces against simplices: the cube has n! simplices and fewer than 3^n faces.
fn cubes(c: &mut Criterion) {
    let mut group = c.benchmark_group("product of all variables over the cube");
    group.sample_size(10);
    for n in [4usize, 6, 8, 10] {
        let region = Region::new(&shapes::cube(n)).unwrap();
        let text = (1..=n).map(|j| format!("x{j}")).collect::<Vec<_>>().join("*");
        let p = Polynomial::parse(&text).unwrap();
        for (name, method) in [("recurrence", Method::Recurrence), ("exact", Method::Exact)] {
            group.bench_function(BenchmarkId::new(name, n), |b| b.iter(|| integrate(&region, &p, method).unwrap()));
        }
    }
    group.finish();
}

/// 10,000 evaluations of a compiled integral of degree 12 in two dimensions.
fn compiled(c: &mut Criterion) {
    let region = Region::new(&star(17)).unwrap();
    let eta = Moments::compile(&region, &Exponents::total_degree(2, 12).unwrap()).unwrap();
    let rows: Vec<f64> = (0..10_000 * eta.values().len()).map(|k| ((k % 1013) as f64).sin()).collect();
    let mut group = c.benchmark_group("compiled integral");
    group.throughput(Throughput::Elements(10_000));
    group.bench_function("10000 polynomials of degree 12", |b| {
        b.iter(|| eta.integrate_batch(black_box(&rows)).unwrap())
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    targets = stars, dimensions, cubes, compiled
}
criterion_main!(benches);
