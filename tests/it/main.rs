//! Integration tests; folders mirror `src/`. Offline, on the embedded matrix.

mod cli;
mod file;
mod inventory;
mod layers;
mod lock;
mod manifest;
mod matrix;
mod registry;
mod render;
mod report;
mod resolve;
