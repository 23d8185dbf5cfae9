//! The inside of a wheel: takes the archive, on a server or in a file, gives its METADATA and RECORD and searches its
//! members (the wheel specification, PEP 427; zip, APPNOTE 6.3, zip64 included).

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::rc::Rc;

use zip::ZipArchive;
use zip::read::{ArchiveOffset, Config, ZipFileEntry};
use zip::result::ZipError;

use super::range::{RangeReader, Remote};
use crate::diag::Failure;
use crate::python::{PackageName, WheelName};

/// A file in a wheel's `.dist-info` folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InfoFile {
    Metadata,
    Record,
}

impl InfoFile {
    fn name(self) -> &'static str {
        match self {
            Self::Metadata => "METADATA",
            Self::Record => "RECORD",
        }
    }

    /// A larger one is refused; nothing real comes near.
    pub(super) fn limit(self) -> u64 {
        match self {
            Self::Metadata => 16 << 20,
            Self::Record => 64 << 20,
        }
    }
}

/// Parts that a search sees overlap by this many bytes, so that a pattern of up to this length is never cut in two.
pub const OVERLAP: usize = 4096;
/// METADATA and RECORD within so many bytes are fetched together.
const CLOSE: u64 = 2 << 20;
/// How much more than the overlap a search sees at once.
const PART: usize = 256 << 10;

/// How a search of a wheel's member ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// It is there.
    Found,
    /// It was read to its end and is not there.
    NotFound,
    /// The wheel has no such member.
    NoMember,
}

/// Where the bytes of an archive come from.
pub(super) enum Source<'a> {
    Remote(RangeReader<'a>),
    File(BufReader<File>),
    Memory(Cursor<Vec<u8>>),
}

impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Remote(reader) => reader.read(buffer),
            Self::File(reader) => reader.read(buffer),
            Self::Memory(reader) => reader.read(buffer),
        }
    }
}

impl Seek for Source<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::Remote(reader) => reader.seek(to),
            Self::File(reader) => reader.seek(to),
            Self::Memory(reader) => reader.seek(to),
        }
    }
}

/// Why an archive cannot be read.
pub(super) enum Damage {
    /// Its server failed.
    Transport(Failure),
    /// It is no sound wheel.
    Content(String),
}

impl From<ZipError> for Damage {
    fn from(error: ZipError) -> Self {
        match error {
            ZipError::Io(error) => error.into(),
            other => Self::Content(format!("it is no sound zip archive ({other})")),
        }
    }
}

impl From<io::Error> for Damage {
    fn from(error: io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<Failure>()) {
            Some(failure) => Self::Transport(failure.clone()),
            None => Self::Content(format!("it is no sound zip archive ({error})")),
        }
    }
}

impl From<Failure> for Damage {
    fn from(failure: Failure) -> Self {
        Self::Transport(failure)
    }
}

/// An open wheel.
pub(super) struct Archive<'a> {
    zip: ZipArchive<Source<'a>>,
    remote: Option<Rc<Remote<'a>>>,
    /// `NAME-VERSION.dist-info/`
    folder: String,
}

impl<'a> Archive<'a> {
    pub(super) fn remote(remote: Remote<'a>, wheel: &WheelName) -> Result<Self, Damage> {
        let remote = Rc::new(remote);
        Self::open(Source::Remote(RangeReader::new(Rc::clone(&remote))), Some(remote), wheel)
    }

    pub(super) fn local(source: Source<'a>, wheel: &WheelName) -> Result<Self, Damage> {
        Self::open(source, None, wheel)
    }

    fn open(source: Source<'a>, remote: Option<Rc<Remote<'a>>>, wheel: &WheelName) -> Result<Self, Damage> {
        // Nothing stands in front of a wheel, and looking for it would read the archive from its beginning.
        let config = Config { archive_offset: ArchiveOffset::Known(0) };
        let zip = ZipArchive::with_config(config, source)?;
        let folder = dist_info(&zip, wheel).map_err(Damage::Content)?;
        Ok(Self { zip, remote, folder })
    }

    /// The bytes of a file in the wheel's own `.dist-info` folder.
    pub(super) fn read(&mut self, file: InfoFile) -> Result<Vec<u8>, Damage> {
        let path = format!("{}{}", self.folder, file.name());
        let Some(at) = self.zip.index_for_name(&path) else {
            return Err(Damage::Content(format!("it has no {path}")));
        };
        let limit = file.limit();
        let too_large = || Damage::Content(format!("its {} is larger than {limit} bytes", file.name()));
        let entry = self.zip.by_index_data(at)?;
        if entry.size() > limit || entry.compressed_size() > limit {
            return Err(too_large());
        }
        if let Some(remote) = &self.remote {
            let (start, end) = self.both().unwrap_or_else(|| place(&entry));
            remote.want(start, end)?;
        }
        let mut bytes = Vec::new();
        // The size in the directory may be a lie.
        self.zip.by_index(at)?.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit { Err(too_large()) } else { Ok(bytes) }
    }

    /// Where METADATA and RECORD lie, if that is close together, as it mostly is: who wants one soon wants the other.
    fn both(&self) -> Option<(u64, u64)> {
        let [metadata, record] = [InfoFile::Metadata, InfoFile::Record].map(|file| {
            let at = self.zip.index_for_name(&format!("{}{}", self.folder, file.name()))?;
            self.zip.by_index_data(at).ok().as_ref().map(place)
        });
        let ((start, end), (other_start, other_end)) = (metadata?, record?);
        let (start, end) = (start.min(other_start), end.max(other_end));
        (end - start <= CLOSE).then_some((start, end))
    }

    /// Whether that file can be read without a request.
    pub(super) fn holds(&self, file: InfoFile) -> bool {
        let Some(remote) = &self.remote else { return true };
        let at = self.zip.index_for_name(&format!("{}{}", self.folder, file.name()));
        let Some(Ok(entry)) = at.map(|at| self.zip.by_index_data(at)) else { return false };
        let (start, end) = place(&entry);
        remote.holds(start, end)
    }

    /// Unpacks the first member whose path is `suffix` or ends with `/suffix`, until `find` says true.
    pub(super) fn search(&mut self, suffix: &str, find: &mut dyn FnMut(&[u8]) -> bool) -> Result<Search, Damage> {
        let tail = format!("/{suffix}");
        let matches = |name: &[u8]| name == suffix.as_bytes() || name.ends_with(tail.as_bytes());
        let Some(at) = self.zip.file_names_raw().position(matches) else { return Ok(Search::NoMember) };
        if let Some(remote) = &self.remote {
            remote.unlimited();
        }
        let mut member = self.zip.by_index(at)?;
        let mut buffer = vec![0; OVERLAP + PART];
        let mut filled = 0;
        loop {
            let count = match member.read(&mut buffer[filled..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            filled += count;
            if count == 0 || filled == buffer.len() {
                if find(&buffer[..filled]) {
                    return Ok(Search::Found);
                }
                if count == 0 {
                    return Ok(Search::NotFound);
                }
                buffer.copy_within(filled - OVERLAP.., 0);
                filled = OVERLAP;
            }
        }
    }
}

/// Where a member lies, give or take: its local header has a fixed part, the name, and fields of unknown length.
fn place(entry: &ZipFileEntry) -> (u64, u64) {
    let header = 30 + entry.name_raw().len() as u64 + 256;
    (entry.header_start(), entry.header_start() + header + entry.compressed_size())
}

/// The wheel's own `.dist-info` folder: the only one, or among several the one of its name and version.
fn dist_info(zip: &ZipArchive<Source>, wheel: &WheelName) -> Result<String, String> {
    let folders: Vec<&str> = zip
        .file_names_raw()
        .filter_map(|name| std::str::from_utf8(name).ok()?.strip_suffix("METADATA"))
        .filter(|folder| folder.ends_with(".dist-info/") && folder.matches('/').count() == 1)
        .collect();
    let named = |folder: &&&str| {
        let stem = folder.trim_end_matches(".dist-info/");
        let Some((name, version)) = stem.rsplit_once('-') else { return false };
        name.parse::<PackageName>().is_ok_and(|name| name == wheel.package)
            && version.parse().is_ok_and(|version: crate::version::Pep440| version == wheel.version)
    };
    match folders[..] {
        [] => Err("it has no .dist-info/METADATA".into()),
        [one] => Ok(one.into()),
        _ => match folders.iter().find(named) {
            Some(folder) => Ok((*folder).into()),
            None => Err(format!("it has several .dist-info folders, and none is its own: {}", folders.join(", "))),
        },
    }
}
