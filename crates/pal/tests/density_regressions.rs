//! Cases in which densities once gave wrong numbers.

use pal::density::{Basis, DensityError, Family, Knots, Settings, SplineSettings, SumOfSquaresSettings};
use pal::formula::{Formula, Linear, real, reals};
use pal::number::{Rational, from_f64};
use pal::polynomial::Polynomial;
use pal::region::Region;

fn ratio(p: i64, q: u64) -> Rational {
    Rational::from_parts(p.into(), q.into())
}

fn exact(x: f64) -> Rational {
    from_f64(x).unwrap()
}

fn sum_of_squares(phi: &Formula, degree: u16, components: usize, basis: Basis) -> Family {
    let settings = SumOfSquaresSettings { degree: Some(degree), components, basis, subset: None };
    Family::new(&Region::new(&phi.clone().into()).unwrap(), &Settings::SumOfSquares(settings)).unwrap()
}

fn spline(phi: &Formula, knots: Knots, components: usize) -> Family {
    let settings = SplineSettings { knots, components };
    Family::new(&Region::new(&phi.clone().into()).unwrap(), &Settings::Spline(settings)).unwrap()
}

#[track_caller]
fn near(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance * b.abs(), "{a} is not {b}: off by {:.1e}", a / b - 1.0);
}

/// A point on the edge of a bin belongs to the bin above, which may hold no part of the constraint.
#[test]
fn edges_of_empty_bins_have_density() {
    let [x, y] = reals(["x", "y"]);
    let phi = x.between(0, 1) & y.between(0, 1) & (x.le(ratio(1, 2)) | y.le(ratio(1, 2)));
    let family = sum_of_squares(&phi, 14, 1, Basis::Orthonormal);
    assert_eq!(family.support().grid().bins(), 4);
    let params = family.random_params(1, 3);
    let log_prob = family.log_prob(&params, &[0.5, 0.7, 0.5 - 1e-13, 0.7, 0.7, 0.5, 0.7, 0.5 - 1e-13]).unwrap();
    near(log_prob[0], log_prob[1], 1e-9);
    near(log_prob[2], log_prob[3], 1e-9);
    let on = family.log_prob_vjp(&params, &[0.5, 0.7], &[1.0]).unwrap();
    let beside = family.log_prob_vjp(&params, &[0.5 - 1e-13, 0.7], &[1.0]).unwrap();
    on.iter().zip(&beside).for_each(|(a, b)| assert!((a - b).abs() < 1e-8, "{a} {b}"));
    let features = family.features(&[0.5, 0.7, 0.5 - 1e-13, 0.7]).unwrap().0;
    let (on, beside) = features.split_at(features.len() / 2);
    on.iter().zip(beside).for_each(|(a, b)| assert!(*a != 0.0 && (a - b).abs() < 1e-8, "{a} {b}"));

    let density = family.density(&params).unwrap();
    let (on, beside) = (density.given(&[("x", 0.5)]).unwrap(), density.given(&[("x", 0.5 - 1e-13)]).unwrap());
    for at in [0.1, 0.5, 0.7, 1.0] {
        near(on.log_prob(&[at])[0], beside.log_prob(&[at])[0], 1e-8);
    }
    let (a, b) = (on.mode(&Default::default()).unwrap(), beside.mode(&Default::default()).unwrap());
    near(a.log_upper, b.log_upper, 1e-5);
}

/// A basis that is of size one on a thin cross is large beside it; integrals over a part must not be made of such
/// coefficients.
#[test]
fn events_and_moments_of_high_degree_keep_their_digits() {
    let [x, y] = reals(["x", "y"]);
    let h = || ratio(1, 20);
    let phi = x.between(-1, 1) & y.between(-1, 1) & (x.between(-h(), h()) | y.between(-h(), h()));
    let family = sum_of_squares(&phi, 16, 1, Basis::Orthonormal);
    let params = family.random_params(1, 3);
    let density = family.density(&params).unwrap();
    let part = x.le(exact(0.3)) & y.le(exact(0.013));
    let compiled = family.event(&part).unwrap().probability(&params).unwrap()[0];
    near(compiled, density.probability(&part).unwrap(), 1e-10);
    near(family.covariance(&params).unwrap()[0], density.covariance()[0], 1e-9);
}

/// A thin box far from the end of its bin.
#[test]
fn thin_boxes_have_their_exact_volume() {
    let [x] = reals(["x"]);
    let family = sum_of_squares(&x.between(0, 1), 1, 1, Basis::Orthonormal);
    for width in [1e-9, 1e-12, 1e-15] {
        let thin = x.ge(exact(1.0 / 3.0)) & x.le(exact(1.0 / 3.0) + exact(width));
        let uniform = [0.0, 0.0, 0.0];
        near(family.event(&thin).unwrap().probability(&uniform).unwrap()[0], width, 1e-14);
        near(family.density(&uniform).unwrap().probability(&thin).unwrap(), width, 1e-14);
    }
}

/// Bins may be much narrower than what is negligible along the axis.
#[test]
fn marginals_keep_the_mass_of_narrow_bins() {
    let [x, y] = reals(["x", "y"]);
    let square = x.between(0, 1) & y.between(0, 1);
    for width in [1e-12, 1e-15] {
        let at = |list: &[f64]| list.iter().map(|x| exact(*x)).collect::<Vec<Rational>>();
        let knots = vec![at(&[0.0, width, 2.0 * width, 1.0]), at(&[0.0, 1.0])];
        let family = spline(&square, Knots::At(knots), 1);
        let peak = 1.0 / f64::sqrt(width);
        let theta = [0.0, 0.0, peak, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0];
        let density = family.density(&family.params_of(&theta)).unwrap();
        let marginal = density.marginal("x").unwrap();
        near(marginal.total(), 1.0, 1e-13);
        near(marginal.cdf(2.0 * width), density.probability(&x.le(exact(2.0 * width))).unwrap(), 1e-13);
    }
}

/// Finite parameters whose coefficients overflow.
#[test]
fn parameters_that_overflow_are_refused() {
    let [x] = reals(["x"]);
    let family = spline(&x.between(0, 2), Knots::Uniform(3), 2);
    let mut params = [1.0, 1.7e308, 0.0, 1e308, 1.7e308, 1.0, 2.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0];
    let refused = family.density(&params).err();
    assert!(matches!(refused, Some(DensityError::Parameter { row: 0, column: 4, .. })), "{refused:?}");
    params[..7].iter_mut().for_each(|p| *p /= 1e8);
    let probability = family.density(&params).unwrap().probability(&x.le(1)).unwrap();
    assert!(probability > 0.0 && probability < 1.0);
}

/// Weights whose differences leave the range of float64, or hide the integrals they are added to.
#[test]
fn extreme_logits_give_densities_and_gradients() {
    let [x] = reals(["x"]);
    let family = sum_of_squares(&x.between(0, 2), 1, 2, Basis::Orthonormal);
    // The first component is 0, so that the second is all there is.
    let params = family.params_of(&[1e308, 0.0, 0.0, -1e308, 1.0, 0.0]);
    let log_prob = family.log_prob(&params, &[0.5]).unwrap();
    near(log_prob[0], 0.5f64.ln(), 1e-15);
    let gradient = |logit: f64| {
        let params = family.params_of(&[logit, 1.0, 0.5, logit, 10.0, 0.0]);
        family.log_prob_vjp(&params, &[0.5], &[1.0]).unwrap()
    };
    gradient(0.0).iter().zip(gradient(1e20)).for_each(|(a, b)| assert!((a - b).abs() < 1e-14, "{a} {b}"));

    // Each component lives on one of the bins.
    let family = spline(&x.between(0, 2), Knots::Uniform(3), 2);
    let theta = [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1000.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0];
    let log_prob = family.log_prob(&family.params_of(&theta), &[0.5, 1.5]).unwrap();
    near(log_prob[1], log_prob[0] - 1000.0, 1e-14);
}

/// The paper's reparametrisation is a difference of two roots.
#[test]
fn small_coefficients_of_monomials_keep_their_digits() {
    let [x] = reals(["x"]);
    let family = sum_of_squares(&x.between(0, 2), 1, 1, Basis::Monomial);
    // For small z it is linear, and a common factor changes nothing.
    for z in [1e-14, 1e-100, 1e-200] {
        let coefficients = family.kind().expand(&[0.0, z, 3.0 * z]).coefficients;
        near(coefficients[1], 3.0 * coefficients[0], 1e-12);
        assert!(coefficients[0] > 0.1);
    }
}

/// A part of the constraint without volume that lies partly outside of the box around the others.
#[test]
fn nothing_is_outside_of_the_box() {
    let [x, y] = reals(["x", "y"]);
    let line = x.ge(ratio(1, 2)) & x.le(ratio(1, 2)) & y.between(0, 3);
    let family = spline(&((x.between(0, 1) & y.between(0, 1)) | line), Knots::Uniform(3), 1);
    let params = family.random_params(1, 3);
    let log_prob = family.log_prob(&params, &[0.5, 0.5, 0.5, 2.0]).unwrap();
    assert!(log_prob[0].is_finite() && log_prob[1] == f64::NEG_INFINITY);
    assert!(family.log_prob_vjp(&params, &[0.5, 2.0], &[1.0]).unwrap().iter().all(|g| *g == 0.0));
    let given = family.density(&params).unwrap().given(&[("x", 0.5)]).unwrap();
    near(given.probability(&y.le(1)).unwrap(), 1.0, 1e-14);
    assert_eq!(given.log_prob(&[2.0]), [f64::NEG_INFINITY]);
}

/// The moment of a degree for which every exact cubature rule is too large.
#[test]
fn moments_of_enormous_degree_are_refused() {
    let [x, y] = reals(["x", "y"]);
    let family = sum_of_squares(&(x.between(0, 1) & y.between(0, 1)), 1, 1, Basis::Orthonormal);
    let density = family.density(&[0.0; 4]).unwrap();
    assert!(density.expectation(&Polynomial::parse("x^9000*y^1000").unwrap()).is_err());
    near(density.expectation(&Polynomial::parse("x^90*y^10").unwrap()).unwrap(), 1.0 / (91.0 * 11.0), 1e-13);
}

/// `(1 - x)^6` along every axis, over the corner where it vanishes: every product of Bernstein polynomials is small
/// there.
#[test]
fn forms_of_many_variables_recognise_lost_digits() {
    let factorial = |k: usize| (1..=k).map(|k| k as f64).product::<f64>();
    for n in [3, 4] {
        let x: Vec<Linear> = (0..n).map(|j| real(&format!("x{j}"))).collect();
        let cube = Formula::all(x.iter().map(|x| x.between(0, 1)));
        let sum = x.iter().fold(Linear::default(), |sum, x| sum + x);
        let family = spline(&cube, Knots::Uniform(2), 1);
        let mut theta = vec![0.0];
        (0..n).for_each(|_| theta.extend([1.0, 0.0, -3.0, 0.0]));
        let params = family.params_of(&theta);
        for size in [0.5f64, 0.0625] {
            let corner = sum.ge(exact(n as f64 - size));
            let integral = 720f64.powi(n as i32) * size.powi(7 * n as i32) / factorial(7 * n);
            let probability = family.event(&corner).unwrap().probability(&params).unwrap()[0];
            near(probability, integral * 7f64.powi(n as i32), 1e-12);
            let knots = Knots::At(vec![vec![0.into(), 1.into()]; n]);
            let there = spline(&(cube.clone() & corner), knots, 1);
            near(there.log_normaliser(&params).unwrap()[0], integral.ln(), 1e-13);
            // The integral is homogeneous of degree two in the coefficients of every axis.
            let gradient = there.log_normaliser_vjp(&params, &[1.0]).unwrap();
            let along: f64 = gradient[1..5].iter().zip(&theta[1..5]).map(|(g, p)| g * p).sum();
            near(along, 2.0, 1e-12);
        }
    }
}

/// A basis on several bins.
#[test]
fn bases_on_several_bins_survive_a_file() {
    let [x, y] = reals(["x", "y"]);
    let phi = x.between(0, 1) & y.between(0, 1) & (x.le(ratio(1, 2)) | y.le(ratio(1, 2)));
    let family = sum_of_squares(&phi, 14, 1, Basis::Orthonormal);
    assert!(family.support().grid().bins() > 1);
    let again = Family::from_bytes(&family.to_bytes().unwrap()).unwrap();
    let params = family.random_params(1, 3);
    let points = [0.25, 0.75, 0.75, 0.25, 0.1, 0.1];
    assert_eq!(family.log_prob(&params, &points).unwrap(), again.log_prob(&params, &points).unwrap());
}

/// The ends of pieces come from local coordinates, which are rounded; they must meet and stay inside.
#[test]
fn pieces_of_marginals_meet_and_stay_inside() {
    let [x, y] = reals(["x", "y"]);
    let square = x.between(-1, 1) & y.between(-1, 1);
    let phi = square & !(x.ge(0) & y.ge(0) & (&x + &y).le(1));
    let family = spline(&phi, Knots::Uniform(4), 1);
    let density = family.density(&family.random_params(1, 1)).unwrap();
    for variable in ["x", "y"] {
        let marginal = density.marginal(variable).unwrap();
        assert_eq!((marginal.quantile(0.0).unwrap(), marginal.quantile(1.0).unwrap()), (-1.0, 1.0));
        let pieces: Vec<_> = marginal.pieces().collect();
        pieces.windows(2).for_each(|pair| assert_eq!(pair[0].high, pair[1].low));
    }
}
