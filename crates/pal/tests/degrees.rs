//! Integrands of high degree: terms that cancel, and tables that do not fit into memory.

use pal::moments::{IntegrandError, IntegrateError, Method, integrate};
use pal::number::{Rational, to_f64};
use pal::polynomial::Polynomial;
use pal::region::Region;
use pal::{formula::reals, shapes};

#[test]
fn terms_that_cancel_do_not_take_exact_arithmetic() {
    // The integral of (x - y)^2k over the unit square is 2 / ((2k + 1)(2k + 2)).
    let square = Region::new(&shapes::cube(2)).unwrap();
    for k in [10usize, 15, 20] {
        let polynomial = Polynomial::parse(&format!("(x1 - x2)^{}", 2 * k)).unwrap();
        let truth = Rational::from(2) / Rational::from((2 * k + 1) * (2 * k + 2));
        let integral = integrate(&square, &polynomial, Method::Recurrence).unwrap();
        assert!((integral.value - to_f64(&truth)).abs() <= integral.error, "{k}: {integral:?}");
        assert!(integral.error <= 1e-10 * integral.value, "{k}: {integral:?}");
        assert_eq!(integral.exact_cells, 0, "{k}");
        let exact = integrate(&square, &polynomial, Method::Exact).unwrap();
        assert_eq!((exact.exact, exact.exact_cells), (Some(truth), 1));
    }
}

#[test]
fn cancelling_products_agree_with_exact_arithmetic() {
    let [a, b, c] = reals(["a", "b", "c"]);
    let body = a.ge(0) & b.ge(0) & c.ge(0) & (&a + &b + &c).le(1) & (&a - &b).le(0);
    let region = Region::new(&body.into()).unwrap();
    for text in ["(a*b*c)^6*(a-b)^10", "(a-b)^12*(b-c)^8", "(a + b - 2*c)^21", "(a - b)^9 - (c - b)^9"] {
        let polynomial = Polynomial::parse(text).unwrap();
        let exact = integrate(&region, &polynomial, Method::Exact).unwrap();
        let fast = integrate(&region, &polynomial, Method::Recurrence).unwrap();
        assert!((fast.value - exact.value).abs() <= fast.error + exact.error, "{text}: {fast:?} {exact:?}");
        assert!(fast.error <= 1e-10 * fast.value.abs(), "{text}: {fast:?}");
    }
}

#[test]
fn tables_beyond_memory_are_refused_before_they_are_made() {
    let [x, y] = reals(["x", "y"]);
    let third = |k: i64| Rational::from(k) / Rational::from(1_000_003);
    let body = x.ge(third(1)) & y.ge(third(2)) & (third(999_983) * &x + third(1_000_033) * &y).le(1);
    let region = Region::new(&body.into()).unwrap();
    let polynomial = Polynomial::parse("x^1000*y^1000").unwrap();
    let error = integrate(&region, &polynomial, Method::Exact).unwrap_err();
    let IntegrateError::Integrand(IntegrandError::Memory { monomials, bytes }) = error else { panic!("{error}") };
    assert_eq!(monomials, 1001 * 1001);
    assert!(bytes > 4000, "{bytes}");
    assert!(error.to_string().contains("GB"), "{error}");
}
