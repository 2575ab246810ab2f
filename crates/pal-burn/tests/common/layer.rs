//! The contract of a layer, for every kind of family: log-densities and gradients agree with the core.

use burn::tensor::{DType, Device, Tensor, TensorData};
use pal::density::{Basis, Family, Knots, Settings, SplineSettings, SumOfSquaresSettings};
use pal::formula::{Formula, reals};
use pal::region::Region;
use pal_burn::PalLayer;

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
    let sum_of_squares =
        |degree, basis| Settings::SumOfSquares(SumOfSquaresSettings { degree, components: 3, basis, subset: None });
    let mut cases = vec![(1, spline(7, 2)), (2, spline(14, 8)), (3, spline(4, 2)), (4, spline(3, 2))];
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
        degree: 0,
        components: 1,
        basis: Basis::Orthonormal,
        subset: None,
    });
    let uniform = Family::new(&Region::new(&region(n).into()).unwrap(), &uniform).unwrap();
    let points = uniform.density(&[0.0, 1.0]).unwrap().sample(40, 5).unwrap();
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
