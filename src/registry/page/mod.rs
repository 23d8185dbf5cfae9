//! Index pages: takes what an index answers for a package, gives the wheels on it.
//!
//! Specification: the simple repository API (PEP 503, 592, 629, 658, 691, 700, 714).

mod html;
mod json;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use url::Url;

use crate::python::{PackageName, Release, Wheel, WheelName};
use crate::version::Pep440;

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

/// A package as one index offers it.
#[derive(Debug)]
pub(super) struct Page {
    /// When the index said so.
    pub(super) fetched: Option<SystemTime>,
    pub(super) versions: Arc<[Pep440]>,
    pub(super) releases: BTreeMap<Pep440, Arc<Release>>,
    offers: HashMap<Box<str>, Offer>,
    /// Upload time and Requires-Python as the index words them, by file.
    words: HashMap<Box<str>, Words>,
}

/// What an index says of a file, word by word.
#[derive(Debug, Clone, Default)]
pub(super) struct Words {
    pub(super) uploaded: Option<Box<str>>,
    pub(super) python: Option<Box<str>>,
}

impl Page {
    /// Groups `entries` by version. What is not a wheel of `package` is left out, and so is a second file of one name.
    pub(super) fn new(
        index: &Arc<str>,
        package: &PackageName,
        entries: Vec<Entry>,
        fetched: Option<SystemTime>,
    ) -> Self {
        let mut offers = HashMap::new();
        let mut words = HashMap::new();
        let mut grouped: BTreeMap<Pep440, Vec<Arc<Wheel>>> = BTreeMap::new();
        for entry in entries {
            let Ok(name) = entry.file.parse::<WheelName>() else { continue };
            if name.package != *package {
                continue;
            }
            let wheels = grouped.entry(name.version.clone()).or_default();
            if wheels.iter().any(|wheel| wheel.name.file == name.file) {
                continue;
            }
            if let Some(offer) = entry.metadata {
                offers.insert(name.file.clone(), offer);
            }
            if entry.uploaded.is_some() || entry.python.is_some() {
                let python = entry.python.as_deref().map(Into::into);
                words.insert(name.file.clone(), Words { uploaded: entry.uploaded.map(Into::into), python });
            }
            wheels.push(Arc::new(Wheel {
                name,
                index: Arc::clone(index),
                url: Some(entry.url.into()),
                sha256: entry.sha256.map(Into::into),
                size: entry.size,
                // A constraint that cannot be read constrains nothing, as pip has it.
                requires_python: entry.python.and_then(|text| text.parse().ok()),
                yanked: entry.yanked,
                reason: entry.reason.map(Into::into),
            }));
        }
        let releases: BTreeMap<_, _> = grouped
            .into_iter()
            .map(|(version, mut wheels)| {
                wheels.sort_by(|a, b| a.name.file.cmp(&b.name.file));
                (version.clone(), Arc::new(Release { version, wheels }))
            })
            .collect();
        Self { fetched, versions: releases.keys().cloned().collect(), releases, offers, words }
    }
    /// The wheel of that file name.
    pub(super) fn wheel(&self, name: &WheelName) -> Option<&Arc<Wheel>> {
        self.releases.get(&name.version)?.wheels.iter().find(|wheel| wheel.name.file == name.file)
    }

    /// What the index says of a file, word by word.
    pub(super) fn words(&self, file: &str) -> Words {
        self.words.get(file).cloned().unwrap_or_default()
    }

    /// Whether, and with which hash, a wheel's METADATA stands beside it.
    pub(super) fn offer(&self, file: &str) -> Option<&Offer> {
        self.offers.get(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheels_by_version() {
        let entry = |file: &str| Entry { file: file.into(), url: format!("https://h/{file}"), ..Entry::default() };
        let files = [
            "x-1.10-py3-none-any.whl",
            "x-1.9-py3-none-any.whl",
            "x-1.9.0-cp311-cp311-manylinux2014_x86_64.whl",
            "x-1.9-py3-none-any.whl",
            "y-1-py3-none-any.whl",
            "x-broken.whl",
        ];
        let mut entries: Vec<Entry> = files.map(entry).into();
        entries[0].python = Some(">=3.6.*, nonsense".into());
        entries[1].python = Some(">=3.9".into());
        let page = Page::new(&"i".into(), &"X".parse().unwrap(), entries, None);
        assert_eq!(page.versions.iter().map(ToString::to_string).collect::<Vec<_>>(), ["1.9", "1.10"]);
        assert_eq!(page.releases[&"1.9".parse().unwrap()].wheels.len(), 2);
        let name = "x-1.10-py3-none-any.whl".parse().unwrap();
        assert!(page.wheel(&name).unwrap().requires_python.is_none());
    }

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
