//! The sums of forms and their gradients, for one component per lane.
//!
//! The set that is integrated over may have parts, each with a factor of its own: with `P_g` the factors and `I_g` the
//! integrals over the parts, the sum is `Z = sum_g P_g I_g`, and the `I_g` are its derivatives with respect to the
//! factors. What parts share, squares and integrals along intervals, is computed once.
//!
//! Boxes are summed as nested sums, `sum_i a_i (sum_j b_j (..))`, over the integrals along their sides. Cut bins are
//! grouped by their table and by their bins along the last axes. With X the sum over the members of a group of the
//! products of squares along the first axes, and y the products along the last ones, a group adds `X . M y`: the
//! product with the table, the most expensive step, is done once for all members. In the plane, groups of one member,
//! which most of them are, go row by row of the grid instead: what a row shares stays in registers.
//!
//! Loops are plain `for` loops rather than closures: what is not inlined is not compiled for the widest registers.

use std::ops::Range;

use super::form::{BoxPart, BoxSide, CutBin};
use super::hermite::SQUARE;
use super::plane::{PlaneBin, PlaneRows};
use crate::density::lanes::{Lanes, Real, Simd, one_by_one};

/// The largest number of products of squares along half of the axes: 7 along each of two.
const MAX_PRODUCTS: usize = SQUARE * SQUARE;

/// Everything that sums need besides the tables, in the order in which they need it.
#[derive(Clone, Debug)]
pub(super) struct Contraction<T> {
    /// Where the squares of every axis start.
    starts: Vec<usize>,
    /// The number of squares of all axes.
    length: usize,
    /// All intervals of all axes: where the squares of their bin are, and the means.
    intervals: Vec<(usize, [T; SQUARE])>,
    /// The nested sums over boxes: one level per axis.
    levels: Vec<Vec<Nested<T>>>,
    /// Where the terms of every part end on the first level; they start where those of the part before it end.
    ends: Vec<usize>,
    groups: Vec<CutGroup>,
    /// Which of the groups are summed as such, and the cut bins of all others by their bin along the first axis.
    grouped: Vec<usize>,
    plane: PlaneRows,
    /// The number of axes whose products are summed over the members of a group.
    leading: usize,
    /// For the members of all groups one place of squares per leading axis.
    members: Vec<usize>,
    /// For the members of all groups which cut bin they are.
    cut: Vec<usize>,
}

/// What a form sums over in one part of a set.
#[derive(Clone, Copy, Debug)]
pub(super) struct FormPart<'f, T> {
    /// In lexicographic order of their sides.
    pub boxes: &'f [BoxPart<T>],
    pub cut: &'f [CutBin],
    /// For each cut bin the part that has what is left of it, and the whole bin as a box; all `None` if empty.
    pub rests: &'f [Option<usize>],
}

/// A part, and the one that has what it leaves of a bin.
type PartAndRest = (usize, Option<usize>);

impl<T> FormPart<'_, T> {
    /// The cut bins, each with the part that has the rest.
    fn entries(&self) -> impl Iterator<Item = (Option<usize>, &CutBin)> {
        self.cut.iter().enumerate().map(|(k, cut)| (self.rests.get(k).copied().flatten(), cut))
    }
}

/// One term of a nested sum: an interval of its axis, times the sum over its children.
#[derive(Clone, Debug)]
struct Nested<T> {
    /// Which interval, among those of all axes.
    interval: usize,
    /// Where its children end in the next level; they start where those of the term before it end.
    end: usize,
    /// The volume of the box, on the last level.
    volume: T,
}

/// Cut bins of one part with the same table and the same bins along the last axes.
#[derive(Clone, Debug)]
struct CutGroup {
    part: usize,
    /// The part that has what is left of these bins.
    rest: Option<usize>,
    table: usize,
    /// One place of squares per axis; there are one or two of them, and the first is repeated if there is one.
    trailing: [usize; 2],
    members: Range<usize>,
}

impl CutGroup {
    /// The factor of the integral over the group.
    #[inline(always)]
    fn factor<T: Real>(&self, parts: &[Lanes<T>]) -> Lanes<T> {
        match self.rest {
            None => parts[self.part],
            Some(rest) => parts[self.part] - parts[rest],
        }
    }

    /// Adds the integral over the group to that of its part.
    #[inline(always)]
    fn add<T: Real>(&self, integral: Lanes<T>, integrals: &mut [Lanes<T>]) {
        integrals[self.part] += integral;
        if let Some(rest) = self.rest {
            integrals[rest] = integrals[rest] - integral;
        }
    }
}

/// Memory for one evaluation.
pub(super) struct FormWork<T> {
    /// The factors of all parts. Ones, until others are written here.
    pub parts: Vec<Lanes<T>>,
    /// The integrals over all parts, without these factors.
    pub integrals: Vec<Lanes<T>>,
    /// The integrals along all intervals, and the derivatives with respect to them.
    sides: Vec<Lanes<T>>,
    side_derivatives: Vec<Lanes<T>>,
    /// The sums over the children of every term, and the factors in front of the terms, level by level.
    sums: Vec<Vec<Lanes<T>>>,
    factors: Vec<Vec<Lanes<T>>>,
    cut: Box<Scratch<T>>,
}

impl<T: Real> Contraction<T> {
    pub fn new(
        bins: &[usize],
        step: usize,
        intervals: &[Vec<BoxSide<T>>],
        parts: &[FormPart<'_, T>],
    ) -> Contraction<T> {
        let n = bins.len();
        // With a step of 6 the last knot of an axis has a number that belongs to no further bin.
        let lengths = bins.iter().map(|bins| step * bins + SQUARE - step);
        let (mut starts, mut length) = (Vec::new(), 0);
        for own in lengths {
            starts.push(length);
            length += own;
        }
        let (mut all, mut firsts) = (Vec::new(), Vec::new());
        for (start, axis) in starts.iter().zip(intervals) {
            firsts.push(all.len());
            all.extend(axis.iter().map(|interval| (start + interval.bin.get() * step, interval.means)));
        }
        let (mut levels, mut ends): (Vec<Vec<Nested<T>>>, Vec<usize>) = (vec![Vec::new(); n], Vec::new());
        for FormPart { boxes, .. } in parts {
            for (k, part) in boxes.iter().enumerate() {
                // From which axis on the box differs from the one before it.
                let new = match k.checked_sub(1).map(|k| &boxes[k]) {
                    Some(last) => part.sides.iter().zip(&last.sides).take_while(|(a, b)| a == b).count(),
                    None => 0,
                };
                for axis in new.min(n - 1)..n {
                    let interval = firsts[axis] + part.sides[axis] as usize;
                    levels[axis].push(Nested { interval, end: 0, volume: part.volume });
                }
                for axis in 0..n - 1 {
                    let end = levels[axis + 1].len();
                    levels[axis].last_mut().expect("every level has a term once there is a box").end = end;
                }
            }
            ends.push(levels[0].len());
        }
        let leading = (n / 2).max(1);
        let place = |axis: usize, cut: &CutBin| starts[axis] + cut.bin[axis].get() * step;
        let trailing = |cut: &CutBin| match n - leading {
            0 => [0, 0],
            1 => [place(leading, cut); 2],
            _ => [place(leading, cut), place(leading + 1, cut)],
        };
        let entries = parts.iter().enumerate();
        let entries = entries.flat_map(|(part, own)| own.entries().map(move |(rest, cut)| ((part, rest), cut)));
        let mut order: Vec<(usize, (PartAndRest, &CutBin))> = entries.enumerate().collect();
        let key = |(parts, cut): &(PartAndRest, &CutBin)| (*parts, cut.table, trailing(cut));
        order.sort_by_key(|(_, cut)| key(cut));
        let (mut groups, mut members) = (Vec::new(), Vec::new());
        for group in order.chunk_by(|(_, a), (_, b)| key(a) == key(b)) {
            let start = members.len();
            members.extend(group.iter().flat_map(|(_, (_, cut))| (0..leading).map(|axis| place(axis, cut))));
            let ((part, rest), table, trailing) = key(&group[0].1);
            groups.push(CutGroup { part, rest, table: table as usize, trailing, members: start..members.len() });
        }
        let cut = order.iter().map(|(index, _)| *index).collect();
        let alone = |group: &CutGroup| n == 2 && group.members.len() == 1;
        let grouped = (0..groups.len()).filter(|k| !alone(&groups[*k])).collect();
        let singles = groups.iter().filter(|group| alone(group));
        let single = |group: &CutGroup| PlaneBin {
            part: group.part,
            rest: group.rest,
            leading: members[group.members.start],
            trailing: group.trailing[0],
            table: group.table,
        };
        let plane = PlaneRows::new(singles.map(single).collect());
        Contraction { starts, length, intervals: all, levels, ends, groups, grouped, plane, leading, members, cut }
    }

    /// The number of squares of all axes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Where the squares of every axis start.
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// Memory for [`Contraction::integral`] and [`Contraction::integral_with_gradient`].
    pub fn work(&self) -> FormWork<T> {
        // The last level has no children and needs neither.
        let inner = |k: usize, level: &[Nested<T>]| if k + 1 < self.levels.len().max(2) { level.len() } else { 0 };
        let levels = || self.levels.iter().enumerate().map(|(k, level)| vec![Lanes::zero(); inner(k, level)]).collect();
        FormWork {
            parts: vec![Lanes::splat(T::from_f64(1.0)); self.ends.len()],
            integrals: vec![Lanes::zero(); self.ends.len()],
            sides: vec![Lanes::zero(); self.intervals.len()],
            side_derivatives: vec![Lanes::zero(); self.intervals.len()],
            sums: levels(),
            factors: levels(),
            cut: Box::new(Scratch::new()),
        }
    }

    /// The integrals of the products of squares over all parts, with the factors in `work`.
    #[inline(always)]
    pub fn integral<S: Simd>(&self, simd: S, tables: &[T], squares: &[Lanes<T>], work: &mut FormWork<T>) -> Lanes<T> {
        self.boxes(squares, work);
        self.plane.sum(simd, tables, squares, &mut work.integrals);
        let scratch = &mut *work.cut;
        for group in self.grouped.iter().map(|k| &self.groups[*k]) {
            let (rows, columns) = self.load(group, squares, scratch);
            let table = &tables[group.table * rows * columns..][..rows * columns];
            times(table, &scratch.y[..columns], &mut scratch.v[..rows]);
            let mut integral = Lanes::zero();
            for (x, v) in scratch.x[..rows].iter().zip(&scratch.v[..rows]) {
                integral.add_product(*x, *v);
            }
            group.add(integral, &mut work.integrals);
        }
        total(&work.parts, &work.integrals)
    }

    /// The integrals, and their derivatives with respect to the squares, which are added to `gradient`.
    #[inline(always)]
    pub fn integral_with_gradient<S: Simd>(
        &self,
        simd: S,
        tables: &[T],
        squares: &[Lanes<T>],
        gradient: &mut [Lanes<T>],
        work: &mut FormWork<T>,
    ) -> Lanes<T> {
        self.boxes(squares, work);
        self.box_gradient(gradient, work);
        self.plane.sum_with_gradient(simd, tables, squares, &work.parts, &mut work.integrals, gradient);
        let scratch = &mut *work.cut;
        for group in self.grouped.iter().map(|k| &self.groups[*k]) {
            let (rows, columns) = self.load(group, squares, scratch);
            let table = &tables[group.table * rows * columns..][..rows * columns];
            let Scratch { x, y, v, u } = scratch;
            times(table, &y[..columns], &mut v[..rows]);
            let (mut integral, factor) = (Lanes::zero(), group.factor(&work.parts));
            for (x, v) in x[..rows].iter_mut().zip(&mut v[..rows]) {
                integral.add_product(*x, *v);
                *x = *x * factor;
                *v = *v * factor;
            }
            group.add(integral, &mut work.integrals);
            transposed_times(table, &x[..rows], &mut u[..columns]);
            let [first, second] = group.trailing;
            if columns == SQUARE {
                add(&mut gradient[first..first + SQUARE], u);
            } else {
                add_factors(u, squares, first, second, gradient);
            }
            let members = &self.members[group.members.clone()];
            if self.leading == 1 {
                for place in members {
                    add(&mut gradient[*place..place + SQUARE], v);
                }
            } else {
                for places in members.chunks_exact(2) {
                    add_factors(v, squares, places[0], places[1], gradient);
                }
            }
        }
        total(&work.parts, &work.integrals)
    }

    /// The integrals over every cut bin by itself, in the order of the bins.
    #[inline(always)]
    pub fn cut_integrals(&self, tables: &[T], squares: &[Lanes<T>], out: &mut [Lanes<T>]) {
        let mut scratch = Scratch::new();
        let mut numbers = self.cut.iter();
        for group in &self.groups {
            let (rows, columns) = self.load_trailing(group, squares, &mut scratch);
            let table = &tables[group.table * rows * columns..][..rows * columns];
            times(table, &scratch.y[..columns], &mut scratch.v[..rows]);
            let members = self.members[group.members.clone()].chunks_exact(self.leading);
            for (places, number) in members.zip(&mut numbers) {
                let mut sum = Lanes::zero();
                if let [first, second] = places {
                    products(squares, *first, *second, &mut scratch.x);
                    for (x, v) in scratch.x.iter().zip(&scratch.v) {
                        sum.add_product(*x, *v);
                    }
                } else {
                    for (x, v) in squares[places[0]..places[0] + SQUARE].iter().zip(&scratch.v) {
                        sum.add_product(*x, *v);
                    }
                }
                out[*number] = sum;
            }
        }
    }

    /// The sums over the boxes of every part.
    #[inline(always)]
    fn boxes(&self, squares: &[Lanes<T>], work: &mut FormWork<T>) {
        for ((place, means), side) in self.intervals.iter().zip(&mut work.sides) {
            let (mut sum, squares) = (Lanes::zero(), one_by_one(squares));
            for (square, mean) in squares[*place..place + SQUARE].iter().zip(means) {
                sum.add_times(*square, *mean);
            }
            *side = sum;
        }
        let last = self.levels.len() - 1;
        if last == 0 {
            let mut start = 0;
            for (end, integral) in self.ends.iter().zip(&mut work.integrals) {
                *integral = Lanes::zero();
                for term in &self.levels[0][start..*end] {
                    integral.add_times(work.sides[term.interval], term.volume);
                }
                start = *end;
            }
            return;
        }
        for axis in (0..last).rev() {
            let (here, below) = work.sums.split_at_mut(axis + 1);
            let mut start = 0;
            for (term, sum) in self.levels[axis].iter().zip(&mut here[axis]) {
                let mut total = Lanes::zero();
                let children = &self.levels[axis + 1][start..term.end];
                if axis + 1 == last {
                    for child in children {
                        total.add_times(work.sides[child.interval], child.volume);
                    }
                } else {
                    for (child, sum) in children.iter().zip(&below[0][start..term.end]) {
                        total.add_product(work.sides[child.interval], *sum);
                    }
                }
                *sum = total;
                start = term.end;
            }
        }
        let mut start = 0;
        for (end, integral) in self.ends.iter().zip(&mut work.integrals) {
            *integral = Lanes::zero();
            for (term, sum) in self.levels[0][start..*end].iter().zip(&work.sums[0][start..*end]) {
                integral.add_product(work.sides[term.interval], *sum);
            }
            start = *end;
        }
    }

    /// Adds the derivatives of the sum over boxes, after [`Contraction::boxes`].
    #[inline(always)]
    fn box_gradient(&self, gradient: &mut [Lanes<T>], work: &mut FormWork<T>) {
        work.side_derivatives.fill(Lanes::zero());
        let last = self.levels.len() - 1;
        let mut start = 0;
        for (end, factor) in self.ends.iter().zip(&work.parts) {
            if last == 0 {
                for term in &self.levels[0][start..*end] {
                    work.side_derivatives[term.interval].add_times(*factor, term.volume);
                }
            } else {
                work.factors[0][start..*end].fill(*factor);
            }
            start = *end;
        }
        for axis in 0..last {
            let (here, below) = work.factors.split_at_mut(axis + 1);
            let mut start = 0;
            for (k, term) in self.levels[axis].iter().enumerate() {
                let factor = here[axis][k];
                work.side_derivatives[term.interval].add_product(factor, work.sums[axis][k]);
                let inner = factor * work.sides[term.interval];
                if axis + 1 < last {
                    below[0][start..term.end].fill(inner);
                } else {
                    for child in &self.levels[last][start..term.end] {
                        work.side_derivatives[child.interval].add_times(inner, child.volume);
                    }
                }
                start = term.end;
            }
        }
        for ((place, means), derivative) in self.intervals.iter().zip(&work.side_derivatives) {
            let derivative = one_by_one(derivative);
            for (gradient, mean) in gradient[*place..place + SQUARE].iter_mut().zip(means) {
                let gradient = one_by_one(gradient);
                gradient.add_times(*derivative, *mean);
            }
        }
    }

    /// The products of a group: `y` along the last axes, and `x` along the first ones, summed over members. Returns
    /// their lengths.
    #[inline(always)]
    fn load(&self, group: &CutGroup, squares: &[Lanes<T>], scratch: &mut Scratch<T>) -> (usize, usize) {
        let lengths = self.load_trailing(group, squares, scratch);
        let members = &self.members[group.members.clone()];
        if self.leading == 1 {
            scratch.x[..SQUARE].copy_from_slice(&squares[members[0]..members[0] + SQUARE]);
            for place in &members[1..] {
                add_slice(&mut scratch.x[..SQUARE], &squares[*place..place + SQUARE]);
            }
            return lengths;
        }
        products(squares, members[0], members[1], &mut scratch.x);
        for places in members[2..].chunks_exact(2) {
            add_products(squares, places[0], places[1], &mut scratch.x);
        }
        lengths
    }

    /// The products of a group along the last axes alone.
    #[inline(always)]
    fn load_trailing(&self, group: &CutGroup, squares: &[Lanes<T>], scratch: &mut Scratch<T>) -> (usize, usize) {
        let rows = if self.leading == 1 { SQUARE } else { MAX_PRODUCTS };
        let [first, second] = group.trailing;
        if first == second {
            scratch.y[..SQUARE].copy_from_slice(&squares[first..first + SQUARE]);
            (rows, SQUARE)
        } else {
            products(squares, first, second, &mut scratch.y);
            (rows, MAX_PRODUCTS)
        }
    }
}

/// The sum over parts of their integrals times their factors.
#[inline(always)]
fn total<T: Real>(factors: &[Lanes<T>], integrals: &[Lanes<T>]) -> Lanes<T> {
    let mut total = Lanes::zero();
    for (factor, integral) in factors.iter().zip(integrals) {
        total.add_product(*factor, *integral);
    }
    total
}

struct Scratch<T> {
    x: [Lanes<T>; MAX_PRODUCTS],
    y: [Lanes<T>; MAX_PRODUCTS],
    /// The table times y.
    v: [Lanes<T>; MAX_PRODUCTS],
    /// The transposed table times x.
    u: [Lanes<T>; MAX_PRODUCTS],
}

impl<T: Real> Scratch<T> {
    #[inline(always)]
    fn new() -> Scratch<T> {
        let zeros = [Lanes::zero(); MAX_PRODUCTS];
        Scratch { x: zeros, y: zeros, v: zeros, u: zeros }
    }
}

/// All products of seven squares by seven others.
#[inline(always)]
fn products<T: Real>(squares: &[Lanes<T>], first: usize, second: usize, out: &mut [Lanes<T>; MAX_PRODUCTS]) {
    for (a, out) in squares[first..first + SQUARE].iter().zip(out.chunks_exact_mut(SQUARE)) {
        for (b, out) in squares[second..second + SQUARE].iter().zip(out) {
            *out = *a * *b;
        }
    }
}

#[inline(always)]
fn add_products<T: Real>(squares: &[Lanes<T>], first: usize, second: usize, out: &mut [Lanes<T>; MAX_PRODUCTS]) {
    for (a, out) in squares[first..first + SQUARE].iter().zip(out.chunks_exact_mut(SQUARE)) {
        for (b, out) in squares[second..second + SQUARE].iter().zip(out) {
            out.add_product(*a, *b);
        }
    }
}

/// From derivatives with respect to [`products`] to those with respect to the factors.
#[inline(always)]
fn add_factors<T: Real>(
    derivatives: &[Lanes<T>; MAX_PRODUCTS],
    squares: &[Lanes<T>],
    first: usize,
    second: usize,
    gradient: &mut [Lanes<T>],
) {
    for (i, row) in derivatives.chunks_exact(SQUARE).enumerate() {
        let a = squares[first + i];
        let mut sum = Lanes::zero();
        for (j, derivative) in row.iter().enumerate() {
            sum.add_product(*derivative, squares[second + j]);
            gradient[second + j].add_product(*derivative, a);
        }
        gradient[first + i] += sum;
    }
}

#[inline(always)]
fn add<T: Real>(to: &mut [Lanes<T>], from: &[Lanes<T>; MAX_PRODUCTS]) {
    add_slice(to, &from[..SQUARE]);
}

#[inline(always)]
fn add_slice<T: Real>(to: &mut [Lanes<T>], from: &[Lanes<T>]) {
    for (to, from) in to.iter_mut().zip(from) {
        let to = one_by_one(to);
        *to += *from;
    }
}

/// A table times a vector, seven rows at a time: their sums do not wait for one another.
#[inline(always)]
fn times<T: Real>(table: &[T], vector: &[Lanes<T>], out: &mut [Lanes<T>]) {
    let columns = vector.len();
    for (rows, out) in table.chunks_exact(SQUARE * columns).zip(out.chunks_exact_mut(SQUARE)) {
        let mut sums = [Lanes::zero(); SQUARE];
        for (at, x) in vector.iter().enumerate() {
            for (row, sum) in sums.iter_mut().enumerate() {
                sum.add_times(*x, rows[row * columns + at]);
            }
        }
        out.copy_from_slice(&sums);
    }
}

/// The transposed table times a vector, row by row of the table.
#[inline(always)]
fn transposed_times<T: Real>(table: &[T], vector: &[Lanes<T>], out: &mut [Lanes<T>]) {
    let columns = out.len();
    for (at, out) in out.chunks_exact_mut(SQUARE).enumerate() {
        let mut sums = [Lanes::zero(); SQUARE];
        for (row, x) in vector.iter().enumerate() {
            let start = row * columns + at * SQUARE;
            for (k, sum) in sums.iter_mut().enumerate() {
                sum.add_times(*x, table[start + k]);
            }
        }
        out.copy_from_slice(&sums);
    }
}
