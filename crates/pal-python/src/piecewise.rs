//! Minima, maxima and absolute values of linear terms.

use pal::formula::{Linear, PiecewiseLinear};
use pal::number::Rational;
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyTypeError, PyZeroDivisionError};
use pyo3::prelude::*;

use crate::convert::{number, some_number};
use crate::errors::Report;
use crate::formula::Formula;
use crate::term::Term;

/// A piecewise linear term such as `abs(x)` or `minimum(x, 2*y)`. Comparisons of such terms are formulas.
///
/// >>> import pal
/// >>> x, y = pal.reals("x", "y")
/// >>> abs(x) + pal.maximum(x, y) <= 1
/// 2*x <= 1 & x + y <= 1 & x - y >= -1
#[pyclass(frozen, module = "pal")]
pub struct PiecewiseTerm(pub PiecewiseLinear);

/// A number, a term or a piecewise linear term. `None` for anything else.
fn piecewise(object: &Bound<'_, PyAny>) -> PyResult<Option<PiecewiseLinear>> {
    if let Ok(term) = object.cast::<PiecewiseTerm>() {
        return Ok(Some(term.get().0.clone()));
    }
    if let Ok(term) = object.cast::<Term>() {
        return Ok(Some(term.get().0.clone().into()));
    }
    Ok(number(object)?.map(|value| Linear::from(value).into()))
}

fn all(terms: &[Bound<'_, PyAny>], what: &str) -> PyResult<Vec<PiecewiseLinear>> {
    let some = |term: &Bound<'_, PyAny>| {
        let kind = term.get_type().name()?;
        let wrong =
            || PyTypeError::new_err(format!("{what} takes numbers and linear terms such as 2*x - y, not {kind}"));
        piecewise(term)?.ok_or_else(wrong)
    };
    terms.iter().map(some).collect()
}

fn made(extremum: Option<Result<PiecewiseLinear, pal::formula::TooManyPieces>>, what: &str) -> PyResult<PiecewiseTerm> {
    let none = || PyTypeError::new_err(format!("{what} of nothing; give at least one term"));
    extremum.ok_or_else(none)?.map(PiecewiseTerm).map_err(Report::report)
}

/// The smallest of some terms and numbers.
#[pyfunction]
pub fn minimum(terms: Vec<Bound<'_, PyAny>>) -> PyResult<PiecewiseTerm> {
    made(PiecewiseLinear::min(all(&terms, "minimum")?), "minimum")
}

/// The largest of some terms and numbers.
#[pyfunction]
pub fn maximum(terms: Vec<Bound<'_, PyAny>>) -> PyResult<PiecewiseTerm> {
    made(PiecewiseLinear::max(all(&terms, "maximum")?), "maximum")
}

/// The absolute value of a linear term.
pub fn absolute(term: &Linear) -> PiecewiseTerm {
    PiecewiseTerm(PiecewiseLinear::abs(term))
}

impl PiecewiseTerm {
    fn negated(&self) -> PiecewiseLinear {
        self.0.scaled(&Rational::from(-1))
    }

    fn plus<'py>(term: &PiecewiseLinear, other: &Bound<'py, PyAny>, factor: i64) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        match piecewise(other)? {
            Some(other) => {
                let sum = term.plus(&other.scaled(&Rational::from(factor))).map_err(Report::report)?;
                Ok(Bound::new(py, PiecewiseTerm(sum))?.into_any())
            }
            None => Ok(py.NotImplemented().into_bound(py)),
        }
    }
}

#[pymethods]
impl PiecewiseTerm {
    fn __add__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        PiecewiseTerm::plus(&self.0, other, 1)
    }

    fn __radd__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        PiecewiseTerm::plus(&self.0, other, 1)
    }

    fn __sub__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        PiecewiseTerm::plus(&self.0, other, -1)
    }

    fn __rsub__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        PiecewiseTerm::plus(&self.negated(), other, 1)
    }

    fn __mul__(&self, other: &Bound<'_, PyAny>) -> PyResult<PiecewiseTerm> {
        Ok(PiecewiseTerm(self.0.scaled(&some_number(other, "a factor of a minimum or maximum")?)))
    }

    fn __rmul__(&self, other: &Bound<'_, PyAny>) -> PyResult<PiecewiseTerm> {
        self.__mul__(other)
    }

    fn __truediv__(&self, other: &Bound<'_, PyAny>) -> PyResult<PiecewiseTerm> {
        let divisor = some_number(other, "a divisor")?;
        if divisor.is_zero() {
            return Err(PyZeroDivisionError::new_err("division of a term by zero"));
        }
        Ok(PiecewiseTerm(self.0.scaled(&(Rational::ONE / divisor))))
    }

    fn __neg__(&self) -> PiecewiseTerm {
        PiecewiseTerm(self.negated())
    }

    fn __abs__(&self) -> PyResult<PiecewiseTerm> {
        made(PiecewiseLinear::max(vec![self.0.clone(), self.negated()]), "abs")
    }

    /// The formula `low <= self <= high`.
    fn between(&self, low: &Bound<'_, PyAny>, high: &Bound<'_, PyAny>) -> PyResult<Formula> {
        let side = |object: &Bound<'_, PyAny>, what: &str| match piecewise(object)? {
            Some(term) => Ok(term),
            None => some_number(object, what).map(|value| Linear::from(value).into()),
        };
        let (low, high) = (side(low, "the lower bound")?, side(high, "the upper bound")?);
        let above = low.le(&self.0).map_err(Report::report)?;
        Ok(Formula(above & self.0.le(&high).map_err(Report::report)?))
    }

    fn __richcmp__<'py>(&self, other: &Bound<'py, PyAny>, op: CompareOp) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        let Some(other) = piecewise(other)? else { return Ok(py.NotImplemented().into_bound(py)) };
        let formula = match op {
            CompareOp::Le => self.0.le(&other),
            CompareOp::Lt => self.0.lt(&other),
            CompareOp::Ge => other.le(&self.0),
            CompareOp::Gt => other.lt(&self.0),
            CompareOp::Eq => self.0.equals(&other),
            CompareOp::Ne => self.0.equals(&other).map(|formula| !formula),
        };
        Ok(Bound::new(py, Formula(formula.map_err(Report::report)?))?.into_any())
    }

    fn __bool__(&self) -> PyResult<bool> {
        Err(PyTypeError::new_err("a term has no truth value; compare it with another one"))
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }

    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: Py<PyAny>) -> Py<Self> {
        slf
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Vec<Bound<'py, PyAny>>,))> {
        let py = slf.py();
        let module = py.import("pal._core")?;
        let (name, parts) = match slf.get().0.parts() {
            Err(term) => ("maximum", vec![Bound::new(py, Term(term.clone()))?.into_any()]),
            Ok((is_max, parts)) => {
                let part = |part: PiecewiseLinear| match part.as_linear() {
                    Some(term) => Ok(Bound::new(py, Term(term.clone()))?.into_any()),
                    None => Ok::<_, PyErr>(Bound::new(py, PiecewiseTerm(part))?.into_any()),
                };
                let parts = parts.into_iter().map(part).collect::<PyResult<Vec<_>>>()?;
                (if is_max { "maximum" } else { "minimum" }, parts)
            }
        };
        Ok((module.getattr(name)?, (parts,)))
    }

    /// Keeps numpy's numbers from taking terms for arrays.
    #[classattr]
    fn __array_ufunc__() -> Option<u8> {
        None
    }
}
