//! What is there: takes a path, gives an [`Inventory`] of its libraries, its Python packages and the loader's setup.
//!
//! Nothing is run and nothing is changed; files are read as the dynamic loader and `importlib.metadata` read them. Every
//! path that leaves this module is a path *inside* the [`Root`] of the subject.

mod apptainer;
mod conda;
mod distribution;
mod driver;
pub mod file;
pub mod host;
pub mod image;
pub mod integrity;
mod ldcache;
mod library;
mod loader;
pub mod machine;
mod model;
mod parallel;
pub mod process;
mod python;
mod read;
mod root;
mod startup;
mod subject;
mod walk;
mod wheel;
pub mod words;

pub use distribution::{Distribution, DistributionKind, RecordedFile, joined};
pub use driver::{DriverFile, DriverFileKind};
pub use ldcache::{Cache, CacheEntry};
pub use library::{Library, Role};
pub use loader::{Loader, LoaderKind};
pub use model::{Inventory, Options, Trouble, TroubleKind};
pub use python::{PythonEnvironment, PythonKind};
pub use root::{FileKind, Look, Root, Unresolved, shown};
pub use subject::{Subject, SubjectKind};
