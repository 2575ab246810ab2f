//! Families of mixed densities: any kind of family, with one factor per component and Boolean variable.
//!
//! With `t_mb` the probability of the value of the Boolean variable b under component m, a point y of the reals and an
//! assignment b have the density
//!
//! ```text
//! p(y, b)  =  sum_m  exp(l_m) q_m(y) prod_b t_mb(b)  on the support,
//! I_m      =  sum over parts g of  P_m(A_g)  integral of q_m over mesh_g
//! ```
//!
//! with respect to Lebesgue measure and counting. `P_m(A_g)` is the probability of a set of assignments with independent
//! variables, and the weights `l_m` follow from the integrals `I_m` as in every family of the same kind. A parameter
//! vector is one of the kind of family, followed by one logit per component and Boolean variable, component by component:
//! logits of 0 stand for probabilities of one half.

use std::sync::Arc;

use rayon::prelude::*;

use super::density::MixedDensity;
use super::diagram::Odds;
use super::factors::part_factors;
use super::support::MixedSupport;
use crate::density::gradient::{Cotangents, FormOn};
use crate::density::parts::SupportParts;
use crate::density::weights::log_sum_exp;
use crate::density::{
    BinIndex, DensityError, Differentiable, Expansion, Family, Form, Grid, LocatedPoints, PartKernels, Precision, Row,
    RowInput, RowKernel, RowLogProb, Settings, check_rows,
};
use crate::formula::Category;
use crate::interrupt::checkpoint;
use crate::random::Stream;
use crate::region::Region;

/// A component whose integral is smaller than this has no mass.
const NO_MASS: f64 = 1e-280;

/// A family of densities over real and Boolean variables: immutable, cheap to clone, shared between threads.
///
/// ```
/// use pal::density::SplineSettings;
/// use pal::formula::{Formula, reals};
/// use pal::mixed::MixedFamily;
/// use pal::region::Region;
/// let [x] = reals(["x"]);
/// let wet = Formula::boolean("wet");
/// // From 0 to 4, and if it is wet at most 1.
/// let phi = x.between(0, 4) & (!wet.clone() | x.le(1));
/// let family = MixedFamily::new(&Region::new(&phi.into())?, &SplineSettings::default().into())?;
/// let density = family.density(&vec![0.0; family.num_params()])?;
/// // Zeros are close to uniform: wet is a volume of 1 out of 5.
/// assert!((density.probability(&wet)? - 0.2).abs() < 0.05);
/// assert_eq!(density.log_prob(&[2.0, 1.0])?, [f64::NEG_INFINITY]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MixedFamily {
    family: Family,
    support: Arc<MixedSupport>,
    /// The integrals over every part.
    forms: Arc<PartForms>,
    kernels: Arc<PartKernels>,
}

/// The integrals of the components over every part of a support, times a monomial in the coordinates of the box.
#[derive(Debug)]
pub(super) struct PartForms {
    forms: Vec<Box<dyn Form>>,
    powers: Vec<u16>,
}

/// One parameter vector on its way to a density.
#[derive(Clone, Debug)]
pub(super) struct MixedRow {
    pub row: Row,
    /// For each component the probabilities of the Boolean variables.
    pub odds: Vec<Odds>,
    /// For each component the probabilities of all sets of assignments.
    pub sets: Vec<Vec<f64>>,
    /// For each part the integrals of all components, without scales.
    pub integrals: Vec<Vec<f64>>,
}

/// What points say about one row: gradients with respect to weights, coefficients and logits of Boolean variables.
pub(super) struct MixedCotangents {
    pub reals: Cotangents,
    pub logits: Vec<f64>,
}

impl MixedFamily {
    /// Compiles a family on a region whose constraint may have Boolean variables. Each of its categories has exactly one
    /// of its values: see [`Category`].
    pub fn new(region: &Region, settings: &Settings) -> Result<MixedFamily, DensityError> {
        let constraint = Category::enforce(region.constraint());
        let with_rules;
        let region = match Category::all_of(&constraint)[..] {
            [] => region,
            _ => {
                with_rules = Region::new(&constraint)?;
                &with_rules
            }
        };
        let compile = |region: &Region| settings.compile(&region.onto_reals());
        MixedFamily::on(match compile(region) {
            Err(DensityError::NoVolume(_)) => Family::on_flat(region, compile)?,
            other => other?,
        })
    }

    /// The mixed family on top of one that was compiled on the projection of its region.
    pub(super) fn on(family: Family) -> Result<MixedFamily, DensityError> {
        let chart = family.flat().map(|flat| flat.chart().clone());
        let support = Arc::new(MixedSupport::new(family.support().clone(), chart)?);
        let forms = compile_forms(&family, &support, &[])?;
        Ok(MixedFamily { family, support, forms: Arc::new(forms), kernels: Arc::default() })
    }

    /// What the densities live on.
    pub fn support(&self) -> &Arc<MixedSupport> {
        &self.support
    }

    /// The family over the reals that the components come from. Its own densities live on the projection of the
    /// constraint onto the reals, where Boolean variables are ignored.
    pub fn base(&self) -> &Family {
        &self.family
    }

    /// The number of parameters of one density.
    pub fn num_params(&self) -> usize {
        self.family.num_params() + self.num_components() * self.booleans()
    }

    /// The number of components of the mixture.
    pub fn num_components(&self) -> usize {
        self.family.num_components()
    }

    fn booleans(&self) -> usize {
        self.support.booleans().len()
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

    /// One parameter vector that already resembles the data, for training to begin with. There is one cluster of mixed
    /// points for each component, row by row in a flat vector; clusters may be empty.
    pub fn start(&self, clusters: &[Vec<f64>], noise: &mut Stream) -> Result<Vec<f64>, DensityError> {
        let split = clusters.iter().map(|cluster| self.support.split_all(cluster)).collect::<Result<Vec<_>, _>>()?;
        let reals: Vec<Vec<f64>> = split.iter().map(|(reals, _)| reals.clone()).collect();
        let mut params = self.family.in_free_coordinates().start(&reals, noise);
        let k = self.booleans();
        for (_, booleans) in split.iter().cycle().take(self.num_components()) {
            for variable in 0..k {
                // One half of an observation of each value keeps logits finite.
                let of = booleans.iter().skip(variable).step_by(k);
                let (yes, all) =
                    of.fold((0.5, 1.0), |(yes, all), value| (yes + f64::from(u8::from(*value)), all + 1.0));
                params.push((yes / (all - yes)).ln());
            }
        }
        Ok(params)
    }

    /// Divides rows into the parameters of the reals and the logits of the Boolean variables.
    fn divide(&self, params: &[f64]) -> Result<(Vec<f64>, Vec<f64>), DensityError> {
        let (per, reals) = (self.num_params(), self.family.num_params());
        if params.is_empty() || !params.len().is_multiple_of(per) {
            return Err(DensityError::Length { what: "parameters", given: params.len(), wanted: per });
        }
        if let Some(at) = params.iter().position(|p| !p.is_finite()) {
            return Err(DensityError::Parameter { row: at / per, column: at % per, value: params[at] });
        }
        let (mut first, mut rest) = (Vec::new(), Vec::new());
        for row in params.chunks(per) {
            first.extend_from_slice(&row[..reals]);
            rest.extend_from_slice(&row[reals..]);
        }
        Ok((first, rest))
    }

    /// Checks parameter vectors and computes coefficients, integrals and weights.
    pub(super) fn rows(&self, params: &[f64]) -> Result<Vec<MixedRow>, DensityError> {
        let (first, logits) = self.divide(params)?;
        let (theta, expansions) = self.family.expansions(&first)?;
        let (count, components) = (expansions.len(), self.num_components());
        let by_part = self.integrals(&self.support, &self.forms, &expansions);
        let rows = (0..count).into_par_iter().map(|at| {
            let odds: Vec<Odds> = self.odds(&logits, at);
            let sets: Vec<Vec<f64>> = odds.iter().map(|odds| self.support.diagram.probabilities(odds, &[])).collect();
            let integrals: Vec<Vec<f64>> =
                by_part.iter().map(|all| all[at * components..(at + 1) * components].to_vec()).collect();
            let expansion = expansions[at].clone();
            let log = |m: usize| {
                let parts = self.support.parts.iter().zip(&integrals);
                let total: f64 = parts.map(|(part, all)| sets[m][part.assignments.position()] * all[m]).sum();
                if total < NO_MASS { f64::NEG_INFINITY } else { total.ln() + expansion.log_scales[m] }
            };
            let log_integrals: Vec<f64> = (0..components).map(log).collect();
            let per = self.family.num_params();
            let weights = self.family.kind().log_weights(&theta[at * per..(at + 1) * per], &log_integrals);
            let log_weights = weights.iter().zip(&expansion.log_scales).map(|(w, s)| w + s).collect();
            MixedRow { row: Row { expansion, log_integrals, log_weights }, odds, sets, integrals }
        });
        Ok(rows.collect())
    }

    fn odds(&self, logits: &[f64], row: usize) -> Vec<Odds> {
        let (k, components) = (self.booleans(), self.num_components());
        (0..components).map(|m| Odds::new(&logits[(row * components + m) * k..][..k])).collect()
    }

    /// For every part of a support the integrals of all components of all rows, without scales.
    pub(super) fn integrals(
        &self,
        support: &MixedSupport,
        forms: &PartForms,
        expansions: &[Expansion],
    ) -> Vec<Vec<f64>> {
        let parts = support.parts.iter().zip(&forms.forms);
        parts.map(|(part, form)| self.family.integrals(&**form, &part.support, &forms.powers, expansions)).collect()
    }

    /// The integrals over every part of the support.
    pub(super) fn forms(&self) -> &PartForms {
        &self.forms
    }

    /// The logarithms of the integrals of all components over the support, summed over assignments: `num_components`
    /// for each parameter vector.
    pub fn log_normaliser(&self, params: &[f64]) -> Result<Vec<f64>, DensityError> {
        let volume = self.support.log_measure();
        let rows = self.rows(params)?;
        Ok(rows.iter().flat_map(|row| row.row.log_integrals.iter().map(|i| i + volume)).collect())
    }

    /// The log-density of each mixed point: minus infinity outside the constraint and where the density is 0. Give one
    /// parameter vector for all points, or one for each point.
    pub fn log_prob(&self, params: &[f64], points: &[f64]) -> Result<Vec<f64>, DensityError> {
        let rows = self.rows(params)?;
        let (reals, booleans) = self.paired(rows.len(), points)?;
        if rows.len() == 1 {
            return Ok(self.density_of(&rows[0]).log_prob_of(&reals, &booleans));
        }
        let (n, k) = (self.family.dimension(), self.booleans());
        let tasks = rows.par_iter().enumerate().zip(reals.par_chunks(n));
        Ok(tasks
            .map(|((at, row), real)| self.density_of(row).log_prob_of(real, &booleans[at * k..(at + 1) * k])[0])
            .collect())
    }

    /// The vector-Jacobian product of [`MixedFamily::log_prob`] with respect to the parameters, in their shape.
    pub fn log_prob_vjp(&self, params: &[f64], points: &[f64], cotangent: &[f64]) -> Result<Vec<f64>, DensityError> {
        let rows = self.rows(params)?;
        let (reals, booleans) = self.paired(rows.len(), points)?;
        let (n, k, per) = (self.family.dimension(), self.booleans(), self.num_params());
        if cotangent.len() * n != reals.len() {
            let wanted = reals.len() / n;
            return Err(DensityError::Length { what: "gradients of log-densities", given: cotangent.len(), wanted });
        }
        let add = |row: &MixedRow, functions: &dyn Differentiable, at: usize, sums: &mut MixedCotangents| {
            let (point, assignment) = (&reals[at * n..(at + 1) * n], &booleans[at * k..(at + 1) * k]);
            if self.support.base().membership().contains_with(point, assignment) {
                self.add_point(row, functions, (point, assignment), cotangent[at], sums);
            }
        };
        let mut gradient = vec![0.0; params.len()];
        if let [row] = &rows[..] {
            let functions = self.family.kind().functions(&row.row.expansion);
            let mut sums = self.cotangents(row);
            (0..cotangent.len()).for_each(|at| add(row, &*functions, at, &mut sums));
            self.finish(row, params, sums, &mut gradient);
            return Ok(gradient);
        }
        let tasks = gradient.par_chunks_mut(per).zip(params.par_chunks(per)).zip(rows.par_iter()).enumerate();
        tasks.for_each(|(at, ((gradient, params), row))| {
            let mut sums = self.cotangents(row);
            add(row, &*self.family.kind().functions(&row.row.expansion), at, &mut sums);
            self.finish(row, params, sums, gradient);
        });
        Ok(gradient)
    }

    /// The log-density of each mixed point under its own parameter vector, with the derivatives with respect to that
    /// vector, row by row: [`MixedFamily::row_log_prob`] in float64.
    pub fn log_prob_rows(&self, params: &[f64], points: &[f64]) -> Result<(Vec<f64>, Vec<f64>), DensityError> {
        match self.row_log_prob(RowInput::Parameters, params, points, true)? {
            Some(RowLogProb { log_prob, gradient: Some(gradient) }) => Ok((log_prob, gradient)),
            _ => {
                let ones = vec![1.0; points.len() / self.support.columns()];
                Ok((self.log_prob(params, points)?, self.log_prob_vjp(params, points, &ones)?))
            }
        }
    }

    /// The log-density of each mixed point under its own row, with its gradient with respect to that row in the same
    /// pass; `None` if the kind of family has no such pass, or not for this input. A row has the numbers that the family
    /// over the reals takes, then one logit per component and Boolean variable.
    ///
    /// Where a density vanishes inside the constraint, its logarithm is that of the smallest number at hand, as in
    /// [`Family::log_prob_rows`].
    ///
    /// ```
    /// use pal::density::{RowInput, SplineSettings};
    /// use pal::formula::{Formula, reals};
    /// use pal::{mixed::MixedFamily, region::Region};
    /// let [x] = reals(["x"]);
    /// let phi = x.between(0, 4) & (!Formula::boolean("wet") | x.le(1));
    /// let family = MixedFamily::new(&Region::new(&phi.into())?, &SplineSettings::default().into())?;
    /// let (params, points) = (family.random_params(2, 1), [0.5, 1.0, 3.0, 0.0]);
    /// let rows = family.row_log_prob(RowInput::Parameters, &params, &points, true)?.unwrap();
    /// let gradient = family.log_prob_vjp(&params, &points, &[1.0, 1.0])?;
    /// assert!(rows.gradient.unwrap().iter().zip(&gradient).all(|(a, b)| (a - b).abs() < 1e-9));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn row_log_prob<T: Precision>(
        &self,
        input: RowInput,
        rows: &[T],
        points: &[f64],
        with_gradient: bool,
    ) -> Result<Option<RowLogProb<T>>, DensityError> {
        let Some((kernel, per)) = self.kernel(input) else { return Ok(None) };
        let (reals, booleans) = self.support.split(points)?;
        let (n, k) = (self.family.dimension(), self.booleans());
        let factor = self.support.chart().map_or(0.0, |chart| chart.log_factor());
        check_rows(rows, per, reals.len() / n)?;
        let membership = self.support.base().membership();
        let inside = reals.chunks(n).enumerate().map(|(at, point)| {
            membership.contains_with(point, &booleans[at * k..(at + 1) * k]) && !self.family.kind().in_empty_bin(point)
        });
        let inside = inside.collect();
        let located = LocatedPoints::new(self.support.base().grid(), &reals, inside).with_assignments(k, booleans);
        let mut found = RowLogProb::compute(kernel, input, rows, &located, with_gradient);
        if factor != 0.0 {
            found.log_prob.iter_mut().for_each(|x| *x = T::from_f64(x.to_f64() - factor));
        }
        Ok(Some(found))
    }

    /// The number of numbers of a row of [`MixedFamily::row_log_prob`]; `None` if there is no such pass.
    pub fn row_len(&self, input: RowInput) -> Option<usize> {
        self.kernel::<f64>(input).map(|(_, per)| per)
    }

    fn kernel<T: Precision>(&self, input: RowInput) -> Option<(&dyn RowKernel<T>, usize)> {
        let parts = || {
            let sets: Vec<_> = self.support.parts.iter().map(|part| part.assignments).collect();
            SupportParts { forms: &self.forms.forms, factors: part_factors(&self.support.diagram, &sets) }
        };
        let kernel = T::part_kernel(&self.kernels, self.family.kind(), &parts)?;
        Some((kernel, kernel.width(input)?))
    }

    /// Reals and truth values of points, if their number fits that of the parameter vectors.
    fn paired(&self, rows: usize, points: &[f64]) -> Result<(Vec<f64>, Vec<bool>), DensityError> {
        let split = self.support.split(points)?;
        let count = points.len() / self.support.columns();
        if rows != 1 && rows != count {
            return Err(DensityError::Pairing { params: rows, points: count });
        }
        Ok(split)
    }

    pub(super) fn cotangents(&self, row: &MixedRow) -> MixedCotangents {
        let logits = vec![0.0; self.num_components() * self.booleans()];
        MixedCotangents { reals: Cotangents::new(&row.row, self.family.kind()), logits }
    }

    /// Adds the derivative of `g log p(point, assignment)` at fixed integrals, and gives the log-density.
    fn add_point(
        &self,
        row: &MixedRow,
        functions: &dyn Differentiable,
        (point, assignment): (&[f64], &[bool]),
        g: f64,
        sums: &mut MixedCotangents,
    ) -> f64 {
        let (n, k) = (point.len(), assignment.len());
        let grid = self.support.base().grid();
        let (mut bin, mut t) = (vec![BinIndex::default(); n], vec![0.0; n]);
        grid.locate(point, &mut bin, &mut t);
        if !Grid::in_bin(&t) {
            return f64::NEG_INFINITY;
        }
        let weights: Vec<f64> =
            row.row.log_weights.iter().zip(&row.odds).map(|(w, o)| w + o.log_of(assignment)).collect();
        let log =
            |(m, w): (usize, &f64)| if *w == f64::NEG_INFINITY { *w } else { w + functions.log_value(m, &bin, &t) };
        let logs: Vec<f64> = weights.iter().enumerate().map(log).collect();
        let total = log_sum_exp(logs.iter().copied());
        let factors: Vec<f64> = weights.iter().map(|w| g * (w - total).exp()).collect();
        if total == f64::NEG_INFINITY || factors.iter().any(|factor| !factor.is_finite()) {
            // The density counts as 0, and a zero of the density contributes nothing.
            return f64::NEG_INFINITY;
        }
        for (m, (log, odds)) in logs.iter().zip(&row.odds).enumerate() {
            let responsibility = g * (log - total).exp();
            sums.reals.weights[m] += responsibility;
            for (variable, value) in assignment.iter().enumerate() {
                // The derivative of the logarithm of a sigmoid.
                let slope = if *value { odds.no[variable] } else { -odds.yes[variable] };
                sums.logits[m * k + variable] += responsibility * slope;
            }
        }
        functions.add_gradient(&bin, &t, &factors, &mut sums.reals.coefficients);
        total - self.support.log_measure()
    }

    /// Adds the gradient of `sum over parts and components of weights[part][m] P_m(A_part) I_part,m` with respect to the
    /// coefficients and the logits of the Boolean variables.
    pub(super) fn add_integral_gradients(
        &self,
        (support, forms): (&MixedSupport, &PartForms),
        row: &MixedRow,
        (sets, integrals): (&[Vec<f64>], &[Vec<f64>]),
        weight: impl Fn(usize) -> f64,
        sums: &mut MixedCotangents,
    ) {
        let k = self.booleans();
        let weights: Vec<f64> = (0..self.num_components()).map(weight).collect();
        let mut by_set: Vec<Vec<f64>> = sets.iter().map(|sets| vec![0.0; sets.len()]).collect();
        for ((part, form), integrals) in support.parts.iter().zip(&forms.forms).zip(integrals) {
            let at = part.assignments.position();
            let factors: Vec<f64> =
                weights.iter().zip(sets).map(|(w, sets)| if *w == 0.0 { 0.0 } else { w * sets[at] }).collect();
            let on = FormOn { form: &**form, support: &part.support, powers: &forms.powers };
            let expansion = &row.row.expansion;
            self.family.add_integral_gradient(on, expansion, integrals, &factors, &mut sums.reals.coefficients);
            for (m, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
                by_set[m][at] += weight * integrals[m];
            }
        }
        for (m, cotangent) in by_set.into_iter().enumerate() {
            support.diagram.pull_back(&row.odds[m], &sets[m], cotangent, &mut sums.logits[m * k..(m + 1) * k]);
        }
    }

    /// Adds the derivatives with respect to the parameters of one row.
    pub(super) fn finish(&self, row: &MixedRow, params: &[f64], mut sums: MixedCotangents, gradient: &mut [f64]) {
        let (reals, logits) = gradient.split_at_mut(self.family.num_params());
        let theta = self.family.theta(&params[..reals.len()]);
        let mut integrals = vec![0.0; row.row.log_integrals.len()];
        let kind = self.family.kind();
        kind.pull_back_weights(&theta, &row.row.log_integrals, &sums.reals.weights, reals, &mut integrals);
        // d log I_m = d I_m / I_m, without scales.
        let weight = |m: usize| match row.row.log_integrals[m] {
            f64::NEG_INFINITY => 0.0,
            log => integrals[m] / (log - row.row.expansion.log_scales[m]).exp(),
        };
        self.add_integral_gradients((&self.support, &self.forms), row, (&row.sets, &row.integrals), weight, &mut sums);
        kind.pull_back(&theta, &sums.reals.coefficients, reals);
        logits.iter_mut().zip(&sums.logits).for_each(|(to, from)| *to += from);
    }

    /// One density for each parameter vector.
    pub fn densities(&self, params: &[f64]) -> Result<Vec<MixedDensity>, DensityError> {
        Ok(self.proper_rows(params)?.iter().map(|row| self.density_of(row)).collect())
    }

    /// The density of one parameter vector.
    pub fn density(&self, params: &[f64]) -> Result<MixedDensity, DensityError> {
        let wrong = DensityError::Length { what: "parameters", given: params.len(), wanted: self.num_params() };
        if params.len() != self.num_params() {
            return Err(wrong);
        }
        self.densities(params)?.pop().ok_or(wrong)
    }

    /// Like [`MixedFamily::rows`], but a parameter vector whose density is 0 everywhere is an error.
    pub(super) fn proper_rows(&self, params: &[f64]) -> Result<Vec<MixedRow>, DensityError> {
        let rows = self.rows(params)?;
        match rows.iter().position(|row| row.row.log_weights.iter().all(|w| *w == f64::NEG_INFINITY)) {
            Some(zero) => Err(DensityError::Zero(zero)),
            None => Ok(rows),
        }
    }

    pub(super) fn density_of(&self, row: &MixedRow) -> MixedDensity {
        let functions = self.family.kind().functions(&row.row.expansion);
        MixedDensity::new(self.support.clone(), functions, row.row.log_weights.clone(), Arc::new(row.odds.clone()))
    }
}

/// The integrals of the components over every part of a support.
pub(super) fn compile_forms(
    family: &Family,
    support: &MixedSupport,
    powers: &[u16],
) -> Result<PartForms, DensityError> {
    let forms = support.parts.par_iter().map(|part| family.kind().form(part.support.mesh(), powers));
    Ok(PartForms { forms: forms.collect::<Result<_, _>>()?, powers: powers.to_vec() })
}
