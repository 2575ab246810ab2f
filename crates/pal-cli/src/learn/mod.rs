//! Training from files: what `pal fit` and `pal train` share.

mod data;
mod options;
mod regions;
mod report;
mod saved;
mod session;

use std::time::Instant;

use anyhow::{Context, Result};
use pal::formula::Category;
use pal::kernel::KernelModel;
use pal::region::Region;
use pal_burn::{Device, NetworkFile, Plan, Predictor, Scaler, Stop, weights};

use data::Parts;
use regions::RegionReader;
use report::Counts;

use crate::densities::AnyModel;
use crate::model_file::check_output;
use crate::points::{PointColumn, column_names, numbers};
use crate::progress::Progress;
use crate::{Global, Outcome, limits, output};

pub use data::{Columns, Data, DataReader, PointMembership, RowConstraint};
pub use options::{Learning, parse_names};
pub use regions::{MapNames, OtherMaps, RegionOptions};
pub use report::{Summary, mean};
pub use saved::Saved;

/// Prints the result of a training. There is none if it was stopped before the end of the first epoch.
pub fn conclude(summary: Option<Summary>, global: Global) -> Result<Outcome> {
    let Some(summary) = summary else {
        output::note("stopped before the first epoch was over; nothing was written");
        return Ok(Outcome::Stopped);
    };
    summary.print(global)?;
    Ok(if summary.stop == Stop::Asked { Outcome::Stopped } else { Outcome::Done })
}

/// Fits the model that the options describe to data: a density of the outputs, given the inputs if there are any.
/// Returns `None` if it is stopped before the end of the first epoch.
pub fn run(learning: &Learning, columns: &Columns, hidden: &[usize], global: Global) -> Result<Option<Summary>> {
    let start = Instant::now();
    let mut columns = columns.clone();
    learning.check(&columns)?;
    check_output(&learning.output)?;
    let device = learning.device()?;
    let reader = match &learning.regions {
        None => None,
        Some(plan) => {
            let _progress = Progress::waiting("reading", !global.quiet);
            Some(RegionReader::new(plan.clone(), &columns, &learning.constraint)?)
        }
    };
    // Rows with regions of their own come before the family: the maps that they name are what its box is put around.
    let mut parts = None;
    let constraint = match &reader {
        None => columns.order(learning.constraint.constraint()?)?,
        Some(reader) => {
            columns.check(&reader.variables())?;
            let _progress = Progress::waiting("reading", !global.quiet);
            let outputs: Vec<&str> = columns.outputs.iter().map(String::as_str).collect();
            parts = Some(learning.read(&columns, &numbers(&outputs), RowConstraint::Own(reader))?);
            reader.surrounding_box()?
        }
    };
    // Exactly one value of a category holds, in the constraint as in the family that is compiled on it.
    let constraint = Category::enforce(&constraint);
    let mixed = !constraint.booleans.is_empty();
    if mixed {
        learning.check_mixed().with_context(|| learning.constraint.name())?;
    }
    let membership = PointMembership::new(&constraint).with_context(|| learning.constraint.name())?;
    columns.check(&column_names(&PointColumn::of(&constraint)))?;
    let family = match learning.is_pal() && learning.family.kernels().is_none() {
        false => None,
        true => {
            let _progress = Progress::waiting("compiling", !global.quiet);
            let compile = || learning.family.compile_for(&Region::new(&constraint)?, learning.has_student_t_head());
            Some(compile().with_context(|| learning.constraint.name())?)
        }
    };
    let parts = match parts {
        Some(parts) => parts,
        None => learning.read(&columns, &columns.points(&constraint), RowConstraint::Same(&membership))?,
    };
    let Parts { train, validation, test, dropped } = &parts;
    if *dropped > 0 && !global.quiet {
        output::note(&format!("{} left out: missing, not finite or outside", crate::numbers::counted(*dropped, "row")));
    }
    let plan = Plan {
        kind: learning.kind(hidden, mixed),
        inputs: columns.inputs.clone(),
        outputs: columns.outputs.clone(),
        input_scaler: Scaler::fit(&train.inputs, columns.inputs.len()),
        // Only baselines scale outputs, and they have real ones.
        output_scaler: Scaler::fit(if mixed { &[] } else { &train.points }, columns.outputs.len()),
        float64: learning.float64(),
        regions: learning.regions.clone(),
    };
    // Weights, their gradients, two numbers of the optimiser for each, and the best ones so far.
    let least = plan.least_weights();
    limits::check_memory(least * if plan.float64 { 40.0 } else { 20.0 }, &format!("{least:.0} weights"))?;
    let untrained = plan.build(&constraint, family.as_ref(), &device.clone().autodiff(), learning.seed)?;
    let params = weights::count(&untrained);
    let trained = session::train(learning, &plan, untrained, (&constraint, family.as_ref()), &parts, &device, global)?;
    let Some(best) = trained.best else { return Ok(None) };
    let saved = match (&trained.model, family) {
        // Without inputs the result is a single density, in a file that all other commands read.
        (Predictor::Pal(model), Some(family)) if columns.inputs.is_empty() => {
            Saved::Densities(AnyModel::new(family, model.params(None)).context("the trained density")?)
        }
        (Predictor::Mixed(model), Some(family)) if columns.inputs.is_empty() => {
            Saved::Densities(AnyModel::new(family, model.params(None)).context("the trained density")?)
        }
        (Predictor::Kernel(model), None) if columns.inputs.is_empty() && plan.regions.is_none() => {
            let model = KernelModel::new(model.family(), model.params(None)).context("the trained density")?;
            Saved::Densities(AnyModel::Kernel(model))
        }
        (_, family) => {
            let map = reader.as_ref().and_then(|reader| reader.map().cloned());
            let file = NetworkFile { plan, constraint, map, family, predictor: trained.model };
            // Read back onto the CPU, so that it is evaluated as every reader will evaluate it, wherever it was
            // trained.
            Saved::Network(Box::new(NetworkFile::from_bytes(&file.to_bytes()?, &Device::flex())?))
        }
    };
    output::replace(&learning.output, &saved.to_bytes()?)?;
    if trained.stop != Stop::Asked {
        session::forget(learning);
    }
    let likelihood = |data: &Data| -> Result<Option<f64>> {
        let _progress = Progress::waiting("evaluating", !global.quiet);
        if data.rows() == 0 { Ok(None) } else { Ok(Some(mean(&saved.log_prob(data)?))) }
    };
    let asked = if test.rows() > 0 { test } else { validation };
    let violation = {
        let _progress = Progress::waiting("sampling", !global.quiet);
        saved.violation(asked, learning.violation_samples, learning.seed)?
    };
    Ok(Some(Summary {
        model: learning.model_name(),
        half_width: learning.regions.as_ref().and_then(|plan| Some(plan.window.as_ref()?.half_width.clone())),
        train_ll: likelihood(train)?,
        val_ll: likelihood(validation)?,
        test_ll: likelihood(test)?,
        violation: violation.fraction(),
        outside: violation.outside,
        samples: violation.samples,
        params,
        epochs: trained.epochs,
        best_epoch: best,
        stop: trained.stop,
        rows: Counts { train: train.rows(), validation: validation.rows(), test: test.rows(), dropped: *dropped },
        seed: learning.seed,
        seconds: start.elapsed().as_secs_f64(),
        training_seconds: trained.seconds,
        output: learning.output.display().to_string(),
    }))
}
