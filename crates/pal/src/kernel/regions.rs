//! Kernel mixtures with a region of their own for each row of a batch.

use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;

use super::boundary::Boundary;
use super::pieces::{ClipMemory, ConvexPiece};
use super::{Compiled, KernelFamily, Place};
use crate::density::DensityError;
use crate::double_double::DoubleDouble;
use crate::interrupt::checkpoint;
use crate::number::Rational;
use crate::region::RegionBatch;
use crate::region::planar::{Corner, PlanarGrid, Scalar};

impl KernelFamily {
    /// The same family on the region of every row of a batch, cut to the box of this family: the same parameters are then
    /// densities on these regions. Rows without volume in the box are an error that names them.
    ///
    /// ```
    /// use pal::kernel::{KernelFamily, KernelSettings};
    /// use pal::{formula::reals, region::{Region, RegionBatch}};
    /// let [x, y] = reals(["x", "y"]);
    /// let square = x.between(-1, 1) & y.between(-1, 1);
    /// let family = KernelFamily::new(&Region::new(&square.clone().into())?, &KernelSettings::default())?;
    /// let halves = [Region::new(&(square.clone() & x.le(0)).into())?, Region::new(&(square & x.ge(y)).into())?];
    /// let rows = family.on_regions(&RegionBatch::new(&halves)?)?;
    /// let params = vec![0.0; family.num_params()];
    /// assert!(rows[0].sample(&params, 100, 1)?.chunks(2).all(|point| point[0] <= 0.0));
    /// assert!(rows[1].sample(&params, 100, 1)?.chunks(2).all(|point| point[0] >= point[1]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on_regions(&self, regions: &RegionBatch) -> Result<Vec<KernelFamily>, DensityError> {
        if regions.variables() != self.variables() {
            let names = |vars: &[crate::formula::Var]| vars.iter().map(|var| var.name()).collect::<Vec<_>>().join(", ");
            return Err(DensityError::Settings(format!(
                "the regions are over the variables {}, and the family is over {}",
                names(regions.variables()),
                names(self.variables())
            )));
        }
        let ends: [[Rational; 2]; 2] = [0, 1].map(|j| [self.0.ends[j].0.clone(), self.0.ends[j].1.clone()]);
        let grid = PlanarGrid::<DoubleDouble>::new([&ends[0], &ends[1]]);
        let shared = Arc::new(regions.clone());
        let compile = |row: usize| {
            checkpoint();
            let mut compiled = self.0.without_place(Place::Row(shared.clone(), row));
            // Double-doubles leave a sign in doubt only where pieces are cut exactly at a corner, and an unbounded map has
            // no pieces: then the region of the row is cut in fractions.
            match regions.pieces::<DoubleDouble>(row, &grid, &ends) {
                Some(Ok(pieces)) => compiled.take(&pieces),
                _ => compiled.cut(&regions.region_within(row, &ends)?)?,
            }
            compiled.whole_volume = compiled.volume;
            Ok(KernelFamily(Arc::new(compiled)))
        };
        let rows: Vec<KernelFamily> =
            (0..regions.len()).into_par_iter().map(compile).collect::<Result<_, DensityError>>()?;
        let empty: Vec<usize> = (0..rows.len()).filter(|row| !(rows[*row].0.volume > 0.0)).collect();
        if empty.is_empty() { Ok(rows) } else { Err(DensityError::RowsWithoutVolume(empty)) }
    }
}

impl Compiled {
    /// Takes convex pieces in the coordinates of the user, which may reach out of the box.
    fn take(&mut self, pieces: &[Vec<Corner<DoubleDouble>>]) {
        let axes = self.grid.axes();
        let scale = [0, 1].map(|j| 2.0 / axes[j].length());
        let centre = [0, 1].map(|j| {
            let (low, high) = &self.ends[j];
            DoubleDouble::nearest(&((low + high) / Rational::from(2))).0
        });
        let (mut work, mut polygons) = (ClipMemory::default(), Vec::new());
        for piece in pieces {
            let corner =
                |corner: &Corner<DoubleDouble>| [0, 1].map(|j| corner.at[j].minus(centre[j]).rounded() * scale[j]);
            let mut polygon = work.cut_to_square(piece.iter().map(corner));
            polygon.dedup();
            let area = twice_area(&polygon);
            if polygon.len() < 3 || area == 0.0 {
                continue;
            }
            if area < 0.0 {
                polygon.reverse();
            }
            self.pieces.push(ConvexPiece::new(polygon.clone(), 0.5 * area.abs()));
            polygons.push(polygon);
        }
        self.volume = self.pieces.iter().map(|piece| piece.area).sum();
        self.boundary = Boundary::of_rounded(&polygons);
    }
}

fn twice_area(polygon: &[[f64; 2]]) -> f64 {
    let Some(first) = polygon.first() else { return 0.0 };
    let cross = |pair: &[[f64; 2]]| {
        let [a, b] = [pair[0], pair[1]].map(|corner| [corner[0] - first[0], corner[1] - first[1]]);
        a[0] * b[1] - a[1] * b[0]
    };
    polygon.windows(2).map(cross).sum()
}

impl Boundary {
    /// The boundary of convex polygons with disjoint interiors, given counterclockwise. Edges that two of them share as
    /// a whole are left out; parts of edges stay in both directions, and cancel when they are integrated.
    fn of_rounded(polygons: &[Vec<[f64; 2]>]) -> Boundary {
        let key = |corner: &[f64; 2]| corner.map(|x| (x + 0.0).to_bits());
        let edges = polygons
            .iter()
            .flat_map(|polygon| (0..polygon.len()).map(move |k| [polygon[k], polygon[(k + 1) % polygon.len()]]));
        let mut known: HashMap<[[u64; 2]; 2], usize> = HashMap::new();
        edges.clone().for_each(|[a, b]| *known.entry([key(&a), key(&b)]).or_default() += 1);
        let mut boundary = Boundary::default();
        for polygon in polygons {
            // Stretches of edges without a partner.
            let mut chain: Vec<[f64; 2]> = Vec::new();
            for k in 0..polygon.len() {
                let [a, b] = [polygon[k], polygon[(k + 1) % polygon.len()]];
                if known.contains_key(&[key(&b), key(&a)]) {
                    if chain.len() > 1 {
                        boundary.push(&chain);
                    }
                    chain.clear();
                    continue;
                }
                if chain.is_empty() {
                    chain.push(a);
                }
                chain.push(b);
            }
            if chain.len() > 1 {
                boundary.push(&chain);
            }
        }
        boundary
    }
}
