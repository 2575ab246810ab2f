//! Files of trained models: a single density, which all commands read, or a network.

use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use pal::density::Model;
use pal::formula::Constraint;
use pal::kernel::KernelModel;
use pal_burn::{AnyFamily, Device, NetworkFile, Predictor, RegionPlan, RowRegions, Rows, Trainable as _, Violation};

use super::data::{Columns, Data, PointMembership};
use crate::densities::{AnyDensity, AnyModel};
use crate::points::PointColumn;
use crate::{files, model_file};

/// A trained model.
pub enum Saved {
    /// A density without inputs.
    Densities(AnyModel),
    /// A model with inputs, or a baseline.
    Network(Box<NetworkFile>),
}

/// The number of rows that are evaluated at a time.
const PART: usize = 1 << 13;

impl Saved {
    /// Reads a file of either kind. Errors name the file.
    pub fn load(path: &Path) -> Result<Saved> {
        let name = || path.display().to_string();
        files::reading(path).with_context(name)?;
        let bytes = fs::read(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => anyhow!("no such file"),
            _ if path.is_dir() => anyhow!("this is a directory; give a .safetensors file"),
            _ => anyhow!(error).context("cannot read"),
        });
        let bytes = bytes.with_context(name)?;
        if NetworkFile::recognises(&bytes) {
            let file = NetworkFile::from_bytes(&bytes, &Device::flex()).map_err(|error| anyhow!("{error}"));
            return Ok(Saved::Network(Box::new(file.with_context(name)?)));
        }
        let model = model_file::load(path)?;
        ensure!(
            model.regions().is_none(),
            "{}: the densities of this model have regions of their own; give the network that predicted them",
            name()
        );
        Ok(Saved::Densities(model))
    }

    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        match self {
            Saved::Densities(model) => Ok(model.to_bytes()?),
            Saved::Network(file) => Ok(file.to_bytes()?),
        }
    }

    pub fn constraint(&self) -> &Constraint {
        match self {
            Saved::Densities(model) => model.constraint(),
            Saved::Network(file) => &file.constraint,
        }
    }

    /// Where the regions of rows come from, and the map if all rows have the same one.
    pub fn regions(&self) -> (Option<&RegionPlan>, Option<&Constraint>) {
        match self {
            Saved::Densities(_) => (None, None),
            Saved::Network(file) => (file.plan.regions.as_ref(), file.map.as_ref()),
        }
    }

    /// The columns that the model was trained on.
    pub fn columns(&self) -> Columns {
        match self {
            Saved::Densities(_) => {
                let columns = PointColumn::of(self.constraint());
                Columns { inputs: Vec::new(), outputs: columns.into_iter().map(|column| column.name).collect() }
            }
            Saved::Network(file) => Columns { inputs: file.plan.inputs.clone(), outputs: file.plan.outputs.clone() },
        }
    }

    /// Returns the log-density of each row.
    pub fn log_prob(&self, data: &Data) -> Result<Vec<f64>> {
        match self {
            Saved::Densities(model) => self.only(model)?.log_prob(&data.points),
            Saved::Network(file) => {
                let rows = scaled(file, data)?;
                let all: Vec<usize> = (0..rows.len()).collect();
                let mut logs = Vec::with_capacity(all.len());
                for part in all.chunks(PART) {
                    logs.extend(pal_burn::to_f64_vec(file.predictor.log_prob(&rows.batch(part, 0)?)?));
                }
                Ok(logs)
            }
        }
    }

    /// Draws at least `samples` samples and counts those outside the constraint, by exact membership.
    pub fn violation(&self, data: &Data, samples: usize, seed: u64) -> Result<Violation> {
        let membership = PointMembership::new(self.constraint())?;
        match self {
            Saved::Densities(model) => {
                let density = self.only(model)?;
                let mut total = Violation { samples: 0, outside: 0 };
                for from in (0..samples).step_by(1 << 20) {
                    let points = density.sample((samples - from).min(1 << 20), seed.wrapping_add(from as u64))?;
                    let inside = membership.contains_batch(&points);
                    total.samples += inside.len();
                    total.outside += inside.iter().filter(|inside| !**inside).count();
                }
                Ok(total)
            }
            Saved::Network(file) => {
                let inside = |points: &[f64]| membership.contains_batch(points);
                Ok(pal_burn::violation(&file.predictor, &scaled(file, data)?, inside, samples, seed)?)
            }
        }
    }

    /// Draws samples from a model without inputs.
    pub fn sample(&self, count: usize, seed: u64) -> Result<Vec<f64>> {
        match self {
            Saved::Densities(model) => self.only(model)?.sample(count, seed),
            Saved::Network(file) => Ok(file.predictor.sample(None, count, seed)?),
        }
    }

    /// Returns one density for each row of inputs.
    pub fn densities(self, data: &Data) -> Result<AnyModel> {
        match self {
            Saved::Densities(model) => Ok(model),
            Saved::Network(file) => {
                // Parameters do not depend on regions, so that these are left out until the end.
                let rows = scaled(&file, &Data { regions: None, ..data.clone() })?;
                let NetworkFile { predictor, family, .. } = *file;
                let kernels = match &predictor {
                    Predictor::Kernel(model) => Some(model.family().clone()),
                    _ => None,
                };
                let params_of: Box<dyn Fn(_) -> Vec<f64>> = match predictor {
                    Predictor::Kernel(model) => Box::new(move |inputs| model.params(inputs)),
                    Predictor::Pal(model) => Box::new(move |inputs| model.params(inputs)),
                    Predictor::Mixed(model) => Box::new(move |inputs| model.params(inputs)),
                    _ => return Err(anyhow!("a baseline has no densities on the constraint")),
                };
                let all: Vec<usize> = (0..rows.len()).collect();
                let mut params = Vec::new();
                for part in all.chunks(PART) {
                    params.extend(params_of(rows.batch(part, 0)?.inputs));
                }
                if let Some(family) = kernels {
                    return Ok(AnyModel::Kernel(match &data.regions {
                        None => KernelModel::new(&family, params)?,
                        Some(regions) => KernelModel::on_regions(&family, params, regions)?,
                    }));
                }
                let family = family.context("the network has no family")?;
                Ok(match (&data.regions, family) {
                    (Some(regions), AnyFamily::Real(family)) => {
                        AnyModel::Real(Model::on_regions(family, params, regions)?)
                    }
                    (_, family) => AnyModel::new(family, params)?,
                })
            }
        }
    }

    fn only(&self, model: &AnyModel) -> Result<AnyDensity> {
        let rows = model.rows();
        ensure!(rows == 1, "the model has {rows} densities; data are evaluated under one");
        model.densities(0..1, None)?.pop().context("one row of parameters makes one density")
    }
}

/// The rows with their inputs scaled as the network expects them.
fn scaled(file: &NetworkFile, data: &Data) -> Result<Rows> {
    let regions = match (&data.regions, &file.predictor) {
        (None, _) => None,
        (Some(regions), Predictor::Kernel(predictor)) => {
            Some(RowRegions::Kernels(predictor.family().on_regions(regions)?, regions.clone()))
        }
        // Every row is evaluated once, so that nothing is gained by compiling regions beforehand.
        (Some(regions), _) => Some(match file.family.as_ref().and_then(AnyFamily::as_real) {
            Some(family) => RowRegions::InSteps(family.clone(), regions.clone()),
            None => RowRegions::ForSamples(regions.clone()),
        }),
    };
    Ok(Rows {
        inputs: file.plan.input_scaler.apply(&data.inputs),
        columns: file.plan.inputs.len(),
        points: data.points.clone(),
        dimension: data.dimension,
        regions,
        device: Device::flex(),
        dtype: file.plan.dtype(),
    })
}
