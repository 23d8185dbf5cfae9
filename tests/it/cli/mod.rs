//! The program as a user meets it, and the files that it reads and writes.

mod bad_input;
mod cache;
mod modes;
mod program;
mod read;
mod readme;
mod write;
