//! `message.toml`: what people paste when something has failed.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Basis;

/// `message.toml`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct MessageFile {
    /// Libraries, each with all statuses that it returns.
    #[serde(rename = "component")]
    pub components: Vec<ComponentRow>,
    /// What statuses and texts mean.
    #[serde(rename = "answer")]
    pub answers: Vec<AnswerRow>,
    /// Exit statuses of processes.
    #[serde(rename = "exit")]
    pub exits: Vec<ExitRow>,
    /// Programs that are gone.
    #[serde(rename = "tool")]
    pub tools: Vec<ToolRow>,
    /// What to do about a number that nobody has.
    pub unknown: UnknownRow,
}

/// The statuses of one library.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ComponentRow {
    /// As people call it: `CUDA`, `cuDNN 9`.
    pub name: String,
    /// Words in lower case that say that a number is one of its statuses.
    pub words: Vec<String>,
    /// How it is known.
    #[serde(default)]
    pub basis: Basis,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
    /// Number to names.
    pub statuses: BTreeMap<String, Vec<String>>,
}

/// What a status or a text means.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AnswerRow {
    /// In a few words.
    pub title: String,
    /// The component whose statuses are meant, by its name.
    pub component: Option<String>,
    /// Their numbers.
    #[serde(default)]
    pub numbers: Vec<u32>,
    /// What stands in a message; `*` is any text on one line.
    #[serde(default)]
    pub texts: Vec<String>,
    /// Why it happens.
    pub cause: String,
    /// What to do.
    pub fix: String,
    /// The rule that finds it before it happens.
    pub rule: Option<String>,
    /// The command that looks for it.
    pub command: Option<String>,
    /// Of what happened to a machine: it is the program's fault, and the machine is well.
    #[serde(default)]
    pub machine_is_well: bool,
    /// How it is known.
    #[serde(default)]
    pub basis: Basis,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// An exit status.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ExitRow {
    /// As a shell has it.
    pub status: u32,
    /// The signal that it stands for: `SIGSEGV`.
    pub signal: Option<String>,
    /// In a few words.
    pub title: String,
    /// What shells and libraries print with it.
    #[serde(default)]
    pub texts: Vec<String>,
    /// Why it happens.
    pub cause: String,
    /// What to do.
    pub fix: String,
    /// The command that shows more.
    pub command: Option<String>,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// A program that is no longer there.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ToolRow {
    /// Its names.
    pub names: Vec<String>,
    /// Since when, as the end of a sentence.
    pub since: String,
    /// What does its work now.
    pub instead: String,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// How to get the real error.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UnknownRow {
    /// One step each.
    pub steps: Vec<String>,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}
