//! Triangles of a region with the kernels that reach into them, for what is not linear in the mixture.

use super::KernelFamily;
use super::head::KernelRow;
use super::triweight::HEIGHT;

/// A triangle of the region in coordinates of the box.
#[derive(Clone, Debug)]
pub(super) struct Triangle {
    pub corners: [[f64; 2]; 3],
    /// The kernels that may be positive in it.
    pub kernels: Vec<u32>,
}

/// The largest positive second derivative of the triweight, and the largest absolute first derivative, both relative to
/// its height: `-6 + 36 s - 30 s^2` at `s = 3/5`, and `6 sqrt(s) (1 - s)^2` at `s = 1/5`.
const CURVATURE: f64 = 4.8;
const SLOPE: f64 = 1.718;

impl Triangle {
    /// The region as triangles.
    pub fn all(family: &KernelFamily, row: &KernelRow) -> Vec<Triangle> {
        let everything: Vec<u32> = (0..row.kernels.len() as u32).filter(|k| row.weights[*k as usize] > 0.0).collect();
        let mut found = Vec::new();
        for piece in &family.0.pieces {
            for pair in piece.corners[1..].windows(2) {
                let mut triangle =
                    Triangle { corners: [piece.corners[0], pair[0], pair[1]], kernels: everything.clone() };
                if triangle.area() > 0.0 {
                    triangle.forget_far_kernels(row);
                    found.push(triangle);
                }
            }
        }
        found
    }

    pub fn area(&self) -> f64 {
        let [a, b, c] = self.corners;
        0.5 * ((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))
    }

    pub fn centre(&self) -> [f64; 2] {
        let [a, b, c] = self.corners;
        [0, 1].map(|j| (a[j] + b[j] + c[j]) / 3.0)
    }

    /// Both halves, cut across the longest side.
    pub fn halves(&self, row: &KernelRow) -> [Triangle; 2] {
        let length = |k: usize| {
            let (a, b) = (self.corners[k], self.corners[(k + 1) % 3]);
            (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2)
        };
        let longest = (0..3).max_by(|a, b| length(*a).total_cmp(&length(*b))).unwrap_or(0);
        let [a, b, c] = [0, 1, 2].map(|k| self.corners[(longest + k) % 3]);
        let middle = [0, 1].map(|j| 0.5 * (a[j] + b[j]));
        [[a, middle, c], [middle, b, c]].map(|corners| {
            let mut half = Triangle { corners, kernels: self.kernels.clone() };
            half.forget_far_kernels(row);
            half
        })
    }

    /// The ends of the triangle in coordinates of a kernel, along both axes.
    fn reach(&self, row: &KernelRow, kernel: u32) -> [[f64; 2]; 2] {
        let view = row.kernels[kernel as usize].view();
        let corners = self.corners.map(|corner| view.to_kernel(corner));
        [0, 1].map(|j| {
            let values = corners.map(|corner| corner[j]);
            [
                values.iter().copied().fold(f64::INFINITY, f64::min),
                values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            ]
        })
    }

    fn forget_far_kernels(&mut self, row: &KernelRow) {
        let mut kernels = std::mem::take(&mut self.kernels);
        kernels.retain(|k| self.reach(row, *k).iter().all(|[low, high]| *low < 1.0 && *high > -1.0));
        self.kernels = kernels;
    }

    /// Whether some kernel of more than a weight is much smaller than the triangle, so that few nodes could miss it.
    pub fn hides_kernels(&self, row: &KernelRow, weight: f64) -> bool {
        let hidden = |k: &u32| {
            row.weights[*k as usize] > weight && self.reach(row, *k).iter().any(|[low, high]| high - low > 2.0)
        };
        self.kernels.iter().any(hidden)
    }

    /// The density before it is normalised at a point of the triangle.
    pub fn density(&self, family: &KernelFamily, row: &KernelRow, v: [f64; 2]) -> f64 {
        let kernels = self.kernels.iter().map(|k| *k as usize);
        let sum: f64 = kernels.map(|k| row.weights[k] * row.kernels[k].density(v)).sum();
        sum + row.uniform / family.0.whole_volume
    }

    /// An upper bound of the density before it is normalised: the smaller one of two bounds. One adds up the largest
    /// value of every kernel. The other is the tangent plane at the centre and a bound on the curvature.
    pub fn upper(&self, family: &KernelFamily, row: &KernelRow) -> f64 {
        let uniform = row.uniform / family.0.whole_volume;
        let centre = self.centre();
        let (mut largest, mut value, mut slope, mut bend) = (uniform, uniform, [0.0; 2], 0.0);
        for k in self.kernels.iter().map(|k| *k as usize) {
            let (kernel, weight) = (&row.kernels[k], row.weights[k]);
            let view = kernel.view();
            let volume = weight * view.inverse[0] * view.inverse[2];
            let nearest = self.reach(row, k as u32).map(|[low, high]| low.max(0.0).max(-high));
            largest += volume * nearest.map(super::triweight::value).iter().product::<f64>();
            if let Some((density, gradient)) = kernel.density_with_gradient(centre) {
                value += weight * density;
                (0..2).for_each(|j| slope[j] -= weight * gradient.place[j]);
            }
            let from = view.to_kernel(centre);
            let steps = self.corners.map(|corner| {
                let to = view.to_kernel(corner);
                let [a, b] = [to[0] - from[0], to[1] - from[1]];
                CURVATURE * (a * a + b * b) + 2.0 * SLOPE * SLOPE * (a * b).abs()
            });
            bend += 0.5 * volume * HEIGHT * HEIGHT * steps.iter().copied().fold(0.0, f64::max);
        }
        let rises = self.corners.map(|corner| slope[0] * (corner[0] - centre[0]) + slope[1] * (corner[1] - centre[1]));
        let tangent = value + rises.iter().copied().fold(0.0, f64::max) + bend;
        // Sums of some hundred numbers, each with a few roundings.
        largest.min(tangent) * (1.0 + 1e-13)
    }
}
