//! Integration tests; folders mirror `src/`.

mod lock;
mod manifest;
mod report;
