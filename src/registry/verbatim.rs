//! What an index and its wheels say, word by word, for who keeps a copy of it: takes a package or a wheel, gives texts
//! that the [`Catalog`](crate::python::Catalog) has already taken apart.

use std::sync::Arc;

use super::client::Client;
use super::metadata::Facts;
use crate::diag::Failure;
use crate::python::{PackageName, Wheel};

/// A wheel on an index page.
#[derive(Debug, Clone)]
pub struct Listed {
    /// The wheel.
    pub wheel: Arc<Wheel>,
    /// When it was uploaded, RFC 3339, where the index tells.
    pub uploaded: Option<Box<str>>,
    /// `Requires-Python` as the index words it.
    pub requires_python: Option<Box<str>>,
}

impl Client {
    /// All wheels that `index` lists for `package`, by version and file name.
    ///
    /// # Errors
    /// As [`Catalog::versions`](crate::python::Catalog::versions).
    pub fn listed(&self, index: &str, package: &PackageName) -> Result<Vec<Listed>, Failure> {
        let page = self.page(self.index(index)?, package)?;
        let listed = |wheel: &Arc<Wheel>| {
            let words = page.words(&wheel.name.file);
            Listed { wheel: Arc::clone(wheel), uploaded: words.uploaded, requires_python: words.python }
        };
        Ok(page.releases.values().flat_map(|release| release.wheels.iter().map(listed)).collect())
    }

    /// What the METADATA of a wheel says, as it stands there.
    ///
    /// # Errors
    /// As [`Catalog::metadata`](crate::python::Catalog::metadata).
    pub fn metadata_text(&self, wheel: &Wheel) -> Result<Facts, Failure> {
        self.facts(self.index(&wheel.index)?, wheel)
    }
}
