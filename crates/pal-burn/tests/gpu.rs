//! The layer, training and cubature on a GPU, or on a software driver such as Mesa's lavapipe. Without either these
//! tests fail.
#![cfg(feature = "wgpu")]

mod common;

use burn::tensor::activation::tanh;
use burn::tensor::{DType, Device, Tensor, TensorData};
use common::cubature::{cases, check};
use pal::density::{Family, Knots, Settings, SplineSettings};
use pal::formula::{Formula, reals};
use pal::region::Region;
use pal_burn::device::{self, Choice, DeviceError, Operation, Work};
use pal_burn::{
    LayerError, Mlp, Network, OptimiserSettings, PalLayer, PalPredictor, Rows, TrainSettings, Trainable, Trainer,
    evaluate, weights,
};

fn gpu() -> Device {
    match device::open(Choice::Gpu) {
        Ok(device) => device,
        Err(error) => panic!("these tests need a GPU or Mesa's lavapipe: {error}"),
    }
}

/// Applies a function of tensors to numbers on the GPU.
fn on_gpu(values: &[f64], dtype: DType, f: impl Fn(Tensor<1>) -> Tensor<1>) -> Vec<f64> {
    let data = TensorData::new(values.to_vec(), [values.len()]);
    f(Tensor::from_data(data, (&gpu(), dtype))).into_data_dtype(DType::F64).try_into_vec().unwrap()
}

#[test]
fn it_has_a_name_and_opens_twice() {
    println!("GPU: {}", device::name(&gpu()));
    assert_eq!(gpu(), device::open(Choice::Gpu).unwrap());
}

#[test]
fn every_operation_is_right_in_float32() {
    for operation in Operation::ALL {
        assert_eq!(device::probe(&gpu(), DType::F32, operation), Ok(()), "{operation}");
    }
    let angles = [-3.0, -0.5, 0.0, 0.25, 2.0];
    for (got, x) in on_gpu(&angles, DType::F32, tanh).iter().zip(angles) {
        assert!((got - f64::tanh(x)).abs() < 1e-5, "tanh({x}) = {got}");
    }
}

/// In float64 a shading language has sums, products, quotients and roots, but not always exponentials and logarithms.
#[test]
fn float64_is_right_without_logarithms_and_refused_with_them() {
    let gpu = gpu();
    if !gpu.supports_dtype(DType::F64) {
        let refused = device::check(&gpu, DType::F64, Work::Products);
        assert!(matches!(refused, Err(DeviceError::Unsupported { dtype: DType::F64, .. })), "{refused:?}");
        return;
    }
    let logarithmic = [Operation::Exponential, Operation::Logarithm, Operation::LogSoftmax];
    for operation in Operation::ALL {
        let outcome = device::probe(&gpu, DType::F64, operation);
        println!("{operation} in float64: {outcome:?}");
        assert!(outcome.is_ok() || logarithmic.contains(&operation), "{operation}: {outcome:?}");
    }
    assert_eq!(device::check(&gpu, DType::F64, Work::Products), Ok(()));
    // The verdict on exponentials and logarithms is the same for other numbers than those of the probe.
    let numbers = [0.1, 0.7, 1.5, 3.0, 11.0];
    let wrong = |got: Vec<f64>, want: fn(f64) -> f64| {
        got.iter().zip(numbers).any(|(got, x)| {
            let error = (got - want(x)).abs();
            error.is_nan() || error > 1e-12 * want(x).abs()
        })
    };
    let exponentials = wrong(on_gpu(&numbers, DType::F64, Tensor::exp), f64::exp);
    let logarithms = wrong(on_gpu(&numbers, DType::F64, Tensor::log), f64::ln);
    assert_eq!(device::probe(&gpu, DType::F64, Operation::Exponential).is_err(), exponentials);
    assert_eq!(device::probe(&gpu, DType::F64, Operation::Logarithm).is_err(), logarithms);
    assert_eq!(device::check(&gpu, DType::F64, Work::LogSpace).is_err(), exponentials || logarithms);
}

#[test]
fn a_layer_in_float64_is_refused_where_it_is_wrong() {
    let gpu = gpu();
    let layer = PalLayer::new(&family(), &gpu, DType::F64);
    match device::check(&gpu, DType::F64, Work::LogSpace) {
        Ok(()) => assert!(layer.is_ok()),
        Err(error) => {
            println!("{error}");
            assert!(error.to_string().ends_with("use F32 on it, or the CPU"), "{error}");
            assert!(matches!(layer.unwrap_err(), LayerError::Device(refused) if refused == error));
        }
    }
    let half = PalLayer::new(&family(), &gpu, DType::F16);
    assert!(matches!(half.unwrap_err(), LayerError::Device(DeviceError::Precision(DType::F16))));
}

#[test]
fn the_layer_agrees_with_the_library() {
    common::layer::check(&gpu(), DType::F32, 1e-4);
}

#[test]
fn normalisers_of_smaller_regions_agree() {
    common::layer::check_normalisers(&gpu(), DType::F32, 1e-3);
}

#[test]
fn cubature_in_float64_agrees_to_twelve_digits() {
    if gpu().supports_dtype(DType::F64) {
        check(cases(), &gpu(), DType::F64, 1e-12);
    }
}

#[test]
fn cubature_in_float32_agrees_to_four_digits() {
    // Only a few cases: the driver compiles kernels for each shape, which takes longer than running them.
    let few = cases().into_iter().filter(|(name, ..)| ["cube 3", "7-star", "campus"].contains(&name.as_str()));
    check(few, &gpu(), DType::F32, 1e-4);
}

/// A square without its upper right quarter.
fn phi() -> Formula {
    let [x, y] = reals(["x", "y"]);
    x.between(-1, 1) & y.between(-1, 1) & !(x.gt(0) & y.gt(0))
}

fn family() -> Family {
    let settings = Settings::Spline(SplineSettings { knots: Knots::Uniform(5), components: 3 });
    Family::new(&Region::new(&phi().into()).unwrap(), &settings).unwrap()
}

#[test]
fn points_outside_have_no_density() {
    let layer = PalLayer::new(&family(), &gpu(), DType::F32).unwrap();
    let params = Tensor::<2>::ones([1, layer.num_params()], (&gpu(), DType::F32));
    let points = layer.points(&[0.5, 0.5, -0.5, 0.5, 2.0, 0.0]).unwrap();
    let logs: Vec<f64> = layer.log_prob(params, &points).into_data_dtype(DType::F64).try_into_vec().unwrap();
    assert_eq!((logs[0], logs[2]), (f64::NEG_INFINITY, f64::NEG_INFINITY));
    assert!(logs[1].is_finite());
}

/// Points near the input, and always inside.
fn data(device: &Device) -> Rows {
    let broad = family().density(&family().random_params(1, 3)).unwrap().sample(600, 11).unwrap();
    Rows {
        inputs: broad.clone(),
        columns: 2,
        points: broad.iter().map(|x| 0.8 * x).collect(),
        dimension: 2,
        regions: None,
        device: device.clone(),
        dtype: DType::F32,
    }
}

/// A network with unremarkable weights, the same on every device.
fn predictor(device: &Device) -> PalPredictor {
    let layer = PalLayer::new(&family(), device, DType::F32).unwrap();
    let network = Mlp::new(2, &[16, 16], layer.num_params(), device);
    let predictor = PalPredictor::new(Network::Mlp(network), layer);
    let sizes: Vec<usize> = weights::read::<PalPredictor, f32>(&predictor).iter().map(Vec::len).collect();
    let numbers = |size: usize| (0..size).map(|k| 0.25 * (2.1 * k as f32 + size as f32).sin()).collect();
    weights::write(predictor, &sizes.into_iter().map(numbers).collect::<Vec<Vec<f32>>>())
}

#[test]
fn a_network_trains_as_on_the_cpu() {
    let train = |device: Device| {
        let device = device.autodiff();
        let (predictor, rows) = (predictor(&device), data(&device));
        let before = evaluate(&predictor, &rows).unwrap();
        let optimiser = OptimiserSettings { learning_rate: 0.01, ..OptimiserSettings::default() };
        let settings = TrainSettings { epochs: 6, batch: 50, patience: None, seed: 1, optimiser };
        let mut trainer = Trainer::<PalPredictor, f32>::new(predictor, settings);
        trainer.run(&rows, &rows, |_, _| true).unwrap();
        let trained = trainer.finish();
        (before, evaluate(&trained, &rows).unwrap(), trained)
    };
    let (before, after, trained) = train(gpu());
    let (before_cpu, after_cpu, _) = train(Device::flex());
    println!("log-likelihood: {before} to {after} on the GPU, {before_cpu} to {after_cpu} on the CPU");
    assert!((before - before_cpu).abs() < 1e-4 && after > before + 0.5, "{before} {before_cpu} {after}");
    assert!((after - after_cpu).abs() < 1e-2, "{after} {after_cpu}");
    let inputs = pal_burn::matrix(&data(&gpu()).inputs, 2, &gpu(), DType::F32);
    let samples = trained.sample(Some(inputs), 0, 5).unwrap();
    let membership = pal::formula::Constraint::from(phi()).membership().unwrap();
    assert!(membership.contains_batch(&samples).iter().all(|inside| *inside));
}
