//! One file per command: its arguments and what it does.

mod cell_text;
pub mod cells;
pub mod check;
pub mod completions;
pub mod demo;
pub mod integrate;
mod moment_table;
pub mod plot;
pub mod volume;
pub mod wmi;
mod wmi_file;
