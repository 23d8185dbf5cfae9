//! What shapes an export besides the lock: which flags a format takes, and what follows from where the files are.

use std::path::{Component, Path};

use crate::diag::{Diagnostic, Evidence, Failure};
use crate::render::Format;

/// A flag for some formats.
pub struct Given {
    /// Its name.
    pub flag: &'static str,
    /// The variable that stands for it.
    pub variable: Option<&'static str>,
    /// What was given.
    pub value: Option<String>,
    /// Whether it shapes a format.
    pub takes: Box<dyn Fn(Format) -> bool>,
}

/// Refuses flags that have no effect on `format`. A variable stands for a flag in every command, so that it is passed over.
///
/// # Errors
/// Names the formats that take it.
pub fn effective(given: &[Given], format: Format) -> Result<(), Failure> {
    for Given { flag, variable, value, takes } in given {
        let Some(value) = value.as_ref().filter(|_| !takes(format)) else { continue };
        if variable.and_then(std::env::var_os).is_some_and(|set| set == **value) {
            continue;
        }
        let others: Vec<&str> = Format::all().filter(|format| takes(*format)).map(Format::name).collect();
        let message = format!("{flag} has no effect on {format}");
        let seen = Evidence::observed("command line", format!("export {format} with {flag}"));
        let fix = format!("leave it out; formats that take it: {}", others.join(", "));
        return Err(Failure::unanswerable(Diagnostic::error("usage", message, seen).fix(fix)));
    }
    Ok(())
}

/// Where a devcontainer.json finds the Dockerfile at the root of the project; `None` in `.devcontainer/`, where it usually is.
///
/// Source: https://containers.dev/implementors/spec/, "devcontainer.json": the three places of that file.
pub fn dockerfile_seen_from(output: Option<&Path>) -> Option<String> {
    const FOLDER: &str = ".devcontainer";
    let output = output?;
    if output.file_name().is_some_and(|name| name == ".devcontainer.json") {
        return Some("Dockerfile".into());
    }
    let whole = std::path::absolute(output).ok()?;
    let above = whole.parent()?.parent()?.file_name()?;
    (above == FOLDER).then(|| "../../Dockerfile".into())
}

/// The folder of the lock in the repository around it; `None` where that is the root, or there is no repository.
pub fn folder_in_repository(lock: &Path) -> Option<String> {
    let lock = std::path::absolute(lock).ok()?.parent()?.canonicalize().ok()?;
    let root = lock.ancestors().find(|folder| folder.join(".git").exists())?;
    lock.strip_prefix(root).ok()?.to_str().filter(|folder| !folder.is_empty()).map(str::to_owned)
}

/// A folder that is named, in its plain form; `None` for the root.
///
/// # Errors
/// One that is not in the repository.
pub fn folder(given: &str) -> Result<Option<String>, Failure> {
    let mut names = Vec::new();
    for part in Path::new(given).components() {
        match part {
            Component::Normal(name) => names.push(name.to_string_lossy()),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                let message = format!("--folder {given} is no folder inside of a repository");
                let seen = Evidence::observed("command line", format!("--folder {given}"));
                let problem = Diagnostic::error("usage", message, seen);
                return Err(Failure::unanswerable(
                    problem.fix("name it from the root of the repository: --folder jobs/train"),
                ));
            }
        }
    }
    Ok(Some(names.join("/")).filter(|folder| !folder.is_empty()))
}
