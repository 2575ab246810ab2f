//! The constants with which a tensor framework computes log-densities of histogram mixtures by itself.

/// With `theta` the sum of [`Family::offset`](crate::density::Family::offset) and the parameters: for each component a
/// logit, and log-weights `theta_mj` along every axis j; and with `f_j` the features of a point along an axis (1 for
/// its bin, 0 for the others),
///
/// ```text
/// log p(y) = log sum_m exp(log softmax(logits)_m + sum_j theta_mj . f_j(y) - log Z_m),
/// Z_m = volume * form(exp(theta_m1), .., exp(theta_mn))
/// ```
///
/// Adding a number to all of `theta_mj` changes nothing.
#[derive(Clone, Debug)]
pub struct HistogramRecipe {
    /// The number of components of the mixture.
    pub components: usize,
    /// The number of bins along every axis.
    pub bins: Vec<usize>,
    /// A multilinear form in weights of bins, one index per axis, the last one running fastest: the volume of the
    /// support in each bin, as a fraction of the volume of the box.
    pub form: Vec<f64>,
    /// The logarithm of the volume of the box.
    pub log_volume: f64,
}
