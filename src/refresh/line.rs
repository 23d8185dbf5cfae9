//! A line of the snapshot, to be written: one release of one package.
//!
//! The same form as [`Snapshot`](crate::matrix::Snapshot) reads; compact JSON, keys in this order.

use serde::{Deserialize, Serialize};

/// One release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Line {
    /// Normalised.
    pub(super) version: String,
    /// The distinct lists of requirements among its wheels, in the order first met.
    pub(super) requires: Vec<Vec<String>>,
    /// All extras that its wheels provide.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) extras: Vec<String>,
    /// By file name.
    pub(super) wheels: Vec<Entry>,
}

/// One wheel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) file: String,
    pub(super) sha256: String,
    pub(super) size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) python: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) yanked: bool,
    /// Which of the lists of requirements is its own.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) meta: usize,
    /// Shared libraries: path, SHA-256 as RECORD has it, size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) libs: Vec<(String, String, u64)>,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Line {
    /// The requirements of one of its wheels.
    pub(super) fn requires_of(&self, entry: &Entry) -> &[String] {
        self.requires.get(entry.meta).map_or(&[], Vec::as_slice)
    }
}

/// All lines of a file; `None` when it is damaged.
pub(super) fn read(text: &str) -> Option<Vec<Line>> {
    text.lines().map(|line| serde_json::from_str(line).ok()).collect()
}

/// The text of a file.
pub(super) fn write(lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines {
        // Strings and numbers always have a form in JSON.
        text.push_str(&serde_json::to_string(line).unwrap_or_default());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Files;

    #[test]
    fn what_is_read_is_written_back() {
        let files = Files::default();
        let paths = files.paths("snapshot/", ".jsonl");
        assert!(paths.len() > 50);
        for path in paths {
            let text = files.text(path).unwrap();
            assert!(write(&read(text).unwrap()) == text, "{path}");
        }
    }
}
