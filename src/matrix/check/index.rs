//! `index.toml`, and which files there may be at all.

use super::place::{Step, steps};
use super::{Book, Findings};
use crate::diag::{Evidence, did_you_mean};
use crate::matrix::files::{Files, SINGLE};
use crate::python::index_address;

/// Folders of the matrix, and how their files end.
const FOLDERS: [(&str, &str); 4] =
    [("cuda/", ".toml"), ("cudnn/", ".toml"), ("torch/", ".toml"), ("snapshot/", ".jsonl")];

/// A file that nothing reads is a mistyped name.
pub(super) fn files(files: &Files, findings: &mut Findings) {
    for path in files.paths("", "") {
        let single = SINGLE.contains(&path);
        let in_folder = FOLDERS.iter().any(|(folder, suffix)| {
            path.strip_prefix(folder).is_some_and(|rest| rest.ends_with(suffix) && !rest.contains('/'))
        });
        if single || in_folder {
            continue;
        }
        let name = files.name(path).into_owned();
        let evidence = Evidence::observed(name.clone(), "no such file in a matrix");
        let folder = path.split_inclusive('/').next().filter(|folder| folder.ends_with('/'));
        let known = SINGLE.into_iter().chain(FOLDERS.map(|(folder, _)| folder));
        let fix = match did_you_mean(folder.unwrap_or(path), known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "remove it".into(),
        };
        findings.fixable("matrix-invalid", format!("{name} is a file that nothing reads"), evidence, fix);
    }
}

pub(super) fn check(book: &Book<'_>, findings: &mut Findings) {
    let Some(sheet) = &book.index else { return };
    let rows = &sheet.value.indexes;
    for (i, row) in rows.iter().enumerate() {
        if let Some(first) = rows[..i].iter().position(|other| other.name == row.name) {
            let at = |row| sheet.at(steps!["index", row, "name"]);
            findings.twice(format_args!("index `{}`", row.name), at(i), at(first));
        }
        let why = match index_address(&row.url) {
            Ok(address) if address == row.url => None,
            Ok(address) => Some(format!("it is written {address}")),
            Err(why) => Some(why),
        };
        if let Some(why) = why {
            let message = format!("`{}` is not the address of an index: {why}", row.url);
            findings.add("matrix-invalid", message, sheet.at(steps!["index", i, "url"]));
        }
        if row.default && rows[..i].iter().any(|other| other.default) {
            findings.add("matrix-duplicate", "a second default index", sheet.at(steps!["index", i, "default"]));
        }
    }
    if sheet.whole && !rows.iter().any(|row| row.default) {
        findings.fixable("matrix-invalid", "no index is the default", sheet.at(&[]), "say `default = true` on one");
    }
}
