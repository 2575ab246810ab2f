//! Arithmetic with logarithms of weights.

/// `log sum exp`, without overflow; of nothing, and of zeros only, minus infinity.
pub(crate) fn log_sum_exp(terms: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = terms.clone().fold(f64::NEG_INFINITY, f64::max);
    if largest.is_infinite() {
        return largest;
    }
    largest + terms.map(|x| (x - largest).exp()).sum::<f64>().ln()
}

/// The logarithms of the softmax of logits.
pub(crate) fn log_softmax(logits: &[f64]) -> Vec<f64> {
    let total = log_sum_exp(logits.iter().copied());
    // Among nothing but zeros there is nothing to share out.
    logits.iter().map(|x| if *x == f64::NEG_INFINITY { *x } else { x - total }).collect()
}

/// The power of two just above the largest magnitude; 1 for zeros.
pub(crate) fn power_of_two(numbers: &[f64]) -> f64 {
    let largest = numbers.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
    if largest == 0.0 || !largest.is_finite() {
        return 1.0;
    }
    // Kept inside the normal range, so that dividing by it is exact.
    largest.log2().ceil().clamp(-1000.0, 1000.0).exp2()
}
