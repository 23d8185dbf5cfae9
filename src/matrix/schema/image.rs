//! `image/os.toml`: the operating systems that images are made of.

use serde::Deserialize;

/// `image/os.toml`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OsFile {
    /// Operating systems.
    #[serde(rename = "os")]
    pub systems: Vec<OsRow>,
}

/// A release of an operating system.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OsRow {
    /// What it is called in the tag of another image (`ubuntu22.04`) and as an image (`ubuntu:22.04`).
    pub names: Vec<String>,
    /// The Python that its package `python3` installs: `3.10`.
    pub python: String,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}
