//! Conjunctions of half-spaces, converted as a whole, against the same sets cut out of a box.

use std::collections::BTreeSet;

use pal::formula::{Constraint, Formula, Linear, Var};
use pal::moments::{Method, integrate};
use pal::number::{Integer, Rational, parse_rational};
use pal::polynomial::Polynomial;
use pal::region::{Polytope, Region, Status};

/// A small generator of its own, so that the cases never change.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: u64) -> i64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) % n) as i64
    }

    fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as u64)
    }
}

/// Rows `b a1 .. an`, each meaning `b + a . x >= 0`.
type Rows = Vec<Vec<i64>>;

fn formula(rows: &[Vec<Rational>]) -> Constraint {
    let names: Vec<String> = (1..rows[0].len()).map(|j| format!("x{j}")).collect();
    let variables = Var::declare_all(&names);
    let half_space = |row: &Vec<Rational>| {
        Linear::new(variables.iter().cloned().zip(row[1..].iter().cloned()), row[0].clone()).ge(0)
    };
    Constraint { formula: Formula::all(rows.iter().map(half_space)), reals: variables.clone(), booleans: Vec::new() }
}

fn constraint(rows: &Rows) -> Constraint {
    let rational = |row: &Vec<i64>| row.iter().map(|a| Rational::from(*a)).collect();
    formula(&rows.iter().map(rational).collect::<Vec<_>>())
}

/// The same set with the same hyperplanes, but no conjunction: the search cuts it out of a box.
fn disguised(rows: &Rows) -> Constraint {
    let whole = constraint(rows);
    let one = |row: &Vec<i64>| constraint(&vec![row.clone()]).formula;
    let redundant = one(&rows[0]) | one(&rows[rows.len() - 1]);
    Constraint { formula: whole.formula & redundant, ..whole }
}

fn vertices(polytope: &Polytope) -> BTreeSet<Vec<Rational>> {
    polytope.exact_vertices().into_iter().collect()
}

fn facets(polytope: &Polytope) -> BTreeSet<(Vec<Integer>, Integer)> {
    polytope.half_spaces().into_iter().collect()
}

/// The volume as the sum of the determinants of a triangulation, by cofactors.
fn volume_by_simplices(polytope: &Polytope) -> Rational {
    fn determinant(rows: &[Vec<Rational>]) -> Rational {
        match rows {
            [] => Rational::ONE,
            [first, rest @ ..] => {
                first.iter().enumerate().filter(|(_, a)| !a.is_zero()).fold(Rational::ZERO, |sum, (j, a)| {
                    let minor: Vec<Vec<Rational>> =
                        rest.iter().map(|row| [&row[..j], &row[j + 1..]].concat()).collect();
                    let term = a * determinant(&minor);
                    if j % 2 == 0 { sum + term } else { sum - term }
                })
            }
        }
    }
    let points = polytope.exact_vertices();
    let factorial = (1..=polytope.dimension()).fold(Rational::ONE, |f, k| f * Rational::from(k));
    let sizes = polytope.triangulate().into_iter().map(|simplex| {
        let edge = |v: &usize| points[*v].iter().zip(&points[simplex[0]]).map(|(a, b)| a - b).collect();
        let size = determinant(&simplex[1..].iter().map(edge).collect::<Vec<_>>());
        if size < Rational::ZERO { -size } else { size }
    });
    sizes.fold(Rational::ZERO, |sum, size| sum + size) / factorial
}

/// Compares both ways; says what kind of set it was.
fn compare(rows: &Rows) -> &'static str {
    let whole = Region::new(&constraint(rows)).unwrap();
    let cut = Region::new(&disguised(rows)).unwrap();
    let (whole_cells, cut_cells) = (whole.decompose(), cut.decompose());
    let (whole_cells, cut_cells) = match (whole_cells, cut_cells) {
        (Err(a), Err(b)) => {
            assert_eq!(a, b, "{rows:?}");
            return "unbounded";
        }
        (a, b) => (a.unwrap(), b.unwrap()),
    };
    assert_eq!(whole_cells.len(), cut_cells.len(), "{rows:?}");
    let [cell] = &whole_cells[..] else {
        assert!(whole_cells.is_empty());
        assert_eq!(whole.status().name(), cut.status().name(), "{rows:?}");
        return if whole.status() == Status::Empty { "empty" } else { "flat" };
    };
    let (a, b) = (cell.polytope(), cut_cells[0].polytope());
    assert_eq!(vertices(a), vertices(b), "{rows:?}");
    assert_eq!(facets(a), facets(b), "{rows:?}");
    for facet in 0..facets(a).len() {
        let (normal, offset) = &a.half_spaces()[facet];
        let on: BTreeSet<usize> = a.facet_vertices(facet).into_iter().collect();
        for (v, point) in a.exact_vertices().iter().enumerate() {
            let value =
                normal.iter().zip(point).fold(Rational::ZERO, |sum, (n, x)| sum + x * Rational::from(n.clone()));
            assert_eq!(value == Rational::from(offset.clone()), on.contains(&v), "incidence of {rows:?}");
        }
    }
    let volume = whole.exact_volume().unwrap();
    assert_eq!(volume, cut.exact_volume().unwrap(), "{rows:?}");
    if rows[0].len() <= 6 {
        assert_eq!(volume, volume_by_simplices(b), "{rows:?}");
    }
    "polytope"
}

fn unit(n: usize, axis: usize, sign: i64, offset: i64) -> Vec<i64> {
    [offset].into_iter().chain((0..n).map(|j| if j == axis { sign } else { 0 })).collect()
}

#[test]
fn random_conjunctions_are_what_cutting_a_box_gives() {
    let mut seen = std::collections::BTreeMap::new();
    for case in 0..400u64 {
        let mut draw = Draw(case * 7919 + 1);
        let n = 2 + (case % 6) as usize;
        let mut rows: Rows = Vec::new();
        let boxed = draw.below(4);
        for axis in 0..n {
            if boxed > 0 {
                rows.push(unit(n, axis, 1, draw.between(0, 3)));
            }
            if boxed > 1 {
                rows.push(unit(n, axis, -1, draw.between(1, 3)));
            }
        }
        let extra = if n < 6 { n as u64 + 4 } else { 5 };
        for _ in 0..draw.below(extra) + 1 {
            // Few values: many rows through one point, parallel and opposite rows.
            let normal: Vec<i64> = (0..n).map(|_| draw.between(-1, 1)).collect();
            if normal.iter().any(|a| *a != 0) {
                let offset = draw.between(if case % 5 == 0 { -2 } else { 0 }, 2);
                rows.push([offset].into_iter().chain(normal).collect());
            }
        }
        if case % 3 == 0 && !rows.is_empty() {
            // A duplicate, a multiple, a redundant row, and one that touches in a face only.
            let row = rows[0].clone();
            rows.push(row.iter().map(|a| 3 * a).collect());
            rows.push([row[0] + 5].into_iter().chain(row[1..].iter().copied()).collect());
            let other = rows[rows.len() / 2].clone();
            rows.push(row.iter().zip(&other).map(|(a, b)| a + b).collect());
        }
        rows.retain(|row| row[1..].iter().any(|a| *a != 0));
        if rows.len() > 1 {
            *seen.entry(compare(&rows)).or_insert(0) += 1;
        }
    }
    let kinds = ["empty", "flat", "polytope", "unbounded"];
    assert!(kinds.iter().all(|kind| seen.get(kind).is_some_and(|count| *count >= 5)), "{seen:?}");
}

#[test]
fn many_facets_and_few_vertices() {
    // Pyramids and bipyramids over cross-polytopes, and cones from one vertex: highly degenerate.
    for n in 4..=6usize {
        let signs = (0..1u32 << n).map(|s| (0..n).map(|j| if s >> j & 1 == 1 { 1 } else { -1 }).collect::<Vec<i64>>());
        let cross: Rows = signs.map(|normal| [1].into_iter().chain(normal).collect()).collect();
        assert_eq!(compare(&cross), "polytope");
        let mut cut = cross.clone();
        cut.push(unit(n, 0, 1, 0));
        assert_eq!(compare(&cut), "polytope");
        // The slanted cut leaves a vertex that all facets of one orthant run into.
        cut.push((0..=n as i64).map(|j| if j == 0 { 1 } else { -j }).collect());
        assert_eq!(compare(&cut), "polytope");
        let volume = Region::new(&constraint(&cross)).unwrap().exact_volume().unwrap();
        let factorial: usize = (1..=n).product();
        assert_eq!(volume, Rational::from(1usize << n) / Rational::from(factorial));
    }
}

#[test]
fn large_numbers_leave_machine_words() {
    let mut draw = Draw(5);
    for _ in 0..6 {
        let n = 5;
        let mut rows: Rows = (0..n).flat_map(|axis| [unit(n, axis, 1, 0), unit(n, axis, -1, 1 << 40)]).collect();
        for _ in 0..4 {
            let normal = (0..n).map(|_| draw.between(-(1 << 30), 1 << 31)).collect::<Vec<_>>();
            rows.push([draw.between(1 << 60, 1 << 62)].into_iter().chain(normal).collect());
        }
        assert_eq!(compare(&rows), "polytope");
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let mut draw = Draw(11);
    let n = 7;
    let mut rows: Rows = (0..n).flat_map(|axis| [unit(n, axis, 1, 1), unit(n, axis, -1, 1)]).collect();
    for _ in 0..8 {
        rows.push([draw.between(1, 4)].into_iter().chain((0..n).map(|_| draw.between(-2, 2))).collect());
    }
    let answer = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let region = Region::new(&constraint(&rows)).unwrap();
            let cells = region.decompose().unwrap();
            let polynomial = Polynomial::parse("x1^2*x2 + x3").unwrap();
            let integral = integrate(&region, &polynomial, Method::Recurrence).unwrap();
            let vertices = cells[0].polytope().exact_vertices();
            (vertices, region.exact_volume().unwrap(), integral.value.to_bits(), integral.error.to_bits())
        })
    };
    let one = answer(1);
    assert!(one.0.len() > 100);
    assert_eq!(one, answer(2));
    assert_eq!(one, answer(4));
}

#[test]
fn sums_over_vertices_have_closed_forms() {
    // Boxes with fractional sides, sheared: simple, with denominators.
    for n in 4..=9usize {
        let mut rows: Vec<Vec<Rational>> = Vec::new();
        for axis in 0..n {
            let sheared = |sign: i64| {
                (0..n).map(move |j| Rational::from(if j <= axis { sign * (1 + (j * axis) as i64 % 3) } else { 0 }))
            };
            let side = Rational::from_parts(Integer::from(axis + 1), 7u8.into());
            rows.push([Rational::ZERO].into_iter().chain(sheared(1)).collect());
            rows.push([side].into_iter().chain(sheared(-1)).collect());
        }
        let sides = (1..=n).fold(Rational::ONE, |p, k| p * Rational::from_parts(Integer::from(k), 7u8.into()));
        let shear = (0..n).fold(Rational::ONE, |p, j| p * Rational::from(1 + (j * j) % 3));
        assert_eq!(Region::new(&formula(&rows)).unwrap().exact_volume().unwrap(), sides / shear, "n = {n}");
    }
}

#[test]
fn volumes_of_polytopes_from_other_projects() {
    let Some(folder) = std::env::var_os("PAL_DATA") else {
        println!("skipped: PAL_DATA does not name the folder that holds polytopes/*.jsonl");
        return;
    };
    let mut count = 0;
    for file in ["polytopes.jsonl", "hard.jsonl"] {
        let text = std::fs::read_to_string(std::path::Path::new(&folder).join("polytopes").join(file)).unwrap();
        for line in text.lines() {
            let case: serde_json::Value = serde_json::from_str(line).unwrap();
            let name = case["name"].as_str().unwrap();
            // Volumes with a hundred thousand digits take seconds: `bench/polytopes.py` checks them.
            let Some(volume) = case["volume"].as_str().filter(|text| text.len() < 10_000) else { continue };
            let number = |value: &serde_json::Value| match value {
                serde_json::Value::String(text) => parse_rational(text).unwrap(),
                other => parse_rational(&other.to_string()).unwrap(),
            };
            let row = |row: &serde_json::Value| row.as_array().unwrap().iter().map(number).collect::<Vec<_>>();
            let rows: Vec<Vec<Rational>> = case["rows"].as_array().unwrap().iter().map(row).collect();
            let region = Region::new(&formula(&rows)).unwrap();
            assert_eq!(region.exact_volume().unwrap(), parse_rational(volume).unwrap(), "{name}");
            if let (Some(text), Some(integral)) = (case["poly"].as_str(), case["integral"].as_str()) {
                let polynomial = Polynomial::parse(text).unwrap();
                let exact = integrate(&region, &polynomial, Method::Exact).unwrap().exact.unwrap();
                assert_eq!(exact, parse_rational(integral).unwrap(), "{name}");
            }
            count += 1;
        }
    }
    assert!(count >= 95, "{count}");
}
