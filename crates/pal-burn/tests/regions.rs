//! Rows with regions of their own: log-densities and gradients are those of normalisers compiled one by one, samples stay
//! inside the region of their row, and training learns where the windows are alone.

use burn::tensor::{DType, Device, Tensor};
use pal::density::{Family, Knots, SplineSettings};
use pal::formula::reals;
use pal::random::Stream;
use pal::region::{Region, RegionBatch, RegionMap};
use pal_burn::{
    Batch, Network, Normaliser, PalLayer, PalPredictor, RowRegions, Rows, StudentTHead, TrainSettings, Trainable,
    Trainer, evaluate, to_f64_vec, violation,
};

/// Windows of a hall with a pillar and a slanted wall, and a family on their box.
fn windows(count: usize, seed: u64) -> (RegionBatch, Family) {
    let [x, y] = reals(["x", "y"]);
    let pillar = x.between(2, 3) & y.between(1, 2);
    let hall = x.between(0, 5) & y.between(0, 4) & (&x + 2 * &y).ge(1) & !pillar;
    let map = RegionMap::new(&Region::new(&hall.into()).unwrap()).unwrap();
    let mut stream = Stream::new(seed, 0);
    let centres: Vec<f64> = (0..count).flat_map(|_| [0.5 + 4.0 * stream.unit(), 0.5 + 3.0 * stream.unit()]).collect();
    let headings: Vec<f64> = (0..2 * count).map(|_| stream.normal()).collect();
    let regions = map.windows(&centres, &[1.0], Some(&headings), None).unwrap();
    let square = Region::new(&(x.between(-1, 1) & y.between(-1, 1)).into()).unwrap();
    let settings = SplineSettings { knots: Knots::Uniform(5), components: 3 };
    (regions, Family::new(&square, &settings.into()).unwrap())
}

#[test]
fn rows_agree_with_normalisers_that_were_compiled_one_by_one() {
    let (regions, family) = windows(12, 1);
    let device = Device::flex().autodiff();
    let layer = PalLayer::new(&family, &device, DType::F64).unwrap();
    let forms = family.on_regions(&regions).unwrap();
    let mut stream = Stream::new(2, 0);
    let points: Vec<f64> = (0..24).map(|_| 2.0 * stream.unit() - 1.0).collect();
    let inside = regions.contains(&points).unwrap();
    assert!(inside.contains(&true) && inside.contains(&false));
    let numbers: Vec<f64> = (0..12 * layer.num_params()).map(|_| 0.7 * stream.normal()).collect();
    let params = pal_burn::matrix(&numbers, layer.num_params(), &device, DType::F64).require_grad();
    let stacked: Vec<Normaliser> =
        (0..12).map(|row| layer.normaliser_within(&regions.constraint(row).unwrap().formula).unwrap()).collect();
    let marked = layer.points(&points).unwrap().restrict(&inside);
    let want = layer.log_prob_with(params.clone(), &marked, &Normaliser::stack(&stacked));
    let got = layer.log_prob_on(params.clone(), &points, &forms).unwrap();
    for (row, (got, want)) in to_f64_vec(got.clone()).iter().zip(to_f64_vec(want.clone())).enumerate() {
        assert_eq!(got.is_finite(), inside[row], "row {row}");
        assert!(*got == want || (got - want).abs() < 1e-11, "row {row}: {got} {want}");
    }
    // Sums of what is finite, because a gradient through minus infinity is no number.
    let finite = |log_prob: Tensor<1>| {
        let outside = log_prob.clone().detach().is_inf();
        let gradients = log_prob.mask_fill(outside, 0.0).sum().backward();
        to_f64_vec(params.grad(&gradients).unwrap())
    };
    let (want, got) = (finite(want), finite(got));
    assert!(want.iter().any(|x| x.abs() > 0.1));
    assert!(got.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-10));
    let nan = params * f64::NAN;
    assert!(to_f64_vec(layer.log_prob_on(nan, &points, &forms).unwrap()).iter().all(|x| x.is_nan()));
}

/// Rows whose points are uniform in the part of their windows ahead of the walker.
fn data(count: usize, seed: u64, device: &Device, compiled: bool) -> (Rows, Family) {
    let (regions, family) = windows(count, seed);
    let mut stream = Stream::new(seed, 1);
    let (mut chosen, mut points) = (Vec::new(), Vec::new());
    for row in 0..count {
        let own = regions.select(&[row]).unwrap();
        let draws = (0..200).map(|_| [stream.unit(), 2.0 * stream.unit() - 1.0]);
        if let Some(point) = draws.into_iter().find(|point| own.contains(point).unwrap()[0]) {
            chosen.push(row);
            points.extend(point);
        }
    }
    let regions = regions.select(&chosen).unwrap();
    let regions = match compiled {
        true => RowRegions::Compiled(family.on_regions(&regions).unwrap()),
        false => RowRegions::InSteps(family.clone(), regions),
    };
    let inputs = vec![0.0; chosen.len()];
    let (device, dtype) = (device.clone(), DType::F64);
    (Rows { inputs, columns: 1, points, dimension: 2, regions: Some(regions), device, dtype }, family)
}

#[test]
fn training_learns_and_samples_stay_in_the_windows_of_their_rows() {
    let device = Device::flex().autodiff();
    let (train, family) = data(600, 11, &device, true);
    let (in_steps, _) = data(600, 11, &device, false);
    let (validation, _) = data(200, 13, &device, true);
    let layer = PalLayer::new(&family, &device, DType::F64).unwrap();
    for with_head in [true, false] {
        device.seed(5);
        let predictor = if with_head {
            let head = StudentTHead::new(&layer).unwrap();
            PalPredictor::with_head(Network::new(1, &[8], head.num_params(), &device), head, layer.clone())
        } else {
            PalPredictor::new(Network::new(1, &[8], layer.num_params(), &device), layer.clone())
        };
        let predictor = pal_burn::weights::cast(predictor, DType::F64);
        // Compiled beforehand or in the step: the same numbers.
        let rows: Vec<usize> = (0..100).collect();
        let losses =
            [&train, &in_steps].map(|rows_of| to_f64_vec(predictor.loss(&rows_of.batch(&rows, 0).unwrap()).unwrap()));
        assert_eq!(losses[0], losses[1]);
        let before = evaluate(&predictor, &validation).unwrap();
        let mut settings = TrainSettings { epochs: 30, batch: 100, ..TrainSettings::default() };
        settings.optimiser.learning_rate = 0.02;
        let mut trainer = Trainer::<PalPredictor, f64>::new(predictor, settings);
        trainer.run(&train, &validation, |_, _| true).unwrap();
        let trained = trainer.finish();
        let after = evaluate(&trained, &validation).unwrap();
        // Half of a free window has twice the density of the whole one: log 2 is 0.69, less where walls are.
        assert!(after > before + 0.3, "with head: {with_head}, {before} {after}");
        let [x, y] = reals(["x", "y"]);
        let square = pal::formula::Constraint::new(x.between(-1, 1) & y.between(-1, 1)).membership().unwrap();
        let found = violation(&trained, &validation, |points| square.contains_batch(points), 20_000, 3).unwrap();
        assert!(found.samples >= 20_000 && found.outside == 0, "{found:?}");
        let Batch { inputs, regions, .. } = validation.batch(&[0, 1, 2], 0).unwrap();
        let ahead = trained.sample_on(inputs, regions.as_ref(), 500, 4).unwrap();
        let share = ahead.chunks(2).filter(|point| point[0] > 0.0).count() as f64 / 1500.0;
        assert!(share > 0.75, "with head: {with_head}, {share}");
    }
}
