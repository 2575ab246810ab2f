//! Textbook integrals, as fractions. The same example in Python is `examples/python/integrals.py`.

use std::error::Error;

use pal::formula::{Formula, reals};
use pal::moments::{Method, integrate};
use pal::number::{Rational, parse_rational};
use pal::polynomial::Polynomial;
use pal::region::Region;
use pal::wmi::Problem;

fn exact(constraint: &Formula, polynomial: &str) -> Result<Rational, Box<dyn Error>> {
    let region = Region::new(&constraint.clone().into())?;
    let found = integrate(&region, &Polynomial::parse(polynomial)?, Method::Exact)?;
    found.exact.ok_or_else(|| "the method is exact, so there is a fraction".into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let fraction = |text: &str| parse_rational(text);
    let [x, y, z] = reals(["x", "y", "z"]);

    // The area of the triangle under the diagonal of the unit square, and its centre of mass.
    let triangle = y.ge(0) & y.le(&x) & x.le(1);
    let area = exact(&triangle, "1")?;
    let centre = [exact(&triangle, "x")? / &area, exact(&triangle, "y")? / &area];
    println!("area {area} centre ({}, {})", centre[0], centre[1]);
    assert_eq!((area, centre), (fraction("1/2")?, [fraction("2/3")?, fraction("1/3")?]));

    // Dirichlet's integral over a simplex: p! q! r! / (p + q + r + 3)!
    let simplex = x.ge(0) & y.ge(0) & z.ge(0) & (&x + &y + &z).le(1);
    let value = exact(&simplex, "x^4*y^3*z^2")?;
    println!("Dirichlet {value}");
    assert_eq!(value, Rational::from(24 * 6 * 2) / Rational::from((1..=12u64).product::<u64>()));

    // The moment of inertia of a square tube about its axis: (a^4 - b^4) / 6.
    let tube = x.between(-3, 3) & y.between(-3, 3) & !(x.gt(-2) & x.lt(2) & y.gt(-2) & y.lt(2));
    let inertia = exact(&tube, "x^2 + y^2")?;
    println!("moment of inertia {inertia}");
    assert_eq!(inertia, Rational::from(6i64.pow(4) - 4i64.pow(4)) / Rational::from(6));

    // Two people arrive at random times within an hour and wait for a quarter of it: they meet with probability 7/16.
    let quarter = fraction("1/4")?;
    let close = (&x - &y).le(quarter.clone()) & (&y - &x).le(quarter);
    let meet = exact(&(x.between(0, 1) & y.between(0, 1) & close), "1")?;
    println!("they meet {meet}");
    assert_eq!(meet, fraction("7/16")?);

    // A weight with cases: the expectation of max(x, y) on the unit square is 2/3.
    let largest = Problem::parse(
        r#"{"domain": {"reals": {"x": ["0", "1"], "y": ["0", "1"]}},
            "support": "true", "weight": "(ite (>= x y) x y)"}"#,
    )?;
    let largest = largest.solve(Method::Exact)?.total.exact.ok_or("the method is exact, so there is a fraction")?;
    println!("E max(x, y) {largest}");
    assert_eq!(largest, fraction("2/3")?);
    Ok(())
}
