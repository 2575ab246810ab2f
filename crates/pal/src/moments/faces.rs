//! Moments of a polytope without listing its simplices.
//!
//! The generating function of a triangulation is a sum of products over vertices, so it factorises over the face lattice: with the
//! apex v_F of each face F,
//!
//! ```text
//! M_F(t)  =  1 / (1 - <t, v_F>)  *  sum over facets G of F that avoid v_F of  c(F, G) M_G(t),      M_v(t) = 1 / (1 - <t, v>)
//! ```
//!
//! where c(F, G) is the height of v_F over G. One sweep per face instead of n + 1 per simplex.

use super::exponents::{Exponents, NONE};
use super::frame::ConversionError;
use crate::region::Lattice;

/// A polytope in the coordinates of a frame.
pub(crate) struct LocalPolytope<'l> {
    pub lattice: &'l Lattice,
    pub corners: &'l [Vec<f64>],
    /// Bound on the relative error of the coordinates.
    pub error: f64,
}

/// Heights must be certain to this fraction, else the caller goes another way.
const HEIGHT_TOLERANCE: f64 = 1e-11;

/// For every exponent the sum `n! vol [t^alpha]` over the polytope, and the same with absolute values of the coordinates.
pub(crate) type Sums = Vec<[f64; 2]>;

/// The sums over all exponents, or nothing if the heights are not certain enough.
pub(crate) fn generating_sums(polytope: &LocalPolytope, exponents: &Exponents) -> Option<(Sums, ConversionError)> {
    let (heights, relative) = heights(polytope)?;
    let faces = &polytope.lattice.faces;
    let mut uses = vec![0usize; faces.len()];
    faces.iter().flat_map(|face| &face.opposite).for_each(|facet| uses[*facet] += 1);
    // Tables are freed as soon as the last face above has used them.
    let mut tables: Vec<Sums> = vec![Vec::new(); faces.len()];
    let mut spare: Vec<Sums> = Vec::new();
    let mut next_height = 0;
    for (at, face) in faces.iter().enumerate() {
        let mut table = spare.pop().unwrap_or_else(|| vec![[0.0; 2]; exponents.len()]);
        table.fill([0.0; 2]);
        if face.dimension == 0 {
            table[0] = [1.0; 2];
        }
        for facet in &face.opposite {
            let height = heights[next_height];
            next_height += 1;
            for (sum, part) in table.iter_mut().zip(&tables[*facet]) {
                sum[0] += height * part[0];
                sum[1] += height * part[1];
            }
            uses[*facet] -= 1;
            if uses[*facet] == 0 {
                spare.push(std::mem::take(&mut tables[*facet]));
            }
        }
        sweep(&mut table, &polytope.corners[face.apex], exponents);
        tables[at] = table;
    }
    let error = ConversionError { coordinate: polytope.error, size: relative };
    Some((tables.pop()?, error))
}

/// Multiplies by 1 / (1 - <t, v>).
fn sweep(table: &mut [[f64; 2]], vertex: &[f64], exponents: &Exponents) {
    let pairs: Vec<[f64; 2]> = vertex.iter().map(|x| [*x, x.abs()]).collect();
    for at in 1..table.len() {
        let mut sum = table[at];
        for (v, from) in pairs.iter().zip(exponents.predecessors(at)) {
            if *from != NONE {
                let g = table[*from as usize];
                sum[0] += v[0] * g[0];
                sum[1] += v[1] * g[1];
            }
        }
        table[at] = sum;
    }
}

/// The heights c(F, G), face by face in order, and a bound on the relative error of their products.
///
/// Every face carries an orthonormal basis of its directions, found by Gram-Schmidt (twice) from the basis of its first facet.
/// `tilt` bounds how far the computed span is from the true one; a height h of a vector w is then certain up to
/// `(|w| (tilt + rounding) + error of w) / h`.
fn heights(polytope: &LocalPolytope) -> Option<(Vec<f64>, f64)> {
    let faces = &polytope.lattice.faces;
    let n = polytope.corners.first().map_or(0, Vec::len);
    let rounding = 8.0 * (n as f64 + 2.0) * f64::EPSILON;
    let mut bases: Vec<Vec<Vec<f64>>> = Vec::with_capacity(faces.len());
    let mut tilts: Vec<f64> = Vec::with_capacity(faces.len());
    let mut heights = Vec::with_capacity(polytope.lattice.pair_count());
    // Products run over one height per dimension.
    let mut worst = vec![0.0f64; n + 1];
    for face in faces {
        let apex = &polytope.corners[face.apex];
        let (mut basis, mut tilt) = (Vec::new(), 0.0);
        for (k, facet) in face.opposite.iter().enumerate() {
            let base = &polytope.corners[faces[*facet].apex];
            let mut w: Vec<f64> = apex.iter().zip(base).map(|(a, b)| a - b).collect();
            let length = norm(&w);
            let inherited: f64 = apex.iter().zip(base).map(|(a, b)| (a.abs() + b.abs()) * polytope.error).sum();
            for _ in 0..2 {
                for q in &bases[*facet] {
                    let along: f64 = q.iter().zip(&w).map(|(a, b)| a * b).sum();
                    w.iter_mut().zip(q).for_each(|(x, a)| *x -= along * a);
                }
            }
            let height = norm(&w);
            let doubt = length * (tilts[*facet] + rounding) + inherited;
            let relative = doubt / height;
            if !(relative <= HEIGHT_TOLERANCE) {
                return None;
            }
            worst[face.dimension] = worst[face.dimension].max(relative);
            heights.push(height);
            if k == 0 {
                w.iter_mut().for_each(|x| *x /= height);
                basis = bases[*facet].clone();
                basis.push(w);
                tilt = tilts[*facet] + relative;
            }
        }
        bases.push(basis);
        tilts.push(tilt);
    }
    Some((heights, 1.01 * worst.iter().sum::<f64>()))
}

fn norm(w: &[f64]) -> f64 {
    w.iter().map(|x| x * x).sum::<f64>().sqrt()
}
