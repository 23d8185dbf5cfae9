//! What is kept of layers between runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::layout;
use super::make::{Layer, Made, Packed, sha256};
use super::semantics::files;
use crate::cli::program::{Place, Ran};

fn stores(cache: &Path) -> Vec<PathBuf> {
    let folder = fs::read_dir(cache).unwrap().next().unwrap().unwrap().path();
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn a_layer_that_is_known_is_not_read_again() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let made = Made::of(&[Layer::default().file("a.py", "a1"), Layer::default().file("b.py", "b1")]);
    made.layout(folder.path(), Packed::Gzip);
    let expected = ["a.py a1", "b.py b1"];
    assert_eq!(files(&layout(folder.path(), Some(cache.path())).unwrap().root), expected);
    let names: Vec<PathBuf> = stores(cache.path());
    assert_eq!(names.len(), 2);
    // Without its blobs the image is what it was.
    for tar in &made.layers {
        fs::remove_file(folder.path().join("blobs/sha256").join(sha256(&Packed::Gzip.pack(tar)))).unwrap();
    }
    assert_eq!(files(&layout(folder.path(), Some(cache.path())).unwrap().root), expected);
    assert!(layout(folder.path(), None).is_err());
}

#[test]
fn what_is_damaged_is_read_anew() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    Made::of(&[Layer::default().file("a.py", "a1")]).layout(folder.path(), Packed::Zstd);
    let read = || files(&layout(folder.path(), Some(cache.path())).unwrap().root);
    assert_eq!(read(), ["a.py a1"]);
    let [store] = &stores(cache.path())[..] else { panic!() };
    let good = fs::read(store).unwrap();
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x20;
        fs::write(store, bad).unwrap();
        assert_eq!(read(), ["a.py a1"], "{at}");
        assert_eq!(fs::read(store).unwrap(), good);
    }
    for end in [0, 1, 27, 28, good.len() / 2, good.len() - 1] {
        fs::write(store, &good[..end]).unwrap();
        assert_eq!(read(), ["a.py a1"]);
    }
}

/// Nor is it waited for: it may be anything that is there.
#[test]
fn what_is_no_file_is_no_store() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    Made::of(&[Layer::default().file("a.py", "a1")]).layout(folder.path(), Packed::Zstd);
    let read = || files(&layout(folder.path(), Some(cache.path())).unwrap().root);
    assert_eq!(read(), ["a.py a1"]);
    let [store] = &stores(cache.path())[..] else { panic!() };
    fs::remove_file(store).unwrap();
    for pipe in [store.clone(), store.with_file_name(".new-pipe")] {
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(read(), ["a.py a1"]);
    }
}

#[test]
fn what_a_killed_process_left_is_removed() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    Made::of(&[Layer::default().file("a.py", "a1")]).layout(folder.path(), Packed::Zstd);
    layout(folder.path(), Some(cache.path())).unwrap();
    let [store] = &stores(cache.path())[..] else { panic!() };
    let (left, held) = (store.with_file_name(".new-left"), store.with_file_name(".new-held"));
    fs::write(&left, "half").unwrap();
    fs::write(&held, "half").unwrap();
    let holder = fs::File::open(&held).unwrap();
    holder.lock().unwrap();
    layout(folder.path(), Some(cache.path())).unwrap();
    assert!(!left.exists() && held.exists());
    drop(holder);
    layout(folder.path(), Some(cache.path())).unwrap();
    assert!(!held.exists());
}

#[test]
fn a_cache_that_cannot_be_written_is_done_without() {
    let folder = tempfile::tempdir().unwrap();
    Made::of(&[Layer::default().file("a.py", "a1")]).layout(folder.path(), Packed::Zstd);
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert_eq!(files(&layout(folder.path(), Some(&file)).unwrap().root), ["a.py a1"]);
}

/// A store under another's name is not taken for it.
#[test]
fn a_store_says_what_it_is_of() {
    let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    Made::of(&[Layer::default().file("a.py", "a1"), Layer::default().file("b.py", "b1")])
        .layout(folder.path(), Packed::Zstd);
    let read = || files(&layout(folder.path(), Some(cache.path())).unwrap().root);
    let expected = ["a.py a1", "b.py b1"];
    assert_eq!(read(), expected);
    let [one, other] = &stores(cache.path())[..] else { panic!() };
    let good = fs::read(one).unwrap();
    fs::copy(other, one).unwrap();
    assert_eq!(read(), expected);
    assert_eq!(fs::read(one).unwrap(), good);
}

#[test]
fn what_cannot_be_written_is_said_with_its_folder() {
    let place = Place::empty();
    let library = [b"\x7fELF".as_slice(), &vec![0; 9 << 20]].concat();
    Made::of(&[Layer::default().bytes("usr/lib/libx.so", 0o755, &library)]).layout(&place.path("made"), Packed::Zstd);
    let mut command = place.command(&["verify", "oci:made"]);
    let ran = Ran::of(command.env("TMPDIR", "/nonexistent/folder").output().unwrap());
    ran.code(2).says(&["error[cannot-write]", "/nonexistent/folder", "name another folder: TMPDIR=FOLDER"]);
}
