//! `gpu-code.toml`: rows that say nothing.

use super::place::{Step, steps};
use super::{Book, Findings};

pub(super) fn check(book: &Book<'_>, findings: &mut Findings) {
    let Some(sheet) = &book.gpu_code else { return };
    for (i, row) in sheet.value.optional.iter().enumerate() {
        let at = || sheet.at(steps!["optional", i]);
        match (row.from, row.below) {
            (Some(from), Some(below)) if from >= below => {
                findings.add("matrix-invalid", format!("no capability is from {from} and below {below}"), at());
            }
            _ => {}
        }
    }
    for (i, row) in sheet.value.per_architecture.iter().enumerate() {
        if row.libraries.is_empty() {
            findings.add("matrix-invalid", "no libraries", sheet.at(steps!["per-architecture", i]));
        }
    }
}
