//! Depth-first search from the bounding box to disjoint cells.
//!
//! A node holds a polytope and what is left of the formula on it. Hyperplanes that do not cut the polytope are decided
//! for free; a node whose formula is true becomes a cell, one whose formula is false is dropped, any other is cut in
//! two along the next literal. With knots, the box is first cut into bins as a k-d tree, so each bin meets only the
//! atoms that cut it.

use std::sync::Arc;

use smallvec::SmallVec;

use super::convert::{self, Intersection};
use super::index::{BooleanIndex, PlaneIndex};
use super::polytope::{Facet, Polytope, Position, Side};
use super::skeleton::{Literal, Residue, Skeleton};
use super::unbounded::{self, Unbounded};
use super::{Cell, Enumeration, Region};
use crate::interrupt::checkpoint;

/// Something carried along by the search that may itself need literals decided once the formula holds, such as a weight
/// with cases. Plain regions carry nothing.
pub(crate) trait Load: Clone + Send + Sync {
    /// The hyperplanes it still depends on.
    fn planes(&self) -> Vec<PlaneIndex>;
    /// Simplifies under what is known; false if it vanishes.
    fn assume(&mut self, decide: &dyn Fn(Literal) -> Option<bool>) -> bool;
    /// A literal that must be decided before the load is the same all over the polytope; `None` if it is.
    fn choose(&self) -> Option<Literal>;
    /// Independent summands that are cheaper to follow separately.
    fn fork(&self) -> Vec<Self>;
}

impl Load for () {
    fn planes(&self) -> Vec<PlaneIndex> {
        Vec::new()
    }

    fn assume(&mut self, _: &dyn Fn(Literal) -> Option<bool>) -> bool {
        true
    }

    fn choose(&self) -> Option<Literal> {
        None
    }

    fn fork(&self) -> Vec<Self> {
        Vec::new()
    }
}

/// From this dimension on a conjunction is converted as a whole, not cut out of the box.
const CONVERTED_DIMENSION: usize = 4;

/// A range of bins `first..last` along one axis.
pub(crate) type BinRange = (u32, u32);

/// One open node of the search.
#[derive(Clone, Debug)]
pub(crate) struct SearchNode<L> {
    pub polytope: Polytope,
    pub load: L,
    /// What remains undecided; `None` where the formula holds everywhere on the polytope.
    pub open: Option<Arc<Skeleton>>,
    pub booleans: SmallVec<[Option<bool>; 8]>,
    pub bins: SmallVec<[BinRange; 4]>,
}

/// What became of a node of the search.
pub(crate) enum SearchStep<L> {
    Cell(Cell, L),
    /// Children, in order.
    Split(Vec<SearchNode<L>>),
    Unbounded(Unbounded),
}

impl Region {
    /// The root of the search; none if the formula is false on the bounding box.
    pub(crate) fn root<L: Load>(&self, load: L) -> Option<SearchNode<L>> {
        self.start.as_ref()?;
        match self.conjunction() {
            Some(Intersection::Nothing) => return None,
            Some(Intersection::Polytope(polytope)) => {
                let booleans = SmallVec::from_elem(None, self.constraint.booleans.len());
                let (open, bins) = (None, SmallVec::new());
                return self.simplified(SearchNode { polytope: *polytope, load, open, booleans, bins });
            }
            // The way through the box names the direction.
            Some(Intersection::Unbounded) | None => {}
        }
        let polytope = self.bounding_polytope()?;
        let bins = self.knots.iter().map(|axis| (0, axis.len() as u32 + 1)).collect();
        let booleans = SmallVec::from_elem(None, self.constraint.booleans.len());
        let open = match &self.skeleton {
            Residue::Decided(false) => return None,
            Residue::Decided(true) => None,
            Residue::Open(skeleton) => Some(Arc::new(skeleton.clone())),
        };
        self.simplified(SearchNode { polytope, load, open, booleans, bins })
    }

    /// The one convex polytope that a conjunction of half-spaces is; `None` for other formulas, and where the box has so few
    /// vertices that nothing is gained.
    fn conjunction(&self) -> Option<Intersection> {
        let Residue::Open(skeleton) = &self.skeleton else { return None };
        let plain = self.knots.is_empty() && self.enumeration == Enumeration::Partial;
        if !plain || self.dimension() < CONVERTED_DIMENSION {
            return None;
        }
        let sides = skeleton.conjuncts()?;
        let facets: Vec<Facet> = sides.into_iter().map(|(plane, side)| Facet { plane, side }).collect();
        Some(convert::intersection(&self.space, &facets))
    }

    /// The node with its formula, and once that holds its load, simplified under what the polytope decides; `None`
    /// where nothing is left.
    fn simplified<L: Load>(&self, mut node: SearchNode<L>) -> Option<SearchNode<L>> {
        if self.enumeration == Enumeration::Total && !self.projected {
            return Some(node);
        }
        if let Some(open) = &node.open {
            let decided = decided_by(&node.polytope, &open.planes);
            if !self.assume(&mut node, &decided) {
                return None;
            }
        }
        if node.open.is_none() {
            let decided = decided_by(&node.polytope, &node.load.planes());
            if !self.assume(&mut node, &decided) {
                return None;
            }
        }
        Some(node)
    }

    /// Simplifies under decided hyperplanes (sorted); false if nothing is left.
    fn assume<L: Load>(&self, node: &mut SearchNode<L>, decided: &[(PlaneIndex, Side)]) -> bool {
        let Some(open) = &node.open else {
            let booleans = &node.booleans;
            return node.load.assume(&|literal| look_up(literal, decided, booleans));
        };
        if decided.is_empty() && !node.booleans.iter().any(Option::is_some) {
            return true;
        }
        match open.simplify(|literal| look_up(literal, decided, &node.booleans)) {
            Residue::Decided(false) => false,
            Residue::Decided(true) => {
                node.open = None;
                true
            }
            Residue::Open(smaller) => {
                node.open = Some(Arc::new(smaller));
                true
            }
        }
    }

    /// Takes one node of the search one step further.
    pub(crate) fn step<L: Load>(&self, node: SearchNode<L>) -> SearchStep<L> {
        checkpoint();
        if let Some(axis) = self.widest_axis(&node) {
            return SearchStep::Split(self.split_bins(node, axis));
        }
        if self.enumeration == Enumeration::Total && !self.projected {
            return self.total_step(node);
        }
        // On an unbounded cell summands must meet first: they may cancel.
        if node.open.is_none() && !node.polytope.is_unbounded() {
            let parts = node.load.fork();
            if parts.len() > 1 {
                return SearchStep::Split(parts.into_iter().map(|load| SearchNode { load, ..node.clone() }).collect());
            }
        }
        let literal = match &node.open {
            Some(open) if self.projected => match open.choose_side() {
                None if !open.is_satisfiable() => return SearchStep::Split(Vec::new()),
                literal => literal,
            },
            Some(open) => open.choose(),
            None => node.load.choose(),
        };
        match literal {
            None => self.emit(node),
            Some(Literal::Side { plane, .. }) => SearchStep::Split(self.split_plane(node, plane)),
            Some(Literal::Bool { var, .. }) => SearchStep::Split(self.split_boolean(node, var)),
        }
    }

    fn emit<L: Load>(&self, node: SearchNode<L>) -> SearchStep<L> {
        if node.polytope.is_unbounded() {
            return SearchStep::Unbounded(unbounded::direction(&node.polytope, &self.constraint.reals));
        }
        let bin = node.bins.iter().map(|range| range.0).collect();
        let undecided = node.open;
        let cell = Cell { polytope: node.polytope, bin, booleans: node.booleans.into_vec(), undecided };
        SearchStep::Cell(cell, node.load)
    }

    /// The axis with the most bins left to separate.
    fn widest_axis<L>(&self, node: &SearchNode<L>) -> Option<usize> {
        let width = |axis: &usize| node.bins[*axis].1 - node.bins[*axis].0;
        (0..node.bins.len()).filter(|axis| width(axis) > 1).max_by_key(|axis| (width(axis), usize::MAX - axis))
    }

    fn split_bins<L: Load>(&self, node: SearchNode<L>, axis: usize) -> Vec<SearchNode<L>> {
        let (first, last) = node.bins[axis];
        let middle = first.midpoint(last);
        // Bin k of an axis lies between its knots k - 1 and k.
        let plane = self.knots[axis][middle as usize - 1];
        let [low, high] = self.halves(&node, plane, [true, true]);
        let narrowed = |half: Option<Polytope>, range: BinRange| {
            let mut child = SearchNode { polytope: half?, ..node.clone() };
            child.bins[axis] = range;
            self.simplified(child)
        };
        [narrowed(low, (first, middle)), narrowed(high, (middle, last))].into_iter().flatten().collect()
    }

    /// The parts of the node's polytope on both sides of a hyperplane; none where it does not reach.
    fn halves<L>(&self, node: &SearchNode<L>, plane: PlaneIndex, want: [bool; 2]) -> [Option<Polytope>; 2] {
        match node.polytope.position(plane) {
            Position::Cut => node.polytope.cut(plane, &node.polytope.signs(plane), want),
            Position::On(Side::Below) | Position::Within => [want[0].then(|| node.polytope.clone()), None],
            Position::On(Side::Above) => [None, want[1].then(|| node.polytope.clone())],
        }
    }

    fn split_plane<L: Load>(&self, node: SearchNode<L>, plane: PlaneIndex) -> Vec<SearchNode<L>> {
        // Whether a side is worth building shows before it is built: often the formula is false on it outright.
        let mut children = [Side::Below, Side::Above].map(|side| {
            let mut child = node.clone();
            self.assume(&mut child, &[(plane, side)]).then_some(child)
        });
        let want = [children[0].is_some(), children[1].is_some()];
        let halves = self.halves(&node, plane, want);
        let simplified = children.iter_mut().zip(halves).map(|(child, half)| {
            let child = child.take()?;
            self.simplified(SearchNode { polytope: half?, ..child })
        });
        simplified.flatten().collect()
    }

    fn split_boolean<L: Load>(&self, node: SearchNode<L>, var: BooleanIndex) -> Vec<SearchNode<L>> {
        let with = |value: bool| {
            let mut child = node.clone();
            child.booleans[var.position()] = Some(value);
            if !self.assume(&mut child, &[]) {
                return None;
            }
            // Once the formula holds the load has not seen the polytope yet.
            if node.open.is_some() && child.open.is_none() { self.simplified(child) } else { Some(child) }
        };
        [with(false), with(true)].into_iter().flatten().collect()
    }

    /// Total enumeration, the slow reference: every atom that cuts and every Boolean is decided before the formula is
    /// looked at.
    fn total_step<L: Load>(&self, node: SearchNode<L>) -> SearchStep<L> {
        let Residue::Open(skeleton) = &self.skeleton else { return self.emit(node) };
        let position = |plane: &PlaneIndex| node.polytope.position(*plane);
        if let Some(plane) = skeleton.planes.iter().find(|plane| position(plane) == Position::Cut) {
            let halves = self.halves(&node, *plane, [true, true]);
            let children = halves.into_iter().flatten().map(|polytope| SearchNode { polytope, ..node.clone() });
            return SearchStep::Split(children.collect());
        }
        if let Some(var) = node.booleans.iter().position(Option::is_none) {
            let with = |value| {
                let mut child = node.clone();
                child.booleans[var] = Some(value);
                child
            };
            return SearchStep::Split([with(false), with(true)].into_iter().collect());
        }
        let sides = skeleton.planes.iter().filter_map(|plane| match position(plane) {
            Position::On(side) => Some((*plane, side)),
            _ => None,
        });
        let sides: Vec<_> = sides.collect();
        match skeleton.simplify(|literal| look_up(literal, &sides, &node.booleans)) {
            Residue::Decided(true) => self.emit(node),
            Residue::Decided(false) => SearchStep::Split(Vec::new()),
            Residue::Open(_) => unreachable!("all hyperplanes that cut and all Boolean variables are decided"),
        }
    }
}

/// The sides of the hyperplanes that do not cut the polytope, in the order of the list.
fn decided_by(polytope: &Polytope, planes: &[PlaneIndex]) -> Vec<(PlaneIndex, Side)> {
    let side = |plane: &PlaneIndex| match polytope.position(*plane) {
        Position::On(side) => Some((*plane, side)),
        Position::Within | Position::Cut => None,
    };
    planes.iter().filter_map(side).collect()
}

fn look_up(literal: Literal, decided: &[(PlaneIndex, Side)], booleans: &[Option<bool>]) -> Option<bool> {
    match literal {
        Literal::Side { plane, side } => {
            let known = decided.binary_search_by_key(&plane, |d| d.0).ok()?;
            Some(decided[known].1 == side)
        }
        Literal::Bool { var, value } => booleans[var.position()].map(|known| known == value),
    }
}
