//! Arithmetic with logarithms of weights.

/// `log sum_k exp(terms_k)` without overflow: minus infinity if there are no terms, or only terms of minus infinity.
pub(crate) fn log_sum_exp(terms: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = terms.clone().fold(f64::NEG_INFINITY, f64::max);
    if largest.is_infinite() {
        return largest;
    }
    largest + terms.map(|x| (x - largest).exp()).sum::<f64>().ln()
}

/// The logarithms of the softmax of logits. A logit of minus infinity has the probability 0.
pub(crate) fn log_softmax(logits: &[f64]) -> Vec<f64> {
    let total = log_sum_exp(logits.iter().copied());
    // If all logits are minus infinity so is the total, and the difference would be NaN.
    logits.iter().map(|x| if *x == f64::NEG_INFINITY { *x } else { x - total }).collect()
}

/// A power of two that is no smaller than the largest magnitude; 1 if all numbers are 0.
pub(crate) fn power_of_two(numbers: &[f64]) -> f64 {
    let largest = numbers.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
    if largest == 0.0 || !largest.is_finite() {
        return 1.0;
    }
    // Kept inside the normal range, so that dividing by it is exact.
    largest.log2().ceil().clamp(-1000.0, 1000.0).exp2()
}
