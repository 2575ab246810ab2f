//! Files of moments.
#![no_main]
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use pal::wmi::MomentsFile;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    pal_fuzz::mutate_sealed(data, size, max_size, seed)
});

fuzz_target!(|bytes: &[u8]| {
    let _ = MomentsFile::from_bytes(bytes);
});
