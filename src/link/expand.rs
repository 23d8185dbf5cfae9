//! `$ORIGIN`, `$LIB` and `$PLATFORM` in names and search paths (ld.so(8), "Dynamic string tokens").

use std::path::{Path, PathBuf};

/// What the tokens stand for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tokens<'a> {
    /// Folder of the file that the text is from.
    pub origin: &'a Path,
    /// `lib64`, `lib/x86_64-linux-gnu`.
    pub lib: &'a str,
    /// `x86_64`, which ld.so knows as `haswell` or `xeon_phi` on newer processors.
    pub platform: &'a str,
}

/// `text` with its tokens replaced. A `$` that begins none stays, as ld.so has it.
pub(super) fn expand(text: &str, tokens: Tokens<'_>) -> PathBuf {
    let mut path = std::ffi::OsString::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        path.push(&rest[..at]);
        let after = &rest[at + 1..];
        let known: [(&str, &std::ffi::OsStr); 3] = [
            ("ORIGIN", tokens.origin.as_os_str()),
            ("LIB", tokens.lib.as_ref()),
            ("PLATFORM", tokens.platform.as_ref()),
        ];
        let token = known.iter().find_map(|(name, value)| {
            let braced = after.strip_prefix('{').and_then(|inner| inner.strip_prefix(name)?.strip_prefix('}'));
            // A longer word is another one: `$LIBRARY` is no token.
            let plain =
                after.strip_prefix(name).filter(|end| !end.starts_with(|c: char| c.is_alphanumeric() || c == '_'));
            Some((braced.or(plain)?, value))
        });
        match token {
            Some((end, value)) => {
                path.push(value);
                rest = end;
            }
            None => {
                path.push("$");
                rest = after;
            }
        }
    }
    path.push(rest);
    path.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens() {
        let tokens = Tokens { origin: Path::new("/a/b"), lib: "lib64", platform: "x86_64" };
        for (text, path) in [
            ("$ORIGIN", "/a/b"),
            ("${ORIGIN}/../c", "/a/b/../c"),
            ("/x/$LIB/$PLATFORM", "/x/lib64/x86_64"),
            ("$ORIGIN/$ORIGIN", "/a/b//a/b"),
            ("$LIBRARY/$", "$LIBRARY/$"),
            ("${LIB", "${LIB"),
            ("/plain", "/plain"),
        ] {
            assert_eq!(expand(text, tokens), Path::new(path), "{text}");
        }
    }
}
