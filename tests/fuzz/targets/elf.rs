//! Any bytes as an ELF file: all that is read of it, all that can be asked of it, and the same of a file that shrank.
//!
//! From `tests/fuzz`, with a nightly compiler and `cargo install cargo-fuzz`:
//!
//! ```sh
//! cargo +nightly run --bin seeds corpus && cp /lib/x86_64-linux-gnu/libutil.so.1 corpus/elf
//! cargo +nightly fuzz run --fuzz-dir . elf -- -max_total_time=600 -timeout=10 -rss_limit_mb=512 -max_len=65536
//! ```

#![no_main]

use gpulock::elf::{Object, ReadAt, constants};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    ask(&bytes);
    ask(&Shrunk { bytes: &bytes[..bytes.len() / 2], len: bytes.len() as u64 });
});

/// A file that was longer when it was opened.
struct Shrunk<'a> {
    bytes: &'a [u8],
    len: u64,
}

impl ReadAt for Shrunk<'_> {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        self.bytes.read_at(offset, into)
    }
}

fn ask(file: &dyn ReadAt) {
    for range in constants(file).unwrap_or_default() {
        assert!(range.start <= range.end && range.end <= file.len());
    }
    let object = match Object::read(file) {
        Ok(object) => object,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let symbols = &object.symbols;
    for import in symbols.imports() {
        symbols.lookup(&import);
        let _ = symbols.name(file, import.symbol);
    }
    for definition in symbols.definitions() {
        let _ = symbols.name(file, definition.symbol).map(|name| symbols.find(&name).count());
    }
    for family in ["GLIBC", "GLIBCXX", "CXXABI"] {
        object.floor(family);
    }
    let codes = object.gpu_code.codes().chain(object.gpu_code_embedded.codes());
    codes.for_each(|(code, count)| assert!(count > 0 && !code.to_string().is_empty()));
    object.damaged.iter().for_each(|damage| assert!(!damage.to_string().is_empty()));
}
