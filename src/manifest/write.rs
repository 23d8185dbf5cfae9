//! A [`Manifest`] as text: for people, as `gpulock init` writes it, and in the normal form that the lock's hash is of.

use std::fmt::Write;

use super::checks;
use super::model::{Ask, Manifest, PythonAsk, Stack, Target};
use crate::version::Specifiers;

/// What a target looks like.
pub(super) const TARGET_EXAMPLE: &str = "[target.cluster]\ngpus = [\"RTX 5090\"]\ndriver = \"570.124.06\"";

/// The manifest as a file with short comments. A target without GPUs is left for the user to fill in, and says so.
pub fn render(manifest: &Manifest) -> String {
    let mut out =
        String::from("# What you want, and what your machines are. `gpulock resolve` turns it into gpulock.lock.\n");
    let stack = stack_lines(&manifest.stack);
    out.push_str("\n[stack]                     # anything left out is chosen for you\n");
    for (key, value) in stack {
        line(&mut out, key, &value);
    }
    if !manifest.packages.is_empty() {
        out.push_str("\n[packages]                  # locked together with the stack\n");
        for ask in &manifest.packages {
            line(&mut out, ask.package.as_str(), &package_value(ask));
        }
    }
    for target in &manifest.targets {
        target_table(&mut out, target);
    }
    for index in &manifest.indexes {
        out.push_str("\n[[index]]                   # where some packages come from\n");
        line(&mut out, "name", &quoted(&index.name));
        line(&mut out, "url", &quoted(&without_credentials(&index.url)));
        line(&mut out, "packages", &list(index.packages.iter().map(|package| package.as_str())));
    }
    for (title, entries) in [("image", &manifest.image), ("env", &manifest.env)] {
        if !entries.is_empty() {
            let _ = writeln!(out, "\n[{title}]");
            entries.iter().for_each(|(key, value)| line(&mut out, key, &quoted(value)));
        }
    }
    if !manifest.checks.is_empty() {
        out.push_str("\n[checks]                    # an exception needs a reason\n");
        for (rule, check) in &manifest.checks {
            let level = quoted(checks::name(check.level));
            let value = match &check.reason {
                Some(reason) => format!("{{ level = {level}, reason = {} }}", quoted(reason)),
                None => level,
            };
            line(&mut out, rule, &value);
        }
    }
    out
}

fn target_table(out: &mut String, target: &Target) {
    let _ = writeln!(out, "\n{:<27} # one table for each kind of machine", format!("[target.{}]", key(&target.name)));
    line(out, "platform", &quoted(&target.platform.to_string()));
    if let Some(glibc) = &target.glibc {
        line(out, "glibc", &quoted(&glibc.to_string()));
    }
    if target.gpus.is_empty() {
        out.push_str("# FILL IN: the GPUs of these machines, as `nvidia-smi -L` prints them, such as \"RTX 5090\" or \"sm_90\".\n");
        out.push_str("gpus = []\n");
    } else {
        line(out, "gpus", &list(target.gpus.iter().map(String::as_str)));
    }
    match &target.driver {
        Some(driver) => line(out, "driver", &quoted(&driver.to_string())),
        None => {
            out.push_str("# The oldest driver among them (`nvidia-smi`), or \">=570\" where you control it; without it any driver is assumed.\n");
            out.push_str("# driver = \"570.124.06\"\n");
        }
    }
    if target.forward_compat {
        line(out, "forward-compat", "true");
    }
}

fn stack_lines(stack: &Stack) -> Vec<(&'static str, String)> {
    let text = |value: Option<String>| value.map(|value| quoted(&value));
    let lines = [
        ("python", text(stack.python.as_ref().map(python))),
        ("torch", text(stack.torch.as_ref().map(specifiers))),
        ("torchvision", text(stack.torchvision.as_ref().map(specifiers))),
        ("torchaudio", text(stack.torchaudio.as_ref().map(specifiers))),
        ("triton", text(stack.triton.as_ref().map(specifiers))),
        ("nccl", text(stack.nccl.as_ref().map(ToString::to_string))),
        ("cuda", text(stack.cuda.as_ref().map(ToString::to_string))),
        ("cudnn", text(stack.cudnn.as_ref().map(ToString::to_string))),
        ("variant", text(stack.variant.clone())),
        ("same-torch", stack.same_torch.then(|| "true".to_owned())),
    ];
    lines.into_iter().filter_map(|(key, value)| value.map(|value| (key, value))).collect()
}

/// Specifiers without spaces, ascending; `*` when there are none.
pub(super) fn specifiers(specifiers: &Specifiers) -> String {
    let mut parts: Vec<_> = specifiers.iter().map(|one| (one.version(), one.to_string())).collect();
    parts.sort();
    let parts: Vec<String> = parts.into_iter().map(|(_, part)| part).collect();
    if parts.is_empty() { "*".into() } else { parts.join(",") }
}

fn python(ask: &PythonAsk) -> String {
    match ask {
        PythonAsk::Exact(exact) => exact.to_string(),
        PythonAsk::Range(range) => specifiers(range),
    }
}

fn package_value(ask: &Ask) -> String {
    let version = quoted(&specifiers(&ask.specifiers));
    if ask.extras.is_empty() {
        return version;
    }
    format!("{{ version = {version}, extras = {} }}", list(ask.extras.iter().map(|extra| extra.as_str())))
}

fn line(out: &mut String, name: &str, value: &str) {
    let _ = writeln!(out, "{} = {value}", key(name));
}

/// A key, quoted when TOML asks for it.
fn key(name: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(bare) { name.into() } else { quoted(name) }
}

fn list<'a>(items: impl IntoIterator<Item = &'a str>) -> String {
    let items: Vec<String> = items.into_iter().map(quoted).collect();
    format!("[{}]", items.join(", "))
}

/// A TOML string.
fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string().trim().to_owned()
}

/// `url` without user name and password, and without query and fragment, which may hold a token; with or without its
/// scheme.
pub fn without_credentials(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let (scheme, rest) = url.split_at(url.find("://").map_or(0, |at| at + 3));
    let authority = rest.find('/').unwrap_or(rest.len());
    match rest[..authority].rfind('@') {
        Some(at) => format!("{scheme}{}", &rest[at + 1..]),
        None => url.into(),
    }
}

impl Manifest {
    /// All that the lock depends on, in one fixed form: the order of keys, spaces, comments and credentials do not
    /// show, nor do levels of checks. The order of targets and of their GPUs does, since the lock keeps it.
    pub fn normalised(&self) -> String {
        let mut out = String::new();
        for (key, value) in stack_lines(&self.stack) {
            let _ = writeln!(out, "stack.{key} = {value}");
        }
        let mut packages: Vec<&Ask> = self.packages.iter().collect();
        packages.sort_by(|a, b| a.package.cmp(&b.package));
        for ask in packages {
            let mut ask = ask.clone();
            ask.extras.sort();
            let _ = writeln!(out, "packages.{} = {}", ask.package, package_value(&ask));
        }
        for target in &self.targets {
            let gpus = list(target.gpus.iter().map(String::as_str));
            let glibc = target.glibc.as_ref().map(|glibc| format!(" glibc {glibc}")).unwrap_or_default();
            let driver = target.driver.as_ref().map(|driver| format!(" driver {driver}")).unwrap_or_default();
            let forward = if target.forward_compat { " forward-compat" } else { "" };
            let _ = writeln!(out, "target.{} = {} {gpus}{glibc}{driver}{forward}", target.name, target.platform);
        }
        let mut indexes: Vec<String> = self
            .indexes
            .iter()
            .map(|index| {
                let mut packages: Vec<&str> = index.packages.iter().map(|package| package.as_str()).collect();
                packages.sort_unstable();
                let url = without_credentials(&index.url);
                format!("index.{} = {} {}", index.name, quoted(url.trim_end_matches('/')), list(packages))
            })
            .collect();
        indexes.sort();
        for index in indexes {
            let _ = writeln!(out, "{index}");
        }
        for (title, entries) in [("image", &self.image), ("env", &self.env)] {
            for (key, value) in entries {
                let _ = writeln!(out, "{title}.{key} = {}", quoted(value));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_secret_stays_in_an_address() {
        for (url, shown) in [
            ("https://me:secret@h/simple", "https://h/simple"),
            ("https://me:sec@ret@h", "https://h"),
            ("me:secret@h/simple", "h/simple"),
            ("https://h/simple?token=secret", "https://h/simple"),
            ("https://h?secret@x#y", "https://h"),
            ("https://h/a@b", "https://h/a@b"),
            ("file:///a@b/c", "file:///a@b/c"),
        ] {
            assert_eq!(without_credentials(url), shown);
        }
    }
}
