//! The command line.

pub mod read;
pub mod write;
