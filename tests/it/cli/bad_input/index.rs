//! Indexes that fail while a lock is made: which one, at which address, why, what to do; and no lock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cli::program::{GOOD, Place, Ran};
use crate::registry::server::{Reply, Seen, Server, html, ranged, reply};
use crate::registry::wheels::{Made, hex, recipe};

/// Resolves online with every index at `url`, with no lock and with one, neither of which may be touched.
fn refused(url: &str, words: &[&str]) -> Ran {
    let place = Place::locked();
    place.put("gpulock.toml", GOOD.replace("\"580\"", "\"581\""));
    let before = place.all();
    online(&place, url, &["resolve", "--upgrade"]).code(2);
    assert!(place.all() == before, "{:?}", place.names());
    let place = Place::with(GOOD);
    let ran = online(&place, url, &["resolve"]).code(2).says(words);
    assert_eq!((ran.out.as_str(), place.names()), ("", vec!["gpulock.toml".to_owned()]));
    ran
}

fn online(place: &Place, url: &str, arguments: &[&str]) -> Ran {
    Ran::of(place.mirrored(url, arguments).output().unwrap())
}

fn torch() -> Made {
    let mut torch = recipe("torch", "2.8.0");
    torch.metadata = "Metadata-Version: 2.1\nName: torch\nVersion: 2.8.0\nRequires-Python: >=3.9\n\n".into();
    torch.make()
}

/// An index with one wheel of torch, which is answered as `answer` says.
fn with_wheel(made: Made, sha256: &str, answer: impl Fn(&Seen, &[u8]) -> Reply + Send + Sync + 'static) -> Server {
    let page = format!("<a href=\"/files/{0}#sha256={sha256}\">{0}</a>", made.file);
    let made = Arc::new(made);
    Server::start(move |seen| match seen.path.as_str() {
        "/pypi/simple/torch/" => html(page.clone()),
        path if path.starts_with("/files/") => answer(seen, &made.bytes),
        _ => reply(404, "text/plain", "no"),
    })
}

#[test]
fn a_small_index_gives_a_lock() {
    // What the failures below are variations of.
    let made = torch();
    let sha256 = made.sha256.clone();
    let server = with_wheel(made, &sha256, ranged);
    let place = Place::with(GOOD);
    online(&place, &server.url, &["resolve"]).code(0);
    assert!(place.lock().contains(&sha256));
    assert!(!place.lock().contains("127.0.0.1"), "a mirror does not reach the lock");
    // The same without network, from the cache.
    let (lock, url) = (place.lock(), server.url.clone());
    drop(server);
    online(&place, &url, &["resolve", "--offline", "--upgrade"]).code(0);
    assert!(place.lock() == lock, "{}", place.lock());
}

#[test]
fn down() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    refused(
        &format!("http://{free}"),
        &["error[index-unreachable]", "index `pypi`", "/torch/", "no connection", "--offline"],
    );
}

#[test]
fn refusing() {
    let server = Server::start(|_| reply(401, "text/plain", "who are you"));
    let words = ["error[index-unauthorized]", "HTTP status 401", "no login was sent", "GPULOCK_INDEX_PYPI_USERNAME"];
    refused(&server.url, &words);
}

#[test]
fn not_there() {
    // Every page is missing: as a mistyped address looks.
    let server = Server::start(|_| reply(404, "text/plain", "no"));
    refused(&server.url, &["error[index-empty]", "index `pypi` has no torch at all", "check its address"]);
}

#[test]
fn broken() {
    let server = Server::start(|_| reply(500, "text/html", "oops"));
    refused(&server.url, &["error[index-unreachable]", "index `pypi`", "500", "4 tries", "--offline"]);
}

#[test]
fn slow() {
    let wait = (Duration::from_secs(60), Duration::ZERO);
    let server = Server::start(move |_| Reply { wait, ..html("") });
    let start = Instant::now();
    refused(&server.url, &["error[index-unreachable]", "no answer within", "GPULOCK_HTTP_TIMEOUT"]);
    assert!(start.elapsed() < Duration::from_secs(50), "{:?}", start.elapsed());
}

#[test]
fn something_else() {
    let server = Server::start(|_| reply(200, "application/pdf", "%PDF"));
    refused(&server.url, &["error[index-bad-answer]", "application/pdf", "simple package index"]);
    let server = Server::start(|_| reply(200, "application/vnd.pypi.simple.v1+json", "{\"files\": ["));
    refused(&server.url, &["error[index-bad-answer]", "index `pypi`"]);
}

#[test]
fn cut_off() {
    let server = Server::start(|_| Reply { cut: Some(20), ..html(" ".repeat(100)) });
    refused(&server.url, &["error[index-unreachable]", "cut off"]);
}

#[test]
fn a_wheel_with_another_hash() {
    // A server without range requests: the whole file is read, and its hash seen.
    let server = with_wheel(torch(), &"a".repeat(64), |_, bytes| reply(200, "application/octet-stream", bytes));
    let words = ["error[hash-mismatch]", "torch-2.8.0-py3-none-any.whl", "index `pypi` promises", "do not use"];
    refused(&server.url, &words);
}

#[test]
fn a_wheel_that_is_none() {
    let server = with_wheel(torch(), &hex(&[7; 5000]), |seen, _| ranged(seen, &[7; 5000]));
    // The version is passed over as if it were not there, and nothing else is.
    let place = Place::with(GOOD);
    let words = ["no stack", "torch-2.8.0-py3-none-any.whl of index `pypi` cannot be read"];
    online(&place, &server.url, &["resolve"]).code(1).says(&words);
    assert_eq!(place.names(), ["gpulock.toml"]);
}

#[test]
fn a_wheel_that_is_cut_off() {
    let server = with_wheel(torch(), &"a".repeat(64), |seen, bytes| Reply { cut: Some(40), ..ranged(seen, bytes) });
    refused(&server.url, &["torch-2.8.0-py3-none-any.whl", "cut off", "help:"]);
}

#[test]
fn a_wheel_that_is_gone() {
    let server = with_wheel(torch(), &"a".repeat(64), |_, _| reply(404, "text/plain", "no"));
    refused(&server.url, &["torch-2.8.0-py3-none-any.whl", "404", "help:"]);
}

#[test]
fn a_wheel_whose_metadata_disagrees() {
    let mut torch = recipe("torch", "2.8.0");
    torch.metadata = "Metadata-Version: 2.1\nName: torch\nVersion: 2.7.0\n\n".into();
    let made = torch.make();
    let sha256 = made.sha256.clone();
    let server = with_wheel(made, &sha256, ranged);
    let words =
        ["error[metadata-mismatch]", "torch-2.8.0-py3-none-any.whl", "disagrees with its own METADATA", "2.7.0"];
    refused(&server.url, &words);
}
