//! Bad input: a clear message, the right exit code, and nothing written.

mod disk;
mod environment;
mod files;
mod flags;
mod index;
mod lock;
mod manifest;
mod matrix;
mod secrets;
mod size;
mod template;
mod terminal;
