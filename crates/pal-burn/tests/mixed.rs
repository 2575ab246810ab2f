//! Layers over real and Boolean variables: gradients, training, and files.

use burn::tensor::{DType, Device, Tensor};
use pal::density::{Family, HistogramSettings, Knots, Settings, SplineSettings};
use pal::formula::{Constraint, Formula, parse_smtlib};
use pal::mixed::MixedFamily;
use pal::random::Stream;
use pal::region::Region;
use pal_burn::{
    AnyFamily, Batch, MixedLayer, MixedPredictor, Network, NetworkFile, Plan, Predictor, PredictorKind, Rows, Scaler,
    TrainSettings, Trainable, Trainer, evaluate, matrix, to_f64_vec, violation, weights,
};

/// A position from 0 to 4: on foot at most 1, and in the rain not by bike.
fn constraint() -> Constraint {
    parse_smtlib(
        "(declare-datatype Mode ((walk) (bike) (car)))
         (declare-const x Real) (declare-const mode Mode) (declare-const wet Bool)
         (assert (<= 0 x 4)) (assert (=> (= mode walk) (<= x 1))) (assert (=> wet (distinct mode bike)))",
    )
    .unwrap()
}

fn family(settings: impl Into<Settings>) -> MixedFamily {
    MixedFamily::new(&Region::new(&constraint()).unwrap(), &settings.into()).unwrap()
}

fn splines(components: usize) -> MixedFamily {
    family(SplineSettings { knots: Knots::Uniform(4), components })
}

/// Points of the constraint: the position, walk, bike, car, wet.
const POINTS: [f64; 20] = [0.5, 1., 0., 0., 1., 3.2, 0., 1., 0., 0., 2.1, 0., 0., 1., 1., 0.9, 0., 0., 1., 0.];

fn inside(points: &[f64]) -> Vec<bool> {
    let membership = constraint().membership().unwrap();
    points
        .chunks(5)
        .map(|point| {
            let booleans: Vec<bool> = point[1..].iter().map(|value| *value == 1.0).collect();
            membership.contains_with(&point[..1], &booleans)
        })
        .collect()
}

/// Gradients are those of finite differences, for a row of parameters per point and for one row for all points.
#[test]
fn gradients_agree_with_finite_differences() {
    let device = Device::flex().autodiff();
    for family in [splines(2), family(HistogramSettings { knots: Knots::Uniform(4), components: 2 })] {
        let layer = MixedLayer::new(family.clone());
        let width = layer.num_params();
        for rows in [1, 4] {
            let numbers = family.random_params(rows, 5);
            let params = matrix(&numbers, width, &device, DType::F64).require_grad();
            let weights = matrix(&[0.3, 1.1, -0.4, 0.8], 4, &device, DType::F64);
            let weighted = |logs: Tensor<1>| (logs.reshape([1, 4]) * weights.clone()).sum();
            let total = weighted(layer.log_prob(params.clone(), &POINTS).unwrap());
            let of_log_prob = to_f64_vec(params.grad(&total.backward()).unwrap());
            let loss = layer.loss(params.clone(), &POINTS).unwrap();
            let of_loss = to_f64_vec(params.grad(&loss.backward()).unwrap());
            let value = |numbers: &[f64], mean: bool| -> f64 {
                let logs = family.log_prob(numbers, &POINTS).unwrap();
                match mean {
                    true => -logs.iter().sum::<f64>() / 4.0,
                    false => logs.iter().zip([0.3, 1.1, -0.4, 0.8]).map(|(log, weight)| log * weight).sum(),
                }
            };
            let step = 1e-5;
            for (gradient, mean) in [(of_log_prob, false), (of_loss, true)] {
                let mut largest: f64 = 0.0;
                for at in 0..numbers.len() {
                    let shifted = |by: f64| {
                        let mut numbers = numbers.clone();
                        numbers[at] += by;
                        value(&numbers, mean)
                    };
                    let difference = (shifted(step) - shifted(-step)) / (2.0 * step);
                    assert!((gradient[at] - difference).abs() < 1e-7, "{at}: {} {difference}", gradient[at]);
                    largest = largest.max(difference.abs());
                }
                assert!(largest > 0.01, "{largest}");
            }
        }
    }
}

#[test]
fn points_outside_have_no_density_and_numbers_that_are_not_finite_give_nan() {
    let layer = MixedLayer::new(splines(1));
    let width = layer.num_params();
    let zeros = matrix(&vec![0.0; width], width, &Device::flex(), DType::F32);
    // On foot at 3, and by bike in the rain.
    let logs = to_f64_vec(layer.log_prob(zeros, &[3.0, 1., 0., 0., 0., 3.0, 0., 1., 0., 1.]).unwrap());
    assert_eq!(logs, [f64::NEG_INFINITY; 2]);
    let wild = matrix(&vec![f64::INFINITY; width], width, &Device::flex(), DType::F32);
    assert!(to_f64_vec(layer.log_prob(wild, &POINTS).unwrap()).iter().all(|log| log.is_nan()));
}

/// Rows whose input decides: below 0 on foot or by car close to the origin, above 0 by bike and far away.
fn rows(count: usize, seed: u64, dtype: DType) -> Rows {
    let (mut inputs, mut points) = (Vec::new(), Vec::new());
    for row in 0..count {
        let mut stream = Stream::new(seed, row as u64);
        let input = 2.0 * stream.unit() - 1.0;
        let near = stream.unit();
        inputs.push(input);
        points.extend(match (input < 0.0, stream.unit() < 0.5) {
            (true, true) => [near, 1., 0., 0., 1.],
            (true, false) => [near, 0., 0., 1., 0.],
            (false, _) => [3.0 + near, 0., 1., 0., 0.],
        });
    }
    Rows { inputs, columns: 1, points, dimension: 5, regions: None, device: Device::flex(), dtype }
}

/// The best mean log-density that there is: uniform on [0, 1] with two modes of equal probability for half of the rows,
/// which is log 1/2, and uniform on [3, 4] for the other half, which is 0.
const LIMIT: f64 = -std::f64::consts::LN_2 / 2.0;

#[test]
fn a_network_learns_what_its_input_decides() {
    let layer = MixedLayer::new(family(HistogramSettings { knots: Knots::Uniform(5), components: 3 }));
    let device = Device::flex().autodiff();
    device.seed(1);
    let network = Network::new(1, &[16], layer.num_params(), &device);
    let (train, validation) = (rows(600, 1, DType::F64), rows(200, 2, DType::F64));
    let predictor = MixedPredictor::new(network, layer).start(&train.points, 3).unwrap();
    let predictor = weights::cast(predictor, DType::F64);
    let before = evaluate(&predictor, &validation).unwrap();
    let mut settings = TrainSettings { epochs: 100, batch: 100, patience: None, ..TrainSettings::default() };
    settings.optimiser.learning_rate = 0.02;
    let mut trainer = Trainer::<MixedPredictor, f64>::new(predictor, settings);
    trainer.run(&train, &validation, |_, _| true).unwrap();
    let trained = trainer.finish();
    let after = evaluate(&trained, &validation).unwrap();
    assert!(before < LIMIT - 0.3 && after > LIMIT - 0.1 && after < LIMIT + 0.05, "{before} {after} {LIMIT}");
    let found = violation(&trained, &validation, inside, 20_000, 4).unwrap();
    assert!(found.samples >= 20_000 && found.outside == 0, "{found:?}");
    // What a network says can be asked for like any density.
    let params = trained.params(Some(matrix(&[-0.8, 0.8], 1, &Device::flex(), DType::F64)));
    let densities = trained.layer().family().densities(&params).unwrap();
    let bike = Formula::boolean("mode=bike");
    let [left, right] = [0, 1].map(|row| densities[row].probability(&bike).unwrap());
    assert!(left < 0.05 && right > 0.95, "{left} {right}");
}

fn plan(kind: PredictorKind, float64: bool) -> Plan {
    let scaler = |columns: usize| Scaler { mean: vec![0.5; columns], deviation: vec![2.0; columns] };
    Plan {
        kind,
        inputs: vec!["a".to_string()],
        outputs: ["x", "mode", "wet"].map(str::to_string).to_vec(),
        input_scaler: scaler(1),
        output_scaler: scaler(3),
        float64,
        regions: None,
    }
}

#[test]
fn files_keep_mixed_networks() {
    let family = AnyFamily::from(splines(2));
    for float64 in [false, true] {
        let plan = plan(PredictorKind::Mixed { hidden: vec![6] }, float64);
        let predictor = plan.build(&constraint(), Some(&family), &Device::flex(), 3).unwrap();
        let file = NetworkFile { plan, constraint: constraint(), map: None, family: Some(family.clone()), predictor };
        let bytes = file.to_bytes().unwrap();
        let back = NetworkFile::from_bytes(&bytes, &Device::flex()).unwrap();
        assert_eq!(back.plan, file.plan);
        let rows = rows(50, 3, file.plan.dtype());
        let all: Vec<usize> = (0..50).collect();
        let values = |file: &NetworkFile| {
            let batch: Batch = rows.batch(&all, 0).unwrap();
            to_f64_vec(file.predictor.log_prob(&batch).unwrap())
        };
        assert_eq!(values(&back), values(&file));
        assert!(matches!(back.predictor, Predictor::Mixed(_)));
        for at in (0..bytes.len()).step_by(37) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(NetworkFile::from_bytes(&damaged, &Device::flex()).is_err(), "byte {at}");
        }
    }
}

#[test]
fn families_and_plans_that_do_not_fit_are_refused() {
    let mixed = AnyFamily::from(splines(1));
    let reals = Region::new(&constraint()).unwrap().onto_reals();
    let real = AnyFamily::from(Family::new(&reals, &SplineSettings::default().into()).unwrap());
    let error = |plan: &Plan, family: Option<&AnyFamily>| {
        plan.build(&constraint(), family, &Device::flex(), 0).unwrap_err().to_string()
    };
    let kind = PredictorKind::Mixed { hidden: vec![4] };
    assert!(error(&plan(kind.clone(), true), Some(&real)).contains("needs a mixed family"));
    assert!(error(&plan(kind.clone(), true), None).contains("needs a mixed family"));
    let short = Plan { outputs: vec!["x".to_string()], ..plan(kind, true) };
    assert!(error(&short, Some(&mixed)).contains("1 outputs for a constraint with 3 variables"));
}
