//! Python packaging: names, wheel tags, requirements, addresses of indexes, and where their metadata comes from.
//!
//! Specifications: PEP 425 and 600 (tags), PEP 440 (versions), PEP 503 (names), PEP 508 (requirements).

mod address;
mod catalog;
mod name;
mod requirement;
mod tag;
mod wheel;

pub use address::index_address;
pub use catalog::{Catalog, CatalogError, Library, PackageMetadata, Release, RequiresPython, Wheel};
pub use name::PackageName;
pub use requirement::{Extra, MarkerEnv, Requirement};
pub use tag::{Platform, PythonVersion, Runtime};
pub use wheel::{WheelName, WheelTags};
