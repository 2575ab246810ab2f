//! Sums of squares of polynomials (PAL paper, Eq. 3).
//!
//! ```text
//! q(y)  =  sum_k  w_k (u_k . phi(y))^2
//! I     =  sum_k  w_k u_k^T G u_k,        G = integral of phi phi^T over the constraint
//! ```
//!
//! with phi a basis of the polynomials of total degree at most d, or some of its members, chosen at random by a seed.
//! A density is given, for each of the K squares, by one logit (w is their softmax) and the coefficients u: `K (N + 1)`
//! numbers. The parameters are differences to an offset (module `offset`): the constant 1, and a part that tells
//! squares apart where there are several.
//!
//! Raw monomials are hopelessly ill-conditioned beyond degree 7 or so, and so are Legendre polynomials on the box where
//! the constraint leaves out its corners. By default the basis is orthonormal on the constraint itself; then G is the
//! identity and a random u is a reasonable density. The module `basis` makes it, and `local` says how it is stored.

mod basis;
mod form;
mod functions;
mod kernel;
mod local;
mod patches;
mod recipe;
mod settings;

use std::sync::{Arc, OnceLock};

use nalgebra::{DMatrix, DVector, DVectorView};

use super::cubature::MeshCubature;
use super::error::DensityError;
use super::file::{FileError, FileTensors, NamedTensor};
use super::functions::Differentiable;
use super::kind::{Compile, Expansion, FamilyKind, Form};
use super::knots::equally_spaced;
use super::mesh::{Degree, Mesh};
use super::occupied::OccupiedBins;
use super::offset::member;
use super::parts::SupportParts;
use super::patches::PatchSearch;
use super::registry::Settings;
use super::row_kernel::RowKernel;
use super::support::{Ends, Support};
use super::weights::{log_sum_exp, mixture_weights, power_of_two};
use crate::moments::Exponents;
use crate::random::Stream;
use crate::region::Region;
use form::GramForm;
use functions::{Layout, SquaredFunctions};
use kernel::SquaresOnParts;
use local::{Measure, Tables};
use patches::SquaresPatches;
pub use recipe::SumOfSquaresRecipe;
pub use settings::{Basis, Subset, SumOfSquaresSettings};

/// How well a basis is conditioned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditioning {
    /// The condition number of the Gram matrix of the starting basis: Legendre polynomials on the box, or monomials
    /// scaled to unit length.
    pub start: f64,
    /// The condition number of the Gram matrix of the basis in use.
    pub basis: f64,
    /// The largest deviation of the Gram matrix of the basis in use from the identity, computed from values at cubature
    /// nodes.
    pub orthonormality: f64,
}

/// Bins are halved until the sums of squared coefficients of the basis stay below this, so that at most 5 or 6 of 16
/// digits cancel in a value.
const GROWTH: f64 = 1e11;
/// Where sums of squared coefficients exceed this, the basis is made orthonormal once more, from values.
const STRAIGHT: f64 = 1e3;
/// Where bins cannot be halved any more, a basis that is further from orthonormal than this is refused.
const ORTHONORMAL: f64 = 1e-10;
/// The largest number of bins per axis.
const MAX_BINS: usize = 16;
/// The largest number of bins in all, empty ones included.
const MAX_ALL_BINS: usize = 1 << 22;
/// The largest number of coefficients of a basis on all bins.
const MAX_COEFFICIENTS: usize = 12_000_000;
/// The largest number of members of a basis.
const MAX_BASIS: usize = 5_000;

/// The basis, bin by bin: the constants of a compiled family.
#[derive(Debug)]
pub(super) struct Tensors {
    exponents: Exponents,
    /// The exponents of the squares.
    double: Exponents,
    layout: Layout,
    bins: OccupiedBins,
    /// For each occupied bin the coefficients in Chebyshev products, one member of the basis per column.
    functions: Vec<DMatrix<f64>>,
}

impl Tensors {
    /// The number of members of the basis.
    fn size(&self) -> usize {
        self.functions.first().map_or(0, |f| f.ncols())
    }

    /// The length of the gradient of one component: coefficients in the basis, then in Chebyshev products on each bin.
    fn gradient_len(&self) -> usize {
        self.size() + self.bins.len() * self.exponents.len()
    }
}

/// A compiled family of sums of squares.
#[derive(Clone, Debug)]
pub struct SumOfSquares {
    settings: SumOfSquaresSettings,
    support: Arc<Support>,
    tensors: Arc<Tensors>,
    form: GramForm,
    offset: Arc<[f64]>,
    patches: OnceLock<Arc<SquaresPatches>>,
}

impl SumOfSquares {
    fn prepare(region: &Region, settings: &SumOfSquaresSettings) -> Result<(Exponents, Exponents, Ends), DensityError> {
        let fail = |message: String| Err(DensityError::Settings(message));
        if settings.components == 0 || settings.components > 100_000 {
            return fail(format!("{} components; give between 1 and 100000", settings.components));
        }
        let n = region.dimension();
        let ends = Support::ends(region)?;
        let sets = (
            Exponents::total_degree(n, settings.total_degree()),
            Exponents::total_degree(n, settings.total_degree().saturating_mul(2)),
        );
        let (exponents, double) = match sets {
            (Ok(exponents), Ok(double))
                if exponents.len() <= MAX_BASIS && MeshCubature::feasible(n, degree(settings)) =>
            {
                (exponents, double)
            }
            _ => {
                return fail(format!(
                    "degree {} in {n} variables has too many monomials or needs too many cubature nodes; \
                     lower the degree",
                    settings.total_degree()
                ));
            }
        };
        if let Some(subset) = settings.subset
            && (subset.terms == 0 || subset.terms > exponents.len())
        {
            return fail(format!("{} terms of {}; give between 1 and all of them", subset.terms, exponents.len()));
        }
        Ok((exponents, double, ends))
    }

    /// The support with the box cut into this many equal bins along every axis.
    fn support_with(region: &Region, ends: &Ends, count: usize) -> Result<Arc<Support>, DensityError> {
        let edges = ends.iter().map(|ends| equally_spaced(ends, count + 1));
        let grid = Support::make_grid(region.constraint(), edges.collect())?;
        Ok(Arc::new(Support::new(region, &grid)?))
    }

    fn assemble(
        settings: &SumOfSquaresSettings,
        support: Arc<Support>,
        (exponents, double): (Exponents, Exponents),
        bins: OccupiedBins,
        functions: Vec<DMatrix<f64>>,
        gram: Option<DMatrix<f64>>,
    ) -> SumOfSquares {
        let layout = Layout::new(&exponents);
        let tensors = Tensors { exponents, double, layout, bins, functions };
        let form = GramForm { gram, size: tensors.size(), gradient_len: tensors.gradient_len() };
        let offset = offset(settings, &form);
        let patches = OnceLock::new();
        SumOfSquares { settings: *settings, support, tensors: Arc::new(tensors), form, offset, patches }
    }

    /// The constants with which a tensor framework computes log-densities by itself.
    pub fn recipe(&self) -> SumOfSquaresRecipe {
        SumOfSquaresRecipe {
            components: self.settings.components,
            degree: self.settings.total_degree(),
            size: self.tensors.size(),
            // It is symmetric: rows are columns.
            gram: self.form.gram.as_ref().map(|gram| gram.as_slice().to_vec()),
            reparametrised: self.settings.basis == Basis::Monomial,
            log_volume: self.support.grid().log_volume(),
        }
    }

    /// The number of members of the basis.
    pub fn basis_len(&self) -> usize {
        self.tensors.size()
    }

    /// Condition numbers and the error of orthonormality, computed anew.
    pub fn conditioning(&self) -> Conditioning {
        let rules = MeshCubature::new(self.support.dimension(), degree(&self.settings));
        let Tensors { exponents, bins, functions, .. } = &*self.tensors;
        let measure = Measure { mesh: self.support.mesh(), bins, rules: &rules, powers: &[] };
        let here = measure.gram_of_values(functions, exponents);
        let start = match self.settings.basis {
            Basis::Monomial => here.clone(),
            _ => measure.gram_of_values(&basis::legendre(exponents, self.support.grid(), bins), exponents),
        };
        Conditioning {
            start: local::condition(start),
            orthonormality: local::deviation(&here),
            basis: local::condition(here),
        }
    }

    fn params_per_component(&self) -> usize {
        self.tensors.size() + 1
    }

    /// The coefficient that a parameter stands for, and its derivative.
    fn reparametrised(&self, z: f64) -> (f64, f64) {
        match self.settings.basis {
            // Rows have unit length, so the paper's division by sqrt(G_ii) is done already.
            Basis::Monomial => {
                let root = (z.abs() + 0.1).sqrt();
                // The difference of the two roots, without cancellation.
                (z / (root + 0.1f64.sqrt()), 0.5 / root)
            }
            _ => (z, 1.0),
        }
    }

    fn scale(&self, params: &[f64]) -> f64 {
        let u: Vec<f64> = params[1..].iter().map(|z| self.reparametrised(*z).0).collect();
        power_of_two(&u)
    }
}

/// Squares of the constant 1 and a part of one other member of the basis, which differs from square to square.
fn offset(settings: &SumOfSquaresSettings, form: &GramForm) -> Arc<[f64]> {
    let square = |member: usize| form.gram.as_ref().map_or(1.0, |gram| gram[(member, member)]);
    let per = form.size + 1;
    let mut offset = vec![0.0; settings.components * per];
    for (k, row) in offset.chunks_mut(per).enumerate() {
        row[1] = 1.0;
        if let Some((member, part)) = member(k, settings.components, form.size) {
            let scale = (square(0) / square(member)).sqrt();
            // A damaged file may hold any Gram matrix.
            row[1 + member] = part * if scale.is_finite() { scale } else { 1.0 };
        }
        if settings.basis == Basis::Monomial {
            // The inverse of the reparametrisation.
            row[1..].iter_mut().for_each(|u| *u *= u.abs() + 2.0 * 0.1f64.sqrt());
        }
    }
    offset.into()
}

fn degree(settings: &SumOfSquaresSettings) -> Degree {
    let twice = 2 * usize::from(settings.total_degree());
    Degree { total: twice, axis: twice }
}

/// Whether a box may be cut into this many bins along every axis.
fn bins_allowed(count: usize, dimension: usize) -> bool {
    let all = count.checked_pow(dimension as u32);
    (1..=MAX_BINS).contains(&count) && all.is_some_and(|all| all <= MAX_ALL_BINS)
}

fn too_high(settings: &SumOfSquaresSettings) -> DensityError {
    DensityError::Settings(format!(
        "degree {} is too high for this region in float64; lower it",
        settings.total_degree()
    ))
}

/// Scales functions to unit length and returns their Gram matrix.
fn normalise(functions: &mut [DMatrix<f64>], measure: &Measure, exponents: &Exponents) -> DMatrix<f64> {
    for _ in 0..2 {
        let gram = measure.gram_of_values(functions, exponents);
        for functions in functions.iter_mut() {
            functions.column_iter_mut().enumerate().for_each(|(i, mut column)| column /= gram[(i, i)].sqrt());
        }
    }
    measure.gram_of_values(functions, exponents)
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

impl SumOfSquares {
    /// The Gram matrix of the basis on elements of the same grid, times a monomial in the coordinates of the box.
    fn gram(&self, mesh: &Mesh, powers: &[u16]) -> Result<DMatrix<f64>, DensityError> {
        let extra: usize = powers.iter().map(|p| usize::from(*p)).sum();
        let wanted = degree(&self.settings).times(extra);
        if !MeshCubature::feasible(mesh.dimension(), wanted) {
            return Err(DensityError::Settings(format!("powers {powers:?} need too many cubature nodes")));
        }
        let rules = MeshCubature::new(mesh.dimension(), wanted);
        let Tensors { exponents, double, bins, functions, .. } = &*self.tensors;
        let measure = Measure { mesh, bins, rules: &rules, powers };
        // With large coefficients a small integral would lose all its digits unnoticed.
        Ok(measure.careful_gram(functions, exponents, &measure.pairs(exponents, double)))
    }
}

impl Compile for SumOfSquares {
    type Settings = SumOfSquaresSettings;

    fn compile(region: &Region, settings: &SumOfSquaresSettings) -> Result<SumOfSquares, DensityError> {
        let settings = &settings.chosen(region.dimension());
        let (exponents, double, ends) = SumOfSquares::prepare(region, settings)?;
        let chosen = choose(&exponents, settings.subset);
        let rules = MeshCubature::new(region.dimension(), degree(settings));
        let mut count = 1;
        loop {
            let support = SumOfSquares::support_with(region, &ends, count)?;
            let bins = OccupiedBins::new(support.mesh());
            let measure = Measure { mesh: support.mesh(), bins: &bins, rules: &rules, powers: &[] };
            let finer = 2 * count;
            let room = (bins.len() << region.dimension()) * exponents.len().pow(2) <= MAX_COEFFICIENTS;
            let retry = settings.basis == Basis::Orthonormal && bins_allowed(finer, region.dimension()) && room;
            let pairs = match settings.basis {
                Basis::Orthonormal => measure.pairs(&exponents, &double),
                _ => Vec::new(),
            };
            let made = match settings.basis {
                Basis::Orthonormal => {
                    let limit = if retry { GROWTH } else { f64::INFINITY };
                    basis::orthonormal(&exponents, support.grid(), &bins, &pairs, limit)
                }
                Basis::Legendre => Some(basis::legendre(&exponents, support.grid(), &bins)),
                Basis::Monomial => Some(basis::monomials(&exponents, support.grid(), &bins)),
            };
            let functions = match made {
                Some(mut functions) => {
                    if settings.basis == Basis::Orthonormal && basis::growth(&functions) > STRAIGHT {
                        // Values of the functions lose half as many digits as products of their coefficients.
                        let gram = measure.careful_gram(&functions, &exponents, &pairs);
                        basis::straighten(&mut functions, &gram).ok_or_else(|| too_high(settings))?;
                    }
                    if basis::growth(&functions) > GROWTH {
                        let off = local::deviation(&measure.careful_gram(&functions, &exponents, &pairs));
                        if !(off < ORTHONORMAL) {
                            return Err(too_high(settings));
                        }
                    }
                    functions
                }
                None if retry => {
                    count = finer;
                    continue;
                }
                None => return Err(too_high(settings)),
            };
            let mut functions: Vec<DMatrix<f64>> = functions.iter().map(|f| f.select_columns(&chosen)).collect();
            let gram = match settings.basis {
                Basis::Orthonormal => None,
                Basis::Legendre => Some(measure.gram(&functions, &exponents, &double)),
                Basis::Monomial => Some(normalise(&mut functions, &measure, &exponents)),
            };
            let all = functions.iter().chain(&gram).flat_map(|matrix| matrix.iter());
            if all.into_iter().any(|x| !x.is_finite()) {
                return Err(too_high(settings));
            }
            return Ok(SumOfSquares::assemble(settings, support, (exponents, double), bins, functions, gram));
        }
    }

    fn restore(
        region: &Region,
        settings: &SumOfSquaresSettings,
        tensors: &mut FileTensors,
    ) -> Result<SumOfSquares, FileError> {
        let settings = &settings.chosen(region.dimension());
        let (shape, basis) = tensors.take("basis")?;
        let gram = tensors.take_optional("gram").map(|(_, gram)| gram);
        let count = tensors.take("bins")?.1.first().map_or(0, |bins| *bins as usize);
        let (exponents, double, ends) = SumOfSquares::prepare(region, settings)?;
        let size = choose(&exponents, settings.subset).len();
        let wrong = || {
            let message =
                format!("the basis in the file has shape {shape:?}, which does not go with constraint and settings");
            FileError::Content(message)
        };
        let [slots, columns, rows] = &shape[..] else { return Err(wrong()) };
        if [*columns, *rows] != [size, exponents.len()] || !bins_allowed(count, region.dimension()) {
            return Err(wrong());
        }
        let support = SumOfSquares::support_with(region, &ends, count)?;
        let bins = OccupiedBins::new(support.mesh());
        let fits = bins.len() == *slots
            && gram.is_some() == (settings.basis != Basis::Orthonormal)
            && gram.as_ref().is_none_or(|gram| gram.len() == size * size)
            && basis.len() == slots * columns * rows;
        if !fits {
            return Err(wrong());
        }
        let functions = basis.chunks(rows * columns).map(|part| DMatrix::from_column_slice(*rows, *columns, part));
        let functions: Vec<DMatrix<f64>> = functions.collect();
        let gram = gram.map(|gram| DMatrix::from_row_slice(size, size, &gram));
        // The first member is constant: its square over its integral is one over the volume.
        let square = gram.as_ref().map_or(1.0, |gram| gram[(0, 0)]);
        if functions.iter().any(|f| !support.mesh().is_volume(square / f[(0, 0)].powi(2))) {
            return Err(wrong());
        }
        Ok(SumOfSquares::assemble(settings, support, (exponents, double), bins, functions, gram))
    }
}

impl FamilyKind for SumOfSquares {
    fn support(&self) -> &Arc<Support> {
        &self.support
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

    fn offset(&self) -> &[f64] {
        &self.offset
    }

    fn gradient_len(&self) -> usize {
        self.settings.components * self.tensors.gradient_len()
    }

    fn expand(&self, params: &[f64]) -> Expansion {
        let mut expansion = Expansion::default();
        for params in params.chunks(self.params_per_component()) {
            let scale = self.scale(params);
            expansion.coefficients.extend(params[1..].iter().map(|z| self.reparametrised(*z).0 / scale));
            expansion.log_scales.push(2.0 * scale.ln());
        }
        expansion
    }

    fn pull_back(&self, params: &[f64], from: &[f64], gradient: &mut [f64]) {
        let (per, size) = (self.params_per_component(), self.tensors.size());
        let length = self.tensors.exponents.len();
        let parts = params.chunks(per).zip(from.chunks(self.tensors.gradient_len())).zip(gradient.chunks_mut(per));
        for ((params, from), to) in parts {
            let scale = self.scale(params);
            let (in_basis, on_bins) = from.split_at(size);
            let mut sum = DVector::from_column_slice(in_basis);
            for (functions, part) in self.tensors.functions.iter().zip(on_bins.chunks(length)) {
                if part.iter().any(|g| *g != 0.0) {
                    sum += functions.tr_mul(&DVectorView::from_slice(part, length));
                }
            }
            for ((to, z), g) in to[1..].iter_mut().zip(&params[1..]).zip(sum.iter()) {
                *to += g * self.reparametrised(*z).1 / scale;
            }
        }
    }

    fn log_weights(&self, params: &[f64], log_integrals: &[f64]) -> Vec<f64> {
        let weights = mixture_weights(params, self.params_per_component(), log_integrals);
        let total = log_sum_exp(weights.iter().zip(log_integrals).map(|(w, i)| w + i));
        if total == f64::NEG_INFINITY {
            return vec![total; weights.len()];
        }
        // A square that vanishes takes no part, however large its logit: infinity times 0 would be no number.
        let kept = weights.iter().zip(log_integrals);
        kept.map(|(w, i)| if *i == f64::NEG_INFINITY { *i } else { w - total }).collect()
    }

    fn pull_back_weights(
        &self,
        params: &[f64],
        log_integrals: &[f64],
        weights: &[f64],
        gradient: &mut [f64],
        integrals: &mut [f64],
    ) {
        let mixture = mixture_weights(params, self.params_per_component(), log_integrals);
        let terms = mixture.iter().zip(log_integrals).map(|(w, i)| w + i);
        let total = log_sum_exp(terms.clone());
        if total == f64::NEG_INFINITY {
            return;
        }
        let sum: f64 = weights.iter().sum();
        for ((k, term), g) in terms.enumerate().zip(weights) {
            let fraction = (term - total).exp();
            gradient[k * self.params_per_component()] += g - sum * fraction;
            integrals[k] -= sum * fraction;
        }
    }

    fn functions(&self, expansion: &Expansion) -> Arc<dyn Differentiable> {
        Arc::new(SquaredFunctions {
            tensors: self.tensors.clone(),
            coefficients: expansion.coefficients.clone(),
            components: self.settings.components,
            local: vec![OnceLock::new(); self.tensors.bins.len()],
        })
    }

    fn normaliser(&self) -> &dyn Form {
        &self.form
    }

    fn form(&self, mesh: &Mesh, powers: &[u16]) -> Result<Box<dyn Form>, DensityError> {
        Ok(Box::new(GramForm { gram: Some(self.gram(mesh, powers)?), ..self.form.clone() }))
    }

    fn normaliser_tensor(&self, mesh: &Mesh, powers: &[u16]) -> Result<Vec<f64>, DensityError> {
        // It is symmetric: rows are columns.
        Ok(self.gram(mesh, powers)?.as_slice().to_vec())
    }

    fn form_len(&self) -> f64 {
        (self.tensors.size() as f64).powi(2)
    }

    fn num_features(&self) -> usize {
        self.tensors.size()
    }

    fn features(&self, bin: &[super::BinIndex], t: &[f64], orders: &[u16], out: &mut [f64]) {
        out.fill(0.0);
        let (mut bin, mut t) = (bin.to_vec(), t.to_vec());
        self.tensors.bins.enter(&mut bin, &mut t);
        let Some(slot) = self.tensors.bins.slot(&bin) else { return };
        let mut tables = Tables::new(&self.tensors.exponents);
        tables.fill_derivatives(&t, orders);
        let products = DVector::from_iterator(
            self.tensors.exponents.len(),
            self.tensors.exponents.iter().map(|exponents| tables.product(exponents)),
        );
        let scale = self.support.grid().derivative_scale(&bin, orders);
        let features = self.tensors.functions[slot].tr_mul(&products);
        out.iter_mut().zip(features.iter()).for_each(|(out, feature)| *out = feature * scale);
    }

    fn kernel_f32(&self) -> Option<&dyn RowKernel<f32>> {
        Some(self)
    }

    fn kernel_f64(&self) -> Option<&dyn RowKernel<f64>> {
        Some(self)
    }

    fn kernel_on_parts_f32(&self, parts: &SupportParts<'_>) -> Option<Box<dyn RowKernel<f32>>> {
        Some(Box::new(SquaresOnParts::new(self, parts)?))
    }

    fn kernel_on_parts_f64(&self, parts: &SupportParts<'_>) -> Option<Box<dyn RowKernel<f64>>> {
        Some(Box::new(SquaresOnParts::new(self, parts)?))
    }

    fn patches(&self) -> Option<&dyn PatchSearch> {
        if let Some(known) = self.patches.get() {
            return Some(&**known);
        }
        // Made before the cell is locked: a thread that waits for others here may be given work that asks for the same.
        let rules = MeshCubature::new(self.support.dimension(), degree(&self.settings));
        let made = Arc::new(SquaresPatches::new(self.support.mesh(), &self.tensors, self.form.clone(), &rules));
        Some(&**self.patches.get_or_init(|| made))
    }

    fn patches_within(&self, mesh: &Mesh) -> Result<Option<Box<dyn PatchSearch>>, DensityError> {
        let rules = MeshCubature::new(self.support.dimension(), degree(&self.settings));
        let form = GramForm { gram: Some(self.gram(mesh, &[])?), ..self.form.clone() };
        Ok(Some(Box::new(SquaresPatches::new(mesh, &self.tensors, form, &rules))))
    }

    fn start(&self, _clusters: &[Vec<f64>], noise: &mut Stream) -> Vec<f64> {
        let square = |_| {
            // The constant comes first: a flat density. The rest tells the squares apart.
            let mut row: Vec<f64> = (0..self.params_per_component()).map(|_| 0.1 * noise.normal()).collect();
            (row[0], row[1]) = (0.0, 1.0);
            row
        };
        (0..self.settings.components).flat_map(square).collect()
    }

    fn wants_scaled_start(&self) -> bool {
        self.settings.basis == Basis::Monomial
    }

    fn settings(&self) -> Settings {
        Settings::SumOfSquares(self.settings)
    }

    fn description(&self) -> String {
        let plural = if self.settings.components == 1 { "" } else { "s" };
        let SumOfSquaresSettings { components, .. } = self.settings;
        format!("sum of squares: degree {}, {components} component{plural}", self.settings.total_degree())
    }

    fn tensors(&self) -> Vec<NamedTensor> {
        let Tensors { exponents, bins, functions, .. } = &*self.tensors;
        let count = self.support.grid().axes()[0].bins();
        let shape = vec![bins.len(), self.tensors.size(), exponents.len()];
        let basis = functions.iter().flat_map(|f| f.iter().copied()).collect();
        let mut tensors = vec![
            NamedTensor { name: "basis", shape, values: basis },
            NamedTensor { name: "bins", shape: vec![1], values: vec![count as f64] },
        ];
        if let Some(gram) = &self.form.gram {
            let shape = vec![gram.nrows(), gram.ncols()];
            tensors.push(NamedTensor { name: "gram", shape, values: gram.transpose().as_slice().to_vec() });
        }
        tensors
    }
}
