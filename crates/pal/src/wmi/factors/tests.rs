//! Components, caches and orders change no digit: the search against cells, and against closed forms.

use super::FactorSearch;
use super::search::Thresholds;
use crate::formula::{Constraint, Formula, Linear, Var, reals};
use crate::moments::Method;
use crate::number::{Integer, Rational, factorial, parse_rational, to_f64};
use crate::polynomial::Polynomial;
use crate::wmi::solve::{WmiError, integrate_cells};
use crate::wmi::{Piecewise, Problem};

/// Never cuts a component into cells that can be decided, forked or hung on a tree.
const EAGER: Thresholds = Thresholds { reals: 0, booleans: 0, entangled: 0, memory: 1 << 30 };

fn ratio(text: &str) -> Rational {
    parse_rational(text).unwrap()
}

fn factored(constraint: &Constraint, weight: &Piecewise, method: Method, thresholds: Thresholds) -> crate::wmi::Answer {
    let mut search = FactorSearch::new(constraint, &weight.weight, method).unwrap();
    search.thresholds = thresholds;
    search.integrate(&constraint.formula).unwrap().unwrap()
}

fn exact(constraint: &Constraint, weight: &Piecewise) -> Rational {
    factored(constraint, weight, Method::Exact, Thresholds::default()).exact.unwrap()
}

fn one() -> Piecewise {
    Polynomial::one().into()
}

/// A stream of small numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % sides
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64) as i64
    }

    fn literal(&mut self, x: &[Linear], booleans: &[Formula], pairs_only: bool) -> Formula {
        let kind = self.below(5);
        let pick = |dice: &mut Dice| x[dice.below(x.len() as u64) as usize].clone();
        let formula = match kind {
            0 | 1 if !booleans.is_empty() => booleans[self.below(booleans.len() as u64) as usize].clone(),
            2 | 3 => {
                let at = self.below(x.len() as u64) as usize;
                let next = if pairs_only { (at + 1) % x.len() } else { self.below(x.len() as u64) as usize };
                let other = &x[next];
                let (a, b) = (self.between(1, 2), self.between(-2, 2));
                // Along a path: no pair of the last and the first one.
                let other = if pairs_only && next == 0 { &x[at] } else { other };
                (a * &x[at] + b * other).le(self.between(-2, 4))
            }
            _ => (2 * pick(self)).le(self.between(-1, 5)),
        };
        if self.below(2) == 0 { formula } else { !formula }
    }

    fn formula(&mut self, x: &[Linear], booleans: &[Formula], depth: u64, pairs_only: bool) -> Formula {
        if depth == 0 {
            return self.literal(x, booleans, pairs_only);
        }
        let part = |dice: &mut Dice| dice.formula(x, booleans, depth - 1, pairs_only);
        match self.below(5) {
            0 => part(self).iff(part(self)),
            1 => part(self).ite(part(self), part(self)),
            2 => part(self) & part(self),
            _ => part(self) | part(self),
        }
    }

    fn polynomial(&mut self, names: &[Var]) -> Polynomial {
        let mut term = || {
            let exponents = names.iter().map(|_| self.below(3) as u16 * u16::from(self.below(2) == 0)).collect();
            (exponents, Rational::from(self.between(-2, 3)))
        };
        let terms = [term(), term()];
        Polynomial::from_terms(names, terms).unwrap()
    }

    fn weight(&mut self, x: &[Linear], names: &[Var], booleans: &[Formula], depth: u64) -> Piecewise {
        if depth == 0 {
            let first = self.below(names.len() as u64) as usize;
            let last = (first + 1 + self.below(2) as usize).min(names.len());
            return self.polynomial(&names[first..last]).into();
        }
        match self.below(4) {
            0 => {
                let (yes, no) =
                    (self.weight(x, names, booleans, depth - 1), self.weight(x, names, booleans, depth - 1));
                Piecewise::ite(self.formula(x, booleans, 1, true), &yes, &no).unwrap()
            }
            1 => self.weight(x, names, booleans, depth - 1).plus(&self.weight(x, names, booleans, depth - 1)).unwrap(),
            2 => self.weight(x, names, booleans, depth - 1).pow(2).unwrap(),
            _ => self.weight(x, names, booleans, depth - 1).times(&self.weight(x, names, booleans, depth - 1)).unwrap(),
        }
    }
}

#[test]
fn random_mixed_problems_have_the_integrals_of_their_cells() {
    let mut nonzero = 0;
    for seed in 0..300 {
        let mut dice = Dice(seed);
        let count = 1 + dice.below(3) as usize;
        let names = &Var::declare(["x", "y", "z"])[..count];
        let x: Vec<Linear> = names.iter().map(|var| Linear::from(var.clone())).collect();
        let all: Vec<Formula> = ["a", "b", "c", "d", "e"].map(Formula::boolean).into();
        let booleans = &all[..dice.below(6) as usize];
        let pairs_only = dice.below(2) == 0;
        let clauses = (0..1 + dice.below(4)).map(|_| dice.formula(&x, booleans, 2, pairs_only)).collect::<Vec<_>>();
        let bounds = x.iter().map(|x| x.between(-1, 2));
        let formula = Formula::all(clauses.into_iter().chain(bounds));
        let constraint = Constraint {
            formula,
            reals: names.to_vec(),
            booleans: booleans.iter().flat_map(Formula::boolean_variables).collect(),
        };
        let weight = dice.weight(&x, names, booleans, 2);
        let cells = integrate_cells(&constraint, &weight.weight, Method::Exact).unwrap().exact.unwrap();
        nonzero += usize::from(!cells.is_zero());
        for thresholds in [Thresholds::default(), EAGER] {
            let answer = factored(&constraint, &weight, Method::Exact, thresholds);
            assert_eq!(answer.exact, Some(cells.clone()), "{seed}: {} with {:?}", constraint.formula, weight.weight);
            let near = factored(&constraint, &weight, Method::Recurrence, thresholds);
            assert!((near.value - to_f64(&cells)).abs() <= near.error + 1e-15 * near.value.abs(), "{seed}");
        }
    }
    assert!(nonzero > 150, "{nonzero} of 300 problems have an integral that is not zero");
}

#[test]
fn threads_change_no_bit() {
    let [x, y, z, u, v, w] = reals(["x", "y", "z", "u", "v", "w"]);
    let booleans: Vec<Formula> = (0..8).map(|k| Formula::boolean(&format!("a{k}"))).collect();
    let links = booleans.windows(2).map(|pair| pair[0].clone() | pair[1].clone());
    let groups = [
        (&x + &y + &z).le(2) | booleans[0].clone(),
        (&u + 2 * &v + 3 * &w).ge(1) | booleans[7].clone() | (&u - &w).le(0),
    ];
    let bounds = [&x, &y, &z, &u, &v, &w].map(|x| x.between(0, 1));
    let constraint = Constraint::new(Formula::all(links.chain(groups).chain(bounds)));
    let weight = Piecewise::from(Polynomial::parse("x^3*y + z + 1/3").unwrap())
        .times(&Polynomial::parse("u*v^2 + w^5 + 1/7").unwrap().into())
        .unwrap();
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| factored(&constraint, &weight, Method::Recurrence, Thresholds::default()))
    };
    let one = on(1);
    assert!(one.exact.is_none() && one.error < 1e-9 * one.value, "{one:?}");
    for threads in [2, 3, 4] {
        let many = on(threads);
        assert_eq!((many.value.to_bits(), many.error.to_bits()), (one.value.to_bits(), one.error.to_bits()));
    }
    let exact = to_f64(&exact(&constraint, &weight));
    assert!((one.value - exact).abs() <= one.error, "{} instead of {exact}", one.value);
}

#[test]
fn pairs_of_booleans_multiply() {
    let [x] = reals(["x"]);
    let pair = |k: usize| Formula::boolean(&format!("a{k}")) | Formula::boolean(&format!("b{k}"));
    let formula = Formula::all((0..22).map(pair).chain([x.between(0, 1)]));
    let weight = Piecewise::from(Polynomial::parse("x").unwrap());
    let want = Rational::from(Integer::from(3).pow(22)) / Rational::from(2);
    assert_eq!(exact(&Constraint::new(formula), &weight), want);
}

#[test]
fn chains_of_booleans_are_counted_by_their_recurrence() {
    // Sequences without two neighbours that are both false: Fibonacci numbers.
    let at = |k: usize| Formula::boolean(&format!("a{k}"));
    let chain = Formula::all((0..299).map(|k| at(k) | at(k + 1)));
    let (mut before, mut count) = (Integer::ONE, Integer::from(2));
    for _ in 1..300 {
        (before, count) = (count.clone(), before + count);
    }
    assert_eq!(exact(&Constraint::new(chain), &one()), Rational::from(count));
    // One clause of a thousand fails for one assignment only; an odd number of a thousand is true for half of them.
    let clause = Formula::any((0..1000).map(at));
    assert_eq!(exact(&Constraint::new(clause), &one()), Rational::from((Integer::ONE << 1000) - Integer::ONE));
    let odd = (1..200).fold(at(0), |odd, k| odd ^ at(k));
    assert_eq!(exact(&Constraint::new(odd), &one()), Rational::from(Integer::ONE << 199));
}

#[test]
fn orders_along_a_path_have_the_volumes_of_their_permutations() {
    for n in [2usize, 5, 40, 150] {
        let names: Vec<Linear> = (0..n).map(|k| Linear::from(Var::new(&format!("x{k}")))).collect();
        let bounds = || names.iter().map(|x| x.between(0, 1));
        let increasing = Formula::all(names.windows(2).map(|pair| pair[0].le(&pair[1])).chain(bounds()));
        let volume = Rational::ONE / Rational::from(factorial(n));
        assert_eq!(exact(&Constraint::new(increasing), &one()), volume, "{n}");
        // x0 <= x1 >= x2 <= ..: the Euler zigzag number over n!, by the triangle of Seidel and Entringer.
        let up = |k: usize| if k.is_multiple_of(2) { names[k].le(&names[k + 1]) } else { names[k].ge(&names[k + 1]) };
        let zigzag = Formula::all((0..n - 1).map(up).chain(bounds()));
        let mut row = vec![Integer::ONE];
        for _ in 0..n {
            let mut next = vec![Integer::ZERO];
            for value in row.iter().rev() {
                next.push(next.last().unwrap() + value);
            }
            row = next;
        }
        let euler = row.last().unwrap().clone();
        let want = Rational::from(euler) / Rational::from(factorial(n));
        assert_eq!(exact(&Constraint::new(zigzag), &one()), want, "zigzag of {n}");
    }
}

#[test]
fn trees_of_gaps_agree_with_cells_and_with_products() {
    // |x_i - x_j| >= 1 along the edges of a star, a path and a tree, in [-1, 1].
    let gap = |a: &Linear, b: &Linear| (a - b).ge(1) | (b - a).ge(1);
    let names: Vec<Linear> = (0..60).map(|k| Linear::from(Var::new(&format!("x{k}")))).collect();
    let volume = |edges: &[(usize, usize)], n: usize, cells: bool| {
        let parts = edges.iter().map(|(i, j)| gap(&names[*i], &names[*j]));
        let constraint = Constraint::new(Formula::all(parts.chain(names[..n].iter().map(|x| x.between(-1, 1)))));
        match cells {
            true => integrate_cells(&constraint, &one().weight, Method::Exact).unwrap().exact.unwrap(),
            false => factored(&constraint, &one(), Method::Exact, EAGER).exact.unwrap(),
        }
    };
    for n in 2..6 {
        let path: Vec<_> = (1..n).map(|k| (k - 1, k)).collect();
        let star: Vec<_> = (1..n).map(|k| (0, k)).collect();
        for edges in [path, star] {
            assert_eq!(volume(&edges, n, false), volume(&edges, n, true), "{edges:?}");
        }
    }
    // Given the centre at c, a leaf has length |c| left: 2 * integral of c^(n - 1) from 0 to 1.
    let star: Vec<_> = (1..60).map(|k| (0, k)).collect();
    assert_eq!(volume(&star, 60, false), ratio("2/60"));
}

#[test]
fn parity_of_many_intervals_is_one_half() {
    let names: Vec<Linear> = (0..50).map(|k| Linear::from(Var::new(&format!("x{k}")))).collect();
    let half = |x: &Linear| (2 * x).le(1);
    let odd = names[1..].iter().fold(half(&names[0]), |odd, x| odd ^ half(x));
    let bounds: Vec<Formula> = names.iter().map(|x| x.between(0, 1)).collect();
    let constraint = Constraint::new(Formula::all([odd].into_iter().chain(bounds.clone())));
    assert_eq!(exact(&constraint, &one()), ratio("1/2"));
    // At most one below a half: (n + 1) / 2^n.
    let pairs = (0..50).flat_map(|i| (0..i).map(move |j| (i, j)));
    let exclusive = Formula::all(pairs.map(|(i, j)| !(half(&names[i]) & half(&names[j]))).chain(bounds));
    let want = Rational::from(51) / Rational::from(Integer::ONE << 50);
    assert_eq!(exact(&Constraint::new(exclusive), &one()), want);
}

#[test]
fn weights_fall_apart_into_factors_and_terms() {
    let names: Vec<Var> = (0..40).map(|k| Var::new(&format!("x{k}"))).collect();
    let bounds = names.iter().map(|var| Linear::from(var.clone()).between(0, 1));
    let constraint = Constraint::new(Formula::all(bounds));
    let plus_one = |var: &Var| Piecewise::from(Polynomial::var(var) + Polynomial::one());
    let product = names.iter().fold(one(), |product, var| product.times(&plus_one(var)).unwrap());
    let want = Rational::from(Integer::from(3).pow(40)) / Rational::from(Integer::ONE << 40);
    assert_eq!(exact(&constraint, &product), want);
    // A sum over all variables ties them together; its terms do not.
    let sum = names.iter().fold(Polynomial::zero(), |sum, var| sum + Polynomial::var(var));
    assert_eq!(exact(&constraint, &Piecewise::from(sum.clone())), Rational::from(20));
    let square = Piecewise::from(sum.mul(&sum).unwrap());
    assert_eq!(exact(&constraint, &square), ratio("40/3") + ratio("780/2"));
    // Cases on a chain of variables, each over a pair.
    let step = |k: usize| {
        let rises = Linear::from(names[k].clone()).le(Linear::from(names[k + 1].clone()));
        Piecewise::ite(rises, &Polynomial::constant(2).into(), &Polynomial::constant(1).into()).unwrap()
    };
    let chain = (0..4).fold(one(), |product, k| product.times(&step(k)).unwrap());
    let five = Constraint::new(Formula::all(names[..5].iter().map(|v| Linear::from(v.clone()).between(0, 1))));
    let cells = integrate_cells(&five, &chain.weight, Method::Exact).unwrap().exact.unwrap();
    assert_eq!(factored(&five, &chain, Method::Exact, EAGER).exact, Some(cells));
}

#[test]
fn what_is_unbounded_is_an_error_unless_nothing_is_there() {
    let [x, y] = reals(["x", "y"]);
    let (a, b) = (Formula::boolean("a"), Formula::boolean("b"));
    let open = Constraint::new(x.ge(0) & y.between(0, 1) & (a.clone() | b.clone()));
    let error = Problem::new(open, &one(), Vec::new()).solve(Method::Exact).unwrap_err();
    let WmiError::Unbounded(ray) = &error else { panic!("{error}") };
    assert_eq!(ray.direction, [Rational::ONE, Rational::ZERO]);
    let empty = Constraint::new(x.ge(0) & y.between(0, 1) & (a.clone() | b.clone()) & !a & !b);
    let solution = Problem::new(empty, &one(), Vec::new()).solve(Method::Exact).unwrap();
    assert_eq!(solution.total.exact, Some(Rational::ZERO));
}

#[test]
fn a_problem_that_does_not_fit_is_refused() {
    // A random formula over many Boolean variables, and little memory.
    let mut dice = Dice(7);
    let mut literal = || {
        let at = Formula::boolean(&format!("a{}", dice.below(120)));
        if dice.below(2) == 0 { at } else { !at }
    };
    let clauses: Vec<Formula> = (0..200).map(|_| Formula::any([literal(), literal(), literal()])).collect();
    let constraint = Constraint::new(Formula::all(clauses));
    let mut search = FactorSearch::new(&constraint, &one().weight, Method::Exact).unwrap();
    search.thresholds = Thresholds { memory: 1 << 22, ..Thresholds::default() };
    let error = search.integrate(&constraint.formula).unwrap().unwrap_err();
    assert!(matches!(error, WmiError::TooEntangled { .. }), "{error}");
}

#[test]
fn reals_that_do_not_come_apart_are_refused_by_their_number() {
    let names: Vec<Linear> = (0..20).map(|k| Linear::from(Var::new(&format!("x{k}")))).collect();
    let sum = names.iter().fold(Linear::default(), |sum, x| sum + x);
    let constraint = Constraint::new(Formula::all(names.iter().map(|x| x.between(0, 1)).chain([sum.le(3)])));
    let error = Problem::new(constraint, &one(), Vec::new()).solve(Method::Exact).unwrap_err();
    assert!(error.to_string().contains("20 real variables"), "{error}");
}
