//! Package indexes over the network: takes index addresses, gives a [`Catalog`](crate::python::Catalog) of what they
//! offer.
//!
//! Index pages are PEP 691 JSON or PEP 503 HTML; a wheel's METADATA comes by PEP 658 where the index offers it, else,
//! like its RECORD, out of the archive by range requests, else by a whole download. Pages and what was read from wheels
//! are kept in a cache on disk that several processes may share. Credentials are sent to the index's own host only and
//! reach neither messages nor the cache.

mod archive;
mod blob;
mod cache;
mod client;
mod credentials;
mod docker;
mod failure;
mod helper;
mod listing;
mod manifest;
mod memo;
mod metadata;
mod name;
mod netrc;
mod oci;
mod options;
mod page;
mod pool;
mod progress;
mod range;
mod record;
mod tls;
mod transport;
mod verbatim;
mod wheel;

pub use archive::{OVERLAP, Search};
pub use blob::RemoteImage;
pub use client::Client;
pub use credentials::{Credentials, Environment};
pub use metadata::Facts as MetadataText;
pub use name::fault as image_name_fault;
pub use netrc::Netrc;
pub use oci::{Found, Registries};
pub use options::{IndexSource, Mode, Options, Timing, default_cache_dir};
pub use progress::{Progress, Silent};
pub use transport::Traffic;
pub use verbatim::Listed;
