//! One file per command: its arguments and what it does.

mod cell_text;
pub mod cells;
pub mod check;
pub mod completions;
pub mod demo;
pub mod plot;
