//! Integration tests; folders mirror `src/`.

mod cli;
mod inventory;
mod lock;
mod manifest;
mod render;
mod report;
