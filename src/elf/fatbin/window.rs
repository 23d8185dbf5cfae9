//! The part of a file that was read last: takes places in it, gives the headers there, or where the next container is.
//!
//! Payloads are far larger than headers, so that little is read at each header, and more only where none is known.

use memchr::memmem::Finder;

use super::super::read::{Source, Unreadable};
use super::header::Container;

/// Bytes that are read for a header: those of its neighbours where payloads are small, and no page more.
const LITTLE: usize = 256;
/// Bytes that are read at a time in a long search: more than a system call costs, less than the processor's cache has.
const MUCH: usize = 64 << 10;
/// Bytes that are searched at most: more than the largest library has, far less than a file without content may claim.
const MOST_SEARCHED: u64 = 2 << 30;

/// The bytes that were read last.
pub(super) struct Window<'s, 'f> {
    source: &'s Source<'f>,
    bytes: Vec<u8>,
    start: u64,
    /// How much may still be searched.
    left: u64,
    finder: Finder<'static>,
}

impl<'s, 'f> Window<'s, 'f> {
    pub fn new(source: &'s Source<'f>) -> Self {
        let finder = Finder::new(&Container::BEGINNING).into_owned();
        Self { source, bytes: Vec::new(), start: 0, left: MOST_SEARCHED, finder }
    }

    /// `size` bytes at `at`, which must end before `end`; `what` they are is said in errors.
    pub fn get(&mut self, at: u64, size: usize, end: u64, what: &str) -> Result<&[u8], Unreadable> {
        let missing =
            move || Unreadable::damaged(at, format!("{what} begins {} bytes before its end", end.saturating_sub(at)));
        if end.saturating_sub(at) < size as u64 {
            return Err(missing());
        }
        let inside = at.checked_sub(self.start).and_then(|inside| usize::try_from(inside).ok());
        let mut inside = inside.filter(|inside| inside.saturating_add(size) <= self.bytes.len());
        if inside.is_none() {
            self.load(at, LITTLE.max(size))?;
            inside = Some(0);
        }
        inside.and_then(|inside| self.bytes.get(inside..inside + size)).ok_or_else(missing)
    }

    /// Where the first container at or behind `from` begins whose header ends before `end`.
    pub fn find(&mut self, from: u64, end: u64) -> Result<Option<u64>, Unreadable> {
        let mut at = from.checked_next_multiple_of(Container::ALIGNMENT).unwrap_or(end);
        // The next container mostly begins a few bytes behind the last one.
        let mut size = LITTLE;
        while end.saturating_sub(at) >= Container::SIZE as u64 {
            self.left = self.left.checked_sub(size as u64).ok_or_else(|| {
                Unreadable::damaged(at, format!("more than {MOST_SEARCHED} bytes between GPU code containers"))
            })?;
            self.load(at, size)?;
            // All that is read begins at a multiple of 8 and has as many bytes: no beginning lies across its end.
            let aligned = |inside: &usize| (*inside as u64).is_multiple_of(Container::ALIGNMENT);
            if let Some(inside) = self.finder.find_iter(&self.bytes).find(aligned) {
                let found = at + inside as u64;
                return Ok((end.saturating_sub(found) >= Container::SIZE as u64).then_some(found));
            }
            if self.bytes.len() < size {
                return Ok(None);
            }
            at += size as u64;
            size = (size * 4).min(MUCH);
        }
        Ok(None)
    }

    fn load(&mut self, at: u64, size: usize) -> Result<(), Unreadable> {
        self.start = at;
        self.bytes.resize(size, 0);
        let count = self.source.some(at, &mut self.bytes)?;
        self.bytes.truncate(count);
        Ok(())
    }
}
