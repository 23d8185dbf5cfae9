//! Logins of image registries: takes Docker's `config.json`, gives the login for a registry.
//!
//! Helpers (`credsStore`, `credHelpers`) are programs, and none is run.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::credentials::{Credentials, Environment};
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::file;

/// More than any such file, in bytes.
const LARGEST: u64 = 1 << 20;

/// Docker's configuration, as far as it is about logins.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct DockerConfig {
    auths: BTreeMap<String, Login>,
    #[serde(rename = "credsStore")]
    store: Option<String>,
    #[serde(rename = "credHelpers")]
    helpers: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Login {
    /// `user:password` in base64.
    auth: Option<String>,
    username: Option<String>,
    password: Option<String>,
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
        serde_json::from_slice(&bytes).map_err(|error| {
            // What the file holds is not shown.
            let fact = format!("line {}, column {}", error.line(), error.column());
            let message = format!("{} is not Docker's configuration", path.display());
            let problem =
                Diagnostic::error("docker-config", message, Evidence::observed(path.display().to_string(), fact));
            Failure::unanswerable(problem.fix("correct it, or name another folder with DOCKER_CONFIG"))
        })
    }

    /// The login for a registry.
    pub(super) fn login(&self, registry: &str) -> Option<Credentials> {
        let host = |key: &str| {
            let key = key.split_once("://").map_or(key, |(_, rest)| rest);
            key.split('/').next().unwrap_or_default().to_owned()
        };
        // Docker's own registry has several names.
        let same = |key: &str| {
            let host = host(key);
            host == registry || registry == "docker.io" && matches!(&*host, "index.docker.io" | "registry-1.docker.io")
        };
        let login = self.auths.iter().find(|(key, _)| same(key)).map(|(_, login)| login)?;
        if let (Some(username), Some(password)) = (&login.username, &login.password) {
            return Some(Credentials::new(username, password));
        }
        let decoded = String::from_utf8(STANDARD.decode(login.auth.as_ref()?).ok()?).ok()?;
        let (username, password) = decoded.split_once(':')?;
        Some(Credentials::new(username, password.trim_end_matches('\0')))
    }

    /// Whether logins are kept where only a helper reads them.
    pub(super) fn has_helpers(&self) -> bool {
        self.store.is_some() || !self.helpers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_by_registry() {
        let text = format!(
            r#"{{"auths": {{"https://index.docker.io/v1/": {{"auth": "{}"}}, "r.example:5000": {{"username": "a", "password": "b"}},
               "bad.example": {{"auth": "%%"}}, "empty.example": {{}}}}, "credsStore": "desktop"}}"#,
            STANDARD.encode("me:p:w")
        );
        let config: DockerConfig = serde_json::from_str(&text).unwrap();
        let login = |registry| config.login(registry).map(|one| format!("{} {}", one.username(), one.password()));
        assert_eq!(login("docker.io").as_deref(), Some("me p:w"));
        assert_eq!(login("r.example:5000").as_deref(), Some("a b"));
        assert_eq!((login("r.example"), login("bad.example"), login("empty.example")), (None, None, None));
        assert!(config.has_helpers());
    }
}
