//! Names of images: takes one as people write it, gives its registry, its repository, and its tag or digest.
//!
//! The grammar is that of Docker: <https://pkg.go.dev/github.com/distribution/reference>.

use crate::diag::{Diagnostic, Evidence, Failure};
use crate::dockerfile::image_parts;

/// The registry of names that say none.
pub(super) const DOCKER_HUB: &str = "docker.io";
/// Registry and repository together, in bytes.
const LONGEST: usize = 255;
const LONGEST_TAG: usize = 128;
/// Digests that registries use, and their hex digits.
const ALGORITHMS: [(&str, usize); 2] = [("sha256", 64), ("sha512", 128)];

/// An image's name, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) registry: String,
    pub(super) repository: String,
    /// A tag, or a digest.
    pub(super) tag: String,
}

impl Name {
    /// `python:3.11`, `nvidia/cuda:12.8.1-base-ubuntu22.04`, `ghcr.io/astral-sh/uv:0.13.0`, `a/b@sha256:...`.
    ///
    /// # Errors
    /// `image-name`: text that is no such name.
    pub(super) fn of(image: &str) -> Result<Self, Failure> {
        if let Some(why) = fault(image) {
            let message = format!("{image:?} is not the name of an image: {why}");
            let problem = Diagnostic::error("image-name", message, Evidence::observed("name of the image", why));
            let fix = "write [REGISTRY/]REPOSITORY[:TAG], such as ghcr.io/a/b:1.0";
            return Err(Failure::unanswerable(problem.fix(fix)));
        }
        let (path, tag, digest) = image_parts(image);
        let (host, rest) = host(path);
        let repository = if path.contains('/') { rest.to_owned() } else { format!("library/{path}") };
        let tag = digest.or(tag).unwrap_or("latest").to_owned();
        Ok(Self { registry: host.unwrap_or(DOCKER_HUB).to_owned(), repository, tag })
    }

    /// The registry of a name that may be none.
    pub(super) fn registry(image: &str) -> &str {
        host(image_parts(image).0).0.unwrap_or(DOCKER_HUB)
    }
}

/// The registry that a path says, and the rest of it.
fn host(path: &str) -> (Option<&str>, &str) {
    match path.split_once('/') {
        Some((host, repository)) if is_host(host) => (Some(host), repository),
        _ => (None, path),
    }
}

/// Whether the first part of a path is a registry, and not a part of the repository.
fn is_host(part: &str) -> bool {
    part.contains(['.', ':']) || part == "localhost" || part.contains(|c: char| c.is_ascii_uppercase())
}

/// Why text is not the name of an image.
pub fn fault(image: &str) -> Option<&'static str> {
    let (path, tag, digest) = image_parts(image);
    let (host, repository) = host(path);
    if path.len() > LONGEST {
        return Some("it is longer than 255 characters");
    }
    if host.is_some_and(|host| !is_authority(host)) {
        return Some("its registry is not a host with a port or without");
    }
    if !repository.split('/').all(is_component) {
        return Some("a repository has lower-case letters and digits, with `.`, `_`, `__` or `-` between them");
    }
    if tag.is_some_and(|tag| !is_tag(tag)) {
        return Some("a tag has up to 128 letters, digits, `_`, `.` and `-`, and begins with none of the last two");
    }
    if digest.is_some_and(|digest| !is_digest(digest)) {
        return Some("a digest is `sha256:` and 64 hex digits");
    }
    None
}

/// A digest as registries write it.
pub(super) fn is_digest(text: &str) -> bool {
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    text.split_once(':')
        .is_some_and(|(algorithm, digits)| ALGORITHMS.contains(&(algorithm, digits.len())) && digits.bytes().all(hex))
}

/// Host, or address in brackets, and port.
fn is_authority(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) => {
                let address = address.parse::<std::net::Ipv6Addr>().is_ok();
                return address && port.strip_prefix(':').map_or(port.is_empty(), is_port);
            }
            None => return false,
        },
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let label = |label: &str| {
        let end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        end(label.chars().next())
            && end(label.chars().next_back())
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    host.split('.').all(label) && port.is_none_or(is_port)
}

fn is_port(text: &str) -> bool {
    text.parse::<u16>().is_ok() && text.bytes().all(|b| b.is_ascii_digit())
}

/// `cuda`, `my-app`, `a__b`.
fn is_component(text: &str) -> bool {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let mut rest = text;
    loop {
        let after = rest.trim_start_matches(word);
        if after.len() == rest.len() {
            return false;
        }
        let next = after.find(word).unwrap_or(after.len());
        let between = &after[..next];
        match between {
            "" => return true,
            "." | "_" | "__" => {}
            _ if between.bytes().all(|b| b == b'-') => {}
            _ => return false,
        }
        rest = &after[next..];
    }
}

fn is_tag(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.len() <= LONGEST_TAG && text.starts_with(word) && text.chars().all(|c| word(c) || c == '.' || c == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        let name = |text| {
            let Name { registry, repository, tag } = Name::of(text).unwrap();
            format!("{registry} {repository} {tag}")
        };
        let digest = format!("sha256:{}", "0".repeat(64));
        assert_eq!(name("python:3.11-slim"), "docker.io library/python 3.11-slim");
        assert_eq!(name("nvidia/cuda:12.8.1"), "docker.io nvidia/cuda 12.8.1");
        assert_eq!(name("ghcr.io/astral-sh/uv:0.13.0"), "ghcr.io astral-sh/uv 0.13.0");
        assert_eq!(name("127.0.0.1:5000/a/b"), "127.0.0.1:5000 a/b latest");
        assert_eq!(name("[::1]:5000/a/b"), "[::1]:5000 a/b latest");
        assert_eq!(name("localhost/a:1"), "localhost a 1");
        assert_eq!(name("Host/a__b/c---d"), "Host a__b/c---d latest");
        assert_eq!(name(&format!("ghcr.io/a/b:1@{digest}")), format!("ghcr.io a/b {digest}"));
    }

    #[test]
    fn what_is_no_name() {
        for text in [
            "",
            "-x",
            "--help",
            "a b",
            "a/",
            "/a",
            "a//b",
            "a:",
            "a:-1",
            "a:.1",
            "a@",
            "a@sha256:00",
            "a@md5:00",
            "A",
            "a/B",
            "a_",
            "_a",
            "a___b",
            "a..b",
            "a.-b",
            "../a",
            "r.io/../a",
            "-r.io/a",
            "r..io/a",
            "r.io:/a",
            "r.io:x/a",
            "r.io:99999/a",
            "r.io:+80/a",
            "[::x]/a",
            "[::1/a",
            "r.io/a?b",
            "r.io/a#b",
            "r.io/a%2f",
            "u@r.io/a",
            "http://r.io/a",
            "r.io/ä",
            "$(x)",
            "a:1\n",
            "a:1:2",
        ] {
            let failure = Name::of(text).map(|_| ()).unwrap_err();
            assert_eq!(failure.diagnostics[0].code, "image-name", "{text}");
        }
        assert!(
            fault(&format!("a:{}", "b".repeat(128))).is_none() && fault(&format!("a:{}", "b".repeat(129))).is_some()
        );
        assert!(fault(&"a".repeat(255)).is_none() && fault(&"a".repeat(256)).is_some());
    }
}
