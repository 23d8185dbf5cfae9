//! Who is asking: takes an index's name and URL, the environment and netrc, gives the login to send to that index.

use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;

use percent_encoding::percent_decode_str;
use url::Url;

use super::netrc::Netrc;
use crate::diag::Failure;
use crate::file;

/// More than any netrc, in bytes.
const LARGEST_NETRC: u64 = 1 << 20;

/// Looks up an environment variable.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The name of whom the secret is no password, but a token to get others with, as Docker's helpers have it.
const IDENTITY_TOKEN: &str = "<token>";

/// A login. Its `Debug` shows neither half.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    username: String,
    password: String,
}

impl Credentials {
    /// A login.
    pub fn new(username: impl Into<String>, password: impl Into<String>) -> Self {
        Self { username: username.into(), password: password.into() }
    }

    /// A token of a registry to get others with.
    pub(super) fn of_identity_token(token: &str) -> Self {
        Self::new(IDENTITY_TOKEN, token)
    }

    /// The token to get others with, where it is that.
    pub(super) fn identity_token(&self) -> Option<&str> {
        (self.username == IDENTITY_TOKEN).then_some(&*self.password)
    }

    /// The user.
    pub fn username(&self) -> &str {
        &self.username
    }

    /// The password; empty if there is none.
    pub fn password(&self) -> &str {
        &self.password
    }

    /// Takes the login out of `url`.
    pub(super) fn take_from(url: &mut Url) -> Option<Self> {
        let decode = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let username = decode(url.username());
        let password = decode(url.password().unwrap_or_default());
        if username.is_empty() && password.is_empty() {
            return None;
        }
        // Only a URL without a host refuses, and such a URL has no login either.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        Some(Self { username, password })
    }

    /// The login that the environment gives for an index: `GPULOCK_INDEX_<NAME>_USERNAME` and `_PASSWORD`.
    pub(super) fn from_environment(index: &str, env: Environment) -> Option<Self> {
        let [username, password] = variables(index);
        let (username, password) = (env(&username), env(&password));
        (username.is_some() || password.is_some())
            .then(|| Self::new(username.unwrap_or_default(), password.unwrap_or_default()))
    }
}

/// The names of the two variables that hold an index's login.
pub(super) fn variables(index: &str) -> [String; 2] {
    let name: String =
        index.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    ["USERNAME", "PASSWORD"].map(|half| format!("GPULOCK_INDEX_{name}_{half}"))
}

impl Netrc {
    /// The file that `NETRC` names, else `~/.netrc`; empty when there is none, or it may not be read.
    ///
    /// # Errors
    /// `cannot-read` for what is no regular file, or too large for a netrc.
    pub fn load(env: Environment) -> Result<Self, Failure> {
        let home = || env("HOME").map(|home| format!("{home}/.netrc"));
        let path = env("NETRC").filter(|path| !path.is_empty()).or_else(home);
        // The usual way to say that there is none.
        let Some(path) = path.filter(|path| path != "/dev/null").map(PathBuf::from) else { return Ok(Self::default()) };
        match file::read(&path, LARGEST_NETRC) {
            Ok(bytes) => Ok(Self::parse(&String::from_utf8_lossy(&bytes))),
            Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::FileTooLarge) => {
                Err(file::unread(&path, &error))
            }
            Err(_) => Ok(Self::default()),
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_loses_its_login() {
        let mut url: Url = "https://me%40corp:p%3Aw@pkg.example/simple".parse().unwrap();
        let login = Credentials::take_from(&mut url).unwrap();
        assert_eq!((login.username(), login.password()), ("me@corp", "p:w"));
        assert_eq!(url.as_str(), "https://pkg.example/simple");
        assert_eq!(format!("{login:?}"), "Credentials(..)");
        assert!(Credentials::take_from(&mut url).is_none());
    }

    #[test]
    fn variables_carry_the_index_name() {
        assert_eq!(variables("torch-cu126")[0], "GPULOCK_INDEX_TORCH_CU126_USERNAME");
        let env = |name: &str| (name == "GPULOCK_INDEX_A_B_PASSWORD").then(|| "token".to_owned());
        let login = Credentials::from_environment("a.b", &env).unwrap();
        assert_eq!((login.username(), login.password()), ("", "token"));
        assert!(Credentials::from_environment("other", &env).is_none());
    }
}
