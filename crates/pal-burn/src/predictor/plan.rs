//! Any one of the predictors, built from a plan that can be written to a file.

use ::pal::density::DensityError;
use ::pal::formula::{Category, Constraint};
use ::pal::kernel::{KernelFamily, KernelSettings};
use ::pal::region::Region;
use burn::module::Module;
use burn::tensor::{DType, Device, Tensor};
use serde::{Deserialize, Serialize};

use super::{
    AnyFamily, Batch, BatchRegions, Flow, FlowSettings, KernelPredictor, MixedPredictor, Mixture, MixtureSettings,
    PalPredictor, PredictorError, Relaxed, RelaxedSettings, Scaler, Trainable,
};
use crate::network::Network;
use crate::{MixedLayer, PalLayer, StudentTHead, weights};

/// Which predictor, and the sizes of its parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "predictor", rename_all = "kebab-case")]
pub enum PredictorKind {
    /// A network with a layer that keeps all mass on the constraint.
    Pal {
        /// The number of units of each hidden layer.
        hidden: Vec<usize>,
        /// Whether the network speaks through a [`StudentTHead`] instead of giving the parameters of the family itself.
        #[serde(default)]
        student_t: bool,
    },
    /// A network with a layer over real and Boolean variables that keeps all mass on the constraint.
    Mixed {
        /// The number of units of each hidden layer.
        hidden: Vec<usize>,
    },
    /// A network whose outputs are kernels in the plane, with all mass on the constraint.
    Kernel {
        /// The number of components.
        components: usize,
        /// The number of units of each hidden layer.
        hidden: Vec<usize>,
    },
    /// A mixture of Gaussians.
    Mixture {
        /// The number of Gaussians.
        components: usize,
        /// The number of units of each hidden layer.
        hidden: Vec<usize>,
    },
    /// A neural spline flow.
    Flow {
        /// The number of autoregressive transformations.
        transforms: usize,
        /// The number of bins of each spline.
        bins: usize,
        /// The number of units of each hidden layer, in each of the networks.
        hidden: Vec<usize>,
    },
    /// A Gaussian under a relaxed constraint.
    Relaxed {
        /// The number of units of each hidden layer.
        hidden: Vec<usize>,
        /// How the constraint is relaxed.
        relaxed: RelaxedSettings,
    },
}

/// The largest number of bins of the splines of a flow: each has at least a thousandth of the whole width.
const MAX_BINS: usize = 999;

/// Everything about a predictor except its weights, its constraint and its family.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Which predictor.
    pub kind: PredictorKind,
    /// The names of the inputs; none for an unconditional density.
    pub inputs: Vec<String>,
    /// The names of the outputs in the data, in the order of the variables of the constraint: reals first, then one for
    /// each Boolean variable and each category.
    pub outputs: Vec<String>,
    /// How inputs are scaled before the network sees them.
    pub input_scaler: Scaler,
    /// How outputs are scaled, for baselines that work in scaled coordinates.
    pub output_scaler: Scaler,
    /// Whether weights are float64 rather than float32.
    pub float64: bool,
    /// Where the region of each row comes from, if rows have regions of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regions: Option<RegionPlan>,
}

/// Which columns of the data tell the region of a row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RegionPlan {
    /// The column that names the map of a row; `None` if all rows have the same map.
    pub map: Option<String>,
    /// The window of the map that is the region of a row; `None` if it is the whole map.
    pub window: Option<WindowPlan>,
}

/// Windows of a map, from columns of the data. Coordinates are in the order of the variables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WindowPlan {
    /// Half of the width of a window along each local axis.
    pub half_width: Vec<f64>,
    /// The columns of the centre.
    pub centre: Vec<String>,
    /// The columns of the heading, if windows are turned.
    pub heading: Option<Vec<String>>,
    /// The inputs that are places of the map, one name for each coordinate of each place. The network sees them in local
    /// coordinates.
    pub places: Vec<String>,
}

impl WindowPlan {
    /// Fails if the numbers of columns do not fit the variables, or a half width is not positive.
    pub fn check(&self, inputs: &[String], variables: usize) -> Result<(), String> {
        let WindowPlan { half_width, centre, heading, places } = self;
        let count = |what: &str, given: usize| match given == variables {
            true => Ok(()),
            false => Err(format!("{given} {what} of windows, but there are {variables} variables; give one for each")),
        };
        count("half widths", half_width.len())?;
        count("columns for the centre", centre.len())?;
        if let Some(bad) = half_width.iter().find(|w| !(w.is_finite() && **w > 0.0)) {
            return Err(format!("a half width of windows is {bad}; it must be a positive number"));
        }
        if let Some(heading) = heading {
            if variables != 2 {
                return Err(format!(
                    "windows can be turned in the plane only, and there are {variables} variables: leave the heading out"
                ));
            }
            count("columns for the heading", heading.len())?;
        }
        if places.len() % variables.max(1) != 0 {
            let given = places.len();
            return Err(format!(
                "{given} columns for places of the map; give {variables} for each place, in the order of the variables"
            ));
        }
        for (k, name) in places.iter().enumerate() {
            if !inputs.contains(name) || places[..k].contains(name) {
                let trouble = if inputs.contains(name) { "is given twice" } else { "is not an input" };
                return Err(format!("the column `{name}` for a place of the map {trouble}"));
            }
        }
        Ok(())
    }
}

/// Any one of the predictors.
#[allow(clippy::large_enum_variant, reason = "a program has one of them, and modules do not go into boxes")]
#[derive(Module, Debug)]
pub enum Predictor {
    /// A network with a [`PalLayer`].
    Pal(PalPredictor),
    /// A network with a [`MixedLayer`].
    Mixed(MixedPredictor),
    /// A network whose outputs are kernels.
    Kernel(KernelPredictor),
    /// A mixture of Gaussians.
    Mixture(Mixture),
    /// A neural spline flow.
    Flow(Flow),
    /// A Gaussian under a relaxed constraint.
    Relaxed(Relaxed),
}

impl Plan {
    /// Returns the precision of the weights.
    pub fn dtype(&self) -> DType {
        if self.float64 { DType::F64 } else { DType::F32 }
    }

    /// Fails if sizes are out of range or do not fit together: plans come from files and command lines.
    fn check(&self, constraint: &Constraint) -> Result<(), PredictorError> {
        let wrong = |what: String| Err(PredictorError::Unsuitable(what));
        let (hidden, sizes) = match &self.kind {
            PredictorKind::Pal { hidden, .. }
            | PredictorKind::Mixed { hidden }
            | PredictorKind::Relaxed { hidden, .. } => (hidden, vec![]),
            PredictorKind::Mixture { components, hidden } | PredictorKind::Kernel { components, hidden } => {
                (hidden, vec![("components", *components, usize::MAX)])
            }
            PredictorKind::Flow { transforms, bins, hidden } => {
                (hidden, vec![("transformations", *transforms, usize::MAX), ("bins", *bins, MAX_BINS)])
            }
        };
        let layers = hidden.iter().map(|units| ("units of a hidden layer", *units, usize::MAX));
        for (what, count, most) in sizes.into_iter().chain(layers) {
            if count == 0 || count > most {
                let range = if most == usize::MAX { "1 or more".to_string() } else { format!("1 to {most}") };
                return wrong(format!("{count} {what}; {range} are possible"));
            }
        }
        let mixed = matches!(self.kind, PredictorKind::Mixed { .. });
        let variables = constraint.reals.len() + if mixed { discrete(constraint) } else { 0 };
        if self.outputs.is_empty() || self.outputs.len() != variables {
            let outputs = self.outputs.len();
            return wrong(format!(
                "{outputs} outputs for a constraint with {variables} variables; there is one for each"
            ));
        }
        if let Some(RegionPlan { window: Some(window), .. }) = &self.regions {
            window.check(&self.inputs, self.outputs.len()).map_err(PredictorError::Unsuitable)?;
        }
        for (what, scaler, columns) in
            [("input", &self.input_scaler, self.inputs.len()), ("output", &self.output_scaler, self.outputs.len())]
        {
            let Scaler { mean, deviation } = scaler;
            let sound = mean.iter().chain(deviation).all(|x| x.is_finite()) && deviation.iter().all(|x| *x > 0.0);
            if mean.len() != columns || deviation.len() != columns || !sound {
                return wrong(format!("the {what}s are scaled by other than one mean and one deviation above 0 each"));
            }
        }
        Ok(())
    }

    /// Returns a lower bound on the number of weights: the exact number but for the last layer in front of a
    /// [`PalLayer`]. It is a float64 because plans may ask for any number.
    pub fn least_weights(&self) -> f64 {
        let network = |inputs: usize, hidden: &[usize], outputs: f64| {
            let sizes = hidden.iter().map(|units| *units as f64).chain([outputs]);
            sizes.fold((inputs as f64, 0.0), |(from, sum), to| (to, sum + (from + 1.0) * to)).1
        };
        let (inputs, n) = (self.inputs.len(), self.outputs.len() as f64);
        let behind = |hidden: &[usize], outputs: f64| match inputs {
            0 => outputs,
            _ => network(inputs, hidden, outputs),
        };
        let gaussian = 1.0 + 2.0 * n + n * (n - 1.0) / 2.0;
        match &self.kind {
            PredictorKind::Pal { hidden, .. } | PredictorKind::Mixed { hidden } => behind(hidden, 1.0),
            PredictorKind::Kernel { components, hidden } => behind(hidden, *components as f64),
            PredictorKind::Mixture { components, hidden } => behind(hidden, *components as f64 * gaussian),
            PredictorKind::Relaxed { hidden, .. } => behind(hidden, gaussian),
            PredictorKind::Flow { transforms, bins, hidden } => {
                let one = |seen: usize| network((inputs + seen).max(1), hidden, 3.0 * *bins as f64 - 1.0);
                *transforms as f64 * (0..self.outputs.len()).map(one).sum::<f64>()
            }
        }
    }

    /// Builds an untrained predictor; the same seed gives the same weights. [`PredictorKind::Pal`] needs a family over real
    /// variables, [`PredictorKind::Mixed`] a mixed one.
    pub fn build(
        &self,
        constraint: &Constraint,
        family: Option<&AnyFamily>,
        device: &Device,
        seed: u64,
    ) -> Result<Predictor, PredictorError> {
        self.check(constraint)?;
        device.seed(seed);
        let (inputs, dimension) = (self.inputs.len(), self.outputs.len());
        let mixture = |components: usize, hidden: &[usize]| {
            let settings = MixtureSettings { components, dimension };
            let network = Network::new(inputs, hidden, settings.num_params(), device);
            Mixture::new(network, settings, self.output_scaler.clone())
        };
        let built = match &self.kind {
            PredictorKind::Pal { hidden, student_t } => {
                let missing = || PredictorError::Unsuitable("a layer needs a family over real variables".to_string());
                let family = family.and_then(AnyFamily::as_real).ok_or_else(missing)?;
                let layer = PalLayer::new(family, device, self.dtype())?;
                let network = |outputs| Network::new(inputs, hidden, outputs, device);
                Predictor::Pal(if *student_t {
                    let other_kind = || {
                        PredictorError::Unsuitable(
                            "a Student t head is for spline mixtures, not for this kind of family".to_string(),
                        )
                    };
                    let head = StudentTHead::new(&layer).ok_or_else(other_kind)?;
                    PalPredictor::with_head(network(head.num_params()), head, layer)
                } else {
                    PalPredictor::new(network(layer.num_params()), layer)
                })
            }
            PredictorKind::Mixed { hidden } => {
                let Some(AnyFamily::Mixed(family)) = family else {
                    return Err(PredictorError::Unsuitable("a mixed layer needs a mixed family".to_string()));
                };
                let network = Network::new(inputs, hidden, family.num_params(), device);
                Predictor::Mixed(MixedPredictor::new(network, MixedLayer::new(family.clone())))
            }
            PredictorKind::Kernel { components, hidden } => {
                let region = Region::new(constraint).map_err(DensityError::from)?;
                let family = KernelFamily::new(&region, &KernelSettings { components: *components })?;
                Predictor::Kernel(KernelPredictor::new(
                    Network::new(inputs, hidden, family.num_params(), device),
                    family,
                ))
            }
            PredictorKind::Mixture { components, hidden } => Predictor::Mixture(mixture(*components, hidden)),
            PredictorKind::Flow { transforms, bins, hidden } => {
                let (transforms, bins, hidden) = (*transforms, *bins, hidden.clone());
                let settings = FlowSettings { dimension, inputs, transforms, bins, hidden };
                Predictor::Flow(Flow::new(settings, self.output_scaler.clone(), device))
            }
            PredictorKind::Relaxed { hidden, relaxed } => {
                Predictor::Relaxed(Relaxed::new(mixture(1, hidden), constraint.clone(), relaxed.clone())?)
            }
        };
        // burn initialises weights lazily. Casting reads them all, which draws them now, while the seed is in effect.
        Ok(weights::cast(built, self.dtype()))
    }
}

/// The number of columns of the variables that are not real: one for each category and each other Boolean variable.
fn discrete(constraint: &Constraint) -> usize {
    let categories = Category::all_of(constraint);
    let values: usize = categories.iter().map(|category| category.values().len()).sum();
    constraint.booleans.len() - values + categories.len()
}

impl Predictor {
    /// Moves the beginning of training near the data where that is possible; a flow begins as one Gaussian anyway.
    ///
    /// `first` are the rows that scales are fitted to where a family needs that, `points` all points of the training
    /// data.
    pub fn start(self, first: &Batch, points: &[f64], seed: u64) -> Result<Predictor, PredictorError> {
        Ok(match self {
            Predictor::Pal(predictor) => Predictor::Pal(predictor.start(first, points, seed)?),
            Predictor::Mixed(predictor) => Predictor::Mixed(predictor.start(points, seed)?),
            // Kernels begin all over the region.
            Predictor::Kernel(predictor) => Predictor::Kernel(predictor),
            Predictor::Mixture(predictor) => Predictor::Mixture(predictor.start(points, seed)),
            Predictor::Flow(predictor) => Predictor::Flow(predictor),
            Predictor::Relaxed(predictor) => Predictor::Relaxed(predictor.start(points, seed)),
        })
    }
}

impl Trainable for Predictor {
    fn log_prob(&self, batch: &Batch) -> Result<Tensor<1>, PredictorError> {
        match self {
            Predictor::Pal(predictor) => predictor.log_prob(batch),
            Predictor::Mixed(predictor) => predictor.log_prob(batch),
            Predictor::Kernel(predictor) => predictor.log_prob(batch),
            Predictor::Mixture(predictor) => predictor.log_prob(batch),
            Predictor::Flow(predictor) => predictor.log_prob(batch),
            Predictor::Relaxed(predictor) => predictor.log_prob(batch),
        }
    }

    fn loss(&self, batch: &Batch) -> Result<Tensor<1>, PredictorError> {
        match self {
            Predictor::Pal(predictor) => predictor.loss(batch),
            Predictor::Mixed(predictor) => predictor.loss(batch),
            Predictor::Kernel(predictor) => predictor.loss(batch),
            Predictor::Mixture(predictor) => predictor.loss(batch),
            Predictor::Flow(predictor) => predictor.loss(batch),
            Predictor::Relaxed(predictor) => predictor.loss(batch),
        }
    }

    fn sample(&self, inputs: Option<Tensor<2>>, count: usize, seed: u64) -> Result<Vec<f64>, PredictorError> {
        match self {
            Predictor::Pal(predictor) => predictor.sample(inputs, count, seed),
            Predictor::Mixed(predictor) => predictor.sample(inputs, count, seed),
            Predictor::Kernel(predictor) => predictor.sample(inputs, count, seed),
            Predictor::Mixture(predictor) => predictor.sample(inputs, count, seed),
            Predictor::Flow(predictor) => predictor.sample(inputs, count, seed),
            Predictor::Relaxed(predictor) => predictor.sample(inputs, count, seed),
        }
    }

    fn sample_on(
        &self,
        inputs: Option<Tensor<2>>,
        regions: Option<&BatchRegions>,
        count: usize,
        seed: u64,
    ) -> Result<Vec<f64>, PredictorError> {
        match self {
            Predictor::Pal(predictor) => predictor.sample_on(inputs, regions, count, seed),
            Predictor::Kernel(predictor) => predictor.sample_on(inputs, regions, count, seed),
            _ => self.sample(inputs, count, seed),
        }
    }
}
