//! Moments of a constraint as a safetensors file.

use safetensors::tensor::Dtype;

use crate::container::{self, Container, ContainerError};
use crate::formula::{Constraint, SmtError, SmtWriteError, parse_smtlib, write_smtlib};
use crate::moments::{Exponents, ExponentsError, Moments};

/// The version of the file format.
const VERSION: &str = "pal-moments-2";

/// The content of a file of moments: a constraint and its moments.
///
/// ```
/// use pal::moments::{Exponents, Moments};
/// use pal::wmi::MomentsFile;
/// use pal::{region::Region, shapes};
/// let constraint = shapes::cube(2);
/// let moments = Moments::compile(&Region::new(&constraint)?, &Exponents::total_degree(2, 2)?)?;
/// let file = MomentsFile { constraint, moments };
/// let again = MomentsFile::from_bytes(&file.to_bytes()?)?;
/// assert_eq!(again.moments.values(), file.moments.values());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct MomentsFile {
    /// The constraint that the moments were computed for.
    pub constraint: Constraint,
    /// The moments of the constraint.
    pub moments: Moments,
}

/// Why moments cannot be written to a file or read from one.
#[derive(Debug, thiserror::Error)]
pub enum MomentsFileError {
    /// The bytes are not a safetensors file.
    #[error(transparent)]
    Format(ContainerError),
    /// The file is of another kind or version.
    #[error("expected a file of version {VERSION}, found {0}; compute the moments again")]
    Version(String),
    /// A tensor or a metadata entry of the file is missing or has the wrong shape.
    #[error("{0}")]
    Content(String),
    /// The file was changed after it was written.
    #[error("the content does not match its checksum: the file is damaged or was edited")]
    Checksum,
    /// The constraint in the file cannot be read.
    #[error("the constraint in the file: {0}")]
    Constraint(#[from] SmtError),
    /// The constraint cannot be written as SMT-LIB.
    #[error(transparent)]
    Write(#[from] SmtWriteError),
    /// The exponents in the file are not a valid set of exponents.
    #[error(transparent)]
    Exponents(#[from] ExponentsError),
}

impl From<ContainerError> for MomentsFileError {
    fn from(error: ContainerError) -> MomentsFileError {
        match error {
            ContainerError::Version { found, .. } => MomentsFileError::Version(found),
            ContainerError::Checksum => MomentsFileError::Checksum,
            ContainerError::Missing(_) => MomentsFileError::Content(error.to_string()),
            other => MomentsFileError::Format(other),
        }
    }
}

impl MomentsFile {
    /// Returns the bytes of a safetensors file with the tensors `moments` and `errors` (F64) and `exponents` (U16).
    ///
    /// The metadata of the file holds the constraint, the version of the format and a checksum.
    pub fn to_bytes(&self) -> Result<Vec<u8>, MomentsFileError> {
        let constraint = write_smtlib(&self.constraint)?;
        let bytes_of = |values: &[f64]| values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let (moments, errors) = (bytes_of(self.moments.values()), bytes_of(self.moments.errors()));
        let set = self.moments.exponents();
        let exponents: Vec<u8> = set.flat().iter().flat_map(|a| a.to_le_bytes()).collect();
        let (m, n) = (set.len(), set.dimension());
        let tensors = [
            ("errors".to_string(), Dtype::F64, vec![m], errors),
            ("exponents".to_string(), Dtype::U16, vec![m, n], exponents),
            ("moments".to_string(), Dtype::F64, vec![m], moments),
        ];
        Ok(container::pack(VERSION, [("constraint", constraint)], &tensors)?)
    }

    /// Reads a file that [`MomentsFile::to_bytes`] wrote. Files of another version and damaged files are refused.
    pub fn from_bytes(bytes: &[u8]) -> Result<MomentsFile, MomentsFileError> {
        let container = Container::read(bytes, VERSION)?;
        let (text, file) = (container.text("constraint")?, container.tensors());
        let tensor = |name: &str, dtype: Dtype, rank: usize| {
            let view = file.tensor(name).map_err(|_| missing(name))?;
            if view.dtype() != dtype || view.shape().len() != rank {
                let found = format!("{:?} {:?}", view.dtype(), view.shape());
                return Err(MomentsFileError::Content(format!(
                    "`{name}` should be {dtype:?} with {rank} axes, found {found}"
                )));
            }
            Ok(view)
        };
        let (errors, exponents, moments) =
            (tensor("errors", Dtype::F64, 1)?, tensor("exponents", Dtype::U16, 2)?, tensor("moments", Dtype::F64, 1)?);
        let constraint = parse_smtlib(text)?;
        let (m, n) = (exponents.shape()[0], exponents.shape()[1]);
        if n != constraint.reals.len() || moments.shape() != [m] || errors.shape() != [m] {
            let message = format!(
                "{} variables, {m} exponents in {n} variables, {:?} moments and {:?} errors do not fit together",
                constraint.reals.len(),
                moments.shape(),
                errors.shape()
            );
            return Err(MomentsFileError::Content(message));
        }
        let flat: Vec<u16> = exponents.data().chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect();
        let list: Vec<Vec<u16>> =
            if n == 0 { vec![Vec::new(); m] } else { flat.chunks(n).map(<[u16]>::to_vec).collect() };
        let set = Exponents::closure(n, list)?;
        if set.len() != m || set.flat() != flat {
            let message = "`exponents` is not a downward-closed set in graded order".to_string();
            return Err(MomentsFileError::Content(message));
        }
        let floats = |data: &[u8]| -> Vec<f64> {
            let word = |b: &[u8]| f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]);
            data.chunks_exact(8).map(word).collect()
        };
        let moments = Moments::restore(set, floats(moments.data()), floats(errors.data()));
        Ok(MomentsFile { constraint, moments })
    }
}

fn missing(name: &str) -> MomentsFileError {
    MomentsFileError::Content(format!("`{name}` is missing"))
}
