//! Where a run's packages come from: the embedded snapshot alone so far.

use std::sync::Arc;

use super::Globals;
use crate::diag::Failure;
use crate::manifest::Manifest;
use crate::matrix::{Matrix, Snapshot};
use crate::python::{Catalog, CatalogError, Library, PackageMetadata, PackageName, Release, Wheel};
use crate::version::Pep440;

/// The catalog of a run, and the URLs of its indexes.
pub struct Source<'m> {
    matrix: &'m Matrix,
    indexes: Vec<(String, String)>,
    snapshot: Snapshot<'m>,
}

impl<'m> Source<'m> {
    /// The catalog that a manifest needs.
    pub fn new(matrix: &'m Matrix, manifest: &Manifest, _globals: &Globals) -> Result<Self, Failure> {
        let mut indexes: Vec<(String, String)> =
            manifest.indexes.iter().map(|index| (index.name.clone(), index.url.clone())).collect();
        indexes.extend(matrix.index()?.indexes.iter().map(|row| (row.name.clone(), row.url.clone())));
        Ok(Self { matrix, indexes, snapshot: matrix.snapshot() })
    }

    /// The URL of an index, without credentials.
    pub fn url(&self, name: &str) -> Option<String> {
        let found = self.indexes.iter().find(|(known, _)| known == name);
        found.map(|(_, url)| crate::manifest::without_credentials(url))
    }

    /// The index that packages come from unless something says otherwise.
    pub fn default_index(&self) -> Result<&'m str, Failure> {
        let default = self.matrix.index()?.indexes.iter().find(|row| row.default);
        Ok(default.map_or(Snapshot::INDEX, |row| row.name.as_str()))
    }
}

impl Catalog for Source<'_> {
    fn versions(&self, index: &str, package: &PackageName) -> Result<Arc<[Pep440]>, CatalogError> {
        self.snapshot.versions(index, package)
    }

    fn release(
        &self,
        index: &str,
        package: &PackageName,
        version: &Pep440,
    ) -> Result<Option<Arc<Release>>, CatalogError> {
        self.snapshot.release(index, package, version)
    }

    fn metadata(&self, wheel: &Wheel) -> Result<Arc<PackageMetadata>, CatalogError> {
        self.snapshot.metadata(wheel)
    }

    fn libraries(&self, wheel: &Wheel) -> Result<Vec<Library>, CatalogError> {
        self.snapshot.libraries(wheel)
    }
}
