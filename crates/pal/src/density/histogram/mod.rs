//! Mixtures of histograms: densities that are constant on every bin of a grid.
//!
//! ```text
//! q(y)  =  sum_m  w_m / Z_m  prod_j exp(theta_mj[bin_j(y)])
//! Z_m   =  sum over bins b of  vol(b and the constraint) prod_j exp(theta_mj[b_j])
//! ```
//!
//! A density is given, for each of the M components, by one logit (w is the softmax of the logits) and for each axis by
//! the logarithms theta of the weights of its bins: `M (B_1 + .. + B_n + 1)` numbers. The parameters are differences to
//! an offset that tells components apart (module `offset`); it is zero for a single component, whose parameters are
//! theta itself. Zeros are the uniform density, or close to it. One component is a product of histograms of single
//! variables on the constraint; several can describe any histogram of all variables together. It is the baseline that
//! everybody understands, and possible for any number of variables as long as the grid has at most [`MAX_GRID_BINS`]
//! bins.

mod form;
mod functions;
mod kernel;
mod patches;
mod recipe;

use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::error::DensityError;
use super::file::{FileError, FileTensors, NamedTensor};
use super::functions::Differentiable;
use super::kind::{Compile, Expansion, FamilyKind, Form};
use super::knots::{Knots, edges};
use super::mesh::{Degree, Mesh};
use super::occupied::OccupiedBins;
use super::offset::Tilt;
use super::parts::SupportParts;
use super::patches::PatchSearch;
use super::registry::Settings;
use super::row_kernel::{KernelPair, RowKernel};
use super::support::Support;
use super::weights::{log_softmax, normalised_mixture, pull_back_normalised_mixture};
use crate::density::grid::{BinIndex, Grid};
use crate::moments::Exponents;
use crate::random::Stream;
use crate::region::Region;
use form::VolumeForm;
use functions::HistogramFunctions;
use kernel::HistogramKernel;
use patches::HistogramPatches;
pub use recipe::HistogramRecipe;

/// The largest number of bins of the whole grid.
pub const MAX_GRID_BINS: usize = 1_000_000;

/// The weight of the flat density in every starting component, so that no bin begins without weight.
const FLAT: f64 = 0.1;

/// The settings of a [`HistogramMixture`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HistogramSettings {
    /// The ends of the bins of every axis: one knot more than bins. Automatically: 64 bins for one variable, 32 per
    /// axis for two, 12 for three, 6 for four, 4 for five, 3 for six and 2 for more.
    pub knots: Knots,
    /// The number of components of the mixture.
    pub components: usize,
}

impl Default for HistogramSettings {
    /// Eight components on automatically chosen bins.
    fn default() -> HistogramSettings {
        HistogramSettings { knots: Knots::Automatic, components: 8 }
    }
}

impl HistogramSettings {
    /// The same settings with everything automatic chosen for this number of variables.
    pub fn chosen(&self, dimension: usize) -> HistogramSettings {
        let bins = match dimension {
            ..=1 => 64,
            2 => 32,
            3 => 12,
            4 => 6,
            5 => 4,
            6 => 3,
            _ => 2,
        };
        HistogramSettings { knots: self.knots.chosen(bins + 1), ..self.clone() }
    }
}

/// A compiled family of mixtures of histograms.
///
/// ```
/// use pal::density::{Family, HistogramSettings, Knots};
/// use pal::{formula::reals, region::Region};
/// let [x, y] = reals(["x", "y"]);
/// let triangle = Region::new(&(x.ge(0) & y.ge(0) & (&x + &y).le(1)).into())?;
/// let settings = HistogramSettings { knots: Knots::Uniform(3), components: 1 };
/// let family = Family::new(&triangle, &settings.into())?;
/// // A logit, and two bins along each axis. The bins x <= 1/2 weigh three times as much as the others.
/// let density = family.density(&[0.0, 3f64.ln(), 0.0, 0.0, 0.0])?;
/// // Three quarters of the triangle have that weight: 3 * 3/4 of 3 * 3/4 + 1/4.
/// assert!((density.probability(&(2 * &x).le(1))? - 0.9).abs() < 1e-14);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct HistogramMixture {
    settings: HistogramSettings,
    support: Arc<Support>,
    form: VolumeForm,
    occupied: Arc<OccupiedBins>,
    exponents: Arc<Exponents>,
    offset: Arc<[f64]>,
    kernels: KernelPair<HistogramKernel<f32>, HistogramKernel<f64>>,
    patches: OnceLock<Arc<HistogramPatches>>,
}

impl HistogramMixture {
    /// The constants with which a tensor framework computes log-densities by itself.
    pub fn recipe(&self) -> HistogramRecipe {
        HistogramRecipe {
            components: self.settings.components,
            bins: self.bins(),
            form: self.form.dense(),
            log_volume: self.support.grid().log_volume(),
        }
    }

    /// Checks the settings and cuts the region into bins.
    fn prepare(
        region: &Region,
        settings: &HistogramSettings,
    ) -> Result<(HistogramSettings, Arc<Support>), DensityError> {
        let n = region.dimension();
        let fail = |message: String| Err(DensityError::Settings(message));
        if settings.components == 0 || settings.components > 100_000 {
            return fail(format!("{} components; give between 1 and 100000", settings.components));
        }
        let ends = Support::ends(region)?;
        let settings = settings.chosen(n);
        let edges = edges(region.constraint(), &settings.knots, &ends)?;
        let bins = edges.iter().fold(1usize, |bins, edges| bins.saturating_mul(edges.len() - 1));
        if bins > MAX_GRID_BINS {
            let fitting = (MAX_GRID_BINS as f64).powf(1.0 / n as f64).floor();
            return fail(format!(
                "a grid of {bins} bins is too large; at most {MAX_GRID_BINS} are possible, {fitting} per axis"
            ));
        }
        let grid = Support::make_grid(region.constraint(), edges)?;
        Ok((settings, Arc::new(Support::new(region, &grid)?)))
    }

    fn assemble(
        settings: HistogramSettings,
        support: Arc<Support>,
        form: VolumeForm,
    ) -> Result<HistogramMixture, DensityError> {
        let occupied = Arc::new(OccupiedBins::new(support.mesh()));
        let exponents = Exponents::tensor(&vec![0; support.dimension()])
            .map_err(|error| DensityError::Settings(error.to_string()))?;
        let offset = offset(settings.components, support.grid());
        Ok(HistogramMixture {
            settings,
            support,
            form,
            occupied,
            exponents: Arc::new(exponents),
            offset,
            kernels: KernelPair::default(),
            patches: OnceLock::new(),
        })
    }

    /// The number of bins along each axis.
    fn bins(&self) -> Vec<usize> {
        self.support.grid().axes().iter().map(|axis| axis.bins()).collect()
    }

    /// The number of coefficients of one component.
    fn length(&self) -> usize {
        self.support.grid().axes().iter().map(|axis| axis.bins()).sum()
    }

    fn params_per_component(&self) -> usize {
        1 + self.length()
    }
}

/// Small tilts, at the middles of bins.
fn offset(components: usize, grid: &Grid) -> Arc<[f64]> {
    let axes = grid.axes();
    let mut offset = Vec::new();
    for component in 0..components {
        offset.push(0.0);
        for (j, axis) in axes.iter().enumerate() {
            let tilt = Tilt::new(component, components, j, axes.len());
            offset.extend(axis.bin_indices().map(|bin| tilt.value(axis.fraction(bin, 0.5))));
        }
    }
    offset.into()
}

impl Compile for HistogramMixture {
    type Settings = HistogramSettings;

    fn compile(region: &Region, settings: &HistogramSettings) -> Result<HistogramMixture, DensityError> {
        let (settings, support) = HistogramMixture::prepare(region, settings)?;
        let form = VolumeForm::compile(support.mesh(), &[], settings.components)?;
        HistogramMixture::assemble(settings, support, form)
    }

    /// A file needs no tensors: the volumes of the bins come with the mesh, which is made anew in any case.
    fn restore(region: &Region, settings: &HistogramSettings, _: &mut FileTensors) -> Result<Self, FileError> {
        Ok(HistogramMixture::compile(region, settings)?)
    }
}

impl FamilyKind for HistogramMixture {
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
        Degree { total: 0, axis: 0 }
    }

    fn offset(&self) -> &[f64] {
        &self.offset
    }

    fn gradient_len(&self) -> usize {
        self.settings.components * self.length()
    }

    /// The coefficients are logarithms of weights, at most 0 along every axis. The scale makes the largest value on the
    /// support 1, so that no component vanishes because its largest weights are those of empty bins.
    fn expand(&self, params: &[f64]) -> Expansion {
        let mut expansion = Expansion::default();
        for params in params.chunks(self.params_per_component()) {
            let start = expansion.coefficients.len();
            let mut rest = &params[1..];
            let mut log_scale = 0.0;
            for bins in self.bins() {
                let (axis, after) = rest.split_at(bins);
                let largest = axis.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
                expansion.coefficients.extend(axis.iter().map(|theta| theta - largest));
                log_scale += largest;
                rest = after;
            }
            let coefficients = &mut expansion.coefficients[start..];
            let highest = self.form.highest(coefficients);
            // Shifting the first axis shifts all products.
            coefficients[..self.bins()[0]].iter_mut().for_each(|c| *c -= highest);
            log_scale += highest;
            if !log_scale.is_finite() {
                // Parameters near the end of float64: whoever checks the coefficients names them in an error.
                coefficients[0] = f64::NAN;
            }
            expansion.log_scales.push(log_scale);
        }
        expansion
    }

    fn pull_back(&self, _params: &[f64], from: &[f64], gradient: &mut [f64]) {
        let parts = from.chunks(self.length()).zip(gradient.chunks_mut(self.params_per_component()));
        for (from, to) in parts {
            to[1..].iter_mut().zip(from).for_each(|(to, from)| *to += from);
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
        Arc::new(HistogramFunctions {
            bins: self.bins(),
            components: self.settings.components,
            coefficients: expansion.coefficients.clone(),
            occupied: self.occupied.clone(),
            exponents: self.exponents.clone(),
        })
    }

    fn normaliser(&self) -> &dyn Form {
        &self.form
    }

    fn form(&self, mesh: &Mesh, powers: &[u16]) -> Result<Box<dyn Form>, DensityError> {
        Ok(Box::new(VolumeForm::compile(mesh, powers, self.settings.components)?))
    }

    fn form_len(&self) -> f64 {
        self.occupied.len() as f64
    }

    fn normaliser_tensor(&self, mesh: &Mesh, powers: &[u16]) -> Result<Vec<f64>, DensityError> {
        Ok(VolumeForm::compile(mesh, powers, self.settings.components)?.dense())
    }

    fn num_features(&self) -> usize {
        self.length()
    }

    fn features(&self, bin: &[BinIndex], t: &[f64], orders: &[u16], out: &mut [f64]) {
        out.fill(0.0);
        if orders.iter().any(|order| *order > 0) {
            return;
        }
        let (mut bin, mut t) = (bin.to_vec(), t.to_vec());
        self.occupied.enter(&mut bin, &mut t);
        let mut start = 0;
        for (bins, bin) in self.bins().into_iter().zip(bin) {
            out[start + bin.get()] = 1.0;
            start += bins;
        }
    }

    fn in_empty_bin(&self, point: &[f64]) -> bool {
        let (mut bin, mut t) = (vec![BinIndex::default(); point.len()], vec![0.0; point.len()]);
        self.support.grid().locate(point, &mut bin, &mut t);
        self.occupied.enter(&mut bin, &mut t);
        self.occupied.slot(&bin).is_none()
    }

    fn log_component_probabilities(&self, theta: &[f64]) -> Option<Vec<f64>> {
        Some(log_softmax(&theta.chunks(self.params_per_component()).map(|part| part[0]).collect::<Vec<f64>>()))
    }

    fn kernel_f32(&self) -> Option<&dyn RowKernel<f32>> {
        Some(self.kernels.f32.get_or_init(|| HistogramKernel::new(self)))
    }

    fn kernel_f64(&self) -> Option<&dyn RowKernel<f64>> {
        Some(self.kernels.f64.get_or_init(|| HistogramKernel::new(self)))
    }

    fn kernel_on_parts_f32(&self, parts: &SupportParts<'_>) -> Option<Box<dyn RowKernel<f32>>> {
        let forms = parts.forms_of()?;
        Some(Box::new(HistogramKernel::on_parts(self, &forms, Some(parts.factors.clone()))))
    }

    fn kernel_on_parts_f64(&self, parts: &SupportParts<'_>) -> Option<Box<dyn RowKernel<f64>>> {
        let forms = parts.forms_of()?;
        Some(Box::new(HistogramKernel::on_parts(self, &forms, Some(parts.factors.clone()))))
    }

    fn patches(&self) -> Option<&dyn PatchSearch> {
        let made = self.patches.get_or_init(|| Arc::new(HistogramPatches::new(self.support.mesh())));
        Some(&**made)
    }

    fn patches_within(&self, mesh: &Mesh) -> Result<Option<Box<dyn PatchSearch>>, DensityError> {
        Ok(Some(Box::new(HistogramPatches::new(mesh))))
    }

    fn start(&self, clusters: &[Vec<f64>], noise: &mut Stream) -> Vec<f64> {
        let (n, grid) = (self.support.dimension(), self.support.grid());
        let mut params = Vec::with_capacity(self.num_params());
        for points in clusters {
            params.push(((points.len() / n).max(1) as f64).ln());
            for (j, axis) in grid.axes().iter().enumerate() {
                let mut counts = vec![0.0; axis.bins()];
                points.chunks_exact(n).for_each(|point| counts[axis.bin_of(point[j]).get()] += 1.0);
                let total = f64::max(1.0, (points.len() / n) as f64);
                let theta = |(bin, count): (BinIndex, &f64)| {
                    let density = count / total * axis.length() / axis.width(bin);
                    (density + FLAT).ln() + 0.02 * noise.normal()
                };
                params.extend(axis.bin_indices().zip(&counts).map(theta).collect::<Vec<f64>>());
            }
        }
        params
    }

    fn settings(&self) -> Settings {
        Settings::Histogram(self.settings.clone())
    }

    fn description(&self) -> String {
        let bins = self.settings.knots.description("bin", 1);
        let plural = if self.settings.components == 1 { "" } else { "s" };
        format!("histogram mixture: {bins}{} component{plural}", self.settings.components)
    }

    fn tensors(&self) -> Vec<NamedTensor> {
        Vec::new()
    }
}
