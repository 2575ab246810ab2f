//! What a framework with tensors of its own needs to compute log-densities by itself.
//!
//! Whatever depends on points is computed here, in doubles: the *features* of a point, in which the functions that a family squares are linear.
//! Whatever depends on parameters is left to the framework: matrix products with the constants of a [`Recipe`], squares and logarithms. So
//! gradients of any order, any precision and any device come from the framework.

/// How parameters and features become a log-density.
#[derive(Clone, Debug)]
pub enum Recipe {
    /// For a [`SplineMixture`](super::SplineMixture).
    Spline(SplineRecipe),
    /// For a [`SumOfSquares`](super::SumOfSquares).
    SumOfSquares(SumOfSquaresRecipe),
}

/// With `theta_mj` the values and derivatives of component m along axis j, and `f_j` the features of a point along that axis,
///
/// ```text
/// log p(y) = log sum_m exp(log softmax(logits)_m + sum_j 2 log |theta_mj . f_j(y)| - log Z_m),
/// Z_m = volume * form(g_m1, .., g_mn),        g_mj = (theta_mj V_j)^2, entry by entry
/// ```
///
/// where `V_j` takes a spline to its values at nodes that determine its square. Scaling a `theta_mj` changes nothing.
#[derive(Clone, Debug)]
pub struct SplineRecipe {
    /// Components of the mixture.
    pub components: usize,
    /// Per axis.
    pub axes: Vec<SplineAxis>,
    /// A multilinear form in values at nodes, one index per axis, the last one running fastest.
    pub form: Vec<f64>,
    /// The logarithm of the volume of the box.
    pub log_volume: f64,
}

/// One axis of a [`SplineRecipe`].
#[derive(Clone, Debug)]
pub struct SplineAxis {
    /// Parameters and features along the axis: twice the number of knots.
    pub params: usize,
    /// Nodes along the axis.
    pub nodes: usize,
    /// The matrix V, one row of nodes for each parameter.
    pub values: Vec<f64>,
}

/// With `f` the features of a point,
///
/// ```text
/// log p(y) = log sum_k w_k (u_k . f(y))^2 - log sum_k w_k u_k^T G u_k - log volume,        w = softmax(logits)
/// ```
#[derive(Clone, Debug)]
pub struct SumOfSquaresRecipe {
    /// Squares in the sum.
    pub components: usize,
    /// Features, and coefficients of a square.
    pub size: usize,
    /// The matrix G by rows; `None` for the identity.
    pub gram: Option<Vec<f64>>,
    /// Whether parameters z stand for coefficients `u = sign(z) (sqrt(|z| + 0.1) - sqrt(0.1))` rather than for themselves.
    pub damped: bool,
    /// The logarithm of the volume of the box.
    pub log_volume: f64,
}
