//! Where parameters begin: constants that are added to every parameter vector, so that zeros are close to the uniform
//! density.
//!
//! A network begins with small outputs, often with zeros. Splines and polynomials of zeros would have no density, and
//! histograms of zeros would be alike: components with equal parameters get equal gradients and stay equal for ever. So
//! a kind of family computes with `theta = offset + parameters`, and its offset makes components that differ a little
//! while their mixture is close to uniform.
//!
//! Components come in pairs of opposites; where their number is odd, the first one is constant. In mixtures of products
//! (splines and histograms) the two components of pair i have the densities `e^h` and `e^-h` before they are
//! normalised,
//!
//! ```text
//! h(y) = sum_j 3 / (4 n) cos(pi x_j - 2 pi g i (j + 1)),        g = (sqrt(5) - 1) / 2,
//! ```
//!
//! with `x_j` from 0 to 1 along axis j = 0 .. n - 1 of the box; multiples of the golden ratio keep the hills of all
//! pairs apart. By the inequality between arithmetic and geometric means the mixture p of a pair has
//!
//! ```text
//! log p(y) + log volume  >=  - (log E e^h + log E e^-h) / 2  >=  - (max h - min h)^2 / 8  >=  - 9 / 32
//! ```
//!
//! with expectations under the uniform density of the support, the second step by Hoeffding's lemma. The logarithm is
//! concave, so the same holds for mixtures of pairs: on any support, the log-density that zeros stand for is above that
//! of the uniform density less 0.29, up to what a spline loses between few knots.
//!
//! In sums of squares the pair i has the functions `1 + f` and `1 - f`, with f one member of the basis, of root mean
//! square 1/2 at most on the support. The sum of their squares is `2 + 2 f^2`: above 2, with a mean of 5/2 at most, so
//! the log-density is above that of the uniform density less `log(5/4)`, which is 0.23.

use std::f64::consts::PI;

/// The largest logarithm of a component of products, over the whole box.
const TILT: f64 = 0.75;
/// The largest root mean square of what is not constant in a square.
const MEMBER: f64 = 0.5;
/// The golden ratio less one.
const GOLDEN: f64 = 0.618_033_988_749_894_8;

/// The pair that a component belongs to, and its sign there. `None` for the constant component.
fn pair(component: usize, components: usize) -> Option<(usize, f64)> {
    let at = component.checked_sub(components % 2)?;
    Some((at / 2, if at.is_multiple_of(2) { 1.0 } else { -1.0 }))
}

/// The logarithm of a component of products along one axis, as a function of the fraction of the axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tilt {
    height: f64,
    phase: f64,
}

impl Tilt {
    /// The tilt of one of so many components along one of so many axes.
    pub fn new(component: usize, components: usize, axis: usize, axes: usize) -> Tilt {
        let Some((pair, sign)) = pair(component, components) else { return Tilt { height: 0.0, phase: 0.0 } };
        let turns = (GOLDEN * (pair * (axis + 1)) as f64).fract();
        Tilt { height: sign * TILT / axes as f64, phase: 2.0 * PI * turns }
    }

    pub fn value(&self, x: f64) -> f64 {
        // Adding to 0 leaves no -0 behind.
        0.0 + self.height * (PI * x - self.phase).cos()
    }

    pub fn derivative(&self, x: f64) -> f64 {
        0.0 - self.height * PI * (PI * x - self.phase).sin()
    }
}

/// The member of a basis of polynomials that tells a square from the others, and its root mean square on the support,
/// with a sign. The constant is member 0. `None` for a square that is constant.
pub(super) fn member(component: usize, components: usize, size: usize) -> Option<(usize, f64)> {
    let (pair, sign) = pair(component, components)?;
    let others = size.checked_sub(1).filter(|others| *others > 0)?;
    // Where there are more pairs than members, every further round has parts of another size.
    let smaller = (GOLDEN * (pair / others) as f64).fract() / 2.0;
    Some((1 + pair % others, sign * MEMBER * (1.0 - smaller)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn components_are_pairs_of_opposites_and_all_different() {
        for (components, axes) in [(1, 1), (2, 1), (3, 2), (8, 2), (50, 1), (51, 4)] {
            let tilts: Vec<Vec<Tilt>> =
                (0..components).map(|m| (0..axes).map(|j| Tilt::new(m, components, j, axes)).collect()).collect();
            let h = |m: usize, x: f64| -> f64 { tilts[m].iter().map(|tilt| tilt.value(x)).sum() };
            for x in [0.0, 0.3, 1.0] {
                if components % 2 == 1 {
                    assert_eq!(h(0, x), 0.0);
                }
                for m in (components % 2..components).step_by(2) {
                    assert!((h(m, x) + h(m + 1, x)).abs() < 1e-15 && h(m, x).abs() <= TILT);
                }
            }
            for a in 0..components {
                for b in 0..a {
                    let apart =
                        |x: f64| tilts[a].iter().zip(&tilts[b]).map(move |(p, q)| (p.value(x) - q.value(x)).abs());
                    let most = [0.0, 0.5, 1.0].into_iter().flat_map(apart).fold(0.0, f64::max);
                    assert!(most > 0.01 / axes as f64, "{components} components: {a} and {b} differ by {most}");
                }
            }
        }
    }

    #[test]
    fn derivatives_are_differences() {
        let (tilt, h) = (Tilt::new(5, 8, 1, 2), 1e-6);
        for x in [0.0, 0.2, 0.9] {
            let difference = (tilt.value(x + h) - tilt.value(x - h)) / (2.0 * h);
            assert!((tilt.derivative(x) - difference).abs() < 1e-9);
        }
    }

    #[test]
    fn members_differ_from_square_to_square() {
        assert_eq!(member(0, 1, 10), None);
        assert_eq!(member(3, 5, 1), None);
        // Two members besides the constant, and three pairs.
        let members: Vec<_> = (0..7).map(|k| member(k, 7, 3)).collect();
        let want =
            [None, Some((1, 0.5)), Some((1, -0.5)), Some((2, 0.5)), Some((2, -0.5)), Some((1, 0.5 - GOLDEN / 4.0))];
        assert_eq!(members[..6], want);
    }
}
