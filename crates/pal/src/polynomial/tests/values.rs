use super::*;
use crate::formula::reals;
use crate::polynomial::PolynomialError;

#[test]
fn binomials_and_multinomials() {
    assert_eq!(poly("(x+y)^4").to_string(), "x^4 + 4*x^3*y + 6*x^2*y^2 + 4*x*y^3 + y^4");
    assert_eq!(poly("(x - 1/2)^3").to_string(), "x^3 - 3/2*x^2 + 3/4*x - 1/8");
    assert_eq!(poly("(a+b+c)^2").to_string(), "a^2 + 2*a*b + 2*a*c + b^2 + 2*b*c + c^2");
    assert_eq!(poly("(x-y)*(x+y)"), poly("x^2 - y^2"));
    let central = poly("(1+x)^200").coefficient(&[(Var::new("x"), 100)]);
    assert_eq!(central.to_string(), "90548514656103281165404177077484163874504589675413336841320");
    // 12! / (3! 4! 5!)
    let [a, b, c] = vars(["a", "b", "c"]);
    assert_eq!(poly("(a+b+c)^12").coefficient(&[(c, 5), (a, 3), (b, 4)]), Rational::from(27720));
    assert_eq!(poly("(1+x1+x2+x3+x4+x5+x6+x7+x8)^6").len(), 3003);
}

#[test]
fn coefficients_of_every_size_multiply_exactly() {
    // (10^30 x + 1)(10^30 x - 1): beyond machine integers
    let p = poly("(1e30*x + 1)*(1e30*x - 1)");
    assert_eq!(p, poly("1e60*x^2 - 1"));
    // These denominators have a very long common denominator: the product is computed in fractions.
    let primes = (2u64..1500).filter(|n| (2..*n).all(|d| n % d != 0)).map(|n| (vec![(n % 40) as u16], ratio(1, n)));
    let p = Polynomial::from_terms(&vars(["x"]), primes).unwrap();
    let point = [ratio(2, 3)];
    let value = p.eval(p.variables(), &point).unwrap();
    assert_eq!(p.mul(&p).unwrap().eval(p.variables(), &point).unwrap(), &value * &value);
    let changes = [(Var::new("x"), (ratio(3, 2), ratio(-1, 5)))].into();
    let moved = p.affine(&changes).unwrap();
    assert_eq!(moved.eval(p.variables(), &[ratio(1, 1)]), p.eval(p.variables(), &[ratio(13, 10)]));
    // More exponents than fit into one packed integer.
    let wide: String = (0..150).map(|k| format!("+ v{k}")).collect();
    let square = poly(&format!("({wide})^2"));
    assert_eq!(square.len(), 150 * 151 / 2);
    let [v3, v140] = vars(["v3", "v140"]);
    assert_eq!(square.coefficient(&[(v140, 1), (v3, 1)]), Rational::from(2));
}

#[test]
fn degrees_terms_and_coefficients() {
    let p = poly("x^3*y + 2*y^2 - 7");
    let [x, y, z] = vars(["x", "y", "z"]);
    assert_eq!(p.variables(), [x.clone(), y.clone()]);
    assert_eq!((p.degree(), p.degree_in(&x), p.degree_in(&y), p.degree_in(&z)), (Some(4), 3, 2, 0));
    assert_eq!(p.len(), 3);
    assert_eq!(p.coefficient(&[]), Rational::from(-7));
    assert_eq!(p.coefficient(&[(x.clone(), 1), (y.clone(), 1), (x.clone(), 2)]), Rational::ONE);
    assert_eq!(p.coefficient(&[(z.clone(), 1)]), Rational::ZERO);
    assert_eq!(p.coefficient(&[(z.clone(), 0), (y.clone(), 2)]), Rational::from(2));
    assert_eq!(p.coefficient(&[(y.clone(), u16::MAX), (y.clone(), u16::MAX)]), Rational::ZERO);
    let highest: Vec<_> = p.terms().next().unwrap().0;
    assert_eq!(highest, [(&x, 3), (&y, 1)]);
    assert_eq!((Polynomial::zero().degree(), Polynomial::one().degree()), (None, Some(0)));
    assert!(Polynomial::zero().is_zero() && Polynomial::zero().is_empty());
    assert_eq!(Polynomial::constant(5).as_constant(), Some(Rational::from(5)));
    assert_eq!(p.as_constant(), None);
}

#[test]
fn equality_does_not_see_variables_that_cancelled() {
    let x = Polynomial::var(&Var::new("x"));
    let y = Polynomial::var(&Var::new("y"));
    let p = &(&x + &y) - &y;
    assert_eq!(p, x);
    assert_eq!(p.variables(), x.variables());
    let [vx, vy] = vars(["x", "y"]);
    let listed = [(vec![0, 1], Rational::ONE), (vec![3, 0], Rational::ZERO)];
    assert_eq!(Polynomial::from_terms(&[vy, vx.clone()], listed).unwrap(), x);
    // The exponents of a variable that is given twice add up.
    let square = Polynomial::from_terms(&[vx.clone(), vx], [(vec![1, 1], Rational::ONE)]).unwrap();
    assert_eq!(square, poly("x^2"));
}

#[test]
fn linear_terms_convert() {
    let [x, y] = reals(["x", "y"]);
    assert_eq!(Polynomial::from(2 * &y - &x + 3), poly("2*y - x + 3"));
    assert_eq!(Polynomial::from(&x - &x), Polynomial::zero());
}

#[test]
fn known_values_derivatives_and_shifts() {
    let [x, y] = vars(["x", "y"]);
    let p = poly("x^2*y - 1/3*y");
    assert_eq!(p.eval(&[y.clone(), x.clone()], &[ratio(3, 1), ratio(1, 2)]).unwrap(), ratio(-1, 4));
    assert_eq!(p.derivative(&x), poly("2*x*y"));
    assert_eq!(p.derivative(&y), poly("x^2 - 1/3"));
    assert!(p.derivative(&Var::new("z")).is_zero());
    let changes = [(x.clone(), (ratio(1, 2), ratio(-1, 3)))].into();
    assert_eq!(p.affine(&changes).unwrap(), poly("(x/2 - 1/3)^2*y - y/3"));
    assert_eq!(poly("x^10 + x").eval(&[x], &[ratio(0, 1)]).unwrap(), Rational::ZERO);
}

#[test]
fn coordinates_are_aligned_or_named() {
    let [x, y, z] = vars(["x", "y", "z"]);
    let p = poly("x^2*z + 5");
    let aligned = p.aligned(&[z.clone(), y.clone(), x.clone()]).unwrap();
    assert_eq!(aligned, [(vec![0, 0, 0], Rational::from(5)), (vec![1, 0, 2], Rational::ONE)]);
    let error = p.aligned(&[y.clone(), x.clone()]).unwrap_err();
    assert_eq!(error.to_string(), "the polynomial depends on `z`, which is not among the given variables (y, x)");
    let short = p.eval(&[x.clone(), z.clone()], &[ratio(1, 1)]).unwrap_err();
    assert_eq!(short, PolynomialError::Length { expected: 2, found: 1 });
    let nan = p.eval_f64(&[x.clone(), z.clone()], &[1.0, f64::NAN]).unwrap_err();
    assert_eq!(nan.to_string(), "the value of `z`: NaN is not a real number");
    let ragged = Polynomial::from_terms(&[x], [(vec![1, 2], Rational::ONE)]).unwrap_err();
    assert_eq!(ragged, PolynomialError::Length { expected: 1, found: 2 });
}

#[test]
fn values_outside_the_normal_range_of_float64_are_computed_exactly() {
    let [x, y] = vars(["x", "y"]);
    let near = poly("x^2*y^2").eval_f64(&[x.clone(), y.clone()], &[1e-200, 1e200]).unwrap();
    assert!((near.value - 1.0).abs() < 1e-15 && near.error < 1e-15);
    let huge = poly("x^2").eval_f64(std::slice::from_ref(&x), &[1e200]).unwrap();
    assert_eq!(huge.error, f64::INFINITY);
    let cancelled = poly("x^2 - 1e400").eval_f64(std::slice::from_ref(&x), &[2.0]).unwrap();
    assert_eq!((cancelled.value, cancelled.error), (f64::NEG_INFINITY, f64::INFINITY));
    let zero = poly("x*y + x").eval_f64(&[x, y], &[0.0, 3.0]).unwrap();
    assert_eq!((zero.value, zero.error), (0.0, 0.0));
}
