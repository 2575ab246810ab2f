//! Analytic densities on built-in regions.

use pal::formula::{Constraint, GeoJsonOptions, Membership, Polygon, Ring, Var, parse_geojson, reals};
use pal::region::Region;
use pal::shapes;

use super::super::colours::{FORBIDDEN, HATCH};
use super::*;

/// Writes a picture to the folder of the variable `PAL_PICTURES`, to look at.
fn show(name: &str, bytes: &[u8]) {
    if let Some(folder) = std::env::var_os("PAL_PICTURES") {
        std::fs::write(std::path::Path::new(&folder).join(name), bytes).unwrap();
    }
}

fn plane(formula: pal::formula::Formula) -> Region {
    let reals = vec![Var::new("x"), Var::new("y")];
    Region::new(&Constraint { formula, reals, booleans: Vec::new() }).unwrap()
}

fn star() -> Region {
    let [x, y] = reals(["x", "y"]);
    let outline = Polygon::new(Ring::new(shapes::star(7, 10.0)).unwrap(), Vec::new()).unwrap();
    plane(outline.to_formula(&x, &y))
}

fn campus() -> Region {
    let text = include_str!("../../../assets/campus.geojson");
    Region::new(&parse_geojson(text, &GeoJsonOptions::default()).unwrap()).unwrap()
}

fn rectangle(width: &str, height: &str) -> Region {
    let text = format!(
        "(declare-const x Real)(declare-const y Real)(assert (and (<= 0 x {width}) (<= 0 y {height}) \
         (not (and (<= (* 0.4 {width}) x (* 0.5 {width})) (<= (* 0.4 {height}) y (* 0.6 {height}))))))"
    );
    smt(&text)
}

fn smt(text: &str) -> Region {
    Region::new(&pal::formula::parse_smtlib(text).unwrap()).unwrap()
}

fn membership(region: &Region) -> Membership {
    let Constraint { formula, reals, booleans } = region.constraint();
    Membership::new(formula, reals, booleans).unwrap()
}

/// A sum of round Gaussians: weight, mean and standard deviation.
fn gaussians<const N: usize>(gaussians: [(f64, [f64; 2], f64); N]) -> impl Fn(&[f64]) -> Vec<f64> + Sync {
    move |points: &[f64]| {
        let at = |p: &[f64]| {
            let gaussian = |(weight, middle, width): &(f64, [f64; 2], f64)| {
                let far = ((p[0] - middle[0]) / width).powi(2) + ((p[1] - middle[1]) / width).powi(2);
                weight * (-far / 2.0).exp()
            };
            gaussians.iter().map(gaussian).sum()
        };
        points.chunks_exact(2).map(at).collect()
    }
}

fn scene<'a>(region: &Region, density: &'a DensityFunction<'a>) -> DensityScene<'a> {
    DensityScene {
        title: None,
        subtitle: None,
        axes: region.constraint().reals.iter().map(Var::to_string).collect(),
        cells: region.map_cells(|cell| CellShape::new(&cell, false)).unwrap(),
        show_cells: false,
        y_down: false,
        density,
        samples: Vec::new(),
        mode: None,
        marginals: None,
        event: Vec::new(),
        event_text: None,
    }
}

fn ring(outline: &[Point]) -> CellShape {
    CellShape { outline: outline.to_vec(), inner: Vec::new() }
}

/// Points by rejection from a density that is at most 1.
fn samples(region: &Region, density: &DensityFunction, low: [f64; 2], high: [f64; 2], count: usize) -> Vec<Point> {
    let mut state = 1u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let inside = membership(region);
    let mut found = Vec::new();
    while found.len() < count {
        let point: Point = std::array::from_fn(|k| low[k] + uniform() * (high[k] - low[k]));
        if uniform() < density(&point)[0] && inside.contains(&point) {
            found.push(point);
        }
    }
    found
}

/// Width, height and pixels of a PNG.
fn decode(bytes: &[u8]) -> (u32, u32, Vec<[u8; 3]>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    (info.width, info.height, pixels.chunks_exact(3).map(|p| [p[0], p[1], p[2]]).collect())
}

/// Draws a PNG and an SVG, and checks the size of the one and that the other is well formed.
fn both(name: &str, scene: &DensityScene) -> (Vec<[u8; 3]>, String) {
    let png = render(scene, PictureFormat::Png, 1080).unwrap();
    show(&format!("{name}.png"), &png);
    let (width, height, pixels) = decode(&png);
    assert!(width == 1080 && (250..2000).contains(&height), "{name}: {height}");
    let svg = String::from_utf8(render(scene, PictureFormat::Svg, 1080).unwrap()).unwrap();
    show(&format!("{name}.svg"), svg.as_bytes());
    well_formed(&svg);
    (pixels, svg)
}

/// Checks that every tag is closed, in order, and that attributes are quoted.
fn well_formed(svg: &str) {
    let mut open = Vec::new();
    for part in svg.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("a tag ends");
        assert!(tag.matches('"').count() % 2 == 0 && !text.contains('"'), "{tag}");
        // The text of an embedded image is not checked.
        let numbers = tag.split("href").next().unwrap();
        assert!(!numbers.contains("NaN") && !numbers.contains("inf"), "{numbers}");
        let name = tag.trim_start_matches('/').split_whitespace().next().unwrap().trim_end_matches('/');
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty() && svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
}

fn marginal(low: f64, high: f64, curve: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    (0..=300).map(|k| low + (high - low) * f64::from(k) / 300.0).map(|x| (x, curve(x))).collect()
}

#[test]
fn a_star_with_everything() {
    let region = star();
    let density = gaussians([(1.0, [2.0, 1.0], 2.0), (0.6, [-4.0, 3.0], 1.5), (0.5, [-1.0, -5.0], 1.2)]);
    let mut scene = scene(&region, &density);
    scene.title = Some("A mixture on a star".into());
    scene.subtitle = Some("spline, 14 knots, 8 components".into());
    scene.mode = Some(vec![2.0, 1.0]);
    scene.event = vec![ring(&[[-6.0, 0.0], [0.0, 0.0], [0.0, 20.0], [-6.0, 6.0]])];
    let curve = |m: f64| move |x: f64| (-(x - m).powi(2) / 8.0).exp() + 0.4 * (-(x + 4.0).powi(2) / 4.0).exp();
    scene.marginals = Some(vec![marginal(-10.0, 10.0, curve(2.0)), marginal(-9.0, 10.0, curve(1.0))]);
    scene.samples = samples(&region, &density, [-10.0, -10.0], [10.0, 10.0], 100);
    let (_, few) = both("star-100", &scene);
    assert_eq!(few.matches("<image ").count(), 1);
    assert!(
        few.contains("100 samples") && few.contains("mode") && few.contains("event") && few.contains("8 components")
    );
    scene.samples = samples(&region, &density, [-10.0, -10.0], [10.0, 10.0], 100_000);
    scene.show_cells = true;
    let (_, many) = both("star-100000", &scene);
    assert_eq!(many.matches("<image ").count(), 2);
    assert!(many.len() < 2_000_000, "{}", many.len());
}

#[test]
fn a_campus_from_above() {
    let region = campus();
    let density = gaussians([(1.0, [30.0, 40.0], 14.0), (0.8, [85.0, 25.0], 12.0), (0.5, [70.0, 70.0], 20.0)]);
    let mut scene = scene(&region, &density);
    scene.title = Some("Where people walk on the campus".into());
    scene.y_down = true;
    scene.samples = samples(&region, &density, [0.0, 0.0], [120.0, 80.0], 3000);
    scene.mode = Some(vec![30.0, 40.0]);
    both("campus", &scene);
}

/// Checks that pixels outside the region are grey, and those inside are not.
#[test]
fn no_pixel_outside_the_region_has_a_colour() {
    for region in [star(), campus()] {
        let density = |points: &[f64]| points.chunks_exact(2).map(|p| 1.5 + (p[0] / 9.0).sin()).collect();
        let scene = scene(&region, &density);
        let plane = plane::PlanePicture::new(&scene, PictureFormat::Png, 720).unwrap();
        let (width, _, pixels) = decode(&render(&scene, PictureFormat::Png, 720).unwrap());
        let inside = membership(&region);
        let [left, top, right, bottom] = plane.frame();
        let (mut colourful, mut grey) = (0, 0);
        for y in top as usize + 3..bottom as usize - 3 {
            for x in left as usize + 3..right as usize - 3 {
                // All pixels around must agree: the boundary is a line of its own.
                let around = |dx: i32, dy: i32| {
                    let at = plane.locate([x as f64 + 0.5 + f64::from(dx), y as f64 + 0.5 + f64::from(dy)]);
                    inside.contains(&at)
                };
                let count = (-3..=3)
                    .flat_map(|dx| (-3..=3).map(move |dy| (dx, dy)))
                    .filter(|(dx, dy)| around(*dx, *dy))
                    .count();
                let pixel = pixels[y * width as usize + x];
                let spread = pixel.iter().max().unwrap() - pixel.iter().min().unwrap();
                if count == 0 {
                    let between = |k: usize, a: u8, b: u8| (b.min(a) - 1..=a.max(b) + 1).contains(&pixel[k]);
                    assert!(between(0, FORBIDDEN.0, HATCH.0) && between(2, FORBIDDEN.2, HATCH.2), "{x} {y} {pixel:?}");
                    grey += 1;
                } else if count == 49 {
                    assert!(spread >= 8, "{x} {y} {pixel:?}");
                    colourful += 1;
                }
            }
        }
        assert!(colourful > 20_000 && grey > 5_000, "{colourful} {grey}");
    }
}

#[test]
fn wide_tall_and_tiny_regions() {
    for (name, width, height) in [
        ("wide", "40", "4"),
        ("tall", "4", "40"),
        ("very-wide", "1000", "3"),
        ("very-tall", "1", "300"),
        ("small", "0.000001", "0.000002"),
    ] {
        let region = rectangle(width, height);
        let (w, h): (f64, f64) = (width.parse().unwrap(), height.parse().unwrap());
        let density = gaussians([(1.0 / (w * h), [0.3 * w, 0.7 * h], w.max(h) / 5.0)]);
        let mut scene = scene(&region, &density);
        scene.title = Some(format!("{width} by {height}"));
        scene.mode = Some(vec![0.3 * w, 0.7 * h]);
        let curve = |middle: f64, width: f64| move |x: f64| (-((x - middle) / width).powi(2) / 2.0).exp();
        scene.marginals =
            Some(vec![marginal(0.0, w, curve(0.3 * w, w / 5.0)), marginal(0.0, h, curve(0.7 * h, h / 5.0))]);
        both(name, &scene);
    }
    let region =
        smt("(declare-const x Real)(declare-const y Real)(assert (and (<= 1 x 1.000000001) (<= 5 y 5.000000001) \
         (<= (+ x y) 6.0000000015)))");
    let density = |points: &[f64]| points.chunks_exact(2).map(|p| 1e18 * (p[0] - 1.0) * 1e9).collect();
    let mut scene = scene(&region, &density);
    scene.title = Some("A tiny region away from 0".into());
    both("tiny", &scene);
}

#[test]
fn odd_densities() {
    let region = star();
    let constant = |points: &[f64]| vec![0.0031; points.len() / 2];
    let peak = gaussians([(1e6, [1.0, 1.0], 0.05), (1.0, [-3.0, 0.0], 3.0)]);
    let zero = |points: &[f64]| vec![0.0; points.len() / 2];
    let wrong = |points: &[f64]| {
        let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 1.0];
        (0..points.len() / 2).map(|k| odd[k % 5]).collect()
    };
    let short = |_: &[f64]| vec![1.0];
    let all: [(&str, &DensityFunction); 5] =
        [("constant", &constant), ("peak", &peak), ("zero", &zero), ("wrong", &wrong), ("short", &short)];
    for (name, density) in all {
        let (_, svg) = both(&format!("odd-{name}"), &scene(&region, density));
        assert_eq!(svg.contains("square-root scale"), name == "peak" || name == "short", "{name}");
    }
}

#[test]
fn a_line_is_a_curve() {
    let region = smt("(declare-const t Real)(assert (or (<= 0 t 1) (<= 2 t 4)))");
    let density = |points: &[f64]| points.iter().map(|t| 0.1 + (-(t - 3.0f64).powi(2) * 8.0).exp()).collect();
    let mut scene = scene(&region, &density);
    scene.title = Some("A density on two intervals".into());
    scene.subtitle = Some("spline, 14 knots".into());
    scene.mode = Some(vec![3.0]);
    scene.event = vec![ring(&[[2.2, 0.0], [2.8, 0.0], [2.8, 1.0], [2.2, 1.0]])];
    let scaled = |points: &[f64]| vec![density(&points[..1])[0] / 1.2];
    scene.samples = samples(
        &smt("(declare-const t Real)(declare-const y Real)(assert (or (<= 0 t 1) (<= 2 t 4)))"),
        &scaled,
        [0.0; 2],
        [4.0, 1.0],
        100,
    );
    let (pixels, svg) = both("line-100", &scene);
    assert!(svg.contains("100 samples") && pixels.iter().any(|p| p[2] > p[0].saturating_add(30)));
    scene.samples = (0..100_000).map(|k| [2.0 + 2.0 * (f64::from(k) / 1e5).powi(2), 0.0]).collect();
    assert!(both("line-100000", &scene).1.len() < 1_000_000);
    let zero = |points: &[f64]| vec![f64::NAN; points.len()];
    let mut none = super::tests::scene(&region, &zero);
    none.mode = Some(vec![0.5]);
    both("line-zero", &none);
}

#[test]
fn what_cannot_be_drawn() {
    let region = smt("(declare-const x Real)(declare-const y Real)(declare-const z Real)(assert (<= 0 x y z 1))");
    let density = |points: &[f64]| vec![1.0; points.len() / 3];
    let flat = star();
    let mut scene = scene(&flat, &density);
    scene.mode = Some(vec![1.0]);
    assert!(render(&scene, PictureFormat::Png, 300).is_err());
    scene.mode = None;
    scene.axes = region.constraint().reals.iter().map(Var::to_string).collect();
    assert!(render(&scene, PictureFormat::Png, 300).unwrap_err().to_string().contains("this one has 3"));
    scene.cells.clear();
    assert!(render(&scene, PictureFormat::Svg, 300).unwrap_err().to_string().contains("nothing to draw"));
}
