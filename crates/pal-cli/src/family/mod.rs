//! Options that say which family of densities is compiled on a region.
//!
//! Each kind of family has a module of its own with its options, how they become settings, and what else commands ask
//! of it. The list in `kinds!` is the only place in the program that names all kinds; the first is the default.

mod histogram;
mod knots_at;
mod spline;
mod sum_of_squares;

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::builder::{PossibleValue, PossibleValuesParser};
use pal::density::{Conditioning, DensityError, Family, Settings};
use pal::kernel::KernelSettings;
use pal::mixed::MixedFamily;
use pal::region::Region;
use pal_burn::AnyFamily;

use knots_at::KnotsAt;

pub use spline::{Gaussian, near_gaussians};
pub use sum_of_squares::squares_of;

/// What is known about a kind of family before its options are.
#[derive(Clone, Copy)]
struct Kind {
    /// The name, which is also the library's.
    name: &'static str,
    /// One line for the help text.
    about: &'static str,
    /// Options that other kinds have too and this kind takes, besides `--components`.
    shared_options: &'static [&'static str],
    default_components: fn() -> usize,
}

/// The options of one kind of family.
trait KindOptions {
    /// Options of this kind alone, and whether they were given.
    fn options(&self) -> Vec<(&'static str, bool)>;

    /// The settings that were chosen; the library's defaults stand for those that were not. They depend on whether a
    /// network speaks through a Student t head.
    fn settings(&self, shared: &SharedOptions, region: &Region, student_t_head: bool) -> Result<Settings>;

    /// The largest number of variables, if there is one.
    fn max_dimension(&self) -> Option<usize> {
        None
    }

    /// Whether a network can give location, scale and tail of the components instead of all parameters
    /// (`--head student-t`).
    fn has_student_t_head(&self) -> bool {
        false
    }

    /// Whether every row can have a region of its own.
    fn has_row_regions(&self) -> bool {
        false
    }

    /// Whether there is a basis of polynomials whose conditioning can be measured (`--check`).
    fn has_conditioning(&self) -> bool {
        false
    }

    /// How well the basis of a compiled family is conditioned, if it has one.
    fn conditioning(&self, _family: &Family) -> Option<Conditioning> {
        None
    }
}

macro_rules! kinds {
    ($($field:ident: $options:ty,)*) => {
        /// A kind of family and its options.
        #[derive(clap::Args)]
        pub struct FamilyOptions {
            /// The kind of family
            #[arg(long, value_name = "F", default_value = KINDS[0].name, value_parser = names())]
            family: String,
            #[command(flatten)]
            shared: SharedOptions,
            $(#[command(flatten)] $field: $options,)*
        }

        /// All kinds.
        const KINDS: &[Kind] = &[$(<$options>::KIND,)*];

        impl FamilyOptions {
            /// All kinds with their options.
            fn kinds(&self) -> Vec<(Kind, &dyn KindOptions)> {
                vec![$((<$options>::KIND, &self.$field),)*]
            }
        }
    };
}

kinds! {
    spline: spline::SplineOptions,
    sum_of_squares: sum_of_squares::SumOfSquaresOptions,
    histogram: histogram::HistogramOptions,
}

/// The name of mixtures of kernels, which are no family on a grid: there is nothing to compile before training.
const KERNEL: &str = "kernel";
const COMPONENTS: &str = "--components";
const KNOTS_AT: &str = "--knots-at";

/// Options that several kinds of families have.
#[derive(clap::Args)]
struct SharedOptions {
    #[arg(long, value_name = "C", help = components_help())]
    components: Option<usize>,
    #[arg(long, value_name = "VAR=P,P,...", value_parser = knots_at::parse, help = knots_at_help())]
    knots_at: Vec<KnotsAt>,
    /// Constraints with equalities: the free variables, separated by commas; by default those declared first
    #[arg(long, value_name = "VARS", value_delimiter = ',')]
    free: Option<Vec<String>>,
}

impl SharedOptions {
    fn options(&self) -> [(&'static str, bool); 2] {
        [(COMPONENTS, self.components.is_some()), (KNOTS_AT, !self.knots_at.is_empty())]
    }
}

fn names() -> PossibleValuesParser {
    let kinds = KINDS.iter().map(|kind| PossibleValue::new(kind.name).help(kind.about));
    let about = "Kernels with a place, scales and a direction of their own, for 2 variables; for train and fit only";
    kinds.chain([PossibleValue::new(KERNEL).help(about)]).collect::<Vec<_>>().into()
}

fn components_help() -> String {
    let default = |kind: &Kind| format!("{} for {}", (kind.default_components)(), kind.name);
    let kernels = format!("{} for {KERNEL}", KernelSettings::default().components);
    let defaults: Vec<String> = KINDS.iter().map(default).chain([kernels]).collect();
    format!("The number of components of the mixture, or of squares in the sum [default: {}]", defaults.join(", "))
}

fn knots_at_help() -> String {
    let kinds = KINDS.iter().filter(|kind| kind.shared_options.contains(&KNOTS_AT)).map(|kind| kind.name);
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    format!("{kinds}: exact positions of the knots of one variable, at which its bins end; may be repeated")
}

/// `--family a`, or `--family a or b`.
fn listed(names: &[&str]) -> String {
    format!("--family {}", names.join(" or "))
}

impl FamilyOptions {
    /// The name of the chosen kind.
    pub fn name(&self) -> &str {
        &self.family
    }

    /// The number of components, if it was given.
    pub fn components(&self) -> Option<usize> {
        self.shared.components
    }

    /// The settings of a mixture of kernels, if that was chosen.
    pub fn kernels(&self) -> Option<KernelSettings> {
        let usual = KernelSettings::default().components;
        (self.family == KERNEL).then(|| KernelSettings { components: self.components().unwrap_or(usual) })
    }

    /// The chosen kind; `None` for kernels.
    fn chosen(&self) -> Option<(Kind, &dyn KindOptions)> {
        self.kinds().into_iter().find(|(kind, _)| kind.name == self.family)
    }

    /// The names of the kinds that have some property.
    fn names_where(&self, has: impl Fn(Kind, &dyn KindOptions) -> bool) -> Vec<&'static str> {
        self.kinds().into_iter().filter(|(kind, options)| has(*kind, *options)).map(|(kind, _)| kind.name).collect()
    }

    /// Fails if options of another kind were given: they are mistakes, not noise.
    pub fn check(&self) -> Result<()> {
        let taken = |kind: Kind, options: &dyn KindOptions| -> Vec<&'static str> {
            let own: Vec<&str> = options.options().into_iter().map(|(option, _)| option).collect();
            [&own[..], kind.shared_options, &[COMPONENTS]].concat()
        };
        let instead = self.chosen().map_or_else(|| vec![COMPONENTS], |(kind, options)| taken(kind, options));
        let all = self.kinds().into_iter().flat_map(|(_, options)| options.options()).chain(self.shared.options());
        let foreign = all.filter(|(_, given)| *given).find(|(option, _)| !instead.contains(option));
        if let Some((option, _)) = foreign {
            let others = listed(&self.names_where(|kind, options| taken(kind, options).contains(&option)));
            bail!("{option} is for {others}; this family has {}", instead.join(", "));
        }
        Ok(())
    }

    /// Fails if options of families were given for a baseline, but for the number of components of a mixture.
    pub fn check_baseline(&self, mixture: bool) -> Result<()> {
        let all = self.kinds().into_iter().flat_map(|(_, options)| options.options()).chain(self.shared.options());
        let mut foreign = all.filter(|(option, given)| *given && !(mixture && *option == COMPONENTS));
        if let Some((option, _)) = foreign.next() {
            bail!("{option} is for densities on the constraint, not for this --baseline");
        }
        ensure!(self.components().is_none_or(|count| (1..=10_000).contains(&count)), "--components: give 1 to 10000");
        Ok(())
    }

    /// Fails if `--check` was given where there is no basis to measure.
    pub fn check_conditioning(&self) -> Result<()> {
        let others = || listed(&self.names_where(|_, options| options.has_conditioning()));
        let has = self.chosen().is_some_and(|(_, options)| options.has_conditioning());
        ensure!(has, "--check is for {}; this family has no basis of polynomials", others());
        Ok(())
    }

    /// Whether a network can have the head `student-t`.
    pub fn has_student_t_head(&self) -> bool {
        self.chosen().is_some_and(|(_, options)| options.has_student_t_head())
    }

    /// Fails if rows cannot have regions of their own with this kind of family.
    pub fn check_regions(&self) -> Result<()> {
        let others = || listed(&self.names_where(|_, options| options.has_row_regions()));
        ensure!(
            self.kernels().is_some() || self.chosen().is_some_and(|(_, options)| options.has_row_regions()),
            "--family {}: rows can have regions of their own with {} only",
            self.family,
            others()
        );
        Ok(())
    }

    /// Fails if `--head` was given where there is nothing to choose: for other kinds, and for baselines.
    pub fn check_head(&self, is_pal: bool) -> Result<()> {
        let others = || listed(&self.names_where(|_, options| options.has_student_t_head()));
        ensure!(is_pal && self.has_student_t_head(), "--head is for {}, not for this model", others());
        Ok(())
    }

    /// Compiles the family on a region.
    pub fn compile(&self, region: &Region) -> Result<AnyFamily> {
        self.compile_for(region, false)
    }

    /// Compiles the family on a region, for a network that speaks through a Student t head or gives the parameters
    /// itself.
    pub fn compile_for(&self, region: &Region, student_t_head: bool) -> Result<AnyFamily> {
        let whole;
        let region = match &self.shared.free {
            None => region,
            Some(free) => {
                let names: Vec<&str> = free.iter().map(String::as_str).collect();
                whole = region.with_free(&names).context("--free")?;
                &whole
            }
        };
        let mixed = !region.constraint().booleans.is_empty();
        // Options of axes are those of the free variables.
        let flat = if mixed || region.has_volume() { None } else { region.flat()? };
        if flat.as_ref().is_some_and(|flat| flat.dimension() == 0) {
            return Err(DensityError::Point.into());
        }
        let axes = flat.as_ref().map_or(region, |flat| flat.region());
        let n = axes.dimension();
        let Some((_, options)) = self.chosen() else {
            bail!("--family {KERNEL} has nothing to compile; it is for `pal train` and `pal fit`");
        };
        if let Some(most) = options.max_dimension().filter(|most| n > *most) {
            let others = listed(&self.names_where(|_, other| other.max_dimension().is_none_or(|most| n <= most)));
            bail!("--family {} is for 1 to {most} variables, the constraint has {n}; use {others}", self.family);
        }
        let settings = options.settings(&self.shared, axes, student_t_head)?;
        let family = match mixed {
            false => Family::new(region, &settings).map(AnyFamily::from),
            true => MixedFamily::new(region, &settings).map(AnyFamily::from),
        };
        family.map_err(|error| match error {
            DensityError::NoVolume(_) => anyhow!("{error}; `pal check` tells more"),
            other => other.into(),
        })
    }

    /// How well the basis of a compiled family is conditioned, if it has one.
    pub fn conditioning(&self, family: &Family) -> Option<Conditioning> {
        self.chosen().and_then(|(_, options)| options.conditioning(family))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kind that the library has and the program has not would be out of reach.
    #[test]
    fn all_kinds_of_the_library_are_here() {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        assert_eq!(names, Settings::NAMES);
    }
}
