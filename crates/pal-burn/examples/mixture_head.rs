//! An existing network with a Gaussian-mixture head gets a head that cannot leave the constraint. The twin of
//! `examples/python/mixture_head.py`.

use std::error::Error;

use pal::density::{Family, SplineSettings};
use pal::formula::{GeoJsonOptions, parse_geojson};
use pal::region::Region;
use pal_burn::data::{Walkers, WindowSettings, windows};
use pal_burn::{
    Batch, DType, Device, Mixture, MixtureSettings, Network, OptimiserSettings, PalLayer, PalPredictor, Rows, Scaler,
    TrainSettings, Trainable, Trainer, evaluate, violation,
};

const MAP: &str = include_str!("../../pal-cli/assets/campus.geojson");
const HIDDEN: [usize; 2] = [64, 64];

fn main() -> Result<(), Box<dyn Error>> {
    // Where walkers will be, given where they are and where they were.
    let constraint = parse_geojson(MAP, &GeoJsonOptions::default())?;
    let positions = Walkers::new(&constraint)?.tracks(60, 0)?;
    let settings = WindowSettings { step: 2, futures: 2, min_distance: 0.0, seed: 0 };
    let table: Vec<[f64; 12]> = windows(&positions, &settings).into_iter().map(|(_, row)| row).collect();
    let inputs: Vec<f64> = table.iter().flat_map(|row| &row[..4]).copied().collect();
    let points: Vec<f64> = table.iter().flat_map(|row| &row[10..]).copied().collect();
    let device = Device::flex().autodiff();
    let inputs = Scaler::fit(&inputs, 4).apply(&inputs);
    let rows = |from: usize, to: usize| Rows {
        inputs: inputs[4 * from..4 * to].to_vec(),
        columns: 4,
        points: points[2 * from..2 * to].to_vec(),
        dimension: 2,
        regions: None,
        device: device.clone(),
        dtype: DType::F32,
    };
    let cut = table.len() * 4 / 5;
    let (train, test) = (rows(0, cut), rows(cut, table.len()));
    let batch: Batch = train.batch(&(0..cut.min(1000)).collect::<Vec<usize>>(), 0)?;

    // Before: a Gaussian mixture. After: a layer, whose number of parameters decides the number of outputs.
    let gaussians = MixtureSettings { components: 8, dimension: 2 };
    let network = Network::new(4, &HIDDEN, gaussians.num_params(), &device);
    let before = Mixture::new(network, gaussians, Scaler::fit(&points, 2)).start(&train.points, 0);
    let region = Region::new(&constraint)?;
    let splines = Family::new(&region, &SplineSettings::default().into())?;
    let layer = PalLayer::new(&splines, &device, DType::F32)?;
    let network = Network::new(4, &HIDDEN, layer.num_params(), &device);
    let after = PalPredictor::new(network, layer).start(&batch, &train.points, 0)?;

    let membership = region.point_membership()?;
    let leak = |name: &str, likelihood: f64, outside: f64| {
        println!("{name:<17} log-likelihood {likelihood:.3}, samples in walls {:.2} %", 100.0 * outside);
    };
    let trained = fit(before, &train, &test)?;
    let mass = violation(&trained, &test, |points| membership.contains_batch(points), 10_000, 1)?;
    leak("Gaussian mixture", evaluate(&trained, &test)?, mass.fraction());
    let trained = fit(after, &train, &test)?;
    let mass = violation(&trained, &test, |points| membership.contains_batch(points), 10_000, 1)?;
    leak("PalLayer", evaluate(&trained, &test)?, mass.fraction());
    assert_eq!(mass.outside, 0);
    Ok(())
}

fn fit<M: Trainable>(predictor: M, train: &Rows, test: &Rows) -> Result<M, Box<dyn Error>> {
    let optimiser = OptimiserSettings { learning_rate: 3e-3, ..OptimiserSettings::default() };
    let settings = TrainSettings { epochs: 4, batch: 128, optimiser, ..TrainSettings::default() };
    let mut trainer = Trainer::<M, f32>::new(predictor, settings);
    trainer.run(train, test, |_, _| true)?;
    Ok(trainer.finish())
}
