//! Integration tests; folders mirror `src/`.

mod manifest;
