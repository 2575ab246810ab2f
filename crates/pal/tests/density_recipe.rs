//! The recipes for tensor frameworks, followed step by step in plain loops, agree with the log-densities of the
//! library.

use pal::density::{
    Basis, Family, HistogramMixture, HistogramRecipe, HistogramSettings, Knots, Settings, SplineMixture, SplineRecipe,
    SplineSettings, Subset, SumOfSquares, SumOfSquaresRecipe, SumOfSquaresSettings,
};
use pal::formula::{Formula, reals};
use pal::number::Rational;
use pal::region::Region;

fn tenths(count: u64) -> Rational {
    Rational::from_parts(count.into(), 10u64.into())
}

fn softmax_logs(logits: &[f64]) -> Vec<f64> {
    let total: f64 = logits.iter().map(|l| l.exp()).sum();
    logits.iter().map(|l| l - total.ln()).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// A multilinear form of the squares of splines, given by values and derivatives at the knots along all axes.
fn integral(recipe: &SplineRecipe, form: &[f64], theta: &[f64]) -> f64 {
    let (mut at, mut form) = (0, form.to_vec());
    for axis in &recipe.axes {
        let across = form.len() / axis.nodes;
        let mut contracted = vec![0.0; across];
        for (node, row) in form.chunks(across).enumerate() {
            let value: f64 = (0..axis.params).map(|p| theta[at + p] * axis.values[p * axis.nodes + node]).sum();
            contracted.iter_mut().zip(row).for_each(|(c, r)| *c += value * value * r);
        }
        (at, form) = (at + axis.params, contracted);
    }
    form[0]
}

/// A multilinear form of the weights of bins along all axes, given by their logarithms.
fn weighted_volume(recipe: &HistogramRecipe, form: &[f64], theta: &[f64]) -> f64 {
    let (mut at, mut form) = (0, form.to_vec());
    for bins in &recipe.bins {
        let across = form.len() / bins;
        let mut contracted = vec![0.0; across];
        for (row, theta) in form.chunks(across).zip(&theta[at..]) {
            contracted.iter_mut().zip(row).for_each(|(c, r)| *c += theta.exp() * r);
        }
        (at, form) = (at + bins, contracted);
    }
    form[0]
}

enum Recipe {
    Spline(SplineRecipe),
    SumOfSquares(SumOfSquaresRecipe),
    Histogram(HistogramRecipe),
}

fn recipe(family: &Family) -> Recipe {
    let spline = family.downcast::<SplineMixture>().map(|kind| Recipe::Spline(kind.recipe()));
    let squares = family.downcast::<SumOfSquares>().map(|kind| Recipe::SumOfSquares(kind.recipe()));
    let histogram = family.downcast::<HistogramMixture>().map(|kind| Recipe::Histogram(kind.recipe()));
    spline.or(squares).or(histogram).unwrap()
}

/// The log-density of one point, given parameters with the offset added.
fn follow(recipe: &Recipe, theta: &[f64], features: &[f64]) -> f64 {
    match recipe {
        Recipe::Spline(recipe) => {
            let parts: Vec<&[f64]> = theta.chunks(theta.len() / recipe.components).collect();
            let weights = softmax_logs(&parts.iter().map(|part| part[0]).collect::<Vec<f64>>());
            let term = |(part, weight): (&&[f64], &f64)| {
                let (mut at, mut value) = (0, 0.0);
                for axis in &recipe.axes {
                    let (theta, f) = (&part[1 + at..1 + at + axis.params], &features[at..at + axis.params]);
                    value += 2.0 * dot(theta, f).abs().ln();
                    at += axis.params;
                }
                (weight + value - integral(recipe, recipe.form.as_ref().unwrap(), &part[1..]).ln() - recipe.log_volume)
                    .exp()
            };
            parts.iter().zip(&weights).map(term).sum::<f64>().ln()
        }
        Recipe::Histogram(recipe) => {
            let parts: Vec<&[f64]> = theta.chunks(theta.len() / recipe.components).collect();
            let weights = softmax_logs(&parts.iter().map(|part| part[0]).collect::<Vec<f64>>());
            let term = |(part, weight): (&&[f64], &f64)| {
                let integral = weighted_volume(recipe, &recipe.form, &part[1..]);
                (weight + dot(&part[1..], features) - integral.ln() - recipe.log_volume).exp()
            };
            parts.iter().zip(&weights).map(term).sum::<f64>().ln()
        }
        Recipe::SumOfSquares(recipe) => {
            let damp = |z: &f64| {
                if recipe.reparametrised { z.signum() * ((z.abs() + 0.1).sqrt() - 0.1f64.sqrt()) } else { *z }
            };
            let (mut above, mut below) = (0.0, 0.0);
            for part in theta.chunks(recipe.size + 1) {
                let u: Vec<f64> = part[1..].iter().map(damp).collect();
                let integral = match &recipe.gram {
                    Some(gram) => gram.chunks(recipe.size).zip(&u).map(|(row, u_i)| u_i * dot(row, &u)).sum(),
                    None => dot(&u, &u),
                };
                above += part[0].exp() * dot(&u, features).powi(2);
                below += part[0].exp() * integral;
            }
            (above / below).ln() - recipe.log_volume
        }
    }
}

fn histogram(bins: usize, components: usize) -> Settings {
    Settings::Histogram(HistogramSettings { knots: Knots::Uniform(bins + 1), components })
}

fn theta(family: &Family, params: &[f64]) -> Vec<f64> {
    params.iter().zip(family.offset()).map(|(p, offset)| p + offset).collect()
}

fn agree(phi: Formula, settings: Settings, points: &[f64]) {
    let family = Family::new(&Region::new(&phi.into()).unwrap(), &settings).unwrap();
    let recipe = recipe(&family);
    let (features, inside) = family.features(points).unwrap();
    let width = family.kind().num_features();
    for seed in 0..5 {
        let params = family.random_params(1, seed);
        let want = family.log_prob(&params, points).unwrap();
        for ((features, inside), want) in features.chunks(width).zip(&inside).zip(want) {
            assert_eq!(*inside, want > f64::NEG_INFINITY);
            if *inside {
                let got = follow(&recipe, &theta(&family, &params), features);
                assert!((got - want).abs() < 1e-11 * want.abs().max(1.0), "{settings:?}: {got} {want}");
            } else {
                assert!(features.iter().all(|f| *f == 0.0));
            }
        }
    }
}

/// Probabilities and moments from other forms in the same recipe.
#[test]
fn forms_of_conditions_and_moments() {
    let [x, y] = reals(["x", "y"]);
    let phi = x.between(-1, 3) & y.between(0, 1) & !((&x + &y).le(tenths(7)) & x.ge(tenths(2)));
    let gamma = (&x - 2 * &y).le(tenths(4));
    let spline = Settings::Spline(SplineSettings { knots: Knots::Uniform(5), components: 3 });
    let sum_of_squares =
        |basis| Settings::SumOfSquares(SumOfSquaresSettings { degree: Some(3), components: 2, basis, subset: None });
    for settings in [
        spline,
        sum_of_squares(Basis::Orthonormal),
        sum_of_squares(Basis::Legendre),
        sum_of_squares(Basis::Monomial),
        histogram(5, 3),
    ] {
        let family = Family::new(&Region::new(&phi.clone().into()).unwrap(), &settings).unwrap();
        let params = family.random_params(1, 3);
        let theta = theta(&family, &params);
        // Of a point, only the fraction of each component in the sum matters: the ratio of two sums over all components
        // is taken instead.
        let weighted = |form: Vec<f64>| -> f64 {
            let log_volume = family.support().grid().log_volume();
            match recipe(&family) {
                Recipe::Spline(recipe) => {
                    let integral = |form: &[f64], part: &[f64]| integral(&recipe, form, &part[1..]);
                    let parts: Vec<&[f64]> = theta.chunks(theta.len() / recipe.components).collect();
                    let weights = softmax_logs(&parts.iter().map(|part| part[0]).collect::<Vec<f64>>());
                    let share = |(part, w): (&&[f64], &f64)| {
                        w.exp() * integral(&form, part) / integral(recipe.form.as_ref().unwrap(), part)
                    };
                    parts.iter().zip(&weights).map(share).sum()
                }
                Recipe::Histogram(recipe) => {
                    let integral = |form: &[f64], part: &[f64]| weighted_volume(&recipe, form, &part[1..]);
                    let parts: Vec<&[f64]> = theta.chunks(theta.len() / recipe.components).collect();
                    let weights = softmax_logs(&parts.iter().map(|part| part[0]).collect::<Vec<f64>>());
                    let fraction =
                        |(part, w): (&&[f64], &f64)| w.exp() * integral(&form, part) / integral(&recipe.form, part);
                    parts.iter().zip(&weights).map(fraction).sum()
                }
                Recipe::SumOfSquares(mut recipe) => {
                    // Features that are one of the unit vectors give the squares of coefficients; the forms are summed
                    // by hand.
                    let damp = |z: &f64| {
                        if recipe.reparametrised { z.signum() * ((z.abs() + 0.1).sqrt() - 0.1f64.sqrt()) } else { *z }
                    };
                    let sum = |gram: &[f64]| -> f64 {
                        theta
                            .chunks(recipe.size + 1)
                            .map(|part| {
                                let u: Vec<f64> = part[1..].iter().map(damp).collect();
                                let rows = gram.chunks(recipe.size).zip(&u);
                                part[0].exp() * rows.map(|(row, u_i)| u_i * dot(row, &u)).sum::<f64>()
                            })
                            .sum()
                    };
                    let identity: Vec<f64> = (0..recipe.size * recipe.size)
                        .map(|k| if k % (recipe.size + 1) == 0 { 1.0 } else { 0.0 })
                        .collect();
                    assert!(log_volume.is_finite());
                    let whole = recipe.gram.take().unwrap_or(identity);
                    sum(&form) / sum(&whole)
                }
            }
        };
        let probability = weighted(family.normaliser_tensor(&gamma, &[]).unwrap());
        let want = family.event(&gamma).unwrap().probability(&params).unwrap()[0];
        assert!((probability - want).abs() < 1e-12, "{settings:?}: {probability} {want}");
        let share = weighted(family.normaliser_tensor(&Formula::yes(), &[1, 0]).unwrap());
        let mean = family.mean(&params).unwrap()[0];
        let ends = family.support().grid().axes()[0].positions();
        let (low, high) = (ends[0], ends[ends.len() - 1]);
        assert!((low + share * (high - low) - mean).abs() < 1e-11, "{settings:?}");
        assert!(family.normaliser_tensor(&gamma, &[1]).is_err());
    }
}

/// Partial derivatives of every order are differences of those of the order below.
#[test]
fn derivatives_of_features() {
    let [x, y] = reals(["x", "y"]);
    let phi = x.between(-1, 3) & y.between(0, 1) & !((&x + &y).le(tenths(7)) & x.ge(tenths(2)));
    let at = |list: &[i64]| list.iter().map(|p| Rational::from_parts((*p).into(), 4u64.into())).collect();
    let knots = Knots::At(vec![at(&[-4, -1, 2, 12]), at(&[0, 3, 4])]);
    let sum_of_squares =
        |basis, subset| Settings::SumOfSquares(SumOfSquaresSettings { degree: Some(4), components: 2, basis, subset });
    for settings in [
        Settings::Spline(SplineSettings { knots, components: 2 }),
        sum_of_squares(Basis::Orthonormal, None),
        sum_of_squares(Basis::Legendre, Some(Subset { terms: 7, seed: 3 })),
        sum_of_squares(Basis::Monomial, None),
    ] {
        let family = Family::new(&Region::new(&phi.clone().into()).unwrap(), &settings).unwrap();
        let points = [-0.7, 0.3, 0.1, 0.9, 2.0, 0.15, 0.4, 0.1];
        let h = 1e-5;
        for orders in [[0, 0], [1, 0], [0, 1], [1, 1], [2, 0], [0, 2], [2, 1], [3, 2]] {
            for j in 0..2 {
                let shifted = |by: f64| -> Vec<f64> {
                    points.iter().enumerate().map(|(k, p)| if k % 2 == j { p + by } else { *p }).collect()
                };
                let values = |points: &[f64]| family.feature_derivatives(points, &orders).unwrap();
                let (above, below) = (values(&shifted(h)).0, values(&shifted(-h)).0);
                let mut higher = orders;
                higher[j] += 1;
                let (slopes, inside) = family.feature_derivatives(&points, &higher).unwrap();
                assert_eq!(inside, [true, true, true, false]);
                let size = slopes.iter().chain(&above).fold(1.0f64, |a, b| a.max(b.abs()));
                for ((a, b), slope) in above.iter().zip(&below).zip(&slopes) {
                    assert!(((a - b) / (2.0 * h) - slope).abs() < 1e-6 * size, "{settings:?} {orders:?} {j}");
                }
            }
        }
        assert_eq!(family.feature_derivatives(&points, &[0, 0]).unwrap(), family.features(&points).unwrap());
        assert!(family.feature_derivatives(&points, &[700, 0]).unwrap().0.iter().all(|slope| *slope == 0.0));
        assert!(family.feature_derivatives(&points, &[1]).is_err());
    }
}

/// A spline whose support lies inside an obstacle has no mass at all, not a small one.
#[test]
fn no_mass_is_exactly_none() {
    let [x, y] = reals(["x", "y"]);
    let obstacle = x.between(2, 8) & y.between(2, 8);
    let room = x.between(0, 10) & y.between(0, 10) & !obstacle.clone();
    let settings = Settings::Spline(SplineSettings { knots: Knots::Uniform(11), components: 1 });
    let family = Family::new(&Region::new(&room.into()).unwrap(), &settings).unwrap();
    let recipe = family.downcast::<SplineMixture>().unwrap().recipe();
    for (value, derivative) in [(1.0, 0.0), (0.3, -2.0)] {
        for knot in 3..=7 {
            let mut theta = vec![0.0; 44];
            for axis in [0, 22] {
                (theta[axis + knot], theta[axis + 11 + knot]) = (value, derivative);
            }
            assert_eq!(integral(&recipe, recipe.form.as_ref().unwrap(), &theta), 0.0);
            theta[22] = 1.0;
            assert!(integral(&recipe, recipe.form.as_ref().unwrap(), &theta) > 0.0);
        }
    }
}

/// A part of the constraint without volume, outside of the box around the others, has density 0 in every query.
#[test]
fn parts_without_volume_beyond_the_box() {
    let [x, y] = reals(["x", "y"]);
    let phi = (x.between(0, 1) & y.between(0, 1)) | (x.between(3, 3) & y.between(0, 1));
    for settings in [
        Settings::Spline(SplineSettings { knots: Knots::Uniform(3), components: 2 }),
        Settings::SumOfSquares(SumOfSquaresSettings {
            degree: Some(2),
            components: 2,
            basis: Basis::Orthonormal,
            subset: None,
        }),
        histogram(2, 2),
    ] {
        let family = Family::new(&Region::new(&phi.clone().into()).unwrap(), &settings).unwrap();
        let points = [0.5, 0.5, 3.0, 0.5, 0.0, 1.0, 1.0, 0.0, 2.0, 0.5];
        assert_eq!(family.contains(&points), [true, false, true, true, false]);
        let (features, inside) = family.features(&points).unwrap();
        assert_eq!(inside, family.contains(&points));
        let width = family.kind().num_features();
        assert!(features[width..2 * width].iter().all(|f| *f == 0.0));
        let logs = family.log_prob(&family.random_params(1, 1), &points).unwrap();
        assert_eq!(logs.iter().map(|log| log.is_finite()).collect::<Vec<_>>(), inside);
    }
}

fn lattice(n: usize, count: usize) -> Vec<f64> {
    (0..count * n).map(|k| (0.5 + k as f64 * (0.618033988749895 + 0.1 * (k % n) as f64)).fract()).collect()
}

#[test]
fn splines_in_one_to_four_dimensions() {
    let [x, y, z, w] = reals(["x", "y", "z", "w"]);
    let spline = |knots, components| Settings::Spline(SplineSettings { knots, components });
    agree(x.between(0, 1) & !(x.gt(tenths(4)) & x.lt(tenths(5))), spline(Knots::Uniform(6), 2), &lattice(1, 40));
    let plane = x.between(0, 1) & y.between(0, 1) & !((&x + &y).le(tenths(7)) & x.ge(tenths(2)));
    agree(plane.clone(), spline(Knots::Uniform(9), 3), &lattice(2, 60));
    let at = |list: &[(i64, u64)]| list.iter().map(|(p, q)| Rational::from_parts((*p).into(), (*q).into())).collect();
    let knots = Knots::At(vec![at(&[(0, 1), (1, 10), (1, 2), (1, 1)]), at(&[(-1, 1), (1, 3), (2, 1)])]);
    agree(plane, spline(knots, 2), &lattice(2, 60));
    let space = x.between(0, 1) & y.between(0, 1) & z.between(0, 1) & (&x + &y + &z).le(2);
    agree(space.clone(), spline(Knots::Uniform(4), 2), &lattice(3, 40));
    agree(space & w.between(0, 1) & (&x + &w).ge(tenths(5)), spline(Knots::Uniform(3), 2), &lattice(4, 40));
}

#[test]
fn histograms_in_one_to_five_dimensions() {
    let [x, y, z, v, w] = reals(["x", "y", "z", "v", "w"]);
    agree(x.between(0, 1) & !(x.gt(tenths(4)) & x.lt(tenths(5))), histogram(6, 2), &lattice(1, 40));
    let plane = x.between(0, 1) & y.between(0, 1) & !((&x + &y).le(tenths(7)) & x.ge(tenths(2)));
    agree(plane.clone(), histogram(9, 3), &lattice(2, 60));
    let space = plane & z.between(0, 1) & (&x + &y + &z).le(2);
    agree(space.clone(), histogram(3, 2), &lattice(3, 40));
    agree(space & v.between(0, 1) & w.between(0, 1) & (&v + &w).ge(tenths(5)), histogram(2, 2), &lattice(5, 40));
}

#[test]
fn sums_of_squares_in_every_basis() {
    let [x, y, z] = reals(["x", "y", "z"]);
    let plane = x.between(0, 1) & y.between(0, 1) & !((&x + &y).le(tenths(7)) & x.ge(tenths(2)));
    let space = plane.clone() & z.between(0, 1) & (&z + &y).ge(tenths(3));
    for basis in [Basis::Orthonormal, Basis::Legendre, Basis::Monomial] {
        for subset in [None, Some(Subset { terms: 7, seed: 3 })] {
            agree(
                plane.clone(),
                Settings::SumOfSquares(SumOfSquaresSettings { degree: Some(5), components: 3, basis, subset }),
                &lattice(2, 60),
            );
            agree(
                space.clone(),
                Settings::SumOfSquares(SumOfSquaresSettings { degree: Some(3), components: 2, basis, subset }),
                &lattice(3, 60),
            );
        }
    }
}
