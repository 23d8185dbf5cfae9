//! The program as a user meets it, and the files that it reads and writes.

mod adopt;
mod bad_input;
mod cache;
mod check;
mod diff;
mod dockerfile;
mod explain;
mod export;
mod here;
mod image;
mod modes;
pub mod program;
mod readme;
mod run;
mod schema;
mod sealed;
mod tries;
mod verify;
mod write;
