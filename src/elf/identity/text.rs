//! Versions in the read-only texts of a library.

use memchr::memmem::find;

use super::{Reading, Subject};

/// Bytes that are searched at a time, and by how much two of them overlap.
const CHUNK: usize = 128 << 10;
const OVERLAP: usize = 64;
/// Bytes before what is found.
const BEFORE: usize = 16;
/// The largest `.rodata` that is searched.
const MOST: u64 = 32 << 20;

/// `Cuda compilation tools, release 12.8, V12.8.93`.
pub(super) fn compiler(subject: &Subject<'_, '_>) -> Option<Reading> {
    search(subject, b"Cuda compilation tools, release ", |_, after| {
        let version = after.split_once(", V")?.1;
        Some(Reading { version: dotted(version)?, method: "text \"Cuda compilation tools\"".into() })
    })
}

/// `NCCL version 2.27.3+cuda12.9`.
pub(super) fn nccl(subject: &Subject<'_, '_>) -> Option<Reading> {
    search(subject, b"NCCL version ", |_, after| {
        Some(Reading { version: dotted(after)?, method: "text \"NCCL version\"".into() })
    })
}

/// `(9 * 10000 + 10 * 100 + 2)`, `(8 * 1000 + 9 * 100 + 7)`: a macro of cuDNN's header in the text of an assertion.
pub(super) fn cudnn(subject: &Subject<'_, '_>) -> Option<Reading> {
    const THOUSANDS: &str = "000 + ";
    search(subject, THOUSANDS.as_bytes(), |before, after| {
        let (major, factor) = before.rsplit_once('(')?.1.split_once(" * 1")?;
        let (minor, rest) = number(after)?;
        let (patch, rest) = number(rest.strip_prefix(" * 100 + ")?)?;
        let text = format!("({major} * 1{factor}{THOUSANDS}{minor} * 100 + {patch})");
        let genuine = matches!(factor, "" | "0") && rest.starts_with(')');
        let major = major.parse().ok().filter(|_| genuine)?;
        Some(Reading::new(&[major, minor, patch], format!("text \"{text}\"")))
    })
}

/// What is acceptable of the texts around `needle` in `.rodata`: a few characters before it, more behind it.
fn search<T>(subject: &Subject<'_, '_>, needle: &[u8], accept: impl Fn(&str, &str) -> Option<T>) -> Option<T> {
    let section = subject.layout.section(".rodata")?;
    let end = section.offset.saturating_add(section.size.min(MOST));
    let mut chunk = vec![0; CHUNK];
    let mut at = section.offset;
    while at < end {
        let size = (end - at).min(CHUNK as u64) as usize;
        let count = subject.source.some(at, &mut chunk[..size]).ok()?;
        let bytes = &chunk[..count];
        let mut from = 0;
        while let Some(inside) = find(&bytes[from..], needle) {
            let before = &bytes[(from + inside).saturating_sub(BEFORE)..from + inside];
            from += inside + needle.len();
            let after = &bytes[from..bytes.len().min(from + OVERLAP)];
            if let Some(found) = accept(&String::from_utf8_lossy(before), &String::from_utf8_lossy(after)) {
                return Some(found);
            }
        }
        if count < CHUNK {
            return None;
        }
        // Long enough for the needle, what stands before it and the version behind it.
        at += (CHUNK - 2 * OVERLAP) as u64;
    }
    None
}

/// The dotted numbers that a text begins with, at least two.
pub(super) fn dotted(text: &str) -> Option<String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let version = text[..end].trim_end_matches('.');
    let numbers = version.split('.').all(|number| number.parse::<u32>().is_ok());
    (numbers && version.contains('.')).then(|| version.to_owned())
}

fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    Some((text[..end].parse().ok()?, &text[end..]))
}
