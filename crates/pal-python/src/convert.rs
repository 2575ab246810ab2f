//! Exact numbers and arrays of float64, converted between Python and the library.

use numpy::{Element, PyArray1, PyReadonlyArray1};
use pal::number::{self, Integer, Rational};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyType};

use crate::errors::Report;

static FRACTION: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();
static INT: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// The exact value of a number: an int, Fraction, Decimal, text, or float, which stands for exactly what it denotes.
/// `None` for anything else.
pub fn number(object: &Bound<'_, PyAny>) -> PyResult<Option<Rational>> {
    let py = object.py();
    if object.is_instance_of::<PyBool>() {
        return Ok(None);
    }
    if let Ok(float) = object.cast::<PyFloat>() {
        return number::from_f64(float.value()).map(Some).map_err(Report::report);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return number::parse_rational(text.to_str()?.trim()).map(Some).map_err(Report::report);
    }
    if let Ok(int) = object.cast::<PyInt>() {
        return integer(int.as_any()).map(|value| Some(value.into()));
    }
    // A Decimal can have an exponent that would fill the memory when written out; as text it meets the limit of the
    // library.
    if object.is_instance(DECIMAL.import(py, "decimal", "Decimal")?)? {
        return number::parse_rational(object.str()?.to_str()?).map(Some).map_err(Report::report);
    }
    if let Some(scalar) = scalar(object)? {
        return number(&scalar);
    }
    if object.hasattr("__index__")? && !object.hasattr("__len__")? {
        return integer(&object.call_method0("__index__")?).map(|value| Some(value.into()));
    }
    if object.hasattr("as_integer_ratio")? {
        let ratio = object.call_method0("as_integer_ratio");
        // What is not finite has no ratio, for which Python raises several kinds of exceptions.
        let Ok(ratio) = ratio else {
            return number::parse_rational(object.str()?.to_str()?).map(Some).map_err(Report::report);
        };
        let (p, q): (Bound<PyAny>, Bound<PyAny>) = ratio.extract()?;
        return Ok(Some(Rational::from_parts_signed(integer(&p)?, integer(&q)?)));
    }
    Ok(None)
}

/// The number in an array of numpy or a tensor of PyTorch without axes; `None` for anything else.
fn scalar<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (Ok(item), Ok(axes)) = (object.getattr("item"), object.getattr("ndim")) else { return Ok(None) };
    // Scalars of numpy have these attributes too, and a ratio of their own, which long doubles need.
    if object.hasattr("as_integer_ratio")? || object.hasattr("is_integer")? || axes.extract::<usize>().ok() != Some(0) {
        return Ok(None);
    }
    if let Ok(gradient) = object.getattr("requires_grad")
        && gradient.is_truthy()?
    {
        return Err(PyTypeError::new_err(
            "a constraint has constants, and no derivatives with respect to them; give tensor.item() or tensor.detach()",
        ));
    }
    let value = item.call0()?;
    Ok((value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>()).then_some(value))
}

/// The exact value of a number; an error that names the argument, if the object is none.
pub fn some_number(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Rational> {
    number(object)?.ok_or_else(|| {
        let kind = object.get_type().name().map_or_else(|_| "?".to_string(), |name| name.to_string());
        PyTypeError::new_err(format!(
            "{what} must be a number, not {kind}; give an int, Fraction, Decimal, float or text such as \"1/3\""
        ))
    })
}

fn integer(object: &Bound<'_, PyAny>) -> PyResult<Integer> {
    // Hexadecimal, because Python limits the length of decimal ones.
    let text: String = object.call_method1("__format__", ("x",))?.extract()?;
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.as_str()),
    };
    let size = Integer::from_str_radix(digits, 16).map_err(|error| PyTypeError::new_err(error.to_string()))?;
    Ok(if negative { -size } else { size })
}

/// A Python `Fraction`.
pub fn fraction<'py>(py: Python<'py>, value: &Rational) -> PyResult<Bound<'py, PyAny>> {
    let int = INT.import(py, "builtins", "int")?;
    let integer = |digits: String| int.call1((digits, 16));
    let parts =
        (integer(value.numerator().in_radix(16).to_string())?, integer(value.denominator().in_radix(16).to_string())?);
    FRACTION.import(py, "fractions", "Fraction")?.call1(parts)
}

/// The exact value of a number as a Fraction.
#[pyfunction]
pub fn rational<'py>(value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    fraction(value.py(), &some_number(value, "the value")?)
}

/// A copy of the numbers in an array: another thread may write to the array while the interpreter is released.
pub fn copied<T: Element + Copy>(array: &PyReadonlyArray1<'_, T>) -> Vec<T> {
    array.as_array().iter().copied().collect()
}

pub type FloatArray<'py> = Bound<'py, PyArray1<f64>>;

pub fn array(py: Python<'_>, values: Vec<f64>) -> FloatArray<'_> {
    PyArray1::from_vec(py, values)
}

pub fn flags(py: Python<'_>, values: Vec<bool>) -> Bound<'_, PyArray1<bool>> {
    PyArray1::from_vec(py, values)
}
