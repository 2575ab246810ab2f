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

/// The logarithms of the weights `softmax(logits)_m / Z_m` of a mixture whose components are normalised one by one.
/// Components without mass, with a log-integral of minus infinity, take no part. A component has `per` parameters; its
/// logit is the first.
pub(crate) fn normalised_mixture(params: &[f64], per: usize, log_integrals: &[f64]) -> Vec<f64> {
    let weights = mixture_weights(params, per, log_integrals);
    weights.iter().zip(log_integrals).map(|(w, z)| if *z == f64::NEG_INFINITY { *z } else { w - z }).collect()
}

/// The vector-Jacobian product of [`normalised_mixture`]: adds to the gradients with respect to the parameters and to
/// the log-integrals.
pub(crate) fn pull_back_normalised_mixture(
    params: &[f64],
    per: usize,
    log_integrals: &[f64],
    cotangent: &[f64],
    gradient: &mut [f64],
    integrals: &mut [f64],
) {
    let mixture = mixture_weights(params, per, log_integrals);
    let has_mass = |m: &usize| log_integrals[*m] > f64::NEG_INFINITY;
    let total: f64 = (0..cotangent.len()).filter(has_mass).map(|m| cotangent[m]).sum();
    for m in (0..cotangent.len()).filter(has_mass) {
        gradient[m * per] += cotangent[m] - total * mixture[m].exp();
        integrals[m] -= cotangent[m];
    }
}

/// The logarithms of the softmax of the logits of the components that have mass.
pub(crate) fn mixture_weights(params: &[f64], per: usize, log_integrals: &[f64]) -> Vec<f64> {
    let logits = params.chunks(per).zip(log_integrals);
    let kept = logits.map(|(part, z)| if *z == f64::NEG_INFINITY { *z } else { part[0] });
    log_softmax(&kept.collect::<Vec<f64>>())
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
