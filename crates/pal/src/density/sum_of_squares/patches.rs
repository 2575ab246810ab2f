//! The patches of sums of squares: single elements, or a few neighbours of one bin.
//!
//! A bin is chosen by `u^T G u` with the Gram matrix G of the bin. On that bin the square of the polynomial has
//! Chebyshev coefficients s, and its mass on any set is `s . m` with m the integrals of the Chebyshev products over the
//! set. Matrices are kept as running sums over bins, and integrals as running sums over the elements of a bin, so that a
//! search takes as many products as the logarithm of their number.

use std::sync::Arc;

use nalgebra::{DMatrix, DVectorView};
use rayon::prelude::*;

use super::Tensors;
use super::form::GramForm;
use super::functions::Layout;
use super::local::{Measure, SMALL, growth};
use crate::density::cubature::MeshCubature;
use crate::density::family::{CANCELLATION, NO_MASS};
use crate::density::kind::Form;
use crate::density::lanes::dot;
use crate::density::mesh::{Element, Mesh};
use crate::density::patches::{ChosenPatch, ElementGroups, PatchQuery, PatchSearch, find_fraction};
use crate::moments::Exponents;

/// The largest number of integrals that are kept, and of terms of products.
const MAX_NUMBERS: usize = 4_000_000;
/// A mass on a bin that is smaller than this fraction of the terms it is a sum of has lost too many digits.
const CANCELLED: f64 = 1e-8;
/// Where the sum of squared coefficients of a member of the basis exceeds this, most masses would have lost their digits.
const BEARABLE: f64 = 1e9;

#[derive(Debug)]
pub(super) struct SquaresPatches {
    tensors: Arc<Tensors>,
    form: GramForm,
    products: Option<Products>,
    /// For each bin the sum of the Gram matrices of all bins up to it: the lower triangle, row by row, with entries
    /// beside the diagonal doubled. Nothing if there is only one bin.
    grams: Vec<Vec<f64>>,
    bins: Vec<BinPatches>,
}

/// The patches of one bin.
#[derive(Debug, Default)]
struct BinPatches {
    groups: ElementGroups,
    /// For each patch the sums of the integrals of all Chebyshev products over the patches up to it. Nothing where
    /// coefficients are so large that digits would cancel; then all elements are one patch.
    sums: Vec<f64>,
}

/// How products of two Chebyshev products are written in Chebyshev products of twice the degree.
#[derive(Debug)]
struct Products {
    layout: Layout,
    /// For each entry of the lower triangle, row by row, where its terms end; they start where those of the entry
    /// before it end. All terms of an entry have the same factor, and their factors add up to 1.
    ends: Vec<usize>,
    /// Positions in the layout.
    terms: Vec<u32>,
}

impl Products {
    /// `None` if there are too many.
    fn new(exponents: &Exponents, double: &Exponents) -> Option<Products> {
        let layout = Layout::new(double);
        let mut places = vec![0; double.len()];
        layout.order().iter().enumerate().for_each(|(place, at)| places[*at] = place as u32);
        let positions = double.positions();
        let (mut ends, mut terms) = (Vec::new(), Vec::new());
        let mut sum = vec![0u16; exponents.dimension()];
        for (i, a) in exponents.iter().enumerate() {
            for b in exponents.iter().take(i + 1) {
                // Along an axis where one of the two is constant, sum and difference are the same.
                let both: Vec<usize> = (0..a.len()).filter(|j| a[*j] > 0 && b[*j] > 0).collect();
                for signs in 0..1usize << both.len() {
                    sum.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum = a + b);
                    for j in both.iter().enumerate().filter(|(k, _)| signs >> k & 1 == 1).map(|(_, j)| *j) {
                        sum[j] = a[j].abs_diff(b[j]);
                    }
                    terms.push(places[positions[&sum[..]]]);
                }
                ends.push(terms.len());
            }
            if terms.len() > MAX_NUMBERS {
                return None;
            }
        }
        Some(Products { layout, ends, terms })
    }

    /// The terms of all entries of the lower triangle, row by row.
    fn entries(&self) -> impl Iterator<Item = &[u32]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.terms[start..*end])
    }

    /// The number of Chebyshev products of twice the degree.
    fn len(&self) -> usize {
        self.layout.order().len()
    }

    /// The square of a polynomial.
    fn square(&self, coefficients: &[f64]) -> Vec<f64> {
        let mut square = vec![0.0; self.len()];
        let mut entries = self.entries();
        for (i, a) in coefficients.iter().enumerate() {
            for ((k, b), terms) in coefficients[..=i].iter().enumerate().zip(&mut entries) {
                let factor = if i == k { 1.0 } else { 2.0 };
                let part = factor * a * b / terms.len() as f64;
                terms.iter().for_each(|place| square[*place as usize] += part);
            }
        }
        square
    }

    /// The integrals of products of two Chebyshev products, given those of Chebyshev products of twice the degree.
    fn pairs(&self, integrals: &[f64], size: usize) -> DMatrix<f64> {
        let mut pairs = DMatrix::zeros(size, size);
        let mut entries = self.entries();
        for i in 0..size {
            for (k, terms) in (0..=i).zip(&mut entries) {
                let sum: f64 = terms.iter().map(|place| integrals[*place as usize]).sum();
                let mean = sum / terms.len() as f64;
                (pairs[(i, k)], pairs[(k, i)]) = (mean, mean);
            }
        }
        pairs
    }

    /// Adds the integrals of all Chebyshev products of twice the degree over an element.
    fn add_integrals(&self, element: &Element, rules: &MeshCubature, sums: &mut [f64]) {
        let mut tables = vec![0.0; self.layout.tables_len()];
        rules.visit(element, |t, weight| {
            self.layout.tables(t, &mut tables);
            self.layout.add_products(&tables, weight, sums);
        });
    }
}

impl SquaresPatches {
    pub fn new(mesh: &Mesh, tensors: &Arc<Tensors>, form: GramForm, rules: &MeshCubature) -> SquaresPatches {
        let Tensors { exponents, double, bins, functions, .. } = &**tensors;
        let products = Products::new(exponents, double);
        let mut lists: Vec<Vec<u32>> = vec![Vec::new(); bins.len()];
        for (index, element) in (0..).zip(&mesh.elements) {
            if let Some(slot) = bins.slot(&element.bin) {
                lists[slot].push(index);
            }
        }
        // Neighbours share a patch where there would be too many numbers.
        let together = (mesh.elements.len() * double.len()).div_ceil(MAX_NUMBERS).max(1);
        let patches: Vec<BinPatches> = lists
            .into_iter()
            .zip(functions)
            .map(|(list, functions)| match &products {
                Some(products) if growth(functions) < BEARABLE => {
                    BinPatches::new(mesh, products, rules, list.chunks(together))
                }
                _ => {
                    let mut groups = ElementGroups::default();
                    groups.push(list);
                    BinPatches { groups, sums: Vec::new() }
                }
            })
            .collect();
        let mut grams = Vec::new();
        if patches.len() > 1 {
            let pairs: Vec<Option<DMatrix<f64>>> = patches
                .iter()
                .zip(functions)
                .map(|(bin, functions)| {
                    let products = products.as_ref().filter(|_| growth(functions) < SMALL)?;
                    let last = bin.sums.len().checked_sub(products.len())?;
                    Some(products.pairs(&bin.sums[last..], exponents.len()))
                })
                .collect();
            let measure = Measure { mesh, bins, rules, powers: &[] };
            let parts = measure.grams_of_some_values(functions, exponents, |slot| pairs[slot].as_ref());
            let mut sum = vec![0.0; form.size * (form.size + 1) / 2];
            for gram in parts {
                let mut entries = sum.iter_mut();
                for i in 0..form.size {
                    for (k, entry) in (0..=i).zip(&mut entries) {
                        *entry += if i == k { gram[(i, i)] } else { gram[(i, k)] + gram[(k, i)] };
                    }
                }
                grams.push(sum.clone());
            }
        }
        SquaresPatches { tensors: tensors.clone(), form, products, grams, bins: patches }
    }

    fn choose_one(&self, query: &PatchQuery<'_>) -> Option<ChosenPatch<'_>> {
        let u = query.coefficients;
        let (slot, rest) = match self.bins.len() {
            1 => (0, query.uniform),
            count => {
                let squares: Vec<f64> =
                    u.iter().enumerate().flat_map(|(i, a)| u[..=i].iter().map(move |b| a * b)).collect();
                let total = dot(self.grams.last()?, &squares);
                if total < NO_MASS || total < CANCELLATION * self.form.scale(u, 0) {
                    return None;
                }
                find_fraction(count, |slot| dot(&self.grams[slot], &squares), query.uniform)?
            }
        };
        let bin = &self.bins[slot];
        let Some(products) = self.products.as_ref().filter(|_| !bin.sums.is_empty()) else {
            return Some(ChosenPatch { elements: bin.groups.all(), rest });
        };
        let polynomial = &self.tensors.functions[slot] * DVectorView::from_slice(u, u.len());
        let square = products.square(polynomial.as_slice());
        let length = products.len();
        let sum = |patch: usize| dot(&bin.sums[patch * length..(patch + 1) * length], &square);
        let size: f64 = square.iter().map(|s| s.abs()).sum();
        let total = sum(bin.groups.len() - 1);
        // The first integral is the volume, and the others are at most as large.
        let volume = bin.sums[(bin.groups.len() - 1) * length];
        let found = if total < CANCELLED * size * volume { None } else { find_fraction(bin.groups.len(), sum, rest) };
        Some(match found {
            Some((patch, rest)) => ChosenPatch { elements: bin.groups.get(patch), rest },
            None => ChosenPatch { elements: bin.groups.all(), rest },
        })
    }
}

impl BinPatches {
    fn new<'l>(
        mesh: &Mesh,
        products: &Products,
        rules: &MeshCubature,
        lists: impl Iterator<Item = &'l [u32]>,
    ) -> BinPatches {
        let lists: Vec<&[u32]> = lists.collect();
        let parts = lists.par_iter().map(|list| {
            let mut sums = vec![0.0; products.len()];
            list.iter().for_each(|index| products.add_integrals(&mesh.elements[*index as usize], rules, &mut sums));
            sums
        });
        let parts: Vec<Vec<f64>> = parts.collect();
        let mut bin = BinPatches::default();
        let mut running = vec![0.0; products.len()];
        for (list, part) in lists.iter().zip(parts) {
            running.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
            bin.sums.extend_from_slice(&running);
            bin.groups.push(list.iter().copied());
        }
        bin
    }
}

impl PatchSearch for SquaresPatches {
    fn choose<'p>(&'p self, queries: &[PatchQuery<'_>]) -> Vec<Option<ChosenPatch<'p>>> {
        queries.iter().map(|query| self.choose_one(query)).collect()
    }
}
