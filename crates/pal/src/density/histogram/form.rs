//! Integrals of products of weights of bins: sums over the bins that hold a part of the set.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::density::DensityError;
use crate::density::cubature::MeshCubature;
use crate::density::grid::BinIndex;
use crate::density::kind::{Expansion, Form};
use crate::density::mesh::{Degree, Mesh};

/// The integral of 1, or of a monomial, over the part of a set in each bin.
#[derive(Clone, Debug)]
pub(super) struct VolumeForm {
    /// The number of bins along every axis.
    bins: Vec<usize>,
    /// For each bin that holds something, where its weights are in the coefficients of a component: one place per axis.
    places: Vec<usize>,
    /// For each of these bins the integral, relative to the volume of the box.
    integrals: Vec<f64>,
    components: usize,
}

impl VolumeForm {
    pub fn compile(mesh: &Mesh, powers: &[u16], components: usize) -> Result<VolumeForm, DensityError> {
        let extra: usize = powers.iter().map(|power| usize::from(*power)).sum();
        let degree = Degree { total: extra, axis: extra };
        if !MeshCubature::feasible(mesh.dimension(), degree) {
            return Err(DensityError::Settings(format!("powers {powers:?} need too many cubature nodes")));
        }
        let rules = MeshCubature::new(mesh.dimension(), degree);
        let parts: Vec<f64> = mesh
            .elements
            .par_iter()
            .map(|element| {
                if extra == 0 {
                    return element.volume;
                }
                let mut sum = 0.0;
                rules.visit(element, |t, weight| sum += weight * mesh.grid.monomial(&element.bin, t, powers));
                sum
            })
            .collect();
        let mut sums: BTreeMap<&[BinIndex], f64> = BTreeMap::new();
        for (element, part) in mesh.elements.iter().zip(parts) {
            *sums.entry(&element.bin).or_default() += part;
        }
        let bins: Vec<usize> = mesh.grid.axes().iter().map(|axis| axis.bins()).collect();
        let starts: Vec<usize> = bins.iter().scan(0, |sum, bins| Some(std::mem::replace(sum, *sum + bins))).collect();
        let places = sums.keys().flat_map(|bin| bin.iter().zip(&starts).map(|(b, start)| start + b.get()));
        Ok(VolumeForm { places: places.collect(), integrals: sums.into_values().collect(), bins, components })
    }

    /// The places of the weights of every bin that holds something, one per axis, with the integral, in the order of
    /// the bins.
    pub fn bins_in_use(&self) -> impl Iterator<Item = (&[usize], f64)> {
        self.places.chunks(self.bins.len()).zip(self.integrals.iter().copied())
    }

    /// The integrals of all bins of the grid, the last axis running fastest.
    pub fn dense(&self) -> Vec<f64> {
        let mut dense = vec![0.0; self.bins.iter().product()];
        for (places, integral) in self.places.chunks(self.bins.len()).zip(&self.integrals) {
            let mut start = 0;
            let at = places.iter().zip(&self.bins).fold(0, |at, (place, bins)| {
                let bin = place - start;
                start += bins;
                at * bins + bin
            });
            dense[at] = *integral;
        }
        dense
    }

    /// The largest sum of coefficients over the bins that hold something; 0 if there are none, or if all sums are
    /// infinite.
    pub fn highest(&self, coefficients: &[f64]) -> f64 {
        let highest = self.sums(coefficients).fold(f64::NEG_INFINITY, f64::max);
        if highest.is_finite() { highest } else { 0.0 }
    }

    /// The logarithm of the product of weights of each bin.
    fn sums<'c>(&'c self, coefficients: &'c [f64]) -> impl Iterator<Item = f64> + 'c {
        self.places.chunks(self.bins.len()).map(|places| places.iter().map(|place| coefficients[*place]).sum())
    }

    fn length(&self) -> usize {
        self.bins.iter().sum()
    }

    fn integral(&self, coefficients: &[f64]) -> f64 {
        self.sums(coefficients).zip(&self.integrals).map(|(sum, integral)| sum.exp() * integral).sum()
    }
}

impl Form for VolumeForm {
    fn integrals(&self, expansions: &[Expansion]) -> Vec<f64> {
        let row = |row: &Expansion| -> Vec<f64> {
            row.coefficients.chunks(self.length()).map(|coefficients| self.integral(coefficients)).collect()
        };
        expansions.par_iter().map(row).flatten_iter().collect()
    }

    /// All terms are positive: they are as large as their sum.
    fn scale(&self, coefficients: &[f64], component: usize) -> f64 {
        let length = coefficients.len() / self.components;
        self.integral(&coefficients[component * length..(component + 1) * length])
    }

    /// Products of weights are at most 1 on the support.
    fn largest_scale(&self, volume: f64) -> f64 {
        volume
    }

    fn add_gradient(&self, coefficients: &[f64], weights: &[f64], gradient: &mut [f64]) {
        let length = self.length();
        let parts = coefficients.chunks(length).zip(gradient.chunks_mut(length)).zip(weights);
        for ((coefficients, gradient), weight) in parts.filter(|(_, weight)| **weight != 0.0) {
            let bins = self.places.chunks(self.bins.len()).zip(&self.integrals).zip(self.sums(coefficients));
            for ((places, integral), sum) in bins {
                let term = weight * sum.exp() * integral;
                places.iter().for_each(|place| gradient[*place] += term);
            }
        }
    }
}
