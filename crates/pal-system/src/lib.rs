//! What the program and the Python package ask of the operating system: files and memory. The library asks for nothing.

#![deny(missing_docs)]

pub mod files;
pub mod memory;
