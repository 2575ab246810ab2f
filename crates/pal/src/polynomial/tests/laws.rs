use std::collections::BTreeMap;

use super::*;
use crate::number;

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, prop, proptest};
use proptest::test_runner::RngSeed;

const NAMES: [&[&str]; 4] = [&["x", "y"], &["y", "z"], &["x", "y", "z"], &["w"]];

/// Two hundred cases per law, the same ones every time. A case that breaks a law is shrunk to a smallest one.
fn config() -> ProptestConfig {
    ProptestConfig { cases: 200, rng_seed: RngSeed::Fixed(7), failure_persistence: None, ..ProptestConfig::default() }
}

fn ratios() -> impl Strategy<Value = Rational> {
    (-20i64..=20, 1u64..=6).prop_map(|(numerator, denominator)| ratio(numerator, denominator))
}

/// Polynomials with a few terms of low degree over some of the names.
fn polynomials() -> impl Strategy<Value = Polynomial> {
    let terms = vec((prop::array::uniform3(0u16..=2), ratios()), 0..7);
    (prop::sample::select(&NAMES[..]), terms).prop_map(|(names, terms)| {
        let variables: Vec<Var> = names.iter().map(|name| Var::new(name)).collect();
        let terms = terms.into_iter().map(|(exponents, c)| (exponents[..variables.len()].to_vec(), c));
        Polynomial::from_terms(&variables, terms).unwrap()
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn polynomials_are_a_commutative_ring(p in polynomials(), q in polynomials(), r in polynomials()) {
        assert_eq!(&p + &q, &q + &p);
        assert_eq!(&(&p + &q) + &r, &p + &(&q + &r));
        assert_eq!(&(&p + &q) - &q, p);
        assert_eq!(&p - &p, Polynomial::zero());
        assert_eq!(&p + &-&p, Polynomial::zero());
        assert_eq!(p.mul(&q).unwrap(), q.mul(&p).unwrap());
        assert_eq!(p.mul(&q).unwrap().mul(&r).unwrap(), p.mul(&q.mul(&r).unwrap()).unwrap());
        assert_eq!((&p + &q).mul(&r).unwrap(), &p.mul(&r).unwrap() + &q.mul(&r).unwrap());
        assert_eq!(p.mul(&Polynomial::one()).unwrap(), p);
        assert!(p.mul(&Polynomial::zero()).unwrap().is_zero());
        assert_eq!(p.scaled(&ratio(3, 7)), p.mul(&Polynomial::constant(ratio(3, 7))).unwrap());
        let cube = p.mul(&p).unwrap().mul(&p).unwrap();
        assert_eq!(p.pow(3).unwrap(), cube);
        assert_eq!(p.pow(0).unwrap(), Polynomial::one());
        let degrees = (p.degree(), q.degree());
        let sum = degrees.0.and_then(|d| degrees.1.map(|e| d + e));
        assert_eq!(p.mul(&q).unwrap().degree(), sum);
    }

    #[test]
    fn evaluation_is_a_homomorphism_and_float64_is_within_its_bound(
        p in polynomials(), q in polynomials(), steps in prop::array::uniform4(-1000i32..=1000),
    ) {
        let variables = vars(["z", "w", "x", "y"]);
        let floats = steps.map(|step| f64::from(step) / 300.0);
        let point = floats.map(|x| number::from_f64(x).unwrap());
        let at = |p: &Polynomial| p.eval(&variables, &point).unwrap();
        assert_eq!(at(&p.mul(&q).unwrap()), at(&p) * at(&q));
        assert_eq!(at(&(&p - &q)), at(&p) - at(&q));
        let product = p.mul(&q).unwrap();
        let near = product.eval_f64(&variables, &floats).unwrap();
        let off = number::from_f64(near.value).unwrap() - at(&product);
        assert!(number::to_f64(&off).abs() <= near.error, "{product} {near:?}");
        assert!(near.error <= 1e-9);
    }

    #[test]
    fn substitution_composes_with_evaluation(
        p in polynomials(), q in polynomials(), r in polynomials(), point in prop::array::uniform4(ratios()),
    ) {
        let variables = vars(["w", "x", "y", "z"]);
        let images = BTreeMap::from([(Var::new("x"), q.clone()), (Var::new("y"), r.clone())]);
        let image = p.substitute(&images).unwrap();
        let mut moved = point.clone();
        moved[1] = q.eval(&variables, &point).unwrap();
        moved[2] = r.eval(&variables, &point).unwrap();
        assert_eq!(image.eval(&variables, &point).unwrap(), p.eval(&variables, &moved).unwrap(), "{p} {q} {r}");
    }

    #[test]
    fn affine_changes_agree_with_substitution_and_undo(
        p in polynomials(), factors in prop::array::uniform3((ratios(), ratios())),
    ) {
        let names = ["x", "z", "unused"].map(Var::new);
        let changes: BTreeMap<Var, (Rational, Rational)> = names.into_iter().zip(factors).collect();
        let image = |(v, (s, t)): (&Var, &(Rational, Rational))| {
            (v.clone(), &Polynomial::var(v).scaled(s) + &Polynomial::constant(t.clone()))
        };
        let moved = p.affine(&changes).unwrap();
        assert_eq!(moved, p.substitute(&changes.iter().map(image).collect()).unwrap(), "{p} {changes:?}");
        if changes.values().all(|(s, _)| !s.is_zero()) {
            let inverse = changes.iter().map(|(v, (s, t))| (v.clone(), (Rational::ONE / s, -t / s))).collect();
            assert_eq!(moved.affine(&inverse).unwrap(), p);
        }
    }

    #[test]
    fn derivatives_obey_leibniz_and_parts_sum_up(p in polynomials(), q in polynomials()) {
        let y = Var::new("y");
        let of_product = p.mul(&q).unwrap().derivative(&y);
        assert_eq!(of_product, &p.derivative(&y).mul(&q).unwrap() + &p.mul(&q.derivative(&y)).unwrap());
        let mut sum = Polynomial::zero();
        for (degree, part) in p.homogeneous_parts() {
            assert_eq!(part, p.homogeneous_part(degree));
            assert!(part.terms().all(|(powers, _)| powers.iter().map(|&(_, e)| u32::from(e)).sum::<u32>() == degree));
            sum += &part;
        }
        assert_eq!(sum, p);
    }

    #[test]
    fn text_aligned_terms_and_the_terms_iterator_give_the_polynomial_back(p in polynomials()) {
        let variables = vars(["z", "x", "w", "y"]);
        assert_eq!(poly(&p.to_string()), p);
        assert_eq!(Polynomial::from_terms(&variables, p.aligned(&variables).unwrap()).unwrap(), p);
        for (powers, coefficient) in p.terms() {
            let powers: Vec<(Var, u16)> = powers.into_iter().rev().map(|(v, e)| (v.clone(), e)).collect();
            assert_eq!(&p.coefficient(&powers), coefficient);
        }
    }
}

#[test]
fn substitution_is_simultaneous() {
    let swap = BTreeMap::from([(Var::new("x"), poly("y")), (Var::new("y"), poly("x"))]);
    assert_eq!(poly("x^2 - y + z").substitute(&swap).unwrap(), poly("y^2 - x + z"));
}
