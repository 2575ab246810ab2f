//! The hyperplanes of a region and exact points on them.
//!
//! Every decision about which side of a hyperplane a vertex lies on is exact. It is first tried in float64 with a
//! certified error bound. Only when the sign is in doubt is the vertex computed exactly, from the hyperplanes that
//! define it, and then kept.

use std::cmp::Ordering;
use std::sync::OnceLock;

use smallvec::SmallVec;

use super::index::PlaneIndex;
use super::unbounded::beyond_all_vertices;
use crate::linear_algebra::{common_denominator, first_dependency, numerators_over, with_positive_denominator};
use crate::number::{self, Integer, Rational, bit_length, scaled_coefficient, scaled_to_f64};

/// A hyperplane `a . x = b` with integer coefficients, and its image in float64.
#[derive(Debug, Clone)]
pub(crate) struct Hyperplane {
    pub normal: Vec<Integer>,
    pub offset: Integer,
    approx_normal: Vec<f64>,
    approx_offset: f64,
    /// The float64 numbers are the integers divided by two to this power.
    shift: usize,
}

impl Hyperplane {
    pub fn new(normal: Vec<Integer>, offset: Integer) -> Self {
        // Only signs matter: a power of two brings coefficients of any size into the range of float64.
        let largest = normal.iter().chain([&offset]).map(bit_length).max().unwrap_or(0);
        let shift = largest.saturating_sub(500);
        let approx_normal = normal.iter().map(|a| scaled_coefficient(a, shift)).collect();
        let approx_offset = scaled_to_f64(&offset, shift);
        Hyperplane { normal, offset, approx_normal, approx_offset, shift }
    }

    /// The hyperplane `x_axis = value`.
    pub fn axis(dimension: usize, axis: usize, value: &Rational) -> Self {
        let mut normal = vec![Integer::ZERO; dimension];
        normal[axis] = value.denominator().clone().into();
        Hyperplane::new(normal, value.numerator().clone())
    }

    /// The value `a . x - b` at a vertex in float64, with a bound on its error. The bound is `(n + 3)` epsilons of the
    /// sum of magnitudes (one half-epsilon per coefficient, product and addition, doubled for safety), what the error
    /// of the vertex contributes, and room for underflow. It is NaN or infinite where float64 does not suffice.
    fn approximate(&self, vertex: &Vertex) -> (f64, f64) {
        let (mut value, mut magnitude, mut inherited) = (-self.approx_offset, self.approx_offset.abs(), 0.0);
        for ((a, x), e) in self.approx_normal.iter().zip(&vertex.approx).zip(&vertex.error) {
            let product = a * x;
            value += product;
            magnitude += product.abs();
            inherited += a.abs() * e;
        }
        let rounding = magnitude * (vertex.approx.len() as f64 + 3.0) * f64::EPSILON;
        (value, rounding + inherited * (1.0 + 1e-10) + f64::MIN_POSITIVE)
    }

    fn exact_sign(&self, point: &ExactPoint) -> Ordering {
        self.evaluate(point).cmp(&Integer::ZERO)
    }

    /// `a . x - b` times the denominator of the point.
    fn evaluate(&self, point: &ExactPoint) -> Integer {
        self.normal
            .iter()
            .zip(&point.numerators)
            .fold(-&self.offset * &point.denominator, |sum, (a, x)| if a.is_zero() { sum } else { sum + a * x })
    }
}

/// A point with rational coordinates over one positive denominator.
#[derive(Debug, Clone)]
pub(crate) struct ExactPoint {
    pub numerators: Vec<Integer>,
    pub denominator: Integer,
}

impl ExactPoint {
    /// The point with these coordinates.
    pub fn new(coordinates: &[Rational]) -> Self {
        let denominator = common_denominator(coordinates);
        let numerators = numerators_over(coordinates, &denominator);
        ExactPoint { numerators, denominator: denominator.into() }
    }

    /// The coordinates as fractions.
    pub fn coordinates(&self) -> Vec<Rational> {
        let over = |p: &Integer| Rational::from_parts_signed(p.clone(), self.denominator.clone());
        self.numerators.iter().map(over).collect()
    }
}

/// A vertex: coordinates in float64 with certified error bounds, exact coordinates on demand.
#[derive(Debug)]
pub struct Vertex {
    approx: SmallVec<[f64; 4]>,
    error: SmallVec<[f64; 4]>,
    /// Hyperplanes through the vertex, enough of them to determine it.
    planes: SmallVec<[PlaneIndex; 6]>,
    exact: OnceLock<ExactPoint>,
}

impl Vertex {
    /// A vertex with known exact coordinates.
    pub(crate) fn from_exact(point: ExactPoint, planes: SmallVec<[PlaneIndex; 6]>) -> Self {
        let (mut approx, mut error) = (SmallVec::new(), SmallVec::new());
        for p in &point.numerators {
            let x = round_quotient(p, &point.denominator);
            // Correctly rounded: half an ulp. An overflow leaves an infinity, whose error is infinite as well.
            error.push(x.abs() * f64::EPSILON + f64::MIN_POSITIVE);
            approx.push(x);
        }
        Vertex { approx, error, planes, exact: OnceLock::from(point) }
    }

    /// Coordinates in float64, each within [`Vertex::error`] of the truth.
    pub fn coordinates(&self) -> &[f64] {
        &self.approx
    }

    /// Bounds on the absolute errors of the coordinates.
    pub fn error(&self) -> &[f64] {
        &self.error
    }
}

/// The float64 nearest to `p / q`, with a fast path where both are float64 numbers: a single division is correctly
/// rounded.
fn round_quotient(p: &Integer, q: &Integer) -> f64 {
    if bit_length(p) <= 53 && bit_length(q) <= 53 {
        return p.to_f64().value() / q.to_f64().value();
    }
    number::to_f64(&Rational::from_parts_signed(p.clone(), q.clone()))
}

/// Vertices whose error bound exceeds this fraction of their magnitude are computed exactly at once.
const TOLERANCE: f64 = 1e-13;

/// Up to this dimension an exact vertex costs a microsecond or less, so all vertices are exact from the start.
const ALWAYS_EXACT: usize = 2;

/// All hyperplanes that occur in a region: bounding box, atoms, knots.
#[derive(Debug, Clone, Default)]
pub(crate) struct Space {
    pub dimension: usize,
    pub planes: Vec<Hyperplane>,
    /// Hyperplanes that stand for infinity: no point where hyperplanes outside this range meet lies on or beyond them.
    pub far: std::ops::Range<PlaneIndex>,
}

impl Space {
    /// Appends a hyperplane.
    pub fn push(&mut self, plane: Hyperplane) -> PlaneIndex {
        self.planes.push(plane);
        PlaneIndex::new(self.planes.len() - 1)
    }

    /// The hyperplane at an index.
    pub fn plane(&self, id: PlaneIndex) -> &Hyperplane {
        &self.planes[id.position()]
    }

    /// Moves the hyperplanes that stand for infinity beyond all points where the others meet.
    pub fn widen_infinity(&mut self) {
        let far = self.far.start.position()..self.far.end.position();
        if far.is_empty() {
            return;
        }
        let others = self.planes.iter().enumerate().filter(|(at, _)| !far.contains(at));
        let infinity = beyond_all_vertices(others.map(|(_, h)| (&h.normal[..], &h.offset)), self.dimension);
        for plane in &mut self.planes[far] {
            let offset = if plane.offset < Integer::ZERO { -&infinity } else { infinity.clone() };
            *plane = Hyperplane::new(plane.normal.clone(), offset);
        }
    }

    /// The side of a hyperplane on which a vertex lies, exactly.
    pub fn sign(&self, id: PlaneIndex, vertex: &Vertex) -> Ordering {
        let plane = self.plane(id);
        let (value, error) = plane.approximate(vertex);
        if value > error {
            Ordering::Greater
        } else if value < -error {
            Ordering::Less
        } else if vertex.planes.contains(&id) {
            Ordering::Equal
        } else {
            plane.exact_sign(self.exact(vertex))
        }
    }

    /// `|a . x - b|` at a vertex, to the given relative error.
    pub fn distance(&self, id: PlaneIndex, vertex: &Vertex, tolerance: f64) -> f64 {
        let plane = self.plane(id);
        let (value, error) = plane.approximate(vertex);
        if plane.shift == 0 && error <= tolerance * value.abs() {
            return value.abs();
        }
        let point = self.exact(vertex);
        let sum = plane.evaluate(point);
        let distance = Rational::from_parts_signed(sum, point.denominator.clone());
        number::to_f64(&distance).abs()
    }

    /// The exact coordinates of a vertex.
    pub fn exact<'v>(&self, vertex: &'v Vertex) -> &'v ExactPoint {
        vertex.exact.get_or_init(|| self.intersect(&vertex.planes))
    }

    /// The vertex where the edge from `below` to `above` meets hyperplane `id`; `planes` determine it.
    pub fn cross(&self, id: PlaneIndex, below: &Vertex, above: &Vertex, planes: SmallVec<[PlaneIndex; 6]>) -> Vertex {
        if self.dimension <= ALWAYS_EXACT {
            return Vertex::from_exact(self.intersect(&planes), planes);
        }
        let plane = self.plane(id);
        let ((s, s_error), (t, t_error)) = (plane.approximate(below), plane.approximate(above));
        let (s, t) = (s.abs(), t.abs());
        let (total, doubt) = (s + t, s_error + t_error);
        // v = below + r (above - below), r = s / (s + t); r is off by at most `slack`.
        let r = s / total;
        let slack = doubt / (total - doubt) + 4.0 * f64::EPSILON;
        let (mut approx, mut error) = (SmallVec::new(), SmallVec::new());
        let mut good = slack < 0.25 && total > doubt;
        let ends = below.approx.iter().zip(&above.approx).zip(below.error.iter().zip(&above.error));
        for ((a, b), (a_error, b_error)) in ends {
            let x = a + r * (b - a);
            let e = a_error.max(*b_error) * (1.0 + 1e-10)
                + (b - a).abs() * slack
                + 4.0 * f64::EPSILON * (a.abs() + b.abs())
                + f64::MIN_POSITIVE;
            good &= e <= TOLERANCE * x.abs().max((b - a).abs());
            approx.push(x);
            error.push(e);
        }
        if !good {
            return Vertex::from_exact(self.intersect(&planes), planes);
        }
        Vertex { approx, error, planes, exact: OnceLock::new() }
    }

    /// The one point on all of these hyperplanes, which have full rank together.
    fn intersect(&self, planes: &[PlaneIndex]) -> ExactPoint {
        if let (2, [p, q]) = (self.dimension, planes) {
            let (p, q) = (self.plane(*p), self.plane(*q));
            let det = |a: &Integer, b: &Integer, c: &Integer, d: &Integer| a * d - b * c;
            let denominator = det(&p.normal[0], &p.normal[1], &q.normal[0], &q.normal[1]);
            assert!(!denominator.is_zero(), "the lines through a vertex cross");
            let x = det(&p.offset, &p.normal[1], &q.offset, &q.normal[1]);
            let y = det(&p.normal[0], &p.offset, &q.normal[0], &q.offset);
            let (numerators, denominator) = with_positive_denominator(vec![x, y], denominator);
            return ExactPoint { numerators, denominator };
        }
        let rows = planes.iter().map(|id| self.plane(*id));
        let rows = rows.map(|h| h.normal.iter().chain([&h.offset]).cloned().collect());
        let solution = first_dependency(rows.collect(), self.dimension + 1)
            .expect("all hyperplanes through a vertex contain it, so the system has a solution");
        assert_eq!(solution.numerators.len(), self.dimension, "the hyperplanes through a vertex have full rank");
        ExactPoint { numerators: solution.numerators, denominator: solution.denominator }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane(normal: &[i64], offset: i64) -> Hyperplane {
        Hyperplane::new(normal.iter().map(|a| Integer::from(*a)).collect(), offset.into())
    }

    #[test]
    fn intersections_solve_the_system() {
        let mut space = Space { dimension: 3, ..Space::default() };
        let ids: Vec<PlaneIndex> = [([1, 1, 1], 6), ([2, 2, 2], 12), ([1, -1, 0], 0), ([0, 0, 3], 1)]
            .map(|(a, b)| space.push(plane(&a, b)))
            .to_vec();
        let point = space.intersect(&ids);
        let want = ["17/6", "17/6", "1/3"].map(|s| number::parse_rational(s).unwrap());
        assert_eq!(point.coordinates(), want);
    }

    #[test]
    fn the_filter_never_contradicts_exact_arithmetic() {
        // Vertices on a fan of nearly parallel planes: signs too close for float64.
        let mut space = Space { dimension: 2, ..Space::default() };
        let base = space.push(plane(&[1_000_000_007, -1_000_000_009], 1));
        let other = space.push(plane(&[1_000_000_009, -1_000_000_011], 1));
        let vertex = Vertex::from_exact(space.intersect(&[base, other]), SmallVec::from_slice(&[base, other]));
        for (a, b) in [(1i64, -1i64), (2, -2), (3, -4), (1_000_000_011, -1_000_000_013)] {
            for offset in -2..=2 {
                let id = space.push(plane(&[a, b], offset));
                let exact = space.plane(id).exact_sign(space.exact(&vertex));
                assert_eq!(space.sign(id, &vertex), exact, "{a} {b} {offset}");
            }
        }
    }

    #[test]
    fn huge_coefficients_fall_back_to_exact() {
        let mut space = Space { dimension: 1, ..Space::default() };
        let huge = Integer::from(1) << 3000;
        let at = space.push(Hyperplane::new(vec![Integer::ONE], huge.clone()));
        let vertex = Vertex::from_exact(space.intersect(&[at]), SmallVec::from_slice(&[at]));
        assert!(vertex.coordinates()[0].is_infinite());
        let beyond = space.push(Hyperplane::new(vec![Integer::ONE], huge.clone() + Integer::ONE));
        let before = space.push(Hyperplane::new(vec![Integer::ONE], huge - Integer::ONE));
        assert_eq!(space.sign(beyond, &vertex), Ordering::Less);
        assert_eq!(space.sign(before, &vertex), Ordering::Greater);
        assert_eq!(space.sign(at, &vertex), Ordering::Equal);
    }
}
