//! Addresses of indexes: takes one as people write it, gives it in the one form that other tools read alike.
//!
//! pip expands `${NAME}` in requirements files, shells and build files have their own characters: what is left of those after
//! the URL standard is percent-encoded, which means the same to a server.

use std::fmt::Write;

use url::Url;

/// Besides letters and digits, what may stand in a path as it is. `%` is the beginning of what is encoded.
const PATH: &str = "/-._~%:@+,=!*";

/// The address of an index: `http` or `https`, its host in lower case, without query and fragment. Logins stay.
///
/// # Errors
/// Why it is none, in words that show no login.
pub fn index_address(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
        return Err("it has blanks, control characters or `\\` in it".into());
    }
    let mut url: Url = text.parse().map_err(|error: url::ParseError| error.to_string())?;
    match url.scheme() {
        "http" | "https" => {}
        "file" => return Err("a folder is no index that another machine can ask; name it with --mirror".into()),
        _ => return Err("it does not begin with https:// or http://".into()),
    }
    let host = url.host_str().unwrap_or_default();
    if host.is_empty() || !host.chars().all(|c| c.is_ascii_alphanumeric() || "-._:[]".contains(c)) {
        return Err("its host is not the name of one".into());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("it has no `?` and no `#`: a token behind one would stand in the lock".into());
    }
    let mut path = String::new();
    for c in url.path().chars() {
        // What is not ASCII is encoded already.
        if c.is_ascii_alphanumeric() || PATH.contains(c) {
            path.push(c);
        } else {
            let _ = write!(path, "%{:02X}", u32::from(c));
        }
    }
    url.set_path(&path);
    let bare = path == "/" && !text.ends_with('/');
    Ok(if bare { url.as_str().trim_end_matches('/').to_owned() } else { url.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_form() {
        for (text, form) in [
            ("https://h.example/simple", "https://h.example/simple"),
            ("https://h.example/simple/", "https://h.example/simple/"),
            ("https://h.example", "https://h.example"),
            ("HTTPS://H.Example:443/a/../b", "https://h.example/b"),
            ("http://127.0.0.1:8080/simple", "http://127.0.0.1:8080/simple"),
            ("http://[::1]:8080/simple", "http://[::1]:8080/simple"),
            ("https://me:p%40w@h.example/x", "https://me:p%40w@h.example/x"),
            ("https://h.example/${HOME}/x", "https://h.example/%24%7BHOME%7D/x"),
            ("https://h.example/a\"b'c`d$(e);f|g&h", "https://h.example/a%22b%27c%60d%24%28e%29%3Bf%7Cg%26h"),
            ("https://h.example/a%20b", "https://h.example/a%20b"),
            ("https://h.example/\u{e9}", "https://h.example/%C3%A9"),
        ] {
            let once = index_address(text).unwrap();
            assert_eq!(once, form);
            assert_eq!(index_address(&once).as_deref(), Ok(form), "not one form");
        }
    }

    #[test]
    fn what_is_none() {
        for text in [
            "",
            "x",
            "x.invalid",
            "-r/etc/passwd",
            "file:///srv/simple",
            "ftp://h/x",
            "git+https://h/x",
            "https://",
            "https:///x?",
            "https://h/a b",
            "https://h/a\nb",
            "https://h/a\tb",
            "https://h\\x",
            "https://h/x?token=1",
            "https://h/x#y",
            "https://$HOME/x",
            "https://h'x/",
            "https://h;x/",
            "javascript:x",
            "//h/x",
            "/srv/x",
            "https://h:99999/x",
        ] {
            assert!(index_address(text).is_err(), "{text}");
        }
        assert!(!index_address("ftp://me:secret@h").unwrap_err().contains("secret"));
    }
}
