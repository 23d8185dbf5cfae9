//! Constants in x86-64 machine code: the numbers that a version function stores or returns.
//!
//! The code is not decoded: instructions are found by their bytes, and what is found must be plausible and the only one.

use super::super::read::{u32_at, u64_at};
use super::Subject;

/// Version functions are short; what lies beyond belongs to others where the symbol tells no size.
const LONGEST: u64 = 16 << 10;
const UNSIZED: u64 = 256;

/// The only plausible constant of a function: stored, else loaded, else stored by a function that it calls.
pub(super) fn only(subject: &Subject<'_, '_>, function: &str, plausible: impl Fn(u32) -> bool) -> Option<u32> {
    let (code, address) = body(subject, function)?;
    let single = |values: Vec<u32>| {
        let mut values: Vec<u32> = values.into_iter().filter(|value| plausible(*value)).collect();
        values.sort_unstable();
        values.dedup();
        if let [value] = values[..] { Some(value) } else { None }
    };
    single(stores(&code)).or_else(|| single(loads(&code))).or_else(|| {
        let called = calls(&code, address).into_iter().filter(|target| subject.layout.is_code(*target));
        single(called.take(16).filter_map(|target| read(subject, target, 32)).flat_map(|code| stores(&code)).collect())
    })
}

/// All constants that a function stores, in their order.
pub(super) fn stored(subject: &Subject<'_, '_>, function: &str) -> Vec<u32> {
    body(subject, function).map(|(code, _)| stores(&code)).unwrap_or_default()
}

/// The machine code of an exported function, and its address.
pub(super) fn body(subject: &Subject<'_, '_>, function: &str) -> Option<(Vec<u8>, u64)> {
    if !subject.x86 {
        return None;
    }
    let symbol = subject.symbols.find(function).next()?.symbol;
    let (address, size) = subject.symbols.value(subject.source, symbol).ok()?;
    let size = if size == 0 { UNSIZED } else { size.min(LONGEST) };
    Some((read(subject, address, size)?, address))
}

/// Up to `size` bytes at an address.
pub(super) fn read(subject: &Subject<'_, '_>, address: u64, size: u64) -> Option<Vec<u8>> {
    let (offset, rest) = subject.layout.place(address)?;
    let mut bytes = vec![0; size.min(rest) as usize];
    let count = subject.source.some(offset, &mut bytes).ok()?;
    bytes.truncate(count);
    Some(bytes)
}

/// Constants of `mov dword [..], imm32`: C7 /0.
fn stores(code: &[u8]) -> Vec<u32> {
    let store = |at: usize| {
        let [0xc7, mode] = code[at..at + 2] else { return None };
        if mode & 0x38 != 0 {
            return None;
        }
        let (kind, register) = (mode >> 6, mode & 7);
        let index = usize::from(register == 4 && kind != 3);
        let displacement = match kind {
            0 if register == 5 => 4,
            0 => 0,
            1 => 1,
            2 => 4,
            // A register, not memory.
            _ => return None,
        };
        let constant = at + 2 + index + displacement;
        (constant + 4 <= code.len()).then(|| u32_at(code, constant))
    };
    (0..code.len().saturating_sub(1)).filter_map(store).collect()
}

/// Constants of `mov r32, imm32`: B8+r.
fn loads(code: &[u8]) -> Vec<u32> {
    let load = |at: usize| ((0xb8..=0xbf).contains(&code[at])).then(|| u32_at(code, at + 1));
    (0..code.len().saturating_sub(4)).filter_map(load).collect()
}

/// Targets of `call rel32`.
fn calls(code: &[u8], address: u64) -> Vec<u64> {
    let call =
        |at: usize| (code[at] == 0xe8).then(|| relative(address.wrapping_add(at as u64 + 5), u32_at(code, at + 1)));
    (0..code.len().saturating_sub(4)).filter_map(call).collect()
}

/// Targets of `lea r64, [rip + disp32]`, each with the place of the instruction in the code.
pub(super) fn pointers(code: &[u8], address: u64) -> Vec<(usize, u64)> {
    let lea = |at: usize| {
        let genuine = matches!(code[at], 0x48 | 0x4c) && code[at + 1] == 0x8d && code[at + 2] & 0xc7 == 5;
        genuine.then(|| (at, relative(address.wrapping_add(at as u64 + 7), u32_at(code, at + 3))))
    };
    (0..code.len().saturating_sub(6)).filter_map(lea).collect()
}

fn relative(from: u64, displacement: u32) -> u64 {
    from.wrapping_add_signed(i64::from(displacement as i32))
}

/// A place on the stack, relative to RSP.
pub(super) type Slot = i32;

/// Where the eight bytes `text`, loaded with `movabs`, are stored: `48 B8 text`, then `48 89 44/84 24 slot`.
pub(super) fn slot_of(code: &[u8], text: &[u8; 8]) -> Option<Slot> {
    let at = code.windows(10).position(|bytes| bytes[..2] == [0x48, 0xb8] && bytes[2..] == *text)?;
    match code.get(at + 10..at + 18)? {
        [0x48, 0x89, 0x44, 0x24, slot, ..] => Some(Slot::from(*slot as i8)),
        [0x48, 0x89, 0x84, 0x24, slot @ ..] => Some(u32_at(slot, 0) as Slot),
        _ => None,
    }
}

/// The text that code puts together at `slot`, whose length it stores at `slot - 8` (a `std::string` of GCC).
pub(super) fn text_at(code: &[u8], slot: Slot) -> Option<Vec<u8>> {
    let mut text = [0; 16];
    let mut length = None;
    let mut known = 0u16;
    for at in 0..code.len() {
        let Some((to, size, value)) = store_to_stack(code, at) else { continue };
        if size == 8 && to == slot.wrapping_sub(8) {
            length = length.or(Some(value));
        }
        let Ok(inside) = usize::try_from(to.wrapping_sub(slot)) else { continue };
        if inside + size > text.len() {
            continue;
        }
        for (i, byte) in value.to_le_bytes()[..size].iter().enumerate() {
            // What is stored first belongs to this text; the stack is used again later.
            if known & 1 << (inside + i) == 0 {
                known |= 1 << (inside + i);
                text[inside + i] = *byte;
            }
        }
    }
    let length = usize::try_from(length?).ok().filter(|length| *length < text.len())?;
    (known.trailing_ones() as usize >= length).then(|| text[..length].to_vec())
}

/// A store of a known value relative to RSP: where, how many bytes, what.
fn store_to_stack(code: &[u8], at: usize) -> Option<(Slot, usize, u64)> {
    let rest = &code[at..];
    // The instruction without its place, how wide it stores, and how many bytes its constant has.
    let (opcode, size, constant) = match rest {
        [0x66, 0xc7, ..] => (2, 2, 2),
        [0x48, 0xc7, ..] => (2, 8, 4),
        [0x66, 0x44, 0x89, ..] => (3, 2, 0),
        [0x66, 0x89, ..] => (2, 2, 0),
        [0x48, 0x89, ..] => (2, 8, 0),
        // With one of the prefixes above it was another instruction.
        [0xc7, ..] if at == 0 || !matches!(code[at - 1], 0x48 | 0x66) => (1, 4, 4),
        [0xc6, ..] => (1, 1, 1),
        _ => return None,
    };
    let (mode, sib) = (*rest.get(opcode)?, *rest.get(opcode + 1)?);
    let place = opcode + 2;
    let (slot, after) = match (mode & 0xc7, sib) {
        (0x44, 0x24) => (Slot::from(*rest.get(place)? as i8), place + 1),
        (0x84, 0x24) if rest.len() >= place + 4 => (u32_at(rest, place) as Slot, place + 4),
        _ => return None,
    };
    let value = match constant {
        0 => {
            let register = mode >> 3 & 7;
            let extended = rest[1] == 0x44;
            loaded(&code[..at], register, extended, size)?
        }
        _ if mode & 0x38 != 0 => return None,
        1 => u64::from(*rest.get(after)?),
        2 => u64::from(u16::from_le_bytes([*rest.get(after)?, *rest.get(after + 1)?])),
        _ if rest.len() >= after + 4 => i64::from(u32_at(rest, after) as i32) as u64,
        _ => return None,
    };
    Some((slot, size, value))
}

/// The constant that was last loaded into a register: `B8+r imm32`, or `48 B8+r imm64` for eight bytes.
fn loaded(before: &[u8], register: u8, extended: bool, size: usize) -> Option<u64> {
    let opcode = 0xb8 + register;
    (0..before.len()).rev().find_map(|at| {
        let prefix = at.checked_sub(1).map(|at| before[at]);
        if before[at] != opcode {
            return None;
        }
        match (size, prefix) {
            (8, Some(0x48)) => before.get(at + 1..at + 9).map(|bytes| u64_at(bytes, 0)),
            (2, Some(0x41)) if extended => before.get(at + 1..at + 5).map(|bytes| u32_at(bytes, 0).into()),
            (2, _) if !extended => before.get(at + 1..at + 5).map(|bytes| u32_at(bytes, 0).into()),
            _ => None,
        }
    })
}
