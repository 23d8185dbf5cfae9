//! What a wheel says of itself: METADATA by PEP 658 where the index offers it, else from the archive; RECORD from the
//! archive. The archive is read by range requests, or after a whole download where the server knows no ranges.

use std::io::{BufReader, Cursor, Seek, Write};
use std::path::PathBuf;

use data_encoding::HEXLOWER;
use reqwest::header::ACCEPT_ENCODING;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use url::Url;

use super::archive::{Archive, Damage, InfoFile, Source};
use super::cache::{Kind, Stamp};
use super::client::Client;
use super::failure;
use super::metadata::{Facts, Refusal};
use super::options::{IndexSource, Mode};
use super::page::Offer;
use super::range::{Opened, Remote, check_size};
use super::record;
use super::transport::{Request, unexpected};
use crate::diag::Failure;
use crate::file;
use crate::python::{Library, Wheel};

/// The most that is downloaded of a wheel whose size its page does not say: four times the largest that is known.
const LARGEST: u64 = 16 << 30;

/// A library in the cache: path, sha256, size.
type Row = (String, String, u64);

impl Client {
    /// What METADATA says, from the cache or the index.
    pub(super) fn facts(&self, index: &IndexSource, wheel: &Wheel) -> Result<Facts, Failure> {
        if let Some(facts) = self.kept(index, wheel, Kind::Metadata)? {
            return Ok(facts);
        }
        let (url, offer) = self.address(index, wheel)?;
        let beside = offer.map_or(Ok(None), |offer| self.beside(index, &url, &offer))?;
        match beside {
            Some(bytes) => {
                let facts = judge(index, wheel, Facts::read(&bytes, &wheel.name))?;
                self.keep(index, wheel, Kind::Metadata, &facts);
                Ok(facts)
            }
            None => self.open(index, wheel, &url, |archive| {
                let facts = self.take_facts(index, wheel, archive)?;
                if archive.holds(InfoFile::Record) {
                    // Most likely it is asked for next. If it is damaged, that shows when it is.
                    let _ = self.take_libraries(index, wheel, archive);
                }
                Ok(facts)
            }),
        }
    }

    /// The shared libraries that RECORD lists, from the cache or the index.
    pub(super) fn record(&self, index: &IndexSource, wheel: &Wheel) -> Result<Vec<Library>, Failure> {
        if let Some(rows) = self.kept::<Vec<Row>>(index, wheel, Kind::Libraries)? {
            return Ok(rows.into_iter().map(|(path, sha256, size)| Library { path, sha256, size }).collect());
        }
        let (url, offer) = self.address(index, wheel)?;
        self.open(index, wheel, &url, |archive| {
            let libraries = self.take_libraries(index, wheel, archive)?;
            if offer.is_none() && archive.holds(InfoFile::Metadata) {
                let _ = self.take_facts(index, wheel, archive);
            }
            Ok(libraries)
        })
    }

    fn take_facts(&self, index: &IndexSource, wheel: &Wheel, archive: &mut Archive) -> Result<Facts, Damage> {
        let facts = judge(index, wheel, Facts::read(&archive.read(InfoFile::Metadata)?, &wheel.name))?;
        self.keep(index, wheel, Kind::Metadata, &facts);
        Ok(facts)
    }

    fn take_libraries(
        &self,
        index: &IndexSource,
        wheel: &Wheel,
        archive: &mut Archive,
    ) -> Result<Vec<Library>, Damage> {
        let libraries = record::libraries(&archive.read(InfoFile::Record)?).map_err(Damage::Content)?;
        let rows: Vec<_> = libraries.iter().map(|library| (&library.path, &library.sha256, library.size)).collect();
        self.keep(index, wheel, Kind::Libraries, &rows);
        Ok(libraries)
    }

    /// What the cache holds of a wheel.
    fn kept<T: DeserializeOwned>(&self, index: &IndexSource, wheel: &Wheel, kind: Kind) -> Result<Option<T>, Failure> {
        if !index.is_remote() {
            return Ok(None);
        }
        let found = self.cache.read(&self.cache.wheel(index, wheel, kind), &wheel.name.file);
        match found {
            None if self.mode == Mode::CacheOnly => {
                Err(failure::not_cached(&wheel.index, &wheel.name.file, kind.title()))
            }
            found => Ok(found.map(|(_, value)| value)),
        }
    }

    fn keep<T: Serialize>(&self, index: &IndexSource, wheel: &Wheel, kind: Kind, value: &T) {
        if index.is_remote() {
            self.cache.write(
                &self.cache.wheel(index, wheel, kind),
                Stamp::new(wheel.name.file.to_string()),
                value,
                b"",
            );
        }
    }

    /// Where a wheel is, and whether its METADATA stands beside it: as its index's page says, else as the wheel says.
    pub(super) fn address(&self, index: &IndexSource, wheel: &Wheel) -> Result<(Url, Option<Offer>), Failure> {
        let page = self.page(index, &wheel.name.package)?;
        let file = &*wheel.name.file;
        let listed = page.wheel(&wheel.name);
        let listed = listed.map_err(|error| failure::cache_unreadable(&index.name, &wheel.name.package, &error))?;
        if let Some((expected, found)) =
            wheel.sha256.as_ref().zip(listed.and_then(|(listed, _)| listed.sha256.as_ref()))
            && expected != found
        {
            return Err(failure::wheel_replaced(&wheel.index, file, expected, found));
        }
        let (url, offer) = match listed {
            Some((listed, said)) => (&listed.url, said.offer.clone()),
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
            return Ok(local_path(&url).and_then(|path| file::read(&path, InfoFile::Metadata.limit()).ok()));
        }
        let request = Request::get(index, &url);
        let bytes = self.transport.send(&request, |response| match response.status().as_u16() {
            200 => self.transport.body(&request, response, InfoFile::Metadata.limit()).map(Some),
            404 => Ok(None),
            _ => Err(unexpected(&self.transport, &request, response.status()).into()),
        })?;
        if let (Some(bytes), Some(expected)) = (&bytes, &offer.sha256) {
            check(index, &url, expected, &HEXLOWER.encode(&Sha256::digest(bytes)))?;
        }
        Ok(bytes)
    }

    /// Opens the archive at `url` and has `read` read it.
    pub(super) fn open<T>(
        &self,
        index: &IndexSource,
        wheel: &Wheel,
        url: &Url,
        read: impl FnOnce(&mut Archive) -> Result<T, Damage>,
    ) -> Result<T, Failure> {
        let damaged = |damage| match damage {
            Damage::Transport(failure) => failure,
            Damage::Content(fact) => failure::wheel_unreadable(&index.name, &wheel.name.file, &fact),
        };
        let source = if url.scheme() == "file" {
            let path = local_path(url).unwrap_or_else(|| url.path().into());
            let file = file::open(&path).map_err(|error| failure::local(index, &path.display().to_string(), &error))?;
            Source::File(BufReader::new(file))
        } else {
            match Remote::open(&self.transport, index, url, wheel.size)? {
                Opened::Remote(remote) => {
                    let archive = Archive::remote(remote, &wheel.name);
                    return archive.and_then(|mut archive| read(&mut archive)).map_err(damaged);
                }
                Opened::Whole(bytes) => {
                    check_size(index, url, wheel.size, bytes.len() as u64)?;
                    if let Some(expected) = &wheel.sha256 {
                        check(index, url, expected, &HEXLOWER.encode(&Sha256::digest(&bytes)))?;
                    }
                    Source::Memory(Cursor::new(bytes))
                }
                Opened::NoRanges => self.download(index, wheel, url)?,
            }
        };
        Archive::local(source, &wheel.name).and_then(|mut archive| read(&mut archive)).map_err(damaged)
    }

    /// The whole wheel, checked against its hash, in a file that vanishes when it is closed.
    fn download(&self, index: &IndexSource, wheel: &Wheel, url: &Url) -> Result<Source<'static>, Failure> {
        // Packing a wheel once more only costs time and hides its size.
        let request = Request::get(index, url).header(ACCEPT_ENCODING, "identity");
        let unwritable =
            |error: std::io::Error| failure::local(index, "a download cannot be kept on this disk", &error);
        let (file, size, found) = self.transport.send(&request, |response| {
            if !response.status().is_success() {
                return Err(unexpected(&self.transport, &request, response.status()).into());
            }
            let total = response.content_length();
            if let Some(total) = total {
                check_size(index, url, wheel.size, total)?;
            }
            let mut file = self.cache.scratch().map_err(unwritable)?;
            let mut hash = Sha256::new();
            let mut done = 0;
            self.transport.stream(&request, response, |part| {
                done += part.len() as u64;
                match wheel.size {
                    Some(size) if done > size => {
                        let fact = format!("it does not end after the {size} bytes that its page says: {done} came");
                        return Err(failure::bad_answer(index, url, &fact));
                    }
                    None if done > LARGEST => {
                        let fact = format!("{done} bytes came without an end, and no wheel has more than {LARGEST}");
                        return Err(failure::bad_answer(index, url, &fact));
                    }
                    _ => {}
                }
                file.write_all(part).map_err(unwritable)?;
                hash.update(part);
                self.progress.bytes(&wheel.name.file, done, wheel.size.or(total));
                Ok(())
            })?;
            Ok((file, done, HEXLOWER.encode(&hash.finalize())))
        })?;
        check_size(index, url, wheel.size, size)?;
        if let Some(expected) = &wheel.sha256 {
            check(index, url, expected, &found)?;
        }
        let mut file = BufReader::new(file);
        file.rewind().map_err(unwritable)?;
        Ok(Source::File(file))
    }
}

fn judge(index: &IndexSource, wheel: &Wheel, read: Result<Facts, Refusal>) -> Result<Facts, Failure> {
    read.map_err(|refusal| match refusal {
        Refusal::Unreadable(fact) => failure::wheel_unreadable(&index.name, &wheel.name.file, &fact),
        Refusal::Mismatch(fact) => failure::metadata_mismatch(&index.name, &wheel.name.file, &fact),
    })
}

fn check(index: &IndexSource, url: &Url, expected: &str, found: &str) -> Result<(), Failure> {
    if expected == found { Ok(()) } else { Err(failure::hash_mismatch(index, url, expected, found)) }
}

/// The path of a `file` URL.
pub(super) fn local_path(url: &Url) -> Option<PathBuf> {
    url.to_file_path().ok()
}
