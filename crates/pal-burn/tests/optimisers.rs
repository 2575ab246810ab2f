//! Optimisers against steps computed independently from the published equations.

use burn::module::{Module, Param};
use burn::tensor::{DType, Device, Tensor, TensorData};
use pal_burn::{Optimiser, OptimiserSettings, UpdateRule, weights};

/// A module with two numbers.
#[derive(Module, Debug)]
struct Pair {
    row: Param<Tensor<1>>,
}

fn pair(values: [f64; 2]) -> Pair {
    let device = Device::flex().autodiff();
    let row = Tensor::<1>::from_data(TensorData::new(values.to_vec(), [2]), (&device, DType::F64));
    Pair { row: Param::from_tensor(row) }
}

/// `(a - 3)^2 + 10 (b + 1)^2`, smallest at (3, -1).
fn step(module: Pair, optimiser: &mut Optimiser<f64>) -> Pair {
    let device = Device::flex();
    let tensor =
        |values: [f64; 2]| Tensor::<1>::from_data(TensorData::new(values.to_vec(), [2]), (&device, DType::F64));
    let offset = module.row.val() - tensor([3.0, -1.0]);
    let loss = (offset.square() * tensor([1.0, 10.0])).sum();
    let gradients = loss.backward();
    optimiser.step(module, gradients)
}

fn read(module: &Pair) -> Vec<f64> {
    weights::read::<Pair, f64>(module).remove(0)
}

#[test]
fn the_first_step_of_adam_is_the_learning_rate_against_the_sign() {
    let settings = OptimiserSettings { rule: UpdateRule::Adam, learning_rate: 0.1, ..OptimiserSettings::default() };
    let mut optimiser = Optimiser::new(settings);
    let module = step(pair([0.0, 0.0]), &mut optimiser);
    let got = read(&module);
    assert!((got[0] - 0.1).abs() < 1e-8 && (got[1] + 0.1).abs() < 1e-8, "{got:?}");
}

/// Three steps by the equations of Defazio et al., which keep z, x and y separately.
#[test]
fn schedule_free_steps_follow_the_equations() {
    let settings = OptimiserSettings { learning_rate: 0.2, weight_decay: 0.01, ..OptimiserSettings::default() };
    let (beta1, beta2, rate) = (0.9, 0.999, 0.2);
    let start = [0.5, -0.3];
    let mut optimiser = Optimiser::new(settings);
    let mut module = pair(start);
    let (mut z, mut x, mut v) = (start, start, [0.0; 2]);
    for t in 1..=3 {
        module = step(module, &mut optimiser);
        let y: [f64; 2] = std::array::from_fn(|k| (1.0 - beta1) * z[k] + beta1 * x[k]);
        let gradient = [2.0 * (y[0] - 3.0), 20.0 * (y[1] + 1.0)];
        for k in 0..2 {
            v[k] = beta2 * v[k] + (1.0 - beta2) * gradient[k] * gradient[k];
            let root = (v[k] / (1.0 - f64::powi(beta2, t))).sqrt() + 1e-8;
            z[k] -= rate * (gradient[k] / root + 0.01 * y[k]);
            x[k] += (z[k] - x[k]) / f64::from(t);
        }
        let held = read(&module);
        let averaged = read(&optimiser.averaged(module.clone()));
        for k in 0..2 {
            let y = (1.0 - beta1) * z[k] + beta1 * x[k];
            assert!((held[k] - y).abs() < 1e-12 && (averaged[k] - x[k]).abs() < 1e-12, "{t}: {held:?} {averaged:?}");
        }
    }
}

#[test]
fn both_find_the_minimum() {
    for rule in [UpdateRule::Adam, UpdateRule::ScheduleFree] {
        let mut optimiser =
            Optimiser::new(OptimiserSettings { rule, learning_rate: 0.05, ..OptimiserSettings::default() });
        let mut module = pair([0.0, 0.0]);
        for _ in 0..3000 {
            module = step(module, &mut optimiser);
        }
        let found = read(&optimiser.averaged(module));
        assert!((found[0] - 3.0).abs() < 1e-2 && (found[1] + 1.0).abs() < 1e-2, "{rule:?}: {found:?}");
    }
}
