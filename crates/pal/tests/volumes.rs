//! Compares volumes with closed forms.

use pal::formula::{Constraint, Formula, Linear, real, reals};
use pal::number::{Integer, Rational};
use pal::region::{Enumeration, Region, Status};
use pal::shapes;

fn volume(constraint: &Constraint) -> Rational {
    Region::new(constraint).unwrap().exact_volume().unwrap()
}

fn ratio(p: i64, q: i64) -> Rational {
    Rational::from_parts_signed(p.into(), q.into())
}

fn factorial(n: usize) -> Rational {
    Rational::from((1..=n as u64).product::<u64>())
}

#[test]
fn cubes_simplices_and_cross_polytopes_up_to_eight_dimensions() {
    for n in 1..=8 {
        assert_eq!(volume(&shapes::cube(n)), Rational::ONE, "cube {n}");
        assert_eq!(volume(&shapes::simplex(n)), Rational::ONE / factorial(n), "simplex {n}");
        let cross = Rational::from(Integer::ONE << n) / factorial(n);
        assert_eq!(volume(&shapes::cross_polytope(n)), cross, "cross-polytope {n}");
    }
}

#[test]
fn the_point_space_has_volume_one() {
    assert_eq!(volume(&Formula::yes().into()), Rational::ONE);
    assert_eq!(volume(&Formula::no().into()), Rational::ZERO);
}

#[test]
fn empty_lower_dimensional_and_unbounded_are_told_apart() {
    let [x, y] = reals(["x", "y"]);
    let status = |f: Formula| Region::new(&f.into()).unwrap().status();
    assert_eq!(status(x.lt(0) & x.gt(0)), Status::Empty);
    assert_eq!(status(x.le(0) & x.ge(0)), Status::LowerDimensional(vec![Rational::ZERO]));
    assert_eq!(status((3 * &x).le(1) & x.gt(ratio(1, 3)) & x.le(1)), Status::Empty);
    assert_eq!(status((&x + &y).equals(1) & x.between(0, 1) & y.lt(0)), Status::Empty);
    assert!(matches!(status((&x + &y).equals(1) & x.between(0, 1) & y.le(0)), Status::LowerDimensional(p)
        if p == [Rational::ONE, Rational::ZERO]));
    assert_eq!(status(x.between(0, 1) & y.between(0, 1)), Status::Bounded);
    for (f, direction) in [
        (x.ge(0) & y.between(0, 1), [1, 0]),
        (x.le(0) & y.between(0, 1), [-1, 0]),
        (x.between(0, 1) & y.ge(&x), [0, 1]),
        (x.ge(0) & y.ge(&x) & y.le(&x + 1), [1, 1]),
        ((&x + &y).between(0, 1), [-1, 1]),
    ] {
        match status(f.clone()) {
            Status::Unbounded(ray) => {
                let want = direction.map(|d: i64| Rational::from(d));
                let opposite = direction.map(|d: i64| Rational::from(-d));
                assert!(ray.direction == want || ray.direction == opposite, "{f}: {:?}", ray.direction);
            }
            other => panic!("{f}: {other:?}"),
        }
    }
}

#[test]
fn a_bounded_region_without_explicit_bounds_is_found() {
    let [x, y] = reals(["x", "y"]);
    // In a diamond no atom bounds a single variable.
    let diamond = (&x + &y).between(-1, 1) & (&x - &y).between(-1, 1);
    assert_eq!(volume(&diamond.into()), Rational::from(2));
}

#[test]
fn a_disjunction_of_half_planes_gives_as_many_cells() {
    let [x, y] = reals(["x", "y"]);
    let square = x.between(0, 1) & y.between(0, 1);
    for count in [1, 5, 20] {
        let halves = (0..count).map(|k| (Linear::from(2 * k + 1) - (count as i64) * 2 * &x).ge(&y - 1));
        let f = square.clone() & Formula::any(halves);
        let cells = Region::new(&f.into()).unwrap().decompose().unwrap();
        assert!(cells.len() <= count as usize, "{count} half-planes gave {} cells", cells.len());
    }
}

#[test]
fn booleans_multiply_and_branch() {
    let [x] = reals(["x"]);
    let (a, b) = (Formula::boolean("a"), Formula::boolean("b"));
    let f = x.between(0, 1) & (a.clone() | x.le(ratio(1, 2))) & (b.clone() | !b.clone());
    assert_eq!(volume(&f.clone().into()), Rational::from(3));
    let mut with_unused = Constraint::new(x.between(0, 1));
    with_unused.booleans.push(pal::formula::Var::new("unused"));
    assert_eq!(volume(&with_unused), Rational::from(2));
    let total = Region::new(&f.into()).unwrap().with_enumeration(Enumeration::Total);
    assert_eq!(total.exact_volume().unwrap(), Rational::from(3));
}

#[test]
fn degenerate_arrangements() {
    let [x, y, z] = reals(["x", "y", "z"]);
    let cube = x.between(0, 1) & y.between(0, 1) & z.between(0, 1);
    // All six orders of three numbers give hyperplanes through edges and vertices of the cube.
    let orders = [[&x, &y, &z], [&x, &z, &y], [&y, &x, &z], [&y, &z, &x], [&z, &x, &y], [&z, &y, &x]];
    for [a, b, c] in orders {
        assert_eq!(volume(&(cube.clone() & a.le(b) & b.le(c)).into()), ratio(1, 6));
    }
    let any = Formula::any(orders.map(|[a, b, c]| a.le(b) & b.le(c)));
    assert_eq!(volume(&(cube.clone() & any).into()), Rational::ONE);
    // A pyramid has many facets through its apex.
    let pyramid = z.between(0, 1)
        & Formula::all((-8..=8).flat_map(|k| {
            let tilt = ratio(k, 8);
            [(&x + tilt.clone() * &y).le(1 - &z), (-&x - tilt.clone() * &y).le(1 - &z)]
        }))
        & y.between(&z - 1, 1 - &z);
    let base_area = volume(&pyramid_base().into());
    assert_eq!(volume(&pyramid.into()), base_area / Rational::from(3));
    // Some planes coincide, are redundant or occur twice.
    let f = cube & (2 * &x).le(2) & (&x + &y + &z).le(3) & x.le(1) & (3 * &x + 3 * &y).le(6);
    let cells = Region::new(&f.into()).unwrap().decompose().unwrap();
    assert_eq!(cells.len(), 1);
    assert_eq!(cells[0].polytope().half_spaces().len(), 6, "redundant planes leave no facets");
}

fn pyramid_base() -> Formula {
    let [x, y] = reals(["x", "y"]);
    Formula::all((-8..=8).flat_map(|k| {
        let tilt = ratio(k, 8);
        [(&x + tilt.clone() * &y).le(1), (-&x - tilt * &y).le(1)]
    })) & y.between(-1, 1)
}

#[test]
fn too_many_variables_is_a_clear_error() {
    let f = Formula::all((0..20).map(|k| real(&format!("v{k:02}")).between(0, 1)));
    let error = Region::new(&f.into()).unwrap_err();
    assert!(error.to_string().contains("20 real variables"), "{error}");
}
