//! `dlopen.toml`.

use super::place::{Step, steps};
use super::{Book, Findings};
use crate::diag::Evidence;
use crate::matrix::schema::{AbsentRow, ImportRow, StepRow};
use crate::version::pep440::to_set;

/// What a name may hold in braces, in the files of a step and in those that a library opens.
const OF_STEPS: [&str; 2] = ["part", "cuda"];
const OF_EDGES: [&str; 2] = ["version", "minor"];
const OF_OPENS: [&str; 1] = ["cuda"];

pub(super) fn check(book: &Book<'_>, findings: &mut Findings) {
    let Some(sheet) = &book.dlopen else { return };
    let file = &sheet.value;
    overlaps(&file.imports, |row| sheet.at(steps!["import", row, "versions"]), findings);
    for (i, row) in file.imports.iter().enumerate() {
        if row.steps.is_empty() {
            findings.add("matrix-invalid", "an import without steps", sheet.at(steps!["import", i, "package"]));
        }
        for (j, step) in row.steps.iter().enumerate() {
            self::step(step, |key| sheet.at(steps!["import", i, "step", j, key]), findings);
        }
    }
    for (i, row) in file.opens.iter().enumerate() {
        if let Some(name) = row.global.iter().find(|name| !row.files.contains(name)) {
            let message = format!("{name} is not among the files");
            findings.add("matrix-invalid", message, sheet.at(steps!["open", i, "global"]));
        }
        names(&row.files, &OF_OPENS, || sheet.at(steps!["open", i, "files"]), findings);
    }
    for (i, row) in file.edges.iter().enumerate() {
        names(&row.open, &OF_EDGES, || sheet.at(steps!["edge", i, "open"]), findings);
        names(&row.from, &[], || sheet.at(steps!["edge", i, "from"]), findings);
        if row.open.iter().any(|name| name.contains('/')) {
            findings.add("matrix-invalid", "a library is opened by name", sheet.at(steps!["edge", i, "open"]));
        }
    }
    for (i, row) in file.workloads.iter().enumerate() {
        names(&row.loads, &[], || sheet.at(steps!["workload", i, "loads"]), findings);
    }
    for (i, row) in file.absent.iter().enumerate() {
        absent(&file.absent[..i], row, || sheet.at(steps!["absent", i, "libraries"]), findings);
    }
}

/// One row alone says what a version of a package loads.
fn overlaps(rows: &[ImportRow], at: impl Fn(usize) -> Evidence, findings: &mut Findings) {
    let versions = |row: &ImportRow| row.versions.clone().unwrap_or_default();
    for (i, row) in rows.iter().enumerate() {
        let same = |other: &&ImportRow| {
            let shared = to_set(&versions(row)).intersection(&to_set(&versions(other)));
            other.package == row.package && !shared.is_empty()
        };
        if let Some(other) = rows[..i].iter().find(same) {
            let message = format!("{} {} and {} overlap", row.package, versions(other), versions(row));
            findings.add("matrix-duplicate", message, at(i));
        }
    }
}

fn step(step: &StepRow, at: impl Fn(&'static str) -> Evidence, findings: &mut Findings) {
    names(&step.open, &OF_STEPS, || at("open"), findings);
    for (files, places, key) in
        [(&step.open, &step.places, "places"), (&step.rescue, &step.rescue_places, "rescue-places")]
    {
        for name in places.iter().flat_map(|place| words(place)).filter(|word| !OF_STEPS.contains(word)) {
            findings.add("matrix-invalid", format!("`{{{name}}}` stands for nothing here"), at(key));
        }
        if !places.is_empty() && files.iter().any(|file| file.matches('/').count() != 1) {
            findings.add("matrix-invalid", "with places, a file is `part/name`", at(key));
        }
    }
}

/// There is a name, and what it holds in braces is known.
fn names(names: &[String], known: &[&str], at: impl Fn() -> Evidence, findings: &mut Findings) {
    if names.is_empty() || names.iter().any(String::is_empty) {
        findings.add("matrix-invalid", "no name", at());
    }
    for word in names.iter().flat_map(|name| words(name)).filter(|word| !known.contains(word)) {
        findings.add("matrix-invalid", format!("`{{{word}}}` stands for nothing here"), at());
    }
}

/// What stands in braces.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).map(|rest| rest.split('}').next().unwrap_or(rest))
}

/// A library that may be absent is explained once for those who may miss it.
fn absent(before: &[AbsentRow], row: &AbsentRow, at: impl Fn() -> Evidence, findings: &mut Findings) {
    if row.libraries.is_empty() {
        findings.add("matrix-invalid", "no library", at());
    }
    for name in &row.libraries {
        if before.iter().any(|other| other.libraries.contains(name) && other.by == row.by) {
            findings.add("matrix-duplicate", format!("{name} is there twice"), at());
        }
    }
}
