//! Getting a page: takes an index and a package, gives the page, from the cache while it is fresh, else from the index,
//! which may say that the copy is still right (RFC 9111, as far as it concerns a private cache of one kind of answer).

use std::sync::Arc;
use std::time::Duration;

use reqwest::blocking::Response;
use reqwest::header::{
    ACCEPT, AGE, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    LAST_MODIFIED,
};
use url::Url;

use super::cache::Stamp;
use super::client::Client;
use super::failure::{self, shown};
use super::options::{IndexSource, Mode};
use super::page::{self, Directory, Entry, Page};
use super::transport::{Request, Trouble, unexpected};
use super::wheel::local_path;
use crate::diag::{Evidence, Failure};
use crate::file;
use crate::python::PackageName;

/// A page is asked for again after this time, where its server does not say.
const FRESH: Duration = Duration::from_secs(600);
/// A page is asked for again after so many seconds, whatever its server says: new releases must not stay unseen.
const LONGEST: u64 = 24 * 3600;
/// The largest page that is read, in bytes. Of the pages on PyPI that were looked at (129 of its most released packages,
/// November 2026) pydantic-core's is the largest, with 6.9 MB for 15 057 files; numpy's has 1.9 MB, torch's 0.4 MB.
const PAGE_LIMIT: u64 = 32 << 20;

/// What an index answers for a package.
enum Answer {
    Page(Stamp, bool, Vec<Entry>),
    Unchanged(HeaderMap),
    NoSuchPackage,
}

impl Client {
    pub(super) fn load_page(&self, index: &IndexSource, package: &PackageName) -> Result<Page, Failure> {
        let url = page_url(index, package);
        let page_of = |entries| Page::new(&index.name, package, entries);
        if !index.is_remote() {
            return Ok(page_of(self.pass_over_strange(index, &url, local_page(index, &url)?)));
        }
        let cached = self.cached_page(index, package);
        if self.mode == Mode::CacheOnly {
            return Ok(cached.unwrap_or_else(|| page_of(Vec::new())));
        }
        let cached = match cached {
            Some(page) if !self.revalidate && page.stamp.as_ref().is_some_and(|stamp| stamp.fresh(FRESH)) => {
                return Ok(page);
            }
            cached => cached,
        };
        let stamp = cached.as_ref().and_then(|page| page.stamp.as_ref());
        let answer = self.ask(index, &url, stamp).map_err(|failure| match stamp {
            Some(stamp) => mention_copy(failure, stamp),
            None => failure,
        })?;
        let path = self.cache.page(index, package);
        let (stamp, keep, mut page) = match (answer, cached) {
            (Answer::Page(stamp, keep, entries), _) => (stamp, keep, page_of(entries)),
            (Answer::Unchanged(headers), Some(old)) => {
                let (mut stamp, keep) = stamp_of(&url, &headers);
                let known = old.stamp.clone().unwrap_or_default();
                stamp.etag = stamp.etag.or(known.etag);
                stamp.last_modified = stamp.last_modified.or(known.last_modified);
                (stamp, keep, old)
            }
            (Answer::Unchanged(_), None) => {
                return Err(failure::bad_answer(index, &url, "it says that nothing changed, but was not asked that"));
            }
            (Answer::NoSuchPackage, _) => {
                self.cache.remove(&path);
                return Ok(page_of(Vec::new()));
            }
        };
        if keep {
            let body = page.body().part(0..page.body().length());
            let body = body.map_err(|error| failure::cache_unreadable(&index.name, package, &error))?;
            self.cache.write(&path, stamp.clone(), &page.directory(), &body);
        }
        page.stamp = Some(stamp);
        Ok(page)
    }

    /// The copy of a page in the cache, however old.
    pub(super) fn cached_page(&self, index: &IndexSource, package: &PackageName) -> Option<Page> {
        let about = shown(&page_url(index, package));
        let (stamp, directory, body) = self.cache.open::<Directory>(&self.cache.page(index, package), &about)?;
        Page::of(&index.name, package, Some(stamp), directory, body)
    }

    fn ask(&self, index: &IndexSource, url: &Url, copy: Option<&Stamp>) -> Result<Answer, Failure> {
        let mut request = Request::get(index, url).header(ACCEPT, page::ACCEPT);
        if let Some(etag) = copy.and_then(|copy| copy.etag.as_deref()) {
            request = request.header(IF_NONE_MATCH, etag);
        }
        if let Some(time) = copy.and_then(|copy| copy.last_modified.as_deref()) {
            request = request.header(IF_MODIFIED_SINCE, time);
        }
        self.transport.send(&request, |response| {
            let status = response.status();
            match status.as_u16() {
                200 => self.read_page(&request, response),
                304 => Ok(Answer::Unchanged(response.headers().clone())),
                404 | 410 => Ok(Answer::NoSuchPackage),
                // A bucket that may not be listed says 403 of what it does not have.
                403 if self.transport.login(index, url).is_none() && self.is_public(index)? => {
                    Ok(Answer::NoSuchPackage)
                }
                _ => Err(unexpected(&self.transport, &request, status).into()),
            }
        })
    }

    fn read_page(&self, request: &Request, response: Response) -> Result<Answer, Trouble> {
        let base = response.url().clone();
        let headers = response.headers().clone();
        let body = self.transport.body(request, response, PAGE_LIMIT)?;
        let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let entries = page::read(content_type, &body, &base)
            .map_err(|fact| failure::bad_answer(request.index, request.url, &fact))?;
        let entries = self.pass_over_strange(request.index, request.url, entries);
        let (stamp, keep) = stamp_of(request.url, &headers);
        Ok(Answer::Page(stamp, keep, entries))
    }

    /// Whether anyone may read the root of the index.
    fn is_public(&self, index: &IndexSource) -> Result<bool, Failure> {
        let public = self.public.get(Arc::clone(&index.name), || {
            let mut root = index.url.clone();
            if !root.path().ends_with('/') {
                root.set_path(&format!("{}/", index.url.path()));
            }
            let request = Request { head_only: true, ..Request::get(index, &root) };
            self.transport.send(&request, |response| Ok(response.status().is_success()))
        })?;
        Ok(*public)
    }
}

/// The page of a package: below the root, with a slash at its end.
fn page_url(index: &IndexSource, package: &PackageName) -> Url {
    let mut url = index.url.clone();
    url.set_path(&format!("{}/{package}/", index.url.path().trim_end_matches('/')));
    url
}

/// Validators and life time of an answer, and whether it may be kept.
fn stamp_of(url: &Url, headers: &HeaderMap) -> (Stamp, bool) {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let mut stamp = Stamp::new(shown(url));
    stamp.etag = text(ETAG);
    stamp.last_modified = text(LAST_MODIFIED);
    let mut keep = true;
    for directive in text(CACHE_CONTROL).unwrap_or_default().split(',') {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "no-store" => keep = false,
            "no-cache" => stamp.max_age = Some(0),
            "max-age" if stamp.max_age.is_none() => stamp.max_age = value.trim().trim_matches('"').parse().ok(),
            _ => {}
        }
    }
    let age: u64 = text(AGE).and_then(|age| age.trim().parse().ok()).unwrap_or_default();
    stamp.max_age = stamp.max_age.map(|limit| limit.saturating_sub(age).min(LONGEST));
    (stamp, keep)
}

/// The page of a package in a folder: `index.html`, or nothing.
fn local_page(index: &IndexSource, url: &Url) -> Result<Vec<Entry>, Failure> {
    let Some(path) = local_path(url).map(|folder| folder.join("index.html")) else {
        return Err(failure::bad_answer(index, url, "it is not the path of a folder"));
    };
    match file::read(&path, PAGE_LIMIT) {
        Ok(body) => {
            let base = url.join("index.html").unwrap_or_else(|_| url.clone());
            page::read(Some("text/html"), &body, &base).map_err(|fact| failure::bad_answer(index, url, &fact))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failure::local(index, &path.display().to_string(), &error)),
    }
}

/// An index that cannot be read now was read before: say so.
fn mention_copy(mut failure: Failure, copy: &Stamp) -> Failure {
    let minutes = copy.time().elapsed().unwrap_or_default().as_secs() / 60;
    let age = match minutes {
        0..120 => format!("{minutes} minutes"),
        120..2880 => format!("{} hours", minutes / 60),
        _ => format!("{} days", minutes / 1440),
    };
    for diagnostic in &mut failure.diagnostics {
        let fact = format!("holds a copy that is {age} old, which `--offline` uses");
        diagnostic.evidence.push(Evidence::observed("cache", fact));
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_stand_below_the_root() {
        for root in ["https://h/simple", "https://h/simple/", "https://h/simple?x=1"] {
            let index = IndexSource::new("i", root, &|_| None, &super::super::Netrc::default()).unwrap();
            let url = page_url(&index, &"Typing_Extensions".parse().unwrap());
            assert_eq!(shown(&url), "https://h/simple/typing-extensions/");
        }
    }

    #[test]
    fn life_time_of_an_answer() {
        let url: Url = "https://h/".parse().unwrap();
        let limit = |value: &'static str, age: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(CACHE_CONTROL, value.parse().unwrap());
            headers.insert(AGE, age.parse().unwrap());
            let (stamp, keep) = stamp_of(&url, &headers);
            (stamp.max_age, keep)
        };
        assert_eq!(limit("max-age=600, public", "100"), (Some(500), true));
        assert_eq!(limit("No-Cache, max-age=600", "0"), (Some(0), true));
        assert_eq!(limit("max-age=31536000, immutable", "5"), (Some(LONGEST), true));
        assert_eq!(limit("private, no-store", "0"), (None, false));
        assert_eq!(limit("max-age=soon", "x"), (None, true));
    }
}
