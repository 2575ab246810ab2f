//! The normaliser of one row in the plane: full bins, cut bins and their tables.

use std::sync::OnceLock;

use super::tables::{TABLE, TableRule};
use crate::density::grid::{BinIndex, Grid};
use crate::double_double::DoubleDouble;
use crate::number::Rational;
use crate::region::planar::{AREA_ERROR, BinPart, CutMemory, Doubt, PlanarGrid, Trapezoid};
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
    pub tables: Vec<f64>,
    /// The area as a fraction of the box.
    pub area: f64,
}

impl PlanarForm {
    /// The memory that the form takes.
    pub fn bytes(&self) -> usize {
        size_of::<PlanarForm>() + size_of_val(&*self.full) + size_of_val(&*self.cut) + size_of_val(&*self.tables)
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
}

/// Memory that is used for one row after the other.
#[derive(Default)]
pub(super) struct CompileMemory {
    /// For each bin the area of what was found in it, as a fraction of the bin.
    areas: Vec<f64>,
    trapezoids: Vec<(u32, Trapezoid)>,
    found: Vec<Trapezoid>,
    cut: CutMemory<DoubleDouble>,
}

/// Pieces that together leave less than this of a bin leave nothing: their areas are not known better.
const FULL: f64 = AREA_ERROR;

impl PlanarCompiler {
    /// The compiler for a grid in the plane.
    pub fn new(grid: &Grid, rule: TableRule) -> PlanarCompiler {
        let axes = [&grid.axes()[0], &grid.axes()[1]];
        let edges = axes.map(|axis| axis.edges().to_vec());
        PlanarCompiler {
            ends: axes.map(|axis| [axis.edges()[0].clone(), axis.edges()[axis.bins()].clone()]),
            near: PlanarGrid::new([&edges[0], &edges[1]]),
            edges,
            exact: OnceLock::new(),
            fractions: axes.map(|axis| axis.bin_indices().map(|bin: BinIndex| axis.width_fraction(bin)).collect()),
            rule,
        }
    }

    /// The form of a row; `None` if its pieces are not known.
    pub fn compile(&self, regions: &RegionBatch, row: usize, memory: &mut CompileMemory) -> Option<PlanarForm> {
        let mut cut = std::mem::take(&mut memory.cut);
        let near = self.compile_in(&self.near, regions, row, memory, &mut cut);
        memory.cut = cut;
        match near {
            Ok(form) => form,
            Err(Doubt) => {
                let exact = self.exact.get_or_init(|| PlanarGrid::new([&self.edges[0], &self.edges[1]]));
                let form = self.compile_in(exact, regions, row, memory, &mut CutMemory::default());
                form.unwrap_or_else(|_| unreachable!("fractions leave no doubt"))
            }
        }
    }

    fn compile_in<N: CellScalar>(
        &self,
        grid: &PlanarGrid<N>,
        regions: &RegionBatch,
        row: usize,
        memory: &mut CompileMemory,
        cut: &mut CutMemory<N>,
    ) -> Result<Option<PlanarForm>, Doubt> {
        let CompileMemory { areas, trapezoids, found, .. } = memory;
        let rows = grid.bins(1);
        areas.clear();
        areas.resize(grid.bins(0) * rows, 0.0);
        trapezoids.clear();
        let Some(pieces) = regions.pieces(row, grid, &self.ends) else { return Ok(None) };
        for piece in pieces? {
            grid.cut(&piece, cut, &mut |i, j, part| {
                let bin = i * rows + j;
                match part {
                    BinPart::Full => areas[bin] = 1.0,
                    BinPart::Polygon(corners) => {
                        found.clear();
                        areas[bin] += grid.trapezoids([i, j], corners, found)?;
                        trapezoids.extend(found.iter().map(|trapezoid| (bin as u32, *trapezoid)));
                    }
                }
                Ok(())
            })?;
        }
        Ok(Some(self.assemble(rows, areas, trapezoids)))
    }

    /// Full runs and tables from what was found in the bins.
    fn assemble(&self, rows: usize, areas: &[f64], trapezoids: &mut [(u32, Trapezoid)]) -> PlanarForm {
        trapezoids.sort_by_key(|(bin, _)| *bin);
        let mut form = PlanarForm::default();
        let is_full = |area: f64| area >= 1.0 - FULL;
        for (i, column) in areas.chunks(rows).enumerate() {
            let mut area = 0.0;
            for (j, in_bin) in column.iter().enumerate().filter(|(_, area)| is_full(**area)) {
                assert!(*in_bin <= 1.0 + 100.0 * FULL, "pieces of a region do not overlap");
                area += self.fractions[1][j];
                match form.full.last_mut() {
                    Some(run) if usize::from(run.column) == i && usize::from(run.end) == j => run.end += 1,
                    _ => form.full.push(FullRun { column: i as u16, first: j as u16, end: j as u16 + 1 }),
                }
            }
            form.area += area * self.fractions[0][i];
        }
        for group in trapezoids.chunk_by(|a, b| a.0 == b.0) {
            let bin = group[0].0 as usize;
            if is_full(areas[bin]) {
                continue;
            }
            let (i, j) = (bin / rows, bin % rows);
            let fraction = self.fractions[0][i] * self.fractions[1][j];
            form.cut.push([i as u16, j as u16]);
            form.area += areas[bin] * fraction;
            self.rule.append(fraction, group.iter().map(|(_, trapezoid)| trapezoid), &mut form.tables);
        }
        form.full.shrink_to_fit();
        form.cut.shrink_to_fit();
        form.tables.shrink_to_fit();
        debug_assert_eq!(form.tables.len(), TABLE * form.cut.len());
        form
    }
}
