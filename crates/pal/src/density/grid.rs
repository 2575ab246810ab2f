//! The bounding box of a region cut into bins, and local coordinates in the bins.
//!
//! A density family is a polynomial on every bin. Inside a bin everything is computed in local coordinates `t`, which
//! run from 0 to 1 along every axis and come from exact vertices: a bin that is narrow and far from the origin loses no
//! digits.

use crate::number::{self, Rational};

/// Which bin of an axis, counted from 0 at the lower end. A bin of the grid is a list of these, one per axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BinIndex(u32);

impl BinIndex {
    /// The bin number `index` of an axis.
    ///
    /// # Panics
    ///
    /// If the index does not fit into 32 bits: regions cannot be cut at that many knots.
    pub fn new(index: usize) -> BinIndex {
        BinIndex(u32::try_from(index).expect("an axis has fewer than 2^32 bins"))
    }

    /// The position of the bin on its axis.
    pub fn get(self) -> usize {
        self.0 as usize
    }

    /// The bin below this one, if there is one.
    pub fn below(self) -> Option<BinIndex> {
        self.0.checked_sub(1).map(BinIndex)
    }
}

/// One axis cut into bins.
#[derive(Clone, Debug)]
pub struct Axis {
    edges: Vec<Rational>,
    /// The edges as double-doubles: the edge rounded to float64, and the low part that rounding leaves.
    rounded: Vec<(f64, f64)>,
    widths: Vec<f64>,
    length: f64,
    /// Edges as fractions of the length of the axis, from 0 to 1.
    starts: Vec<f64>,
}

impl Axis {
    /// Bins between consecutive edges, which must increase. `None` if there are fewer than two edges, or if float64
    /// cannot represent an edge or the width of a bin.
    pub(crate) fn new(edges: Vec<Rational>) -> Option<Axis> {
        if edges.len() < 2 || edges.windows(2).any(|pair| pair[0] >= pair[1]) {
            return None;
        }
        let double_double = |edge: &Rational| {
            let high = number::to_f64(edge);
            let exact = number::from_f64(high).ok()?;
            Some((high, number::to_f64(&(edge - exact))))
        };
        let rounded: Vec<(f64, f64)> = edges.iter().map(double_double).collect::<Option<_>>()?;
        let widths: Vec<f64> = edges.windows(2).map(|pair| number::to_f64(&(&pair[1] - &pair[0]))).collect();
        let exact_length = &edges[edges.len() - 1] - &edges[0];
        let length = number::to_f64(&exact_length);
        if !widths.iter().chain([&length]).all(|width| width.is_normal()) {
            return None;
        }
        let starts = edges.iter().map(|edge| number::to_f64(&((edge - &edges[0]) / &exact_length))).collect();
        Some(Axis { edges, rounded, widths, length, starts })
    }

    /// The ends of the bins: one more than there are bins.
    pub fn edges(&self) -> &[Rational] {
        &self.edges
    }

    /// The ends of the bins, rounded to float64.
    pub fn positions(&self) -> Vec<f64> {
        self.rounded.iter().map(|(high, _)| *high).collect()
    }

    /// The low parts of the ends of the bins: what rounding them to float64 leaves.
    pub fn low_parts(&self) -> Vec<f64> {
        self.rounded.iter().map(|(_, low)| *low).collect()
    }

    /// The number of bins.
    pub fn bins(&self) -> usize {
        self.widths.len()
    }

    /// The indices of all bins, from the lower end of the axis to the upper one.
    pub fn bin_indices(&self) -> impl ExactSizeIterator<Item = BinIndex> + use<> {
        (0..self.bins() as u32).map(BinIndex)
    }

    fn last_bin(&self) -> BinIndex {
        BinIndex::new(self.bins() - 1)
    }

    /// The width of a bin.
    pub fn width(&self, bin: BinIndex) -> f64 {
        self.widths[bin.get()]
    }

    /// The length of the axis: the sum of the widths of its bins.
    pub(crate) fn length(&self) -> f64 {
        self.length
    }

    /// The distance between float64 numbers at the end of the axis that is farther from 0.
    pub(crate) fn float64_spacing(&self) -> f64 {
        let farther = self.rounded[0].0.abs().max(self.rounded[self.bins()].0.abs());
        farther - farther.next_down()
    }

    /// The width of a bin as a fraction of the length of the axis.
    pub(crate) fn width_fraction(&self, bin: BinIndex) -> f64 {
        self.width(bin) / self.length
    }

    /// The distance of a local coordinate from the lower end of the axis, as a fraction of the length of the axis.
    pub(crate) fn fraction(&self, bin: BinIndex, t: f64) -> f64 {
        self.starts[bin.get()] + t * self.width_fraction(bin)
    }

    /// The ends of the bins as fractions of the length of the axis, from 0 to 1.
    pub(crate) fn edge_fractions(&self) -> &[f64] {
        &self.starts
    }

    /// The position at a fraction of the axis, rounded: the lower end at 0, the upper end at 1.
    pub(crate) fn at_fraction(&self, fraction: f64) -> f64 {
        let (high, low) = self.rounded[0];
        high + (low + fraction * self.length)
    }

    /// The bin that contains a position; the first or last bin for positions beyond the ends. A position on an edge is
    /// in the bin above it.
    pub fn bin_of(&self, y: f64) -> BinIndex {
        let inner = &self.rounded[1..self.rounded.len() - 1];
        BinIndex::new(inner.partition_point(|(high, low)| (y - high) - low >= 0.0))
    }

    /// Whether a position lies between both ends of the axis, exactly: the difference of a float64 to the nearest one
    /// of an end is exact where it is small, and the low part of the end decides what is left.
    pub(crate) fn contains(&self, y: f64) -> bool {
        let beyond = |(high, low): (f64, f64)| (y - high) - low;
        beyond(self.rounded[0]) >= 0.0 && beyond(self.rounded[self.bins()]) <= 0.0
    }

    /// The local coordinate of a position in a bin.
    pub fn local(&self, bin: BinIndex, y: f64) -> f64 {
        let (high, low) = self.rounded[bin.get()];
        ((y - high) - low) / self.width(bin)
    }

    /// The position of a local coordinate of a bin, rounded.
    pub fn global(&self, bin: BinIndex, t: f64) -> f64 {
        // From the nearer end, so that both ends are met.
        if t <= 0.5 {
            let (high, low) = self.rounded[bin.get()];
            high + (low + t * self.width(bin))
        } else {
            let (high, low) = self.rounded[bin.get() + 1];
            high + (low - (1.0 - t) * self.width(bin))
        }
    }
}

/// Local coordinates this far outside of [0, 1] are taken to be rounded ones from inside.
const LOCAL_SLACK: f64 = 1e-9;

/// The box of a region cut into bins along every axis.
#[derive(Clone, Debug)]
pub struct Grid {
    axes: Vec<Axis>,
}

impl Grid {
    pub(crate) fn new(axes: Vec<Axis>) -> Grid {
        Grid { axes }
    }

    /// The axes, one per variable.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The number of axes.
    pub fn dimension(&self) -> usize {
        self.axes.len()
    }

    /// The number of bins of the grid: the product over all axes.
    pub fn bins(&self) -> usize {
        self.axes.iter().map(Axis::bins).product()
    }

    /// The logarithm of the volume of the box.
    pub fn log_volume(&self) -> f64 {
        self.axes.iter().map(|axis| axis.length().ln()).sum()
    }

    /// The volume of a bin as a fraction of the volume of the box.
    pub(crate) fn bin_fraction(&self, bin: &[BinIndex]) -> f64 {
        self.axes.iter().zip(bin).map(|(axis, b)| axis.width_fraction(*b)).product()
    }

    /// The value of a monomial in coordinates that run from 0 to 1 over the box, at local coordinates of a bin.
    pub(crate) fn monomial(&self, bin: &[BinIndex], t: &[f64], powers: &[u16]) -> f64 {
        let factors = powers.iter().enumerate().filter(|(_, power)| **power > 0);
        factors.map(|(j, power)| self.axes[j].fraction(bin[j], t[j]).powi(i32::from(*power))).product()
    }

    /// Computes the bin that contains a point and the local coordinates of the point in that bin.
    pub(crate) fn locate(&self, point: &[f64], bin: &mut [BinIndex], t: &mut [f64]) {
        for (((axis, y), bin), t) in self.axes.iter().zip(point).zip(bin).zip(t) {
            let b = axis.bin_of(*y);
            (*bin, *t) = (b, axis.local(b, *y));
        }
    }

    /// The factor that turns a partial derivative with respect to local coordinates of a bin, of one order per axis,
    /// into the one with respect to the coordinates of the user.
    pub(crate) fn derivative_scale(&self, bin: &[BinIndex], orders: &[u16]) -> f64 {
        let axes = self.axes.iter().zip(bin).zip(orders);
        axes.map(|((axis, b), order)| axis.width(*b).powi(-i32::from(*order))).product()
    }

    /// Whether local coordinates from [`Grid::locate`] lie in their bin. They do not for points outside of the box,
    /// where a constraint may have parts without volume.
    pub(crate) fn in_bin(t: &[f64]) -> bool {
        t.iter().all(|t| (-LOCAL_SLACK..=1.0 + LOCAL_SLACK).contains(t))
    }

    /// Whether a point lies in the box, up to rounding.
    pub(crate) fn box_contains(&self, point: &[f64]) -> bool {
        let within = |(axis, y): (&Axis, &f64)| {
            let first = BinIndex::default();
            (axis.global(first, -LOCAL_SLACK)..=axis.global(axis.last_bin(), 1.0 + LOCAL_SLACK)).contains(y)
        };
        self.axes.iter().zip(point).all(within)
    }

    /// Computes the point at local coordinates of a bin, rounded.
    pub(crate) fn point_at(&self, bin: &[BinIndex], t: &[f64], point: &mut [f64]) {
        for (((axis, b), t), y) in self.axes.iter().zip(bin).zip(t).zip(point) {
            *y = axis.global(*b, *t);
        }
    }
}
