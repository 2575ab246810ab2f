//! Positions of hyperplanes and of Boolean variables, as types of their own, so that one is never taken for the other.

/// The position of a hyperplane in the list of a [`Space`](super::space::Space).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) struct PlaneIndex(u32);

impl PlaneIndex {
    /// The index of the hyperplane at a position.
    pub fn new(position: usize) -> Self {
        PlaneIndex(u32::try_from(position).expect("four billion hyperplanes do not fit into memory"))
    }

    /// The position as a number.
    pub fn position(self) -> usize {
        self.0 as usize
    }
}

/// The position of a Boolean variable in the list of its constraint.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct BooleanIndex(u32);

impl BooleanIndex {
    /// The index of the Boolean variable at a position.
    pub fn new(position: usize) -> Self {
        BooleanIndex(u32::try_from(position).expect("four billion Boolean variables do not fit into memory"))
    }

    /// The position as a number.
    pub fn position(self) -> usize {
        self.0 as usize
    }
}
