//! The normaliser of a layer as a value: the compiled integral of every component over a region.

use burn::tensor::{Tensor, TensorData};

/// The form that integrates the components of a family over a region, on a device.
///
/// A layer has the one of its own constraint ([`PalLayer::normaliser`](crate::PalLayer::normaliser)) and makes those of
/// smaller regions ([`PalLayer::normaliser_within`](crate::PalLayer::normaliser_within)). With [`Normaliser::stack`]
/// every row of a batch has a region of its own.
#[derive(Clone, Debug)]
pub struct Normaliser {
    form: Form,
}

/// One matrix per row, or one for all rows: its layout is that of the recipe of the family.
#[derive(Clone, Debug)]
enum Form {
    /// The identity of this size, for a basis that is orthonormal on the region.
    Identity(usize),
    Dense(Box<Tensor<3>>),
}

impl Normaliser {
    /// One form for all rows.
    pub(super) fn dense(form: Tensor<2>) -> Normaliser {
        Normaliser { form: Form::Dense(Box::new(form.unsqueeze_dim(0))) }
    }

    /// The identity for all rows.
    pub(super) fn identity(size: usize) -> Normaliser {
        Normaliser { form: Form::Identity(size) }
    }

    /// Returns the number of rows that have a form of their own; 1 if all rows have the same form.
    pub fn rows(&self) -> usize {
        match &self.form {
            Form::Identity(_) => 1,
            Form::Dense(form) => form.dims()[0],
        }
    }

    /// Puts normalisers of the same layer together: the rows of a batch get the rows of the first one, then those of
    /// the second one, and so on.
    ///
    /// # Panics
    ///
    /// If there are no normalisers, or they come from layers of different shape.
    pub fn stack(normalisers: &[Normaliser]) -> Normaliser {
        let dense = normalisers.iter().find_map(|normaliser| match &normaliser.form {
            Form::Identity(_) => None,
            Form::Dense(form) => Some((form.device(), form.dtype())),
        });
        let Some((device, dtype)) = dense else {
            return normalisers.first().expect("at least one normaliser").clone();
        };
        let form = |normaliser: &Normaliser| match &normaliser.form {
            Form::Identity(size) => {
                let entry = |at: usize| f64::from(u8::from(at / size == at % size));
                let entries: Vec<f64> = (0..size * size).map(entry).collect();
                Tensor::from_data(TensorData::new(entries, [1, *size, *size]), (&device, dtype))
            }
            Form::Dense(form) => (**form).clone(),
        };
        Normaliser { form: Form::Dense(Box::new(Tensor::cat(normalisers.iter().map(form).collect(), 0))) }
    }

    /// Multiplies vectors by the form from the right: `vectors` has the vectors of the first row, then those of the
    /// second row, and so on.
    pub(super) fn apply(&self, vectors: Tensor<2>) -> Tensor<2> {
        let form = match &self.form {
            Form::Identity(_) => return vectors,
            Form::Dense(form) => (**form).clone(),
        };
        let ([rows, _, columns], [count, length]) = (form.dims(), vectors.dims());
        if rows == 1 {
            return vectors.matmul(form.squeeze_dim(0));
        }
        vectors.reshape([rows, count / rows, length]).matmul(form).reshape([count, columns])
    }
}
