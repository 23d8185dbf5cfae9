//! Files that are damaged, hostile or something else: an answer in bounded time and memory, never a panic.

use std::time::{Duration, Instant};

use gpulock::elf::{Object, Problem, ReadAt, Unreadable};
use object::elf;
use proptest::prelude::*;

use super::fatbin::{container, piece};
use super::make::{Library, Symbol, Table, patch};
use super::rich::{self, rich};

fn read(bytes: &[u8]) -> Result<Object, Unreadable> {
    Object::read(&bytes)
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

/// A file whose symbol table has a million defined symbols with these names, each by its place in the string table.
fn million(strings: &[u8], name: impl Fn(u32) -> u32) -> Vec<u8> {
    let symbols = vec![Symbol::defined("first", 0)];
    let mut bytes = Library { soname: None, symbols, table: Table::SysV, ..Library::default() }.bytes();
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let table = bytes.len() as u64;
    for symbol in 0..1_000_000 {
        bytes.extend(name(symbol).to_le_bytes());
        bytes.extend([0x11, 0, 1, 0, 64, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0]);
    }
    let strings_at = bytes.len() as u64;
    bytes.extend(strings);
    reaching_to_its_end(&mut bytes);
    let hash = dynamic(&bytes, elf::DT_HASH);
    let count_at = number(&bytes, hash) as usize + 4;
    patch(&mut bytes, count_at, &1_000_000u32.to_le_bytes());
    for (tag, value) in [(elf::DT_SYMTAB, table), (elf::DT_STRTAB, strings_at), (elf::DT_STRSZ, strings.len() as u64)] {
        let at = dynamic(&bytes, tag);
        patch(&mut bytes, at, &value.to_le_bytes());
    }
    bytes
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Where the value of an entry of the dynamic segment is; its header is the second.
fn dynamic(bytes: &[u8], tag: i64) -> usize {
    let mut entry = number(bytes, 64 + 56 + 8) as usize;
    while number(bytes, entry) != tag as u64 {
        assert_ne!(number(bytes, entry), 0, "no entry {tag}");
        entry += 16;
    }
    entry + 8
}

/// Its first segment reaches to the end of what was put behind it.
fn reaching_to_its_end(bytes: &mut [u8]) {
    let size = (bytes.len() as u64).to_le_bytes();
    patch(bytes, 64 + 32, &size);
    patch(bytes, 64 + 40, &size);
}

#[test]
fn a_million_symbols() {
    let names: String = (0..1_000_000).map(|i| format!("\0{i:07}")).collect();
    let object = read(&million(format!("{names}\0").as_bytes(), |symbol| symbol * 8 + 1)).unwrap();
    assert_eq!(object.symbols.definitions().len(), 1_000_000);
    assert_eq!(object.damaged, []);
}

#[test]
fn a_million_symbols_with_long_names_that_overlap() {
    let name = "n".repeat(8000) + "\0";
    let object = read(&million(name.as_bytes(), |symbol| symbol % 4000 + 1)).unwrap();
    assert!(object.damaged[0].to_string().contains("overlap"), "{:?}", object.damaged);
    assert_eq!(object.symbols.definitions().len(), 0);
}

/// Each lookup of the name would go through all of them.
#[test]
fn a_million_symbols_with_one_name() {
    let object = read(&million(b"\0n\0", |_| 1)).unwrap();
    assert!(object.damaged[0].to_string().contains("1000000 definitions of one name"), "{:?}", object.damaged);
    assert_eq!(object.symbols.definitions().len(), 0);
}

/// The name of the library is read for each version, so that a long one is not kept thirty thousand times.
#[test]
fn a_long_name_for_thousands_of_versions() {
    let mut bytes = rich(Table::Gnu);
    let at = dynamic(&bytes, elf::DT_VERNEED);
    let versions = bytes.len().next_multiple_of(8);
    bytes.resize(versions, 0);
    bytes.extend([1u16, 30_000].map(u16::to_le_bytes).concat());
    bytes.extend([0u32, 16, 0].map(u32::to_le_bytes).concat());
    for left in (0..30_000u32).rev() {
        bytes.extend([0u32, 3 << 16, 500_000, if left > 0 { 16 } else { 0 }].map(u32::to_le_bytes).concat());
    }
    let strings = bytes.len() as u64;
    bytes.extend([&b"L".repeat(500_000)[..], b"\0\0"].concat());
    reaching_to_its_end(&mut bytes);
    let size = bytes.len() as u64 - strings;
    patch(&mut bytes, at, &(versions as u64).to_le_bytes());
    for (tag, value) in [(elf::DT_STRTAB, strings), (elf::DT_STRSZ, size)] {
        let at = dynamic(&bytes, tag);
        patch(&mut bytes, at, &value.to_le_bytes());
    }
    let object = read(&bytes).unwrap();
    assert!(
        object.damaged.iter().any(|damage| damage.what.contains("more names than any file")),
        "{:?}",
        object.damaged
    );
    assert!(object.version_needs.len() < 64, "{}", object.version_needs.len());
}

#[test]
fn a_run_path_or_a_dynamic_segment_without_end() {
    let path: &'static str = "/a:".repeat(2000).leak();
    for library in [
        Library { runpath: Some(path), ..Library::default() },
        Library { rpath: Some(path), ..Library::default() },
        Library { needed: vec!["a"; 5000], ..Library::default() },
    ] {
        let error = read(&library.bytes()).unwrap_err();
        assert!(error.what.contains("1024 folders") || error.what.contains("4096 entries"), "{error}");
    }
}

/// A hundred thousand section headers, all of one section that is most of the file.
#[test]
fn sections_that_overlap() {
    let start = Instant::now();
    let mut bytes = Library { sections: vec![(".nv_fatbin", vec![0xee; 1 << 20])], ..Library::default() }.bytes();
    let headers = number(&bytes, 40) as usize;
    let section = bytes[headers + 64..headers + 128].to_vec();
    let names = bytes[headers + 128..headers + 192].to_vec();
    let mut first = vec![0; 64];
    first[32..40].copy_from_slice(&100_002u64.to_le_bytes());
    first[40..44].copy_from_slice(&100_001u32.to_le_bytes());
    bytes.truncate(headers);
    bytes.extend([first, section.repeat(100_000), names].concat());
    patch(&mut bytes, 60, &[0, 0, 0xff, 0xff]);
    let object = read(&bytes).unwrap();
    assert!(object.damaged[0].what.contains(".nv_fatbin begins inside another"), "{:?}", object.damaged);
    assert_eq!(object.gpu_code.damaged.len(), 1);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

/// Each container ends where the outermost does, and only there it is seen that it is damaged.
#[test]
fn containers_in_each_other() {
    let start = Instant::now();
    const EACH: usize = 80;
    let size = 50_000 * EACH;
    let mut section = Vec::new();
    while section.len() < size {
        section.extend([0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0]);
        section.extend((size as u64 - section.len() as u64 - 8).to_le_bytes());
        // Of no GPU's kind, with the next container for a payload.
        section.extend(&piece(0x10, 0, 0, (0, 0), 16)[..64]);
    }
    section.extend([0xee; 16]);
    let object =
        Library { sections: vec![(".nv_fatbin", section.clone()), (".ldata", section)], ..Library::default() }.read();
    assert!(!object.gpu_code.damaged.is_empty() && !object.gpu_code_embedded.damaged.is_empty());
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn more_containers_that_differ_than_are_kept() {
    let piece = |i: u32| piece(2, 10 + i % 9000, u64::from(i / 9000) << 13, (1, 7), 0);
    let many: Vec<u8> = (0..90_000).flat_map(|i| container(&[piece(i), piece(i / 9000), piece(i % 9000)])).collect();
    let object = Library { sections: vec![(".nv_fatbin", many)], ..Library::default() }.read();
    let what = "more GPU code containers that differ";
    assert!(object.gpu_code.damaged.iter().all(|damage| damage.what.contains(what)), "{:?}", object.gpu_code.damaged);
    assert!(object.gpu_code.codes().count() <= 256 << 10);
}

#[test]
fn thousands_of_segments() {
    let mut bytes = rich(Table::Gnu);
    patch(&mut bytes, 56, &[0xff, 0xff]);
    bytes.resize(65_535 * 56 + 64, 0);
    let error = read(&bytes).unwrap_err();
    assert!(error.what.contains("65535 program headers"), "{error}");
}

/// A file of which only the beginning has content, and that is shorter than it was where `lost`.
struct Hollow {
    beginning: Vec<u8>,
    len: u64,
    lost: bool,
}

impl ReadAt for Hollow {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<usize> {
        let beginning = self.beginning.as_slice().read_at(offset, into)?;
        if beginning > 0 || self.lost {
            return Ok(beginning);
        }
        let count = (into.len() as u64).min(self.len.saturating_sub(offset)) as usize;
        into[..count].fill(0);
        Ok(count)
    }
}

/// Terabytes that take no room on the disk.
#[test]
fn holes() {
    let start = Instant::now();
    const LEN: u64 = 1 << 42;
    let hollow = |beginning: Vec<u8>| Hollow { beginning, len: LEN, lost: false };
    // A section of GPU code, up to the end.
    let mut bytes = rich(Table::Gnu);
    let section = number(&bytes, 40) as usize + 64;
    patch(&mut bytes, section + 24, &4096u64.to_le_bytes());
    patch(&mut bytes, section + 32, &(LEN - 4096).to_le_bytes());
    bytes.resize(bytes.len().max(4096), 0);
    let object = Object::read(&hollow(bytes)).unwrap();
    assert!(object.gpu_code.damaged.iter().any(|damage| damage.what.contains("between GPU code containers")));
    // Hash tables at the end of what has content: a chain that does not end, and buckets of gigabytes.
    for buckets in [1, u32::MAX] {
        let mut bytes = rich(Table::Gnu);
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        let entry = dynamic(&bytes, elf::DT_GNU_HASH);
        let table = bytes.len() as u64;
        patch(&mut bytes, entry, &table.to_le_bytes());
        bytes.extend([buckets, 1, 1, 0, 0, 0, 1].map(u32::to_le_bytes).concat());
        patch(&mut bytes, 64 + 32, &LEN.to_le_bytes());
        patch(&mut bytes, 64 + 40, &LEN.to_le_bytes());
        let damaged = Object::read(&hollow(bytes)).unwrap().damaged;
        assert!(
            damaged.iter().any(|damage| damage.what.contains("has no end") || damage.what.contains("than any library")),
            "{damaged:?}"
        );
    }
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[test]
fn a_file_that_shrinks_while_it_is_read() {
    for whole in rich::all() {
        for length in (4..whole.len()).step_by(7) {
            let shrunk = Hollow { beginning: whole[..length].to_vec(), len: whole.len() as u64, lost: true };
            match Object::read(&shrunk) {
                Ok(object) => {
                    object.symbols.imports().for_each(|import| drop(object.symbols.name(&shrunk, import.symbol)))
                }
                Err(error) => assert_eq!(error.problem, Problem::Damaged, "{error}"),
            }
        }
    }
}

/// Numbers at which something changes, and any others.
fn notable() -> impl Strategy<Value = u64> {
    let these = [0u64, 1, 7, 16, 64, 4096, 0xffff, 0x10000, 0x7fff_ffff, 0xffff_ffff, 1 << 40, u64::MAX >> 1, u64::MAX];
    prop_oneof![prop::sample::select(these.to_vec()), any::<u64>(), 0..2048u64]
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

    /// Numbers of the file as something else, wherever they are, and parts of other files among it.
    #[test]
    fn any_mutation_of_rich_files(
        file in any::<prop::sample::Index>(),
        other in any::<prop::sample::Index>(),
        numbers in prop::collection::vec((any::<prop::sample::Index>(), notable(), 0..4usize), 0..6),
        graft in (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..200usize),
    ) {
        let all = rich::all();
        let mut bytes = file.get(&all).clone();
        for (at, value, width) in numbers {
            let width = 1 << width;
            let at = at.index(bytes.len() - width) / width * width;
            patch(&mut bytes, at, &value.to_le_bytes()[..width]);
        }
        let (from, to, size) = graft;
        let other = other.get(&all);
        let from = from.index(other.len());
        let graft = &other[from..other.len().min(from + size)];
        let to = to.index(bytes.len());
        bytes.splice(to..(to + graft.len()).min(bytes.len()), graft.iter().copied());
        if let Ok(object) = read(&bytes) {
            for import in object.symbols.imports() {
                object.symbols.lookup(&import);
                let _ = object.symbols.name(&bytes.as_slice(), import.symbol);
            }
        }
    }

    /// Whatever becomes of containers: none is counted twice, and where none is found it is said why.
    #[test]
    fn any_mutation_of_containers(
        section in any::<prop::sample::Index>(),
        numbers in prop::collection::vec((any::<prop::sample::Index>(), notable(), 0..4usize), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = section.get(&rich::containers()).clone();
        for (at, value, width) in numbers {
            let width = 1 << width;
            let at = at.index(bytes.len() - width) / width * width;
            patch(&mut bytes, at, &value.to_le_bytes()[..width]);
        }
        bytes.truncate(bytes.len() - cut.index(bytes.len()) / 8);
        let sections = vec![(".nv_fatbin", bytes.clone()), (".ldata", bytes.clone())];
        let object = Library { sections, ..Library::default() }.read();
        for found in [&object.gpu_code, &object.gpu_code_embedded] {
            let pieces: usize = found.codes().map(|(_, count)| count).sum();
            prop_assert!(found.len() * 16 + pieces * 64 <= bytes.len(), "{:?}", found);
        }
        prop_assert!(!object.gpu_code.is_empty() || !object.gpu_code.damaged.is_empty());
    }

    #[test]
    fn any_bytes_behind_an_elf_header(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let mut file = rich(Table::Gnu)[..64].to_vec();
        file.extend(bytes);
        let _ = read(&file);
    }
}
