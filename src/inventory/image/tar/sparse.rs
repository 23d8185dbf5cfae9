//! Sparse files in tar archives: where what is stored lies in the file. GNU tar's manual, "Storing Sparse Files": the old
//! GNU format, and 0.0, 0.1 and 1.0 of the pax format.

use tar::Header;

use super::{BLOCK, Source, Tar};
use crate::inventory::image::fault::Fault;

/// Parts of one file; each is a few dozen bytes of a map.
const MOST_PARTS: usize = 1 << 20;

/// What lies at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Span {
    Data,
    Hole,
}

/// How the content of an entry lies in what is stored; all of it is stored if there is no map.
#[derive(Debug, Default)]
pub(super) struct Sparse {
    /// Position and length of the parts that are stored, the next last; absent for other files.
    parts: Option<Vec<(u64, u64)>>,
    at: u64,
    size: u64,
}

/// What pax records say of a sparse file.
#[derive(Debug, Default)]
pub(super) struct Records {
    pub(super) name: Option<Vec<u8>>,
    major: Option<u64>,
    real_size: Option<u64>,
    /// Offsets and lengths in turn.
    map: Vec<u64>,
}

type Map = Vec<(u64, u64)>;

impl Records {
    pub(super) fn read(&mut self, key: &[u8], value: &[u8]) -> Result<(), Fault> {
        match key {
            b"GNU.sparse.name" => self.name = Some(value.to_vec()),
            b"GNU.sparse.major" => self.major = Some(decimal(value)?),
            b"GNU.sparse.realsize" | b"GNU.sparse.size" => self.real_size = Some(decimal(value)?),
            b"GNU.sparse.map" => {
                self.map = value.split(|byte| *byte == b',').map(decimal).collect::<Result<_, _>>()?;
            }
            b"GNU.sparse.offset" | b"GNU.sparse.numbytes" if self.map.len() < 2 * MOST_PARTS => {
                self.map.push(decimal(value)?);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Sparse {
    /// A file of `size` bytes, of which the parts of `map` are stored, `stored` bytes together.
    pub(super) fn of(mut map: Map, size: u64, stored: u64) -> Result<Self, Fault> {
        let mut end = 0;
        for (at, length) in &map {
            let next = at.checked_add(*length).filter(|next| *at >= end && *next <= size);
            end = next.ok_or_else(|| Fault::broken("the parts of a sparse file overlap or lie outside it".into()))?;
        }
        if map.iter().map(|(_, length)| length).sum::<u64>() != stored {
            return Err(Fault::broken("the parts of a sparse file are not as long as what is stored".into()));
        }
        map.reverse();
        Ok(Self { parts: Some(map), at: 0, size })
    }

    /// What comes next, and how many bytes of it; `stored` is what is left of the entry.
    pub(super) fn next(&mut self, stored: u64) -> (Span, u64) {
        let Some(parts) = &mut self.parts else { return (Span::Data, stored) };
        while parts.last().is_some_and(|(at, length)| at + length <= self.at) {
            parts.pop();
        }
        match parts.last() {
            Some((at, length)) if *at <= self.at => (Span::Data, at + length - self.at),
            Some((at, _)) => (Span::Hole, at - self.at),
            None => (Span::Hole, self.size - self.at),
        }
    }

    pub(super) fn advance(&mut self, count: u64) {
        self.at += count;
    }
}

impl<R: Source> Tar<R> {
    /// The map of the old GNU format: in the header, and in blocks behind it.
    pub(super) fn old_map(&mut self, header: &Header) -> Result<Option<(Map, u64)>, Fault> {
        let Some(gnu) = header.as_gnu() else { return Err(Fault::broken("a sparse file without a map".into())) };
        let size = gnu.real_size().map_err(|_| Fault::broken("a sparse file without a size".into()))?;
        let mut map = Map::new();
        let mut add = |parts: &[tar::GnuSparseHeader]| -> Result<(), Fault> {
            for part in parts.iter().filter(|part| !part.is_empty()) {
                let wrong = |_| Fault::broken("the map of a sparse file is damaged".into());
                map.push((part.offset().map_err(wrong)?, part.length().map_err(wrong)?));
            }
            if map.len() > MOST_PARTS { Err(Fault::broken("a sparse file in too many parts".into())) } else { Ok(()) }
        };
        add(&gnu.sparse)?;
        let mut more = gnu.is_extended();
        while more {
            let mut block = tar::GnuExtSparseHeader::new();
            // These blocks come before what the header calls the entry's size.
            self.reader.read_exact(block.as_mut_bytes())?;
            add(block.sparse())?;
            more = block.is_extended();
        }
        Ok(Some((map, size)))
    }

    /// The map of the pax formats: in the records, or before the content.
    pub(super) fn pax_map(&mut self, records: &Records) -> Result<Option<(Map, u64)>, Fault> {
        let Some(size) = records.real_size else { return Ok(None) };
        if records.major == Some(1) {
            let count = self.map_line()?;
            if count > MOST_PARTS as u64 {
                return Err(Fault::broken("a sparse file in too many parts".into()));
            }
            let mut map = Map::new();
            for _ in 0..count {
                map.push((self.map_line()?, self.map_line()?));
            }
            // The map fills whole blocks.
            let rest = (self.padding + self.stored) % BLOCK as u64;
            let mut filler = [0; BLOCK];
            self.stored(&mut filler[..rest as usize])?;
            return Ok(Some((map, size)));
        }
        let pairs = records.map.chunks_exact(2);
        if !pairs.remainder().is_empty() {
            return Err(Fault::broken("the map of a sparse file is damaged".into()));
        }
        Ok(Some((pairs.map(|pair| (pair[0], pair[1])).collect(), size)))
    }

    /// A decimal number and its line feed.
    fn map_line(&mut self) -> Result<u64, Fault> {
        let mut text = Vec::new();
        loop {
            let mut byte = [0];
            self.stored(&mut byte)?;
            match byte[0] {
                b'\n' => return decimal(&text),
                digit if text.len() < 20 => text.push(digit),
                _ => return Err(Fault::broken("the map of a sparse file is damaged".into())),
            }
        }
    }
}

pub(super) fn decimal(text: &[u8]) -> Result<u64, Fault> {
    let number = std::str::from_utf8(text).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let number = number.and_then(|text| text.parse().ok());
    number.ok_or_else(|| Fault::broken("a number in a pax header that is none".into()))
}
