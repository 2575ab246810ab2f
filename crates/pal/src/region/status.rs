//! What kind of region a constraint describes, down to the difference between empty and lower-dimensional.
//!
//! A constraint without full-dimensional cells may still have solutions, on a hyperplane or in a point. To find out,
//! the box is divided into relatively open faces of all dimensions: a hyperplane cuts a face into what is below,
//! what is on it and what is above. On each face every decided atom has one sign, so strictness is respected exactly.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use super::index::PlaneIndex;
use super::polytope::{Polytope, Position, Side};
use super::space::Hyperplane;
use super::unbounded::Unbounded;
use super::{Region, Satisfiability, SpaceBuilder};
use crate::formula::{Bounds, Connective, Formula, Node, Plane, Relation, Var};
use crate::interrupt::checkpoint;
use crate::number::{Integer, Rational};

/// The kind of a region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// It has a positive, finite volume.
    Bounded,
    /// Its volume is infinite.
    Unbounded(Unbounded),
    /// It has solutions, for instance this one, but no volume.
    LowerDimensional(Vec<Rational>),
    /// It has no solution at all.
    Empty,
    /// It has solutions, for instance this one; more was not found out.
    Satisfiable(Vec<Rational>),
    /// It has no volume; whether it has solutions was not decided within the limit of the search.
    NoVolume,
}

impl Status {
    /// The kind in one word: `bounded`, `unbounded`, `lower-dimensional`, `empty`, `satisfiable` or
    /// `no-volume`.
    pub fn name(&self) -> &'static str {
        match self {
            Status::Bounded => "bounded",
            Status::Unbounded(_) => "unbounded",
            Status::LowerDimensional(_) => "lower-dimensional",
            Status::Empty => "empty",
            Status::Satisfiable(_) => "satisfiable",
            Status::NoVolume => "no-volume",
        }
    }
}

/// Relatively open faces looked at before giving up on a constraint without volume.
const MAX_FACES: usize = 200_000;

impl Region {
    /// Classifies the region.
    pub fn status(&self) -> Status {
        match self.map_cells(|_| ()) {
            Err(ray) => Status::Unbounded(ray),
            Ok(cells) if !cells.is_empty() => Status::Bounded,
            Ok(_) => self.status_without_volume(),
        }
    }

    /// Classifies a region that is known to have no full-dimensional cell.
    pub fn status_without_volume(&self) -> Status {
        match self.find_point(MAX_FACES) {
            PointSearch::Found(point) => Status::LowerDimensional(point),
            PointSearch::Nothing => Status::Empty,
            PointSearch::GaveUp => match self.constraint.satisfiability() {
                Ok(Satisfiability::Satisfiable { reals, .. }) => Status::LowerDimensional(reals),
                Ok(Satisfiability::Unsatisfiable) => Status::Empty,
                Ok(Satisfiability::Undecided) | Err(_) => Status::NoVolume,
            },
        }
    }

    fn find_point(&self, max_faces: usize) -> PointSearch {
        let mut found = None;
        let finished = self.search_faces(max_faces, |polytope| {
            found = Some(centre(polytope));
            ControlFlow::Break(())
        });
        match (found, finished) {
            (Some(point), _) => PointSearch::Found(point),
            (None, true) => PointSearch::Nothing,
            (None, false) => PointSearch::GaveUp,
        }
    }

    /// Visits the vertices of relatively open convex sets, disjoint and of all dimensions, that together are the solutions
    /// of the constraint. False if there are too many to visit.
    pub(super) fn visit_faces(&self, mut visit: impl FnMut(Vec<Vec<Rational>>)) -> bool {
        self.search_faces(MAX_FACES, |polytope| {
            visit(polytope.exact_vertices());
            ControlFlow::Continue(())
        })
    }

    /// Visits the closures of the relatively open faces on which the formula is true, until told to stop. False if that
    /// was given up after `max_faces` faces.
    fn search_faces(&self, max_faces: usize, mut visit: impl FnMut(&Polytope) -> ControlFlow<()>) -> bool {
        let Bounds::Box(_) = &self.bounds else { return true };
        let reals = &self.constraint.reals;
        let mut builder = SpaceBuilder::new(reals.len());
        let formula = FlatFormula::new(&self.constraint.formula, &mut |plane| {
            let coefficient = |var: &Var| plane.normal().iter().find(|(v, _)| v == var).map(|(_, a)| a.clone());
            let normal = reals.iter().map(|var| coefficient(var).unwrap_or(Integer::ZERO)).collect();
            builder.plane(Hyperplane::new(normal, plane.offset().clone()))
        });
        // One unit wider than the bounds: solutions on the bounds themselves are then inside the open box.
        let wider = match &self.bounds {
            Bounds::Empty => Bounds::Empty,
            Bounds::Box(intervals) => Bounds::Box(
                intervals
                    .iter()
                    .map(|(var, interval)| {
                        let mut wide = interval.clone();
                        wide.low = wide.low.map(|low| low - Rational::ONE);
                        wide.high = wide.high.map(|high| high + Rational::ONE);
                        (var.clone(), wide)
                    })
                    .collect(),
            ),
        };
        let Some(start) = builder.starting_box(reals, &wider) else { return true };
        let planes = formula.planes();
        let face = OpenFace {
            polytope: Polytope::cuboid(Arc::new(builder.space), &start),
            signs: HashMap::new(),
            booleans: HashMap::new(),
        };
        let mut stack = vec![face];
        for _ in 0..max_faces {
            checkpoint();
            let Some(mut face) = stack.pop() else { return true };
            face.observe(&planes);
            match formula.evaluate(&face) {
                Outcome::Known(true) => {
                    if visit(&face.polytope).is_break() {
                        return true;
                    }
                }
                Outcome::Known(false) => {}
                Outcome::Ask(Question::Plane(plane)) => stack.extend(face.divide(plane)),
                Outcome::Ask(Question::Boolean(var)) => stack.extend([false, true].map(|value| {
                    let mut booleans = face.booleans.clone();
                    booleans.insert(var.clone(), value);
                    OpenFace { booleans, ..face.clone() }
                })),
            }
        }
        stack.is_empty()
    }
}

enum PointSearch {
    Found(Vec<Rational>),
    Nothing,
    GaveUp,
}

/// The mean of the vertices, a point of the relative interior.
fn centre(polytope: &Polytope) -> Vec<Rational> {
    let vertices = polytope.exact_vertices();
    let count = Rational::from(vertices.len());
    (0..polytope.dimension())
        .map(|axis| vertices.iter().fold(Rational::ZERO, |sum, v| sum + &v[axis]) / &count)
        .collect()
}

/// A relatively open convex set, given by its closure, with the signs of hyperplanes on it: a union of faces of the
/// arrangement of hyperplanes.
#[derive(Clone)]
struct OpenFace {
    polytope: Polytope,
    signs: HashMap<PlaneIndex, Ordering>,
    booleans: HashMap<Var, bool>,
}

impl OpenFace {
    fn observe(&mut self, planes: &[PlaneIndex]) {
        for plane in planes {
            if !self.signs.contains_key(plane) {
                match self.polytope.position(*plane) {
                    Position::On(Side::Below) => self.signs.insert(*plane, Ordering::Less),
                    Position::On(Side::Above) => self.signs.insert(*plane, Ordering::Greater),
                    Position::Within => self.signs.insert(*plane, Ordering::Equal),
                    Position::Cut => None,
                };
            }
        }
    }

    fn divide(&self, plane: PlaneIndex) -> Vec<OpenFace> {
        let signs = self.polytope.signs(plane);
        let [below, above] = self.polytope.cut(plane, &signs, [true, true]);
        let on = self.polytope.slice(plane, &signs);
        // The slice goes last and is taken first: solutions without volume lie on hyperplanes.
        let parts = [(below, Ordering::Less), (above, Ordering::Greater), (Some(on), Ordering::Equal)];
        let faces = parts.into_iter().filter_map(|(polytope, sign)| {
            let mut signs = self.signs.clone();
            signs.insert(plane, sign);
            Some(OpenFace { polytope: polytope?, signs, booleans: self.booleans.clone() })
        });
        faces.collect()
    }
}

/// A formula as a list in which arguments come before their connective.
struct FlatFormula {
    nodes: Vec<FlatNode>,
}

enum FlatNode {
    Constant(bool),
    Atom(PlaneIndex, Relation),
    Bool(Var),
    Connective(Connective, Vec<usize>),
}

/// Something to branch on.
#[derive(Clone)]
enum Question {
    Plane(PlaneIndex),
    Boolean(Var),
}

#[derive(Clone)]
enum Outcome {
    Known(bool),
    Ask(Question),
}

impl FlatFormula {
    fn new(formula: &Formula, plane_of: &mut impl FnMut(&Plane) -> PlaneIndex) -> FlatFormula {
        let mut nodes = Vec::new();
        formula.fold(|node, children: &[usize]| {
            nodes.push(match node.node() {
                Node::Constant(value) => FlatNode::Constant(*value),
                Node::Atom(atom) => FlatNode::Atom(plane_of(atom.plane()), atom.relation()),
                Node::Bool(var) => FlatNode::Bool(var.clone()),
                Node::Connective(connective, _) => FlatNode::Connective(*connective, children.to_vec()),
            });
            nodes.len() - 1
        });
        FlatFormula { nodes }
    }

    fn planes(&self) -> Vec<PlaneIndex> {
        let mut planes: Vec<PlaneIndex> = self
            .nodes
            .iter()
            .filter_map(|node| match node {
                FlatNode::Atom(plane, _) => Some(*plane),
                _ => None,
            })
            .collect();
        planes.sort_unstable();
        planes.dedup();
        planes
    }

    /// The truth of the formula on a face, or what to ask next.
    fn evaluate(&self, face: &OpenFace) -> Outcome {
        let mut outcomes: Vec<Outcome> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let outcome = match node {
                FlatNode::Constant(value) => Outcome::Known(*value),
                FlatNode::Atom(plane, relation) => match face.signs.get(plane) {
                    Some(sign) => Outcome::Known(relation.holds(*sign)),
                    None => Outcome::Ask(Question::Plane(*plane)),
                },
                FlatNode::Bool(var) => match face.booleans.get(var) {
                    Some(value) => Outcome::Known(*value),
                    None => Outcome::Ask(Question::Boolean(var.clone())),
                },
                FlatNode::Connective(connective, arguments) => {
                    let arguments: Vec<&Outcome> = arguments.iter().map(|a| &outcomes[*a]).collect();
                    combine(*connective, &arguments)
                }
            };
            outcomes.push(outcome);
        }
        outcomes.pop().expect("a formula has at least one node")
    }
}

fn combine(connective: Connective, arguments: &[&Outcome]) -> Outcome {
    match (connective, arguments) {
        (Connective::Not, [Outcome::Known(value)]) => Outcome::Known(!value),
        (Connective::Iff, [Outcome::Known(a), Outcome::Known(b)]) => Outcome::Known(a == b),
        (Connective::Ite, [Outcome::Known(c), yes, no]) => (if *c { *yes } else { *no }).clone(),
        (Connective::And | Connective::Or, _) => {
            let absorbing = connective == Connective::Or;
            if arguments.iter().any(|a| matches!(a, Outcome::Known(value) if *value == absorbing)) {
                return Outcome::Known(absorbing);
            }
            first_question(arguments).unwrap_or(Outcome::Known(!absorbing))
        }
        _ => first_question(arguments).expect("a connective whose arguments are all known is known"),
    }
}

fn first_question(arguments: &[&Outcome]) -> Option<Outcome> {
    arguments.iter().find(|a| matches!(a, Outcome::Ask(_))).map(|a| (*a).clone())
}
