//! Text becomes a [`Lock`], or every reason why it is not one: merge conflicts, a newer format, missing or dangling parts.

mod target;
mod value;

use std::collections::BTreeMap;

use self::value::{prefixed_sha256, sha256_hex, url, word};
use super::model::{FileDigest, Lock, REVISION, Seal, VERSION, Wheel};
use crate::diag::{Diagnostic, Evidence, Failure, SourceText};
use crate::manifest::Invalid;
use crate::manifest::reader::{Reader, Section, parse_toml};

/// What to do about a lock that cannot be used.
pub const ANEW: &str = "restore it from version control, or write it anew: `gpulock resolve --upgrade`";

impl Lock {
    /// Reads a lock; `name` is what messages call it.
    ///
    /// # Errors
    /// Everything that is wrong with the text: merge conflicts, a version newer than this program reads, text that is
    /// cut off or no TOML, keys that are missing or unknown, references that lead nowhere.
    pub fn parse(text: &str, name: &str) -> Result<Self, Failure> {
        let source = SourceText::new(name, text);
        if text.trim().is_empty() {
            let message = format!("{name} is empty");
            return Err(Failure::unanswerable(
                Diagnostic::error(
                    "lock-incomplete",
                    message,
                    Evidence::observed(name, format!("{} bytes", text.len())),
                )
                .fix(ANEW),
            ));
        }
        let document = parse_toml(source).map_err(explain)?;
        let root = Section::root(&document);
        let mut reader = LockReader { reader: Reader::new(source), strict: true, revision: 0 };
        reader.version(&root, name)?;
        let lock = reader.lock(&root);
        reader.reader.finish(lock).map_err(explain)
    }
}

/// Says what to do in terms of a lock, which nobody edits by hand.
fn explain(mut failure: Failure) -> Failure {
    for problem in &mut failure.diagnostics {
        problem.fix = Some(match problem.code {
            "merge-conflict" => "take either side of each conflict, then run `gpulock resolve`".into(),
            _ => ANEW.into(),
        });
    }
    failure
}

/// Reads tables of the lock; what a newer revision added is passed over.
struct LockReader<'s> {
    reader: Reader<'s>,
    /// Unknown keys are errors.
    strict: bool,
    /// The revision that the lock says.
    revision: u64,
}

impl LockReader<'_> {
    /// Refuses a lock of a newer version, and notes whether its revision is newer.
    fn version(&mut self, root: &Section<'_>, name: &str) -> Result<(), Failure> {
        let version = self.reader.number(root, "version");
        let refuse = |code, message: String, fix: &str| {
            let place = self.reader.place(&root.value_span("version"));
            Err(Failure::unanswerable(Diagnostic::error(code, message, place).fix(fix)))
        };
        match version {
            Some(VERSION) => {}
            Some(newer) if newer > VERSION => {
                let message = format!("{name} has version {newer}; this gpulock reads version {VERSION}");
                return refuse(
                    "lock-too-new",
                    message,
                    "use a newer gpulock, or remove the file and run `gpulock resolve`",
                );
            }
            Some(other) => {
                return refuse("lock-broken", format!("{name} has version {other}, which never was"), ANEW);
            }
            None => {
                let message = format!("{name} has no `version`, so it is not a lock of gpulock");
                return refuse("lock-incomplete", message, ANEW);
            }
        }
        self.revision = self.reader.number(root, "revision").unwrap_or(0);
        self.strict = self.revision <= REVISION;
        Ok(())
    }

    fn lock(&mut self, root: &Section<'_>) -> Lock {
        const KEYS: [&str; 9] =
            ["version", "revision", "inputs", "matrix", "index", "target", "wheel", "library", "content"];
        // What a revision added is no part of a lock that says an earlier one.
        let sealed = self.revision >= 2;
        self.only(root, if sealed { &KEYS } else { &KEYS[..KEYS.len() - 1] });
        let mut lock = Lock {
            inputs: self.hash(root, "inputs"),
            matrix: self.hash(root, "matrix"),
            indexes: BTreeMap::new(),
            targets: Vec::new(),
            wheels: BTreeMap::new(),
            seal: Seal::Absent,
        };
        for section in self.reader.sections(root, "index", "[[index]]") {
            self.only(&section, &["name", "url"]);
            let (name, url) = (self.required(&section, "name", word), self.required(&section, "url", url));
            lock.indexes.extend(name.zip(url));
        }
        if let Some(wheels) = self.reader.section(root, "wheel", "[wheel]".into()) {
            self.wheels(&wheels, root, &mut lock);
        }
        for section in self.reader.sections(root, "target", "[[target]]") {
            let target = self.target(&section, &lock);
            if let Some(target) = target.as_ref().filter(|target| lock.target(&target.name).is_some()) {
                let message = format!("target `{}` stands twice", target.name);
                self.broken(section.value_span("name"), message);
            }
            lock.targets.extend(target);
        }
        if !root.has("target") {
            self.reader.problem("lock-incomplete", &root.span(), "the lock has no [[target]]", ANEW);
        }
        lock.seal = match self.revision {
            0 | 1 => Seal::Absent,
            // What it added may be part of the hash.
            newer if newer > REVISION => Seal::Unknown,
            _ => match self.required(root, "content", prefixed_sha256) {
                Some(content) if content == lock.digest() => Seal::Whole,
                _ => Seal::Broken,
            },
        };
        lock
    }

    fn wheels(&mut self, wheels: &Section<'_>, root: &Section<'_>, lock: &mut Lock) {
        let libraries = self.reader.section(root, "library", "[library]".into());
        for file in wheels.keys() {
            let Some(section) = self.reader.section(wheels, file, format!("the line of `{file}`")) else { continue };
            self.only(&section, &["index", "sha256", "size", "url", "libraries"]);
            let index = self.index(&section, lock);
            let sha256 = self.required(&section, "sha256", sha256_hex);
            let size = self.reader.number(&section, "size");
            let url = self.reader.value(&section, "url", url);
            let expected = self.reader.number(&section, "libraries").unwrap_or(0);
            let found = libraries
                .as_ref()
                .filter(|libraries| libraries.has(file))
                .and_then(|libraries| self.reader.section(libraries, file, format!("[library.{file:?}]")))
                .map(|section| self.libraries(&section))
                .unwrap_or_default();
            if expected != found.len() as u64 {
                let message = format!("of `{file}`'s {expected} shared libraries the lock lists {}", found.len());
                self.reader.problem("lock-incomplete", &wheels.key_span(file), message, ANEW);
            }
            let (Some(index), Some(sha256)) = (index, sha256) else { continue };
            lock.wheels.insert(file.to_owned(), Wheel { index, sha256, size, url, libraries: found });
        }
        for file in libraries.iter().flat_map(Section::keys).filter(|file| !wheels.has(file)) {
            let span = libraries.as_ref().and_then(|libraries| libraries.key_span(file));
            self.dangling(span, format!("libraries of `{file}`, which has no line in [wheel]"));
        }
    }

    fn libraries(&mut self, section: &Section<'_>) -> BTreeMap<String, FileDigest> {
        let mut libraries = BTreeMap::new();
        for path in section.keys() {
            if path.starts_with('/') || path.split('/').any(|part| matches!(part, "" | "." | "..")) {
                self.broken(section.key_span(path), format!("`{path}` is not a path below site-packages"));
            }
            let Some(line) = self.reader.section(section, path, format!("the line of `{path}`")) else { continue };
            self.only(&line, &["sha256", "size"]);
            let sha256 = self.required(&line, "sha256", sha256_hex);
            let size = self.reader.number(&line, "size");
            if !line.has("size") {
                self.missing(&line, "size");
            }
            let digest = sha256.zip(size).map(|(sha256, size)| FileDigest { sha256, size });
            libraries.extend(digest.map(|digest| (path.to_owned(), digest)));
        }
        libraries
    }

    /// The name of an index that stands in the lock.
    fn index(&mut self, section: &Section<'_>, lock: &Lock) -> Option<String> {
        let index = self.text(section, "index")?;
        if !lock.indexes.contains_key(&index) {
            self.dangling(section.value_span("index"), format!("index `{index}`, which has no [[index]]"));
        }
        Some(index)
    }

    fn hash(&mut self, root: &Section<'_>, key: &str) -> String {
        self.required(root, key, prefixed_sha256).unwrap_or_default()
    }

    fn text(&mut self, section: &Section<'_>, key: &str) -> Option<String> {
        self.required(section, key, |text| Ok(text.to_owned()))
    }

    fn required<T>(
        &mut self,
        section: &Section<'_>,
        key: &str,
        parse: impl FnOnce(&str) -> Result<T, Invalid>,
    ) -> Option<T> {
        if !section.has(key) {
            self.missing(section, key);
        }
        self.reader.value(section, key, parse)
    }

    fn only(&mut self, section: &Section<'_>, known: &[&str]) {
        if self.strict {
            self.reader.only(section, known, |_| None);
        }
    }

    fn missing(&mut self, section: &Section<'_>, key: &str) {
        let message = format!("`{key}` is missing in {}", section.name);
        self.reader.problem("lock-incomplete", &section.span(), message, ANEW);
    }

    fn broken(&mut self, span: Option<std::ops::Range<usize>>, message: String) {
        self.reader.problem("lock-broken", &span, message, ANEW);
    }

    fn dangling(&mut self, span: Option<std::ops::Range<usize>>, what: String) {
        self.reader.problem("lock-dangling", &span, format!("the lock names {what}"), ANEW);
    }
}
