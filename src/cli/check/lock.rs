//! A lock against its own hash, what its torch brings, what its CUDA asks of drivers and what its index gives: gives what no resolve would have written.

use std::collections::BTreeSet;

use crate::cli::input::{self, EDITED};
use crate::diag::{Diagnostic, Evidence, Failure, Lines, SourceText};
use crate::lock::{ANEW, Lock, Target, Wheel};
use crate::manifest::{Manifest, without_credentials};
use crate::matrix::{Matrix, Snapshot};
use crate::python::{Catalog as _, PackageName};
use crate::version::Pep440;

/// Everything in the lock, whose text is `source`, that contradicts the matrix. What the matrix does not know is passed over.
///
/// # Errors
/// When the matrix cannot be read.
pub fn judge(
    lock: &Lock,
    source: SourceText<'_>,
    manifest: Option<&Manifest>,
    matrix: &Matrix,
) -> Result<Vec<Diagnostic>, Failure> {
    let lines = Lines::new(source);
    let line =
        |at: Option<usize>| lines.span(at.map(|at| at..at + source.text[at..].lines().next().map_or(0, str::len)));
    let start = |target: &Target| source.text.find(&format!("\nname = {:?}\n", target.name)).unwrap_or_default();
    let problem = |message: String, at: Option<usize>| {
        let place = line(at);
        Diagnostic::error(EDITED, message, place).about(source.name).fix(ANEW)
    };
    let mut findings: Vec<Diagnostic> = input::seal(lock, source.name).into_iter().collect();
    for finding in &mut findings {
        // Beside what was seen, since that says more than the line.
        let at = source.text.find("\ncontent = ").map(|at| at + 1);
        if at.is_some() {
            finding.evidence.insert(0, line(at));
        }
    }
    for target in &lock.targets {
        let start = start(target);
        for (key, word, locked, brought) in stack(target, matrix)? {
            if locked != brought {
                let message = format!(
                    "{} says {word} {locked} for {}, and torch {} ({}) brings {brought}",
                    source.name, target.name, target.torch, target.variant
                );
                let at = source.text[start..].find(&format!("\n{key} = ")).map(|at| start + at + 1);
                findings.push(problem(message, at));
            }
        }
    }
    // Of the facts that it was made from; others may say otherwise.
    if lock.matrix == matrix.files().digest() {
        for target in &lock.targets {
            let start = start(target);
            for (word, locked, known) in drivers(target, matrix)? {
                let name = &target.name;
                let message =
                    format!("{} says that {word} driver of {name} is {locked}, and it is {known}", source.name);
                let at = source.text[start..].find("\ndriver = ").map(|at| start + at + 1);
                findings.push(problem(message, at));
            }
        }
        for (name, locked, known) in indexes(lock, manifest, matrix)? {
            let message = format!("{} says that the index {name} is at {locked}, and it is at {known}", source.name);
            let at = source.text.find(&format!("\nurl = {locked:?}\n")).map(|at| at + 1);
            findings.push(problem(message, at));
        }
    }
    let snapshot = matrix.snapshot();
    let packages = lock.targets.iter().flat_map(|target| &target.packages);
    let mut seen = BTreeSet::new();
    for (name, package) in packages {
        let Some((file, wheel)) =
            lock.wheel(package).filter(|(file, wheel)| seen.insert(*file) && is_of_snapshot(wheel, lock, matrix))
        else {
            continue;
        };
        if let Some(known) = known(name, &package.version, file, &snapshot)
            && known != wheel.sha256
        {
            let message = format!("{} has another hash of {file} than its index gives", source.name);
            let at = source.text.find(&format!("\n{file:?} = ")).map(|at| at + 1);
            let seen = Evidence::fact(format!("its SHA-256 is {known}"), "snapshot of the matrix");
            findings.push(problem(message, at).and(seen));
        }
    }
    Ok(findings)
}

/// Key, name, and the versions that the lock has and that its torch brings.
fn stack(target: &Target, matrix: &Matrix) -> Result<Vec<(&'static str, &'static str, String, String)>, Failure> {
    let facts = matrix.torch()?;
    let mut builds = facts.builds(target.platform);
    let is_it = |build: &crate::matrix::TorchBuild| {
        build.release().version == target.torch && build.row().variant == target.variant
    };
    let Some(build) = builds.find(is_it) else { return Ok(Vec::new()) };
    let row = build.row();
    let rows = [
        ("cuda", "CUDA", both(&target.cuda, &row.cuda)),
        ("cudnn", "cuDNN", both(&target.cudnn, &row.cudnn)),
        ("nccl", "NCCL", both(&target.nccl, &row.nccl)),
    ];
    let row = |(key, word, versions): (_, _, Option<(String, String)>)| {
        versions.map(|(locked, brought)| (key, word, locked, brought))
    };
    Ok(rows.into_iter().filter_map(row).collect())
}

/// The drivers of a target that are not those of its CUDA: which, as the lock has it, as it is known.
fn drivers(target: &Target, matrix: &Matrix) -> Result<Vec<(&'static str, String, String)>, Failure> {
    let Some(cuda) = target.cuda else { return Ok(Vec::new()) };
    let facts = matrix.cuda()?;
    let rows = [
        ("the oldest", both(&target.driver.floor, &facts.floor(cuda).map(|row| row.driver))),
        ("the native", both(&target.driver.native, &facts.native(cuda).map(|row| row.driver))),
    ];
    let differ = |(word, versions): (_, Option<(String, String)>)| {
        versions.filter(|(locked, known)| locked != known).map(|(locked, known)| (word, locked, known))
    };
    Ok(rows.into_iter().filter_map(differ).collect())
}

/// The indexes that are elsewhere than manifest and matrix say: name, address in the lock, known address. A lock that was made
/// for another manifest, or for none, tells nothing.
fn indexes<'l>(
    lock: &'l Lock,
    manifest: Option<&Manifest>,
    matrix: &Matrix,
) -> Result<Vec<(&'l str, &'l str, String)>, Failure> {
    let Some(manifest) = manifest.filter(|manifest| lock.satisfies(manifest)) else { return Ok(Vec::new()) };
    let rows = &matrix.index()?.indexes;
    let known = |name: &str| {
        let own = manifest.indexes.iter().find(|index| index.name == name).map(|index| &*index.url);
        own.or_else(|| rows.iter().find(|row| row.name == name).map(|row| &*row.url)).map(without_credentials)
    };
    let differ = |(name, locked): (&'l String, &'l String)| {
        let known = known(name).filter(|url| url.trim_end_matches('/') != locked.trim_end_matches('/'))?;
        Some((&**name, &**locked, known))
    };
    Ok(lock.indexes.iter().filter_map(differ).collect())
}

fn both<T: ToString>(locked: &Option<T>, brought: &Option<T>) -> Option<(String, String)> {
    Some((locked.as_ref()?.to_string(), brought.as_ref()?.to_string()))
}

/// Whether a wheel is from the index that the snapshot was taken of, under its own address.
fn is_of_snapshot(wheel: &Wheel, lock: &Lock, matrix: &Matrix) -> bool {
    let address = |url: &str| url.trim_end_matches('/').to_owned();
    let row = matrix.index().ok().and_then(|file| file.indexes.iter().find(|row| row.name == Snapshot::INDEX));
    let locked = lock.indexes.get(&wheel.index).map(|url| address(url));
    wheel.index == Snapshot::INDEX && locked.is_some() && locked == row.map(|row| address(&row.url))
}

/// The hash of a file as the snapshot has it.
fn known(name: &PackageName, version: &Pep440, file: &str, snapshot: &Snapshot<'_>) -> Option<String> {
    let release = snapshot.release(Snapshot::INDEX, name, version).ok()??;
    let wheel = release.wheels.iter().find(|wheel| *wheel.name.file == *file)?;
    wheel.sha256.as_deref().map(str::to_owned)
}
