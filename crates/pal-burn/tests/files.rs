//! Files of networks and checkpoints that are damaged, forged or absurd are refused, and nothing that they ask for is
//! believed.

use burn::tensor::Device;
use pal::container::{Container, pack};
use pal::density::{Family, Knots, SplineSettings};
use pal::formula::{Constraint, reals};
use pal::region::Region;
use pal_burn::{
    AnyFamily, Mixture, MixtureSettings, Network, NetworkFile, Plan, PredictorKind, Rows, Scaler, TrainSettings,
    Trainer,
};
use serde_json::{Value, json};

fn constraint() -> Constraint {
    let [x, y] = reals(["x", "y"]);
    (x.between(0, 1) & y.between(0, 1) & (&x + &y).le(1)).into()
}

fn network(kind: PredictorKind) -> Vec<u8> {
    let constraint = constraint();
    let settings = SplineSettings { knots: Knots::Uniform(3), components: 1 };
    let family = AnyFamily::from(Family::new(&Region::new(&constraint).unwrap(), &settings.into()).unwrap());
    let scaler = || Scaler { mean: vec![0.25, 0.5], deviation: vec![0.5, 2.0] };
    let names = |names: [&str; 2]| names.map(str::to_string).to_vec();
    let (inputs, outputs) = (names(["a", "b"]), names(["x", "y"]));
    let plan =
        Plan { kind, inputs, outputs, input_scaler: scaler(), output_scaler: scaler(), float64: false, regions: None };
    let predictor = plan.build(&constraint, Some(&family), &Device::flex(), 3).unwrap();
    NetworkFile { plan, constraint, map: None, family: Some(family), predictor }.to_bytes().unwrap()
}

fn read(bytes: &[u8]) -> Result<NetworkFile, String> {
    NetworkFile::from_bytes(bytes, &Device::flex()).map_err(|error| error.to_string())
}

#[test]
fn every_bit_of_a_network_is_under_its_checksum() {
    let bytes = network(PredictorKind::Pal { hidden: vec![3], student_t: false });
    assert!(read(&bytes).is_ok());
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(read(&damaged).is_err(), "byte {at} of {}", bytes.len());
    }
    // The header holds the plan and the constraint: all of its bits.
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    for bit in 0..8 * header {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(read(&damaged).is_err(), "bit {bit}");
    }
}

#[test]
fn every_bit_of_a_checkpoint_is_under_its_checksum() {
    let settings = MixtureSettings { components: 2, dimension: 2 };
    let model = || {
        let network = Network::new(0, &[], settings.num_params(), &Device::flex().autodiff());
        let scaler = Scaler { mean: vec![0.0; 2], deviation: vec![1.0; 2] };
        pal_burn::weights::cast(Mixture::new(network, settings.clone(), scaler), burn::tensor::DType::F64)
    };
    let points: Vec<f64> = (0..200).map(|k| (1.3 * f64::from(k)).sin()).collect();
    let device = Device::flex().autodiff();
    let rows = Rows {
        inputs: vec![],
        columns: 0,
        points,
        dimension: 2,
        regions: None,
        device,
        dtype: burn::tensor::DType::F64,
    };
    let train = TrainSettings { epochs: 2, batch: 50, ..TrainSettings::default() };
    let mut trainer = Trainer::<Mixture, f64>::new(model(), train.clone());
    trainer.run(&rows, &rows, |_, _| true).unwrap();
    let bytes = trainer.checkpoint("about").unwrap();
    let resume = |bytes: &[u8]| Trainer::<Mixture, f64>::resume(model(), train.clone(), "about", bytes).map(|_| ());
    assert!(resume(&bytes).is_ok());
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(resume(&damaged).is_err(), "byte {at} of {}", bytes.len());
    }
    for length in (0..bytes.len()).step_by(3) {
        assert!(resume(&bytes[..length]).is_err(), "{length} bytes");
    }
}

/// The file with another plan and a checksum that fits.
fn forged(bytes: &[u8], change: impl Fn(&mut Value)) -> Vec<u8> {
    let container = Container::read(bytes, "pal-network-5").unwrap();
    let mut plan: Value = serde_json::from_str(container.text("plan").unwrap()).unwrap();
    change(&mut plan);
    let texts = [("plan", plan.to_string()), ("constraint", container.text("constraint").unwrap().to_string())];
    let tensors: Vec<_> = container.tensors().tensors();
    let tensors: Vec<_> = tensors
        .into_iter()
        .map(|(name, view)| (name, view.dtype(), view.shape().to_vec(), view.data().to_vec()))
        .collect();
    pack("pal-network-5", texts, &tensors).unwrap()
}

/// Plans that ask for what the file does not have, or for what makes no sense: neither a panic nor an allocation.
#[test]
fn plans_are_not_believed() {
    let pal = network(PredictorKind::Pal { hidden: vec![3], student_t: false });
    let mixture = network(PredictorKind::Mixture { components: 2, hidden: vec![3] });
    let flow = network(PredictorKind::Flow { transforms: 1, bins: 3, hidden: vec![3] });
    for bytes in [&pal, &mixture, &flow] {
        assert!(read(&forged(bytes, |_| {})).is_ok());
        for hidden in [json!([1_000_000_000u64, 1_000_000_000u64]), json!([0]), json!([3, 0]), json!([4]), json!([])] {
            assert!(read(&forged(bytes, |plan| plan["kind"]["hidden"] = hidden.clone())).is_err(), "{hidden}");
        }
        for scaler in ["input_scaler", "output_scaler"] {
            for (mean, deviation) in [
                (json!([]), json!([])),
                (json!([0.0]), json!([1.0])),
                (json!([0.0, 0.0]), json!([1.0, 0.0])),
                (json!([0.0, 0.0]), json!([1.0, -1.0])),
                (json!([0.0, 0.0, 0.0]), json!([1.0, 1.0, 1.0])),
            ] {
                let change = |plan: &mut Value| plan[scaler] = json!({"mean": mean, "deviation": deviation});
                assert!(read(&forged(bytes, change)).is_err(), "{scaler} {mean} {deviation}");
            }
        }
        for outputs in [json!([]), json!(["x"]), json!(["x", "y", "z"])] {
            assert!(read(&forged(bytes, |plan| plan["outputs"] = outputs.clone())).is_err(), "{outputs}");
        }
        let window = |half_width: Value, centre: Value, places: Value| json!({"map": null, "window": {"half_width": half_width, "centre": centre, "heading": null, "places": places}});
        for (regions, good) in [
            (window(json!([1.0, 2.0]), json!(["x0", "y0"]), json!([])), true),
            (window(json!([1.0]), json!(["x0", "y0"]), json!([])), false),
            (window(json!([1.0, -2.0]), json!(["x0", "y0"]), json!([])), false),
            (window(json!([1.0, 2.0]), json!(["x0"]), json!([])), false),
            (window(json!([1.0, 2.0]), json!(["x0", "y0"]), json!(["no", "input"])), false),
        ] {
            let change = |plan: &mut Value| plan["regions"] = regions.clone();
            assert_eq!(read(&forged(bytes, change)).is_ok(), good, "{regions}");
        }
        for inputs in [json!([]), json!(["a"])] {
            assert!(read(&forged(bytes, |plan| plan["inputs"] = inputs.clone())).is_err(), "{inputs}");
        }
    }
    for components in [0u64, 1, 1_000_000_000_000_000, u64::MAX] {
        let change = |plan: &mut Value| plan["kind"]["components"] = components.into();
        assert!(read(&forged(&mixture, change)).is_err(), "{components} components");
    }
    for (field, count) in
        [("bins", 0u64), ("bins", 1000), ("bins", u64::MAX), ("transforms", 0), ("transforms", 1 << 60)]
    {
        assert!(read(&forged(&flow, |plan| plan["kind"][field] = count.into())).is_err(), "{count} {field}");
    }
}
