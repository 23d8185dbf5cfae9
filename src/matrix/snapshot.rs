//! The embedded snapshot of wheels as a [`Catalog`]: what the default index offered on the day it was taken.
//!
//! Takes `snapshot/<package>.jsonl`: one release a line, ascending. Lines are parsed when their release is asked for;
//! the libraries inside a line, when they are.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::files::{Files, RawLine};
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::python::{Catalog, CatalogError, Library, PackageMetadata, PackageName, Release, RequiresPython, Wheel};
use crate::version::Pep440;

/// One line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line<'a> {
    pub(super) version: &'a str,
    #[serde(borrow, default)]
    pub(super) requires: Vec<Vec<Text<'a>>>,
    #[serde(borrow, default)]
    pub(super) extras: Vec<Text<'a>>,
    #[serde(borrow)]
    pub(super) wheels: Vec<WheelEntry<'a>>,
}

/// A string of a line. In a list, serde would copy what is a mere `Cow`.
#[derive(Debug, Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

/// One wheel of a line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WheelEntry<'a> {
    pub(super) file: &'a str,
    pub(super) sha256: &'a str,
    pub(super) size: u64,
    #[serde(borrow)]
    pub(super) python: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) yanked: bool,
    #[serde(default)]
    pub(super) meta: usize,
    #[serde(borrow)]
    pub(super) libs: Option<&'a RawValue>,
    /// Its METADATA, once it was asked for.
    #[serde(skip)]
    metadata: OnceCell<Arc<PackageMetadata>>,
}

/// A line whose version is known.
#[derive(Debug)]
struct Unread<'a> {
    version: Pep440,
    raw: RawLine<'a>,
    read: OnceCell<Rc<Line<'a>>>,
    release: OnceCell<Arc<Release>>,
}

/// The lines of a package, ascending.
type Lines<'a> = Rc<[Unread<'a>]>;

/// The snapshot.
#[derive(Debug)]
pub struct Snapshot<'a> {
    files: &'a Files,
    index: Arc<str>,
    lines: RefCell<HashMap<PackageName, Lines<'a>>>,
    versions: RefCell<HashMap<PackageName, Arc<[Pep440]>>>,
}

impl<'a> Snapshot<'a> {
    /// The index that the snapshot was taken of.
    pub const INDEX: &'static str = "pypi";

    pub(super) fn new(files: &'a Files) -> Self {
        Self { files, index: Self::INDEX.into(), lines: RefCell::default(), versions: RefCell::default() }
    }

    /// The versions of a package with the text of their lines.
    fn lines(&self, package: &PackageName) -> Result<Lines<'a>, Failure> {
        if let Some(lines) = self.lines.borrow().get(package) {
            return Ok(Rc::clone(lines));
        }
        let releases = self.files.releases(&format!("snapshot/{package}.jsonl"));
        let unread = releases.into_iter().map(|(version, raw)| match version.parse() {
            Ok(version) => Ok(Unread { version, raw, read: OnceCell::new(), release: OnceCell::new() }),
            Err(_) => Err(self.damaged(package, "a line without version")),
        });
        let lines: Lines<'a> = unread.collect::<Result<_, Failure>>()?;
        self.lines.borrow_mut().insert(package.clone(), Rc::clone(&lines));
        Ok(lines)
    }

    fn line(&self, package: &PackageName, version: &Pep440) -> Result<Option<Rc<Line<'a>>>, Failure> {
        let lines = self.lines(package)?;
        lines.iter().find(|line| line.version == *version).map(|unread| self.read(package, unread)).transpose()
    }

    fn read(&self, package: &PackageName, unread: &Unread<'a>) -> Result<Rc<Line<'a>>, Failure> {
        if let Some(line) = unread.read.get() {
            return Ok(Rc::clone(line));
        }
        let text = match unread.raw.text() {
            Cow::Borrowed(text) => text,
            // What the program embeds stays as long as the program does; a line is read once.
            Cow::Owned(text) => text.leak(),
        };
        let line = serde_json::from_str(text).map_err(|error| self.damaged(package, &error.to_string()))?;
        Ok(Rc::clone(unread.read.get_or_init(|| Rc::new(line))))
    }

    fn damaged(&self, package: &PackageName, why: &str) -> Failure {
        let path = format!("snapshot/{package}.jsonl");
        let evidence = Evidence::observed(self.files.name(&path), why);
        let error = Diagnostic::error("matrix-invalid", "the snapshot cannot be read", evidence);
        Failure::unanswerable(error.fix("`gpulock matrix update` writes it anew"))
    }

    /// Whether the snapshot has this very wheel, by its hash.
    pub fn knows(&self, wheel: &Wheel) -> Result<bool, Failure> {
        Ok(self.entry(wheel)?.is_some())
    }

    /// The size of a wheel that the snapshot [knows](Self::knows).
    ///
    /// # Errors
    /// When the snapshot is damaged.
    pub fn known_size(&self, wheel: &Wheel) -> Result<Option<u64>, Failure> {
        Ok(self.entry(wheel)?.map(|(line, at)| line.wheels[at].size))
    }

    /// Looks the wheel up in its line and hands both to `with`.
    fn entry(&self, wheel: &Wheel) -> Result<Option<(Rc<Line<'a>>, usize)>, Failure> {
        let Some(line) = self.line(&wheel.name.package, &wheel.name.version)? else { return Ok(None) };
        let same = |entry: &WheelEntry<'_>| {
            *entry.file == *wheel.name.file && wheel.sha256.as_deref().is_none_or(|sha256| *sha256 == *entry.sha256)
        };
        Ok(line.wheels.iter().position(same).map(|at| (line, at)))
    }

    /// The METADATA of a wheel that the snapshot [knows](Self::knows).
    ///
    /// # Errors
    /// When the snapshot is damaged.
    pub fn known_metadata(&self, wheel: &Wheel) -> Result<Option<Arc<PackageMetadata>>, Failure> {
        let package = &wheel.name.package;
        let Some((line, at)) = self.entry(wheel)? else { return Ok(None) };
        let entry = &line.wheels[at];
        if let Some(metadata) = entry.metadata.get() {
            return Ok(Some(Arc::clone(metadata)));
        }
        let bad = |error: crate::version::ParseError| self.damaged(package, &error.to_string());
        let requires = line.requires.get(entry.meta).map_or(&[][..], Vec::as_slice);
        let metadata = PackageMetadata {
            requires: requires.iter().map(|text| text.parse()).collect::<Result<_, _>>().map_err(bad)?,
            requires_python: entry.python.as_ref().and_then(|text| text.parse().ok()),
            extras: line.extras.iter().map(|text| text.parse()).collect::<Result<_, _>>().map_err(bad)?,
        };
        Ok(Some(Arc::clone(entry.metadata.get_or_init(|| Arc::new(metadata)))))
    }

    /// The libraries of a wheel that the snapshot [knows](Self::knows); `None` where it did not read them.
    ///
    /// # Errors
    /// When the snapshot is damaged.
    pub fn known_libraries(&self, wheel: &Wheel) -> Result<Option<Vec<Library>>, Failure> {
        let package = &wheel.name.package;
        let Some((line, at)) = self.entry(wheel)? else { return Ok(None) };
        let Some(libs) = line.wheels[at].libs else { return Ok(None) };
        let libs: Vec<(String, &str, u64)> =
            serde_json::from_str(libs.get()).map_err(|error| self.damaged(package, &error.to_string()))?;
        let library = |(path, base64, size): (String, &str, u64)| {
            let sha256 = hex_of_base64(base64).ok_or_else(|| self.damaged(package, "a hash that is not base64"))?;
            Ok(Library { path, sha256, size })
        };
        libs.into_iter().map(library).collect::<Result<_, Failure>>().map(Some)
    }
}

/// RECORD's urlsafe base64 without padding as lower-case hex.
fn hex_of_base64(text: &str) -> Option<String> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text).ok()?;
    Some(HEXLOWER.encode(&bytes))
}

impl Catalog for Snapshot<'_> {
    fn versions(&self, index: &str, package: &PackageName) -> Result<Arc<[Pep440]>, CatalogError> {
        if index != &*self.index {
            return Ok(Arc::new([]));
        }
        if let Some(versions) = self.versions.borrow().get(package) {
            return Ok(Arc::clone(versions));
        }
        let versions: Arc<[Pep440]> = self.lines(package)?.iter().map(|line| line.version.clone()).collect();
        self.versions.borrow_mut().insert(package.clone(), Arc::clone(&versions));
        Ok(versions)
    }

    fn release(
        &self,
        index: &str,
        package: &PackageName,
        version: &Pep440,
    ) -> Result<Option<Arc<Release>>, CatalogError> {
        if index != &*self.index {
            return Ok(None);
        }
        let lines = self.lines(package)?;
        let Some(unread) = lines.iter().find(|line| line.version == *version) else { return Ok(None) };
        if let Some(release) = unread.release.get() {
            return Ok(Some(Arc::clone(release)));
        }
        let line = self.read(package, unread)?;
        let mut requires_python = RequiresPython::default();
        let wheels = line.wheels.iter().map(|entry| {
            let name = entry
                .file
                .parse()
                .map_err(|error: crate::version::ParseError| self.damaged(package, &error.to_string()))?;
            Ok(Arc::new(Wheel {
                name,
                index: Arc::clone(&self.index),
                url: None,
                sha256: Some(entry.sha256.into()),
                size: Some(entry.size),
                requires_python: entry.python.as_deref().and_then(|text| requires_python.read(text)),
                yanked: entry.yanked,
                // The snapshot keeps no reasons.
                reason: None,
            }))
        });
        let wheels = wheels.collect::<Result<_, Failure>>()?;
        let release = Release { version: version.clone(), wheels };
        Ok(Some(Arc::clone(unread.release.get_or_init(|| Arc::new(release)))))
    }

    fn metadata(&self, wheel: &Wheel) -> Result<Arc<PackageMetadata>, CatalogError> {
        self.known_metadata(wheel)?
            .ok_or_else(|| self.damaged(&wheel.name.package, &format!("{} is not in it", wheel.name)))
    }

    fn libraries(&self, wheel: &Wheel) -> Result<Vec<Library>, CatalogError> {
        Ok(self.known_libraries(wheel)?.unwrap_or_default())
    }
}
