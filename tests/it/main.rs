//! Integration tests; the folders mirror `src/`.

mod registry;
