//! `snapshot/`: its list of packages, every line of theirs, and what torch builds say of them.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::place::{Step, steps};
use super::{Book, Findings};
use crate::diag::Evidence;
use crate::digest::is_sha256_hex;
use crate::matrix::files::Files;
use crate::matrix::snapshot::{Line, WheelEntry};
use crate::python::{PackageName, Requirement, WheelName};
use crate::version::pep440::Operator;
use crate::version::{Pep440, Specifiers};

type Versions = BTreeMap<PackageName, Vec<Pep440>>;

pub(super) fn check(book: &Book<'_>, files: &Files, findings: &mut Findings) {
    let mut versions = Versions::new();
    for path in files.paths("snapshot/", ".jsonl") {
        let stem = path.trim_start_matches("snapshot/").trim_end_matches(".jsonl");
        let text = files.text(path).unwrap_or_default();
        let name = files.name(path);
        let Ok(package) = stem.parse::<PackageName>() else {
            findings.add("matrix-invalid", format!("`{stem}` is not a package name"), Evidence::observed(name, stem));
            continue;
        };
        let known = lines(&name, &package, text, findings);
        versions.insert(package, known);
    }
    listed(book, &versions, findings);
    pins(book, &versions, findings);
}

/// The list of packages and the files agree.
fn listed(book: &Book<'_>, versions: &Versions, findings: &mut Findings) {
    let Some(sheet) = &book.snapshot else { return };
    let mut seen = BTreeSet::new();
    let lists = [("gpu", &sheet.value.packages.gpu), ("other", &sheet.value.packages.other)];
    for (key, list) in lists {
        findings.ascending(list, ToString::to_string, |row| sheet.at(steps!["packages", key, row]));
        for (i, package) in list.iter().enumerate() {
            seen.insert(package);
            if let Some(groups) = &book.package
                && groups.value.is_gpu(package) != (key == "gpu")
            {
                let message = format!("`{key}` is not where package.toml puts {package}");
                findings.add("matrix-invalid", message, sheet.at(steps!["packages", key, i]));
            }
            if !versions.contains_key(package) {
                let message = format!("the snapshot of {package} is not there");
                let place = sheet.at(steps!["packages", key, i]);
                findings.dangling(message, place, &format!("the matrix as snapshot/{package}.jsonl"));
            }
        }
    }
    if sheet.whole {
        for package in versions.keys().filter(|package| !seen.contains(package)) {
            let message = format!("snapshot/{package}.jsonl is not in the list of packages");
            findings.add("matrix-reference", message, sheet.at(steps!["packages"]));
        }
    }
}

/// What torch builds pin is in the snapshot, where it has that package at all.
fn pins(book: &Book<'_>, versions: &Versions, findings: &mut Findings) {
    let name = |text: &str| text.parse::<PackageName>().ok();
    let mut needs = |package: Option<&PackageName>, wanted: &Specifiers, shown: &str, place: &dyn Fn() -> Evidence| {
        let Some((package, known)) = package.and_then(|package| Some((package, versions.get(package)?))) else {
            return;
        };
        if !known.iter().any(|version| wanted.contains(version)) {
            let message = format!("{package} {shown} is not in the snapshot");
            findings.dangling(message, place(), &format!("snapshot/{package}.jsonl (`gpulock matrix update` does)"));
        }
    };
    let (vision, audio, triton) = (name("torchvision"), name("torchaudio"), name("triton"));
    for sheet in &book.torches {
        for (i, release) in sheet.value.releases.iter().enumerate() {
            let pairs = [("torchvision", &vision, &release.torchvision), ("torchaudio", &audio, &release.torchaudio)];
            for (key, package, list) in pairs {
                for (j, version) in list.iter().flatten().enumerate() {
                    let place = || sheet.at(steps!["release", i, key, j]);
                    needs(package.as_ref(), &exactly(version), &version.to_string(), &place);
                }
            }
            for (j, build) in release.builds.iter().enumerate() {
                let place = |key: &str, k: usize| sheet.at(steps!["release", i, "build", j, key, k]);
                if let Some(text) = &build.triton {
                    let version = text.parse::<Pep440>().map(|version| exactly(&version));
                    if let Ok(wanted) = version.or_else(|_| text.parse::<Specifiers>()) {
                        needs(triton.as_ref(), &wanted, text, &|| place("triton", 0));
                    }
                }
                for (k, text) in build.requires.iter().flatten().enumerate() {
                    let Ok(requirement) = text.parse::<Requirement>() else { continue };
                    let exact = requirement.specifiers.iter().any(|one| *one.operator() == Operator::Equal);
                    if exact {
                        let shown = requirement.specifiers.to_string();
                        needs(Some(&requirement.package), &requirement.specifiers, &shown, &|| place("requires", k));
                    }
                }
            }
        }
    }
}

fn exactly(version: &Pep440) -> Specifiers {
    crate::version::pep440::VersionSpecifier::equals_version(version.clone()).into()
}

/// Checks every line of a package; gives its versions.
fn lines(name: &str, package: &PackageName, text: &str, findings: &mut Findings) -> Vec<Pep440> {
    let mut versions: Vec<Pep440> = Vec::new();
    if text.is_empty() || !text.ends_with('\n') {
        let place = Evidence::observed(name, "no line end at its end");
        findings.fixable("matrix-invalid", format!("{name} is cut off"), place, FIX);
    }
    for (i, text) in text.lines().enumerate() {
        let mut add = |message: String| {
            let shown: String = text.chars().take(80).collect();
            let place = Evidence::Span { file: name.into(), line: i + 1, column: 1, width: 1, text: shown.into() };
            findings.fixable("matrix-invalid", message, place, FIX);
        };
        let line: Line<'_> = match serde_json::from_str(text) {
            Ok(line) => line,
            Err(error) => {
                add(error.to_string());
                continue;
            }
        };
        let version = match line.version.parse::<Pep440>() {
            Ok(version) => version,
            Err(_) => {
                add(format!("`{}` is not a version", line.version));
                continue;
            }
        };
        if version.to_string() != line.version || version.is_local() || version.any_prerelease() {
            add(format!("`{}` is not a normalised version of a stable release", line.version));
        }
        if versions.last().is_some_and(|last| *last >= version) {
            add(format!("{version} stands at or after a newer one; oldest first"));
        }
        release(package, &version, &line, &mut add);
        versions.push(version);
    }
    versions
}

const FIX: &str = "`gpulock matrix update` writes the snapshot anew";

fn release(package: &PackageName, version: &Pep440, line: &Line<'_>, add: &mut impl FnMut(String)) {
    if line.wheels.is_empty() {
        add(format!("{version} has no wheels"));
    }
    for text in line.requires.iter().flatten() {
        if let Err(error) = text.parse::<Requirement>() {
            add(error.to_string());
        }
    }
    for extra in &line.extras {
        if extra.parse::<PackageName>().is_err() {
            add(format!("`{}` is not the name of an extra", &**extra));
        }
    }
    for pair in line.wheels.windows(2) {
        if let [before, after] = pair
            && before.file >= after.file
        {
            add(format!("{} stands after {}; wheels are sorted by name", after.file, before.file));
        }
    }
    for entry in &line.wheels {
        wheel(package, version, line, entry, add);
    }
}

fn wheel(
    package: &PackageName,
    version: &Pep440,
    line: &Line<'_>,
    entry: &WheelEntry<'_>,
    add: &mut impl FnMut(String),
) {
    let file = entry.file;
    match file.parse::<WheelName>() {
        Ok(name) if name.package == *package && name.version == *version => {}
        Ok(_) => add(format!("{file} is no wheel of {package} {version}")),
        Err(error) => add(error.to_string()),
    }
    if !is_sha256_hex(entry.sha256) {
        add(format!("`{}` of {file} is not a SHA-256 in hex", entry.sha256));
    }
    if entry.size == 0 {
        add(format!("{file} has size 0"));
    }
    if let Some(python) = &entry.python
        && python.parse::<Specifiers>().is_err()
    {
        add(format!("`{python}` of {file} is not a set of Python versions"));
    }
    if entry.meta >= line.requires.len() {
        add(format!("{file} refers to requirements number {}, of {}", entry.meta, line.requires.len()));
    }
    let Some(libs) = entry.libs else { return };
    match serde_json::from_str::<Vec<(String, &str, u64)>>(libs.get()) {
        Ok(libs) => {
            for (path, hash, _) in libs {
                if URL_SAFE_NO_PAD.decode(hash).map_or(true, |bytes| bytes.len() != 32) {
                    add(format!("`{hash}` of {path} in {file} is not a SHA-256 in base64"));
                }
            }
        }
        Err(error) => add(format!("libraries of {file}: {error}")),
    }
}
