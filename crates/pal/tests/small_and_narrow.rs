//! Regions at the lower end of float64: volumes below its range, and boxes with few numbers in them. A bound on an error
//! must hold there too, and where it cannot, there is an error instead of a number.

use pal::density::{DensityError, Family, Knots, Settings, SplineSettings};
use pal::formula::{Constraint, Linear, parse_smtlib, reals};
use pal::moments::rejection::{self, RejectionError};
use pal::moments::{Exponents, Integral, Method, Moments, gasp, integrate};
use pal::number::{Rational, from_f64, parse_rational};
use pal::polynomial::Polynomial;
use pal::region::Region;
use pal::wmi::Problem;

fn rational(text: &str) -> Rational {
    parse_rational(text).unwrap()
}

/// The box `[0, a] x [0, b]`.
fn small_box(a: &str, b: &str) -> Region {
    let [x, y] = reals(["x", "y"]);
    let zero = || Linear::from(0);
    let inside = |v: &Linear, end: &str| v.between(zero(), Linear::from(rational(end)));
    Region::new(&(inside(&x, a) & inside(&y, b)).into()).unwrap()
}

/// The distance between a float64 and an exact number.
fn off(value: f64, exact: &Rational) -> Rational {
    let difference = from_f64(value).unwrap() - exact;
    if difference < Rational::ZERO { -difference } else { difference }
}

fn holds(value: f64, error: f64, exact: &Rational) -> bool {
    error == f64::INFINITY || off(value, exact) <= from_f64(error).unwrap()
}

#[test]
fn error_bounds_hold_below_the_range_of_float64() {
    let ends = ["1", "1e-10", "1e-100", "1e-150", "1e-160", "1e-163", "1e-200", "1e-290", "1e-310", "1e-400"];
    let polynomials = ["1", "x", "x*y", "x^3*y^2 + 1e-30*x", "1e300*x^2", "1e-200", "1e-320*y"];
    let mut below = 0;
    for a in ends {
        for b in ["1", "1e-150", "1e-163", "1e-170", "1e-305", "3e-320"] {
            let region = small_box(a, b);
            for text in polynomials {
                let polynomial = Polynomial::parse(text).unwrap();
                let exact = integrate(&region, &polynomial, Method::Exact).unwrap();
                let Integral { value, exact: Some(truth), error, .. } = exact else { panic!("exact") };
                assert!(holds(value, error, &truth), "exact {a} {b} {text}: {value} {error}");
                let Integral { value, error, .. } = integrate(&region, &polynomial, Method::Recurrence).unwrap();
                assert!(holds(value, error, &truth), "recurrence {a} {b} {text}: {value} {error}");
                assert!(value == 0.0 || error <= 1e-9 * value || value < 1e-300, "{a} {b} {text}: {value} {error}");
                below += usize::from(value < f64::MIN_POSITIVE && error > 0.0);
                let result = gasp::integrate(&region, &polynomial).unwrap();
                assert!(holds(result.value, result.rounding_error, &truth), "gasp {a} {b} {text}: {result:?}");
            }
            let moments = Moments::compile(&region, &Exponents::total_degree(2, 4).unwrap()).unwrap();
            for (alpha, (value, error)) in moments.exponents().iter().zip(moments.values().iter().zip(moments.errors()))
            {
                let side = |end: &str, k: u16| rational(end).pow(k as isize + 1) / Rational::from(k + 1);
                let truth = side(a, alpha[0]) * side(b, alpha[1]);
                assert!(holds(*value, *error, &truth), "moments {a} {b} {alpha:?}: {value} {error}");
            }
        }
    }
    assert!(below > 100, "{below} values below the normal range");
}

#[test]
fn ordinary_integrals_keep_their_bounds() {
    let region = small_box("1e-3", "1e3");
    let result = gasp::integrate(&region, &Polynomial::parse("x^5*y^5 + 3").unwrap()).unwrap();
    assert!(result.rounding_error < 1e-13 * result.value, "{result:?}");
    let nothing = gasp::integrate(&region, &Polynomial::default()).unwrap();
    assert_eq!((nothing.value, nothing.rounding_error), (0.0, 0.0));
}

#[test]
fn probabilities_are_quotients_of_what_is_exact() {
    let small = |exponent: usize| format!("(/ 1 1{})", "0".repeat(exponent));
    let support = format!("(and (<= 0 x {}) (<= 0 y {}))", small(160), small(163));
    let problem = format!(
        r#"{{"domain": {{"reals": {{"x": [null, null], "y": [null, null]}}}}, "support": "{support}", "weight": "1",
            "queries": ["(<= (* 4 x) {})"]}}"#,
        small(160)
    );
    let problem = Problem::parse(&problem).unwrap();
    let solution = problem.solve(Method::Recurrence).unwrap();
    let (total, query) = (solution.total, &solution.queries[0]);
    assert!(total.error > 0.0 && holds(total.value, total.error, &rational("1e-323")));
    assert_eq!(query.exact.clone().unwrap() / total.exact.unwrap(), rational("1/4"));
}

#[test]
fn rejection_is_unbiased_in_narrow_boxes() {
    let [x] = reals(["x"]);
    for (low, width, text) in
        [("1e9", "1e-7", "1"), ("1", "1e-13", "1"), ("1", "1e-20", "x"), ("1e9", "1e-7", "(x - 1e9)^2")]
    {
        let (low, width) = (rational(low), rational(width));
        let third = &low + &width / Rational::from(3);
        let high = &low + &width;
        let region = x.between(Linear::from(low), Linear::from(third.clone()))
            | x.between(Linear::from(&high - &width / Rational::from(4)), Linear::from(high));
        let region = Region::new(&region.into()).unwrap();
        let polynomial = Polynomial::parse(text).unwrap();
        let exact = integrate(&region, &polynomial, Method::Exact).unwrap().value;
        let result = rejection::integrate(&region, &polynomial, 100_000, 7).unwrap();
        let distance = (result.value - exact).abs() / result.standard_error;
        assert!(distance < 5.0, "{text}: {result:?}, exact {exact}");
        assert!(result.standard_error < 0.02 * exact, "{result:?}");
        assert!(matches!(rejection::integrate_fn(&region, |_| 1.0, 10, 0), Err(RejectionError::Narrow(_))));
    }
    let far = Region::new(&x.between(1_000_000_000, 1_000_000_001).into()).unwrap();
    assert_eq!(rejection::integrate_fn(&far, |_| 1.0, 10, 0).unwrap().value, 1.0);
}

#[test]
fn densities_need_numbers_along_every_axis() {
    let settings = Settings::Spline(SplineSettings { knots: Knots::Uniform(3), components: 1 });
    let on = |text: &str| -> Result<Family, DensityError> {
        let constraint: Constraint = parse_smtlib(text).unwrap();
        Family::new(&Region::new(&constraint).unwrap(), &settings)
    };
    let narrow = "(declare-const x Real) (declare-const y Real)
        (assert (and (<= 0 x 1) (<= 1 y (+ 1 (/ 1 100000000000000000)))))";
    let error = on(narrow).map(|_| ()).unwrap_err();
    assert!(matches!(&error, DensityError::Scale(var) if var.name() == "y"), "{error}");
    assert!(error.to_string().contains("shift or rescale"), "{error}");
    assert!(on("(declare-const x Real) (assert (<= 0 x (/ 1 100000000000000000)))").is_ok(), "near 0 there are many");
}

#[test]
fn standard_deviations_do_not_underflow() {
    let text =
        "(declare-const x Real) (assert (<= 0 (* 1e170 x) 1))".replace("1e170", &format!("1{}.0", "0".repeat(170)));
    let region = Region::new(&parse_smtlib(&text).unwrap()).unwrap();
    let settings = Settings::Spline(SplineSettings { knots: Knots::Uniform(3), components: 1 });
    let family = Family::new(&region, &settings).unwrap();
    let params = vec![0.0; family.num_params()];
    let density = family.density(&params).unwrap();
    let [one] = density.standard_deviation()[..] else { panic!("one variable") };
    let [many] = family.standard_deviation(&params).unwrap()[..] else { panic!("one variable") };
    // Close to uniform: 1 / sqrt(12) of the length.
    for deviation in [one, many] {
        assert!((deviation / (1e-170 / 12f64.sqrt()) - 1.0).abs() < 0.01, "{deviation}");
    }
    assert_eq!(density.covariance(), [0.0]);
}
