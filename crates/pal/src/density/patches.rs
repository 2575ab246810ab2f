//! Where samples of a component lie, found without integrating over all elements.
//!
//! A patch is a group of elements of one bin. To draw one sample from each of many densities, a patch is chosen by its
//! mass under one component; only the elements of the chosen patch are looked at more closely. A kind that knows the
//! masses of its patches from what it has compiled implements [`PatchSearch`].

/// A number between 0 and 1 that is to choose a patch by its mass under a component.
#[derive(Clone, Copy, Debug)]
pub struct PatchQuery<'q> {
    /// The coefficients of the component.
    pub coefficients: &'q [f64],
    /// The number.
    pub uniform: f64,
}

/// The patch that a number has chosen.
#[derive(Clone, Copy, Debug)]
pub struct ChosenPatch<'p> {
    /// The positions of its elements in the mesh.
    pub elements: &'p [u32],
    /// How far into the patch the number reaches, from 0 to 1: uniform again, given the patch.
    pub rest: f64,
}

/// The patches of a support, and their masses under any component of a family.
pub trait PatchSearch: Send + Sync {
    /// Chooses a patch for every query. `None` where masses would have lost their digits, or where there are none.
    fn choose<'p>(&'p self, queries: &[PatchQuery<'_>]) -> Vec<Option<ChosenPatch<'p>>>;
}

/// Elements in groups: the elements of group k are `elements[ends[k - 1]..ends[k]]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct ElementGroups {
    elements: Vec<u32>,
    ends: Vec<usize>,
}

impl ElementGroups {
    /// Adds a group.
    pub fn push(&mut self, group: impl IntoIterator<Item = u32>) {
        self.elements.extend(group);
        self.ends.push(self.elements.len());
    }

    /// The number of groups.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The elements of all groups.
    pub fn all(&self) -> &[u32] {
        &self.elements
    }

    /// The elements of a group.
    pub fn get(&self, group: usize) -> &[u32] {
        let start = if group == 0 { 0 } else { self.ends[group - 1] };
        &self.elements[start..self.ends[group]]
    }
}

/// Finds the first place of `count` at which running sums exceed the fraction `uniform` of the last of them, and how
/// far into that place the fraction reaches. `None` if the last sum is not positive.
pub(crate) fn find_fraction(count: usize, sum: impl Fn(usize) -> f64, uniform: f64) -> Option<(usize, f64)> {
    let total = sum(count.checked_sub(1)?);
    if !(total > 0.0 && total < f64::INFINITY) {
        return None;
    }
    let target = uniform * total;
    let (mut low, mut high) = (0, count - 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if sum(middle) > target { high = middle } else { low = middle + 1 }
    }
    // A target that rounding has put beyond the last sum belongs to the last place that adds anything.
    while low > 0 && !(sum(low) > sum(low - 1)) {
        low -= 1;
    }
    let (below, above) = (if low == 0 { 0.0 } else { sum(low - 1) }, sum(low));
    Some((low, ((target - below) / (above - below)).clamp(0.0, 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_found_where_sums_grow() {
        let sums = [0.0, 1.0, 1.0, 3.0, 4.0, 4.0];
        let find = |uniform| find_fraction(sums.len(), |k| sums[k], uniform);
        assert_eq!(find(0.0), Some((1, 0.0)));
        assert_eq!(find(0.125), Some((1, 0.5)));
        assert_eq!(find(0.5), Some((3, 0.5)));
        assert_eq!(find(1.0), Some((4, 1.0)));
        assert_eq!(find_fraction(2, |_| 0.0, 0.5), None);
        assert_eq!(find_fraction(0, |_| 1.0, 0.5), None);
        assert_eq!(find_fraction(1, |_| f64::NAN, 0.5), None);
    }

    #[test]
    fn groups_keep_their_elements() {
        let mut groups = ElementGroups::default();
        groups.push([3, 1]);
        groups.push([]);
        groups.push([7]);
        assert_eq!((groups.len(), groups.get(0), groups.get(1), groups.get(2)), (3, &[3, 1][..], &[][..], &[7][..]));
    }
}
