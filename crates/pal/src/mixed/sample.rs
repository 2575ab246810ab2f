//! Independent samples of mixed densities.
//!
//! The first uniform number of a sample chooses a part by its exact mass, the next ones the reals on its mesh. Given the
//! reals, a component has a probability proportional to what it contributes there, and given the component the Boolean
//! variables are drawn one after the other along the diagram of the part: exactly from its assignments.

use super::density::MixedDensity;
use super::family::MixedFamily;
use crate::density::{BinIndex, Density};
use crate::query::{QueryError, Sampler, check_memory};
use crate::random::Stream;

/// How often a sample is drawn anew whose assignment fails on a wall of its element. Only rounding to a wall makes that
/// happen, once in some 1e15 samples.
const ATTEMPTS: u64 = 64;

/// A mixed density prepared for sampling.
struct PartSamplers {
    /// Running sums of the masses of the parts; the last is 1.
    cumulative: Vec<f64>,
    parts: Vec<(usize, Density, Sampler)>,
    /// For each component the probabilities of all sets of assignments.
    sets: Vec<Vec<f64>>,
}

impl MixedDensity {
    /// Draws independent samples, row by row: real variables first, then a 0 or 1 for each Boolean one. The same seed
    /// gives the same samples for any number of threads.
    ///
    /// ```
    /// # use pal::density::SplineSettings;
    /// # use pal::formula::{Formula, reals};
    /// # use pal::{mixed::MixedFamily, region::Region};
    /// let [x] = reals(["x"]);
    /// let wet = Formula::boolean("wet");
    /// let phi = x.between(0, 4) & (!wet | x.le(1));
    /// let family = MixedFamily::new(&Region::new(&phi.into())?, &SplineSettings::default().into())?;
    /// let samples = family.density(&family.random_params(1, 3))?.sample(100, 7)?;
    /// assert!(samples.chunks(2).all(|row| row[1] == 0.0 || row[1] == 1.0 && row[0] <= 1.0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn sample(&self, count: usize, seed: u64) -> Result<Vec<f64>, QueryError> {
        self.sample_from(0, count, seed)
    }

    /// Draws `count` samples of the endless sequence of a seed, beginning with number `start`.
    pub(super) fn sample_from(&self, start: u64, count: usize, seed: u64) -> Result<Vec<f64>, QueryError> {
        let columns = self.support.columns();
        check_memory(count, columns)?;
        let samplers = self.samplers()?;
        let n = self.support.base().dimension();
        let mut samples = vec![0.0; count * columns];
        let mut open: Vec<usize> = (0..count).collect();
        for attempt in 0..ATTEMPTS {
            let mut rows: Vec<Vec<(usize, Stream)>> = samplers.parts.iter().map(|_| Vec::new()).collect();
            for row in &open {
                let mut stream = Stream::new(seed ^ attempt.rotate_left(32), start + *row as u64);
                let u = stream.unit();
                let part = samplers.cumulative.partition_point(|sum| *sum < u).min(rows.len() - 1);
                rows[part].push((*row, stream));
            }
            open.clear();
            for ((at, density, sampler), rows) in samplers.parts.iter().zip(&mut rows) {
                let per = sampler.uniforms();
                let uniforms: Vec<f64> = rows
                    .iter_mut()
                    .flat_map(|(_, stream)| (0..per).map(|_| stream.unit()).collect::<Vec<_>>())
                    .collect();
                let points = sampler.transform(&uniforms)?;
                for ((row, stream), point) in rows.iter_mut().zip(points.chunks(n)) {
                    let assignment = self.draw_assignment(*at, density, point, &samplers.sets, stream);
                    if !self.support.base().membership().contains_with(point, &assignment) {
                        open.push(*row);
                        continue;
                    }
                    let sample = &mut samples[*row * columns..(*row + 1) * columns];
                    let (reals, booleans) = sample.split_at_mut(self.support.dimension());
                    reals.copy_from_slice(&self.support.filled(point.to_vec()));
                    booleans.iter_mut().zip(assignment).for_each(|(to, value)| *to = f64::from(u8::from(value)));
                }
            }
            if open.is_empty() {
                return Ok(samples);
            }
        }
        Err(QueryError::NoFloat64Point(open.len() as f64 / count as f64))
    }

    fn samplers(&self) -> Result<PartSamplers, QueryError> {
        let (mut parts, mut cumulative, mut total) = (Vec::new(), Vec::new(), 0.0);
        for (mass, at, density) in self.part_densities(&[]) {
            let density = density.in_free_coordinates();
            let sampler = density.sampler()?;
            total += mass;
            cumulative.push(total);
            parts.push((at, density, sampler));
        }
        if parts.is_empty() {
            return Err(QueryError::Impossible);
        }
        cumulative.iter_mut().for_each(|sum| *sum /= total);
        let sets = self.odds.iter().map(|odds| self.support.diagram.probabilities(odds, &[])).collect();
        Ok(PartSamplers { cumulative, parts, sets })
    }

    /// Draws a component given a point of a part, then an assignment of the part.
    fn draw_assignment(
        &self,
        part: usize,
        density: &Density,
        point: &[f64],
        sets: &[Vec<f64>],
        stream: &mut Stream,
    ) -> Vec<bool> {
        let n = point.len();
        let (mut bin, mut t) = (vec![BinIndex::default(); n], vec![0.0; n]);
        self.support.base().grid().locate(point, &mut bin, &mut t);
        let log = |(m, w): (usize, &f64)| {
            if *w == f64::NEG_INFINITY { *w } else { w + self.functions.log_value(m, &bin, &t) }
        };
        let logs: Vec<f64> = density.log_weights.iter().enumerate().map(log).collect();
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let shares: Vec<f64> = logs.iter().map(|log| (log - largest).exp()).collect();
        let mut rest = stream.unit() * shares.iter().sum::<f64>();
        let chosen = shares.iter().position(|share| {
            rest -= share;
            rest < 0.0
        });
        // At a zero of the density all terms are minus infinity; any component with mass on the part will do.
        let heaviest = || (0..logs.len()).max_by(|a, b| density.log_weights[*a].total_cmp(&density.log_weights[*b]));
        let m = chosen.or_else(heaviest).unwrap_or(0);
        let set = self.support.parts[part].assignments;
        self.support.diagram.draw(set, &self.odds[m], &sets[m], || stream.unit())
    }
}

impl MixedFamily {
    /// Draws `count` independent samples for each parameter vector, row by row.
    pub fn sample(&self, params: &[f64], count: usize, seed: u64) -> Result<Vec<f64>, QueryError> {
        let densities = self.densities(params)?;
        check_memory(densities.len().saturating_mul(count), self.support().columns())?;
        let draw = |(row, density): (usize, &MixedDensity)| density.sample_from((row * count) as u64, count, seed);
        Ok(densities.iter().enumerate().map(draw).collect::<Result<Vec<_>, _>>()?.concat())
    }
}
