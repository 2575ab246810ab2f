//! Queries for many parameter vectors with derivatives: moments on events, given values per row, samples of events.

use pal::density::{Family, HistogramSettings, Knots, SplineSettings, SumOfSquaresSettings};
use pal::formula::{Formula, reals};
use pal::region::Region;

/// The side of the box along x: where x reaches 2, y would be 0, in the part that is cut out.
const LENGTH: f64 = 1.75;

fn families() -> Vec<Family> {
    let [x, y] = reals(["x", "y"]);
    let cut = x.between(0, 2) & y.between(0, 1) & (&x + &y).le(2) & !(x.between(1, 2) & (4 * &y).le(1));
    let region = Region::new(&cut.into()).unwrap();
    let spline = SplineSettings { knots: Knots::Uniform(5), components: 3 };
    let squares = SumOfSquaresSettings { degree: Some(3), components: 2, ..Default::default() };
    let histogram = HistogramSettings { knots: Knots::Uniform(5), components: 2 };
    [spline.into(), squares.into(), histogram.into()].map(|settings| Family::new(&region, &settings).unwrap()).into()
}

/// The derivative of `sum_i weights_i values_i` along one coordinate, by central differences.
fn difference(params: &[f64], at: usize, weights: &[f64], values: impl Fn(&[f64]) -> Vec<f64>) -> f64 {
    let along = |h: f64| {
        let mut moved = params.to_vec();
        moved[at] += h;
        values(&moved).iter().zip(weights).map(|(value, weight)| value * weight).sum::<f64>()
    };
    (along(1e-5) - along(-1e-5)) / 2e-5
}

#[test]
fn moments_on_an_event_are_probabilities_and_have_their_derivatives() {
    let [x, y] = reals(["x", "y"]);
    for family in families() {
        let condition = x.le(&y) | (2 * &x).ge(3);
        let moments = family.event_moments(&condition, &[vec![0, 0], vec![1, 0], vec![1, 2]]).unwrap();
        let params = family.random_params(2, 3);
        let values = moments.values(&params).unwrap();
        let probability = family.event(&condition).unwrap().probability(&params).unwrap();
        for (row, probability) in probability.iter().enumerate() {
            assert!((values[3 * row] - probability).abs() < 1e-13);
            let density = &family.event(&condition).unwrap().condition(&params).unwrap()[row];
            let box_mean = density.mean()[0] / LENGTH;
            assert!((values[3 * row + 1] - probability * box_mean).abs() < 1e-12);
        }
        let weights = [1.0, -0.5, 2.0, 0.25, 3.0, 1.0];
        let gradient = moments.vjp(&params, &weights).unwrap();
        for at in (0..params.len()).step_by(5) {
            let want = difference(&params, at, &weights, |params| moments.values(params).unwrap());
            assert!((gradient[at] - want).abs() < 1e-7, "{at}: {} {want}", gradient[at]);
        }
        assert!(moments.vjp(&params, &weights[1..]).is_err());
        assert!(family.event_moments(&condition, &[vec![1]]).is_err());
    }
}

#[test]
fn given_values_per_row_make_the_densities_of_single_rows() {
    let [x, _] = reals(["x", "y"]);
    for family in families() {
        let (params, values) = (family.random_params(3, 4), [0.1, 0.5, 0.1]);
        let given = family.given_rows(&["y"], &values, &Formula::yes()).unwrap();
        let moments = given.moments(&params, &[vec![0], vec![1]]).unwrap();
        let per = family.num_params();
        for (row, density) in given.densities(&params).unwrap().iter().enumerate() {
            let joint = family.density(&params[row * per..(row + 1) * per]).unwrap();
            let single = joint.given(&[("y", values[row])]).unwrap();
            assert!((density.mean()[0] - single.mean()[0]).abs() < 1e-13);
            let marginal = joint.marginal("y").unwrap().density(values[row]);
            assert!((moments[2 * row] / marginal - 1.0).abs() < 1e-9);
            assert!((moments[2 * row + 1] / moments[2 * row] * LENGTH - single.mean()[0]).abs() < 1e-12);
        }
        let weights = [1.0, -0.5, 2.0, 0.25, 3.0, 1.0];
        let powers = [vec![0], vec![1]];
        let gradient = given.moments_vjp(&params, &powers, &weights).unwrap();
        for at in (0..params.len()).step_by(7) {
            let want = difference(&params, at, &weights, |params| given.moments(params, &powers).unwrap());
            assert!((gradient[at] - want).abs() < 1e-7, "{at}: {} {want}", gradient[at]);
        }
        // A condition cuts the slices as well.
        let left = family.given_rows(&["y"], &values, &(2 * &x).le(1)).unwrap();
        let samples = left.sample(&params, 50, 7).unwrap();
        assert!(samples.len() == 150 && samples.iter().all(|x| (0.0..=0.5).contains(x)));
        let outside = family.given_rows(&["y"], &[0.5, 3.0, 0.5], &Formula::yes()).unwrap().densities(&params);
        assert!(outside.unwrap_err().to_string().contains("y = 3 (row 1)"));
    }
}

#[test]
fn samples_of_an_event_do_not_depend_on_the_other_rows_and_follow_its_mean() {
    let [x, y] = reals(["x", "y"]);
    let condition = x.le(&y) | (2 * &x).ge(3);
    for family in families() {
        let event = family.event(&condition).unwrap();
        let one = family.random_params(1, 6);
        let rows = 4000;
        let params = one.repeat(rows);
        let samples = event.sample(&params, 1, 11).unwrap();
        assert!(samples.chunks(2).all(|point| event.support().membership().contains(point)));
        assert_eq!(samples[..200], event.sample(&params[..100 * one.len()], 1, 11).unwrap()[..]);
        let density = &event.condition(&one).unwrap()[0];
        let (mean, covariance) = (density.mean(), density.covariance());
        for axis in 0..2 {
            let found = samples.iter().skip(axis).step_by(2).sum::<f64>() / rows as f64;
            let deviation = (covariance[axis * 3] / rows as f64).sqrt();
            assert!((found - mean[axis]).abs() < 4.5 * deviation, "{found} {} {deviation}", mean[axis]);
        }
    }
}
