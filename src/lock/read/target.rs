//! One `[[target]]` of a lock, and its packages held against the rest of the lock.

use std::collections::{BTreeMap, BTreeSet};

use super::ANEW;
use super::LockReader;
use super::value::{invalid, named, one_of, parsed, prefixed_sha256, reference, variable, version, word};
use crate::lock::model::{Artefact, Code, DriverSupport, Gpu, Image, Lock, Package, Reference, Target, Tier};
use crate::manifest::FLAVORS;
use crate::manifest::reader::Section;
use crate::python::{PackageName, Runtime, WheelName};
use crate::version::pep440::local_label;
use crate::version::{Capability, CodeKind, Constraint, Driver, GpuCode, Pep440};

impl LockReader<'_> {
    pub(super) fn target(&mut self, section: &Section<'_>, lock: &Lock) -> Option<Target> {
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
}
