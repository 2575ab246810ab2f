//! Mixtures of products of squared cubic splines (PAL paper, Section 5, with the Hermite scaling corrected).
//!
//! ```text
//! q(y)  =  sum_m  w_m / Z_m  prod_j s_mj(y_j)^2,        Z_m = integral of prod_j s_mj(y_j)^2 over the constraint
//! ```
//!
//! with cubic Hermite splines s_mj on K_j knots per axis. A density is given by theta: for each of the M mixture
//! components, one logit (w is the softmax of the logits of all components that have mass) and for each axis K_j values
//! and K_j derivatives at the knots: `M (2 K n + 1)` numbers. Derivatives are per mean distance of the knots. The knots
//! span the box around the constraint. The parameters are differences to an offset, whose splines are positive and vary
//! gently (module `offset`); that of a single component is the constant 1.

mod blocks;
mod contract;
mod form;
mod form_file;
mod functions;
mod hermite;
mod kernel;
mod nodes;
mod parts;
mod patches;
mod plane;
mod recipe;
mod regions;
mod student_t;

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::error::DensityError;
use super::file::{FileError, FileTensors, NamedTensor};
use super::functions::Differentiable;
use super::grid::BinIndex;
use super::grid::Grid;
use super::kind::{Compile, Expansion, FamilyKind, Form};
use super::knots::{Knots, edges};
use super::mesh::{Degree, Mesh};
use super::offset::Tilt;
use super::parts::SupportParts;
use super::patches::PatchSearch;
use super::registry::Settings;
use super::row_kernel::{KernelPair, RowKernel};
use super::support::Support;
use super::weights::{log_softmax, normalised_mixture, power_of_two, pull_back_normalised_mixture};
use crate::moments::Exponents;
use crate::random::Stream;
use crate::region::Region;
use form::BinForm;
use functions::SplineFunctions;
use hermite::CUBIC;
use kernel::SplineKernel;
use patches::SplinePatches;
pub use recipe::{SplineAxis, SplineRecipe};
pub use regions::{RegionForms, RegionPrecision, TablePrecision};
pub use student_t::shape as student_t_shape;

/// The height of the flat density in every starting component, so that no component begins with zeros.
const FLAT: f64 = 0.1;

/// The largest number of variables: a bin that a wall cuts needs 7^n integrals.
pub const MAX_SPLINE_DIMENSION: usize = 4;

/// The largest number of bins: every one of them that holds a part of the constraint becomes a cell.
const MAX_BINS: usize = 1_000_000;

/// The settings of a [`SplineMixture`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplineSettings {
    /// The knots of every axis. Automatically: 14 per axis, and 6 for four variables, so that tensor frameworks can
    /// write out the normaliser for all bins.
    pub knots: Knots,
    /// The number of components of the mixture.
    pub components: usize,
}

impl Default for SplineSettings {
    /// Eight components on automatically chosen knots.
    fn default() -> SplineSettings {
        SplineSettings { knots: Knots::Automatic, components: 8 }
    }
}

impl SplineSettings {
    /// The same settings with everything automatic chosen for this number of variables.
    pub fn chosen(&self, dimension: usize) -> SplineSettings {
        let automatic = if dimension < MAX_SPLINE_DIMENSION { 14 } else { 6 };
        SplineSettings { knots: self.knots.chosen(automatic), ..self.clone() }
    }

    /// Settings for networks that say where components are and how wide, rather than giving all parameters: closer
    /// knots, because a component can be about as narrow as half of their distance.
    pub fn for_heads(dimension: usize) -> SplineSettings {
        let knots = match dimension {
            1 | 2 => 40,
            3 => 14,
            _ => 6,
        };
        SplineSettings { knots: Knots::Uniform(knots), components: 8 }
    }
}

/// A compiled family of spline mixtures.
///
/// ```
/// use pal::density::{Compile, FamilyKind, Knots, SplineMixture, SplineSettings};
/// use pal::{formula::reals, region::Region};
/// let [x, y] = reals(["x", "y"]);
/// let triangle = Region::new(&(x.ge(0) & y.ge(0) & (&x + &y).le(1)).into())?;
/// let family = SplineMixture::compile(&triangle, &SplineSettings { knots: Knots::Uniform(5), components: 3 })?;
/// assert_eq!(family.num_params(), 3 * (2 * 5 * 2 + 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SplineMixture {
    settings: SplineSettings,
    support: Arc<Support>,
    form: Arc<BinForm<f64>>,
    /// For each axis and bin: the width of the bin divided by the mean width of all bins.
    stretch: Vec<Vec<f64>>,
    exponents: Arc<Exponents>,
    offset: Arc<[f64]>,
    kernels: KernelPair<SplineKernel<f32>, SplineKernel<f64>>,
    patches: OnceLock<Arc<SplinePatches>>,
}

impl SplineMixture {
    /// Checks the settings and cuts the region along the knots.
    fn prepare(region: &Region, settings: &SplineSettings) -> Result<(SplineSettings, Arc<Support>), DensityError> {
        let n = region.dimension();
        let fail = |message: String| Err(DensityError::Settings(message));
        if settings.components == 0 || settings.components > 100_000 {
            return fail(format!("{} components; give between 1 and 100000", settings.components));
        }
        if n > MAX_SPLINE_DIMENSION {
            return fail(format!(
                "spline mixtures need at most {MAX_SPLINE_DIMENSION} variables, the constraint has {n}; \
                 use a sum of squares"
            ));
        }
        let ends = Support::ends(region)?;
        let settings = settings.chosen(n);
        let edges = edges(region.constraint(), &settings.knots, &ends)?;
        let bins = edges.iter().fold(1usize, |product, edges| product.saturating_mul(edges.len() - 1));
        if bins > MAX_BINS {
            return fail(format!("the knots make {bins} bins; at most {MAX_BINS} are possible: use fewer knots"));
        }
        let grid = Support::make_grid(region.constraint(), edges)?;
        Ok((settings, Arc::new(Support::new(region, &grid)?)))
    }

    fn assemble(
        settings: SplineSettings,
        support: Arc<Support>,
        form: BinForm<f64>,
    ) -> Result<SplineMixture, DensityError> {
        let stretch = support.grid().axes().iter().map(|axis| {
            let mean = axis.length() / axis.bins() as f64;
            let uniform = matches!(settings.knots, Knots::Uniform(_));
            axis.bin_indices().map(|bin| if uniform { 1.0 } else { axis.width(bin) / mean }).collect()
        });
        let stretch = stretch.collect();
        let exponents = Exponents::tensor(&vec![6; support.dimension()])
            .map_err(|error| DensityError::Settings(error.to_string()))?;
        let offset = offset(settings.components, support.grid());
        Ok(SplineMixture {
            settings,
            support,
            form: Arc::new(form),
            stretch,
            exponents: Arc::new(exponents),
            offset,
            kernels: KernelPair::default(),
            patches: OnceLock::new(),
        })
    }

    /// The constants with which a tensor framework computes log-densities by itself.
    pub fn recipe(&self) -> SplineRecipe {
        SplineRecipe {
            components: self.settings.components,
            axes: self.stretch.iter().map(|stretch| nodes::axis(stretch)).collect(),
            form: nodes::dense_form(&self.form),
            log_volume: self.support.grid().log_volume(),
        }
    }

    /// The number of parameters of one component: the logit, then values and derivatives axis by axis.
    fn params_per_component(&self) -> usize {
        1 + self.stretch.iter().map(|bins| 2 * (bins.len() + 1)).sum::<usize>()
    }

    /// The number of coefficients of one component.
    fn length(&self) -> usize {
        CUBIC * self.stretch.iter().map(Vec::len).sum::<usize>()
    }

    /// For each axis the power of two just above the largest coefficient of a component.
    fn scales(&self, coefficients: &[f64]) -> Vec<f64> {
        let mut rest = coefficients;
        let scale = |bins: &Vec<f64>| {
            let (axis, after) = rest.split_at(CUBIC * bins.len());
            rest = after;
            power_of_two(axis)
        };
        self.stretch.iter().map(scale).collect()
    }

    /// Computes the coefficients of one component, before scaling.
    fn expand_component(&self, params: &[f64], out: &mut [f64]) {
        let (mut at, mut start) = (1, 0);
        for stretch in &self.stretch {
            let knots = stretch.len() + 1;
            let (values, derivatives) = params[at..at + 2 * knots].split_at(knots);
            let end = start + CUBIC * stretch.len();
            hermite::expand(values, derivatives, stretch, &mut out[start..end]);
            (at, start) = (at + 2 * knots, end);
        }
    }
}

/// Splines near the roots of densities with small tilts.
fn offset(components: usize, grid: &Grid) -> Arc<[f64]> {
    let axes = grid.axes();
    let mut offset = Vec::new();
    for component in 0..components {
        offset.push(0.0);
        for (j, axis) in axes.iter().enumerate() {
            let tilt = Tilt::new(component, components, j, axes.len());
            let value = |x: &f64| (tilt.value(*x) / 2.0).exp();
            // From the length of the axis to the mean distance of its knots.
            let derivative = |x: &f64| value(x) * tilt.derivative(*x) / 2.0 / axis.bins() as f64;
            offset.extend(axis.edge_fractions().iter().map(value));
            offset.extend(axis.edge_fractions().iter().map(derivative));
        }
    }
    offset.into()
}

impl Compile for SplineMixture {
    type Settings = SplineSettings;

    fn compile(region: &Region, settings: &SplineSettings) -> Result<SplineMixture, DensityError> {
        let (settings, support) = SplineMixture::prepare(region, settings)?;
        let form = BinForm::compile(support.mesh(), &[])?;
        SplineMixture::assemble(settings, support, form)
    }

    fn restore(
        region: &Region,
        settings: &SplineSettings,
        tensors: &mut FileTensors,
    ) -> Result<SplineMixture, FileError> {
        let (settings, support) = SplineMixture::prepare(region, settings)?;
        let form = form_file::read(support.grid(), tensors)?;
        if !support.mesh().is_volume(form.volume()) {
            return Err(FileError::Content("the form in the file does not go with the constraint".to_string()));
        }
        Ok(SplineMixture::assemble(settings, support, form)?)
    }
}

impl FamilyKind for SplineMixture {
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
        Degree { total: 6 * self.support.dimension(), axis: 6 }
    }

    fn offset(&self) -> &[f64] {
        &self.offset
    }

    fn gradient_len(&self) -> usize {
        self.length() * self.settings.components
    }

    fn expand(&self, params: &[f64]) -> Expansion {
        let length = self.length();
        let mut expansion =
            Expansion { coefficients: vec![0.0; length * self.settings.components], log_scales: Vec::new() };
        let parts = params.chunks(self.params_per_component()).zip(expansion.coefficients.chunks_mut(length));
        for (params, coefficients) in parts {
            self.expand_component(params, coefficients);
            let scales = self.scales(coefficients);
            let mut rest = coefficients;
            for (scale, bins) in scales.iter().zip(&self.stretch) {
                let (axis, after) = rest.split_at_mut(CUBIC * bins.len());
                axis.iter_mut().for_each(|b| *b /= scale);
                rest = after;
            }
            expansion.log_scales.push(scales.iter().map(|scale| 2.0 * scale.ln()).sum());
        }
        expansion
    }

    fn pull_back(&self, params: &[f64], coefficients: &[f64], gradient: &mut [f64]) {
        let (per, length) = (self.params_per_component(), self.length());
        let mut unscaled = vec![0.0; length];
        for ((params, from), to) in params.chunks(per).zip(coefficients.chunks(length)).zip(gradient.chunks_mut(per)) {
            self.expand_component(params, &mut unscaled);
            let scales = self.scales(&unscaled);
            let (mut at, mut start) = (1, 0);
            for (stretch, scale) in self.stretch.iter().zip(scales) {
                let knots = stretch.len() + 1;
                let (values, derivatives) = to[at..at + 2 * knots].split_at_mut(knots);
                let end = start + CUBIC * stretch.len();
                hermite::pull_back(&from[start..end], stretch, 1.0 / scale, values, derivatives);
                (at, start) = (at + 2 * knots, end);
            }
        }
    }

    fn log_weights(&self, params: &[f64], log_integrals: &[f64]) -> Vec<f64> {
        normalised_mixture(params, self.params_per_component(), log_integrals)
    }

    fn pull_back_weights(
        &self,
        params: &[f64],
        log_integrals: &[f64],
        weights: &[f64],
        gradient: &mut [f64],
        integrals: &mut [f64],
    ) {
        let per = self.params_per_component();
        pull_back_normalised_mixture(params, per, log_integrals, weights, gradient, integrals);
    }

    fn functions(&self, expansion: &Expansion) -> Arc<dyn Differentiable> {
        let mut start = 0;
        let starts = self.stretch.iter().map(|bins| {
            start += CUBIC * bins.len();
            start - CUBIC * bins.len()
        });
        Arc::new(SplineFunctions {
            starts: starts.collect(),
            length: self.length(),
            components: self.settings.components,
            coefficients: expansion.coefficients.clone(),
            exponents: self.exponents.clone(),
        })
    }

    fn normaliser(&self) -> &dyn Form {
        &*self.form
    }

    fn form(&self, mesh: &Mesh, powers: &[u16]) -> Result<Box<dyn Form>, DensityError> {
        Ok(Box::new(BinForm::compile(mesh, powers)?))
    }

    fn form_len(&self) -> f64 {
        self.form.len() as f64
    }

    fn num_features(&self) -> usize {
        self.params_per_component() - 1
    }

    fn features(&self, bin: &[super::BinIndex], t: &[f64], orders: &[u16], out: &mut [f64]) {
        let scale = self.support.grid().derivative_scale(bin, orders);
        let mut rest = out;
        let total: u16 = orders.iter().sum();
        for (((stretch, bin), t), order) in self.stretch.iter().zip(bin).zip(t).zip(orders) {
            let (axis, after) = rest.split_at_mut(2 * (stretch.len() + 1));
            axis.fill(0.0);
            // Features along an axis do not depend on other coordinates.
            if *order == total {
                nodes::features(bin.get(), *t, *order, scale, stretch, axis);
            }
            rest = after;
        }
    }

    fn normaliser_tensor(&self, mesh: &Mesh, powers: &[u16]) -> Result<Vec<f64>, DensityError> {
        nodes::dense_form(&BinForm::compile(mesh, powers)?).ok_or(DensityError::DenseForm)
    }

    fn log_component_probabilities(&self, theta: &[f64]) -> Option<Vec<f64>> {
        Some(log_softmax(&theta.chunks(self.params_per_component()).map(|part| part[0]).collect::<Vec<f64>>()))
    }

    fn patches(&self) -> Option<&dyn PatchSearch> {
        let made = self.patches.get_or_init(|| Arc::new(SplinePatches::new(self.support.mesh(), self.form.clone())));
        Some(&**made)
    }

    fn patches_within(&self, mesh: &Mesh) -> Result<Option<Box<dyn PatchSearch>>, DensityError> {
        Ok(Some(Box::new(SplinePatches::new(mesh, Arc::new(BinForm::compile(mesh, &[])?)))))
    }

    fn kernel_f32(&self) -> Option<&dyn RowKernel<f32>> {
        Some(self.kernels.f32.get_or_init(|| SplineKernel::new(self)))
    }

    fn kernel_f64(&self) -> Option<&dyn RowKernel<f64>> {
        Some(self.kernels.f64.get_or_init(|| SplineKernel::new(self)))
    }

    fn kernel_on_parts_f32(&self, parts: &SupportParts<'_>) -> Option<Box<dyn RowKernel<f32>>> {
        let forms = parts.forms_of()?;
        Some(Box::new(SplineKernel::on_parts(self, &forms, Some(parts.factors.clone()))))
    }

    fn kernel_on_parts_f64(&self, parts: &SupportParts<'_>) -> Option<Box<dyn RowKernel<f64>>> {
        let forms = parts.forms_of()?;
        Some(Box::new(SplineKernel::on_parts(self, &forms, Some(parts.factors.clone()))))
    }

    fn start(&self, clusters: &[Vec<f64>], noise: &mut Stream) -> Vec<f64> {
        let n = self.support.dimension();
        let (mut bin, mut t) = (vec![BinIndex::default(); n], vec![0.0; n]);
        let mut params = Vec::with_capacity(self.num_params());
        for points in clusters {
            // Every point is shared out between the two knots around it, by the values of the spline's basis there.
            let mut counts: Vec<Vec<f64>> = self.stretch.iter().map(|bins| vec![0.0; bins.len() + 1]).collect();
            for point in points.chunks_exact(n) {
                self.support.grid().locate(point, &mut bin, &mut t);
                for (((counts, stretch), bin), t) in counts.iter_mut().zip(&self.stretch).zip(&bin).zip(&t) {
                    let mut features = vec![0.0; 2 * counts.len()];
                    nodes::features(bin.get(), *t, 0, 1.0, stretch, &mut features);
                    counts.iter_mut().zip(&features).for_each(|(count, feature)| *count += feature.abs());
                }
            }
            params.push(((points.len() / n).max(1) as f64).ln());
            for counts in counts {
                let mean = counts.iter().sum::<f64>() / counts.len() as f64;
                let mean = if mean > 0.0 { mean } else { 1.0 };
                let value = |count: &f64| (count / mean + FLAT).sqrt() * (1.0 + 0.02 * noise.normal());
                params.extend(counts.iter().map(value).collect::<Vec<f64>>());
                params.extend(std::iter::repeat_n(0.0, counts.len()));
            }
        }
        params
    }

    fn settings(&self) -> Settings {
        Settings::Spline(self.settings.clone())
    }

    fn description(&self) -> String {
        let knots = self.settings.knots.description("knot", 0);
        let plural = if self.settings.components == 1 { "" } else { "s" };
        format!("spline mixture: {knots}{} component{plural}", self.settings.components)
    }

    fn tensors(&self) -> Vec<NamedTensor> {
        form_file::tensors(&self.form)
    }
}
