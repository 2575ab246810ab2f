//! Cubature by tensor operations on the CPU: against exact integrals, and in blocks of many sizes.

mod common;

use burn::tensor::{DType, Device};
use common::cubature::{cases, check, poly, region, star};
use pal::formula::{Formula, reals};
use pal::moments::gasp::GaspError;
use pal::number::Rational;
use pal::polynomial::Polynomial;
use pal::shapes;
use pal_burn::cubature::{Blocks, CubatureError, integrate, integrate_in_blocks};
use pal_burn::device::DeviceError;

#[test]
fn float64_agrees_to_twelve_digits() {
    check(cases(), &Device::flex(), DType::F64, 1e-12);
}

#[test]
fn float32_agrees_to_four_digits() {
    check(cases(), &Device::flex(), DType::F32, 1e-4);
}

/// The integral of a monomial over the unit simplex is `alpha! / (n + |alpha|)!`.
#[test]
fn monomials_have_their_closed_form() {
    let device = Device::flex();
    for (text, n, want) in [
        ("x1^5", 1, 1.0 / 6.0),
        ("x1^2*x2^3", 2, 2.0 * 6.0 / 5040.0),
        ("x1*x2*x3^4", 3, 24.0 / 362_880.0),
        ("x1^3*x4^3", 4, 36.0 / 3_628_800.0),
        ("x1^2*x5^4", 5, 2.0 * 24.0 / 39_916_800.0),
    ] {
        let got = integrate(&region(shapes::simplex(n)), &poly(text), &device, DType::F64).unwrap();
        assert!((got.value / want - 1.0).abs() < 1e-13, "{text}: {got:?} {want}");
    }
}

#[test]
fn blocks_of_all_sizes_agree() {
    let p = poly("(x + 2*y + 3)^4 - 5*x");
    let device = Device::flex();
    let star = star(7);
    let want = integrate(&star, &p, &device, DType::F64).unwrap();
    for (simplices, points, monomials) in [(1, 1, 1), (1, 20, 15), (2, 3, 4), (5, 1, 2), (1000, 7, 1000)] {
        for values in [1, 100] {
            let blocks = Blocks { values, simplices, points, monomials };
            let got = integrate_in_blocks(&star, &p, &device, DType::F64, blocks).unwrap();
            assert!((got.value / want.value - 1.0).abs() < 1e-13, "{blocks:?}: {got:?} {want:?}");
        }
    }
    let none = Blocks { values: 0, simplices: 0, points: 0, monomials: 0 };
    let triangle = region(shapes::simplex(2));
    let got = integrate_in_blocks(&triangle, &poly("x1"), &device, DType::F64, none).unwrap();
    assert!((got.value - 1.0 / 6.0).abs() < 1e-15);
}

#[test]
fn regions_without_volume_integrate_to_zero() {
    let [x, y] = reals(["x", "y"]);
    let square = x.between(0, 1) & y.between(0, 1);
    let device = Device::flex();
    let flat = integrate(&region(square.clone() & x.equals(&y)), &poly("x + 1"), &device, DType::F64).unwrap();
    assert_eq!((flat.value, flat.rounding_error, flat.simplices), (0.0, 0.0, 0));
    assert_eq!(integrate(&region(square), &Polynomial::zero(), &device, DType::F64).unwrap().value, 0.0);
    assert_eq!(integrate(&region(Formula::yes()), &poly("7"), &device, DType::F64).unwrap().value, 7.0);
}

/// Assignments of Boolean variables are counted, and the volume of thin simplices comes from exact arithmetic.
#[test]
fn regions_of_all_kinds() {
    let [x, y] = reals(["x", "y"]);
    let device = Device::flex();
    let (a, b) = (Formula::boolean("a"), Formula::boolean("b"));
    let half = Rational::from_parts(1.into(), 2u8.into());
    let free = region(x.between(0, 1) & (a.clone() | b) & a.implies(x.le(half)));
    let mean = integrate(&free, &poly("x"), &device, DType::F64).unwrap();
    assert!((mean.value - 0.75).abs() < 1e-15, "{mean:?}");
    let width = Rational::from_parts(1.into(), (1u64 << 40).into());
    let sliver = region(y.ge(&x) & y.le(&x + width) & x.between(1, 2));
    let got = integrate(&sliver, &poly("x"), &device, DType::F64).unwrap();
    assert!((got.value / (1.5 / (1u64 << 40) as f64) - 1.0).abs() < 1e-12, "{got:?}");
    // The seventh power of a million is beyond the range of float32.
    let far = region(x.between(1_000_000, 1_000_001));
    let got = integrate(&far, &poly("x^7"), &device, DType::F32).unwrap();
    assert!((got.value / 1.000_003_500_007e42 - 1.0).abs() < 1e-5, "{got:?}");
}

#[test]
fn misuse_is_named() {
    let [x, y] = reals(["x", "y"]);
    let device = Device::flex();
    let square = region(x.between(0, 1) & y.between(0, 1));
    let error = |result: Result<_, CubatureError>| result.map(|_: pal_burn::cubature::Integral| ()).unwrap_err();
    let missing = error(integrate(&square, &poly("z"), &device, DType::F64));
    assert!(matches!(missing, CubatureError::Integral(GaspError::Polynomial(_))));
    let half_plane = error(integrate(&region(x.ge(0) & y.between(0, 1)), &poly("x"), &device, DType::F64));
    assert!(matches!(half_plane, CubatureError::Integral(GaspError::Unbounded(_))));
    let huge = error(integrate(&square, &poly("1e400*x"), &device, DType::F64));
    assert_eq!(huge, CubatureError::Integral(GaspError::Overflow));
    let half = error(integrate(&square, &poly("x"), &device, DType::F16));
    assert_eq!(half, CubatureError::Device(DeviceError::Precision(DType::F16)));
}
