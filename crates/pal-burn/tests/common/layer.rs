//! The contract of a layer, for every kind of family: log-densities and gradients agree with the core.

use burn::tensor::{DType, Device, Tensor, TensorData};
use pal::density::{Basis, Family, HistogramSettings, Knots, Settings, SplineSettings, SumOfSquaresSettings};
use pal::formula::{Formula, reals};
use pal::number::Rational;
use pal::region::Region;
use pal_burn::{Normaliser, PalLayer, to_f64_vec};

/// A box with a hole in n dimensions, cut by a hyperplane from two dimensions on.
fn region(n: usize) -> Formula {
    let [x, y, z, w] = reals(["x", "y", "z", "w"]);
    let first = x.between(0, 3) & !(x.gt(1) & x.lt(2) & if n > 1 { y.gt(1) } else { x.gt(1) });
    match n {
        1 => first,
        2 => first & y.between(0, 2) & (&x + &y).le(4),
        3 => first & y.between(0, 2) & z.between(-1, 1) & (&x + &y + &z).le(4),
        _ => first & y.between(0, 2) & z.between(-1, 1) & w.between(5, 6) & (&x + &w).le(8),
    }
}

fn cases() -> Vec<(usize, Settings)> {
    let spline = |knots, components| Settings::Spline(SplineSettings { knots: Knots::Uniform(knots), components });
    let sum_of_squares = |degree, basis| {
        Settings::SumOfSquares(SumOfSquaresSettings { degree: Some(degree), components: 3, basis, subset: None })
    };
    let mut cases =
        vec![(1, spline(7, 2)), (2, spline(5, 1)), (2, spline(14, 8)), (3, spline(4, 2)), (4, spline(3, 2))];
    let histogram =
        |knots, components| Settings::Histogram(HistogramSettings { knots: Knots::Uniform(knots), components });
    cases.extend([(1, histogram(7, 2)), (2, histogram(6, 1)), (2, histogram(9, 4))]);
    cases.extend([(3, histogram(4, 2)), (4, histogram(3, 2))]);
    for basis in [Basis::Orthonormal, Basis::Legendre, Basis::Monomial] {
        cases.extend([(1, sum_of_squares(5, basis)), (2, sum_of_squares(5, basis)), (3, sum_of_squares(3, basis))]);
    }
    cases
}

struct Case {
    family: Family,
    params: Vec<f64>,
    points: Vec<f64>,
    rows: usize,
}

fn make(n: usize, settings: &Settings, rows: usize) -> Case {
    let family = Family::new(&Region::new(&region(n).into()).unwrap(), settings).unwrap();
    let uniform = Settings::SumOfSquares(SumOfSquaresSettings {
        degree: Some(0),
        components: 1,
        basis: Basis::Orthonormal,
        subset: None,
    });
    let uniform = Family::new(&Region::new(&region(n).into()).unwrap(), &uniform).unwrap();
    let points = uniform.density(&[0.0; 2]).unwrap().sample(40, 5).unwrap();
    let params = family.random_params(rows, 9);
    Case { family, params, points, rows }
}

fn values(tensor: Tensor<1>) -> Vec<f64> {
    tensor.into_data_dtype(DType::F64).try_into_vec().unwrap()
}

/// Log-densities and gradients of all cases on a device agree with the core, which computes in float64.
pub fn check(device: &Device, dtype: DType, tolerance: f64) {
    let device = device.clone().autodiff();
    for (n, settings) in cases() {
        for rows in [1, 40] {
            let case = make(n, &settings, rows);
            let layer = PalLayer::new(&case.family, &device, dtype).unwrap();
            let data = TensorData::new(case.params.clone(), [case.rows, layer.num_params()]);
            let params = Tensor::<2>::from_data(data, (&device, dtype)).require_grad();
            let points = layer.points(&case.points).unwrap();
            assert!(points.all_inside());
            let log_prob = layer.log_prob(params.clone(), &points);
            let got = values(log_prob.clone());
            let want = case.family.log_prob(&case.params, &case.points).unwrap();
            for (got, want) in got.iter().zip(&want) {
                assert!((got - want).abs() < tolerance * want.abs().max(1.0), "{settings:?} {rows}: {got} {want}");
            }
            let cotangent: Vec<f64> = (0..40).map(|k| 1.0 + 0.1 * f64::from(k % 7)).collect();
            let weights = Tensor::<1>::from_data(TensorData::new(cotangent.clone(), [40]), (&device, dtype));
            let gradient = params.grad(&(log_prob * weights).sum().backward()).unwrap();
            let gradient: Vec<f64> = gradient.into_data_dtype(DType::F64).try_into_vec().unwrap();
            let want = case.family.log_prob_vjp(&case.params, &case.points, &cotangent).unwrap();
            let largest = want.iter().fold(1.0f64, |m, g| m.max(g.abs()));
            for (got, want) in gradient.iter().zip(&want) {
                assert!((got - want).abs() < 10.0 * tolerance * largest, "{settings:?} {rows}: {got} {want}");
            }
        }
    }
}

/// Parameters of zero are close to the uniform density, with a gradient for each component that differs from those of
/// the others.
pub fn check_zeros(device: &Device, dtype: DType, tolerance: f64) {
    let device = device.clone().autodiff();
    for (n, settings) in cases() {
        let case = make(n, &settings, 1);
        let layer = PalLayer::new(&case.family, &device, dtype).unwrap();
        let params = Tensor::<2>::zeros([1, layer.num_params()], (&device, dtype)).require_grad();
        let log_prob = layer.log_prob(params.clone(), &layer.points(&case.points).unwrap());
        let got = values(log_prob.clone());
        let want = case.family.log_prob(&vec![0.0; layer.num_params()], &case.points).unwrap();
        agree(&got, &want, tolerance, &settings);
        let volume = pal::number::to_f64(&Region::new(&region(n).into()).unwrap().exact_volume().unwrap());
        let mean = got.iter().sum::<f64>() / got.len() as f64 + volume.ln();
        assert!(mean.abs() < 0.3, "{settings:?}: {mean}");
        let gradient = to_f64_vec(params.grad(&log_prob.mean().backward()).unwrap());
        let parts: Vec<&[f64]> = gradient.chunks(gradient.len() / case.family.num_components()).collect();
        let size = |part: &[f64]| part.iter().fold(0.0f64, |a, g| a.max(g.abs()));
        for (k, part) in parts.iter().enumerate() {
            assert!(size(part) > 0.01 * size(&gradient) && size(part) > 1e-3, "{settings:?}: component {k}");
            for other in &parts[..k] {
                let difference: Vec<f64> = part.iter().zip(*other).map(|(a, b)| a - b).collect();
                assert!(size(&difference) > 1e-3 * size(&gradient), "{settings:?}: component {k}");
            }
        }
    }
}

/// A condition that leaves both ends of the first axis, so that the box of the smaller region is the same.
fn condition() -> Formula {
    let [x] = reals(["x"]);
    let quarters = |k: i64| Rational::from(k) / Rational::from(4);
    x.le(quarters(3)) | x.ge(quarters(9))
}

/// The part of the region where the condition holds.
fn smaller_region(n: usize) -> Formula {
    region(n) & condition()
}

/// With the normaliser of a smaller region, log-densities are those of a family compiled on that region with the same
/// grid; for one component and for sums of squares they are also those that conditioning in the core gives.
pub fn check_normalisers(device: &Device, dtype: DType, tolerance: f64) {
    for (n, settings) in cases() {
        let case = make(n, &settings, 40);
        let layer = PalLayer::new(&case.family, device, dtype).unwrap();
        let data = TensorData::new(case.params.clone(), [case.rows, layer.num_params()]);
        let params = Tensor::<2>::from_data(data, (device, dtype));
        let membership = pal::formula::Constraint::from(smaller_region(n)).membership().unwrap();
        let inside = membership.contains_batch(&case.points);
        assert!(inside.contains(&true) && inside.contains(&false));
        let points = layer.points(&case.points).unwrap();
        let within = layer.normaliser_within(&condition()).unwrap();
        let got = to_f64_vec(layer.log_prob_with(params.clone(), &points.restrict(&inside), &within));

        let conditional = |row: usize| {
            let params = &case.params[row * layer.num_params()..(row + 1) * layer.num_params()];
            let density = case.family.density(params).unwrap().condition(&condition()).unwrap();
            density.log_prob(&case.points[row * n..(row + 1) * n])[0]
        };
        let smaller = || {
            let smaller = Region::new(&smaller_region(n).into()).unwrap();
            Family::new(&smaller, &settings).unwrap().log_prob(&case.params, &case.points).unwrap()
        };
        let want = if normalised_by_component(&settings) {
            let want = smaller();
            if case.family.num_components() == 1 {
                agree(&(0..40).map(conditional).collect::<Vec<f64>>(), &want, 1e-10, &settings);
            }
            want
        } else {
            (0..40).map(conditional).collect()
        };
        agree(&got, &want, tolerance, &settings);

        // Every second row on the smaller region, the others on the whole one.
        let normalisers: Vec<Normaliser> =
            (0..40).map(|row| if row % 2 == 0 { within.clone() } else { layer.normaliser().clone() }).collect();
        let stacked = Normaliser::stack(&normalisers);
        assert_eq!(stacked.rows(), 40);
        let marks: Vec<bool> = (0..40).map(|row| row % 2 == 1 || inside[row]).collect();
        let mixed = to_f64_vec(layer.log_prob_with(params.clone(), &points.restrict(&marks), &stacked));
        let whole = to_f64_vec(layer.log_prob(params, &points));
        let want: Vec<f64> = (0..40).map(|row| if row % 2 == 0 { got[row] } else { whole[row] }).collect();
        agree(&mixed, &want, tolerance, &settings);
    }
}

/// Whether every component has a normalising constant of its own, so that a smaller region leaves the weights of
/// components as they are, which conditioning would change.
fn normalised_by_component(settings: &Settings) -> bool {
    !matches!(settings, Settings::SumOfSquares(_))
}

fn agree(got: &[f64], want: &[f64], tolerance: f64, settings: &Settings) {
    assert_eq!(got.len(), want.len());
    for (row, (got, want)) in got.iter().zip(want).enumerate() {
        let close = got == want || (got - want).abs() < tolerance * want.abs().max(1.0);
        assert!(close, "{settings:?}, row {row}: {got} {want}");
    }
}
