//! One file per command: its arguments and what it does.

mod cell_text;
pub mod cells;
pub mod check;
pub mod compile;
pub mod completions;
pub mod data;
pub mod demo;
mod demo_density;
mod demo_fit;
pub mod eval;
pub mod fit;
pub mod integrate;
pub mod logprob;
pub mod marginal;
pub mod mode;
pub mod model;
mod moment_table;
pub mod moments;
pub mod plot;
mod plot_density;
pub mod predict;
pub mod query;
pub mod sample;
pub mod train;
pub mod volume;
pub mod wmi;
mod wmi_file;
