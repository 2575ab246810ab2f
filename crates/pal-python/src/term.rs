//! Linear terms, and arithmetic between numbers, terms, polynomials and weights: the result is the simplest of these
//! that holds it.

use pal::formula::{Linear, Relation, Var};
use pal::number::Rational;
use pal::polynomial::Polynomial as Poly;
use pal::wmi::Piecewise;
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyTypeError, PyZeroDivisionError};
use pyo3::prelude::*;

use crate::convert::{fraction, number, some_number};
use crate::errors::Report;
use crate::formula::Formula;
use crate::piecewise::{PiecewiseTerm, absolute};
use crate::polynomial::{Polynomial, Weight, not_linear};
use crate::work::run;

/// A number, a term, a polynomial or a weight.
#[derive(Clone)]
pub enum Operand {
    Linear(Linear),
    Polynomial(Poly),
    Weight(Piecewise),
}

impl Operand {
    /// `None` for anything that arithmetic does not know.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Operand>> {
        if let Ok(term) = object.cast::<Term>() {
            return Ok(Some(Operand::Linear(term.get().0.clone())));
        }
        if let Ok(polynomial) = object.cast::<Polynomial>() {
            return Ok(Some(Operand::Polynomial(polynomial.get().0.clone())));
        }
        if let Ok(weight) = object.cast::<Weight>() {
            return Ok(Some(Operand::Weight(weight.get().0.clone())));
        }
        Ok(number(object)?.map(|value| Operand::Linear(value.into())))
    }

    fn constant(&self) -> Option<Rational> {
        match self {
            Operand::Linear(term) => term.as_constant().cloned(),
            Operand::Polynomial(polynomial) => polynomial.as_constant(),
            Operand::Weight(_) => None,
        }
    }

    pub fn polynomial(self) -> Result<Poly, Piecewise> {
        match self {
            Operand::Linear(term) => {
                let mut sum = Poly::constant(term.constant().clone());
                term.terms().for_each(|(var, a)| sum += &Poly::var(var).scaled(a));
                Ok(sum)
            }
            Operand::Polynomial(polynomial) => Ok(polynomial),
            Operand::Weight(weight) => Err(weight),
        }
    }

    pub fn plus(self, other: Operand) -> PyResult<Operand> {
        Ok(match (self, other) {
            (Operand::Linear(a), Operand::Linear(b)) => Operand::Linear(a + b),
            (a, b) => match (a.polynomial(), b.polynomial()) {
                (Ok(a), Ok(b)) => Operand::Polynomial(a + b),
                (a, b) => Operand::Weight(either(a).plus(&either(b)).map_err(Report::report)?),
            },
        })
    }

    pub fn times(self, other: Operand) -> PyResult<Operand> {
        if let Operand::Linear(term) = &self
            && let Some(factor) = other.constant()
        {
            return Ok(Operand::Linear(term.scaled(&factor)));
        }
        if let Operand::Linear(term) = &other
            && let Some(factor) = self.constant()
        {
            return Ok(Operand::Linear(term.scaled(&factor)));
        }
        Ok(match (self.polynomial(), other.polynomial()) {
            (Ok(a), Ok(b)) => Operand::Polynomial(Python::attach(|py| run(py, "multiplying", || a.mul(&b)))?),
            (a, b) => Operand::Weight(either(a).times(&either(b)).map_err(Report::report)?),
        })
    }

    pub fn negated(self) -> PyResult<Operand> {
        self.times(Operand::Linear(Rational::from(-1).into()))
    }

    pub fn over(self, other: &Bound<'_, PyAny>) -> PyResult<Operand> {
        let divisor = match Operand::of(other)?.map(|operand| operand.constant()) {
            Some(Some(divisor)) => divisor,
            Some(None) => return Err(PyTypeError::new_err("only numbers can be divided by")),
            None => some_number(other, "a divisor")?,
        };
        if divisor.is_zero() {
            return Err(PyZeroDivisionError::new_err("division of a term by zero"));
        }
        self.times(Operand::Linear((Rational::ONE / divisor).into()))
    }

    pub fn power(self, exponent: &Bound<'_, PyAny>) -> PyResult<Operand> {
        let wrong = |_| PyTypeError::new_err("exponents must be natural numbers, such as in x**2");
        let exponent: u32 = exponent.extract().map_err(wrong)?;
        if exponent == 1 {
            return Ok(self);
        }
        Ok(match self.polynomial() {
            Ok(polynomial) => {
                Operand::Polynomial(Python::attach(|py| run(py, "multiplying", || polynomial.pow(exponent)))?)
            }
            Err(weight) => Operand::Weight(weight.pow(exponent).map_err(Report::report)?),
        })
    }

    pub fn object<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Operand::Linear(term) => Bound::new(py, Term(term))?.into_any(),
            Operand::Polynomial(polynomial) => Bound::new(py, Polynomial(polynomial))?.into_any(),
            Operand::Weight(weight) => Bound::new(py, Weight(weight))?.into_any(),
        })
    }
}

fn either(operand: Result<Poly, Piecewise>) -> Piecewise {
    operand.map_or_else(|weight| weight, Piecewise::from)
}

/// The operators that terms, polynomials and weights share, and what one of them has besides.
macro_rules! arithmetic {
    ($class:ident, $variant:ident, { $($own:tt)* }) => {
        #[pyo3::pymethods]
        impl $class {
            fn __add__<'py>(&self, py: Python<'py>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                match Operand::of(other)? {
                    Some(other) => Operand::$variant(self.0.clone()).plus(other)?.object(py),
                    None => Ok(py.NotImplemented().into_bound(py)),
                }
            }

            fn __radd__<'py>(&self, py: Python<'py>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                self.__add__(py, other)
            }

            fn __sub__<'py>(&self, py: Python<'py>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                match Operand::of(other)? {
                    Some(other) => Operand::$variant(self.0.clone()).plus(other.negated()?)?.object(py),
                    None => Ok(py.NotImplemented().into_bound(py)),
                }
            }

            fn __rsub__<'py>(&self, py: Python<'py>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                match Operand::of(other)? {
                    Some(other) => other.plus(Operand::$variant(self.0.clone()).negated()?)?.object(py),
                    None => Ok(py.NotImplemented().into_bound(py)),
                }
            }

            fn __mul__<'py>(&self, py: Python<'py>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                match Operand::of(other)? {
                    Some(other) => Operand::$variant(self.0.clone()).times(other)?.object(py),
                    None => Ok(py.NotImplemented().into_bound(py)),
                }
            }

            fn __rmul__<'py>(&self, py: Python<'py>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                self.__mul__(py, other)
            }

            fn __truediv__<'py>(&self, py: Python<'py>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
                Operand::$variant(self.0.clone()).over(other)?.object(py)
            }

            fn __pow__<'py>(
                &self,
                exponent: &Bound<'py, PyAny>,
                _modulus: Option<Py<PyAny>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                Operand::$variant(self.0.clone()).power(exponent)?.object(exponent.py())
            }

            fn __neg__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                Operand::$variant(self.0.clone()).negated()?.object(py)
            }

            fn __pos__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            fn __copy__(slf: Py<Self>) -> Py<Self> {
                slf
            }

            fn __deepcopy__(slf: Py<Self>, _memo: Py<PyAny>) -> Py<Self> {
                slf
            }

            /// Keeps numpy's numbers from taking terms for arrays.
            #[classattr]
            fn __array_ufunc__() -> Option<u8> {
                None
            }

            $($own)*
        }
    };
}
pub(crate) use arithmetic;

/// A linear term with exact coefficients, such as `2*x - y/3 + 1`. Comparisons of terms are formulas.
///
/// >>> import pal
/// >>> x, y = pal.reals("x", "y")
/// >>> 2 * x - y / 3 + 1, x <= y + 1, x.between(0, "1/3")
/// (2*x - 1/3*y + 1, x - y <= 1, x >= 0 & 3*x <= 1)
#[pyclass(frozen, module = "pal")]
pub struct Term(pub Linear);

arithmetic!(Term, Linear, {
    /// `sum_j coefficient_j * variable_j + constant` from a dict and a number. The variables are declared in the order
    /// of the dict.
    #[new]
    fn new(coefficients: &Bound<'_, pyo3::types::PyDict>, constant: &Bound<'_, PyAny>) -> PyResult<Term> {
        let (mut names, mut numbers) = (Vec::new(), Vec::new());
        for (name, a) in coefficients {
            let name: String = name.extract()?;
            numbers.push(some_number(&a, &format!("the coefficient of `{name}`"))?);
            names.push(name);
        }
        let terms = Var::declare_all(&names).into_iter().zip(numbers);
        Ok(Term(Linear::new(terms, some_number(constant, "the constant")?)))
    }

    /// The coefficients that are not zero, by variable in the order of declaration.
    #[getter]
    fn coefficients<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyDict>> {
        let dict = pyo3::types::PyDict::new(py);
        let mut terms: Vec<_> = self.0.terms().collect();
        terms.sort_by(|(a, _), (b, _)| a.by_declaration(b));
        for (var, a) in terms {
            dict.set_item(var.name(), fraction(py, a)?)?;
        }
        Ok(dict)
    }

    /// The constant part.
    #[getter]
    fn constant<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        fraction(py, self.0.constant())
    }

    fn __abs__(&self) -> PiecewiseTerm {
        absolute(&self.0)
    }

    /// The formula `low <= self <= high`.
    fn between(&self, low: &Bound<'_, PyAny>, high: &Bound<'_, PyAny>) -> PyResult<Formula> {
        let side = |object: &Bound<'_, PyAny>, what: &str| match object.cast::<Term>() {
            Ok(term) => Ok(term.get().0.clone()),
            Err(_) => some_number(object, what).map(Linear::from),
        };
        Ok(Formula(self.0.between(side(low, "the lower bound")?, side(high, "the upper bound")?)))
    }

    fn __richcmp__<'py>(
        &self,
        py: Python<'py>,
        other: &Bound<'py, PyAny>,
        op: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        let difference = match Operand::of(other)? {
            Some(Operand::Linear(other)) => &self.0 - &other,
            Some(other) => {
                return Err(other.polynomial().map_or_else(|_| not_linear("a weight with cases"), not_linear));
            }
            None => return Ok(py.NotImplemented().into_bound(py)),
        };
        let compare = |relation| pal::formula::Formula::compare(&difference, relation);
        let formula = match op {
            CompareOp::Le => compare(Relation::Le),
            CompareOp::Lt => compare(Relation::Lt),
            CompareOp::Ge => !compare(Relation::Lt),
            CompareOp::Gt => !compare(Relation::Le),
            CompareOp::Eq => compare(Relation::Eq),
            CompareOp::Ne => !compare(Relation::Eq),
        };
        Ok(Bound::new(py, Formula(formula))?.into_any())
    }

    fn __bool__(&self) -> PyResult<bool> {
        Err(PyTypeError::new_err("a term has no truth value; compare it with another one"))
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyAny>, Bound<'py, PyAny>))> {
        let (py, term) = (slf.py(), slf.get());
        Ok((slf.get_type().into_any(), (term.coefficients(py)?.into_any(), term.constant(py)?)))
    }
});
