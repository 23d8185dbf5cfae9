//! Any bytes as a layer, as the top of a layout, and as an archive: an image or a sentence, and nothing else.
//!
//! From `tests/fuzz`, with a nightly compiler and `cargo install cargo-fuzz`:
//!
//! ```sh
//! cargo +nightly run --bin seeds corpus
//! TMPDIR=/dev/shm cargo +nightly fuzz run --fuzz-dir . image -- -max_total_time=600 -timeout=10 -rss_limit_mb=512
//! ```

#![no_main]

use std::io::{self, Cursor, Read};

use gpulock::inventory::image::{Blob, Blobs, Choice, Image, ImageOptions, Watch};
use gpulock::inventory::{Inventory, Options};
use libfuzzer_sys::fuzz_target;
use sha2::{Digest, Sha256};

struct Nobody;

impl Watch for Nobody {
    fn start(&self, _: usize, _: Option<u64>) {}
    fn read(&self, _: u64) {}
    fn finish(&self) {}
}

/// The only layer, and the configuration.
struct One<'a>(&'a [u8], String);

impl Blobs for One<'_> {
    fn open(&self, blob: &Blob) -> io::Result<Box<dyn Read + Send + '_>> {
        let config = blob.digest != digest(self.0);
        Ok(Box::new(Cursor::new(if config { self.1.as_bytes() } else { self.0 })))
    }
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

fuzz_target!(|bytes: &[u8]| {
    let choice = Choice { tag: None, architecture: "amd64".into() };
    let options = ImageOptions { choice, cache: None, most_unpacked: 100 << 20, jobs: Some(1), watch: &Nobody };
    let Some((kind, bytes)) = bytes.split_first() else { return };
    let image = match kind % 4 {
        0 => {
            let config = format!("{{\"rootfs\": {{\"diff_ids\": [\"{}\"]}}}}", digest(bytes));
            let top = format!(
                "{{\"config\": {{\"digest\": \"{}\"}}, \"layers\": [{{\"digest\": \"{}\"}}]}}",
                digest(config.as_bytes()),
                digest(bytes)
            );
            Image::of_blobs("any", (top.as_bytes(), None), &One(bytes, config), &options)
        }
        1 => Image::of_blobs("any", (bytes, None), &One(bytes, String::new()), &options),
        kind => {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let path = folder.path().join("image");
            std::fs::write(&path, bytes).expect("room for a file");
            match kind {
                2 => Image::of_archive("any", &path, &options),
                _ => Image::of_sif("any", &path, &options),
            }
        }
    };
    if let Ok(image) = image {
        Inventory::of_image(image, &Options { jobs: Some(1), ..Options::default() });
    }
});
