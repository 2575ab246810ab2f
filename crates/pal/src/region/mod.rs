//! Regions: from a formula to disjoint convex cells.
//!
//! ```
//! use pal::{formula::reals, region::Region};
//! let [x, y] = reals(["x", "y"]);
//! let square = x.between(-1, 1) & y.between(-1, 1);
//! let triangle = x.ge(0) & y.ge(0) & (&x + &y).le(1);
//! let region = Region::new(&(square & !triangle).into()).unwrap();
//! assert_eq!(region.exact_volume().unwrap().to_string(), "7/2");
//! assert_eq!(region.cells().count(), 3);
//! ```
//!
//! Cells are closed polytopes with disjoint interiors that together make up the region, up to a set of measure zero.
//! No decision on the way depends on rounding.

mod batch;
mod bits;
mod convert;
mod convex;
mod drive;
mod flat;
mod index;
mod lattice;
pub(crate) mod planar;
mod polytope;
mod project;
mod pulling;
mod satisfiability;
mod search;
mod skeleton;
pub(crate) mod solid;
mod space;
mod status;
mod triangulate;
mod unbounded;
mod vertex_sum;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub use batch::{BatchError, BatchFileError, RegionBatch, RegionMap};
pub(crate) use batch::{CellPolygons, CellScalar};
pub use convex::{Breakpoint, ConvexPolytope, HalfSpace};
pub use drive::{Budget, Cells, Decomposition, StopReason};
pub(crate) use flat::visible_equalities;
pub use flat::{Chart, DependentVariable, Flat, FlatError, RegionMembership, SurfaceMeasure};
pub(crate) use lattice::Lattice;
pub use polytope::{Polytope, Side};
pub use project::{Projection, ProjectionError};
pub use satisfiability::Satisfiability;
pub use space::Vertex;
pub use status::Status;
pub use unbounded::Unbounded;

use crate::formula::{Atom, Bounds, Constraint, Formula, Linear, Membership, MembershipError, Substitution, Var};
use crate::number::{self, Integer, Rational, pairwise_sum};
use index::BooleanIndex;
pub(crate) use index::PlaneIndex;
pub(crate) use search::Load;
pub(crate) use skeleton::{FoldedNode, Literal, Residue, Skeleton};
use space::{Hyperplane, Space};

/// The largest number of real variables of a region: a box in more dimensions has too many vertices to list.
pub const MAX_DIMENSION: usize = 16;

/// The largest number of knots along one axis.
pub const MAX_KNOTS: usize = 10_000;

/// Why a constraint cannot be turned into a region.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegionError {
    /// More real variables than vertices can be listed for.
    #[error(
        "the constraint has {0} real variables; at most {MAX_DIMENSION} are possible, \
         because a box in n dimensions has 2^n vertices. \
         Fix some variables by substitution, or split the problem into independent parts"
    )]
    TooManyVariables(usize),
    /// The formula uses a name that is not in the list of variables.
    #[error(
        "the formula uses variable `{0}`, which is not one of the variables of the constraint; declare it there, or leave it out"
    )]
    Undeclared(Var),
    /// A name is declared twice.
    #[error("variable `{0}` is declared twice")]
    Duplicate(Var),
    /// Knots that are not strictly increasing, or not one list per variable.
    #[error("knots along `{0}` must be strictly increasing")]
    KnotOrder(Var),
    /// A number of knot lists that does not match the number of variables.
    #[error("{given} lists of knots for {wanted} variables; give one list per variable")]
    KnotAxes {
        /// lists given
        given: usize,
        /// variables
        wanted: usize,
    },
    /// More knots than there is memory for.
    #[error("{0} knots per axis are too many; at most {MAX_KNOTS} are possible")]
    TooManyKnots(usize),
    /// Equally spaced knots need at least two per axis.
    #[error("at least 2 knots per axis are needed, {0} given")]
    TooFewKnots(usize),
    /// The knots are to be spread over a bounding box that does not exist.
    #[error(transparent)]
    Unbounded(#[from] Unbounded),
}

/// How many atoms the search decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Enumeration {
    /// Only as many as it takes to know the formula on a cell.
    #[default]
    Partial,
    /// All that cut: a slow reference for tests.
    Total,
}

/// A constraint made ready for decomposition.
#[derive(Clone, Debug)]
pub struct Region {
    constraint: Constraint,
    space: Arc<Space>,
    /// Low and high hyperplane of the starting box per axis; none if the bounds alone leave no volume.
    start: Option<Vec<(PlaneIndex, PlaneIndex)>>,
    bounds: Bounds,
    skeleton: Residue,
    /// Per axis the hyperplanes of the interior knots; empty without a grid.
    knots: Vec<Vec<PlaneIndex>>,
    enumeration: Enumeration,
    /// The flat that the region is, if its free variables were chosen.
    chosen: Option<Arc<Flat>>,
    /// Whether cells are those of the projection onto the reals: see [`Region::onto_reals`].
    projected: bool,
}

/// A convex polytope with exact vertices and facets, one of those that a region is cut into.
#[derive(Clone, Debug)]
pub struct Cell {
    polytope: Polytope,
    bin: Vec<u32>,
    booleans: Vec<Option<bool>>,
    /// What the Boolean variables have to satisfy on the cell: see [`Region::onto_reals`].
    undecided: Option<Arc<Skeleton>>,
}

impl Cell {
    /// The polytope that the cell is.
    pub fn polytope(&self) -> &Polytope {
        &self.polytope
    }

    /// The bin that the cell lies in, per axis, if the region has knots: bin 0 is below the first interior knot. Empty
    /// without knots.
    pub fn bin(&self) -> &[u32] {
        &self.bin
    }

    /// The values of the Boolean variables on this cell; `None` where both values belong to the region.
    pub fn booleans(&self) -> &[Option<bool>] {
        &self.booleans
    }

    /// What the Boolean variables have to satisfy on a cell of [`Region::onto_reals`]; `None` if any values do.
    pub(crate) fn undecided(&self) -> Option<&Arc<Skeleton>> {
        self.undecided.as_ref()
    }

    /// How many assignments of the Boolean variables the cell stands for.
    pub fn multiplicity(&self) -> Integer {
        Integer::ONE << self.booleans.iter().filter(|value| value.is_none()).count()
    }

    /// The exact volume, counted once for every assignment of the Boolean variables.
    pub fn exact_volume(&self) -> Rational {
        self.polytope.exact_volume() * Rational::from(self.multiplicity())
    }
}

impl Region {
    /// Prepares a constraint: numbers its hyperplanes and finds a box that contains it.
    pub fn new(constraint: &Constraint) -> Result<Region, RegionError> {
        Region::with_conditions(constraint, &[]).map(|(region, _)| region)
    }

    /// The same region in coordinates that run from 0 to 1 over the given box.
    pub(crate) fn stretched(&self, ends: &[(Rational, Rational)]) -> Result<Region, RegionError> {
        let change = |change: Substitution, (var, (low, high)): (&Var, &(Rational, Rational))| {
            change.real(var.name(), (high - low) * Linear::from(var.clone()) + Linear::from(low.clone()))
        };
        let change = self.constraint.reals.iter().zip(ends).fold(Substitution::new(), change);
        let formula = self.constraint.formula.substitute(&change);
        let region = Region::new(&Constraint { formula, ..self.constraint.clone() })?;
        Ok(Region { projected: self.projected, ..region })
    }

    /// The projection of the region onto its real variables: the points that satisfy the constraint for some values of
    /// the Boolean variables. Its cells are disjoint, and on each of them the same assignments satisfy the constraint.
    ///
    /// The search branches on hyperplanes only. So the number of cells is bounded by the arrangement of the hyperplanes,
    /// however many Boolean variables there are.
    ///
    /// ```
    /// use pal::formula::{Formula, reals};
    /// use pal::region::Region;
    /// let [x] = reals(["x"]);
    /// let (a, b) = (Formula::boolean("a"), Formula::boolean("b"));
    /// let region = Region::new(&(x.between(0, 4) & (a | x.le(1)) & (b | x.ge(3))).into()).unwrap();
    /// let projection = region.onto_reals();
    /// let ends = projection.bounding_box().unwrap().unwrap();
    /// assert_eq!((ends[0].0.to_string(), ends[0].1.to_string()), ("0".into(), "4".into()));
    /// assert_eq!(projection.cells().count(), 3);
    /// ```
    pub fn onto_reals(&self) -> Region {
        Region { projected: true, ..self.clone() }
    }

    /// Whether this is the projection of a region onto its real variables.
    pub(crate) fn is_projected(&self) -> bool {
        self.projected
    }

    /// Like [`Region::new`], for a search that carries a load depending on further formulas over the same variables.
    pub(crate) fn with_conditions(
        constraint: &Constraint,
        conditions: &[Formula],
    ) -> Result<(Region, Vec<Residue>), RegionError> {
        let reals = &constraint.reals;
        check_names(constraint)?;
        if reals.len() > MAX_DIMENSION {
            return Err(RegionError::TooManyVariables(reals.len()));
        }
        let axis_of: HashMap<&Var, usize> = reals.iter().enumerate().map(|(axis, var)| (var, axis)).collect();
        let boolean_of: HashMap<&Var, BooleanIndex> =
            constraint.booleans.iter().enumerate().map(|(k, var)| (var, BooleanIndex::new(k))).collect();
        let mut builder = SpaceBuilder::new(reals.len());
        let mut plane_of: HashMap<Atom, PlaneIndex> = HashMap::new();
        for atom in conditions.iter().chain([&constraint.formula]).flat_map(Formula::atoms) {
            if plane_of.contains_key(&atom) {
                continue;
            }
            let mut normal = vec![Integer::ZERO; reals.len()];
            for (var, a) in atom.plane().normal() {
                let axis = axis_of.get(var).ok_or_else(|| RegionError::Undeclared(var.clone()))?;
                normal[*axis] = a.clone();
            }
            let id = builder.plane(Hyperplane::new(normal, atom.plane().offset().clone()));
            plane_of.insert(atom, id);
        }
        let mut used = conditions.iter().chain([&constraint.formula]).flat_map(Formula::boolean_variables);
        if let Some(var) = used.find(|var| !boolean_of.contains_key(var)) {
            return Err(RegionError::Undeclared(var));
        }
        let bounds = constraint.formula.bounds();
        let start = builder.starting_box(reals, &bounds);
        let compile = |formula: &Formula| Skeleton::compile(formula, &|atom| plane_of[atom], &|var| boolean_of[var]);
        let skeleton = compile(&constraint.formula);
        let compiled = conditions.iter().map(compile).collect();
        let region = Region {
            constraint: constraint.clone(),
            space: Arc::new(builder.space),
            start,
            bounds,
            skeleton,
            knots: Vec::new(),
            enumeration: Enumeration::Partial,
            chosen: None,
            projected: false,
        };
        Ok((region, compiled))
    }

    /// The constraint that the region was made from.
    pub fn constraint(&self) -> &Constraint {
        &self.constraint
    }

    /// The real variables, in the order of coordinates.
    pub fn variables(&self) -> &[Var] {
        &self.constraint.reals
    }

    /// The number of Boolean variables.
    pub fn boolean_count(&self) -> usize {
        self.constraint.booleans.len()
    }

    /// An exact test whether points lie in the region, compiled from its formula.
    pub fn membership(&self) -> Result<Membership, MembershipError> {
        self.constraint.membership()
    }

    /// The number of real variables. A region without volume has fewer dimensions than that: see [`Region::flat`].
    pub fn dimension(&self) -> usize {
        self.constraint.reals.len()
    }

    /// Chooses between partial and total enumeration.
    pub fn with_enumeration(mut self, enumeration: Enumeration) -> Self {
        self.enumeration = enumeration;
        self
    }

    /// Splits all cells at the given positions, one strictly increasing list per variable. Bin `b` of an axis lies
    /// between positions `b - 1` and `b` of its list; bin 0 is below the first position.
    pub fn with_knots(&self, positions: &[Vec<Rational>]) -> Result<Region, RegionError> {
        if positions.len() != self.dimension() {
            return Err(RegionError::KnotAxes { given: positions.len(), wanted: self.dimension() });
        }
        let mut space = (*self.space).clone();
        let mut knots = Vec::new();
        for (axis, list) in positions.iter().enumerate() {
            if list.len() > MAX_KNOTS {
                return Err(RegionError::TooManyKnots(list.len()));
            }
            if list.windows(2).any(|pair| pair[0] >= pair[1]) {
                return Err(RegionError::KnotOrder(self.constraint.reals[axis].clone()));
            }
            let plane = |value: &Rational| space.push(Hyperplane::axis(positions.len(), axis, value));
            knots.push(list.iter().map(plane).collect());
        }
        // Where knots meet other hyperplanes there are points that infinity did not know of.
        space.widen_infinity();
        Ok(Region { space: Arc::new(space), knots, ..self.clone() })
    }

    /// Splits all cells by `count` equally spaced knots per axis on the bounding box of the region, ends included, so
    /// that there are `count - 1` bins per axis. A region without volume has no box and is returned as it is.
    pub fn with_uniform_knots(&self, count: usize) -> Result<Region, RegionError> {
        if count < 2 {
            return Err(RegionError::TooFewKnots(count));
        }
        if count > MAX_KNOTS {
            return Err(RegionError::TooManyKnots(count));
        }
        let Some(ends) = self.bounding_box()? else { return Ok(self.clone()) };
        let between = |(low, high): &(Rational, Rational)| -> Vec<Rational> {
            let width = (high - low) / Rational::from(count - 1);
            (1..count - 1).map(|k| low + &width * Rational::from(k)).collect()
        };
        self.with_knots(&ends.iter().map(between).collect::<Vec<_>>())
    }

    /// The region in the plane as convex polygons with disjoint interiors, counterclockwise.
    pub(crate) fn polygons(&self) -> Result<Vec<Vec<[Rational; 2]>>, Unbounded> {
        let polygons = CellPolygons::new(&self.decompose()?);
        let corners = |polygon: &Vec<planar::Corner<Rational>>| polygon.iter().map(|c| c.at.clone()).collect();
        Ok(polygons.exact().iter().map(corners).collect())
    }

    /// The smallest box that contains the region, exactly; `None` for a region without volume.
    pub fn bounding_box(&self) -> Result<Option<Vec<(Rational, Rational)>>, Unbounded> {
        let boxes = self.map_cells(|cell| exact_extents(&cell.polytope))?;
        Ok(boxes.into_iter().reduce(|a, b| {
            let merged = a.into_iter().zip(b).map(|((l, h), (l2, h2))| (l.min(l2), h.max(h2)));
            merged.collect()
        }))
    }

    /// The exact volume, summed over all assignments of the Boolean variables.
    pub fn exact_volume(&self) -> Result<Rational, Unbounded> {
        Ok(pairwise_sum(self.map_cells(|cell| cell.exact_volume())?))
    }

    /// The float64 nearest to the exact volume.
    pub fn volume(&self) -> Result<f64, Unbounded> {
        self.exact_volume().map(|v| number::to_f64(&v))
    }

    fn bounding_polytope(&self) -> Option<Polytope> {
        self.start.as_ref().map(|planes| Polytope::cuboid(self.space.clone(), planes))
    }
}

fn check_names(constraint: &Constraint) -> Result<(), RegionError> {
    let mut seen = HashSet::new();
    match constraint.reals.iter().chain(&constraint.booleans).find(|var| !seen.insert(*var)) {
        Some(var) => Err(RegionError::Duplicate(var.clone())),
        None => Ok(()),
    }
}

/// The exact extent of a polytope along every axis. Float64 coordinates tell which vertices can be extreme at all.
fn exact_extents(polytope: &Polytope) -> Vec<(Rational, Rational)> {
    let extreme = |axis: usize, sign: f64| -> Rational {
        let reach = |v: &Vertex| (sign * v.coordinates()[axis], v.error()[axis]);
        let sure = polytope.vertices().iter().map(|v| reach(v)).map(|(x, e)| x - e).fold(f64::NEG_INFINITY, f64::max);
        let candidates = polytope.vertices().iter().filter(|v| {
            let (x, e) = reach(v);
            // Written so that a NaN keeps the candidate.
            !(x + e < sure)
        });
        let values = candidates.map(|v| {
            let point = polytope.space.exact(v);
            Rational::from_parts_signed(point.numerators[axis].clone(), point.denominator.clone())
        });
        let best = if sign > 0.0 { values.max() } else { values.min() };
        best.expect("a polytope has vertices, and the extreme one is among the candidates")
    };
    (0..polytope.dimension()).map(|axis| (extreme(axis, -1.0), extreme(axis, 1.0))).collect()
}

/// Collects hyperplanes, each once.
struct SpaceBuilder {
    space: Space,
    known: HashMap<(Vec<Integer>, Integer), PlaneIndex>,
}

impl SpaceBuilder {
    fn new(dimension: usize) -> Self {
        SpaceBuilder { space: Space { dimension, ..Space::default() }, known: HashMap::new() }
    }

    fn plane(&mut self, plane: Hyperplane) -> PlaneIndex {
        let key = (plane.normal.clone(), plane.offset.clone());
        *self.known.entry(key).or_insert_with(|| self.space.push(plane))
    }

    /// The box to start from. An axis without a bound gets a hyperplane beyond every vertex that the constraint can
    /// have: a cell that touches it is unbounded. `None` if the bounds leave no volume.
    fn starting_box(&mut self, reals: &[Var], bounds: &Bounds) -> Option<Vec<(PlaneIndex, PlaneIndex)>> {
        let n = reals.len();
        let Bounds::Box(_) = bounds else { return None };
        let intervals: Vec<_> = reals.iter().map(|var| bounds.of(var)).collect();
        if intervals.iter().any(|i| i.low.is_some() && i.low == i.high) {
            return None;
        }
        let ends: Vec<[Option<PlaneIndex>; 2]> = intervals
            .iter()
            .enumerate()
            .map(|(axis, i)| [&i.low, &i.high].map(|end| Some(self.plane(Hyperplane::axis(n, axis, end.as_ref()?)))))
            .collect();
        let first_far = PlaneIndex::new(self.space.planes.len());
        let mut start = Vec::new();
        for (axis, [low, high]) in ends.into_iter().enumerate() {
            let mut far = |sign: &Rational| self.space.push(Hyperplane::axis(n, axis, sign));
            let low = low.unwrap_or_else(|| far(&Rational::NEG_ONE));
            let high = high.unwrap_or_else(|| far(&Rational::ONE));
            start.push((low, high));
        }
        self.space.far = first_far..PlaneIndex::new(self.space.planes.len());
        self.space.widen_infinity();
        Some(start)
    }
}
