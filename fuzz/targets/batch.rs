//! Files of batches of regions.
#![no_main]
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use pal::region::RegionBatch;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    pal_fuzz::mutate_sealed(data, size, max_size, seed)
});

fuzz_target!(|bytes: &[u8]| {
    if let Ok(batch) = RegionBatch::from_bytes(bytes) {
        assert!(batch.len() <= bytes.len());
    }
});
