//! A traveller: how far, by which means, and whether it rains, from one input. The constraint ties all of them together,
//! and the network has no mass outside it.
//!
//! ```text
//! cargo run --release -p pal-burn --example mixed
//! ```

use burn::tensor::{DType, Device};
use pal::density::{Knots, SplineSettings};
use pal::formula::parse_smtlib;
use pal::mixed::MixedFamily;
use pal::random::Stream;
use pal::region::Region;
use pal_burn::{MixedLayer, MixedPredictor, Network, Rows, TrainSettings, Trainer, evaluate, matrix, violation};

const RULES: &str = "
    (declare-datatype Mode ((walk) (bike) (car)))
    (declare-const distance Real) (declare-const mode Mode) (declare-const wet Bool)
    (assert (<= 0 distance 10))
    (assert (=> (= mode walk) (<= distance 2)))
    (assert (=> wet (distinct mode bike)))";

/// Trips of people with a car more or less at hand: points are the distance, walk, bike, car, wet.
fn trips(count: usize, seed: u64) -> Rows {
    let (mut inputs, mut points) = (Vec::new(), Vec::new());
    for row in 0..count {
        let mut stream = Stream::new(seed, row as u64);
        let (car, wet) = (stream.unit(), stream.unit() < 0.3);
        let drives = stream.unit() < car || wet && stream.unit() < 0.5;
        let walks = wet || stream.unit() < 0.4;
        inputs.push(2.0 * car - 1.0);
        points.extend(match (drives, walks) {
            (true, _) => [10.0 * stream.unit().sqrt(), 0., 0., 1.],
            (false, true) => [2.0 * stream.unit(), 1., 0., 0.],
            (false, false) => [5.0 * stream.unit(), 0., 1., 0.],
        });
        points.push(f64::from(u8::from(wet)));
    }
    Rows { inputs, columns: 1, points, dimension: 5, regions: None, device: Device::flex(), dtype: DType::F32 }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let constraint = parse_smtlib(RULES)?;
    let settings = SplineSettings { knots: Knots::Uniform(6), components: 4 };
    let family = MixedFamily::new(&Region::new(&constraint)?, &settings.into())?;
    println!("{} parts, {} parameters", family.support().num_parts(), family.num_params());

    let device = Device::flex().autodiff();
    device.seed(0);
    let layer = MixedLayer::new(family);
    let network = Network::new(1, &[32], layer.num_params(), &device);
    let (train, validation) = (trips(2000, 1), trips(500, 2));
    let predictor = MixedPredictor::new(network, layer).start(&train.points, 0)?;
    println!("log-density at the start     {:.3}", evaluate(&predictor, &validation)?);
    let mut settings = TrainSettings { epochs: 10, ..TrainSettings::default() };
    settings.optimiser.learning_rate = 0.005;
    let mut trainer = Trainer::<MixedPredictor, f32>::new(predictor, settings);
    trainer.run(&train, &validation, |_, _| true)?;
    let trained = trainer.finish();
    println!("log-density after training   {:.3}", evaluate(&trained, &validation)?);

    let membership = constraint.membership()?;
    let inside = |points: &[f64]| {
        let of = |point: &[f64]| {
            let booleans: Vec<bool> = point[1..].iter().map(|value| *value == 1.0).collect();
            membership.contains_with(&point[..1], &booleans)
        };
        points.chunks(5).map(of).collect()
    };
    let found = violation(&trained, &validation, inside, 100_000, 3)?;
    println!("outside the constraint       {} of {} samples", found.outside, found.samples);
    let params = trained.params(Some(matrix(&[-1.0, 1.0], 1, &Device::flex(), DType::F32)));
    for (what, density) in ["without a car", "with a car"].iter().zip(trained.layer().family().densities(&params)?) {
        let table = density.table(&["mode=car"])?;
        println!("probability of driving       {:.3} {what}", table.probabilities[1]);
    }
    assert_eq!(found.outside, 0);
    Ok(())
}
