//! All monomial moments of simplices by the generating function, in float64.
//!
//! For a simplex with vertices v_0 .. v_n and |alpha| = k,
//!
//! ```text
//! integral of y^alpha  =  n! vol * alpha! / (k + n)! * [t^alpha]  prod_i 1 / (1 - <t, v_i>)
//! ```
//!
//! and multiplying a series by 1 / (1 - <t, v>) is the recurrence `g_alpha = f_alpha + sum_j v_j g_(alpha - e_j)`. All
//! n + 1 factors are swept together: with `G_i` the product of the factors 0..=i,
//!
//! ```text
//! G_i[alpha]  =  G_(i-1)[alpha] + sum_j v_ij G_i[alpha - e_j]
//! ```
//!
//! needs one look-up of the predecessors for all i. Vertices in [0, 1]^n make every term non-negative, so nothing
//! cancels and the relative error of every moment is a few `n k` ulps.

use rayon::prelude::*;

use super::exponents::Exponents;
use crate::interrupt::checkpoint;

/// Simplices swept together, one per SIMD lane.
const LANES: usize = 4;

/// Contiguous groups of simplices whose sums are formed independently. Fixed, so that the order of summation does not
/// depend on the number of threads.
const GROUPS: usize = 16;

/// From this many exponents on, one simplex is swept on all cores.
const WIDE: usize = 20_000;

/// Simplices in float64: vertices in [0, 1]^n and `n!` times the volumes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Simplices {
    pub dimension: usize,
    /// `(n + 1) * n` coordinates per simplex, vertex by vertex.
    pub vertices: Vec<f64>,
    /// `n!` times the volume of each.
    pub sizes: Vec<f64>,
}

impl Simplices {
    pub fn len(&self) -> usize {
        self.sizes.len()
    }

    /// The same with absolute values of all coordinates: what errors are measured against.
    pub fn absolute(&self) -> Simplices {
        Simplices { vertices: self.vertices.iter().map(|x| x.abs()).collect(), ..self.clone() }
    }

    fn vertex(&self, simplex: usize, vertex: usize, axis: usize) -> f64 {
        let n = self.dimension;
        self.vertices[(simplex * (n + 1) + vertex) * n + axis]
    }
}

/// The longest chain of additions in the sum over this many simplices for this many exponents.
pub(crate) fn longest_sum(simplices: usize, exponents: usize) -> usize {
    if exponents >= WIDE { simplices } else { simplices.div_ceil(GROUPS * LANES) + GROUPS + LANES }
}

/// The sum over all simplices of `n! vol [t^alpha] prod 1 / (1 - <t, v_i>)`, for all exponents. The factor
/// `alpha! / (k + n)!` is left to the caller.
pub(crate) fn generating_sums(simplices: &Simplices, exponents: &Exponents) -> Vec<f64> {
    if exponents.len() >= WIDE {
        let mut sums = vec![0.0; exponents.len()];
        (0..simplices.len()).for_each(|s| sweep_wide(simplices, s, exponents, &mut sums));
        return sums;
    }
    let per_group = simplices.len().div_ceil(GROUPS).next_multiple_of(LANES).max(LANES);
    let starts: Vec<usize> = (0..simplices.len()).step_by(per_group).collect();
    let partial = starts.into_par_iter().map(|start| {
        let mut sums = vec![0.0; exponents.len()];
        let mut table = vec![[0.0; LANES]; exponents.len() * (exponents.dimension() + 1)];
        for block in (start..(start + per_group).min(simplices.len())).step_by(LANES) {
            checkpoint();
            sweep_block(simplices, block, exponents, &mut table, &mut sums);
        }
        sums
    });
    let partial: Vec<Vec<f64>> = partial.collect();
    let mut total = vec![0.0; exponents.len()];
    for sums in partial {
        total.iter_mut().zip(&sums).for_each(|(t, s)| *t += s);
    }
    total
}

/// Sweeps `LANES` simplices at once. Lanes beyond the last simplex have size 0.
fn sweep_block(
    simplices: &Simplices,
    first: usize,
    exponents: &Exponents,
    table: &mut [[f64; LANES]],
    sums: &mut [f64],
) {
    let n = simplices.dimension;
    let rows = n + 1;
    let mut vertices = vec![[0.0; LANES]; n * rows];
    let mut sizes = [0.0; LANES];
    for lane in 0..LANES.min(simplices.len() - first) {
        sizes[lane] = simplices.sizes[first + lane];
        for i in 0..rows {
            for j in 0..n {
                vertices[j * rows + i][lane] = simplices.vertex(first + lane, i, j);
            }
        }
    }
    table[..rows].fill([1.0; LANES]);
    sums[0] += sizes.iter().sum::<f64>();
    for (at, sum) in sums.iter_mut().enumerate().skip(1) {
        let (before, from_here) = table.split_at_mut(at * rows);
        let here = &mut from_here[..rows];
        here.fill([0.0; LANES]);
        for (j, from) in exponents.predecessors(at).iter().enumerate() {
            let Some(from) = from.position() else { continue };
            let from = &before[from * rows..][..rows];
            let along = &vertices[j * rows..][..rows];
            for ((h, f), v) in here.iter_mut().zip(from).zip(along) {
                for lane in 0..LANES {
                    h[lane] += v[lane] * f[lane];
                }
            }
        }
        for i in 1..rows {
            let previous = here[i - 1];
            for lane in 0..LANES {
                here[i][lane] += previous[lane];
            }
        }
        let last = here[n];
        *sum += (0..LANES).map(|lane| sizes[lane] * last[lane]).sum::<f64>();
    }
}

/// Sweeps one simplex over a large set of exponents: those of one total degree depend only on the degree below, so they
/// are computed in parallel.
fn sweep_wide(simplices: &Simplices, simplex: usize, exponents: &Exponents, sums: &mut [f64]) {
    let n = simplices.dimension;
    // Rows padded to whole lanes.
    let width = (n + 1).next_multiple_of(LANES);
    let mut vertices = vec![0.0; n * width];
    for i in 0..=n {
        for j in 0..n {
            vertices[j * width + i] = simplices.vertex(simplex, i, j);
        }
    }
    let size = simplices.sizes[simplex];
    let (mut previous, mut previous_start) = (vec![0.0; width], 0);
    previous[..=n].fill(1.0);
    sums[0] += size;
    for level in exponents.levels().skip(1) {
        checkpoint();
        let mut current = vec![0.0; level.len() * width];
        let start = level.start;
        let rows = current.par_chunks_mut(width).zip(sums[level].par_iter_mut()).enumerate();
        rows.with_min_len(256).for_each(|(k, (here, sum))| {
            for (j, from) in exponents.predecessors(start + k).iter().enumerate() {
                let Some(from) = from.position() else { continue };
                let from = &previous[(from - previous_start) * width..][..width];
                let along = &vertices[j * width..][..width];
                for ((h, f), v) in here.iter_mut().zip(from).zip(along) {
                    *h += v * f;
                }
            }
            for i in 1..=n {
                here[i] += here[i - 1];
            }
            *sum += size * here[n];
        });
        (previous, previous_start) = (current, start);
    }
}
