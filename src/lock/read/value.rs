//! Single values of a lock: takes their text, gives what it stands for, or says why it cannot stand in a lock.

use crate::digest::is_sha256_hex;
use crate::dockerfile::is_variable;
use crate::manifest::{Invalid, without_credentials};
use crate::python::index_address;
use crate::registry::image_name_fault;
use crate::version::{ParseError, Pep440};

pub(super) fn invalid(message: String) -> Invalid {
    Invalid { code: "lock-broken", message, fix: None }
}

pub(super) fn parsed<T: std::str::FromStr<Err = ParseError>>(text: &str) -> Result<T, Invalid> {
    text.parse().map_err(|error: ParseError| invalid(error.to_string()))
}

pub(super) fn version(text: &str) -> Result<Pep440, Invalid> {
    text.parse().map_err(|_| invalid(format!("`{text}` is not a version (PEP 440)")))
}

/// A name that may stand in a line of another tool's file: no blank, nothing that ends the line.
pub(super) fn word(text: &str) -> Result<String, Invalid> {
    match text.chars().any(|c| c.is_whitespace() || c.is_control()) || text.is_empty() {
        true => Err(invalid("a name has blanks or control characters in it".into())),
        false => Ok(text.to_owned()),
    }
}

/// A name that people gave to a GPU.
pub(super) fn named(text: &str) -> Result<String, Invalid> {
    match text.trim().is_empty() {
        true => Err(invalid("a name is empty".into())),
        false => Ok(text.to_owned()),
    }
}

/// An address as this program writes it, without credentials.
pub(super) fn url(text: &str) -> Result<String, Invalid> {
    if without_credentials(text) != text {
        return Err(invalid("the URL of an index carries credentials, which no lock may".into()));
    }
    match index_address(text) {
        Ok(address) if address == text => Ok(address),
        Ok(_) => Err(invalid("a URL is not written as this program writes it".into())),
        Err(why) => Err(invalid(format!("`{text}` is not the address of an index: {why}"))),
    }
}

pub(super) fn sha256_hex(text: &str) -> Result<String, Invalid> {
    match is_sha256_hex(text) {
        true => Ok(text.to_owned()),
        false => Err(invalid(format!("`{text}` is not a SHA-256 in lower-case hex"))),
    }
}

pub(super) fn prefixed_sha256(text: &str) -> Result<String, Invalid> {
    match text.strip_prefix("sha256:") {
        Some(hex) => sha256_hex(hex).map(|_| text.to_owned()),
        None => Err(invalid(format!("`{text}` is not `sha256:` and a hash"))),
    }
}

/// Name of an image with its tag; its digest stands elsewhere.
pub(super) fn reference(text: &str) -> Result<String, Invalid> {
    match image_name_fault(text).or(text.contains('@').then_some("its digest has a key of its own")) {
        None => Ok(text.to_owned()),
        Some(why) => Err(invalid(format!("`{text}` is not the name of an image: {why}"))),
    }
}

/// Name of an environment variable.
pub(super) fn variable(text: &str) -> Result<String, Invalid> {
    match is_variable(text) {
        true => Ok(text.to_owned()),
        false => Err(invalid(format!("`{text}` is not the name of an environment variable"))),
    }
}

pub(super) fn one_of<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str, text: &str) -> Result<T, Invalid> {
    let names: Vec<&str> = all.iter().map(|one| name(*one)).collect();
    let found = all.iter().copied().find(|one| name(*one) == text);
    found.ok_or_else(|| invalid(format!("`{text}` is none of {}", names.join(", "))))
}
