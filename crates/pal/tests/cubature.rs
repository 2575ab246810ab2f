//! Compares integrals by cubature and by rejection sampling with closed forms.

mod common;

use common::{ratio, variables};
use pal::formula::{Constraint, Formula, Polygon, Ring, Var, reals};
use pal::moments::gasp::{self, GaspError, GaspResult, GrundmannMoellerRule, MAX_INDEX};
use pal::moments::rejection::{self, RejectionError, RejectionResult};
use pal::number::{Integer, Rational, to_f64};
use pal::polynomial::Polynomial;
use pal::region::Region;
use pal::shapes;

fn region(constraint: impl Into<Constraint>) -> Region {
    Region::new(&constraint.into()).unwrap()
}

fn poly(text: &str) -> Polynomial {
    Polynomial::parse(text).unwrap()
}

fn factorial(n: u16) -> Rational {
    Rational::from((1..=n).fold(Integer::ONE, |product, k| product * Integer::from(k)))
}

fn binomial(n: u16, k: u16) -> Rational {
    factorial(n) / factorial(k) / factorial(n - k)
}

fn power(x: &Rational, exponent: u16) -> Rational {
    (0..exponent).fold(Rational::ONE, |product, _| product * x)
}

/// Returns all exponents in `n` variables of total degree at most `degree`.
fn exponents(n: usize, degree: u16) -> Vec<Vec<u16>> {
    (0..n).fold(vec![vec![]], |shorter, _| {
        let longer = |alpha: &Vec<u16>| {
            let left = degree - alpha.iter().sum::<u16>();
            (0..=left).map(|a| [&alpha[..], &[a]].concat()).collect::<Vec<_>>()
        };
        shorter.iter().flat_map(longer).collect()
    })
}

/// Asserts that the exact integral lies within the error bound, and that the bound is small.
fn assert_encloses(result: &GaspResult, exact: &Rational, what: &str) {
    let error = (result.value - to_f64(exact)).abs();
    // The float64 nearest to the exact value is itself half an ulp away from it.
    let allowed = result.rounding_error + to_f64(exact).abs() * f64::EPSILON / 2.0;
    assert!(error <= allowed, "{what}: {} is not {} within {:e}", result.value, to_f64(exact), result.rounding_error);
}

#[test]
fn every_monomial_on_the_unit_simplex_lies_within_the_bound() {
    for n in 1..=6 {
        let region = region(shapes::simplex(n));
        let (vars, _) = variables(n);
        for alpha in exponents(n, if n <= 3 { 9 } else { 4 }) {
            let p = Polynomial::from_terms(&vars, [(alpha.clone(), Rational::ONE)]).unwrap();
            let top = alpha.iter().fold(Rational::ONE, |product, a| product * factorial(*a));
            let exact = top / factorial(n as u16 + alpha.iter().sum::<u16>());
            let result = gasp::integrate(&region, &p).unwrap();
            assert_encloses(&result, &exact, &format!("{alpha:?}"));
            assert!(result.rounding_error < 1e-11 * to_f64(&exact), "{alpha:?}: {result:?}");
            assert_eq!(result.truncation_estimate, 0.0);
        }
    }
}

#[test]
fn rules_integrate_up_to_their_degree_and_no_further() {
    for n in 1..=6 {
        let unit = region(shapes::simplex(n));
        for s in 0..=6usize {
            let rule = GrundmannMoellerRule::shared(n, s).unwrap();
            let sum: f64 = (0..rule.len()).map(|k| rule.weight(k)).sum();
            let magnitude: f64 = (0..rule.len()).map(|k| rule.weight(k).abs()).sum();
            let volume = 1.0 / to_f64(&factorial(n as u16));
            assert!((sum - volume).abs() <= 1e-14 * magnitude, "n = {n}, s = {s}: {sum}");

            // The integral of the last variable to the power d is d! / (n + d)!.
            let integral = |d: usize| gasp::integrate_fn(&unit, s, |x| x[n - 1].powi(d as i32)).unwrap();
            let exact = |d: usize| to_f64(&(factorial(d as u16) / factorial((n + d) as u16)));
            let error = |d: usize| (integral(d).value / exact(d) - 1.0).abs();
            assert!(error(2 * s + 1) < 1e-9, "n = {n}, s = {s}: {}", error(2 * s + 1));
            assert!(error(2 * s + 2) > 1e-7, "n = {n}, s = {s}: {}", error(2 * s + 2));
        }
    }
}

/// Returns the exact integral of `x^a y^b` over a polygon: a sum over signed triangles from the origin to every edge.
fn polygon_moment(outline: &[[Rational; 2]], a: u16, b: u16) -> Rational {
    let k = a + b;
    let triangle = |p: &[Rational; 2], q: &[Rational; 2]| {
        let mut sum = Rational::ZERO;
        for i in 0..=k {
            // The coefficient of t^(a, b) in (t . p)^i (t . q)^(k - i).
            for u in a.saturating_sub(k - i)..=a.min(i) {
                let left = binomial(i, u) * power(&p[0], u) * power(&p[1], i - u);
                let right = binomial(k - i, a - u) * power(&q[0], a - u) * power(&q[1], k - i - (a - u));
                sum += left * right;
            }
        }
        sum * (&p[0] * &q[1] - &p[1] * &q[0])
    };
    let edges = outline.iter().zip(outline.iter().cycle().skip(1));
    let sum = edges.fold(Rational::ZERO, |sum, (p, q)| sum + triangle(p, q));
    sum * factorial(a) * factorial(b) / factorial(k + 2)
}

fn star_region(outline: &[[Rational; 2]]) -> Region {
    let [x, y] = reals(["x", "y"]);
    let polygon = Polygon::new(Ring::new(outline.to_vec()).unwrap(), Vec::new()).unwrap();
    region(polygon.to_formula(&x, &y))
}

#[test]
fn stars_have_the_moments_of_greens_theorem() {
    for corners in [3, 5, 7, 11] {
        let outline = shapes::star(corners, 10.0);
        let star = star_region(&outline);
        for [a, b] in [[0, 0], [1, 0], [2, 3], [4, 4], [0, 12], [7, 5]] {
            let exact = polygon_moment(&outline, a, b);
            let result = gasp::integrate(&star, &poly(&format!("x^{a}*y^{b}"))).unwrap();
            assert_encloses(&result, &exact, &format!("{corners}-star, x^{a} y^{b}"));
            let size = to_f64(&polygon_moment(&outline, a + a % 2, b + b % 2));
            assert!(result.rounding_error < 1e-10 * size.abs(), "{corners}-star, x^{a} y^{b}: {result:?}");
        }
        let sum = poly("(x - 2*y + 1)^5 - 3*x^2 + 1/7");
        let exact = sum.aligned(&["x", "y"].map(Var::new)).unwrap().into_iter();
        let exact =
            exact.fold(Rational::ZERO, |total, (alpha, c)| total + c * polygon_moment(&outline, alpha[0], alpha[1]));
        assert_encloses(&gasp::integrate(&star, &sum).unwrap(), &exact, &format!("{corners}-star, sum"));
    }
}

#[test]
fn boxes_have_products_of_powers() {
    let [x, y, z] = reals(["x", "y", "z"]);
    let region = region(x.between(-1, 2) & y.between(ratio(1, 3), 1) & z.between(-3, -2));
    let along =
        |low: Rational, high: Rational, e: u16| (power(&high, e + 1) - power(&low, e + 1)) / Rational::from(e + 1);
    for alpha in exponents(3, 6) {
        let [a, b, c] = [alpha[0], alpha[1], alpha[2]];
        let exact = along(ratio(-1, 1), ratio(2, 1), a)
            * along(ratio(1, 3), ratio(1, 1), b)
            * along(ratio(-3, 1), ratio(-2, 1), c);
        let result = gasp::integrate(&region, &poly(&format!("x^{a}*y^{b}*z^{c}"))).unwrap();
        assert_encloses(&result, &exact, &format!("{alpha:?}"));
        assert!(result.rounding_error < 1e-9, "{alpha:?}: {result:?}");
    }
}

#[test]
fn the_bound_holds_where_everything_cancels() {
    // Expanded around 0, terms of size 1e18 make up an integral of 1/7.
    let [x, y] = reals(["x", "y"]);
    let far = region(x.between(1000, 1001) & y.between(0, 1));
    let result = gasp::integrate(&far, &poly("(x - 1000)^6")).unwrap();
    assert_encloses(&result, &ratio(1, 7), "far away");
    assert!(result.rounding_error > 1.0, "{result:?}");
    // Weights alternate ever more strongly with the degree.
    let unit = region(x.between(0, 1));
    for degree in [10, 40, 80, 160] {
        let result = gasp::integrate(&unit, &poly(&format!("x^{degree} - x^{}", degree - 1))).unwrap();
        assert_encloses(&result, &(ratio(1, degree + 1) - ratio(1, degree)), &format!("degree {degree}"));
    }
    // The size of this sliver comes out wrong in float64.
    let sliver = region(y.ge(&x) & y.le(&x + ratio(1, 1 << 40)) & x.between(1, 2));
    assert_encloses(&gasp::integrate(&sliver, &poly("x")).unwrap(), &(ratio(3, 2) * ratio(1, 1 << 40)), "sliver");
}

#[test]
fn degree_zero_is_the_volume() {
    for n in 1..=6 {
        let cross = region(shapes::cross_polytope(n));
        let result = gasp::integrate(&cross, &Polynomial::one()).unwrap();
        assert_encloses(&result, &cross.exact_volume().unwrap(), &format!("cross-polytope {n}"));
        assert_eq!(result.points, 1);
        assert!(result.simplices >= result.cells as u64);
    }
    let point = gasp::integrate(&region(Formula::yes()), &poly("7")).unwrap();
    assert_eq!((point.value, point.cells, point.simplices), (7.0, 1, 1));
}

#[test]
fn closures_converge_to_the_closed_form() {
    // The integral of exp(x + y) over the unit triangle: the integral of t e^t from 0 to 1, which is 1.
    let triangle = region(shapes::simplex(2));
    let mut previous = f64::INFINITY;
    for s in 0..=7 {
        let result = gasp::integrate_fn(&triangle, s, |p| (p[0] + p[1]).exp()).unwrap();
        let error = (result.value - 1.0).abs();
        assert!(error < previous / 20.0 || error < 1e-13, "s = {s}: {error:e} after {previous:e}");
        assert!(error <= result.truncation_estimate + 1e-13, "s = {s}: {result:?}");
        previous = error;
    }
    let flat = [0.0, 0.0, 1.0, 0.0, 0.0, 1.0];
    let listed = gasp::integrate_fn_simplices(&flat, 2, 7, |p| (p[0] + p[1]).exp()).unwrap();
    assert!((listed.value - 1.0).abs() < 1e-13 && listed.cells == 1);
}

#[test]
fn closures_and_polynomials_agree() {
    let star = star_region(&shapes::star(7, 10.0));
    let p = gasp::integrate(&star, &poly("x^4*y^2 - 3*x*y + 2")).unwrap();
    let f = gasp::integrate_fn(&star, 3, |v| v[0].powi(4) * v[1].powi(2) - 3.0 * v[0] * v[1] + 2.0).unwrap();
    assert!((p.value - f.value).abs() <= p.rounding_error + f.rounding_error, "{p:?} {f:?}");
    assert_eq!((p.cells, p.simplices, p.points), (f.cells, f.simplices, f.points));
}

#[test]
fn regions_without_volume_integrate_to_zero() {
    let [x, y] = reals(["x", "y"]);
    let square = x.between(0, 1) & y.between(0, 1);
    for (name, formula) in [
        ("empty", square.clone() & (&x + &y).gt(2)),
        ("a point", square.clone() & (&x + &y).ge(2)),
        ("a segment", square.clone() & x.equals(&y)),
        ("false", x.lt(0) & x.gt(0) & y.equals(0)),
    ] {
        let region = region(formula);
        let result = gasp::integrate(&region, &poly("x*y + 1")).unwrap();
        assert_eq!((result.value, result.rounding_error, result.cells), (0.0, 0.0, 0), "{name}");
        assert_eq!(
            gasp::integrate_fn(&region, 0, |_| f64::NAN).map(|r| (r.value, r.truncation_estimate)),
            Ok((0.0, 0.0))
        );
        let sampled = rejection::integrate(&region, &poly("x*y + 1"), 100, 1).unwrap();
        assert_eq!(sampled, RejectionResult { value: 0.0, standard_error: 0.0, samples: 0, accepted: 0 }, "{name}");
    }
    let zero = gasp::integrate(&region(square), &Polynomial::zero()).unwrap();
    assert_eq!((zero.value, zero.rounding_error), (0.0, 0.0));
    let listed = gasp::integrate_simplices(&[0.0, 0.0, 1.0, 1.0, 3.0, 3.0], &["x", "y"].map(Var::new), &poly("x"));
    assert_eq!(listed.unwrap().value, 0.0);
}

/// Where Boolean variables are free, both integrators count every assignment.
#[test]
fn boolean_variables_are_counted() {
    let [x] = reals(["x"]);
    let (a, b) = (Formula::boolean("a"), Formula::boolean("b"));
    // (a or b) holds for three assignments, and x is below 1/2 if a holds: 1 + 1/2 + 1/2.
    let region = region(x.between(0, 1) & (a.clone() | b) & a.implies(x.le(ratio(1, 2))));
    assert_eq!(region.exact_volume().unwrap(), Rational::from(2));
    assert_encloses(&gasp::integrate(&region, &Polynomial::one()).unwrap(), &Rational::from(2), "volume");
    assert_encloses(&gasp::integrate(&region, &poly("x")).unwrap(), &ratio(3, 4), "mean");
    let sampled = rejection::integrate(&region, &poly("x"), 100_000, 3).unwrap();
    assert!(
        (sampled.value - 0.75).abs() < 4.5 * sampled.standard_error && sampled.standard_error < 0.01,
        "{sampled:?}"
    );
}

#[test]
fn rejection_is_within_its_standard_error() {
    let [x, y] = reals(["x", "y"]);
    let band = x.between(-1, 2) & y.between(0, 1) & ((&x + &y).le(0) | (&x - 2 * &y).ge(ratio(1, 2)));
    let cases: [(&str, Region, &str); 5] = [
        ("star", star_region(&shapes::star(7, 10.0)), "x^2*y^2 + x + 3"),
        ("triangle", region(shapes::simplex(2)), "x1^3*x2"),
        ("cross-polytope", region(shapes::cross_polytope(4)), "x1^2 + x2 + 1"),
        ("band", region(band), "x*y - 1"),
        ("shifted", region(x.between(1000, ratio(3001, 3)) & y.between(-1, 0) & (&x + &y).le(1000)), "x"),
    ];
    for (name, region, p) in cases {
        let p = poly(p);
        let exact = gasp::integrate(&region, &p).unwrap().value;
        for seed in 0..8 {
            let sampled = rejection::integrate(&region, &p, 20_000, seed).unwrap();
            let sigmas = (sampled.value - exact) / sampled.standard_error;
            assert!(sigmas.abs() < 4.5, "{name}, seed {seed}: {sampled:?} is {sigmas} from {exact}");
            assert!(sampled.accepted > 0 && sampled.accepted < sampled.samples && sampled.samples == 20_000);
        }
        // The standard error shrinks with the square root of the number of samples.
        let [few, many] = [10_000, 160_000].map(|n| rejection::integrate(&region, &p, n, 99).unwrap());
        let ratio = few.standard_error / many.standard_error;
        assert!((3.2..5.0).contains(&ratio), "{name}: {ratio}");
        assert!((many.value - exact).abs() < 4.5 * many.standard_error, "{name}: {many:?} {exact}");
    }
}

#[test]
fn rejection_takes_closures_and_whole_boxes() {
    let triangle = region(shapes::simplex(2));
    let sampled = rejection::integrate_fn(&triangle, |p| (p[0] + p[1]).exp(), 50_000, 5).unwrap();
    assert!((sampled.value - 1.0).abs() < 4.5 * sampled.standard_error, "{sampled:?}");
    let cube = rejection::integrate(&region(shapes::cube(3)), &Polynomial::one(), 1000, 0).unwrap();
    assert_eq!(cube, RejectionResult { value: 1.0, standard_error: 0.0, samples: 1000, accepted: 1000 });
    let point = rejection::integrate(&region(Formula::yes()), &poly("7"), 10, 0).unwrap();
    assert_eq!((point.value, point.accepted), (7.0, 10));
    // One sample, or none inside, gives no standard deviation.
    let one = rejection::integrate(&triangle, &Polynomial::one(), 1, 0).unwrap();
    assert_eq!(one.standard_error, f64::INFINITY);
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let star = star_region(&shapes::star(11, 10.0));
    let cross = region(shapes::cross_polytope(4));
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            (
                gasp::integrate(&star, &poly("x^11*y - 2*x^3 + 1")).unwrap(),
                // 8008 points: more than one chunk for each simplex.
                gasp::integrate_fn(&cross, 11, |x| (x[0] - x[1] * x[2]).cos() + x[3]).unwrap(),
                rejection::integrate(&star, &poly("x^2 + y"), 50_001, 7).unwrap(),
                rejection::integrate_fn(&cross, |x| x[0].sin() + 1.0, 9_999, 7).unwrap(),
            )
        })
    };
    let one = run(1);
    assert!(one.1.points > 4096);
    assert_eq!(one, run(2));
    assert_eq!(one, run(5));
    assert_ne!(one.2.value, rejection::integrate(&star, &poly("x^2 + y"), 50_001, 8).unwrap().value);
}

#[test]
fn misuse_is_named() {
    let [x, y] = reals(["x", "y"]);
    let square = region(x.between(0, 1) & y.between(0, 1));
    let names = ["x", "y"].map(Var::new);
    assert!(matches!(gasp::integrate(&square, &poly("z")), Err(GaspError::Polynomial(_))));
    assert!(matches!(rejection::integrate(&square, &poly("z"), 10, 0), Err(RejectionError::Polynomial(_))));
    let half_plane = region(x.ge(0) & y.between(0, 1));
    assert!(matches!(gasp::integrate(&half_plane, &poly("x")), Err(GaspError::Unbounded(_))));
    assert!(matches!(rejection::integrate(&half_plane, &poly("x"), 10, 0), Err(RejectionError::Unbounded(_))));
    assert_eq!(gasp::integrate_fn(&square, MAX_INDEX + 1, |_| 1.0), Err(GaspError::Degree { index: MAX_INDEX + 1 }));
    let huge = gasp::integrate(&region(shapes::cube(10)), &poly("x1^40"));
    assert_eq!(huge, Err(GaspError::TooManyPoints { dimension: 10, index: 20 }));
    assert!(huge.unwrap_err().to_string().contains("degree 41 in 10 dimensions"));
    assert!(
        matches!(gasp::integrate_fn(&square, 1, |p| 1.0 / (p[0] - p[0])), Err(GaspError::NotFinite(p)) if p.len() == 2)
    );
    assert!(matches!(rejection::integrate_fn(&square, |_| f64::NAN, 10, 0), Err(RejectionError::NotFinite(_))));
    assert_eq!(rejection::integrate(&square, &poly("x"), 0, 0), Err(RejectionError::NoSamples));
    let shape = gasp::integrate_simplices(&[0.0; 5], &names, &poly("x"));
    assert_eq!(shape, Err(GaspError::Shape { dimension: 2, given: 5 }));
    assert!(gasp::integrate_simplices(&[], &[], &poly("1")).is_err());
    assert!(gasp::integrate_fn_simplices(&[], usize::MAX, 0, |_| 1.0).is_err());
    let nan = gasp::integrate_simplices(&[0.0, 0.0, f64::NAN, 0.0, 0.0, 1.0], &names, &poly("x"));
    assert!(matches!(nan, Err(GaspError::Vertex(_))));
    // Coordinates and coefficients are beyond the range of float64.
    let far = region(x.between(0, pal::number::parse_rational("1e400").unwrap()) & y.between(0, 1));
    assert!(gasp::integrate(&far, &poly("x")).is_err());
    assert_eq!(rejection::integrate(&far, &poly("x"), 10, 0), Err(RejectionError::Overflow));
    assert_eq!(gasp::integrate(&square, &poly("1e400*x")), Err(GaspError::Overflow));
}
