//! Satisfiability: against the faces of the arrangement, closed cases, and formulas with many variables.

mod common;

use common::{Dice, holds, random_formula, variables};
use pal::formula::{Constraint, Formula, Linear, Var};
use pal::number::Rational;
use pal::region::{Region, Satisfiability, Status};

fn answer(constraint: &Constraint) -> bool {
    match constraint.satisfiability().unwrap() {
        Satisfiability::Satisfiable { reals, booleans } => {
            assert!(holds(constraint, &reals, &booleans), "{}", constraint.formula);
            true
        }
        Satisfiability::Unsatisfiable => false,
        Satisfiability::Undecided => panic!("undecided: {}", constraint.formula),
    }
}

#[test]
fn random_formulas_are_satisfiable_where_their_regions_have_points() {
    let (mut yes, mut no) = (0, 0);
    for seed in 0..400 {
        let mut dice = Dice::new(seed);
        let n = dice.int(1, 3) as usize;
        let (names, x) = variables(n);
        let booleans: Vec<Var> = ["a", "b"].iter().map(|name| Var::new(name)).collect();
        // Several formulas at once, so that about half of the cases contradict themselves.
        let parts: Vec<Formula> = (0..dice.int(2, 7)).map(|_| random_formula(&mut dice, &x, 3, &booleans)).collect();
        let constraint = Constraint { formula: Formula::all(parts), reals: names, booleans };
        let status = Region::new(&constraint).unwrap().status();
        assert!(!matches!(status, Status::NoVolume), "{seed}");
        let satisfiable = answer(&constraint);
        assert_eq!(satisfiable, status != Status::Empty, "{seed}: {} is {status:?}", constraint.formula);
        if satisfiable { yes += 1 } else { no += 1 }
    }
    assert!(yes > 50 && no > 50, "{yes} satisfiable, {no} not");
}

#[test]
fn many_reals_are_no_obstacle() {
    let names: Vec<Linear> = (0..200).map(|k| Linear::from(Var::new(&format!("x{k}")))).collect();
    // Strictly increasing from 0 to 1, and then closed to a circle.
    let rising = Formula::all(names.windows(2).map(|pair| pair[0].lt(&pair[1])));
    let inside = rising.clone() & names[0].ge(0) & names[199].le(1);
    assert!(answer(&Constraint::new(inside.clone())));
    assert!(!answer(&Constraint::new(rising & names[199].le(&names[0]))));
    // The sum of increasing numbers of [0, 1] is at least the sum of those above a half of which there are fifty.
    let sum = names.iter().fold(Linear::default(), |sum, x| sum + x);
    let half = (2 * &names[150]).ge(1);
    assert!(answer(&Constraint::new(inside.clone() & half.clone() & sum.le(26))));
    assert!(!answer(&Constraint::new(inside & half & sum.le(25))));
}

#[test]
fn pigeons_do_not_fit_and_as_many_do() {
    let sits = |pigeon: usize, hole: usize| Formula::boolean(&format!("p{pigeon}_{hole}"));
    let fits = |pigeons: usize, holes: usize| {
        let somewhere = (0..pigeons).map(|p| Formula::any((0..holes).map(|h| sits(p, h))));
        let pairs = (0..pigeons).flat_map(|p| (0..p).map(move |q| (p, q)));
        let alone = pairs.flat_map(|(p, q)| (0..holes).map(move |h| !(sits(p, h) & sits(q, h))));
        answer(&Constraint::new(Formula::all(somewhere.chain(alone))))
    };
    assert!(fits(7, 7));
    assert!(!fits(7, 6));
}

#[test]
fn points_without_volume_are_found_with_their_strictness() {
    let (_, x) = variables(3);
    let plane = (&x[0] + &x[1] + &x[2]).equals(1);
    let line = plane & (&x[0] - &x[1]).equals(0);
    assert!(answer(&Constraint::new(line.clone() & x[2].gt(1))));
    let Satisfiability::Satisfiable { reals, .. } =
        Constraint::new(line.clone() & x[2].equals(5)).satisfiability().unwrap()
    else {
        panic!("x = y = -2, z = 5")
    };
    assert_eq!(reals, [-2, -2, 5].map(Rational::from));
    assert!(!answer(&Constraint::new(line & x[2].ge(1) & x[0].gt(0))));
    assert!(!answer(&Constraint::new(x[0].differs(1) & x[0].equals(1))));
    assert!(answer(&Constraint::new(Formula::yes())) && !answer(&Constraint::new(Formula::no())));
}
