//! Integrals by cubature against exact integrals.

use burn::tensor::{DType, Device};
use pal::formula::{Constraint, GeoJsonOptions, Polygon, Ring, parse_geojson, reals};
use pal::moments::{Method, gasp, integrate};
use pal::number::to_f64;
use pal::polynomial::Polynomial;
use pal::region::Region;
use pal::shapes;
use pal_burn::cubature;

pub fn region(constraint: impl Into<Constraint>) -> Region {
    Region::new(&constraint.into()).unwrap()
}

pub fn poly(text: &str) -> Polynomial {
    Polynomial::parse(text).unwrap()
}

pub fn star(corners: usize) -> Region {
    let [x, y] = reals(["x", "y"]);
    let ring = Ring::new(shapes::star(corners, 10.0)).unwrap();
    region(Polygon::new(ring, Vec::new()).unwrap().to_formula(&x, &y))
}

pub fn campus() -> Region {
    let map = include_str!("../../../pal-cli/assets/campus.geojson");
    region(parse_geojson(map, &GeoJsonOptions::default()).unwrap())
}

/// Regions with polynomials whose integrals are positive, so that relative errors make sense.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for n in 1..=5 {
        let sum: String = (1..=n).map(|j| format!(" + x{j}")).collect();
        let product: String = (1..=n).map(|j| format!("*x{j}^2")).collect();
        let texts = [
            "7".into(),
            format!("1/3{sum}"),
            format!("(1/2{sum})^3"),
            format!("(1{sum})^5"),
            format!("3*x1^8 + 1{product}"),
        ];
        let polynomials: Vec<Polynomial> = texts.iter().map(|text| poly(text)).collect();
        cases.push((format!("cube {n}"), region(shapes::cube(n)), polynomials.clone()));
        cases.push((format!("simplex {n}"), region(shapes::simplex(n)), polynomials));
        let even = [poly(&format!("1{product}")), poly(&format!("(x1 - 1/2*x{n})^4")), poly(&format!("x{n}^12"))];
        cases.push((format!("cross-polytope {n}"), region(shapes::cross_polytope(n)), even.to_vec()));
    }
    let plane = ["1", "x^2", "x^4*y^2 + 1/7", "(x - 2*y + 1)^6", "(x^2 + y^2)^6", "x^6*y^6"].map(poly);
    for corners in [3, 7, 11, 19] {
        cases.push((format!("{corners}-star"), star(corners), plane.to_vec()));
    }
    cases.push(("campus".into(), campus(), plane.to_vec()));
    cases
}

type Case = (String, Region, Vec<Polynomial>);

/// Checks cases on a device: each integral is within a relative error of the exact one and within its own error bound,
/// and agrees with the cubature of the core within both bounds.
pub fn check(cases: impl IntoIterator<Item = Case>, device: &Device, dtype: DType, tolerance: f64) {
    for (name, region, polynomials) in cases {
        for p in polynomials {
            let got = cubature::integrate(&region, &p, device, dtype).unwrap();
            let exact = integrate(&region, &p, Method::Exact).unwrap().exact.unwrap();
            let error = (got.value / to_f64(&exact) - 1.0).abs();
            assert!(error < tolerance, "{name}, {p}: {got:?} is off by {error:e} of {}", to_f64(&exact));
            let distance = (got.value - to_f64(&exact)).abs();
            assert!(distance <= got.rounding_error, "{name}, {p}: {got:?} is {distance:e} from {}", to_f64(&exact));
            let core = gasp::integrate(&region, &p).unwrap();
            assert!(
                (got.value - core.value).abs() <= got.rounding_error + core.rounding_error,
                "{name}, {p}: {got:?} {core:?}"
            );
            assert_eq!((got.simplices as u64, got.points), (core.simplices, core.points), "{name}, {p}");
        }
    }
}
