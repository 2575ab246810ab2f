//! No sample leaves the constraint, however many are drawn: on drone scenes and on stars, under exact evaluation.
//!
//! Ten million samples of each family on each region:
//! `PAL_DATA=.. cargo test --release -p pal --test density_scale -- --ignored --nocapture`. Without `PAL_DATA` the
//! scenes are skipped.

mod common;

use std::time::Instant;

use common::densities::{Case, scenes, spline, star, sum_of_squares};
use pal::density::Basis;
use pal::number::from_f64;

fn stars() -> Vec<(String, pal::formula::Constraint)> {
    [3, 7, 11, 19].map(|corners| (format!("{corners}-star"), star(corners, 10.0))).into()
}

/// Draws samples in parts and counts those outside.
fn draw(case: &Case, count: usize) {
    let start = Instant::now();
    let density = case.density(1);
    let sampler = density.sampler().unwrap();
    let members = case.constraint.membership().unwrap();
    let (compiled, n) = (start.elapsed(), case.dimension());
    let (mut outside, mut slow) = (0, 0);
    for first in (0..count).step_by(1_000_000) {
        let samples = sampler.sample_from(first as u64, (count - first).min(1_000_000), 2024);
        outside += members.contains_batch(&samples).iter().filter(|inside| !**inside).count();
        // Some of them by rational arithmetic alone.
        let step = (samples.len() / n / 100).max(1);
        for point in samples.chunks(n).step_by(step) {
            let exact: Vec<_> = point.iter().map(|x| from_f64(*x).unwrap()).collect();
            slow += usize::from(!common::holds(&case.constraint, &exact, &[]));
        }
    }
    assert_eq!((outside, slow), (0, 0), "{case}: samples outside, of {count}");
    println!("{case}: {count} samples inside, {:.1?} to compile, {:.1?} in all", compiled, start.elapsed());
}

#[test]
fn ten_thousand_samples_per_region() {
    for (name, constraint) in scenes().into_iter().chain(stars()) {
        draw(&Case::on(&name, constraint.clone(), spline(8, 2)), 10_000);
        draw(&Case::on(&name, constraint, sum_of_squares(4, 2, Basis::Orthonormal)), 10_000);
    }
}

#[test]
#[ignore = "ten million samples per region"]
fn ten_million_samples_per_region() {
    for (name, constraint) in scenes().into_iter().chain(stars()) {
        draw(&Case::on(&name, constraint.clone(), spline(14, 3)), 10_000_000);
        draw(&Case::on(&name, constraint, sum_of_squares(8, 2, Basis::Orthonormal)), 10_000_000);
    }
}
