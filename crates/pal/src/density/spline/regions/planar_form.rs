//! The normaliser of one row in the plane: full bins, cut bins and their tables.

use std::ops::Range;
use std::sync::OnceLock;

use super::tables::{TableEntries, TablePrecision, TableRule};
use crate::density::grid::{BinIndex, Grid};
use crate::double_double::DoubleDouble;
use crate::number::Rational;
use crate::region::planar::{BinPart, Corner, CutMemory, Doubt, LocalEdge, PlanarGrid, Trapezoid};
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
///
/// Rows are cut in float64. A part whose area float64 does not know well enough, such as the tip of a sliver, is cut again
/// in double-doubles, and a row with a sign in doubt is compiled again in double-doubles or, at last, in fractions.
#[derive(Debug)]
pub(super) struct PlanarCompiler {
    pub ends: [[Rational; 2]; 2],
    edges: [Vec<Rational>; 2],
    fast: PlanarGrid<f64>,
    near: PlanarGrid<DoubleDouble>,
    /// The same grid in fractions, made when a row needs it.
    exact: OnceLock<PlanarGrid<Rational>>,
    /// For each axis the widths of bins as fractions of the box.
    fractions: [Vec<f64>; 2],
    rule: TableRule,
    precision: TablePrecision,
}

/// Memory that is used for one row after the other.
#[derive(Default)]
pub(super) struct PlanarMemory {
    fast: PieceMemory<f64>,
    near: PieceMemory<DoubleDouble>,
}

struct PieceMemory<N> {
    /// For each bin the area of what was found in it, as a fraction of the bin.
    areas: Vec<f64>,
    /// The parts that were found.
    parts: Vec<FoundPart>,
    corners: Vec<Corner<N>>,
    trapezoids: Vec<Trapezoid>,
    edges: Vec<LocalEdge>,
    cut: CutMemory<N>,
}

/// The part of a piece in a bin that it does not fill.
#[derive(Clone, Debug)]
struct FoundPart {
    bin: u32,
    piece: u32,
    /// Where its corners are.
    corners: Range<u32>,
}

impl<N> Default for PieceMemory<N> {
    fn default() -> Self {
        PieceMemory {
            areas: Vec::new(),
            parts: Vec::new(),
            corners: Vec::new(),
            trapezoids: Vec::new(),
            edges: Vec::new(),
            cut: CutMemory::default(),
        }
    }
}

/// Computes a part again with more digits, given its piece and its bin, and appends its trapezoids.
type Refine<'r> = &'r mut dyn FnMut(usize, [usize; 2], &mut Vec<Trapezoid>) -> Result<f64, Doubt>;

/// The relative errors that areas of parts may have, and what pieces may leave of a bin and fill it nevertheless: it would
/// not be seen in any integral.
#[derive(Clone, Copy, Debug)]
struct Tolerance {
    area: f64,
    full: f64,
    /// The least area of a bin whose table may be a sum over edges, which is exact to some units of rounding.
    edges: f64,
}

impl PlanarCompiler {
    /// The compiler for a grid in the plane.
    pub fn new(grid: &Grid, rule: TableRule, precision: TablePrecision) -> PlanarCompiler {
        let axes = [&grid.axes()[0], &grid.axes()[1]];
        let edges = axes.map(|axis| axis.edges().to_vec());
        PlanarCompiler {
            ends: axes.map(|axis| [axis.edges()[0].clone(), axis.edges()[axis.bins()].clone()]),
            fast: PlanarGrid::new([&edges[0], &edges[1]]),
            near: PlanarGrid::new([&edges[0], &edges[1]]),
            edges,
            exact: OnceLock::new(),
            fractions: axes.map(|axis| axis.bin_indices().map(|bin: BinIndex| axis.width_fraction(bin)).collect()),
            rule,
            precision,
        }
    }

    /// What float64 may leave open: entries of float32 have seven digits.
    fn tolerance(&self) -> Tolerance {
        match self.precision {
            TablePrecision::Float32 => Tolerance { area: 1e-9, full: 1e-10, edges: 1e-5 },
            TablePrecision::Float64 => Tolerance { area: 4e-13, full: 1e-13, edges: 0.02 },
        }
    }

    /// The form of a row; `None` if its pieces are not known.
    pub fn compile(&self, regions: &RegionBatch, row: usize, memory: &mut PlanarMemory) -> Option<PlanarForm> {
        let PlanarMemory { fast, near } = memory;
        let mut pieces = None;
        let mut again = |piece: usize, bin: [usize; 2], out: &mut Vec<Trapezoid>| {
            let pieces = match &mut pieces {
                Some(pieces) => pieces,
                empty => empty.insert(regions.pieces(row, &self.near, &self.ends).ok_or(Doubt)??),
            };
            let part = self.near.part_in(bin, pieces.get(piece).ok_or(Doubt)?, &mut near.cut)?;
            self.near.trapezoids(bin, part, SURE.area, out)
        };
        if let Ok(form) = self.compile_in(&self.fast, regions, row, fast, self.tolerance(), &mut again) {
            return form;
        }
        let mut nothing = |_: usize, _: [usize; 2], _: &mut Vec<Trapezoid>| Err(Doubt);
        if let Ok(form) = self.compile_in(&self.near, regions, row, near, SURE, &mut nothing) {
            return form;
        }
        let exact = self.exact.get_or_init(|| PlanarGrid::new([&self.edges[0], &self.edges[1]]));
        let form = self.compile_in(exact, regions, row, &mut PieceMemory::default(), SURE, &mut nothing);
        form.unwrap_or_else(|_| unreachable!("fractions leave no doubt"))
    }

    fn compile_in<N: CellScalar>(
        &self,
        grid: &PlanarGrid<N>,
        regions: &RegionBatch,
        row: usize,
        memory: &mut PieceMemory<N>,
        tolerance: Tolerance,
        refine: Refine<'_>,
    ) -> Result<Option<PlanarForm>, Doubt> {
        let PieceMemory { areas, parts, corners, cut, .. } = memory;
        let rows = grid.bins(1);
        areas.clear();
        areas.resize(grid.bins(0) * rows, 0.0);
        parts.clear();
        corners.clear();
        let Some(pieces) = regions.pieces(row, grid, &self.ends) else { return Ok(None) };
        for (number, piece) in pieces?.iter().enumerate() {
            grid.cut(piece, cut, &mut |i, j, part| {
                let bin = i * rows + j;
                match part {
                    BinPart::Full => areas[bin] = 1.0,
                    BinPart::Polygon(polygon) => {
                        areas[bin] += grid.rough_area([i, j], polygon);
                        let start = corners.len() as u32;
                        corners.extend_from_slice(polygon);
                        let corners = start..corners.len() as u32;
                        parts.push(FoundPart { bin: bin as u32, piece: number as u32, corners });
                    }
                }
                Ok(())
            })?;
        }
        let mut form = PlanarForm { tables: TableEntries::new(self.precision), ..PlanarForm::default() };
        for (i, column) in areas.chunks(rows).enumerate() {
            self.add_full_bins(i, column, tolerance, &mut form);
        }
        self.add_cut_bins(grid, memory, tolerance, refine, &mut form)?;
        form.full.shrink_to_fit();
        form.cut.shrink_to_fit();
        form.tables.shrink_to_fit();
        Ok(Some(form))
    }

    /// Appends the full bins of a column, given the areas in its bins.
    fn add_full_bins(&self, i: usize, column: &[f64], tolerance: Tolerance, form: &mut PlanarForm) {
        let mut area = 0.0;
        for (j, in_bin) in column.iter().enumerate().filter(|(_, area)| tolerance.is_full(**area)) {
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
        memory: &mut PieceMemory<N>,
        tolerance: Tolerance,
        refine: Refine<'_>,
        form: &mut PlanarForm,
    ) -> Result<(), Doubt> {
        let PieceMemory { areas, parts, corners, trapezoids, edges, .. } = memory;
        let rows = grid.bins(1);
        parts.retain(|part| !tolerance.is_full(areas[part.bin as usize]));
        // Parts of one bin stay in the order of their pieces.
        parts.sort_unstable_by_key(|part| (part.bin, part.piece));
        for group in parts.chunk_by(|a, b| a.bin == b.bin) {
            let bin = group[0].bin as usize;
            let (i, j) = (bin / rows, bin % rows);
            let fraction = self.fractions[0][i] * self.fractions[1][j];
            form.cut.push([i as u16, j as u16]);
            let polygon = |part: &FoundPart| &corners[part.corners.start as usize..part.corners.end as usize];
            if areas[bin] > tolerance.edges {
                edges.clear();
                let error: f64 = group.iter().map(|part| grid.local_edges([i, j], polygon(part), edges)).sum();
                if error <= tolerance.area * areas[bin] {
                    form.area += fraction * areas[bin];
                    self.rule.append_edges(fraction, edges, &mut form.tables);
                    continue;
                }
            }
            trapezoids.clear();
            for part in group {
                let polygon = polygon(part);
                let area = match grid.trapezoids([i, j], polygon, tolerance.area, trapezoids) {
                    Ok(area) => area,
                    Err(Doubt) => refine(part.piece as usize, [i, j], trapezoids)?,
                };
                form.area += fraction * area;
            }
            self.rule.append(fraction, trapezoids, &mut form.tables);
        }
        Ok(())
    }
}

/// What double-doubles and fractions may leave open.
const SURE: Tolerance = Tolerance { area: 1e-13, full: 1e-13, edges: 0.1 };

impl Tolerance {
    fn is_full(self, area: f64) -> bool {
        area >= 1.0 - self.full
    }
}
