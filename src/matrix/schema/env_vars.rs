//! `env-vars.toml`: environment variables of the GPU stack, as far as its files do not say it themselves.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Basis;
use crate::python::PackageName;
use crate::version::Pep440;

/// `env-vars.toml`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EnvVarsFile {
    /// Families of names, and what has them as text.
    #[serde(rename = "family")]
    pub families: Vec<VariableFamilyRow>,
    /// Names that are read where nobody can look.
    #[serde(rename = "known")]
    pub known: Vec<KnownVariablesRow>,
    /// Old and new names.
    #[serde(rename = "renamed")]
    pub renamed: Vec<RenamedVariablesRow>,
    /// Names that nobody reads.
    #[serde(rename = "unread")]
    pub unread: Vec<UnreadVariablesRow>,
    /// How names are spelt.
    #[serde(rename = "spelled")]
    pub spelled: Vec<SpelledVariablesRow>,
    /// Names that are set to look for a fault.
    #[serde(rename = "debugging", default)]
    pub debugging: Vec<DebuggingVariablesRow>,
    /// Files that name variables without reading them.
    #[serde(rename = "listing")]
    pub listings: Vec<VariableListingRow>,
}

/// Whose version decides whether a name is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VariableReader {
    /// torch, by its package.
    Torch,
    /// NCCL, by its library.
    Nccl,
}

/// Names that begin alike and belong to one library or package, which has each of them as text.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct VariableFamilyRow {
    /// How the names begin.
    pub prefixes: Vec<String>,
    /// The libraries, by their file names up to `.so`; either these or a package.
    #[serde(default)]
    pub libraries: Vec<String>,
    /// The package: its libraries and its Python files.
    pub package: Option<PackageName>,
    /// The library has the names without the prefix.
    #[serde(default)]
    pub bare: bool,
    /// How it is known.
    #[serde(default)]
    pub basis: Basis,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// Names that are read by what is not in an environment, or does not have them as text.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct KnownVariablesRow {
    /// The names.
    pub names: Vec<String>,
    /// Who reads them, for messages.
    pub reader: String,
    /// How it is known.
    #[serde(default)]
    pub basis: Basis,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// Variables that got new names.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RenamedVariablesRow {
    /// Who reads them.
    pub reader: VariableReader,
    /// The old names, each with its new one.
    pub names: BTreeMap<String, String>,
    /// The first release that reads the new names.
    pub since: Pep440,
    /// The last release that reads the old names; absent while they are read.
    pub until: Option<Pep440>,
    /// How it is known.
    #[serde(default)]
    pub basis: Basis,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// Names that are known from documents or old releases and that nobody reads.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct UnreadVariablesRow {
    /// The names.
    pub names: Vec<String>,
    /// Who read them; with `until`.
    pub reader: Option<VariableReader>,
    /// The last release that read them; absent: none ever did.
    pub until: Option<Pep440>,
    /// Why nobody reads them, a clause.
    pub reason: String,
    /// What to do instead, an imperative.
    pub instead: Option<String>,
    /// How it is known.
    #[serde(default)]
    pub basis: Basis,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// Names that releases read, to know a misspelt one by. What is not here may be read all the same.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SpelledVariablesRow {
    /// The names.
    pub names: Vec<String>,
    /// Who reads them.
    pub reader: VariableReader,
    /// How it is known.
    #[serde(default)]
    pub basis: Basis,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// Python files that name variables only to print them.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct VariableListingRow {
    /// The files, from site-packages on.
    pub files: Vec<String>,
    /// How it is known.
    #[serde(default)]
    pub basis: Basis,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// Names that are set to look for a fault, and cost something when they stay.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DebuggingVariablesRow {
    /// The names.
    pub names: Vec<String>,
    /// The values that do it; any but `0` where there are none.
    #[serde(default)]
    pub values: Vec<String>,
    /// What it does.
    pub effect: String,
    /// It makes every job slower; else it fills its log, or is right on some machines.
    #[serde(default)]
    pub slows: bool,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}
