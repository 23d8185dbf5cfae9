//! Rule by rule (ld.so(8)).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use super::fixture::Elf;
use super::real::{Listing, agree};

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, below: &str) -> PathBuf {
        // As the loader will name it: without links.
        self.0.path().canonicalize().unwrap().join(below)
    }

    fn put(&self, below: &str, elf: &Elf) {
        elf.write(&self.path(below));
    }

    fn text(&self, below: &str) -> String {
        self.path(below).display().to_string()
    }

    fn agree(&self, library_path: &str) -> Listing {
        agree(&self.path("main"), library_path)
    }
}

/// Where a name was found, below the test's folder.
fn found<'l>(listing: &'l Listing, folder: &Folder, name: &str) -> Option<&'l Path> {
    let path = listing.loads.iter().find(|(asked, _)| asked == name).unwrap().1.as_deref()?;
    Some(path.strip_prefix(folder.path("")).unwrap_or(path))
}

#[test]
fn rpath_before_library_path_before_runpath() {
    let folder = Folder::new();
    for place in ["a", "b"] {
        folder.put(&format!("{place}/libx.so.1"), &Elf::library("libx.so.1"));
    }
    folder.put("main", &Elf::program().needed(&["libx.so.1"]).rpath("$ORIGIN/a"));
    assert_eq!(found(&folder.agree(&folder.text("b")), &folder, "libx.so.1"), Some(Path::new("a/libx.so.1")));
    folder.put("main", &Elf::program().needed(&["libx.so.1"]).runpath("${ORIGIN}/a"));
    assert_eq!(found(&folder.agree(&folder.text("b")), &folder, "libx.so.1"), Some(Path::new("b/libx.so.1")));
    assert_eq!(found(&folder.agree(""), &folder, "libx.so.1"), Some(Path::new("a/libx.so.1")));
    // With both, DT_RPATH counts for nothing.
    folder.put("main", &Elf::program().needed(&["libx.so.1"]).rpath("$ORIGIN/a").runpath("$ORIGIN/none"));
    assert_eq!(found(&folder.agree(""), &folder, "libx.so.1"), None);
}

#[test]
fn rpath_is_inherited_and_runpath_is_not() {
    let folder = Folder::new();
    folder.put("lib/libx.so.1", &Elf::library("libx.so.1").needed(&["liby.so.1"]));
    folder.put("lib/liby.so.1", &Elf::library("liby.so.1").needed(&["libz.so.9"]));
    folder.put("deep/libz.so.9", &Elf::library("libz.so.9"));
    folder.put("main", &Elf::program().needed(&["libx.so.1"]).rpath("$ORIGIN/lib:$ORIGIN/deep"));
    assert_eq!(found(&folder.agree(""), &folder, "libz.so.9"), Some(Path::new("deep/libz.so.9")));
    folder.put("main", &Elf::program().needed(&["libx.so.1"]).runpath("$ORIGIN/lib:$ORIGIN/deep"));
    assert_eq!(found(&folder.agree(""), &folder, "liby.so.1"), None);
    // A DT_RUNPATH on the way closes off what its own file needs, and nothing else.
    folder.put("main", &Elf::program().needed(&["libx.so.1"]).rpath("$ORIGIN/lib:$ORIGIN/deep"));
    folder.put("lib/libx.so.1", &Elf::library("libx.so.1").needed(&["liby.so.1"]).runpath("$ORIGIN"));
    assert_eq!(found(&folder.agree(""), &folder, "libz.so.9"), Some(Path::new("deep/libz.so.9")));
    folder.put("lib/liby.so.1", &Elf::library("liby.so.1").needed(&["libz.so.9"]).runpath("$ORIGIN"));
    assert_eq!(found(&folder.agree(""), &folder, "libz.so.9"), None);
}

#[test]
fn one_name_is_loaded_once() {
    let folder = Folder::new();
    // `libother.so` says that it is `libx.so.1`: it serves all who ask for that.
    folder.put("a/libother.so", &Elf::library("libx.so.1"));
    folder.put("b/libx.so.1", &Elf::library("libx.so.1"));
    folder.put("a/liby.so.1", &Elf::library("liby.so.1").needed(&["libx.so.1"]).runpath("$ORIGIN/../b"));
    folder.put("main", &Elf::program().needed(&["libother.so", "liby.so.1"]).rpath("$ORIGIN/a"));
    assert_eq!(folder.agree("").loads.len(), 2);
    // Two names of one inode are one library.
    fs::hard_link(folder.path("b/libx.so.1"), folder.path("a/libhard.so")).unwrap();
    symlink("../b/libx.so.1", folder.path("a/libsoft.so")).unwrap();
    folder.put("main", &Elf::program().needed(&["libhard.so", "libsoft.so", "libx.so.1"]).rpath("$ORIGIN/a:$ORIGIN/b"));
    assert_eq!(folder.agree("").loads.len(), 1);
}

#[test]
fn origin_is_the_folder_of_the_name_that_was_opened() {
    let folder = Folder::new();
    folder.put("real/libx.so.1", &Elf::library("libx.so.1").needed(&["liby.so.1"]).runpath("$ORIGIN"));
    folder.put("real/liby.so.1", &Elf::library("liby.so.1"));
    fs::create_dir(folder.path("links")).unwrap();
    symlink("../real/libx.so.1", folder.path("links/libx.so.1")).unwrap();
    folder.put("main", &Elf::program().needed(&["libx.so.1"]).runpath("$ORIGIN/links"));
    assert_eq!(found(&folder.agree(""), &folder, "liby.so.1"), None);
    symlink("../real/liby.so.1", folder.path("links/liby.so.1")).unwrap();
    assert_eq!(found(&folder.agree(""), &folder, "liby.so.1"), Some(Path::new("links/liby.so.1")));
    // A path in DT_NEEDED is opened as it is.
    folder.put("main", &Elf::program().needed(&["$ORIGIN/real/libx.so.1"]));
    folder.agree("");
}

#[test]
fn files_for_other_machines_are_passed_over() {
    let folder = Folder::new();
    folder.put("a/libx.so.1", &Elf { machine: Some(183), ..Elf::library("libx.so.1") });
    folder.put("b/libx.so.1", &Elf::library("libx.so.1"));
    let mut narrow = Elf::library("libx.so.1").bytes();
    narrow[4] = 1;
    fs::create_dir(folder.path("c")).unwrap();
    fs::write(folder.path("c/libx.so.1"), narrow).unwrap();
    folder.put("main", &Elf::program().needed(&["libx.so.1"]).rpath("$ORIGIN/c:$ORIGIN/a:$ORIGIN/b"));
    assert_eq!(found(&folder.agree(""), &folder, "libx.so.1"), Some(Path::new("b/libx.so.1")));
}

#[test]
fn default_folders_can_be_forbidden() {
    let folder = Folder::new();
    folder.put("main", &Elf::program().needed(&["libc.so.6"]));
    assert!(found(&folder.agree(""), &folder, "libc.so.6").is_some());
    folder.put("main", &Elf { no_default_search: true, ..Elf::program().needed(&["libc.so.6"]) });
    folder.agree("");
}

#[test]
fn newer_processors_have_folders_of_their_own() {
    let folder = Folder::new();
    folder.put("lib/libx.so.1", &Elf::library("libx.so.1"));
    folder.put("lib/glibc-hwcaps/x86-64-v2/libx.so.1", &Elf::library("libx.so.1"));
    folder.put("main", &Elf::program().needed(&["libx.so.1"]).runpath("$ORIGIN/lib"));
    folder.agree("");
    folder.agree(&folder.text("lib"));
}

#[test]
fn versions_are_checked_against_the_file_that_is_loaded() {
    let folder = Folder::new();
    folder.put("lib/libx.so.1", &Elf::library("libx.so.1").defines(&["f@@V1"]));
    let main = |versions: &[&str]| Elf::program().needed(&["libx.so.1"]).runpath("$ORIGIN/lib").versions(versions);
    folder.put("main", &main(&["V1/libx.so.1"]));
    assert_eq!(folder.agree("").problems, [""; 0]);
    folder.put("main", &main(&["V1/libx.so.1", "V2/libx.so.1"]));
    assert_eq!(folder.agree("").problems, ["version V2 of libx.so.1 by main"]);
    folder.put("main", &main(&["V2/libx.so.1?"]));
    assert_eq!(folder.agree("").problems, [""; 0]);
    // A library without versions is taken as it is.
    folder.put("lib/libx.so.1", &Elf::library("libx.so.1").defines(&["f"]));
    folder.put("main", &main(&["V2/libx.so.1"]).asks(&["f@V2/libx.so.1"]));
    assert_eq!(folder.agree("").problems, [""; 0]);
}

#[test]
fn symbols_are_found_by_name_and_version() {
    let folder = Folder::new();
    let lib = Elf::library("libx.so.1").defines(&["old@V1", "new@V1", "new@@V2", "only@@V2", "plain"]);
    folder.put("lib/libx.so.1", &lib);
    let asks = |asks: &[&str]| {
        folder.put("main", &Elf::program().needed(&["libx.so.1"]).runpath("$ORIGIN/lib").asks(asks));
        folder.agree("").problems
    };
    assert_eq!(asks(&["new@V1/libx.so.1", "new@V2/libx.so.1", "plain", "plain@V1/libx.so.1"]), [""; 0]);
    assert_eq!(asks(&["new", "only", "old"]), asks(&["old"]));
    assert_eq!(asks(&["old@V2/libx.so.1"]), ["undefined old, version V2 by main"]);
    assert_eq!(asks(&["gone", "maybe?"]), ["undefined gone by main"]);
    // What the program itself defines serves its libraries.
    folder.put("lib/libx.so.1", &lib.asks(&["callback"]));
    folder.put("main", &Elf::program().needed(&["libx.so.1"]).runpath("$ORIGIN/lib").defines(&["callback"]));
    assert_eq!(folder.agree("").problems, [""; 0]);
}

#[test]
fn text_in_place_of_a_library_ends_the_search() {
    let folder = Folder::new();
    fs::create_dir(folder.path("a")).unwrap();
    fs::write(
        folder.path("a/libx.so.1"),
        "INPUT(libx.so.2) this is long enough for the header of an ELF file to be read\n",
    )
    .unwrap();
    folder.put("b/libx.so.1", &Elf::library("libx.so.1"));
    folder.put("main", &Elf::program().needed(&["libx.so.1"]).runpath("$ORIGIN/a:$ORIGIN/b"));
    assert_eq!(super::real::modelled(&folder.path("main"), "").problems, ["unloadable libx.so.1"]);
    if let Some(real) = super::real::listed(&folder.path("main"), "") {
        assert!(real.loads.iter().all(|(_, path)| path.is_none()), "{real:?}");
    }
}
