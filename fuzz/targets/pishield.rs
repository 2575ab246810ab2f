//! Requirements of PiShield.
#![no_main]
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use pal::formula::parse_pishield;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    pal_fuzz::mutate_tokens(data, size, max_size, seed)
});

fuzz_target!(|text: &str| {
    if let Ok(constraint) = parse_pishield(text) {
        pal_fuzz::survives_writing(&constraint);
    }
});
