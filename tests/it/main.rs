//! Integration tests; folders mirror `src/`. Offline, on the embedded matrix.

mod matrix;
mod resolve;
