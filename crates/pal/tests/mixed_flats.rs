//! Mixed densities whose reals satisfy equalities: closed forms, and the same densities with the equalities solved by
//! hand.

mod common;

use common::densities::{histogram, spline, sum_of_squares};
use common::ratio;
use pal::density::{Basis, DensityError, Family, RowInput, Settings};
use pal::formula::{Constraint, Formula, Linear, Substitution, reals};
use pal::mixed::{MixedFamily, MixedModel};
use pal::polynomial::Polynomial;
use pal::query::{EntropyOptions, ModeOptions, ModeStop};
use pal::region::Region;

fn active() -> Formula {
    Formula::boolean("active")
}

/// Shares that add up to 1; what is not active has at most a quarter.
fn shares() -> Constraint {
    let [a, b, c] = reals(["a", "b", "c"]);
    Constraint::new((&a + &b + &c).equals(1) & a.ge(0) & b.ge(0) & c.ge(0) & (active() | a.le(ratio(1, 4))))
}

/// The same with one share solved for.
fn solved() -> Constraint {
    let [a, b] = reals(["a", "b"]);
    let rest = Linear::from(1) - &a - &b;
    let formula = shares().formula.substitute(&Substitution::new().real("c", rest));
    Constraint { formula, reals: shares().reals[..2].to_vec(), booleans: shares().booleans }
}

fn compile(constraint: &Constraint, settings: &Settings) -> MixedFamily {
    MixedFamily::new(&Region::new(constraint).unwrap(), settings).unwrap()
}

fn kinds() -> [Settings; 3] {
    [spline(5, 3), histogram(4, 3), sum_of_squares(2, 3, Basis::Orthonormal)]
}

/// The triangle has the area sqrt(3) / 2, and the part without active shares 7 / 16 of it.
#[test]
fn the_uniform_density_of_shares_has_closed_forms() {
    let uniform = sum_of_squares(0, 1, Basis::Orthonormal);
    let area = 23.0 / 16.0 * 3f64.sqrt() / 2.0;
    for free in [["a", "b"], ["b", "c"], ["a", "c"]] {
        let region = Region::new(&shares()).unwrap().with_free(&free).unwrap();
        let family = MixedFamily::new(&region, &uniform).unwrap();
        let density = family.density(&vec![0.0; family.num_params()]).unwrap();
        let points = [0.125, 0.5, 0.375, 1.0, 0.125, 0.5, 0.375, 0.0, 0.5, 0.25, 0.25, 0.0, 0.5, 0.25, 0.5, 1.0];
        let log_prob = density.log_prob(&points).unwrap();
        assert!((log_prob[0] + area.ln()).abs() < 1e-13 && (log_prob[1] + area.ln()).abs() < 1e-13, "{log_prob:?}");
        assert_eq!(log_prob[2..], [f64::NEG_INFINITY; 2], "too large a share, and a sum that is not 1");
        assert!((density.probability(&active()).unwrap() - 16.0 / 23.0).abs() < 1e-13);
        let mean = density.mean();
        let want = [37.0 / 138.0, 101.0 / 276.0, 101.0 / 276.0, 16.0 / 23.0];
        assert!(mean.iter().zip(&want).all(|(a, b)| (a - b).abs() < 1e-13), "{free:?}: {mean:?} for {want:?}");
        for (k, name) in ["a", "b", "c"].iter().enumerate() {
            let marginal = density.marginal(name).unwrap();
            assert!((marginal.mean() - want[k]).abs() < 1e-12, "{free:?} {name}: {}", marginal.mean());
        }
        let entropy = density.entropy(&EntropyOptions::default()).unwrap();
        assert!((entropy.value - area.ln()).abs() < 1e-9, "{free:?}: {entropy:?}");
        let covariance = density.covariance();
        for i in 0..4 {
            // The shares add up to 1: their covariances with anything add up to 0.
            let sum: f64 = (0..3).map(|j| covariance[i * 4 + j]).sum();
            assert!(sum.abs() < 1e-13, "{free:?} {i}: {sum}");
        }
        let c = reals(["c"])[0].clone();
        let half = density.expectation(&Polynomial::from(c), &active()).unwrap();
        assert!((half - 16.0 / 69.0).abs() < 1e-13, "{half}");
    }
}

#[test]
fn a_flat_is_the_constraint_with_its_equalities_solved() {
    let [a, b] = reals(["a", "b"]);
    let factor = 3f64.sqrt().ln();
    for settings in kinds() {
        let (family, plain) = (compile(&shares(), &settings), compile(&solved(), &settings));
        assert_eq!((family.num_params(), family.support().columns()), (plain.num_params(), 4));
        let params = family.random_params(5, 9);
        assert_eq!(family.log_normaliser(&params).unwrap().len(), 5 * family.num_components());
        let (density, other) = (
            family.density(&params[..family.num_params()]).unwrap(),
            plain.density(&params[..plain.num_params()]).unwrap(),
        );
        let event = (a.le(&b) & active()) | (&a + &b).ge(ratio(2, 3));
        let (got, want) = (density.probability(&event).unwrap(), other.probability(&event).unwrap());
        assert!((got - want).abs() < 1e-13, "{settings:?}: {got} for {want}");
        // The same in terms of the dependent share.
        let c = reals(["c"])[0].clone();
        let both = [c.le(ratio(1, 3)), (&a + &b).ge(ratio(2, 3))].map(|event| density.probability(&event).unwrap());
        assert_eq!(both[0], both[1], "{settings:?}");
        let samples = density.sample(50, 3).unwrap();
        let in_free: Vec<f64> = samples.chunks(4).flat_map(|row| [row[0], row[1], row[3]]).collect();
        assert_eq!(in_free, other.sample(50, 3).unwrap(), "{settings:?}");
        assert!(samples.chunks(4).all(|row| (row[0] + row[1] + row[2] - 1.0).abs() < 1e-15));
        let (got, want) = (density.log_prob(&samples).unwrap(), other.log_prob(&in_free).unwrap());
        assert!(got.iter().zip(&want).all(|(x, y)| (x + factor - y).abs() < 1e-12), "{settings:?}");
        // The fused pass, and gradients.
        let (five, in_free) = (&samples[..20], &in_free[..15]);
        let rows = family.row_log_prob(RowInput::Parameters, &params, five, true).unwrap().unwrap();
        let want = plain.row_log_prob(RowInput::Parameters, &params, in_free, true).unwrap().unwrap();
        assert!(rows.log_prob.iter().zip(&want.log_prob).all(|(x, y)| (x + factor - y).abs() < 1e-12));
        assert_eq!(rows.gradient, want.gradient);
        let mode = density.mode(&ModeOptions::default()).unwrap();
        let want = other.mode(&ModeOptions::default()).unwrap();
        assert_eq!(mode.stop, ModeStop::Certified);
        assert!((mode.log_density + factor - want.log_density).abs() < 1e-9, "{settings:?}");
        assert!((density.log_prob(&mode.point).unwrap()[0] - mode.log_density).abs() < 1e-9, "{settings:?}");
        // Conditions, given values and tables.
        let (first, second) = (density.condition(&event).unwrap(), other.condition(&event).unwrap());
        assert!(first.mean()[..2].iter().zip(second.mean()).all(|(x, y)| (x - y).abs() < 1e-12), "{settings:?}");
        let (first, second) =
            (density.given(&[("a", 0.125)], &[]).unwrap(), other.given(&[("a", 0.125)], &[]).unwrap());
        assert_eq!(first.support().columns(), 3);
        assert!((first.mean()[0] - second.mean()[0]).abs() < 1e-12);
        assert!((first.mean()[1] - (0.875 - second.mean()[0])).abs() < 1e-12, "what is left of 1");
        let error = density.given(&[("c", 0.5)], &[]).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("`c` depends on the free variables a, b"), "{error}");
        let (first, second) =
            (density.given(&[], &[("active", false)]).unwrap(), other.given(&[], &[("active", false)]).unwrap());
        assert!((first.mean()[0] - second.mean()[0]).abs() < 1e-12);
        let table = density.table_at(&[0.125, 0.5, 0.375], &["active"]).unwrap();
        assert!(
            (table.probabilities[1] - other.table_at(&[0.125, 0.5], &["active"]).unwrap().probabilities[1]).abs()
                < 1e-13
        );
        assert!(density.table_at(&[0.125, 0.5, 0.5], &["active"]).is_err());
        // Batches of expectations, in all variables.
        let c = reals(["c"])[0].clone();
        let batch =
            family.expectation(&[(Polynomial::from(c), Formula::yes()), (Polynomial::one(), active())]).unwrap();
        let values = batch.values(&params).unwrap();
        assert!((values[0] - density.mean()[2]).abs() < 1e-12 && (values[1] - density.mean()[3]).abs() < 1e-12);
        // Files.
        let model = MixedModel::new(family.clone(), params.clone()).unwrap();
        let again = MixedModel::from_bytes(&model.to_bytes().unwrap()).unwrap();
        assert_eq!(again.family().log_prob(again.params(), five).unwrap(), family.log_prob(&params, five).unwrap());
    }
}

#[test]
fn equalities_of_some_assignments_have_no_mass_and_those_of_each_are_an_error() {
    let [x, y] = reals(["x", "y"]);
    let b = Formula::boolean("b");
    let square = x.between(0, 2) & y.between(0, 2);
    let beside = Constraint::new(square.clone() & (!b.clone() | x.equals(1)));
    let family = compile(&beside, &spline(4, 2));
    assert!(family.support().chart().is_none());
    let density = family.density(&family.random_params(1, 2)).unwrap();
    assert_eq!(density.probability(&b).unwrap(), 0.0);
    let apart = (b.clone() & (&x + &y).equals(1)) | (!b & (&x + &y).equals(2));
    let error = MixedFamily::new(&Region::new(&Constraint::new(square & apart)).unwrap(), &spline(4, 2)).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("one part lies in") && message.contains("another in"), "{message}");
    assert!(message.contains("x + y = 1") && message.contains("x + y = 2"), "{message}");
    let plain = Family::new(&Region::new(&shares()).unwrap(), &spline(4, 2)).unwrap_err();
    assert!(matches!(plain, DensityError::Booleans(_)), "{plain}");
}
