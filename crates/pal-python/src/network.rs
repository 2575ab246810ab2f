//! Files of networks that the program `pal` trained: what the Python half needs to build them again.

use numpy::PyArray1;
use pal::container::{Container, NETWORK_VERSION};
use pyo3::prelude::*;
use safetensors::Dtype;

use crate::errors::exception;
use crate::family::Family;

/// Plan, script of the constraint, family if there is one, and the weights one after the other, flat.
type NetworkParts<'py> = (String, String, Option<Family>, Vec<Bound<'py, PyAny>>);

/// The parts of a network file, whose version and checksum are right.
#[pyfunction]
pub fn read_network<'py>(py: Python<'py>, content: &[u8]) -> PyResult<NetworkParts<'py>> {
    let wrong = |error: &dyn std::fmt::Display| exception("FileError", format!("not a trained network: {error}"));
    let container = Container::read(content, NETWORK_VERSION).map_err(|error| wrong(&error))?;
    let text = |name: &str| container.text(name).map(str::to_string).map_err(|error| wrong(&error));
    let mut names: Vec<String> = container.tensors().names().into_iter().map(str::to_string).collect();
    names.sort();
    let (mut weights, mut family) = (Vec::new(), None);
    for name in &names {
        let view = container.tensors().tensor(name).map_err(|error| wrong(&error))?;
        let bytes = view.data();
        if name == "family" {
            let read = pal::density::Family::from_bytes(bytes).map_err(|error| wrong(&error))?;
            family = Some(Family(read));
            continue;
        }
        weights.push(match view.dtype() {
            Dtype::F32 => {
                let values = bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
                PyArray1::from_vec(py, values).into_any()
            }
            Dtype::F64 => {
                let number = |b: &[u8]| f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]);
                PyArray1::from_vec(py, bytes.chunks_exact(8).map(number).collect()).into_any()
            }
            other => return Err(wrong(&format!("`{name}` has entries of type {other:?}"))),
        });
    }
    Ok((text("plan")?, text("constraint")?, family, weights))
}
