//! Every model is a density: it integrates to one, its samples follow it, and training makes it likelier.

use burn::module::Param;
use burn::tensor::{DType, Device, Tensor};
use pal::density::{Compiled, Knots, Settings, SplineSettings};
use pal::formula::{Formula, reals};
use pal::region::Region;
use pal_burn::{
    Batch, Flow, FlowSettings, Free, Mixture, MixtureSettings, Model, Network, OptimiserSettings, PalLayer, PalModel,
    Relaxed, RelaxedSettings, Rows, Scaler, TrainSettings, Trainer, evaluate, weights,
};

const DTYPE: DType = DType::F64;

fn device() -> Device {
    Device::flex().autodiff()
}

fn phi() -> Formula {
    let [x, y] = reals(["x", "y"]);
    x.between(-1, 1) & y.between(-1, 1) & !(x.gt(0) & y.gt(0))
}

/// A network that depends on nothing, with numbers that are not special.
fn free(size: usize) -> Network {
    let values: Vec<f64> = (0..size).map(|k| 0.7 * (1.3 * k as f64).sin()).collect();
    Network::Free(Free { row: Param::from_tensor(pal_burn::matrix(&values, size, &device(), DTYPE)) })
}

fn scaler() -> Scaler {
    Scaler { mean: vec![-0.1, 0.2], deviation: vec![0.5, 0.4] }
}

fn mixture(components: usize) -> Mixture {
    let settings = MixtureSettings { components, dimension: 2 };
    Mixture::new(free(settings.num_params()), settings, scaler())
}

fn flow() -> Flow {
    let settings = FlowSettings { dimension: 2, inputs: 0, transforms: 2, bins: 6, hidden: vec![16] };
    let flow = Flow::new(settings, scaler(), &device());
    // In doubles, and far from the identity.
    let sizes: Vec<usize> = weights::read::<Flow, f64>(&flow).iter().map(Vec::len).collect();
    let numbers = |size: usize| (0..size).map(|k| 0.3 * (2.1 * k as f64 + size as f64).sin()).collect();
    weights::write(in_doubles(flow), &sizes.into_iter().map(numbers).collect::<Vec<Vec<f64>>>())
}

fn in_doubles<M: Model>(model: M) -> M {
    struct Cast;
    impl burn::module::ModuleMapper for Cast {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            param.map(|tensor| tensor.cast(DTYPE).detach().require_grad())
        }
    }
    model.map(&mut Cast)
}

fn pal_model(mixtures: usize) -> PalModel {
    let settings = Settings::Spline(SplineSettings { knots: Knots::Uniform(5), mixtures });
    let family = Compiled::new(&Region::new(&phi().into()).unwrap(), &settings).unwrap();
    PalModel::new(free(family.num_params()), PalLayer::new(&family, &device(), DTYPE).unwrap())
}

fn logs<M: Model>(model: &M, points: &[f64]) -> Vec<f64> {
    let batch = Batch { inputs: None, points: points.to_vec(), dimension: 2, step: 0 };
    model.log_prob(&batch).unwrap().into_data_dtype(DType::F64).try_into_vec().unwrap()
}

/// The midpoint rule on a large square, and the share of samples in a smaller one that is made of whole cells.
fn check<M: Model>(model: &M, half: f64, tolerance: f64) {
    let n = 800;
    let at = |k: usize| half * (2.0 * (k as f64 + 0.5) / n as f64 - 1.0);
    let points: Vec<f64> = (0..n * n).flat_map(|k| [at(k % n), at(k / n)]).collect();
    let density: Vec<f64> = logs(model, &points).iter().map(|log| log.exp()).collect();
    let cell = (2.0 * half / n as f64).powi(2);
    let total: f64 = density.iter().sum::<f64>() * cell;
    assert!((total - 1.0).abs() < tolerance, "{total}");
    let inside = |point: &[f64]| point[0] < -0.12 && point[1].abs() < 0.48;
    let cells = points.chunks(2).zip(&density);
    let want = cells.filter(|(point, _)| inside(point)).map(|(_, p)| p).sum::<f64>() * cell;
    let samples = model.sample(None, 40_000, 3).unwrap();
    let got = samples.chunks(2).filter(|point| inside(point)).count() as f64 / 40_000.0;
    // Five deviations of the share, and the error of the rule.
    assert!((got - want).abs() < 0.0125 + tolerance, "{got} {want}");
}

#[test]
fn densities_integrate_to_one_and_samples_follow_them() {
    check(&mixture(3), 8.0, 1e-3);
    check(&flow(), 4.0, 2e-3);
    check(&pal_model(3), 1.0, 1e-2);
    let relaxed = Relaxed::new(mixture(1), phi().into(), RelaxedSettings::default()).unwrap();
    check(&relaxed, 8.0, 1e-3);
}

fn train<M: Model>(model: M, epochs: usize) -> (f64, f64) {
    let truth = pal_model(2);
    let points = truth.sample(None, 3000, 17).unwrap();
    let rows = |points: &[f64]| Rows {
        inputs: Vec::new(),
        columns: 0,
        points: points.to_vec(),
        dimension: 2,
        device: device(),
        dtype: DTYPE,
    };
    let (train, validation) = (rows(&points[..4000]), rows(&points[4000..]));
    let before = evaluate(&model, &validation).unwrap();
    let optimiser = OptimiserSettings { learning_rate: 0.02, ..OptimiserSettings::default() };
    let settings = TrainSettings { epochs, batch: 200, patience: Some(10), seed: 1, optimiser };
    let mut trainer = Trainer::<M, f64>::new(model, settings);
    trainer.run(&train, &validation, |_, _| true).unwrap();
    (before, evaluate(&trainer.finish(), &validation).unwrap())
}

#[test]
fn training_makes_them_likelier() {
    for (before, after) in [train(pal_model(3), 15), train(mixture(3), 15), train(flow(), 15)] {
        assert!(after > before + 0.03, "{before} {after}");
    }
}

#[test]
fn a_relaxed_constraint_draws_mass_inside() {
    let inside = |model: &Relaxed| {
        let membership = pal::formula::Constraint::from(phi()).membership().unwrap();
        let samples = model.sample(None, 5000, 1).unwrap();
        membership.contains_batch(&samples).iter().filter(|inside| **inside).count()
    };
    let relaxed =
        Relaxed::new(mixture(1), phi().into(), RelaxedSettings { alpha: 1e-2, ..Default::default() }).unwrap();
    let before = inside(&relaxed);
    let points = pal_model(2).sample(None, 500, 17).unwrap();
    let rows = Rows { inputs: vec![], columns: 0, points, dimension: 2, device: device(), dtype: DTYPE };
    let optimiser = OptimiserSettings { learning_rate: 0.02, ..OptimiserSettings::default() };
    let settings = TrainSettings { epochs: 20, batch: 100, patience: None, seed: 1, optimiser };
    let mut trainer = Trainer::<Relaxed, f64>::new(relaxed, settings);
    trainer.run(&rows, &rows, |_, _| true).unwrap();
    assert!(inside(&trainer.averaged()) > before + 500, "{before}");
}

#[test]
fn a_resumed_training_ends_in_the_same_numbers() {
    let points = pal_model(2).sample(None, 600, 17).unwrap();
    let rows = Rows { inputs: vec![], columns: 0, points, dimension: 2, device: device(), dtype: DTYPE };
    let settings = TrainSettings { epochs: 6, batch: 100, patience: None, seed: 1, ..TrainSettings::default() };
    let mut whole = Trainer::<PalModel, f64>::new(pal_model(3), settings.clone());
    whole.run(&rows, &rows, |_, _| true).unwrap();
    let mut first = Trainer::<PalModel, f64>::new(pal_model(3), settings.clone());
    first.run(&rows, &rows, |trainer, _| trainer.epochs() < 3).unwrap();
    let bytes = first.checkpoint("test").unwrap();
    let mut second = Trainer::<PalModel, f64>::resume(pal_model(3), settings.clone(), "test", &bytes).unwrap();
    second.run(&rows, &rows, |_, _| true).unwrap();
    assert_eq!(second.epochs(), 6);
    assert_eq!(whole.best(), second.best());
    assert_eq!(weights::read::<_, f64>(&whole.finish()), weights::read::<_, f64>(&second.finish()));
    assert!(Trainer::<PalModel, f64>::resume(pal_model(3), settings.clone(), "other", &bytes).is_err());
    assert!(Trainer::<PalModel, f64>::resume(pal_model(3), settings, "test", &bytes[..bytes.len() / 2]).is_err());
}
