//! Samples lie inside the constraint, fall into its parts with the right frequencies, have the right moments, and
//! depend on the seed alone.
//!
//! Seeds are fixed, so a test that passes once passes always. Thresholds are such that one seed in ten thousand fails
//! by chance. The long run, with a million samples per case:
//! `cargo test --release -p pal --test density_samples -- --ignored`.

mod common;

use std::collections::BTreeMap;

use common::Dice;
use common::densities::{Case, catalogue, histogram, in_float64, spline, sum_of_squares};
use pal::density::{Basis, Density, DensityError};
use pal::formula::{Constraint, Formula, Linear, Substitution};
use pal::number::from_f64;
use pal::query::QueryError;

fn names() -> [(&'static str, pal::density::Settings); 7] {
    [
        ("interval", spline(5, 2)),
        ("star", spline(4, 2)),
        ("notched", sum_of_squares(4, 2, Basis::Orthonormal)),
        ("boxes", sum_of_squares(2, 1, Basis::Legendre)),
        ("far", spline(3, 1)),
        ("sliver", spline(2, 2)),
        ("notched cube", sum_of_squares(2, 2, Basis::Orthonormal)),
    ]
}

/// The value that chi-square with `freedom` degrees of freedom exceeds with probability 1e-4, by the approximation of
/// Wilson and Hilferty.
fn threshold(freedom: usize) -> f64 {
    let part = 2.0 / (9.0 * freedom as f64);
    freedom as f64 * (1.0 - part + 3.719 * part.sqrt()).powi(3)
}

/// Compares counts with probabilities that add up to one.
fn chi_square(counts: &[usize], probabilities: &[f64]) -> Result<(), String> {
    let total: usize = counts.iter().sum();
    let (mut sum, mut cells, mut rest) = (0.0, 0, (0.0, 0.0));
    for (count, p) in counts.iter().zip(probabilities) {
        let (count, expected) = (*count as f64, p * total as f64);
        if expected < 10.0 {
            rest = (rest.0 + count, rest.1 + expected);
        } else {
            sum += (count - expected).powi(2) / expected;
            cells += 1;
        }
    }
    if rest.1 > 5.0 {
        sum += (rest.0 - rest.1).powi(2) / rest.1;
        cells += 1;
    } else if rest.0 > 30.0 {
        return Err(format!("{} samples where {} were expected", rest.0, rest.1));
    }
    let fine = cells < 2 || sum < threshold(cells - 1);
    if fine { Ok(()) } else { Err(format!("{sum} with {cells} cells: {counts:?} {probabilities:?}")) }
}

/// Parts by the sides of three random half-spaces.
fn parts(case: &Case, seed: u64) -> Vec<Formula> {
    let mut dice = Dice::new(seed);
    let sides: Vec<Formula> = (0..3).map(|_| case.half_space(&mut dice).le(0)).collect();
    let part = |bits: usize| {
        Formula::all(sides.iter().enumerate().map(|(k, f)| if bits >> k & 1 == 1 { f.clone() } else { !f.clone() }))
    };
    (0..8).map(part).collect()
}

fn counts(constraint: &Constraint, parts: &[Formula], samples: &[f64]) -> Vec<usize> {
    let count = |part: &Formula| {
        let members = Constraint { formula: part.clone(), ..constraint.clone() }.membership().unwrap();
        members.contains_batch(samples).iter().filter(|inside| **inside).count()
    };
    parts.iter().map(count).collect()
}

/// Whether all samples are inside: by the library for all, and by slow rational evaluation for some.
fn all_inside(constraint: &Constraint, samples: &[f64]) -> bool {
    let n = constraint.reals.len();
    let some = samples.chunks(n).step_by(samples.len() / n / 500 + 1);
    let exact = |point: &[f64]| point.iter().map(|x| from_f64(*x).unwrap()).collect::<Vec<_>>();
    constraint.membership().unwrap().contains_batch(samples).iter().all(|inside| *inside)
        && some.map(exact).all(|point| common::holds(constraint, &point, &[]))
}

fn follow_the_density(count: usize) {
    for (k, (region, settings)) in names().into_iter().enumerate() {
        let case = Case::new(region, settings);
        let density = case.density(40 + k as u64);
        let samples = density.sample(count, 7 + k as u64).unwrap();
        assert_eq!(samples.len(), count * case.dimension());
        assert!(all_inside(&case.constraint, &samples), "{case}");
        let parts = parts(&case, 60 + k as u64);
        let masses: Vec<f64> = parts.iter().map(|part| case.cubature(part, 0).mass(&density)).collect();
        chi_square(&counts(&case.constraint, &parts, &samples), &masses).unwrap_or_else(|e| panic!("{case}: {e}"));
        deciles(&case, &density, &samples);
        moments(&case, &density, &samples);
    }
}

/// Every tenth of a marginal gets a tenth of the samples.
fn deciles(case: &Case, density: &Density, samples: &[f64]) {
    let n = case.dimension();
    for (axis, var) in case.constraint.reals.iter().enumerate() {
        let marginal = density.marginal(var.name()).unwrap();
        let ends: Vec<f64> = (1..10).map(|k| marginal.quantile(f64::from(k) / 10.0).unwrap()).collect();
        let mut counts = vec![0; 10];
        samples.iter().skip(axis).step_by(n).for_each(|x| counts[ends.partition_point(|end| end < x)] += 1);
        chi_square(&counts, &[0.1; 10]).unwrap_or_else(|e| panic!("{case}: deciles of {var}: {e}"));
    }
}

/// First and second moments within five standard errors.
fn moments(case: &Case, density: &Density, samples: &[f64]) {
    let n = case.dimension();
    let count = (samples.len() / n) as f64;
    let (mean, covariance) = (density.mean(), density.covariance());
    for i in 0..n {
        let sum: f64 = samples.chunks(n).map(|point| point[i] - mean[i]).sum();
        let error = (covariance[i * n + i] / count).sqrt();
        assert!((sum / count).abs() < 5.0 * error, "{case}: mean of {i}: {} {error}", sum / count);
        for j in 0..=i {
            let products: Vec<f64> = samples.chunks(n).map(|x| (x[i] - mean[i]) * (x[j] - mean[j])).collect();
            let average = products.iter().sum::<f64>() / count;
            let spread = products.iter().map(|x| (x - average).powi(2)).sum::<f64>() / count;
            let off = average - covariance[i * n + j];
            assert!(off.abs() < 5.0 * (spread / count).sqrt(), "{case}: covariance of {i}, {j}: {off}");
        }
    }
}

#[test]
fn samples_follow_the_density() {
    follow_the_density(200_000);
}

#[test]
#[ignore = "a million samples per case"]
fn a_million_samples_follow_the_density() {
    follow_the_density(1_000_000);
}

#[test]
fn samples_of_every_case_are_inside_and_in_their_parts() {
    for (k, case) in catalogue().iter().enumerate() {
        let density = case.density(80 + k as u64);
        let samples = density.sample(3_000, 3).unwrap();
        assert!(all_inside(&case.constraint, &samples), "{case}");
        let parts = parts(case, 90 + k as u64);
        let masses: Vec<f64> = parts.iter().map(|part| density.probability(part).unwrap()).collect();
        chi_square(&counts(&case.constraint, &parts, &samples), &masses).unwrap_or_else(|e| panic!("{case}: {e}"));
    }
}

#[test]
fn threads_change_nothing() {
    for case in [Case::new("star", spline(4, 2)), Case::new("notched cube", sum_of_squares(2, 2, Basis::Orthonormal))] {
        let draw = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| case.density(1).sample(20_000, 42).unwrap())
        };
        let alone = draw(1);
        assert!(alone == draw(2) && alone == draw(5), "{case}");
        let sampler = case.density(1).sampler().unwrap();
        assert_eq!(
            [sampler.sample_from(0, 700, 42), sampler.sample_from(700, 300, 42)].concat(),
            alone[..1000 * case.dimension()]
        );
        assert_ne!(sampler.sample(100, 43), sampler.sample(100, 42));
    }
}

/// The rows of a batch are consecutive parts of one sequence.
#[test]
fn batches_are_densities_one_by_one() {
    let case = Case::new("triangle", spline(3, 2));
    let family = case.compile();
    let params = family.random_params(3, 2);
    let together = family.sample(&params, 50, 9).unwrap();
    for (row, density) in family.densities(&params).unwrap().iter().enumerate() {
        let alone = density.sampler().unwrap().sample_from(row as u64 * 50, 50, 9);
        assert_eq!(together[row * 100..][..100], alone);
    }
}

/// One sample of each of many densities: the counts of all parts have the mean of their probabilities. (The counts vary
/// less than those of samples of one density, so the threshold is on the safe side.)
#[test]
fn one_sample_of_each_row_follows_the_mixture_of_rows() {
    let fine = [
        Case::new("star", spline(14, 3)),
        Case::new("notched cube", spline(4, 2)),
        Case::new("notched", histogram(9, 2)),
    ];
    for (k, case) in catalogue().iter().chain(&fine).enumerate() {
        let family = case.compile();
        let params = family.random_params(1_000, 20 + k as u64);
        let samples = family.sample(&params, 1, 5).unwrap();
        assert_eq!(samples.len(), 1_000 * case.dimension());
        assert!(all_inside(&case.constraint, &samples), "{case}");
        let parts = case.partition(30 + k as u64);
        let mean = |part: &Formula| {
            let probabilities = family.event(part).unwrap().probability(&params).unwrap();
            probabilities.iter().sum::<f64>() / 1_000.0
        };
        let masses: Vec<f64> = parts.iter().map(mean).collect();
        chi_square(&counts(&case.constraint, &parts, &samples), &masses).unwrap_or_else(|e| panic!("{case}: {e}"));
    }
}

/// Equal rows: their samples are samples of one density, drawn by other means than those of [`Density::sample`].
#[test]
fn samples_of_equal_rows_follow_the_density() {
    let finer = [("star", spline(9, 2)), ("star", sum_of_squares(14, 1, Basis::Orthonormal))];
    let mut several_bins = false;
    for (k, (region, settings)) in names().into_iter().chain(finer).enumerate() {
        let case = Case::new(region, settings);
        let family = case.compile();
        let one = family.random_params(1, 50 + k as u64);
        several_bins |= family.kind().degree().axis > 6 && family.support().grid().bins() > 1;
        let samples = family.sample(&one.repeat(20_000), 1, 70 + k as u64).unwrap();
        assert!(all_inside(&case.constraint, &samples), "{case}");
        let density = family.density(&one).unwrap();
        let parts = parts(&case, 80 + k as u64);
        let masses: Vec<f64> = parts.iter().map(|part| density.probability(part).unwrap()).collect();
        chi_square(&counts(&case.constraint, &parts, &samples), &masses).unwrap_or_else(|e| panic!("{case}: {e}"));
        deciles(&case, &density, &samples);
        moments(&case, &density, &samples);
    }
    assert!(several_bins, "no sum of squares has more than one bin");
}

#[test]
fn rows_depend_on_their_number_and_on_the_seed_alone() {
    for case in [
        Case::new("star", spline(14, 3)),
        Case::new("notched cube", sum_of_squares(3, 2, Basis::Orthonormal)),
        Case::new("notched", histogram(9, 2)),
    ] {
        let family = case.compile();
        let (n, per) = (case.dimension(), family.num_params());
        let params = family.random_params(100, 3);
        for count in [1, 2] {
            let draw = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| family.sample(&params, count, 42).unwrap())
            };
            let alone = draw(1);
            assert!(alone == draw(2) && alone == draw(5), "{case}");
            for rows in [1, 15, 33] {
                let some = family.sample(&params[..rows * per], count, 42).unwrap();
                assert_eq!(some, alone[..rows * count * n], "{case}: {rows}");
            }
            assert_ne!(alone, family.sample(&params, count, 43).unwrap());
        }
    }
}

/// A component without mass takes no part, however large its logit; a density without any is named by its row.
#[test]
fn rows_with_components_that_vanish() {
    let case = Case::new("triangle", spline(5, 2));
    let family = case.compile();
    let per = family.num_params() / 2;
    let mut theta = vec![0.0; 2 * per];
    theta[0] = 3.0;
    // The second component is 1 at all knots: the uniform density of the triangle.
    theta[per + 1..per + 6].fill(1.0);
    theta[per + 11..per + 16].fill(1.0);
    let row = family.params_of(&theta);
    let samples = family.sample(&row.repeat(20_000), 1, 4).unwrap();
    assert!(all_inside(&case.constraint, &samples));
    moments(&case, &family.density(&row).unwrap(), &samples);
    let nothing = family.params_of(&vec![0.0; 2 * per]);
    let mixed = [row.repeat(37), nothing, row.repeat(5)].concat();
    let error = family.sample(&mixed, 1, 4).unwrap_err();
    assert!(matches!(error, QueryError::Density(DensityError::Zero(37))), "{error}");
    assert!(family.sample(&[], 1, 0).is_err() && family.sample(&mixed[1..], 1, 0).is_err());
}

/// x^2 (1 - x)^2 y^2 (1 - y)^2 on the four corners of a square, where the sums of Bernstein coefficients cancel: each
/// corner has a quarter of the mass, and near 0 the distribution function is x^3 / 3 - x^4 / 2 + x^5 / 5.
#[test]
fn rows_where_digits_cancel() {
    let (reals, x) = common::variables(2);
    let ends = x.iter().map(|x| x.between(0, common::ratio(1, 1000)) | x.between(common::ratio(999, 1000), 1));
    let constraint = Constraint { formula: Formula::all(ends), reals, booleans: Vec::new() };
    let case = Case::on("ends", constraint, spline(2, 1));
    let family = case.compile();
    let row = family.params_of(&[vec![0.0], [0.0, 0.0, 1.0, -1.0].repeat(2)].concat());
    let samples = family.sample(&row.repeat(4_000), 1, 4).unwrap();
    assert!(all_inside(&case.constraint, &samples));
    let cdf = |x: f64| x.powi(3) / 3.0 - x.powi(4) / 2.0 + x.powi(5) / 5.0;
    let near = cdf(5e-4) / cdf(1e-3);
    let cell = |x: f64| if x < 0.5 { usize::from(x > 5e-4) } else { 2 + usize::from(1.0 - x > 5e-4) };
    let mut counts = vec![0; 16];
    samples.chunks(2).for_each(|point| counts[4 * cell(point[0]) + cell(point[1])] += 1);
    let along = [near / 2.0, (1.0 - near) / 2.0].repeat(2);
    let masses: Vec<f64> = along.iter().flat_map(|a| along.iter().map(move |b| a * b)).collect();
    chi_square(&counts, &masses).unwrap();
}

/// The radical inverse of a number: its digits mirrored at the decimal point (van der Corput).
fn mirrored(mut k: usize, base: usize) -> f64 {
    let (mut value, mut place) = (0.0, 1.0 / base as f64);
    while k > 0 {
        value += (k % base) as f64 * place;
        (k, place) = (k / base, place / base as f64);
    }
    value
}

/// Quasi-random uniform numbers give evenly spread samples, whose means are several times better than those of random
/// ones.
#[test]
fn evenly_spread_numbers_give_better_means() {
    let count = 8192;
    for case in [Case::new("star", spline(4, 2)), Case::new("interval", spline(4, 1)), Case::new("far", spline(2, 1))] {
        let (n, density) = (case.dimension(), case.density(5));
        let (sampler, mean, covariance) = (density.sampler().unwrap(), density.mean(), density.covariance());
        assert_eq!(sampler.uniforms(), n + 1);
        let halton: Vec<f64> =
            (1..=count).flat_map(|k| [2, 3, 5][..n + 1].iter().map(move |b| mirrored(k, *b))).collect();
        let samples = sampler.transform(&halton).unwrap();
        assert!(all_inside(&case.constraint, &samples), "{case}");
        for i in 0..n {
            let average = samples.chunks(n).map(|point| point[i] - mean[i]).sum::<f64>() / count as f64;
            let by_chance = (covariance[i * n + i] / count as f64).sqrt();
            assert!(average.abs() < by_chance / 4.0, "{case}: {average} {by_chance}");
        }
    }
}

#[test]
fn corners_of_the_unit_cube_stay_inside() {
    for case in catalogue() {
        let sampler = case.density(2).sampler().unwrap();
        let n = sampler.uniforms();
        let ends = [0.0, f64::MIN_POSITIVE, 1.0 - f64::EPSILON, 1.0];
        let corner = |k: usize| (0..n).map(move |j| ends[k / 4usize.pow(j as u32) % 4]);
        let uniforms: Vec<f64> = (0..4usize.pow(n as u32).min(1024)).flat_map(corner).collect();
        assert!(all_inside(&case.constraint, &sampler.transform(&uniforms).unwrap()), "{case}");
        assert!(sampler.transform(&vec![1.5; n]).is_err() && sampler.transform(&vec![f64::NAN; n]).is_err());
        assert!(sampler.transform(&vec![0.5; n + 1]).is_err(), "{case}");
    }
}

#[test]
fn conditioned_samples() {
    for case in [Case::new("star", spline(3, 2)), Case::new("notched cube", sum_of_squares(2, 1, Basis::Orthonormal))] {
        let whole = case.density(6);
        let condition = parts(&case, 5).into_iter().max_by(|a, b| {
            let p = |f: &Formula| whole.probability(f).unwrap();
            p(a).total_cmp(&p(b))
        });
        let condition = condition.unwrap();
        let density = whole.condition(&condition).unwrap();
        let samples = density.sample(20_000, 8).unwrap();
        let formula = case.constraint.formula.clone() & condition.clone();
        assert!(all_inside(&Constraint { formula, ..case.constraint.clone() }, &samples), "{case}");
        let parts = parts(&case, 15);
        let total = case.cubature(&condition, 0).mass(&whole);
        let mass = |part: &Formula| case.cubature(&(part.clone() & condition.clone()), 0).mass(&whole) / total;
        let masses: Vec<f64> = parts.iter().map(mass).collect();
        chi_square(&counts(&case.constraint, &parts, &samples), &masses).unwrap_or_else(|e| panic!("{case}: {e}"));
        moments(&case, &density, &samples);
    }
}

#[test]
fn samples_given_a_value() {
    for case in [Case::new("star", spline(4, 2)), Case::new("notched cube", sum_of_squares(3, 1, Basis::Orthonormal))] {
        let n = case.dimension();
        let (low, length) = in_float64(&case.ends()[0]);
        let value = low + 0.61 * length;
        let density = case.density(7).given(&[("x1", value)]).unwrap();
        let samples = density.sample(20_000, 1).unwrap();
        let fixed = Substitution::new().real("x1", Linear::from(from_f64(value).unwrap()));
        let rest = Constraint {
            formula: case.constraint.formula.substitute(&fixed),
            reals: case.constraint.reals[1..].to_vec(),
            booleans: Vec::new(),
        };
        assert!(all_inside(&rest, &samples), "{case}");
        // Cells of a grid along the last variable, by its exact distribution function.
        let marginal = density.marginal(rest.reals[n - 2].name()).unwrap();
        let (low, high) = marginal.support();
        let mut counts = BTreeMap::new();
        let cell = |x: f64| ((x - low) / (high - low) * 20.0).floor().min(19.0) as usize;
        samples.iter().skip(n - 2).step_by(n - 1).for_each(|x| *counts.entry(cell(*x)).or_insert(0) += 1);
        let end = |k: usize| marginal.cdf(low + (high - low) * k as f64 / 20.0);
        let masses: Vec<f64> = (0..20).map(|k| end(k + 1) - end(k)).collect();
        let counts: Vec<usize> = (0..20).map(|k| counts.get(&k).copied().unwrap_or(0)).collect();
        chi_square(&counts, &masses).unwrap_or_else(|e| panic!("{case}: {e}"));
    }
}
