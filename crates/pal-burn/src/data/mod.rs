//! Data sets that are made rather than found.

mod campus;
mod star;
mod windows;

pub use campus::{Walkers, WalkersError};
pub use star::Star;
pub use windows::{PAST, Position, WindowSettings, windows};
