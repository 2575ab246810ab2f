//! Sets of assignments of the Boolean variables, as a reduced ordered binary decision diagram.
//!
//! A node asks for one variable and leads on to two other nodes. Variables are asked for in the order of their
//! declaration, and those that a path passes over are free. Equal sets are one node, so whoever has the same set shares
//! it, and the diagram of a few clauses over many variables is small where its assignments are without number.
//!
//! With independent variables, `P(b) = yes_b` and `no_b = 1 - yes_b`, the probability of a set is
//!
//! ```text
//! value(node)  =  no_b value(low)  +  yes_b value(high)
//! ```
//!
//! for all nodes in one pass. Variables that are passed over sum to 1 and cost nothing.

use std::collections::HashMap;

use crate::density::DensityError;
use crate::formula::{Connective, Formula, Node, Var};
use crate::region::{FoldedNode, Literal, Skeleton};

/// A set of assignments: a node of an [`AssignmentDiagram`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub(crate) struct AssignmentSet(u32);

impl AssignmentSet {
    /// The set without assignments.
    pub const NONE: AssignmentSet = AssignmentSet(0);
    /// The set of all assignments.
    pub const ALL: AssignmentSet = AssignmentSet(1);

    /// The position in lists with one entry per node.
    pub fn position(self) -> usize {
        self.0 as usize
    }
}

/// The assignments in which a variable is false, with the others in `low`, and those in which it is true, with the
/// others in `high`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct DiagramNode {
    variable: u32,
    low: AssignmentSet,
    high: AssignmentSet,
}

/// The largest number of nodes of a diagram: some tens of megabytes.
const MAX_NODES: usize = 1_000_000;

/// The largest number of Boolean variables: products of so many probabilities stay within the range of float64.
pub(crate) const MAX_BOOLEANS: usize = 512;

/// All sets of assignments that one support needs. Nodes come after those that they lead to.
#[derive(Clone, Debug)]
pub(crate) struct AssignmentDiagram {
    variables: usize,
    nodes: Vec<DiagramNode>,
}

/// The probabilities of the values of all Boolean variables.
#[derive(Clone, Debug)]
pub(crate) struct Odds {
    /// The probability that each variable is true.
    pub yes: Vec<f64>,
    /// The probability that each variable is false, which is not rounded to 0 where the other one is close to 1.
    pub no: Vec<f64>,
}

impl Odds {
    /// The probabilities with given logits.
    pub fn new(logits: &[f64]) -> Odds {
        let sigmoid = |z: f64| if z >= 0.0 { 1.0 / (1.0 + (-z).exp()) } else { z.exp() / (1.0 + z.exp()) };
        Odds { yes: logits.iter().map(|z| sigmoid(*z)).collect(), no: logits.iter().map(|z| sigmoid(-z)).collect() }
    }

    /// The probability of one value of a variable.
    pub fn of(&self, variable: usize, value: bool) -> f64 {
        if value { self.yes[variable] } else { self.no[variable] }
    }

    /// The logarithm of the probability of one value of a variable, which is finite: differences of sums of them are
    /// compared.
    fn bounded_log(&self, variable: usize, value: bool) -> f64 {
        self.of(variable, value).ln().max(-1e5)
    }

    /// The logarithm of the probability of an assignment.
    pub fn log_of(&self, assignment: &[bool]) -> f64 {
        assignment.iter().enumerate().map(|(variable, value)| self.of(variable, *value).ln()).sum()
    }
}

/// Makes a diagram, sharing equal sets.
pub(crate) struct DiagramBuilder {
    diagram: AssignmentDiagram,
    known: HashMap<DiagramNode, AssignmentSet>,
    /// Results of conjunctions (`true`) and disjunctions (`false`) of two sets.
    junctions: HashMap<(bool, AssignmentSet, AssignmentSet), AssignmentSet>,
}

impl DiagramBuilder {
    /// A diagram over so many variables with no sets but the empty and the full one.
    pub fn new(variables: usize) -> Result<DiagramBuilder, DensityError> {
        if variables > MAX_BOOLEANS {
            return Err(DensityError::TooManyBooleans { given: variables, most: MAX_BOOLEANS });
        }
        let end = DiagramNode { variable: variables as u32, low: AssignmentSet::NONE, high: AssignmentSet::NONE };
        let diagram = AssignmentDiagram { variables, nodes: vec![end; 2] };
        Ok(DiagramBuilder { diagram, known: HashMap::new(), junctions: HashMap::new() })
    }

    /// A diagram that further sets are added to.
    pub fn over(diagram: &AssignmentDiagram) -> DiagramBuilder {
        let known = diagram.nodes.iter().enumerate().skip(2).map(|(at, node)| (*node, AssignmentSet(at as u32)));
        DiagramBuilder { known: known.collect(), diagram: diagram.clone(), junctions: HashMap::new() }
    }

    /// The assignments that two sets have in common.
    pub fn intersection(&mut self, a: AssignmentSet, b: AssignmentSet) -> Result<AssignmentSet, DensityError> {
        self.pair(true, a, b)
    }

    /// The diagram of all sets that were made.
    pub fn finish(self) -> AssignmentDiagram {
        self.diagram
    }

    /// The assignments that satisfy what is left of a formula on a cell, where all hyperplanes are decided.
    pub fn of_skeleton(&mut self, skeleton: &Skeleton) -> Result<AssignmentSet, DensityError> {
        skeleton.fold(|node: FoldedNode<'_, Result<AssignmentSet, DensityError>>| match node {
            FoldedNode::Literal(Literal::Bool { var, value }) => self.literal(var.position(), value),
            FoldedNode::Literal(Literal::Side { .. }) => unreachable!("the search decides all hyperplanes"),
            FoldedNode::Junction(conjunction, operands) => self.junction(conjunction, operands),
        })
    }

    /// The assignments that satisfy a formula over Boolean variables alone.
    pub fn of_formula(&mut self, formula: &Formula, booleans: &[Var]) -> Result<AssignmentSet, DensityError> {
        // Every node together with its negation.
        type Pair = Result<(AssignmentSet, AssignmentSet), DensityError>;
        let both = |yes: Result<AssignmentSet, DensityError>, no: Result<AssignmentSet, DensityError>| Ok((yes?, no?));
        let set = formula.to_nnf().fold(|node, children: &[Pair]| -> Pair {
            let yes = || children.iter().map(|pair| pair.clone().map(|pair| pair.0)).collect::<Vec<_>>();
            let no = || children.iter().map(|pair| pair.clone().map(|pair| pair.1)).collect::<Vec<_>>();
            match node.node() {
                Node::Constant(true) => Ok((AssignmentSet::ALL, AssignmentSet::NONE)),
                Node::Constant(false) => Ok((AssignmentSet::NONE, AssignmentSet::ALL)),
                Node::Bool(var) => {
                    let at = booleans.iter().position(|known| known == var);
                    let at = at.ok_or_else(|| crate::region::RegionError::Undeclared(var.clone()))?;
                    both(self.literal(at, true), self.literal(at, false))
                }
                Node::Connective(Connective::Not, _) => children[0].clone().map(|(yes, no)| (no, yes)),
                Node::Connective(connective, _) => {
                    // In negation normal form there are no other connectives.
                    let conjunction = matches!(connective, Connective::And);
                    both(self.junction(conjunction, &yes()), self.junction(!conjunction, &no()))
                }
                Node::Atom(atom) => {
                    Err(DensityError::Settings(format!("`{atom}` still depends on a real variable that has no value")))
                }
            }
        })?;
        Ok(set.0)
    }

    fn literal(&mut self, variable: usize, value: bool) -> Result<AssignmentSet, DensityError> {
        let (low, high) =
            if value { (AssignmentSet::NONE, AssignmentSet::ALL) } else { (AssignmentSet::ALL, AssignmentSet::NONE) };
        self.node(DiagramNode { variable: variable as u32, low, high })
    }

    fn node(&mut self, node: DiagramNode) -> Result<AssignmentSet, DensityError> {
        if node.low == node.high {
            return Ok(node.low);
        }
        if let Some(known) = self.known.get(&node) {
            return Ok(*known);
        }
        let nodes = &mut self.diagram.nodes;
        if nodes.len() >= MAX_NODES {
            return Err(DensityError::EntangledBooleans(MAX_NODES));
        }
        let set = AssignmentSet(nodes.len() as u32);
        nodes.push(node);
        self.known.insert(node, set);
        Ok(set)
    }

    fn junction(
        &mut self,
        conjunction: bool,
        operands: &[Result<AssignmentSet, DensityError>],
    ) -> Result<AssignmentSet, DensityError> {
        let start = if conjunction { AssignmentSet::ALL } else { AssignmentSet::NONE };
        operands.iter().try_fold(start, |set, operand| self.pair(conjunction, set, operand.clone()?))
    }

    /// The conjunction or disjunction of two sets. Recursion goes no deeper than there are variables.
    fn pair(&mut self, conjunction: bool, a: AssignmentSet, b: AssignmentSet) -> Result<AssignmentSet, DensityError> {
        let (neutral, deciding) = match conjunction {
            true => (AssignmentSet::ALL, AssignmentSet::NONE),
            false => (AssignmentSet::NONE, AssignmentSet::ALL),
        };
        if a == deciding || b == deciding {
            return Ok(deciding);
        }
        if a == neutral || a == b {
            return Ok(b);
        }
        if b == neutral {
            return Ok(a);
        }
        let key = (conjunction, a.min(b), a.max(b));
        if let Some(known) = self.junctions.get(&key) {
            return Ok(*known);
        }
        let [first, second] = [a, b].map(|set| self.diagram.nodes[set.position()]);
        let variable = first.variable.min(second.variable);
        let branches = |node: DiagramNode, set| {
            if node.variable == variable { (node.low, node.high) } else { (set, set) }
        };
        let ((a_low, a_high), (b_low, b_high)) = (branches(first, a), branches(second, b));
        let low = self.pair(conjunction, a_low, b_low)?;
        let high = self.pair(conjunction, a_high, b_high)?;
        let set = self.node(DiagramNode { variable, low, high })?;
        self.junctions.insert(key, set);
        Ok(set)
    }
}

impl AssignmentDiagram {
    /// The number of sets.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The number of variables.
    pub fn variables(&self) -> usize {
        self.variables
    }

    /// The nodes that some sets lead to, each with its variable and the positions of its branches, and the positions of
    /// the sets. The empty and the full set have the positions 0 and 1 and are not listed.
    pub fn reachable(&self, sets: &[AssignmentSet]) -> (Vec<[usize; 3]>, Vec<usize>) {
        let mut used = vec![false; self.nodes.len()];
        sets.iter().for_each(|set| used[set.position()] = true);
        for at in (2..self.nodes.len()).rev() {
            if used[at] {
                used[self.nodes[at].low.position()] = true;
                used[self.nodes[at].high.position()] = true;
            }
        }
        let (mut places, mut nodes) = (vec![0, 1], Vec::new());
        for (node, used) in self.nodes[2..].iter().zip(&used[2..]) {
            places.push(nodes.len() + 2);
            if *used {
                nodes.push([node.variable as usize, places[node.low.position()], places[node.high.position()]]);
            }
        }
        (nodes, sets.iter().map(|set| places[set.position()]).collect())
    }

    /// The probabilities of all sets. Where a variable is fixed they are conditional on its value.
    pub fn probabilities(&self, odds: &Odds, fixed: &[Option<bool>]) -> Vec<f64> {
        let mut values = vec![0.0, 1.0];
        for node in &self.nodes[2..] {
            let variable = node.variable as usize;
            let (low, high) = (values[node.low.position()], values[node.high.position()]);
            values.push(match fixed.get(variable).copied().flatten() {
                None => odds.no[variable] * low + odds.yes[variable] * high,
                Some(true) => high,
                Some(false) => low,
            });
        }
        values
    }

    /// The vector-Jacobian product of [`AssignmentDiagram::probabilities`] without fixed variables: adds to the gradient
    /// with respect to the logits. The gradient with respect to the probabilities is used up.
    pub fn pull_back(&self, odds: &Odds, values: &[f64], mut cotangent: Vec<f64>, gradient: &mut [f64]) {
        for (at, node) in self.nodes.iter().enumerate().skip(2).rev() {
            let (variable, g) = (node.variable as usize, cotangent[at]);
            if g == 0.0 {
                continue;
            }
            let (yes, no) = (odds.yes[variable], odds.no[variable]);
            gradient[variable] += g * yes * no * (values[node.high.position()] - values[node.low.position()]);
            cotangent[node.high.position()] += g * yes;
            cotangent[node.low.position()] += g * no;
        }
    }

    /// For all sets the logarithm of the probability of their most probable assignment of the variables from that of the
    /// node on; minus infinity for the empty set.
    fn log_largest(&self, odds: &Odds, fixed: &[Option<bool>]) -> LargestPaths {
        // free[j]: the sum over all variables before j.
        let mut free = vec![0.0];
        let mut sum = 0.0;
        for variable in 0..self.variables {
            sum += match fixed.get(variable).copied().flatten() {
                Some(value) => odds.bounded_log(variable, value),
                None => f64::max(odds.bounded_log(variable, true), odds.bounded_log(variable, false)),
            };
            free.push(sum);
        }
        let mut values = vec![f64::NEG_INFINITY, 0.0];
        for node in &self.nodes[2..] {
            let variable = node.variable as usize;
            let branch = |value: bool, to: AssignmentSet| {
                if fixed.get(variable).copied().flatten().is_some_and(|fixed| fixed != value) {
                    return f64::NEG_INFINITY;
                }
                let between = free[self.level(to)] - free[variable + 1];
                odds.bounded_log(variable, value) + values[to.position()] + between
            };
            values.push(f64::max(branch(false, node.low), branch(true, node.high)));
        }
        LargestPaths { free, values }
    }

    /// The most probable assignment of a set among those with the fixed values, with the logarithm of its probability;
    /// `None` if there is none.
    pub fn most_probable(&self, set: AssignmentSet, odds: &Odds, fixed: &[Option<bool>]) -> Option<(Vec<bool>, f64)> {
        let paths = self.log_largest(odds, fixed);
        let log = paths.values[set.position()] + paths.free[self.level(set)];
        if paths.values[set.position()] == f64::NEG_INFINITY {
            return None;
        }
        let (mut at, mut assignment) = (set, Vec::with_capacity(self.variables));
        for variable in 0..self.variables {
            let node = self.nodes[at.position()];
            let fixed = fixed.get(variable).copied().flatten();
            if node.variable as usize != variable {
                assignment.push(fixed.unwrap_or(odds.yes[variable] > odds.no[variable]));
                continue;
            }
            let value = fixed.unwrap_or_else(|| {
                let reach = |value: bool, to: AssignmentSet| {
                    odds.bounded_log(variable, value) + paths.values[to.position()] - paths.free[variable + 1]
                        + paths.free[self.level(to)]
                };
                reach(true, node.high) > reach(false, node.low)
            });
            assignment.push(value);
            at = if value { node.high } else { node.low };
        }
        Some((assignment, log))
    }

    /// The variable that a set asks for first; the number of variables if it asks for none.
    fn level(&self, set: AssignmentSet) -> usize {
        self.nodes[set.position()].variable as usize
    }

    /// Some assignment of a set that is not empty.
    pub fn first(&self, set: AssignmentSet) -> Option<Vec<bool>> {
        let mut assignment = vec![false; self.variables];
        let mut at = set;
        while at != AssignmentSet::ALL {
            if at == AssignmentSet::NONE {
                return None;
            }
            let node = self.nodes[at.position()];
            let high = node.low == AssignmentSet::NONE;
            assignment[node.variable as usize] = high;
            at = if high { node.high } else { node.low };
        }
        Some(assignment)
    }

    /// Whether an assignment belongs to a set.
    #[cfg(test)]
    fn contains(&self, set: AssignmentSet, assignment: &[bool]) -> bool {
        let mut at = set;
        while at != AssignmentSet::ALL && at != AssignmentSet::NONE {
            let node = self.nodes[at.position()];
            at = if assignment[node.variable as usize] { node.high } else { node.low };
        }
        at == AssignmentSet::ALL
    }

    /// All assignments of a set, in the order of counting with the first variable as the highest digit; `None` if there
    /// are more than `most`.
    pub fn list(&self, set: AssignmentSet, most: usize) -> Option<Vec<Vec<bool>>> {
        let mut paths: Vec<(AssignmentSet, Vec<bool>)> = vec![(set, Vec::new())];
        for variable in 0..self.variables {
            let mut longer = Vec::with_capacity(paths.len());
            for (at, path) in paths {
                let node = self.nodes[at.position()];
                let own = node.variable as usize == variable;
                for (value, to) in [(false, node.low), (true, node.high)] {
                    let to = if own { to } else { at };
                    if to != AssignmentSet::NONE {
                        let mut path = path.clone();
                        path.push(value);
                        longer.push((to, path));
                    }
                }
                // Every path leads to at least one assignment.
                if longer.len() > most {
                    return None;
                }
            }
            paths = longer;
        }
        Some(paths.into_iter().filter(|(at, _)| *at == AssignmentSet::ALL).map(|(_, path)| path).collect())
    }

    /// The assignment of a set that independent uniform numbers choose, one per variable, given the probabilities of all
    /// sets under the odds.
    pub fn draw(&self, set: AssignmentSet, odds: &Odds, values: &[f64], mut uniform: impl FnMut() -> f64) -> Vec<bool> {
        let mut at = set;
        let choose = |variable: usize| {
            let node = self.nodes[at.position()];
            let u = uniform();
            if node.variable as usize != variable {
                return u < odds.yes[variable];
            }
            let low = odds.no[variable] * values[node.low.position()];
            let high = odds.yes[variable] * values[node.high.position()];
            // A branch without probability is never taken, even where u rounds to an end.
            let value = if low == 0.0 { true } else { high > 0.0 && u * (low + high) < high };
            at = if value { node.high } else { node.low };
            value
        };
        (0..self.variables).map(choose).collect()
    }
}

/// What [`AssignmentDiagram::log_largest`] knows.
struct LargestPaths {
    /// For each variable the sum of the largest log-probabilities of all variables before it.
    free: Vec<f64>,
    /// For each set the logarithm of the largest probability.
    values: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assignments(count: usize) -> impl Iterator<Item = Vec<bool>> {
        (0..1usize << count).map(move |bits| (0..count).map(|k| bits >> (count - 1 - k) & 1 == 1).collect())
    }

    fn case() -> (Vec<Var>, Formula, AssignmentDiagram, AssignmentSet) {
        let names = ["a", "b", "c", "d", "e"];
        let vars: Vec<Var> = names.iter().map(|name| Var::new(name)).collect();
        let [a, b, c, _, e] = names.map(Formula::boolean);
        let formula = (a.clone() | !b.clone()) & c.clone().iff(a.clone() & e.clone()) & !(b & e.clone() & !c);
        let mut builder = DiagramBuilder::new(5).unwrap();
        let set = builder.of_formula(&formula, &vars).unwrap();
        (vars, formula, builder.finish(), set)
    }

    fn holds(formula: &Formula, vars: &[Var], assignment: &[bool]) -> bool {
        crate::formula::Membership::new(formula, &[], vars).unwrap().contains_with(&[], assignment)
    }

    #[test]
    fn a_set_holds_the_assignments_that_satisfy_the_formula() {
        let (vars, formula, diagram, set) = case();
        let want: Vec<Vec<bool>> = assignments(5).filter(|b| holds(&formula, &vars, b)).collect();
        assert!(want.len() > 3 && want.len() < 29);
        assert_eq!(diagram.list(set, 32).unwrap(), want);
        assert_eq!(diagram.list(set, want.len() - 1), None);
        assignments(5).for_each(|b| assert_eq!(diagram.contains(set, &b), want.contains(&b)));
        assert!(want.contains(&diagram.first(set).unwrap()));
    }

    #[test]
    fn probabilities_and_gradients_are_sums_over_assignments() {
        let (_, _, diagram, set) = case();
        let logits = [0.3, -1.2, 0.7, 2.0, -0.4];
        let probability = |logits: &[f64], fixed: &[Option<bool>]| {
            let odds = Odds::new(logits);
            let fits = |b: &&Vec<bool>| b.iter().zip(fixed).all(|(b, f)| f.is_none_or(|f| f == *b));
            let all = diagram.list(set, 32).unwrap();
            let given: f64 = (0..5).filter_map(|k| fixed[k].map(|f| odds.of(k, f))).product();
            all.iter().filter(fits).map(|b| odds.log_of(b).exp()).sum::<f64>() / given
        };
        let odds = Odds::new(&logits);
        for fixed in [[None; 5], [None, Some(true), None, Some(false), None], [Some(true), None, None, None, None]] {
            let value = diagram.probabilities(&odds, &fixed)[set.position()];
            assert!((value - probability(&logits, &fixed)).abs() < 1e-15, "{fixed:?}");
        }
        let values = diagram.probabilities(&odds, &[]);
        let (mut gradient, mut cotangent) = (vec![0.0; 5], vec![0.0; diagram.len()]);
        cotangent[set.position()] = 1.0;
        diagram.pull_back(&odds, &values, cotangent, &mut gradient);
        for k in 0..5 {
            let at = |h: f64| {
                let mut moved = logits;
                moved[k] += h;
                probability(&moved, &[None; 5])
            };
            assert!((gradient[k] - (at(1e-5) - at(-1e-5)) / 2e-5).abs() < 1e-9, "variable {k}");
        }
    }

    #[test]
    fn the_most_probable_assignment_is_that_of_the_list() {
        let (_, _, diagram, set) = case();
        for (seed, fixed) in [(1u64, [None; 5]), (2, [None, Some(false), None, None, Some(true)]), (3, [None; 5])] {
            let mut stream = crate::random::Stream::new(seed, 0);
            let odds = Odds::new(&(0..5).map(|_| 2.0 * stream.normal()).collect::<Vec<f64>>());
            let fits = |b: &Vec<bool>| b.iter().zip(&fixed).all(|(b, f)| f.is_none_or(|f| f == *b));
            let all = diagram.list(set, 32).unwrap();
            let best = all.iter().filter(|b| fits(b)).max_by(|a, b| odds.log_of(a).total_cmp(&odds.log_of(b)));
            let (found, log) = diagram.most_probable(set, &odds, &fixed).unwrap();
            assert_eq!(Some(&found), best);
            assert!((log - odds.log_of(&found)).abs() < 1e-12);
        }
        assert!(diagram.most_probable(AssignmentSet::NONE, &Odds::new(&[0.0; 5]), &[None; 5]).is_none());
    }

    #[test]
    fn draws_follow_the_probabilities() {
        let (_, _, diagram, set) = case();
        let odds = Odds::new(&[0.3, -1.2, 0.7, 2.0, -0.4]);
        let values = diagram.probabilities(&odds, &[]);
        let all = diagram.list(set, 32).unwrap();
        let mut counts = vec![0.0; all.len()];
        let mut stream = crate::random::Stream::new(7, 0);
        let draws = 20_000;
        for _ in 0..draws {
            let drawn = diagram.draw(set, &odds, &values, || stream.unit());
            counts[all.iter().position(|b| *b == drawn).expect("the set contains what is drawn")] += 1.0;
        }
        let expected = |b: &Vec<bool>| draws as f64 * odds.log_of(b).exp() / values[set.position()];
        let chi_square: f64 = all.iter().zip(&counts).map(|(b, c)| (c - expected(b)).powi(2) / expected(b)).sum();
        assert!(chi_square < 2.5 * all.len() as f64, "{chi_square} with {} assignments", all.len());
    }

    #[test]
    fn twenty_variables_and_ten_clauses_are_few_nodes() {
        let vars: Vec<Var> = (0..20).map(|k| Var::new(&format!("b{k}"))).collect();
        let b = |k: usize| Formula::boolean(&format!("b{k}"));
        let clauses = Formula::all((0..10).map(|k| b(2 * k) | !b(2 * k + 1)));
        let mut builder = DiagramBuilder::new(20).unwrap();
        let set = builder.of_formula(&clauses, &vars).unwrap();
        let diagram = builder.finish();
        // The sets that were made on the way, negations included, are still in the diagram.
        assert!(diagram.len() < 400, "{}", diagram.len());
        let value = diagram.probabilities(&Odds::new(&[0.0; 20]), &[])[set.position()];
        assert!((value - 0.75f64.powi(10)).abs() < 1e-15);
        assert!(DiagramBuilder::new(MAX_BOOLEANS + 1).is_err());
    }
}
