//! The normaliser of one row in the plane: full bins, cut bins and their tables.

use std::ops::Range;
use std::sync::OnceLock;

use super::tables::{TableEntries, TablePrecision, TableRule};
use crate::density::grid::{BinIndex, Grid};
use crate::double_double::DoubleDouble;
use crate::number::Rational;
use crate::region::planar::{BinPart, Corner, CutMemory, Doubt, PlanarGrid, Trapezoid};
use crate::region::{CellScalar, RegionBatch};

/// Full bins of one column, next to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FullRun {
    pub column: u16,
    pub first: u16,
    pub end: u16,
}

/// The integrals of products of squares over one region in the plane, in values at nodes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PlanarForm {
    pub full: Vec<FullRun>,
    /// The bins that a wall cuts, along both axes.
    pub cut: Vec<[u16; 2]>,
    /// 7 x 7 entries for each cut bin.
    pub tables: TableEntries,
    /// The area as a fraction of the box.
    pub area: f64,
}

impl PlanarForm {
    /// The memory that the form takes.
    pub fn bytes(&self) -> usize {
        size_of::<PlanarForm>() + size_of_val(&*self.full) + size_of_val(&*self.cut) + self.tables.bytes()
    }
}

/// What the forms of all rows on one grid share.
#[derive(Debug)]
pub(super) struct PlanarCompiler {
    pub ends: [[Rational; 2]; 2],
    edges: [Vec<Rational>; 2],
    near: PlanarGrid<DoubleDouble>,
    /// The same grid in fractions, made when a row needs it.
    exact: OnceLock<PlanarGrid<Rational>>,
    /// For each axis the widths of bins as fractions of the box.
    fractions: [Vec<f64>; 2],
    rule: TableRule,
    precision: TablePrecision,
}

/// Memory that is used for one row after the other.
pub(super) struct CompileMemory<N> {
    /// For each bin the area of what was found in it, as a fraction of the bin.
    areas: Vec<f64>,
    /// The parts that were found: their bins, and where their corners are.
    parts: Vec<(u32, Range<usize>)>,
    corners: Vec<Corner<N>>,
    trapezoids: Vec<Trapezoid>,
    cut: CutMemory<N>,
}

impl<N> Default for CompileMemory<N> {
    fn default() -> Self {
        CompileMemory {
            areas: Vec::new(),
            parts: Vec::new(),
            corners: Vec::new(),
            trapezoids: Vec::new(),
            cut: CutMemory::default(),
        }
    }
}

/// Pieces that together leave less than this of a bin leave nothing: it would not be seen in any integral.
const FULL: f64 = 1e-13;

impl PlanarCompiler {
    /// The compiler for a grid in the plane.
    pub fn new(grid: &Grid, rule: TableRule, precision: TablePrecision) -> PlanarCompiler {
        let axes = [&grid.axes()[0], &grid.axes()[1]];
        let edges = axes.map(|axis| axis.edges().to_vec());
        PlanarCompiler {
            ends: axes.map(|axis| [axis.edges()[0].clone(), axis.edges()[axis.bins()].clone()]),
            near: PlanarGrid::new([&edges[0], &edges[1]]),
            edges,
            exact: OnceLock::new(),
            fractions: axes.map(|axis| axis.bin_indices().map(|bin: BinIndex| axis.width_fraction(bin)).collect()),
            rule,
            precision,
        }
    }

    /// The form of a row; `None` if its pieces are not known.
    pub fn compile(
        &self,
        regions: &RegionBatch,
        row: usize,
        memory: &mut CompileMemory<DoubleDouble>,
    ) -> Option<PlanarForm> {
        match self.compile_in(&self.near, regions, row, memory) {
            Ok(form) => form,
            Err(Doubt) => {
                let exact = self.exact.get_or_init(|| PlanarGrid::new([&self.edges[0], &self.edges[1]]));
                let form = self.compile_in(exact, regions, row, &mut CompileMemory::default());
                form.unwrap_or_else(|_| unreachable!("fractions leave no doubt"))
            }
        }
    }

    fn compile_in<N: CellScalar>(
        &self,
        grid: &PlanarGrid<N>,
        regions: &RegionBatch,
        row: usize,
        memory: &mut CompileMemory<N>,
    ) -> Result<Option<PlanarForm>, Doubt> {
        let CompileMemory { areas, parts, corners, cut, .. } = memory;
        let rows = grid.bins(1);
        areas.clear();
        areas.resize(grid.bins(0) * rows, 0.0);
        parts.clear();
        corners.clear();
        let Some(pieces) = regions.pieces(row, grid, &self.ends) else { return Ok(None) };
        for piece in pieces? {
            grid.cut(&piece, cut, &mut |i, j, part| {
                let bin = i * rows + j;
                match part {
                    BinPart::Full => areas[bin] = 1.0,
                    BinPart::Polygon(polygon) => {
                        areas[bin] += grid.rough_area([i, j], polygon);
                        let start = corners.len();
                        corners.extend_from_slice(polygon);
                        parts.push((bin as u32, start..corners.len()));
                    }
                }
                Ok(())
            })?;
        }
        let mut form = PlanarForm { tables: TableEntries::new(self.precision), ..PlanarForm::default() };
        for (i, column) in areas.chunks(rows).enumerate() {
            self.add_full_bins(i, column, &mut form);
        }
        self.add_cut_bins(grid, memory, &mut form)?;
        form.full.shrink_to_fit();
        form.cut.shrink_to_fit();
        form.tables.shrink_to_fit();
        Ok(Some(form))
    }

    /// Appends the full bins of a column, given the areas in its bins.
    fn add_full_bins(&self, i: usize, column: &[f64], form: &mut PlanarForm) {
        let mut area = 0.0;
        for (j, in_bin) in column.iter().enumerate().filter(|(_, area)| is_full(**area)) {
            assert!(*in_bin <= 1.0 + 1e-9, "pieces of a region do not overlap");
            area += self.fractions[1][j];
            match form.full.last_mut() {
                Some(run) if usize::from(run.column) == i && usize::from(run.end) == j => run.end += 1,
                _ => form.full.push(FullRun { column: i as u16, first: j as u16, end: j as u16 + 1 }),
            }
        }
        form.area += area * self.fractions[0][i];
    }

    /// Appends the bins that a wall cuts, with their tables.
    fn add_cut_bins<N: CellScalar>(
        &self,
        grid: &PlanarGrid<N>,
        memory: &mut CompileMemory<N>,
        form: &mut PlanarForm,
    ) -> Result<(), Doubt> {
        let CompileMemory { areas, parts, corners, trapezoids, .. } = memory;
        let rows = grid.bins(1);
        parts.sort_by_key(|(bin, _)| *bin);
        for group in parts.chunk_by(|a, b| a.0 == b.0) {
            let bin = group[0].0 as usize;
            if is_full(areas[bin]) {
                continue;
            }
            let (i, j) = (bin / rows, bin % rows);
            let fraction = self.fractions[0][i] * self.fractions[1][j];
            trapezoids.clear();
            for (_, range) in group {
                form.area += fraction * grid.trapezoids([i, j], &corners[range.clone()], trapezoids)?;
            }
            form.cut.push([i as u16, j as u16]);
            self.rule.append(fraction, trapezoids.iter(), &mut form.tables);
        }
        Ok(())
    }
}

fn is_full(area: f64) -> bool {
    area >= 1.0 - FULL
}
