//! What shapes a generated file besides the lock: names and numbers that a project chooses. The file's header records
//! them, so that `gpulock check` can render it once more.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::quote;

/// The options of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Options {
    /// Name of the image that is run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// How many GPUs a job gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<NonZeroU32>,
    /// What runs, a word each; empty for what the image runs by itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Features that its nodes have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraint: Option<String>,
    /// The Dockerfile, as seen from the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dockerfile: Option<String>,
    /// The folder of the project in its repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
}

/// One of them, by its flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opt {
    /// `--image`
    Image,
    /// `--gpus`
    Gpus,
    /// `-- COMMAND`
    Command,
    /// `--constraint`
    Constraint,
    /// `--dockerfile`
    Dockerfile,
    /// `--folder`
    Folder,
}

impl Options {
    /// Those of `these` alone: a format is not shaped by others.
    pub(super) fn only(&self, these: &[Opt]) -> Self {
        let has = |opt| these.contains(&opt);
        Self {
            image: self.image.clone().filter(|_| has(Opt::Image)),
            gpus: self.gpus.filter(|_| has(Opt::Gpus)),
            command: if has(Opt::Command) { self.command.clone() } else { Vec::new() },
            constraint: self.constraint.clone().filter(|_| has(Opt::Constraint)),
            dockerfile: self.dockerfile.clone().filter(|_| has(Opt::Dockerfile)),
            folder: self.folder.clone().filter(|_| has(Opt::Folder)),
        }
    }

    /// As one line of a header; `None` where none is set.
    pub(super) fn line(&self) -> Option<String> {
        (*self != Self::default()).then(|| quote::one_line_json(self))
    }

    /// Reads that line.
    pub(super) fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }

    /// As flags of the command line, what has signs of the shell in it in quotes; `output` stands before the command.
    pub(super) fn flags(&self, output: &str) -> String {
        let mut flags = String::new();
        let mut add = |flag: &str, value: Option<&str>| {
            flags.extend(value.map(|value| format!(" {flag} {}", quote::word(value))));
        };
        add("--image", self.image.as_deref());
        add("--gpus", self.gpus.map(|gpus| gpus.to_string()).as_deref());
        add("--constraint", self.constraint.as_deref());
        add("--dockerfile", self.dockerfile.as_deref());
        add("--folder", self.folder.as_deref());
        flags += &format!(" -o {output}");
        if !self.command.is_empty() {
            let words: Vec<String> = self.command.iter().map(|word| quote::word(word)).collect();
            flags += &format!(" -- {}", words.join(" "));
        }
        flags
    }
}
