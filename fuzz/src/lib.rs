//! What the fuzz targets share: laws that every input has to obey, and mutations that know the structure of an input.

use libfuzzer_sys::fuzzer_mutate;
use pal::formula::{Constraint, parse_smtlib, write_smtlib};

/// A constraint that was read can be written as SMT-LIB, and reading that changes nothing any more.
pub fn survives_writing(constraint: &Constraint) {
    let Ok(text) = write_smtlib(constraint) else { return };
    let again = parse_smtlib(&text).unwrap_or_else(|error| panic!("{error}\nin what was written:\n{text}"));
    assert_eq!(write_smtlib(&again).as_deref(), Ok(&text[..]), "written, read and written again");
    assert_eq!(again.reals.len(), constraint.reals.len());
    assert_eq!(again.booleans.len(), constraint.booleans.len());
}

/// Changes a text by exchanging, repeating, removing and copying tokens, and now and then by changing bytes.
///
/// Random bytes hardly ever make a text that a parser reads to its end; tokens of texts that are right do.
pub fn mutate_tokens(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut random = Random(u64::from(seed) | 1 << 32);
    let text = match std::str::from_utf8(&data[..size]) {
        Ok(text) if random.below(4) > 0 => text,
        _ => return fuzzer_mutate(data, size, max_size),
    };
    let mut tokens: Vec<String> = tokens(text).into_iter().map(str::to_string).collect();
    if tokens.is_empty() {
        return fuzzer_mutate(data, size, max_size);
    }
    for _ in 0..1 + random.below(3) {
        let (from, to) = (random.below(tokens.len()), random.below(tokens.len()));
        match random.below(5) {
            0 => tokens.swap(from, to),
            1 => tokens[to] = tokens[from].clone(),
            2 => tokens.insert(to, tokens[from].clone()),
            3 if tokens.len() > 1 => drop(tokens.remove(to)),
            _ => tokens[to] = NUMBERS[random.below(NUMBERS.len())].to_string(),
        }
    }
    let new = tokens.concat();
    if new.len() > max_size {
        return fuzzer_mutate(data, size, max_size);
    }
    data[..new.len()].copy_from_slice(new.as_bytes());
    new.len()
}

/// Numbers that are hard on readers.
const NUMBERS: [&str; 12] = [
    "0",
    "1",
    "-1",
    "1/3",
    "0.1",
    "1e308",
    "1e-324",
    "1e-9223372036854775808",
    "99999999999999999999",
    "NaN",
    "1e999999999",
    "0.30000000000000004",
];

/// Words, numbers, spaces and single other characters.
fn tokens(text: &str) -> Vec<&str> {
    let kind = |c: char| {
        if c.is_alphanumeric() || "._".contains(c) {
            0
        } else if c.is_whitespace() {
            1
        } else {
            2
        }
    };
    let mut tokens = Vec::new();
    let mut start = 0;
    let mut last = None;
    for (at, c) in text.char_indices() {
        if at > start && (last != Some(kind(c)) || kind(c) == 2) {
            tokens.push(&text[start..at]);
            start = at;
        }
        last = Some(kind(c));
    }
    tokens.push(&text[start..]);
    tokens
}

/// Changes a file of [`pal::container`] and writes the checksum anew, so that what lies behind it is reached.
pub fn mutate_sealed(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let size = match header_end(&data[..size]) {
        // The header is JSON with texts in it; the change of its length is written in front of it.
        Some(end) if seed % 2 == 0 => {
            let mut header = data[8..end].to_vec();
            let length = header.len();
            header.resize(length + 256, 0);
            let most = (length + 256).min(max_size.saturating_sub(8 + size - end));
            if most == 0 {
                return fuzzer_mutate(data, size, max_size);
            }
            let new = mutate_tokens(&mut header, length, most.max(length), seed / 2);
            let mut file = (new as u64).to_le_bytes().to_vec();
            file.extend_from_slice(&header[..new]);
            file.extend_from_slice(&data[end..size]);
            if file.len() > max_size {
                return fuzzer_mutate(data, size, max_size);
            }
            data[..file.len()].copy_from_slice(&file);
            file.len()
        }
        _ => fuzzer_mutate(data, size, max_size),
    };
    seal(&mut data[..size]);
    size
}

/// Where the header of a file ends.
fn header_end(file: &[u8]) -> Option<usize> {
    let length = u64::from_le_bytes(file.get(..8)?.try_into().ok()?);
    let end = 8usize.checked_add(usize::try_from(length).ok()?)?;
    (end <= file.len()).then_some(end)
}

/// Writes the checksum of a file into its header, where it has a place for one.
fn seal(file: &mut [u8]) {
    const BEFORE: &[u8] = b"\"checksum\":\"";
    let Some(end) = header_end(file) else { return };
    let Some(at) = file[..end].windows(BEFORE.len()).position(|part| part == BEFORE) else { return };
    let digits = at + BEFORE.len()..at + BEFORE.len() + 16;
    if digits.end > end {
        return;
    }
    file[digits.clone()].fill(b'0');
    let sum = format!("{:016x}", xxhash_rust::xxh3::xxh3_64(file));
    file[digits].copy_from_slice(sum.as_bytes());
}

/// A small generator of random numbers (xorshift), because mutations must repeat for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % count as u64) as usize
    }
}
