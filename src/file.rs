//! Reads files that the user names: a path becomes bytes or text, or says why it cannot.
//!
//! Only regular files are read, and only up to a limit: a pipe without a writer would be waited for without end, and a
//! device may never end.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::diag::{Diagnostic, Evidence, Failure};

/// More than any manifest, lock or requirements file, in bytes; what is larger was named by mistake.
pub const LARGEST: u64 = 16 << 20;

/// The code of a file that is no text.
pub const NOT_TEXT: &str = "not-text";

/// Files that this process has read whole, and folders all of whose files it may read, by device and inode: what it writes
/// may not go there.
static INPUTS: Mutex<BTreeSet<(u64, u64)>> = Mutex::new(BTreeSet::new());

/// Remembers that a file, or whatever is in a folder, is an input of this process, for what is read by other means than
/// [`read`].
pub fn mark_input(path: &Path) {
    if let Ok(metadata) = fs::metadata(path) {
        mark(&metadata);
    }
}

/// Whether a path leads to an input of this process, by whatever name.
pub fn is_input(path: &Path) -> bool {
    let inputs = INPUTS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_one = |path: &Path| fs::metadata(path).is_ok_and(|it| inputs.contains(&(it.dev(), it.ino())));
    fs::canonicalize(path).is_ok_and(|whole| whole.ancestors().any(is_one))
}

fn mark(metadata: &Metadata) {
    INPUTS.lock().unwrap_or_else(PoisonError::into_inner).insert((metadata.dev(), metadata.ino()));
}

/// Opens a regular file; links are followed.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] for what is there but no regular file, else what the system says.
pub fn open(path: &Path) -> io::Result<File> {
    let kind = kind(&fs::metadata(path)?);
    match kind {
        None => File::open(path),
        Some(kind) => Err(io::Error::new(ErrorKind::InvalidInput, format!("it is {kind}, not a regular file"))),
    }
}

/// The bytes of a regular file of at most `limit` bytes.
///
/// # Errors
/// As [`open`], and [`ErrorKind::FileTooLarge`].
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let metadata = file.metadata()?;
    mark(&metadata);
    let length = metadata.len();
    // Some files below /proc say that they are empty, and a file may grow while it is read.
    if length > limit { Err(too_large(limit)) } else { within(file, length, limit) }
}

/// What there is to read, at most `limit` bytes; about `length` are expected.
///
/// # Errors
/// What cannot be read, and [`ErrorKind::FileTooLarge`].
pub fn within(from: impl Read, length: u64, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(length as usize + 1);
    from.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 <= limit { Ok(bytes) } else { Err(too_large(limit)) }
}

fn too_large(limit: u64) -> io::Error {
    io::Error::new(ErrorKind::FileTooLarge, format!("it has more than {} KiB", limit >> 10))
}

/// What is no regular file, with its article.
fn kind(metadata: &Metadata) -> Option<&'static str> {
    let kind = metadata.file_type();
    match () {
        () if kind.is_file() => None,
        () if kind.is_dir() => Some("a folder"),
        () if kind.is_fifo() => Some("a named pipe"),
        () if kind.is_socket() => Some("a socket"),
        () => Some("a device"),
    }
}

/// The text of a file; `None` when there is no such file.
///
/// # Errors
/// A path that cannot be read, or a file that is no text.
pub fn text_if_there(path: &Path) -> Result<Option<String>, Failure> {
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        _ => text(path).map(Some),
    }
}

/// The text of a file.
///
/// # Errors
/// A path that cannot be read, or a file that is no text.
pub fn text(path: &Path) -> Result<String, Failure> {
    text_within(path, LARGEST)
}

/// The text of a file of at most `limit` bytes.
///
/// # Errors
/// As [`text`].
pub fn text_within(path: &Path, limit: u64) -> Result<String, Failure> {
    decoded(read(path, limit).map_err(|error| unread(path, &error))?, &path.display().to_string())
}

/// Bytes as text; `shown` is where they are from.
///
/// # Errors
/// What is no UTF-8.
pub fn decoded(bytes: Vec<u8>, shown: &str) -> Result<String, Failure> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        let place = Evidence::observed(shown, format!("line {line}, byte {at} of the file"));
        let problem = Diagnostic::error(NOT_TEXT, format!("{shown} is not UTF-8 text"), place);
        Failure::unanswerable(problem.fix("save it as UTF-8, or name another file"))
    })?;
    // A byte order mark is no part of the text.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Why a file was not read, for people.
pub fn unread(path: &Path, error: &io::Error) -> Failure {
    let shown = path.display();
    let (why, fix) = match error.kind() {
        ErrorKind::NotFound => ("does not exist".into(), "name a file that is there"),
        ErrorKind::PermissionDenied => ("may not be read".into(), "change its permissions, or name another file"),
        ErrorKind::InvalidInput => match fs::metadata(path).ok().and_then(|it| kind(&it)) {
            Some("a folder") => ("is a folder, not a file".into(), "name a file, or move the folder away"),
            Some(kind) => (format!("is {kind}, not a regular file"), "write what it holds to a file, and name that"),
            None => ("cannot be read".into(), "name a file that can be read"),
        },
        ErrorKind::FileTooLarge => ("is too large to be what is asked for".into(), "name another file"),
        _ => ("cannot be read".into(), "name a file that can be read"),
    };
    let evidence = Evidence::observed(shown.to_string(), error.to_string());
    Failure::unanswerable(Diagnostic::error("cannot-read", format!("{shown} {why}"), evidence).fix(fix))
}
