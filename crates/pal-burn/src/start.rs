//! Starting values of training: parameters of densities that already resemble the data.
//!
//! Points are divided into as many clusters as there are components (k-means), and each component begins as a rough
//! density of its cluster: a smoothed histogram for splines, a Gaussian for Gaussian mixtures. For raw polynomials,
//! whose coefficients have effects of very different size, [`scales`] fits one factor per parameter by L-BFGS (PAL
//! paper, Appendix B.1).

use burn::module::{Module, Param};
use burn::optim::{GradientsParams, LBFGSConfig, LineSearchFn};
use burn::tensor::{Tensor, TensorData};
use pal::density::{DensityError, Family};
use pal::mixed::MixedFamily;
use pal::random::Stream;

use crate::layer::{PalLayer, Points};
use crate::predictor::{MixtureSettings, Scaler, to_f64, to_f64_vec};

/// The largest number of points that clusters are made of; more would change little.
const ENOUGH: usize = 20_000;
/// The number of rounds of k-means.
const ROUNDS: usize = 12;

/// Returns starting values for the parameters of a family: one parameter vector.
pub fn family_params(family: &Family, points: &[f64], seed: u64) -> Result<Vec<f64>, DensityError> {
    let n = family.variables().len();
    let points = thinned(points, n);
    let rows = |members: Vec<usize>| members.iter().flat_map(|row| &points[row * n..(row + 1) * n]).copied().collect();
    let clusters: Vec<Vec<f64>> = clusters(&points, n, family.num_components(), seed).into_iter().map(rows).collect();
    Ok(family.start(&clusters, &mut Stream::new(seed, u64::MAX)))
}

/// Returns starting values for the parameters of a mixed family: one parameter vector. Clusters are made of all columns,
/// in which Booleans are 0 or 1.
pub fn mixed_params(family: &MixedFamily, points: &[f64], seed: u64) -> Result<Vec<f64>, DensityError> {
    let n = family.support().columns();
    let points = thinned(points, n);
    let rows = |members: Vec<usize>| members.iter().flat_map(|row| &points[row * n..(row + 1) * n]).copied().collect();
    let clusters: Vec<Vec<f64>> = clusters(&points, n, family.num_components(), seed).into_iter().map(rows).collect();
    family.start(&clusters, &mut Stream::new(seed, u64::MAX))
}

/// Returns starting values for a Gaussian mixture: one parameter vector. The points must be scaled.
pub fn mixture_params(settings: &MixtureSettings, points: &[f64], seed: u64) -> Vec<f64> {
    let n = settings.dimension;
    let mut params = Vec::with_capacity(settings.num_params());
    for Cluster { log_size, mean, deviation } in gaussians(points, n, settings.components, seed) {
        params.push(log_size);
        params.extend(&mean);
        // Clusters of one point, or on a line, get some width.
        let width = |deviation: &f64| if *deviation > 0.0 { deviation.max(0.02) } else { 0.1 };
        params.extend(deviation.iter().map(|deviation| -width(deviation).ln()));
        params.extend(std::iter::repeat_n(0.0, n * (n - 1) / 2));
    }
    params
}

/// A cluster of points, by its first and second moments.
pub(crate) struct Cluster {
    /// The logarithm of the number of points.
    pub log_size: f64,
    pub mean: Vec<f64>,
    /// The standard deviation along each axis; zero where the points do not differ.
    pub deviation: Vec<f64>,
}

/// Divides the points into `count` clusters.
pub(crate) fn gaussians(points: &[f64], n: usize, count: usize, seed: u64) -> Vec<Cluster> {
    let points = thinned(points, n);
    let cluster = |members: Vec<usize>| {
        let own: Vec<f64> = members.iter().flat_map(|row| &points[row * n..(row + 1) * n]).copied().collect();
        let Scaler { mean, mut deviation } = Scaler::fit(&own, n);
        // A scaler says 1 for a column that does not vary.
        let varies = |j: usize| own.iter().skip(j).step_by(n).any(|x| *x != own[j]);
        deviation.iter_mut().enumerate().for_each(|(j, deviation)| *deviation *= f64::from(u8::from(varies(j))));
        Cluster { log_size: (members.len().max(1) as f64).ln(), mean, deviation }
    };
    clusters(&points, n, count, seed).into_iter().map(cluster).collect()
}

/// Returns at most [`ENOUGH`] of the points, evenly spaced.
fn thinned(points: &[f64], n: usize) -> Vec<f64> {
    let step = (points.len() / n.max(1)).div_ceil(ENOUGH).max(1);
    points.chunks_exact(n.max(1)).step_by(step).flatten().copied().collect()
}

/// Divides points into `count` clusters by k-means and returns the rows of each; a cluster can be empty where there are
/// few different points.
fn clusters(points: &[f64], n: usize, count: usize, seed: u64) -> Vec<Vec<usize>> {
    let scaled = Scaler::fit(points, n).apply(points);
    let rows: Vec<&[f64]> = scaled.chunks_exact(n).collect();
    if rows.is_empty() {
        return vec![Vec::new(); count];
    }
    let distance = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    let mut stream = Stream::new(seed, u64::MAX - 1);
    let mut centres: Vec<Vec<f64>> = Vec::with_capacity(count);
    let mut nearest = vec![f64::INFINITY; rows.len()];
    while centres.len() < count {
        // k-means++: the first centre is any point; each further one is drawn with a probability proportional to the
        // squared distance from the centres so far.
        let total: f64 = nearest.iter().filter(|d| d.is_finite()).sum();
        let mut left = stream.unit() * total;
        let far = nearest.iter().position(|d| {
            left -= d;
            left < 0.0
        });
        let anywhere = ((stream.unit() * rows.len() as f64) as usize).min(rows.len() - 1);
        let chosen = if total > 0.0 { far.unwrap_or(anywhere) } else { anywhere };
        let centre = rows[chosen].to_vec();
        nearest.iter_mut().zip(&rows).for_each(|(d, row)| *d = d.min(distance(row, &centre)));
        centres.push(centre);
    }
    let mut members = vec![Vec::new(); count];
    for _ in 0..ROUNDS {
        members = vec![Vec::new(); count];
        for (index, row) in rows.iter().enumerate() {
            let best = (0..count).min_by(|a, b| distance(row, &centres[*a]).total_cmp(&distance(row, &centres[*b])));
            members[best.unwrap_or(0)].push(index);
        }
        for (centre, members) in centres.iter_mut().zip(&members).filter(|(_, members)| !members.is_empty()) {
            for (j, value) in centre.iter_mut().enumerate() {
                *value = members.iter().map(|row| rows[*row][j]).sum::<f64>() / members.len() as f64;
            }
        }
    }
    members
}

/// The largest number of runs of L-BFGS.
const ATTEMPTS: usize = 10;

#[derive(Module, Debug)]
struct Scale {
    factors: Param<Tensor<2>>,
}

/// Fits one factor per parameter that minimises the loss of an untrained network by L-BFGS (PAL paper, Appendix B.1).
///
/// `outputs` are those of the network for the rows of `points`. Returns the factors, and the loss without them and with
/// them.
pub fn scales(layer: &PalLayer, outputs: Tensor<2>, points: &Points) -> (Vec<f64>, [f64; 2]) {
    let outputs = outputs.without_autodiff();
    let (device, dtype) = (outputs.device(), outputs.dtype());
    let size = layer.num_params();
    let ones = Tensor::<2>::from_data(TensorData::new(vec![1.0; size], [1, size]), (&device.autodiff(), dtype));
    let start = Scale { factors: Param::from_tensor(ones) };
    let loss = |scale: &Scale| layer.loss(outputs.clone() * scale.factors.val(), points);
    let value = |scale: &Scale| to_f64(loss(scale));
    let before = value(&start);
    let (mut best, mut after) = (start, before);
    for _ in 0..ATTEMPTS {
        // A line search can fail at a zero of a polynomial, which ends a run; the next run begins with a fresh memory.
        let mut optimiser = LBFGSConfig::new().with_max_iter(50).with_line_search_fn(LineSearchFn::StrongWolfe).init();
        let (scale, _) = optimiser.step(1.0, best.clone(), |scale: Scale| {
            let loss = loss(&scale);
            let gradients = GradientsParams::from_grads(loss.backward(), &scale);
            (to_f64(loss), gradients)
        });
        let found = value(&scale);
        // A run that ends worse than it began is discarded.
        let better = found < after - 1e-6;
        if found < after {
            (best, after) = (scale, found);
        }
        if !better {
            break;
        }
    }
    (to_f64_vec(best.factors.val()), [before, after])
}
