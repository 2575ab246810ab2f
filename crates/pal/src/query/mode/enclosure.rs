//! A polynomial on a box as a sum of products of Chebyshev polynomials, with a bound on its rounding error.
//!
//! With `x` in [-1, 1]^n running through the box, `f(x) = sum_a c_a T_a(x)` up to `error`; verified numerics calls this
//! a Chebyshev model. On a smaller box the coefficients shrink like `scale^|a|`, which is what makes `|c_a|` a good
//! bound of a term there.

use super::chebyshev_basis::ChebyshevBasis;
use super::restriction::Restriction;

const EPS: f64 = f64::EPSILON;

/// A polynomial known up to an error: coefficients for all exponents of the basis up to a total degree.
#[derive(Clone)]
pub(super) struct PolynomialEnclosure {
    pub coefficients: Vec<f64>,
    /// The largest difference between the true polynomial and this one on the box.
    pub error: f64,
}

impl PolynomialEnclosure {
    /// Restricts the polynomial to the part `scale x + shift` of the box along one axis.
    pub fn restrict(&mut self, basis: &ChebyshevBasis, axis: usize, scale: f64, shift: f64) {
        let len = self.coefficients.len();
        let degree = basis.axis_degree(axis, basis.degree(len));
        let restriction = Restriction::new(scale, shift, degree);
        let mut buffer = vec![0.0; 2 * (degree + 1)];
        let (fibre, out) = buffer.split_at_mut(degree + 1);
        for positions in basis.fibres(axis, len) {
            let (fibre, out) = (&mut fibre[..positions.len()], &mut out[..positions.len()]);
            fibre.iter_mut().zip(positions).for_each(|(c, p)| *c = self.coefficients[*p as usize]);
            self.error += restriction.apply(fibre, out);
            out.iter().zip(positions).for_each(|(c, p)| self.coefficients[*p as usize] = *c);
        }
    }

    /// The sums of `|c_a|` by total degree.
    pub fn sizes(&self, basis: &ChebyshevBasis) -> Vec<f64> {
        let size = |level: std::ops::Range<usize>| self.coefficients[level].iter().map(|c| c.abs()).sum();
        basis.levels(self.coefficients.len()).map(size).collect()
    }

    /// Drops the highest degrees as long as their coefficients add up to no more than `allowance`, and adds them to the
    /// error.
    pub fn truncate(&mut self, basis: &ChebyshevBasis, sizes: &mut Vec<f64>, allowance: f64) {
        let mut tail = 0.0;
        // The bounds use the degrees up to 2.
        while sizes.len() > 3 && tail + sizes[sizes.len() - 1] <= allowance {
            tail += sizes.pop().expect("there are more than 3 sizes");
        }
        self.error += tail;
        self.coefficients.truncate(basis.up_to(sizes.len() - 1));
    }

    /// Value, gradient and Hessian at a point.
    pub fn jet(&self, basis: &ChebyshevBasis, x: &[f64]) -> Jet {
        let n = basis.dimension;
        let tables = ChebyshevTables::new(x, basis.degree(self.coefficients.len()));
        let mut jet = Jet { value: 0.0, gradient: vec![0.0; n], hessian: vec![0.0; n * n] };
        // behind[j]: the product of the factors of axes j and above.
        let mut behind = vec![1.0; n + 1];
        for (c, a) in self.coefficients.iter().zip(basis.exponents.iter()) {
            for j in (0..n).rev() {
                behind[j] = behind[j + 1] * tables.value(j, a[j]);
            }
            jet.value += c * behind[0];
            let mut before = *c;
            for i in 0..n {
                if a[i] > 0 {
                    jet.gradient[i] += before * tables.derivative(i, a[i]) * behind[i + 1];
                    jet.hessian[i * n + i] += before * tables.second_derivative(i, a[i]) * behind[i + 1];
                    let mut product = before * tables.derivative(i, a[i]);
                    for j in i + 1..n {
                        jet.hessian[i * n + j] += product * tables.derivative(j, a[j]) * behind[j + 1];
                        product *= tables.value(j, a[j]);
                    }
                }
                before *= tables.value(i, a[i]);
            }
        }
        for i in 0..n {
            for j in 0..i {
                jet.hessian[i * n + j] = jet.hessian[j * n + i];
            }
        }
        jet
    }

    /// The value at a point.
    pub fn value(&self, basis: &ChebyshevBasis, x: &[f64]) -> f64 {
        let tables = ChebyshevTables::new(x, basis.degree(self.coefficients.len()));
        let term = |a: &[u16]| a.iter().enumerate().map(|(j, k)| tables.value(j, *k)).product::<f64>();
        self.coefficients.iter().zip(basis.exponents.iter()).map(|(c, a)| c * term(a)).sum()
    }

    /// Bounds on the rounding of [`PolynomialEnclosure::jet`] inside the box: of the value, and of each entry of the
    /// gradient.
    ///
    /// The recurrences of T_k and T_k' lose at most a few k^2 and k^4 ulp.
    pub fn rounding(&self, basis: &ChebyshevBasis, sizes: &[f64]) -> (f64, f64) {
        let terms = self.coefficients.len() as f64;
        let weigh = |(degree, size): (usize, &f64)| {
            let square = (degree * degree) as f64;
            let value = size * (terms + 4.0 * basis.dimension as f64 * (square + 1.0));
            (EPS * value, EPS * value * (square + 1.0))
        };
        sizes.iter().enumerate().map(weigh).fold((0.0, 0.0), |sum, next| (sum.0 + next.0, sum.1 + next.1))
    }
}

/// The 2-jet of a polynomial at a point: value, gradient and Hessian.
#[derive(Clone)]
pub(super) struct Jet {
    pub value: f64,
    pub gradient: Vec<f64>,
    /// The Hessian, row by row.
    pub hessian: Vec<f64>,
}

/// T_k, T_k' and T_k'' at one point per axis.
struct ChebyshevTables {
    stride: usize,
    entries: Vec<[f64; 3]>,
}

impl ChebyshevTables {
    fn new(x: &[f64], degree: usize) -> ChebyshevTables {
        let stride = degree + 1;
        let mut entries = Vec::with_capacity(stride * x.len());
        for x in x {
            let (mut below, mut here) = ([*x, 1.0, 0.0], [1.0, 0.0, 0.0]);
            for _ in 0..stride {
                entries.push(here);
                let next = [
                    2.0 * x * here[0] - below[0],
                    2.0 * (here[0] + x * here[1]) - below[1],
                    2.0 * (2.0 * here[1] + x * here[2]) - below[2],
                ];
                (below, here) = (here, next);
            }
        }
        ChebyshevTables { stride, entries }
    }

    fn value(&self, axis: usize, k: u16) -> f64 {
        self.entries[axis * self.stride + usize::from(k)][0]
    }

    fn derivative(&self, axis: usize, k: u16) -> f64 {
        self.entries[axis * self.stride + usize::from(k)][1]
    }

    fn second_derivative(&self, axis: usize, k: u16) -> f64 {
        self.entries[axis * self.stride + usize::from(k)][2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moments::Exponents;

    fn example() -> (Exponents, Vec<f64>) {
        let exponents = Exponents::closure(3, [vec![3, 2, 0], vec![1, 1, 4], vec![0, 5, 1]]).unwrap();
        let coefficients = (0..exponents.len()).map(|k| ((k * 37 % 19) as f64 - 9.0) / (k + 1) as f64).collect();
        (exponents, coefficients)
    }

    #[test]
    fn derivatives_agree_with_differences() {
        let (exponents, coefficients) = example();
        let basis = ChebyshevBasis::new(&exponents);
        let enclosure = PolynomialEnclosure { coefficients, error: 0.0 };
        let x = [0.3, -0.6, 0.8];
        let jet = enclosure.jet(&basis, &x);
        assert!((jet.value - enclosure.value(&basis, &x)).abs() < 1e-14);
        for i in 0..3 {
            let step = 1e-5;
            let (mut up, mut down) = (x, x);
            (up[i], down[i]) = (x[i] + step, x[i] - step);
            let (up, down) = (enclosure.jet(&basis, &up), enclosure.jet(&basis, &down));
            assert!(((up.value - down.value) / (2.0 * step) - jet.gradient[i]).abs() < 1e-7);
            for j in 0..3 {
                let difference = (up.gradient[j] - down.gradient[j]) / (2.0 * step);
                assert!((difference - jet.hessian[i * 3 + j]).abs() < 1e-7, "{i} {j}");
            }
        }
    }

    #[test]
    fn restriction_and_truncation_keep_the_polynomial_within_the_error() {
        let (exponents, coefficients) = example();
        let basis = ChebyshevBasis::new(&exponents);
        let parent = PolynomialEnclosure { coefficients, error: 0.0 };
        let mut part = parent.clone();
        let map = [(0.25, 0.5), (0.01, -0.3), (0.5, -0.5)];
        for (axis, (scale, shift)) in map.iter().enumerate() {
            part.restrict(&basis, axis, *scale, *shift);
        }
        assert!(part.error < 1e-12);
        let agree = |part: &PolynomialEnclosure| {
            for x in [[0.0, 0.0, 0.0], [1.0, -1.0, 1.0], [-0.2, 0.9, 0.4]] {
                let y: Vec<f64> = map.iter().zip(x).map(|((scale, shift), x)| scale * x + shift).collect();
                let (here, there) = (part.value(&basis, &x), parent.value(&basis, &y));
                assert!((here - there).abs() <= part.error + 1e-15, "{here} {there}");
            }
        };
        agree(&part);
        let mut sizes = part.sizes(&basis);
        let before = part.coefficients.len();
        part.truncate(&basis, &mut sizes, 1e-2);
        assert!(part.coefficients.len() < before && part.error <= 1e-2 + 1e-12);
        assert_eq!(sizes.len(), part.sizes(&basis).len());
        agree(&part);
    }
}
