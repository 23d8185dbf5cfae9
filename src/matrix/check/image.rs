//! `image/os.toml`: every name once, every Python a version.

use super::place::{Step, steps};
use super::{Book, Findings};
use crate::diag::Diagnostic;
use crate::python::PythonVersion;

pub(super) fn check(book: &Book<'_>, findings: &mut Findings) {
    let Some(sheet) = &book.os else { return };
    let mut seen: Vec<(&str, usize, usize)> = Vec::new();
    for (row, system) in sheet.value.systems.iter().enumerate() {
        if let Err(error) = system.python.parse::<PythonVersion>() {
            findings.add("matrix-invalid", error.to_string(), sheet.at(steps!["os", row, "python"]));
        }
        for (name, text) in system.names.iter().enumerate() {
            let place = sheet.at(steps!["os", row, "names", name]);
            match seen.iter().find(|(known, ..)| known == text) {
                Some((_, row, name)) => {
                    let first = sheet.at(steps!["os", *row, "names", *name]);
                    let problem = Diagnostic::error("matrix-duplicate", format!("`{text}` is there twice"), place);
                    findings.list.push(problem.and(first).fix("remove one of the two"));
                }
                None => seen.push((text, row, name)),
            }
        }
    }
}
