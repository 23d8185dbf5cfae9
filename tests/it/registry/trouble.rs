//! Indexes that fail, each in its own way: the right code, index and address in the message, and something to do.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use gpulock::diag::{Class, Failure};
use gpulock::python::Catalog;

use super::server::{Reply, Seen, Server, html, reply};
use super::{client, only_wheel, package};

const PAGE: &str = r#"<a href="x-1-py3-none-any.whl">x</a>"#;

/// Asks for one page: how many versions, or why not.
fn ask(url: &str) -> Result<usize, Failure> {
    let folder = tempfile::tempdir().unwrap();
    client(url, folder.path()).versions("test", &package("x")).map(|versions| versions.len())
}

/// The failure, after the checks that hold for all of them.
fn fails(url: &str, code: &str) -> String {
    let failure = ask(url).unwrap_err();
    assert_eq!(failure.class, Class::Unanswerable);
    let diagnostic = &failure.diagnostics[0];
    assert_eq!(diagnostic.code, code, "{failure}");
    assert!(diagnostic.message.contains("`test`") && diagnostic.message.contains("/x/"), "{failure}");
    assert!(!diagnostic.evidence.is_empty() && diagnostic.fix.is_some());
    failure.to_string()
}

#[test]
fn server_error_then_answer() {
    let server = Server::start(|seen| if seen.before == 0 { reply(500, "text/html", "oops") } else { html(PAGE) });
    assert_eq!(ask(&server.url).unwrap(), 1);
    assert_eq!(server.seen().len(), 2);
}

#[test]
fn server_error_for_good() {
    let server = Server::start(|_| reply(503, "", ""));
    let message = fails(&server.url, "index-unreachable");
    assert!(message.contains("503"), "{message}");
    assert_eq!(server.seen().len(), 3, "the first try and two more");
}

#[test]
fn too_many_requests_waits_as_asked() {
    let server = Server::start(|seen| match seen.before {
        0 => reply(429, "", "").header("Retry-After", "1"),
        _ => html(PAGE),
    });
    let start = Instant::now();
    assert_eq!(ask(&server.url).unwrap(), 1);
    assert!(start.elapsed() >= Duration::from_secs(1));
}

#[test]
fn a_date_in_the_past_means_now() {
    let server = Server::start(|seen| match seen.before {
        0 => reply(429, "", "").header("Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT"),
        _ => html(PAGE),
    });
    let start = Instant::now();
    assert_eq!(ask(&server.url).unwrap(), 1);
    assert!(start.elapsed() < Duration::from_millis(500));
}

#[test]
fn refusals() {
    for status in [401, 403] {
        let server = Server::start(move |_| reply(status, "", ""));
        let message = fails(&server.url, "index-unauthorized");
        assert!(message.contains(&status.to_string()) && message.contains("no login was sent"), "{message}");
    }
}

#[test]
fn strange_statuses() {
    for status in [302, 418, 501] {
        let server = Server::start(move |_| reply(status, "", ""));
        assert!(fails(&server.url, "index-bad-answer").contains(&status.to_string()));
        assert_eq!(server.seen().len(), 1, "no use to try again");
    }
}

#[test]
fn wrong_content_type() {
    let server = Server::start(|_| reply(200, "application/json", "{}"));
    assert!(fails(&server.url, "index-bad-answer").contains("application/json"));
    let server = Server::start(|_| reply(200, "", PAGE));
    assert!(fails(&server.url, "index-bad-answer").contains("content type"));
}

#[test]
fn broken_json() {
    for body in ["", "{", "[]", r#"{"meta":{"api-version":"1.0"}}"#, r#"{"meta":{"api-version":"9.0"},"files":[]}"#] {
        let server = Server::start(move |_| reply(200, "application/vnd.pypi.simple.v1+json", body));
        fails(&server.url, "index-bad-answer");
    }
}

#[test]
fn unchanged_although_nobody_asked() {
    let server = Server::start(|_| reply(304, "", ""));
    fails(&server.url, "index-bad-answer");
}

#[test]
fn cut_off_then_whole() {
    let cut = |seen: &Seen| Reply { cut: (seen.before == 0).then_some(10), ..html(PAGE) };
    let server = Server::start(cut);
    assert_eq!(ask(&server.url).unwrap(), 1);
}

#[test]
fn cut_off_for_good() {
    let server = Server::start(|_| Reply { cut: Some(10), ..html(PAGE) });
    let message = fails(&server.url, "index-unreachable");
    assert!(message.contains("cut off"), "{message}");
}

#[test]
fn slow_to_answer_and_slow_to_go_on() {
    let long = Duration::from_millis(900);
    let server = Server::start(move |_| Reply { wait: (long, Duration::ZERO), ..html(PAGE) });
    assert!(fails(&server.url, "index-unreachable").contains("no answer within"));
    let server = Server::start(move |_| Reply { wait: (Duration::ZERO, long), ..html(PAGE) });
    assert!(fails(&server.url, "index-unreachable").contains("stopped after"));
}

#[test]
fn redirects() {
    let server = Server::start(|seen| match seen.path.as_str() {
        "/x/" => reply(301, "", "").header("Location", "/moved/x/"),
        _ => html(PAGE),
    });
    let folder = tempfile::tempdir().unwrap();
    let wheel = only_wheel(&client(&server.url, folder.path()), "x");
    assert!(wheel.url.as_deref().unwrap().ends_with("/moved/x/x-1-py3-none-any.whl"), "relative to where the page is");
    let server = Server::start(|seen| reply(302, "", "").header("Location", seen.path.clone()));
    assert!(fails(&server.url, "index-bad-answer").contains("redirects"));
}

#[test]
fn nobody_there() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let message = fails(&format!("http://{free}/simple"), "index-unreachable");
    assert!(message.contains("no connection"), "{message}");
    let message = fails("http://no-such-host.invalid/simple", "index-unreachable");
    assert!(message.contains("is not known"), "{message}");
}

#[test]
fn not_http() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(4).flatten() {
            use std::io::{Read, Write};
            let mut stream = stream;
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(b"220 mail.example ESMTP\r\n");
        }
    });
    fails(&format!("http://{address}"), "index-unreachable");
    let message = fails(&format!("https://{address}"), "index-unreachable");
    assert!(message.contains("no TLS connection"), "{message}");
}

#[test]
fn a_failure_is_told_when_its_page_is_asked_for() {
    let server = Server::start(|seen| if seen.path == "/bad/" { reply(500, "", "") } else { html(PAGE) });
    let folder = tempfile::tempdir().unwrap();
    let client = client(&server.url, folder.path());
    client.prefetch("test", &[package("bad"), package("x")]);
    let before = server.seen().len();
    assert_eq!(client.versions("test", &package("x")).unwrap().len(), 1);
    assert!(client.versions("test", &package("bad")).is_err());
    assert_eq!(server.seen().len(), before, "asked once");
}

#[test]
fn a_wheel_that_is_gone() {
    let server = Server::start(|seen| if seen.path.ends_with(".whl") { reply(404, "", "") } else { html(PAGE) });
    let folder = tempfile::tempdir().unwrap();
    let client = client(&server.url, folder.path());
    let failure = client.metadata(&only_wheel(&client, "x")).unwrap_err();
    assert_eq!(failure.diagnostics[0].code, "index-bad-answer");
    assert!(failure.to_string().contains("404"));
}

#[test]
fn a_size_that_is_wrong() {
    let page = r#"{"meta":{"api-version":"1.1"},"files":[
        {"filename":"x-1-py3-none-any.whl","url":"/f/x-1-py3-none-any.whl","hashes":{},"size":50}]}"#;
    let server = Server::start(move |seen| match seen.path.as_str() {
        "/x/" => reply(200, "application/vnd.pypi.simple.v1+json", page),
        _ => super::server::ranged(seen, &[7; 70]),
    });
    let folder = tempfile::tempdir().unwrap();
    let client = client(&server.url, folder.path());
    let failure = client.metadata(&only_wheel(&client, "x")).unwrap_err();
    assert!(failure.to_string().contains("70 bytes"), "{failure}");
}

#[test]
fn a_wheel_that_was_replaced() {
    let page = format!("<a href=\"x-1-py3-none-any.whl#sha256={}\">x</a>", "a".repeat(64));
    let server = Server::start(move |_| html(page.clone()));
    let folder = tempfile::tempdir().unwrap();
    let client = client(&server.url, folder.path());
    let mut wheel = (*only_wheel(&client, "x")).clone();
    wheel.sha256 = Some("b".repeat(64).into());
    let failure = client.libraries(&wheel).unwrap_err();
    assert_eq!(failure.diagnostics[0].code, "hash-mismatch");
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn a_copy_in_the_cache_is_mentioned() {
    let server = Server::start(|seen| match seen.before {
        0 => html(PAGE).header("Cache-Control", "max-age=0"),
        _ => reply(502, "", ""),
    });
    let folder = tempfile::tempdir().unwrap();
    client(&server.url, folder.path()).versions("test", &package("x")).unwrap();
    let failure = client(&server.url, folder.path()).versions("test", &package("x")).unwrap_err();
    assert_eq!(failure.diagnostics[0].evidence.len(), 2);
    assert!(format!("{failure:?}").contains("--offline"));
}
