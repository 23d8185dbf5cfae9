//! Any bytes as the files that describe an environment: METADATA, RECORD, `.pth`, `direct_url.json`, a file of conda's,
//! the loader's cache and its configuration. The first byte says which, the rest is the file.
//!
//! From `tests/fuzz`, with a nightly compiler and `cargo install cargo-fuzz`:
//!
//! ```sh
//! cargo +nightly run --bin seeds corpus
//! TMPDIR=/dev/shm cargo +nightly fuzz run --fuzz-dir . environment -- \
//!     -max_total_time=600 -timeout=10 -rss_limit_mb=512
//! ```

#![no_main]

use std::fs;

use gpulock::inventory::{Cache, Inventory, Options};
use libfuzzer_sys::fuzz_target;

const SITE: &str = "usr/lib/python3.11/site-packages";

fuzz_target!(|bytes: &[u8]| {
    let Some((which, bytes)) = bytes.split_first() else { return };
    let files = [
        format!("{SITE}/x-1.dist-info/METADATA"),
        format!("{SITE}/x-1.dist-info/RECORD"),
        format!("{SITE}/x-1.dist-info/direct_url.json"),
        format!("{SITE}/x-1.egg-info"),
        format!("{SITE}/x.pth"),
        "usr/conda-meta/x-1-0.json".into(),
        "opt/venv/pyvenv.cfg".into(),
        "etc/ld.so.conf".into(),
        "etc/ld.so.preload".into(),
        "lib64/ld-linux-x86-64.so.2".into(),
        "etc/ld.so.cache".into(),
    ];
    let root = tempfile::tempdir().expect("a temporary folder");
    let write = |name: &str, bytes: &[u8]| {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, bytes).expect("room for a file");
    };
    write("etc/os-release", b"ID=x\n");
    write("lib64/ld-linux-x86-64.so.2", b"/lib64/\0/usr/lib64/\0");
    write(&format!("{SITE}/x-1.dist-info/METADATA"), b"Name: x\nVersion: 1\n");
    write(&files[usize::from(*which) % files.len()], bytes);
    let _ = Cache::parse(bytes);
    let options = Options { jobs: Some(1), ..Options::default() };
    let inventory = Inventory::read(root.path(), &options).expect("a root filesystem");
    for package in &inventory.packages {
        package.requirements().for_each(drop);
        package.pep440();
    }
});
