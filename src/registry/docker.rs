//! Logins of image registries: takes Docker's `config.json`, gives the login for a registry, from the helper that it names
//! (`credHelpers`, else `credsStore`) or from the file itself.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::credentials::{Credentials, Environment};
use super::helper;
use super::name::DOCKER_HUB;
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::file;

/// What Docker's own registry is called where logins are kept.
const DOCKER_HUB_SERVER: &str = "https://index.docker.io/v1/";
/// More than any such file, in bytes.
const LARGEST: u64 = 1 << 20;

/// Docker's configuration, as far as it is about logins. Docker reads `null` as nothing, everywhere.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct DockerConfig {
    auths: Option<BTreeMap<String, Option<Entry>>>,
    #[serde(rename = "credsStore")]
    store: Option<String>,
    #[serde(rename = "credHelpers")]
    helpers: Option<BTreeMap<String, Option<String>>>,
    /// What helpers said in this run, by helper and server: each is asked once.
    #[serde(skip)]
    said: Mutex<BTreeMap<(String, String), Said>>,
}

type Said = Result<Option<Credentials>, String>;

/// What there is for a registry.
pub(super) struct Login {
    pub(super) credentials: Option<Credentials>,
    /// Why a helper gave none.
    pub(super) failure: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    /// `user:password` in base64.
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
    /// A token to get others with, as `az acr login` leaves one; beside it there is a user without a password.
    #[serde(rename = "identitytoken")]
    identity_token: Option<String>,
}

impl DockerConfig {
    /// `config.json` in `DOCKER_CONFIG`, else in `~/.docker`; empty when there is none.
    ///
    /// # Errors
    /// `docker-config`: a file that is not what it should be.
    pub(super) fn load(env: Environment) -> Result<Self, Failure> {
        let home = || env("HOME").map(|home| PathBuf::from(home).join(".docker"));
        let folder = env("DOCKER_CONFIG").filter(|folder| !folder.is_empty()).map(PathBuf::from).or_else(home);
        let Some(path) = folder.map(|folder| folder.join("config.json")) else { return Ok(Self::default()) };
        let bytes = match file::read(&path, LARGEST) {
            Ok(bytes) => bytes,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {
                return Ok(Self::default());
            }
            Err(error) => return Err(file::unread(&path, &error)),
        };
        // Docker takes an empty file for one that says nothing (docker/cli, cli/config/configfile, LoadFromReader).
        if bytes.trim_ascii().is_empty() {
            return Ok(Self::default());
        }
        let config: Option<Self> = serde_json::from_slice(&bytes).map_err(|error| {
            // What the file holds is not shown.
            let fact = format!("line {}, column {}", error.line(), error.column());
            let message = format!("{} is not Docker's configuration", path.display());
            let problem =
                Diagnostic::error("docker-config", message, Evidence::observed(path.display().to_string(), fact));
            Failure::unanswerable(problem.fix("correct it, or name another folder with DOCKER_CONFIG"))
        })?;
        Ok(config.unwrap_or_default())
    }

    /// The login for a registry. A helper is asked first, as Docker does; a registry may need no login, so one that fails
    /// is a reason to tell and no error.
    pub(super) fn login(&self, registry: &str) -> Login {
        let helper = self.helpers.iter().flatten().find(|(key, _)| is_same(key, registry));
        let helper = helper.and_then(|(_, helper)| helper.as_ref());
        let server = if registry == DOCKER_HUB { DOCKER_HUB_SERVER } else { registry };
        let answer = match helper.or(self.store.as_ref()).filter(|helper| !helper.is_empty()) {
            Some(helper) => self.ask(helper, server),
            None => Ok(None),
        };
        match (answer, self.kept(registry)) {
            (Ok(Some(login)), _) | (_, Some(login)) => Login { credentials: Some(login), failure: None },
            (Ok(None), None) => Login { credentials: None, failure: None },
            (Err(failure), None) => Login { credentials: None, failure: Some(failure) },
        }
    }

    fn ask(&self, helper: &str, server: &str) -> Said {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (helper.to_owned(), server.to_owned());
        said.entry(key).or_insert_with(|| helper::login(helper, server)).clone()
    }

    /// The login in the file.
    fn kept(&self, registry: &str) -> Option<Credentials> {
        let login = self.auths.iter().flatten().find(|(key, _)| is_same(key, registry))?.1.as_ref()?;
        if let Some(token) = login.identity_token.as_deref().filter(|token| !token.is_empty()) {
            return Some(Credentials::of_identity_token(token));
        }
        if let (Some(username), Some(password)) = (&login.username, &login.password) {
            return Some(Credentials::new(username, password));
        }
        let decoded = String::from_utf8(STANDARD.decode(login.auth.as_ref()?).ok()?).ok()?;
        let (username, password) = decoded.split_once(':')?;
        Some(Credentials::new(username, password.trim_end_matches('\0')))
    }
}

/// Whether a key of the configuration, a host or an address, stands for a registry. Docker's own has several names.
fn is_same(key: &str, registry: &str) -> bool {
    let key = key.split_once("://").map_or(key, |(_, rest)| rest);
    let host = key.split('/').next().unwrap_or_default();
    host == registry || registry == DOCKER_HUB && matches!(host, "index.docker.io" | "registry-1.docker.io")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_by_registry() {
        let text = format!(
            r#"{{"auths": {{"https://index.docker.io/v1/": {{"auth": "{}"}}, "r.example:5000": {{"username": "a", "password": "b"}},
               "bad.example": {{"auth": "%%"}}, "empty.example": {{}}, "az.example": {{"auth": "MDo=", "identitytoken": "t"}}}}, "credHelpers": {{"helped.example": "../x"}}}}"#,
            STANDARD.encode("me:p:w")
        );
        let config: DockerConfig = serde_json::from_str(&text).unwrap();
        let login =
            |registry| config.login(registry).credentials.map(|one| format!("{} {}", one.username(), one.password()));
        assert_eq!(login("docker.io").as_deref(), Some("me p:w"));
        assert_eq!(login("r.example:5000").as_deref(), Some("a b"));
        assert_eq!((login("r.example"), login("bad.example"), login("empty.example")), (None, None, None));
        assert_eq!(config.login("az.example").credentials.unwrap().identity_token(), Some("t"));
        let refused = config.login("helped.example").failure.unwrap();
        assert!(refused.contains("not the name of a credential helper"), "{refused}");
    }
}
