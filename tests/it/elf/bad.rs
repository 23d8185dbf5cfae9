//! Files that are damaged, hostile or something else: an answer in bounded time and memory, never a panic.

use std::time::{Duration, Instant};

use gpulock::elf::{Object, Problem, Unreadable};
use proptest::prelude::*;

use super::fatbin::{container, piece};
use super::make::{Library, Symbol, Table, patch};

fn read(bytes: &[u8]) -> Result<Object, Unreadable> {
    Object::read(&bytes)
}

/// A file with everything in it.
fn rich(table: Table) -> Vec<u8> {
    let code = container(&[piece(2, 90, 0x11, (1, 7), 64), piece(1, 90, 0x11, (8, 7), 32)]);
    Library {
        soname: Some("libcudnn_ops.so.9"),
        needed: vec!["libc.so.6"],
        defines: vec!["libcudnn_ops.so.9", "A"],
        needs: vec![("libc.so.6", "GLIBC_2.17", 3)],
        symbols: vec![
            Symbol::asked("malloc", 3),
            Symbol::defined("cudnn_ops_infer_version", 2),
            Symbol::defined("cudnnOpsVersionCheck", 2),
        ],
        sections: vec![(".nv_fatbin", [code.clone(), code.clone()].concat()), (".rodata", code)],
        table,
        ..Library::default()
    }
    .bytes()
}

#[test]
fn what_is_no_elf_file() {
    for bytes in [&b""[..], b"\x7fEL", b"GROUP ( libc.so.6 )", &[0; 4096]] {
        let error = read(bytes).unwrap_err();
        assert_eq!((error.problem, error.offset), (Problem::NotElf, 0), "{error}");
    }
}

#[test]
fn other_classes_are_named() {
    let with = |class: u8, order: u8| {
        let mut bytes = rich(Table::Gnu);
        patch(&mut bytes, 4, &[class, order]);
        read(&bytes).unwrap_err()
    };
    for (error, what) in
        [(with(1, 1), "32-bit little-endian"), (with(2, 2), "64-bit big-endian"), (with(9, 1), "class 9")]
    {
        assert_eq!(error.problem, Problem::Unsupported);
        assert!(error.to_string().contains(what), "{error}");
    }
}

#[test]
fn every_truncation() {
    for table in [Table::Gnu, Table::SysV] {
        let whole = rich(table);
        for length in 4..whole.len() {
            match read(&whole[..length]) {
                Ok(object) => assert!(!object.damaged.is_empty(), "{length}"),
                Err(error) => assert_ne!(error.problem, Problem::NotElf, "{length}: {error}"),
            }
        }
        assert!(read(&whole).unwrap().damaged.is_empty());
    }
}

/// Every number of the file, in each of its places, as something that it should not be.
#[test]
fn extreme_numbers_everywhere() {
    let start = Instant::now();
    let whole = rich(Table::Gnu);
    for at in (0..whole.len() - 8).step_by(4) {
        for value in [0, 1, u64::MAX, u64::MAX >> 1, 0xffff_ffff, whole.len() as u64, 16] {
            let mut bytes = whole.clone();
            patch(&mut bytes, at, &value.to_le_bytes());
            let _ = read(&bytes);
            patch(&mut bytes, at, &whole[at..at + 8]);
            patch(&mut bytes, at, &(value as u32).to_le_bytes());
            let _ = read(&bytes);
        }
    }
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[test]
fn versions_that_lead_in_a_circle() {
    let mut bytes = rich(Table::Gnu);
    // The last defined version names the first one as the next: distances are unsigned, so that it lies far behind.
    let base = bytes.windows(8).position(|b| b == [1, 0, 1, 0, 1, 0, 1, 0]).unwrap();
    patch(&mut bytes, base + 20 + 8 + 16, &u32::MAX.to_le_bytes());
    let object = read(&bytes).unwrap();
    assert!(!object.damaged.is_empty());
    // One that is its own name's place again and again.
    patch(&mut bytes, base + 16, &4u32.to_le_bytes());
    let _ = read(&bytes);
}

/// A file whose symbol table has a million times the same defined symbol, with a name of that length.
fn million(name: usize) -> Vec<u8> {
    let name: &'static str = "n".repeat(name).leak();
    let symbols = vec![Symbol::defined(name, 0)];
    let mut bytes = Library { soname: None, symbols, table: Table::SysV, ..Library::default() }.bytes();
    let number = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let table = bytes.len() as u64;
    let symbol = [&1u32.to_le_bytes()[..], &[0x11, 0, 1, 0], &64u64.to_le_bytes(), &4u64.to_le_bytes()].concat();
    bytes.extend(symbol.repeat(1_000_000));
    // The segment reaches to the new end; its header is the first, that of the dynamic segment the second.
    let size = bytes.len() as u64;
    patch(&mut bytes, 64 + 32, &size.to_le_bytes());
    patch(&mut bytes, 64 + 40, &size.to_le_bytes());
    let mut entry = number(&bytes, 64 + 56 + 8) as usize;
    loop {
        match number(&bytes, entry) {
            0 => return bytes,
            6 => patch(&mut bytes, entry + 8, &table.to_le_bytes()),
            4 => {
                let hash = number(&bytes, entry + 8) as usize;
                patch(&mut bytes, hash + 4, &1_000_000u32.to_le_bytes());
            }
            _ => {}
        }
        entry += 16;
    }
}

#[test]
fn a_million_symbols() {
    let object = read(&million(8)).unwrap();
    assert_eq!(object.symbols.definitions().len(), 1_000_000);
    assert_eq!(object.damaged, []);
}

#[test]
fn a_million_symbols_with_one_long_name() {
    let object = read(&million(5000)).unwrap();
    assert!(object.damaged[0].to_string().contains("overlap"), "{:?}", object.damaged);
    assert_eq!(object.symbols.definitions().len(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_change_of_a_file(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12), cut in any::<prop::sample::Index>(), sysv in any::<bool>()) {
        let mut bytes = rich(if sysv { Table::SysV } else { Table::Gnu });
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let _ = read(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        let _ = read(&bytes);
    }

    #[test]
    fn any_bytes_as_gpu_code(bytes in prop::collection::vec(any::<u8>(), 0..400), at in any::<prop::sample::Index>()) {
        let mut section = [container(&[piece(2, 80, 0x11, (1, 7), 24)]), container(&[piece(1, 80, 0x11, (8, 0), 8)])].concat();
        let at = at.index(section.len());
        for (place, byte) in section[at..].iter_mut().zip(&bytes) {
            *place = *byte;
        }
        let object = Library { sections: vec![(".nv_fatbin", section.clone()), (".rodata", section)], ..Library::default() }.read();
        prop_assert!(object.gpu_code.len() <= 4);
    }

    #[test]
    fn any_bytes_behind_an_elf_header(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let mut file = rich(Table::Gnu)[..64].to_vec();
        file.extend(bytes);
        let _ = read(&file);
    }
}
