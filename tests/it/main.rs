//! Integration tests; folders mirror `src/`.

mod cli;
mod lock;
mod manifest;
mod render;
mod report;
