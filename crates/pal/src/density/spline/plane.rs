//! Sums over cut bins in the plane that share their table with no other bin, row by row of the grid: what a row shares
//! stays in registers.

use super::hermite::SQUARE;
use crate::density::lanes::{Lanes, Real, Simd};

/// The number of entries of a table: 7 along each axis.
const TABLE: usize = SQUARE * SQUARE;

/// Cut bins by their bin along the first axis.
#[derive(Clone, Debug)]
pub(super) struct PlaneRows {
    rows: Vec<PlaneRow>,
    /// For the bins of all rows the place of the squares along the second axis, and the table.
    bins: Vec<(usize, usize)>,
}

/// Cut bins in the plane with the same bin along the first axis.
#[derive(Clone, Debug)]
struct PlaneRow {
    /// The place of the squares along the first axis.
    leading: usize,
    /// Where the bins of the row end; they start where those of the row before it end.
    end: usize,
}

impl PlaneRows {
    /// From the places of the squares along both axes and the table of every bin.
    pub fn new(mut cut: Vec<(usize, usize, usize)>) -> PlaneRows {
        cut.sort_unstable();
        let mut rows: Vec<PlaneRow> = Vec::new();
        for (k, (leading, ..)) in cut.iter().enumerate() {
            match rows.last_mut() {
                Some(row) if row.leading == *leading => row.end = k + 1,
                _ => rows.push(PlaneRow { leading: *leading, end: k + 1 }),
            }
        }
        PlaneRows { rows, bins: cut.into_iter().map(|(_, trailing, table)| (trailing, table)).collect() }
    }

    /// The sum over all bins of the products of squares with their tables.
    #[inline(always)]
    pub fn sum<S: Simd, T: Real>(&self, simd: S, tables: &[T], squares: &[Lanes<T>]) -> Lanes<T> {
        let mut total = Lanes::zero();
        for part in 0..T::registers::<S>(&total.0).len() {
            let (mut sum, mut start) = (T::fill(simd, T::default()), 0);
            for row in &self.rows {
                let mut v = [T::fill(simd, T::default()); SQUARE];
                for (trailing, table) in &self.bins[start..row.end] {
                    let y = read(simd, squares, *trailing, part);
                    add_table_times(simd, table_of(tables, *table), &y, &mut v);
                }
                let x = read(simd, squares, row.leading, part);
                for k in 0..SQUARE {
                    sum = T::plus_product(simd, sum, x[k], v[k]);
                }
                start = row.end;
            }
            T::registers_mut::<S>(&mut total.0)[part] = sum;
        }
        total
    }

    /// The same with derivatives, which are added to `gradient`.
    #[inline(always)]
    pub fn sum_with_gradient<S: Simd, T: Real>(
        &self,
        simd: S,
        tables: &[T],
        squares: &[Lanes<T>],
        gradient: &mut [Lanes<T>],
    ) -> Lanes<T> {
        let mut total = Lanes::zero();
        for part in 0..T::registers::<S>(&total.0).len() {
            let (mut sum, mut start) = (T::fill(simd, T::default()), 0);
            for row in &self.rows {
                let x = read(simd, squares, row.leading, part);
                let mut v = [T::fill(simd, T::default()); SQUARE];
                for (trailing, table) in &self.bins[start..row.end] {
                    let table = table_of(tables, *table);
                    let y = read(simd, squares, *trailing, part);
                    add_table_times(simd, table, &y, &mut v);
                    let mut u = read(simd, gradient, *trailing, part);
                    add_transposed_times(simd, table, &x, &mut u);
                    write::<S, T>(gradient, *trailing, part, &u);
                }
                let one = T::fill(simd, T::from_f64(1.0));
                let mut u = read(simd, gradient, row.leading, part);
                for k in 0..SQUARE {
                    sum = T::plus_product(simd, sum, x[k], v[k]);
                    u[k] = T::plus_product(simd, u[k], v[k], one);
                }
                write::<S, T>(gradient, row.leading, part, &u);
                start = row.end;
            }
            T::registers_mut::<S>(&mut total.0)[part] = sum;
        }
        total
    }
}

/// The table of a bin in the plane.
#[inline(always)]
fn table_of<T>(tables: &[T], table: usize) -> &[T; TABLE] {
    tables[table * TABLE..].first_chunk().expect("tables of the plane have 7 x 7 entries")
}

/// One register of each of the seven numbers from a place on.
#[inline(always)]
fn read<S: Simd, T: Real>(simd: S, numbers: &[Lanes<T>], place: usize, part: usize) -> [T::Register<S>; SQUARE] {
    let numbers: &[Lanes<T>; SQUARE] = numbers[place..].first_chunk().expect("a bin has seven squares");
    let mut registers = [T::fill(simd, T::default()); SQUARE];
    for k in 0..SQUARE {
        registers[k] = T::registers::<S>(&numbers[k].0)[part];
    }
    registers
}

/// Writes back what [`read`] has read.
#[inline(always)]
fn write<S: Simd, T: Real>(numbers: &mut [Lanes<T>], place: usize, part: usize, registers: &[T::Register<S>; SQUARE]) {
    let numbers: &mut [Lanes<T>; SQUARE] = numbers[place..].first_chunk_mut().expect("a bin has seven squares");
    for k in 0..SQUARE {
        T::registers_mut::<S>(&mut numbers[k].0)[part] = registers[k];
    }
}

/// Adds a table times a vector.
#[inline(always)]
fn add_table_times<S: Simd, T: Real>(
    simd: S,
    table: &[T; TABLE],
    vector: &[T::Register<S>; SQUARE],
    out: &mut [T::Register<S>; SQUARE],
) {
    for column in 0..SQUARE {
        for row in 0..SQUARE {
            let factor = T::fill(simd, table[row * SQUARE + column]);
            out[row] = T::plus_product(simd, out[row], vector[column], factor);
        }
    }
}

/// Adds the transposed table times a vector.
#[inline(always)]
fn add_transposed_times<S: Simd, T: Real>(
    simd: S,
    table: &[T; TABLE],
    vector: &[T::Register<S>; SQUARE],
    out: &mut [T::Register<S>; SQUARE],
) {
    for row in 0..SQUARE {
        for column in 0..SQUARE {
            let factor = T::fill(simd, table[row * SQUARE + column]);
            out[column] = T::plus_product(simd, out[column], vector[row], factor);
        }
    }
}
