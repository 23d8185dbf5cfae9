//! Logins and tokens in text that will be shown: takes any text, gives it with stars in their place.

/// `text` with the logins of addresses (`https://user:password@host`, `user:password@host`) and their queries and fragments,
/// which may hold a token, as stars: one for each character, so that columns stay.
pub fn hide(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(&without_scheme(before));
        let address = after.find(ends_address).unwrap_or(after.len());
        let authority = after[..address].find(['/', '?', '#']).unwrap_or(address);
        let login = after[..authority].rfind('@').unwrap_or(0);
        let query = after[authority..address].find(['?', '#']).map_or(address, |at| authority + at + 1);
        let hash = after[authority..address].find("#sha256=").map_or(address, |at| authority + at);
        stars(&mut out, &after[..login]);
        out.push_str(&after[login..query.min(hash)]);
        stars(&mut out, &after[query.min(hash)..hash]);
        out.push_str(&after[hash..address]);
        rest = &after[address..];
    }
    out + &without_scheme(rest)
}

/// The value of an environment variable as it may be shown: hidden whole where the name says that it is a secret
/// (`NVIDIA_API_KEY`, `TORCH_HUB_TOKEN`), as [`hide`] where it is an address.
pub fn hide_value(name: &str, value: &str) -> String {
    const SECRETS: [&str; 8] = ["AUTH", "CREDENTIAL", "KEY", "PASSPHRASE", "PASSWD", "PASSWORD", "SECRET", "TOKEN"];
    let name = name.to_uppercase();
    if SECRETS.iter().any(|secret| name.contains(secret)) {
        // How long it is says something too.
        return if value.is_empty() { String::new() } else { "***".to_owned() };
    }
    hide(value)
}

/// The same for addresses that are written without their scheme. The digest of an image follows an `@` too.
fn without_scheme(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('@') {
        let (before, after) = rest.split_at(at);
        let begins = before.rfind(|c: char| ends_address(c) || c == '/').map_or(0, |i| i + char_at(before, i));
        let login = &before[begins..];
        out.push_str(&before[..begins]);
        match login.contains(':') && !after.starts_with("@sha256:") {
            true => stars(&mut out, login),
            false => out.push_str(login),
        }
        out.push('@');
        rest = &after[1..];
    }
    out + rest
}

fn ends_address(c: char) -> bool {
    c.is_whitespace() || "'\"`<>".contains(c)
}

fn char_at(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(0, char::len_utf8)
}

fn stars(out: &mut String, secret: &str) {
    out.extend(secret.chars().map(|_| '*'));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_and_queries_become_stars() {
        for (text, shown) in [
            ("a = 'https://me:secret@x.invalid/y@z' # http://q", "a = 'https://*********@x.invalid/y@z' # http://q"),
            ("x=https://h/simple?token=ab#f and more", "x=https://h/simple?********** and more"),
            ("https://h/x.whl?t=ab#sha256=00", "https://h/x.whl?****#sha256=00"),
            ("https://h/x.whl#sha256=00", "https://h/x.whl#sha256=00"),
            ("https://h/#secret https://", "https://h/#****** https://"),
            ("https://h?a@b", "https://h?***"),
            ("`me:secret@host/simple`", "`*********@host/simple`"),
            ("x @ https://u:p@h/x.whl ; y", "x @ https://***@h/x.whl ; y"),
            ("http://u@a http://é:p@b", "http://*@a http://***@b"),
        ] {
            assert_eq!(hide(text), shown);
        }
    }

    #[test]
    fn other_text_stays() {
        for text in [
            "nvidia/cuda:12.8.1-runtime-ubuntu22.04@sha256:00",
            "git@github.com:a/b",
            "file:///a@b/c",
            "x @ file:///c",
            "é@é",
            "",
        ] {
            assert_eq!(hide(text), text);
        }
    }
}
