//! An image in a registry: takes its name, gives its manifest and its blobs as they come (OCI distribution 1.1).
//!
//! A blob whose connection breaks goes on where it broke off. Whether what came is what was asked for is checked by who
//! reads it, by the digest.

use std::io::{self, Read};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use reqwest::StatusCode;
use reqwest::blocking::Response;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderName, RANGE, WWW_AUTHENTICATE};

use super::manifest::ACCEPTED;
use super::name::Name;
use super::oci::{LARGEST, Question, Registries, sha256};
use super::options::IndexSource;
use super::transport::{Request, Trouble};
use crate::diag::Failure;

/// A blob that breaks off so often without a byte between is given up.
const TRIES: u32 = 5;
/// Before it is asked for again, each time twice as long.
const PAUSE: Duration = Duration::from_millis(200);

/// An image whose manifest was read.
pub struct RemoteImage<'r> {
    registries: &'r Registries,
    image: String,
    source: IndexSource,
    /// The host that a login is for.
    host: String,
    /// What the registry wants to see, once it has said so.
    authorization: Mutex<Option<String>>,
    top: Vec<u8>,
}

impl Registries {
    /// The image of that name: `nvidia/cuda:12.8.1-base-ubuntu22.04`, `ghcr.io/a/b@sha256:...`.
    ///
    /// # Errors
    /// `image-registry`, `image-missing-tag`, `image-unauthorized`: as [`digest`](Self::digest).
    pub fn image(&self, image: &str) -> Result<RemoteImage<'_>, Failure> {
        let (source, host) = self.source(Name::of(image)?.registry)?;
        let (image, authorization) = (image.to_owned(), Mutex::new(None));
        let mut remote = RemoteImage { registries: self, image, source, host, authorization, top: Vec::new() };
        let tag = Name::of(&remote.image)?.tag.to_owned();
        remote.top = remote.manifest(&tag)?;
        Ok(remote)
    }
}

impl RemoteImage<'_> {
    /// Its index, or its manifest where it is for one platform.
    pub fn top(&self) -> &[u8] {
        &self.top
    }

    /// The manifest with a digest, or of a tag.
    ///
    /// # Errors
    /// As [`Registries::image`].
    pub fn manifest(&self, reference: &str) -> Result<Vec<u8>, Failure> {
        let name = Name::of(&self.image)?;
        let question = self.question(&name);
        let headers = [(ACCEPT, ACCEPTED.to_owned())];
        let bytes = self.get(&question, &format!("manifests/{reference}"), &headers, true, |request, response| {
            self.registries.transport.body(request, response, LARGEST)
        })?;
        match sha256(&bytes) {
            other if reference.starts_with("sha256:") && other != reference => {
                Err(question
                    .broken(format!("the manifest {reference} is not the one that it is named by: it has {other}")))
            }
            _ => Ok(bytes),
        }
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
            size,
            response: None,
            failed: 0,
            waited: Duration::ZERO,
        };
        blob.response = Some(blob.open()?);
        Ok(blob)
    }

    fn question<'q>(&'q self, name: &'q Name<'q>) -> Question<'q> {
        let (source, host) = (self.source.clone(), self.host.clone());
        Question { registries: self.registries, image: &self.image, name, source, host, begun: Instant::now() }
    }

    /// Sends a request with the login that the registry asks for. What is small has one end with all its steps.
    fn get<T>(
        &self,
        question: &Question<'_>,
        path: &str,
        headers: &[(HeaderName, String)],
        small: bool,
        mut consume: impl FnMut(&Request<'_>, Response) -> Result<T, Trouble>,
    ) -> Result<T, Failure> {
        let mut url = self.source.url.clone();
        url.set_path(&format!("{}/v2/{}/{path}", url.path().trim_end_matches('/'), question.name.repository));
        let mut asked = false;
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
                StatusCode::OK | StatusCode::PARTIAL_CONTENT => consume(&request, response).map(Ok),
                status => {
                    let challenge = response.headers().get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
                    Ok(Err((status, challenge.unwrap_or_default().to_owned())))
                }
            });
            let (status, challenge) = match answer.map_err(|failure| question.unreachable(&failure))? {
                Ok(value) => return Ok(value),
                Err(other) => other,
            };
            match status {
                // Tokens end, too.
                StatusCode::UNAUTHORIZED if !asked => {
                    asked = true;
                    let login = self.registries.logins.login(&self.host);
                    let answer = question.answer(&challenge, &login)?;
                    *self.authorization.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
                }
                StatusCode::UNAUTHORIZED => {
                    return Err(question.refused("HTTP status 401, though what it asks for was sent"));
                }
                StatusCode::NOT_FOUND => return Err(question.missing(path)),
                status => return Err(question.other(status)),
            }
        }
    }

    fn failed(&self, fact: String) -> Failure {
        match Name::of(&self.image) {
            Ok(name) => self.question(&name).broken(fact),
            Err(failure) => failure,
        }
    }
}

struct BlobReader<'r> {
    image: &'r RemoteImage<'r>,
    digest: String,
    at: u64,
    size: Option<u64>,
    response: Option<Response>,
    /// How often it broke off since the last byte came.
    failed: u32,
    /// How long it was waited for.
    waited: Duration,
}

impl BlobReader<'_> {
    /// The rest of the blob.
    fn open(&self) -> Result<Response, Failure> {
        let range = (self.at > 0).then(|| (RANGE, format!("bytes={}-", self.at)));
        let name = Name::of(&self.image.image)?;
        let question = self.image.question(&name);
        let path = format!("blobs/{}", self.digest);
        let mut response = self.image.get(&question, &path, range.as_slice(), false, |_, response| Ok(response))?;
        if self.at > 0 && response.status() == StatusCode::OK {
            // A server without ranges begins anew.
            let skipped = io::copy(&mut response.by_ref().take(self.at), &mut io::sink());
            if !matches!(skipped, Ok(count) if count == self.at) {
                return Err(self.image.failed(format!("blob {} was cut off", self.digest)));
            }
        }
        Ok(response)
    }
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
            let why = match &mut self.response {
                None => match self.open() {
                    Ok(response) => {
                        self.response = Some(response);
                        continue;
                    }
                    Err(failure) => return Err(io::Error::other(failure)),
                },
                Some(response) => match response.read(into) {
                    Ok(0) if self.size.is_none_or(|size| self.at >= size) || into.is_empty() => return Ok(0),
                    Ok(0) => "the connection ended early".to_owned(),
                    Ok(count) if Instant::now() < end => {
                        self.at += count as u64;
                        self.failed = 0;
                        return Ok(count);
                    }
                    Ok(_) => "it comes too slowly".to_owned(),
                    Err(error) => error.to_string(),
                },
            };
            self.response = None;
            self.failed += 1;
            if self.failed > TRIES || Instant::now() >= end {
                let (digest, at, failed) = (&self.digest, self.at, self.failed);
                let fact =
                    format!("blob {digest} broke off after {at} bytes, at try {failed} without any more ({why})");
                return Err(io::Error::other(self.image.failed(fact)));
            }
            std::thread::sleep(PAUSE * 2u32.pow(self.failed - 1));
        }
    }
}
