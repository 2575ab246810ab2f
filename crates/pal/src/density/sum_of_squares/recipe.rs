//! The constants with which a tensor framework computes log-densities of sums of squares by itself.

/// With `theta` the sum of [`Family::offset`](crate::density::Family::offset) and the parameters: for each square a
/// logit and its coefficients `u_k`; and with `f` the features of a point, in which every polynomial of the basis is
/// linear,
///
/// ```text
/// log p(y) = log sum_k w_k (u_k . f(y))^2 - log sum_k w_k u_k^T G u_k - log volume,        w = softmax(logits)
/// ```
#[derive(Clone, Debug)]
pub struct SumOfSquaresRecipe {
    /// The number of squares in the sum.
    pub components: usize,
    /// The total degree of the polynomials that are squared.
    pub degree: u16,
    /// The number of features, and of coefficients of a square.
    pub size: usize,
    /// The matrix G by rows; `None` for the identity.
    pub gram: Option<Vec<f64>>,
    /// Whether numbers z of theta stand for coefficients `u = sign(z) (sqrt(|z| + 0.1) - sqrt(0.1))` rather than for
    /// themselves: the reparametrisation of the PAL paper.
    pub reparametrised: bool,
    /// The logarithm of the volume of the box.
    pub log_volume: f64,
}
