//! Integration tests; folders mirror `src/`. Offline, on the embedded matrix.

mod cases;
mod check;
mod cli;
mod elf;
mod file;
mod image;
mod inventory;
mod layers;
mod link;
mod lock;
mod machine;
mod manifest;
mod matrix;
mod registry;
mod render;
mod report;
mod resolve;
