//! Libraries that are not the file that their package installed, or that the lock names.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use data_encoding::HEXLOWER;

use crate::check::{Case, Claims, Locked, Outcome, Rule, evidence, stack};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::{Inventory, Library};

pub const RULE: Rule =
    Rule { code: "library-modified", level: Severity::Error, page: include_str!("../page/library-modified.md"), run };

/// What a file should be, and who says so.
#[derive(Debug)]
pub struct Expected {
    /// Bytes.
    pub size: Option<u64>,
    /// SHA-256.
    pub sha256: Option<[u8; 32]>,
    /// The lock says so, not the package that installed it.
    pub by_lock: bool,
}

/// A library, and how it differs from what it should be.
type Changed<'a> = (&'a Library, String);

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    let expected = expected(case.inventory, case.locked);
    if expected.is_empty() {
        return Ok(Outcome::Skipped("no lock and no package says what the files should be".into()));
    }
    let overwritten = overwritten(case)?;
    let is_overwritten =
        |library: &Library| overwritten.values().flatten().any(|(other, _)| std::ptr::eq::<Library>(*other, library));
    // One finding for each package and for each of the two who may say so.
    let mut groups: BTreeMap<(Option<usize>, bool), Vec<Changed<'_>>> = BTreeMap::new();
    for library in case.inventory.libraries() {
        let Some(expected) = expected.get(library.path.as_path()).filter(|_| !case.inventory.is_deleted(library))
        else {
            continue;
        };
        let seen = match (expected.size, expected.sha256, case.digests.and_then(|all| all.get(library.path.as_path())))
        {
            (Some(size), _, _) if size != library.size => format!("{} bytes, and {size} are expected", library.size),
            (_, Some(sha256), Some(digest)) if sha256 != *digest => {
                format!("sha256 {}, and {} is expected", HEXLOWER.encode(digest), HEXLOWER.encode(&sha256))
            }
            _ => continue,
        };
        if !is_overwritten(library) {
            groups.entry((library.package, expected.by_lock)).or_default().push((library, seen));
        }
    }
    let of_two = overwritten.iter().filter_map(|(of, group)| finding_of_two(case, *of, group));
    let groups = groups.into_iter().filter_map(|((_, by_lock), group)| finding(case, by_lock, &group));
    Ok(Outcome::Ran(of_two.chain(groups).collect()))
}

/// Libraries of the GPU stack that one package recorded and another one, which has a file of the same name, put there:
/// by the two, as indexes into the packages.
fn overwritten<'a>(case: &Case<'a>) -> Result<BTreeMap<(usize, usize), Vec<Changed<'a>>>, Failure> {
    let packages = case.matrix.package()?;
    let libraries = case.inventory.libraries().iter().filter(|library| !case.inventory.is_deleted(library));
    let by_path: BTreeMap<&Path, &'a Arc<Library>> =
        libraries.map(|library| (library.path.as_path(), library)).collect();
    let mut all: BTreeMap<(usize, usize), Vec<Changed<'a>>> = BTreeMap::new();
    for (at, package) in case.inventory.packages.iter().enumerate().filter(|(_, one)| packages.is_gpu(&one.name)) {
        for file in &package.files {
            let (Some(size), Some(&library)) = (file.size, by_path.get(file.path.as_path())) else { continue };
            let Some(other) = library.package.filter(|other| *other != at && size != library.size) else { continue };
            let seen = format!("{} bytes, and {size} in the record of {}", library.size, package.name);
            all.entry((at, other)).or_default().push((library, seen));
        }
    }
    Ok(all)
}

fn finding_of_two(case: &Case<'_>, of: (usize, usize), group: &[Changed<'_>]) -> Option<Diagnostic> {
    let (package, other) = (case.inventory.packages.get(of.0)?, case.inventory.packages.get(of.1)?);
    let (first, _) = group.first()?;
    let files = match group.len() {
        1 => format!("{} of {} {} was", first.name, package.name, package.version),
        count => format!("{count} libraries of {} {} were", package.name, package.version),
    };
    let message = format!(
        "{files} overwritten by {} {}, which has files of the same names: what is loaded is not what {} is",
        other.name, other.version, package.name
    );
    let mut each = group.iter().map(|(library, seen)| Evidence::observed(&library.name, seen));
    // What others link with has to be the release that they were built for; Python's own modules come with either package.
    let is_linked_with = group.iter().any(|(library, _)| stack::identity(library).is_some());
    let severity = if is_linked_with { Severity::Error } else { Severity::Note };
    let finding = Diagnostic { severity, ..Diagnostic::error(RULE.code, message, each.next()?) }.about(&first.name);
    let fix = format!("pip uninstall -y {} && {}", other.name, stack::reinstall(package));
    Some(evidence::finding(finding, each).fix(fix))
}

fn finding(case: &Case<'_>, by_lock: bool, group: &[Changed<'_>]) -> Option<Diagnostic> {
    let (first, _) = group.first()?;
    let who = if by_lock { "the lock" } else { "its package's RECORD" };
    let more = if group.len() > 1 {
        format!(" and {} more are not the files", group.len() - 1)
    } else {
        " is not the file".into()
    };
    let message = format!("{}{more} that {who} names", first.name);
    let mut each = group.iter().map(|(library, seen)| Evidence::observed(&library.name, seen));
    // A package's own record is no promise of the user's: a stripped or patched file may be meant.
    // A part of cuDNN that does not tell its version can be told from one of another release by that record alone.
    let untold = |library: &Library| {
        stack::identity(library)
            .is_some_and(|one| one.library == "cudnn" && one.component.is_some() && one.version.is_none())
    };
    // Where parts that tell it are changed too, the whole was replaced, and what they say is judged elsewhere.
    let tells = |library: &Library| {
        stack::identity(library)
            .is_some_and(|one| one.library == "cudnn" && one.component.is_some() && one.version.is_some())
    };
    let telling = group.iter().any(|(library, _)| tells(library));
    let silent = group.iter().find(|(library, _)| untold(library)).filter(|_| !telling);
    let severity = if by_lock || silent.is_some() { Severity::Error } else { Severity::Note };
    let message = match silent {
        Some((part, _)) if !by_lock => format!(
            "{message}; {} does not tell its version, and cuDNN returns CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH (1002) for \
             one of another release",
            part.name
        ),
        _ => message,
    };
    let finding = Diagnostic { severity, ..Diagnostic::error(RULE.code, message, each.next()?) }.about(&first.name);
    let finding = evidence::finding(finding, each);
    Some(match stack::package(case.inventory, first) {
        Some(package) => finding.fix(stack::reinstall(package)),
        None => finding,
    })
}

/// What each library should be: by the lock where it speaks of the installed version, else by the package's record.
pub fn expected(inventory: &Inventory, locked: Option<Locked<'_>>) -> BTreeMap<PathBuf, Expected> {
    let mut expected = BTreeMap::new();
    for package in &inventory.packages {
        for file in &package.files {
            expected.insert(file.path.clone(), Expected { size: file.size, sha256: file.sha256, by_lock: false });
        }
    }
    let Some(locked) = locked else { return expected };
    for (name, package) in &locked.target.packages {
        let installed = stack::distribution(inventory, name.as_str());
        let Some(installed) = installed.filter(|one| one.pep440().as_ref() == Some(&package.version)) else { continue };
        let Some((_, wheel)) = locked.lock.wheel(package) else { continue };
        for (path, digest) in &wheel.libraries {
            let path = installed.site.join(Path::new(path));
            expected.insert(path, Expected { size: Some(digest.size), sha256: bytes(&digest.sha256), by_lock: true });
        }
    }
    expected
}

fn bytes(hex: &str) -> Option<[u8; 32]> {
    HEXLOWER.decode(hex.as_bytes()).ok()?.try_into().ok()
}
