//! Any bytes as a wheel: what is unpacked of it, and nothing outside of its folder.
//!
//! From `tests/fuzz`, with a nightly compiler and `cargo install cargo-fuzz`:
//!
//! ```sh
//! cargo +nightly run --bin seeds corpus
//! TMPDIR=/dev/shm cargo +nightly fuzz run --fuzz-dir . wheel -- -max_total_time=600 -timeout=10 -rss_limit_mb=512
//! ```

#![no_main]

use gpulock::inventory::{Inventory, Options};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let wheel = folder.path().join("x-1-py3-none-any.whl");
    std::fs::write(&wheel, bytes).expect("room for a wheel");
    let options = Options { jobs: Some(1), ..Options::default() };
    if let Ok(inventory) = Inventory::read(&wheel, &options) {
        let unpacked = &inventory.subject.path;
        assert!(inventory.libraries().iter().all(|library| library.path.starts_with(unpacked)));
    }
});
