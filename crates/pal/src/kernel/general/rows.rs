//! Log-densities of one point per row, with their gradients, and probabilities.

use rayon::prelude::*;

use super::super::rows::{KernelLogProb, SMALL};
use super::head::{GeneralRow, GeneralRowGradient};
use super::integral::GeneralKernelGradient;
use super::simplices::{self, seen_by};
use super::{GeneralKernelFamily, MOST, Point};
use crate::density::DensityError;
use crate::interrupt::checkpoint;
use crate::query::QueryError;

/// The log-density of each point under its own row of parameters, on the region of its own family; a single row or a
/// single family belongs to all points. With `with_gradient` the derivatives with respect to parameters and points come
/// in the same pass. All families have the same number of parameters.
pub fn general_log_prob_each(
    families: &[&GeneralKernelFamily],
    params: &[f64],
    points: &[f64],
    with_gradient: bool,
) -> Result<KernelLogProb, DensityError> {
    let Some(first) = families.first() else {
        return Err(DensityError::Pairing { params: 0, points: points.len() });
    };
    first.check_points(points)?;
    let (rows, n) = (first.rows(params)?, first.dimension());
    let (count, per) = (points.len() / n, first.num_params());
    let fits = |length: usize| length == 1 || length == count;
    if !fits(rows.len()) || !fits(families.len()) {
        return Err(DensityError::Pairing { params: rows.len(), points: count });
    }
    // What all points share is computed once.
    let shared = (rows.len() == 1 && families.len() == 1).then(|| GeneralRowMasses::new(first, &rows[0]));
    let answer = |at: usize| {
        checkpoint();
        let family = if families.len() == 1 { families[0] } else { families[at] };
        let row = if rows.len() == 1 { &rows[0] } else { &rows[at] };
        let point = &points[at * n..(at + 1) * n];
        let mut gradient = vec![0.0; if with_gradient { per } else { 0 }];
        let mut at_point = [0.0; MOST];
        if !family.contains(point) {
            return (f64::NEG_INFINITY, gradient, at_point);
        }
        let v = family.to_box(point);
        let own;
        let masses = match &shared {
            Some(shared) => shared,
            None => {
                own = GeneralRowMasses::new(family, row);
                &own
            }
        };
        if with_gradient {
            at_point = family.log_prob_gradient(row, masses, &v, &mut gradient);
        }
        let log_prob = family.unnormalised(row, &v).ln() - family.log_constant(masses.normaliser);
        (log_prob, gradient, at_point)
    };
    let answers: Vec<(f64, Vec<f64>, Point)> = (0..count).into_par_iter().map(answer).collect();
    let mut out = KernelLogProb { log_prob: Vec::new(), gradient: Vec::new(), point_gradient: Vec::new() };
    for (log_prob, gradient, at_point) in answers {
        out.log_prob.push(log_prob);
        if with_gradient {
            out.gradient.extend(gradient);
            out.point_gradient.extend((0..n).map(|j| at_point[j] / first.half_width(j)));
        }
    }
    Ok(out)
}

/// The masses of all kernels of a row on a region, with their derivatives.
struct GeneralRowMasses {
    kernels: Vec<(f64, GeneralKernelGradient)>,
    normaliser: f64,
}

impl GeneralRowMasses {
    fn new(family: &GeneralKernelFamily, row: &GeneralRow) -> GeneralRowMasses {
        let kernels = row.kernels.iter().map(|kernel| kernel.mass_with_gradient(&family.0.walls)).collect();
        GeneralRowMasses { kernels, normaliser: family.normaliser(row) }
    }
}

impl GeneralKernelFamily {
    /// The log-densities of many points under one row of parameters.
    pub fn log_prob(&self, params: &[f64], points: &[f64]) -> Result<Vec<f64>, DensityError> {
        let rows = params.len() / self.num_params();
        if rows != 1 {
            return Err(DensityError::Pairing { params: rows, points: points.len() / self.dimension() });
        }
        Ok(general_log_prob_each(&[self], params, points, false)?.log_prob)
    }

    /// The probability of an event, made by [`GeneralKernelFamily::within`], for each row of parameters.
    pub fn probability(&self, event: &GeneralKernelFamily, params: &[f64]) -> Result<Vec<f64>, QueryError> {
        let rows = self.rows(params)?;
        let fraction = |row: &GeneralRow| {
            checkpoint();
            (event.normaliser(row) / self.normaliser(row)).clamp(0.0, 1.0)
        };
        Ok(rows.par_iter().map(fraction).collect())
    }

    /// The probability of an event for each row of parameters, and the gradients with respect to these rows.
    pub fn probability_with_gradient(
        &self,
        event: &GeneralKernelFamily,
        params: &[f64],
    ) -> Result<(Vec<f64>, Vec<f64>), QueryError> {
        let rows = self.rows(params)?;
        let answer = |row: &GeneralRow| {
            checkpoint();
            let (top, bottom) = (event.normaliser(row), self.normaliser(row));
            let mut from = GeneralRowGradient::zero(row);
            event.add_normaliser_gradient(row, 1.0 / bottom, &mut from);
            self.add_normaliser_gradient(row, -top / (bottom * bottom), &mut from);
            let mut gradient = vec![0.0; self.num_params()];
            row.pull_back(&from, &mut gradient);
            ((top / bottom).clamp(0.0, 1.0), gradient)
        };
        let (values, gradients): (Vec<f64>, Vec<Vec<f64>>) = rows.par_iter().map(answer).unzip();
        Ok((values, gradients.concat()))
    }

    /// The density at a point of the region before it is normalised, relative to coordinates of the box.
    fn unnormalised(&self, row: &GeneralRow, v: &Point) -> f64 {
        let kernels = row.kernels.iter().zip(&row.weights);
        kernels.map(|(kernel, weight)| weight * kernel.density(v)).sum::<f64>() + row.uniform / self.0.whole_volume
    }

    /// The normalising constant of a row: its mass on the region.
    fn normaliser(&self, row: &GeneralRow) -> f64 {
        self.masses(row).iter().sum()
    }

    /// The masses of all kernels with their weights and, last, that of the uniform part.
    pub(super) fn masses(&self, row: &GeneralRow) -> Vec<f64> {
        let uniform = row.uniform * (self.0.volume / self.0.whole_volume);
        let kernels = || row.kernels.iter().zip(&row.weights);
        let fast = kernels().map(|(kernel, weight)| weight * kernel.mass(&self.0.walls).max(0.0));
        let masses: Vec<f64> = fast.chain([uniform]).collect();
        if masses.iter().sum::<f64>() >= SMALL {
            return masses;
        }
        let rule = simplices::rule(self.dimension(), 0);
        let positive = kernels().map(|(kernel, weight)| {
            let parts = seen_by(kernel, &self.0.simplices);
            weight * parts.iter().map(|part| part.mass(kernel, &rule)).sum::<f64>()
        });
        positive.chain([uniform]).collect()
    }

    /// What is to be subtracted from the logarithm of the density in coordinates of the box.
    fn log_constant(&self, normaliser: f64) -> f64 {
        normaliser.ln() + (0..self.dimension()).map(|j| self.half_width(j).ln()).sum::<f64>()
    }

    /// Adds the derivatives of the normalising constant times a factor.
    fn add_normaliser_gradient(&self, row: &GeneralRow, factor: f64, from: &mut GeneralRowGradient) {
        for (k, (kernel, weight)) in row.kernels.iter().zip(&row.weights).enumerate() {
            let (mass, gradient) = kernel.mass_with_gradient(&self.0.walls);
            from.weights[k] += factor * weight * mass;
            from.kernels[k].add(&gradient, factor * weight);
        }
        from.uniform += factor * self.0.volume / self.0.whole_volume;
    }

    /// The gradient of the log-density of a point inside the region: writes that with respect to the parameters, and
    /// returns that with respect to the point in coordinates of the box.
    fn log_prob_gradient(&self, row: &GeneralRow, masses: &GeneralRowMasses, v: &Point, gradient: &mut [f64]) -> Point {
        let height = 1.0 / self.0.whole_volume;
        let (over_density, over_normaliser) = (1.0 / self.unnormalised(row, v), 1.0 / masses.normaliser);
        let (mut from, mut at_point) = (GeneralRowGradient::zero(row), Point::default());
        for (k, (kernel, weight)) in row.kernels.iter().zip(&row.weights).enumerate() {
            if let Some((value, gradient)) = kernel.density_with_gradient(v) {
                from.weights[k] = weight * value * over_density;
                from.kernels[k].add(&gradient, weight * over_density);
                at_point.iter_mut().zip(gradient.place).for_each(|(sum, x)| *sum -= x * weight * over_density);
            }
            let (mass, gradient) = &masses.kernels[k];
            from.weights[k] -= weight * mass * over_normaliser;
            from.kernels[k].add(gradient, -weight * over_normaliser);
        }
        from.uniform = height * over_density - self.0.volume * height * over_normaliser;
        row.pull_back(&from, gradient);
        at_point
    }
}
