//! Takes the bytes of an ELF file, gives what the dynamic loader and the CUDA driver would read from it: an [`Object`].
//!
//! Nothing is executed and nothing is mapped: a file that shrinks while it is mapped kills the process that reads it.
//! Tables are read by position ([`ReadAt`]) and only those that are needed; GPU code is walked by its headers. Follows
//! the System V gABI, the LSB's symbol versions, and glibc where those are silent.

mod code;
mod constants;
mod core;
mod dynamic;
mod fatbin;
mod identity;
mod layout;
mod notes;
mod object;
mod read;
mod symbols;
mod versions;

pub use self::core::{Core, CoreFile};
pub use code::{Code, CodeKind, Compression, GpuCodes};
pub use constants::constants;
pub use identity::{Identity, Reading};
pub use object::{Kind, Machine, Object, Stack, VersionNeed};
pub use read::{Problem, ReadAt, Unreadable};
pub use symbols::{Definition, Found, Import, SymbolKind, Symbols, hash_name};
