//! ELF files made by code: what is read of them, and that nothing in them does harm.

mod bad;
pub mod fatbin;
mod identity;
mod make;
mod object;
mod rich;
mod symbols;
