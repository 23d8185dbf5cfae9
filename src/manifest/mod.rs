//! `gpulock.toml`: what the user wants and what the machines are.

mod model;

pub use crate::python::Platform;
pub use model::{Ask, Check, Index, Level, Manifest, PythonAsk, Stack, Target};
