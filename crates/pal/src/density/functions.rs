//! The functions that one parameter vector of a family stands for: non-negative piecewise polynomials.

use super::grid::BinIndex;
use super::mesh::Degree;
use crate::moments::Exponents;

/// The components `q_c(y) >= 0` of one density, polynomial on every bin of a grid.
///
/// All queries on a single density are written against this trait and know nothing of families.
pub trait ComponentFunctions: Send + Sync {
    /// The number of components.
    fn components(&self) -> usize;

    /// The degree of every component.
    fn degree(&self) -> Degree;

    /// Computes the values of all components at local coordinates of a bin.
    fn values(&self, bin: &[BinIndex], t: &[f64], out: &mut [f64]);

    /// The value of one component at local coordinates of a bin.
    fn value(&self, component: usize, bin: &[BinIndex], t: &[f64]) -> f64;

    /// The values of one component at many points of a bin, as many as `out` has room for. Their first local coordinates
    /// come first, then the second ones, and so on. The bin holds a part of the support.
    fn values_at_points(&self, component: usize, bin: &[BinIndex], points: &[f64], out: &mut [f64]) {
        let count = out.len();
        let mut t = vec![0.0; bin.len()];
        for (i, out) in out.iter_mut().enumerate() {
            t.iter_mut().enumerate().for_each(|(j, t)| *t = points[j * count + i]);
            *out = self.value(component, bin, &t);
        }
    }

    /// Computes `sum_c weights_c q_c` at many points of a bin, given as in [`ComponentFunctions::values_at_points`].
    fn mixture_at_points(&self, weights: &[f64], bin: &[BinIndex], points: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        let mut values = vec![0.0; out.len()];
        for (component, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
            self.values_at_points(component, bin, points, &mut values);
            out.iter_mut().zip(&values).for_each(|(out, value)| *out += weight * value);
        }
    }

    /// The logarithm of the value of one component. A kind of family whose values may underflow overrides this.
    fn log_value(&self, component: usize, bin: &[BinIndex], t: &[f64]) -> f64 {
        self.value(component, bin, t).ln()
    }

    /// The factor of one component that depends on the coordinate of one axis, if every component is a product of such
    /// factors on a bin: then coordinates are independent inside boxes.
    fn factor(&self, _component: usize, _axis: usize, _bin: &[BinIndex], _t: f64) -> Option<f64> {
        None
    }

    /// Moves a point from a bin that holds no part of the constraint to one that does, if it lies on the edge between
    /// the two. A point on an edge belongs to the bin above it, which may be empty.
    fn enter(&self, _bin: &mut [BinIndex], _t: &mut [f64]) {}
}

/// Component functions that know their coefficients in Chebyshev polynomials.
pub trait ChebyshevSeries: ComponentFunctions {
    /// The exponents of [`ChebyshevSeries::chebyshev`].
    fn chebyshev_exponents(&self) -> &Exponents;

    /// The coefficients of `sum_c weights_c q_c` on a bin in products of Chebyshev polynomials `T_a(2 t - 1)`, in the
    /// order of [`ChebyshevSeries::chebyshev_exponents`].
    fn chebyshev(&self, bin: &[BinIndex], weights: &[f64]) -> Vec<f64>;
}

/// Component functions that know how they depend on the coefficients of their family.
pub trait Differentiable: ChebyshevSeries {
    /// Adds to `gradient` the derivative of `sum_c weights_c q_c` at a point with respect to the coefficients.
    fn add_gradient(&self, bin: &[BinIndex], t: &[f64], weights: &[f64], gradient: &mut [f64]);

    /// Adds to `gradient` the derivative of `sum_i factors_i sum_c weights_c q_c(point_i)` with respect to the
    /// coefficients, and to `sums` what every component contributes to this sum. The points of one bin are given as in
    /// [`ComponentFunctions::values_at_points`].
    fn add_gradient_at_points(
        &self,
        bin: &[BinIndex],
        points: &[f64],
        factors: &[f64],
        weights: &[f64],
        sums: &mut [f64],
        gradient: &mut [f64],
    ) {
        let count = factors.len();
        let (mut t, mut scaled, mut values) = (vec![0.0; bin.len()], weights.to_vec(), vec![0.0; weights.len()]);
        for (i, factor) in factors.iter().enumerate().filter(|(_, factor)| **factor != 0.0) {
            t.iter_mut().enumerate().for_each(|(j, t)| *t = points[j * count + i]);
            scaled.iter_mut().zip(weights).for_each(|(scaled, weight)| *scaled = factor * weight);
            self.values(bin, &t, &mut values);
            sums.iter_mut().zip(values.iter().zip(&scaled)).for_each(|(sum, (q, w))| *sum += q * w);
            self.add_gradient(bin, &t, &scaled, gradient);
        }
    }
}
