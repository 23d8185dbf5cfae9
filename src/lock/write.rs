//! The lock as text: fixed order, one line an artefact, LF, no times, no host paths, no credentials.

use std::fmt::Write;

use super::model::{
    Artefact, DriverSupport, FileDigest, Image, Lock, Package, REVISION, Reference, Target, VERSION, Wheel,
};
use crate::manifest::without_credentials;
use crate::python::PackageName;

/// How every lock begins.
pub const MARK: &str = "# Written by gpulock.";

impl Lock {
    /// The text of `gpulock.lock`; equal locks have equal bytes. It has the hash of what it holds.
    pub fn to_file(&self) -> String {
        self.text(REVISION, Some(&self.digest()))
    }

    /// The same without that hash: what is hashed.
    pub fn to_text(&self) -> String {
        self.text(self.revision(), None)
    }

    fn text(&self, revision: u64, content: Option<&str>) -> String {
        // An artefact's line is about 300 bytes.
        let mut out = String::with_capacity(1024 + 300 * self.wheels.len());
        let _ = writeln!(out, "{MARK} Change gpulock.toml and run `gpulock resolve`.");
        let _ = writeln!(out, "version = {VERSION}\nrevision = {revision}");
        let _ = writeln!(out, "inputs = {}\nmatrix = {}", quoted(&self.inputs), quoted(&self.matrix));
        if let Some(content) = content {
            let _ = writeln!(out, "content = {}", quoted(content));
        }
        for (name, url) in &self.indexes {
            let url = without_credentials(url);
            let _ = writeln!(out, "\n[[index]]\nname = {}\nurl = {}", quoted(name), quoted(&url));
        }
        self.targets.iter().for_each(|target| write_target(&mut out, target));
        if !self.wheels.is_empty() {
            out.push_str("\n[wheel]\n");
        }
        for (file, wheel) in &self.wheels {
            let _ = writeln!(out, "{} = {}", quoted(file), wheel_line(wheel));
        }
        for (file, wheel) in self.wheels.iter().filter(|(_, wheel)| !wheel.libraries.is_empty()) {
            let _ = writeln!(out, "\n[library.{}]", quoted(file));
            for (path, FileDigest { sha256, size }) in &wheel.libraries {
                let _ = writeln!(out, "{} = {{ sha256 = {}, size = {size} }}", quoted(path), quoted(sha256));
            }
        }
        out
    }
}

fn write_target(out: &mut String, target: &Target) {
    let mut line = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = writeln!(out, "{key} = {}", quoted(&value));
        }
    };
    let shown = |value: &dyn std::fmt::Display| Some(value.to_string());
    line("\n[[target]]\nname", Some(target.name.clone()));
    line("platform", shown(&target.platform));
    line("glibc", target.glibc.as_ref().map(ToString::to_string));
    line("python", shown(&target.python));
    line("torch", shown(&target.torch));
    line("variant", Some(target.variant.clone()));
    line("cuda", target.cuda.as_ref().map(ToString::to_string));
    line("cudnn", target.cudnn.as_ref().map(ToString::to_string));
    line("nccl", target.nccl.as_ref().map(ToString::to_string));
    let _ = writeln!(out, "driver = {}", driver(&target.driver));
    out.push_str("gpus = [\n");
    for gpu in &target.gpus {
        let from = gpu.from.clone().map(|from| ("from", from));
        let fields = [("name", gpu.name.clone()), ("sm", gpu.sm.clone()), ("code", gpu.code.name().into())];
        let _ = writeln!(out, "    {},", inline(fields.into_iter().chain(from)));
    }
    out.push_str("]\n");
    if !target.inferred.is_empty() {
        let _ = writeln!(out, "inferred = {}", list(target.inferred.iter().map(String::as_str)));
    }
    if let Some(image) = &target.image {
        let _ = writeln!(out, "image = {}", self::image(image));
    }
    if !target.env.is_empty() {
        out.push_str("env = [\n");
        for (name, value) in &target.env {
            let fields = [("name", name.clone()), ("value", value.clone())];
            let _ = writeln!(out, "    {},", inline(fields));
        }
        out.push_str("]\n");
    }
    out.push_str("packages = [\n");
    for (name, package) in &target.packages {
        let _ = writeln!(out, "    {},", package_line(name, package));
    }
    out.push_str("]\n");
}

fn image(image: &Image) -> String {
    let name = |reference: &Option<Reference>| reference.as_ref().map(|reference| reference.name.clone());
    let digest = |reference: &Option<Reference>| reference.as_ref().and_then(|reference| reference.digest.clone());
    let fields = [
        ("os", Some(image.os.clone())),
        ("flavor", Some(image.flavor.clone())),
        ("ref", name(&image.base)),
        ("digest", digest(&image.base)),
        ("uv", name(&image.uv)),
        ("uv-digest", digest(&image.uv)),
        ("small", name(&image.small)),
        ("small-digest", digest(&image.small)),
        ("requires", image.requires.clone()),
    ];
    inline(fields.into_iter().filter_map(|(key, value)| value.map(|value| (key, value))))
}

fn driver(driver: &DriverSupport) -> String {
    let fields = [
        ("given", driver.given.clone()),
        ("floor", driver.floor.as_ref().map(ToString::to_string)),
        ("native", driver.native.as_ref().map(ToString::to_string)),
        ("tier", driver.tier.map(|tier| tier.name().to_owned())),
    ];
    inline(fields.into_iter().filter_map(|(key, value)| value.map(|value| (key, value))))
}

fn package_line(name: &PackageName, package: &Package) -> String {
    let mut line = format!("{{ name = {}, version = {}", quoted(name.as_str()), quoted(&package.version.to_string()));
    if !package.extras.is_empty() {
        let _ = write!(line, ", extras = {}", list(package.extras.iter().map(PackageName::as_str)));
    }
    let _ = match &package.artefact {
        Artefact::Wheel(file) => write!(line, ", wheel = {}", quoted(file)),
        Artefact::Pending { index } => write!(line, ", index = {}, pending = true", quoted(index)),
    };
    let _ = write!(line, ", needed-by = {} }}", list(package.needed_by.iter().map(String::as_str)));
    line
}

fn wheel_line(wheel: &Wheel) -> String {
    let mut line = format!("{{ index = {}, sha256 = {}", quoted(&wheel.index), quoted(&wheel.sha256));
    if let Some(size) = wheel.size {
        let _ = write!(line, ", size = {size}");
    }
    if let Some(url) = &wheel.url {
        let _ = write!(line, ", url = {}", quoted(&without_credentials(url)));
    }
    if !wheel.libraries.is_empty() {
        let _ = write!(line, ", libraries = {}", wheel.libraries.len());
    }
    line + " }"
}

fn inline<'a>(fields: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let fields: Vec<String> = fields.into_iter().map(|(key, value)| format!("{key} = {}", quoted(&value))).collect();
    if fields.is_empty() { "{}".into() } else { format!("{{ {} }}", fields.join(", ")) }
}

fn list<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<String> = items.into_iter().map(quoted).collect();
    format!("[{}]", items.join(", "))
}

/// A TOML basic string: always of the one form, whatever it holds.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    let special = |c: char| matches!(c, '"' | '\\') || c.is_control();
    let mut plain = 0;
    for (at, found) in text.match_indices(special) {
        out.push_str(&text[plain..at]);
        plain = at + found.len();
        let _ = match found {
            "\"" | "\\" => write!(out, "\\{found}"),
            control => control.chars().try_for_each(|c| write!(out, "\\u{:04X}", u32::from(c))),
        };
    }
    out.push_str(&text[plain..]);
    out.push('"');
    out
}
