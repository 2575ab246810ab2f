//! Where will a walker be? A network predicts a density that respects the walls of a drone scene. The twin of
//! `examples/python/drone_scene.py`.
//!
//! Without arguments the data are simulated walks on the campus. A real scene is a map and a table of positions with
//! the columns `trajectory_id,frame,x,y`:
//!
//! ```text
//! cargo run --release -p pal-burn --example drone_scene -- scene12_constraints.geojson scene12_trajectories.csv
//! ```

use std::error::Error;
use std::fs;

use pal::density::{Family, Knots, Settings, SplineSettings};
use pal::formula::{Constraint, GeoJsonOptions, parse_geojson, real};
use pal::region::Region;
use pal_burn::data::{Position, Walkers, WindowSettings, windows};
use pal_burn::{
    DType, Device, Network, OptimiserSettings, PalLayer, PalPredictor, Rows, Scaler, Split, StudentTHead,
    TrainSettings, Trainable, Trainer, evaluate,
};

const CAMPUS: &str = include_str!("../../pal-cli/assets/campus.geojson");
/// The number of inputs: the coordinates of five past positions.
const INPUTS: usize = 10;

fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let (constraint, positions) = match &files[..] {
        [map, tracks] => (parse_geojson(&fs::read_to_string(map)?, &GeoJsonOptions::default())?, read(tracks)?),
        _ => {
            let campus = parse_geojson(CAMPUS, &GeoJsonOptions::default())?;
            let positions = Walkers::new(&campus)?.tracks(60, 0)?;
            (campus, positions)
        }
    };
    let questions = questions(&constraint, &positions)?;
    let groups: Vec<&String> = questions.iter().map(|(track, _)| track).collect();
    let inputs: Vec<f64> = questions.iter().flat_map(|(_, row)| &row[..INPUTS]).copied().collect();
    let points: Vec<f64> = questions.iter().flat_map(|(_, row)| &row[INPUTS..]).copied().collect();
    let split = Split::new(&groups, 0)?;
    let device = Device::flex().autodiff();
    let take = |values: &[f64], width: usize, rows: &[usize]| -> Vec<f64> {
        rows.iter().flat_map(|row| &values[row * width..(row + 1) * width]).copied().collect()
    };
    let scaler = Scaler::fit(&take(&inputs, INPUTS, &split.train), INPUTS);
    let part = |rows: &[usize]| Rows {
        inputs: scaler.apply(&take(&inputs, INPUTS, rows)),
        columns: INPUTS,
        points: take(&points, 2, rows),
        dimension: 2,
        regions: None,
        device: device.clone(),
        dtype: DType::F32,
    };
    let (train, validation, test) = (part(&split.train), part(&split.validation), part(&split.test));

    let region = Region::new(&constraint)?;
    let settings = Settings::Spline(SplineSettings { knots: Knots::Uniform(28), components: 8 });
    let layer = PalLayer::new(&Family::new(&region, &settings)?, &device, DType::F32)?;
    // The network gives locations, widths and tails instead of all values at the knots.
    let head = StudentTHead::new(&layer).ok_or("the head is for splines")?;
    let network = Network::new(INPUTS, &[128, 128], head.num_params(), &device);
    let predictor = PalPredictor::with_head(network, head, layer).start(&train.batch(&[0], 0)?, &train.points, 0)?;
    let optimiser = OptimiserSettings { learning_rate: 2e-3, ..OptimiserSettings::default() };
    let settings = TrainSettings { epochs: 4, batch: 128, optimiser, ..TrainSettings::default() };
    let mut trainer = Trainer::<PalPredictor, f32>::new(predictor, settings);
    trainer.run(&train, &validation, |_, milestone| {
        if let pal_burn::Milestone::Epoch(epoch) = milestone {
            println!("epoch {}  train {:.3}  validation {:.3}", epoch.number, epoch.train, epoch.validation);
        }
        true
    })?;
    let predictor = trainer.finish();

    let uniform = -region.volume()?.ln();
    println!("held out: log-likelihood {:.3}, uniform {uniform:.3}", evaluate(&predictor, &test)?);
    let some = test.batch(&(0..test.len().min(200)).collect::<Vec<usize>>(), 0)?.inputs;
    let samples = predictor.sample(some.clone(), 10, 1)?;
    let membership = constraint.membership()?;
    assert!(membership.contains_batch(&samples).iter().all(|inside| *inside));
    println!("{} samples, none in a wall", samples.len() / 2);
    let middle = pal::number::from_f64(test.points[1])?;
    let north = predictor.layer().family().event(&real("y").ge(middle))?.probability(&predictor.params(some))?;
    println!("P(further up than the first walker was) of the first walkers: {:.3?}", &north[..3.min(north.len())]);
    Ok(())
}

/// The name of a track, past positions on it and a later one.
type Question = (String, [f64; INPUTS + 2]);

/// Cuts rows of past and future positions from the tracks and keeps those whose future position obeys the map.
fn questions(constraint: &Constraint, positions: &[Position]) -> Result<Vec<Question>, Box<dyn Error>> {
    let settings = WindowSettings { step: 2, futures: 2, min_distance: 0.0, seed: 0 };
    let membership = constraint.membership()?;
    let all = windows(positions, &settings);
    let count = all.len();
    let kept: Vec<Question> = all.into_iter().filter(|(_, row)| membership.contains(&row[INPUTS..])).collect();
    println!("{} of {count} positions violate the map and are left out", count - kept.len());
    Ok(kept)
}

fn read(path: &str) -> Result<Vec<Position>, Box<dyn Error>> {
    let text = fs::read_to_string(path)?;
    let mut positions = Vec::new();
    for (number, line) in text.lines().enumerate().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [track, time, x, y] = &fields[..] else {
            return Err(format!("{path}: line {}: trajectory_id,frame,x,y expected", number + 1).into());
        };
        positions.push(Position { track: track.to_string(), time: time.parse()?, place: [x.parse()?, y.parse()?] });
    }
    Ok(positions)
}
