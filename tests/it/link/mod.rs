//! The link model: what it says of files made for the purpose is what the real `ld.so` says of them.

mod any;
pub mod fixture;
mod loader;
mod python;
mod real;
