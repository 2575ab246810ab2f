//! The cubature rule of Grundmann and Moeller on the unit simplex (PAL paper, Section 4 and Algorithm 3).

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::GaspError;
use crate::number::{self, Integer, Rational, factorial};

/// The most points a rule may have.
pub const MAX_POINTS: u128 = 20_000_000;

/// The most coordinates that the points may have together, half a gigabyte.
const MAX_NUMERATORS: u128 = 1 << 28;

/// The largest index: the rule of degree 161. The magnitudes of the weights add up to about `2.3^s` times the volume,
/// so that float64 has no digits left long before; beyond this index the smallest weights would underflow as well.
pub const MAX_INDEX: usize = 80;

/// Rules of more points are made anew for each integral: evaluating them takes longer than making them, and keeping
/// them would hold hundreds of megabytes for the rest of the program.
const MAX_CACHED_POINTS: usize = 1 << 20;

/// Points and weights on the unit simplex `{x >= 0, sum x <= 1}` that integrate every polynomial of degree `2 s + 1`
/// exactly.
///
/// With `d = 2 s + 1` in `n` dimensions,
///
/// ```text
/// integral of f  =  sum_{i=0..s} w_i  sum_{beta in N^(n+1), |beta| = s-i}  f( (2 beta + 1) / (d+n-2i) without entry 0 )
/// w_i  =  (-1)^i 2^(-2s) (d+n-2i)^d / ( i! (d+n-i)! )
/// ```
///
/// The points of one `i` are a *layer*: they share a weight and a denominator. Layers `1..=s` of rule `s` are the
/// layers of rule `s - 1`, so the function values that give the integral also give the next coarser approximation to
/// it.
///
/// Reference: A. Grundmann, H. M. Moeller, Invariant integration formulas for the n-simplex by combinatorial methods,
/// SIAM Journal on Numerical Analysis 15 (1978), theorem 4.
///
/// ```
/// use pal::moments::gasp::GrundmannMoellerRule;
/// let rule = GrundmannMoellerRule::shared(2, 1)?;
/// assert_eq!((rule.len(), rule.degree()), (4, 3));
/// let x_squared: f64 = (0..4).map(|k| rule.weight(k) * rule.point(k)[0].powi(2)).sum();
/// assert!((x_squared - 1.0 / 12.0).abs() < 1e-15);
/// # Ok::<(), pal::moments::gasp::GaspError>(())
/// ```
#[derive(Clone, Debug)]
pub struct GrundmannMoellerRule {
    dimension: usize,
    index: usize,
    len: usize,
    layers: Vec<PointLayer>,
    /// The barycentric coordinates `2 beta_j + 1`, over the denominator of the layer, as an `(n + 1) x len` matrix: row
    /// 0 belongs to the corner at the origin. Integers this small are exact, and a quarter of the size of float64.
    numerators: Vec<u16>,
}

/// The points that share a weight.
#[derive(Clone, Debug)]
pub(crate) struct PointLayer {
    pub points: Range<usize>,
    pub denominator: f64,
    pub weight: f64,
    /// The weight of the same points in the rule of index `s - 1`.
    pub coarser: f64,
}

impl GrundmannMoellerRule {
    /// The rule of index `s` in `n` dimensions, made when it is first asked for and kept if it is not too large.
    pub fn shared(dimension: usize, index: usize) -> Result<Arc<GrundmannMoellerRule>, GaspError> {
        type Cache = Mutex<HashMap<(usize, usize), Arc<GrundmannMoellerRule>>>;
        static CACHE: OnceLock<Cache> = OnceLock::new();
        let cache = CACHE.get_or_init(Cache::default);
        // Whole entries are inserted, so what a panicking thread leaves behind is sound.
        if let Some(known) = cache.lock().unwrap_or_else(PoisonError::into_inner).get(&(dimension, index)) {
            return Ok(known.clone());
        }
        let made = Arc::new(GrundmannMoellerRule::new(dimension, index)?);
        if made.len() > MAX_CACHED_POINTS {
            return Ok(made);
        }
        let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(cache.entry((dimension, index)).or_insert(made).clone())
    }

    /// The smallest index whose rule is exact for polynomials of this total degree: `s = ceil((D - 1) / 2)`.
    pub fn index_for_degree(degree: usize) -> usize {
        degree / 2
    }

    fn new(dimension: usize, index: usize) -> Result<GrundmannMoellerRule, GaspError> {
        if index > MAX_INDEX {
            return Err(GaspError::Degree { index });
        }
        let rows = dimension as u128 + 1;
        let fits = |points: &u128| *points <= MAX_POINTS && *points * rows <= MAX_NUMERATORS;
        let Some(points) = count(dimension, index).filter(fits) else {
            return Err(GaspError::TooManyPoints { dimension, index });
        };
        let len = points as usize;
        let coarser = index.checked_sub(1);
        let mut rule = GrundmannMoellerRule {
            dimension,
            index,
            len,
            layers: Vec::new(),
            numerators: vec![0u16; len * (dimension + 1)],
        };
        let mut at = 0;
        for i in 0..=index {
            let start = at;
            let mut beta = vec![0u16; dimension + 1];
            beta[0] = (index - i) as u16;
            loop {
                beta.iter().enumerate().for_each(|(row, b)| rule.numerators[row * len + at] = 2 * b + 1);
                at += 1;
                if !next_composition(&mut beta) {
                    break;
                }
            }
            let below = |c: usize| i.checked_sub(1).map(|j| number::to_f64(&exact_weight(dimension, c, j)));
            rule.layers.push(PointLayer {
                points: start..at,
                denominator: denominator(dimension, index, i) as f64,
                weight: number::to_f64(&exact_weight(dimension, index, i)),
                coarser: coarser.and_then(below).unwrap_or(0.0),
            });
        }
        assert_eq!(at, len, "there are binomial(n + 1 + s, s) points");
        Ok(rule)
    }

    /// The number of variables.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// The index `s`.
    pub fn index(&self) -> usize {
        self.index
    }

    /// The total degree `2 s + 1` up to which the rule is exact.
    pub fn degree(&self) -> usize {
        2 * self.index + 1
    }

    /// The number of points, `binomial(n + 1 + s, s)`.
    #[allow(clippy::len_without_is_empty)] // never empty
    pub fn len(&self) -> usize {
        self.len
    }

    /// A point of the unit simplex. Panics if there is no such point.
    pub fn point(&self, at: usize) -> Vec<f64> {
        let denominator = self.layer(at).denominator;
        (1..=self.dimension).map(|row| f64::from(self.numerators[row * self.len + at]) / denominator).collect()
    }

    /// All `n + 1` barycentric coordinates of a point, the one of the corner at the origin first. Panics if there is no
    /// such point.
    pub fn barycentric(&self, at: usize) -> Vec<f64> {
        let denominator = self.layer(at).denominator;
        (0..=self.dimension).map(|row| f64::from(self.numerators[row * self.len + at]) / denominator).collect()
    }

    /// The weight of a point. Panics if there is no such point.
    pub fn weight(&self, at: usize) -> f64 {
        self.layer(at).weight
    }

    fn layer(&self, at: usize) -> &PointLayer {
        &self.layers[self.layers.partition_point(|layer| layer.points.end <= at)]
    }

    pub(crate) fn layers(&self) -> &[PointLayer] {
        &self.layers
    }

    /// The numerators of one barycentric coordinate for a range of points.
    pub(crate) fn numerators(&self, row: usize, points: Range<usize>) -> &[u16] {
        &self.numerators[row * self.len..][points]
    }
}

fn denominator(n: usize, s: usize, i: usize) -> usize {
    2 * s + 1 + n - 2 * i
}

/// `w_i`, exactly.
fn exact_weight(n: usize, s: usize, i: usize) -> Rational {
    let d = 2 * s + 1;
    let power = Integer::from(denominator(n, s, i)).pow(d);
    let scale = (factorial(i) * factorial(d + n - i)) << (2 * s);
    Rational::from_parts_signed(if i.is_multiple_of(2) { power } else { -power }, scale)
}

/// `binomial(n + 1 + s, s)`; `None` where it is beyond all bounds.
fn count(n: usize, s: usize) -> Option<u128> {
    (1..=s as u128).try_fold(1u128, |product, k| Some(product.checked_mul(n as u128 + 1 + k)? / k))
}

/// The next vector of naturals with the same sum, the first entry falling slowest; false after the last one.
fn next_composition(beta: &mut [u16]) -> bool {
    let last = beta.len() - 1;
    let Some(movable) = (0..last).rev().find(|j| beta[*j] > 0) else { return false };
    let tail = std::mem::take(&mut beta[last]);
    beta[movable] -= 1;
    beta[movable + 1] = tail + 1;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_sum_to_the_volume_exactly() {
        for n in 0..=8 {
            for s in 0..=8 {
                let rule = GrundmannMoellerRule::new(n, s).unwrap();
                let weights = (0..=s).map(|i| exact_weight(n, s, i) * Rational::from(rule.layers[i].points.len()));
                let sum = weights.fold(Rational::ZERO, |sum, w| sum + w);
                assert_eq!(sum, Rational::ONE / Rational::from(factorial(n)), "n = {n}, s = {s}");
                assert_eq!(count(n, s), Some(rule.len() as u128));
            }
        }
    }

    /// The rule in exact arithmetic: what is true of it is then not a matter of tolerance. Numerators are at most 13
    /// and degrees at most 14 here, so that the sum over a layer fits 64 bits.
    fn integrate_exactly(rule: &GrundmannMoellerRule, alpha: &[u16]) -> Rational {
        let (n, s) = (rule.dimension, rule.index);
        let powers: Vec<Vec<i64>> = alpha.iter().map(|a| (0..=13i64).map(|x| x.pow(u32::from(*a))).collect()).collect();
        let layers = rule.layers.iter().enumerate().map(|(i, layer)| {
            let x = |j: usize, p: usize| usize::from(rule.numerators[(j + 1) * rule.len + p]);
            let monomial = |p: usize| powers.iter().enumerate().map(|(j, table)| table[x(j, p)]).product::<i64>();
            let sum: i64 = layer.points.clone().map(monomial).sum();
            let scale = Integer::from(denominator(n, s, i)).pow(alpha.iter().map(|a| usize::from(*a)).sum());
            exact_weight(n, s, i) * Rational::from_parts_signed(sum.into(), scale)
        });
        layers.fold(Rational::ZERO, |sum, layer| sum + layer)
    }

    fn closed_form(alpha: &[u16]) -> Rational {
        let alpha: Vec<usize> = alpha.iter().map(|a| usize::from(*a)).collect();
        let top = alpha.iter().fold(Integer::ONE, |product, a| product * factorial(*a));
        Rational::from_parts_signed(top, factorial(alpha.len() + alpha.iter().sum::<usize>()))
    }

    #[test]
    fn exact_to_its_degree_and_no_further() {
        for n in 1..=6 {
            for s in 0..=6 {
                let rule = GrundmannMoellerRule::new(n, s).unwrap();
                // The points are symmetric, so exponents in falling order stand for all of them in high dimensions.
                let wanted = |alpha: &[u16]| n <= 4 || alpha.windows(2).all(|pair| pair[0] >= pair[1]);
                for total in 0..=2 * s as u16 + 1 {
                    let mut alpha = vec![0u16; n];
                    alpha[0] = total;
                    loop {
                        if wanted(&alpha) {
                            assert_eq!(integrate_exactly(&rule, &alpha), closed_form(&alpha), "s = {s}, {alpha:?}");
                        }
                        if !next_composition(&mut alpha) {
                            break;
                        }
                    }
                }
                let mut beyond = vec![0; n];
                beyond[0] = 2 * s as u16 + 2;
                assert_ne!(integrate_exactly(&rule, &beyond), closed_form(&beyond), "n = {n}, s = {s}");
            }
        }
    }

    #[test]
    fn the_coarser_rule_is_inside() {
        let (fine, coarse) = (GrundmannMoellerRule::new(3, 4).unwrap(), GrundmannMoellerRule::new(3, 3).unwrap());
        for (inner, outer) in coarse.layers.iter().zip(&fine.layers[1..]) {
            assert_eq!((inner.weight, inner.denominator), (outer.coarser, outer.denominator));
            for row in 0..4 {
                let (a, b) = (inner.points.clone(), outer.points.clone());
                assert_eq!(coarse.numerators(row, a), fine.numerators(row, b));
            }
        }
        assert_eq!(fine.layers[0].coarser, 0.0);
    }

    #[test]
    fn points_lie_inside_the_simplex() {
        let rule = GrundmannMoellerRule::new(4, 3).unwrap();
        for at in 0..rule.len() {
            let point = rule.point(at);
            assert!(point.iter().all(|x| *x > 0.0) && point.iter().sum::<f64>() < 1.0, "{point:?}");
            let barycentric = rule.barycentric(at);
            assert_eq!(barycentric[1..], point);
            assert!((barycentric.iter().sum::<f64>() - 1.0).abs() < 1e-15);
        }
    }

    #[test]
    fn rules_are_shared_and_guarded() {
        let (a, b) = (GrundmannMoellerRule::shared(5, 2).unwrap(), GrundmannMoellerRule::shared(5, 2).unwrap());
        assert!(Arc::ptr_eq(&a, &b));
        assert!(matches!(
            GrundmannMoellerRule::shared(14, 13),
            Err(GaspError::TooManyPoints { dimension: 14, index: 13 })
        ));
        assert!(matches!(GrundmannMoellerRule::shared(1, usize::MAX), Err(GaspError::Degree { .. })));
        assert!(matches!(GrundmannMoellerRule::shared(usize::MAX, 0), Err(GaspError::TooManyPoints { .. })));
        assert!(matches!(
            GrundmannMoellerRule::shared(usize::MAX / 4, MAX_INDEX),
            Err(GaspError::TooManyPoints { .. })
        ));
        assert!(GrundmannMoellerRule::shared(1, MAX_INDEX).is_ok());
        let weights = (0..=14).flat_map(|n| (0..=MAX_INDEX).map(move |i| exact_weight(n, MAX_INDEX, i)));
        assert!(weights.map(|w| number::to_f64(&w)).all(f64::is_normal));
    }
}
