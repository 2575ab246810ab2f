//! The Boolean structure of a formula over numbered hyperplanes, and its simplification on a cell.
//!
//! Inside a full-dimensional cell that a hyperplane does not cut, an atom is simply true or false, strict or not, and
//! an equality is false. What is left undecided is a smaller skeleton. Evaluation is three-valued (Kleene): a
//! disjunction with a true operand is true whatever the others are.

use std::collections::HashMap;

use super::index::{BooleanIndex, PlaneIndex};
use super::polytope::Side;
use crate::formula::{Atom, Connective, Formula, Node, Relation, Var};

/// Something that can be true or false and is decided by branching.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Literal {
    /// The cell lies on this side of the hyperplane.
    Side { plane: PlaneIndex, side: Side },
    /// The Boolean variable has this value.
    Bool { var: BooleanIndex, value: bool },
}

/// The position of a node in the list of its skeleton.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct NodeIndex(u32);

impl NodeIndex {
    fn new(position: usize) -> Self {
        NodeIndex(u32::try_from(position).expect("four billion nodes of a formula do not fit into memory"))
    }

    fn position(self) -> usize {
        self.0 as usize
    }
}

/// What is known of a node: its truth value, or which node it is equivalent to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Truth {
    Known(bool),
    Open(NodeIndex),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum SkeletonNode {
    Literal(Literal),
    /// A conjunction or disjunction of a range of `operands`.
    Junction {
        conjunction: bool,
        start: u32,
        end: u32,
    },
}

/// A formula in negation normal form, as a list in which every node comes after its operands; the last one is the root.
#[derive(Clone, Default, Debug)]
pub(crate) struct Skeleton {
    nodes: Vec<SkeletonNode>,
    operands: Vec<NodeIndex>,
    /// For each node the literals below it, counted with repetition.
    sizes: Vec<u32>,
    /// The hyperplanes that occur, each once, in increasing order.
    pub planes: Vec<PlaneIndex>,
}

/// A node of a skeleton on the way up.
pub(crate) enum FoldedNode<'v, T> {
    Literal(Literal),
    /// A conjunction (`true`) or disjunction of operands with these values.
    Junction(bool, &'v [T]),
}

/// A skeleton after simplification.
#[derive(Clone, Debug)]
pub(crate) enum Residue {
    Decided(bool),
    Open(Skeleton),
}

impl Skeleton {
    /// Builds the skeleton of a formula; the functions say which hyperplane and which Boolean each name stands for.
    pub fn compile(
        formula: &Formula,
        plane_of: &impl Fn(&Atom) -> PlaneIndex,
        boolean_of: &impl Fn(&Var) -> BooleanIndex,
    ) -> Residue {
        let mut builder = Builder::default();
        // Every node of the formula together with its negation.
        let (root, _) = formula.fold(|node, children: &[(Truth, Truth)]| match node.node() {
            Node::Constant(value) => (Truth::Known(*value), Truth::Known(!value)),
            Node::Bool(var) => {
                let var = boolean_of(var);
                (
                    builder.literal(Literal::Bool { var, value: true }),
                    builder.literal(Literal::Bool { var, value: false }),
                )
            }
            Node::Atom(atom) if atom.relation() == Relation::Eq => (Truth::Known(false), Truth::Known(true)),
            Node::Atom(atom) => {
                let plane = plane_of(atom);
                (
                    builder.literal(Literal::Side { plane, side: Side::Below }),
                    builder.literal(Literal::Side { plane, side: Side::Above }),
                )
            }
            Node::Connective(connective, _) => builder.connective(*connective, children),
        });
        match root {
            Truth::Known(value) => Residue::Decided(value),
            // The builder's list also holds nodes that the root does not reach.
            Truth::Open(root) => Skeleton { nodes: builder.nodes, operands: builder.operands, ..Skeleton::default() }
                .extract(root, |_| None),
        }
    }

    /// What is left of the formula once some literals are decided.
    pub fn simplify(&self, decide: impl Fn(Literal) -> Option<bool>) -> Residue {
        match self.nodes.len() {
            0 => Residue::Decided(true),
            n => self.extract(NodeIndex::new(n - 1), decide),
        }
    }

    fn extract(&self, root: NodeIndex, decide: impl Fn(Literal) -> Option<bool>) -> Residue {
        // From the operands up. A junction with one undecided operand is that operand.
        let mut truths: Vec<Truth> = Vec::with_capacity(root.position() + 1);
        for (at, node) in self.nodes.iter().enumerate().take(root.position() + 1) {
            let itself = Truth::Open(NodeIndex(at as u32));
            let truth = match node {
                SkeletonNode::Literal(literal) => decide(*literal).map_or(itself, Truth::Known),
                SkeletonNode::Junction { conjunction, start, end } => {
                    // True is neutral in a conjunction and false decides it; in a disjunction it is the other way
                    // round.
                    let (mut open, mut last) = (0, Truth::Known(*conjunction));
                    for operand in &self.operands[*start as usize..*end as usize] {
                        let truth = truths[operand.position()];
                        match truth {
                            Truth::Known(value) if value == *conjunction => {}
                            Truth::Known(_) => {
                                (open, last) = (0, truth);
                                break;
                            }
                            Truth::Open(_) => {
                                open += usize::from(truth != last);
                                last = truth;
                            }
                        }
                    }
                    if open <= 1 { last } else { itself }
                }
            };
            truths.push(truth);
        }
        match truths[root.position()] {
            Truth::Known(value) => Residue::Decided(value),
            Truth::Open(top) => Residue::Open(self.copy_reachable(top, &truths)),
        }
    }

    fn copy_reachable(&self, top: NodeIndex, truths: &[Truth]) -> Skeleton {
        let undecided = |start: u32, end: u32| {
            let operands = self.operands[start as usize..end as usize].iter();
            operands.filter_map(|operand| match truths[operand.position()] {
                Truth::Known(_) => None,
                Truth::Open(node) => Some(node),
            })
        };
        let mut reached = vec![false; top.position() + 1];
        reached[top.position()] = true;
        for at in (0..=top.position()).rev() {
            if let (true, SkeletonNode::Junction { start, end, .. }) = (reached[at], &self.nodes[at]) {
                undecided(*start, *end).for_each(|operand| reached[operand.position()] = true);
            }
        }
        let mut copy = Skeleton::default();
        let mut moved = vec![NodeIndex(0); top.position() + 1];
        for at in (0..=top.position()).filter(|at| reached[*at]) {
            moved[at] = NodeIndex(copy.nodes.len() as u32);
            match &self.nodes[at] {
                SkeletonNode::Literal(literal) => {
                    if let Literal::Side { plane, .. } = literal {
                        copy.planes.push(*plane);
                    }
                    copy.nodes.push(SkeletonNode::Literal(*literal));
                    copy.sizes.push(1);
                }
                SkeletonNode::Junction { conjunction, start, end } => {
                    let first = copy.operands.len() as u32;
                    copy.operands.extend(undecided(*start, *end).map(|operand| moved[operand.position()]));
                    let last = copy.operands.len() as u32;
                    let size = copy.operands[first as usize..]
                        .iter()
                        .fold(0u32, |sum, operand| sum.saturating_add(copy.sizes[operand.position()]));
                    copy.nodes.push(SkeletonNode::Junction { conjunction: *conjunction, start: first, end: last });
                    copy.sizes.push(size);
                }
            }
        }
        copy.planes.sort_unstable();
        copy.planes.dedup();
        copy
    }

    /// The hyperplane to branch on next where Boolean variables stay undecided: as in [`Skeleton::choose`], among the
    /// clauses with a hyperplane. `None` if only Boolean variables are left.
    pub fn choose_side(&self) -> Option<Literal> {
        if self.planes.is_empty() {
            return None;
        }
        let mut has_side = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            has_side.push(match node {
                SkeletonNode::Literal(literal) => matches!(literal, Literal::Side { .. }),
                SkeletonNode::Junction { start, end, .. } => {
                    self.operands[*start as usize..*end as usize].iter().any(|at| has_side[at.position()])
                }
            });
        }
        let mut at = self.nodes.len().checked_sub(1)?;
        loop {
            match &self.nodes[at] {
                SkeletonNode::Literal(literal) => return Some(*literal),
                SkeletonNode::Junction { start, end, .. } => {
                    let operands = self.operands[*start as usize..*end as usize].iter();
                    let with_side = operands.filter(|operand| has_side[operand.position()]);
                    at = with_side.min_by_key(|operand| self.sizes[operand.position()])?.position();
                }
            }
        }
    }

    /// Whether some values of the Boolean variables satisfy a skeleton without hyperplanes.
    pub fn is_satisfiable(&self) -> bool {
        let mut open = vec![self.clone()];
        while let Some(skeleton) = open.pop() {
            let Some(Literal::Bool { var, value }) = skeleton.choose() else { return true };
            // The value that satisfies the chosen literal is tried first.
            for value in [!value, value] {
                let decide = |literal| match literal {
                    Literal::Bool { var: other, value: wanted } if other == var => Some(wanted == value),
                    _ => None,
                };
                match skeleton.simplify(decide) {
                    Residue::Decided(true) => return true,
                    Residue::Decided(false) => {}
                    Residue::Open(smaller) => open.push(smaller),
                }
            }
        }
        false
    }

    /// The sides that a conjunction of half-spaces asks for, each once; `None` for any other formula.
    pub fn conjuncts(&self) -> Option<Vec<(PlaneIndex, Side)>> {
        let mut sides = Vec::new();
        for node in &self.nodes {
            match node {
                SkeletonNode::Literal(Literal::Side { plane, side }) => sides.push((*plane, *side)),
                SkeletonNode::Junction { conjunction: true, .. } => {}
                SkeletonNode::Literal(Literal::Bool { .. }) | SkeletonNode::Junction { .. } => return None,
            }
        }
        Some(sides)
    }

    /// Computes a value from the literals up, one for every node from those of its operands. A skeleton without nodes has
    /// the value of a conjunction of nothing.
    pub fn fold<T: Clone>(&self, mut visit: impl FnMut(FoldedNode<'_, T>) -> T) -> T {
        let mut values: Vec<T> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let value = match node {
                SkeletonNode::Literal(literal) => visit(FoldedNode::Literal(*literal)),
                SkeletonNode::Junction { conjunction, start, end } => {
                    let operands = self.operands[*start as usize..*end as usize].iter();
                    let operands: Vec<T> = operands.map(|at| values[at.position()].clone()).collect();
                    visit(FoldedNode::Junction(*conjunction, &operands))
                }
            };
            values.push(value);
        }
        values.pop().unwrap_or_else(|| visit(FoldedNode::Junction(true, &[])))
    }

    /// The literal to branch on next: the first one of the smallest undecided clause. `None` if nothing is undecided.
    pub fn choose(&self) -> Option<Literal> {
        let mut at = self.nodes.len().checked_sub(1)?;
        loop {
            match &self.nodes[at] {
                SkeletonNode::Literal(literal) => return Some(*literal),
                SkeletonNode::Junction { start, end, .. } => {
                    let operands = &self.operands[*start as usize..*end as usize];
                    let smallest = operands.iter().min_by_key(|operand| self.sizes[operand.position()]);
                    at = smallest.expect("a junction has at least two operands").position();
                }
            }
        }
    }
}

/// Collects nodes, sharing equal ones.
#[derive(Default)]
struct Builder {
    nodes: Vec<SkeletonNode>,
    operands: Vec<NodeIndex>,
    literals: HashMap<Literal, NodeIndex>,
    junctions: HashMap<(bool, Vec<NodeIndex>), NodeIndex>,
}

impl Builder {
    fn literal(&mut self, literal: Literal) -> Truth {
        Truth::Open(*self.literals.entry(literal).or_insert_with(|| {
            self.nodes.push(SkeletonNode::Literal(literal));
            NodeIndex::new(self.nodes.len() - 1)
        }))
    }

    fn junction(&mut self, conjunction: bool, operands: impl IntoIterator<Item = Truth>) -> Truth {
        let mut list: Vec<NodeIndex> = Vec::new();
        for operand in operands {
            match operand {
                Truth::Known(value) if value == conjunction => {}
                Truth::Known(_) => return operand,
                Truth::Open(node) => list.push(node),
            }
        }
        match list[..] {
            [] => return Truth::Known(conjunction),
            [only] => return Truth::Open(only),
            _ => {}
        }
        let key = (conjunction, list);
        if let Some(known) = self.junctions.get(&key) {
            return Truth::Open(*known);
        }
        let start = self.operands.len();
        self.operands.extend(&key.1);
        let end = u32::try_from(self.operands.len()).expect("four billion operands do not fit into memory");
        self.nodes.push(SkeletonNode::Junction { conjunction, start: start as u32, end });
        let index = NodeIndex::new(self.nodes.len() - 1);
        self.junctions.insert(key, index);
        Truth::Open(index)
    }

    fn connective(&mut self, connective: Connective, children: &[(Truth, Truth)]) -> (Truth, Truth) {
        match connective {
            Connective::Not => (children[0].1, children[0].0),
            Connective::And => {
                (self.junction(true, children.iter().map(|c| c.0)), self.junction(false, children.iter().map(|c| c.1)))
            }
            Connective::Or => {
                (self.junction(false, children.iter().map(|c| c.0)), self.junction(true, children.iter().map(|c| c.1)))
            }
            Connective::Iff => {
                let ((a, not_a), (b, not_b)) = (children[0], children[1]);
                (self.either([(a, b), (not_a, not_b)]), self.either([(a, not_b), (not_a, b)]))
            }
            Connective::Ite => {
                // The third pair makes the result known as soon as both branches agree.
                let ((c, not_c), (a, not_a), (b, not_b)) = (children[0], children[1], children[2]);
                (self.either([(c, a), (not_c, b), (a, b)]), self.either([(c, not_a), (not_c, not_b), (not_a, not_b)]))
            }
        }
    }

    /// The disjunction of conjunctions of two.
    fn either<const N: usize>(&mut self, pairs: [(Truth, Truth); N]) -> Truth {
        let options = pairs.map(|(a, b)| self.junction(true, [a, b]));
        self.junction(false, options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formula::reals;

    fn skeleton(formula: &Formula) -> Skeleton {
        let atoms = formula.atoms();
        let plane_of = |atom: &Atom| PlaneIndex::new(atoms.iter().position(|a| a == atom).unwrap());
        match Skeleton::compile(formula, &plane_of, &|_| BooleanIndex::new(0)) {
            Residue::Open(s) => s,
            Residue::Decided(value) => panic!("decided: {value}"),
        }
    }

    #[test]
    fn nodes_stay_small() {
        assert!(size_of::<Truth>() == 8 && size_of::<Literal>() == 8 && size_of::<SkeletonNode>() == 12);
    }

    #[test]
    fn three_valued_evaluation_decides_what_it_can() {
        let [x, y] = reals(["x", "y"]);
        let f = (x.le(0) | y.le(0)) & (x.le(1) | y.le(1));
        let s = skeleton(&f);
        let all_below = |l: Literal| matches!(l, Literal::Side { side: Side::Below, .. });
        assert!(matches!(s.simplify(|l| Some(all_below(l))), Residue::Decided(true)));
        assert!(matches!(s.simplify(|l| Some(!all_below(l))), Residue::Decided(false)));
        let Residue::Open(rest) = s.simplify(|l| match l {
            Literal::Side { plane, side } if plane.position() == 0 => Some(side == Side::Below),
            _ => None,
        }) else {
            panic!("one atom does not decide the formula")
        };
        assert!(rest.planes.len() < s.planes.len());
    }

    #[test]
    fn an_ite_with_equal_branches_needs_no_condition() {
        let [x, y, z] = reals(["x", "y", "z"]);
        let f = x.le(0).ite(y.le(0), z.le(0));
        let s = skeleton(&f);
        let plane_x = f.atoms().iter().position(|a| a.to_string() == "x <= 0").unwrap();
        let residue = s.simplify(|l| match l {
            Literal::Side { plane, side } if plane.position() != plane_x => Some(side == Side::Below),
            _ => None,
        });
        assert!(matches!(residue, Residue::Decided(true)));
    }

    #[test]
    fn equalities_have_no_volume() {
        let [x] = reals(["x"]);
        let compile = |f: &Formula| Skeleton::compile(f, &|_| PlaneIndex::new(0), &|_| BooleanIndex::new(0));
        assert!(matches!(compile(&x.equals(1)), Residue::Decided(false)));
        assert!(matches!(compile(&x.differs(1)), Residue::Decided(true)));
    }
}
