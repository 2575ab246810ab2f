//! The fused pass, one point per parameter vector, against log-densities and gradients that are computed in other ways.

mod common;

use common::densities::{Case, catalogue, spline};
use pal::density::{Family, Precision, RowInput, RowLogProb, Settings};

fn rows<T: Precision>(family: &Family, params: &[T], points: &[f64]) -> RowLogProb<T> {
    family.log_prob_rows(RowInput::Parameters, params, points, true).unwrap().expect("all kinds have a fused pass")
}

#[test]
fn the_fused_pass_agrees_with_the_formulas_it_replaces() {
    for case in catalogue() {
        let family = case.compile();
        let n = family.dimension();
        // Not a multiple of the number of rows that are worked on together, and with points outside.
        let mut points: Vec<f64> = case.inside(37).into_iter().cycle().take(37 * n).collect();
        points[3 * n..4 * n].fill(1e30);
        let count = points.len() / n;
        let params = family.random_params(count, 5);
        let want = family.log_prob(&params, &points).unwrap();
        let ones = vec![1.0; count];
        let gradient = family.log_prob_vjp(&params, &points, &ones).unwrap();
        let fused = rows(&family, &params, &points);
        assert_eq!(fused.log_prob[3], f64::NEG_INFINITY);
        let largest = gradient.iter().fold(1.0f64, |largest, g| largest.max(g.abs()));
        for (row, (got, want)) in fused.log_prob.iter().zip(&want).enumerate() {
            // Near a zero of a spline the logarithm enlarges rounding errors.
            assert!(
                got == want || (got - want).abs() < 1e-9 * (1.0 + want.abs()),
                "{}, row {row}: {got} {want}",
                case.name
            );
        }
        for (at, (got, want)) in fused.gradient.as_ref().unwrap().iter().zip(&gradient).enumerate() {
            assert!((got - want).abs() < 1e-8 * largest, "{}, entry {at}: {got} {want}", case.name);
        }
        // Log-densities alone are the same numbers.
        let alone = family.log_prob_rows(RowInput::Parameters, &params, &points, false).unwrap().unwrap();
        assert_eq!((alone.log_prob, alone.gradient), (fused.log_prob.clone(), None));
        let single: Vec<f32> = params.iter().map(|p| *p as f32).collect();
        let short = rows(&family, &single, &points);
        for (row, (got, want)) in short.log_prob.iter().zip(&want).enumerate() {
            let close = (f64::from(*got) - want).abs() < 2e-3 * (1.0 + want.abs());
            assert!(f64::from(*got) == *want || close, "{}, row {row}: {got} {want}", case.name);
        }
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads_or_on_neighbours() {
    let case = Case::new("notched", spline(6, 8));
    let family = case.compile();
    let points: Vec<f64> = case.inside(200).into_iter().cycle().take(400).collect();
    let params = family.random_params(200, 2);
    let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let all = rows(&family, &params, &points);
    assert_eq!(one.install(|| rows(&family, &params, &points)), all);
    let (n, per) = (family.dimension(), family.num_params());
    let alone = rows(&family, &params[77 * per..78 * per], &points[77 * n..78 * n]);
    assert_eq!(alone.log_prob[0], all.log_prob[77]);
    assert_eq!(alone.gradient.unwrap()[..], all.gradient.unwrap()[77 * per..78 * per]);
}

/// Huge parameters do not overflow, in float32 either: densities do not depend on the scale of a spline.
#[test]
fn scale_does_not_matter() {
    let case = Case::new("notched", spline(5, 2));
    let family = case.compile();
    let points: Vec<f64> = case.inside(16).into_iter().cycle().take(32).collect();
    // Values and derivatives, which are parameters with the offset added.
    let theta = family.random_params(16, 8);
    let per = family.num_params() / 2;
    let log_prob = |power: i32| {
        let factor = 2f64.powi(power);
        let scaled: Vec<f64> =
            theta.iter().enumerate().map(|(at, p)| if at % per == 0 { *p } else { p * factor }).collect();
        let params: Vec<f32> = family.params_of(&scaled).iter().map(|p| *p as f32).collect();
        rows(&family, &params, &points).log_prob
    };
    // Next to the offset, small numbers would lose digits, and next to huge ones the offset is lost.
    assert_eq!(log_prob(45), log_prob(60));
    log_prob(0).iter().zip(log_prob(60)).for_each(|(a, b)| assert!((a - b).abs() < 1e-3, "{a} {b}"));
}

#[test]
fn wrong_lengths_and_values_are_errors() {
    let family = Case::new("interval", spline(4, 2)).compile();
    let params = family.random_params(2, 1);
    assert!(family.log_prob_rows(RowInput::Parameters, &params, &[0.5], true).is_err());
    let mut bad = params.clone();
    bad[family.num_params() + 3] = f64::NAN;
    let message = family.log_prob_rows(RowInput::Parameters, &bad, &[0.5, 0.5], true).unwrap_err().to_string();
    assert!(message.starts_with("parameter 3 of row 1 is NaN"), "{message}");
}

/// The parameters that the head makes of outputs, by its formulas, in the coordinates of the user.
fn head_params(family: &Family, components: usize, outputs: &[f64]) -> Vec<f64> {
    let axes: Vec<Vec<f64>> = family.support().grid().axes().iter().map(|axis| axis.positions()).collect();
    let n = axes.len();
    // The root of g^(n + 1) = g + 1, by bisection.
    let (mut low, mut high) = (1.0f64, 2.0f64);
    for _ in 0..200 {
        let g = (low + high) / 2.0;
        if g.powi(n as i32 + 1) > g + 1.0 { high = g } else { low = g }
    }
    let mut params = Vec::new();
    for (k, outputs) in outputs.chunks(1 + 3 * n).enumerate().map(|(k, outputs)| (k % components, outputs)) {
        params.push(outputs[0]);
        for (j, (knots, o)) in axes.iter().zip(outputs[1..].chunks(3)).enumerate() {
            let last = knots.len() - 1;
            let (centre, half) = ((knots[0] + knots[last]) / 2.0, (knots[last] - knots[0]) / 2.0);
            let place = (0.5 + (k + 1) as f64 * low.powi(-(j as i32 + 1))).fract() - 0.5;
            let m = centre + half * (o[0] + place);
            let width = |bin: usize| knots[bin + 1] - knots[bin];
            let at_knot = |i: usize| match i {
                0 => width(0),
                i if i == last => width(last - 1),
                i => (width(i - 1) + width(i)) / 2.0,
            };
            let h = (0..last).fold(at_knot(0), |h, i| {
                h + (at_knot(i + 1) - at_knot(i)) * ((m - knots[i]) / width(i)).clamp(0.0, 1.0)
            });
            let w = 0.35 * h + 2.0 * half / (1.0 + (3f64.ln() - 2.0 * o[1]).exp());
            let a = 0.6 + (o[2] + 1.4f64.exp_m1().ln()).exp().ln_1p();
            let spline = |p: &f64| (1.0 + ((p - m) / w).powi(2) / a).powf(-a / 2.0);
            let derivative = |p: &f64| {
                let u = (p - m) / w;
                -spline(p) * u / (w * (1.0 + u * u / a)) * 2.0 * half / last as f64
            };
            params.extend(knots.iter().map(spline));
            params.extend(knots.iter().map(derivative));
        }
    }
    params.chunks(family.num_params()).flat_map(|row| row.iter().zip(family.offset()).map(|(x, o)| x - o)).collect()
}

#[test]
fn outputs_of_a_network_go_through_the_head() {
    for case in catalogue() {
        let Settings::Spline(settings) = &case.settings else { continue };
        let family = case.compile();
        let (n, components) = (family.dimension(), settings.components);
        let points: Vec<f64> = case.inside(21).into_iter().cycle().take(21 * n).collect();
        let width = components * (1 + 3 * n);
        let mut dice = common::Dice::new(7);
        let outputs: Vec<f64> = (0..21 * width).map(|_| 3.0 * dice.unit() - 1.5).collect();
        let params = head_params(&family, components, &outputs);
        let want = family.log_prob(&params, &points).unwrap();
        let got = family.log_prob_rows(RowInput::StudentT, &outputs, &points, true).unwrap().unwrap();
        // Far from the origin the test computes with rounded coordinates.
        let tolerance = 1e-10 + 1e3 * case.resolution;
        for (got, want) in got.log_prob.iter().zip(&want) {
            assert!((got - want).abs() < tolerance * (1.0 + want.abs()), "{}: {got} {want}", case.name);
        }
        let gradient = got.gradient.unwrap();
        let step = 1e-6;
        for at in (0..outputs.len()).step_by(5) {
            let at_step = |step: f64| {
                let mut moved = outputs.clone();
                moved[at] += step;
                let rows = family.log_prob_rows(RowInput::StudentT, &moved, &points, false).unwrap().unwrap();
                rows.log_prob[at / width]
            };
            let want = (at_step(step) - at_step(-step)) / (2.0 * step);
            assert!(
                (gradient[at] - want).abs() < 1e-5 * (1.0 + want.abs()),
                "{} {at}: {} {want}",
                case.name,
                gradient[at]
            );
        }
        let single: Vec<f32> = outputs.iter().map(|x| *x as f32).collect();
        let short = family.log_prob_rows(RowInput::StudentT, &single, &points, true).unwrap().unwrap();
        for (got, want) in short.log_prob.iter().zip(&want) {
            assert!((f64::from(*got) - want).abs() < 1e-3 * (1.0 + want.abs()), "{}: {got} {want}", case.name);
        }
    }
}
