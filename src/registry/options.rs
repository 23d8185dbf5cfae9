//! What a client is made from: indexes, cache folder, time limits, each from the environment where nothing else is said.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use url::Url;

use super::credentials::{Credentials, Environment};
use super::netrc::Netrc;
use super::progress::{Progress, Silent};
use crate::diag::{Diagnostic, Evidence, Failure};

/// An index to ask.
#[derive(Debug, Clone)]
pub struct IndexSource {
    /// Name that wheels, locks and messages carry.
    pub name: Arc<str>,
    /// Its root, without login: the page of a package is below it.
    pub url: Url,
    /// Sent to that URL's host, scheme and port only.
    pub credentials: Option<Credentials>,
}

impl IndexSource {
    /// An index with its login: from the URL, else from `GPULOCK_INDEX_<NAME>_USERNAME` and `_PASSWORD`, else from
    /// netrc.
    ///
    /// # Errors
    /// `index-url-invalid` when `url` is not an `http`, `https` or `file` URL.
    pub fn new(name: &str, url: &str, env: Environment, netrc: &Netrc) -> Result<Self, Failure> {
        let invalid = |why: &str| {
            // The text may hold a password, so it is not shown.
            let what = format!("the URL of index `{name}`");
            Failure::unanswerable(
                Diagnostic::error(
                    "index-url-invalid",
                    format!("the URL of index `{name}` cannot be used: {why}"),
                    Evidence::observed(what, why),
                )
                .fix("give the address of a simple index, such as https://host/simple"),
            )
        };
        let mut url: Url = url.trim().parse().map_err(|error: url::ParseError| invalid(&error.to_string()))?;
        match url.scheme() {
            "http" | "https" if url.has_host() => {}
            "file" => {}
            other => return Err(invalid(&format!("its scheme is `{other}`, not http, https or file"))),
        }
        url.set_fragment(None);
        let credentials = Credentials::take_from(&mut url)
            .or_else(|| Credentials::from_environment(name, env))
            .or_else(|| url.host_str().and_then(|host| netrc.machine_or_default(host)).cloned());
        Ok(Self { name: name.into(), url, credentials })
    }

    /// False for a folder on this machine. Such an index needs no cache: what is in it may change at any time, and costs
    /// nothing to read again.
    pub(super) fn is_remote(&self) -> bool {
        self.url.scheme() != "file"
    }
}

/// Whether the network may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// It may.
    #[default]
    Online,
    /// It may not: only what the cache holds is offered, however old.
    CacheOnly,
}

/// How long to wait, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// For a connection.
    pub connect: Duration,
    /// For the head of an answer, and for each part of its body.
    pub read: Duration,
    /// Further tries after the first, for what may pass: no connection, a cut-off answer, 429 and 5xx.
    pub retries: u32,
    /// Pause before the second try; doubles with each further one.
    pub backoff: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            read: Duration::from_secs(30),
            retries: 3,
            backoff: Duration::from_millis(400),
        }
    }
}

/// What a client is made from.
pub struct Options {
    /// The indexes, by name.
    pub indexes: Vec<IndexSource>,
    /// Where to keep what was fetched.
    pub cache_dir: PathBuf,
    /// Whether the network may be used.
    pub mode: Mode,
    /// Ask for every page again, also when its copy in the cache is fresh.
    pub revalidate: bool,
    /// Time limits.
    pub timing: Timing,
    /// Requests at the same time.
    pub concurrency: usize,
    /// Logins for hosts other than the indexes'.
    pub netrc: Netrc,
    /// Files of further certificate authorities.
    pub authorities: Vec<PathBuf>,
    /// Who is told of the progress.
    pub progress: Arc<dyn Progress>,
}

impl Options {
    /// Options for `indexes` (name and URL) as the environment sets them: `GPULOCK_CACHE_DIR`, `GPULOCK_HTTP_TIMEOUT`
    /// (seconds), logins and netrc, `REQUESTS_CA_BUNDLE`, `PIP_CERT` and `CURL_CA_BUNDLE`. `SSL_CERT_FILE`,
    /// `SSL_CERT_DIR` and the proxy variables are read when the first connection is made.
    ///
    /// # Errors
    /// `index-url-invalid`, `timeout-invalid` and a netrc that is no file, all of them at once.
    pub fn from_environment<'a>(
        indexes: impl IntoIterator<Item = (&'a str, &'a str)>,
        env: Environment,
    ) -> Result<Self, Failure> {
        let mut problems = Vec::new();
        let netrc = Netrc::load(env).unwrap_or_else(|failure| {
            problems.extend(failure.diagnostics);
            Netrc::default()
        });
        let mut sources = Vec::new();
        for (name, url) in indexes {
            match IndexSource::new(name, url, env, &netrc) {
                Ok(source) => sources.push(source),
                Err(failure) => problems.extend(failure.diagnostics),
            }
        }
        let timing = timing(env).unwrap_or_else(|failure| {
            problems.extend(failure.diagnostics);
            Timing::default()
        });
        if !problems.is_empty() {
            return Err(Failure::all(problems));
        }
        let bundles = ["REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE"];
        let mut authorities: Vec<PathBuf> =
            bundles.iter().filter_map(|name| env(name)).filter(|path| !path.is_empty()).map(PathBuf::from).collect();
        authorities.sort();
        authorities.dedup();
        Ok(Self {
            indexes: sources,
            cache_dir: default_cache_dir(env),
            mode: Mode::Online,
            revalidate: false,
            timing,
            concurrency: 8,
            netrc,
            authorities,
            progress: Arc::new(Silent),
        })
    }
}

/// `GPULOCK_CACHE_DIR`, else `gpulock` below the XDG cache home.
pub fn default_cache_dir(env: Environment) -> PathBuf {
    let given = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // The XDG specification wants a relative path ignored.
    let xdg = || given("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let home = || given("HOME").map(|home| home.join(".cache"));
    given("GPULOCK_CACHE_DIR").unwrap_or_else(|| xdg().or_else(home).unwrap_or_else(std::env::temp_dir).join("gpulock"))
}

fn timing(env: Environment) -> Result<Timing, Failure> {
    const VARIABLE: &str = "GPULOCK_HTTP_TIMEOUT";
    let Some(text) = env(VARIABLE).filter(|text| !text.is_empty()) else { return Ok(Timing::default()) };
    let seconds = text.trim().parse::<f64>().ok().filter(|seconds| (0.001..=86_400.0).contains(seconds));
    let Some(seconds) = seconds else {
        return Err(Failure::unanswerable(
            Diagnostic::error(
                "timeout-invalid",
                format!("{VARIABLE} is `{text}`, which is not a number of seconds"),
                Evidence::observed(format!("environment variable {VARIABLE}"), text),
            )
            .fix("give seconds, such as 60, or unset it for the default of 30"),
        ));
    };
    let limit = Duration::from_secs_f64(seconds);
    Ok(Timing { connect: limit, read: limit, ..Timing::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn login_from_url_then_environment_then_netrc() {
        let netrc = Netrc::parse("machine h.example login n password n");
        let env = |name: &str| (name == "GPULOCK_INDEX_X_USERNAME").then(|| "e".to_owned());
        let user =
            |name, url| IndexSource::new(name, url, &env, &netrc).unwrap().credentials.map(|c| c.username().to_owned());
        assert_eq!(user("x", "https://u:p@h.example/simple").as_deref(), Some("u"));
        assert_eq!(user("x", "https://h.example/simple").as_deref(), Some("e"));
        assert_eq!(user("y", "https://h.example/simple").as_deref(), Some("n"));
        assert_eq!(user("y", "https://other.example/simple"), None);
    }

    #[test]
    fn bad_settings_are_reported_together_and_without_passwords() {
        let env = |name: &str| (name == "GPULOCK_HTTP_TIMEOUT").then(|| "soon".to_owned());
        let indexes = [("a", "ftp://u:hunter2@h/"), ("b", "u:hunter2@h"), ("c", "https://")];
        let failure = Options::from_environment(indexes, &env).map(|_| ()).unwrap_err();
        let codes: Vec<_> = failure.diagnostics.iter().map(|d| d.code).collect();
        assert_eq!(codes, ["index-url-invalid", "index-url-invalid", "index-url-invalid", "timeout-invalid"]);
        assert!(!format!("{failure:?}").contains("hunter2"));
    }

    #[test]
    fn cache_folder() {
        let dir = |vars: &[(&str, &str)]| {
            let vars: Vec<(String, String)> = vars.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
            default_cache_dir(&move |name| vars.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone()))
        };
        assert_eq!(dir(&[("GPULOCK_CACHE_DIR", "/c"), ("HOME", "/h")]), PathBuf::from("/c"));
        assert_eq!(dir(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]), PathBuf::from("/x/gpulock"));
        assert_eq!(dir(&[("XDG_CACHE_HOME", "x"), ("HOME", "/h")]), PathBuf::from("/h/.cache/gpulock"));
    }
}
