//! The normaliser of one row that is a set `A y <= b` in three variables, bin by bin.
//!
//! A bin whose corners all satisfy a half-space is not cut by it, and a bin is empty if all its corners are beyond one. The
//! others are cut in double-doubles ([`Solid`]); where a sign is in doubt, as for walls through nodes of the grid, the bin
//! is cut by the search that works for all regions.

use std::sync::Arc;

use super::super::blocks::Blocks;
use super::super::form::{BinForm, BoxPart, BoxSide, CutBin};
use super::super::hermite::SQUARE;
use super::super::nodes::{self, STEP};
use super::solid_tables::{SOLID_TABLE, SolidTableRule};
use super::tables::TableRule;
use crate::density::DensityError;
use crate::density::grid::{Axis, BinIndex, Grid};
use crate::density::mesh::{Element, Mesh, Shape};
use crate::double_double::{DoubleDouble, RELATIVE_ERROR};
use crate::number::{Rational, from_f64};
use crate::region::RegionBatch;
use crate::region::planar::Doubt;
use crate::region::solid::{FaceStrip, Solid, Wall};

/// The least part of a bin whose table may be a sum over faces, which is exact to some units of rounding.
const THICK: f64 = 0.01;
/// The relative error that volumes of thinner parts may have.
const VOLUME_ERROR: f64 = 1e-13;

/// What the forms of all rows on one grid share.
pub(super) struct SolidCompiler {
    grid: Arc<Grid>,
    axes: [SolidAxis; 3],
    /// For each axis all of its bins.
    intervals: Vec<Vec<BoxSide<f64>>>,
    rule: SolidTableRule,
    blocks: Blocks,
}

/// The edges and widths of bins along an axis.
struct SolidAxis {
    edges: Vec<DoubleDouble>,
    widths: Vec<DoubleDouble>,
}

/// Memory that is used for one row after the other.
#[derive(Default)]
pub(super) struct SolidMemory {
    /// For each half-space, on which side of it every node of the grid is: -1 inside, 1 outside.
    signs: Vec<Vec<i8>>,
    /// The half-spaces that cut a bin.
    walls: Vec<usize>,
    solid: Solid,
    strips: Vec<FaceStrip>,
}

/// One set `A y <= b`.
type HalfSpaces<'r> = (&'r [f64], &'r [f64]);

impl SolidCompiler {
    pub fn new(grid: &Arc<Grid>, rule: TableRule) -> Result<SolidCompiler, DensityError> {
        let from = nodes::bernstein();
        // The mean of a polynomial is the mean of its Bernstein coefficients.
        let mean = |node: usize| (0..SQUARE).map(|k| from[(k, node)]).sum::<f64>() / SQUARE as f64;
        let means = std::array::from_fn(mean);
        let sides = |axis: &Axis| axis.bin_indices().map(|bin| BoxSide { bin, means }).collect();
        let numbers = |axis: &Axis| SolidAxis {
            edges: axis.edges().iter().map(|edge| DoubleDouble::nearest(edge).0).collect(),
            widths: axis.edges().windows(2).map(|pair| DoubleDouble::nearest(&(&pair[1] - &pair[0])).0).collect(),
        };
        Ok(SolidCompiler {
            grid: grid.clone(),
            axes: [0, 1, 2].map(|j| numbers(&grid.axes()[j])),
            intervals: grid.axes().iter().map(sides).collect(),
            rule: SolidTableRule::new(rule),
            blocks: Blocks::new(grid, &[])?,
        })
    }

    /// The form of a row in values at nodes; `None` if it has no volume.
    pub fn compile(
        &self,
        regions: &RegionBatch,
        row: usize,
        half_spaces: HalfSpaces<'_>,
        memory: &mut SolidMemory,
    ) -> Result<Option<BinForm<f64>>, DensityError> {
        let (normals, offsets) = half_spaces;
        let count = offsets.len();
        memory.signs.resize_with(count.max(memory.signs.len()), Vec::new);
        for (k, signs) in memory.signs[..count].iter_mut().enumerate() {
            self.node_signs(&normals[3 * k..3 * k + 3], offsets[k], signs);
        }
        let bins = [0, 1, 2].map(|axis| self.axes[axis].widths.len());
        let (mut boxes, mut cut, mut tables) = (Vec::new(), Vec::new(), Vec::new());
        for at in 0..bins.iter().product() {
            let bin = [at / (bins[1] * bins[2]), at / bins[2] % bins[1], at % bins[2]];
            let Some(certain) = self.find_walls(bin, count, memory) else { continue };
            let index = bin.map(BinIndex::new);
            let fraction = self.grid.bin_fraction(&index);
            if memory.walls.is_empty() {
                boxes.push(BoxPart { sides: bin.map(|b| b as u32).to_vec(), volume: fraction });
                continue;
            }
            let before = tables.len();
            if !certain || self.append_table(bin, fraction, half_spaces, memory, &mut tables).is_err() {
                self.append_searched(regions, row, bin, fraction, &mut tables)?;
            }
            if tables.len() > before {
                let table = (before / SOLID_TABLE) as u32;
                let swept = tables[before..].iter().sum();
                cut.push(CutBin { bin: index.to_vec(), table, swept });
            }
        }
        if boxes.is_empty() && cut.is_empty() {
            return Ok(None);
        }
        tables.shrink_to_fit();
        Ok(Some(BinForm::new(bins.to_vec(), STEP, self.intervals.clone(), boxes, cut, tables)))
    }

    /// On which side of a half-space every node of the grid is, exactly.
    fn node_signs(&self, normal: &[f64], offset: f64, signs: &mut Vec<i8>) {
        signs.clear();
        let [x, y, z] = [0, 1, 2].map(|axis| &self.axes[axis].edges);
        for (i, x) in x.iter().enumerate() {
            for (j, y) in y.iter().enumerate() {
                for (k, z) in z.iter().enumerate() {
                    let terms = [normal[0] * x.high, normal[1] * y.high, normal[2] * z.high];
                    let value = terms[0] + terms[1] + terms[2] - offset;
                    let size = terms[0].abs() + terms[1].abs() + terms[2].abs() + offset.abs();
                    // Infinities and NaN are in doubt.
                    let bound = 8.0 * f64::EPSILON * size + 8.0 * f64::MIN_POSITIVE;
                    signs.push(if value > bound {
                        1
                    } else if value < -bound {
                        -1
                    } else {
                        self.exact_sign([i, j, k], normal, offset)
                    });
                }
            }
        }
    }

    fn exact_sign(&self, node: [usize; 3], normal: &[f64], offset: f64) -> i8 {
        let exact = |x: f64| from_f64(x).expect("half-spaces are checked to have finite numbers");
        let terms = (0..3).map(|axis| exact(normal[axis]) * &self.grid.axes()[axis].edges()[node[axis]]);
        match terms.fold(-exact(offset), |sum, term| sum + term).cmp(&Rational::ZERO) {
            std::cmp::Ordering::Less => -1,
            std::cmp::Ordering::Equal => 0,
            std::cmp::Ordering::Greater => 1,
        }
    }

    /// Finds the half-spaces that cut a bin, and whether none of them goes through a corner; `None` if the bin is empty.
    fn find_walls(&self, bin: [usize; 3], count: usize, memory: &mut SolidMemory) -> Option<bool> {
        let [_, y, z] = [0, 1, 2].map(|axis| self.axes[axis].edges.len());
        let corner = |k: usize| ((bin[0] + (k & 1)) * y + bin[1] + (k >> 1 & 1)) * z + bin[2] + (k >> 2);
        let corners: [usize; 8] = std::array::from_fn(corner);
        memory.walls.clear();
        let mut certain = true;
        for (k, signs) in memory.signs[..count].iter().enumerate() {
            let own = corners.map(|at| signs[at]);
            if own.iter().all(|sign| *sign <= 0) {
                continue;
            }
            if own.iter().all(|sign| *sign >= 0) {
                return None;
            }
            certain &= own.iter().all(|sign| *sign != 0);
            memory.walls.push(k);
        }
        Some(certain)
    }

    /// Appends the table of a bin that some half-spaces cut, if anything is left of it.
    fn append_table(
        &self,
        bin: [usize; 3],
        fraction: f64,
        (normals, offsets): HalfSpaces<'_>,
        memory: &mut SolidMemory,
        tables: &mut Vec<f64>,
    ) -> Result<(), Doubt> {
        let SolidMemory { walls, solid, strips, .. } = memory;
        solid.reset();
        for k in walls {
            solid.clip(&self.wall(bin, &normals[3 * *k..3 * *k + 3], offsets[*k]))?;
            if solid.is_empty() {
                return Ok(());
            }
        }
        if solid.rough_volume() > THICK && solid.corner_error() < f64::EPSILON {
            strips.clear();
            solid.strips(|strip| strips.push(strip));
            self.rule.append(fraction, strips, tables);
            return Ok(());
        }
        let index = bin.map(BinIndex::new).to_vec();
        let mut elements = Vec::new();
        solid.tetrahedra(VOLUME_ERROR, |corners, size| {
            let shape = Shape::Simplex(corners.concat());
            elements.push(Element { bin: index.clone(), shape, volume: size / 6.0 * fraction });
        })?;
        self.rule.append_bernstein(&self.blocks.block(&index, &elements.iter().collect::<Vec<_>>()), tables);
        Ok(())
    }

    /// A half-space in coordinates that run from 0 to 1 over a bin, with numbers around 1.
    fn wall(&self, bin: [usize; 3], normal: &[f64], offset: f64) -> Wall {
        let widths = [0, 1, 2].map(|axis| self.axes[axis].widths[bin[axis]]);
        let size = [0, 1, 2].map(|axis| (normal[axis] * widths[axis].high).abs()).into_iter().fold(0.0, f64::max);
        // A power of two, so that nothing is rounded; if it is out of range, numbers come out as doubt.
        let scale = DoubleDouble::new((-size.log2().round()).exp2());
        let normal = [0, 1, 2].map(|axis| DoubleDouble::new(normal[axis]).times(scale));
        let mut wall = Wall {
            normal: [0, 1, 2].map(|axis| normal[axis].times(widths[axis])),
            offset: DoubleDouble::new(offset).times(scale).negative(),
            error: 0.0,
        };
        let mut magnitude = wall.offset.high.abs();
        for axis in [0, 1, 2] {
            let term = normal[axis].times(self.axes[axis].edges[bin[axis]]);
            wall.offset = wall.offset.plus(term);
            magnitude += term.high.abs() + wall.normal[axis].high.abs();
        }
        wall.error = 16.0 * RELATIVE_ERROR * magnitude + 1e-200;
        wall
    }

    /// The same by the search that works for all regions.
    fn append_searched(
        &self,
        regions: &RegionBatch,
        row: usize,
        bin: [usize; 3],
        fraction: f64,
        tables: &mut Vec<f64>,
    ) -> Result<(), DensityError> {
        let ends = [0, 1, 2].map(|axis| {
            let edges = self.grid.axes()[axis].edges();
            [edges[bin[axis]].clone(), edges[bin[axis] + 1].clone()]
        });
        let axis = |ends: &[Rational; 2]| Axis::new(ends.to_vec()).expect("a bin of a grid has a width in float64");
        let mesh =
            Mesh::new(&regions.region_within(row, &ends)?, &Arc::new(Grid::new(ends.iter().map(axis).collect())))?;
        if mesh.elements.is_empty() {
            return Ok(());
        }
        let form: BinForm<f64> = nodes::form(&BinForm::compile(&mesh, &[])?);
        let table = form.dense(&[SQUARE; 3]).expect("the table of one bin is small");
        tables.extend(table.into_iter().map(|x| x * fraction));
        Ok(())
    }
}
