//! Compares the integrators with closed forms and with each other.

use pal::formula::{Constraint, Formula, Var, real};
use pal::moments::{CoefficientCountError, Exponents, Method, Moments, integrate};
use pal::number::{Rational, from_f64, to_f64};
use pal::polynomial::Polynomial;
use pal::region::Region;
use pal::shapes;
use pal::wmi::MomentsFile;

fn region(constraint: &Constraint) -> Region {
    Region::new(constraint).unwrap()
}

/// Returns `alpha! / (n + |alpha|)!`, the moment of the standard simplex.
fn simplex_moment(alpha: &[u16]) -> Rational {
    let factorial = |k: usize| (1..=k).fold(Rational::ONE, |product, k| product * Rational::from(k));
    let total: usize = alpha.iter().map(|a| usize::from(*a)).sum();
    let top = alpha.iter().fold(Rational::ONE, |product, a| product * factorial(usize::from(*a)));
    top / factorial(total + alpha.len())
}

#[test]
fn all_moments_of_simplices_and_cubes_have_their_closed_forms() {
    for (n, degree) in [(1, 24), (2, 24), (3, 14), (4, 8), (5, 6), (6, 4), (7, 3), (8, 3)] {
        let set = Exponents::total_degree(n, degree).unwrap();
        let simplex = Moments::compile(&region(&shapes::simplex(n)), &set).unwrap();
        let cube = Moments::compile(&region(&shapes::cube(n)), &set).unwrap();
        for (at, alpha) in set.iter().enumerate() {
            let over_cube = alpha.iter().fold(Rational::ONE, |product, a| product / Rational::from(a + 1));
            for (moments, want, shape) in [(&simplex, simplex_moment(alpha), "simplex"), (&cube, over_cube, "cube")] {
                let off = to_f64(&(from_f64(moments.values()[at]).unwrap() - &want)).abs();
                assert!(
                    off <= moments.errors()[at],
                    "{shape} {alpha:?}: off by {off:e}, bound {:e}",
                    moments.errors()[at]
                );
                assert!(moments.errors()[at] <= 1e-11 * to_f64(&want), "{shape} {alpha:?}: loose bound");
            }
        }
    }
}

/// Returns a region in `n` dimensions around `centre` with several cells and a slanted cut.
fn slanted(n: usize, centre: i64) -> Constraint {
    let vars: Vec<Var> = (0..n).map(|j| Var::new(&format!("y{j}"))).collect();
    let x: Vec<_> = vars.iter().map(|v| real(v.name())).collect();
    let boxed = Formula::all(x.iter().map(|x| x.between(centre - 1, centre + 2)));
    let sum = x.iter().fold(pal::formula::Linear::default(), |sum, x| sum + x);
    let middle = centre * n as i64;
    let cut = (&sum - 2 * &x[0]).le(middle - 2 * centre + 1) | x[0].ge(centre + 1);
    Constraint { formula: boxed & cut, reals: vars, booleans: Vec::new() }
}

#[test]
fn integrators_agree_for_one_to_eight_dimensions() {
    for n in 1..=8usize {
        for degree in [0u32, 1, 3, 6, 12, 24] {
            // A power of a linear form is dense, so the number of terms limits the degree in high dimensions.
            let terms = (1..=degree as u64).fold(1u64, |c, k| c * (n as u64 + k) / k);
            if terms > 3000 {
                continue;
            }
            let r = region(&slanted(n, 0));
            let form = (0..n).map(|j| format!("{}*y{j}", j as i64 - 1)).collect::<Vec<_>>().join(" + ");
            let p = Polynomial::parse(&format!("(1/2 + {form})^{degree}")).unwrap();
            let exact = integrate(&r, &p, Method::Exact).unwrap();
            let truth = exact.exact.unwrap();
            let fast = integrate(&r, &p, Method::Recurrence).unwrap();
            let off = to_f64(&(from_f64(fast.value).unwrap() - &truth)).abs();
            assert!(off <= fast.error, "n {n}, degree {degree}: off by {off:e}, bound {:e}", fast.error);
            assert!(off <= 1e-9 * to_f64(&truth).abs(), "n {n}, degree {degree}");
            if n <= 4 || degree <= 3 {
                let gasp = integrate(&r, &p, Method::Gasp).unwrap();
                let off = (gasp.value - to_f64(&truth)).abs();
                assert!(off <= gasp.error, "gasp: n {n}, degree {degree}: off by {off:e}, bound {:e}", gasp.error);
            }
            if degree <= 3 {
                let sampled = integrate(&r, &p, Method::Rejection { samples: 20_000, seed: 3 }).unwrap();
                let off = (sampled.value - to_f64(&truth)).abs();
                assert!(
                    off <= 5.0 * sampled.error + 1e-12,
                    "rejection: n {n}, degree {degree}: {off} {}",
                    sampled.error
                );
            }
        }
    }
}

#[test]
fn bounds_hold_far_from_the_origin_and_for_thin_pieces() {
    for centre in [0, 7, 1_000, 1_000_000] {
        let r = region(&slanted(3, centre));
        for text in ["1", "y0^4", "y0*y1*y2", "(y0 - y1)^6", "y0^3 - 3*y0^2*y1 + 2"] {
            let p = Polynomial::parse(text).unwrap();
            let truth = integrate(&r, &p, Method::Exact).unwrap().exact.unwrap();
            let fast = integrate(&r, &p, Method::Recurrence).unwrap();
            let off = to_f64(&(from_f64(fast.value).unwrap() - &truth)).abs();
            assert!(off <= fast.error, "{text} at {centre}: off by {off:e}, bound {:e}", fast.error);
            assert!(
                fast.error <= 1e-9 * fast.value.abs(),
                "{text} at {centre}: bound {:e} on {}",
                fast.error,
                fast.value
            );
        }
        let moments = Moments::compile(&r, &Exponents::total_degree(3, 6).unwrap()).unwrap();
        for (at, alpha) in moments.exponents().iter().enumerate() {
            let monomial = (0..3).map(|j| format!("y{j}^{}", alpha[j])).collect::<Vec<_>>().join("*");
            let truth = integrate(&r, &Polynomial::parse(&monomial).unwrap(), Method::Exact).unwrap().exact.unwrap();
            let off = to_f64(&(from_f64(moments.values()[at]).unwrap() - truth)).abs();
            assert!(off <= moments.errors()[at], "{alpha:?} at {centre}: {off:e} > {:e}", moments.errors()[at]);
        }
    }
    let [x, y] = pal::formula::reals(["x", "y"]);
    let sliver = x.between(0, 1) & y.ge(&x) & (1_000_000_000 * &y).le(1_000_000_001 * &x);
    let p = Polynomial::parse("x*y").unwrap();
    let fast = integrate(&region(&sliver.clone().into()), &p, Method::Recurrence).unwrap();
    let truth = integrate(&region(&sliver.into()), &p, Method::Exact).unwrap().exact.unwrap();
    assert!((fast.value / to_f64(&truth) - 1.0).abs() < 1e-12);
}

/// At high degrees neither overflow nor underflow may pass for an answer.
#[test]
fn extreme_degrees_and_scales_are_right_or_refused() {
    let x = real("x");
    for (low, high) in [("0", "1"), ("0", "4"), ("0", "1/1000"), ("0", "1000"), ("-3", "7")] {
        let number = |text| pal::number::parse_rational(text).unwrap();
        let r = region(&x.between(number(low), number(high)).into());
        let moments = Moments::compile(&r, &Exponents::total_degree(1, 600).unwrap()).unwrap();
        for k in [0usize, 1, 2, 100, 338, 340, 512, 600] {
            let truth = (number(high).pow(k as isize + 1) - number(low).pow(k as isize + 1)) / Rational::from(k + 1);
            let (value, error) = (moments.values()[k], moments.errors()[k]);
            if error.is_finite() && value.is_finite() {
                let off = to_f64(&(from_f64(value).unwrap() - &truth)).abs();
                assert!(off <= error, "x^{k} on [{low}, {high}]: {value}, off by {off:e}, bound {error:e}");
            } else {
                let size = to_f64(&truth).abs();
                assert!(!(1e-200..1e300).contains(&size), "x^{k} on [{low}, {high}]: refused, though it is {size:e}");
            }
            let p = Polynomial::parse(&format!("x^{k}")).unwrap();
            let exact = integrate(&r, &p, Method::Exact).unwrap().exact.unwrap();
            assert_eq!(exact, truth);
            let fast = integrate(&r, &p, Method::Recurrence).unwrap();
            if to_f64(&truth).is_finite() {
                let off = to_f64(&(from_f64(fast.value).unwrap() - &truth)).abs();
                assert!(off <= fast.error, "x^{k} on [{low}, {high}]: {} off by {off:e}", fast.value);
            }
        }
    }
    // Coefficients, coordinates and scales leave the range of float64 although the answer does not.
    let tiny = |digits: usize| format!("0.{}1", "0".repeat(digits - 1));
    let huge = |digits: usize| format!("1{}", "0".repeat(digits));
    for (x_high, y_high, poly) in [
        (tiny(20), huge(100), "x^17".to_string()),
        (huge(75), huge(75), tiny(330)),
        (huge(308), tiny(300), format!("{}*x", tiny(300))),
        (tiny(165), "1".to_string(), format!("{}*x^2", huge(300))),
    ] {
        let number = |text: &str| pal::number::parse_rational(text).unwrap();
        let r = region(&(x.between(0, number(&x_high)) & real("y").between(0, number(&y_high))).into());
        let p = Polynomial::parse(&poly).unwrap();
        let truth = integrate(&r, &p, Method::Exact).unwrap().exact.unwrap();
        let fast = integrate(&r, &p, Method::Recurrence).unwrap();
        let off = to_f64(&(from_f64(fast.value).unwrap() - &truth)).abs();
        assert!(
            off <= fast.error && off <= 1e-9 * to_f64(&truth),
            "{poly}: {} instead of {:e}",
            fast.value,
            to_f64(&truth)
        );
    }
    let unit = region(&x.between(0, 1).into());
    let p = Polynomial::parse("x^10000").unwrap();
    assert!((integrate(&unit, &p, Method::Recurrence).unwrap().value * 10001.0 - 1.0).abs() < 1e-10);
}

#[test]
fn empty_flat_and_unbounded_regions() {
    let [x, y] = pal::formula::reals(["x", "y"]);
    let p = Polynomial::parse("x + y").unwrap();
    for nothing in [x.lt(0) & x.gt(0) & y.between(0, 1), x.equals(1) & y.between(0, 1)] {
        for method in [Method::Exact, Method::Recurrence, Method::Gasp, Method::Rejection { samples: 100, seed: 1 }] {
            assert_eq!(integrate(&region(&nothing.clone().into()), &p, method).unwrap().value, 0.0);
        }
        let moments = Moments::compile(&region(&nothing.into()), &Exponents::total_degree(2, 3).unwrap()).unwrap();
        assert!(moments.values().iter().all(|m| *m == 0.0));
    }
    let open = region(&(x.ge(0) & y.between(0, 1)).into());
    for method in [Method::Exact, Method::Recurrence, Method::Gasp, Method::Rejection { samples: 100, seed: 1 }] {
        assert!(integrate(&open, &p, method).unwrap_err().to_string().contains("unbounded"));
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let r = region(&slanted(4, 1));
    let p = Polynomial::parse("(y0 + 2*y1 - y2*y3)^3").unwrap();
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let fast = integrate(&r, &p, Method::Recurrence).unwrap();
            let moments = Moments::compile(&r, &Exponents::total_degree(4, 5).unwrap()).unwrap();
            (fast.value.to_bits(), moments.values().iter().map(|m| m.to_bits()).collect::<Vec<_>>())
        })
    };
    assert_eq!(run(1), run(2));
    assert_eq!(run(1), run(5));
}

#[test]
fn a_compiled_integral_survives_a_file_and_refuses_a_damaged_one() {
    let r = region(&slanted(2, 0));
    let eta = Moments::compile(&r, &Exponents::tensor(&[3, 2]).unwrap()).unwrap();
    let file = MomentsFile { constraint: r.constraint().clone(), moments: eta.clone() };
    let bytes = file.to_bytes().unwrap();
    let MomentsFile { constraint, moments: again } = MomentsFile::from_bytes(&bytes).unwrap();
    assert_eq!((again.values(), again.exponents()), (eta.values(), eta.exponents()));
    assert_eq!(again.errors(), eta.errors());
    assert_eq!(constraint.reals, r.constraint().reals);
    let rows: Vec<f64> = (0..3 * eta.values().len()).map(|k| (k as f64 * 0.7).sin()).collect();
    assert_eq!(eta.integrate_batch(&rows).unwrap(), again.integrate_batch(&rows).unwrap());
    let mut damaged = bytes.clone();
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    assert!(MomentsFile::from_bytes(&damaged).unwrap_err().to_string().contains("checksum"));
    assert!(MomentsFile::from_bytes(&bytes[..bytes.len() - 8]).is_err());
    assert!(MomentsFile::from_bytes(b"nonsense").is_err());
    let text = String::from_utf8_lossy(&bytes).replace("pal-moments-2", "pal-moments-9");
    // The header is ASCII and comes first; replacing equal lengths keeps the file well-formed up to the tensors.
    let header = text.find("pal-moments-9").unwrap();
    let mut newer = bytes.clone();
    newer[header..header + 13].copy_from_slice(b"pal-moments-9");
    let error = MomentsFile::from_bytes(&newer).unwrap_err().to_string();
    assert!(error.contains("pal-moments-9"), "{error}");
    let count = eta.values().len();
    assert_eq!(eta.integrate(&[1.0]), Err(CoefficientCountError { given: 1, wanted: count }));
}

#[test]
fn polynomials_that_do_not_fit_are_refused() {
    let r = region(&shapes::cube(2));
    let error = integrate(&r, &Polynomial::parse("x1*z").unwrap(), Method::Recurrence).unwrap_err().to_string();
    assert!(error.contains('z'), "{error}");
    assert!(Moments::compile(&r, &Exponents::total_degree(3, 1).unwrap()).is_err());
}
