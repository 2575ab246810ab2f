//! Sums over cut bins in the plane that share their table with no other bin, row by row of the grid: what a row shares
//! stays in registers.

use super::hermite::SQUARE;
use crate::density::lanes::{Lanes, Real, Simd, one_by_one};

/// The number of entries of a table: 7 along each axis.
const TABLE: usize = SQUARE * SQUARE;

/// A cut bin: its part, the one that has what is left of the bin, the places of the squares along both axes, and its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PlaneBin {
    pub part: usize,
    pub rest: Option<usize>,
    pub leading: usize,
    pub trailing: usize,
    pub table: usize,
}

/// Cut bins by their part and by their bin along the first axis.
#[derive(Clone, Debug)]
pub(super) struct PlaneRows {
    rows: Vec<PlaneRow>,
    /// For the bins of all rows the place of the squares along the second axis, and the table.
    bins: Vec<(usize, usize)>,
}

/// Cut bins of one part in the plane with the same bin along the first axis.
#[derive(Clone, Debug)]
struct PlaneRow {
    part: usize,
    rest: Option<usize>,
    /// The place of the squares along the first axis.
    leading: usize,
    /// Where the bins of the row end; they start where those of the row before it end.
    end: usize,
}

impl PlaneRows {
    pub fn new(mut cut: Vec<PlaneBin>) -> PlaneRows {
        cut.sort_unstable();
        let mut rows: Vec<PlaneRow> = Vec::new();
        for (k, bin) in cut.iter().enumerate() {
            match rows.last_mut() {
                Some(row) if (row.part, row.rest, row.leading) == (bin.part, bin.rest, bin.leading) => row.end = k + 1,
                _ => rows.push(PlaneRow { part: bin.part, rest: bin.rest, leading: bin.leading, end: k + 1 }),
            }
        }
        PlaneRows { rows, bins: cut.into_iter().map(|bin| (bin.trailing, bin.table)).collect() }
    }

    /// Adds to the integrals of every part those over its bins: the products of squares with their tables.
    #[inline(always)]
    pub fn sum<S: Simd, T: Real>(&self, simd: S, tables: &[T], squares: &[Lanes<T>], integrals: &mut [Lanes<T>]) {
        for register in 0..T::registers::<S>(&Lanes::<T>::zero().0).len() {
            let mut start = 0;
            for row in &self.rows {
                let mut v = [T::fill(simd, T::default()); SQUARE];
                for (trailing, table) in &self.bins[start..row.end] {
                    let y = read(simd, squares, *trailing, register);
                    add_table_times(simd, table_of(tables, *table), &y, &mut v);
                }
                let x = read(simd, squares, row.leading, register);
                let mut sum = T::fill(simd, T::default());
                for k in 0..SQUARE {
                    sum = T::plus_product(simd, sum, x[k], v[k]);
                }
                row.add(simd, sum, integrals, register);
                start = row.end;
            }
        }
    }

    /// The same with derivatives of the sum over parts with the given factors, which are added to `gradient`.
    #[inline(always)]
    pub fn sum_with_gradient<S: Simd, T: Real>(
        &self,
        simd: S,
        tables: &[T],
        squares: &[Lanes<T>],
        factors: &[Lanes<T>],
        integrals: &mut [Lanes<T>],
        gradient: &mut [Lanes<T>],
    ) {
        for register in 0..T::registers::<S>(&Lanes::<T>::zero().0).len() {
            let mut start = 0;
            for row in &self.rows {
                let mut factor = T::registers::<S>(&factors[row.part].0)[register];
                if let Some(rest) = row.rest {
                    let minus = T::fill(simd, T::from_f64(-1.0));
                    factor = T::plus_product(simd, factor, T::registers::<S>(&factors[rest].0)[register], minus);
                }
                let mut scaled = [T::fill(simd, T::default()); SQUARE];
                let x = read(simd, squares, row.leading, register);
                for k in 0..SQUARE {
                    scaled[k] = T::plus_product(simd, scaled[k], x[k], factor);
                }
                let mut v = [T::fill(simd, T::default()); SQUARE];
                for (trailing, table) in &self.bins[start..row.end] {
                    let table = table_of(tables, *table);
                    let y = read(simd, squares, *trailing, register);
                    add_table_times(simd, table, &y, &mut v);
                    let mut u = read(simd, gradient, *trailing, register);
                    add_transposed_times(simd, table, &scaled, &mut u);
                    write::<S, T>(gradient, *trailing, register, &u);
                }
                // Read again: registers are needed for the bins.
                let x = read(simd, one_by_one(squares), row.leading, register);
                let mut sum = T::fill(simd, T::default());
                let mut u = read(simd, gradient, row.leading, register);
                for k in 0..SQUARE {
                    sum = T::plus_product(simd, sum, x[k], v[k]);
                    u[k] = T::plus_product(simd, u[k], v[k], factor);
                }
                row.add(simd, sum, integrals, register);
                write::<S, T>(gradient, row.leading, register, &u);
                start = row.end;
            }
        }
    }
}

impl PlaneRow {
    /// Adds the integral over the row to that of its part.
    #[inline(always)]
    fn add<S: Simd, T: Real>(&self, simd: S, sum: T::Register<S>, integrals: &mut [Lanes<T>], register: usize) {
        let one = T::fill(simd, T::from_f64(1.0));
        let integral = &mut T::registers_mut::<S>(&mut integrals[self.part].0)[register];
        *integral = T::plus_product(simd, *integral, sum, one);
        if let Some(rest) = self.rest {
            let minus = T::fill(simd, T::from_f64(-1.0));
            let integral = &mut T::registers_mut::<S>(&mut integrals[rest].0)[register];
            *integral = T::plus_product(simd, *integral, sum, minus);
        }
    }
}

/// The table of a bin in the plane.
#[inline(always)]
fn table_of<T>(tables: &[T], table: usize) -> &[T; TABLE] {
    tables[table * TABLE..].first_chunk().expect("tables of the plane have 7 x 7 entries")
}

/// One register of each of the seven numbers from a place on.
#[inline(always)]
fn read<S: Simd, T: Real>(simd: S, numbers: &[Lanes<T>], place: usize, register: usize) -> [T::Register<S>; SQUARE] {
    let numbers: &[Lanes<T>; SQUARE] = numbers[place..].first_chunk().expect("a bin has seven squares");
    let mut registers = [T::fill(simd, T::default()); SQUARE];
    for k in 0..SQUARE {
        registers[k] = T::registers::<S>(&numbers[k].0)[register];
    }
    registers
}

/// Writes back what [`read`] has read.
#[inline(always)]
fn write<S: Simd, T: Real>(
    numbers: &mut [Lanes<T>],
    place: usize,
    register: usize,
    registers: &[T::Register<S>; SQUARE],
) {
    let numbers: &mut [Lanes<T>; SQUARE] = numbers[place..].first_chunk_mut().expect("a bin has seven squares");
    for k in 0..SQUARE {
        T::registers_mut::<S>(&mut numbers[k].0)[register] = registers[k];
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
