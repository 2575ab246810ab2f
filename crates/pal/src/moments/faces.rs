//! Moments of a polytope without listing its simplices.
//!
//! The generating function of a triangulation is a sum of products over vertices, so it factorises over the face
//! lattice: with the apex v_F of each face F,
//!
//! ```text
//! M_F(t)  =  1 / (1 - <t, v_F>)  *  sum over facets G of F that avoid v_F of  c(F, G) M_G(t)
//! M_v(t)  =  1 / (1 - <t, v>)      for a vertex v
//! ```
//!
//! where c(F, G) is the height of v_F over G. One sweep per face instead of n + 1 per simplex.

use std::collections::HashMap;

use super::exponents::Exponents;
use super::frame::AffineFrame;
use crate::interrupt::checkpoint;
use crate::number::{self, Integer, Rational};
use crate::region::{Lattice, Polytope};

/// A polytope in the coordinates of a frame.
pub(crate) struct LocalPolytope<'l> {
    pub polytope: &'l Polytope,
    pub frame: &'l AffineFrame,
    pub lattice: &'l Lattice,
    pub corners: &'l [Vec<f64>],
}

/// Relative error up to which distances of vertices from walls are taken from float64.
const DISTANCE_TOLERANCE: f64 = 1e-14;

/// What is swept for every exponent: `n! vol [t^alpha]` over the polytope, the same with absolute values of the
/// coordinates, and a bound on what errors of the heights contribute to it. The fourth lane fills the register.
pub(crate) type Lanes = [f64; 4];

/// The sums over all exponents, or nothing if some height is not known at all.
pub(crate) fn generating_sums(polytope: &LocalPolytope, exponents: &Exponents) -> Option<Vec<Lanes>> {
    let heights = heights(polytope)?;
    let faces = &polytope.lattice.faces;
    let mut uses = vec![0usize; faces.len()];
    faces.iter().flat_map(|face| &face.opposite).for_each(|facet| uses[*facet] += 1);
    // Tables are freed as soon as the last face above has used them.
    let mut tables: Vec<Vec<Lanes>> = vec![Vec::new(); faces.len()];
    let mut spare: Vec<Vec<Lanes>> = Vec::new();
    let mut next_height = 0;
    for (at, face) in faces.iter().enumerate() {
        let mut table = spare.pop().unwrap_or_else(|| vec![[0.0; 4]; exponents.len()]);
        table.fill([0.0; 4]);
        if face.dimension == 0 {
            table[0] = [1.0, 1.0, 0.0, 0.0];
        }
        for facet in &face.opposite {
            let (height, doubt) = heights[next_height];
            next_height += 1;
            for (sum, part) in table.iter_mut().zip(&tables[*facet]) {
                sum[0] += height * part[0];
                sum[1] += height * part[1];
                sum[2] += (height + doubt) * part[2] + doubt * part[1];
            }
            uses[*facet] -= 1;
            if uses[*facet] == 0 {
                spare.push(std::mem::take(&mut tables[*facet]));
            }
        }
        sweep(&mut table, &polytope.corners[face.apex], exponents);
        tables[at] = table;
    }
    Some(tables.pop().expect("the polytope itself is a face"))
}

/// Multiplies by 1 / (1 - <t, v>).
fn sweep(table: &mut [Lanes], vertex: &[f64], exponents: &Exponents) {
    checkpoint();
    let lanes: Vec<Lanes> = vertex.iter().map(|x| [*x, x.abs(), x.abs(), 0.0]).collect();
    for at in 1..table.len() {
        let mut sum = table[at];
        for (v, from) in lanes.iter().zip(exponents.predecessors(at)) {
            if let Some(from) = from.position() {
                let g = table[from];
                for lane in 0..4 {
                    sum[lane] += v[lane] * g[lane];
                }
            }
        }
        table[at] = sum;
    }
}

/// The heights c(F, G), face by face in order, each with a bound on its absolute error.
///
/// If G is cut out of F by a wall with normal a, the height of a vertex over G inside F is its distance `|a . v - b|`
/// divided by the length of the part of a that is orthogonal to the walls around F. Walls are input, so errors do not
/// pile up from vertex to vertex. From the polytope down every face carries an orthonormal basis of the normals of its
/// walls, extended by Gram-Schmidt (twice) from a face above it; `tilt` bounds how far the computed span is from the
/// true one, and the face above that leaves the smallest tilt is chosen.
fn heights(local: &LocalPolytope) -> Option<Vec<(f64, f64)>> {
    let faces = &local.lattice.faces;
    let rounding = 8.0 * (local.polytope.dimension() as f64 + 2.0) * f64::EPSILON;
    let normals: Vec<Vec<f64>> = local.wall_normals();
    let mut distances: HashMap<(usize, usize), f64> = HashMap::new();
    let mut above: Vec<Above> = vec![Above::default(); faces.len()];
    above.last_mut().expect("the polytope itself is a face").tilt = 0.0;
    let mut heights: Vec<Vec<(f64, f64)>> = vec![Vec::new(); faces.len()];
    for (at, face) in faces.iter().enumerate().rev() {
        let mut basis = above[at].parent.map_or_else(Vec::new, |parent| above[parent].basis.clone());
        basis.extend(above[at].direction.take());
        let tilt = above[at].tilt;
        for (facet, wall) in face.opposite.iter().zip(&face.walls) {
            let normal = &normals[*wall];
            let length = norm(normal);
            let mut w = normal.clone();
            for _ in 0..2 {
                for q in &basis {
                    let along: f64 = q.iter().zip(&w).map(|(a, b)| a * b).sum();
                    w.iter_mut().zip(q).for_each(|(x, a)| *x -= along * a);
                }
            }
            let left = norm(&w);
            let relative = length * (tilt + rounding) / left;
            // Squares of very small or very large numbers leave the range of float64.
            let safe = (1e-140..1e140).contains(&left) && length < 1e140;
            if !(relative < 0.01 && safe) {
                return None;
            }
            let distance = *distances
                .entry((face.apex, *wall))
                .or_insert_with(|| local.polytope.slack(face.apex, *wall, DISTANCE_TOLERANCE));
            let height = distance / left;
            heights[at].push((height, 1.02 * height * (relative + DISTANCE_TOLERANCE + rounding)));
            if tilt + relative < above[*facet].tilt {
                w.iter_mut().for_each(|x| *x /= left);
                above[*facet] =
                    Above { tilt: tilt + relative, parent: Some(at), direction: Some(w), basis: Vec::new() };
            }
        }
        above[at].basis = basis;
    }
    Some(heights.concat())
}

/// How a face hangs below another one: the best way found so far.
#[derive(Clone)]
struct Above {
    tilt: f64,
    parent: Option<usize>,
    direction: Option<Vec<f64>>,
    basis: Vec<Vec<f64>>,
}

impl Default for Above {
    fn default() -> Self {
        Above { tilt: f64::INFINITY, parent: None, direction: None, basis: Vec::new() }
    }
}

impl LocalPolytope<'_> {
    /// Normals of the walls in the frame, scaled like the walls' own equations: `a_j scale_j`, each entry correctly
    /// rounded.
    fn wall_normals(&self) -> Vec<Vec<f64>> {
        let walls = self.polytope.half_spaces();
        let normal = |(a, _): &(Vec<Integer>, Integer)| {
            let entries = a.iter().zip(&self.frame.scale);
            entries.map(|(a, scale)| number::to_f64(&(Rational::from(a.clone()) * scale))).collect()
        };
        walls.iter().map(normal).collect()
    }
}

fn norm(w: &[f64]) -> f64 {
    w.iter().map(|x| x * x).sum::<f64>().sqrt()
}
