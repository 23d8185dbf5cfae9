//! `env-vars.toml`: names that are there twice, and rows that say nothing or contradict themselves.

use super::place::{Step, steps};
use super::{Book, Findings, Seen};

pub(super) fn check(book: &Book<'_>, findings: &mut Findings) {
    let Some(sheet) = &book.env_vars else { return };
    let file = &sheet.value;
    for (i, row) in file.families.iter().enumerate() {
        if row.libraries.is_empty() == row.package.is_none() {
            let message = "a family belongs either to libraries or to a package";
            findings.add("matrix-invalid", message, sheet.at(steps!["family", i]));
        }
        if row.prefixes.is_empty() {
            findings.add("matrix-invalid", "no prefixes", sheet.at(steps!["family", i]));
        }
    }
    for (i, row) in file.renamed.iter().enumerate() {
        if row.until.as_ref().is_some_and(|until| *until >= row.since) {
            let message = "both names are read in some releases: leave out `until`";
            findings.add("matrix-invalid", message, sheet.at(steps!["renamed", i]));
        }
    }
    for (i, row) in file.unread.iter().enumerate() {
        if row.reader.is_some() != row.until.is_some() {
            let message = "`reader` and `until` go together";
            findings.add("matrix-invalid", message, sheet.at(steps!["unread", i]));
        }
    }
    let mut seen = Seen::new();
    let known = file.known.iter().enumerate().map(|(i, row)| ("known", i, row.names.iter().collect::<Vec<_>>()));
    let renamed = file.renamed.iter().enumerate().map(|(i, row)| ("renamed", i, row.names.keys().collect()));
    let unread = file.unread.iter().enumerate().map(|(i, row)| ("unread", i, row.names.iter().collect()));
    let spelled = file.spelled.iter().enumerate().map(|(i, row)| ("spelled", i, row.names.iter().collect()));
    for (table, i, names) in known.chain(renamed).chain(unread).chain(spelled) {
        let place = sheet.at(steps![table, i]);
        for name in names {
            let word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if !word || name.is_empty() {
                findings.add("matrix-invalid", format!("`{name}` is not the name of a variable"), place.clone());
            }
            seen.add(name, name, place.clone(), findings);
        }
    }
}
