//! `gpulock.lock`: the exact stack of each target, complete and verifiable without network.
//!
//! Pure text in both directions: [`Lock::parse`] and [`Lock::to_text`]; files are read and written by the command line.

mod base;
mod diff;
mod differ;
mod image;
mod model;
mod read;
mod solution;
mod write;

pub(crate) use write::quoted;

pub use read::ANEW;
pub use write::MARK;

use crate::digest::sha256;
use crate::manifest::Manifest;

pub use base::{BaseDriver, base_driver};
pub use diff::{Floor, LockDiff, Moved, Presence, TargetDiff};
pub use image::{SLIM, choose as choose_image};
pub use solution::Origin;

pub use model::{
    Artefact, Code, DEFAULT_INDEX, DriverSupport, FileDigest, Gpu, Image, Lock, Package, REVISION, Reference, Seal,
    Target, Tier, VERSION, Wheel,
};

/// What [`Lock::inputs`] is for a manifest: the hash of its normal form.
pub fn inputs_hash(manifest: &Manifest) -> String {
    sha256(manifest.normalised().as_bytes())
}

impl Lock {
    /// Whether the lock was made for what `manifest` asks, all of its targets.
    pub fn satisfies(&self, manifest: &Manifest) -> bool {
        self.inputs == inputs_hash(manifest) && manifest.targets.iter().all(|one| self.target(&one.name).is_some())
    }

    /// Whether both hold the same, whatever matrix they were made from.
    pub fn same_content(&self, other: &Self) -> bool {
        self.inputs == other.inputs
            && self.indexes == other.indexes
            && self.targets == other.targets
            && self.wheels == other.wheels
    }

    /// Takes the targets of `old` that are missing here, with their artefacts, and puts all in the given order.
    ///
    /// Where `old` was made for another manifest, the whole fits neither that one nor this one, and its inputs say so.
    pub fn adopt(&mut self, old: &Self, order: &[&str]) {
        let mut mixed = false;
        for target in &old.targets {
            if self.target(&target.name).is_some() || !order.contains(&target.name.as_str()) {
                continue;
            }
            mixed |= old.inputs != self.inputs;
            for package in target.packages.values() {
                if let Some((file, wheel)) = old.wheel(package) {
                    self.wheels.entry(file.to_owned()).or_insert_with(|| wheel.clone());
                }
                if let Some((name, url)) = old.index_of(package).and_then(|name| old.indexes.get_key_value(name)) {
                    self.indexes.entry(name.clone()).or_insert_with(|| url.clone());
                }
            }
            self.targets.push(target.clone());
        }
        self.targets.sort_by_key(|target| order.iter().position(|name| *name == target.name));
        if mixed {
            self.inputs = sha256(format!("{}\n{}", old.inputs, self.inputs).as_bytes());
        }
    }

    /// The hash of what the lock holds: what it is sealed with, and what generated files are marked with.
    pub fn digest(&self) -> String {
        sha256(self.to_text().as_bytes())
    }
}
