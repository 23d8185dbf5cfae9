//! Why an image cannot be read.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::diag::Failure;

/// What is wrong.
#[derive(Debug)]
pub(super) enum Fault {
    /// Something in it cannot be right: "it ends early".
    Broken(String),
    /// It is whole, and of a kind that is not read; with the way out: "unpack it".
    Foreign(String, &'static str),
    /// It is more than may be unpacked.
    TooLarge(String),
    /// It cannot be read.
    Read(io::Error),
    /// What is kept of it cannot be written to the folder for temporary files. A cache that cannot be written is none.
    Spool(io::Error),
    /// What was written to that folder is not there.
    Lost(PathBuf),
    /// Whoever brings it has said why.
    Said(Failure),
}

impl Fault {
    pub(super) fn broken(what: String) -> Self {
        Self::Broken(what)
    }

    /// The same with what it is about before it.
    pub(super) fn of(self, what: &str) -> Self {
        match self {
            Self::Broken(why) => Self::Broken(format!("{what}: {why}")),
            Self::Foreign(why, fix) => Self::Foreign(format!("{what}: {why}"), fix),
            other => other,
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        let (kind, from_system) = (error.kind(), error.raw_os_error().is_some());
        match error.downcast::<Failure>() {
            Ok(failure) => Self::Said(failure),
            Err(error) if from_system => Self::Read(error),
            Err(_) if kind == io::ErrorKind::UnexpectedEof => Self::Broken("it ends early".into()),
            // Decompressors say what is wrong with the bytes.
            Err(error) => Self::Broken(error.to_string()),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(what) | Self::Foreign(what, _) | Self::TooLarge(what) => f.write_str(what),
            Self::Read(error) | Self::Spool(error) => error.fmt(f),
            Self::Lost(folder) => write!(f, "nothing whole in {}", folder.display()),
            Self::Said(failure) => failure.fmt(f),
        }
    }
}
