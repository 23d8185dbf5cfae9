//! An image in a registry: takes its name, gives its manifest and its blobs as they come (OCI distribution 1.1).
//!
//! A blob whose connection breaks goes on where it broke off. Whether what came is what was asked for is checked by who
//! reads it, by the digest.

use std::io::{self, Read};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use reqwest::StatusCode;
use reqwest::blocking::Response;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_RANGE, CONTENT_TYPE, HeaderName, RANGE, WWW_AUTHENTICATE,
};

use super::docker::Login;
use super::manifest::ACCEPTED;
use super::name::Name;
use super::oci::{CONTENT_DIGEST, LARGEST, Question, Registries};
use super::options::IndexSource;
use super::transport::{Request, Trouble};
use crate::diag::Failure;

/// A blob that breaks off so often with less than [`PROGRESS`] between is given up.
const TRIES: u32 = 5;
/// Bytes for which it is worth to be asked once more.
const PROGRESS: u64 = 64 << 10;
/// Before it is asked for again, each time twice as long.
const PAUSE: Duration = Duration::from_millis(200);

/// An image whose manifest was read.
pub struct RemoteImage<'r> {
    registries: &'r Registries,
    image: String,
    name: Name,
    source: IndexSource,
    /// The host that a login is for.
    host: String,
    /// What the registry wants to see, once it has said so.
    authorization: Mutex<Option<String>>,
    top: Vec<u8>,
}

/// A manifest as it came.
pub(super) struct Given {
    pub(super) media: String,
    /// The digest that the registry says it has.
    pub(super) promised: Option<String>,
    pub(super) body: Vec<u8>,
}

/// Why something does not come.
pub(super) enum Lack {
    Missing,
    /// What the registry asks for was sent, with this login, and it asks again.
    Login(Login),
}

impl Registries {
    /// The image of that name: `nvidia/cuda:12.8.1-base-ubuntu22.04`, `ghcr.io/a/b@sha256:...`.
    ///
    /// # Errors
    /// `image-registry`, `image-missing-tag`, `image-unauthorized`: as [`digest`](Self::digest).
    pub fn image(&self, image: &str) -> Result<RemoteImage<'_>, Failure> {
        let mut remote = self.named(image)?;
        remote.top = remote.manifest(&remote.name.tag)?;
        Ok(remote)
    }

    /// The image of that name, before anything was read of it.
    pub(super) fn named(&self, image: &str) -> Result<RemoteImage<'_>, Failure> {
        let name = Name::of(image)?;
        let (source, host) = self.source(&name.registry)?;
        let (image, authorization) = (image.to_owned(), Mutex::new(None));
        Ok(RemoteImage { registries: self, image, name, source, host, authorization, top: Vec::new() })
    }
}

impl RemoteImage<'_> {
    /// Its index, or its manifest where it is for one platform.
    pub fn top(&self) -> &[u8] {
        &self.top
    }

    /// The digest that it is named by.
    pub fn digest(&self) -> Option<&str> {
        let (_, digest) = self.image.split_once('@')?;
        Some(digest)
    }

    /// The manifest with a digest, or of a tag.
    ///
    /// # Errors
    /// As [`Registries::image`].
    pub fn manifest(&self, reference: &str) -> Result<Vec<u8>, Failure> {
        let question = self.question();
        let given = self.given(&question, reference)?;
        let given = given.map_err(|lack| lack.failure(&question, &format!("manifests/{reference}")))?;
        question.check(reference, given.promised.as_deref(), &given.body)?;
        Ok(given.body)
    }

    pub(super) fn given(&self, question: &Question<'_>, reference: &str) -> Result<Result<Given, Lack>, Failure> {
        let headers = [(ACCEPT, ACCEPTED.to_owned())];
        self.get(question, &format!("manifests/{reference}"), &headers, true, |request, response| {
            let text = |name: HeaderName| {
                response.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            };
            let (media, promised) = (text(CONTENT_TYPE).unwrap_or_default(), text(CONTENT_DIGEST));
            Ok(Given { media, promised, body: self.registries.transport.body(request, response, LARGEST)? })
        })
    }

    /// The bytes of a blob, of `size` bytes where the manifest says it.
    ///
    /// # Errors
    /// As [`Registries::image`].
    pub fn blob(&self, digest: &str, size: Option<u64>) -> Result<impl Read + Send + '_, Failure> {
        let mut blob = BlobReader {
            image: self,
            digest: digest.to_owned(),
            at: 0,
            skip: 0,
            size,
            response: None,
            whole: false,
            failed: 0,
            broke_at: 0,
            waited: Duration::ZERO,
        };
        blob.open()?;
        Ok(blob)
    }

    pub(super) fn question(&self) -> Question<'_> {
        let (source, host) = (self.source.clone(), self.host.clone());
        let (image, name) = (&self.image, &self.name);
        Question { registries: self.registries, image, name, source, host, begun: Instant::now() }
    }

    /// Sends a request with the login that the registry asks for. What is small has one end with all its steps.
    fn get<T>(
        &self,
        question: &Question<'_>,
        path: &str,
        headers: &[(HeaderName, String)],
        small: bool,
        mut consume: impl FnMut(&Request<'_>, Response) -> Result<T, Trouble>,
    ) -> Result<Result<T, Lack>, Failure> {
        let mut url = self.source.url.clone();
        url.set_path(&format!("{}/v2/{}/{path}", url.path().trim_end_matches('/'), self.name.repository));
        let mut asked = None;
        loop {
            let authorization = self.authorization.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let mut request = if small { question.request(&url) } else { Request::get(&self.source, &url) };
            for (name, value) in headers {
                request = request.header(name.clone(), value.clone());
            }
            if let Some(authorization) = authorization {
                request = request.header(AUTHORIZATION, authorization);
            }
            let answer = self.registries.transport.send(&request, |response| match response.status() {
                StatusCode::OK => consume(&request, response).map(Ok),
                StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE if !small => {
                    consume(&request, response).map(Ok)
                }
                status => {
                    let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
                    Ok(Err((status, challenge.unwrap_or_default().to_owned())))
                }
            });
            let (status, challenge) = match answer.map_err(|failure| question.unreachable(&failure))? {
                Ok(value) => return Ok(Ok(value)),
                Err(other) => other,
            };
            match status {
                // Tokens end, too.
                StatusCode::UNAUTHORIZED => {
                    if let Some(login) = asked {
                        return Ok(Err(Lack::Login(login)));
                    }
                    let login = self.registries.logins.login(&self.host);
                    let answer = question.answer(&challenge, &login)?;
                    *self.authorization.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
                    asked = Some(login);
                }
                StatusCode::NOT_FOUND => return Ok(Err(Lack::Missing)),
                status => return Err(question.other(status)),
            }
        }
    }
}

impl Lack {
    fn failure(self, question: &Question<'_>, path: &str) -> Failure {
        match self {
            Self::Missing => question.missing(path),
            Self::Login(_) => question.refused("HTTP status 401, though what it asks for was sent"),
        }
    }
}

struct BlobReader<'r> {
    image: &'r RemoteImage<'r>,
    digest: String,
    at: u64,
    /// So many bytes that come now were read before.
    skip: u64,
    size: Option<u64>,
    response: Option<Response>,
    /// The server does not give a part: each time all of it is asked for.
    whole: bool,
    /// How often it broke off without much between, and where it did last.
    failed: u32,
    broke_at: u64,
    /// How long it was waited for.
    waited: Duration,
}

impl BlobReader<'_> {
    /// Asks for the rest of the blob; for all of it where the server does not give the rest.
    fn open(&mut self) -> Result<(), Failure> {
        loop {
            let asked = self.at > 0 && !self.whole;
            // A blob is named by its bytes as they are stored: some servers call a packed layer a packed form of a plain
            // one, which a client that takes packed answers unpacks (github.com/moby/moby/issues/27642).
            let header = match asked {
                true => (RANGE, format!("bytes={}-", self.at)),
                false => (ACCEPT_ENCODING, "identity".to_owned()),
            };
            let question = self.image.question();
            let path = format!("blobs/{}", self.digest);
            let response = self.image.get(&question, &path, &[header], false, |_, response| Ok(response))?;
            let response = response.map_err(|lack| lack.failure(&question, &path))?;
            self.skip = match response.status() {
                StatusCode::OK => self.at,
                StatusCode::PARTIAL_CONTENT if asked && begin(&response).is_none_or(|begin| begin == self.at) => 0,
                _ if asked => {
                    self.whole = true;
                    continue;
                }
                status => return Err(question.other(status)),
            };
            self.response = Some(response);
            return Ok(());
        }
    }
}

/// Where a part of a blob begins, as its answer says: `bytes 5-9/10`.
fn begin(response: &Response) -> Option<u64> {
    let range = response.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
}

impl Read for BlobReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let begun = Instant::now();
        let patience = self.image.registries.transport.download_patience(self.at).saturating_sub(self.waited);
        let read = self.read_until(into, begun + patience);
        self.waited += begun.elapsed();
        read
    }
}

impl BlobReader<'_> {
    fn read_until(&mut self, into: &mut [u8], end: Instant) -> io::Result<usize> {
        loop {
            let Some(response) = &mut self.response else {
                self.open().map_err(io::Error::other)?;
                continue;
            };
            let most = if self.skip > 0 { self.skip.min(into.len() as u64) as usize } else { into.len() };
            let why = match response.read(&mut into[..most]) {
                Ok(0) if self.size.is_none_or(|size| self.at >= size) && self.skip == 0 || most == 0 => return Ok(0),
                Ok(0) => "the connection ended early".to_owned(),
                Ok(_) if Instant::now() >= end => "it comes too slowly".to_owned(),
                Ok(count) if self.skip > 0 => {
                    self.skip -= count as u64;
                    continue;
                }
                Ok(count) => {
                    self.at += count as u64;
                    return Ok(count);
                }
                // All of it is there, however the connection ends.
                Err(_) if self.size.is_some_and(|size| self.at >= size) => return Ok(0),
                Err(error) => error.to_string(),
            };
            self.response = None;
            self.failed = if self.at >= self.broke_at + PROGRESS { 1 } else { self.failed + 1 };
            self.broke_at = self.at;
            if self.failed > TRIES || Instant::now() >= end {
                let (digest, at, failed) = (&self.digest, self.at, self.failed);
                let fact =
                    format!("blob {digest} broke off after {at} bytes, at try {failed} without much more ({why})");
                return Err(io::Error::other(self.image.question().broken(fact)));
            }
            std::thread::sleep(PAUSE * 2u32.pow(self.failed - 1));
        }
    }
}
