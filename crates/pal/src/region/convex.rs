//! Convex regions: an exact test for convexity, projections, and where integrals over slices change from one polynomial
//! to another.
//!
//! Inverse transforms of samples and their gradients integrate a density over slices `{y : y_1 .. y_k fixed}` of a
//! convex region. The ends of a slice along coordinate k are those of the projection of the region on the first k
//! coordinates (by Fourier and Motzkin's elimination), and the integral over all later coordinates is one polynomial
//! between consecutive [`Breakpoint`]s.

use std::collections::{BTreeMap, BTreeSet};

use super::{Region, RegionError, Unbounded};
use crate::formula::{Constraint, Formula, Linear};
use crate::interrupt;
use crate::linear_algebra::{common_denominator, first_unknown, numerators_over, rank};
use crate::number::{Integer, Rational};

/// The points `t` with `normal . t <= offset`, scaled so that the largest coefficient of the normal is 1 or -1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HalfSpace {
    /// The outward normal.
    pub normal: Vec<Rational>,
    /// The largest value of `normal . t`.
    pub offset: Rational,
}

impl HalfSpace {
    /// The scaled half-space; `None` if the normal is zero, which is no restriction or an empty set.
    fn new(normal: Vec<Rational>, offset: Rational) -> Option<HalfSpace> {
        let size = normal.iter().map(magnitude).max().filter(|size| !size.is_zero())?;
        let offset = offset / &size;
        Some(HalfSpace { normal: normal.into_iter().map(|a| a / &size).collect(), offset })
    }
}

/// A position along coordinate k that depends on the coordinates before it: `t_k = constant + coefficients . (t_1 ..
/// t_(k-1))`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Breakpoint {
    /// The position where all earlier coordinates are zero.
    pub constant: Rational,
    /// The derivatives of the position with respect to the earlier coordinates.
    pub coefficients: Vec<Rational>,
}

/// A bounded convex region with volume, in coordinates that run from 0 to 1 over the box around it: `y = low + extent *
/// t`.
#[derive(Clone, Debug)]
pub struct ConvexPolytope {
    region: Region,
    low: Vec<Rational>,
    extent: Vec<Rational>,
    /// For every k the facets of the projection on the first k + 1 coordinates.
    projections: Vec<Vec<HalfSpace>>,
}

impl Region {
    /// The region as one convex polytope; `None` if it has no volume, is not convex, or depends on Boolean variables.
    /// Parts without volume do not count.
    ///
    /// ```
    /// use pal::{formula::reals, region::Region};
    /// let [x, y] = reals(["x", "y"]);
    /// let square = x.between(0, 1) & y.between(0, 1);
    /// let region = |formula| Region::new(&formula).unwrap();
    /// assert!(region((square & (x.le(&y) | x.ge(&y))).into()).convex().unwrap().is_some());
    /// assert!(region((x.between(0, 1) | x.between(2, 3)).into()).convex().unwrap().is_none());
    /// ```
    pub fn convex(&self) -> Result<Option<ConvexPolytope>, Unbounded> {
        if !self.constraint().booleans.is_empty() {
            return Ok(None);
        }
        let cells = self.decompose()?;
        let mut vertices = BTreeSet::new();
        let mut candidates = BTreeSet::new();
        for cell in &cells {
            vertices.extend(cell.polytope().exact_vertices());
            candidates.extend(cell.polytope().half_spaces());
        }
        let mut supporting: Vec<(Vec<Rational>, Rational)> = Vec::new();
        for (normal, offset) in candidates {
            interrupt::checkpoint();
            let normal: Vec<Rational> = normal.into_iter().map(Rational::from).collect();
            let offset = Rational::from(offset);
            if vertices.iter().all(|vertex| dot(&normal, vertex) <= offset) {
                supporting.push((normal, offset));
            }
        }
        if supporting.is_empty() {
            return Ok(None);
        }
        // The facets of a convex region are facets of its cells, so it is all that these half-spaces have in common.
        let reals = &self.constraint().reals;
        let inside = |(normal, offset): &(Vec<Rational>, Rational)| {
            Linear::new(reals.iter().cloned().zip(normal.iter().cloned()), Rational::ZERO).le(offset.clone())
        };
        let formula = Formula::all(supporting.iter().map(inside));
        let hull = Region::new(&Constraint { formula, reals: reals.clone(), booleans: Vec::new() })
            .expect("a formula over the variables of a region makes a region");
        let volume = cells.iter().fold(Rational::ZERO, |sum, cell| sum + cell.exact_volume());
        match hull.exact_volume() {
            Ok(around) if around == volume => Ok(Some(ConvexPolytope::new(hull, &supporting, &vertices))),
            _ => Ok(None),
        }
    }
}

impl ConvexPolytope {
    fn new(region: Region, half_spaces: &[(Vec<Rational>, Rational)], vertices: &BTreeSet<Vec<Rational>>) -> Self {
        let n = region.dimension();
        let end = |j: usize, largest: bool| {
            let along = vertices.iter().map(|vertex| &vertex[j]);
            (if largest { along.max() } else { along.min() }).expect("a region with volume has vertices").clone()
        };
        let low: Vec<Rational> = (0..n).map(|j| end(j, false)).collect();
        let extent: Vec<Rational> = (0..n).map(|j| end(j, true) - &low[j]).collect();
        let mut polytope = ConvexPolytope { region, low, extent, projections: Vec::new() };
        let mut corners: BTreeSet<Vec<Rational>> = vertices.iter().map(|y| polytope.scaled(y)).collect();
        let in_box = half_spaces.iter().filter_map(|(normal, offset)| {
            let scaled = normal.iter().zip(&polytope.extent).map(|(a, extent)| a * extent).collect();
            HalfSpace::new(scaled, offset - dot(normal, &polytope.low))
        });
        let mut level = facets(in_box.collect(), &corners);
        for k in (1..n).rev() {
            interrupt::checkpoint();
            corners = corners.into_iter().map(|corner| corner[..k].to_vec()).collect();
            let projection = facets(eliminate(&level, k), &corners);
            polytope.projections.push(std::mem::replace(&mut level, projection));
        }
        polytope.projections.push(level);
        polytope.projections.reverse();
        polytope
    }

    /// The number of coordinates.
    pub fn dimension(&self) -> usize {
        self.low.len()
    }

    /// The lower ends of the box around the region.
    pub fn low(&self) -> &[Rational] {
        &self.low
    }

    /// The lengths of the box around the region.
    pub fn extent(&self) -> &[Rational] {
        &self.extent
    }

    /// The facets of the projection on the first k + 1 coordinates, for every k.
    pub fn projections(&self) -> &[Vec<HalfSpace>] {
        &self.projections
    }

    /// Per coordinate but the last, the positions where the integral over all later coordinates is not one polynomial,
    /// in increasing order of their constants.
    ///
    /// `knots` are the positions `y_j` where the integrand is not one polynomial, increasing along every axis. The
    /// breakpoints of coordinate k are its own knots and the projections of those faces of dimension k - 1, of the
    /// polytope cut at the knots, that lie in a facet. Where every slice begins or ends is no breakpoint.
    pub fn breakpoints(&self, knots: &[Vec<Rational>]) -> Result<Vec<Vec<Breakpoint>>, RegionError> {
        let n = self.dimension();
        let cells = self.region.with_knots(knots)?.decompose().expect("a convex polytope is bounded");
        let vertices: BTreeSet<Vec<Rational>> =
            cells.iter().flat_map(|cell| cell.polytope().exact_vertices()).map(|y| self.scaled(&y)).collect();
        let planes = self.planes(knots);
        let facets = self.projections[n - 1].len();
        let tight: Vec<Vec<usize>> = vertices.iter().map(|vertex| through(&planes, vertex)).collect();
        let mut all = Vec::new();
        for k in 0..n.saturating_sub(1) {
            let mut found: BTreeSet<Breakpoint> = BTreeSet::new();
            for cut in planes[facets..].iter().filter(|cut| !cut.normal[k].is_zero()) {
                found.insert(Breakpoint { constant: cut.offset.clone(), coefficients: vec![Rational::ZERO; k] });
            }
            for chosen in common_planes(&tight, n - k, facets, k) {
                interrupt::checkpoint();
                found.extend(solve_for(k, &chosen.iter().map(|at| &planes[*at]).collect::<Vec<_>>()));
            }
            for end in self.projections[k].iter().filter(|end| !end.normal[k].is_zero()) {
                let derivative = |a: &Rational| -a / &end.normal[k];
                found.remove(&Breakpoint {
                    constant: &end.offset / &end.normal[k],
                    coefficients: end.normal[..k].iter().map(derivative).collect(),
                });
            }
            all.push(found.into_iter().collect());
        }
        Ok(all)
    }

    /// The hyperplanes of the facets, and after them those of the knots inside the box.
    fn planes(&self, knots: &[Vec<Rational>]) -> Vec<HalfSpace> {
        let n = self.dimension();
        let mut planes = self.projections[n - 1].clone();
        for (j, axis) in knots.iter().enumerate() {
            for knot in axis {
                let at = (knot - &self.low[j]) / &self.extent[j];
                if at > Rational::ZERO && at < Rational::ONE {
                    let mut normal = vec![Rational::ZERO; n];
                    normal[j] = Rational::ONE;
                    planes.push(HalfSpace { normal, offset: at });
                }
            }
        }
        planes
    }

    /// The coordinates of a point in the box around the region, from 0 to 1.
    fn scaled(&self, point: &[Rational]) -> Vec<Rational> {
        point.iter().zip(&self.low).zip(&self.extent).map(|((y, low), extent)| (y - low) / extent).collect()
    }
}

/// The projection along the last of `k + 1` coordinates, by Fourier and Motzkin: every upper bound exceeds every lower
/// bound.
fn eliminate(half_spaces: &[HalfSpace], k: usize) -> Vec<HalfSpace> {
    let zero = Rational::ZERO;
    let flat = half_spaces.iter().filter(|h| h.normal[k].is_zero());
    let mut result: Vec<HalfSpace> =
        flat.filter_map(|h| HalfSpace::new(h.normal[..k].to_vec(), h.offset.clone())).collect();
    for above in half_spaces.iter().filter(|h| h.normal[k] > zero) {
        for below in half_spaces.iter().filter(|h| h.normal[k] < zero) {
            let (a, b) = (&above.normal[k], &below.normal[k]);
            let normal = above.normal[..k].iter().zip(&below.normal[..k]).map(|(x, y)| x / a - y / b).collect();
            result.extend(HalfSpace::new(normal, &above.offset / a - &below.offset / b));
        }
    }
    result
}

/// The half-spaces that touch the polytope with these corners in a facet, each once: the corners that they touch span a
/// hyperplane.
fn facets(half_spaces: Vec<HalfSpace>, corners: &BTreeSet<Vec<Rational>>) -> Vec<HalfSpace> {
    let distinct: BTreeSet<HalfSpace> = half_spaces.into_iter().collect();
    let is_facet = |h: &HalfSpace| {
        let touched: Vec<&Vec<Rational>> = corners.iter().filter(|c| dot(&h.normal, c) == h.offset).collect();
        touched.len() >= h.normal.len() && affine_dimension(&touched) + 1 == h.normal.len()
    };
    distinct.into_iter().filter(is_facet).collect()
}

/// The planes on which a point lies.
fn through(planes: &[HalfSpace], point: &[Rational]) -> Vec<usize> {
    (0..planes.len()).filter(|at| dot(&planes[*at].normal, point) == planes[*at].offset).collect()
}

/// All sets of `size` planes, one of the first `facets` among them, that more than `k` vertices have in common.
fn common_planes(tight: &[Vec<usize>], size: usize, facets: usize, k: usize) -> Vec<Vec<usize>> {
    let mut counts: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    for planes in tight {
        interrupt::checkpoint();
        subsets(planes, size, &mut Vec::new(), &mut |chosen| {
            if chosen[0] < facets {
                *counts.entry(chosen.to_vec()).or_default() += 1;
            }
        });
    }
    counts.into_iter().filter(|(_, count)| *count > k).map(|(chosen, _)| chosen).collect()
}

/// Calls a function with every subset of a size, in the order of the list.
fn subsets(of: &[usize], size: usize, chosen: &mut Vec<usize>, visit: &mut impl FnMut(&[usize])) {
    if chosen.len() == size {
        return visit(chosen);
    }
    for (at, item) in of.iter().enumerate() {
        chosen.push(*item);
        subsets(&of[at + 1..], size, chosen, visit);
        chosen.pop();
    }
}

/// Coordinate k on all of the given hyperplanes, as a function of the coordinates before it; `None` where they do not
/// determine it.
fn solve_for(k: usize, planes: &[&HalfSpace]) -> Option<Breakpoint> {
    // Columns: the coordinates from k on, the offset, and minus the coordinates before k.
    let row = |plane: &&HalfSpace| -> Vec<Integer> {
        let earlier = plane.normal[..k].iter().map(|a| -a);
        let row: Vec<Rational> =
            plane.normal[k..].iter().cloned().chain([plane.offset.clone()]).chain(earlier).collect();
        numerators_over(&row, &common_denominator(&row))
    };
    let mut values = first_unknown(planes.iter().map(row).collect())?.into_iter();
    let constant = values.next().expect("the offset is a right-hand side");
    Some(Breakpoint { constant, coefficients: values.collect() })
}

/// The dimension of the smallest flat through some points, of which there is at least one.
fn affine_dimension(points: &[&Vec<Rational>]) -> usize {
    let (first, others) = points.split_first().expect("at least one point");
    let row = |point: &&Vec<Rational>| {
        let row: Vec<Rational> = point.iter().zip(first.iter()).map(|(x, y)| x - y).collect();
        numerators_over(&row, &common_denominator(&row))
    };
    rank(others.iter().map(row).collect())
}

fn dot(a: &[Rational], b: &[Rational]) -> Rational {
    a.iter().zip(b).filter(|(x, _)| !x.is_zero()).fold(Rational::ZERO, |sum, (x, y)| sum + x * y)
}

fn magnitude(x: &Rational) -> Rational {
    if *x < Rational::ZERO { -x } else { x.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formula::reals;
    use crate::number::parse_rational;
    use crate::shapes;

    fn number(text: &str) -> Rational {
        parse_rational(text).unwrap()
    }

    fn numbers(texts: &[&str]) -> Vec<Rational> {
        texts.iter().map(|text| number(text)).collect()
    }

    fn convex(constraint: impl Into<Constraint>) -> Option<ConvexPolytope> {
        Region::new(&constraint.into()).unwrap().convex().unwrap()
    }

    fn half_space(normal: &[&str], offset: &str) -> HalfSpace {
        HalfSpace { normal: numbers(normal), offset: number(offset) }
    }

    fn breakpoint(constant: &str, coefficients: &[&str]) -> Breakpoint {
        Breakpoint { constant: number(constant), coefficients: numbers(coefficients) }
    }

    #[test]
    fn shapes_have_their_facets_in_every_projection() {
        let counts = |polytope: ConvexPolytope| polytope.projections().iter().map(Vec::len).collect::<Vec<_>>();
        // Projections of a cube are cubes, of a simplex simplices, of a cross-polytope cross-polytopes.
        assert_eq!(counts(convex(shapes::cube(4)).unwrap()), [2, 4, 6, 8]);
        assert_eq!(counts(convex(shapes::simplex(4)).unwrap()), [2, 3, 4, 5]);
        assert_eq!(counts(convex(shapes::cross_polytope(4)).unwrap()), [2, 4, 8, 16]);
        assert_eq!(counts(convex(shapes::cross_polytope(1)).unwrap()), [2]);
    }

    #[test]
    fn a_triangle_in_the_coordinates_of_its_box() {
        let [x, y] = reals(["x", "y"]);
        // Corners (10, 1), (14, 1) and (10, 3).
        let triangle = convex(x.ge(10) & y.ge(1) & (&x + &y + &y).le(16)).unwrap();
        assert_eq!((triangle.low(), triangle.extent()), (&numbers(&["10", "1"])[..], &numbers(&["4", "2"])[..]));
        let facets: BTreeSet<HalfSpace> = triangle.projections()[1].iter().cloned().collect();
        let want = [half_space(&["-1", "0"], "0"), half_space(&["0", "-1"], "0"), half_space(&["1", "1"], "1")];
        assert_eq!(facets, BTreeSet::from(want));
        assert_eq!(triangle.projections()[0], [half_space(&["-1"], "0"), half_space(&["1"], "1")]);
        // Without knots a slice never changes; a knot along y meets the slanted side where t_1 = 1 - 1/4.
        assert_eq!(triangle.breakpoints(&[vec![], vec![]]).unwrap(), [vec![]]);
        let knots = [numbers(&["11"]), numbers(&["3/2", "7"])];
        assert_eq!(triangle.breakpoints(&knots).unwrap(), [vec![breakpoint("1/4", &[]), breakpoint("3/4", &[])]]);
    }

    #[test]
    fn breakpoints_of_a_trapezoid_are_its_corners() {
        let [x, y] = reals(["x", "y"]);
        // Corners (0, 0), (4, 0), (3, 1), (1, 1): the length of a slice changes at 1 and at 3.
        let trapezoid = convex(y.between(0, 1) & (&y - &x).le(0) & (&x + &y).le(4)).unwrap();
        let breaks = trapezoid.breakpoints(&[vec![], vec![]]).unwrap();
        assert_eq!(breaks, [vec![breakpoint("1/4", &[]), breakpoint("3/4", &[])]]);
    }

    #[test]
    fn breakpoints_of_an_octahedron() {
        let octahedron = convex(shapes::cross_polytope(3)).unwrap();
        let breaks = octahedron.breakpoints(&[vec![], vec![], vec![]]).unwrap();
        // The four corners in the plane x1 = 0 and the four edges in the plane x2 = 0; all other edges are ends of
        // slices.
        assert_eq!(breaks[0], [breakpoint("1/2", &[])]);
        assert_eq!(breaks[1], [breakpoint("1/2", &["0"])]);
    }

    #[test]
    fn convex_or_not() {
        let [x, y] = reals(["x", "y"]);
        let square = x.between(0, 2) & y.between(0, 2);
        assert!(convex(square.clone() & (x.le(&y) | x.ge(&y))).is_some());
        assert!(convex(square.clone() & !(x.gt(1) & y.gt(1))).is_none());
        assert!(convex(square.clone() & !(x.gt(1) & x.lt(number("3/2")) & y.gt(1))).is_none());
        // A point beside an interval has no volume.
        assert!(convex(x.between(0, 1) | x.equals(3)).is_some());
        assert!(convex(x.between(0, 1) | x.between(2, 3)).is_none());
        assert!(convex(x.between(0, 1) & y.equals(0)).is_none());
        let flag = Formula::boolean("a");
        assert!(convex(square & flag).is_none());
        assert!(Region::new(&x.ge(0).into()).unwrap().convex().is_err());
    }

    #[test]
    fn knots_must_increase() {
        let square = convex(shapes::cube(2)).unwrap();
        assert!(square.breakpoints(&[numbers(&["1/2", "1/3"]), vec![]]).is_err());
        assert!(square.breakpoints(&[vec![]]).is_err());
    }
}
