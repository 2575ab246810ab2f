//! Every predictor is a density: it integrates to one, its samples follow it, and training increases its likelihood.

use burn::module::Param;
use burn::tensor::{DType, Device};
use pal::density::{Basis, Family, HistogramSettings, Knots, Settings, SplineSettings, SumOfSquaresSettings};
use pal::formula::{Formula, reals};
use pal::kernel::{KernelFamily, KernelSettings};
use pal::region::Region;
use pal_burn::{
    AnyFamily, Batch, Flow, FlowSettings, Free, KernelPredictor, Milestone, Mixture, MixtureSettings, Network,
    NetworkFile, OptimiserSettings, PalLayer, PalPredictor, Plan, Predictor, PredictorKind, Relaxed, RelaxedSettings,
    Rows, Scaler, TrainSettings, Trainable, Trainer, evaluate, violation, weights,
};

const DTYPE: DType = DType::F64;

fn device() -> Device {
    Device::flex().autodiff()
}

fn phi() -> Formula {
    let [x, y] = reals(["x", "y"]);
    x.between(-1, 1) & y.between(-1, 1) & !(x.gt(0) & y.gt(0))
}

/// A network without inputs, whose outputs are unremarkable numbers.
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
    // In float64, and far from the identity.
    let sizes: Vec<usize> = weights::read::<Flow, f64>(&flow).iter().map(Vec::len).collect();
    let numbers = |size: usize| (0..size).map(|k| 0.3 * (2.1 * k as f64 + size as f64).sin()).collect();
    weights::write(weights::cast(flow, DTYPE), &sizes.into_iter().map(numbers).collect::<Vec<Vec<f64>>>())
}

fn pal_model(components: usize) -> PalPredictor {
    of_family(SplineSettings { knots: Knots::Uniform(5), components })
}

fn histogram_model(components: usize) -> PalPredictor {
    of_family(HistogramSettings { knots: Knots::Uniform(9), components })
}

fn kernel_model(components: usize) -> KernelPredictor {
    let family = KernelFamily::new(&Region::new(&phi().into()).unwrap(), &KernelSettings { components }).unwrap();
    KernelPredictor::new(free(family.num_params()), family)
}

fn of_family(settings: impl Into<Settings>) -> PalPredictor {
    let settings = settings.into();
    let family = Family::new(&Region::new(&phi().into()).unwrap(), &settings).unwrap();
    PalPredictor::new(free(family.num_params()), PalLayer::new(&family, &device(), DTYPE).unwrap())
}

fn logs<M: Trainable>(predictor: &M, points: &[f64]) -> Vec<f64> {
    let batch = Batch { inputs: None, points: points.to_vec(), dimension: 2, regions: None, step: 0 };
    predictor.log_prob(&batch).unwrap().into_data_dtype(DType::F64).try_into_vec().unwrap()
}

/// The density integrates to 1 by the midpoint rule on a large square, and the fraction of samples in a smaller
/// rectangle, a union of cells of the rule, is its integral there.
fn check<M: Trainable>(predictor: &M, half: f64, tolerance: f64) {
    let n = 800;
    let at = |k: usize| half * (2.0 * (k as f64 + 0.5) / n as f64 - 1.0);
    let points: Vec<f64> = (0..n * n).flat_map(|k| [at(k % n), at(k / n)]).collect();
    let density: Vec<f64> = logs(predictor, &points).iter().map(|log| log.exp()).collect();
    let cell = (2.0 * half / n as f64).powi(2);
    let total: f64 = density.iter().sum::<f64>() * cell;
    assert!((total - 1.0).abs() < tolerance, "{total}");
    let inside = |point: &[f64]| point[0] < -0.12 && point[1].abs() < 0.48;
    let cells = points.chunks(2).zip(&density);
    let want = cells.filter(|(point, _)| inside(point)).map(|(_, p)| p).sum::<f64>() * cell;
    let samples = predictor.sample(None, 40_000, 3).unwrap();
    let got = samples.chunks(2).filter(|point| inside(point)).count() as f64 / 40_000.0;
    // Five standard deviations of the fraction, and the error of the rule.
    assert!((got - want).abs() < 0.0125 + tolerance, "{got} {want}");
}

#[test]
fn densities_integrate_to_one_and_samples_follow_them() {
    check(&mixture(3), 8.0, 1e-3);
    check(&flow(), 4.0, 2e-3);
    check(&pal_model(3), 1.0, 1e-2);
    check(&histogram_model(3), 1.0, 1e-2);
    check(&kernel_model(3), 1.0, 1e-2);
    let relaxed = Relaxed::new(mixture(1), phi().into(), RelaxedSettings::default()).unwrap();
    check(&relaxed, 8.0, 1e-3);
}

fn train<M: Trainable>(predictor: M, epochs: usize) -> (f64, f64) {
    let truth = pal_model(2);
    let points = truth.sample(None, 3000, 17).unwrap();
    let rows = |points: &[f64]| Rows {
        inputs: Vec::new(),
        columns: 0,
        points: points.to_vec(),
        dimension: 2,
        regions: None,
        device: device(),
        dtype: DTYPE,
    };
    let (train, validation) = (rows(&points[..4000]), rows(&points[4000..]));
    let before = evaluate(&predictor, &validation).unwrap();
    let optimiser = OptimiserSettings { learning_rate: 0.02, ..OptimiserSettings::default() };
    let settings = TrainSettings { epochs, batch: 200, patience: Some(10), seed: 1, optimiser };
    let mut trainer = Trainer::<M, f64>::new(predictor, settings);
    trainer.run(&train, &validation, |_, _| true).unwrap();
    (before, evaluate(&trainer.finish(), &validation).unwrap())
}

#[test]
fn training_increases_the_likelihood() {
    let histograms = train(histogram_model(3), 15);
    for (before, after) in [train(pal_model(3), 15), histograms, train(mixture(3), 15), train(flow(), 15)] {
        assert!(after > before + 0.03, "{before} {after}");
    }
}

#[test]
fn a_relaxed_constraint_draws_mass_inside() {
    let inside = |predictor: &Relaxed| {
        let membership = pal::formula::Constraint::from(phi()).membership().unwrap();
        let samples = predictor.sample(None, 5000, 1).unwrap();
        membership.contains_batch(&samples).iter().filter(|inside| **inside).count()
    };
    let relaxed =
        Relaxed::new(mixture(1), phi().into(), RelaxedSettings { alpha: 1e-2, ..Default::default() }).unwrap();
    let before = inside(&relaxed);
    let points = pal_model(2).sample(None, 500, 17).unwrap();
    let rows = Rows { inputs: vec![], columns: 0, points, dimension: 2, regions: None, device: device(), dtype: DTYPE };
    let optimiser = OptimiserSettings { learning_rate: 0.02, ..OptimiserSettings::default() };
    let settings = TrainSettings { epochs: 20, batch: 100, patience: None, seed: 1, optimiser };
    let mut trainer = Trainer::<Relaxed, f64>::new(relaxed, settings);
    trainer.run(&rows, &rows, |_, _| true).unwrap();
    assert!(inside(&trainer.averaged()) > before + 500, "{before}");
}

#[test]
fn a_resumed_training_ends_in_the_same_numbers() {
    let points = pal_model(2).sample(None, 600, 17).unwrap();
    let rows = Rows { inputs: vec![], columns: 0, points, dimension: 2, regions: None, device: device(), dtype: DTYPE };
    let settings = TrainSettings { epochs: 6, batch: 100, patience: None, seed: 1, ..TrainSettings::default() };
    let mut whole = Trainer::<PalPredictor, f64>::new(pal_model(3), settings.clone());
    whole.run(&rows, &rows, |_, _| true).unwrap();
    let mut first = Trainer::<PalPredictor, f64>::new(pal_model(3), settings.clone());
    first
        .run(&rows, &rows, |trainer, milestone| !matches!(milestone, Milestone::Epoch(_)) || trainer.epochs() < 3)
        .unwrap();
    let bytes = first.checkpoint("test").unwrap();
    let mut second = Trainer::<PalPredictor, f64>::resume(pal_model(3), settings.clone(), "test", &bytes).unwrap();
    second.run(&rows, &rows, |_, _| true).unwrap();
    assert_eq!(second.epochs(), 6);
    assert_eq!(whole.best(), second.best());
    assert_eq!(weights::read::<_, f64>(&whole.finish()), weights::read::<_, f64>(&second.finish()));
    assert!(Trainer::<PalPredictor, f64>::resume(pal_model(3), settings.clone(), "other", &bytes).is_err());
    assert!(Trainer::<PalPredictor, f64>::resume(pal_model(3), settings, "test", &bytes[..bytes.len() / 2]).is_err());
}

/// Starting values of every predictor are closer to the data than random parameters.
#[test]
fn training_starts_near_the_data() {
    let points = pal_model(2).sample(None, 2000, 17).unwrap();
    let batch = Batch { inputs: None, points: points.clone(), dimension: 2, regions: None, step: 0 };
    let mean = |logs: Vec<f64>| logs.iter().sum::<f64>() / logs.len() as f64;
    let uniform = -3f64.ln();
    let pal = pal_model(3);
    for untrained in [pal.clone(), histogram_model(3)] {
        let started = untrained.start(&batch, &points, 1).unwrap();
        let found = mean(logs(&started, &points));
        assert!(found > uniform + 0.02, "{found} {uniform}");
    }
    let gaussians = mixture(6);
    let started = gaussians.clone().start(&points, 1);
    assert!(mean(logs(&started, &points)) > mean(logs(&gaussians, &points)) + 0.1);
    // It works with all points in one place and with no points.
    for few in [[-0.5, 0.5].repeat(10), vec![]] {
        let params = pal_burn::start::family_params(pal.layer().family(), &few, 1).unwrap();
        assert_eq!(params.len(), pal.layer().num_params());
        assert!(params.iter().all(|value| value.is_finite()));
        let params = pal_burn::start::mixture_params(&MixtureSettings { components: 6, dimension: 2 }, &few, 1);
        assert!(params.len() == 6 * 6 && params.iter().all(|value| value.is_finite()));
    }
}

/// The factors found by L-BFGS are at a minimum: changing one of them does not decrease the loss.
#[test]
fn scales_of_raw_polynomials_are_fitted() {
    // Two squares: where a single one is zero the loss has a pole, and there are minima between poles.
    let settings = Settings::SumOfSquares(SumOfSquaresSettings {
        degree: Some(4),
        components: 2,
        basis: Basis::Monomial,
        subset: None,
    });
    let family = Family::new(&Region::new(&phi().into()).unwrap(), &settings).unwrap();
    let layer = PalLayer::new(&family, &device(), DTYPE).unwrap();
    let points = pal_model(2).sample(None, 1000, 17).unwrap();
    let size = layer.num_params();
    // Like those of an untrained network: outputs of different sizes, which change a little from row to row.
    let output = |k: usize| 0.3 + (1.3 * (k % size) as f64).sin() + 0.1 * (0.61 * k as f64).sin();
    let outputs: Vec<f64> = (0..1000 * size).map(output).collect();
    let outputs = pal_burn::matrix(&outputs, size, &device(), DTYPE);
    let prepared = layer.points(&points).unwrap();
    let (factors, [before, after]) = pal_burn::start::scales(&layer, outputs.clone(), &prepared);
    assert!(after < before - 0.1, "{before} {after}");
    let loss = |factors: &[f64]| -> f64 {
        let factors = pal_burn::matrix(factors, size, &device(), DTYPE);
        layer.loss(outputs.clone() * factors, &prepared).into_scalar()
    };
    assert!((loss(&factors) - after).abs() < 1e-9);
    for k in 1..size {
        for change in [0.9, 1.1] {
            let mut other = factors.clone();
            other[k] *= change;
            let nearby = loss(&other);
            assert!(nearby > after - 1e-3, "{k} {change}: {nearby} {after}");
        }
    }
}

/// A file holds all of a predictor: what is read back gives bitwise the same log-densities.
#[test]
fn files_carry_everything() {
    let settings = Settings::SumOfSquares(SumOfSquaresSettings {
        degree: Some(3),
        components: 2,
        basis: Basis::Orthonormal,
        subset: None,
    });
    let constraint: pal::formula::Constraint = phi().into();
    let region = Region::new(&constraint).unwrap();
    let squares = AnyFamily::from(Family::new(&region, &settings).unwrap());
    let splines = Settings::Spline(SplineSettings { knots: Knots::Uniform(5), components: 2 });
    let splines = AnyFamily::from(Family::new(&region, &splines).unwrap());
    let histograms = Settings::Histogram(HistogramSettings { knots: Knots::Uniform(6), components: 2 });
    let histograms = AnyFamily::from(Family::new(&region, &histograms).unwrap());
    let hidden = vec![7, 5];
    let kinds = [
        PredictorKind::Pal { hidden: hidden.clone(), student_t: false },
        PredictorKind::Pal { hidden: hidden.clone(), student_t: true },
        PredictorKind::Mixture { components: 3, hidden: hidden.clone() },
        PredictorKind::Flow { transforms: 2, bins: 4, hidden: hidden.clone() },
        PredictorKind::Relaxed { hidden, relaxed: RelaxedSettings::default() },
    ];
    let points = pal_model(2).sample(None, 40, 17).unwrap();
    for (kind, float64) in kinds.into_iter().flat_map(|kind| [(kind.clone(), false), (kind, true)]) {
        let family = match (&kind, float64) {
            (PredictorKind::Pal { student_t: true, .. }, _) => &splines,
            (PredictorKind::Pal { .. }, true) => &histograms,
            _ => &squares,
        };
        let plan = Plan {
            kind,
            inputs: vec!["a".to_string(), "b".to_string()],
            outputs: vec!["x".to_string(), "y".to_string()],
            input_scaler: scaler(),
            output_scaler: scaler(),
            float64,
            regions: None,
        };
        let predictor = plan.build(&constraint, Some(family), &Device::flex(), 3).unwrap();
        let same = plan.build(&constraint, Some(family), &Device::flex(), 3).unwrap();
        let other = plan.build(&constraint, Some(family), &Device::flex(), 4).unwrap();
        let file = NetworkFile {
            plan: plan.clone(),
            constraint: constraint.clone(),
            map: None,
            family: Some(family.clone()),
            predictor,
        };
        let bytes = file.to_bytes().unwrap();
        assert_eq!(bytes, NetworkFile { predictor: same, ..file.clone() }.to_bytes().unwrap());
        assert_ne!(bytes, NetworkFile { predictor: other, ..file.clone() }.to_bytes().unwrap());
        assert!(NetworkFile::recognises(&bytes));
        let back = NetworkFile::from_bytes(&bytes, &Device::flex()).unwrap();
        assert_eq!(back.plan, plan);
        let inputs: Vec<f64> = (0..80).map(|k| (1.7 * k as f64).cos()).collect();
        let inputs = Some(pal_burn::matrix(&inputs, 2, &Device::flex(), plan.dtype()));
        let batch = Batch { inputs: inputs.clone(), points: points.clone(), dimension: 2, regions: None, step: 0 };
        let values = |predictor: &Predictor| pal_burn::to_f64_vec(predictor.log_prob(&batch).unwrap());
        assert_eq!(values(&back.predictor), values(&file.predictor));
        // Three points for each row of inputs.
        let drawn = back.predictor.sample(inputs, 3, 1).unwrap();
        assert_eq!(drawn.len(), 40 * 3 * 2);
        assert!(drawn.iter().all(|value| value.is_finite()));
        for at in [9, bytes.len() / 2, bytes.len() - 3] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert!(NetworkFile::from_bytes(&damaged, &Device::flex()).is_err(), "{at}");
        }
    }
}

#[test]
fn violations_are_counted_by_exact_membership() {
    let membership = pal::formula::Constraint::from(phi()).membership().unwrap();
    let inside = |points: &[f64]| membership.contains_batch(points);
    let rows = Rows {
        inputs: vec![],
        columns: 0,
        points: vec![0.0; 2],
        dimension: 2,
        regions: None,
        device: device(),
        dtype: DTYPE,
    };
    let none = violation(&pal_model(3), &rows, inside, 100_000, 1).unwrap();
    assert_eq!((none.samples, none.outside), (100_000, 0));
    // One Gaussian in the middle of the forbidden quarter, so narrow that no sample leaves that quarter.
    let settings = MixtureSettings { components: 1, dimension: 2 };
    let params = pal_burn::matrix(&[0.0, 0.0, 0.0, 9.0, 9.0, 0.0], 6, &device(), DTYPE);
    let network = Network::Free(Free { row: Param::from_tensor(params) });
    let inside_obstacle = Scaler { mean: vec![0.5, 0.5], deviation: vec![1.0, 1.0] };
    let all = violation(&Mixture::new(network, settings, inside_obstacle), &rows, inside, 1000, 1).unwrap();
    assert_eq!((all.samples, all.outside), (1000, 1000));
}
