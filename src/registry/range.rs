//! A file on a server, read here and there: takes its address, gives [`Read`] and [`Seek`] over range requests (RFC
//! 9110, section 14).
//!
//! A zip archive is read from its end. The first request takes a tail that for most wheels holds all that is wanted, and
//! later ones fill the gap up to what is held already, so that a handful of requests does for any wheel.

use std::cell::{Cell, RefCell};
use std::io::{self, Read, Seek, SeekFrom};

use reqwest::StatusCode;
use reqwest::blocking::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_RANGE, RANGE};
use url::Url;

use super::failure;
use super::options::IndexSource;
use super::transport::{Request, Transport, Trouble, unexpected};
use crate::diag::Failure;

/// What the first request asks for: enough for the central directory, METADATA and RECORD of most wheels, little beside
/// one of the few that have thousands of members.
const TAIL: u64 = 256 << 10;
/// A gap of at most this is closed in one request.
const GAP: u64 = 4 << 20;
/// Read ahead: at first, and after reading on and on.
const AHEAD: std::ops::RangeInclusive<u64> = 64 << 10..=8 << 20;
/// What is held at most, besides the tail.
const HELD: usize = 32 << 20;
/// A sound archive is read with fewer requests than this.
const REQUESTS: u32 = 16;
/// An answer that ignores the range is taken if it is no larger than this.
const WHOLE: u64 = 4 << 20;

/// A file on a server that knows ranges.
pub(super) struct Remote<'a> {
    transport: &'a Transport,
    index: &'a IndexSource,
    url: Url,
    pub(super) size: u64,
    held: RefCell<Held>,
    /// Requests that are left: what is no archive must not be searched to its beginning.
    left: Cell<u32>,
}

/// Parts of the file. The first is the tail and stays.
struct Held {
    parts: Vec<(u64, Vec<u8>)>,
    /// Where the last read-ahead ended, and how long it was.
    ahead: (u64, u64),
}

/// How the first request ended.
pub(super) enum Opened<'a> {
    Remote(Remote<'a>),
    /// The server sent all of it, or the tail is all of it.
    Whole(Vec<u8>),
    /// The server knows no ranges.
    NoRanges,
}

enum First {
    Part {
        start: u64,
        total: u64,
        body: Vec<u8>,
    },
    Whole(Vec<u8>),
    /// The size is known now, and a range with absolute positions may work.
    Size(u64),
    NoRanges,
}

impl<'a> Remote<'a> {
    /// Opens the file at `url`, of `size` bytes where the index tells.
    pub(super) fn open(
        transport: &'a Transport,
        index: &'a IndexSource,
        url: &Url,
        size: Option<u64>,
    ) -> Result<Opened<'a>, Failure> {
        let first = match size {
            Some(size) => tail_of(transport, index, url, size)?,
            None => match first_range(transport, index, url, format!("bytes=-{TAIL}"))? {
                First::Size(size) => tail_of(transport, index, url, size)?,
                other => other,
            },
        };
        let (start, total, body) = match first {
            First::Part { start, total, body } => (start, total, body),
            First::Whole(body) => return Ok(Opened::Whole(body)),
            First::Size(_) | First::NoRanges => return Ok(Opened::NoRanges),
        };
        check_size(index, url, size, total)?;
        if start + body.len() as u64 != total {
            return Ok(Opened::NoRanges);
        }
        if start == 0 {
            return Ok(Opened::Whole(body));
        }
        let held = Held { parts: vec![(start, body)], ahead: (0, *AHEAD.start()) };
        let (held, left) = (RefCell::new(held), Cell::new(REQUESTS));
        Ok(Opened::Remote(Self { transport, index, url: url.clone(), size: total, held, left }))
    }

    /// From here on, as many requests as it takes.
    pub(super) fn unlimited(&self) {
        self.left.set(u32::MAX);
    }

    /// Makes sure that `start..end` is held, with one request if it is not.
    pub(super) fn want(&self, start: u64, end: u64) -> Result<(), Failure> {
        let end = end.min(self.size);
        let from = self.held_until(start);
        if from < end { self.fetch(from, end) } else { Ok(()) }
    }

    /// Whether `start..end` can be read without a request.
    pub(super) fn holds(&self, start: u64, end: u64) -> bool {
        self.held_until(start) >= end.min(self.size)
    }

    fn held_until(&self, start: u64) -> u64 {
        let held = self.held.borrow();
        held.parts.iter().fold(start, |from, (at, part)| {
            let end = *at + part.len() as u64;
            if (*at..end).contains(&from) { end } else { from }
        })
    }

    fn fetch(&self, start: u64, end: u64) -> Result<(), Failure> {
        let Some(left) = self.left.get().checked_sub(1) else {
            let fact = format!("{REQUESTS} range requests were not enough to find the directory of the archive");
            return Err(failure::bad_answer(self.index, &self.url, &fact));
        };
        self.left.set(left);
        let range = format!("bytes={start}-{}", end - 1);
        let request = Request::get(self.index, &self.url).header(RANGE, range);
        let body = self.transport.send(&request, |response| {
            if response.status() != StatusCode::PARTIAL_CONTENT {
                return Err(unexpected(self.transport, &request, response.status()).into());
            }
            let place = content_range(&response);
            let body = self.transport.body(&request, response, end - start)?;
            match place {
                Some((from, total)) if from == start && total == self.size && !body.is_empty() => Ok(body),
                _ => {
                    let fact = format!("it was asked for bytes {start} to {end} and sent others");
                    Err(failure::bad_answer(self.index, &self.url, &fact).into())
                }
            }
        })?;
        let mut held = self.held.borrow_mut();
        held.parts.push((start, body));
        while held.parts.len() > 2 && held.parts[1..].iter().map(|(_, part)| part.len()).sum::<usize>() > HELD {
            held.parts.remove(1);
        }
        Ok(())
    }

    /// Copies what is held at `position` into `buffer`.
    fn copy(&self, position: u64, buffer: &mut [u8]) -> Option<usize> {
        let held = self.held.borrow();
        let (at, part) = held.parts.iter().find(|(at, part)| (*at..*at + part.len() as u64).contains(&position))?;
        let part = &part[(position - at) as usize..];
        let count = part.len().min(buffer.len());
        buffer[..count].copy_from_slice(&part[..count]);
        Some(count)
    }

    /// Fetches from `position` on: up to what is held if that is near, else ahead, ever further when read on and on.
    fn read_ahead(&self, position: u64) -> Result<(), Failure> {
        let held = self.held.borrow();
        let next = held.parts.iter().map(|(at, _)| *at).filter(|at| *at > position).min().unwrap_or(self.size);
        let (last_end, length) = held.ahead;
        drop(held);
        let length = if last_end == position { (length * 2).min(*AHEAD.end()) } else { *AHEAD.start() };
        let end = if next - position <= GAP { next } else { position + length };
        self.held.borrow_mut().ahead = (end, length);
        self.fetch(position, end)
    }
}

/// Refuses a file whose size is not what its page says.
pub(super) fn check_size(index: &IndexSource, url: &Url, said: Option<u64>, found: u64) -> Result<(), Failure> {
    match said {
        Some(said) if said != found => {
            let fact = format!("the file has {found} bytes, but its page says {said}");
            Err(failure::bad_answer(index, url, &fact))
        }
        _ => Ok(()),
    }
}

/// The tail of a file of `size` bytes.
fn tail_of(transport: &Transport, index: &IndexSource, url: &Url, size: u64) -> Result<First, Failure> {
    if size == 0 {
        return Err(failure::bad_answer(index, url, "the file is empty"));
    }
    first_range(transport, index, url, format!("bytes={}-{}", size.saturating_sub(TAIL), size - 1))
}

fn first_range(transport: &Transport, index: &IndexSource, url: &Url, range: String) -> Result<First, Failure> {
    let suffix = range.starts_with("bytes=-");
    let request = Request::get(index, url).header(RANGE, range);
    transport.send(&request, |response| {
        let status = response.status();
        let length = response.content_length();
        match status {
            StatusCode::PARTIAL_CONTENT if !response.headers().contains_key(CONTENT_ENCODING) => {
                let Some((start, total)) = content_range(&response) else { return Ok(First::NoRanges) };
                Ok(First::Part { start, total, body: transport.body(&request, response, TAIL)? })
            }
            StatusCode::PARTIAL_CONTENT => Ok(First::NoRanges),
            StatusCode::OK if length.is_some_and(|length| length <= WHOLE) => {
                Ok(First::Whole(transport.body(&request, response, WHOLE)?))
            }
            StatusCode::OK => {
                let promises = response.headers().get("accept-ranges").is_some_and(|value| value == "bytes");
                Ok(length.filter(|_| suffix && promises).map_or(First::NoRanges, First::Size))
            }
            StatusCode::RANGE_NOT_SATISFIABLE => {
                let total = response.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
                let total = total.and_then(|text| text.strip_prefix("bytes */")?.trim().parse().ok());
                match total.filter(|_| suffix) {
                    Some(total) => Ok(First::Size(total)),
                    None => {
                        Err(Trouble::Lasting(failure::bad_answer(index, url, "the file is shorter than its page says")))
                    }
                }
            }
            _ => Err(unexpected(transport, &request, status).into()),
        }
    })
}

/// Start and total of `Content-Range: bytes 5-9/10`.
fn content_range(response: &Response) -> Option<(u64, u64)> {
    let text = response.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    Some((range.split_once('-')?.0.trim().parse().ok()?, total.trim().parse().ok()?))
}

/// Reads a [`Remote`] from a position of its own.
pub(super) struct RangeReader<'a> {
    pub(super) remote: std::rc::Rc<Remote<'a>>,
    position: u64,
}

impl<'a> RangeReader<'a> {
    pub(super) fn new(remote: std::rc::Rc<Remote<'a>>) -> Self {
        Self { remote, position: 0 }
    }
}

impl Read for RangeReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() || self.position >= self.remote.size {
            return Ok(0);
        }
        let count = match self.remote.copy(self.position, buffer) {
            Some(count) => count,
            None => {
                self.remote.read_ahead(self.position).map_err(io::Error::other)?;
                self.remote.copy(self.position, buffer).unwrap_or_default()
            }
        };
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for RangeReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(offset) => self.remote.size.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}
