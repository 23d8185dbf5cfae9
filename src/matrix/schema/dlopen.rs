//! `dlopen.toml`: what is loaded by code instead of by an ELF file's list of what it needs, and what may be absent.

use serde::Deserialize;

use super::Basis;
use crate::python::PackageName;
use crate::version::Specifiers;

/// `dlopen.toml`
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DlopenFile {
    /// What interpreters define for extension modules.
    pub interpreter: InterpreterRow,
    /// Libraries of every system.
    pub system: SystemRow,
    /// What importing a package loads, by package and version.
    #[serde(rename = "import", default)]
    pub imports: Vec<ImportRow>,
    /// Files that Python code opens by path.
    #[serde(rename = "open", default)]
    pub opens: Vec<OpenRow>,
    /// Libraries that libraries open.
    #[serde(rename = "edge", default)]
    pub edges: Vec<EdgeRow>,
    /// What is loaded whenever a program is up.
    #[serde(rename = "workload", default)]
    pub workloads: Vec<WorkloadRow>,
    /// Libraries that are expected to be absent.
    #[serde(rename = "absent", default)]
    pub absent: Vec<AbsentRow>,
}

/// What interpreters define for extension modules.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct InterpreterRow {
    /// Names of symbols; `*` at the end stands for any rest.
    pub symbols: Vec<String>,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// Libraries of every Linux system with glibc.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct SystemRow {
    /// Their names.
    pub libraries: Vec<String>,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// What importing a package loads, step by step.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ImportRow {
    /// The package.
    pub package: PackageName,
    /// Its versions; all when absent.
    pub versions: Option<Specifiers>,
    /// Steps in order.
    #[serde(rename = "step")]
    pub steps: Vec<StepRow>,
    /// How it is known.
    #[serde(default)]
    pub basis: Basis,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// Files that are opened one after the other.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct StepRow {
    /// Files below site-packages; with `places`, `part/name`.
    pub open: Vec<String>,
    /// Folders below site-packages, the first that has the file wins; `{part}` is the part of the file before its name.
    #[serde(default)]
    pub places: Vec<String>,
    /// Symbols are offered to everything that is loaded later (RTLD_GLOBAL).
    #[serde(default)]
    pub global: bool,
    /// The step is taken only when a path that ends a folder or begins with this text is loaded.
    pub when_loaded: Option<String>,
    /// What a failure does.
    #[serde(default)]
    pub failure: OnFailure,
    /// What a file that is not there does.
    #[serde(default)]
    pub missing: OnMissing,
    /// Opened after a failure, all of them, before trying again.
    #[serde(default)]
    pub rescue: Vec<String>,
    /// `places` for those.
    #[serde(default)]
    pub rescue_places: Vec<String>,
}

/// What a failure to open a file does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailure {
    /// The import fails.
    #[default]
    Raise,
    /// The step ends, the import goes on.
    Stop,
}

/// What a file that is not there does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnMissing {
    /// The same as a failure.
    #[default]
    Fail,
    /// Nothing.
    Skip,
}

/// Files that Python code opens by path, in one process and in this order.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OpenRow {
    /// The package.
    pub package: PackageName,
    /// Its versions; all when absent.
    pub versions: Option<Specifiers>,
    /// Files below site-packages; `{cuda}` stands for the CUDA of torch in digits, `126`.
    pub files: Vec<String>,
    /// When they are opened, as the end of a sentence.
    pub when: String,
    /// Why a failure is no problem.
    pub optional: Option<String>,
    /// Those of the files that offer their symbols to everything that is loaded later (RTLD_GLOBAL).
    #[serde(default)]
    pub global: Vec<String>,
    /// What happens when they cannot be opened and nobody says so aloud.
    pub fallback: Option<FallbackRow>,
    /// One of the files is enough.
    #[serde(default)]
    pub any: bool,
    /// How it is known.
    #[serde(default)]
    pub basis: Basis,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// What a package does without files that it is installed for.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct FallbackRow {
    /// As the end of a sentence that begins with the package: "computes on the CPU".
    pub instead: String,
    /// What makes libraries known that lie in the environment where the loader does not look.
    pub preload: String,
}

/// A library that a library opens while it works.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EdgeRow {
    /// Names under which the one that opens is loaded.
    pub from: Vec<String>,
    /// Only where a library of this name is loaded too.
    pub when_loaded: Option<String>,
    /// Names in the order in which they are tried.
    pub open: Vec<String>,
    /// When it is opened, as the end of a sentence.
    pub when: String,
    /// Why a failure is no problem.
    pub optional: Option<String>,
    /// How it is known.
    #[serde(default)]
    pub basis: Basis,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// Libraries that are expected to be absent.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AbsentRow {
    /// Their names.
    pub libraries: Vec<String>,
    /// Names of the files that may miss them; all when empty.
    #[serde(default)]
    pub by: Vec<String>,
    /// They are the driver's.
    #[serde(default)]
    pub driver: bool,
    /// Symbols that they would define.
    #[serde(default)]
    pub symbols: Vec<String>,
    /// Why that is no problem, as a sentence's part.
    pub reason: String,
    /// How it is known.
    #[serde(default)]
    pub basis: Basis,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}

/// What a process has loaded once a program is up in it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct WorkloadRow {
    /// As people call it.
    pub name: String,
    /// The library whose presence says that it is up.
    pub when_loaded: String,
    /// Names of libraries, with `*`, that its builds for GPUs have loaded by then.
    pub loads: Vec<String>,
    /// How that is known.
    #[serde(default)]
    pub basis: Basis,
    /// Where it is from.
    pub source: String,
    /// When that was read.
    pub retrieved: String,
}
