//! The list of all kinds of families: the only place in the library that names them all.

use serde::{Deserialize, Serialize};

use super::error::DensityError;
use super::family::Family;
use super::file::{FileError, FileTensors};
use super::histogram::{HistogramMixture, HistogramSettings};
use super::kind::Compile;
use super::spline::{SplineMixture, SplineSettings};
use super::sum_of_squares::{SumOfSquares, SumOfSquaresSettings};
use crate::region::Region;

macro_rules! kinds {
    ($($variant:ident($settings:ident) $name:literal => $kind:ident,)*) => {
        /// A kind of family and its settings: what there is to choose before a family is compiled.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "family")]
        pub enum Settings {
            $(
                #[doc = concat!("A [`", stringify!($kind), "`].")]
                #[serde(rename = $name)]
                $variant($settings),
            )*
        }

        impl Settings {
            /// The names of all kinds, as files and the program have them.
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// The default settings of the kind with this name.
            pub fn named(name: &str) -> Option<Settings> {
                match name {
                    $($name => Some(Settings::$variant($settings::default())),)*
                    _ => None,
                }
            }

            /// The name of the kind.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Settings::$variant(_) => $name,)*
                }
            }

            /// Compiles the family on a region.
            pub fn compile(&self, region: &Region) -> Result<Family, DensityError> {
                match self {
                    $(Settings::$variant(settings) => Ok($kind::compile(region, settings)?.into()),)*
                }
            }

            /// The family whose tensors were saved.
            pub(super) fn restore(&self, region: &Region, tensors: &mut FileTensors) -> Result<Family, FileError> {
                match self {
                    $(Settings::$variant(settings) => Ok($kind::restore(region, settings, tensors)?.into()),)*
                }
            }
        }

        $(
            impl From<$settings> for Settings {
                fn from(settings: $settings) -> Settings {
                    Settings::$variant(settings)
                }
            }
        )*
    };
}

kinds! {
    Spline(SplineSettings) "spline" => SplineMixture,
    SumOfSquares(SumOfSquaresSettings) "sum-of-squares" => SumOfSquares,
    Histogram(HistogramSettings) "histogram" => HistogramMixture,
}
