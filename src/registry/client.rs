//! The client: takes [`Options`], gives indexes, network and cache as one [`Catalog`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use url::Url;

use super::archive::Search;
use super::cache::{Cache, Kind};
use super::failure;
use super::memo::Memo;
use super::options::{IndexSource, Mode, Options};
use super::page::{Entry, Page};
use super::pool;
use super::progress::Progress;
use super::transport::{Traffic, Transport};
use crate::diag::{Diagnostic, Failure};
use crate::python::{Catalog, CatalogError, Library, PackageMetadata, PackageName, Release, Wheel, WheelName};
use crate::version::Pep440;

/// Reads package indexes. One client serves many threads, and asks each thing once.
pub struct Client {
    indexes: Vec<IndexSource>,
    pub(super) transport: Transport,
    pub(super) cache: Cache,
    pub(super) mode: Mode,
    pub(super) revalidate: bool,
    pub(super) progress: Arc<dyn Progress>,
    concurrency: usize,
    pages: Memo<(Arc<str>, PackageName), Page>,
    metadata: Memo<(Arc<str>, Box<str>), PackageMetadata>,
    libraries: Memo<(Arc<str>, Box<str>), Vec<Library>>,
    /// Whether an index shows its root to everyone.
    pub(super) public: Memo<Arc<str>, bool>,
    /// What pages gave rise to.
    notes: Mutex<Vec<Diagnostic>>,
}

impl Client {
    /// A client. Nothing is read and no connection made until something is asked.
    pub fn new(options: Options) -> Self {
        let offline = options.mode == Mode::CacheOnly;
        Self {
            indexes: options.indexes,
            transport: Transport::new(
                options.timing,
                offline,
                options.netrc,
                options.authorities,
                Arc::clone(&options.progress),
            ),
            cache: Cache::new(&options.cache_dir, offline),
            mode: options.mode,
            revalidate: options.revalidate,
            progress: options.progress,
            concurrency: options.concurrency,
            pages: Memo::default(),
            metadata: Memo::default(),
            libraries: Memo::default(),
            public: Memo::default(),
            notes: Mutex::default(),
        }
    }

    /// The index of that name.
    ///
    /// # Errors
    /// `index-unknown`.
    pub fn index(&self, name: &str) -> Result<&IndexSource, Failure> {
        let found = self.indexes.iter().find(|index| *index.name == *name);
        found.ok_or_else(|| failure::unknown_index(name, &self.indexes))
    }

    /// All wheels that `index` lists for `package`, by version and file name.
    ///
    /// # Errors
    /// As [`Catalog::versions`].
    pub fn list(&self, index: &str, package: &PackageName) -> Result<Vec<Arc<Wheel>>, Failure> {
        let page = self.page(self.index(index)?, package)?;
        let mut wheels = Vec::new();
        for listing in page.releases() {
            let listing = listing.map_err(|error| failure::cache_unreadable(index, package, &error))?;
            wheels.extend(listing.release.wheels.iter().cloned());
        }
        Ok(wheels)
    }

    /// Fetches pages at the same time. What fails is kept, and told when that page is asked for.
    pub fn prefetch(&self, index: &str, packages: &[PackageName]) {
        let Ok(index) = self.index(index) else { return };
        self.each(packages, PackageName::to_string, |package| drop(self.page(index, package)));
    }

    /// Fetches the METADATA of wheels at the same time, as [`Client::prefetch`] does pages.
    pub fn prefetch_metadata(&self, wheels: &[Arc<Wheel>]) {
        self.each(wheels, |wheel| wheel.name.to_string(), |wheel| drop(self.metadata(wheel)));
    }

    /// Fetches the libraries of wheels at the same time, as [`Client::prefetch`] does pages.
    pub fn prefetch_libraries(&self, wheels: &[Arc<Wheel>]) {
        self.each(wheels, |wheel| wheel.name.to_string(), |wheel| drop(self.libraries(wheel)));
    }

    /// When `index` last confirmed what this client knows of `package`; asks nobody.
    pub fn page_age(&self, index: &str, package: &PackageName) -> Option<SystemTime> {
        let index = self.index(index).ok()?;
        match self.pages.peek(&(Arc::clone(&index.name), package.clone())) {
            Some(page) => page.fetched(),
            None => self.cached_page(index, package)?.fetched(),
        }
    }

    /// Whether the cache holds the METADATA of a wheel.
    pub fn is_cached(&self, wheel: &Wheel) -> bool {
        let Ok(index) = self.index(&wheel.index) else { return false };
        let path = self.cache.wheel(index, wheel, Kind::Metadata);
        self.cache.read::<super::metadata::Facts>(&path, &wheel.name.file).is_some()
    }

    /// Unpacks the first member of `wheel` whose path is `member` or ends with `/member`, and shows it part by part to
    /// `find` until that says true. Parts overlap by [`OVERLAP`](super::OVERLAP) bytes. No more of the wheel is fetched
    /// than was shown, where its server knows ranges.
    ///
    /// # Errors
    /// As [`Catalog::libraries`].
    pub fn search_member(
        &self,
        wheel: &Wheel,
        member: &str,
        find: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<Search, Failure> {
        let index = self.index(&wheel.index)?;
        let (url, _) = self.address(index, wheel)?;
        self.open(index, wheel, &url, |archive| archive.search(member, find))
    }

    /// What went over the network so far.
    pub fn traffic(&self) -> Traffic {
        self.transport.traffic()
    }

    /// What is worth telling at the end: a cache that could not be written, files that were passed over.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // Pages come in any order.
        notes.sort_by(|a, b| a.message.cmp(&b.message));
        notes.extend(self.cache.warning());
        notes
    }

    pub(super) fn page(&self, index: &IndexSource, package: &PackageName) -> Result<Arc<Page>, Failure> {
        self.pages.get((Arc::clone(&index.name), package.clone()), || self.load_page(index, package))
    }

    /// Leaves out files whose names no wheel may have, and notes that there are such on the page at `url`.
    pub(super) fn pass_over_strange(&self, index: &IndexSource, url: &Url, mut entries: Vec<Entry>) -> Vec<Entry> {
        let strange: Vec<Entry> = entries.extract_if(.., |entry| !WheelName::is_safe(&entry.file)).collect();
        if let [first, ..] = &strange[..] {
            let note = failure::strange_names(index, url, &first.file, strange.len());
            self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
        }
        entries
    }

    /// Works through a list on as many threads as requests are made at the same time, and tells the progress; `name`
    /// names an item.
    pub fn each<T: Sync>(&self, items: &[T], name: impl Fn(&T) -> String + Sync, work: impl Fn(&T) + Sync) {
        self.progress.start(items.len());
        pool::each(self.concurrency, items, |item| {
            work(item);
            self.progress.tick(&name(item));
        });
        self.progress.finish();
    }
}

impl Catalog for Client {
    fn versions(&self, index: &str, package: &PackageName) -> Result<Arc<[Pep440]>, CatalogError> {
        Ok(Arc::clone(&self.page(self.index(index)?, package)?.versions))
    }

    fn release(
        &self,
        index: &str,
        package: &PackageName,
        version: &Pep440,
    ) -> Result<Option<Arc<Release>>, CatalogError> {
        let page = self.page(self.index(index)?, package)?;
        let listing = page.release(version).map_err(|error| failure::cache_unreadable(index, package, &error))?;
        Ok(listing.map(|listing| Arc::clone(&listing.release)))
    }

    fn metadata(&self, wheel: &Wheel) -> Result<Arc<PackageMetadata>, CatalogError> {
        let index = self.index(&wheel.index)?;
        self.metadata.get((Arc::clone(&index.name), wheel.name.file.clone()), || {
            let unclear = |fact: String| failure::wheel_unreadable(&index.name, &wheel.name.file, &fact);
            self.facts(index, wheel)?.understand().map_err(unclear)
        })
    }

    fn libraries(&self, wheel: &Wheel) -> Result<Vec<Library>, CatalogError> {
        let index = self.index(&wheel.index)?;
        let key = (Arc::clone(&index.name), wheel.name.file.clone());
        Ok(self.libraries.get(key, || self.record(index, wheel))?.to_vec())
    }
}
