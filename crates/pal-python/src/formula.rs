//! Formulas and their connectives.

use pal::formula::Constraint as CoreConstraint;
use pyo3::basic::CompareOp;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::convert::some_number;
use crate::errors::Report;
use crate::term::Term;

/// A Boolean combination of linear inequalities with exact coefficients.
///
/// >>> import pal
/// >>> x, y = pal.reals("x", "y")
/// >>> formula = (x >= 0) & ~((y > 1) | (x + y >= 2))
/// >>> formula, formula.reals, formula.num_atoms
/// (x >= 0 & !(y > 1 | x + y >= 2), ['x', 'y'], 3)
#[pyclass(frozen, module = "pal")]
pub struct Formula(pub pal::formula::Formula);

/// A formula, or a truth value as one. `None` for anything else.
pub fn formula(object: &Bound<'_, PyAny>) -> PyResult<Option<pal::formula::Formula>> {
    if let Ok(formula) = object.cast::<Formula>() {
        return Ok(Some(formula.get().0.clone()));
    }
    // Of Python and of numpy.
    let name = object.get_type().name()?;
    if name == "bool" || name == "bool_" {
        return Ok(Some(pal::formula::Formula::constant(object.is_truthy()?)));
    }
    Ok(None)
}

/// The formula that an object stands for; an error that names the argument, if it is none.
pub fn some_formula(object: &Bound<'_, PyAny>, what: &str) -> PyResult<pal::formula::Formula> {
    formula(object)?.ok_or_else(|| {
        let kind = object.get_type().name().map_or_else(|_| "?".to_string(), |name| name.to_string());
        let way = if kind == "str" { "; text of SMT-LIB is read by `constraint.parse(text)`" } else { "" };
        PyTypeError::new_err(format!("{what} must be a formula such as x <= 1, not {kind}{way}"))
    })
}

fn connect<'py>(
    left: &Formula,
    right: &Bound<'py, PyAny>,
    make: impl FnOnce(pal::formula::Formula, pal::formula::Formula) -> pal::formula::Formula,
) -> PyResult<Bound<'py, PyAny>> {
    let py = right.py();
    match formula(right)? {
        Some(right) => Ok(Bound::new(py, Formula(make(left.0.clone(), right)))?.into_any()),
        None => Ok(py.NotImplemented().into_bound(py)),
    }
}

#[pymethods]
impl Formula {
    /// Declares a Boolean variable.
    #[staticmethod]
    fn boolean(name: &str) -> Formula {
        Formula(pal::formula::Formula::boolean(name))
    }

    /// The conjunction of all.
    #[staticmethod]
    fn all(parts: Vec<Bound<'_, PyAny>>) -> PyResult<Formula> {
        let parts: Vec<_> = parts.iter().map(|part| some_formula(part, "a part")).collect::<PyResult<_>>()?;
        Ok(Formula(pal::formula::Formula::all(parts)))
    }

    /// The disjunction of all.
    #[staticmethod]
    fn any(parts: Vec<Bound<'_, PyAny>>) -> PyResult<Formula> {
        let parts: Vec<_> = parts.iter().map(|part| some_formula(part, "a part")).collect::<PyResult<_>>()?;
        Ok(Formula(pal::formula::Formula::any(parts)))
    }

    /// `yes` where the condition holds, `no` elsewhere.
    #[staticmethod]
    fn ite(condition: &Bound<'_, PyAny>, yes: &Bound<'_, PyAny>, no: &Bound<'_, PyAny>) -> PyResult<Formula> {
        let (yes, no) = (some_formula(yes, "the first case")?, some_formula(no, "the second case")?);
        Ok(Formula(some_formula(condition, "the condition")?.ite(yes, no)))
    }

    /// Reads the script that pickles hold.
    #[staticmethod]
    fn _read(script: &str) -> PyResult<Formula> {
        pal::formula::parse_smtlib(script).map(|constraint| Formula(constraint.formula)).map_err(Report::report)
    }

    /// The names of the real variables that occur, in the order of their declaration.
    #[getter]
    fn reals(&self) -> Vec<String> {
        self.0.real_variables().iter().map(|var| var.name().to_string()).collect()
    }

    /// The names of the Boolean variables that occur, in the order of their declaration.
    #[getter]
    fn booleans(&self) -> Vec<String> {
        self.0.boolean_variables().iter().map(|var| var.name().to_string()).collect()
    }

    /// How many distinct inequalities it has.
    #[getter]
    fn num_atoms(&self) -> usize {
        self.0.atoms().len()
    }

    /// The formula with variables replaced: reals by terms or numbers, Booleans by formulas or truth values.
    fn substitute(&self, values: std::collections::BTreeMap<String, Bound<'_, PyAny>>) -> PyResult<Formula> {
        let mut substitution = pal::formula::Substitution::new();
        for (name, value) in &values {
            substitution = match (value.cast::<Term>(), formula(value)?) {
                (Ok(term), _) => substitution.real(name, term.get().0.clone()),
                (_, Some(formula)) => substitution.boolean(name, formula),
                _ => substitution.real(name, some_number(value, &format!("the value of `{name}`"))?.into()),
            };
        }
        Ok(Formula(self.0.substitute(&substitution)))
    }

    fn __and__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        connect(self, other, |a, b| a & b)
    }

    fn __rand__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        connect(self, other, |a, b| b & a)
    }

    fn __or__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        connect(self, other, |a, b| a | b)
    }

    fn __ror__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        connect(self, other, |a, b| b | a)
    }

    fn __xor__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        connect(self, other, |a, b| a ^ b)
    }

    fn __rxor__<'py>(&self, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        connect(self, other, |a, b| b ^ a)
    }

    fn __invert__(&self) -> Formula {
        Formula(!self.0.clone())
    }

    fn __richcmp__<'py>(&self, other: &Bound<'py, PyAny>, op: CompareOp) -> PyResult<Bound<'py, PyAny>> {
        match op {
            CompareOp::Eq => connect(self, other, |a, b| a.iff(b)),
            CompareOp::Ne => connect(self, other, |a, b| a ^ b),
            _ => Ok(other.py().NotImplemented().into_bound(other.py())),
        }
    }

    fn __bool__(&self) -> PyResult<bool> {
        match self.0.as_constant() {
            Some(value) => Ok(value),
            None => Err(PyTypeError::new_err(
                "a formula has no truth value of its own: write (0 <= x) & (x <= 1) instead of 0 <= x <= 1, \
                 & | ~ instead of and, or, not, pal.maximum(x, y) instead of max(x, y), and A @ pal.reals(\"x\", \"y\") <= b \
                 instead of an array of terms",
            )),
        }
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

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let constraint = CoreConstraint::new(slf.get().0.clone());
        let script = pal::formula::write_smtlib(&constraint).map_err(Report::report)?;
        Ok((slf.get_type().getattr("_read")?, (script,)))
    }

    /// Keeps numpy's truth values from taking formulas for arrays.
    #[classattr]
    fn __array_ufunc__() -> Option<u8> {
        None
    }
}
