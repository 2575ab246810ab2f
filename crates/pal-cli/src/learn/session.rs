//! One training from its start, or from its checkpoint, to its end: progress, checkpoints, Ctrl-C.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use pal::checksum::checksum;
use pal_burn::weights::Real;
use pal_burn::{Device, Epoch, Milestone, Plan, Predictor, Rows, Stop, Trainer};

use super::data::{Data, Parts};
use super::options::Learning;
use crate::progress::TrainingBar;
use crate::{Global, limits, output};

/// What came of it.
pub struct Trained {
    pub model: Predictor,
    pub stop: Stop,
    pub epochs: usize,
    /// The best epoch; none if not even the first was over.
    pub best: Option<usize>,
    pub seconds: f64,
}

/// Rows that scales are fitted on, as in the paper.
const FIRST: usize = 1000;
/// Checkpoints are written at most this often; all of them lead to the same result.
const PAUSE: Duration = Duration::from_secs(2);

/// Where the checkpoint lies.
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
    parts: &Parts,
    device: &Device,
    global: Global,
) -> Result<Trained> {
    let rows = |data: &Data| Rows {
        inputs: plan.input_scaler.apply(&data.inputs),
        columns: plan.inputs.len(),
        points: data.points.clone(),
        dimension: data.dimension,
        device: device.clone(),
        dtype: plan.dtype(),
    };
    let work = Work { learning, plan, train: rows(&parts.train), validation: rows(&parts.validation), global };
    if plan.float64 { work.run::<f64>(untrained) } else { work.run::<f32>(untrained) }
}

struct Work<'a> {
    learning: &'a Learning,
    plan: &'a Plan,
    train: Rows,
    validation: Rows,
    global: Global,
}

impl Work<'_> {
    fn run<T: Real>(&self, untrained: Predictor) -> Result<Trained> {
        let path = checkpoint(self.learning);
        let about = self.about()?;
        let mut trainer: Trainer<Predictor, T> = self.begin(untrained, &about)?;
        let interrupted = limits::listen()?;
        let start = Instant::now();
        let mut written = Instant::now();
        let mut trouble = None;
        let bar = TrainingBar::new(self.learning.settings().epochs, !self.global.quiet);
        let mut last: Option<Epoch> = None;
        let stop = trainer.run(&self.train, &self.validation, |trainer, milestone| {
            match milestone {
                Milestone::Step { epoch, step, of } => bar.show(epoch, step, of, last.as_ref(), trainer.best()),
                Milestone::Epoch(epoch) => {
                    last = Some(*epoch);
                    // The first one at once: whoever kills a training early should find something.
                    if epoch.number == 1 || written.elapsed() > PAUSE || interrupted.load(Ordering::SeqCst) {
                        let store = || output::replace(&path, &trainer.checkpoint(&about)?);
                        trouble = store().err();
                        written = Instant::now();
                    }
                }
            }
            trouble.is_none() && !interrupted.load(Ordering::SeqCst)
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
        let model = untrained.start(&self.train.batch(&first, 0), &self.train.points, learning.seed)?;
        Ok(Trainer::new(model, learning.settings()))
    }

    /// What must be the same for a checkpoint to be used: the model, the family and the data.
    fn about(&self) -> Result<String> {
        let plan = serde_json::to_string(self.plan)?;
        let family = self.learning.family.text();
        let bytes = |values: &[f64]| -> Vec<u8> { values.iter().flat_map(|value| value.to_le_bytes()).collect() };
        let rows = [&self.train, &self.validation].map(|rows| [bytes(&rows.inputs), bytes(&rows.points)].concat());
        Ok(checksum([plan.as_bytes(), family.as_bytes(), &rows[0], &rows[1]]))
    }
}
