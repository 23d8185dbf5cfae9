//! `message.toml`: numbers that are none, answers to nothing, and names that are there twice.

use super::place::{Step, steps};
use super::{Book, Findings, Seen};

pub(super) fn check(book: &Book<'_>, findings: &mut Findings) {
    let Some(sheet) = &book.message else { return };
    let file = &sheet.value;
    let mut seen = Seen::new();
    for (i, row) in file.components.iter().enumerate() {
        let place = || sheet.at(steps!["component", i, "statuses"]);
        for (number, names) in &row.statuses {
            if number.parse::<u32>().is_err() || names.is_empty() {
                findings.add("matrix-invalid", format!("`{number}` is no number with names"), place());
            }
            for name in names {
                seen.add((&row.name, name), name, place(), findings);
            }
        }
    }
    for (i, row) in file.answers.iter().enumerate() {
        let place = |key: &'static str| sheet.at(steps!["answer", i, key]);
        if row.texts.is_empty() && row.numbers.is_empty() {
            findings.add("matrix-invalid", "an answer to nothing", place("title"));
        }
        if row.component.is_none() != row.numbers.is_empty() {
            findings.add("matrix-invalid", "`component` and `numbers` go together", place("title"));
        }
        let Some(name) = &row.component else { continue };
        match file.components.iter().find(|component| component.name == *name) {
            None => findings.add("matrix-reference", format!("there is no component `{name}`"), place("component")),
            Some(component) => {
                for number in row.numbers.iter().filter(|number| !component.statuses.contains_key(&number.to_string()))
                {
                    findings.add("matrix-reference", format!("{name} has no status {number}"), place("numbers"));
                }
            }
        }
    }
}
