//! A package as one index offers it: takes the files on its page, gives releases.
//!
//! Holds the files as text, a line of JSON a release, as the cache keeps them: a page may have thousands of files, and a
//! run looks at those of a few releases. A line is taken apart when its release is first asked for.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use super::{Entry, Offer};
use crate::python::{PackageName, Release, RequiresPython, Wheel, WheelName};
use crate::registry::cache::{Body, Stamp};
use crate::version::Pep440;

/// The versions of a page, ascending, each with the length of its line in bytes.
pub(in crate::registry) type Directory = Vec<(Pep440, u64)>;

/// A package as one index offers it.
#[derive(Debug)]
pub(in crate::registry) struct Page {
    index: Arc<str>,
    package: PackageName,
    /// When the index said so; absent where it did not.
    pub(in crate::registry) stamp: Option<Stamp>,
    pub(in crate::registry) versions: Arc<[Pep440]>,
    /// One a version.
    lines: Vec<Line>,
    body: Body,
}

#[derive(Debug)]
struct Line {
    at: Range<u64>,
    read: OnceLock<Listing>,
}

/// A release, and what the page says of each of its wheels.
#[derive(Debug)]
pub(in crate::registry) struct Listing {
    pub(in crate::registry) release: Arc<Release>,
    /// One a wheel.
    said: Vec<Said>,
}

/// What a page says of a wheel that the wheel's own model has no place for.
#[derive(Debug, Clone, Default)]
pub(in crate::registry) struct Said {
    /// METADATA that stands beside the wheel.
    pub(in crate::registry) offer: Option<Offer>,
    /// Upload time, word by word.
    pub(in crate::registry) uploaded: Option<Box<str>>,
    /// Requires-Python, word by word.
    pub(in crate::registry) python: Option<Box<str>>,
}

impl Listing {
    /// The wheels, and what is said of each.
    pub(in crate::registry) fn wheels(&self) -> impl Iterator<Item = (&Arc<Wheel>, &Said)> {
        self.release.wheels.iter().zip(&self.said)
    }
}

impl Page {
    /// Groups `entries` by version. What is not a wheel of `package` is left out, and so is a second file of one name.
    pub(in crate::registry) fn new(index: &Arc<str>, package: &PackageName, entries: Vec<Entry>) -> Self {
        let mut grouped: BTreeMap<Pep440, Vec<Entry>> = BTreeMap::new();
        for entry in entries {
            let Ok(name) = entry.file.parse::<WheelName>() else { continue };
            if name.package == *package {
                grouped.entry(name.version).or_default().push(entry);
            }
        }
        let mut body = Vec::new();
        let directory = grouped.into_iter().map(|(version, mut entries)| {
            // In a stable order, so that the first of one name stays.
            entries.sort_by(|a, b| a.file.cmp(&b.file));
            entries.dedup_by(|a, b| a.file == b.file);
            let start = body.len();
            serde_json::to_writer(&mut body, &entries).expect("texts and numbers are JSON, and memory takes them");
            body.push(b'\n');
            (version, (body.len() - start) as u64)
        });
        let directory: Directory = directory.collect();
        Self::of(index, package, None, directory, Body::Memory(body)).expect("these are the lengths of its lines")
    }

    /// The page that a cache kept; `None` when `directory` is not that of `body`.
    pub(in crate::registry) fn of(
        index: &Arc<str>,
        package: &PackageName,
        stamp: Option<Stamp>,
        directory: Directory,
        body: Body,
    ) -> Option<Self> {
        let mut end = 0_u64;
        let mut lines = Vec::with_capacity(directory.len());
        for (_, length) in &directory {
            let start = end;
            end = end.checked_add(*length)?;
            lines.push(Line { at: start..end, read: OnceLock::new() });
        }
        let versions = directory.into_iter().map(|(version, _)| version).collect();
        (end == body.length()).then(|| Self {
            index: Arc::clone(index),
            package: package.clone(),
            stamp,
            versions,
            lines,
            body,
        })
    }

    /// What [`Page::of`] takes.
    pub(in crate::registry) fn directory(&self) -> Directory {
        self.versions.iter().cloned().zip(self.lines.iter().map(|line| line.at.end - line.at.start)).collect()
    }

    pub(in crate::registry) fn body(&self) -> &Body {
        &self.body
    }

    /// When the index said so.
    pub(in crate::registry) fn fetched(&self) -> Option<SystemTime> {
        self.stamp.as_ref().map(Stamp::time)
    }

    /// The release of that version.
    pub(in crate::registry) fn release(&self, version: &Pep440) -> io::Result<Option<&Listing>> {
        self.versions.binary_search(version).ok().map(|at| self.listing(&self.lines[at], version)).transpose()
    }

    /// All releases, ascending.
    pub(in crate::registry) fn releases(&self) -> impl Iterator<Item = io::Result<&Listing>> {
        self.lines.iter().zip(&*self.versions).map(|(line, version)| self.listing(line, version))
    }

    /// The wheel of that file name, and what is said of it.
    pub(in crate::registry) fn wheel(&self, name: &WheelName) -> io::Result<Option<(&Arc<Wheel>, &Said)>> {
        let release = self.release(&name.version)?;
        Ok(release.and_then(|release| release.wheels().find(|(wheel, _)| wheel.name.file == name.file)))
    }

    fn listing<'p>(&self, line: &'p Line, version: &Pep440) -> io::Result<&'p Listing> {
        if let Some(listing) = line.read.get() {
            return Ok(listing);
        }
        let entries: Vec<Entry> = serde_json::from_slice(&self.body.part(line.at.clone())?)?;
        let mut python = RequiresPython::default();
        let (wheels, said) = entries.iter().filter_map(|entry| self.understand(entry, &mut python)).unzip();
        let release = Arc::new(Release { version: version.clone(), wheels });
        Ok(line.read.get_or_init(|| Listing { release, said }))
    }

    fn understand<'e>(&self, entry: &'e Entry, python: &mut RequiresPython<'e>) -> Option<(Arc<Wheel>, Said)> {
        let name: WheelName = entry.file.parse().ok().filter(|name: &WheelName| name.package == self.package)?;
        let wheel = Wheel {
            name,
            index: Arc::clone(&self.index),
            url: Some((*entry.url).into()),
            sha256: entry.sha256.as_deref().map(Into::into),
            size: entry.size,
            requires_python: entry.python.as_deref().and_then(|text| python.read(text)),
            yanked: entry.yanked,
            reason: entry.reason.as_deref().map(Into::into),
        };
        let uploaded = entry.uploaded.as_deref().map(Into::into);
        let said = Said { offer: entry.metadata.clone(), uploaded, python: entry.python.as_deref().map(Into::into) };
        Some((Arc::new(wheel), said))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(file: &str) -> Entry {
        Entry { file: file.into(), url: format!("https://h/{file}"), ..Entry::default() }
    }

    #[test]
    fn wheels_by_version() {
        let files = [
            "x-1.10-py3-none-any.whl",
            "x-1.9-py3-none-any.whl",
            "x-1.9.0-cp311-cp311-manylinux2014_x86_64.whl",
            "x-1.9-py3-none-any.whl",
            "y-1-py3-none-any.whl",
            "x-broken.whl",
        ];
        let mut entries: Vec<Entry> = files.map(entry).into();
        entries[0].python = Some(">=3.6.*, nonsense".into());
        entries[1].python = Some(">=3.9".into());
        entries[1].uploaded = Some("2025-08-06T14:53:46Z".into());
        entries[3].yanked = true;
        let page = Page::new(&"i".into(), &"X".parse().unwrap(), entries);
        assert_eq!(page.versions.iter().map(ToString::to_string).collect::<Vec<_>>(), ["1.9", "1.10"]);
        let old = page.release(&"1.9.0".parse().unwrap()).unwrap().unwrap();
        assert_eq!(old.release.wheels.len(), 2);
        let (wheel, said) = page.wheel(&"x-1.9-py3-none-any.whl".parse().unwrap()).unwrap().unwrap();
        assert!(!wheel.yanked, "the first of one name counts");
        assert_eq!(said.python.as_deref(), Some(">=3.9"));
        assert_eq!(said.uploaded.as_deref(), Some("2025-08-06T14:53:46Z"));
        let (new, said) = page.wheel(&"x-1.10-py3-none-any.whl".parse().unwrap()).unwrap().unwrap();
        assert!(new.requires_python.is_none() && said.python.is_some());
        assert!(page.wheel(&"x-2-py3-none-any.whl".parse().unwrap()).unwrap().is_none());
        assert_eq!(page.releases().map(|listing| listing.unwrap().release.wheels.len()).sum::<usize>(), 3);
    }

    #[test]
    fn a_directory_of_another_body_is_refused() {
        let (index, package) = ("i".into(), "x".parse().unwrap());
        let page = Page::new(&index, &package, vec![entry("x-1-py3-none-any.whl"), entry("x-2-py3-none-any.whl")]);
        let body = || Body::Memory(page.body().part(0..page.body().length()).unwrap().into_owned());
        let again = Page::of(&index, &package, None, page.directory(), body()).unwrap();
        assert_eq!(again.versions, page.versions);
        for damage in [1, u64::MAX] {
            let mut directory = page.directory();
            directory[1].1 = directory[1].1.wrapping_add(damage);
            assert!(Page::of(&index, &package, None, directory, body()).is_none());
        }
        assert!(Page::of(&index, &package, None, page.directory()[..1].to_vec(), body()).is_none());
    }

    #[test]
    fn a_page_of_very_many_wheels() {
        let files = (0..200_000).map(|i| entry(&format!("x-1-{i}-py3-none-any.whl")));
        let page = Page::new(&"i".into(), &"x".parse().unwrap(), files.collect());
        assert_eq!(page.releases().next().unwrap().unwrap().release.wheels.len(), 200_000);
    }
}
