//! The bounding box of a region cut into bins, and local coordinates in them.
//!
//! A density family is polynomial on every bin. Inside a bin everything is computed in local coordinates `t` in [0, 1] per axis, which
//! come from exact vertices: a bin that is narrow and far from the origin loses no digits.

use crate::number::{self, Rational};

/// Which bin of an axis: the bins are counted from 0 at the lower end. A bin of the grid is a list of these, one per axis.
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
    /// The edges in doubles, and what is left of them after rounding.
    rounded: Vec<(f64, f64)>,
    widths: Vec<f64>,
    length: f64,
    /// Lower ends of the bins as parts of the length.
    starts: Vec<f64>,
}

impl Axis {
    /// Bins between consecutive edges, which must increase. `None` if there are fewer than two or if a bin is narrower than doubles can tell.
    pub(crate) fn new(edges: Vec<Rational>) -> Option<Axis> {
        if edges.len() < 2 || edges.windows(2).any(|pair| pair[0] >= pair[1]) {
            return None;
        }
        let rounded: Vec<(f64, f64)> = edges
            .iter()
            .map(|edge| {
                let near = number::to_f64(edge);
                let rest = number::from_f64(near).map_or(0.0, |near| number::to_f64(&(edge - near)));
                (near, rest)
            })
            .collect();
        let widths: Vec<f64> = edges.windows(2).map(|pair| number::to_f64(&(&pair[1] - &pair[0]))).collect();
        let length = number::to_f64(&(&edges[edges.len() - 1] - &edges[0]));
        let sound = rounded.iter().all(|(near, _)| near.is_finite())
            && widths.iter().chain([&length]).all(|width| width.is_normal());
        let whole = &edges[edges.len() - 1] - &edges[0];
        let starts = edges.iter().map(|edge| number::to_f64(&((edge - &edges[0]) / &whole))).collect();
        sound.then_some(Axis { edges, rounded, widths, length, starts })
    }

    /// Ends of the bins: one more than there are bins.
    pub fn edges(&self) -> &[Rational] {
        &self.edges
    }

    /// Ends of the bins in doubles.
    pub fn positions(&self) -> Vec<f64> {
        self.rounded.iter().map(|(near, _)| *near).collect()
    }

    /// What is left of the ends of the bins after rounding them to doubles.
    pub fn rests(&self) -> Vec<f64> {
        self.rounded.iter().map(|(_, rest)| *rest).collect()
    }

    /// How many bins there are.
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

    /// The whole length of the axis.
    pub(crate) fn length(&self) -> f64 {
        self.length
    }

    /// How far along the axis a local coordinate lies: 0 at its lower end, 1 at its upper end.
    pub(crate) fn share(&self, bin: BinIndex, t: f64) -> f64 {
        self.starts[bin.get()] + t * (self.width(bin) / self.length)
    }

    /// The position so far along the axis, rounded.
    pub(crate) fn at_share(&self, share: f64) -> f64 {
        let (near, rest) = self.rounded[0];
        near + (rest + share * self.length)
    }

    /// The bin of a position; beyond the ends, the first or last.
    pub fn bin_of(&self, y: f64) -> BinIndex {
        let inner = &self.rounded[1..self.rounded.len() - 1];
        BinIndex::new(inner.partition_point(|(near, rest)| (y - near) - rest >= 0.0))
    }

    /// The local coordinate of a position in a bin.
    pub fn local(&self, bin: BinIndex, y: f64) -> f64 {
        let (near, rest) = self.rounded[bin.get()];
        ((y - near) - rest) / self.width(bin)
    }

    /// The position of a local coordinate, rounded.
    pub fn global(&self, bin: BinIndex, t: f64) -> f64 {
        // From the nearer end, so that both ends are met.
        if t <= 0.5 {
            let (near, rest) = self.rounded[bin.get()];
            near + (rest + t * self.width(bin))
        } else {
            let (near, rest) = self.rounded[bin.get() + 1];
            near + (rest - (1.0 - t) * self.width(bin))
        }
    }
}

/// The box of a region cut into bins along every axis.
#[derive(Clone, Debug)]
pub struct Grid {
    axes: Vec<Axis>,
}

impl Grid {
    pub(crate) fn new(axes: Vec<Axis>) -> Grid {
        Grid { axes }
    }

    /// The axes.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// The number of axes.
    pub fn dimension(&self) -> usize {
        self.axes.len()
    }

    /// How many bins there are in all.
    pub fn bins(&self) -> usize {
        self.axes.iter().map(Axis::bins).product()
    }

    /// The logarithm of the volume of the whole box.
    pub fn log_volume(&self) -> f64 {
        self.axes.iter().map(|axis| axis.length().ln()).sum()
    }

    /// The part of the whole box that a bin fills.
    pub(crate) fn share(&self, bin: &[BinIndex]) -> f64 {
        self.axes.iter().zip(bin).map(|(axis, b)| axis.width(*b) / axis.length()).product()
    }

    /// A monomial in coordinates that run from 0 to 1 over the whole box.
    pub(crate) fn monomial(&self, bin: &[BinIndex], t: &[f64], powers: &[u16]) -> f64 {
        let parts = powers.iter().enumerate().filter(|(_, power)| **power > 0);
        parts.map(|(j, power)| self.axes[j].share(bin[j], t[j]).powi(i32::from(*power))).product()
    }

    /// The bin of a point and its coordinates there.
    pub(crate) fn locate(&self, point: &[f64], bin: &mut [BinIndex], t: &mut [f64]) {
        for (((axis, y), bin), t) in self.axes.iter().zip(point).zip(bin).zip(t) {
            let b = axis.bin_of(*y);
            (*bin, *t) = (b, axis.local(b, *y));
        }
    }

    /// What a partial derivative with respect to local coordinates of a bin is multiplied by to be one with respect to coordinates.
    pub(crate) fn slope(&self, bin: &[BinIndex], orders: &[u16]) -> f64 {
        let axes = self.axes.iter().zip(bin).zip(orders);
        axes.map(|((axis, b), order)| axis.width(*b).powi(-i32::from(*order))).product()
    }

    /// Whether local coordinates that were located lie in their bin: a constraint may have parts without volume outside of the box.
    pub(crate) fn covers(t: &[f64]) -> bool {
        t.iter().all(|t| (-1e-9..=1.0 + 1e-9).contains(t))
    }

    /// The same for a point that was not located: whether it lies in the box.
    pub(crate) fn surrounds(&self, point: &[f64]) -> bool {
        let slack = 1e-9;
        let within = |(axis, y): (&Axis, &f64)| {
            *y >= axis.global(BinIndex::default(), -slack) && *y <= axis.global(axis.last_bin(), 1.0 + slack)
        };
        self.axes.iter().zip(point).all(within)
    }

    /// The point at local coordinates of a bin, rounded.
    pub(crate) fn place(&self, bin: &[BinIndex], t: &[f64], point: &mut [f64]) {
        for (((axis, b), t), y) in self.axes.iter().zip(bin).zip(t).zip(point) {
            *y = axis.global(*b, *t);
        }
    }
}
