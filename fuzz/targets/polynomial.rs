//! Polynomials.
#![no_main]
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use pal::polynomial::Polynomial;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    pal_fuzz::mutate_tokens(data, size, max_size, seed)
});

fuzz_target!(|text: &str| {
    if let Ok(polynomial) = Polynomial::parse(text) {
        let printed = polynomial.to_string();
        let again = Polynomial::parse(&printed).unwrap_or_else(|error| panic!("{error}\nin {printed}"));
        assert_eq!(again.to_string(), printed, "printed, read and printed again");
    }
});
