//! The components of one histogram mixture as functions.

use std::sync::Arc;

use crate::density::functions::{ChebyshevSeries, ComponentFunctions, Differentiable};
use crate::density::grid::BinIndex;
use crate::density::mesh::Degree;
use crate::density::occupied::OccupiedBins;
use crate::moments::Exponents;

/// Products of weights of bins.
pub(super) struct HistogramFunctions {
    /// The number of bins along every axis.
    pub bins: Vec<usize>,
    pub components: usize,
    /// The logarithms of the weights, component by component and axis by axis.
    pub coefficients: Vec<f64>,
    pub occupied: Arc<OccupiedBins>,
    pub exponents: Arc<Exponents>,
}

impl HistogramFunctions {
    /// Where the weights of a bin are in the coefficients of a component; nothing for a bin without volume.
    fn places(&self, bin: &[BinIndex], t: &[f64]) -> Option<impl Iterator<Item = usize> + '_> {
        let (mut bin, mut t) = (bin.to_vec(), t.to_vec());
        self.occupied.enter(&mut bin, &mut t);
        self.occupied.slot(&bin)?;
        let mut start = 0;
        Some(bin.into_iter().zip(&self.bins).map(move |(bin, bins)| {
            start += bins;
            start - bins + bin.get()
        }))
    }

    fn log(&self, component: usize, bin: &[BinIndex], t: &[f64]) -> f64 {
        let length: usize = self.bins.iter().sum();
        let coefficients = &self.coefficients[component * length..(component + 1) * length];
        self.places(bin, t).map_or(f64::NEG_INFINITY, |places| places.map(|place| coefficients[place]).sum())
    }
}

impl ComponentFunctions for HistogramFunctions {
    fn components(&self) -> usize {
        self.components
    }

    fn degree(&self) -> Degree {
        Degree { total: 0, axis: 0 }
    }

    fn values(&self, bin: &[BinIndex], t: &[f64], out: &mut [f64]) {
        let Some(places) = self.places(bin, t) else { return out.fill(0.0) };
        out.fill(0.0);
        let length: usize = self.bins.iter().sum();
        for place in places {
            out.iter_mut().enumerate().for_each(|(m, sum)| *sum += self.coefficients[m * length + place]);
        }
        out.iter_mut().for_each(|value| *value = value.exp());
    }

    fn value(&self, component: usize, bin: &[BinIndex], t: &[f64]) -> f64 {
        self.log(component, bin, t).exp()
    }

    fn values_at_points(&self, component: usize, bin: &[BinIndex], _points: &[f64], out: &mut [f64]) {
        out.fill(self.value(component, bin, &vec![0.5; bin.len()]));
    }

    fn log_value(&self, component: usize, bin: &[BinIndex], t: &[f64]) -> f64 {
        self.log(component, bin, t)
    }

    /// Inside a bin the density is constant.
    fn factor(&self, _component: usize, _axis: usize, _bin: &[BinIndex], _t: f64) -> Option<f64> {
        Some(1.0)
    }

    fn enter(&self, bin: &mut [BinIndex], t: &mut [f64]) {
        self.occupied.enter(bin, t);
    }
}

impl ChebyshevSeries for HistogramFunctions {
    fn chebyshev_exponents(&self) -> &Exponents {
        &self.exponents
    }

    fn chebyshev(&self, bin: &[BinIndex], weights: &[f64]) -> Vec<f64> {
        let mut values = vec![0.0; self.components];
        self.values(bin, &vec![0.5; bin.len()], &mut values);
        vec![weights.iter().zip(&values).map(|(w, q)| w * q).sum()]
    }
}

impl Differentiable for HistogramFunctions {
    fn add_gradient(&self, bin: &[BinIndex], t: &[f64], weights: &[f64], gradient: &mut [f64]) {
        let Some(places) = self.places(bin, t) else { return };
        let places: Vec<usize> = places.collect();
        let length: usize = self.bins.iter().sum();
        for (m, weight) in weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
            let derivative = weight * self.value(m, bin, t);
            places.iter().for_each(|place| gradient[m * length + place] += derivative);
        }
    }
}
