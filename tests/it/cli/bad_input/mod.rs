//! Bad input: a clear message, the right exit code, and nothing written.

mod disk;
mod flags;
mod index;
mod lock;
mod manifest;
mod matrix;
