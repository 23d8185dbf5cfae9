//! Requests: takes an address, gives an answer, after as many tries as are worth it.
//!
//! Tried again is what may pass: no connection, time-outs, cut-off bodies, 408, 429 and most of 5xx, after a pause that
//! doubles, or that `Retry-After` (RFC 9110) asks for. Everything else is for the caller to judge. A request has an end:
//! its tries, pauses and answers together take at most [`PATIENCE`] times the time limit for a part of an answer; a whole
//! wheel, which may be large and the line slow, may take as long as bytes keep coming.

use std::io::{Cursor, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use reqwest::StatusCode;
use reqwest::blocking::{Body, Client, Response};
use reqwest::header::{ACCEPT_ENCODING, CONTENT_TYPE, HeaderName, RANGE, RETRY_AFTER};
use url::Url;

use super::credentials::Credentials;
use super::failure;
use super::netrc::Netrc;
use super::options::{IndexSource, Timing};
use super::progress::Progress;
use super::tls;
use crate::diag::Failure;

/// The longest pause that a server may ask for; one that asks for more is not asked again.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A request as a whole may take this many times [`Timing::read`].
const PATIENCE: u32 = 10;
/// A download that is slower than this for that time, in bytes a second, is given up on.
const SLOWEST: u64 = 4 << 10;

/// What went over the network so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Traffic {
    /// Requests, further tries included.
    pub requests: u64,
    /// Bytes of answers' bodies that were read, unpacked.
    pub bytes: u64,
}

pub(super) struct Transport {
    client: OnceLock<Result<(Client, Vec<String>), String>>,
    timing: Timing,
    offline: bool,
    netrc: Netrc,
    authorities: Vec<PathBuf>,
    progress: Arc<dyn Progress>,
    /// Host that asked for a pause, and until when: told once, however many requests wait.
    told: Mutex<Option<(String, Instant)>>,
    requests: AtomicU64,
    bytes: AtomicU64,
}

/// One question to a server.
pub(super) struct Request<'a> {
    pub(super) index: &'a IndexSource,
    pub(super) url: &'a Url,
    pub(super) headers: Vec<(HeaderName, String)>,
    /// Only the head of the answer is wanted.
    pub(super) head_only: bool,
    /// A form that is sent (POST), and to nowhere else than its address.
    pub(super) form: Option<String>,
    /// When it was asked first; its end is counted from here.
    pub(super) begun: Instant,
    /// It may take this many times [`Timing::read`] as a whole.
    pub(super) patience: u32,
    /// That is the end of each try, too, its body included: it is one of several steps that have one end.
    pub(super) strict: bool,
}

impl<'a> Request<'a> {
    pub(super) fn get(index: &'a IndexSource, url: &'a Url) -> Self {
        Self {
            index,
            url,
            headers: Vec::new(),
            head_only: false,
            form: None,
            begun: Instant::now(),
            patience: PATIENCE,
            strict: false,
        }
    }

    /// The same, as a step of what began at `begun` and ends after `patience` times [`Timing::read`].
    pub(super) fn until(self, begun: Instant, patience: u32) -> Self {
        Self { begun, patience, strict: true, ..self }
    }

    pub(super) fn header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// Why a try gave nothing.
pub(super) enum Trouble {
    /// It may pass.
    Passing(Fault),
    /// It will not.
    Lasting(Failure),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Lasting(failure)
    }
}

/// What went wrong, in words.
pub(super) struct Fault {
    fact: String,
    fix: &'static str,
    pause: Option<Duration>,
}

const CHECK_NETWORK: &str = "check the network and the proxy variables (HTTPS_PROXY, NO_PROXY)";

impl Transport {
    pub(super) fn new(
        timing: Timing,
        offline: bool,
        netrc: Netrc,
        authorities: Vec<PathBuf>,
        progress: Arc<dyn Progress>,
    ) -> Self {
        Self {
            client: OnceLock::new(),
            timing,
            offline,
            netrc,
            authorities,
            progress,
            told: Mutex::default(),
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    pub(super) fn traffic(&self) -> Traffic {
        Traffic { requests: self.requests.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) }
    }

    /// The login that goes with a request: an index's own for its own origin, else only one that netrc names.
    pub(super) fn login<'a>(&'a self, index: &'a IndexSource, url: &Url) -> Option<&'a Credentials> {
        if index.url.origin() == url.origin() {
            return index.credentials.as_ref();
        }
        self.netrc.machine(url.host_str()?)
    }

    /// Sends `request` until `consume` makes something of the answer, or until it is no use.
    pub(super) fn send<T>(
        &self,
        request: &Request,
        mut consume: impl FnMut(Response) -> Result<T, Trouble>,
    ) -> Result<T, Failure> {
        if self.offline {
            return Err(failure::not_cached(&request.index.name, &failure::shown(request.url), "content"));
        }
        let mut tries = 0;
        loop {
            tries += 1;
            let fault = match self.attempt(request).and_then(&mut consume) {
                Ok(value) => return Ok(value),
                Err(Trouble::Lasting(failure)) => return Err(failure),
                Err(Trouble::Passing(fault)) => fault,
            };
            let pause = fault.pause.unwrap_or_else(|| self.backoff(tries));
            let give_up = |fact: &str| failure::unreachable(request.index, request.url, tries, fact, fault.fix);
            if tries > self.timing.retries {
                return Err(give_up(&fault.fact));
            }
            if pause > LONGEST_PAUSE {
                let fact = format!("{} and asks for a pause of {pause:?}, longer than {LONGEST_PAUSE:?}", fault.fact);
                return Err(give_up(&fact));
            }
            let patience = self.patience(request);
            if request.begun.elapsed() + pause > patience {
                return Err(give_up(&format!("{}; given up after {patience:?}", fault.fact)));
            }
            if fault.pause.is_some() {
                self.tell(request, pause, &fault.fact);
            }
            std::thread::sleep(pause);
        }
    }

    /// How long a request may take as a whole.
    fn patience(&self, request: &Request) -> Duration {
        self.timing.read * request.patience
    }

    /// How long to wait for an answer, and for each part of its body; of a strict request for all of it.
    fn limit(&self, request: &Request) -> Duration {
        if !request.strict {
            return self.timing.read;
        }
        let left = self.patience(request).saturating_sub(request.begun.elapsed());
        left.clamp(Duration::from_millis(1), self.timing.read)
    }

    /// Tells that a server asked for a pause.
    fn tell(&self, request: &Request, pause: Duration, why: &str) {
        let host = request.url.host_str().unwrap_or_default();
        let now = Instant::now();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if pause >= Duration::from_secs(1) && !told.as_ref().is_some_and(|(known, until)| known == host && now < *until)
        {
            *told = Some((host.to_owned(), now + pause));
            self.progress.waiting(host, pause, why);
        }
    }

    fn attempt(&self, request: &Request) -> Result<Response, Trouble> {
        let (client, complaints) = self.client(request)?;
        self.requests.fetch_add(1, Ordering::Relaxed);
        let url = request.url.clone();
        let mut builder = match &request.form {
            // Of a reader, which cannot be sent again: no redirect takes it along.
            Some(form) => client
                .post(url)
                .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
                .body(Body::sized(Cursor::new(form.clone()), form.len() as u64)),
            None if request.head_only => client.head(url),
            None => client.get(url),
        };
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
            if *name == RANGE {
                // Ranges count the bytes of the file, not of a packed form of it.
                builder = builder.header(ACCEPT_ENCODING, "identity");
            }
        }
        if let Some(login) = self.login(request.index, request.url) {
            builder = builder.basic_auth(login.username(), Some(login.password()));
        }
        if request.strict {
            builder = builder.timeout(self.limit(request));
        }
        let response = builder.send().map_err(|error| self.trouble(request, error, complaints))?;
        let status = response.status();
        let passing = matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504);
        if !passing {
            return Ok(response);
        }
        let pause = retry_after(&response, SystemTime::now());
        let fact = match status {
            StatusCode::TOO_MANY_REQUESTS => format!("the server wants fewer requests (HTTP status {status})"),
            _ => format!("the server has a problem (HTTP status {status})"),
        };
        Err(Trouble::Passing(Fault { fact, fix: "try again later", pause }))
    }

    fn client(&self, request: &Request) -> Result<(&Client, &[String]), Failure> {
        let made = self.client.get_or_init(|| {
            let (tls, complaints) = tls::configure(&self.authorities).map_err(|error| error.to_string())?;
            let client = Client::builder()
                .tls_backend_preconfigured(tls)
                .user_agent(concat!("gpulock/", env!("CARGO_PKG_VERSION")))
                .connect_timeout(self.timing.connect)
                .timeout(self.timing.read)
                .build()
                .map_err(|error| root_cause(&error))?;
            Ok((client, complaints))
        });
        match made {
            Ok((client, complaints)) => Ok((client, complaints)),
            Err(fact) => {
                let fix = "check the proxy variables (HTTPS_PROXY, ALL_PROXY) and SSL_CERT_FILE";
                Err(failure::unreachable(request.index, request.url, 1, fact, fix))
            }
        }
    }

    fn trouble(&self, request: &Request, error: reqwest::Error, complaints: &[String]) -> Trouble {
        let error = error.without_url();
        let cause = root_cause(&error);
        if error.is_redirect() {
            let fact = format!("it redirects without end, or to an address that cannot be followed ({cause})");
            return failure::bad_answer(request.index, request.url, &fact).into();
        }
        if error.is_builder() {
            let fact = match request.url.scheme() {
                "http" | "https" => format!("it redirects to where nothing can be asked ({cause})"),
                _ => format!("no request can be made ({cause})"),
            };
            return failure::bad_answer(request.index, request.url, &fact).into();
        }
        if let Some(tls) = chain(&error).find_map(|cause| cause.downcast_ref::<rustls::Error>()) {
            let (mut fact, fix) = match tls {
                rustls::Error::InvalidCertificate(_) => (
                    format!("its TLS certificate is not accepted ({cause})"),
                    "name the certificate authority of your network with SSL_CERT_FILE",
                ),
                _ => (
                    format!("no TLS connection can be made ({cause})"),
                    "check that the address begins rightly with https",
                ),
            };
            for complaint in complaints {
                fact = format!("{fact}; {complaint}");
            }
            return failure::unreachable(request.index, request.url, 1, &fact, fix).into();
        }
        let host = request.url.host_str().unwrap_or_default();
        let fact = if error.is_timeout() {
            let limit = if error.is_connect() { self.timing.connect } else { self.timing.read };
            let fix = "raise GPULOCK_HTTP_TIMEOUT (seconds)";
            return Trouble::Passing(Fault { fact: format!("no answer within {limit:?}"), fix, pause: None });
        } else if chain(&error).any(|cause| cause.to_string().contains("dns error")) {
            format!("the host name {host} is not known ({cause})")
        } else if error.is_connect() {
            format!("no connection to {host} ({cause})")
        } else {
            format!("the connection broke ({cause})")
        };
        Trouble::Passing(Fault { fact, fix: CHECK_NETWORK, pause: None })
    }

    /// How long the first `done` bytes of a download may be waited for: as long as a request, and longer while they come.
    pub(super) fn download_patience(&self, done: u64) -> Duration {
        self.timing.read * PATIENCE + Duration::from_secs(done / SLOWEST)
    }

    /// Reads a body of at most `limit` bytes. A server that hands it over too slowly is given up on as well.
    pub(super) fn body(&self, request: &Request, mut response: Response, limit: u64) -> Result<Vec<u8>, Trouble> {
        let mut body = Vec::new();
        let mut part = vec![0; 64 << 10];
        loop {
            let count = match response.read(&mut part) {
                Ok(0) => return Ok(body),
                Ok(count) => count,
                Err(error) => return Err(self.cut_off(body.len() as u64, &error)),
            };
            self.bytes.fetch_add(count as u64, Ordering::Relaxed);
            body.extend_from_slice(&part[..count]);
            if body.len() as u64 > limit {
                let fact = format!("it is larger than {limit} bytes");
                return Err(failure::bad_answer(request.index, request.url, &fact).into());
            }
            if request.begun.elapsed() > self.patience(request) {
                return Err(self.too_slow(request, body.len() as u64, self.patience(request)));
            }
        }
    }

    /// Hands the parts of a body to `take`, for as long as they keep coming.
    pub(super) fn stream(
        &self,
        request: &Request,
        mut response: Response,
        mut take: impl FnMut(&[u8]) -> Result<(), Failure>,
    ) -> Result<(), Trouble> {
        let begun = Instant::now();
        let mut part = vec![0; 256 << 10];
        let mut done = 0;
        loop {
            match response.read(&mut part) {
                Ok(0) => return Ok(()),
                Ok(count) => {
                    self.bytes.fetch_add(count as u64, Ordering::Relaxed);
                    done += count as u64;
                    take(&part[..count])?;
                    let patience = self.patience(request) + Duration::from_secs(done / SLOWEST);
                    if begun.elapsed() > patience {
                        return Err(self.too_slow(request, done, patience));
                    }
                }
                Err(error) => return Err(self.cut_off(done, &error)),
            }
        }
    }

    /// A server that is slow now is slow the next time.
    fn too_slow(&self, request: &Request, bytes: u64, within: Duration) -> Trouble {
        let fact = format!("only {bytes} bytes came within {within:?}");
        failure::unreachable(request.index, request.url, 1, &fact, "raise GPULOCK_HTTP_TIMEOUT (seconds)").into()
    }

    fn cut_off(&self, after: u64, error: &std::io::Error) -> Trouble {
        let timeout = error.get_ref().and_then(|inner| inner.downcast_ref()).is_some_and(reqwest::Error::is_timeout);
        let (fact, fix) = if timeout {
            let fact = format!("the answer stopped after {after} bytes, and nothing came for {:?}", self.timing.read);
            (fact, "raise GPULOCK_HTTP_TIMEOUT (seconds)")
        } else {
            (format!("the answer was cut off after {after} bytes ({})", root_cause(error)), CHECK_NETWORK)
        };
        Trouble::Passing(Fault { fact, fix, pause: None })
    }

    /// Doubles with each try, give or take a quarter, so that several clients do not come back at the same moment.
    fn backoff(&self, tries: u32) -> Duration {
        use std::hash::{BuildHasher, RandomState};
        let jitter = (RandomState::new().hash_one(tries) % 512) as f64 / 1024.0;
        self.timing.backoff.mul_f64(2f64.powi(tries.min(16) as i32 - 1) * (0.75 + jitter)).min(LONGEST_PAUSE)
    }
}

/// What a status that nothing else covers means.
pub(super) fn unexpected(transport: &Transport, request: &Request, status: StatusCode) -> Failure {
    match status.as_u16() {
        code @ (401 | 403) => {
            let logged_in = transport.login(request.index, request.url).is_some();
            failure::unauthorized(request.index, request.url, code, logged_in)
        }
        _ => failure::bad_answer(request.index, request.url, &format!("HTTP status {status}")),
    }
}

fn retry_after(response: &Response, now: SystemTime) -> Option<Duration> {
    let text = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim();
    let pause = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(pause)
}

type Cause<'a> = &'a (dyn std::error::Error + 'static);

fn chain<'a>(error: Cause<'a>) -> impl Iterator<Item = Cause<'a>> {
    std::iter::successors(Some(error), |error| {
        // An I/O error hides what it wraps from `source`.
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        wrapped.map(|wrapped| wrapped as Cause).or_else(|| error.source())
    })
}

fn root_cause(error: Cause) -> String {
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}
