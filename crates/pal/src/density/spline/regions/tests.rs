//! Forms of rows against the general path: the region of the row cut along the grid.

use std::collections::BTreeMap;

use super::super::hermite::SQUARE;
use super::planar_form::PlanarForm;
use super::tables::{TABLE, TableEntries};
use super::*;
use crate::density::{Knots, SplineSettings};
use crate::formula::{Constraint, Formula, Linear, parse_geojson, reals};
use crate::number::{from_f64, parse_rational};
use crate::random::Stream;
use crate::region::{Region, RegionMap};

/// For each bin its table in values at nodes.
type BinTables = BTreeMap<[usize; 2], Vec<f64>>;

fn by_general_path(form: &BinForm<f64>) -> BinTables {
    let mut bins = BinTables::new();
    let mut add = |bin: [usize; 2], value: &dyn Fn(usize, usize) -> f64| {
        let table = bins.entry(bin).or_insert_with(|| vec![0.0; TABLE]);
        table.iter_mut().enumerate().for_each(|(at, x)| *x += value(at / SQUARE, at % SQUARE));
    };
    for part in &form.boxes {
        let [x, y] = [0, 1].map(|axis| &form.intervals[axis][part.sides[axis] as usize]);
        add([x.bin.get(), y.bin.get()], &|k, l| part.volume * x.means[k] * y.means[l]);
    }
    for cut in &form.cut {
        let table = &form.tables[cut.table as usize * TABLE..][..TABLE];
        add([cut.bin[0].get(), cut.bin[1].get()], &|k, l| table[k * SQUARE + l]);
    }
    bins
}

fn by_pieces(kernel: &RegionKernelParts, form: &PlanarForm) -> BinTables {
    let mut bins = BinTables::new();
    for run in &form.full {
        for j in run.first..run.end {
            let (i, j) = (usize::from(run.column), usize::from(j));
            let volume = kernel.fractions[0][i] * kernel.fractions[1][j];
            let table = (0..TABLE).map(|at| volume * kernel.weights[at / SQUARE] * kernel.weights[at % SQUARE]);
            assert!(bins.insert([i, j], table.collect()).is_none());
        }
    }
    let TableEntries::Float64(tables) = &form.tables else { panic!("tables are in float64") };
    for ([i, j], table) in form.cut.iter().zip(tables.chunks(TABLE)) {
        assert!(bins.insert([usize::from(*i), usize::from(*j)], table.to_vec()).is_none());
    }
    bins
}

/// What full bins need to be written out.
struct RegionKernelParts {
    fractions: [Vec<f64>; 2],
    weights: [f64; SQUARE],
}

impl RegionKernelParts {
    fn new(grid: &Grid) -> RegionKernelParts {
        let from = nodes::bernstein();
        let weight = |node: usize| (0..SQUARE).map(|k| from[(k, node)]).sum::<f64>() / SQUARE as f64;
        let fractions = [0, 1].map(|j| {
            let axis = &grid.axes()[j];
            axis.bin_indices().map(|bin| axis.width_fraction(bin)).collect()
        });
        RegionKernelParts { fractions, weights: std::array::from_fn(weight) }
    }
}

/// Compares all rows with the general path; returns how many bins were cut, and how many rows have no volume.
fn check(family: &Family, regions: &RegionBatch) -> (usize, usize) {
    let kind = family.downcast::<SplineMixture>().unwrap();
    let (compiler, parts) =
        (RowCompiler::new(kind, TablePrecision::Float64).unwrap(), RegionKernelParts::new(kind.support.grid()));
    let (mut memory, mut cut, mut empty) = (CompileMemory::default(), 0, 0);
    for row in 0..regions.len() {
        let form = compiler.compile(regions, row, &mut memory).unwrap();
        let region = regions.region_within(row, &compiler.ends).unwrap();
        let mesh = Mesh::new(&region, compiler.grid).unwrap();
        let Some(RowForm::Planar(form)) = form else {
            assert!(mesh.elements.is_empty(), "row {row} has volume");
            empty += 1;
            continue;
        };
        let want = by_general_path(&nodes::form(&BinForm::compile(&mesh, &[]).unwrap()));
        let got = by_pieces(&parts, &form);
        assert_eq!(got.keys().collect::<Vec<_>>(), want.keys().collect::<Vec<_>>(), "row {row}");
        for ((bin, got), want) in got.iter().zip(want.values()) {
            let size = want.iter().fold(0.0f64, |size, x| size.max(x.abs()));
            for (a, b) in got.iter().zip(want) {
                assert!((a - b).abs() <= 1e-12 * size, "row {row}, bin {bin:?}: {a} {b}, size {size}");
            }
        }
        let volume: f64 = mesh.elements.iter().map(|element| element.volume).sum();
        assert!((form.area / volume - 1.0).abs() < 1e-12, "row {row}: {} {volume}", form.area);
        cut += form.cut.len();
    }
    (cut, empty)
}

fn number(text: &str) -> Rational {
    parse_rational(text).unwrap()
}

/// The square between -1.2 and 1.2, which is [-1.2, 1.2] in float64.
fn layer(knots: usize) -> Family {
    let [x, y] = reals(["x", "y"]);
    let width = from_f64(1.2).unwrap();
    let square = x.between(-&width, width.clone()) & y.between(-&width, width);
    let settings = SplineSettings { knots: Knots::Uniform(knots), components: 2 };
    Family::new(&Region::new(&square.into()).unwrap(), &settings.into()).unwrap()
}

/// A hall with slanted and straight walls, pillars, and slits of 1e-9.
fn hall() -> Constraint {
    let [x, y] = reals(["x", "y"]);
    let tiny = number("1e-9");
    let pillar = |at: &Linear, low: &str, high: &str| at.between(number(low), number(high));
    let free = x.between(0, 10) & y.between(0, 8) & (&x + &y).ge(number("0.75")) & (2 * &x - &y).le(17);
    let blocks = [
        pillar(&x, "2", "3.5") & pillar(&y, "2", "3"),
        pillar(&x, "5", "5.0001") & pillar(&y, "1", "6"),
        (&x - &y).ge(0) & x.le(8) & y.ge(number("6.4")),
        pillar(&x, "7", "8") & pillar(&y, "3", "4") & (&x + &y).le(number("11.3")),
    ];
    let slit = x.between(number("2.6"), number("2.6") + &tiny) & y.between(2, 3);
    let free = free & !Formula::any(blocks);
    Constraint::over(free | slit, &["x", "y"]).unwrap()
}

#[test]
fn random_windows_agree_with_the_general_path() {
    let map = RegionMap::new(&Region::new(&hall()).unwrap()).unwrap();
    let mut stream = Stream::new(1, 0);
    for turned in [false, true] {
        let count = 60;
        let centres: Vec<f64> = (0..count).flat_map(|_| [stream.unit() * 10.0, stream.unit() * 8.0]).collect();
        let headings: Vec<f64> = (0..2 * count).map(|_| stream.normal()).collect();
        let scales: Vec<f64> = (0..count).map(|_| 0.5 + stream.unit()).collect();
        let windows = if turned {
            map.windows(&centres, &[1.2], Some(&headings), Some(&scales)).unwrap()
        } else {
            map.windows(&centres, &[1.2], None, None).unwrap()
        };
        let (cut, _) = check(&layer(8), &windows);
        assert!(cut > 300, "{cut}");
    }
}

#[test]
fn windows_in_special_positions_agree_with_the_general_path() {
    let map = RegionMap::new(&Region::new(&hall()).unwrap()).unwrap();
    // Bins of 0.3 around round numbers: walls on lines and through nodes, corners on nodes, the slit, edges shared with
    // the box, places wholly inside a pillar, and corners that touch.
    let width = 1.5;
    let [x, y] = reals(["x", "y"]);
    let square = x.between(-1, 1) & y.between(-1, 1);
    let settings = SplineSettings { knots: Knots::Uniform(5), components: 1 };
    let dyadic = Family::new(&Region::new(&square.into()).unwrap(), &settings.into()).unwrap();
    let mut centres = Vec::new();
    for i in 0..21 {
        for j in 0..17 {
            centres.extend([f64::from(i) / 2.0, f64::from(j) / 2.0]);
        }
    }
    let windows = map.windows(&centres, &[width], None, None).unwrap();
    check(&dyadic, &windows);
    // The same with a quarter turn, which keeps walls on lines, and with a turn that does not.
    let some: Vec<f64> = centres.chunks(2).step_by(7).flatten().copied().collect();
    let north: Vec<f64> = [0.0, 1.0].repeat(some.len() / 2);
    check(&dyadic, &map.windows(&some, &[1.0], Some(&north), None).unwrap());
    let slanted: Vec<f64> = [3.0, 4.0].repeat(some.len() / 2);
    check(&dyadic, &map.windows(&some, &[1.0], Some(&slanted), None).unwrap());
    // Lines at thirds, which double-doubles do not represent, on walls at thirds.
    let thirds = Constraint::over(x.between(0, number("1/3")) | y.between(0, number("2/3")), &["x", "y"]).unwrap();
    let settings = SplineSettings { knots: Knots::Uniform(7), components: 1 };
    let square = x.between(0, 1) & y.between(0, 1);
    let family = Family::new(&Region::new(&square.into()).unwrap(), &settings.into()).unwrap();
    let (cut, empty) = check(&family, &RegionBatch::new(&[Region::new(&thirds).unwrap()]).unwrap());
    assert_eq!((cut, empty), (0, 0));
}

/// Windows of the hall of one kind: how many, and with which centres, headings and scales.
type WindowsOf = fn(&mut Stream) -> ([f64; 2], [f64; 2], f64);

/// Windows of half width 1 in all positions that fast cuts might mistake.
const KINDS: [(&str, WindowsOf); 6] = [
    ("anywhere", |s| ([s.unit() * 10.0, s.unit() * 8.0], [s.normal(), s.normal()], 0.25 + s.unit())),
    ("walls through nodes and along lines", |s| {
        let quarter = |x: f64| (4.0 * x).round() / 4.0;
        ([quarter(s.unit() * 10.0), quarter(s.unit() * 8.0)], turn(s), if s.unit() < 0.5 { 1.0 } else { 0.5 })
    }),
    ("corners that touch", |s| {
        let corners = [[2.0, 2.0], [3.5, 2.0], [3.5, 3.0], [2.0, 3.0], [7.0, 3.0], [8.0, 3.0], [0.0, 8.0], [0.75, 0.0]];
        let (corner, scale) = (corners[(s.unit() * 8.0) as usize], 0.5 * (1.0 + (3.0 * s.unit()).floor()));
        let side = |s: &mut Stream| if s.unit() < 0.5 { scale } else { -scale };
        ([corner[0] + side(s), corner[1] + side(s)], turn(s), scale)
    }),
    ("a slit of 1e-9", |s| ([2.6 + 0.4 * (s.unit() - 0.5), 2.0 + s.unit()], [s.normal(), s.normal()], 0.05 + s.unit())),
    ("edges shared with the box", |s| {
        let scale = 0.5 + (4.0 * s.unit()).floor() / 4.0;
        let along = (16.0 * s.unit()).round() / 2.0;
        let centre = [[scale, along], [10.0 - scale, along], [along, scale], [along, 8.0 - scale]];
        (centre[(s.unit() * 4.0) as usize], turn(s), scale)
    }),
    ("inside an obstacle", |s| {
        ([2.1 + 0.3 * s.unit(), 2.2 + 0.6 * s.unit()], [s.normal(), s.normal()], 0.05 + 0.1 * s.unit())
    }),
];

/// One of the four directions along an axis.
fn turn(stream: &mut Stream) -> [f64; 2] {
    [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]][(4.0 * stream.unit()) as usize]
}

/// Compares windows of every kind with the general path; returns their number, that of their cut bins, and that of windows
/// without volume.
fn check_windows(per_kind: usize) -> [usize; 3] {
    let map = RegionMap::new(&Region::new(&hall()).unwrap()).unwrap();
    let [x, y] = reals(["x", "y"]);
    let square = x.between(-1, 1) & y.between(-1, 1);
    let settings = SplineSettings { knots: Knots::Uniform(5), components: 1 };
    let family = Family::new(&Region::new(&square.into()).unwrap(), &settings.into()).unwrap();
    let part = per_kind.min(100);
    let parts: Vec<(usize, usize)> =
        (0..KINDS.len()).flat_map(|kind| (0..per_kind / part).map(move |k| (kind, k))).collect();
    let count = |(kind, k): (usize, usize)| {
        let mut stream = Stream::new(20 + kind as u64, k as u64);
        let (mut centres, mut headings, mut scales) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..part {
            let (centre, heading, scale) = KINDS[kind].1(&mut stream);
            centres.extend(centre);
            headings.extend(heading);
            scales.push(scale);
        }
        let windows = map.windows(&centres, &[1.0], Some(&headings), Some(&scales)).unwrap();
        let (cut, empty) = check(&family, &windows);
        assert!(empty == 0 || kind != 0 || empty < part, "{}", KINDS[kind].0);
        [part, cut, empty]
    };
    let sums: Vec<[usize; 3]> = parts.into_par_iter().map(count).collect();
    [0, 1, 2].map(|k| sums.iter().map(|sum| sum[k]).sum())
}

#[test]
fn windows_of_every_kind_agree_with_the_general_path() {
    let [windows, cut, empty] = check_windows(40);
    assert!(windows == 240 && cut > 500 && empty >= 30, "{windows} {cut} {empty}");
}

#[test]
fn tables_in_float32_are_those_in_float64_rounded() {
    let map = RegionMap::new(&Region::new(&hall()).unwrap()).unwrap();
    let (mut stream, count) = (Stream::new(5, 0), 200);
    let centres: Vec<f64> = (0..count).flat_map(|_| [stream.unit() * 10.0, stream.unit() * 8.0]).collect();
    let headings: Vec<f64> = (0..2 * count).map(|_| stream.normal()).collect();
    let windows = map.windows(&centres, &[1.2], Some(&headings), None).unwrap();
    let family = layer(14);
    let kind = family.downcast::<SplineMixture>().unwrap();
    let [long, short] = [TablePrecision::Float64, TablePrecision::Float32].map(|p| RowCompiler::new(kind, p).unwrap());
    let (mut memory, mut compared) = (CompileMemory::default(), 0);
    for row in 0..count {
        let forms = [&long, &short].map(|compiler| compiler.compile(&windows, row, &mut memory).unwrap());
        let [Some(RowForm::Planar(long)), Some(RowForm::Planar(short))] = forms else { continue };
        assert_eq!((&long.full, &long.cut), (&short.full, &short.cut), "row {row}");
        assert!((long.area / short.area - 1.0).abs() < 1e-9);
        let (TableEntries::Float64(long), TableEntries::Float32(short)) = (&long.tables, &short.tables) else {
            panic!("tables have the precision that was asked for")
        };
        for (long, short) in long.chunks(TABLE).zip(short.chunks(TABLE)) {
            let size = long.iter().fold(0.0f64, |size, x| size.max(x.abs()));
            for (a, b) in long.iter().zip(short) {
                assert!((a - f64::from(*b)).abs() <= 1e-7 * size, "row {row}: {a} {b}, size {size}");
            }
            compared += 1;
        }
    }
    assert!(compared > 3000, "{compared}");
}

#[test]
#[ignore = "a hundred thousand windows, each cut along the grid in fractions as well"]
fn a_hundred_thousand_windows_agree_with_the_general_path() {
    let [windows, cut, empty] = check_windows(16_700);
    assert!(windows >= 100_000 && cut > 200_000 && empty > 10_000, "{windows} {cut} {empty}");
    println!("{windows} windows, {cut} cut bins, {empty} windows without volume: all as by the general path");
}

#[test]
fn a_window_inside_an_obstacle_is_named() {
    let map = RegionMap::new(&Region::new(&hall()).unwrap()).unwrap();
    let windows = map.windows(&[1.0, 1.0, 2.3, 2.5, 5.0, 5.0], &[0.1], None, None).unwrap();
    let error = layer(4).on_regions(&windows).unwrap_err();
    assert!(matches!(&error, DensityError::RowsWithoutVolume(rows) if *rows == [1]), "{error}");
    assert_eq!(windows.statuses()[1].name(), "empty");
    // A slit of 1e-9 through a pillar is all that there is.
    let slit = map.windows(&[2.6, 2.5], &[0.25], None, None).unwrap();
    assert!((slit.volumes()[0] / 5e-10 - 1.0).abs() < 1e-6, "{:?}", slit.volumes());
    let (cut, empty) = check(&layer(4), &slit);
    assert_eq!((cut > 0, empty), (true, 0));
}

#[test]
fn half_spaces_and_unions_agree_with_the_general_path() {
    let family = layer(7);
    let variables = family.support().constraint().reals.clone();
    let mut stream = Stream::new(4, 0);
    for parts in [1, 2] {
        let (rows, count) = (40, 6);
        let normals: Vec<f64> = (0..rows * parts * count * 2).map(|_| stream.normal()).collect();
        let offsets: Vec<f64> = (0..rows * parts * count).map(|_| stream.unit()).collect();
        let batch = RegionBatch::half_spaces(&variables, [rows, parts, count], &normals, &offsets, None).unwrap();
        check(&family, &batch);
    }
    // Half-spaces through corners of bins, along the box, and without a normal.
    let special = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0];
    let offsets = [1.2, 0.0, 0.0, 0.0];
    let batch = RegionBatch::half_spaces(&variables, [1, 1, 4], &special, &offsets, None).unwrap();
    check(&family, &batch);
    let nothing = RegionBatch::half_spaces(&variables, [1, 1, 1], &[0.0, 0.0], &[-1.0], None).unwrap();
    assert_eq!(check(&family, &nothing), (0, 1));
}

#[test]
fn windows_of_a_scene_agree_with_the_general_path() {
    let Ok(folder) = std::env::var("PAL_DATA") else {
        println!("skipped: PAL_DATA is not set");
        return;
    };
    let text = std::fs::read_to_string(format!("{folder}/sdd/scene12_constraints.geojson")).unwrap();
    let map = RegionMap::new(&Region::new(&parse_geojson(&text, &Default::default()).unwrap()).unwrap()).unwrap();
    let mut stream = Stream::new(9, 0);
    let count = 40;
    let centres: Vec<f64> = (0..count).flat_map(|_| [stream.unit() * 7.0, stream.unit() * 10.0]).collect();
    let headings: Vec<f64> = (0..2 * count).map(|_| stream.normal()).collect();
    let family = layer(14);
    check(&family, &map.windows(&centres, &[1.2], Some(&headings), None).unwrap());
    check(&family, &map.windows(&centres, &[1.2], None, None).unwrap());
}
