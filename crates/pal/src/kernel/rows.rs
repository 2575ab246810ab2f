//! Log-densities of one point per row, with their gradients, and probabilities.

use rayon::prelude::*;

use super::KernelFamily;
use super::head::{KernelRow, MixtureGradient};
use super::integral::KernelGradient;
use super::pieces::positive_mass;
use crate::density::DensityError;
use crate::density::lanes::{LaneWork, Simd, dispatch};
use crate::interrupt::checkpoint;
use crate::query::QueryError;

/// Log-densities with their derivatives.
#[derive(Clone, Debug)]
pub struct KernelLogProb {
    /// The log-density of each point under its own row of parameters; minus infinity outside the region.
    pub log_prob: Vec<f64>,
    /// The gradient of each log-density with respect to its row of parameters, row by row; empty if it was not asked for.
    pub gradient: Vec<f64>,
    /// The gradient with respect to the point; empty if it was not asked for.
    pub point_gradient: Vec<f64>,
}

/// The number of rows per parallel task.
const ROWS: usize = 8;

/// Below this normalising constant the masses of kernels are summed up again from positive terms: those that come from
/// the boundary are exact to an absolute error of some 1e-15.
pub(super) const SMALL: f64 = 1e-4;

/// The log-density of each point under its own row of parameters, on the region of its own family; a single row or a
/// single family belongs to all points. With `with_gradient` the derivatives with respect to parameters and points come in the same
/// pass. All families have the same number of parameters.
pub fn log_prob_each(
    families: &[&KernelFamily],
    params: &[f64],
    points: &[f64],
    with_gradient: bool,
) -> Result<KernelLogProb, DensityError> {
    let Some(first) = families.first() else {
        return Err(DensityError::Pairing { params: 0, points: points.len() / 2 });
    };
    first.check_points(points)?;
    let inside: Vec<bool> = match families {
        [family] => family.contains_batch(points),
        // Families that do not go with the points are refused below.
        _ => families.iter().zip(points.chunks(2)).map(|(family, point)| family.contains(point)).collect(),
    };
    log_prob_where(families, params, points, &inside, with_gradient)
}

/// Like [`log_prob_each`], where whether points are inside their regions was decided before, such as in coordinates that
/// the points were computed from: points with `false` have a log-density of minus infinity. The others are inside up to
/// rounding.
pub fn log_prob_where(
    families: &[&KernelFamily],
    params: &[f64],
    points: &[f64],
    inside: &[bool],
    with_gradient: bool,
) -> Result<KernelLogProb, DensityError> {
    let Some(first) = families.first() else {
        return Err(DensityError::Pairing { params: 0, points: points.len() / 2 });
    };
    first.check_points(points)?;
    let rows = first.rows(params)?;
    let (count, per) = (points.len() / 2, first.num_params());
    let fits = |length: usize| length == 1 || length == count;
    if !fits(rows.len()) || !fits(families.len()) || inside.len() != count {
        return Err(DensityError::Pairing { params: rows.len(), points: count });
    }
    // What all points share is computed once.
    let shared = (rows.len() == 1 && families.len() == 1).then(|| RowMasses::new(first, &rows[0]));
    let mut out = KernelLogProb {
        log_prob: vec![f64::NEG_INFINITY; count],
        gradient: vec![0.0; if with_gradient { count * per } else { 0 }],
        point_gradient: vec![0.0; if with_gradient { count * 2 } else { 0 }],
    };
    let work = |block: usize, log_prob: &mut [f64], gradient: &mut [f64], point_gradient: &mut [f64]| {
        checkpoint();
        let here = block * ROWS..block * ROWS + log_prob.len();
        dispatch(RowWork {
            families: here.clone().map(|row| if families.len() == 1 { families[0] } else { families[row] }).collect(),
            rows: here.clone().map(|row| if rows.len() == 1 { &rows[0] } else { &rows[row] }).collect(),
            shared: shared.as_ref(),
            points: &points[2 * here.start..2 * here.end],
            inside: &inside[here],
            log_prob,
            gradient,
            point_gradient,
        });
    };
    if with_gradient {
        let blocks = out.log_prob.par_chunks_mut(ROWS).zip(out.gradient.par_chunks_mut(ROWS * per));
        let blocks = blocks.zip(out.point_gradient.par_chunks_mut(2 * ROWS)).enumerate();
        blocks.for_each(|(block, ((log_prob, gradient), point))| work(block, log_prob, gradient, point));
    } else {
        let blocks = out.log_prob.par_chunks_mut(ROWS).enumerate();
        blocks.for_each(|(block, log_prob)| work(block, log_prob, &mut [], &mut []));
    }
    Ok(out)
}

impl KernelFamily {
    /// [`log_prob_each`] on this region.
    pub fn log_prob_rows(
        &self,
        params: &[f64],
        points: &[f64],
        with_gradient: bool,
    ) -> Result<KernelLogProb, DensityError> {
        log_prob_each(&[self], params, points, with_gradient)
    }

    /// The log-densities of many points under one row of parameters.
    pub fn log_prob(&self, params: &[f64], points: &[f64]) -> Result<Vec<f64>, DensityError> {
        self.check_points(points)?;
        let rows = self.rows(params)?;
        let [row] = rows.as_slice() else {
            return Err(DensityError::Pairing { params: rows.len(), points: points.len() / 2 });
        };
        let constant = self.log_constant(self.normaliser(row));
        let inside = self.contains_batch(points);
        let log_prob = |(point, inside): (&[f64], &bool)| match inside {
            true => self.unnormalised(row, self.to_box(point)).ln() - constant,
            false => f64::NEG_INFINITY,
        };
        Ok(points.par_chunks(2).zip(&inside).with_min_len(256).map(log_prob).collect())
    }

    /// The probability of an event, made by [`KernelFamily::within`], for each row of parameters.
    pub fn probability(&self, event: &KernelFamily, params: &[f64]) -> Result<Vec<f64>, QueryError> {
        let rows = self.rows(params)?;
        let fraction = |row: &KernelRow| {
            checkpoint();
            (event.normaliser(row) / self.normaliser(row)).clamp(0.0, 1.0)
        };
        Ok(rows.par_iter().map(fraction).collect())
    }

    /// The probability of an event for each row of parameters, and the gradients with respect to these rows.
    pub fn probability_with_gradient(
        &self,
        event: &KernelFamily,
        params: &[f64],
    ) -> Result<(Vec<f64>, Vec<f64>), QueryError> {
        let rows = self.rows(params)?;
        let parts: Vec<(f64, Vec<f64>)> = rows
            .par_iter()
            .map(|row| {
                checkpoint();
                let (top, bottom) = (event.normaliser(row), self.normaliser(row));
                let mut gradient = vec![0.0; self.num_params()];
                let mut from = MixtureGradient::zero(row);
                event.add_normaliser_gradient(row, 1.0 / bottom, &mut from);
                self.add_normaliser_gradient(row, -top / (bottom * bottom), &mut from);
                row.pull_back(&from, &mut gradient);
                ((top / bottom).clamp(0.0, 1.0), gradient)
            })
            .collect();
        let (values, gradients): (Vec<f64>, Vec<Vec<f64>>) = parts.into_iter().unzip();
        Ok((values, gradients.concat()))
    }

    /// The density at a point of the region before it is normalised, relative to coordinates of the box.
    pub(super) fn unnormalised(&self, row: &KernelRow, v: [f64; 2]) -> f64 {
        let kernels = row.kernels.iter().zip(&row.weights);
        kernels.map(|(kernel, weight)| weight * kernel.density(v)).sum::<f64>() + row.uniform / self.0.whole_volume
    }

    /// The normalising constant of a row: its mass on the region.
    pub(super) fn normaliser(&self, row: &KernelRow) -> f64 {
        self.masses(row).iter().sum()
    }

    /// The masses of all kernels with their weights and, last, that of the uniform part.
    pub(super) fn masses(&self, row: &KernelRow) -> Vec<f64> {
        let uniform = row.uniform * (self.0.volume / self.0.whole_volume);
        let kernels = || row.kernels.iter().zip(&row.weights);
        let fast = kernels().map(|(kernel, weight)| weight * kernel.mass(&self.0.boundary).max(0.0));
        let masses: Vec<f64> = fast.chain([uniform]).collect();
        if masses.iter().sum::<f64>() >= SMALL {
            return masses;
        }
        let positive = kernels().map(|(kernel, weight)| weight * positive_mass(&self.0.pieces, kernel));
        positive.chain([uniform]).collect()
    }

    /// What is to be subtracted from the logarithm of the density in coordinates of the box.
    pub(super) fn log_constant(&self, normaliser: f64) -> f64 {
        normaliser.ln() + self.half_widths().iter().map(|width| width.ln()).sum::<f64>()
    }

    /// Adds the derivatives of the normalising constant times a factor.
    #[inline(always)]
    pub(super) fn add_normaliser_gradient(&self, row: &KernelRow, factor: f64, from: &mut MixtureGradient) {
        for (k, (kernel, weight)) in row.kernels.iter().zip(&row.weights).enumerate() {
            let (mass, gradient) = kernel.mass_with_gradient(&self.0.boundary);
            from.weights[k] += factor * weight * mass;
            from.kernels[k].add(&gradient, factor * weight);
        }
        from.uniform += factor * self.0.volume / self.0.whole_volume;
    }

    /// The log-density of a point inside the region, with its gradients.
    #[inline(always)]
    fn row_with_gradient(
        &self,
        row: &KernelRow,
        masses: &RowMasses,
        v: [f64; 2],
        gradient: &mut [f64],
    ) -> (f64, [f64; 2]) {
        let height = 1.0 / self.0.whole_volume;
        let mut from = MixtureGradient::zero(row);
        let mut density = row.uniform * height;
        for (k, (kernel, weight)) in row.kernels.iter().zip(&row.weights).enumerate() {
            if let Some((value, gradient)) = kernel.density_with_gradient(v) {
                density += weight * value;
                from.weights[k] = weight * value;
                from.kernels[k].add(&gradient, *weight);
            }
        }
        let (over_density, over_normaliser) = (1.0 / density, 1.0 / masses.normaliser);
        let mut at_point = [0.0; 2];
        for (k, ((mass, gradient), weight)) in masses.kernels.iter().zip(&row.weights).enumerate() {
            let kernel = &mut from.kernels[k];
            at_point.iter_mut().zip(kernel.place).for_each(|(sum, part)| *sum -= part * over_density);
            kernel.scale(over_density);
            kernel.add(gradient, -weight * over_normaliser);
            from.weights[k] = from.weights[k] * over_density - weight * mass * over_normaliser;
        }
        from.uniform = height * over_density - self.0.volume * height * over_normaliser;
        row.pull_back(&from, gradient);
        (density.ln() - self.log_constant(masses.normaliser), at_point)
    }
}

/// The masses of all kernels of a row on a region, with their derivatives.
struct RowMasses {
    kernels: Vec<(f64, KernelGradient)>,
    normaliser: f64,
}

impl RowMasses {
    #[inline(always)]
    fn new(family: &KernelFamily, row: &KernelRow) -> RowMasses {
        let mut masses = RowMasses {
            kernels: Vec::with_capacity(row.kernels.len()),
            normaliser: row.uniform * (family.0.volume / family.0.whole_volume),
        };
        for (kernel, weight) in row.kernels.iter().zip(&row.weights) {
            let mass = kernel.mass_with_gradient(&family.0.boundary);
            masses.normaliser += weight * mass.0.max(0.0);
            masses.kernels.push(mass);
        }
        if masses.normaliser < SMALL {
            masses.normaliser = family.normaliser(row);
        }
        masses
    }
}

/// A block of rows.
struct RowWork<'w> {
    families: Vec<&'w KernelFamily>,
    rows: Vec<&'w KernelRow>,
    /// The masses, where all points share them.
    shared: Option<&'w RowMasses>,
    points: &'w [f64],
    inside: &'w [bool],
    log_prob: &'w mut [f64],
    gradient: &'w mut [f64],
    point_gradient: &'w mut [f64],
}

impl LaneWork for RowWork<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for (k, out) in self.log_prob.iter_mut().enumerate().filter(|(k, _)| self.inside[*k]) {
            let family = self.families[k];
            let (per, half) = (family.num_params(), family.half_widths());
            let (row, v) = (self.rows[k], family.to_box(&self.points[2 * k..2 * k + 2]));
            if self.gradient.is_empty() {
                let normaliser = self.shared.map_or_else(|| family.normaliser(row), |shared| shared.normaliser);
                *out = family.unnormalised(row, v).ln() - family.log_constant(normaliser);
            } else {
                let own;
                let masses = match self.shared {
                    Some(shared) => shared,
                    None => {
                        own = RowMasses::new(family, row);
                        &own
                    }
                };
                let gradient = &mut self.gradient[k * per..(k + 1) * per];
                let (log_prob, at_point) = family.row_with_gradient(row, masses, v, gradient);
                *out = log_prob;
                (0..2).for_each(|j| self.point_gradient[2 * k + j] = at_point[j] / half[j]);
            }
        }
    }
}

impl MixtureGradient {
    #[inline(always)]
    pub(super) fn zero(row: &KernelRow) -> MixtureGradient {
        let count = row.kernels.len();
        MixtureGradient { weights: vec![0.0; count], kernels: vec![KernelGradient::default(); count], uniform: 0.0 }
    }
}

impl KernelGradient {
    #[inline(always)]
    pub(super) fn add(&mut self, other: &KernelGradient, factor: f64) {
        self.place.iter_mut().zip(other.place).for_each(|(sum, part)| *sum += factor * part);
        self.factor.iter_mut().zip(other.factor).for_each(|(sum, part)| *sum += factor * part);
    }

    #[inline(always)]
    fn scale(&mut self, factor: f64) {
        self.place.iter_mut().for_each(|part| *part *= factor);
        self.factor.iter_mut().for_each(|part| *part *= factor);
    }
}
