//! Where a run's packages come from: the embedded snapshot, the cache and, unless `--offline`, the indexes.
//!
//! Online, an index says what there is; the snapshot spares reading wheels that it knows by their hash. Offline, the
//! cache stands in for an index, and the snapshot adds to what is older than it or was never fetched.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;

use super::Globals;
use super::progress::Bar;
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::manifest::{Manifest, without_credentials};
use crate::matrix::{Matrix, Snapshot};
use crate::python::{
    Catalog, CatalogError, Library, MarkerEnv, PackageMetadata, PackageName, Platform, PythonVersion, Release, Wheel,
};
use crate::registry::{Client, Mode, Options, Registries};
use crate::version::Pep440;

/// The catalog of a run, and the URLs of its indexes.
pub struct Source<'m> {
    matrix: &'m Matrix,
    /// Name and URL as the manifest and the matrix have them.
    indexes: Vec<(String, String)>,
    default_index: &'m str,
    snapshot: Snapshot<'m>,
    client: Client,
    offline: bool,
    /// An index other than the default one that cannot be asked is passed over, with a warning.
    lenient: bool,
    taken: OnceCell<Option<SystemTime>>,
    env: MarkerEnv,
    warnings: RefCell<Vec<Diagnostic>>,
}

impl<'m> Source<'m> {
    /// The catalog that a manifest needs. `lenient`: builds of an index that cannot be asked may be locked as pending.
    ///
    /// # Errors
    /// URLs, mirrors or environment variables that are no good.
    pub fn new(matrix: &'m Matrix, manifest: &Manifest, globals: &Globals, lenient: bool) -> Result<Self, Failure> {
        let mut indexes: Vec<(String, String)> =
            manifest.indexes.iter().map(|index| (index.name.clone(), index.url.clone())).collect();
        for row in &matrix.index()?.indexes {
            if indexes.iter().all(|(name, _)| *name != row.name) {
                indexes.push((row.name.clone(), row.url.clone()));
            }
        }
        let default = matrix.index()?.indexes.iter().find(|row| row.default);
        let client = client(&indexes, globals, false)?;
        let python = PythonVersion { major: 3, minor: 12, free_threaded: false };
        let platform = manifest.targets.first().map_or(Platform::LinuxX86_64, |target| target.platform);
        Ok(Self {
            matrix,
            indexes,
            default_index: default.map_or(Snapshot::INDEX, |row| row.name.as_str()),
            snapshot: matrix.snapshot(),
            client,
            offline: globals.offline,
            lenient,
            taken: OnceCell::new(),
            env: MarkerEnv::new(python, platform),
            warnings: RefCell::default(),
        })
    }

    /// The URL of an index, without credentials and whatever mirror is used.
    pub fn url(&self, name: &str) -> Option<String> {
        self.indexes.iter().find(|(known, _)| known == name).map(|(_, url)| without_credentials(url))
    }

    /// The index that packages come from unless something says otherwise.
    pub fn default_index(&self) -> &'m str {
        self.default_index
    }

    /// What is worth telling at the end.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        let mut warnings = self.warnings.borrow().clone();
        warnings.extend(self.client.warnings());
        warnings
    }

    /// Fetches the libraries of wheels that the snapshot does not know, at the same time.
    ///
    /// # Errors
    /// When the snapshot is damaged.
    pub fn prefetch_libraries<'w>(&self, wheels: impl Iterator<Item = &'w Arc<Wheel>>) -> Result<(), Failure> {
        let mut unknown = Vec::new();
        for wheel in wheels {
            if !self.known(wheel)? {
                unknown.push(Arc::clone(wheel));
            }
        }
        if !unknown.is_empty() && !self.offline {
            self.client.prefetch_libraries(&unknown);
        }
        Ok(())
    }

    /// Whether the snapshot has this very wheel.
    fn known(&self, wheel: &Wheel) -> Result<bool, Failure> {
        Ok(wheel.sha256.is_some() && self.snapshot.knows(wheel)?)
    }

    /// A page in HTML tells no sizes; the lock is to be that of an index which does, as far as the snapshot knows them.
    fn with_sizes(&self, release: Arc<Release>) -> Result<Arc<Release>, Failure> {
        let lacks = |wheel: &Wheel| wheel.size.is_none() && wheel.sha256.is_some();
        if !release.wheels.iter().any(|wheel| lacks(wheel)) {
            return Ok(release);
        }
        let mut sized = Release::clone(&release);
        for wheel in &mut sized.wheels {
            if lacks(wheel)
                && let size @ Some(_) = self.snapshot.known_size(wheel)?
            {
                *wheel = Arc::new(Wheel { size, ..Wheel::clone(wheel) });
            }
        }
        Ok(Arc::new(sized))
    }

    /// When the snapshot was taken.
    fn taken(&self) -> Option<SystemTime> {
        *self.taken.get_or_init(|| self.matrix.snapshot_taken())
    }

    /// Whether the cache alone says what an index has: it was asked after the snapshot was taken.
    fn cache_decides(&self, index: &str, package: &PackageName) -> bool {
        let Some(asked) = self.client.page_age(index, package) else { return false };
        index != Snapshot::INDEX || self.taken().is_none_or(|taken| asked >= taken)
    }

    /// An index other than the default one may be out of reach when pending artefacts are welcome.
    fn or_pass_over<T>(&self, index: &str, nothing: T, answer: Result<T, Failure>) -> Result<T, Failure> {
        match answer {
            Err(failure) if self.lenient && index != self.default_index => {
                let mut warnings = self.warnings.borrow_mut();
                for mut diagnostic in failure.diagnostics {
                    diagnostic.severity = Severity::Warning;
                    if !warnings.iter().any(|known| known.message == diagnostic.message) {
                        warnings.push(diagnostic);
                    }
                }
                Ok(nothing)
            }
            other => other,
        }
    }
}

/// A client for `indexes` (name and URL) as flags and environment set it; `revalidate`: copies in the cache are not
/// trusted, however fresh.
///
/// # Errors
/// URLs, mirrors or environment variables that are no good.
pub fn client(indexes: &[(String, String)], globals: &Globals, revalidate: bool) -> Result<Client, Failure> {
    let mut asked = indexes.to_vec();
    let mut mirrored = BTreeSet::new();
    for mirror in globals.mirrors.iter().flat_map(|several| several.split_whitespace()) {
        apply_mirror(mirror, &mut asked, &mut mirrored)?;
    }
    let env = |name: &str| match name {
        "GPULOCK_CACHE_DIR" if globals.cache_dir.is_some() => {
            globals.cache_dir.as_ref().map(|path| path.display().to_string())
        }
        name => std::env::var(name).ok(),
    };
    let named = asked.iter().map(|(name, url)| (name.as_str(), url.as_str()));
    let mut options = Options::from_environment(named, &env)?;
    options.mode = if globals.offline { Mode::CacheOnly } else { Mode::Online };
    options.progress = Arc::new(Bar::new(globals));
    options.revalidate = revalidate;
    Ok(Client::new(options))
}

/// Registries of images as flags and environment set them. They are asked for what a lock can do without, so not often.
///
/// # Errors
/// Mirrors, environment variables or a Docker configuration that are no good.
pub fn registries(mirrors: &[(String, String)], globals: &Globals) -> Result<Registries, Failure> {
    let env = |name: &str| std::env::var(name).ok();
    let mut options = Options::from_environment([], &env)?;
    options.mode = if globals.offline { Mode::CacheOnly } else { Mode::Online };
    options.progress = Arc::new(Bar::new(globals));
    options.timing.retries = 1;
    Registries::new(options, &env, mirrors)
}

/// `NAME=URL` over the index of that name; each index once.
fn apply_mirror<'m>(
    mirror: &'m str,
    indexes: &mut [(String, String)],
    mirrored: &mut BTreeSet<&'m str>,
) -> Result<(), Failure> {
    let wrong = |message: String, fix: String| {
        let evidence = Evidence::observed("--mirror", without_credentials(mirror));
        Failure::unanswerable(Diagnostic::error("usage", message, evidence).fix(fix))
    };
    // An address may have `=` in it, too.
    let Some((name, url)) = mirror.split_once('=').filter(|(name, _)| !name.contains(['/', ':', '@', '?'])) else {
        return Err(wrong("a mirror without name".into(), "write NAME=URL, such as pypi=https://mirror/simple".into()));
    };
    let known: Vec<String> = indexes.iter().map(|(known, _)| known.clone()).collect();
    if !mirrored.insert(name) {
        return Err(wrong(format!("two mirrors for the index `{name}`"), "name one".into()));
    }
    let begins = |part: &str| part.split_once('=').is_some_and(|(name, _)| known.iter().any(|known| known == name));
    if url.split(',').skip(1).any(begins) {
        return Err(wrong("several mirrors with a comma between them".into(), "put a space between two".into()));
    }
    match indexes.iter_mut().find(|(known, _)| known == name) {
        Some((_, known)) => *known = url.to_owned(),
        None => return Err(wrong(format!("there is no index `{name}`"), format!("name one of: {}", known.join(", ")))),
    }
    Ok(())
}

impl Catalog for Source<'_> {
    fn versions(&self, index: &str, package: &PackageName) -> Result<Arc<[Pep440]>, CatalogError> {
        let answer = self.or_pass_over(index, Vec::new().into(), self.client.versions(index, package))?;
        if !self.offline || self.cache_decides(index, package) {
            return Ok(answer);
        }
        let snapshot = self.snapshot.versions(index, package)?;
        if answer.is_empty() {
            return Ok(snapshot);
        }
        let mut all: Vec<Pep440> = snapshot.iter().chain(&*answer).cloned().collect();
        all.sort();
        all.dedup();
        Ok(all.into())
    }

    fn release(
        &self,
        index: &str,
        package: &PackageName,
        version: &Pep440,
    ) -> Result<Option<Arc<Release>>, CatalogError> {
        let answer = self.or_pass_over(index, None, self.client.release(index, package, version))?;
        let answer = answer.map(|release| self.with_sizes(release)).transpose()?;
        if !self.offline || self.cache_decides(index, package) {
            return Ok(answer);
        }
        let Some(snapshot) = self.snapshot.release(index, package, version)? else { return Ok(answer) };
        let mut wheels: Vec<Arc<Wheel>> = Vec::new();
        for wheel in answer.as_deref().map_or(&[][..], |release| &release.wheels) {
            if self.may_choose(wheel)? {
                wheels.push(Arc::clone(wheel));
            }
        }
        if wheels.is_empty() {
            return Ok(Some(snapshot));
        }
        let have: BTreeSet<Box<str>> = wheels.iter().map(|wheel| wheel.name.file.clone()).collect();
        wheels.extend(snapshot.wheels.iter().filter(|wheel| !have.contains(&wheel.name.file)).cloned());
        wheels.sort_by(|a, b| a.name.file.cmp(&b.name.file));
        Ok(Some(Arc::new(Release { version: version.clone(), wheels })))
    }

    /// Offline, a wheel that nobody has looked into cannot be chosen.
    fn may_choose(&self, wheel: &Wheel) -> Result<bool, CatalogError> {
        Ok(!self.offline || self.known(wheel)? || self.client.is_cached(wheel))
    }

    fn metadata(&self, wheel: &Wheel) -> Result<Arc<PackageMetadata>, CatalogError> {
        let known = if wheel.sha256.is_some() { self.snapshot.known_metadata(wheel)? } else { None };
        let metadata = match known {
            Some(metadata) => metadata,
            None => self.client.metadata(wheel)?,
        };
        if !self.offline {
            // The solver asks for these one by one; all at once is faster.
            let applying = metadata.requires.iter().filter(|requirement| requirement.applies(&self.env, &[]));
            let packages: Vec<PackageName> = applying.map(|requirement| requirement.package.clone()).collect();
            self.client.prefetch(self.default_index, &packages);
        }
        Ok(metadata)
    }

    fn libraries(&self, wheel: &Wheel) -> Result<Vec<Library>, CatalogError> {
        let known = if wheel.sha256.is_some() { self.snapshot.known_libraries(wheel)? } else { None };
        match known {
            Some(libraries) => Ok(libraries),
            // The snapshot leaves the list out where a wheel has no library.
            None if self.known(wheel)? && wheel.index.as_ref() == Snapshot::INDEX => Ok(Vec::new()),
            None => self.client.libraries(wheel),
        }
    }
}
