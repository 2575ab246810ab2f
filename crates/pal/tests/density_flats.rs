//! Densities on flats: against closed forms, another chart, and integrals that know no chart.

use pal::density::{Family, HistogramSettings, Knots, Model, Settings, SplineSettings, SumOfSquaresSettings};
use pal::formula::{Formula, Linear, reals};
use pal::polynomial::Polynomial;
use pal::query::{EntropyOptions, ModeOptions};
use pal::region::Region;

/// Three shares of a whole, the first at most 0.7, and not the first two large at once.
fn shares() -> ([Linear; 3], Formula) {
    let [a, b, c] = reals(["a", "b", "c"]);
    let positive = a.ge(0) & b.ge(0) & c.ge(0) & (10 * &a).le(7);
    let formula = (&a + &b + &c).equals(1) & positive & !((5 * &a).gt(2) & (5 * &b).gt(2));
    ([a, b, c], formula)
}

fn simplex() -> ([Linear; 3], Formula) {
    let [a, b, c] = reals(["a", "b", "c"]);
    let formula = (&a + &b + &c).equals(1) & a.ge(0) & b.ge(0) & c.ge(0);
    ([a, b, c], formula)
}

fn kinds() -> [Settings; 3] {
    [
        SplineSettings { knots: Knots::Uniform(6), components: 3 }.into(),
        SumOfSquaresSettings { degree: Some(4), components: 2, ..Default::default() }.into(),
        HistogramSettings { knots: Knots::Uniform(6), components: 2 }.into(),
    ]
}

fn family(formula: &Formula, settings: &Settings) -> Family {
    Family::new(&Region::new(&formula.clone().into()).unwrap(), settings).unwrap()
}

/// Midpoints of a fine triangulation of the simplex, all of one area, which is returned too: an integrator in the plane
/// a + b + c = 1 that singles out no coordinate.
fn barycentric_grid(n: usize) -> (Vec<f64>, f64) {
    let mut points = Vec::new();
    let third = 1.0 / (3.0 * n as f64);
    for i in 0..n {
        for j in 0..n - i {
            let corner = |shift: f64| [(3 * i) as f64 + shift, (3 * j) as f64 + shift].map(|x| x * third);
            let mut push = |[a, b]: [f64; 2]| points.extend([a, b, 1.0 - a - b]);
            push(corner(1.0));
            if i + j + 1 < n {
                push(corner(2.0));
            }
        }
    }
    (points, 3f64.sqrt() / 2.0 / (n * n) as f64)
}

#[test]
fn densities_integrate_to_one_over_the_flat() {
    let ((.., formula), (points, area)) = (shares(), barycentric_grid(600));
    for settings in kinds() {
        let family = family(&formula, &settings);
        assert_eq!((family.dimension(), family.variables().len()), (2, 3));
        for (row, params) in family.random_params(2, 3).chunks(family.num_params()).enumerate() {
            let total: f64 = family.log_prob(params, &points).unwrap().iter().map(|l| l.exp() * area).sum();
            // Walls of the exclusion run through small triangles: the error is of the order of their size.
            assert!((total - 1.0).abs() < 1e-2, "{settings:?} {row}: {total}");
        }
    }
    // Without walls inside, the midpoint rule has an error of second order.
    let family = family(&simplex().1, &kinds()[1]);
    let params = family.random_params(1, 3);
    let total: f64 = family.log_prob(&params, &points).unwrap().iter().map(|l| l.exp() * area).sum();
    assert!((total - 1.0).abs() < 1e-4, "{total}");
}

/// The theta of the sum of one square whose root has given values, by linear equations at as many points as there are
/// features.
fn square_of(family: &Family, root: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let width = family.kind().num_features();
    let uniform = family.density(&vec![0.0; family.num_params()]).unwrap();
    let points = uniform.sample(width, 5).unwrap();
    let (features, inside) = family.features(&points).unwrap();
    assert!(inside.iter().all(|inside| *inside));
    let mut rows: Vec<Vec<f64>> = features.chunks(width).map(<[f64]>::to_vec).collect();
    rows.iter_mut().zip(points.chunks(family.variables().len())).for_each(|(row, point)| row.push(root(point)));
    for k in 0..width {
        let pivot = (k..width).max_by(|i, j| rows[*i][k].abs().total_cmp(&rows[*j][k].abs())).unwrap();
        rows.swap(k, pivot);
        let row = rows[k].clone();
        for (i, other) in rows.iter_mut().enumerate().filter(|(i, _)| *i != k) {
            let factor = other[k] / row[k];
            (k..=width).for_each(|j| other[j] -= factor * row[j]);
            assert!(i < width);
        }
    }
    let solution = (0..width).map(|k| rows[k][width] / rows[k][k]);
    [0.0].into_iter().chain(solution).collect()
}

#[test]
fn dirichlet_densities_are_squares() {
    // Dirichlet(3, 3, 3) has the density 8! / 2^3 (a b c)^2 with respect to two of the coordinates.
    let ([a, ..], formula) = simplex();
    let settings = SumOfSquaresSettings { degree: Some(3), components: 1, ..Default::default() };
    let family = family(&formula, &settings.into());
    let theta = square_of(&family, |y| y[0] * y[1] * y[2]);
    let density = family.density(&family.params_of(&theta)).unwrap();
    let surface = 3f64.sqrt();
    for point in [[0.25, 0.25, 0.5], [0.125, 0.5, 0.375], [0.75, 0.125, 0.125]] {
        let closed = 40320.0 / 8.0 * point.iter().map(|y| y * y).product::<f64>() / surface;
        assert!((density.log_prob(&point)[0].exp() / closed - 1.0).abs() < 1e-9, "{point:?}");
    }
    assert!(density.mean().iter().all(|mean| (mean - 1.0 / 3.0).abs() < 1e-11));
    // Variance 2/3 * 1/3 / 10, covariance -1/9 / 10.
    let covariance = density.covariance();
    for i in 0..3 {
        for j in 0..3 {
            let closed = if i == j { 2.0 / 90.0 } else { -1.0 / 90.0 };
            assert!((covariance[3 * i + j] - closed).abs() < 1e-11);
        }
    }
    // Every marginal is Beta(3, 6), the one of the dependent variable too.
    let beta = |x: f64| 168.0 * x * x * (1.0 - x).powi(5);
    for name in ["a", "b", "c"] {
        let marginal = density.marginal(name).unwrap();
        assert!((marginal.total() - 1.0).abs() < 1e-11);
        for x in [0.05, 0.2, 0.5, 0.8] {
            assert!((marginal.density(x) - beta(x)).abs() < 1e-9, "{name} {x}");
        }
        assert!((marginal.mean() - 1.0 / 3.0).abs() < 1e-11 && (marginal.variance() - 2.0 / 90.0).abs() < 1e-11);
    }
    let product = Polynomial::parse("a*b*c").unwrap();
    // 3 * 3 * 3 / (9 * 10 * 11)
    assert!((density.expectation(&product).unwrap() - 27.0 / 990.0).abs() < 1e-12);
    assert!(
        (density.probability(&a.le(Linear::try_from("1/3").unwrap())).unwrap() - {
            // The distribution function of Beta(3, 6) at 1/3: the chance of 3 or more successes of 8.
            let binomial = |k: i32, choose: f64| choose * (1f64 / 3.0).powi(k) * (2f64 / 3.0).powi(8 - k);
            1.0 - binomial(0, 1.0) - binomial(1, 8.0) - binomial(2, 28.0)
        })
        .abs()
            < 1e-10
    );
    let mode = density.mode(&ModeOptions::default()).unwrap();
    assert!(mode.point.iter().all(|y| (y - 1.0 / 3.0).abs() < 1e-3));
    assert!((mode.log_density - density.log_prob(&mode.point)[0]).abs() < 1e-12);
    let closed = (5040.0 / 729.0 / surface).ln();
    assert!(mode.log_density <= closed + 1e-12 && closed <= mode.log_upper + 1e-9);
}

#[test]
fn the_uniform_density_knows_the_surface() {
    let settings = SumOfSquaresSettings { degree: Some(0), components: 1, ..Default::default() };
    let uniform = family(&simplex().1, &settings.into()).density(&[0.0, 0.0]).unwrap();
    let area = 3f64.sqrt() / 2.0;
    assert!((uniform.log_prob(&[0.25, 0.5, 0.25])[0] + area.ln()).abs() < 1e-14);
    let entropy = uniform.entropy(&EntropyOptions::default());
    assert!((entropy.value - area.ln()).abs() < 1e-12);
    let information = family(&simplex().1, &kinds()[0]);
    let params = information.random_params(1, 2);
    let one = information.density(&params).unwrap().entropy(&EntropyOptions::default()).value;
    let many = information.information(&params, &EntropyOptions::default(), false).unwrap().values[0];
    assert!((one - many).abs() < 1e-5);
}

#[test]
fn either_chart_gives_the_same_density() {
    // A sum of squares of all polynomials up to a degree is the same set of densities in every chart.
    let ([a, b, _], formula) = shares();
    let settings: Settings = SumOfSquaresSettings { degree: Some(3), components: 1, ..Default::default() }.into();
    let root = |y: &[f64]| 1.0 + y[0] - 2.0 * y[1] * y[2] + 3.0 * y[0] * y[0] * y[2];
    let whole = Region::new(&formula.into()).unwrap();
    let densities: Vec<_> = [["a", "b"], ["a", "c"], ["b", "c"]]
        .iter()
        .map(|free| {
            let family = Family::new(&whole.with_free(free).unwrap(), &settings).unwrap();
            let theta = square_of(&family, root);
            family.density(&family.params_of(&theta)).unwrap()
        })
        .collect();
    let points = densities[0].sample(50, 1).unwrap();
    let first = densities[0].log_prob(&points);
    let event = (&a + &b).le(Linear::try_from("0.6").unwrap());
    for density in &densities[1..] {
        assert!(first.iter().zip(density.log_prob(&points)).all(|(x, y)| (x - y).abs() < 1e-8));
        assert!((density.probability(&event).unwrap() - densities[0].probability(&event).unwrap()).abs() < 1e-10);
        for (x, y) in density
            .mean()
            .iter()
            .chain(&density.covariance())
            .zip(densities[0].mean().iter().chain(&densities[0].covariance()))
        {
            assert!((x - y).abs() < 1e-10);
        }
        for name in ["a", "b", "c"] {
            let [left, right] = [density, &densities[0]].map(|density| density.marginal(name).unwrap());
            for x in [0.05, 0.3, 0.45, 0.65] {
                assert!((left.density(x) - right.density(x)).abs() < 1e-8, "{name} {x}");
                assert!((left.cdf(x) - right.cdf(x)).abs() < 1e-9, "{name} {x}");
            }
        }
        let modes = [density, &densities[0]].map(|density| density.mode(&ModeOptions::default()).unwrap());
        assert!((modes[0].log_density - modes[1].log_density).abs() < 2e-6);
    }
}

#[test]
fn samples_lie_on_the_flat_and_follow_the_masses() {
    let ([a, b, c], formula) = shares();
    for settings in kinds() {
        let family = family(&formula, &settings);
        let params = family.random_params(1, 8);
        let density = family.density(&params).unwrap();
        let samples = density.sample(20_000, 7).unwrap();
        assert!(density.log_prob(&samples).iter().all(|log| log.is_finite()));
        assert!(family.contains(&samples).iter().all(|inside| *inside));
        // Rounding the sum of three numbers of size 1 costs two roundings.
        assert!(samples.chunks(3).all(|y| (y[0] + y[1] + y[2] - 1.0).abs() <= 2.0 * f64::EPSILON));
        let third = Linear::try_from("0.3").unwrap();
        let cells: Vec<Formula> = [a.le(&third), a.gt(&third)]
            .into_iter()
            .flat_map(|first| [first.clone() & b.le(&c), first & b.gt(&c)])
            .collect();
        let masses: Vec<f64> = cells.iter().map(|cell| density.probability(cell).unwrap()).collect();
        assert!((masses.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        let mut chi_square = 0.0;
        for (k, mass) in masses.iter().enumerate() {
            let inside = |y: &[f64]| (y[0] <= 0.3) == (k < 2) && (y[1] <= y[2]) == (k % 2 == 0);
            let count = samples.chunks(3).filter(|y| inside(y)).count() as f64;
            let expected = mass * 20_000.0;
            chi_square += (count - expected) * (count - expected) / expected.max(1e-9);
        }
        assert!(chi_square < 20.0, "{settings:?}: {chi_square}");
        // Few samples of many rows take another way.
        let rows = family.random_params(300, 2);
        let few = family.sample(&rows, 1, 3).unwrap();
        assert_eq!(few.len(), 900);
        assert!(family.contains(&few).iter().all(|inside| *inside));
        let event = family.event(&c.le(&third)).unwrap();
        let given = event.sample(&rows, 1, 3).unwrap();
        assert!(given.chunks(3).all(|y| y[2] <= 0.3) && family.contains(&given).iter().all(|inside| *inside));
        let mean: Vec<f64> = (0..3).map(|j| samples.iter().skip(j).step_by(3).sum::<f64>() / 20_000.0).collect();
        assert!(density.mean().iter().zip(&mean).all(|(x, y)| (x - y).abs() < 0.01));
    }
}

#[test]
fn marginals_of_dependent_variables_are_those_of_samples_and_probabilities() {
    let ([_, _, c], formula) = shares();
    for settings in kinds() {
        let family = family(&formula, &settings);
        let density = family.density(&family.random_params(1, 4)).unwrap();
        let marginal = density.marginal("c").unwrap();
        assert!((marginal.total() - 1.0).abs() < 1e-10);
        for x in ["0.05", "0.15", "0.333", "0.5", "0.9"] {
            let mass = density.probability(&c.le(Linear::try_from(x).unwrap())).unwrap();
            let cdf = marginal.cdf(x.parse().unwrap());
            assert!((cdf - mass).abs() < 1e-9, "{settings:?} {x}: {cdf} {mass}");
        }
        assert!((marginal.mean() - density.mean()[2]).abs() < 1e-9);
        assert!((marginal.variance() - density.covariance()[8]).abs() < 1e-9);
        assert!((marginal.variance().sqrt() - density.standard_deviation()[2]).abs() < 1e-9);
        let all = family.marginals("c", &family.random_params(1, 4)).unwrap();
        assert_eq!(all[0].cdf(0.4), marginal.cdf(0.4));
    }
}

#[test]
fn gradients_are_differences() {
    let ((.., formula), step) = (shares(), 1e-6);
    for settings in kinds() {
        let family = family(&formula, &settings);
        let mut params = family.random_params(1, 9);
        let points = family.density(&params).unwrap().sample(5, 2).unwrap();
        let gradient = family.log_prob_vjp(&params, &points, &[1.0; 5]).unwrap();
        let sum = |params: &[f64]| family.log_prob(params, &points).unwrap().iter().sum::<f64>();
        for k in [0, 3, params.len() - 1] {
            let mut ends = [0.0; 2];
            for (end, sign) in ends.iter_mut().zip([1.0, -1.0]) {
                params[k] += sign * step;
                *end = sum(&params);
                params[k] -= sign * step;
            }
            let difference = (ends[0] - ends[1]) / (2.0 * step);
            assert!((difference - gradient[k]).abs() < 1e-4 * (1.0 + gradient[k].abs()), "{settings:?} {k}");
        }
        if let Some(rows) =
            family.log_prob_rows(pal::density::RowInput::Parameters, &params, &points[..3], false).unwrap()
        {
            assert!((rows.log_prob[0] - family.log_prob(&params, &points[..3]).unwrap()[0]).abs() < 1e-9);
        }
    }
}

#[test]
fn conditions_and_given_values() {
    let ([a, b, c], formula) = shares();
    let family = family(&formula, &kinds()[0]);
    let density = family.density(&family.random_params(1, 6)).unwrap();
    let half = Linear::try_from("1/2").unwrap();
    let given = density.condition(&c.ge(&half)).unwrap();
    assert_eq!(given.variables().len(), 3);
    let points = given.sample(100, 1).unwrap();
    assert!(points.chunks(3).all(|y| y[2] >= 0.5));
    let mass = density.probability(&c.ge(&half)).unwrap();
    for (x, y) in given.log_prob(&points).iter().zip(density.log_prob(&points)) {
        assert!((x - (y - mass.ln())).abs() < 1e-9);
    }
    assert_eq!(given.log_prob(&[0.5, 0.25, 0.25]), [f64::NEG_INFINITY]);
    assert!((density.cdf(&[("c", 0.5)]).unwrap() + mass - 1.0).abs() < 1e-12);
    // Given a, the density of b and c lies on a line, along which it integrates to 1.
    let line = density.given(&[("a", 0.25)]).unwrap();
    let names: Vec<&str> = line.variables().iter().map(|var| var.name()).collect();
    assert_eq!((names, line.dimension()), (vec!["b", "c"], 1));
    let count = 20_000;
    let at = |k: usize| 0.75 * (k as f64 + 0.5) / f64::from(count);
    let points: Vec<f64> = (0..count as usize).flat_map(|k| [at(k), 0.75 - at(k)]).collect();
    let total: f64 =
        line.log_prob(&points).iter().map(|log| log.exp()).sum::<f64>() * 0.75 * 2f64.sqrt() / f64::from(count);
    assert!((total - 1.0).abs() < 1e-3, "{total}");
    assert!(line.sample(10, 1).unwrap().chunks(2).all(|y| (y[0] + y[1] - 0.75).abs() < 1e-15));
    let error = density.given(&[("c", 0.25)]).unwrap_err().to_string();
    assert!(error.contains("c = -a - b + 1") && error.contains("in which it is free"), "{error}");
    // The joint density of the free variables is per unit of their own volume.
    let joint = density.marginal_density(&["b", "a"], &[0.25, 0.125]).unwrap()[0];
    assert!((joint / density.log_prob(&[0.125, 0.25, 0.625])[0].exp() - 3f64.sqrt()).abs() < 1e-9);
    assert!(density.marginal_density(&["a", "c"], &[0.25, 0.25]).unwrap_err().to_string().contains("depends on"));
    assert!(density.condition(&a.equals(&b)).unwrap_err().to_string().contains("a - b = 0"));
}

#[test]
fn equalities_as_conditions_of_ordinary_densities_are_explained() {
    let [x, y] = reals(["x", "y"]);
    let square = family(&(x.between(0, 1) & y.between(0, 1)), &kinds()[0]);
    let params = square.random_params(1, 1);
    let density = square.density(&params).unwrap();
    let error = |condition: &Formula| density.condition(condition).unwrap_err().to_string();
    assert!(error(&(2 * &x).equals(1)).contains("given(x=1/2)"), "{}", error(&(2 * &x).equals(1)));
    let slanted = error(&(&x + &y).equals(1));
    assert!(slanted.contains("x + y = 1") && slanted.contains("part of the constraint"), "{slanted}");
    assert!(
        square.event(&(&x + &y).equals(1)).unwrap().condition(&params).unwrap_err().to_string().contains("x + y = 1")
    );
    assert_eq!(density.probability(&(&x + &y).equals(1)).unwrap(), 0.0);
    assert!(error(&x.gt(1)).contains("probability 0"));
}

#[test]
fn files_keep_the_free_variables() {
    let whole = Region::new(&shares().1.into()).unwrap();
    for settings in kinds() {
        for free in [["a", "b"], ["b", "c"]] {
            let family = Family::new(&whole.with_free(&free).unwrap(), &settings).unwrap();
            let params = family.random_params(2, 1);
            let model = Model::new(family.clone(), params.clone()).unwrap();
            let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
            let points = [0.25, 0.25, 0.5, 0.125, 0.625, 0.25];
            assert_eq!(again.family().log_prob(&params, &points).unwrap(), family.log_prob(&params, &points).unwrap());
            assert_eq!(again.family().flat().unwrap().to_string(), family.flat().unwrap().to_string());
            assert_eq!(again.to_bytes().unwrap(), model.to_bytes().unwrap());
        }
    }
}

#[test]
fn the_order_of_variables_changes_nothing() {
    let (_, formula) = shares();
    let settings: Settings = SumOfSquaresSettings { degree: Some(2), components: 1, ..Default::default() }.into();
    let root = |a: f64, b: f64, c: f64| 1.0 + a - b * c;
    let orders = [[0, 1, 2], [2, 1, 0], [1, 2, 0]];
    let names = ["a", "b", "c"];
    let values: Vec<Vec<f64>> = orders
        .iter()
        .map(|order| {
            let order_names: Vec<&str> = order.iter().map(|j| names[*j]).collect();
            let constraint = pal::formula::Constraint::over(formula.clone(), &order_names).unwrap();
            let family = Family::new(&Region::new(&constraint).unwrap(), &settings).unwrap();
            let place = |name: &str| order_names.iter().position(|other| *other == name).unwrap();
            let theta = square_of(&family, |y| root(y[place("a")], y[place("b")], y[place("c")]));
            let density = family.density(&family.params_of(&theta)).unwrap();
            let point = [0.25, 0.125, 0.625];
            let moved: Vec<f64> = order.iter().map(|j| point[*j]).collect();
            let mean = density.mean();
            vec![density.log_prob(&moved)[0], mean[place("a")], mean[place("b")], mean[place("c")]]
        })
        .collect();
    for other in &values[1..] {
        assert!(values[0].iter().zip(other).all(|(x, y)| (x - y).abs() < 1e-9), "{values:?}");
    }
}

#[test]
fn regions_without_a_density_say_why() {
    let [x, y] = reals(["x", "y"]);
    let error = |formula: Formula| {
        let region = Region::new(&formula.into()).unwrap();
        Family::new(&region, &kinds()[0]).unwrap_err().to_string()
    };
    assert!(error(x.equals(1) & y.equals(&x)).contains("single point"));
    assert!(error(x.equals(1) & x.equals(2) & y.equals(0)).contains("empty"));
    let unbounded = error(x.equals(&y) & x.ge(0));
    assert!(unbounded.contains("unbounded in direction x + y"), "{unbounded}");
    let apart = error((x.equals(0) & y.between(0, 1)) | (y.equals(0) & x.between(0, 1)));
    assert!(apart.contains("x = 0") && apart.contains("y = 0"), "{apart}");
}

#[test]
fn constant_variables_come_along() {
    let [x, y] = reals(["x", "y"]);
    let family = family(&(x.between(0, 1) & (10 * &y).equals(3)), &kinds()[0]);
    let density = family.density(&family.random_params(1, 1)).unwrap();
    assert!(density.sample(5, 1).unwrap().chunks(2).all(|point| point[1] == 0.3));
    assert!(density.log_prob(&[0.5, 0.3])[0].is_finite());
    assert_eq!(density.log_prob(&[0.5, 0.3 + 1e-15]), [f64::NEG_INFINITY]);
    assert!((density.mean()[1] - 0.3).abs() < 1e-16 && density.covariance()[3] == 0.0);
    assert!(density.marginal("y").unwrap_err().to_string().contains("3/10"));
}
