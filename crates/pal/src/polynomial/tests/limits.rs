use super::*;
use crate::polynomial::{MAX_NESTING, ParseProblem, PolynomialError};

fn limit(text: &str) -> (usize, PolynomialError) {
    let error = Polynomial::parse(text).unwrap_err();
    match error.problem {
        ParseProblem::Limit(problem) => (error.column, problem),
        other => panic!("{other}"),
    }
}

#[test]
fn deep_text_is_refused_without_overflowing_the_stack() {
    for hostile in ["(", "-(", "2^(", "2^"] {
        let error = Polynomial::parse(&hostile.repeat(1_000_000 / hostile.len())).unwrap_err();
        assert_eq!(error.problem, ParseProblem::Nesting, "{hostile}");
    }
    let deep = |levels: usize| format!("{}x{}", "(".repeat(levels), ")".repeat(levels));
    assert_eq!(poly(&deep(MAX_NESTING)), poly("x"));
    assert_eq!(Polynomial::parse(&deep(MAX_NESTING + 1)).unwrap_err().column, MAX_NESTING + 1);
    assert_eq!(poly(&format!("{}x", "-".repeat(1_000_000))), poly("x"));
}

#[test]
fn growth_is_refused_before_it_fills_the_memory() {
    assert_eq!(limit("(x^200)^200"), (8, PolynomialError::Degree { degree: 40_000 }));
    assert_eq!(limit("x^9999*y^2"), (7, PolynomialError::Degree { degree: 10_001 }));
    let geometric = |name: &str| {
        let terms = (0..1500).map(|k| (vec![k], Rational::ONE));
        Polynomial::from_terms(&vars([name]), terms).unwrap()
    };
    let product = geometric("x").mul(&geometric("y"));
    assert_eq!(product, Err(PolynomialError::TooManyTerms { limit: 2_000_000 }));
    assert!(matches!(limit("((9^10000)^10000)^10000"), (11, PolynomialError::LongCoefficient { .. })));
    assert!(matches!(limit("(9^10000*x+1)^100").1, PolynomialError::LongCoefficient { .. }));
    assert!(matches!(limit(&"9".repeat(400_000)), (1, PolynomialError::LongCoefficient { .. })));
    assert_eq!(limit("(1+a+b+c+d+e+f)^1000").1, PolynomialError::TooMuchWork);
    let x = Var::new("x");
    let high = poly("x^10000");
    assert!(matches!(high.mul(&high), Err(PolynomialError::Degree { degree: 20_000 })));
    assert!(matches!(high.pow(u32::MAX), Err(PolynomialError::Degree { .. })));
    assert!(matches!(Polynomial::constant(2).pow(u32::MAX), Err(PolynomialError::LongCoefficient { .. })));
    assert_eq!(Polynomial::constant(-1).pow(u32::MAX).unwrap(), Polynomial::constant(-1));
    assert!(matches!(
        high.eval(std::slice::from_ref(&x), &[poly("1e9999").as_constant().unwrap()]),
        Err(PolynomialError::LongCoefficient { .. })
    ));
    let wide = [(vec![u16::MAX], Rational::ONE)];
    assert!(matches!(Polynomial::from_terms(&[x], wide), Err(PolynomialError::Degree { degree: 65_535 })));
}

#[test]
fn shifts_are_limited_too() {
    let p = poly("x^2000*y^2000");
    let changes = vars(["x", "y"]).map(|v| (v, (ratio(1, 1), ratio(1, 1))));
    assert!(p.affine(&changes.into()).is_err());
}

#[test]
fn long_text_takes_no_quadratic_time() {
    let sum: String = (0..100_000).map(|k| format!("+v{k}")).collect();
    assert_eq!(poly(&sum).len(), 100_000);
    let ones = format!("x{}", "*1".repeat(300_000));
    assert_eq!(poly(&ones), poly("x"));
    let same = "x+".repeat(300_000) + "x";
    assert_eq!(poly(&same), poly("300001*x"));
}

#[test]
fn dense_products_and_shifts_of_degree_12_in_8_variables() {
    let base = "(1 + x1 - 2*x2 + x3/3 + x4 + 5*x5 - x6 + x7 + 0.1*x8)";
    let sixth = poly(&format!("{base}^6"));
    let twelfth = sixth.mul(&sixth).unwrap();
    assert_eq!(twelfth.len(), 125_970);
    let changes = twelfth.variables().iter().map(|v| (v.clone(), (ratio(1, 2), ratio(1, 3)))).collect();
    let moved = twelfth.affine(&changes).unwrap();
    let variables = twelfth.variables();
    let value = moved.eval(variables, &vec![ratio(2, 1); 8]).unwrap();
    assert_eq!(value, twelfth.eval(variables, &vec![ratio(4, 3); 8]).unwrap());
}

/// Powers are refused before the work begins, and those of a few terms are cheap enough to be taken.
#[test]
fn powers_are_refused_at_once_or_taken() {
    let start = std::time::Instant::now();
    assert_eq!(limit("(1+a+b+c)^2000").1, PolynomialError::TooMuchWork);
    assert_eq!(limit("(x+y+1)^9000").1, PolynomialError::TooMuchWork);
    assert!(start.elapsed().as_secs_f64() < 1.0, "{:?}", start.elapsed());
    assert_eq!(poly("(x+y+1)^90").len(), 91 * 92 / 2);
    assert_eq!(poly("(x^2+x+1)^300").len(), 601);
    let value = poly("(x+2*y-1)^20").eval(&vars(["x", "y"]), &[ratio(2, 1), ratio(1, 1)]);
    assert_eq!(value.unwrap(), ratio(3, 1).pow(20));
}
