//! Integration tests; folders mirror `src/`. Offline, on the embedded matrix.

mod cli;
mod lock;
mod manifest;
mod matrix;
mod report;
mod resolve;
