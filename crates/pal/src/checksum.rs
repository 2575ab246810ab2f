//! A checksum for files: catches damage and careless edits, not malice.

/// FNV-1a over all parts.
pub fn checksum<'p>(parts: impl IntoIterator<Item = &'p [u8]>) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for part in parts {
        for byte in part.iter().chain(&(part.len() as u64).to_le_bytes()) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}
