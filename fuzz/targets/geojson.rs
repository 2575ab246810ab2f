//! Maps in GeoJSON.
#![no_main]
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use pal::formula::{GeoJsonOptions, Meaning, parse_geojson};

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    pal_fuzz::mutate_tokens(data, size, max_size, seed)
});

fuzz_target!(|text: &str| {
    for meaning in [Meaning::Forbidden, Meaning::Walkable] {
        if let Ok(constraint) = parse_geojson(text, &GeoJsonOptions { meaning, bounds: None }) {
            pal_fuzz::survives_writing(&constraint);
        }
    }
});
