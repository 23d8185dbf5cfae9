//! Text becomes a [`Lock`], or every reason why it is not one: merge conflicts, a newer format, missing or dangling parts.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{
    Artefact, Code, DriverSupport, FileDigest, Gpu, Image, Lock, Package, REVISION, Reference, Target, Tier, VERSION,
    Wheel,
};
use crate::diag::{Diagnostic, Evidence, Failure, SourceText};
use crate::manifest::reader::{Reader, Section, parse_toml};
use crate::manifest::without_credentials;
use crate::manifest::{FLAVORS, Invalid};
use crate::python::{PackageName, Runtime, WheelName};
use crate::version::pep440::local_label;
use crate::version::{Capability, CodeKind, Constraint, Driver, GpuCode, ParseError, Pep440};

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
        self.only(root, &["version", "revision", "inputs", "matrix", "index", "target", "wheel", "library"]);
        let mut lock = Lock {
            inputs: self.hash(root, "inputs"),
            matrix: self.hash(root, "matrix"),
            indexes: BTreeMap::new(),
            targets: Vec::new(),
            wheels: BTreeMap::new(),
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

    fn target(&mut self, section: &Section<'_>, lock: &Lock) -> Option<Target> {
        const KEYS: [&str; 15] = [
            "name", "platform", "glibc", "python", "torch", "variant", "cuda", "cudnn", "nccl", "driver", "gpus",
            "inferred", "packages", "image", "env",
        ];
        // What a revision added is no part of a lock that says an earlier one.
        let known = if self.revision == 0 { &KEYS[..KEYS.len() - 2] } else { &KEYS };
        self.only(section, known);
        let name = self.required(section, "name", word);
        let platform = self.required(section, "platform", parsed);
        let glibc = self.reader.value(section, "glibc", parsed);
        let python = self.required(section, "python", parsed);
        let torch = self.required(section, "torch", version);
        let variant = self.required(section, "variant", word);
        let cuda = self.reader.value(section, "cuda", parsed);
        let cudnn = self.reader.value(section, "cudnn", parsed);
        let nccl = self.reader.value(section, "nccl", parsed);
        for key in ["driver", "gpus", "packages"].into_iter().filter(|key| !section.has(key)) {
            self.missing(section, key);
        }
        let driver = self.driver(section);
        let gpus = self.reader.sections(section, "gpus", "an entry of `gpus`");
        let gpus = gpus.iter().filter_map(|gpu| self.gpu(gpu)).collect();
        if section.is_empty_array("gpus") {
            self.reader.problem("lock-incomplete", &section.value_span("gpus"), "the target has no GPU", ANEW);
        }
        let runtime = platform.zip(python).map(|(platform, python)| Runtime { platform, python, glibc: glibc.clone() });
        let inferred = self.reader.texts(section, "inferred").unwrap_or_default();
        let inferred = inferred.into_iter().map(|text| text.value.to_owned()).collect();
        let (image, env) = match self.revision {
            0 => (None, BTreeMap::new()),
            _ => (self.image(section), self.env(section)),
        };
        let mut packages = BTreeMap::new();
        for entry in self.reader.sections(section, "packages", "an entry of `packages`") {
            let Some((name, package)) = self.package(&entry, lock, runtime.as_ref()) else { continue };
            if packages.insert(name.clone(), package).is_some() {
                self.broken(entry.value_span("name"), format!("package `{name}` stands twice"));
            }
        }
        self.needs(section, &packages);
        if let Some((torch, variant)) = torch.as_ref().zip(variant.as_deref()) {
            self.is_torch(section, torch, variant, &packages);
        }
        Some(Target {
            name: name?,
            platform: platform?,
            glibc,
            python: python?,
            torch: torch?,
            variant: variant?,
            cuda,
            cudnn,
            nccl,
            driver,
            gpus,
            inferred,
            image,
            env,
            packages,
        })
    }

    fn image(&mut self, section: &Section<'_>) -> Option<Image> {
        if !section.has("image") {
            return None;
        }
        let image = self.reader.section(section, "image", "`image`".into())?;
        self.only(&image, &["os", "flavor", "ref", "digest", "uv", "uv-digest", "small", "small-digest", "requires"]);
        let flavor = |text: &str| one_of(&FLAVORS, |flavor| flavor, text).map(str::to_owned);
        let os = self.required(&image, "os", word);
        let flavor = self.required(&image, "flavor", flavor);
        let base = self.reference(&image, "ref", "digest");
        let uv = self.reference(&image, "uv", "uv-digest");
        let small = self.reference(&image, "small", "small-digest");
        let requires = self.reader.value(&image, "requires", word);
        Some(Image { os: os?, flavor: flavor?, base, uv, small, requires })
    }

    /// The image at `key`, with the digest at another.
    fn reference(&mut self, section: &Section<'_>, key: &str, digest_key: &str) -> Option<Reference> {
        let name = self.reader.value(section, key, reference);
        let digest = self.reader.value(section, digest_key, prefixed_sha256);
        if !section.has(key) && section.has(digest_key) {
            self.dangling(section.key_span(digest_key), format!("`{digest_key}` of an image that is not named"));
        }
        Some(Reference { name: name?, digest })
    }

    fn env(&mut self, section: &Section<'_>) -> BTreeMap<String, String> {
        let mut env = BTreeMap::new();
        for entry in self.reader.sections(section, "env", "an entry of `env`") {
            self.only(&entry, &["name", "value"]);
            let (name, value) = (self.required(&entry, "name", variable), self.text(&entry, "value"));
            let Some((name, value)) = name.zip(value) else { continue };
            if env.insert(name.clone(), value).is_some() {
                self.broken(entry.value_span("name"), format!("variable `{name}` stands twice"));
            }
        }
        env
    }

    /// Who asks for a package is one of the target's packages, or the manifest.
    fn needs(&mut self, section: &Section<'_>, packages: &BTreeMap<PackageName, Package>) {
        let known: BTreeSet<&str> = packages.keys().map(PackageName::as_str).chain([Package::MANIFEST]).collect();
        for (name, package) in packages {
            if let Some(by) = package.needed_by.iter().find(|by| !known.contains(by.as_str())) {
                let what = format!("`{by}`, which needs {name} and is no package of the target");
                self.dangling(section.value_span("packages"), what);
            }
        }
    }

    /// The target's torch and variant are those of its package torch.
    fn is_torch(
        &mut self,
        section: &Section<'_>,
        torch: &Pep440,
        variant: &str,
        packages: &BTreeMap<PackageName, Package>,
    ) {
        let Some((_, package)) = packages.iter().find(|(name, _)| name.as_str() == "torch") else {
            return self.missing_torch(section);
        };
        let locked = &package.version;
        if locked.clone().without_local() != *torch {
            let message = format!("the target has torch {torch}, but its package torch is {locked}");
            self.broken(section.value_span("torch"), message);
        }
        if let Some(label) = local_label(locked).filter(|label| label != variant) {
            let message = format!("the target has variant {variant}, but its package torch is of {label}");
            self.broken(section.value_span("variant"), message);
        }
    }

    fn missing_torch(&mut self, section: &Section<'_>) {
        if section.has("packages") {
            let message = "the package torch is missing in `packages`";
            self.reader.problem("lock-incomplete", &section.value_span("packages"), message, ANEW);
        }
    }

    fn driver(&mut self, section: &Section<'_>) -> DriverSupport {
        let Some(driver) = self.reader.section(section, "driver", "`driver`".into()) else {
            return DriverSupport::default();
        };
        self.only(&driver, &["given", "floor", "native", "tier"]);
        DriverSupport {
            given: self
                .reader
                .value(&driver, "given", |text| parsed::<Constraint<Driver>>(text).map(|_| text.to_owned())),
            floor: self.reader.value(&driver, "floor", parsed),
            native: self.reader.value(&driver, "native", parsed),
            tier: self.reader.value(&driver, "tier", |text| one_of(Tier::ALL, Tier::name, text)),
        }
    }

    fn gpu(&mut self, section: &Section<'_>) -> Option<Gpu> {
        self.only(section, &["name", "sm", "code", "from"]);
        let name = self.required(section, "name", named);
        let sm = self.required(section, "sm", |text| match text.parse::<Capability>() {
            Ok(capability) if capability.sm() == text => Ok(text.to_owned()),
            _ => Err(invalid(format!("`{text}` is not the architecture of a GPU, such as sm_90"))),
        });
        let code = self.required(section, "code", |text| one_of(Code::ALL, Code::name, text));
        let from: Option<GpuCode> = self.reader.value(section, "from", parsed);
        let kind = from.map(|from| match from.kind {
            CodeKind::Sass => Code::Sass,
            CodeKind::Ptx => Code::Ptx,
        });
        if let Some(code) =
            code.filter(|code| kind.unwrap_or(Code::Unknown) != *code && section.has("from") == kind.is_some())
        {
            let from = from.map_or_else(|| "nothing".into(), |from| from.to_string());
            self.broken(section.value_span("code"), format!("the code is {}, but it comes from {from}", code.name()));
        }
        Some(Gpu { name: name?, sm: sm?, code: code?, from: from.map(|from| from.to_string()) })
    }

    fn package(
        &mut self,
        section: &Section<'_>,
        lock: &Lock,
        runtime: Option<&Runtime>,
    ) -> Option<(PackageName, Package)> {
        self.only(section, &["name", "version", "extras", "wheel", "index", "pending", "needed-by"]);
        let name: Option<PackageName> = self.required(section, "name", parsed);
        let version = self.required(section, "version", version);
        let artefact = match self.reader.flag(section, "pending").unwrap_or(false) {
            true => self.index(section, lock).map(|index| Artefact::Pending { index }),
            false => self.text(section, "wheel").map(Artefact::Wheel),
        };
        if let (Some(Artefact::Wheel(file)), Some(name), Some(version)) = (&artefact, &name, &version) {
            match file.parse::<WheelName>() {
                Ok(wheel) if wheel.package == *name && wheel.version == *version => {
                    if let Some(runtime) = runtime.filter(|runtime| wheel.tags.fit(runtime).is_none()) {
                        let glibc = runtime.glibc.as_ref().map_or_else(String::new, |glibc| format!(", glibc {glibc}"));
                        let (python, platform) = (runtime.python, runtime.platform);
                        let message = format!("`{file}` is not for the target: Python {python} on {platform}{glibc}");
                        self.broken(section.value_span("wheel"), message);
                    }
                }
                _ => {
                    let message = format!("`{file}` is not the file name of a wheel of {name} {version}");
                    self.broken(section.value_span("wheel"), message);
                }
            }
            if !lock.wheels.contains_key(file) {
                let message = format!("{name} {version} is the wheel `{file}`, which has no line in [wheel]");
                self.dangling(section.value_span("wheel"), message);
            }
        }
        let extras = self.reader.texts(section, "extras").unwrap_or_default();
        let extras = extras.iter().filter_map(|text| self.reader.parsed(text, "`extras`", parsed)).collect();
        let needed_by: BTreeSet<String> = self
            .reader
            .texts(section, "needed-by")
            .unwrap_or_default()
            .iter()
            .map(|text| text.value.to_owned())
            .collect();
        Some((name?, Package { version: version?, extras, artefact: artefact?, needed_by }))
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

fn invalid(message: String) -> Invalid {
    Invalid { code: "lock-broken", message, fix: None }
}

fn parsed<T: std::str::FromStr<Err = ParseError>>(text: &str) -> Result<T, Invalid> {
    text.parse().map_err(|error: ParseError| invalid(error.to_string()))
}

fn version(text: &str) -> Result<Pep440, Invalid> {
    text.parse().map_err(|_| invalid(format!("`{text}` is not a version (PEP 440)")))
}

/// A name that may stand in a line of another tool's file: no blank, nothing that ends the line.
fn word(text: &str) -> Result<String, Invalid> {
    match text.chars().any(|c| c.is_whitespace() || c.is_control()) || text.is_empty() {
        true => Err(invalid("a name has blanks or control characters in it".into())),
        false => Ok(text.to_owned()),
    }
}

/// A name that people gave to a GPU.
fn named(text: &str) -> Result<String, Invalid> {
    match text.trim().is_empty() {
        true => Err(invalid("a name is empty".into())),
        false => Ok(text.to_owned()),
    }
}

/// An address as this program writes it: one word, without credentials.
fn url(text: &str) -> Result<String, Invalid> {
    if without_credentials(text) != text {
        return Err(invalid("the URL of an index carries credentials, which no lock may".into()));
    }
    word(text)
}

fn sha256_hex(text: &str) -> Result<String, Invalid> {
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    match text.len() == 64 && text.bytes().all(hex) {
        true => Ok(text.to_owned()),
        false => Err(invalid(format!("`{text}` is not a SHA-256 in lower-case hex"))),
    }
}

fn prefixed_sha256(text: &str) -> Result<String, Invalid> {
    match text.strip_prefix("sha256:") {
        Some(hex) => sha256_hex(hex).map(|_| text.to_owned()),
        None => Err(invalid(format!("`{text}` is not `sha256:` and a hash"))),
    }
}

/// Name of an image with its tag, in the characters that names of images are made of.
fn reference(text: &str) -> Result<String, Invalid> {
    let good = |c: char| c.is_ascii_alphanumeric() || "./:_-".contains(c);
    match text.chars().all(good) && text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        true => Ok(text.to_owned()),
        false => Err(invalid(format!("`{text}` is not the name of an image"))),
    }
}

/// Name of an environment variable.
fn variable(text: &str) -> Result<String, Invalid> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match text.chars().all(good) && text.starts_with(|c: char| !c.is_ascii_digit()) {
        true => Ok(text.to_owned()),
        false => Err(invalid(format!("`{text}` is not the name of an environment variable"))),
    }
}

fn one_of<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str, text: &str) -> Result<T, Invalid> {
    let names: Vec<&str> = all.iter().map(|one| name(*one)).collect();
    let found = all.iter().copied().find(|one| name(*one) == text);
    found.ok_or_else(|| invalid(format!("`{text}` is none of {}", names.join(", "))))
}
