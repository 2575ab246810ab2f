//! The density of some variables given values of the others.

use std::sync::Arc;

use super::error::QueryError;
use super::slice::extent;
use crate::density::Density;
use crate::density::chebyshev;
use crate::density::mesh::Element;
use crate::density::{BinIndex, ChebyshevSeries, ComponentFunctions, Degree, DensityError, Grid, Support};
use crate::formula::{Constraint, Linear, Substitution, Var, real};
use crate::moments::Exponents;
use crate::number;
use crate::region::{MAX_DIMENSION, Region};

impl Density {
    /// The density of the remaining variables given exact values of some.
    ///
    /// ```
    /// use pal::density::{Family, Settings, SumOfSquaresSettings};
    /// use pal::{formula::reals, region::Region};
    /// let [x, y] = reals(["x", "y"]);
    /// let triangle = Region::new(&(x.ge(0) & y.ge(0) & (&x + &y).le(1)).into())?;
    /// let settings = SumOfSquaresSettings { degree: Some(1), components: 1, basis: Default::default(), subset: None };
    /// let family = Family::new(&triangle, &Settings::SumOfSquares(settings))?;
    /// // Uniform on the triangle: given y = 1/4, x is uniform on [0, 3/4].
    /// let density = family.density(&[0.0; 4])?.given(&[("y", 0.25)])?;
    /// assert!((density.log_prob(&[0.5])[0].exp() - 4.0 / 3.0).abs() < 1e-14);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn given(&self, values: &[(&str, f64)]) -> Result<Density, QueryError> {
        if let Some(chart) = &self.chart {
            return self.given_on_flat(chart, values);
        }
        self.on_slice(&self.slice_support(values)?, values)
    }

    /// Substitutes given values into the constraint.
    pub(super) fn slice_support(&self, values: &[(&str, f64)]) -> Result<SlicedSupport, QueryError> {
        SlicedSupport::new(&self.support, values)
    }

    /// The density on a sliced support, normalised.
    pub(super) fn on_slice(&self, slice: &SlicedSupport, values: &[(&str, f64)]) -> Result<Density, QueryError> {
        self.on_slice_of_row(slice, || {
            let text: Vec<String> = values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            text.join(", ")
        })
    }

    /// The density on a sliced support, normalised; where that is not possible, an error with a description of it.
    pub(super) fn on_slice_of_row(
        &self,
        slice: &SlicedSupport,
        describe: impl Fn() -> String,
    ) -> Result<Density, QueryError> {
        let functions = fixed_coordinates(self.functions.clone(), slice, self.dimension())?;
        let density = self.renormalised(slice.support.clone(), functions);
        density.ok_or_else(|| QueryError::NoDensity(describe()))
    }

    /// The axis of a variable.
    pub(super) fn axis(&self, name: &str) -> Result<usize, QueryError> {
        axis_of(&self.support, name)
    }
}

fn axis_of(support: &Support, name: &str) -> Result<usize, QueryError> {
    let reals = &support.constraint().reals;
    reals.iter().position(|var| var.name() == name).ok_or_else(|| {
        let names: Vec<String> = reals.iter().map(|var| format!("`{var}`")).collect();
        QueryError::Variables(format!("there is no variable `{name}`; there is {}", names.join(", ")))
    })
}

/// Whether an element does not lie inside its bin.
fn is_outside_box(element: &Element, dimension: usize) -> bool {
    let ends = (0..dimension).map(|axis| extent(&element.shape, dimension, axis));
    ends.into_iter().any(|(low, high)| !Grid::in_bin(&[low, high]))
}

/// A support with some variables fixed.
pub(crate) struct SlicedSupport {
    support: Arc<Support>,
    kept: Vec<usize>,
    /// The bins and local coordinates of the fixed variables, at their axes.
    bin: [BinIndex; MAX_DIMENSION],
    t: [f64; MAX_DIMENSION],
}

impl SlicedSupport {
    /// Substitutes given values into the constraint.
    pub(crate) fn new(support: &Support, values: &[(&str, f64)]) -> Result<SlicedSupport, QueryError> {
        let constraint = support.constraint();
        let n = support.dimension();
        let mut fixed: Vec<Option<f64>> = vec![None; n];
        let mut substitution = Substitution::new();
        for (name, value) in values {
            let axis = axis_of(support, name)?;
            if fixed[axis].is_some() {
                return Err(QueryError::Variables(format!("`{name}` is given twice")));
            }
            let exact = number::from_f64(*value).map_err(|_| QueryError::Value(Var::new(name), *value))?;
            substitution = substitution.real(name, Linear::from(exact));
            fixed[axis] = Some(*value);
        }
        if values.len() == n {
            return Err(QueryError::Variables("all variables are given; leave at least one free".to_string()));
        }
        let kept: Vec<usize> = (0..n).filter(|axis| fixed[*axis].is_none()).collect();
        let mut sliced = Constraint {
            formula: constraint.formula.substitute(&substitution),
            reals: kept.iter().map(|axis| constraint.reals[*axis].clone()).collect(),
            booleans: constraint.booleans.clone(),
        };
        let axes = support.grid().axes();
        let grid = Arc::new(Grid::new(kept.iter().map(|axis| axes[*axis].clone()).collect()));
        let mesh = |constraint: &Constraint| -> Result<Support, DensityError> {
            Support::new(&Region::new(constraint)?, &grid)
        };
        let mut sliced_support = mesh(&sliced)?;
        // Parts of the constraint without volume may lie outside of the box and have volume in the slice. The density
        // is 0 on them.
        if sliced_support.mesh().elements.iter().any(|element| is_outside_box(element, kept.len())) {
            for (axis, var) in grid.axes().iter().zip(&sliced.reals) {
                let (low, high) = (axis.edges()[0].clone(), axis.edges()[axis.bins()].clone());
                sliced.formula = sliced.formula & real(var.name()).between(low, high);
            }
            sliced_support = mesh(&sliced)?;
        }
        let support = Arc::new(sliced_support);
        let (mut bin, mut t) = ([BinIndex::default(); MAX_DIMENSION], [0.0; MAX_DIMENSION]);
        for (axis, value) in fixed.iter().enumerate().filter_map(|(axis, value)| Some((axis, (*value)?))) {
            let b = axes[axis].bin_of(value);
            (bin[axis], t[axis]) = (b, axes[axis].local(b, value));
        }
        Ok(SlicedSupport { support, kept, bin, t })
    }

    /// The support of the variables that are not given.
    pub(crate) fn support(&self) -> &Arc<Support> {
        &self.support
    }

    /// The axes of the variables that are not given.
    pub(super) fn kept(&self) -> &[usize] {
        &self.kept
    }

    /// Bin and local coordinates in all variables.
    pub(super) fn full(&self, bin: &[BinIndex], t: &[f64]) -> FullCoordinates {
        let (mut full_bin, mut full_t) = (self.bin, self.t);
        self.kept.iter().zip(bin).for_each(|(axis, b)| full_bin[*axis] = *b);
        self.kept.iter().zip(t).for_each(|(axis, t)| full_t[*axis] = *t);
        (full_bin, full_t)
    }
}

/// Bins and local coordinates in as many variables as there may be.
pub(super) type FullCoordinates = ([BinIndex; MAX_DIMENSION], [f64; MAX_DIMENSION]);

/// Component functions of all variables as functions of those that a slice leaves free.
pub(crate) fn fixed_coordinates(
    functions: Arc<dyn ChebyshevSeries>,
    slice: &SlicedSupport,
    dimension: usize,
) -> Result<Arc<dyn ChebyshevSeries>, QueryError> {
    Ok(Arc::new(FixedCoordinates::new(functions, slice, dimension)?))
}

/// Component functions with some coordinates fixed.
struct FixedCoordinates {
    functions: Arc<dyn ChebyshevSeries>,
    kept: Vec<usize>,
    /// The bins and local coordinates of the fixed variables, at their axes; those of the others are filled in.
    bin: [BinIndex; MAX_DIMENSION],
    t: [f64; MAX_DIMENSION],
    dimension: usize,
    exponents: Exponents,
    /// For every exponent of `functions` the position, in `exponents`, of its part along the kept axes.
    positions: Vec<usize>,
}

impl FixedCoordinates {
    fn new(
        functions: Arc<dyn ChebyshevSeries>,
        slice: &SlicedSupport,
        dimension: usize,
    ) -> Result<FixedCoordinates, QueryError> {
        let SlicedSupport { kept, bin, t, .. } = slice;
        let project = |alpha: &[u16]| -> Vec<u16> { kept.iter().map(|axis| alpha[*axis]).collect() };
        let all: Vec<Vec<u16>> = functions.chebyshev_exponents().iter().map(project).collect();
        let exponents = Exponents::closure(kept.len(), all.iter().cloned())
            .map_err(|error| QueryError::Variables(error.to_string()))?;
        let at = exponents.positions();
        let positions =
            all.iter().map(|alpha| *at.get(&alpha[..]).expect("the set was made from these exponents")).collect();
        drop(at);
        Ok(FixedCoordinates { functions, kept: kept.clone(), bin: *bin, t: *t, dimension, exponents, positions })
    }

    /// Bin and local coordinates in all variables, in a bin that holds a part of the constraint if there is one.
    fn full(&self, bin: &[BinIndex], t: &[f64]) -> ([BinIndex; MAX_DIMENSION], [f64; MAX_DIMENSION]) {
        let (mut full_bin, mut full_t) = (self.bin, self.t);
        self.kept.iter().zip(bin).for_each(|(axis, b)| full_bin[*axis] = *b);
        self.kept.iter().zip(t).for_each(|(axis, t)| full_t[*axis] = *t);
        self.functions.enter(&mut full_bin[..self.dimension], &mut full_t[..self.dimension]);
        (full_bin, full_t)
    }
}

impl ComponentFunctions for FixedCoordinates {
    fn components(&self) -> usize {
        self.functions.components()
    }

    fn degree(&self) -> Degree {
        let Degree { total, axis } = self.functions.degree();
        Degree { total: total.min(axis * self.kept.len()), axis }
    }

    fn values(&self, bin: &[BinIndex], t: &[f64], out: &mut [f64]) {
        let (bin, t) = self.full(bin, t);
        self.functions.values(&bin[..self.dimension], &t[..self.dimension], out);
    }

    fn value(&self, component: usize, bin: &[BinIndex], t: &[f64]) -> f64 {
        let (bin, t) = self.full(bin, t);
        self.functions.value(component, &bin[..self.dimension], &t[..self.dimension])
    }

    fn log_value(&self, component: usize, bin: &[BinIndex], t: &[f64]) -> f64 {
        let (bin, t) = self.full(bin, t);
        self.functions.log_value(component, &bin[..self.dimension], &t[..self.dimension])
    }

    fn enter(&self, bin: &mut [BinIndex], t: &mut [f64]) {
        let (full_bin, full_t) = self.full(bin, t);
        self.kept.iter().zip(bin).for_each(|(axis, b)| *b = full_bin[*axis]);
        self.kept.iter().zip(t).for_each(|(axis, t)| *t = full_t[*axis]);
    }
}

impl ChebyshevSeries for FixedCoordinates {
    fn chebyshev_exponents(&self) -> &Exponents {
        &self.exponents
    }

    fn chebyshev(&self, bin: &[BinIndex], weights: &[f64]) -> Vec<f64> {
        // In the middle of the bin along the kept axes, so that the point lies on no edge there.
        let (bin, t) = self.full(bin, &[0.5; MAX_DIMENSION]);
        let coefficients = self.functions.chebyshev(&bin[..self.dimension], weights);
        let top = self.functions.chebyshev_exponents().degree() + 1;
        let fixed: Vec<usize> = (0..self.dimension).filter(|axis| !self.kept.contains(axis)).collect();
        let tables: Vec<Vec<f64>> = fixed
            .iter()
            .map(|axis| {
                let mut table = vec![0.0; top];
                chebyshev::values(2.0 * t[*axis] - 1.0, &mut table);
                table
            })
            .collect();
        let mut sums = vec![0.0; self.exponents.len()];
        for ((c, alpha), at) in
            coefficients.iter().zip(self.functions.chebyshev_exponents().iter()).zip(&self.positions)
        {
            let factor: f64 = fixed.iter().zip(&tables).map(|(axis, table)| table[usize::from(alpha[*axis])]).product();
            sums[*at] += c * factor;
        }
        sums
    }
}
