//! One training step under a constraint, beside the same network with a plain Gaussian in place of the layer.
//!
//! Batch 128, inputs 10, hidden layers 512 and 512, splines with 14 knots and 8 components on the campus map: 456
//! outputs. The Gaussian has as many outputs: means and log standard deviations of 228 coordinates. The two are
//! measured alternately, so that other work of the machine affects both.

use std::time::Instant;

use burn::tensor::{DType, Device, Tensor};
use pal::density::{Family, Knots, Settings, SplineSettings};
use pal::formula::{GeoJsonOptions, parse_geojson};
use pal::region::Region;
use pal_burn::{Batch, Mlp, Network, Optimiser, OptimiserSettings, PalLayer, PalPredictor, Trainable, matrix};

const BATCH: usize = 128;
const INPUTS: usize = 10;
const MAP: &str = include_str!("../../pal-cli/assets/campus.geojson");

/// The number of steps per turn, and the number of turns.
const STEPS: usize = 20;
const TURNS: usize = 31;

fn main() {
    let constraint = parse_geojson(MAP, &GeoJsonOptions::default()).expect("a map");
    let settings = Settings::Spline(SplineSettings { knots: Knots::Uniform(14), components: 8 });
    let family = Family::new(&Region::new(&constraint).expect("a region"), &settings).expect("a family");
    let density = family.density(&family.random_params(1, 1)).expect("a density");
    let points = density.sample(BATCH, 1).expect("samples");
    let device = Device::flex().autodiff();
    let outputs = family.num_params();
    let inputs: Vec<f64> = (0..BATCH * INPUTS).map(|k| (0.37 * k as f64).sin()).collect();
    let x = matrix(&inputs, INPUTS, &device, DType::F32);

    let network = || Mlp::new(INPUTS, &[512, 512], outputs, &device);
    let layer = PalLayer::new(&family, &device, DType::F32).expect("a layer");
    let mut predictor = PalPredictor::new(Network::Mlp(network()), layer);
    let mut optimiser = Optimiser::<f32>::new(OptimiserSettings::default());
    let batch = Batch { inputs: Some(x.clone()), points: points.clone(), dimension: 2, regions: None, step: 0 };
    let mut layer_step = || {
        let loss = predictor.loss(&batch).expect("a loss");
        predictor = optimiser.step(predictor.clone(), loss.backward());
    };

    let mut plain = network();
    let mut optimiser = Optimiser::<f32>::new(OptimiserSettings::default());
    let half = outputs / 2;
    let repeated: Vec<f64> = points.chunks(2).flat_map(|point| point.iter().cycle().take(half)).copied().collect();
    let mut gaussian_step = || {
        let target: Tensor<2> = matrix(&repeated, half, &device, DType::F32);
        let out = plain.forward(x.clone());
        let (mean, log) = (out.clone().slice([0..BATCH, 0..half]), out.slice([0..BATCH, half..2 * half]));
        let scaled = (target - mean) * (-log.clone()).exp();
        let loss = (scaled.square() * 0.5 + log).sum_dim(1).mean();
        plain = optimiser.step(plain.clone(), loss.backward());
    };

    let time = |step: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..STEPS).for_each(|_| step());
        start.elapsed().as_secs_f64() * 1e3 / STEPS as f64
    };
    // The first turn is a warm-up.
    let turns: Vec<(f64, f64)> =
        (0..=TURNS).map(|_| (time(&mut layer_step), time(&mut gaussian_step))).skip(1).collect();
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let layer = median(turns.iter().map(|turn| turn.0).collect());
    let gaussian = median(turns.iter().map(|turn| turn.1).collect());
    let ratio = median(turns.iter().map(|turn| turn.0 / turn.1).collect());
    println!(
        "layer {layer:.2} ms, gaussian {gaussian:.2} ms, ratio {ratio:.2} (medians of {TURNS} turns of {STEPS} steps)"
    );
}
