//! Which variables separate a problem: a tree decomposition by elimination, and how far each variable is from its centre.

use std::collections::{BTreeMap, BTreeSet};

use super::arena::Arena;
use super::component::FactorComponent;

/// More variables than this are eliminated by fewest neighbours instead of fewest missing edges, which takes longer.
const MANY: usize = 250;

/// More variables than this are not decomposed at all.
const TOO_MANY: usize = 4_000;

/// A formula or weight over more variables than this tells nothing of where a problem falls apart.
const WIDE: usize = 400;

/// How good variables are at separating a component.
#[derive(Default)]
pub(super) struct SeparatingOrder {
    /// Per variable its distance from the centre of the decomposition.
    pub distances: BTreeMap<u32, u32>,
    /// The most variables that a part of the decomposition has.
    pub width: usize,
}

impl SeparatingOrder {
    pub fn new(arena: &Arena, component: &FactorComponent) -> SeparatingOrder {
        let variables = &component.variables;
        if variables.len() > TOO_MANY {
            let distances = variables.iter().map(|v| (*v, *v)).collect();
            return SeparatingOrder { distances, width: variables.len() };
        }
        let place: BTreeMap<u32, usize> = variables.iter().enumerate().map(|(at, v)| (*v, at)).collect();
        let mut neighbours: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); variables.len()];
        let mut wide = false;
        let mut connect = |group: BTreeSet<u32>| {
            if group.len() > WIDE {
                wide = true;
                return;
            }
            let places: Vec<usize> = group.iter().map(|v| place[v]).collect();
            for a in &places {
                neighbours[*a].extend(places.iter().filter(|b| *b != a));
            }
        };
        component.clauses.iter().for_each(|id| connect(arena.clause_variables(*id).collect()));
        component.factors.iter().for_each(|id| connect(arena.factor_variables(*id).collect()));
        let bags = eliminate(neighbours);
        let width = if wide { variables.len() } else { bags.iter().map(|(bag, _)| bag.len()).max().unwrap_or(0) };
        let distance = from_centre(&bags);
        let mut distances: BTreeMap<u32, u32> = BTreeMap::new();
        for ((bag, _), distance) in bags.iter().zip(distance) {
            for at in bag {
                let known = distances.entry(variables[*at]).or_insert(distance);
                *known = (*known).min(distance);
            }
        }
        SeparatingOrder { distances, width }
    }
}

/// A part of a decomposition with the part that it hangs on.
type Bag = (Vec<usize>, Option<usize>);

/// Eliminates all variables. A variable and its neighbours at that moment are a bag, which hangs on the bag of the
/// neighbour that is eliminated first.
fn eliminate(mut neighbours: Vec<BTreeSet<usize>>) -> Vec<Bag> {
    let count = neighbours.len();
    let cost = |neighbours: &[BTreeSet<usize>], at: usize| {
        let around = &neighbours[at];
        if count > MANY {
            return around.len();
        }
        let missing = |a: &usize| around.iter().filter(|b| *b > a && !neighbours[*a].contains(b)).count();
        around.iter().map(missing).sum()
    };
    let mut costs: Vec<Option<usize>> = (0..count).map(|at| Some(cost(&neighbours, at))).collect();
    let mut order = Vec::with_capacity(count);
    let mut bags: Vec<Vec<usize>> = Vec::with_capacity(count);
    for _ in 0..count {
        let open = costs.iter().enumerate().filter_map(|(at, cost)| Some(((*cost)?, at)));
        let Some((_, chosen)) = open.min() else { break };
        costs[chosen] = None;
        let around: Vec<usize> = std::mem::take(&mut neighbours[chosen]).into_iter().collect();
        let mut changed: BTreeSet<usize> = around.iter().copied().collect();
        for a in &around {
            neighbours[*a].remove(&chosen);
            neighbours[*a].extend(around.iter().filter(|b| *b != a));
            if count <= MANY {
                changed.extend(&neighbours[*a]);
            }
        }
        for at in changed {
            costs[at] = costs[at].map(|_| cost(&neighbours, at));
        }
        order.push(chosen);
        bags.push(std::iter::once(chosen).chain(around).collect());
    }
    let mut turn = vec![0; count];
    order.iter().enumerate().for_each(|(k, at)| turn[*at] = k);
    let parent = |bag: &[usize]| bag[1..].iter().map(|at| turn[*at]).min();
    bags.into_iter().map(|bag| (bag.clone(), parent(&bag))).collect()
}

/// Per bag its distance from a bag whose removal leaves no large tree.
fn from_centre(bags: &[Bag]) -> Vec<u32> {
    // Bags come before those that they hang on.
    let mut below = vec![1usize; bags.len()];
    let mut largest = vec![0usize; bags.len()];
    for at in 0..bags.len() {
        if let Some(parent) = bags[at].1 {
            below[parent] += below[at];
            largest[parent] = largest[parent].max(below[at]);
        }
    }
    let rest = |at: usize| largest[at].max(bags.len() - below[at]);
    let Some(centre) = (0..bags.len()).min_by_key(|at| (rest(*at), *at)) else { return Vec::new() };
    let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); bags.len()];
    for (at, (_, parent)) in bags.iter().enumerate() {
        if let Some(parent) = parent {
            neighbours[at].push(*parent);
            neighbours[*parent].push(at);
        }
    }
    let mut distance = vec![u32::MAX; bags.len()];
    distance[centre] = 0;
    let mut queue = std::collections::VecDeque::from([centre]);
    while let Some(at) = queue.pop_front() {
        for next in &neighbours[at] {
            if distance[*next] == u32::MAX {
                distance[*next] = distance[at] + 1;
                queue.push_back(*next);
            }
        }
    }
    distance
}
