//! The cache on disk: offline use, damage, folders that cannot be written, several processes.

use std::path::{Path, PathBuf};
use std::sync::Barrier;

use gpulock::python::Catalog;
use gpulock::registry::Client;

use super::server::{Server, html, ranged};
use super::wheel::{Files, index};
use super::wheels::recipe;
use super::{client, offline, only_wheel, package};

fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(inside) = std::fs::read_dir(folder) else { return vec![] };
    let paths = inside.map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths.flat_map(|path| if path.is_dir() { entries(&path) } else { vec![path] }).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "json"));
    files
}

fn facts(client: &Client) -> (usize, usize) {
    let wheel = only_wheel(client, "x");
    (client.metadata(&wheel).unwrap().requires.len(), client.libraries(&wheel).unwrap().len())
}

#[test]
fn what_was_seen_is_there_offline() {
    let server = index(&recipe("x", "1.0").make(), Files::Ranges, "");
    let folder = tempfile::tempdir().unwrap();
    let online = facts(&client(&server.url, folder.path()));
    let url = server.url.clone();
    drop(server);
    let client = offline(&url, folder.path());
    assert_eq!(facts(&client), online);
    assert!(client.is_cached(&only_wheel(&client, "x")));
    assert!(client.page_age("test", &package("x")).is_some());
    assert_eq!(client.traffic().requests, 0);
}

#[test]
fn a_page_is_there_offline_but_not_what_was_never_looked_into() {
    let server =
        Server::start(|_| html(r#"<a href="x-1.0-py3-none-any.whl">1</a><a href="x-2.0-py3-none-any.whl">2</a>"#));
    let folder = tempfile::tempdir().unwrap();
    let wheel = client(&server.url, folder.path()).list("test", &package("x")).unwrap().remove(0);
    let client = offline(&server.url, folder.path());
    assert_eq!(client.versions("test", &package("x")).unwrap().len(), 2);
    assert!(!client.is_cached(&wheel));
    assert!(client.versions("test", &package("never-seen")).unwrap().is_empty());
    let failure = client.metadata(&wheel).unwrap_err();
    assert_eq!(failure.diagnostics[0].code, "not-cached");
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn damage_is_repaired() {
    let server = index(&recipe("x", "1.0").make(), Files::Ranges, "");
    let folder = tempfile::tempdir().unwrap();
    let right = facts(&client(&server.url, folder.path()));
    let files = entries(folder.path());
    assert_eq!(files.len(), 3);
    for damage in ["", "{", "{}\n[]", "\0\0\0\0"] {
        for file in &files {
            std::fs::write(file, damage).unwrap();
            assert_eq!(facts(&client(&server.url, folder.path())), right);
            assert_ne!(std::fs::read_to_string(file).unwrap(), damage, "replaced");
        }
    }
}

#[test]
fn another_index_has_a_cache_of_its_own() {
    // Both claim the same hash; only one of them is right.
    let honest = recipe("x", "1.0").file("x/big.bin", super::wheels::noise(5 << 20)).make();
    let liar = super::wheels::Made { sha256: honest.sha256.clone(), ..recipe("x", "1.0").file("x/y.so", "y").make() };
    let liar = super::wheels::Made { bytes: padded(liar.bytes), ..liar };
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (index(&liar, Files::Ranges, ""), index(&honest, Files::Ranges, ""));
    let lie = client(&first.url, folder.path());
    let _ = lie.libraries(&only_wheel(&lie, "x"));
    assert_eq!(facts(&client(&second.url, folder.path())).1, 1);
}

/// Large enough not to be read, and so checked, whole.
fn padded(wheel: Vec<u8>) -> Vec<u8> {
    [vec![0; 1 << 20], wheel].concat()
}

#[test]
fn a_folder_that_cannot_be_written() {
    let server = index(&recipe("x", "1.0").file("x/big", super::wheels::noise(5 << 20)).make(), Files::Whole, "");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let client = client(&server.url, &file.join("cache"));
    assert_eq!(facts(&client).1, 1);
    let warnings = client.warnings();
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].code, "cache-unwritable");
}

#[test]
fn a_full_disk() {
    // A device that takes nothing stands for it.
    let full = Path::new("/dev/full");
    if !full.exists() {
        println!("skipped: no /dev/full");
        return;
    }
    let server = index(&recipe("x", "1.0").make(), Files::Ranges, "");
    let client = client(&server.url, &full.join("cache"));
    assert_eq!(facts(&client).1, 1);
    assert_eq!(client.warnings().len(), 1);
}

#[test]
fn several_at_once() {
    let made = recipe("x", "1.0").file("x/lib/y.so", super::wheels::noise(500_000)).make();
    let server = Server::start(move |seen| {
        if seen.path.ends_with('/') {
            let page = format!("<a href=\"{}#sha256={}\">x</a>", made.file, made.sha256);
            return html(page).header("Cache-Control", "max-age=0");
        }
        ranged(seen, &made.bytes)
    });
    let folder = tempfile::tempdir().unwrap();
    let barrier = Barrier::new(8);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                // A client of its own is what another process would have.
                for _ in 0..5 {
                    barrier.wait();
                    let client = client(&server.url, folder.path());
                    assert_eq!(facts(&client), (2, 2));
                    assert!(client.warnings().is_empty());
                }
            });
        }
    });
    assert_eq!(entries(folder.path()).len(), 3, "nothing half-written stays");
    assert_eq!(facts(&offline(&server.url, folder.path())), (2, 2));
}
