//! Numbers.
#![no_main]
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use pal::number::parse_rational;

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    pal_fuzz::mutate_tokens(data, size, max_size, seed)
});

fuzz_target!(|text: &str| {
    if let Ok(number) = parse_rational(text) {
        let again = parse_rational(&number.to_string()).expect("what was printed");
        assert_eq!(again, number);
        // Plain decimals are read as Rust reads them, up to rounding.
        if let (Ok(rounded), true) = (text.parse::<f64>(), text.len() < 30) {
            assert_eq!(pal::number::to_f64(&number), rounded, "{text}");
        }
    }
});
