//! A small HTTP/1.1 server that does as it is told, also wrongly.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request as it came in. Header names are in lower case.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    pub path: String,
    pub headers: HashMap<String, String>,
    pub body: String,
    /// How many requests for this path came before.
    pub before: usize,
}

/// What to answer.
#[derive(Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Close the connection after so many bytes of the body.
    pub cut: Option<usize>,
    /// Wait before the answer, and in the middle of its body.
    pub wait: (Duration, Duration),
}

pub fn reply(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Reply {
    let headers = if content_type.is_empty() { vec![] } else { vec![("Content-Type".into(), content_type.into())] };
    Reply { status, headers, body: body.into(), cut: None, wait: Default::default() }
}

pub fn html(body: impl Into<Vec<u8>>) -> Reply {
    reply(200, "text/html; charset=utf-8", body)
}

impl Reply {
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }
}

/// `file`, or the part of it that `seen` asks for.
pub fn ranged(seen: &Seen, file: &[u8]) -> Reply {
    let Some(range) = seen.headers.get("range").and_then(|range| range.strip_prefix("bytes=")) else {
        return reply(200, "application/octet-stream", file);
    };
    let (first, last) = range.split_once('-').unwrap();
    let size = file.len();
    let (start, end) = match (first.parse::<usize>(), last.parse::<usize>()) {
        (Ok(start), Ok(last)) => (start, (last + 1).min(size)),
        (Ok(start), Err(_)) => (start, size),
        (Err(_), Ok(suffix)) => (size.saturating_sub(suffix), size),
        _ => panic!("range {range}"),
    };
    if start >= size {
        return reply(416, "", "").header("Content-Range", format!("bytes */{size}"));
    }
    reply(206, "application/octet-stream", &file[start..end])
        .header("Content-Range", format!("bytes {start}-{}/{size}", end - 1))
}

pub struct Server {
    pub url: String,
    log: Arc<Mutex<Vec<Seen>>>,
    stop: Arc<AtomicBool>,
}

impl Server {
    pub fn start(answer: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let log: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let stop: Arc<AtomicBool> = Arc::default();
        let answer = Arc::new(answer);
        let (accepted, stopped) = (Arc::clone(&log), Arc::clone(&stop));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let (log, answer) = (Arc::clone(&accepted), Arc::clone(&answer));
                // A client that hangs up early is part of some tests.
                std::thread::spawn(move || stream.and_then(|stream| serve(stream, &log, &*answer)));
            }
        });
        Self { url, log, stop }
    }

    /// The requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.log.lock().unwrap().clone()
    }

    /// How many requests for paths that end so.
    pub fn count(&self, end: &str) -> usize {
        self.seen().iter().filter(|seen| seen.path.ends_with(end)).count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the listener.
        let _ = TcpStream::connect(self.url.trim_start_matches("http://"));
    }
}

fn serve(mut stream: TcpStream, log: &Mutex<Vec<Seen>>, answer: &dyn Fn(&Seen) -> Reply) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut lines = reader.by_ref().lines();
    let first = lines.next().unwrap_or_else(|| Ok(String::new()))?;
    let mut words = first.split(' ').map(str::to_owned);
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(()) };
    let mut headers = HashMap::new();
    for line in lines {
        let line = line?;
        let Some((name, value)) = line.split_once(": ") else { break };
        headers.insert(name.to_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = String::new();
    reader.take(length).read_to_string(&mut body)?;
    let seen = {
        let mut log = log.lock().unwrap();
        let before = log.iter().filter(|seen| seen.path == path).count();
        let seen = Seen { method, path, headers, body, before };
        log.push(seen.clone());
        seen
    };
    let reply = answer(&seen);
    std::thread::sleep(reply.wait.0);
    let mut head = format!("HTTP/1.1 {} X\r\nConnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        head += &format!("{name}: {value}\r\n");
    }
    if !reply.headers.iter().any(|(name, _)| name == "Content-Length") {
        head += &format!("Content-Length: {}\r\n", reply.body.len());
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    if seen.method != "HEAD" {
        let body = &reply.body[..reply.cut.unwrap_or(reply.body.len())];
        let (first, second) = body.split_at(body.len() / 2);
        stream.write_all(first)?;
        stream.flush()?;
        std::thread::sleep(reply.wait.1);
        stream.write_all(second)?;
    }
    stream.flush()
}
