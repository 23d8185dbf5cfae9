//! Package names, compared in their normal form (PEP 503): `Typing_Extensions` is `typing-extensions`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::version::ParseError;

/// A normalised package name; cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackageName(Arc<str>);

impl PackageName {
    /// The normal form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PackageName {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let trimmed = text.trim();
        let separator = |b: u8| matches!(b, b'-' | b'_' | b'.');
        let bytes = trimmed.as_bytes();
        let edges = [bytes.first(), bytes.last()];
        let good = edges.iter().all(|b| b.is_some_and(u8::is_ascii_alphanumeric))
            && bytes.iter().all(|&b| b.is_ascii_alphanumeric() || separator(b));
        if !good {
            return Err(ParseError { given: text.into(), expected: "a Python package name" });
        }
        let mut name = String::with_capacity(trimmed.len());
        for &byte in bytes {
            if !separator(byte) {
                name.push(byte.to_ascii_lowercase() as char);
            } else if !name.ends_with('-') {
                name.push('-');
            }
        }
        Ok(Self(name.into()))
    }
}

impl fmt::Display for PackageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for PackageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl serde::Serialize for PackageName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> serde::Deserialize<'de> for PackageName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::version::parsed(deserializer)
    }
}
