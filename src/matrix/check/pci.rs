//! `pci.toml`: numbers that are none, devices that are there twice, and chips of a capability that nobody knows.

use super::place::{Step, steps};
use super::{Book, Findings, Seen};

pub(super) fn check(book: &Book<'_>, findings: &mut Findings) {
    let Some(sheet) = &book.pci else { return };
    let mut seen = Seen::new();
    for (i, row) in sheet.value.chips.iter().enumerate() {
        for number in row.devices.keys() {
            let place = || sheet.at(steps!["chip", i, "devices", number.as_str()]);
            let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            if number.len() != 4 || !number.bytes().all(is_digit) {
                let message = format!("`{number}` is no device number: four hexadecimal digits in lower case");
                findings.add("matrix-invalid", message, place());
            }
            seen.add(number, number, place(), findings);
        }
        let Some(gpu) = &book.gpu else { continue };
        if gpu.whole && !gpu.value.gpus.iter().any(|known| known.capability == row.capability) {
            let message = format!("{} has the unknown capability {}", row.name, row.capability);
            findings.dangling(message, sheet.at(steps!["chip", i, "capability"]), "gpu.toml");
        }
    }
}
