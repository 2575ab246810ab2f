//! The container of all files that hold numbers: safetensors with a version and a checksum of the whole file.
//!
//! The checksum is an entry of the metadata, and covers every byte of the file but its own digits: the header with the
//! metadata and the names, types and shapes of the tensors, and their data. A file in which anything has changed since
//! it was written is refused. It detects damage and careless edits, not malice.

use std::collections::{BTreeMap, HashMap};

use safetensors::tensor::{Dtype, SafeTensorError, SafeTensors, TensorView};

use crate::checksum::checksum_of_whole;

/// Why the bytes of a file are not the container that was expected.
#[derive(Debug, thiserror::Error)]
pub enum ContainerError {
    /// Not a safetensors file.
    #[error("not a safetensors file, or a damaged one")]
    Format(#[from] SafeTensorError),
    /// The header cannot be written.
    #[error("the header cannot be written: {0}")]
    Header(#[from] serde_json::Error),
    /// Another kind of file, or one that another version wrote.
    #[error("its version is `{found}`, expected `{expected}`")]
    Version {
        /// The version in the file.
        found: String,
        /// The version that was asked for.
        expected: &'static str,
    },
    /// The content was changed after it was written.
    #[error("the checksum does not match: the file was changed or damaged")]
    Checksum,
    /// An entry of the metadata is missing.
    #[error("`{0}` is missing")]
    Missing(String),
}

/// The version of files that hold a trained network, which `pal-burn` writes and the Python package reads.
pub const NETWORK_VERSION: &str = "pal-network-5";

/// A tensor on its way to a file: name, type of its entries, shape, and the bytes of its entries.
pub type ContainedTensor = (String, Dtype, Vec<usize>, Vec<u8>);

/// The content of a file whose version and checksum are right.
#[derive(Debug)]
pub struct Container<'b> {
    metadata: HashMap<String, String>,
    tensors: SafeTensors<'b>,
}

/// Stands for the digits of the checksum while it is computed.
const NO_DIGITS: [u8; 16] = [b'0'; 16];

/// What stands before the digits. Quotes inside of texts are escaped, so that no text of the metadata contains it.
const BEFORE_DIGITS: &[u8] = b"\"checksum\":\"";

/// The bytes of a file with the given version, further texts and tensors. Equal content makes equal bytes.
pub fn pack<'t>(
    version: &str,
    texts: impl IntoIterator<Item = (&'t str, String)>,
    tensors: &[ContainedTensor],
) -> Result<Vec<u8>, ContainerError> {
    let own = [("version", version.to_string()), ("checksum", String::from_utf8_lossy(&NO_DIGITS).into_owned())];
    let metadata = own.into_iter().chain(texts).map(|(name, text)| (name.to_string(), text)).collect();
    let views = tensors
        .iter()
        .map(|(name, dtype, shape, data)| Ok((name.as_str(), TensorView::new(*dtype, shape.clone(), data)?)))
        .collect::<Result<Vec<_>, SafeTensorError>>()?;
    let mut file = with_sorted_header(&safetensors::serialize(views, Some(metadata))?)?;
    let at = digits_at(&file)?;
    let sum = checksum_of_whole([&file[..]]);
    file[at..at + NO_DIGITS.len()].copy_from_slice(sum.as_bytes());
    Ok(file)
}

/// The same file with the names in its header sorted: metadata come in any order, and equal content should make equal
/// bytes.
fn with_sorted_header(file: &[u8]) -> Result<Vec<u8>, ContainerError> {
    let (length, _) = SafeTensors::read_metadata(file)?;
    let (header, data) = file[8..].split_at(length);
    let entries: BTreeMap<String, BTreeMap<String, serde_json::Value>> = serde_json::from_slice(header)?;
    let mut sorted = serde_json::to_vec(&entries)?;
    sorted.resize(sorted.len().next_multiple_of(8), b' ');
    Ok([&(sorted.len() as u64).to_le_bytes()[..], &sorted, data].concat())
}

/// The position of the digits of the checksum in a file, which must have exactly one.
fn digits_at(file: &[u8]) -> Result<usize, ContainerError> {
    let (length, _) = SafeTensors::read_metadata(file)?;
    let header = &file[8..8 + length];
    let mut found = (0..header.len()).filter(|at| header[*at..].starts_with(BEFORE_DIGITS));
    let start = found.next().ok_or(ContainerError::Checksum)? + BEFORE_DIGITS.len();
    let closed = header.get(start + NO_DIGITS.len()) == Some(&b'"');
    if found.next().is_some() || !closed {
        return Err(ContainerError::Checksum);
    }
    Ok(8 + start)
}

/// The version of a file, of any kind and whether its content is intact or not; `None` if it has none.
pub fn version(bytes: &[u8]) -> Option<String> {
    let (_, header) = SafeTensors::read_metadata(bytes).ok()?;
    header.metadata().as_ref()?.get("version").cloned()
}

impl<'b> Container<'b> {
    /// Reads a file that [`pack`] wrote, and checks its version and its checksum.
    pub fn read(bytes: &'b [u8], expected: &'static str) -> Result<Container<'b>, ContainerError> {
        let (_, header) = SafeTensors::read_metadata(bytes)?;
        let metadata = header.metadata().clone().unwrap_or_default();
        let found = metadata.get("version").map_or("none", String::as_str);
        if found != expected {
            return Err(ContainerError::Version { found: found.to_string(), expected });
        }
        let at = digits_at(bytes)?;
        let (before, rest) = bytes.split_at(at);
        let (digits, after) = rest.split_at(NO_DIGITS.len());
        if digits != checksum_of_whole([before, &NO_DIGITS, after]).as_bytes() {
            return Err(ContainerError::Checksum);
        }
        Ok(Container { metadata, tensors: SafeTensors::deserialize(bytes)? })
    }

    /// A text of the metadata.
    pub fn text(&self, name: &str) -> Result<&str, ContainerError> {
        self.metadata.get(name).map(String::as_str).ok_or_else(|| ContainerError::Missing(name.to_string()))
    }

    /// The tensors of the file.
    pub fn tensors(&self) -> &SafeTensors<'b> {
        &self.tensors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Vec<u8> {
        let tensors = [
            ("b".to_string(), Dtype::F64, vec![2], 1.5f64.to_le_bytes().repeat(2)),
            ("a".to_string(), Dtype::U8, vec![3], vec![1, 2, 3]),
        ];
        let tricky = "with \"checksum\":\"0123456789abcdef\" inside".to_string();
        pack("example-1", [("text", tricky)], &tensors).unwrap()
    }

    #[test]
    fn equal_content_makes_equal_bytes() {
        let file = example();
        assert_eq!(file, example());
        let container = Container::read(&file, "example-1").unwrap();
        assert!(container.text("text").unwrap().contains("inside"));
        assert_eq!(container.tensors().tensor("a").unwrap().data(), [1, 2, 3]);
        assert!(matches!(container.text("other"), Err(ContainerError::Missing(_))));
        let other = Container::read(&file, "example-2").map(|_| ()).unwrap_err().to_string();
        assert_eq!(other, "its version is `example-1`, expected `example-2`");
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let file = example();
        for at in 0..file.len() {
            for bit in 0..8 {
                let mut damaged = file.clone();
                damaged[at] ^= 1 << bit;
                assert!(Container::read(&damaged, "example-1").is_err(), "byte {at}, bit {bit}");
            }
        }
        for length in 0..file.len() {
            assert!(Container::read(&file[..length], "example-1").is_err(), "cut after {length} bytes");
        }
        assert!(Container::read(&[&file[..], b" "].concat(), "example-1").is_err());
    }
}
