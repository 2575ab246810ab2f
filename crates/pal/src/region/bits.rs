//! Small sets of small integers: which facets a vertex lies on, which vertices a face has.

use smallvec::SmallVec;

/// A set of indices, one bit each. Two words live inline, more spill to the heap.
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Bits(SmallVec<[u64; 2]>);

impl Bits {
    pub fn insert(&mut self, index: usize) {
        let word = index / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (index % 64);
    }

    /// Trailing zero words are dropped, so that equal sets compare equal.
    pub fn remove(&mut self, index: usize) {
        if let Some(word) = self.0.get_mut(index / 64) {
            *word &= !(1 << (index % 64));
        }
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    pub fn contains(&self, index: usize) -> bool {
        self.0.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub fn first(&self) -> Option<usize> {
        self.iter().next()
    }

    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(at, word)| {
            let mut left = *word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(64 * at + bit)
            })
        })
    }

    /// How many indices two sets share, without building the intersection.
    pub fn common_len(&self, other: &Bits) -> usize {
        self.0.iter().zip(&other.0).map(|(a, b)| (a & b).count_ones() as usize).sum()
    }

    /// The common indices. Trailing zero words are dropped, so that equal sets compare equal.
    pub fn intersection(&self, other: &Bits) -> Bits {
        let mut words: SmallVec<[u64; 2]> = self.0.iter().zip(&other.0).map(|(a, b)| a & b).collect();
        while words.last() == Some(&0) {
            words.pop();
        }
        Bits(words)
    }

    pub fn extend_from(&mut self, other: &Bits) {
        if other.0.len() > self.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a |= b;
        }
    }

    pub fn is_subset(&self, other: &Bits) -> bool {
        self.0.iter().enumerate().all(|(at, word)| word & !other.0.get(at).copied().unwrap_or(0) == 0)
    }
}

impl FromIterator<usize> for Bits {
    fn from_iter<I: IntoIterator<Item = usize>>(indices: I) -> Self {
        let mut bits = Bits::default();
        indices.into_iter().for_each(|index| bits.insert(index));
        bits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaves_like_a_set() {
        let a: Bits = [0, 3, 64, 200].into_iter().collect();
        let b: Bits = [3, 200, 201].into_iter().collect();
        assert_eq!(a.intersection(&b).iter().collect::<Vec<_>>(), [3, 200]);
        assert_eq!((a.len(), a.common_len(&b), a.first()), (4, 2, Some(0)));
        assert!(a.intersection(&b).is_subset(&a) && !b.is_subset(&a) && a.contains(64) && !a.contains(65));
        let small: Bits = [1].into_iter().collect();
        assert_eq!(a.intersection(&[1, 300].into_iter().collect()), Bits::default());
        assert!(Bits::default().is_subset(&small));
        let mut c = small;
        c.extend_from(&b);
        assert_eq!(c.iter().collect::<Vec<_>>(), [1, 3, 200, 201]);
    }
}
