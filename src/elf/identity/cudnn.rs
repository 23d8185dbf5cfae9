//! The version of cuDNN's libraries: exported objects, the constants of their version checks, texts, and what the shim
//! puts into the names of the libraries that it opens.

use memchr::memmem::find;

use super::super::read::u32_at;
use super::constant::{self, pointers};
use super::{Digits, Reading, Subject, text};

/// Objects of four bytes: major, minor and patch as 16, 8 and 8 bits.
const OBJECTS: [&str; 5] = [
    "cudnn_graph_version",
    "cudnn_ops_infer_version",
    "cudnn_adv_infer_version",
    "cudnn_cnn_infer_version",
    "cudnn_ops_train_version",
];
/// Functions that compare their own version with that of others, or return it.
const FUNCTIONS: [&str; 11] = [
    "cudnnGetVersion",
    "cudnnGraphVersionCheck",
    "cudnnOpsVersionCheck",
    "cudnnCnnVersionCheck",
    "cudnnAdvVersionCheck",
    "cudnnOpsInferVersionCheck",
    "cudnnOpsTrainVersionCheck",
    "cudnnCnnInferVersionCheck",
    "cudnnCnnTrainVersionCheck",
    "cudnnAdvInferVersionCheck",
    "cudnnAdvTrainVersionCheck",
];
/// With which the shim makes the names of the libraries that it opens.
const NAME_FORMAT: &[u8] = b"%s.%d.%d.%d\0";
/// The shim's code has 64 KB.
const MOST_CODE: u64 = 1 << 20;

/// `part` is none for the shim.
pub(super) fn readings(subject: &Subject<'_, '_>, part: Option<&str>) -> Vec<Reading> {
    let mut readings: Vec<Reading> = OBJECTS.iter().filter_map(|object| exported(subject, object)).collect();
    // Version 8 and later have their version in these functions in one of two forms; below there are no parts.
    let plausible = |value: u32| (8000..9000).contains(&value) || (90_000..1_000_000).contains(&value);
    for function in FUNCTIONS {
        let value = constant::only(subject, function, plausible);
        if let Some(numbers) = value.and_then(|value| Digits::ByMagnitude.split(value)) {
            readings.push(Reading::new(&numbers, format!("constant in {function}")));
        }
    }
    if readings.is_empty() {
        readings.extend(if part.is_none() { shim(subject) } else { text::cudnn(subject) });
    }
    readings
}

fn exported(subject: &Subject<'_, '_>, object: &str) -> Option<Reading> {
    let symbol = subject.symbols.find(object).next()?.symbol;
    let (address, _) = subject.symbols.value(subject.source, symbol).ok()?;
    let bytes = constant::read(subject, address, 4).filter(|bytes| bytes.len() == 4)?;
    let value = u32_at(&bytes, 0);
    let numbers = [value >> 16, value >> 8 & 0xff, value & 0xff];
    (7..100).contains(&numbers[0]).then(|| Reading::new(&numbers, format!("exported object {object}")))
}

/// The shim calls `snprintf(.., "%s.%d.%d.%d", name, major, minor, patch)`: major in R8D, minor in R9D, patch pushed.
fn shim(subject: &Subject<'_, '_>) -> Option<Reading> {
    if !subject.x86 {
        return None;
    }
    let section = subject.layout.section(".rodata").filter(|section| section.size <= MOST_CODE)?;
    let constants = subject.source.bytes(section.offset, section.size, ".rodata").ok()?;
    let inside = find(&constants, NAME_FORMAT)?;
    let format = subject.layout.address(section.offset.checked_add(inside as u64)?)?;
    let (address, size) = subject.layout.code().next()?;
    let code = constant::read(subject, address, size.min(MOST_CODE))?;
    let mut versions: Vec<[u32; 3]> = pointers(&code, address)
        .into_iter()
        .filter(|(_, target)| *target == format)
        .filter_map(|(at, _)| arguments(&code[at.saturating_sub(64)..(at + 96).min(code.len())], at.min(64)))
        .collect();
    versions.sort_unstable();
    versions.dedup();
    if let [version] = versions[..] {
        return Some(Reading::new(&version, "names of the libraries that it opens"));
    }
    None
}

/// The three numbers nearest to the place `at` where the format is loaded.
fn arguments(code: &[u8], at: usize) -> Option<[u32; 3]> {
    let nearest = |opcode: &[u8], size: usize| {
        let found = (0..code.len().saturating_sub(opcode.len() + size - 1)).filter(|i| code[*i..].starts_with(opcode));
        let place = found.min_by_key(|i| i.abs_diff(at))? + opcode.len();
        Some(if size == 1 { u32::from(code[place]) } else { u32_at(code, place) })
    };
    let (major, minor, patch) = (nearest(&[0x41, 0xb8], 4)?, nearest(&[0x41, 0xb9], 4)?, nearest(&[0x6a], 1)?);
    (major < 100 && minor < 100 && patch < 100).then_some([major, minor, patch])
}
