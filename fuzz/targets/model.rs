//! Files of families and models, mixed ones too.
#![no_main]
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use pal::density::Model;
use pal::mixed::MixedModel;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    pal_fuzz::mutate_sealed(data, size, max_size, seed)
});

fuzz_target!(|bytes: &[u8]| {
    if let Ok(model) = Model::from_bytes(bytes) {
        model.to_bytes().expect("a model that was read can be written");
    }
    if let Ok(model) = MixedModel::from_bytes(bytes) {
        model.to_bytes().expect("a model that was read can be written");
    }
});
