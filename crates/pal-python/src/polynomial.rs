//! Polynomials, weights with cases, and weighted model integration.

use pal::formula::Var;
use pal::wmi::{Piecewise, Problem};
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::constraint::Constraint;
use crate::convert::{fraction, some_number};
use crate::errors::Report;
use crate::formula::some_formula;
use crate::region::{Answer, answer, method};
use crate::term::{Operand, arithmetic};
use crate::work::run;

/// A polynomial with exact coefficients.
///
/// >>> import pal
/// >>> x, y = pal.reals("x", "y")
/// >>> (x + y) ** 2 - 2 * x * y
/// x^2 + y^2
#[pyclass(frozen, module = "pal")]
pub struct Polynomial(pub pal::polynomial::Polynomial);

/// A polynomial from a number, a term, a polynomial, or text such as `x^2*y - 1/2`.
pub fn polynomial(object: &Bound<'_, PyAny>) -> PyResult<pal::polynomial::Polynomial> {
    if let Ok(text) = object.cast::<pyo3::types::PyString>() {
        let text = text.to_str()?;
        return run(object.py(), "expanding", || pal::polynomial::Polynomial::parse(text));
    }
    match Operand::of(object)?.map(Operand::polynomial) {
        Some(Ok(polynomial)) => Ok(polynomial),
        Some(Err(_)) => Err(PyTypeError::new_err("a weight with cases is not a polynomial; use pal.wmi")),
        None => Err(PyTypeError::new_err(format!(
            "a polynomial must be a term, a number or text such as \"x^2*y - 1/2\", not {}",
            object.get_type().name()?
        ))),
    }
}

/// The error of a comparison that is no linear inequality.
pub fn not_linear(side: impl std::fmt::Display) -> PyErr {
    PyTypeError::new_err(format!(
        "constraints must be linear, and {side} is not; a curve can be approximated by a polygon, \
         pal.polygon(corners), and abs, pal.minimum and pal.maximum of linear terms can be compared"
    ))
}

impl Polynomial {
    fn terms_over_vars<'py>(&self, py: Python<'py>, variables: &[Var]) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (exponents, c) in self.0.aligned(variables).map_err(Report::report)? {
            dict.set_item(PyTuple::new(py, exponents)?, fraction(py, &c)?)?;
        }
        Ok(dict)
    }
}

/// The variables of a polynomial in the order of their declaration.
fn declared(polynomial: &pal::polynomial::Polynomial) -> Vec<Var> {
    let mut variables = polynomial.variables().to_vec();
    variables.sort_by(Var::by_declaration);
    variables
}

arithmetic!(Polynomial, Polynomial, {
    /// A polynomial from a number, a term, or text such as `x^2*y - 1/2`.
    #[new]
    fn new(value: &Bound<'_, PyAny>) -> PyResult<Polynomial> {
        polynomial(value).map(Polynomial)
    }

    /// The total degree; -1 for the polynomial 0.
    #[getter]
    fn degree(&self) -> i64 {
        self.0.degree().map_or(-1, i64::from)
    }

    /// The names of the variables that occur, in the order of their declaration; in text that is where they first
    /// occur.
    #[getter]
    fn variables(&self) -> Vec<String> {
        declared(&self.0).iter().map(|var| var.name().to_string()).collect()
    }

    /// Reads what pickles hold: the polynomial as text, and its variables in order.
    #[staticmethod]
    fn _read(text: &str, variables: Vec<String>) -> PyResult<Polynomial> {
        let scope = Var::declare_all(&variables);
        pal::polynomial::Polynomial::parse_in(text, &scope).map(Polynomial).map_err(Report::report)
    }

    /// The coefficients by exponents, which are in the order of [`Polynomial::variables`].
    fn terms<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.terms_over_vars(py, &declared(&self.0))
    }

    /// The coefficients by exponents, which are in the order of the given variables.
    fn terms_over<'py>(&self, py: Python<'py>, variables: Vec<String>) -> PyResult<Bound<'py, PyDict>> {
        self.terms_over_vars(py, &Var::declare_all(&variables))
    }

    /// The exact value at a point given by variable.
    fn value<'py>(
        &self,
        py: Python<'py>,
        point: std::collections::BTreeMap<String, Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (mut names, mut values) = (Vec::new(), Vec::new());
        for (name, value) in &point {
            names.push(Var::new(name));
            values.push(some_number(value, &format!("the value of `{name}`"))?);
        }
        fraction(py, &self.0.eval(&names, &values).map_err(Report::report)?)
    }

    fn __richcmp__<'py>(
        &self,
        py: Python<'py>,
        other: &Bound<'py, PyAny>,
        op: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        let equal = match Operand::of(other)?.map(Operand::polynomial) {
            Some(Ok(other)) => self.0 == other,
            _ => return Ok(py.NotImplemented().into_bound(py)),
        };
        match op {
            CompareOp::Eq => Ok(pyo3::types::PyBool::new(py, equal).to_owned().into_any()),
            CompareOp::Ne => Ok(pyo3::types::PyBool::new(py, !equal).to_owned().into_any()),
            _ => Err(not_linear(&self.0)),
        }
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String, Vec<String>))> {
        let polynomial = slf.get();
        Ok((slf.get_type().getattr("_read")?, (polynomial.0.to_string(), polynomial.variables())))
    }
});

/// A polynomial with cases: what `pal.ite` makes of polynomials, and sums, products and powers of such.
///
/// >>> import pal
/// >>> x = pal.real("x")
/// >>> weight = pal.ite(x <= 1, x, 2 * x)
/// >>> pal.wmi(x.between(0, 2), weight).total, pal.wmi(x.between(0, 2), weight * weight).total
/// (Fraction(7, 2), Fraction(29, 3))
#[pyclass(frozen, module = "pal")]
pub struct Weight(pub Piecewise);

/// A weight from a weight, or anything that is a polynomial.
fn weight(object: &Bound<'_, PyAny>) -> PyResult<Piecewise> {
    match object.cast::<Weight>() {
        Ok(weight) => Ok(weight.get().0.clone()),
        Err(_) => polynomial(object).map(Piecewise::from),
    }
}

arithmetic!(Weight, Weight, {
    /// `yes` where the condition holds, `no` elsewhere.
    #[staticmethod]
    fn ite(condition: &Bound<'_, PyAny>, yes: &Bound<'_, PyAny>, no: &Bound<'_, PyAny>) -> PyResult<Weight> {
        let condition = some_formula(condition, "the condition")?;
        Piecewise::ite(condition, &weight(yes)?, &weight(no)?).map(Weight).map_err(Report::report)
    }

    /// Reads a term of SMT-LIB with `+ - * / pow ite` over the variables of a constraint.
    #[staticmethod]
    fn parse(text: &str, scope: &Bound<'_, Constraint>) -> PyResult<Weight> {
        Piecewise::parse(text, &scope.get().0).map(Weight).map_err(Report::report)
    }
});

/// Weighted volumes of a support and of parts of it. The support is JSON text of a problem, or a constraint with a
/// weight.
#[pyfunction]
#[pyo3(signature = (support, weight, queries, method))]
pub fn solve<'py>(
    py: Python<'py>,
    support: &Bound<'py, PyAny>,
    weight: Option<&Bound<'py, PyAny>>,
    queries: Vec<Bound<'py, PyAny>>,
    method: &str,
) -> PyResult<(Answer<'py>, Vec<Answer<'py>>)> {
    let problem = match support.cast::<Constraint>() {
        Ok(support) => {
            let weight = weight.map_or_else(|| Ok(pal::polynomial::Polynomial::one().into()), self::weight)?;
            let queries = queries.iter().map(|query| some_formula(query, "a query")).collect::<PyResult<_>>()?;
            Problem::new(support.get().0.clone(), &weight, queries)
        }
        Err(_) => Problem::parse(&support.extract::<String>()?).map_err(Report::report)?,
    };
    let method = self::method(method)?;
    let solution = run(py, "integrating", || problem.solve(method))?;
    let queries = solution.queries.iter().map(|query| answer(py, query)).collect::<PyResult<_>>()?;
    Ok((answer(py, &solution.total)?, queries))
}
