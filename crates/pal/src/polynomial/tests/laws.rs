use std::collections::BTreeMap;

use super::*;
use crate::number;

const NAMES: [&[&str]; 4] = [&["x", "y"], &["y", "z"], &["x", "y", "z"], &["w"]];

fn triples() -> impl Iterator<Item = [Polynomial; 3]> {
    let mut random = Lcg(7);
    (0..200).map(move |_| {
        [(); 3].map(|()| {
            let names = NAMES[random.below(4) as usize];
            random.poly(names)
        })
    })
}

#[test]
fn polynomials_are_a_commutative_ring() {
    for [p, q, r] in triples() {
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
}

#[test]
fn evaluation_is_a_homomorphism_and_float64_is_within_its_bound() {
    let mut random = Lcg(11);
    let variables = vars(["z", "w", "x", "y"]);
    for [p, q, _] in triples() {
        let floats = [(); 4].map(|()| (random.below(2001) as f64 - 1000.0) / 300.0);
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
}

#[test]
fn substitution_composes_with_evaluation() {
    let mut random = Lcg(13);
    let variables = vars(["w", "x", "y", "z"]);
    for [p, q, r] in triples() {
        let point = [(); 4].map(|()| random.ratio());
        let images = BTreeMap::from([(Var::new("x"), q.clone()), (Var::new("y"), r.clone())]);
        let image = p.substitute(&images).unwrap();
        let mut moved = point.clone();
        moved[1] = q.eval(&variables, &point).unwrap();
        moved[2] = r.eval(&variables, &point).unwrap();
        assert_eq!(image.eval(&variables, &point).unwrap(), p.eval(&variables, &moved).unwrap(), "{p} {q} {r}");
    }
    let swap = BTreeMap::from([(Var::new("x"), poly("y")), (Var::new("y"), poly("x"))]);
    assert_eq!(poly("x^2 - y + z").substitute(&swap).unwrap(), poly("y^2 - x + z"));
}

#[test]
fn affine_changes_agree_with_substitution_and_undo() {
    let mut random = Lcg(17);
    for (round, [p, ..]) in triples().enumerate() {
        let mut changes = BTreeMap::new();
        for name in ["x", "z", "unused"] {
            let (mut scale, mut shift) = (random.ratio(), random.ratio());
            if round % 5 == 0 {
                scale = Rational::ZERO;
            }
            if round % 7 == 0 {
                shift = Rational::ZERO;
            }
            changes.insert(Var::new(name), (scale, shift));
        }
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
}

#[test]
fn derivatives_obey_leibniz_and_parts_sum_up() {
    let y = Var::new("y");
    for [p, q, _] in triples() {
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
}

#[test]
fn text_aligned_terms_and_the_terms_iterator_give_the_polynomial_back() {
    let variables = vars(["z", "x", "w", "y"]);
    for [p, ..] in triples() {
        assert_eq!(poly(&p.to_string()), p);
        assert_eq!(Polynomial::from_terms(&variables, p.aligned(&variables).unwrap()).unwrap(), p);
        for (powers, coefficient) in p.terms() {
            let powers: Vec<(Var, u16)> = powers.into_iter().rev().map(|(v, e)| (v.clone(), e)).collect();
            assert_eq!(&p.coefficient(&powers), coefficient);
        }
    }
}
