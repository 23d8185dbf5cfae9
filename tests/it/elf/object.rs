//! The dynamic segment: names, run paths, versions, stack; with and without section headers.

use gpulock::elf::{Kind, Machine, Object, Stack};
use object::elf;

use super::make::{Library, Symbol, Table, patch};

fn library() -> Library {
    Library {
        soname: Some("libcudnn.so.9"),
        needed: vec!["libc.so.6", "libz.so.1"],
        runpath: Some("$ORIGIN:$ORIGIN/../../cublas/lib"),
        rpath: Some("/opt/lib"),
        flags_1: elf::DF_1_NODEFLIB.into(),
        defines: vec!["libcudnn.so.9", "V9"],
        needs: vec![
            ("libc.so.6", "GLIBC_2.4", 3),
            ("libc.so.6", "GLIBC_2.17", 4),
            ("libstdc++.so.6", "CXXABI_1.3.9", 5),
        ],
        symbols: vec![Symbol::asked("malloc", 3), Symbol::asked("free", 0), Symbol::defined("cudnnCreate", 2)],
        ..Library::default()
    }
}

fn assert_whole(object: &Object) {
    assert_eq!(object.damaged, []);
    assert_eq!((object.machine, object.kind, object.stack), (Machine::X86_64, Kind::Shared, Stack::Plain));
    assert_eq!(object.soname.as_deref(), Some("libcudnn.so.9"));
    assert_eq!(object.needed, ["libc.so.6", "libz.so.1"]);
    assert_eq!(object.runpath, ["$ORIGIN", "$ORIGIN/../../cublas/lib"]);
    assert_eq!(object.rpath, ["/opt/lib"]);
    assert!(object.no_default_search);
    assert_eq!(object.version_definitions, ["libcudnn.so.9", "V9"]);
    assert_eq!(
        (object.floor("GLIBC"), object.floor("CXXABI"), object.floor("GLIBCXX")),
        (Some("2.17"), Some("1.3.9"), None)
    );
    assert_eq!(object.symbols.imports().len(), 2);
    assert_eq!(object.symbols.definitions().next().unwrap().version, Some("V9"));
}

#[test]
fn all_that_the_loader_reads() {
    for table in [Table::Gnu, Table::SysV] {
        assert_whole(&Library { table, ..library() }.read());
    }
}

#[test]
fn section_headers_are_not_needed() {
    let stripped = Library { section_headers: false, ..library() }.read();
    assert!(!stripped.has_sections);
    assert_whole(&stripped);
}

#[test]
fn section_headers_past_the_end_are_said_and_the_rest_is_read() {
    let mut bytes = library().bytes();
    patch(&mut bytes, 40, &u64::to_le_bytes(1 << 40));
    let mut object = Object::read(&bytes.as_slice()).unwrap();
    assert!(object.damaged[0].to_string().contains("section header table"), "{:?}", object.damaged);
    object.damaged.clear();
    assert_whole(&object);
}

#[test]
fn names_of_imports_are_read_again() {
    let bytes = library().bytes();
    let object = Object::read(&bytes.as_slice()).unwrap();
    let names: Vec<String> =
        object.symbols.imports().map(|i| object.symbols.name(&bytes.as_slice(), i.symbol).unwrap()).collect();
    assert_eq!(names, ["malloc", "free"]);
}

#[test]
fn stacks() {
    let stack = |flags| Library { stack: flags, ..library() }.read().stack;
    assert_eq!(stack(None), Stack::Absent);
    assert_eq!(stack(Some(elf::PF_R | elf::PF_W | elf::PF_X)), Stack::Executable);
}

#[test]
fn other_machines() {
    let machine = |machine| Library { machine, ..library() }.read().machine;
    assert_eq!(machine(elf::EM_AARCH64), Machine::Aarch64);
    assert_eq!(machine(elf::EM_RISCV), Machine::Other(243));
}
