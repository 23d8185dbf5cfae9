//! Keeps the matrix true to its index: takes a [`Matrix`] and a [`Client`], gives changed files with what changed in
//! them ([`update`]), or where the two differ ([`audit`]).
//!
//! What is written about a release is read from its wheels; what was written by hand stays as it is.

mod audit;
mod closure;
mod cudnn;
mod keep;
mod line;
mod pairs;
mod pins;
mod probe;
mod snapshot;
mod torch;
mod update;

pub use audit::{Audit, Difference, audit};
pub use update::{Change, Moment, Update, update};
