//! Files of compiled families and of models: reading them, and the names under which they are written.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, ensure};
use pal::density::{DensityError, Family, FileError, Model};
use pal::formula::{Constraint, Var};
use pal::kernel::KernelModel;
use pal::mixed::{MixedFamily, MixedModel};
use pal_burn::{AnyFamily, NetworkFile};

use crate::densities::AnyModel;
use crate::{files, output};

/// The model that a question is about, as the first argument of a command.
#[derive(clap::Args)]
pub struct ModelArgument {
    /// The model: a .safetensors file made by `pal model`, `pal fit` or `pal predict`
    #[arg(value_name = "MODEL")]
    file: PathBuf,
}

impl ModelArgument {
    /// The name of the file in messages.
    pub fn name(&self) -> String {
        self.file.display().to_string()
    }

    /// Reads the model; errors name the file.
    pub fn load(&self) -> Result<AnyModel> {
        load(&self.file)
    }
}

/// Reads a model; errors name the file.
pub fn load(file: &Path) -> Result<AnyModel> {
    read(file, |bytes| match Model::from_bytes(bytes) {
        _ if KernelModel::recognises(bytes) => KernelModel::from_bytes(bytes).map(AnyModel::Kernel),
        Err(FileError::Density(DensityError::Booleans(_))) => MixedModel::from_bytes(bytes).map(AnyModel::Mixed),
        other => other.map(AnyModel::Real),
    })
}

/// Reads a compiled family, or that of a model; errors name the file.
pub fn load_family(file: &Path) -> Result<AnyFamily> {
    read(file, |bytes| match Family::from_bytes(bytes) {
        Err(FileError::Density(DensityError::Booleans(_))) => MixedFamily::from_bytes(bytes).map(AnyFamily::from),
        other => other.map(AnyFamily::from),
    })
}

/// Whether the name of a file says that it is a model or a compiled family.
pub fn is_named(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("safetensors"))
}

/// Fails early if a family or a model cannot be written under this name.
pub fn check_output(file: &Path) -> Result<()> {
    let name = file.display();
    ensure!(is_named(file), "{name}: families and models are written as .safetensors; choose such a name");
    output::check_place(file)
}

fn read<T>(file: &Path, from_bytes: impl Fn(&[u8]) -> Result<T, FileError>) -> Result<T> {
    let attempt = || -> Result<T> {
        ensure!(file != Path::new("-"), "families and models are read from files only");
        files::reading(file)?;
        let bytes = fs::read(file).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => anyhow!("no such file"),
            _ if file.is_dir() => anyhow!("this is a directory; give a .safetensors file"),
            _ => anyhow!(error).context("cannot read"),
        })?;
        ensure!(
            !NetworkFile::recognises(&bytes),
            "this is a trained network; `pal predict` makes densities of it, one for each row of inputs, and `pal eval` \
             says how good it is"
        );
        from_bytes(&bytes).map_err(|error| match error {
            // The message of the safetensors reader is about lengths of headers, which does not help users.
            FileError::Format(_) => {
                let what = if is_named(file) { "not a safetensors file, or a damaged one" } else { "not a model" };
                anyhow!(
                    "{what}; `pal compile` makes a .safetensors file of a constraint, and `pal model` a model of that"
                )
            }
            FileError::NoParams => anyhow!("{error}; `pal model` adds some"),
            FileError::Version(_) => anyhow!("{error} with `pal compile`"),
            other => anyhow::Error::new(other),
        })
    };
    attempt().with_context(|| file.display().to_string())
}

/// Returns the names of the real variables of a constraint, in the order of coordinates.
pub fn names(constraint: &Constraint) -> Vec<&str> {
    constraint.reals.iter().map(Var::name).collect()
}
