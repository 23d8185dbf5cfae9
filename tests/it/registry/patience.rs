//! Servers that take their time: a request ends, a slow line does not end it, and who waits knows for whom.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gpulock::python::Catalog;
use gpulock::registry::{Client, Progress};

use super::server::{Server, html, reply};
use super::{client, only_wheel, options, package};
use crate::cli::program::{GOOD, Place};

const WHEEL: &str = "x-1-py3-none-any.whl";

/// A server that writes what comes after `GET`, in its own time; ends with the test.
fn server(answer: impl Fn(&str, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || {
                let mut stream = stream;
                let mut lines = BufReader::new(stream.try_clone()?).lines();
                let first = lines.next().unwrap_or_else(|| Ok(String::new()))?;
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                answer(first.split(' ').nth(1).unwrap_or_default(), &mut stream)
            });
        }
    });
    url
}

fn head(stream: &mut TcpStream, content_type: &str) -> std::io::Result<()> {
    stream.write_all(format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nConnection: close\r\n\r\n").as_bytes())
}

/// A page with one wheel, of `size` bytes if that is given.
fn page(stream: &mut TcpStream, size: Option<u64>) -> std::io::Result<()> {
    head(stream, "application/vnd.pypi.simple.v1+json")?;
    let size = size.map_or_else(String::new, |size| format!(",\"size\":{size}"));
    let file = format!("{{\"filename\":\"{WHEEL}\",\"url\":\"/{WHEEL}\",\"hashes\":{{}}{size}}}");
    stream.write_all(format!("{{\"meta\":{{\"api-version\":\"1.1\"}},\"files\":[{file}]}}").as_bytes())
}

/// Writes `part` again and again, with `pause` between.
fn drip(stream: &mut TcpStream, part: &[u8], pause: Duration) -> std::io::Result<()> {
    head(stream, "text/html")?;
    loop {
        stream.write_all(part)?;
        stream.flush()?;
        std::thread::sleep(pause);
    }
}

/// Why the METADATA of the only wheel cannot be read, and how long that took.
fn refused(url: &str) -> (String, Duration) {
    let folder = tempfile::tempdir().unwrap();
    let client = client(url, folder.path());
    let wheel = only_wheel(&client, "x");
    let start = Instant::now();
    let failure = client.metadata(&wheel).unwrap_err();
    (failure.to_string(), start.elapsed())
}

#[test]
fn a_wheel_without_end_is_cut_at_its_size() {
    let url = server(|path, stream| match path {
        "/x/" => page(stream, Some(5_000_000)),
        _ => drip(stream, &[7; 64 << 10], Duration::ZERO),
    });
    let (said, took) = refused(&url);
    assert!(said.contains("does not end after the 5000000 bytes that its page says"), "{said}");
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn a_length_that_is_not_the_size_is_not_downloaded() {
    let url = server(|path, stream| match path {
        "/x/" => page(stream, Some(5_000_000)),
        _ => stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\nabc"),
    });
    let (said, _) = refused(&url);
    assert!(said.contains("999999999999 bytes, but its page says 5000000"), "{said}");
}

#[test]
fn drops_do_not_keep_a_request_alive() {
    // The time limit for a part is 0.5 s, so that of a request is 5 s.
    let slow = Duration::from_millis(200);
    let url = server(move |_, stream| drip(stream, b"<", slow));
    let folder = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let said = client(&url, folder.path()).versions("test", &package("x")).unwrap_err().to_string();
    assert!(said.contains("bytes came within 5s"), "{said}");
    assert!(start.elapsed() < Duration::from_secs(9), "asked once: {:?}", start.elapsed());

    let url = server(move |path, stream| match path {
        "/x/" => page(stream, None),
        _ => drip(stream, b"<", slow),
    });
    let (said, took) = refused(&url);
    assert!(said.contains("bytes came within 5s") && took < Duration::from_secs(9), "{said} {took:?}");
}

#[test]
fn a_slow_line_brings_a_wheel_all_the_same() {
    // 8 s for 400 kB: longer than a request for anything else may take.
    let url = server(|path, stream| {
        if path == "/x/" {
            return page(stream, None);
        }
        head(stream, "application/zip")?;
        for _ in 0..80 {
            stream.write_all(&[7; 5000])?;
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    });
    let (said, took) = refused(&url);
    // It came to its end, and only then turned out to be no archive.
    assert!(said.contains("cannot be read") && took >= Duration::from_secs(8), "{said} {took:?}");
}

/// Remembers who was waited for.
#[derive(Default)]
struct Told(Mutex<Vec<(String, Duration, String)>>);

impl Progress for Told {
    fn start(&self, _total: usize) {}
    fn tick(&self, _name: &str) {}
    fn finish(&self) {}
    fn waiting(&self, host: &str, pause: Duration, why: &str) {
        self.0.lock().unwrap().push((host.into(), pause, why.into()));
    }
}

#[test]
fn who_waits_is_told_for_whom() {
    let server = Server::start(|seen| match seen.before {
        0 => reply(429, "", "").header("Retry-After", "1"),
        _ => html(""),
    });
    let folder = tempfile::tempdir().unwrap();
    let told = Arc::new(Told::default());
    let mut options = options(&server.url, folder.path());
    options.progress = Arc::clone(&told) as Arc<dyn Progress>;
    let client = Client::new(options);
    client.prefetch("test", &[package("a"), package("b"), package("c")]);
    let told = told.0.lock().unwrap();
    assert_eq!(told.len(), 1, "once for all that wait: {told:?}");
    assert_eq!((told[0].0.as_str(), told[0].1), ("127.0.0.1", Duration::from_secs(1)));
    assert!(told[0].2.contains("429"), "{told:?}");
}

#[test]
fn a_pause_that_is_too_long_is_not_waited_for() {
    let server = Server::start(|_| reply(503, "", "").header("Retry-After", "3600"));
    let folder = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let said = client(&server.url, folder.path()).versions("test", &package("x")).unwrap_err().to_string();
    assert!(said.contains("asks for a pause of 3600s, longer than 60s"), "{said}");
    assert!(start.elapsed() < Duration::from_secs(5) && server.seen().len() == 1);
}

#[test]
fn pauses_have_an_end_too() {
    // Three tries with 3 s between them do not fit into 5 s.
    let server = Server::start(|_| reply(429, "", "").header("Retry-After", "3"));
    let folder = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let said = client(&server.url, folder.path()).versions("test", &package("x")).unwrap_err().to_string();
    assert!(said.contains("given up after 5s"), "{said}");
    assert!(start.elapsed() < Duration::from_secs(5) && server.seen().len() == 2);
}

#[test]
fn a_signal_ends_a_wait() {
    use std::os::unix::process::ExitStatusExt;
    let server = Server::start(|_| reply(429, "", "").header("Retry-After", "50"));
    let place = Place::with(GOOD);
    let mut command = place.command(&["resolve", "--mirror", &format!("pypi={}", server.url)]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("note: waiting 50 s for 127.0.0.1: the server wants fewer requests"), "{line}");
    let start = Instant::now();
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().signal(), Some(15));
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(place.names(), ["gpulock.toml"]);
}
