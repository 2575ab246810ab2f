//! The parameters of a module as plain numbers, in the order in which the module shows them.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{DType, Element, Tensor, TensorData};

/// A precision that networks are trained in.
pub trait Real: Element + num_traits::Float + Send + Sync {}

impl Real for f32 {}
impl Real for f64 {}

/// All parameters, tensor by tensor.
pub fn read<M: Module, T: Real>(module: &M) -> Vec<Vec<T>> {
    struct Reader<T>(Vec<Vec<T>>);
    impl<T: Real> ModuleVisitor for Reader<T> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.push(numbers(param.val()));
        }
    }
    let mut reader = Reader(Vec::new());
    module.visit(&mut reader);
    reader.0
}

/// How many parameters there are.
pub fn count<M: Module>(module: &M) -> usize {
    module.num_params()
}

/// The module with other parameters; as many of them as [`read`] gives.
pub fn write<M: Module, T: Real>(module: M, weights: &[Vec<T>]) -> M {
    struct Writer<'w, T>(std::slice::Iter<'w, Vec<T>>);
    impl<T: Real> ModuleMapper for Writer<'_, T> {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            match self.0.next() {
                Some(weights) => param.map(|old| replaced(old, weights.clone())),
                None => param,
            }
        }
    }
    module.map(&mut Writer(weights.iter()))
}

/// The module in a precision.
pub fn cast<M: Module>(module: M, dtype: DType) -> M {
    struct Cast(DType);
    impl ModuleMapper for Cast {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            param.map(|old| {
                let requires = old.is_require_grad();
                old.cast(self.0).detach().set_require_grad(requires)
            })
        }
    }
    module.map(&mut Cast(dtype))
}

/// The numbers of a tensor.
pub(crate) fn numbers<T: Real, const D: usize>(tensor: Tensor<D>) -> Vec<T> {
    tensor.into_data_as::<T>().try_into_vec().unwrap_or_default()
}

/// A tensor like another with other numbers, as a new leaf of the graph.
pub(crate) fn replaced<T: Real, const D: usize>(old: Tensor<D>, values: Vec<T>) -> Tensor<D> {
    let (shape, device, dtype) = (old.shape(), old.device(), old.dtype());
    let requires = old.is_require_grad();
    let new = Tensor::from_data(TensorData::new(values, shape), (&device, dtype));
    new.set_require_grad(requires)
}
