//! Downward-closed sets of exponents: the monomials whose integrals are computed together.

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU32;

/// The position of an exponent vector with one less in some variable; none if it is already 0 there. Four bytes: the
/// position plus one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Predecessor(Option<NonZeroU32>);

impl Predecessor {
    const NONE: Predecessor = Predecessor(None);

    /// Positions are below [`MAX_LEN`], so that one more does not overflow.
    fn at(position: u32) -> Self {
        Predecessor(NonZeroU32::new(position + 1))
    }

    /// The position, if the predecessor exists.
    #[inline]
    pub fn position(self) -> Option<usize> {
        self.0.map(|next| next.get() as usize - 1)
    }
}

/// Sets larger than this are refused: lists of their moments would not fit into memory.
const MAX_LEN: u128 = 50_000_000;

/// The members of a closure are found one by one in a tree, which takes more memory for each.
const MAX_CLOSURE: u128 = 5_000_000;

/// Why a set of exponents cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExponentsError {
    /// The set would be too large.
    #[error("{0} monomials are too many; at most {MAX_LEN} are possible. Lower the degree")]
    TooMany(u128),
    /// An exponent vector has the wrong length.
    #[error("an exponent has {given} entries, expected {wanted}")]
    Length {
        /// entries given
        given: usize,
        /// entries expected
        wanted: usize,
    },
}

/// A downward-closed set of exponents in `n` variables, ordered by total degree and then lexicographically
/// (first variable first). With `alpha` it contains every smaller exponent.
///
/// ```
/// use pal::moments::Exponents;
/// let set = Exponents::total_degree(2, 2).unwrap();
/// let list: Vec<_> = set.iter().collect();
/// assert_eq!(list, [&[0, 0][..], &[1, 0], &[0, 1], &[2, 0], &[1, 1], &[0, 2]]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exponents {
    dimension: usize,
    len: usize,
    flat: Vec<u16>,
    /// `predecessors[i * n + j]` is the position of exponent `i` minus one in variable `j`.
    predecessors: Vec<Predecessor>,
    /// Where each total degree starts; one more entry than there are degrees.
    levels: Vec<usize>,
}

impl Exponents {
    /// All exponents of total degree at most `degree`.
    pub fn total_degree(dimension: usize, degree: u16) -> Result<Self, ExponentsError> {
        let n = dimension;
        let len = binomial(n as u128 + u128::from(degree), n as u128);
        if len > MAX_LEN {
            return Err(ExponentsError::TooMany(len));
        }
        // below(r, m): how many monomials in m variables have degree less than r.
        let rows = usize::from(degree) + 2;
        let table: Vec<u32> = (0..=n)
            .flat_map(|m| (0..rows).map(move |r| (r, m)))
            .map(|(r, m)| match r {
                0 => 0,
                _ => binomial((r - 1 + m) as u128, m as u128) as u32,
            })
            .collect();
        let below = |r: u16, m: usize| table[m * rows + usize::from(r)];
        let mut set = Exponents {
            dimension,
            len: len as usize,
            flat: Vec::with_capacity(len as usize * n),
            predecessors: Vec::with_capacity(len as usize * n),
            levels: vec![0],
        };
        let mut alpha = vec![0u16; n];
        let mut rank = vec![0u32; n + 1];
        for total in 0..=degree {
            alpha.iter_mut().for_each(|a| *a = 0);
            if n > 0 {
                alpha[0] = total;
            }
            let mut count = 0;
            loop {
                set.flat.extend_from_slice(&alpha);
                count += 1;
                // Position inside a degree: sum over j of below(rest_j, n - 1 - j), rest_j the degree after variable j.
                // Taking one from variable i lowers rest_j for j < i and leaves the others.
                let mut rest = total;
                for j in (0..n).rev() {
                    let after = if j + 1 == n { 0 } else { rest };
                    rank[j] = rank[j + 1] + below(after, n - 1 - j);
                    rest = after + alpha[j];
                    if j + 1 == n {
                        rest = alpha[j];
                    }
                }
                let (mut lowered, mut rest) = (0u32, total);
                for i in 0..n {
                    if alpha[i] == 0 {
                        set.predecessors.push(Predecessor::NONE);
                    } else {
                        let start = set.levels[usize::from(total) - 1] as u32;
                        set.predecessors.push(Predecessor::at(start + lowered + rank[i]));
                    }
                    rest -= alpha[i];
                    if rest > 0 {
                        lowered += below(rest - 1, n - 1 - i);
                    }
                }
                if !next_of_degree(&mut alpha) {
                    break;
                }
            }
            set.levels.push(set.levels[usize::from(total)] + count);
            if n == 0 {
                break;
            }
        }
        Ok(set)
    }

    /// All exponents with at most the given degree in each variable.
    pub fn tensor(degrees: &[u16]) -> Result<Self, ExponentsError> {
        let len = degrees.iter().try_fold(1u128, |product, d| product.checked_mul(u128::from(*d) + 1));
        match len {
            Some(len) if len <= MAX_LEN => Self::closure(degrees.len(), [degrees.to_vec()]),
            other => Err(ExponentsError::TooMany(other.unwrap_or(u128::MAX))),
        }
    }

    /// The smallest downward-closed set that contains the given exponents.
    pub fn closure(dimension: usize, exponents: impl IntoIterator<Item = Vec<u16>>) -> Result<Self, ExponentsError> {
        let exponents: Vec<Vec<u16>> = exponents.into_iter().collect();
        let mut ends = vec![0u16; dimension];
        let mut visits = 0u128;
        for alpha in &exponents {
            if alpha.len() != dimension {
                return Err(ExponentsError::Length { given: alpha.len(), wanted: dimension });
            }
            let below = alpha.iter().fold(1u128, |product, a| product.saturating_mul(u128::from(*a) + 1));
            if below > MAX_CLOSURE {
                return Err(ExponentsError::TooMany(below));
            }
            visits += below;
            ends.iter_mut().zip(alpha).for_each(|(end, a)| *end = (*end).max(*a));
        }
        let around = ends.iter().fold(1u128, |product, end| product.saturating_mul(u128::from(*end) + 1));
        // A table of the whole box is faster than a tree unless most of it stays empty.
        if around <= 4 * MAX_CLOSURE && around <= 8 * visits {
            Self::closure_in_box(&ends, &exponents)
        } else {
            Self::closure_in_tree(dimension, exponents)
        }
    }

    /// The closure from a table of all exponents up to the ends. Descending positions in the table are the order within
    /// a degree.
    fn closure_in_box(ends: &[u16], exponents: &[Vec<u16>]) -> Result<Self, ExponentsError> {
        let n = ends.len();
        let mut strides = vec![1usize; n];
        for j in (1..n).rev() {
            strides[j - 1] = strides[j] * (usize::from(ends[j]) + 1);
        }
        let size = strides.first().map_or(1, |stride| stride * (usize::from(ends[0]) + 1));
        let mut member = vec![false; size];
        member[0] = true;
        for alpha in exponents {
            member[alpha.iter().zip(&strides).map(|(a, stride)| usize::from(*a) * stride).sum::<usize>()] = true;
        }
        for (stride, end) in strides.iter().zip(ends) {
            for at in (*stride..size).rev() {
                if member[at] && at / stride % (usize::from(*end) + 1) > 0 {
                    member[at - stride] = true;
                }
            }
        }
        let members = || (0..size).rev().filter(|at| member[*at]);
        let decode = |at: usize, alpha: &mut [u16]| {
            for ((a, stride), end) in alpha.iter_mut().zip(&strides).zip(ends) {
                *a = (at / stride % (usize::from(*end) + 1)) as u16;
            }
            alpha.iter().map(|a| usize::from(*a)).sum::<usize>()
        };
        let mut alpha = vec![0u16; n];
        let top: usize = ends.iter().map(|end| usize::from(*end)).sum();
        let mut levels = vec![0usize; top + 2];
        members().for_each(|at| levels[decode(at, &mut alpha) + 1] += 1);
        // Degrees of the box that no member has are left out.
        while levels.len() > 2 && levels.last() == Some(&0) {
            levels.pop();
        }
        (1..levels.len()).for_each(|k| levels[k] += levels[k - 1]);
        let len = *levels.last().expect("0 is always a member");
        if len as u128 > MAX_CLOSURE {
            return Err(ExponentsError::TooMany(len as u128));
        }
        let mut next = levels.clone();
        let mut positions = vec![0u32; size];
        let mut flat = vec![0u16; len * n];
        for at in members() {
            let total = decode(at, &mut alpha);
            flat[next[total] * n..(next[total] + 1) * n].copy_from_slice(&alpha);
            positions[at] = next[total] as u32;
            next[total] += 1;
        }
        let mut predecessors = vec![Predecessor::NONE; len * n];
        for at in members() {
            let here = positions[at] as usize * n;
            for (j, stride) in strides.iter().enumerate() {
                if flat[here + j] > 0 {
                    predecessors[here + j] = Predecessor::at(positions[at - stride]);
                }
            }
        }
        Ok(Exponents { dimension: n, len, flat, predecessors, levels })
    }

    /// The closure from a tree of its members.
    fn closure_in_tree(dimension: usize, exponents: Vec<Vec<u16>>) -> Result<Self, ExponentsError> {
        // Keyed by total degree first, and by larger leading exponents first within a degree.
        let key = |alpha: &[u16]| {
            let total = alpha.iter().map(|a| u32::from(*a)).sum::<u32>();
            (total, alpha.iter().map(|a| std::cmp::Reverse(*a)).collect::<Vec<_>>())
        };
        let mut all = BTreeSet::from([key(&vec![0; dimension])]);
        let mut pending = Vec::new();
        for alpha in exponents {
            if all.insert(key(&alpha)) {
                pending.push(alpha);
            }
            while let Some(alpha) = pending.pop() {
                for j in (0..dimension).filter(|j| alpha[*j] > 0) {
                    let mut smaller = alpha.clone();
                    smaller[j] -= 1;
                    if all.insert(key(&smaller)) {
                        pending.push(smaller);
                    }
                }
                if all.len() as u128 > MAX_CLOSURE {
                    return Err(ExponentsError::TooMany(all.len() as u128));
                }
            }
        }
        let list: Vec<Vec<u16>> =
            all.iter().map(|(_, alpha)| alpha.iter().map(|reversed| reversed.0).collect()).collect();
        let totals: Vec<u32> = all.iter().map(|(total, _)| *total).collect();
        let position: HashMap<&[u16], u32> =
            list.iter().enumerate().map(|(at, alpha)| (&alpha[..], at as u32)).collect();
        let mut predecessors = Vec::with_capacity(list.len() * dimension);
        for alpha in &list {
            for j in 0..dimension {
                let mut smaller = alpha.clone();
                predecessors.push(match smaller[j].checked_sub(1) {
                    None => Predecessor::NONE,
                    Some(less) => {
                        smaller[j] = less;
                        Predecessor::at(position[&smaller[..]])
                    }
                });
            }
        }
        let top = *totals.last().expect("0 is always a member");
        let levels = (0..=top + 1).map(|degree| totals.partition_point(|total| *total < degree)).collect();
        let flat = list.concat();
        Ok(Exponents { dimension, len: totals.len(), flat, predecessors, levels })
    }

    /// The number of variables.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// How many exponents there are.
    #[allow(clippy::len_without_is_empty)] // never empty: 0 is always a member
    pub fn len(&self) -> usize {
        self.len
    }

    /// The largest total degree.
    pub fn degree(&self) -> usize {
        self.levels.len() - 2
    }

    /// The exponent at a position.
    pub fn get(&self, position: usize) -> &[u16] {
        &self.flat[position * self.dimension..(position + 1) * self.dimension]
    }

    /// All exponents in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u16]> {
        (0..self.len).map(|position| self.get(position))
    }

    /// All exponents in order, one after the other in one slice.
    pub fn flat(&self) -> &[u16] {
        &self.flat
    }

    /// A table from exponents to positions.
    pub fn positions(&self) -> HashMap<&[u16], usize> {
        self.iter().enumerate().map(|(position, alpha)| (alpha, position)).collect()
    }

    /// The predecessors of an exponent, one for each variable.
    pub(crate) fn predecessors(&self, position: usize) -> &[Predecessor] {
        &self.predecessors[position * self.dimension..(position + 1) * self.dimension]
    }

    /// The positions of each total degree.
    pub(crate) fn levels(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        self.levels.windows(2).map(|pair| pair[0]..pair[1])
    }
}

/// The next exponent of the same total degree; false after the last one.
fn next_of_degree(alpha: &mut [u16]) -> bool {
    let n = alpha.len();
    let Some(movable) = (0..n.saturating_sub(1)).rev().find(|j| alpha[*j] > 0) else { return false };
    let tail: u16 = alpha[movable + 1..].iter().sum();
    alpha[movable + 1..].iter_mut().for_each(|a| *a = 0);
    alpha[movable] -= 1;
    alpha[movable + 1] = tail + 1;
    true
}

fn binomial(n: u128, k: u128) -> u128 {
    let mut result = 1u128;
    for i in 1..=k {
        result = match result.checked_mul(n - k + i) {
            Some(product) => product / i,
            None => return u128::MAX,
        };
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fast_numbering_agrees_with_the_general_one() {
        for n in 0..=5 {
            for d in 0..=6u16 {
                let fast = Exponents::total_degree(n, d).unwrap();
                let corners = (0..n).map(|j| (0..n).map(|i| if i == j { d } else { 0 }).collect());
                let all: Vec<Vec<u16>> = fast.iter().map(<[u16]>::to_vec).collect();
                let slow = Exponents::closure(n, corners.chain(all)).unwrap();
                assert_eq!(fast.len() as u128, binomial((n + usize::from(d)) as u128, n as u128));
                if n > 0 {
                    assert_eq!(fast, slow, "n = {n}, d = {d}");
                }
            }
        }
    }

    #[test]
    fn tables_and_trees_have_the_same_members() {
        let mut stream = crate::random::Stream::new(3, 0);
        for case in 0..200 {
            let n = case % 5;
            let list: Vec<Vec<u16>> =
                (0..1 + case % 7).map(|_| (0..n).map(|_| (stream.bits() % 6) as u16).collect()).collect();
            let ends: Vec<u16> = (0..n).map(|j| list.iter().map(|alpha| alpha[j]).max().unwrap_or(0)).collect();
            let table = Exponents::closure_in_box(&ends, &list).unwrap();
            assert_eq!(table, Exponents::closure_in_tree(n, list.clone()).unwrap(), "{list:?}");
            assert_eq!(table, Exponents::closure(n, list).unwrap());
        }
    }

    #[test]
    fn tensor_sets_are_boxes() {
        let set = Exponents::tensor(&[2, 1]).unwrap();
        assert_eq!((set.len(), set.degree()), (6, 3));
        assert!(set.iter().all(|alpha| alpha[0] <= 2 && alpha[1] <= 1));
    }

    #[test]
    fn sets_that_cannot_fit_are_refused() {
        assert!(Exponents::total_degree(20, 60).is_err());
        assert!(Exponents::tensor(&[1000, 1000, 1000]).is_err());
        assert!(Exponents::closure(2, [vec![1]]).is_err());
    }
}
