use super::*;
use crate::polynomial::ParseProblem;

#[test]
fn notation_is_read_as_in_mathematics() {
    for (text, canonical) in [
        ("3*x^2*y - 1/2", "3*x^2*y - 1/2"),
        ("0.1", "1/10"),
        (".5*x", "1/2*x"),
        ("1e-3 + 2.5E1", "25001/1000"),
        ("-x^2", "-x^2"),
        ("(-x)^2", "x^2"),
        ("2^3^2", "512"),
        ("x**2**1", "x^2"),
        ("- - +x", "x"),
        ("x - -y", "x + y"),
        ("x*-2", "-2*x"),
        ("6/2/3*x", "x"),
        ("x/(1/2 + 1/6)", "3/2*x"),
        ("x^(1+1)", "x^2"),
        ("0^0", "1"),
        ("(x-x)^0 + 0*y", "1"),
        ("x - x", "0"),
        ("  \t\n1 ", "1"),
        ("y + x + x^2 + x*y", "x^2 + x*y + x + y"),
        ("_a.b!c@1 * B2", "B2*_a.b!c@1"),
        ("|wind speed|^2 + |x| - ||", "|wind speed|^2 - || + x"),
        ("|a||b| + |é|", "|a||b| + |é|"),
        ("e5 + 2*e5", "3*e5"),
    ] {
        let p = poly(text);
        assert_eq!(p.to_string(), canonical, "{text}");
        assert_eq!(poly(canonical), p);
    }
    assert_eq!(poly("|a||b|").variables(), vars(["a|b"]));
}

#[test]
fn every_error_has_its_column() {
    use ParseProblem::*;
    let operand = |found: &str| Operand { found: found.to_string() };
    let missing = |left: &str, right: &str| MissingOperator { left: left.to_string(), right: right.to_string() };
    for (text, column, problem) in [
        ("", 1, Empty),
        (" \n ", 1, Empty),
        ("x +", 4, operand("the end of the text")),
        ("x + * y", 5, operand("`*`")),
        ("x ***2", 5, operand("`*`")),
        ("()", 2, operand("`)`")),
        ("x +\u{a0}é", 5, Character('é')),
        ("|é é| & x", 7, Character('&')),
        ("x + |abc", 5, UnclosedQuote),
        ("x + |abc||", 5, UnclosedQuote),
        ("x + 2y", 6, missing("2", "y")),
        ("2 (x)", 3, missing("2", "(")),
        ("(x)(y)", 4, missing(")", "(")),
        ("(x y)", 4, missing("x", "y")),
        ("1 + 2e", 6, missing("2", "e")),
        ("2e5x", 4, missing("2e5", "x")),
        ("(x + 1", 1, Unclosed),
        ("x*((y)", 3, Unclosed),
        ("x + 1)", 6, Unopened),
        ("x^y", 3, VariableExponent),
        ("x^ -1", 4, NegativeExponent("-1".into())),
        ("x^(1/2)", 3, FractionalExponent("1/2".into())),
        ("x^0.5", 3, FractionalExponent("1/2".into())),
        ("x^100000", 3, LargeExponent("100000".into())),
        ("1^1e30", 3, LargeExponent("1000000000000000000000000000000".into())),
        ("1 + 2/x", 7, VariableDivisor),
        ("x/(3-3)", 3, DivisionByZero),
        ("x/0", 3, DivisionByZero),
    ] {
        let error = Polynomial::parse(text).unwrap_err();
        assert_eq!((error.column, error.problem), (column, problem), "{text:?}");
    }
    for (text, column) in [("x + .", 5), ("x + 1e99999", 5), ("x*1e999999999999999999999", 3)] {
        let error = Polynomial::parse(text).unwrap_err();
        assert!(error.column == column && matches!(error.problem, Number(_)), "{text:?} {error}");
    }
}

#[test]
fn a_scope_names_the_stranger_and_its_neighbour() {
    let scope = vars(["speed", "height", "wind dir"]);
    let message = |text: &str| Polynomial::parse_in(text, &scope).unwrap_err().to_string();
    assert_eq!(message("height^2 - sped"), "column 12: unknown variable `sped`; did you mean `speed`?");
    assert_eq!(message("|wind dri|"), "column 1: unknown variable `wind dri`; did you mean `|wind dir|`?");
    assert_eq!(message("q"), "column 1: unknown variable `q`; known variables: height, speed, |wind dir|");
    assert_eq!(Polynomial::parse_in("x", &[]).unwrap_err().column, 1);
    assert_eq!(Polynomial::parse_in("speed*2", &scope).unwrap(), poly("2*speed"));
}

#[test]
fn random_text_is_an_error_or_a_round_trip_but_no_panic() {
    let mut random = Lcg(3);
    let alphabet: Vec<char> = "xy12.e+-*/^()| é".chars().collect();
    for _ in 0..20_000 {
        let length = random.below(12);
        let text: String = (0..length).map(|_| alphabet[random.below(alphabet.len() as u64) as usize]).collect();
        match Polynomial::parse(&text) {
            Ok(p) => assert_eq!(poly(&p.to_string()), p, "{text:?}"),
            Err(error) => assert!((1..=length as usize + 1).contains(&error.column), "{text:?} {error}"),
        }
    }
}
