//! Options that several commands share: one structure for each, flattened into the arguments of the commands.
//!
//! Options of families are in [`crate::family`], those that say how to read a constraint in [`crate::input`].

pub mod condition;
pub mod method;
pub mod row;

pub use condition::{ConditionOptions, GivenOptions};
pub use row::{RowChoice, RowOption};
