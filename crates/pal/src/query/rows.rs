//! Few samples from each of many densities of a family.
//!
//! What a [`Sampler`](super::Sampler) prepares, the masses of all components on all elements, would be made for a
//! single sample and thrown away. Here the first uniform number chooses the component by its weight; what is left of it
//! chooses the patch by its mass under that component ([`PatchSearch`]), and then the element of the patch, by cubature
//! over the elements of this patch alone. The other n numbers determine the point inside the element.

use std::sync::Arc;

use rayon::prelude::*;

use super::error::QueryError;
use super::event::Event;
use super::sample::{NEGLIGIBLE, move_inside};
use super::walk::{PointValues, Rules, Target, Walk};
use crate::density::mesh::ElementIndex;
use crate::density::patches::find_fraction;
use crate::density::{
    ChosenPatch, ComponentFunctions, Differentiable, Expansion, Family, PatchQuery, PatchSearch, Row, Support,
};
use crate::interrupt::checkpoint;
use crate::random::Stream;

/// The number of rows of one task: whole groups of lanes, whatever their number is.
const BLOCK: usize = 32;

/// A family, or an event, prepared for few samples of each of many densities.
pub(super) struct RowSampler<'f> {
    family: &'f Family,
    support: &'f Support,
    /// What the densities are conditioned on.
    event: Option<&'f Event>,
    rules: Arc<Rules>,
    patches: Option<&'f dyn PatchSearch>,
    /// The elements in which no point was found.
    without_anchor: Vec<ElementIndex>,
}

/// One parameter vector, and the probabilities of its components.
struct PreparedRow<'p> {
    params: &'p [f64],
    expansion: Expansion,
    probabilities: Vec<f64>,
}

/// One sample on its way: its random numbers, and what they have chosen so far.
struct RowDraw {
    row: usize,
    component: usize,
    /// What is left of the first number.
    rest: f64,
    stream: Stream,
    uniforms: Vec<f64>,
}

impl<'f> RowSampler<'f> {
    pub fn new(family: &'f Family) -> RowSampler<'f> {
        RowSampler::on(family, family.support(), None, family.kind().patches())
    }

    /// Samples given that an event holds.
    pub fn within(event: &'f Event) -> Result<RowSampler<'f>, QueryError> {
        Ok(RowSampler::on(event.family(), event.support(), Some(event), event.patches()?))
    }

    fn on(
        family: &'f Family,
        support: &'f Support,
        event: Option<&'f Event>,
        patches: Option<&'f dyn PatchSearch>,
    ) -> RowSampler<'f> {
        let anchors = support.mesh().element_indices().zip(support.anchors());
        RowSampler {
            family,
            support,
            event,
            rules: Rules::shared(family.dimension(), family.kind().degree()),
            patches,
            without_anchor: anchors.filter(|(_, anchor)| anchor.is_none()).map(|(index, _)| index).collect(),
        }
    }

    /// Draws `count` samples for each parameter vector, row by row. Sample k of row r takes its random numbers from
    /// stream `r * count + k` of the seed.
    pub fn sample(&self, params: &[f64], count: usize, seed: u64) -> Result<Vec<f64>, QueryError> {
        let per = self.family.num_params();
        if params.is_empty() || !params.len().is_multiple_of(per) {
            self.family.proper_rows(params)?;
        }
        let per = per * BLOCK;
        let blocks = params.par_chunks(per).enumerate().map(|(block, params)| {
            let start = (block * BLOCK) as u64 * count as u64;
            self.block(params, start, count, seed)
        });
        let parts: Result<Vec<Vec<f64>>, QueryError> = blocks.collect();
        if parts.is_err() {
            // A block knows the rows of its own only: ask again for all.
            self.family.proper_rows(params)?;
        }
        Ok(parts?.concat())
    }

    fn block(&self, params: &[f64], start: u64, count: usize, seed: u64) -> Result<Vec<f64>, QueryError> {
        let n = self.family.dimension();
        let rows = self.prepare(params)?;
        let mut draws = Vec::with_capacity(rows.len() * count);
        for (row, prepared) in rows.iter().enumerate() {
            let cumulative = running_sums(prepared.probabilities.iter().copied());
            for k in 0..count {
                let mut stream = Stream::new(seed, start + (row * count + k) as u64);
                let uniforms: Vec<f64> = (0..=n).map(|_| stream.unit()).collect();
                let found = find_fraction(cumulative.len(), |k| cumulative[k], uniforms[0]);
                // Without any probabilities, the first component has no mass either, and that is noticed below.
                let (component, rest) = found.unwrap_or((0, 0.0));
                draws.push(RowDraw { row, component, rest, stream, uniforms });
            }
        }
        let patches = self.choose(&rows, &draws);
        let mut walk = Walk::new(&self.rules, n);
        let (mut samples, mut point) = (Vec::with_capacity(draws.len() * n), vec![0.0; n]);
        let mut functions: Option<(usize, Arc<dyn Differentiable>)> = None;
        for (draw, patch) in draws.into_iter().zip(patches) {
            checkpoint();
            let prepared = &rows[draw.row];
            let functions = match &functions {
                Some((row, known)) if *row == draw.row => known.clone(),
                _ => {
                    let made = self.family.kind().functions(&prepared.expansion);
                    functions = Some((draw.row, made.clone()));
                    made
                }
            };
            match self.element(&*functions, &draw, patch) {
                Some(index) => {
                    let element = self.support.mesh().element(index);
                    let target = Target { functions: &*functions, component: draw.component, element };
                    walk.draw(&target, &draw.uniforms[1..], 0);
                    walk.point(&target, self.support, &mut point);
                    move_inside(self.support, &mut point, index);
                    samples.extend_from_slice(&point);
                }
                None => samples.extend(self.otherwise(prepared, draw)?),
            }
        }
        Ok(samples)
    }

    /// The coefficients of some rows, and the probabilities of their components.
    fn prepare<'p>(&self, params: &'p [f64]) -> Result<Vec<PreparedRow<'p>>, QueryError> {
        let kind = self.family.kind();
        let each = params.chunks(self.family.num_params());
        let (theta, expansions) = self.family.expansions(params)?;
        let known = theta.chunks(self.family.num_params()).map(|theta| kind.log_component_probabilities(theta));
        if self.event.is_none()
            && self.without_anchor.is_empty()
            && let Some(known) = known.collect::<Option<Vec<Vec<f64>>>>()
        {
            let prepare = |((expansion, logs), params): ((Expansion, Vec<f64>), &'p [f64])| {
                let probabilities = logs.iter().map(|log| log.exp()).collect();
                PreparedRow { params, expansion, probabilities }
            };
            return Ok(expansions.into_iter().zip(known).zip(each).map(prepare).collect());
        }
        let rows = self.family.proper_rows(params)?;
        let given = self.event.map(|event| event.component_probabilities(&rows));
        rows.into_iter()
            .zip(each)
            .enumerate()
            .map(|(at, (row, params))| {
                let probabilities: Vec<f64> = match &given {
                    Some(given) => given[at].clone(),
                    None => {
                        let logs = row.log_weights.iter().zip(&row.log_integrals).zip(&row.expansion.log_scales);
                        logs.map(|((weight, integral), scale)| (weight - scale + integral).exp()).collect()
                    }
                };
                let mass = probabilities.iter().sum();
                if !(mass > 0.0) {
                    return Err(QueryError::Impossible);
                }
                self.check_lost_mass(&row, mass)?;
                Ok(PreparedRow { params, expansion: row.expansion, probabilities })
            })
            .collect()
    }

    /// Refuses a density with too large a part of its mass where there is no point to hand out.
    fn check_lost_mass(&self, row: &Row, mass: f64) -> Result<(), QueryError> {
        if self.without_anchor.is_empty() {
            return Ok(());
        }
        let functions = self.family.kind().functions(&row.expansion);
        let (mut masses, mut memory) = (vec![0.0; row.log_weights.len()], PointValues::default());
        for index in &self.without_anchor {
            let (element, components) = (self.support.mesh().element(*index), 0..masses.len());
            memory.add_masses(&*functions, components, element, &self.rules.cubature, &mut masses);
        }
        let lost: f64 = row.weights().iter().zip(masses).map(|(weight, mass)| weight * mass.max(0.0)).sum();
        let lost = lost / mass;
        if lost <= NEGLIGIBLE * (1.0 - lost) { Ok(()) } else { Err(QueryError::NoFloat64Point(lost)) }
    }

    fn choose(&self, rows: &[PreparedRow<'_>], draws: &[RowDraw]) -> Vec<Option<ChosenPatch<'f>>> {
        let Some(patches) = self.patches else { return vec![None; draws.len()] };
        let components = self.family.num_components();
        let queries: Vec<PatchQuery<'_>> = draws
            .iter()
            .map(|draw| {
                let all = &rows[draw.row].expansion.coefficients;
                let length = all.len() / components;
                let coefficients = &all[draw.component * length..(draw.component + 1) * length];
                PatchQuery { coefficients, uniform: draw.rest }
            })
            .collect();
        patches.choose(&queries)
    }

    /// The element of a draw: one of its patch or, if the masses of patches are not known, one of all.
    fn element(
        &self,
        functions: &dyn ComponentFunctions,
        draw: &RowDraw,
        patch: Option<ChosenPatch<'_>>,
    ) -> Option<ElementIndex> {
        let (elements, rest) = match patch {
            Some(ChosenPatch { elements, rest }) if !elements.is_empty() => (Some(elements), rest),
            _ => (None, draw.rest),
        };
        let mut memory = PointValues::default();
        let mut mass = |index: ElementIndex| {
            self.anchored(index)?;
            let target = Target { functions, component: draw.component, element: self.support.mesh().element(index) };
            Some(memory.mass(&target, &self.rules.cubature))
        };
        let mut pick = |indices: &mut dyn ExactSizeIterator<Item = ElementIndex>| {
            let indices: Vec<ElementIndex> = indices.collect();
            let sums = running_sums(indices.iter().map(|index| mass(*index).unwrap_or(0.0)));
            find_fraction(sums.len(), |k| sums[k], rest).map(|(place, _)| indices[place])
        };
        match elements {
            Some([one]) => self.anchored(ElementIndex::new(*one)),
            Some(some) => pick(&mut some.iter().map(|index| ElementIndex::new(*index))),
            None => pick(&mut self.support.mesh().element_indices()),
        }
    }

    fn anchored(&self, index: ElementIndex) -> Option<ElementIndex> {
        self.support.anchors()[index.get()].is_some().then_some(index)
    }

    /// A sample of a density for which the first number has chosen a component without mass, or an element without any
    /// point: further random numbers choose among all others.
    fn otherwise(&self, prepared: &PreparedRow<'_>, mut draw: RowDraw) -> Result<Vec<f64>, QueryError> {
        let fresh: Vec<f64> = draw.uniforms.iter().map(|_| draw.stream.unit()).collect();
        let density = self.family.density(prepared.params)?;
        let density = match self.event {
            Some(event) => density.restricted_to(event.support().clone())?,
            None => density,
        };
        density.sampler()?.transform(&fresh)
    }
}

fn running_sums(terms: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut total = 0.0;
    let add = |term| {
        total += term;
        total
    };
    terms.map(add).collect()
}
