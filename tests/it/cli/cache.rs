//! What an online resolve leaves behind: the same lock with it and without, and nothing wrong from it when it is damaged.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::program::{GOOD, Place, Ran};
use crate::registry::server::{Server, html, ranged, reply};
use crate::registry::wheels::{Made, recipe};

pub fn torch(version: &str) -> Made {
    let mut torch = recipe("torch", version);
    torch.metadata = format!("Metadata-Version: 2.1\nName: torch\nVersion: {version}\nRequires-Python: >=3.9\n\n");
    torch.make()
}

/// An index of two torch wheels, neither of which is the snapshot's.
fn index() -> Server {
    let wheels = [torch("2.7.1"), torch("2.8.0")];
    let anchor = |made: &Made| format!("<a href=\"/files/{0}#sha256={1}\">{0}</a>", made.file, made.sha256);
    let page: String = wheels.iter().map(anchor).collect();
    Server::start(move |seen| match seen.path.as_str() {
        "/pypi/simple/torch/" => html(page.clone()).header("Cache-Control", "max-age=0").header("ETag", "\"1\""),
        path => match wheels.iter().find(|made| path == format!("/files/{}", made.file)) {
            Some(made) => ranged(seen, &made.bytes),
            None => reply(404, "text/plain", "no"),
        },
    })
}

/// Resolves as if there were no lock; gives the lock.
fn lock(place: &Place, url: &str, arguments: &[&str]) -> String {
    let arguments = [&["resolve", "--upgrade"], arguments].concat();
    Ran::of(place.mirrored(url, &arguments).output().unwrap()).code(0);
    place.lock()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(inside) = fs::read_dir(folder) else { return Vec::new() };
    let paths = inside.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn pages(place: &Place) -> Vec<PathBuf> {
    files(&place.cache()).into_iter().filter(|path| path.parent().unwrap().ends_with("pages")).collect()
}

#[test]
fn cold_warm_and_offline_give_the_same_lock() {
    let server = index();
    let place = Place::with(GOOD);
    let cold = lock(&place, &server.url, &[]);
    assert!(cold.contains(&torch("2.8.0").sha256));
    assert_eq!(lock(&place, &server.url, &[]), cold);
    let url = server.url.clone();
    drop(server);
    assert_eq!(lock(&place, &url, &["--offline"]), cold);
}

#[test]
fn a_damaged_page_is_no_page() {
    let server = index();
    let place = Place::with(GOOD);
    let nothing = lock(&place, &server.url, &["--offline"]);
    let right = lock(&place, &server.url, &[]);
    assert_ne!(right, nothing, "the index has other wheels than the snapshot");
    let pages = pages(&place);
    assert_eq!(pages.len(), 1);
    let good = fs::read(&pages[0]).unwrap();
    let text = String::from_utf8(good.clone()).unwrap();
    assert!(text.contains(&torch("2.8.0").sha256));
    let mut damaged: Vec<Vec<u8>> = [0, 9, 10, good.len() / 2, good.len() - 1].map(|end| good[..end].to_vec()).into();
    damaged.extend((0..good.len()).step_by(97).map(|at| {
        let mut bad = good.clone();
        bad[at] ^= 1;
        bad
    }));
    // A hash that is another hash.
    damaged.push(text.replace(&torch("2.8.0").sha256, &"a".repeat(64)).into_bytes());
    // What version 1 of the format had: its head, and the files as one list.
    damaged.push(b"{\"about\":\"x\",\"fetched\":1,\"sha256\":\"00\"}\n[]".to_vec());
    for bad in damaged {
        fs::write(&pages[0], &bad).unwrap();
        assert!(lock(&place, &server.url, &["--offline"]) == nothing, "{}", String::from_utf8_lossy(&bad));
    }
    assert_eq!(lock(&place, &server.url, &[]), right);
    assert_eq!(lock(&place, &server.url, &["--offline"]), right, "the page was mended");
}

#[test]
fn an_older_format_is_passed_over() {
    let server = index();
    let place = Place::with(GOOD);
    let nothing = lock(&place, &server.url, &["--offline"]);
    lock(&place, &server.url, &[]);
    fs::rename(place.cache().join("v2"), place.cache().join("v1")).unwrap();
    assert_eq!(lock(&place, &server.url, &["--offline"]), nothing);
}

#[test]
fn processes_share_it() {
    let server = index();
    let place = Place::with(GOOD);
    let right = lock(&place, &server.url, &[]);
    fs::remove_dir_all(place.cache()).unwrap();
    for _ in 0..3 {
        let start = |i: usize| {
            let name = format!("{i}.lock");
            // The last two only read, while the others write.
            let offline: &[&str] = if i < 4 { &[] } else { &["--offline"] };
            let arguments = [&["resolve", "--upgrade", "--lock", name.as_str()], offline].concat();
            let mut command = place.mirrored(&server.url, &arguments);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            (name, command.spawn().unwrap())
        };
        let running: Vec<_> = (0..6).map(start).collect();
        for (i, (name, child)) in running.into_iter().enumerate() {
            let ran = Ran::of(child.wait_with_output().unwrap());
            // One that reads alone may see a cache that holds half of what it needs; that gives no stack, not a wrong one.
            let reads = i >= 4;
            assert!(ran.code == Some(0) || reads && ran.code == Some(1), "{ran:?}");
            assert!(reads || place.text(&name) == right, "{name}");
        }
        assert_eq!(lock(&place, &server.url, &["--offline"]), right);
        let names: Vec<PathBuf> = files(&place.cache());
        assert!(
            names.iter().all(|path| !path.file_name().unwrap().to_str().unwrap().starts_with(".new-")),
            "{names:?}"
        );
    }
}
