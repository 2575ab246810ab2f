//! Mixtures of products of squared cubic splines.
//!
//! ```text
//! q(y)  =  sum_m  w_m / Z_m  prod_j s_mj(y_j)^2,        Z_m = integral of prod_j s_mj(y_j)^2 over the constraint
//! ```
//!
//! with cubic Hermite splines s_mj on K_j knots per axis. The parameters of one density are, for each of the M mixture components, one
//! logit (w is the softmax of the logits of all components that have mass) and for each axis K_j values and K_j derivatives at the knots: `M (2 K n + 1)` numbers. Derivatives are per mean
//! distance of the knots. Beyond the first and last knot there is nothing: the knots span the box around the constraint.

mod blocks;
mod form;
mod functions;
mod hermite;
mod nodes;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::error::DensityError;
use super::functions::Differentiable;
use super::kind::{Expansion, FamilyKind, Form};
use super::mesh::{Degree, Mesh};
use super::recipe::{Recipe, SplineRecipe};
use super::support::{Ends, Support};
use super::weights::{log_softmax, power_of_two};
use super::{Settings, rational_text};
use crate::formula::Constraint;
use crate::moments::Exponents;
use crate::number::Rational;
use crate::region::Region;
use form::TensorForm;
use functions::SplineFunctions;
use hermite::CUBIC;

/// The largest number of dimensions: the compiled form has one axis for each.
pub const MAX_SPLINE_DIMENSION: usize = 4;

/// Where the knots are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knots {
    /// So many equally spaced knots on every axis of the box around the constraint, ends included.
    Uniform(usize),
    /// Given positions per axis, increasing; the first and last must enclose the constraint.
    At(#[serde(with = "rational_text")] Vec<Vec<Rational>>),
}

/// What to compile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SplineSettings {
    /// The knots.
    pub knots: Knots,
    /// Components of the mixture.
    pub components: usize,
}

/// A compiled family of spline mixtures.
///
/// ```
/// use pal::density::{FamilyKind, Knots, SplineMixture, SplineSettings};
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
    form: TensorForm,
    /// Per axis and bin: its width over the mean width.
    stretch: Vec<Vec<f64>>,
    exponents: Arc<Exponents>,
}

impl SplineMixture {
    /// Cuts the region along the knots and computes the form of the normalisers.
    pub fn compile(region: &Region, settings: &SplineSettings) -> Result<SplineMixture, DensityError> {
        let support = SplineMixture::prepare(region, settings)?;
        let form = TensorForm::compile(&support.mesh, &[], settings.components)?;
        SplineMixture::assemble(settings, support, form)
    }

    /// With the form from a file.
    pub(super) fn restore(
        region: &Region,
        settings: &SplineSettings,
        shape: &[usize],
        entries: Vec<f64>,
    ) -> Result<SplineMixture, DensityError> {
        let support = SplineMixture::prepare(region, settings)?;
        let sizes: Vec<usize> = support.grid().axes().iter().map(|axis| hermite::SQUARE * axis.bins()).collect();
        if shape != sizes {
            let message = format!("the form has shape {shape:?}, but constraint and settings ask for {sizes:?}");
            return Err(DensityError::Settings(message));
        }
        // Bernstein polynomials add up to 1.
        if !support.mesh.is_volume(entries.iter().sum()) {
            return Err(DensityError::Settings("the form in the file does not go with the constraint".to_string()));
        }
        let form = TensorForm::from_entries(&support.mesh, sizes, entries, settings.components);
        SplineMixture::assemble(settings, support, form)
    }

    fn prepare(region: &Region, settings: &SplineSettings) -> Result<Arc<Support>, DensityError> {
        let n = region.dimension();
        let fail = |message: String| Err(DensityError::Settings(message));
        if settings.components == 0 || settings.components > 100_000 {
            return fail(format!("{} components; give between 1 and 100000", settings.components));
        }
        if n > MAX_SPLINE_DIMENSION {
            return fail(format!(
                "spline mixtures need at most {MAX_SPLINE_DIMENSION} variables, the constraint has {n}; use a sum of squares"
            ));
        }
        let ends = Support::ends(region)?;
        let edges = edges(region.constraint(), &settings.knots, &ends)?;
        let bins: Vec<usize> = edges.iter().map(|edges| edges.len() - 1).collect();
        if TensorForm::entries(&bins) > form::MAX_ENTRIES {
            let counts: Vec<String> = bins.iter().map(|b| (b + 1).to_string()).collect();
            return fail(format!(
                "{} knots in {n} dimensions make a form that is too large; use fewer",
                counts.join(" x ")
            ));
        }
        let grid = Support::make_grid(region.constraint(), edges)?;
        Ok(Arc::new(Support::new(region, &grid)?))
    }

    fn assemble(
        settings: &SplineSettings,
        support: Arc<Support>,
        form: TensorForm,
    ) -> Result<SplineMixture, DensityError> {
        let stretch = support.grid().axes().iter().map(|axis| {
            let mean = axis.length() / axis.bins() as f64;
            let uniform = matches!(settings.knots, Knots::Uniform(_));
            axis.bin_indices().map(|bin| if uniform { 1.0 } else { axis.width(bin) / mean }).collect()
        });
        let stretch = stretch.collect();
        let exponents = Exponents::tensor(&vec![6; support.dimension()])
            .map_err(|error| DensityError::Settings(error.to_string()))?;
        Ok(SplineMixture { settings: settings.clone(), support, form, stretch, exponents: Arc::new(exponents) })
    }

    /// Parameters of one component: the logit, then values and derivatives axis by axis.
    fn params_per_component(&self) -> usize {
        1 + self.stretch.iter().map(|bins| 2 * (bins.len() + 1)).sum::<usize>()
    }

    /// Bins along each axis.
    fn bins(&self) -> Vec<usize> {
        self.stretch.iter().map(Vec::len).collect()
    }

    /// Coefficients of one component.
    fn length(&self) -> usize {
        CUBIC * self.stretch.iter().map(Vec::len).sum::<usize>()
    }

    /// The logarithms of the weights w: the softmax of the logits of the components that have mass. The others take no part.
    fn mixture_weights(&self, params: &[f64], log_integrals: &[f64]) -> Vec<f64> {
        let logits = params.chunks(self.params_per_component()).zip(log_integrals);
        let kept = logits.map(|(part, z)| if *z == f64::NEG_INFINITY { *z } else { part[0] });
        log_softmax(&kept.collect::<Vec<f64>>())
    }

    /// The largest coefficient along each axis of a component, as a power of two.
    fn scales(&self, coefficients: &[f64]) -> Vec<f64> {
        let mut rest = coefficients;
        let scale = |bins: &Vec<f64>| {
            let (axis, after) = rest.split_at(CUBIC * bins.len());
            rest = after;
            power_of_two(axis)
        };
        self.stretch.iter().map(scale).collect()
    }

    /// One component's coefficients before scaling.
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

fn edges(constraint: &Constraint, knots: &Knots, ends: &Ends) -> Result<Vec<Vec<Rational>>, DensityError> {
    let fail = |message: String| Err(DensityError::Settings(message));
    match knots {
        Knots::Uniform(count) if *count < 2 || *count > crate::region::MAX_KNOTS => {
            let noun = if *count == 1 { "knot" } else { "knots" };
            fail(format!("{count} {noun} per axis; give between 2 and {}", crate::region::MAX_KNOTS))
        }
        Knots::Uniform(count) => Ok(ends
            .iter()
            .map(|(low, high)| {
                let step = (high - low) / Rational::from(count - 1);
                (0..*count)
                    .map(|k| if k + 1 == *count { high.clone() } else { low + &step * Rational::from(k) })
                    .collect()
            })
            .collect()),
        Knots::At(lists) if lists.len() != ends.len() => {
            fail(format!("{} lists of knots for {} variables; give one list per variable", lists.len(), ends.len()))
        }
        Knots::At(lists) => {
            for ((list, (low, high)), var) in lists.iter().zip(ends).zip(&constraint.reals) {
                match (list.first(), list.last()) {
                    (Some(first), Some(last)) if list.len() >= 2 && first <= low && last >= high => {}
                    _ => {
                        return fail(format!(
                            "the knots along `{var}` must enclose the constraint, which runs from {low} to {high}"
                        ));
                    }
                }
                if list.windows(2).any(|pair| pair[0] >= pair[1]) {
                    return fail(format!("the knots along `{var}` must increase"));
                }
            }
            Ok(lists.clone())
        }
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
        let weights = self.mixture_weights(params, log_integrals);
        let normalised = weights.iter().zip(log_integrals);
        normalised.map(|(w, z)| if *z == f64::NEG_INFINITY { *z } else { w - z }).collect()
    }

    fn pull_back_weights(
        &self,
        params: &[f64],
        log_integrals: &[f64],
        weights: &[f64],
        gradient: &mut [f64],
        integrals: &mut [f64],
    ) {
        let mixture = self.mixture_weights(params, log_integrals);
        let massive = |m: &usize| log_integrals[*m] > f64::NEG_INFINITY;
        let total: f64 = (0..weights.len()).filter(massive).map(|m| weights[m]).sum();
        for m in (0..weights.len()).filter(massive) {
            gradient[m * self.params_per_component()] += weights[m] - total * mixture[m].exp();
            integrals[m] -= weights[m];
        }
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
        &self.form
    }

    fn form(&self, mesh: &Mesh, powers: &[u16]) -> Result<Box<dyn Form>, DensityError> {
        Ok(Box::new(TensorForm::compile(mesh, powers, self.settings.components)?))
    }

    fn recipe(&self) -> Recipe {
        Recipe::Spline(SplineRecipe {
            components: self.settings.components,
            axes: self.stretch.iter().map(|stretch| nodes::axis(stretch)).collect(),
            form: nodes::form(&self.form, &self.bins()),
            log_volume: self.support.grid().log_volume(),
        })
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

    fn form_constants(&self, mesh: &Mesh, powers: &[u16]) -> Result<Vec<f64>, DensityError> {
        Ok(nodes::form(&TensorForm::compile(mesh, powers, self.settings.components)?, &self.bins()))
    }

    fn settings(&self) -> Settings {
        Settings::Spline(self.settings.clone())
    }

    fn tensors(&self) -> Vec<(&'static str, Vec<usize>, Vec<f64>)> {
        let (sizes, entries) = self.form.raw();
        vec![("form", sizes.to_vec(), entries.to_vec())]
    }
}
