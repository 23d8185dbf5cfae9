//! `gpulock.lock`: the exact stack of each target, complete and verifiable without network.
//!
//! Pure text in both directions: [`Lock::parse`] and [`Lock::to_text`]; files are read and written by the command line.

mod model;
mod read;
mod write;

use sha2::{Digest as _, Sha256};

pub(crate) use write::quoted;

use crate::manifest::Manifest;

pub use model::{
    Artefact, Code, DEFAULT_INDEX, DriverSupport, FileDigest, Gpu, Lock, Package, REVISION, Target, Tier, VERSION,
    Wheel,
};

/// What [`Lock::inputs`] is for a manifest: the hash of its normal form.
pub fn inputs_hash(manifest: &Manifest) -> String {
    sha256(manifest.normalised().as_bytes())
}

/// `sha256:` and the SHA-256 of `bytes` in lower-case hex.
pub fn sha256(bytes: &[u8]) -> String {
    use std::fmt::Write;
    Sha256::digest(bytes).iter().fold(String::from("sha256:"), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

impl Lock {
    /// Whether the lock was made for what `manifest` asks.
    pub fn satisfies(&self, manifest: &Manifest) -> bool {
        self.inputs == inputs_hash(manifest)
    }

    /// The hash of the lock's text: what generated files are marked with.
    pub fn digest(&self) -> String {
        sha256(self.to_text().as_bytes())
    }
}
