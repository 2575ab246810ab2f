//! Projections on regions: membership of the result, and that no point of the region is nearer.

mod common;

use common::{Dice, random_case};
use pal::formula::{Linear, reals};
use pal::region::{Projection, ProjectionError, Region};
use pal::shapes;

/// The distance of a point from a segment.
fn to_segment(p: [f64; 2], a: &[f64], b: &[f64]) -> f64 {
    let (d, e) = ([b[0] - a[0], b[1] - a[1]], [p[0] - a[0], p[1] - a[1]]);
    let length = d[0] * d[0] + d[1] * d[1];
    let t = if length > 0.0 { ((d[0] * e[0] + d[1] * e[1]) / length).clamp(0.0, 1.0) } else { 0.0 };
    (e[0] - t * d[0]).hypot(e[1] - t * d[1])
}

#[test]
fn in_the_plane_no_edge_of_a_cell_is_nearer() {
    let (mut moved, mut regions) = (0, 0);
    for seed in 0..60 {
        let case = random_case(seed, 2, 6);
        let region = Region::new(&case.constraint).unwrap();
        let projection = match Projection::new(&region) {
            Ok(projection) => projection,
            Err(ProjectionError::NoVolume | ProjectionError::Unbounded(_) | ProjectionError::Booleans) => continue,
            Err(other) => panic!("{other}"),
        };
        regions += 1;
        let membership = region.membership().unwrap();
        let cells = region.decompose().unwrap();
        let mut dice = Dice::new(seed);
        let points: Vec<f64> = (0..200).map(|_| 16.0 * dice.unit() - 8.0).collect();
        let nearest = projection.nearest(&points).unwrap();
        for (point, found) in points.chunks(2).zip(nearest.chunks(2)) {
            assert!(membership.contains(found), "{found:?} is outside");
            if membership.contains(point) {
                assert_eq!(point, found);
                continue;
            }
            moved += 1;
            let point = [point[0], point[1]];
            let mut least = f64::INFINITY;
            for cell in &cells {
                let polytope = cell.polytope();
                if polytope.contains(&point) {
                    least = 0.0;
                }
                for facet in 0..polytope.half_spaces().len() {
                    let ends = polytope.facet_vertices(facet);
                    let [a, b] = [ends[0], ends[1]].map(|v| polytope.vertices()[v].coordinates().to_vec());
                    least = least.min(to_segment(point, &a, &b));
                }
            }
            let distance = (found[0] - point[0]).hypot(found[1] - point[1]);
            assert!((distance - least).abs() < 1e-11, "{point:?} -> {found:?}: {distance} instead of {least}");
        }
    }
    assert!(moved > 1000 && regions > 20, "{moved} points were moved in {regions} regions");
}

#[test]
fn in_many_variables_the_angle_to_every_vertex_is_obtuse() {
    for n in 3..=6 {
        for constraint in [shapes::cube(n), shapes::simplex(n), shapes::cross_polytope(n)] {
            let region = Region::new(&constraint).unwrap();
            let projection = Projection::new(&region).unwrap();
            let cells = region.decompose().unwrap();
            let vertices: Vec<Vec<f64>> = cells
                .iter()
                .flat_map(|cell| {
                    cell.polytope().vertices().iter().map(|v| v.coordinates().to_vec()).collect::<Vec<_>>()
                })
                .collect();
            let membership = region.membership().unwrap();
            let mut dice = Dice::new(n as u64);
            let points: Vec<f64> = (0..40 * n).map(|_| 6.0 * dice.unit() - 3.0).collect();
            let nearest = projection.nearest(&points).unwrap();
            for (point, found) in points.chunks(n).zip(nearest.chunks(n)) {
                assert!(membership.contains(found));
                // The projection y of p on a convex set K is the point with (p - y) . (v - y) <= 0 for all v in K.
                for v in &vertices {
                    let product: f64 = (0..n).map(|j| (point[j] - found[j]) * (v[j] - found[j])).sum();
                    assert!(product < 1e-11, "{n}: {point:?} -> {found:?}: {product}");
                }
            }
        }
    }
}

#[test]
fn walls_between_float64_numbers_and_open_walls_are_respected() {
    let [x, y] = reals(["x", "y"]);
    let third = Linear::try_from("1/3").unwrap();
    let far = Linear::try_from("4000000.1").unwrap();
    let thirds = x.between(0, third.clone()) & (&x + 3 * &y).le(third) & y.ge(-1);
    let open = x.gt(0) & x.lt(1) & y.gt(0) & y.lt(1);
    let grid = x.between(far.clone(), &far + 1) & y.between(0, 1);
    let holed = x.between(0, 1) & y.between(0, 1) & x.differs(Linear::try_from(0.5).unwrap());
    for formula in [thirds, open, grid, holed] {
        let region = Region::new(&formula.into()).unwrap();
        let (projection, membership) = (Projection::new(&region).unwrap(), region.membership().unwrap());
        let points = [5.0, 5.0, -3.0, 0.25, 0.5, 9.0, 1e300, -1e300, 4000000.1, 0.5, 0.0, 0.0, 0.5, 0.5];
        let nearest = projection.nearest(&points).unwrap();
        assert!(nearest.chunks(2).all(|point| membership.contains(point)), "{nearest:?}");
    }
}

#[test]
fn what_cannot_be_projected_is_named() {
    let [x, y] = reals(["x", "y"]);
    let new = |formula: pal::formula::Formula| Projection::new(&Region::new(&formula.into()).unwrap());
    assert!(matches!(new(x.ge(0) & y.ge(0)), Err(ProjectionError::Unbounded(_))));
    assert!(matches!(new(x.between(0, 1) & y.equals(&x)), Err(ProjectionError::NoVolume)));
    let square = new(x.between(0, 1) & y.between(0, 1)).unwrap();
    assert_eq!(square.nearest(&[0.5, 0.5, f64::NAN, 2.0]), Err(ProjectionError::NotFinite(1)));
    assert_eq!(square.nearest(&[]), Ok(vec![]));
}
