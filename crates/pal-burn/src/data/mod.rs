//! Synthetic data sets: the stars of the PAL paper, simulated walkers on a map, and windows cut from tracks.

mod campus;
mod star;
mod windows;

pub use campus::{Walkers, WalkersError};
pub use star::Star;
pub use windows::{PAST, Position, WindowSettings, windows};
