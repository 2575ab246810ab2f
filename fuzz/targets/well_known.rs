//! Well-known text, if the bytes are text, and well-known binary.
#![no_main]
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use pal::formula::{Meaning, map_constraint, parse_wkb, parse_wkt};

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    pal_fuzz::mutate_tokens(data, size, max_size, seed)
});

fuzz_target!(|bytes: &[u8]| {
    let text = std::str::from_utf8(bytes).ok().and_then(|text| parse_wkt(text).ok());
    for polygons in text.into_iter().chain(parse_wkb(bytes).ok()) {
        if let Ok(constraint) = map_constraint(&polygons, Meaning::Walkable, None) {
            pal_fuzz::survives_writing(&constraint);
        }
    }
});
