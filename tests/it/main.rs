//! Integration tests; folders mirror `src/`. Offline, on the embedded matrix.

mod cli;
mod lock;
mod manifest;
mod report;
mod resolve;
