//! Processes whose description is damaged, strange or gone.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gpulock::diag::Class;
use gpulock::inventory::process::{ProcFs, trace};
use gpulock::inventory::{Inventory, Options};
use proptest::prelude::*;

use crate::check::process::Process;
use crate::check::venv::Venv;
use crate::link::fixture::Elf;

fn names(inventory: &Inventory) -> Vec<Vec<u8>> {
    inventory.libraries().iter().map(|one| one.path.file_name().unwrap().as_bytes().to_owned()).collect()
}

/// Where the kernel lets nobody through to the files themselves, the text of `maps` alone tells: a line break is `\012`
/// there, which a name may also have in it.
#[test]
fn names_that_look_like_others() {
    let venv = Venv::empty();
    let mut process = Process::of(&venv);
    let elf = Elf::library("libx.so");
    for name in ["a\nb.so", "c\\012d.so", "libx.so (deleted)"] {
        let folder = venv.beside(&format!("strange/{name}"), &elf);
        let path = Path::new(&folder).join(name);
        let inode = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&path).unwrap());
        let written = path.to_str().unwrap().replace('\n', "\\012");
        process.line(written.as_bytes(), inode);
    }
    let inventory = process.read().unwrap();
    for name in ["a\nb.so", "c\\012d.so", "libx.so (deleted)"] {
        assert!(names(&inventory).contains(&name.as_bytes().to_owned()), "{name:?}: {:?}", names(&inventory));
    }
    assert!(inventory.process.unwrap().mapped.iter().all(|one| !one.deleted));
}

/// A file that is gone and that nobody but an administrator could read is left out, not invented.
#[test]
fn files_that_cannot_be_read() {
    let venv = Venv::empty();
    let mut process = Process::of(&venv);
    let gone = venv.path().join("libgone.so");
    process.line(&[gone.as_os_str().as_bytes(), b" (deleted)"].concat(), 4711);
    process.line(b"/dev/nvidia0", 77);
    process.line(b"/memfd:code (deleted)", 78);
    let inventory = process.read().unwrap();
    assert_eq!(names(&inventory), [b"python3.11".to_vec()]);
    let process = inventory.process.unwrap();
    assert!(process.unreadable.iter().any(|path| path.ends_with("libgone.so")), "{:?}", process.unreadable);
}

#[test]
fn no_such_process() {
    let folder = tempfile::tempdir().unwrap();
    let failure = Inventory::of_process(&ProcFs::new(folder.path()), 4242, &Options::default()).unwrap_err();
    assert_eq!((failure.class, failure.diagnostics[0].code), (Class::Unanswerable, "process-ended"));
}

proptest! {
    #[test]
    fn any_text_of_a_loader(text in any::<Vec<u8>>()) {
        trace::parse(&text, &|_| None);
    }

    #[test]
    fn any_lines_of_a_loader(lines in prop::collection::vec(0..LINES.len(), 0..40)) {
        let text: String = lines.iter().map(|at| format!("  {}:\t{}\n", 7 + at % 2, LINES[*at])).collect();
        for image in trace::parse(text.as_bytes(), &|path| path.starts_with("/lib").then_some((1, 2))) {
            prop_assert!(image.failures.len() + image.loads.len() <= lines.len() * 2);
        }
    }
}

/// Lines as glibc writes them, and some that it does not.
const LINES: [&str; 16] = [
    "file=libx.so [0];  needed by /bin/a [0]",
    "file=libx.so [0];  needed by /bin/b [0]",
    "file=libx.so [0];  dynamically loaded by /lib/liby.so [0]",
    "file=libx.so [0];  generating link map",
    "file=/lib/z.so [0];  generating link map",
    "file=/lib/z.so [0];  needed by /lib/liby.so [0] (relocation dependency)",
    "find library=libx.so [0]; searching",
    " search path=/a:/b\t\t(RPATH from file /bin/a)",
    " search path=/a\t\t(LD_LIBRARY_PATH)",
    " search cache=/etc/ld.so.cache",
    "  trying file=/lib/libx.so",
    "  trying file=/a/libx.so",
    "initialize program: a",
    "calling init: /lib/libx.so",
    "file=",
    "file=[];  ",
];
