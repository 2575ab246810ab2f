//! Checks that threads, streaming and budgets do not change the cells of a decomposition.

mod common;

use std::time::Duration;

use common::random_case;
use pal::number::Rational;
use pal::region::{Budget, Cell, Region, StopReason};
use pal::shapes;

/// Everything that is known about a cell, with float64 numbers as their bits.
#[derive(PartialEq, Debug)]
struct Print {
    vertices: Vec<Vec<u64>>,
    errors: Vec<Vec<u64>>,
    exact: Vec<Vec<Rational>>,
    walls: String,
    simplices: Vec<Vec<usize>>,
    bin: Vec<u32>,
    booleans: Vec<Option<bool>>,
}

fn print(cell: &Cell) -> Print {
    let bits = |xs: &[f64]| xs.iter().map(|x| x.to_bits()).collect::<Vec<u64>>();
    let polytope = cell.polytope();
    Print {
        vertices: polytope.vertices().iter().map(|v| bits(v.coordinates())).collect(),
        errors: polytope.vertices().iter().map(|v| bits(v.error())).collect(),
        exact: polytope.exact_vertices(),
        walls: format!("{:?}", polytope.half_spaces()),
        simplices: polytope.triangulate(),
        bin: cell.bin().to_vec(),
        booleans: cell.booleans().to_vec(),
    }
}

fn prints<'a>(cells: impl IntoIterator<Item = &'a Cell>) -> Vec<Print> {
    cells.into_iter().map(print).collect()
}

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// Returns bounded regions with one to thousands of cells. The last ones have more than one parallel round handles.
fn regions() -> Vec<(String, Region)> {
    let mut regions: Vec<(String, Region)> = (0..40)
        .map(|k| (format!("seed {k}"), random_case(90_000 + k, 1 + k as usize % 4, 8).constraint))
        .map(|(name, constraint)| (name, Region::new(&constraint).unwrap()))
        .filter(|(_, region)| region.exact_volume().is_ok())
        .collect();
    let cube = Region::new(&shapes::cross_polytope(3)).unwrap();
    regions.push(("grid in space".to_string(), cube.with_uniform_knots(9).unwrap()));
    let plane = Region::new(&shapes::cross_polytope(2)).unwrap();
    regions.push(("grid in the plane".to_string(), plane.with_uniform_knots(80).unwrap()));
    regions
}

#[test]
fn threads_and_streaming_give_the_same_cells() {
    let mut largest = 0;
    for (name, region) in regions() {
        let streamed: Vec<Cell> = region.cells().map(|cell| cell.unwrap()).collect();
        let want = prints(&streamed);
        largest = largest.max(want.len());
        for threads in [1, 2, 5] {
            let cells = pool(threads).install(|| region.decompose()).unwrap();
            assert!(prints(&cells) == want, "{name}: {threads} threads differ from the stream");
        }
        let volume = streamed.iter().fold(Rational::ZERO, |sum, cell| sum + cell.exact_volume());
        assert_eq!(region.exact_volume().unwrap(), volume, "{name}");
    }
    assert!(largest > 2000, "the largest region has only {largest} cells");
}

#[test]
fn an_unbounded_region_names_the_same_ray_on_any_number_of_threads() {
    let mut met = 0;
    for k in 0..150 {
        let case = random_case(95_000 + k, 1 + k as usize % 3, 6);
        let region = Region::new(&case.constraint).unwrap();
        let first_error = region.cells().find_map(|cell| cell.err());
        for threads in [1, 2, 5] {
            let error = pool(threads).install(|| region.decompose()).err();
            assert_eq!(error, first_error, "seed {k}, {threads} threads");
        }
        met += usize::from(first_error.is_some());
        // The stream ends with an error.
        let mut stream = region.cells();
        if stream.by_ref().any(|cell| cell.is_err()) {
            assert!(stream.next().is_none());
        }
    }
    assert!(met >= 5, "only {met} unbounded regions");
}

#[test]
fn a_budget_of_cells_gives_a_prefix() {
    for (name, region) in regions() {
        let all = prints(&region.decompose().unwrap());
        let limits = [0, 1, 2, all.len() / 2, all.len().saturating_sub(1), all.len(), all.len() + 1, usize::MAX];
        for limit in limits {
            let budget = Budget { cells: Some(limit), time: None };
            let got = region.decompose_within(&budget).unwrap();
            let want = limit.min(all.len());
            assert!(prints(&got.cells) == all[..want], "{name}: {limit} cells");
            match got.stop {
                StopReason::CellLimit => assert!(limit <= all.len(), "{name}: {limit} of {}", all.len()),
                StopReason::Complete => assert!(limit >= all.len(), "{name}: {limit} of {}", all.len()),
                StopReason::TimeLimit => panic!("{name}: no time limit was set"),
            }
        }
    }
}

#[test]
fn a_budget_of_time_stops() {
    let cube = Region::new(&shapes::cube(2)).unwrap().with_uniform_knots(200).unwrap();
    let none = cube.decompose_within(&Budget { cells: None, time: Some(Duration::ZERO) }).unwrap();
    assert_eq!((none.cells.len(), none.stop), (0, StopReason::TimeLimit));
    let some = cube.decompose_within(&Budget { cells: None, time: Some(Duration::from_millis(1)) }).unwrap();
    assert_eq!(some.stop, StopReason::TimeLimit, "199^2 cells take more than a millisecond");
    let prefix: Vec<Cell> = cube.cells().take(some.cells.len()).map(|cell| cell.unwrap()).collect();
    assert!(prints(&some.cells) == prints(&prefix));
    let hour = Budget { cells: Some(10_000_000), time: Some(Duration::from_secs(3600)) };
    let all = cube.decompose_within(&hour).unwrap();
    assert_eq!((all.cells.len(), all.stop), (199 * 199, StopReason::Complete));
    let unlimited = cube.decompose_within(&Budget::default()).unwrap();
    assert_eq!((unlimited.cells.len(), unlimited.stop), (199 * 199, StopReason::Complete));
}
