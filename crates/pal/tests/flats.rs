//! Regions of lower dimension: the equalities that hold on them, their free variables and their surface measure.

use pal::formula::{Constraint, Formula, Linear, parse_smtlib, reals};
use pal::number::{Rational, to_f64};
use pal::random::Stream;
use pal::region::{Flat, FlatError, Region, Status};
use std::sync::Arc;

fn ratio(p: i64, q: u64) -> Rational {
    Rational::from_parts(p.into(), q.into())
}

fn region(formula: Formula) -> Region {
    Region::new(&formula.into()).unwrap()
}

fn flat(formula: Formula) -> Arc<Flat> {
    region(formula).flat().unwrap().expect("the region is a flat")
}

/// The dependent variables in terms of the free ones.
fn images(flat: &Flat) -> Vec<String> {
    let chart = flat.chart();
    chart.dependents().iter().map(|d| format!("{} = {}", chart.variables()[d.position], chart.image(d))).collect()
}

#[test]
fn equalities_are_found_however_they_are_written() {
    let [x, y, z] = reals(["x", "y", "z"]);
    let square = x.between(0, 1) & y.between(0, 1);
    let sum = &x + &y + &z;
    let written = [
        square.clone() & sum.equals(1),
        square.clone() & (2 * &sum).equals(2),
        square.clone() & sum.le(1) & sum.ge(1),
        // Both parts of a union lie in the same plane.
        (square.clone() & x.le(&y) & sum.equals(1)) | (square.clone() & x.ge(&y) & (3 * &sum).equals(3)),
        // Implied by a chain that no single pair of atoms shows.
        square.clone() & (&x + &y).le(1 - &z) & z.ge(1 - (&x + &y)),
        square.clone() & sum.differs(1).ite(Formula::no(), Formula::yes()),
        // With a part of smaller dimension beside it, which has no measure.
        (square.clone() & sum.equals(1)) | (x.equals(5) & y.equals(5) & z.equals(5)),
        // With a line beside it.
        (square.clone() & sum.equals(1)) | (x.between(5, 6) & y.equals(5) & z.equals(5)),
    ];
    for formula in written {
        let flat = flat(formula.clone());
        assert_eq!(images(&flat), ["z = -x - y + 1"], "{formula}");
        assert_eq!(flat.to_string(), "flat of dimension 2 in 3 variables, free: x, y");
        let measure = flat.surface_measure().unwrap();
        assert_eq!((measure.free_volume.clone(), measure.square_factor.clone()), (ratio(1, 1), ratio(3, 1)));
        assert!((measure.value() - 3f64.sqrt()).abs() < 1e-15);
    }
}

#[test]
fn cycles_of_inequalities_are_equalities() {
    let [x, y, z] = reals(["x", "y", "z"]);
    let flat = flat(x.le(&y) & y.le(&z) & z.le(&x) & x.between(0, 2));
    assert_eq!(images(&flat), ["y = x", "z = x"]);
    assert!((flat.surface_measure().unwrap().value() - 2.0 * 3f64.sqrt()).abs() < 1e-14);
}

#[test]
fn points_empty_and_full_regions_are_told_apart() {
    let [x, y] = reals(["x", "y"]);
    let point = flat(x.equals(&y) & (&x + &y).equals(1));
    assert_eq!(images(&point), ["x = 1/2", "y = 1/2"]);
    assert_eq!((point.dimension(), point.surface_measure().unwrap().value()), (0, 1.0));
    assert_eq!(point.to_string(), "flat of dimension 0 in 2 variables");
    // One point that only inequalities single out.
    assert_eq!(images(&flat((&x + &y).le(0) & x.ge(0) & y.ge(0))), ["x = 0", "y = 0"]);
    for empty in [
        x.equals(1) & x.equals(2),
        x.equals(&y) & x.lt(&y),
        x.between(0, 1) & y.equals(&x) & y.gt(1),
        x.le(0) & x.ge(0) & x.ne_zero(),
    ] {
        assert!(region(empty.clone()).flat().unwrap().is_none(), "{empty}");
        assert_eq!(region(empty).status(), Status::Empty);
    }
    assert!(region(x.between(0, 1) & y.between(0, 1)).flat().unwrap().is_none());
    // A line beside a square has no measure, and the square is full.
    let beside = (x.between(0, 1) & y.between(0, 1)) | (x.equals(5) & y.between(0, 9));
    assert!(region(beside).flat().unwrap().is_none());
}

trait NotZero {
    fn ne_zero(&self) -> Formula;
}

impl NotZero for Linear {
    fn ne_zero(&self) -> Formula {
        self.differs(0)
    }
}

#[test]
fn an_unbounded_flat_names_a_ray_in_it() {
    let [x, y] = reals(["x", "y"]);
    let ray = flat((&x + 2 * &y).equals(1) & x.ge(0)).surface_measure().unwrap_err();
    assert_eq!(ray.direction.iter().map(to_f64).collect::<Vec<_>>(), [1.0, -0.5]);
}

#[test]
fn flats_without_a_common_hull_are_an_error_that_names_two() {
    let [x, y] = reals(["x", "y"]);
    let cross = (x.equals(0) & y.between(0, 1)) | (y.equals(0) & x.between(0, 1));
    let error = region(cross).flat().unwrap_err();
    assert!(matches!(error, FlatError::Apart { dimension: 1, .. }));
    let text = error.to_string();
    assert!(text.contains("x = 0") && text.contains("y = 0"), "{text}");
    let parallel = (x.equals(0) | x.equals(1)) & y.between(0, 1);
    assert!(region(parallel).flat().unwrap_err().to_string().contains("x = 1"));
}

#[test]
fn free_variables_can_be_chosen() {
    let [a, b, c, d] = reals(["a", "b", "c", "d"]);
    let shares = (&a + &b + &c).equals(1) & d.equals(2 * &a) & a.ge(0) & b.ge(0) & c.ge(0);
    let whole = region(shares);
    let of = |names: &[&str]| whole.with_free(names).unwrap().flat().unwrap().unwrap();
    assert_eq!(images(&whole.flat().unwrap().unwrap()), ["c = -a - b + 1", "d = 2*a"]);
    assert_eq!(images(&of(&["d", "c"])), ["a = 1/2*d", "b = -c - 1/2*d + 1"]);
    let value = |names: &[&str]| of(names).surface_measure().unwrap().value();
    // The surface measure does not depend on the chart.
    for names in [["a", "b"], ["a", "c"], ["b", "c"], ["b", "d"], ["c", "d"]] {
        assert!((value(&names) - value(&["a", "b"])).abs() < 1e-15, "{names:?}");
    }
    let error = |names: &[&str]| whole.with_free(names).unwrap_err().to_string();
    assert!(error(&["a", "d"]).contains("a, d cannot all be free: d = 2*a"), "{}", error(&["a", "d"]));
    assert!(error(&["a"]).contains("dimension 2"));
    assert!(error(&["a", "b", "c"]).contains("cannot all be free"));
    assert!(error(&["a", "x"]).contains("no variable `x`"));
    assert!(error(&["a", "a"]).contains("twice"));
    let square = region(a.between(0, 1) & b.between(0, 1));
    assert!(square.with_free(&["a"]).unwrap_err().to_string().contains("all variables are free"));
    assert!(region(a.equals(1) & a.equals(2)).with_free(&["a"]).unwrap_err().to_string().contains("empty"));
}

/// Random flats have the surface measure of their vertices' simplex: a closed form that knows no chart.
#[test]
fn triangles_in_space_have_their_area() {
    let mut stream = Stream::new(5, 0);
    let mut integer = || (stream.unit() * 13.0).floor() as i64 - 6;
    let mut done = 0;
    while done < 40 {
        let [v0, v1, v2]: [[i64; 3]; 3] = std::array::from_fn(|_| std::array::from_fn(|_| integer()));
        let difference = |a: [i64; 3], b: [i64; 3]| -> [i64; 3] { std::array::from_fn(|j| a[j] - b[j]) };
        let cross = |a: [i64; 3], b: [i64; 3]| {
            [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
        };
        let dot = |a: [i64; 3], b: [i64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
        let normal = cross(difference(v1, v0), difference(v2, v0));
        if normal == [0; 3] {
            continue;
        }
        let y = reals(["x", "y", "z"]);
        let term = |a: [i64; 3]| (0..3).fold(Linear::default(), |sum, j| sum + a[j] * &y[j]);
        let mut formula = term(normal).equals(Linear::from(dot(normal, v0)));
        for (from, to) in [(v0, v1), (v1, v2), (v2, v0)] {
            let inner = cross(normal, difference(to, from));
            formula = formula & term(inner).ge(Linear::from(dot(inner, from)));
        }
        let constraint = Constraint::over(formula, &["x", "y", "z"]).unwrap();
        let flat = Region::new(&constraint).unwrap().flat().unwrap().unwrap();
        let area = 0.5 * (dot(normal, normal) as f64).sqrt();
        assert!((flat.surface_measure().unwrap().value() / area - 1.0).abs() < 1e-14, "{v0:?} {v1:?} {v2:?}");
        done += 1;
    }
}

#[test]
fn membership_is_exact_in_free_coordinates_and_up_to_rounding_in_others() {
    let [x, y] = reals(["x", "y"]);
    let test = |formula: Formula, points: &[f64]| region(formula).point_membership().unwrap().contains_batch(points);
    let line = (10 * &y).equals(3 * &x) & x.between(0, 1);
    // 0.3 x is no float64 number, and neither is 0.3.
    assert_eq!(test(line.clone(), &[1.0, 0.3, 0.5, 0.15, 1.0, 0.3 + 1e-15, 1.5, 0.45]), [true, true, false, false]);
    assert_eq!(test(line & x.lt(1), &[1.0, 0.3]), [false]);
    assert_eq!(test(x.equals(1) & (10 * &y).equals(3), &[1.0, 0.3, 1.0, 0.4]), [true, false]);
    let cross = (x.equals(0) & y.between(0, 1)) | (y.equals(0) & x.between(0, 1));
    assert_eq!(test(cross, &[0.0, 0.5, 0.5, 0.5]), [true, false]);
}

#[test]
fn equalities_come_from_files_too() {
    let text = "(declare-const a Real) (declare-const b Real) (assert (= (+ a b) 1)) (assert (<= 0 a 1))";
    let flat = Region::new(&parse_smtlib(text).unwrap()).unwrap().flat().unwrap().unwrap();
    assert_eq!(images(&flat), ["b = -a + 1"]);
}
