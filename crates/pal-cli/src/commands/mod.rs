//! One file per command: its arguments and what it does.

mod cell_text;
pub mod cells;
pub mod check;
pub mod compile;
pub mod completions;
pub mod demo;
mod demo_density;
pub mod integrate;
pub mod logprob;
pub mod marginal;
pub mod mode;
mod moment_table;
pub mod moments;
pub mod parametrise;
pub mod plot;
mod plot_density;
pub mod query;
pub mod sample;
pub mod volume;
pub mod wmi;
mod wmi_file;
