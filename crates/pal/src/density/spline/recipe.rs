//! The constants with which a tensor framework computes log-densities of spline mixtures by itself.
//!
//! What depends on points is computed by the library, in float64: the features of a point, in which every spline is
//! linear. What depends on parameters is left to the framework: matrix products with the constants of the recipe,
//! squares and logarithms. So gradients of any order, any precision and any device come from the framework.

/// With `theta` the sum of [`Family::offset`](crate::density::Family::offset) and the parameters: for each component a
/// logit, and values and derivatives `theta_mj` along every axis j; and with `f_j` the features of a point along an
/// axis,
///
/// ```text
/// log p(y) = log sum_m exp(log softmax(logits)_m + sum_j 2 log |theta_mj . f_j(y)| - log Z_m),
/// Z_m = volume * form(g_m1, .., g_mn),        g_mj = (theta_mj V_j)^2, entry by entry
/// ```
///
/// where `V_j` takes a spline to its values at nodes that determine its square. Scaling a `theta_mj` changes nothing.
#[derive(Clone, Debug)]
pub struct SplineRecipe {
    /// The number of components of the mixture.
    pub components: usize,
    /// The constants of every axis.
    pub axes: Vec<SplineAxis>,
    /// A multilinear form in values at nodes, one index per axis, the last one running fastest. `None` if it would be
    /// too large to be written out.
    pub form: Option<Vec<f64>>,
    /// The logarithm of the volume of the box.
    pub log_volume: f64,
}

/// One axis of a [`SplineRecipe`].
#[derive(Clone, Debug)]
pub struct SplineAxis {
    /// The number of parameters and of features along the axis: twice the number of knots.
    pub params: usize,
    /// The number of nodes along the axis.
    pub nodes: usize,
    /// The matrix V, one row of nodes for each parameter.
    pub values: Vec<f64>,
}
