//! Running the search: as a stream, or on all cores, with budgets.
//!
//! In parallel the open nodes form one ordered list. In each round every open node is searched independently for a
//! fixed number of steps and replaced in place by what it became. The list, and so the result, is the same
//! for any number of threads.

use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::search::{Load, SearchNode, SearchStep};
use super::unbounded::Unbounded;
use super::{Cell, Region};

/// How much work a decomposition may do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Budget {
    /// At most this many cells; `None` for no limit.
    pub cells: Option<usize>,
    /// At most this much time; `None` for no limit.
    pub time: Option<Duration>,
}

/// Why a decomposition ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// All cells were found.
    Complete,
    /// The budget of cells was used up; the first cells of the full list were found.
    CellLimit,
    /// The budget of time was used up; the first cells of the full list were found.
    TimeLimit,
}

/// The cells of a region, possibly cut short by a budget.
#[derive(Clone, Debug)]
pub struct Decomposition {
    /// The cells, in a fixed order.
    pub cells: Vec<Cell>,
    /// Whether these are all.
    pub stop: StopReason,
}

/// A stream of cells in a fixed order, found one after the other with memory for the open nodes only.
///
/// It yields an error, once, when it meets a part of the region that is unbounded.
pub struct Cells<'r> {
    region: &'r Region,
    stack: Vec<SearchNode<()>>,
}

impl Iterator for Cells<'_> {
    type Item = Result<Cell, Unbounded>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(node) = self.stack.pop() {
            match self.region.step(node) {
                SearchStep::Cell(cell, ()) => return Some(Ok(cell)),
                SearchStep::Split(children) => self.stack.extend(children.into_iter().rev()),
                SearchStep::Unbounded(ray) => {
                    self.stack.clear();
                    return Some(Err(ray));
                }
            }
        }
        None
    }
}

/// Open nodes wanted before the parallel search goes deep.
const WIDTH: usize = 64;
/// Rounds of single steps after which even a narrow search goes deep: a long disjunction never gets wide.
const NARROW_ROUNDS: usize = 64;
/// Steps that one open node may take in one round.
const STRIDE: usize = 512;

/// An element of the ordered list: results, or a node still to be searched.
enum Slot<T, L> {
    Done(Vec<T>),
    Open(Box<SearchNode<L>>),
    Failed(Unbounded),
}

impl Region {
    /// The cells as a stream.
    pub fn cells(&self) -> Cells<'_> {
        Cells { region: self, stack: self.root(()).into_iter().collect() }
    }

    /// All cells, found on all cores.
    pub fn decompose(&self) -> Result<Vec<Cell>, Unbounded> {
        self.map_cells(|cell| cell)
    }

    /// The cells up to a budget.
    pub fn decompose_within(&self, budget: &Budget) -> Result<Decomposition, Unbounded> {
        if budget.cells.is_none() && budget.time.is_none() {
            return Ok(Decomposition { cells: self.decompose()?, stop: StopReason::Complete });
        }
        let start = Instant::now();
        let mut cells = Vec::new();
        let mut stack: Vec<SearchNode<()>> = self.root(()).into_iter().collect();
        while let Some(node) = stack.pop() {
            if budget.time.is_some_and(|limit| start.elapsed() >= limit) {
                return Ok(Decomposition { cells, stop: StopReason::TimeLimit });
            }
            match self.step(node) {
                // Only one more cell shows that the limit cuts anything off.
                SearchStep::Cell(_, ()) if budget.cells.is_some_and(|limit| cells.len() >= limit) => {
                    return Ok(Decomposition { cells, stop: StopReason::CellLimit });
                }
                SearchStep::Cell(cell, ()) => cells.push(cell),
                SearchStep::Split(children) => stack.extend(children.into_iter().rev()),
                SearchStep::Unbounded(ray) => return Err(ray),
            }
        }
        Ok(Decomposition { cells, stop: StopReason::Complete })
    }

    /// Applies a function to every cell on all cores; results come in the order of the cells.
    ///
    /// Of several unbounded parts the first one in that order is reported.
    pub fn map_cells<T: Send>(&self, visit: impl Fn(Cell) -> T + Sync) -> Result<Vec<T>, Unbounded> {
        self.map_loaded(self.root(()), |cell, ()| visit(cell))
    }

    /// Like [`Region::map_cells`], with a load that has been simplified to one form on every cell.
    pub(crate) fn map_loaded<T: Send, L: Load>(
        &self,
        root: Option<SearchNode<L>>,
        visit: impl Fn(Cell, L) -> T + Sync,
    ) -> Result<Vec<T>, Unbounded> {
        let mut slots: Vec<Slot<T, L>> = root.into_iter().map(|node| Slot::Open(Box::new(node))).collect();
        for round in 0.. {
            let open = slots.iter().filter(|slot| matches!(slot, Slot::Open(_))).count();
            if open == 0 {
                break;
            }
            let steps = if open < WIDTH && round < NARROW_ROUNDS { 1 } else { STRIDE };
            slots = slots.into_par_iter().flat_map_iter(|slot| self.advance(slot, steps, &visit)).collect();
        }
        let mut all = Vec::new();
        for slot in slots {
            match slot {
                Slot::Done(mut items) => all.append(&mut items),
                Slot::Failed(ray) => return Err(ray),
                Slot::Open(_) => unreachable!("the loop ends when no node is open"),
            }
        }
        Ok(all)
    }

    fn advance<T, L: Load>(&self, slot: Slot<T, L>, steps: usize, visit: &impl Fn(Cell, L) -> T) -> Vec<Slot<T, L>> {
        let Slot::Open(node) = slot else { return vec![slot] };
        let mut stack = vec![*node];
        let mut done = Vec::new();
        for _ in 0..steps {
            let Some(node) = stack.pop() else { break };
            match self.step(node) {
                SearchStep::Cell(cell, load) => done.push(visit(cell, load)),
                SearchStep::Split(children) => stack.extend(children.into_iter().rev()),
                SearchStep::Unbounded(ray) => return vec![Slot::Done(done), Slot::Failed(ray)],
            }
        }
        let mut slots = Vec::with_capacity(stack.len() + 1);
        if !done.is_empty() {
            slots.push(Slot::Done(done));
        }
        slots.extend(stack.into_iter().rev().map(|node| Slot::Open(Box::new(node))));
        slots
    }
}
