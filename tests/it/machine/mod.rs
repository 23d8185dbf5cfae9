//! `gpulock doctor` on machines made for it.

mod capture;
mod faults;
mod given;
mod lock;
mod smi;
pub mod tree;
