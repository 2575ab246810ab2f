//! Options of `pal fit` and `pal train`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use pal_burn::device::{self, Choice, Work};
use pal_burn::{
    DType, Device, OptimiserSettings, PredictorKind, RegionPlan, RelaxedSettings, TrainSettings, UpdateRule,
};

use super::data::{Columns, DataReader, Parts, RowConstraint};
use crate::family::FamilyOptions;
use crate::input::ConstraintOption;
use crate::points::PointColumn;

/// All options of a training but its columns.
#[derive(clap::Args)]
pub struct Learning {
    #[command(flatten)]
    pub constraint: ConstraintOption,
    /// The data: a .csv file with a line of names, or a .parquet file
    #[arg(long, value_name = "TABLE")]
    data: PathBuf,
    /// Rows with the same entry in this column stay together when the data are divided 70 : 15 : 15
    #[arg(long, value_name = "COLUMN", conflicts_with = "val_data")]
    group: Option<String>,
    /// Rows for validation; with this, --data is not divided
    #[arg(long, value_name = "TABLE")]
    val_data: Option<PathBuf>,
    /// Rows for the test
    #[arg(long, value_name = "TABLE", requires = "val_data")]
    test_data: Option<PathBuf>,
    /// Leave out rows that are incomplete, not finite or outside the constraint, and say how many
    #[arg(long)]
    drop_invalid: bool,
    /// Train a model without guarantees instead, for comparison
    #[arg(long, value_enum)]
    baseline: Option<Baseline>,
    #[command(flatten)]
    pub family: FamilyOptions,
    /// spline: how the outputs of a network become components of the mixture [default: student-t with inputs, else
    /// plain; plain for constraints with Booleans]
    #[arg(long, value_enum)]
    head: Option<Head>,
    /// flow: the number of transformations [default: 5]
    #[arg(long, value_name = "T")]
    transforms: Option<usize>,
    /// dsp: the multiplier of the relaxed constraint at the start [default: 0.1]
    #[arg(long, value_name = "M")]
    multiplier: Option<f64>,
    /// The largest number of passes through the data
    #[arg(long, value_name = "N", default_value_t = TrainSettings::default().epochs)]
    epochs: usize,
    /// Rows per step
    #[arg(long, value_name = "N", default_value_t = TrainSettings::default().batch, value_parser = parse_batch)]
    batch: usize,
    /// The learning rate [default: 0.01 without inputs, else 0.001]
    #[arg(long, value_name = "R", value_parser = parse_rate)]
    learning_rate: Option<f64>,
    /// The optimiser
    #[arg(long, value_enum, default_value = "schedule-free")]
    optimiser: OptimiserName,
    /// Stop after this many epochs without a better mean log-density on validation rows; 0 for never
    #[arg(long, value_name = "N", default_value_t = TrainSettings::default().patience.unwrap_or(0))]
    patience: usize,
    /// The seed of everything random; the same seed gives the same model
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// The seed of the division into training, validation and test [default: --seed]
    #[arg(long, value_name = "S", conflicts_with = "val_data")]
    split_seed: Option<u64>,
    /// The precision of networks [default: f64 without inputs on the CPU, else f32]
    #[arg(long, value_enum)]
    precision: Option<Precision>,
    /// Where to train
    #[arg(long, value_enum, default_value = "cpu")]
    device: DeviceName,
    /// How many samples are drawn to measure the fraction outside the constraint
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub violation_samples: usize,
    /// Continue a training that was stopped, from its checkpoint
    #[arg(long, conflicts_with = "restart")]
    pub resume: bool,
    /// Start again although there is a checkpoint
    #[arg(long)]
    pub restart: bool,
    /// The trained model, a .safetensors file; its checkpoint lies next to it while the training runs
    #[arg(long, short, value_name = "MODEL")]
    pub output: PathBuf,
    /// Whether the model has inputs; set by the command.
    #[arg(skip)]
    pub conditional: bool,
    /// Where the region of each row comes from, if rows have regions of their own; set by the command.
    #[arg(skip)]
    pub regions: Option<RegionPlan>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Baseline {
    /// A mixture of Gaussians
    Gmm,
    /// A mixture density network: a mixture of Gaussians whose parameters a network computes
    Mdn,
    /// A neural spline flow
    Flow,
    /// One Gaussian with a relaxed constraint in its loss, in the manner of DeepSeaProbLog
    Dsp,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Head {
    /// Location, scale and tail of a Student t density along every axis: for outputs that the inputs determine closely
    StudentT,
    /// All values and derivatives at the knots: for densities of any shape
    Plain,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OptimiserName {
    /// Adam
    Adam,
    /// Schedule-free AdamW
    ScheduleFree,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Precision {
    F32,
    F64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DeviceName {
    Cpu,
    Gpu,
}

fn parse_batch(text: &str) -> Result<usize> {
    let batch = text.parse()?;
    ensure!((1..=1 << 24).contains(&batch), "give between 1 and {} rows", 1 << 24);
    Ok(batch)
}

fn parse_rate(text: &str) -> Result<f64> {
    let rate: f64 = text.parse()?;
    ensure!(rate.is_finite() && rate > 0.0, "give a positive number, such as 0.001");
    Ok(rate)
}

/// Names of columns, separated by commas.
pub fn parse_names(text: &str) -> Result<Vec<String>> {
    let names: Vec<String> = text.split(',').map(|name| name.trim().to_string()).collect();
    ensure!(names.iter().all(|name| !name.is_empty()), "give names of columns, separated by commas, such as x,y");
    Ok(names)
}

impl Learning {
    /// Fails if options contradict each other.
    pub fn check(&self, columns: &Columns) -> Result<()> {
        if self.is_pal() {
            self.family.check()?;
        } else {
            self.family.check_baseline(matches!(self.baseline, Some(Baseline::Gmm | Baseline::Mdn)))?;
        }
        let only = |option: &str, given: bool, baseline: Baseline, name: &str| -> Result<()> {
            ensure!(!given || self.baseline == Some(baseline), "{option} is for --baseline {name}");
            Ok(())
        };
        if self.head.is_some() {
            self.family.check_head(self.is_pal())?;
        }
        only("--transforms", self.transforms.is_some(), Baseline::Flow, "flow")?;
        only("--multiplier", self.multiplier.is_some(), Baseline::Dsp, "dsp")?;
        match (self.baseline, columns.inputs.is_empty()) {
            (Some(Baseline::Gmm), false) => {
                bail!("--baseline gmm has no inputs; --baseline mdn is the mixture with inputs")
            }
            (Some(Baseline::Mdn), true) => {
                bail!("--baseline mdn needs inputs, as in `pal train`; --baseline gmm is the mixture without")
            }
            _ => {}
        }
        if self.regions.is_some() {
            ensure!(
                self.baseline != Some(Baseline::Dsp),
                "--baseline dsp relaxes one constraint for all rows; the other baselines go with regions of rows"
            );
            if self.is_pal() {
                self.family.check_regions()?;
            }
        }
        ensure!(self.epochs > 0, "--epochs 0: give at least one");
        ensure!(self.violation_samples > 0, "--violation-samples 0: give at least one");
        Ok(())
    }

    /// Returns the variables of the constraint, as names of columns.
    pub fn variables(&self) -> Result<Vec<String>> {
        let constraint = self.constraint.constraint()?;
        Ok(PointColumn::of(&constraint).into_iter().map(|column| column.name).collect())
    }

    pub fn is_pal(&self) -> bool {
        self.baseline.is_none()
    }

    /// The name of the model in reports.
    pub fn model_name(&self) -> &'static str {
        match self.baseline {
            None => "pal",
            Some(Baseline::Gmm) => "gmm",
            Some(Baseline::Mdn) => "mdn",
            Some(Baseline::Flow) => "flow",
            Some(Baseline::Dsp) => "dsp",
        }
    }

    /// Fails if options do not go with Boolean variables and categories.
    pub fn check_mixed(&self) -> Result<()> {
        let only = "the constraint has Boolean variables or categories";
        ensure!(self.is_pal(), "--baseline: {only}, and the baselines are over real variables");
        ensure!(self.family.kernels().is_none(), "--family kernel: {only}, and kernels are over real variables");
        ensure!(self.head != Some(Head::StudentT), "--head student-t: {only}; use --head plain");
        ensure!(self.regions.is_none(), "{only}, and regions of rows are over real variables");
        Ok(())
    }

    /// Whether the network gives location, scale and tail of components rather than all parameters.
    pub fn has_student_t_head(&self) -> bool {
        let usual = if self.conditional && self.family.has_student_t_head() { Head::StudentT } else { Head::Plain };
        self.is_pal() && self.head.unwrap_or(usual) == Head::StudentT
    }

    /// Returns the architecture of the model.
    pub fn kind(&self, hidden: &[usize], mixed: bool) -> PredictorKind {
        let hidden = hidden.to_vec();
        match self.baseline {
            None if mixed => PredictorKind::Mixed { hidden },
            None => match self.family.kernels() {
                Some(settings) => PredictorKind::Kernel { components: settings.components, hidden },
                None => PredictorKind::Pal { hidden, student_t: self.has_student_t_head() },
            },
            Some(Baseline::Gmm | Baseline::Mdn) => {
                PredictorKind::Mixture { components: self.family.components().unwrap_or(50), hidden }
            }
            Some(Baseline::Flow) => PredictorKind::Flow {
                transforms: self.transforms.unwrap_or(5),
                bins: 8,
                hidden: if hidden.is_empty() { vec![128, 128] } else { hidden },
            },
            Some(Baseline::Dsp) => {
                let usual = RelaxedSettings::default();
                let start = self.multiplier.unwrap_or(usual.start);
                PredictorKind::Relaxed { hidden, relaxed: RelaxedSettings { start, seed: self.seed, ..usual } }
            }
        }
    }

    pub fn float64(&self) -> bool {
        // Without a network float64 costs little; GPUs are made for float32.
        let network = self.conditional || self.baseline == Some(Baseline::Flow) || self.device == DeviceName::Gpu;
        let usual = if network { Precision::F32 } else { Precision::F64 };
        self.precision.unwrap_or(usual) == Precision::F64
    }

    pub fn device(&self) -> Result<Device> {
        match self.device {
            DeviceName::Cpu => Ok(device::open(Choice::Cpu)?),
            DeviceName::Gpu => {
                let device = device::open(Choice::Gpu).context("--device gpu")?;
                let dtype = if self.float64() { DType::F64 } else { DType::F32 };
                device::check(&device, dtype, Work::LogSpace).context("--device gpu")?;
                Ok(device)
            }
        }
    }

    /// The settings of the loop.
    pub fn settings(&self) -> TrainSettings {
        let learning_rate = self.learning_rate.unwrap_or(if self.conditional { 1e-3 } else { 1e-2 });
        let rule = match self.optimiser {
            OptimiserName::Adam => UpdateRule::Adam,
            OptimiserName::ScheduleFree => UpdateRule::ScheduleFree,
        };
        TrainSettings {
            epochs: self.epochs,
            batch: self.batch,
            patience: (self.patience > 0).then_some(self.patience),
            seed: self.seed,
            optimiser: OptimiserSettings { rule, learning_rate, ..OptimiserSettings::default() },
        }
    }

    /// Reads the data and divides them into training, validation and test.
    pub fn read(&self, columns: &Columns, points: &[PointColumn], constraint: RowConstraint) -> Result<Parts> {
        let group = self.group.as_deref();
        let source = DataReader { columns, points, group, constraint, drop_invalid: self.drop_invalid };
        let others = self.val_data.as_ref().map(|validation| (validation, self.test_data.as_ref()));
        source.parts(&self.data, others, self.split_seed.unwrap_or(self.seed))
    }
}
