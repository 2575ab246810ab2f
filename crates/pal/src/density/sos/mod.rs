//! Sums of squares of polynomials.
//!
//! ```text
//! q(y)  =  sum_k  w_k (u_k . phi(y))^2,        I = sum_k w_k u_k^T G u_k,        G = integral of phi phi^T over the constraint
//! ```
//!
//! with phi a basis of the polynomials of total degree at most d, or of the span of a seeded random choice among its members. The parameters
//! of one density are, for each of the K squares, one logit (w is their softmax) and the coefficients u: `K (N + 1)` numbers.
//!
//! Raw monomials are hopelessly ill-conditioned beyond degree 7 or so. By default the basis is orthonormal on the constraint itself: starting
//! from Legendre polynomials on the box, G = L L^T is factored and phi replaced by L^-1 phi; first with G from moments, then once more
//! with G from the values of phi at cubature nodes, which removes what rounding left ("twice is enough").

mod basis;
mod form;
mod pieces;

use std::sync::Arc;

use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

use super::Settings;
use super::domain::Domain;
use super::error::DensityError;
use super::family::{Expansion, Family, Form};
use super::mesh::{Degree, Mesh};
use super::pieces::Pieces;
use super::rules::Rules;
use super::weights::{log_softmax, log_sum_exp, power_of_two};
use crate::moments::Exponents;
use crate::random::Stream;
use crate::region::Region;
use form::GramForm;
use pieces::{Layout, SquaredPieces};

/// Which polynomials the coefficients refer to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Orthonormal on the constraint, relative to the volume of the box around it.
    #[default]
    Orthonormal,
    /// Products of Legendre polynomials, orthonormal on the box around the constraint.
    Legendre,
    /// Monomials with the paper's reparametrisation: `u_i = sign(z_i) (sqrt(|z_i| + 0.1) - sqrt(0.1)) / sqrt(G_ii)`. For comparison.
    Monomial,
}

/// A random choice among the members of a basis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subset {
    /// How many; the constant is always among them.
    pub terms: usize,
    /// The same seed chooses the same.
    pub seed: u64,
}

/// What to compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SosSettings {
    /// Total degree of the polynomials that are squared.
    pub degree: u16,
    /// Number of squares.
    pub components: usize,
    /// The basis.
    #[serde(default)]
    pub basis: Basis,
    /// All members of the basis, or some.
    #[serde(default)]
    pub subset: Option<Subset>,
}

/// How well a basis is conditioned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditioning {
    /// Largest over smallest eigenvalue of the Gram matrix of the basis that was started from: Legendre polynomials on the box, or monomials
    /// scaled to unit length.
    pub start: f64,
    /// The same for the basis in use.
    pub basis: f64,
    /// The largest deviation of the Gram matrix of the basis in use from the identity, computed from values at cubature nodes.
    pub orthonormality: f64,
}

/// Beyond this loss of digits a Gram matrix is computed from values instead of moments.
const MOMENTS_CONDITION: f64 = 1e4;
/// The largest number of members of a basis.
const MAX_BASIS: usize = 5_000;

/// A compiled family of sums of squares.
#[derive(Clone, Debug)]
pub struct SumOfSquares {
    settings: SosSettings,
    domain: Arc<Domain>,
    exponents: Arc<Exponents>,
    double: Arc<Exponents>,
    layout: Arc<Layout>,
    /// Members of the basis in Chebyshev products.
    rows: DMatrix<f64>,
    /// Squared size of the rows: how many digits cancel in them.
    growth: f64,
    form: GramForm,
}

impl SumOfSquares {
    /// Cuts the region into pieces and makes the basis.
    pub fn compile(region: &Region, settings: &SosSettings) -> Result<SumOfSquares, DensityError> {
        let (domain, exponents) = SumOfSquares::prepare(region, settings)?;
        let chosen = choose(&exponents, settings.subset);
        let rules = Rules::new(domain.dimension(), degree(settings));
        let mesh = &domain.mesh;
        let by_moments = |rows: &DMatrix<f64>| {
            basis::gram_from_moments(mesh, &exponents, rows, &rules, &[])
                .unwrap_or_else(|| basis::gram_from_values(mesh, &exponents, rows, &rules, &[]))
        };
        let by_values = |rows: &DMatrix<f64>| basis::gram_from_values(mesh, &exponents, rows, &rules, &[]);
        let (rows, gram) = match settings.basis {
            Basis::Orthonormal => {
                let mut rows = basis::legendre(&exponents, &chosen);
                let gram = by_moments(&rows);
                basis::whiten(&mut rows, gram);
                for _ in 0..3 {
                    if growth(&rows) < 100.0 {
                        break;
                    }
                    let gram = by_values(&rows);
                    let off = basis::deviation(&gram);
                    let sound = basis::whiten(&mut rows, gram);
                    if sound && off < 1e-6 {
                        break;
                    }
                }
                (rows, None)
            }
            Basis::Legendre => {
                let rows = basis::legendre(&exponents, &chosen);
                let gram = by_moments(&rows);
                (rows, Some(gram))
            }
            Basis::Monomial => {
                let mut rows = basis::monomials(&exponents, &chosen, domain.grid());
                for _ in 0..2 {
                    let gram = by_values(&rows);
                    for (i, mut row) in rows.row_iter_mut().enumerate() {
                        row /= gram[(i, i)].sqrt();
                    }
                }
                let gram = by_values(&rows);
                (rows, Some(gram))
            }
        };
        if rows.iter().chain(gram.iter().flat_map(|gram| gram.iter())).any(|x| !x.is_finite()) {
            let message = format!("degree {} is too high for this region in doubles; lower it", settings.degree);
            return Err(DensityError::Settings(message));
        }
        SumOfSquares::assemble(settings, domain, exponents, rows, gram)
    }

    /// With the basis from a file.
    pub(super) fn restore(
        region: &Region,
        settings: &SosSettings,
        rows: (&[usize], Vec<f64>),
        gram: Option<Vec<f64>>,
    ) -> Result<SumOfSquares, DensityError> {
        let (domain, exponents) = SumOfSquares::prepare(region, settings)?;
        let size = choose(&exponents, settings.subset).len();
        let fits = rows.0 == [size, exponents.len()]
            && gram.is_some() == (settings.basis != Basis::Orthonormal)
            && gram.as_ref().is_none_or(|gram| gram.len() == size * size);
        if !fits {
            let message = format!(
                "the basis has shape {:?}, but constraint and settings ask for [{size}, {}]", rows.0, exponents.len()
            );
            return Err(DensityError::Settings(message));
        }
        let rows = DMatrix::from_row_slice(size, exponents.len(), &rows.1);
        let gram = gram.map(|gram| DMatrix::from_row_slice(size, size, &gram));
        SumOfSquares::assemble(settings, domain, exponents, rows, gram)
    }

    fn prepare(region: &Region, settings: &SosSettings) -> Result<(Arc<Domain>, Exponents), DensityError> {
        let fail = |message: String| Err(DensityError::Settings(message));
        if settings.components == 0 || settings.components > 100_000 {
            return fail(format!("{} components; give between 1 and 100000", settings.components));
        }
        let n = region.dimension();
        let ends = Domain::ends(region)?;
        let exponents = match Exponents::total_degree(n, settings.degree) {
            Ok(exponents) if exponents.len() <= MAX_BASIS && Rules::feasible(n, degree(settings)) => exponents,
            _ => {
                return fail(format!(
                    "degree {} in {n} variables has too many monomials or needs too many cubature nodes; lower the degree",
                    settings.degree
                ));
            }
        };
        if let Some(subset) = settings.subset
            && (subset.terms == 0 || subset.terms > exponents.len())
        {
            return fail(format!("{} terms of {}; give between 1 and all of them", subset.terms, exponents.len()));
        }
        let edges = ends.into_iter().map(|(low, high)| vec![low, high]).collect();
        let grid = Domain::make_grid(region.constraint(), edges)?;
        Ok((Arc::new(Domain::new(region, &grid)?), exponents))
    }

    fn assemble(
        settings: &SosSettings,
        domain: Arc<Domain>,
        exponents: Exponents,
        rows: DMatrix<f64>,
        gram: Option<DMatrix<f64>>,
    ) -> Result<SumOfSquares, DensityError> {
        let double = Exponents::total_degree(exponents.dimension(), 2 * settings.degree)
            .map_err(|error| DensityError::Settings(error.to_string()))?;
        let form = GramForm { gram, size: rows.nrows(), length: rows.nrows() + exponents.len() };
        Ok(SumOfSquares {
            settings: *settings,
            domain,
            layout: Arc::new(Layout::new(&exponents)),
            exponents: Arc::new(exponents),
            double: Arc::new(double),
            growth: growth(&rows),
            rows,
            form,
        })
    }

    /// Members of the basis.
    pub fn basis_len(&self) -> usize {
        self.rows.nrows()
    }

    /// Condition numbers and the error of orthonormality, computed anew.
    pub fn conditioning(&self) -> Conditioning {
        let rules = Rules::new(self.domain.dimension(), degree(&self.settings));
        let gram = |rows: &DMatrix<f64>| basis::gram_from_values(&self.domain.mesh, &self.exponents, rows, &rules, &[]);
        let here = gram(&self.rows);
        let start = match self.settings.basis {
            Basis::Monomial => here.clone(),
            _ => gram(&basis::legendre(&self.exponents, &choose(&self.exponents, self.settings.subset))),
        };
        Conditioning {
            start: basis::condition(start),
            orthonormality: basis::deviation(&here),
            basis: basis::condition(here),
        }
    }

    fn params_per_component(&self) -> usize {
        self.rows.nrows() + 1
    }

    fn logits(&self, params: &[f64]) -> Vec<f64> {
        params.chunks(self.params_per_component()).map(|part| part[0]).collect()
    }

    /// The coefficients that parameters stand for, and their slopes.
    fn reparametrised(&self, z: f64) -> (f64, f64) {
        match self.settings.basis {
            // Rows have unit length, so the paper's division by sqrt(G_ii) is done already.
            Basis::Monomial => {
                let root = (z.abs() + 0.1).sqrt();
                (z.signum() * (root - 0.1f64.sqrt()), 0.5 / root)
            }
            _ => (z, 1.0),
        }
    }

    fn scale(&self, params: &[f64]) -> f64 {
        let u: Vec<f64> = params[1..].iter().map(|z| self.reparametrised(*z).0).collect();
        power_of_two(&u)
    }
}

fn degree(settings: &SosSettings) -> Degree {
    let twice = 2 * usize::from(settings.degree);
    Degree { total: twice, axis: twice }
}

/// The largest squared length of a row: what rounding errors of moments are multiplied by.
fn growth(rows: &DMatrix<f64>) -> f64 {
    rows.row_iter().map(|row| row.norm_squared()).fold(0.0, f64::max)
}

/// Positions of the chosen exponents, in order; the constant first.
fn choose(exponents: &Exponents, subset: Option<Subset>) -> Vec<usize> {
    let Some(subset) = subset else { return (0..exponents.len()).collect() };
    let mut stream = Stream::new(subset.seed, 0);
    let mut others: Vec<usize> = (1..exponents.len()).collect();
    // The first places of a shuffle.
    let wanted = (subset.terms - 1).min(others.len());
    for k in 0..wanted {
        let pick = k + (stream.unit() * (others.len() - k) as f64) as usize;
        others.swap(k, pick);
    }
    others.truncate(wanted);
    others.push(0);
    others.sort_unstable();
    others
}

impl Family for SumOfSquares {
    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    fn num_params(&self) -> usize {
        self.settings.components * self.params_per_component()
    }

    fn num_components(&self) -> usize {
        self.settings.components
    }

    fn degree(&self) -> Degree {
        degree(&self.settings)
    }

    /// Per component the coefficients in the basis, then those in Chebyshev products.
    fn expand(&self, params: &[f64]) -> Expansion {
        let mut expansion = Expansion::default();
        for params in params.chunks(self.params_per_component()) {
            let scale = self.scale(params);
            let u = DVector::from_iterator(
                self.rows.nrows(),
                params[1..].iter().map(|z| self.reparametrised(*z).0 / scale),
            );
            expansion.coefficients.extend(u.iter());
            expansion.coefficients.extend(self.rows.tr_mul(&u).iter());
            expansion.log_scales.push(2.0 * scale.ln());
        }
        expansion
    }

    fn pull_back(&self, params: &[f64], coefficients: &[f64], gradient: &mut [f64]) {
        let per = self.params_per_component();
        let parts = params.chunks(per).zip(coefficients.chunks(self.form.length)).zip(gradient.chunks_mut(per));
        for ((params, from), to) in parts {
            let scale = self.scale(params);
            let (in_basis, in_products) = from.split_at(self.rows.nrows());
            let through = &self.rows * DVector::from_column_slice(in_products);
            for (((to, z), a), b) in to[1..].iter_mut().zip(&params[1..]).zip(in_basis).zip(through.iter()) {
                *to += (a + b) * self.reparametrised(*z).1 / scale;
            }
        }
    }

    fn log_weights(&self, params: &[f64], log_integrals: &[f64]) -> Vec<f64> {
        let weights = log_softmax(&self.logits(params));
        let total = log_sum_exp(weights.iter().zip(log_integrals).map(|(w, i)| w + i));
        if total == f64::NEG_INFINITY {
            return vec![total; weights.len()];
        }
        weights.iter().map(|w| w - total).collect()
    }

    fn pull_back_weights(
        &self,
        params: &[f64],
        log_integrals: &[f64],
        weights: &[f64],
        gradient: &mut [f64],
        integrals: &mut [f64],
    ) {
        let logits = self.logits(params);
        let terms = logits.iter().zip(log_integrals).map(|(w, i)| w + i);
        let total = log_sum_exp(terms.clone());
        if total == f64::NEG_INFINITY {
            return;
        }
        let sum: f64 = weights.iter().sum();
        for ((k, term), g) in terms.enumerate().zip(weights) {
            let share = (term - total).exp();
            gradient[k * self.params_per_component()] += g - sum * share;
            integrals[k] -= sum * share;
        }
    }

    fn add_gradient(&self, coefficients: &[f64], _bin: &[u32], t: &[f64], weights: &[f64], gradient: &mut [f64]) {
        let mut tables = basis::Tables::new(&self.exponents);
        tables.fill(t);
        let products: Vec<f64> = self.exponents.iter().map(|alpha| tables.product(alpha)).collect();
        let size = self.rows.nrows();
        let parts = coefficients.chunks(self.form.length).zip(gradient.chunks_mut(self.form.length)).zip(weights);
        for ((coefficients, gradient), weight) in parts.filter(|(_, weight)| **weight != 0.0) {
            let value: f64 = coefficients[size..].iter().zip(&products).map(|(c, p)| c * p).sum();
            let slope = 2.0 * weight * value;
            gradient[size..].iter_mut().zip(&products).for_each(|(g, p)| *g += slope * p);
        }
    }

    fn pieces(&self, expansion: &Expansion) -> Arc<dyn Pieces> {
        let size = self.rows.nrows();
        let parts = expansion.coefficients.chunks(self.form.length).map(|part| &part[size..]);
        Arc::new(SquaredPieces {
            layout: self.layout.clone(),
            arranged: parts.clone().flat_map(|part| self.layout.arrange(part)).collect(),
            plain: parts.flatten().copied().collect(),
            components: self.settings.components,
            exponents: self.exponents.clone(),
            double: self.double.clone(),
        })
    }

    fn normaliser(&self) -> &dyn Form {
        &self.form
    }

    fn form(&self, mesh: &Mesh, powers: &[u16]) -> Result<Box<dyn Form>, DensityError> {
        let extra: usize = powers.iter().map(|p| usize::from(*p)).sum();
        let wanted = degree(&self.settings).times(extra);
        if !Rules::feasible(mesh.dimension(), wanted) {
            return Err(DensityError::Settings(format!("powers {powers:?} need too many cubature nodes")));
        }
        let rules = Rules::new(mesh.dimension(), wanted);
        let from_moments = if self.growth < MOMENTS_CONDITION {
            basis::gram_from_moments(mesh, &self.exponents, &self.rows, &rules, powers)
        } else {
            None
        };
        let gram = from_moments
            .unwrap_or_else(|| basis::gram_from_values(mesh, &self.exponents, &self.rows, &rules, powers));
        Ok(Box::new(GramForm { gram: Some(gram), ..self.form.clone() }))
    }

    fn settings(&self) -> Settings {
        Settings::Sos(self.settings)
    }

    fn tensors(&self) -> Vec<(&'static str, Vec<usize>, Vec<f64>)> {
        let by_rows = |matrix: &DMatrix<f64>| (vec![matrix.nrows(), matrix.ncols()], matrix.transpose().as_slice().to_vec());
        let (shape, values) = by_rows(&self.rows);
        let mut tensors = vec![("basis", shape, values)];
        if let Some(gram) = &self.form.gram {
            let (shape, values) = by_rows(gram);
            tensors.push(("gram", shape, values));
        }
        tensors
    }
}
