//! What a wheel says of itself: METADATA by PEP 658 where the index offers it, else from the archive; RECORD from the
//! archive. The archive is read by range requests, or after a whole download where the server knows no ranges.

use std::fs::File;
use std::io::{BufReader, Cursor, Seek, Write};
use std::path::PathBuf;

use sha2::{Digest, Sha256};
use url::Url;

use super::archive::{Archive, Damage, Source};
use super::cache::{Kind, Stamp, hex};
use super::client::Client;
use super::failure;
use super::metadata::{Facts, Refusal};
use super::options::{IndexSource, Mode};
use super::page::Offer;
use super::range::{Opened, Remote};
use super::record;
use super::transport::{Request, unexpected};
use crate::diag::Failure;
use crate::python::{Library, Wheel};

/// METADATA beside a wheel is refused above this size, as inside.
const METADATA_LIMIT: u64 = 16 << 20;

impl Client {
    /// What METADATA says, from the cache or the index.
    pub(super) fn facts(&self, index: &IndexSource, wheel: &Wheel) -> Result<Facts, Failure> {
        let cached = self.cache.wheel(index, wheel, Kind::Metadata);
        if kept(index) {
            if let Some((_, facts)) = self.cache.read(&cached, &wheel.name.file) {
                return Ok(facts);
            }
            if self.mode == Mode::CacheOnly {
                return Err(failure::not_cached(&wheel.index, &wheel.name.file, "METADATA"));
            }
        }
        let (url, offer) = self.address(index, wheel)?;
        let facts = match offer {
            Some(offer) => match self.beside(index, &url, &offer)? {
                Some(bytes) => self.judge(index, wheel, Facts::read(&bytes, &wheel.name))?,
                None => self.open(index, wheel, &url, |client, archive| client.metadata_of(index, wheel, archive))?,
            },
            None => self.open(index, wheel, &url, |client, archive| client.metadata_of(index, wheel, archive))?,
        };
        if kept(index) {
            self.cache.write(&cached, Stamp::new(wheel.name.file.to_string()), &facts);
        }
        Ok(facts)
    }

    /// The shared libraries that RECORD lists, from the cache or the index.
    pub(super) fn record(&self, index: &IndexSource, wheel: &Wheel) -> Result<Vec<Library>, Failure> {
        type Row = (String, String, u64);
        let cached = self.cache.wheel(index, wheel, Kind::Libraries);
        if kept(index) {
            if let Some((_, rows)) = self.cache.read::<Vec<Row>>(&cached, &wheel.name.file) {
                return Ok(rows.into_iter().map(|(path, sha256, size)| Library { path, sha256, size }).collect());
            }
            if self.mode == Mode::CacheOnly {
                return Err(failure::not_cached(&wheel.index, &wheel.name.file, "RECORD"));
            }
        }
        let (url, _) = self.address(index, wheel)?;
        let libraries =
            self.open(index, wheel, &url, |_, archive| record::libraries(&archive.record()?).map_err(Damage::Content))?;
        if kept(index) {
            self.keep_libraries(index, wheel, &libraries);
        }
        Ok(libraries)
    }

    /// Where a wheel is, and whether its METADATA stands beside it: as its index's page says, else as the wheel says.
    pub(super) fn address(&self, index: &IndexSource, wheel: &Wheel) -> Result<(Url, Option<Offer>), Failure> {
        let page = self.page(index, &wheel.name.package)?;
        let file = &*wheel.name.file;
        let listed = page.wheel(&wheel.name).filter(|listed| wheel.sha256.is_none() || listed.sha256 == wheel.sha256);
        let (url, offer) = match listed {
            Some(listed) => (&listed.url, page.offer(file).cloned()),
            None => (&wheel.url, None),
        };
        let url = url.as_deref().and_then(|url| url.parse().ok());
        Ok((url.ok_or_else(|| failure::wheel_unlisted(&wheel.index, file))?, offer))
    }

    /// METADATA beside the wheel; `None` if it is not there after all.
    fn beside(&self, index: &IndexSource, wheel: &Url, offer: &Offer) -> Result<Option<Vec<u8>>, Failure> {
        let mut url = wheel.clone();
        url.set_path(&format!("{}.metadata", wheel.path()));
        if url.scheme() == "file" {
            return Ok(local_path(&url).and_then(|path| std::fs::read(path).ok()));
        }
        let request = Request::get(index, &url);
        let bytes = self.transport.send(&request, |response| match response.status().as_u16() {
            200 => self.transport.body(&request, response, METADATA_LIMIT).map(Some),
            404 => Ok(None),
            _ => Err(unexpected(&self.transport, &request, response.status()).into()),
        })?;
        if let (Some(bytes), Some(expected)) = (&bytes, &offer.sha256) {
            check(index, &url, expected, &hex(&Sha256::digest(bytes)))?;
        }
        Ok(bytes)
    }

    fn metadata_of(&self, index: &IndexSource, wheel: &Wheel, archive: &mut Archive) -> Result<Facts, Damage> {
        Ok(self.judge(index, wheel, Facts::read(&archive.metadata()?, &wheel.name))?)
    }

    fn judge(&self, index: &IndexSource, wheel: &Wheel, read: Result<Facts, Refusal>) -> Result<Facts, Failure> {
        read.map_err(|refusal| match refusal {
            Refusal::Unreadable(fact) => failure::wheel_unreadable(&index.name, &wheel.name.file, &fact),
            Refusal::Mismatch(fact) => failure::metadata_mismatch(&index.name, &wheel.name.file, &fact),
        })
    }

    /// Opens the archive at `url` and has `read` read it.
    pub(super) fn open<T>(
        &self,
        index: &IndexSource,
        wheel: &Wheel,
        url: &Url,
        read: impl FnOnce(&Self, &mut Archive) -> Result<T, Damage>,
    ) -> Result<T, Failure> {
        let damaged = |damage| match damage {
            Damage::Transport(failure) => failure,
            Damage::Content(fact) => failure::wheel_unreadable(&index.name, &wheel.name.file, &fact),
        };
        let source = if url.scheme() == "file" {
            let path = local_path(url).unwrap_or_else(|| url.path().into());
            let file = File::open(&path).map_err(|error| failure::local(index, &path.display().to_string(), &error))?;
            Source::File(BufReader::new(file))
        } else {
            match Remote::open(&self.transport, index, url, wheel.size)? {
                Opened::Remote(remote) => {
                    let archive = Archive::remote(remote, &wheel.name);
                    return archive.and_then(|mut archive| read(self, &mut archive)).map_err(damaged);
                }
                Opened::Whole(bytes) => {
                    if let Some(expected) = &wheel.sha256 {
                        check(index, url, expected, &hex(&Sha256::digest(&bytes)))?;
                    }
                    Source::Memory(Cursor::new(bytes))
                }
                Opened::NoRanges => {
                    let mut archive =
                        Archive::local(self.download(index, wheel, url)?, &wheel.name).map_err(damaged)?;
                    // Such a download is dear: what else is in it is kept as well.
                    self.keep(index, wheel, &mut archive);
                    return read(self, &mut archive).map_err(damaged);
                }
            }
        };
        Archive::local(source, &wheel.name).and_then(|mut archive| read(self, &mut archive)).map_err(damaged)
    }

    /// The whole wheel, checked against its hash, in a file that vanishes when it is closed.
    fn download(&self, index: &IndexSource, wheel: &Wheel, url: &Url) -> Result<Source<'static>, Failure> {
        let request = Request::get(index, url);
        let unwritable =
            |error: std::io::Error| failure::local(index, "a download cannot be kept on this disk", &error);
        let (file, found) = self.transport.send(&request, |response| {
            if !response.status().is_success() {
                return Err(unexpected(&self.transport, &request, response.status()).into());
            }
            let total = response.content_length();
            let mut file = self.cache.scratch().map_err(unwritable)?;
            let mut hash = Sha256::new();
            let mut done = 0;
            self.transport.stream(response, |part| {
                file.write_all(part).map_err(unwritable)?;
                hash.update(part);
                done += part.len() as u64;
                self.progress.bytes(&wheel.name.file, done, total);
                Ok(())
            })?;
            Ok((file, hex(&hash.finalize())))
        })?;
        if let Some(expected) = &wheel.sha256 {
            check(index, url, expected, &found)?;
        }
        let mut file = BufReader::new(file);
        file.rewind().map_err(unwritable)?;
        Ok(Source::File(file))
    }

    fn keep(&self, index: &IndexSource, wheel: &Wheel, archive: &mut Archive) {
        if let Ok(facts) = self.metadata_of(index, wheel, archive) {
            let path = self.cache.wheel(index, wheel, Kind::Metadata);
            self.cache.write(&path, Stamp::new(wheel.name.file.to_string()), &facts);
        }
        if let Some(libraries) = archive.record().ok().and_then(|bytes| record::libraries(&bytes).ok()) {
            self.keep_libraries(index, wheel, &libraries);
        }
    }

    fn keep_libraries(&self, index: &IndexSource, wheel: &Wheel, libraries: &[Library]) {
        let rows: Vec<_> = libraries.iter().map(|library| (&library.path, &library.sha256, library.size)).collect();
        let path = self.cache.wheel(index, wheel, Kind::Libraries);
        self.cache.write(&path, Stamp::new(wheel.name.file.to_string()), &rows);
    }
}

fn check(index: &IndexSource, url: &Url, expected: &str, found: &str) -> Result<(), Failure> {
    if expected == found { Ok(()) } else { Err(failure::hash_mismatch(index, url, expected, found)) }
}

/// Whether the cache serves an index. What is on this machine may change at any time, and costs nothing to read again.
fn kept(index: &IndexSource) -> bool {
    index.url.scheme() != "file"
}

/// The path of a `file` URL.
pub(super) fn local_path(url: &Url) -> Option<PathBuf> {
    url.to_file_path().ok()
}
