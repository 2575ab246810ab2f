//! The parameters of a module as plain numbers, in the order in which burn visits them.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{DType, Element, Tensor, TensorData};
use safetensors::Dtype;

// Files are little-endian, and numbers are copied into them as they lie in memory.
#[cfg(target_endian = "big")]
compile_error!("pal-burn reads and writes its files on little-endian machines only");

/// A precision that networks are trained and stored in: float32 or float64.
pub trait Real: Element + num_traits::Float + bytemuck::Pod + Send + Sync {
    /// The name of the precision in safetensors files.
    const DTYPE: Dtype;
}

impl Real for f32 {
    const DTYPE: Dtype = Dtype::F32;
}

impl Real for f64 {
    const DTYPE: Dtype = Dtype::F64;
}

/// Reads all parameters of a module, one vector per tensor.
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

/// Returns the number of parameters of a module.
pub fn count<M: Module>(module: &M) -> usize {
    module.num_params()
}

/// Replaces all parameters of a module.
///
/// # Panics
///
/// If there are not as many vectors as [`read`] returns, each with as many numbers.
pub fn write<M: Module, T: Real>(module: M, weights: &[Vec<T>]) -> M {
    struct Writer<'w, T>(std::slice::Iter<'w, Vec<T>>);
    impl<T: Real> ModuleMapper for Writer<'_, T> {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let weights = self.0.next().expect("one vector for each tensor of the module");
            param.map(|old| replaced(old, weights.clone()))
        }
    }
    let mut writer = Writer(weights.iter());
    let module = module.map(&mut writer);
    assert!(writer.0.next().is_none(), "one vector for each tensor of the module");
    module
}

/// Converts all parameters of a module to a precision.
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

/// Reads the entries of a tensor.
pub(crate) fn numbers<T: Real, const D: usize>(tensor: Tensor<D>) -> Vec<T> {
    tensor.into_data_as::<T>().try_into_vec().expect("the data were just converted to this type")
}

/// Makes a tensor like another one with other entries, as a new leaf of the graph of gradients.
pub(crate) fn replaced<T: Real, const D: usize>(old: Tensor<D>, values: Vec<T>) -> Tensor<D> {
    let (shape, device, dtype) = (old.shape(), old.device(), old.dtype());
    assert_eq!(values.len(), shape.num_elements(), "one number for each entry of the tensor");
    let requires = old.is_require_grad();
    let new = Tensor::from_data(TensorData::new(values, shape), (&device, dtype));
    new.set_require_grad(requires)
}
