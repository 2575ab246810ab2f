//! Test cases for the laws of densities: families on regions of every difficult kind.

pub mod cubature;
pub mod oracle;

use pal::density::Density;
use pal::density::{Basis, Family, HistogramSettings, Knots, Settings, SplineSettings, Subset, SumOfSquaresSettings};
use pal::formula::{Constraint, Formula, GeoJsonOptions, Linear, Polygon, Ring, parse_geojson};
use pal::number::{Rational, to_f64};
use pal::region::Region;
use pal::shapes;

use self::cubature::Cubature;
use super::{Dice, ratio, variables};

/// A family on a region.
pub struct Case {
    pub name: String,
    pub constraint: Constraint,
    pub settings: Settings,
    /// The spacing of float64 coordinates relative to the size of the region: rounding of coordinates changes values by
    /// about that much.
    pub resolution: f64,
}

impl Case {
    pub fn new(region: &str, settings: Settings) -> Case {
        let resolution = match region {
            "far" => 1e-10,
            "sliver" => 1e-10,
            _ => 1e-15,
        };
        Case { resolution, ..Case::on(region, place(region), settings) }
    }

    /// A case on a given constraint, which is not one of [`place`].
    pub fn on(region: &str, constraint: Constraint, settings: Settings) -> Case {
        let name = format!("{region} {}", serde_json::to_string(&settings).unwrap());
        Case { name, constraint, settings, resolution: 1e-15 }
    }

    pub fn region(&self) -> Region {
        Region::new(&self.constraint).unwrap()
    }

    pub fn compile(&self) -> Family {
        Family::new(&self.region(), &self.settings).unwrap_or_else(|error| panic!("{self}: {error}"))
    }

    pub fn density(&self, seed: u64) -> Density {
        let family = self.compile();
        family.density(&family.random_params(1, seed)).unwrap()
    }

    pub fn dimension(&self) -> usize {
        self.constraint.reals.len()
    }

    /// The ends of the box around the region, per axis.
    pub fn ends(&self) -> Vec<(Rational, Rational)> {
        self.region().bounding_box().unwrap().unwrap()
    }

    /// All knots per axis, ends included. Between them densities are polynomials.
    pub fn knots(&self) -> Vec<Vec<Rational>> {
        let uniform = |count: i64| {
            let knots = |(low, high): &(Rational, Rational)| {
                (0..count).map(|k| low + (high - low) * ratio(k, count - 1)).collect::<Vec<_>>()
            };
            self.ends().iter().map(knots).collect()
        };
        let knots = match &self.settings {
            Settings::Spline(settings) => &settings.knots,
            Settings::Histogram(settings) => &settings.knots,
            Settings::SumOfSquares(_) => &Knots::Uniform(2),
        };
        match knots {
            Knots::Uniform(count) => uniform(*count as i64),
            Knots::At(lists) => lists.clone(),
            Knots::Automatic => panic!("cases name their knots"),
        }
    }

    /// The total degree of densities between knots, and their degree in one variable.
    pub fn degree(&self) -> (usize, usize) {
        match &self.settings {
            Settings::Spline(_) => (6 * self.dimension(), 6),
            Settings::SumOfSquares(settings) => {
                let twice = 2 * usize::from(settings.degree.expect("cases name their degree"));
                (twice, twice)
            }
            Settings::Histogram(_) => (0, 0),
        }
    }

    /// A cubature rule that integrates densities times polynomials of degree `extra` over the part of the region where
    /// a condition holds.
    pub fn cubature(&self, condition: &Formula, extra: usize) -> Cubature {
        let (total, axis) = self.degree();
        let formula = self.constraint.formula.clone() & condition.clone();
        let constraint = Constraint { formula, ..self.constraint.clone() };
        Cubature::new(&constraint, &self.knots(), (total + extra, axis + extra))
    }

    /// Points well inside the region: nodes of a coarse cubature rule.
    pub fn inside(&self, count: usize) -> Vec<f64> {
        let nodes = Cubature::new(&self.constraint, &self.knots(), (2, 2)).points;
        let n = self.dimension();
        let step = (nodes.len() / n).div_ceil(count).max(1);
        nodes.chunks(n).step_by(step).flatten().copied().collect()
    }

    /// A random half-space that meets the box around the region.
    pub fn half_space(&self, dice: &mut Dice) -> Linear {
        let terms = self.ends().into_iter().zip(&self.constraint.reals).map(|((low, high), var)| {
            let slope = ratio(dice.int(-4, 4), 4);
            let middle = &low + (&high - &low) * ratio(dice.int(2, 8), 10);
            (Linear::from(var.clone()) - middle).scaled(&(slope / (high - low)))
        });
        terms.fold(Linear::default(), |sum, term| sum + term) + ratio(1, 97)
    }

    /// Four conditions, of which every point satisfies exactly one.
    pub fn partition(&self, seed: u64) -> [Formula; 4] {
        let mut dice = Dice::new(seed);
        let [a, b] = [0; 2].map(|_| self.half_space(&mut dice).le(0));
        [a.clone() & b.clone(), a.clone() & !b.clone(), !a.clone() & b.clone(), !a & !b]
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

pub fn spline(knots: usize, components: usize) -> Settings {
    Settings::Spline(SplineSettings { knots: Knots::Uniform(knots), components })
}

/// Knots at given positions: uneven, and wider than the region.
pub fn given_knots(lists: &[&[(i64, i64)]], components: usize) -> Settings {
    let knots = lists.iter().map(|list| list.iter().map(|(p, q)| ratio(*p, *q)).collect()).collect();
    Settings::Spline(SplineSettings { knots: Knots::At(knots), components })
}

/// Equally wide bins.
pub fn histogram(bins: usize, components: usize) -> Settings {
    Settings::Histogram(HistogramSettings { knots: Knots::Uniform(bins + 1), components })
}

/// Bins with given ends: uneven, and wider than the region.
pub fn given_bins(lists: &[&[(i64, i64)]], components: usize) -> Settings {
    let knots = lists.iter().map(|list| list.iter().map(|(p, q)| ratio(*p, *q)).collect()).collect();
    Settings::Histogram(HistogramSettings { knots: Knots::At(knots), components })
}

pub fn sum_of_squares(degree: u16, components: usize, basis: Basis) -> Settings {
    Settings::SumOfSquares(SumOfSquaresSettings { degree: Some(degree), components, basis, subset: None })
}

pub fn some_of_squares(degree: u16, components: usize, basis: Basis, terms: usize) -> Settings {
    Settings::SumOfSquares(SumOfSquaresSettings {
        degree: Some(degree),
        components,
        basis,
        subset: Some(Subset { terms, seed: 5 }),
    })
}

/// The star with N corners as a formula over `x1`, `x2`.
pub fn star(corners: usize, radius: f64) -> Constraint {
    let (reals, x) = variables(2);
    let outline = Polygon::from(Ring::new(shapes::star(corners, radius)).unwrap());
    Constraint { formula: outline.to_formula(&x[0], &x[1]), reals, booleans: Vec::new() }
}

/// A region by name, over `x1, x2, ..`.
pub fn place(name: &str) -> Constraint {
    let n = match name {
        "interval" | "two intervals" => 1,
        "simplex 3" | "notched cube" => 3,
        "simplex 4" | "cut box 4" => 4,
        "simplex 5" | "box 5" => 5,
        _ => 2,
    };
    let (reals, x) = variables(n);
    let unit = Formula::all(x.iter().map(|x| x.between(0, 1)));
    let sum = x.iter().fold(Linear::default(), |sum, x| sum + x);
    let y = &x[n - 1];
    let x = &x[0];
    let formula = match name {
        "interval" => x.between(ratio(1, 3), 2),
        "two intervals" => x.gt(0) & x.lt(1) | x.between(2, ratio(5, 2)),
        "box" => x.between(-1, 2) & y.gt(0) & y.lt(3),
        "triangle" => x.ge(0) & y.ge(0) & (x + y).le(1),
        "notched" => unit & !(y.gt(x.scaled(&ratio(1, 2))) & y.gt(1 - x) & x.lt(ratio(9, 10))),
        "star" => return star(5, 1.0),
        "boxes" => unit | x.between(2, 3) & y.between(ratio(1, 2), ratio(7, 2)),
        "sliver" => x.between(0, 1) & (y - x).between(0, ratio(1, 1_000_000)),
        "touching" => unit | x.between(1, 2) & y.between(1, 2),
        "far" => {
            let base = 1_000_000;
            x.between(base, base + 1) & y.between(base, base + 1) & (x + y).lt(ratio(4 * base + 3, 2))
        }
        "tiny" => x.gt(0) & y.gt(0) & (x + 2 * y).lt(ratio(1, 1_000_000)),
        "box and segment" => unit | y.equals(ratio(1, 2)) & x.between(-1, ratio(1, 2)) | x.equals(3) & y.equals(3),
        "notched cube" => unit & !sum.gt(ratio(5, 2)) & !(x.lt(ratio(1, 2)) & y.lt(ratio(1, 2))),
        "cut box 4" => unit & sum.ge(1),
        "box 5" => unit,
        "simplex 3" | "simplex 4" | "simplex 5" => return shapes::simplex(n),
        _ => panic!("no region is called {name}"),
    };
    Constraint { formula, reals, booleans: Vec::new() }
}

pub const PLANAR: [&str; 10] =
    ["box", "triangle", "notched", "star", "boxes", "sliver", "touching", "far", "tiny", "box and segment"];

/// Every kind of family on every planar region, and the dimensions 1 to 5.
pub fn catalogue() -> Vec<Case> {
    use Basis::{Legendre, Monomial, Orthonormal};
    let bases = [Orthonormal, Legendre, Monomial];
    let mut cases = Vec::new();
    for (k, region) in PLANAR.iter().enumerate() {
        cases.push(Case::new(region, spline(2 + k % 5, 1 + k % 3)));
        // Far from the origin monomials are nearly proportional to each other, and the family refuses them.
        let basis = if *region == "far" { Orthonormal } else { bases[k % 3] };
        cases.push(Case::new(region, sum_of_squares((k % 5) as u16, 1 + k % 3, basis)));
        cases.push(Case::new(region, histogram(1 + k % 4, 1 + k % 3)));
    }
    let uneven: &[(i64, i64)] = &[(0, 1), (1, 3), (5, 2)];
    let axes: [&[(i64, i64)]; 2] = [&[(-1, 1), (0, 1), (1, 4), (1, 1)], &[(0, 1), (2, 5), (2, 1)]];
    let more = [
        ("interval", spline(6, 3)),
        ("two intervals", given_knots(&[uneven], 2)),
        ("two intervals", sum_of_squares(4, 2, Orthonormal)),
        ("triangle", given_knots(&axes, 2)),
        ("notched", given_knots(&axes, 1)),
        ("star", some_of_squares(4, 2, Orthonormal, 6)),
        ("triangle", some_of_squares(3, 1, Legendre, 4)),
        ("notched", some_of_squares(3, 2, Monomial, 5)),
        ("simplex 3", spline(3, 2)),
        ("notched cube", spline(2, 2)),
        ("notched cube", sum_of_squares(3, 2, Orthonormal)),
        ("simplex 4", spline(2, 1)),
        ("cut box 4", sum_of_squares(2, 2, Legendre)),
        ("simplex 5", sum_of_squares(2, 1, Orthonormal)),
        ("box 5", sum_of_squares(1, 2, Monomial)),
        ("interval", histogram(5, 2)),
        ("two intervals", given_bins(&[uneven], 2)),
        ("notched", given_bins(&axes, 2)),
        ("notched cube", histogram(2, 2)),
        ("simplex 4", histogram(2, 1)),
        ("box 5", histogram(2, 2)),
    ];
    cases.extend(more.into_iter().map(|(region, settings)| Case::new(region, settings)));
    cases
}

/// The largest magnitude of a difference, relative to the largest magnitude of the expected numbers.
pub fn distance(got: &[f64], want: &[f64]) -> f64 {
    assert_eq!(got.len(), want.len());
    let largest = want.iter().fold(0.0f64, |a, b| a.max(b.abs()));
    let worst =
        got.iter().zip(want).map(|(a, b)| (a - b).abs()).fold(0.0, |a, b| if b > a || b.is_nan() { b } else { a });
    if worst == 0.0 { 0.0 } else { worst / largest }
}

/// The lower end and the length of an axis, rounded to float64.
pub fn in_float64((low, high): &(Rational, Rational)) -> (f64, f64) {
    (to_f64(low), to_f64(&(high - low)))
}

/// The drone scenes of `PAL_DATA`, by name. Where that is not set there are none, and a message says so.
pub fn scenes() -> Vec<(String, Constraint)> {
    let Some(folder) = std::env::var_os("PAL_DATA") else {
        println!("skipped: PAL_DATA is not set");
        return Vec::new();
    };
    let folder = std::path::PathBuf::from(folder).join("sdd");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<std::path::PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "geojson"));
    paths.sort();
    assert!(!paths.is_empty(), "no maps in {}", folder.display());
    let read = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        let constraint = parse_geojson(&text, &GeoJsonOptions::default()).unwrap();
        (path.file_stem().unwrap().to_string_lossy().into_owned(), constraint)
    };
    paths.into_iter().map(read).collect()
}
