//! The rule on many simplices: affine map, evaluation, weighted sums.

use std::ops::Range;

use rayon::prelude::*;

use super::GaspError;
use super::integrand::{BATCH, BatchFunction, PointBatch, ROUNDOFF};
use super::rule::GrundmannMoellerRule;
use super::sum::Sum;
use crate::interrupt::checkpoint;
use crate::linear_algebra::rational_determinant;
use crate::moments::frame::determinant;
use crate::moments::simplex::Simplices;
use crate::number::{self, Rational};

/// Points handled by one task. Fixed, so that the order of summation does not depend on the number of threads.
const CHUNK: usize = 32 * BATCH;

/// Sizes of simplices may be off by this fraction without recourse to exact arithmetic.
const SIZE_TOLERANCE: f64 = 1e-12;

/// Simplices with bounds on the relative errors of their coordinates and sizes.
pub(crate) struct Measured {
    pub simplices: Simplices,
    pub coordinate_error: f64,
    pub size_error: f64,
}

impl Measured {
    /// Simplices with the given vertices, `n + 1` rows of `n` per simplex.
    pub fn new(vertices: &[f64], n: usize) -> Result<Measured, GaspError> {
        let stride = n.checked_add(1).and_then(|rows| rows.checked_mul(n));
        let Some(stride) = stride.filter(|stride| *stride > 0 && vertices.len().is_multiple_of(*stride)) else {
            return Err(GaspError::Shape { dimension: n, given: vertices.len() });
        };
        if let Some(bad) = vertices.iter().find(|x| !x.is_finite()) {
            return Err(GaspError::Vertex(*bad));
        }
        let mut size_error = 0.0f64;
        let sizes = vertices.chunks_exact(stride).map(|simplex| {
            let points: Vec<&[f64]> = simplex.chunks_exact(n).collect();
            let (mut size, mut relative) = determinant(&points, 0.0);
            // NaN counts as bad.
            if relative.is_nan() || relative > SIZE_TOLERANCE {
                size = number::to_f64(&exact_determinant(&points));
                relative = f64::EPSILON;
            }
            size_error = size_error.max(relative);
            size.abs()
        });
        let sizes = sizes.collect();
        let simplices = Simplices { dimension: n, vertices: vertices.to_vec(), sizes };
        Ok(Measured { simplices, coordinate_error: 0.0, size_error })
    }
}

/// The determinant of the edges of a simplex, for those too flat for float64.
fn exact_determinant(points: &[&[f64]]) -> Rational {
    let exact = |x: f64| number::from_f64(x).expect("vertices have been checked to be finite");
    let edge = |point: &&[f64]| point.iter().zip(points[0]).map(|(x, base)| exact(*x) - exact(*base)).collect();
    rational_determinant(&points[1..].iter().map(edge).collect::<Vec<_>>())
}

/// An integral with what is known about its errors.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PartialIntegral {
    pub value: Sum,
    /// What rounding can have changed.
    pub rounding: f64,
    /// How far the next coarser rule is off, simplex by simplex.
    pub truncation: f64,
    pub simplices: u64,
}

impl PartialIntegral {
    pub fn merge(&mut self, other: &PartialIntegral) {
        self.value.merge(other.value);
        self.rounding += other.rounding;
        self.truncation += other.truncation;
        self.simplices += other.simplices;
    }

    /// Exact for powers of two.
    pub fn times(&self, factor: f64) -> PartialIntegral {
        let value = Sum::from_iter([self.value.value() * factor]);
        PartialIntegral {
            value,
            rounding: (self.rounding + ROUNDOFF * self.value.value().abs()) * factor,
            truncation: self.truncation * factor,
            simplices: self.simplices,
        }
    }
}

/// The sums over one layer, or a part of it.
#[derive(Clone, Copy, Default)]
struct LayerSums {
    values: Sum,
    magnitudes: f64,
    errors: f64,
}

/// The integral over all simplices, added up in their order.
pub(crate) fn integrate(
    measured: &Measured,
    rule: &GrundmannMoellerRule,
    integrand: &impl BatchFunction,
) -> Result<PartialIntegral, Vec<f64>> {
    let count = measured.simplices.len();
    let one = |simplex| integrate_one(measured, simplex, rule, integrand);
    let parts: Vec<Result<PartialIntegral, Vec<f64>>> = (0..count).into_par_iter().map(one).collect();
    let mut total = PartialIntegral::default();
    // The first failure in the order of the simplices is reported, whichever came first in time.
    for part in parts {
        total.merge(&part?);
    }
    Ok(total)
}

fn integrate_one(
    measured: &Measured,
    simplex: usize,
    rule: &GrundmannMoellerRule,
    integrand: &impl BatchFunction,
) -> Result<PartialIntegral, Vec<f64>> {
    let affine = SimplexMap::new(measured, simplex);
    let starts: Vec<usize> = (0..rule.len()).step_by(CHUNK).collect();
    let chunk = |start: usize| {
        checkpoint();
        sum_chunk(&affine, rule, start..(start + CHUNK).min(rule.len()), integrand)
    };
    let chunks: Vec<Result<_, Vec<f64>>> = match &starts[..] {
        [start] => vec![chunk(*start)],
        _ => starts.into_par_iter().map(chunk).collect(),
    };
    let mut sums = vec![LayerSums::default(); rule.layers().len()];
    for chunk in chunks {
        for (layer, part) in chunk? {
            let sum = &mut sums[layer];
            sum.values.merge(part.values);
            sum.magnitudes += part.magnitudes;
            sum.errors += part.errors;
        }
    }
    // Layers of even index have positive weights, the others negative ones: the two sums are formed apart.
    let [mut positive, mut negative, mut coarser] = [Sum::default(); 3];
    let mut rounding = 0.0;
    for (i, (layer, sum)) in rule.layers().iter().zip(&sums).enumerate() {
        let signed = if i.is_multiple_of(2) { &mut positive } else { &mut negative };
        signed.add(layer.weight * sum.values.value());
        coarser.add(layer.coarser * sum.values.value());
        // Roundings: weight, sum of the layer, product, sum of one sign, difference of the signs.
        rounding += layer.weight.abs() * (sum.errors + 5.0 * ROUNDOFF * sum.magnitudes);
    }
    let size = measured.simplices.sizes[simplex];
    let mean = positive.value() + negative.value();
    let value = size * mean;
    // One more rounding for the product with the size, one for its place in the sum over all simplices. Second orders
    // and the roundings of the bound itself are in the factor.
    let of_value = 1.01 * (size * rounding + value.abs() * (measured.size_error + 2.0 * ROUNDOFF));
    // Where the size is below the normal range it is off by up to the smallest number, and so are the products here.
    let underflow = match mean == 0.0 && rounding == 0.0 {
        true => 0.0,
        false => number::SMALLEST * (mean.abs() + rounding + 4.0),
    };
    let rounding = of_value + underflow;
    let truncation = size * (mean - coarser.value()).abs();
    Ok(PartialIntegral { value: Sum::from_iter([value]), rounding, truncation, simplices: 1 })
}

/// The affine map from barycentric coordinates to a simplex: the matrix of its vertices.
struct SimplexMap {
    n: usize,
    /// Vertices, axis by axis: `n` rows of `n + 1`.
    columns: Vec<f64>,
    /// Whether no axis changes sign on the simplex.
    uniform: bool,
    slack: f64,
}

impl SimplexMap {
    fn new(measured: &Measured, simplex: usize) -> SimplexMap {
        let n = measured.simplices.dimension;
        let vertices = &measured.simplices.vertices[simplex * n * (n + 1)..][..n * (n + 1)];
        let columns: Vec<f64> = (0..n).flat_map(|axis| vertices.iter().skip(axis).step_by(n.max(1))).copied().collect();
        let one_sign = |axis: &[f64]| axis.iter().all(|x| *x >= 0.0) || axis.iter().all(|x| *x <= 0.0);
        let uniform = columns.chunks(n + 1).all(one_sign);
        // Numerators and denominators are small integers: n + 1 products, n sums and a division are rounded.
        SimplexMap { n, columns, uniform, slack: measured.coordinate_error + (n as f64 + 3.0) * ROUNDOFF }
    }

    /// The matrix product of the points of a rule with the vertices, all points of the range at once.
    fn map(&self, rule: &GrundmannMoellerRule, points: Range<usize>, batch: &mut PointBatch) {
        let (start, count) = (points.start, points.len());
        batch.count = count;
        batch.uniform = self.uniform;
        batch.slack = self.slack;
        for (axis, column) in self.columns.chunks(self.n + 1).enumerate() {
            combine(rule, points.clone(), column.iter().copied(), &mut batch.points[axis * BATCH..][..count]);
            if !self.uniform {
                let sizes = column.iter().map(|v| v.abs());
                combine(rule, points.clone(), sizes, &mut batch.magnitudes[axis * BATCH..][..count]);
            }
        }
        for layer in overlapping(rule, &points) {
            let layer = &rule.layers()[layer];
            let inside = layer.points.start.max(start) - start..layer.points.end.min(points.end) - start;
            for axis in 0..self.n {
                let row = axis * BATCH;
                let range = row + inside.start..row + inside.end;
                batch.points[range.clone()].iter_mut().for_each(|x| *x /= layer.denominator);
                if !self.uniform {
                    batch.magnitudes[range].iter_mut().for_each(|x| *x /= layer.denominator);
                }
            }
        }
    }
}

/// `sum_i numerator_i column_i` for every point of the range.
fn combine(rule: &GrundmannMoellerRule, points: Range<usize>, column: impl Iterator<Item = f64>, out: &mut [f64]) {
    out.fill(0.0);
    for (row, v) in column.enumerate() {
        let numerators = rule.numerators(row, points.clone());
        out.iter_mut().zip(numerators).for_each(|(x, numerator)| *x += f64::from(*numerator) * v);
    }
}

/// The layers that share points with a non-empty range.
fn overlapping(rule: &GrundmannMoellerRule, points: &Range<usize>) -> Range<usize> {
    let layers = rule.layers();
    let first = layers.partition_point(|layer| layer.points.end <= points.start);
    first..layers.partition_point(|layer| layer.points.start < points.end)
}

/// Sums over a range of points, by layer.
fn sum_chunk(
    affine: &SimplexMap,
    rule: &GrundmannMoellerRule,
    chunk: Range<usize>,
    integrand: &impl BatchFunction,
) -> Result<Vec<(usize, LayerSums)>, Vec<f64>> {
    let mut batch = PointBatch::new(affine.n);
    let mut sums: Vec<(usize, LayerSums)> =
        overlapping(rule, &chunk).map(|layer| (layer, LayerSums::default())).collect();
    for start in chunk.clone().step_by(BATCH) {
        let points = start..(start + BATCH).min(chunk.end);
        affine.map(rule, points.clone(), &mut batch);
        integrand.evaluate(&mut batch)?;
        for (layer, sum) in &mut sums {
            let layer = &rule.layers()[*layer].points;
            let (from, to) = (layer.start.max(points.start), layer.end.min(points.end));
            for p in from..to {
                let value = batch.values[p - start];
                sum.values.add(value);
                sum.magnitudes += value.abs();
                sum.errors += batch.errors[p - start];
            }
        }
    }
    Ok(sums)
}
