//! The order of variables is the order of their declaration, at every entrance of the library.

use pal::density::{Family, Knots, Settings, SplineSettings};
use pal::formula::{
    Constraint, Formula, GeoJsonOptions, Linear, Node, OrderError, Substitution, Var, parse_geojson, parse_smtlib,
    parse_smtlib_term, real, reals, write_smtlib,
};
use pal::moments::Method;
use pal::polynomial::Polynomial;
use pal::region::Region;
use pal::wmi::Problem;

fn names(variables: &[Var]) -> Vec<&str> {
    variables.iter().map(Var::name).collect()
}

fn order(formula: &Formula) -> Vec<String> {
    formula.real_variables().iter().map(Var::to_string).collect()
}

/// `0 <= speed <= 30`, `2 <= gap <= 9`, in an order and a shape of formula that would both put `gap` first.
fn safe() -> Formula {
    let [speed, gap] = reals(["speed", "gap"]);
    gap.between(2, 9) & (&gap + &speed).ge(0) & speed.between(0, 30)
}

#[test]
fn variables_made_in_code_are_in_order_of_declaration() {
    let safe = safe();
    assert_eq!(order(&safe), ["speed", "gap"]);
    assert!(safe.contains(&[30.0, 2.0]) && !safe.contains(&[2.0, 30.0]));
    let constraint = Constraint::from(safe);
    assert_eq!(names(&constraint.reals), ["speed", "gap"]);
    let region = Region::new(&constraint).unwrap();
    let ends: Vec<String> =
        region.bounding_box().unwrap().unwrap().iter().map(|(low, high)| format!("{low} {high}")).collect();
    assert_eq!(ends, ["0 30", "2 9"]);
}

#[test]
fn eleven_variables_are_counted_and_not_spelt() {
    let declared: Vec<String> = (1..=11).map(|k| format!("x{k}")).collect();
    let variables = Var::declare_all(&declared);
    let formula = Formula::all(variables.iter().rev().map(|var| Linear::from(var.clone()).ge(0)));
    assert_eq!(order(&formula), declared);
    assert_eq!(names(&pal::shapes::cube(11).reals), declared);
    let one_by_one: Vec<Linear> = declared.iter().map(|name| real(name)).collect();
    assert_eq!(order(&Formula::any(one_by_one.iter().rev().map(|x| x.le(1)))), declared);
}

#[test]
fn boolean_variables_are_in_order_of_declaration() {
    let [late, early] = ["zebra", "ant"].map(Formula::boolean);
    let constraint = Constraint::new(early.clone() | (early & late));
    assert_eq!(names(&constraint.booleans), ["zebra", "ant"]);
}

#[test]
fn the_earliest_declaration_counts() {
    let [x, y] = reals(["x", "y"]);
    let before = x.le(1) & y.le(1);
    // The same happens when a cell of a notebook is run again.
    let [y, x] = reals(["y", "x"]);
    let after = x.le(1) & y.le(1);
    assert_eq!((order(&before), order(&after)), (vec!["x".into(), "y".into()], vec!["y".into(), "x".into()]));
    for both in [before.clone() & after.clone(), after.clone() & before.clone(), before.clone().iff(after.clone())] {
        assert_eq!(order(&both), ["x", "y"]);
    }
    // One variable declared again, as in a condition, does not move the columns of a region; nor in atoms and sums.
    let again = real("y");
    assert_eq!(order(&(after & again.ge(0))), ["y", "x"]);
    let [a, b] = reals(["a", "b"]);
    let newer = real("a");
    assert_eq!(order(&(&a + &b + &newer).le(1)), ["a", "b"]);
    assert_eq!(order(&(&newer + &b + &a).le(1)), ["a", "b"]);
    // A variable whose coefficients cancel no longer occurs.
    assert_eq!(order(&((&a - &a) + &newer + &b).le(1)), ["b", "a"]);
    assert_eq!(order(&((&newer - &newer) + &a + &b).le(1)), ["a", "b"]);
}

#[test]
fn declarations_elsewhere_change_nothing() {
    let [b, a] = reals(["b", "a"]);
    let formula = (&a + 2 * &b).le(1) & a.ge(0) & b.ge(0);
    let cells = || {
        let region = Region::new(&Constraint::from(formula.clone())).unwrap();
        let cells = region.decompose().unwrap();
        format!("{formula} {:?}", cells.iter().map(|cell| cell.polytope().exact_vertices()).collect::<Vec<_>>())
    };
    let first = cells();
    // The same atoms over other declarations, which are kept alive.
    let others: Vec<Formula> = (0..50)
        .map(|_| {
            let [a, b] = reals(["a", "b"]);
            (&a + 2 * &b).le(1) & a.ge(0) & b.ge(0)
        })
        .collect();
    assert_eq!((order(&formula), cells()), (vec!["b".to_string(), "a".to_string()], first.clone()));
    drop(others);
    assert_eq!(cells(), first);
}

#[test]
fn rewriting_keeps_the_order() {
    let safe = safe();
    let [speed, gap] = reals(["speed", "gap"]);
    for formula in [!safe.clone(), safe.to_nnf(), (!safe.clone()).to_nnf(), safe.clone() ^ gap.equals(3)] {
        assert_eq!(order(&formula), ["speed", "gap"], "{formula}");
    }
    // A variable that is put in place of another one has the place of its own declaration.
    let [z, a] = reals(["z", "a"]);
    let renamed = safe.substitute(&Substitution::new().real("speed", a.clone()).real("gap", z.clone()));
    assert_eq!(order(&renamed), ["z", "a"]);
    assert_eq!(order(&safe.substitute(&Substitution::new().real("speed", 3.into()))), ["gap"]);
    assert_eq!(order(&safe.substitute(&Substitution::new().real("gap", speed))), ["speed"]);
}

const SCRIPT: &str = "(declare-const speed Real) (declare-fun unused () Real) (declare-const night Bool)
    (declare-fun gap () Real) (declare-const fog Bool)
    (assert (and (<= 2 gap 9) (<= 0 speed 30) (or fog night)))";

#[test]
fn smtlib_has_the_order_of_its_declarations() {
    let constraint = parse_smtlib(SCRIPT).unwrap();
    assert_eq!(names(&constraint.reals), ["speed", "unused", "gap"]);
    assert_eq!(names(&constraint.booleans), ["night", "fog"]);
    // The formula alone keeps the order too.
    let formula = constraint.formula.clone();
    assert_eq!(order(&formula), ["speed", "gap"]);
    assert_eq!(names(&Constraint::from(formula).booleans), ["night", "fog"]);
    let event = parse_smtlib_term("(< gap speed)", &constraint).unwrap();
    assert_eq!(order(&event), ["speed", "gap"]);
    assert_eq!(order(&(constraint.formula & event)), ["speed", "gap"]);
}

#[test]
fn what_is_written_is_read_back_in_the_same_order() {
    let [speed, gap] = reals(["speed", "gap"]);
    let constraint = Constraint::new(gap.le(1) & speed.le(2) & Formula::boolean("z") & Formula::boolean("b"));
    for constraint in [constraint.clone(), constraint.with_order(&["gap", "speed"]).unwrap()] {
        let back = parse_smtlib(&write_smtlib(&constraint).unwrap()).unwrap();
        assert_eq!(
            (names(&back.reals), names(&back.booleans)),
            (names(&constraint.reals), names(&constraint.booleans))
        );
        assert_eq!(order(&back.formula), names(&constraint.reals));
    }
}

#[test]
fn maps_have_x_before_y() {
    // Variables of the same names are declared elsewhere in the other order, which must not matter.
    let [y, x] = reals(["y", "x"]);
    let newer_names_elsewhere = y.le(&x);
    let square = r#"{"type": "Polygon", "coordinates": [[[1, 10], [2, 10], [2, 20], [1, 20], [1, 10]]]}"#;
    let options = GeoJsonOptions { bounds: Some([0, 0, 3, 30].map(Into::into)), ..GeoJsonOptions::default() };
    let map = parse_geojson(square, &options).unwrap();
    assert_eq!(names(&map.reals), ["x", "y"]);
    assert_eq!(order(&map.formula), ["x", "y"]);
    assert!(map.membership().unwrap().contains(&[0.5, 15.0]) && !map.membership().unwrap().contains(&[1.5, 15.0]));
    assert_eq!(order(&newer_names_elsewhere), ["y", "x"]);
}

#[test]
fn wmi_problems_have_the_order_of_their_domain() {
    let line = r#"{"domain": {"reals": {"speed": [0, 30], "gap": [2, 9], "age": [0, 1]}, "booleans": ["z", "b"]},
        "support": "(or z b)", "weight": "gap"}"#;
    let problem = Problem::parse(line).unwrap();
    assert_eq!(names(&problem.support.reals), ["speed", "gap", "age"]);
    assert_eq!(names(&problem.support.booleans), ["z", "b"]);
    assert_eq!(order(&problem.support.formula), ["speed", "gap", "age"]);
    // 3 assignments * 30 * (81 - 4) / 2.
    assert_eq!(problem.solve(Method::Exact).unwrap().total.exact.unwrap().to_string(), "3465");
    let listed = r#"{"domain": [["speed", "real", [0, 1]], ["z", "bool", null], ["gap", "real", [0, 1]]],
        "formula": "(var bool z)", "weights": "(const real 1)"}"#;
    assert_eq!(names(&Problem::parse(listed).unwrap().support.reals), ["speed", "gap"]);
    let tables = r#"{"domain": {"variables": ["speed", "gap"], "var_types": {"gap": "real", "speed": "real"},
        "var_domains": {"gap": [0, 1], "speed": [0, 1]}},
        "formula": "(const bool true)", "weights": "(const real 1)"}"#;
    assert_eq!(names(&Problem::parse(tables).unwrap().support.reals), ["speed", "gap"]);
    let twice = line.replace("age", "gap");
    let error = Problem::parse(&twice).unwrap_err().to_string();
    assert!(error.contains("the name `gap` occurs twice in one object"), "{error}");
}

#[test]
fn another_order_can_be_given() {
    let constraint = Constraint::new(safe());
    let swapped = constraint.clone().with_order(&["gap", "speed"]).unwrap();
    assert_eq!(names(&swapped.reals), ["gap", "speed"]);
    assert!(swapped.membership().unwrap().contains(&[2.0, 30.0]));
    let refused = |names: &[&str]| constraint.clone().with_order(names).unwrap_err();
    assert_eq!(refused(&["gap", "gap", "speed"]), OrderError::Repeated("gap".into()));
    assert_eq!(refused(&["gap"]).to_string(), "the variable `speed` is missing in the order of variables gap");
    assert_eq!(
        refused(&["gap", "speed", "sped"]).to_string(),
        "`sped` is not a real variable of the constraint; its variables are, in this order: speed, gap"
    );
    // A list for a formula may have variables that the formula leaves free.
    let wider = Constraint::over(safe(), &["age", "gap", "speed"]).unwrap();
    assert_eq!(names(&wider.reals), ["age", "gap", "speed"]);
    assert!(matches!(Constraint::over(safe(), &["gap"]), Err(OrderError::Missing { .. })));
    assert!(matches!(Constraint::over(safe(), &["gap", "speed", "gap"]), Err(OrderError::Repeated(_))));
}

#[test]
fn polynomials_follow_the_order_of_the_constraint() {
    let constraint = Constraint::new(safe());
    let polynomial = Polynomial::parse("gap^2 * speed").unwrap();
    assert_eq!(polynomial.aligned(&constraint.reals).unwrap()[0].0, [1, 2]);
    let integral = |constraint: &Constraint| {
        let region = Region::new(constraint).unwrap();
        pal::moments::integrate(&region, &polynomial, Method::Exact).unwrap().exact.unwrap().to_string()
    };
    // 30^2 / 2 * (9^3 - 2^3) / 3.
    assert_eq!(integral(&constraint), "108150");
    assert_eq!(integral(&constraint.with_order(&["gap", "speed"]).unwrap()), "108150");
}

#[test]
fn densities_have_their_columns_in_order_and_so_have_their_files() {
    let settings = Settings::Spline(SplineSettings { knots: Knots::Uniform(3), components: 1 });
    for order in [["speed", "gap"], ["gap", "speed"]] {
        let region = Region::new(&Constraint::new(safe()).with_order(&order).unwrap()).unwrap();
        let made = Family::new(&region, &settings).unwrap();
        let family = Family::from_bytes(&made.to_bytes().unwrap()).unwrap();
        assert_eq!(names(&family.support().constraint().reals), order);
        let density = family.density(&family.random_params(1, 7)).unwrap();
        assert_eq!(names(&density.support().constraint().reals), order);
        let (speed, gap) = (usize::from(order[0] == "gap"), usize::from(order[0] == "speed"));
        let mut point = [0.0; 2];
        (point[speed], point[gap]) = (29.0, 3.0);
        assert!(density.log_prob(&point)[0] > f64::NEG_INFINITY);
        point.reverse();
        assert_eq!(density.log_prob(&point), [f64::NEG_INFINITY]);
        let samples = density.sample(200, 1).unwrap();
        assert!(samples.chunks(2).all(|y| (0.0..=30.0).contains(&y[speed]) && (2.0..=9.0).contains(&y[gap])));
        assert!(samples.chunks(2).any(|y| y[speed] > 9.0));
    }
}

/// Whether every node is reached by the fold that lists variables: variables below all connectives are found.
#[test]
fn errors_about_points_say_the_order() {
    let region = Region::new(&safe().into()).unwrap();
    let family = Family::new(&region, &SplineSettings::default().into()).unwrap();
    let params = family.random_params(1, 1);
    let order = "points come in rows of one number per variable: speed, gap";
    let message = family.log_prob(&params, &[1.0, 2.0, 3.0]).unwrap_err().to_string();
    assert_eq!(message, format!("3 numbers given; {order}"));
    let message = family.features(&[1.0]).unwrap_err().to_string();
    assert!(message.contains(order), "{message}");
    let density = family.density(&params).unwrap();
    let message = density.marginal_density(&["gap", "speed"], &[1.0]).unwrap_err().to_string();
    assert!(message.ends_with("one number per variable: gap, speed"), "{message}");
}

#[test]
fn variables_under_every_connective_are_listed() {
    let [d, c, b, a] = reals(["d", "c", "b", "a"]);
    let formula = a.le(0).ite(b.le(0).iff(c.le(0)), !(d.le(0) & Formula::boolean("q")));
    assert!(matches!(formula.node(), Node::Connective(..)));
    assert_eq!(order(&formula), ["d", "c", "b", "a"]);
}
