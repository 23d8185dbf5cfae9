//! Where packages come from, as the resolver sees it: releases with their wheels, a wheel's metadata, its libraries.
//!
//! The embedded snapshot, the cache and the indexes are each a [`Catalog`].

use std::sync::Arc;

use super::{Extra, PackageName, Requirement, WheelName};
use crate::diag::Failure;
use crate::version::{Pep440, Specifiers};

/// A wheel that an index offers.
#[derive(Debug, Clone)]
pub struct Wheel {
    /// Taken-apart file name.
    pub name: WheelName,
    /// Name of the index that lists it.
    pub index: Arc<str>,
    /// Where it is, where the index told; never with credentials.
    pub url: Option<Box<str>>,
    /// SHA-256, lower-case hex. Absent where the index does not tell.
    pub sha256: Option<Box<str>>,
    /// Size in bytes. Absent where the index does not tell.
    pub size: Option<u64>,
    /// Pythons that the index says it is for.
    pub requires_python: Option<Specifiers>,
    /// Withdrawn by its author (PEP 592).
    pub yanked: bool,
    /// Why, where its authors said and the index told.
    pub reason: Option<Box<str>>,
}

impl Wheel {
    /// That its authors withdrew it, and why, on one line; `None` when they did not.
    pub fn withdrawn(&self) -> Option<String> {
        const MOST: usize = 200;
        let reason: Vec<&str> = self.reason.iter().flat_map(|reason| reason.split_whitespace()).collect();
        let reason: String = reason.join(" ").chars().take(MOST).collect();
        let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        self.yanked.then(|| format!("withdrawn by its authors (yanked{why})"))
    }
}

/// Reads the Requires-Python of one wheel after another: those of a release mostly say the same.
#[derive(Debug, Default)]
pub struct RequiresPython<'t> {
    last: Option<(&'t str, Option<Specifiers>)>,
}

impl<'t> RequiresPython<'t> {
    /// The specifiers that `text` is; a constraint that cannot be read constrains nothing, as pip has it.
    pub fn read(&mut self, text: &'t str) -> Option<Specifiers> {
        match &self.last {
            Some((last, read)) if *last == text => read.clone(),
            _ => self.last.insert((text, text.parse().ok())).1.clone(),
        }
    }
}

/// All wheels of one version.
#[derive(Debug, Clone)]
pub struct Release {
    /// The version.
    pub version: Pep440,
    /// Its wheels, by file name.
    pub wheels: Vec<Arc<Wheel>>,
}

/// A wheel's own METADATA, as far as a resolver needs it.
#[derive(Debug, Clone, Default)]
pub struct PackageMetadata {
    /// `Requires-Dist`.
    pub requires: Vec<Requirement>,
    /// `Requires-Python`.
    pub requires_python: Option<Specifiers>,
    /// `Provides-Extra`.
    pub extras: Vec<Extra>,
}

/// A shared library inside a wheel, as the wheel's RECORD lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Library {
    /// Path below site-packages.
    pub path: String,
    /// SHA-256, lower-case hex.
    pub sha256: String,
    /// Size in bytes.
    pub size: u64,
}

/// Why a catalog could not answer.
pub type CatalogError = Failure;

/// A source of packages.
pub trait Catalog {
    /// The versions that `index` has of `package`, ascending; empty when it has none.
    ///
    /// # Errors
    /// When the source could not be asked: network, damaged cache.
    fn versions(&self, index: &str, package: &PackageName) -> Result<Arc<[Pep440]>, CatalogError>;

    /// The wheels of one of these versions.
    ///
    /// # Errors
    /// As [`Catalog::versions`].
    fn release(
        &self,
        index: &str,
        package: &PackageName,
        version: &Pep440,
    ) -> Result<Option<Arc<Release>>, CatalogError>;

    /// Whether a wheel may be chosen: what it requires is known, or can be asked for.
    ///
    /// # Errors
    /// As [`Catalog::versions`].
    fn may_choose(&self, _wheel: &Wheel) -> Result<bool, CatalogError> {
        Ok(true)
    }

    /// The METADATA of a wheel.
    ///
    /// # Errors
    /// When it cannot be had, or contradicts the file name.
    fn metadata(&self, wheel: &Wheel) -> Result<Arc<PackageMetadata>, CatalogError>;

    /// The shared libraries of a wheel, in the order of its RECORD.
    ///
    /// # Errors
    /// When its RECORD cannot be had.
    fn libraries(&self, wheel: &Wheel) -> Result<Vec<Library>, CatalogError>;
}
