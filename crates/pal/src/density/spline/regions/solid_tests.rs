//! Forms of half-spaces in three variables against the general path.

use std::collections::BTreeMap;

use super::super::hermite::SQUARE;
use super::solid_tables::SOLID_TABLE;
use super::*;
use crate::density::{Knots, SplineSettings};
use crate::formula::reals;
use crate::number::from_f64;
use crate::random::Stream;
use crate::region::Region;

/// For each bin its table in values at nodes.
fn tables(form: &BinForm<f64>) -> BTreeMap<Vec<usize>, Vec<f64>> {
    let mut bins = BTreeMap::new();
    let mut add = |bin: Vec<usize>, value: &dyn Fn([usize; 3]) -> f64| {
        let table: &mut Vec<f64> = bins.entry(bin).or_insert_with(|| vec![0.0; SOLID_TABLE]);
        let at = |at: usize| [at / (SQUARE * SQUARE), at / SQUARE % SQUARE, at % SQUARE];
        table.iter_mut().enumerate().for_each(|(k, x)| *x += value(at(k)));
    };
    for part in &form.boxes {
        let sides = [0, 1, 2].map(|axis| &form.intervals[axis][part.sides[axis] as usize]);
        let bin = sides.iter().map(|side| side.bin.get()).collect();
        add(bin, &|at| part.volume * (0..3).map(|axis| sides[axis].means[at[axis]]).product::<f64>());
    }
    for cut in &form.cut {
        let table = &form.tables[cut.table as usize * SOLID_TABLE..][..SOLID_TABLE];
        let bin = cut.bin.iter().map(|bin| bin.get()).collect();
        add(bin, &|at| table[(at[0] * SQUARE + at[1]) * SQUARE + at[2]]);
    }
    bins
}

/// The same of all bins of a mesh, each by itself: a form shares tables between bins that are cut alike up to 1e-12.
fn one_by_one(mesh: &Mesh) -> BTreeMap<Vec<usize>, Vec<f64>> {
    let mut cells: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
    for (cell, elements) in mesh.by_cell().enumerate().filter(|(_, elements)| !elements.is_empty()) {
        cells.entry(elements[0].bin.iter().map(|bin| bin.get()).collect()).or_default().push(cell);
    }
    let form = |cells: &Vec<usize>| nodes::form(&BinForm::compile(&mesh.of_cells(cells), &[]).unwrap());
    cells.values().flat_map(|cells| tables(&form(cells))).collect()
}

fn cube(low: f64, high: f64, knots: usize) -> Family {
    let [low, high] = [low, high].map(|x| from_f64(x).unwrap());
    let sides = reals(["x", "y", "z"]).map(|x| x.between(low.clone(), high.clone()));
    let [x, y, z] = sides;
    let settings = SplineSettings { knots: Knots::Uniform(knots), components: 1 };
    Family::new(&Region::new(&(x & y & z).into()).unwrap(), &settings.into()).unwrap()
}

/// Compares one set per row with the general path; returns how many bins are cut, and how many rows are empty.
fn check(family: &Family, rows: &[(Vec<[f64; 3]>, Vec<f64>)]) -> (usize, usize) {
    let kind = family.downcast::<SplineMixture>().unwrap();
    let compiler = RowCompiler::new(kind, TablePrecision::Float64).unwrap();
    let (mut memory, mut cut, mut empty) = (CompileMemory::default(), 0, 0);
    for (row, (normals, offsets)) in rows.iter().enumerate() {
        let variables = &family.support().constraint().reals;
        let shape = [1, 1, offsets.len()];
        let batch = RegionBatch::half_spaces(variables, shape, &normals.concat(), offsets, None).unwrap();
        let form = compiler.compile(&batch, 0, &mut memory).unwrap();
        let region = batch.region_within(0, &compiler.ends).unwrap();
        let mesh = Mesh::new(&region, compiler.grid).unwrap();
        let Some(RowForm::General(form)) = form else {
            assert!(mesh.elements.is_empty(), "row {row} has volume");
            empty += 1;
            continue;
        };
        let want = one_by_one(&mesh);
        let got = tables(&form);
        assert_eq!(got.keys().collect::<Vec<_>>(), want.keys().collect::<Vec<_>>(), "row {row}");
        for ((bin, got), want) in got.iter().zip(want.values()) {
            // The entries of a table sum to the volume of the part. Both are exact to 1e-12 of it.
            let volume: f64 = want.iter().sum();
            for (a, b) in got.iter().zip(want) {
                assert!((a - b).abs() <= 2e-12 * volume, "row {row}, bin {bin:?}: {a} {b}, volume {volume}");
            }
        }
        let volume: f64 = mesh.elements.iter().map(|element| element.volume).sum();
        assert!((form.volume() / volume - 1.0).abs() < 1e-12, "row {row}: {} {volume}", form.volume());
        cut += form.cut.len();
    }
    (cut, empty)
}

#[test]
fn random_half_spaces_in_three_variables_agree_with_the_general_path() {
    let mut stream = Stream::new(21, 0);
    // Edges of bins that float64 has, and edges that it does not have.
    for (low, high, knots, rows) in [(-1.0, 1.0, 5, 25), (-0.3, 1.2, 4, 25), (0.0, 1.0, 2, 60)] {
        let family = cube(low, high, knots);
        let random = |stream: &mut Stream, count: usize| {
            let normals: Vec<[f64; 3]> =
                (0..count).map(|_| [stream.normal(), stream.normal(), stream.normal()]).collect();
            let middle = (low + high) / 2.0;
            let offset = |a: &[f64; 3], u: f64| a.iter().sum::<f64>() * middle + (high - low) * (0.7 * u - 0.05);
            let offsets = normals.iter().map(|a| offset(a, stream.unit())).collect();
            (normals, offsets)
        };
        let rows: Vec<_> = (0..rows).map(|k| random(&mut stream, 1 + k % 8)).collect();
        let (cut, _) = check(&family, &rows);
        assert!(cut > 50, "{cut}");
    }
}

#[test]
fn degenerate_half_spaces_in_three_variables_agree_with_the_general_path() {
    let family = cube(-1.0, 1.0, 5);
    let up = [1.0, 1.0, 1.0];
    let slanted = [0.3, -0.7, 1.1];
    let opposite = slanted.map(|x: f64| -x);
    let rows = [
        // Through nodes, along edges of bins, and in the sides of bins and of the box.
        (vec![up], vec![0.5]),
        (vec![[1.0, 1.0, 0.0], [0.0, 1.0, -1.0]], vec![0.0, 0.5]),
        (vec![[1.0, 0.0, 0.0], [0.0, -2.0, 0.0], [0.0, 0.0, 1.0]], vec![0.5, 1.0, 1.0]),
        // Almost through nodes.
        (vec![up], vec![0.5 + 1e-9]),
        (vec![up], vec![0.5f64.next_up()]),
        (vec![[1.0, 0.0, 0.0]], vec![0.5f64.next_down()]),
        // The same twice, to scale, and with another offset.
        (vec![slanted, slanted, slanted.map(|x| 4.0 * x), slanted], vec![0.2, 0.2, 0.8, 0.3]),
        // A sliver, a thinner one, one on an edge of bins, and a needle.
        (vec![slanted, opposite], vec![0.2, -0.2 + 1e-9]),
        (vec![slanted, opposite], vec![0.2, (-0.2f64).next_up()]),
        (vec![[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]], vec![0.5 + 1e-9, -0.5 + 1e-9]),
        (vec![slanted, opposite, [1.0, 0.2, 0.1], [-1.0, -0.2, -0.1]], vec![0.2, -0.2 + 1e-5, 0.1, -0.1 + 1e-5]),
        // Walls that meet in a line or in a point inside of a bin, and walls that are almost parallel.
        (vec![[1.0, 0.5, 0.0], [1.0, 0.25, 0.0], [1.0, -0.5, 0.0], [0.5, 0.3, 0.7]], vec![0.1, 0.1, 0.1, 0.9]),
        (vec![[1.0, 0.5, 0.1], [1.0, 0.25, -0.3], [-0.4, 1.0, 0.2], [0.2, 0.1, 1.0]], vec![0.0; 4]),
        (vec![slanted, [0.3, -0.7, 1.1 + 1e-12]], vec![0.2, 0.2]),
        // A tip in a corner of the box and one in a corner of a bin.
        (vec![[-1.0, -1.0, -1.0]], vec![-3.0 + 1e-3]),
        (vec![[-1.0, -1.0, -1.0]], vec![-3.0 + 1e-12]),
        (vec![[-1.0, -1.1, -1.2], [1.0, 0.1, 0.1]], vec![-1.6, 0.55]),
        // Large and small numbers, and numbers of different size.
        (vec![slanted.map(|x| x * 1e300)], vec![2e299]),
        (vec![slanted.map(|x| x * 1e-300)], vec![2e-301]),
        (vec![[1e-200, 1.0, 1e200]], vec![1.0]),
        (vec![[1e-9, 1.0, 1e-9]], vec![0.5]),
        // No restriction at all.
        (vec![[0.0; 3]], vec![0.0]),
        (vec![], vec![]),
    ];
    let (cut, empty) = check(&family, &rows);
    assert!(cut > 300 && empty == 0, "{cut} {empty}");
    let without_volume = [
        (vec![[0.0; 3]], vec![-1.0]),
        (vec![slanted, opposite], vec![0.2, -0.2]),
        (vec![slanted, opposite], vec![0.2, -0.3]),
        (vec![[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]], vec![0.5, -0.5]),
        (vec![[-1.0, -1.0, -1.0]], vec![-3.0]),
        (vec![up], vec![-4.0]),
    ];
    assert_eq!(check(&family, &without_volume), (0, without_volume.len()));
}
