//! What the client has to say when it cannot answer. Each failure names the index and the address, never a login and
//! never a query, which may hold a token.

use url::Url;

use super::credentials::variables;
use super::options::IndexSource;
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::python::PackageName;

const OFFLINE: &str = "or use `--offline` to go without the network";

/// What else there is where an index cannot be reached: another address of it, or no index at all.
fn otherwise(index: &IndexSource) -> String {
    format!(
        "name a mirror of it (`--mirror {}=URL`), use `--offline` to go without the network, or lock what the matrix \
         knows with `--allow-pending`",
        index.name
    )
}

/// What to do about the cause of [`unreachable`], without what else there is for an index.
pub(super) fn remedy<'f>(failure: &'f Failure, index: &IndexSource) -> Option<&'f str> {
    failure.diagnostics.first()?.fix.as_deref()?.strip_suffix(&format!("; or {}", otherwise(index)))
}

/// `url` as it may be shown.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

fn failure(code: &'static str, message: String, what: String, fact: String, fix: String) -> Failure {
    Failure::unanswerable(Diagnostic::error(code, message, Evidence::observed(what, fact)).fix(fix))
}

/// No answer, or none that is worth reading.
pub(super) fn unreachable(index: &IndexSource, url: &Url, tries: u32, fact: &str, fix: &str) -> Failure {
    let tries = if tries == 1 { "1 try".into() } else { format!("{tries} tries") };
    failure(
        "index-unreachable",
        format!("index `{}` could not be read at {}: {fact}", index.name, shown(url)),
        format!("{} ({tries})", shown(url)),
        fact.into(),
        format!("{fix}; or {}", otherwise(index)),
    )
}

/// 401 or 403.
pub(super) fn unauthorized(index: &IndexSource, url: &Url, status: u16, logged_in: bool) -> Failure {
    let [username, password] = variables(&index.name);
    let sent = if logged_in { "the login that was sent is not accepted" } else { "no login was sent" };
    failure(
        "index-unauthorized",
        format!("index `{}` refuses {}: HTTP status {status}, and {sent}", index.name, shown(url)),
        shown(url),
        format!("HTTP status {status}; {sent}"),
        format!("set {username} and {password}, or put the login into ~/.netrc or the index's URL"),
    )
}

/// An answer that is not what an index says.
pub(super) fn bad_answer(index: &IndexSource, url: &Url, fact: &str) -> Failure {
    failure(
        "index-bad-answer",
        format!("index `{}` gave an answer at {} that cannot be used: {fact}", index.name, shown(url)),
        shown(url),
        fact.into(),
        format!("check that {} is the address of a simple package index, {OFFLINE}", shown(&index.url)),
    )
}

/// A file that is not the one the index promised.
pub(super) fn hash_mismatch(index: &IndexSource, url: &Url, expected: &str, found: &str) -> Failure {
    failure(
        "hash-mismatch",
        format!("{} is not the file that index `{}` promises: its sha256 differs", shown(url), index.name),
        shown(url),
        format!("sha256 {found}, but the index says {expected}"),
        "do not use this file; try again later, and tell whoever runs the index if it stays so".into(),
    )
}

/// A wheel that cannot be read as one.
pub(super) fn wheel_unreadable(index: &str, file: &str, fact: &str) -> Failure {
    failure(
        "wheel-unreadable",
        format!("wheel {file} of index `{index}` cannot be read: {fact}"),
        file.into(),
        fact.into(),
        "exclude this version, or tell its publisher".into(),
    )
}

/// METADATA that belongs to another wheel.
pub(super) fn metadata_mismatch(index: &str, file: &str, fact: &str) -> Failure {
    failure(
        "metadata-mismatch",
        format!("wheel {file} of index `{index}` disagrees with its own METADATA: {fact}"),
        format!("METADATA of {file}"),
        fact.into(),
        "exclude this version, or tell its publisher".into(),
    )
}

/// An index that nobody has defined.
pub(super) fn unknown_index(name: &str, known: &[IndexSource]) -> Failure {
    let names: Vec<&str> = known.iter().map(|index| &*index.name).collect();
    let near = crate::diag::did_you_mean(name, names.iter().copied());
    failure(
        "index-unknown",
        format!("there is no index `{name}`"),
        "indexes".into(),
        format!("known are {}", names.join(", ")),
        match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("define it with [[index]] and name = \"{name}\""),
        },
    )
}

/// A wheel whose index does not list it, so that nobody knows where it is.
pub(super) fn wheel_unlisted(index: &str, file: &str) -> Failure {
    failure(
        "wheel-unlisted",
        format!("index `{index}` does not list {file}"),
        format!("index `{index}`"),
        format!("{file} is not on its page"),
        "resolve again without `--locked`, or upgrade that package: the file may have been removed".into(),
    )
}

/// A wheel of the right name whose index now promises other content.
pub(super) fn wheel_replaced(index: &str, file: &str, expected: &str, found: &str) -> Failure {
    failure(
        "hash-mismatch",
        format!("index `{index}` lists a {file} that is not the expected one: its sha256 differs"),
        format!("index `{index}`"),
        format!("lists {file} with sha256 {found}, not {expected}"),
        "find out why the file was replaced before you use it; another index may still have the expected one".into(),
    )
}

/// Files on a page whose names no wheel may have: a path, control characters, letters beyond ASCII.
pub(super) fn strange_names(index: &IndexSource, url: &Url, first: &str, count: usize) -> Diagnostic {
    let files = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
    let message = format!("index `{}` lists {files} whose names no wheel may have: passed over", index.name);
    Diagnostic::note("wheel-name", message, Evidence::observed(shown(url), format!("lists {first:?}")))
        .fix("none needed, unless one of them is wanted: tell whoever runs the index")
}

/// Something that only the network has, in [`Mode::CacheOnly`](super::Mode::CacheOnly).
pub(super) fn not_cached(index: &str, file: &str, what: &str) -> Failure {
    failure(
        "not-cached",
        format!("the {what} of {file} is not in the cache, and the network may not be used"),
        "cache".into(),
        format!("has no {what} of {file} (index `{index}`)"),
        "run once without `--offline`".into(),
    )
}

/// A page that was there when the run began.
pub(super) fn cache_unreadable(index: &str, package: &PackageName, error: &std::io::Error) -> Failure {
    failure(
        "cache-unreadable",
        format!("the cache's copy of the page of {package} of index `{index}` can no longer be read: {error}"),
        format!("cache: page of {package}, index `{index}`"),
        error.to_string(),
        "run again; if it stays so, check the disk, or name another folder with GPULOCK_CACHE_DIR".into(),
    )
}

/// A file on this machine that cannot be read or written.
pub(super) fn local(index: &IndexSource, what: &str, error: &std::io::Error) -> Failure {
    failure(
        "index-unreachable",
        format!("index `{}`: {what}: {error}", index.name),
        what.into(),
        error.to_string(),
        "check that it exists, can be read, and that the disk is not full".into(),
    )
}
