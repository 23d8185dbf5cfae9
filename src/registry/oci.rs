//! Images in registries: takes the name of an image and a platform, gives the digest of what its tag stands for now.
//!
//! Specification: OCI distribution 1.1 (manifests by tag), the token authentication of the same registries
//! (distribution.github.io/distribution/spec/auth/token), and the logins of `~/.docker/config.json`.

use std::collections::BTreeMap;
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::StatusCode;
use reqwest::blocking::Response;
use reqwest::header::{AUTHORIZATION, HeaderName};
use serde::Deserialize;
use url::{Url, form_urlencoded};

use super::blob::{Given, Lack};
use super::credentials::{Credentials, Environment};
use super::docker::{DockerConfig, Login};
use super::failure;
use super::manifest::{self, Manifest};
use super::name::{DOCKER_HUB, Name, is_digest};
use super::netrc::Netrc;
use super::options::{IndexSource, Options};
use super::transport::{Request, Transport, Trouble};
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::digest::{fits, sha256};
use crate::python::Platform;

pub(super) const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");
/// The specification asks registries to take manifests of at least 4 MiB; more are none.
pub(super) const LARGEST: u64 = 4 << 20;
/// The answer to who asks for a token, in bytes.
const LARGEST_TOKEN: u64 = 1 << 20;
/// All that is asked for one manifest takes at most this many times the time limit for a part of an answer: tokens,
/// redirects and further tries together.
const PATIENCE: u32 = 3;
/// The host that serves the registry of names that say none.
const DOCKER_HUB_HOST: &str = "registry-1.docker.io";

/// Registries of images, as flags and environment set them.
pub struct Registries {
    pub(super) transport: Transport,
    pub(super) logins: DockerConfig,
    mirrors: BTreeMap<String, Url>,
}

/// What a tag stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// `sha256:` and hex: of the index, where there is one.
    pub digest: String,
    /// There is no index: the image is of one platform, and the registry does not say which.
    pub single: bool,
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl Registries {
    /// Registries with the time limits and certificate authorities of `options`, the logins of the Docker configuration
    /// (`DOCKER_CONFIG`, else `~/.docker`), and `mirrors` by the registry that they stand for.
    ///
    /// # Errors
    /// A Docker configuration that cannot be read, a mirror without a usable address.
    pub fn new(options: Options, env: Environment, mirrors: &[(String, String)]) -> Result<Self, Failure> {
        let mut urls = BTreeMap::new();
        for (registry, url) in mirrors {
            let usable =
                url.parse::<Url>().ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
            let Some(url) = usable else {
                let seen = Evidence::observed("--registry-mirror", format!("{registry}=.."));
                let message = format!("the mirror of the registry {registry} has no usable address");
                return Err(Failure::unanswerable(
                    Diagnostic::error("usage", message, seen)
                        .fix("write REGISTRY=URL, such as docker.io=https://mirror.example"),
                ));
            };
            urls.insert(registry.clone(), url);
        }
        // netrc is for package indexes; a registry's login is Docker's.
        let offline = options.mode == super::Mode::CacheOnly;
        let transport =
            Transport::new(options.timing, offline, Netrc::default(), options.authorities, options.progress);
        Ok(Self { transport, logins: DockerConfig::load(env)?, mirrors: urls })
    }

    /// The registry that an image is in.
    pub fn registry<'i>(&self, image: &'i str) -> &'i str {
        Name::registry(image)
    }

    /// The digest of an image for a platform.
    ///
    /// # Errors
    /// `image-name`: that is no name of an image; `image-registry`: no answer, or none that can be used;
    /// `image-missing-tag`: no such tag; `image-unauthorized`; `image-digest-mismatch`: the content is not what the registry
    /// promises; `image-platform`: not for this platform.
    pub fn digest(&self, image: &str, platform: Platform) -> Result<Found, Failure> {
        let remote = self.named(image)?;
        let ask = remote.question();
        let Given { media, promised, body } = remote.given(&ask, &ask.name.tag)?.map_err(|lack| match lack {
            Lack::Missing => {
                let what = format!("there is no tag `{}`", ask.name.tag);
                let fix = "it was deleted, or never was; choose another `os` or `flavor` in [image]";
                ask.failure("image-missing-tag", &what, "HTTP status 404".into(), fix)
            }
            Lack::Login(login) => ask.refused(&format!("HTTP status 401; {}", sent(&login))),
        })?;
        ask.check(&ask.name.tag, promised.as_deref(), &body)?;
        let digest = sha256(&body);
        let platforms = match manifest::read(&body) {
            Ok(Manifest::Index(platforms)) => platforms,
            Ok(Manifest::Image) => return Ok(Found { digest, single: true }),
            Err(why) => {
                let media = if media.is_empty() { "no type" } else { &media };
                let fact = format!("{} bytes of {media}: {why}", body.len());
                return Err(ask.failure("image-registry", "the answer is no manifest", fact, CHECK));
            }
        };
        let architecture = platform.architecture();
        if !platforms.contains(&format!("linux/{architecture}")) {
            let what = format!("it is not for linux/{architecture}");
            return Err(ask.failure(
                "image-platform",
                &what,
                format!("platforms: {}", platforms.join(", ")),
                "choose another `os` or `flavor` in [image]",
            ));
        }
        Ok(Found { digest, single: false })
    }

    /// Where a registry is, and the host that its login is for: a mirror gets its own, and not that of the registry. One on
    /// this machine is asked without TLS, as Docker does.
    pub(super) fn source(&self, registry: &str) -> Result<(IndexSource, String), Failure> {
        let (url, host) = match self.mirrors.get(registry) {
            Some(mirror) => (mirror.as_str().trim_end_matches('/').to_owned(), authority(mirror)),
            None => {
                let host = if registry == DOCKER_HUB { DOCKER_HUB_HOST } else { registry };
                let scheme = if is_loopback(host) { "http" } else { "https" };
                (format!("{scheme}://{host}"), registry.to_owned())
            }
        };
        Ok((IndexSource::new(registry, &url, &|_| None, &Netrc::default())?, host))
    }
}

/// Host, and port where it is not the usual one, as logins are named.
fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn is_loopback(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    name == "localhost" || name.starts_with("127.") || name == "[::1]"
}

const CHECK: &str = "check the name of the registry and the network, or name a mirror: --registry-mirror REGISTRY=URL";

/// One image that is asked for.
pub(super) struct Question<'a> {
    pub(super) registries: &'a Registries,
    pub(super) image: &'a str,
    pub(super) name: &'a Name,
    pub(super) source: IndexSource,
    /// The host that a login is for.
    pub(super) host: String,
    /// When it was asked.
    pub(super) begun: Instant,
}

impl Question<'_> {
    /// The value of Authorization that a challenge asks for.
    pub(super) fn answer(&self, challenge: &str, login: &Login) -> Result<String, Failure> {
        let (scheme, rest) = challenge.trim().split_once(' ').unwrap_or((challenge, ""));
        if scheme.eq_ignore_ascii_case("basic") {
            let refused = || self.refused(&format!("it asks for a login (Basic); {}", sent(login)));
            let credentials = login.credentials.as_ref().filter(|own| own.identity_token().is_none());
            return credentials.map(basic).ok_or_else(refused);
        }
        let parameters = parameters(rest);
        let realm = parameters.get("realm").and_then(|realm| realm.parse::<Url>().ok());
        let usable = |url: &Url| matches!(url.scheme(), "https" | "http") && url.has_host();
        let Some(mut realm) = realm.filter(|url| scheme.eq_ignore_ascii_case("bearer") && usable(url)) else {
            return Err(self.refused("it asks for a login in a way that is not known here"));
        };
        // Docker sends the login wherever it is told to. Here it goes over TLS, as the registry's own tokens come; without
        // only to the host of a registry that is asked without itself.
        let own = realm.host() == self.source.url.host() && self.source.url.scheme() == "http";
        if realm.scheme() == "http" && !own {
            let to = authority(&realm);
            return Err(self.refused(&format!("it wants tokens to be asked for without TLS, at http://{to}")));
        }
        let scope = format!("repository:{}:pull", self.name.repository);
        let service = parameters.get("service").map(|service| ("service", service.as_str()));
        let scope = parameters.get("scope").map_or(scope.as_str(), String::as_str);
        let asked = service.into_iter().chain([("scope", scope)]);
        let credentials = login.credentials.as_ref();
        let request = match credentials.and_then(Credentials::identity_token) {
            // As OAuth has it (distribution.github.io/distribution/spec/auth/oauth).
            Some(token) => {
                let with = [("grant_type", "refresh_token"), ("client_id", "gpulock"), ("refresh_token", token)];
                let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(asked.chain(with)).finish();
                Request { form: Some(form), ..self.request(&realm) }
            }
            None => {
                realm.query_pairs_mut().extend_pairs(asked);
                let request = self.request(&realm);
                match credentials {
                    Some(credentials) => request.header(AUTHORIZATION, basic(credentials)),
                    None => request,
                }
            }
        };
        let transport = &self.registries.transport;
        let body = transport.send(&request, |response: Response| -> Result<_, Trouble> {
            match response.status() {
                StatusCode::OK => transport.body(&request, response, LARGEST_TOKEN).map(Ok),
                status => Ok(Err(status)),
            }
        });
        let body = body.map_err(|failure| self.unreachable(&failure))?;
        let body = body.map_err(|status| self.refused(&format!("no token: HTTP status {status}; {}", sent(login))))?;
        let token = serde_json::from_slice::<Token>(&body).ok().and_then(|token| token.token.or(token.access_token));
        let token = token.filter(|token| !token.is_empty() && token.bytes().all(|b| b.is_ascii_graphic()));
        token.map(|token| format!("Bearer {token}")).ok_or_else(|| self.refused("the answer holds no token"))
    }

    /// A request that is a step towards the answer: with the others it has one end.
    pub(super) fn request<'r>(&'r self, url: &'r Url) -> Request<'r> {
        Request::get(&self.source, url).until(self.begun, PATIENCE)
    }

    fn failure(&self, code: &'static str, what: &str, fact: String, fix: &str) -> Failure {
        let registry = &self.name.registry;
        let message = format!("image {} of the registry {registry}: {what}", self.image);
        let place = match self.host == *registry {
            true => format!("registry {registry}"),
            false => format!("registry {registry}, asked at its mirror {}", self.host),
        };
        Failure::unanswerable(Diagnostic::error(code, message, Evidence::observed(place, fact)).fix(fix))
    }

    /// Whether a manifest is the one that was asked for by its digest, and that the registry says it is.
    ///
    /// # Errors
    /// `image-digest-mismatch`
    pub(super) fn check(&self, asked: &str, promised: Option<&str>, body: &[u8]) -> Result<(), Failure> {
        let asked = Some(asked).filter(|asked| is_digest(asked)).map(|digest| ("it was asked for", digest));
        let promised = promised.map(|digest| ("the registry says", digest));
        let Some((who, digest)) = asked.into_iter().chain(promised).find(|(_, digest)| !fits(digest, body)) else {
            return Ok(());
        };
        Err(self.failure(
            "image-digest-mismatch",
            "the answer is not the manifest that it is said to be",
            format!("{who} {digest}, its answer has {}", sha256(body)),
            "do not use this image; try again later, and tell whoever runs the registry if it stays so",
        ))
    }

    /// There is no such tag, manifest or blob.
    pub(super) fn missing(&self, path: &str) -> Failure {
        let fact = format!("{path}: HTTP status 404");
        self.failure("image-missing-tag", "it is not there", fact, "name an image that is there")
    }

    /// An answer that is no use.
    pub(super) fn broken(&self, fact: String) -> Failure {
        self.failure("image-registry", "the registry's answer cannot be used", fact, CHECK)
    }

    /// A status that stands for no answer.
    pub(super) fn other(&self, status: StatusCode) -> Failure {
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => self.refused(&format!("HTTP status {status}")),
            _ if status.is_redirection() => {
                self.broken(format!("HTTP status {status}: it leads to where nothing can be asked over HTTP"))
            }
            _ => self.broken(format!("HTTP status {status}")),
        }
    }

    pub(super) fn refused(&self, fact: &str) -> Failure {
        let fix = format!("log in where the logins of Docker are kept: `docker login {}`", self.host);
        self.failure("image-unauthorized", "it is refused", fact.to_owned(), &fix)
    }

    /// What the transport says, which speaks of indexes, in words of an image.
    pub(super) fn unreachable(&self, failure: &Failure) -> Failure {
        let evidence = failure.diagnostics.first().and_then(|problem| problem.evidence.first());
        let fact = match evidence {
            Some(Evidence::Observed { what, fact }) => format!("{what}: {fact}"),
            _ => failure.to_string(),
        };
        let fix = failure::remedy(failure, &self.source).map(|remedy| format!("{remedy}; or {CHECK}"));
        self.failure("image-registry", "the registry cannot be asked", fact, fix.as_deref().unwrap_or(CHECK))
    }
}

/// What became of a login that was refused.
pub(super) fn sent(login: &Login) -> String {
    match (&login.credentials, &login.failure) {
        (Some(_), _) => "the login that was sent is not accepted".into(),
        (None, Some(failure)) => format!("no login was sent, since {failure}"),
        (None, None) => "no login was sent".into(),
    }
}

fn basic(login: &Credentials) -> String {
    format!("Basic {}", STANDARD.encode(format!("{}:{}", login.username(), login.password())))
}

/// `key="value"` pairs of a challenge (RFC 9110, section 11.6.1).
fn parameters(text: &str) -> BTreeMap<String, String> {
    let mut parameters = BTreeMap::new();
    let mut rest = text;
    while let Some((key, value)) = rest.split_once('=') {
        let key = key.trim_matches([' ', ',']).to_ascii_lowercase();
        let (value, left) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => value.split_once(',').unwrap_or((value, "")),
        };
        parameters.insert(key, value.to_owned());
        rest = left;
    }
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let read =
            parameters("realm=\"https://auth.example/token?a=b\", service=\"x\",scope=\"repository:a:pull,push\", n=1");
        assert_eq!(read["realm"], "https://auth.example/token?a=b");
        assert_eq!((&*read["service"], &*read["scope"], &*read["n"]), ("x", "repository:a:pull,push", "1"));
        assert!(parameters("nonsense").is_empty() && parameters("a=\"b")["a"] == "b");
    }
}
