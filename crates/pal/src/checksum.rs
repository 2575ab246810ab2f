//! A checksum for files: it detects damage and careless edits, not malice.

use xxhash_rust::xxh3::Xxh3;

/// The 64-bit XXH3 hash of all parts and of their lengths, as 16 hexadecimal digits.
pub fn checksum<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> String {
    let mut hash = Xxh3::new();
    for part in parts {
        hash.update(part);
        hash.update(&(part.len() as u64).to_le_bytes());
    }
    format!("{:016x}", hash.digest())
}

/// The 64-bit XXH3 hash of one text that comes in parts, as 16 hexadecimal digits.
pub(crate) fn checksum_of_whole<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> String {
    let mut hash = Xxh3::new();
    parts.into_iter().for_each(|part| hash.update(part));
    format!("{:016x}", hash.digest())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The empty input has a published hash.
    #[test]
    fn hashes_are_those_of_xxh3() {
        assert_eq!(checksum([]), "2d06800538d394c2");
        assert_ne!(checksum([&b"ab"[..], &b"c"[..]]), checksum([&b"a"[..], &b"bc"[..]]));
    }
}
