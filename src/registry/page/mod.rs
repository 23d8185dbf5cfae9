//! Index pages: takes what an index answers for a package, gives the wheels on it, and the releases that they are of.
//!
//! Specification: the simple repository API (PEP 503, 592, 629, 658, 691, 700, 714).

mod html;
mod json;
mod releases;

pub(super) use releases::{Directory, Page};
use serde::{Deserialize, Serialize};
use url::Url;

/// The forms that are understood, the best first.
pub(super) const ACCEPT: &str = "application/vnd.pypi.simple.v1+json, \
     application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";

/// One file of a page, as the index and the cache tell it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub(super) struct Entry {
    pub(super) file: String,
    pub(super) url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sha256: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) python: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) yanked: bool,
    /// Why it was withdrawn, where its authors said (PEP 592).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// RFC 3339 (PEP 700).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) uploaded: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Option<Offer>,
}

/// The METADATA of a file stands beside it, at its address with `.metadata` (PEP 658).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub(super) struct Offer {
    /// Hash of that METADATA, where the index tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sha256: Option<String>,
}

/// Reads an answer of the type that its `Content-Type` says. Addresses are relative to `base`.
pub(super) fn read(content_type: Option<&str>, body: &[u8], base: &Url) -> Result<Vec<Entry>, String> {
    let mime = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let mut entries = match mime.as_str() {
        "application/vnd.pypi.simple.v1+json" => json::read(body, base)?,
        "application/vnd.pypi.simple.v1+html" | "text/html" | "application/xhtml+xml" => html::read(body, base)?,
        "" => return Err("it does not say its content type".into()),
        other => return Err(format!("its content type is {other}, neither JSON nor HTML of a simple index")),
    };
    entries.retain(|entry| entry.file.ends_with(".whl"));
    Ok(entries)
}

/// A sha256 as the wheel model has it; anything else counts as no hash.
fn sha256(text: &str) -> Option<String> {
    let hex = text.trim();
    (hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit())).then(|| hex.to_ascii_lowercase())
}

/// `reference` as an address of its own, without login and fragment. Only a page on this machine may lead to files on it.
fn resolve(base: &Url, reference: &str) -> Option<Url> {
    let mut url = base.join(reference.trim()).ok()?;
    match url.scheme() {
        "http" | "https" => {}
        "file" if base.scheme() == "file" => {}
        _ => return None,
    }
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_fragment(None);
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_does_not_point_into_this_machine() {
        let [remote, local] = ["https://h/x/", "file:///x/"].map(|base| base.parse().unwrap());
        assert!(resolve(&remote, "file:///etc/passwd").is_none());
        assert!(resolve(&remote, "ftp://h/y").is_none());
        assert_eq!(resolve(&local, "../y").unwrap().as_str(), "file:///y");
        assert_eq!(resolve(&remote, "//u:p@g/y#z").unwrap().as_str(), "https://g/y");
    }

    #[test]
    fn the_content_type_decides() {
        let base = "https://h/simple/x/".parse().unwrap();
        assert!(read(Some("text/html; charset=utf-8"), b"", &base).unwrap().is_empty());
        assert!(read(Some("application/pdf"), b"", &base).unwrap_err().contains("application/pdf"));
        assert!(read(None, b"", &base).is_err());
    }
}
