//! Triangulation and volume, from incidence alone.
//!
//! A face is triangulated by pulling its first vertex: it is joined with the triangulations of the facets of the face
//! that do not contain it (see [`super::lattice`]). The triangulations of neighbouring faces fit together.

use super::lattice::Lattice;
use super::polytope::Polytope;
use super::{pulling, vertex_sum};
use crate::interrupt::checkpoint;
use crate::linear_algebra::determinant;
use crate::number::{Integer, Rational, factorial};

impl Polytope {
    /// Simplices with disjoint interiors whose union is the polytope, each as `n + 1` indices of vertices.
    ///
    /// ```
    /// use pal::{formula::reals, region::Region};
    /// let [x, y] = reals(["x", "y"]);
    /// let square = x.between(0, 1) & y.between(0, 1);
    /// let cells = Region::new(&square.into()).unwrap().decompose().unwrap();
    /// assert_eq!(cells[0].polytope().triangulate().len(), 2);
    /// ```
    pub fn triangulate(&self) -> Vec<Vec<usize>> {
        Lattice::new(self).simplices()
    }

    /// The exact volume; 0 for a polytope of smaller dimension than its space.
    pub fn exact_volume(&self) -> Rational {
        let n = self.dimension();
        if self.flat < n {
            return Rational::ZERO;
        }
        // Sums over vertices need no faces at all; next to a simplex there are fewer faces than vertices.
        let simple = self.incidence.iter().all(|facets| facets.len() == n);
        let many = simple && self.vertices.len() > 4 * (n + 1);
        let by_faces = if many { None } else { pulling::exact_size(self, false) };
        let size = by_faces.or_else(|| vertex_sum::exact_size(self)).or_else(|| pulling::exact_size(self, true));
        let size = size.expect("any number of faces can be measured");
        size / Rational::from(factorial(n))
    }

    /// `n!` times the exact volume of a simplex of vertices: the determinant of their homogeneous coordinates over the
    /// product of the denominators.
    pub(crate) fn exact_size(&self, simplex: &[usize]) -> Rational {
        let points: Vec<_> = simplex.iter().map(|v| self.space.exact(&self.vertices[*v])).collect();
        let rows = points.iter().map(|p| p.numerators.iter().chain([&p.denominator]).cloned().collect());
        let size = determinant(rows.collect());
        let scale = points.iter().fold(Integer::ONE, |product, p| product * &p.denominator);
        Rational::from_parts_signed(if size < Integer::ZERO { -size } else { size }, scale)
    }

    /// The volume in float64, from the vertices in float64.
    pub fn volume(&self) -> f64 {
        let n = self.dimension();
        if self.flat < n {
            return 0.0;
        }
        let n_factorial = (1..=n).map(|k| k as f64).product::<f64>();
        let simplices = self.triangulate();
        simplices.iter().map(|s| self.simplex_determinant(s).abs()).sum::<f64>() / n_factorial
    }

    /// `n!` times the signed volume of a simplex of vertices, in float64, by elimination with row pivoting.
    pub(crate) fn simplex_determinant(&self, simplex: &[usize]) -> f64 {
        let n = self.dimension();
        let base = self.vertices[simplex[0]].coordinates();
        let mut rows: Vec<Vec<f64>> = simplex[1..]
            .iter()
            .map(|v| self.vertices[*v].coordinates().iter().zip(base).map(|(x, b)| x - b).collect())
            .collect();
        let mut product = 1.0;
        for k in 0..n {
            let best =
                (k..n).max_by(|i, j| rows[*i][k].abs().total_cmp(&rows[*j][k].abs())).expect("rows k..n are left");
            if rows[best][k] == 0.0 {
                return 0.0;
            }
            if best != k {
                rows.swap(k, best);
                product = -product;
            }
            product *= rows[k][k];
            let (done, below) = rows.split_at_mut(k + 1);
            for row in below {
                let factor = row[k] / done[k][k];
                for (x, p) in row[k..].iter_mut().zip(&done[k][k..]) {
                    *x -= factor * p;
                }
            }
        }
        product
    }
}

impl Lattice {
    /// The simplices of the pulling triangulation.
    pub fn simplices(&self) -> Vec<Vec<usize>> {
        let mut simplices = Vec::new();
        // Faces still to be triangulated, with the apexes already chosen on the way to them.
        let mut stack = vec![(self.faces.len() - 1, Vec::new())];
        while let Some((at, mut apexes)) = stack.pop() {
            checkpoint();
            let face = &self.faces[at];
            apexes.push(face.apex);
            if face.dimension == 0 {
                simplices.push(apexes);
                continue;
            }
            stack.extend(face.opposite.iter().rev().map(|facet| (*facet, apexes.clone())));
        }
        simplices
    }
}
