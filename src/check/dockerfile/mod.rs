//! A Dockerfile before it is built: takes its text and the lock, gives what will go wrong, each at its line.
//!
//! Files that have nothing to do with GPUs are passed over, and what a file alone does not tell is not said.

mod arg;
mod base;
mod index;
mod install;
mod other_torch;
mod read;
mod shell;
mod torch;
mod variables;

use std::collections::BTreeSet;

use crate::diag::{Diagnostic, Evidence, Failure, Severity, SourceText};
use crate::lock::Lock;
use crate::matrix::Matrix;
use read::{Dockerfile, MOST_STAGES};
pub use variables::of_manifest as variables_of_manifest;

/// What is said of a file that is not judged.
const UNCHECKED: &str = "file-unchecked";

/// One lint.
pub struct Lint {
    /// Its stable name, which `[checks]` and `gpulock explain` use.
    pub code: &'static str,
    /// How grave its findings are unless they say otherwise.
    pub level: Severity,
    /// What it means, why it happens and what to do, in Markdown.
    pub page: &'static str,
    run: fn(&Dockerfile<'_>, &Context<'_>) -> Result<Vec<Diagnostic>, Failure>,
}

/// In the order in which they run.
pub const ALL: [Lint; 11] = [
    base::DELETED,
    base::CUDA,
    base::CUDNN,
    base::FLOATING,
    other_torch::BASE,
    other_torch::INDEX,
    index::COMPUTED,
    index::HASHES,
    other_torch::LOCKED,
    arg::UNUSED,
    arg::DISAGREES,
];

/// What a Dockerfile is judged with.
pub struct Context<'a> {
    /// Facts.
    pub matrix: &'a Matrix,
    /// The project's lock, where it has one.
    pub lock: Option<&'a Lock>,
    /// The text of a file beside the Dockerfile, where it can be read.
    pub read: &'a dyn Fn(&str) -> Option<String>,
    /// Variables of the manifest in a file that was generated: they are judged where they are set.
    pub variables: BTreeSet<String>,
}

/// Judges a Dockerfile.
///
/// # Errors
/// When the matrix cannot be read.
pub fn judge(source: SourceText<'_>, context: &Context<'_>) -> Result<Vec<Diagnostic>, Failure> {
    let file = Dockerfile::read(source, context.read);
    let mut findings = Vec::new();
    if file.stages.len() > MOST_STAGES {
        let message = format!("{} has more than {MOST_STAGES} stages, and is not judged", source.name);
        let place = Evidence::observed(source.name, "stages of a build");
        return Ok(vec![Diagnostic::note(UNCHECKED, message, place).about(source.name)]);
    }
    if is_of_gpus(&file) {
        for lint in ALL {
            findings.extend((lint.run)(&file, context)?);
        }
        findings.extend(variables::judge(&file, context)?);
    }
    for finding in &mut findings {
        finding.subject.get_or_insert_with(|| source.name.to_owned());
    }
    Ok(findings)
}

/// Whether an image is one of CUDA or torch, or torch is installed.
fn is_of_gpus(file: &Dockerfile<'_>) -> bool {
    const WORDS: [&str; 3] = ["nvidia", "cuda", "pytorch"];
    file.stages.iter().any(|stage| {
        let (name, _) = stage.repository();
        WORDS.iter().any(|word| name.contains(word))
            || stage.installs.iter().any(|install| install.of("torch").is_some())
    })
}
