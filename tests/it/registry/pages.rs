//! Index pages: both forms, logins, the copy in the cache.

use std::sync::Arc;
use std::time::Duration;

use gpulock::python::Catalog;
use gpulock::registry::{Client, Credentials, IndexSource, Netrc, Options};

use super::server::{Reply, Seen, Server, html, reply};
use super::{client, offline, options, package};

const JSON: &str = "application/vnd.pypi.simple.v1+json";

fn page(seen: &Seen) -> Reply {
    match seen.path.as_str() {
        "/simple/torch/" => html(
            r#"<a href="/f/torch-2.6.0%2Bcu126-cp311-cp311-linux_x86_64.whl">a</a>
               <a href="/f/torch-2.10.0%2Bcu126-cp311-cp311-linux_x86_64.whl" data-yanked>b</a>
               <a href="/f/torch-2.6.0%2Bcu126-cp312-cp312-linux_x86_64.whl">c</a>
               <a href="/f/torch-2.6.0.tar.gz">d</a><a href="/f/torch-odd.whl">e</a>"#,
        ),
        _ => reply(404, "text/plain", "no"),
    }
}

#[test]
fn html_page_as_a_catalog() {
    let server = Server::start(page);
    let folder = tempfile::tempdir().unwrap();
    let client = client(&format!("{}/simple", server.url), folder.path());
    let versions = client.versions("test", &package("Torch")).unwrap();
    assert_eq!(versions.iter().map(ToString::to_string).collect::<Vec<_>>(), ["2.6.0+cu126", "2.10.0+cu126"]);
    let release = client.release("test", &package("torch"), &versions[0]).unwrap().unwrap();
    assert_eq!(release.wheels.len(), 2);
    let wheel = &release.wheels[0];
    assert_eq!(&*wheel.index, "test");
    assert_eq!(
        wheel.url.as_deref().unwrap(),
        format!("{}/f/torch-2.6.0%2Bcu126-cp311-cp311-linux_x86_64.whl", server.url)
    );
    assert!(client.release("test", &package("torch"), &"2.6.0".parse().unwrap()).unwrap().is_none());
    let yanked = client.release("test", &package("torch"), &versions[1]).unwrap().unwrap();
    assert!(yanked.wheels[0].yanked);
    // Each page is asked for once, and JSON is preferred.
    assert_eq!(server.seen().len(), 1);
    assert!(server.seen()[0].headers["accept"].starts_with(JSON));
}

#[test]
fn a_package_that_is_not_there_is_empty() {
    let server = Server::start(page);
    let folder = tempfile::tempdir().unwrap();
    let client = client(&format!("{}/simple/", server.url), folder.path());
    assert!(client.versions("test", &package("nothing")).unwrap().is_empty());
    assert!(client.list("test", &package("nothing")).unwrap().is_empty());
    assert_eq!(client.page_age("test", &package("nothing")), None);
}

#[test]
fn an_index_that_is_not_defined() {
    let folder = tempfile::tempdir().unwrap();
    let client = client("http://127.0.0.1:9/", folder.path());
    let failure = client.versions("tset", &package("x")).unwrap_err();
    assert_eq!(failure.diagnostics[0].code, "index-unknown");
    assert_eq!(failure.diagnostics[0].fix.as_deref(), Some("did you mean `test`?"));
}

#[test]
fn a_bucket_that_hides_what_it_lacks() {
    // Such a server says 403 for a missing page, although anyone may read it.
    let open = Server::start(|seen| if seen.path == "/whl/" { html("") } else { reply(403, "", "denied") });
    let folder = tempfile::tempdir().unwrap();
    let client = client(&format!("{}/whl", open.url), folder.path());
    client.prefetch("test", &[package("a"), package("b")]);
    assert!(client.versions("test", &package("a")).unwrap().is_empty());
    assert!(client.versions("test", &package("b")).unwrap().is_empty());
    assert_eq!(open.count("/whl/"), 1);
    assert_eq!(open.seen().iter().find(|seen| seen.path == "/whl/").unwrap().method, "HEAD");
}

fn needs_login(seen: &Seen) -> Reply {
    // me:s3cret
    if seen.headers.get("authorization").map(String::as_str) != Some("Basic bWU6czNjcmV0") {
        return reply(401, "", "");
    }
    html(r#"<a href="x-1-py3-none-any.whl">x</a>"#).header("ETag", "\"1\"").header("Cache-Control", "max-age=0")
}

#[test]
fn logins_are_sent_and_stay_secret() {
    let server = Server::start(needs_login);
    let folder = tempfile::tempdir().unwrap();
    let with_login = server.url.replace("http://", "http://me:s3cret@");
    let client = client(&format!("{with_login}/simple"), folder.path());
    let wheels = client.list("test", &package("x")).unwrap();
    assert!(!wheels[0].url.as_deref().unwrap().contains("s3cret"));

    let other = super::client(&format!("{}/other", with_login.replace("s3cret", "wr0ng")), folder.path());
    let failure = other.list("test", &package("x")).unwrap_err();
    assert_eq!(failure.diagnostics[0].code, "index-unauthorized");
    assert!(failure.diagnostics[0].fix.as_ref().unwrap().contains("GPULOCK_INDEX_TEST_USERNAME"));
    assert!(!format!("{failure:?}").contains("wr0ng") && failure.to_string().contains("is not accepted"));

    let none = super::client(&server.url, folder.path());
    assert!(none.list("test", &package("x")).unwrap_err().to_string().contains("no login was sent"));

    for file in files(folder.path()) {
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
        assert!(!text.contains("s3cret") && !text.contains("bWU6"), "{}", file.display());
    }
}

fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn logins_do_not_follow_to_other_hosts() {
    let files = Server::start(|_| reply(404, "", ""));
    let elsewhere = files.url.clone();
    let index = Server::start(move |_| html(format!(r#"<a href="{elsewhere}/x-1-py3-none-any.whl">x</a>"#)));
    let folder = tempfile::tempdir().unwrap();
    let ask = |netrc: Netrc| {
        let mut options = options(&index.url, folder.path());
        let login = Some(Credentials::new("me", "s3cret"));
        options.indexes = vec![IndexSource { credentials: login, ..options.indexes.remove(0) }];
        options.netrc = netrc;
        let client = Client::new(options);
        let wheel = super::only_wheel(&client, "x");
        client.metadata(&wheel).unwrap_err();
        files.seen().last().unwrap().headers.get("authorization").cloned()
    };
    assert_eq!(ask(Netrc::default()), None);
    assert_eq!(ask(Netrc::parse("default login a password b")), None);
    assert!(ask(Netrc::parse("machine 127.0.0.1 login a password b")).is_some());
    assert!(index.seen()[0].headers.contains_key("authorization"));
}

#[test]
fn logins_do_not_follow_redirects() {
    let other = Server::start(|_| html(""));
    let target = format!("{}/x/", other.url);
    let index = Server::start(move |_| reply(302, "", "").header("Location", target.clone()));
    let folder = tempfile::tempdir().unwrap();
    let client = client(&index.url.replace("http://", "http://me:s3cret@"), folder.path());
    client.versions("test", &package("x")).unwrap();
    assert!(index.seen()[0].headers.contains_key("authorization"));
    assert!(!other.seen()[0].headers.contains_key("authorization"));
}

#[test]
fn a_copy_is_used_then_confirmed() {
    let server = Server::start(|seen| {
        if seen.headers.get("if-none-match").map(String::as_str) == Some("\"1\"") {
            return reply(304, "", "").header("Cache-Control", "max-age=600");
        }
        html(r#"<a href="x-1-py3-none-any.whl">x</a>"#).header("ETag", "\"1\"").header("Cache-Control", "max-age=4")
    });
    let folder = tempfile::tempdir().unwrap();
    let ask = || client(&server.url, folder.path()).versions("test", &package("x")).unwrap().len();
    assert_eq!((ask(), ask(), server.seen().len()), (1, 1, 1));
    std::thread::sleep(Duration::from_millis(5100));
    assert_eq!((ask(), server.seen().len()), (1, 2), "too old: asked, unchanged");
    assert_eq!((ask(), server.seen().len()), (1, 2), "fresh again");
    let again = Client::new(Options { revalidate: true, ..options(&server.url, folder.path()) });
    assert_eq!(again.versions("test", &package("x")).unwrap().len(), 1);
    assert_eq!(server.seen().len(), 3);
    assert!(again.page_age("test", &package("x")).unwrap().elapsed().unwrap() < Duration::from_secs(60));
}

#[test]
fn no_store_is_obeyed() {
    let server = Server::start(|_| html(r#"<a href="x-1-py3-none-any.whl">x</a>"#).header("Cache-Control", "no-store"));
    let folder = tempfile::tempdir().unwrap();
    client(&server.url, folder.path()).versions("test", &package("x")).unwrap();
    assert!(offline(&server.url, folder.path()).page_age("test", &package("x")).is_none());
    assert!(files(folder.path()).is_empty());
}

#[test]
fn pages_are_fetched_together() {
    let server = Server::start(|seen| Reply { wait: (Duration::from_millis(200), Duration::ZERO), ..page(seen) });
    let folder = tempfile::tempdir().unwrap();
    let client = client(&format!("{}/simple", server.url), folder.path());
    let names: Vec<_> = (0..8).map(|i| package(&format!("p{i}"))).collect();
    let start = std::time::Instant::now();
    client.prefetch("test", &names);
    assert!(start.elapsed() < Duration::from_millis(1000), "{:?}", start.elapsed());
    assert!(client.versions("test", &names[7]).unwrap().is_empty());
    assert_eq!(server.seen().len(), 8);
}

#[test]
fn gzip_is_understood() {
    // `gzip -9 < <(printf '<a href="x-1-py3-none-any.whl">x</a>')`, stored form.
    let text = br#"<a href="x-1-py3-none-any.whl">x</a>"#;
    let mut packed = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1];
    let length = text.len() as u16;
    packed.extend(length.to_le_bytes());
    packed.extend((!length).to_le_bytes());
    packed.extend(text);
    packed.extend(crc32(text).to_le_bytes());
    packed.extend(u32::from(length).to_le_bytes());
    let server = Server::start(move |_| html(packed.clone()).header("Content-Encoding", "gzip"));
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(client(&server.url, folder.path()).list("test", &package("x")).unwrap().len(), 1);
    assert!(server.seen()[0].headers["accept-encoding"].contains("gzip"));
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc: u32, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[test]
fn progress_is_told() {
    #[derive(Default)]
    struct Count(std::sync::Mutex<Vec<String>>);
    impl gpulock::registry::Progress for Count {
        fn start(&self, total: usize) {
            self.0.lock().unwrap().push(format!("start {total}"));
        }
        fn tick(&self, name: &str) {
            self.0.lock().unwrap().push(name.into());
        }
        fn finish(&self) {
            self.0.lock().unwrap().push("finish".into());
        }
    }
    let server = Server::start(page);
    let folder = tempfile::tempdir().unwrap();
    let count = Arc::new(Count::default());
    let progress = Arc::clone(&count);
    let url = format!("{}/simple", server.url);
    let client = Client::new(Options { progress, concurrency: 1, ..options(&url, folder.path()) });
    client.prefetch("test", &[package("torch"), package("other")]);
    assert_eq!(*count.0.lock().unwrap(), ["start 2", "torch", "other", "finish"]);
}
