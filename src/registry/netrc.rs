//! `~/.netrc`: takes its text, gives the login of a host. The format is that of ftp(1), with `#` comments and quoted
//! values as curl reads them.

use super::credentials::Credentials;

/// The logins of a netrc file.
#[derive(Debug, Clone, Default)]
pub struct Netrc {
    machines: Vec<(String, Credentials)>,
    default: Option<Credentials>,
}

impl Netrc {
    /// Reads `text`. What cannot be understood is passed over: the file belongs to other programs too.
    pub fn parse(text: &str) -> Self {
        let mut netrc = Self::default();
        let mut words = Words { rest: text };
        let mut entry: Option<Entry> = None;
        while let Some(word) = words.next() {
            match word.as_str() {
                "machine" => {
                    netrc.add(entry.take());
                    entry = words.next().map(|host| Entry { host: Some(host.to_lowercase()), ..Entry::default() });
                }
                "default" => {
                    netrc.add(entry.take());
                    entry = Some(Entry::default());
                }
                "login" | "user" => {
                    let value = words.next();
                    if let Some(entry) = &mut entry {
                        entry.login = value;
                    }
                }
                "password" => {
                    let value = words.next();
                    if let Some(entry) = &mut entry {
                        entry.password = value;
                    }
                }
                "account" => {
                    words.next();
                }
                "macdef" => words.skip_macro(),
                _ => {}
            }
        }
        netrc.add(entry);
        netrc
    }

    /// The login of `host` by name.
    pub fn machine(&self, host: &str) -> Option<&Credentials> {
        self.machines.iter().find(|(name, _)| name.eq_ignore_ascii_case(host)).map(|(_, credentials)| credentials)
    }

    /// The login of `host` by name, else the `default` entry.
    pub fn machine_or_default(&self, host: &str) -> Option<&Credentials> {
        self.machine(host).or(self.default.as_ref())
    }

    fn add(&mut self, entry: Option<Entry>) {
        let Some(Entry { host, login, password }) = entry else { return };
        if login.is_none() && password.is_none() {
            return;
        }
        let credentials = Credentials::new(login.unwrap_or_default(), password.unwrap_or_default());
        match host {
            Some(host) => self.machines.push((host, credentials)),
            None => self.default = Some(credentials),
        }
    }
}

#[derive(Default)]
struct Entry {
    host: Option<String>,
    login: Option<String>,
    password: Option<String>,
}

/// Words between white space; `"..."` may hold white space, `\` takes the next character as it is inside quotes.
struct Words<'a> {
    rest: &'a str,
}

impl Words<'_> {
    fn next(&mut self) -> Option<String> {
        loop {
            self.rest = self.rest.trim_start();
            if !self.rest.starts_with('#') {
                break;
            }
            self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
        }
        if let Some(quoted) = self.rest.strip_prefix('"') {
            return Some(self.quoted(quoted));
        }
        let end = self.rest.find(char::is_whitespace).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then(|| word.into())
    }

    fn quoted<'b>(&mut self, text: &'b str) -> String
    where
        Self: 'b,
    {
        let mut value = String::new();
        let mut characters = text.char_indices();
        let mut end = text.len();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    end = at + 1;
                    break;
                }
                '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
                other => value.push(other),
            }
        }
        self.rest = &self.rest[1 + end.min(self.rest.len() - 1)..];
        value
    }

    /// A macro ends at the first empty line.
    fn skip_macro(&mut self) {
        self.rest = self.rest.split_once("\n\n").map_or("", |(_, rest)| rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(netrc: &Netrc, host: &str) -> Option<(String, String)> {
        netrc.machine(host).map(|c| (c.username().to_owned(), c.password().to_owned()))
    }

    #[test]
    fn logins_by_host() {
        let netrc = Netrc::parse(
            "# mine\nmachine a.example login me password s3cret\n\
             machine B.example\n  login you # not a login: #\n  account x\n  password \"two words \\\" #\"\n\
             macdef init\nmachine evil login no password no\n\nmachine c.example login only\n\
             default login anonymous password a@b",
        );
        assert_eq!(login(&netrc, "A.example"), Some(("me".into(), "s3cret".into())));
        assert_eq!(login(&netrc, "b.example"), Some(("you".into(), "two words \" #".into())));
        assert_eq!(login(&netrc, "c.example"), Some(("only".into(), String::new())));
        assert_eq!(login(&netrc, "evil"), None);
        assert_eq!(netrc.machine_or_default("other").map(Credentials::username), Some("anonymous"));
    }

    #[test]
    fn broken_text_gives_nothing() {
        for text in ["", "machine", "machine x", "login x", "machine x login", "\"", "machine x password \"ab", "#"] {
            assert!(login(&Netrc::parse(text), "nowhere").is_none(), "{text}");
        }
    }
}
