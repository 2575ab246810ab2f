//! Problems of weighted model integration.
#![no_main]
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use pal::wmi::Problem;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    pal_fuzz::mutate_tokens(data, size, max_size, seed)
});

fuzz_target!(|text: &str| {
    let _ = Problem::parse(text);
});
