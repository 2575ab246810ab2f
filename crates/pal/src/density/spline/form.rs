//! Integrals of products of squared splines over a set, bin by bin.
//!
//! With `S_j` the Bernstein coefficients of the squared spline along axis j, 7 per bin,
//!
//! ```text
//! integral of prod_j s_j(y_j)^2  =  sum over boxes  volume  prod_j (mean of B over the side) . S_j
//!                                 + sum over cut bins  M(S_1, .., S_n),      M[i_1, .., i_n] = integral of B_i1 .. B_in
//! ```
//!
//! A bin inside the set, or a part of a bin between planes that are orthogonal to axes, is a box: its integral is a
//! product of integrals in one variable. Only a bin that a slanted wall cuts has a table M of its own, and bins that
//! are cut alike share one. So cost and memory grow with the number of cut bins, not with the number of all bins.

use std::collections::{BTreeMap, HashMap};

use nalgebra::SMatrix;
use rayon::prelude::*;

use super::blocks::Blocks;
use super::contract::{Contraction, FormPart};
use super::hermite::{self, CUBIC, SQUARE};
use crate::density::DensityError;
use crate::density::gauss::Gauss;
use crate::density::grid::{BinIndex, Grid};
use crate::density::kind::{Expansion, Form};
use crate::density::lanes::{LANES, LaneWork, Lanes, Real, Simd, dispatch};
use crate::density::mesh::{Element, Mesh, Shape};

/// The largest number of entries of all tables together.
pub(super) const MAX_ENTRIES: usize = 40_000_000;
/// The largest number of entries of a form that is written out for all bins.
const MAX_DENSE: usize = 40_000_000;

/// A part of a bin along one axis: all of it, in most cases.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BoxSide<T> {
    pub bin: BinIndex,
    /// The means over the interval of the seven functions that squares are written in.
    pub means: [T; SQUARE],
}

/// A box: one interval per axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BoxPart<T> {
    /// For each axis which of its intervals.
    pub sides: Vec<u32>,
    /// The volume as a fraction of the volume of the box around the set.
    pub volume: T,
}

/// A bin that a slanted wall cuts.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CutBin {
    pub bin: Vec<BinIndex>,
    /// Which of the tables holds its integrals.
    pub table: u32,
    /// The volume that was integrated by recurrence: an entry of the table is only as accurate as the largest one.
    pub swept: f64,
}

/// The integrals of products over a set, bin by bin. Squares have `step` numbers per bin that no other bin has; with
/// `step` 6, neighbouring bins share the number at their common knot.
#[derive(Clone, Debug)]
pub(super) struct BinForm<T> {
    /// The number of bins along every axis.
    pub bins: Vec<usize>,
    pub step: usize,
    /// For each axis the intervals that sides of boxes have, in increasing order.
    pub intervals: Vec<Vec<BoxSide<T>>>,
    /// In lexicographic order of their sides.
    pub boxes: Vec<BoxPart<T>>,
    /// In lexicographic order of their bins.
    pub cut: Vec<CutBin>,
    /// The distinct tables one after the other, 7^n entries each, the last axis running fastest.
    pub tables: Vec<T>,
    /// The same in the order in which sums are computed.
    plan: Contraction<T>,
}

impl<T: Real> BinForm<T> {
    pub fn new(
        bins: Vec<usize>,
        step: usize,
        intervals: Vec<Vec<BoxSide<T>>>,
        boxes: Vec<BoxPart<T>>,
        cut: Vec<CutBin>,
        tables: Vec<T>,
    ) -> BinForm<T> {
        let plan = Contraction::new(&bins, step, &intervals, &[FormPart { boxes: &boxes, cut: &cut, rests: &[] }]);
        BinForm { bins, step, intervals, boxes, cut, tables, plan }
    }

    /// The same tables with other intervals, boxes and cut bins.
    pub fn with_entries(
        &self,
        intervals: Vec<Vec<BoxSide<T>>>,
        boxes: Vec<BoxPart<T>>,
        cut: Vec<CutBin>,
    ) -> BinForm<T> {
        BinForm::new(self.bins.clone(), self.step, intervals, boxes, cut, self.tables.clone())
    }

    /// The number of variables.
    pub fn dimension(&self) -> usize {
        self.bins.len()
    }

    /// How sums are computed.
    pub fn plan(&self) -> &Contraction<T> {
        &self.plan
    }

    /// How many numbers the form holds.
    pub fn len(&self) -> usize {
        let sides: usize = self.intervals.iter().map(|axis| SQUARE * axis.len()).sum();
        sides + self.boxes.len() + self.cut.len() + self.tables.len()
    }

    /// The number of entries of a table.
    pub fn table_len(&self) -> usize {
        SQUARE.pow(self.dimension() as u32)
    }
}

impl BinForm<f64> {
    pub fn compile(mesh: &Mesh, powers: &[u16]) -> Result<BinForm<f64>, DensityError> {
        let n = mesh.dimension();
        let mut sides = Sides::new(&mesh.grid, powers);
        let mut boxes: Vec<BoxPart<f64>> = Vec::new();
        let mut cut: BTreeMap<&[BinIndex], Vec<&[Element]>> = BTreeMap::new();
        for cell in mesh.by_cell() {
            match cell {
                [Element { bin, shape: Shape::Cuboid(low, high), volume }] => {
                    let side = |j: usize| sides.index(j, bin[j], low[j], high[j]);
                    boxes.push(BoxPart { sides: (0..n).map(side).collect(), volume: *volume });
                }
                [first, ..] => cut.entry(&first.bin).or_default().push(cell),
                [] => {}
            }
        }
        // Without a monomial, bins that are cut alike have equal tables.
        let mut known: HashMap<Vec<u64>, u32> = HashMap::new();
        let (mut bins, mut distinct) = (Vec::new(), Vec::new());
        for (bin, cells) in cut {
            let mut key = shape_key(&mesh.grid, bin, &cells);
            let elements: Vec<&Element> = cells.into_iter().flatten().collect();
            if powers.iter().any(|power| *power > 0) {
                key.extend(bin.iter().map(|b| b.get() as u64));
            }
            let next = u32::try_from(known.len()).expect("a mesh that fits into memory has fewer than 2^32 elements");
            let table = *known.entry(key).or_insert(next);
            let swept = if Blocks::sweeps(n) { elements.iter().map(|element| element.volume).sum() } else { 0.0 };
            if table == next {
                distinct.push((bin, elements));
            }
            bins.push(CutBin { bin: bin.to_vec(), table, swept });
        }
        let most = MAX_ENTRIES / SQUARE.pow(n as u32);
        if distinct.len() > most {
            // Walls have one dimension less than the set, and so has the number of bins that they cut.
            let fitting = (most as f64 / distinct.len() as f64).powf(1.0 / (n - 1) as f64);
            return Err(DensityError::CutBins { bins: bins.len(), tables: distinct.len(), most, fitting });
        }
        let blocks = Blocks::new(&mesh.grid, powers)?;
        let tables: Vec<Vec<f64>> = distinct.par_iter().map(|(bin, elements)| blocks.block(bin, elements)).collect();
        let intervals = sides.sorted(&mut boxes);
        let counts = mesh.grid.axes().iter().map(|axis| axis.bins()).collect();
        Ok(BinForm::new(counts, SQUARE, intervals, boxes, bins, tables.concat()))
    }

    /// The same form for squares that are given by other numbers: `from` takes those of a bin to its Bernstein
    /// coefficients.
    pub fn convert<T: Real>(&self, step: usize, from: &SMatrix<f64, SQUARE, SQUARE>) -> BinForm<T> {
        let row = |values: &[f64; SQUARE]| -> [T; SQUARE] {
            std::array::from_fn(|node| T::from_f64((0..SQUARE).map(|k| from[(k, node)] * values[k]).sum()))
        };
        let interval = |interval: &BoxSide<f64>| BoxSide { bin: interval.bin, means: row(&interval.means) };
        let intervals = self.intervals.iter().map(|axis| axis.iter().map(interval).collect()).collect();
        let boxes = self.boxes.iter().map(|b| BoxPart { sides: b.sides.clone(), volume: T::from_f64(b.volume) });
        let mut tables = self.tables.clone();
        for table in tables.chunks_mut(self.table_len()) {
            for axis in 0..self.dimension() {
                convert_axis(table, SQUARE.pow(axis as u32), from);
            }
        }
        let tables = tables.into_iter().map(T::from_f64).collect();
        BinForm::new(self.bins.clone(), step, intervals, boxes.collect(), self.cut.clone(), tables)
    }

    /// The form written out: one index per axis into the numbers of a square, the last one running fastest. Lengths
    /// are those of every axis; `None` if there would be too many entries.
    pub fn dense(&self, lengths: &[usize]) -> Option<Vec<f64>> {
        let entries = lengths.iter().try_fold(1usize, |product, length| product.checked_mul(*length))?;
        if entries > MAX_DENSE {
            return None;
        }
        let n = self.dimension();
        let mut dense = vec![0.0; entries];
        let mut add = |starts: &[usize], value: &dyn Fn(usize) -> f64| {
            for at in 0..self.table_len() {
                let (mut rest, mut index, mut stride) = (at, 0, 1);
                for j in (0..n).rev() {
                    index += stride * (starts[j] + rest % SQUARE);
                    stride *= lengths[j];
                    rest /= SQUARE;
                }
                dense[index] += value(at);
            }
        };
        for part in &self.boxes {
            let sides: Vec<&BoxSide<f64>> =
                part.sides.iter().zip(&self.intervals).map(|(side, axis)| &axis[*side as usize]).collect();
            let starts: Vec<usize> = sides.iter().map(|side| side.bin.get() * self.step).collect();
            add(&starts, &|at| {
                let (mut rest, mut product) = (at, part.volume);
                for side in sides.iter().rev() {
                    product *= side.means[rest % SQUARE];
                    rest /= SQUARE;
                }
                product
            });
        }
        for cut in &self.cut {
            let table = &self.tables[cut.table as usize * self.table_len()..][..self.table_len()];
            let starts: Vec<usize> = cut.bin.iter().map(|bin| bin.get() * self.step).collect();
            add(&starts, &|at| table[at]);
        }
        Some(dense)
    }

    /// The integral of 1, as a fraction of the volume of the box.
    pub fn volume(&self) -> f64 {
        let ones = vec![Lanes::splat(1.0); self.plan.length()];
        dispatch(Integrals { form: self, squares: &ones }).0[0]
    }

    /// Runs over components, given by the coefficients of their cubics, [`LANES`] at a time: fills the squares of
    /// their splines, lane by lane, and hands them on.
    pub fn fill(&self, coefficients: &[&[f64]], squares: &mut [Lanes<f64>]) {
        let mut square = [0.0; SQUARE];
        for lane in 0..LANES {
            // Lanes without a component repeat the first one.
            let component = coefficients.get(lane).unwrap_or(&coefficients[0]);
            for (b, s) in component.chunks_exact(CUBIC).zip(squares.chunks_exact_mut(SQUARE)) {
                hermite::square(b, &mut square);
                s.iter_mut().zip(square).for_each(|(s, x)| s.0[lane] = x);
            }
        }
    }
}

/// The sides of boxes, collected without repetition.
pub(super) struct Sides<'g> {
    grid: &'g Grid,
    powers: Vec<u16>,
    gauss: Vec<std::sync::Arc<Gauss>>,
    known: Vec<HashMap<(BinIndex, u64, u64), u32>>,
    intervals: Vec<Vec<(f64, BoxSide<f64>)>>,
}

impl<'g> Sides<'g> {
    pub fn new(grid: &'g Grid, powers: &[u16]) -> Sides<'g> {
        let n = grid.dimension();
        let powers: Vec<u16> = (0..n).map(|j| powers.get(j).copied().unwrap_or(0)).collect();
        let gauss = powers.iter().map(|power| Gauss::for_degree(SQUARE - 1 + usize::from(*power))).collect();
        Sides { grid, powers, gauss, known: vec![HashMap::new(); n], intervals: vec![Vec::new(); n] }
    }

    pub fn index(&mut self, axis: usize, bin: BinIndex, low: f64, high: f64) -> u32 {
        let next = self.intervals[axis].len() as u32;
        let index = *self.known[axis].entry((bin, low.to_bits(), high.to_bits())).or_insert(next);
        if index == next {
            let mut means = [0.0; SQUARE];
            for (s, weight) in self.gauss[axis].nodes.iter().zip(&self.gauss[axis].weights) {
                let t = low + s * (high - low);
                let at = self.grid.axes()[axis].fraction(bin, t);
                let weight = weight * at.powi(i32::from(self.powers[axis]));
                means.iter_mut().zip(hermite::square_basis(t)).for_each(|(mean, b)| *mean += weight * b);
            }
            self.intervals[axis].push((low, BoxSide { bin, means }));
        }
        index
    }

    /// The intervals of every axis, in the order of their numbers.
    pub fn intervals(self) -> Vec<Vec<BoxSide<f64>>> {
        self.intervals.into_iter().map(|axis| axis.into_iter().map(|(_, interval)| interval).collect()).collect()
    }

    /// The intervals of every axis in increasing order, and boxes in the order of their sides.
    fn sorted(self, boxes: &mut [BoxPart<f64>]) -> Vec<Vec<BoxSide<f64>>> {
        let mut all = Vec::new();
        for (axis, intervals) in self.intervals.into_iter().enumerate() {
            let mut order: Vec<usize> = (0..intervals.len()).collect();
            order.sort_by(|a, b| {
                let ((low, first), (other, second)) = (&intervals[*a], &intervals[*b]);
                first.bin.cmp(&second.bin).then(low.total_cmp(other)).then(a.cmp(b))
            });
            let mut places = vec![0; order.len()];
            order.iter().enumerate().for_each(|(place, old)| places[*old] = place as u32);
            boxes.iter_mut().for_each(|part| part.sides[axis] = places[part.sides[axis] as usize]);
            all.push(order.iter().map(|old| intervals[*old].1.clone()).collect());
        }
        boxes.sort_by(|a, b| a.sides.cmp(&b.sides));
        all
    }
}

/// What determines the table of a bin: the vertices of its cells in local coordinates, and their volumes. (Cells of the
/// same shape may be divided into different simplices.) Both are rounded, because they are known to rounding only:
/// what one bin's table may be off for another bin is a fraction of 1e-12 of the volume that it stands for.
fn shape_key(grid: &Grid, bin: &[BinIndex], cells: &[&[Element]]) -> Vec<u64> {
    let mut shapes: Vec<Vec<Vec<u64>>> = Vec::new();
    for simplices in cells {
        let mut vertices: Vec<Vec<u64>> = Vec::new();
        for element in *simplices {
            let Shape::Simplex(coordinates) = &element.shape else { unreachable!("a box is a cell of its own") };
            let rounded = |x: &f64| (x * 2f64.powi(44)).round() as u64;
            vertices.extend(coordinates.chunks(bin.len()).map(|v| v.iter().map(rounded).collect()));
        }
        vertices.sort_unstable();
        vertices.dedup();
        let volume: f64 = simplices.iter().map(|element| element.volume).sum();
        vertices.push(vec![(volume.to_bits() + (1 << 9)) >> 10]);
        shapes.push(vertices);
    }
    shapes.sort_unstable();
    let mut key = vec![grid.bin_fraction(bin).to_bits()];
    for vertices in shapes {
        key.push(vertices.len() as u64);
        key.extend(vertices.into_iter().flatten());
    }
    key
}

/// Applies the transpose of `from` along one axis of a table, whose entries are outer x 7 x inner.
fn convert_axis(table: &mut [f64], inner: usize, from: &SMatrix<f64, SQUARE, SQUARE>) {
    for part in table.chunks_mut(SQUARE * inner) {
        for at in 0..inner {
            let old: [f64; SQUARE] = std::array::from_fn(|k| part[k * inner + at]);
            for node in 0..SQUARE {
                part[node * inner + at] = (0..SQUARE).map(|k| from[(k, node)] * old[k]).sum();
            }
        }
    }
}

/// The integrals of some components, one per lane.
struct Integrals<'f> {
    form: &'f BinForm<f64>,
    squares: &'f [Lanes<f64>],
}

impl LaneWork for Integrals<'_> {
    type Output = Lanes<f64>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Lanes<f64> {
        let plan = &self.form.plan;
        plan.integral(simd, &self.form.tables, self.squares, &mut plan.work())
    }
}

/// The gradients of the integrals of some components with respect to the coefficients of their squares.
struct Gradients<'f> {
    form: &'f BinForm<f64>,
    squares: &'f [Lanes<f64>],
    gradient: &'f mut [Lanes<f64>],
}

impl LaneWork for Gradients<'_> {
    type Output = Lanes<f64>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Lanes<f64> {
        let plan = &self.form.plan;
        plan.integral_with_gradient(simd, &self.form.tables, self.squares, self.gradient, &mut plan.work())
    }
}

impl Form for BinForm<f64> {
    fn integrals(&self, expansions: &[Expansion]) -> Vec<f64> {
        let length = self.bins.iter().sum::<usize>() * CUBIC;
        let components: Vec<&[f64]> = expansions.iter().flat_map(|row| row.coefficients.chunks(length)).collect();
        let blocks = components.par_chunks(LANES).map(|block| {
            let mut squares = vec![Lanes::zero(); self.plan.length()];
            self.fill(block, &mut squares);
            let integrals = dispatch(Integrals { form: self, squares: &squares });
            // The integral of a square is not negative; rounding may have made it so.
            integrals.0[..block.len()].iter().map(|integral| integral.max(0.0)).collect::<Vec<f64>>()
        });
        blocks.flatten_iter().collect()
    }

    fn scale(&self, coefficients: &[f64], component: usize) -> f64 {
        let length = self.bins.iter().sum::<usize>() * CUBIC;
        let mut squares = vec![Lanes::zero(); self.plan.length()];
        self.fill(&[&coefficients[component * length..(component + 1) * length]], &mut squares);
        squares.iter_mut().for_each(|s| *s = s.abs());
        let scale = dispatch(Integrals { form: self, squares: &squares }).0[0];
        let largest = |(axis, bin): (&usize, &BinIndex)| {
            let at = axis + bin.get() * self.step;
            squares[at..at + SQUARE].iter().fold(0.0f64, |largest, s| largest.max(s.0[0]))
        };
        let starts = self.plan.starts();
        let swept: f64 =
            self.cut.iter().map(|cut| cut.swept * starts.iter().zip(&cut.bin).map(largest).product::<f64>()).sum();
        scale.max(swept)
    }

    /// Coefficients are at most 1 in size, those of squares too, and Bernstein polynomials add up to 1.
    fn largest_scale(&self, volume: f64) -> f64 {
        volume
    }

    fn add_gradient(&self, coefficients: &[f64], weights: &[f64], gradient: &mut [f64]) {
        let length = self.bins.iter().sum::<usize>() * CUBIC;
        let components: Vec<&[f64]> = coefficients.chunks(length).collect();
        let blocks = components.chunks(LANES).zip(weights.chunks(LANES)).zip(gradient.chunks_mut(length * LANES));
        for ((components, weights), gradient) in blocks.filter(|((_, weights), _)| weights.iter().any(|w| *w != 0.0)) {
            let mut squares = vec![Lanes::zero(); self.plan.length()];
            self.fill(components, &mut squares);
            let mut derivatives = vec![Lanes::zero(); self.plan.length()];
            dispatch(Gradients { form: self, squares: &squares, gradient: &mut derivatives });
            let parts = components.iter().zip(weights).zip(gradient.chunks_mut(length)).enumerate();
            for (lane, ((coefficients, weight), gradient)) in parts.filter(|(_, ((_, weight), _))| **weight != 0.0) {
                let bins = coefficients.chunks(CUBIC).zip(derivatives.chunks(SQUARE)).zip(gradient.chunks_mut(CUBIC));
                for ((b, derivative), gradient) in bins {
                    let scaled: [f64; SQUARE] = std::array::from_fn(|k| derivative[k].0[lane] * weight);
                    hermite::add_square_gradient(b, &scaled, gradient);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::density::cubature::MeshCubature;
    use crate::density::grid::Axis;
    use crate::density::mesh::Degree;
    use crate::density::spline::nodes;
    use crate::formula::{Constraint, reals};
    use crate::number::Rational;
    use crate::random::Stream;
    use crate::region::Region;

    fn rational(numerator: i64, denominator: i64) -> Rational {
        Rational::from(numerator) / Rational::from(denominator)
    }

    /// Regions with slanted and straight walls, holes and slivers, with the number of bins along every axis.
    fn cases() -> Vec<(Constraint, Vec<usize>)> {
        let [x, y, z, w] = reals(["x", "y", "z", "w"]);
        let square = x.between(0, 1) & y.between(0, 1);
        let thin = rational(1, 1_000_000);
        vec![
            ((x.between(0, 1) | x.between(2, 3)).into(), vec![7]),
            (square.clone().into(), vec![3, 4]),
            ((square.clone() & !(x.between(rational(1, 5), rational(2, 5)) & y.le(rational(1, 2)))).into(), vec![5, 3]),
            (
                (square.clone() & (&x + &y).le(rational(4, 3)) & !(&x - &y).between(0, rational(1, 7))).into(),
                vec![6, 5],
            ),
            ((square.clone() & (x.le(thin) | y.ge(rational(2, 3)))).into(), vec![3, 3]),
            ((square.clone() & z.between(0, 2) & (&x + &y + &z).le(2)).into(), vec![3, 2, 4]),
            ((square & z.between(0, 1) & w.between(0, 1) & (&x + &y + &z + &w).le(2)).into(), vec![2, 1, 2, 2]),
        ]
    }

    fn mesh(constraint: &Constraint, bins: &[usize]) -> Mesh {
        let region = Region::new(constraint).unwrap();
        let ends = region.bounding_box().unwrap().unwrap();
        let axis = |((low, high), bins): (&(Rational, Rational), &usize)| {
            let edge = |k| low + (high - low) * Rational::from(k) / Rational::from(*bins);
            Axis::new((0..=*bins).map(edge).collect()).unwrap()
        };
        let grid = Grid::new(ends.iter().zip(bins).map(axis).collect());
        Mesh::new(&region, &Arc::new(grid)).unwrap()
    }

    /// Random cubics, whose squares are what a form integrates.
    fn cubics(bins: &[usize], stream: &mut Stream) -> Vec<f64> {
        (0..bins.iter().sum::<usize>() * CUBIC).map(|_| stream.normal()).collect()
    }

    fn by_cubature(mesh: &Mesh, powers: &[u16], coefficients: &[f64]) -> f64 {
        let n = mesh.dimension();
        let extra: usize = powers.iter().map(|p| usize::from(*p)).sum();
        let rules = MeshCubature::new(n, Degree { total: 6 * n, axis: 6 }.times(extra));
        let mut total = 0.0;
        for element in &mesh.elements {
            rules.visit(element, |t, weight| {
                let (mut start, mut product) = (0, weight * mesh.grid.monomial(&element.bin, t, powers));
                for ((axis, bin), t) in mesh.grid.axes().iter().zip(&element.bin).zip(t) {
                    let at = start + bin.get() * CUBIC;
                    product *= hermite::value(&coefficients[at..at + CUBIC], *t).powi(2);
                    start += CUBIC * axis.bins();
                }
                total += product;
            });
        }
        total
    }

    #[test]
    fn sums_over_bins_are_integrals() {
        let mut stream = Stream::new(5, 0);
        for (constraint, bins) in cases() {
            let mesh = mesh(&constraint, &bins);
            for powers in [vec![], vec![1; bins.len()], vec![2]] {
                let form = BinForm::compile(&mesh, &powers).unwrap();
                let rows: Vec<Expansion> = (0..if bins.len() < 4 { 19 } else { 2 })
                    .map(|_| Expansion { coefficients: cubics(&bins, &mut stream), log_scales: vec![0.0] })
                    .collect();
                let integrals = form.integrals(&rows);
                for (row, integral) in rows.iter().zip(&integrals) {
                    let want = by_cubature(&mesh, &powers, &row.coefficients);
                    // In four dimensions the weights of the cubature alternate, and digits cancel there.
                    let tolerance = if bins.len() < 4 { 1e-12 } else { 1e-10 };
                    assert!((integral / want - 1.0).abs() < tolerance, "{bins:?} {powers:?}: {integral} {want}");
                }
            }
        }
    }

    #[test]
    fn all_layouts_agree_and_gradients_are_derivatives() {
        let mut stream = Stream::new(6, 0);
        for (constraint, bins) in cases() {
            let form = BinForm::compile(&mesh(&constraint, &bins), &[]).unwrap();
            let lengths: Vec<usize> = bins.iter().map(|bins| SQUARE * bins).collect();
            let dense = form.dense(&lengths).unwrap();
            let coefficients = cubics(&bins, &mut stream);
            let mut squares = vec![Lanes::zero(); form.plan().length()];
            form.fill(&[&coefficients], &mut squares);
            let contracted = |values: &dyn Fn(usize) -> f64| {
                let mut sum = 0.0;
                for (at, entry) in dense.iter().enumerate() {
                    let (mut rest, mut product, mut end) = (at, *entry, form.plan().length());
                    for length in lengths.iter().rev() {
                        end -= length;
                        product *= values(end + rest % length);
                        rest /= length;
                    }
                    sum += product;
                }
                sum
            };
            let want = contracted(&|at| squares[at].0[0]);
            let mut gradient = vec![Lanes::zero(); squares.len()];
            let got = dispatch(Gradients { form: &form, squares: &squares, gradient: &mut gradient }).0[0];
            assert!((got / want - 1.0).abs() < 1e-12, "{bins:?}: {got} {want}");
            // A form is linear in the squares of one axis: the derivative is the difference to one without them.
            for at in [0, squares.len() / 2, squares.len() - 1] {
                let without = contracted(&|k| if k == at { 0.0 } else { squares[k].0[0] });
                let derivative = gradient[at].0[0] * squares[at].0[0];
                assert!((derivative - (want - without)).abs() < 1e-12 * want.abs(), "{bins:?} {at}");
            }
            let nodes: BinForm<f64> = nodes::form(&form);
            let ones = vec![Lanes::splat(1.0); nodes.plan().length()];
            let volume = dispatch(Integrals { form: &nodes, squares: &ones }).0[0];
            assert!((volume / form.volume() - 1.0).abs() < 1e-12, "{bins:?}: {volume}");
        }
    }

    /// A diagonal wall cuts all bins along it in the same two ways.
    #[test]
    fn bins_that_are_cut_alike_share_a_table() {
        let [x, y] = reals(["x", "y"]);
        let constraint = x.between(0, 1) & y.between(0, 1) & (&x + &y).le(rational(21, 20));
        let form = BinForm::compile(&mesh(&constraint.into(), &[10, 10]), &[]).unwrap();
        assert_eq!((form.cut.len(), form.tables.len()), (19, 2 * SQUARE * SQUARE));
    }
}
