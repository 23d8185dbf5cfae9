//! Any bytes as the section of GPU code of a sound library, and among its other data.
//!
//! From `tests/fuzz`, with a nightly compiler and `cargo install cargo-fuzz`:
//!
//! ```sh
//! cargo +nightly run --bin seeds corpus
//! cargo +nightly fuzz run --fuzz-dir . fatbin -- -max_total_time=600 -timeout=10 -rss_limit_mb=512
//! ```

#![no_main]

#[allow(dead_code)]
#[path = "../../it/elf/make.rs"]
mod make;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let sections = vec![(".nv_fatbin", bytes.to_vec()), (".ldata", bytes.to_vec())];
    let object = make::Library { sections, ..make::Library::default() }.read();
    for found in [&object.gpu_code, &object.gpu_code_embedded] {
        let pieces: usize = found.codes().map(|(code, count)| code.to_string().len().min(1) * count).sum();
        // A container has a header of 16 bytes and a piece one of 64; none is counted twice.
        assert!(found.len() * 16 + pieces * 64 <= bytes.len());
        // Nothing is passed over in silence.
        assert!(
            !found.is_empty() || !found.damaged.is_empty() || found == &object.gpu_code_embedded || bytes.is_empty()
        );
    }
});
