//! One training, from its start or its checkpoint to its end: progress, checkpoints, Ctrl-C.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use pal::checksum::checksum;
use pal::density::{Family, Settings, TablePrecision};
use pal::formula::{Constraint, write_smtlib};
use pal::region::RegionBatch;
use pal_burn::weights::Real;
use pal_burn::{AnyFamily, Device, Epoch, Milestone, Plan, Predictor, RowRegions, Rows, Stop, Trainer};

use super::data::{Data, Parts};
use super::options::Learning;
use crate::progress::{Progress, TrainingBar};
use crate::{Global, limits, output};

/// A trained model, and how the training ended.
pub struct Trained {
    pub model: Predictor,
    pub stop: Stop,
    pub epochs: usize,
    /// The best epoch; `None` if not even the first one ended.
    pub best: Option<usize>,
    pub seconds: f64,
}

/// The number of rows that scales are fitted to, as in the paper.
const FIRST: usize = 1000;
/// The shortest time between two checkpoints. All checkpoints lead to the same result.
const PAUSE: Duration = Duration::from_secs(2);

/// The file of the checkpoint, next to the model.
fn checkpoint(learning: &Learning) -> PathBuf {
    let mut name = learning.output.file_name().unwrap_or_default().to_os_string();
    name.push(".checkpoint");
    learning.output.with_file_name(name)
}

/// Removes the checkpoint of a training that is complete.
pub fn forget(learning: &Learning) {
    let _ = fs::remove_file(checkpoint(learning));
}

pub fn train(
    learning: &Learning,
    plan: &Plan,
    untrained: Predictor,
    (constraint, family): (&Constraint, Option<&AnyFamily>),
    parts: &Parts,
    device: &Device,
    global: Global,
) -> Result<Trained> {
    let kernels = match &untrained {
        Predictor::Kernel(predictor) => Some(predictor.family().clone()),
        _ => None,
    };
    let rows = |data: &Data, name: &str| -> Result<Rows> {
        let regions = match (&data.regions, family.and_then(AnyFamily::as_real)) {
            (None, _) => None,
            (Some(regions), None) => Some(match &kernels {
                Some(family) => {
                    let _progress = Progress::waiting("compiling regions", !global.quiet);
                    let families = family.on_regions(regions).with_context(|| format!("the {name} rows"))?;
                    RowRegions::Kernels(families, regions.clone())
                }
                None => RowRegions::ForSamples(regions.clone()),
            }),
            (Some(regions), Some(family)) => {
                let _progress = Progress::waiting("compiling regions", !global.quiet);
                let precision = if plan.float64 { TablePrecision::Float64 } else { TablePrecision::Float32 };
                Some(compiled(family, regions, precision).with_context(|| format!("the {name} rows"))?)
            }
        };
        Ok(Rows {
            inputs: plan.input_scaler.apply(&data.inputs),
            columns: plan.inputs.len(),
            points: data.points.clone(),
            dimension: data.dimension,
            regions,
            device: device.clone(),
            dtype: plan.dtype(),
        })
    };
    let settings = family.map(|family| family.base().kind().settings());
    let (train, validation) = (rows(&parts.train, "training")?, rows(&parts.validation, "validation")?);
    let session = Session { learning, plan, settings, constraint, train, validation, global };
    if plan.float64 { session.run::<f64>(untrained) } else { session.run::<f32>(untrained) }
}

/// The number of rows whose compiled regions tell how much memory all of them take.
const SOME: usize = 256;
/// Compiled regions of rows that take more than this, in bytes, are compiled in every step anew.
const MOST_MEMORY: f64 = 2e9;

/// The regions of rows, compiled once if the memory for that is there.
fn compiled(family: &Family, regions: &RegionBatch, precision: TablePrecision) -> Result<RowRegions> {
    let some: Vec<usize> = (0..regions.len()).step_by(regions.len().div_ceil(SOME).max(1)).collect();
    let bytes = family.on_regions_with(&regions.select(&some)?, precision)?.bytes() as f64;
    if bytes * regions.len() as f64 / some.len().max(1) as f64 > MOST_MEMORY.min(limits::memory() / 4.0) {
        return Ok(RowRegions::InSteps(family.clone(), regions.clone()));
    }
    Ok(RowRegions::Compiled(family.on_regions_with(regions, precision)?))
}

struct Session<'a> {
    learning: &'a Learning,
    plan: &'a Plan,
    settings: Option<Settings>,
    constraint: &'a Constraint,
    train: Rows,
    validation: Rows,
    global: Global,
}

impl Session<'_> {
    fn run<T: Real>(&self, untrained: Predictor) -> Result<Trained> {
        let path = checkpoint(self.learning);
        let about = self.about()?;
        let mut trainer: Trainer<Predictor, T> = self.begin(untrained, &about)?;
        let (interrupted, late) = (limits::listen(), limits::keep_time());
        let stopped = || interrupted.load(Ordering::SeqCst) || late.load(Ordering::SeqCst);
        let start = Instant::now();
        let mut written = Instant::now();
        let mut trouble = None;
        let mut bar = TrainingBar::new(self.learning.settings().epochs, !self.global.quiet);
        let mut last: Option<Epoch> = None;
        let stop = trainer.run(&self.train, &self.validation, |trainer, milestone| {
            match milestone {
                Milestone::Step { epoch, step, of } => bar.show(epoch, step, of, last.as_ref(), trainer.best()),
                Milestone::Epoch(epoch) => {
                    last = Some(*epoch);
                    // The first one is written at once, so that a training that is killed early can be resumed.
                    if epoch.number == 1 || written.elapsed() > PAUSE || stopped() {
                        let store = || output::replace(&path, &trainer.checkpoint(&about)?);
                        trouble = store().err();
                        written = Instant::now();
                    }
                }
            }
            trouble.is_none() && !stopped()
        });
        drop(bar);
        if let Some(trouble) = trouble {
            return Err(trouble.context("the checkpoint"));
        }
        let stop = stop.map_err(|error| anyhow!("{error}"))?;
        let (epochs, best) = (trainer.epochs(), trainer.best().map(|(epoch, _)| epoch));
        Ok(Trained { model: trainer.finish(), stop, epochs, best, seconds: start.elapsed().as_secs_f64() })
    }

    fn begin<T: Real>(&self, untrained: Predictor, about: &str) -> Result<Trainer<Predictor, T>> {
        let (learning, path) = (self.learning, checkpoint(self.learning));
        let name = path.display();
        if learning.resume {
            let bytes = fs::read(&path).map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => anyhow!("{name}: no such file, so there is nothing to --resume"),
                _ => anyhow!(error).context(format!("{name}: cannot read")),
            })?;
            let resumed = Trainer::resume(untrained, learning.settings(), about, &bytes);
            return resumed.map_err(|error| anyhow!("{error}")).with_context(|| name.to_string());
        }
        if path.exists() && !learning.restart {
            bail!("{name}: the checkpoint of an unfinished training; --resume goes on, --restart begins anew");
        }
        let first: Vec<usize> = (0..self.train.len().min(FIRST)).collect();
        let model = untrained.start(&self.train.batch(&first, 0)?, &self.train.points, learning.seed)?;
        Ok(Trainer::new(model, learning.settings()))
    }

    /// A checksum of all that must be the same for a checkpoint to be used: the model, the family, the constraint and the
    /// data.
    fn about(&self) -> Result<String> {
        let plan = serde_json::to_string(self.plan)?;
        let family = serde_json::to_string(&self.settings)?;
        let constraint = write_smtlib(self.constraint)?;
        let bytes = bytemuck::cast_slice::<f64, u8>;
        let rows = [&self.train, &self.validation].map(|rows| [bytes(&rows.inputs), bytes(&rows.points)]);
        let [[inputs, points], [more_inputs, more_points]] = rows;
        let texts = [plan.as_bytes(), family.as_bytes(), constraint.as_bytes()];
        let mut regions = Vec::new();
        for rows in [&self.train, &self.validation] {
            regions.push(rows.regions.as_ref().map(|own| own.regions().to_bytes()).transpose()?.unwrap_or_default());
        }
        let regions = regions.iter().map(|bytes| &bytes[..]).filter(|bytes| !bytes.is_empty());
        Ok(checksum(texts.into_iter().chain([inputs, points, more_inputs, more_points]).chain(regions)))
    }
}
