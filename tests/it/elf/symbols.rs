//! Lookup by glibc's rules.

use gpulock::elf::{Found, Object, hash_name};

use super::make::{HIDDEN, Library, Symbol, Table};

/// Asks for `f`, with a version or without.
fn asking(version: Option<&'static str>) -> Object {
    let needs = version.map(|version| ("libx.so.1", version, 2)).into_iter().collect();
    let number = if version.is_some() { 2 } else { 0 };
    Library { needs, symbols: vec![Symbol::asked("f", number)], table: Table::SysV, ..Library::default() }.read()
}

/// Has `f` with these version numbers: 1 is the base, 2 is A, 3 is B, 4 is C.
fn having(numbers: &[u16]) -> Object {
    let symbols = numbers.iter().map(|number| Symbol::defined("f", *number)).collect();
    Library { defines: vec!["libx.so.1", "A", "B", "C"], symbols, ..Library::default() }.read()
}

fn found(version: Option<&'static str>, numbers: &[u16]) -> Found {
    having(numbers).symbols.lookup(&asking(version).symbols.imports().next().unwrap())
}

#[test]
fn with_a_version() {
    assert_eq!(found(Some("A"), &[2]), Found::Yes);
    assert_eq!(found(Some("A"), &[2 | HIDDEN]), Found::Yes);
    assert_eq!(found(Some("A"), &[3]), Found::OtherVersion);
    assert_eq!(found(Some("A"), &[3, 2 | HIDDEN]), Found::Yes);
    // A visible symbol of no version serves everyone, a hidden one does not.
    assert_eq!(found(Some("A"), &[1]), Found::Yes);
    assert_eq!(found(Some("A"), &[1 | HIDDEN]), Found::OtherVersion);
    assert_eq!(found(Some("A"), &[]), Found::No);
}

#[test]
fn without_a_version() {
    assert_eq!(found(None, &[1]), Found::Yes);
    assert_eq!(found(None, &[2]), Found::Yes);
    assert_eq!(found(None, &[3]), Found::Yes);
    assert_eq!(found(None, &[3, 4 | HIDDEN]), Found::Yes);
    assert_eq!(found(None, &[3 | HIDDEN]), Found::OtherVersion);
    assert_eq!(found(None, &[3, 4]), Found::OtherVersion);
}

#[test]
fn a_library_without_versions_serves_everyone() {
    let plain = Library { symbols: vec![Symbol::defined("f", 0)], ..Library::default() }.read();
    let other = Library { symbols: vec![Symbol::defined("g", 0)], ..Library::default() }.read();
    for version in [None, Some("A")] {
        let asking = asking(version);
        let import = asking.symbols.imports().next().unwrap();
        assert_eq!(plain.symbols.lookup(&import), Found::Yes);
        assert_eq!(other.symbols.lookup(&import), Found::No);
    }
}

#[test]
fn weak_and_many() {
    let names: Vec<&'static str> = (0..3000).map(|i| &*format!("symbol_{i}").leak()).collect();
    for table in [Table::Gnu, Table::SysV] {
        let symbols = names.iter().map(|name| Symbol { weak: true, ..Symbol::defined(name, 0) }).collect();
        let object = Library { symbols, table, ..Library::default() }.read();
        assert_eq!(object.symbols.definitions().len(), names.len());
        for name in &names {
            let found = object.symbols.find(name).next().unwrap();
            assert_eq!((found.name, found.weak), (hash_name(name.as_bytes()), true));
        }
        assert_eq!(object.symbols.find("symbol_3000").len(), 0);
    }
}
