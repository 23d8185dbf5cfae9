//! What an index and its wheels say, word by word, for who keeps a copy of it: takes a package or a wheel, gives texts
//! that the [`Catalog`](crate::python::Catalog) has already taken apart.

use std::sync::Arc;

use super::client::Client;
use super::failure;
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
        let mut listed = Vec::new();
        for listing in page.releases() {
            let listing = listing.map_err(|error| failure::cache_unreadable(index, package, &error))?;
            listed.extend(listing.wheels().map(|(wheel, said)| Listed {
                wheel: Arc::clone(wheel),
                uploaded: said.uploaded.clone(),
                requires_python: said.python.clone(),
            }));
        }
        Ok(listed)
    }

    /// What the METADATA of a wheel says, as it stands there.
    ///
    /// # Errors
    /// As [`Catalog::metadata`](crate::python::Catalog::metadata).
    pub fn metadata_text(&self, wheel: &Wheel) -> Result<Facts, Failure> {
        self.facts(self.index(&wheel.index)?, wheel)
    }
}
