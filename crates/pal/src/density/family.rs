//! A compiled family with batched evaluation: log-densities, normalisers and their vector-Jacobian products.
//!
//! Parameter vectors and points come row by row in flat slices. Give one parameter vector for all points, or one for
//! each point.

use std::any::Any;
use std::sync::Arc;

use rayon::prelude::*;

use super::Density;
use super::cubature::MeshCubature;
use super::error::DensityError;
use super::gradient::Cotangents;
use super::kind::{Expansion, FamilyKind, Form};
use super::support::Support;
use super::{BinIndex, Settings};
use crate::interrupt::checkpoint;
use crate::random::Stream;
use crate::region::{Flat, Region};

/// A family of densities compiled on a constraint: immutable, cheap to clone, shared between threads.
///
/// ```
/// use pal::density::{Family, Knots, Settings, SplineSettings};
/// use pal::{formula::reals, region::Region};
/// let [x, y] = reals(["x", "y"]);
/// let triangle = Region::new(&(x.ge(0) & y.ge(0) & (&x + &y).le(1)).into())?;
/// let family = Family::new(&triangle, &Settings::Spline(SplineSettings { knots: Knots::Uniform(4), components: 2 }))?;
/// let params = family.random_params(1, 7);
/// let log_prob = family.log_prob(&params, &[0.25, 0.25, 0.75, 0.75])?;
/// assert!(log_prob[0].is_finite() && log_prob[1] == f64::NEG_INFINITY);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Family {
    kind: Arc<dyn FamilyKind>,
    /// Where the constraint has equalities: the kind then works in the free coordinates of this flat.
    flat: Option<Arc<Flat>>,
}

/// One parameter vector on its way to a density.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub expansion: Expansion,
    /// The logarithms of the integrals of all components, scales included, relative to the volume of the box.
    pub log_integrals: Vec<f64>,
    /// The logarithm of the factor of each component's scaled values: `l_c` plus its scale.
    pub log_weights: Vec<f64>,
}

impl Row {
    pub fn weights(&self) -> Vec<f64> {
        self.log_weights.iter().map(|w| w.exp()).collect()
    }
}

/// An integral that is smaller than this fraction of the terms it is a sum of is computed again, by cubature.
pub(super) const CANCELLATION: f64 = 1e-3;
/// Integrals by a normaliser and by cubature that differ by at most this fraction are the same.
const SAME_INTEGRAL: f64 = 1e-8;
/// The largest number of nodes of a cubature that is made to check a normaliser: about a second.
const CHECKED_NODES: usize = 2_000_000;
/// A component whose integral is smaller than this has no mass.
pub(super) const NO_MASS: f64 = 1e-280;
/// The number of points per parallel task.
const BLOCK: usize = 2048;

impl Family {
    /// Compiles a family on a region. Where equalities hold on the whole region, it is compiled in the free coordinates
    /// of the flat, densities are per unit of surface measure, and points have all coordinates nevertheless.
    pub fn new(region: &Region, settings: &Settings) -> Result<Family, DensityError> {
        match settings.compile(region) {
            Err(DensityError::NoVolume(_)) => Family::on_flat(region, |region| settings.compile(region)),
            other => other,
        }
    }

    pub(super) fn with_flat(self, flat: Option<Arc<Flat>>) -> Family {
        Family { flat, ..self }
    }

    /// The flat that the constraint is, where equalities hold on all of it.
    pub fn flat(&self) -> Option<&Arc<Flat>> {
        self.flat.as_ref()
    }

    /// The family as one of a certain kind; `None` if it is of another.
    ///
    /// ```
    /// use pal::density::{Family, HistogramMixture, SplineMixture, SplineSettings};
    /// use pal::{formula::reals, region::Region};
    /// let [x] = reals(["x"]);
    /// let family = Family::new(&Region::new(&x.between(0, 1).into())?, &SplineSettings::default().into())?;
    /// assert_eq!(family.downcast::<SplineMixture>().unwrap().recipe().components, 8);
    /// assert!(family.downcast::<HistogramMixture>().is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn downcast<K: FamilyKind>(&self) -> Option<&K> {
        (&*self.kind as &dyn Any).downcast_ref()
    }

    /// What the kind of the family provides.
    pub fn kind(&self) -> &dyn FamilyKind {
        &*self.kind
    }

    /// What the densities live on, in free coordinates where the constraint has equalities.
    pub fn support(&self) -> &Arc<Support> {
        self.kind.support()
    }

    /// The number of free coordinates; that of all variables where the constraint has no equalities.
    pub fn dimension(&self) -> usize {
        self.support().dimension()
    }

    /// The number of parameters of one density.
    pub fn num_params(&self) -> usize {
        self.kind.num_params()
    }

    /// The number of components of the mixture.
    pub fn num_components(&self) -> usize {
        self.kind.num_components()
    }

    /// What is added to every parameter vector to make `theta`, the numbers that the documentation of the kind of
    /// family explains: values and derivatives of splines, coefficients of polynomials, log-weights of histograms. So
    /// zeros are close to the uniform density, and exactly uniform for a family of one component.
    ///
    /// ```
    /// use pal::density::{Family, Knots, SplineSettings};
    /// use pal::{formula::reals, region::Region};
    /// let [x] = reals(["x"]);
    /// let interval = Region::new(&x.between(0, 4).into())?;
    /// let knots = Knots::Uniform(3);
    /// let family = |components| Family::new(&interval, &SplineSettings { knots: knots.clone(), components }.into());
    /// // A logit, three values and three derivatives.
    /// assert_eq!(family(1)?.offset(), [0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
    /// assert_eq!(family(1)?.log_prob(&[0.0; 7], &[1.0])?, [-4f64.ln()]);
    /// // Of two components, one rises where the other falls.
    /// let log_prob = family(2)?.log_prob(&[0.0; 14], &[0.5, 2.0, 3.5])?;
    /// assert!(log_prob.iter().all(|log_prob| (log_prob + 4f64.ln()).abs() < 0.2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn offset(&self) -> &[f64] {
        self.kind.offset()
    }

    /// The parameters whose `theta` is given, row by row: the difference to [`Family::offset`].
    pub fn params_of(&self, theta: &[f64]) -> Vec<f64> {
        theta.iter().zip(self.offset().iter().cycle()).map(|(theta, offset)| theta - offset).collect()
    }

    pub(crate) fn theta(&self, params: &[f64]) -> Vec<f64> {
        let mut theta = params.to_vec();
        for row in theta.chunks_mut(self.num_params()) {
            row.iter_mut().zip(self.offset()).for_each(|(theta, offset)| *theta += offset);
        }
        theta
    }

    /// One parameter vector that already resembles the data, for training to begin with. There is one cluster of points
    /// for each component, row by row in a flat vector; clusters may be empty. Random numbers tell components apart.
    pub fn start(&self, clusters: &[Vec<f64>], noise: &mut Stream) -> Vec<f64> {
        match &self.flat {
            None => self.params_of(&self.kind.start(clusters, noise)),
            Some(flat) => {
                let restrict = |cluster: &Vec<f64>| flat.chart().restrict_all(cluster);
                let free: Vec<Vec<f64>> = clusters.iter().map(restrict).collect();
                self.params_of(&self.kind.start(&free, noise))
            }
        }
    }

    /// Random parameter vectors, row by row, with independent standard normal entries.
    pub fn random_params(&self, rows: usize, seed: u64) -> Vec<f64> {
        let row = |row: usize| {
            checkpoint();
            let mut stream = Stream::new(seed, row as u64);
            (0..self.num_params()).map(|_| stream.normal()).collect::<Vec<f64>>()
        };
        (0..rows).flat_map(row).collect()
    }

    /// The logarithms of the integrals of all components over the constraint: `num_components` for each parameter
    /// vector. Minus infinity for a component that vanishes on the constraint.
    pub fn log_normaliser(&self, params: &[f64]) -> Result<Vec<f64>, DensityError> {
        let volume = self.log_box_measure();
        let rows = self.rows(params)?;
        Ok(rows.iter().flat_map(|row| row.log_integrals.iter().map(|i| i + volume)).collect())
    }

    /// The vector-Jacobian product of [`Family::log_normaliser`] with respect to the parameters.
    pub fn log_normaliser_vjp(&self, params: &[f64], cotangent: &[f64]) -> Result<Vec<f64>, DensityError> {
        let rows = self.rows(params)?;
        let (per, components) = (self.num_params(), self.num_components());
        self.check_length("gradients of normalisers", cotangent.len(), components, rows.len())?;
        let mut gradient = vec![0.0; params.len()];
        let parts = gradient.par_chunks_mut(per).zip(rows.par_iter()).zip(params.par_chunks(per));
        parts.zip(cotangent.par_chunks(components)).for_each(|(((gradient, row), params), cotangent)| {
            let mut coefficients = vec![0.0; self.kind.gradient_len()];
            self.pull_back_integrals(row, cotangent, &mut coefficients);
            self.kind.pull_back(&self.theta(params), &coefficients, gradient);
        });
        Ok(gradient)
    }

    /// The log-density of each point: minus infinity outside the constraint and where the density is 0, never NaN. A
    /// coordinate that is not finite is outside.
    pub fn log_prob(&self, params: &[f64], points: &[f64]) -> Result<Vec<f64>, DensityError> {
        if let Some((family, points)) = self.in_free_points(points)? {
            return Ok(self.per_surface(family.log_prob(params, &points)?));
        }
        let rows = self.rows(params)?;
        let count = self.pair(rows.len(), points)?;
        if rows.len() == 1 && count != 1 {
            return Ok(self.density_of(&rows[0]).log_prob(points));
        }
        let dimension = self.dimension();
        let inside = self.support().membership().contains_batch(points);
        let parts = rows.par_iter().zip(points.par_chunks(dimension)).zip(inside);
        Ok(parts.map(|((row, point), inside)| self.log_prob_of(row, point, inside)).collect())
    }

    fn log_prob_of(&self, row: &Row, point: &[f64], inside: bool) -> f64 {
        if !inside { f64::NEG_INFINITY } else { self.density_of(row).log_density_inside(point) }
    }

    /// Checks that points come in rows of one coordinate per variable.
    pub fn check_points(&self, points: &[f64]) -> Result<(), DensityError> {
        DensityError::check_points(self.constraint(), points)
    }

    /// Whether each point may have a positive density: whether it satisfies the constraint. Parts of the constraint
    /// without volume do not count where they lie outside the box around all others.
    pub fn contains(&self, points: &[f64]) -> Vec<bool> {
        if let Some(flat) = &self.flat {
            return self.in_free_coordinates().contains(&flat.chart().restrict(points, f64::EPSILON));
        }
        let mut inside = self.support().membership().contains_batch(points);
        let grid = self.support().grid();
        let may_be_positive = |y: &[f64]| grid.box_contains(y) && !self.kind.in_empty_bin(y);
        inside
            .iter_mut()
            .zip(points.chunks(self.dimension()))
            .for_each(|(flag, y)| *flag = *flag && may_be_positive(y));
        inside
    }

    /// The features of points, row by row, which the recipe of its kind combines with parameters, and for each point
    /// whether it may have a positive density, as in [`Family::contains`]. The features of other points are 0.
    pub fn features(&self, points: &[f64]) -> Result<(Vec<f64>, Vec<bool>), DensityError> {
        self.feature_derivatives(points, &vec![0; self.dimension()])
    }

    /// The partial derivatives of [`Family::features`] with respect to the free coordinates of the points, given the order
    /// of differentiation for each of them. A spline has one continuous derivative; on a knot, higher derivatives are
    /// those of the bin above it.
    ///
    /// ```
    /// use pal::density::{Basis, Family, SumOfSquaresSettings};
    /// use pal::{formula::reals, region::Region};
    /// let [x] = reals(["x"]);
    /// let settings = SumOfSquaresSettings { degree: Some(2), basis: Basis::Legendre, ..Default::default() };
    /// let family = Family::new(&Region::new(&x.between(-1, 1).into())?, &settings.into())?;
    /// // The third function is sqrt(5) (3 x^2 - 1) / 2.
    /// let (derivatives, _) = family.feature_derivatives(&[0.5], &[1])?;
    /// assert!((derivatives[2] - 5f64.sqrt() * 1.5).abs() < 1e-14);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn feature_derivatives(&self, points: &[f64], orders: &[u16]) -> Result<(Vec<f64>, Vec<bool>), DensityError> {
        if let Some((family, points)) = self.in_free_points(points)? {
            return family.feature_derivatives(&points, orders);
        }
        self.pair(1, points)?;
        self.check_length("orders of derivatives", orders.len(), self.dimension(), 1)?;
        let (dimension, width) = (self.dimension(), self.kind.num_features());
        let inside = self.contains(points);
        let mut features = vec![0.0; inside.len() * width];
        if orders.iter().any(|order| usize::from(*order) > self.kind.degree().axis) {
            return Ok((features, inside));
        }
        let fill = |((features, points), inside): ((&mut [f64], &[f64]), &[bool])| {
            let (mut bin, mut t) = (vec![BinIndex::default(); dimension], vec![0.0; dimension]);
            let rows = features.chunks_mut(width).zip(points.chunks(dimension)).zip(inside);
            for ((features, point), _) in rows.filter(|(_, inside)| **inside) {
                self.support().grid().locate(point, &mut bin, &mut t);
                self.kind.features(&bin, &t, orders, features);
            }
        };
        // A batch of a network is so small that starting other threads would take longer than the work.
        if inside.len() <= BLOCK {
            fill(((&mut features, points), &inside));
        } else {
            let rows = features.par_chunks_mut(width * BLOCK).zip(points.par_chunks(dimension * BLOCK));
            rows.zip(inside.par_chunks(BLOCK)).for_each(fill);
        }
        Ok((features, inside))
    }

    /// The vector-Jacobian product of [`Family::log_prob`] with respect to the parameters, in the shape of `params`.
    /// Points outside the constraint and zeros of the density contribute nothing.
    pub fn log_prob_vjp(&self, params: &[f64], points: &[f64], cotangent: &[f64]) -> Result<Vec<f64>, DensityError> {
        if let Some((family, points)) = self.in_free_points(points)? {
            return family.log_prob_vjp(params, &points, cotangent);
        }
        let rows = self.rows(params)?;
        let count = self.pair(rows.len(), points)?;
        self.check_length("gradients of log-densities", cotangent.len(), 1, count)?;
        let (per, dimension) = (self.num_params(), self.dimension());
        let inside = self.support().membership().contains_batch(points);
        let mut gradient = vec![0.0; params.len()];
        if rows.len() == 1 {
            let tasks =
                points.par_chunks(BLOCK * dimension).zip(cotangent.par_chunks(BLOCK)).zip(inside.par_chunks(BLOCK));
            let parts = tasks.map(|((points, cotangent), inside)| {
                let mut sums = Cotangents::new(&rows[0], &*self.kind);
                let each = points.chunks(dimension).zip(cotangent).zip(inside).filter(|(_, inside)| **inside);
                each.for_each(|((point, g), _)| self.add_point(&rows[0], point, *g, &mut sums));
                sums
            });
            let parts: Vec<Cotangents> = parts.collect();
            let mut total = Cotangents::new(&rows[0], &*self.kind);
            parts.iter().for_each(|part| total.add(part));
            self.finish(&rows[0], params, total, &mut gradient);
            return Ok(gradient);
        }
        let parts = gradient.par_chunks_mut(per).zip(rows.par_iter()).zip(params.par_chunks(per));
        let given = points.par_chunks(dimension).zip(cotangent.par_iter()).zip(inside);
        parts.zip(given).for_each(|(((gradient, row), params), ((point, g), inside))| {
            let mut sums = Cotangents::new(row, &*self.kind);
            if inside {
                self.add_point(row, point, *g, &mut sums);
            }
            self.finish(row, params, sums, gradient);
        });
        Ok(gradient)
    }

    /// One density for each parameter vector; queries are methods of a density.
    pub fn densities(&self, params: &[f64]) -> Result<Vec<Density>, DensityError> {
        let rows = self.proper_rows(params)?;
        Ok(rows.iter().map(|row| self.density_of(row)).collect())
    }

    /// The density of one parameter vector.
    pub fn density(&self, params: &[f64]) -> Result<Density, DensityError> {
        let wrong = DensityError::Length { what: "parameters", given: params.len(), wanted: self.num_params() };
        if params.len() != self.num_params() {
            return Err(wrong);
        }
        self.densities(params)?.pop().ok_or(wrong)
    }

    pub(crate) fn density_of(&self, row: &Row) -> Density {
        let chart = self.flat.as_ref().map(|flat| flat.chart().clone());
        Density::new(self.support().clone(), self.kind.functions(&row.expansion), row.log_weights.clone(), chart)
    }

    /// Like [`Family::rows`], but a parameter vector whose density is 0 everywhere is an error.
    pub(crate) fn proper_rows(&self, params: &[f64]) -> Result<Vec<Row>, DensityError> {
        let rows = self.rows(params)?;
        match rows.iter().position(|row| row.log_weights.iter().all(|w| *w == f64::NEG_INFINITY)) {
            Some(zero) => Err(DensityError::Zero(zero)),
            None => Ok(rows),
        }
    }

    /// Checks parameter vectors and computes their `theta` and their coefficients.
    pub(crate) fn expansions(&self, params: &[f64]) -> Result<(Vec<f64>, Vec<Expansion>), DensityError> {
        let per = self.num_params();
        if params.is_empty() || !params.len().is_multiple_of(per) {
            return Err(DensityError::Length { what: "parameters", given: params.len(), wanted: per });
        }
        if let Some(at) = params.iter().position(|p| !p.is_finite()) {
            return Err(DensityError::Parameter { row: at / per, column: at % per, value: params[at] });
        }
        let theta = self.theta(params);
        let expansions: Vec<Expansion> = theta.par_chunks(per).map(|theta| self.kind.expand(theta)).collect();
        if let Some(row) = expansions.iter().position(|e| e.coefficients.iter().any(|c| !c.is_finite())) {
            let size = |column: &usize| params[row * per + column].abs();
            let column = (0..per).max_by(|a, b| size(a).total_cmp(&size(b))).unwrap_or(0);
            return Err(DensityError::Parameter { row, column, value: params[row * per + column] });
        }
        Ok((theta, expansions))
    }

    /// Checks parameter vectors and computes their coefficients, integrals and weights.
    pub(crate) fn rows(&self, params: &[f64]) -> Result<Vec<Row>, DensityError> {
        let (theta, expansions) = self.expansions(params)?;
        let per = self.num_params();
        let integrals = self.integrals(self.kind.normaliser(), self.support(), &[], &expansions);
        let components = self.num_components();
        let parts = expansions.into_par_iter().zip(integrals.par_chunks(components)).zip(theta.par_chunks(per));
        Ok(parts
            .map(|((expansion, integrals), theta)| {
                let log = |(i, scale): (&f64, &f64)| if *i < NO_MASS { f64::NEG_INFINITY } else { i.ln() + scale };
                let log_integrals: Vec<f64> = integrals.iter().zip(&expansion.log_scales).map(log).collect();
                let weights = self.kind.log_weights(theta, &log_integrals);
                let log_weights = weights.iter().zip(&expansion.log_scales).map(|(w, s)| w + s).collect();
                Row { expansion, log_integrals, log_weights }
            })
            .collect())
    }

    /// Integrals of all components of all expansions, relative to the volume of the box and without scales. Integrals
    /// in which digits cancelled are computed again by cubature, where every term is positive.
    pub(crate) fn integrals(
        &self,
        form: &dyn Form,
        support: &Support,
        powers: &[u16],
        expansions: &[Expansion],
    ) -> Vec<f64> {
        let components = self.num_components();
        let mut integrals = form.integrals(expansions);
        let volume: f64 = support.mesh().elements.iter().map(|element| element.volume).sum();
        // Most integrals are so large that no digits can have cancelled.
        let suspect = CANCELLATION * form.largest_scale(volume);
        integrals.par_chunks_mut(components).zip(expansions).for_each(|(integrals, expansion)| {
            for (c, integral) in integrals.iter_mut().enumerate() {
                if *integral < suspect && *integral < CANCELLATION * form.scale(&expansion.coefficients, c) {
                    *integral = self.by_cubature(support, powers, expansion, c);
                }
            }
        });
        integrals
    }

    /// Whether the compiled normaliser agrees with cubature, which uses nothing but the support, for random parameters:
    /// they weigh all entries of its tables. Families for which that takes more than [`CHECKED_NODES`] values are taken
    /// as they are.
    pub(super) fn normaliser_fits(&self) -> bool {
        if !MeshCubature::feasible(self.dimension(), self.kind.degree()) {
            return true;
        }
        let rules = MeshCubature::new(self.dimension(), self.kind.degree());
        let nodes: usize = self.support().mesh().elements.iter().map(|element| rules.of(&element.shape).len()).sum();
        if nodes > CHECKED_NODES {
            return true;
        }
        let Ok((_, expansions)) = self.expansions(&self.random_params(2, 0)) else { return false };
        let integrals = self.kind.normaliser().integrals(&expansions);
        expansions.iter().zip(integrals.chunks(self.num_components())).all(|(expansion, integrals)| {
            let again = self.by_cubature(self.support(), &[], expansion, 0);
            let size = self.kind.normaliser().scale(&expansion.coefficients, 0).max(again);
            (integrals[0] - again).abs() <= SAME_INTEGRAL * size
        })
    }

    fn by_cubature(&self, support: &Support, powers: &[u16], expansion: &Expansion, component: usize) -> f64 {
        let extra: usize = powers.iter().map(|p| usize::from(*p)).sum();
        let rules = MeshCubature::new(self.dimension(), self.kind.degree().times(extra));
        let functions = self.kind.functions(expansion);
        let mut sum = 0.0;
        for element in &support.mesh().elements {
            rules.visit(element, |t, weight| {
                let weight = weight * support.mesh().grid.monomial(&element.bin, t, powers);
                sum += weight * functions.value(component, &element.bin, t);
            });
        }
        sum
    }

    /// The number of points, if it fits the number of parameter vectors.
    fn pair(&self, rows: usize, points: &[f64]) -> Result<usize, DensityError> {
        let dimension = self.dimension();
        self.check_points(points)?;
        let count = points.len() / dimension;
        if rows != 1 && rows != count {
            return Err(DensityError::Pairing { params: rows, points: count });
        }
        Ok(count)
    }

    pub(super) fn check_length(
        &self,
        what: &'static str,
        given: usize,
        per: usize,
        rows: usize,
    ) -> Result<(), DensityError> {
        if given == per * rows { Ok(()) } else { Err(DensityError::Length { what, given, wanted: per * rows }) }
    }
}

impl<F: FamilyKind + 'static> From<F> for Family {
    fn from(kind: F) -> Family {
        Family { kind: Arc::new(kind), flat: None }
    }
}
