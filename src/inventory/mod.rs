//! What is there: files and facts of a real machine or environment.

pub mod host;
