//! `gpulock.toml`: what the user wants and what the machines are.
//!
//! [`parse`] reads it, [`render`] writes it, [`Manifest::normalised`] is what the lock's hash is of.

mod checks;
pub mod init;
mod model;
mod parse;
pub mod pyproject;
pub(crate) mod reader;
mod value;
mod write;

pub use crate::python::Platform;
pub use checks::RULES;
pub use model::{Ask, Check, Index, Level, Manifest, Places, PythonAsk, Stack, Target};
pub use parse::{FLAVORS, parse, parse_pyproject};
pub use value::{
    Invalid, parse_cuda, parse_cudnn, parse_driver, parse_glibc, parse_nccl, parse_package, parse_package_name,
    parse_platform, parse_python, parse_specifiers, parse_text, parse_variant,
};
pub use write::{render, without_credentials};
