//! `gpulock.toml`, or `[tool.gpulock]` of `pyproject.toml`, becomes a [`Manifest`]: all problems at once, each with its
//! place (DESIGN: the manifest).

use std::collections::{BTreeMap, BTreeSet};

use super::checks;
use super::model::{Ask, Index, Manifest, Places, Stack, Target};
use super::reader::{Reader, Section, Text, parse_toml};
use super::value::{self, Invalid};
use super::write::{TARGET_EXAMPLE, without_credentials};
use crate::diag::{Failure, SourceText};
use crate::dockerfile::is_variable;
use crate::python::{PackageName, index_address};

const TOP: [&str; 7] = ["stack", "packages", "target", "index", "image", "env", "checks"];
const STACK: [&str; 10] =
    ["python", "torch", "torchvision", "torchaudio", "triton", "nccl", "cuda", "cudnn", "variant", "same-torch"];
const TARGET: [&str; 5] = ["platform", "glibc", "gpus", "driver", "forward-compat"];
const INDEX: [&str; 3] = ["name", "url", "packages"];
const PACKAGE: [&str; 2] = ["version", "extras"];
const IMAGE: [&str; 2] = ["os", "flavor"];
/// What `flavor` in [image] may be.
pub const FLAVORS: [&str; 4] = ["slim", "base", "runtime", "devel"];

/// Reads `gpulock.toml`; `name` is what messages call it.
///
/// # Errors
/// Every problem of the text.
pub fn parse(text: &str, name: &str) -> Result<Manifest, Failure> {
    let source = SourceText::new(name, text);
    let document = parse_toml(source)?;
    manifest(Reader::new(source), &Section::root(&document), "")
}

/// Reads `[tool.gpulock]` of a `pyproject.toml`; `None` when it has none.
///
/// # Errors
/// Every problem of that table, or a text that is not TOML.
pub fn parse_pyproject(text: &str, name: &str) -> Result<Option<Manifest>, Failure> {
    let source = SourceText::new(name, text);
    let document = parse_toml(source)?;
    let tool = Section::root(&document).table_at("tool", "[tool]".into());
    if !tool.as_ref().is_some_and(|tool| tool.has("gpulock")) {
        return Ok(None);
    }
    let mut reader = Reader::new(source);
    match tool.and_then(|tool| reader.section(&tool, "gpulock", "[tool.gpulock]".into())) {
        Some(section) => manifest(reader, &section, "tool.gpulock.").map(Some),
        None => reader.finish(None),
    }
}

/// Reads the tables of `root`; `prefix` stands before their names in this file.
fn manifest(mut reader: Reader<'_>, root: &Section<'_>, prefix: &str) -> Result<Manifest, Failure> {
    let meant = reader.only(root, &TOP, |key| misplaced(key, prefix));
    let mut places = Places::default();
    let table = |reader: &mut Reader<'_>, key: &str| reader.section(root, key, format!("[{prefix}{key}]"));
    let stack = table(&mut reader, "stack").map(|section| stack(&mut reader, &section, prefix, &mut places));
    let packages = table(&mut reader, "packages").map(|section| packages(&mut reader, &section, &mut places));
    let image = table(&mut reader, "image").map(|section| image(&mut reader, &section));
    let env = table(&mut reader, "env").map(|section| env(&mut reader, &section, &mut places));
    let checks = table(&mut reader, "checks").map(|section| checks::read(&mut reader, &section));
    let targets = match meant.contains(&"target") && !root.has("target") {
        true => Vec::new(),
        false => targets(&mut reader, root, prefix, &mut places),
    };
    let indexes = indexes(&mut reader, root, prefix);
    let manifest = Manifest {
        stack: stack.unwrap_or_default(),
        packages: packages.unwrap_or_default(),
        targets,
        indexes,
        image: image.unwrap_or_default(),
        env: env.unwrap_or_default(),
        checks: checks.unwrap_or_default(),
        places,
    };
    reader.finish(manifest)
}

/// Says where a key belongs that stands in the wrong table.
fn misplaced(key: &str, prefix: &str) -> Option<String> {
    let table = if STACK.contains(&key) {
        "stack"
    } else if TARGET.contains(&key) {
        "target.NAME"
    } else if IMAGE.contains(&key) {
        "image"
    } else {
        return None;
    };
    Some(format!("`{key}` belongs in [{prefix}{table}]"))
}

fn stack(reader: &mut Reader<'_>, section: &Section<'_>, prefix: &str, places: &mut Places) -> Stack {
    reader.only(section, &STACK, |key| misplaced(key, prefix).or_else(|| as_package(key, prefix)));
    for key in STACK.into_iter().filter(|key| section.has(key)) {
        places.insert(format!("stack.{key}"), reader.place(&section.value_span(key)));
    }
    Stack {
        python: reader.value(section, "python", value::parse_python),
        torch: reader.value(section, "torch", value::parse_specifiers),
        torchvision: reader.value(section, "torchvision", value::parse_specifiers),
        torchaudio: reader.value(section, "torchaudio", value::parse_specifiers),
        triton: reader.value(section, "triton", value::parse_specifiers),
        nccl: reader.value(section, "nccl", value::parse_nccl),
        cuda: reader.value(section, "cuda", value::parse_cuda),
        cudnn: reader.value(section, "cudnn", value::parse_cudnn),
        variant: reader.value(section, "variant", value::parse_variant),
        same_torch: reader.flag(section, "same-torch").unwrap_or(false),
    }
}

/// A package that people put beside torch belongs in `[packages]`, unless it is a slip of the pen.
fn as_package(key: &str, prefix: &str) -> Option<String> {
    const OFTEN: [&str; 8] =
        ["numpy", "flash-attn", "xformers", "transformers", "accelerate", "deepspeed", "bitsandbytes", "vllm"];
    OFTEN.contains(&key).then(|| format!("further packages belong in [{prefix}packages]"))
}

fn packages(reader: &mut Reader<'_>, section: &Section<'_>, places: &mut Places) -> Vec<Ask> {
    let mut asks: Vec<Ask> = Vec::new();
    let mut seen = BTreeSet::new();
    for key in section.keys() {
        let name = Text { value: key, span: section.key_span(key) };
        let what = format!("`{key}` in {}", section.name);
        let package = reader.parsed(&name, &what, value::parse_package_name);
        let ask = match section.table_at(key, format!("`{key}` of {}", section.name)) {
            Some(table) => {
                reader.only(&table, &PACKAGE, |_| None);
                let specifiers = match table.has("version") {
                    true => reader.value(&table, "version", value::parse_specifiers),
                    false => value::parse_specifiers("*").ok(),
                };
                let extras = names(reader, &table, "extras");
                package.zip(specifiers).map(|(package, specifiers)| Ask { package, extras, specifiers })
            }
            None => reader.value(section, key, value::parse_specifiers).zip(package).map(|(specifiers, package)| Ask {
                package,
                extras: Vec::new(),
                specifiers,
            }),
        };
        let Some(ask) = ask else { continue };
        if !seen.insert(ask.package.clone()) {
            let message = format!("`{}` stands twice in {}", ask.package, section.name);
            reader.problem(
                "duplicate-key",
                &name.span,
                message,
                "keep one; names that differ in case or `-_.` are one",
            );
        }
        if let Some(key) = STACK[1..5].iter().find(|key| ask.package.as_str() == **key) {
            let message = format!("`{key}` is part of the stack, not of {}", section.name);
            reader.problem("misplaced-key", &name.span, message, "move it to the table `stack`");
        }
        places.insert(format!("packages.{}", ask.package), reader.place(&section.value_span(key)));
        asks.push(ask);
    }
    asks
}

/// The package names of an array.
fn names(reader: &mut Reader<'_>, section: &Section<'_>, key: &str) -> Vec<PackageName> {
    let what = format!("`{key}` in {}", section.name);
    let texts = reader.texts(section, key).unwrap_or_default();
    texts.iter().filter_map(|text| reader.parsed(text, &what, value::parse_package_name)).collect()
}

fn targets(reader: &mut Reader<'_>, root: &Section<'_>, prefix: &str, places: &mut Places) -> Vec<Target> {
    let example = || {
        format!(
            "say what the machines are, such as:\n{}",
            TARGET_EXAMPLE.replace("target.", &format!("{prefix}target."))
        )
    };
    let Some(section) = reader.section(root, "target", format!("[{prefix}target.NAME]")) else {
        if !root.has("target") {
            let message = format!("no target: gpulock locks for machines, and no [{prefix}target.NAME] says which");
            reader.problem("no-target", &root.span(), message, example());
        }
        return Vec::new();
    };
    if section.keys().is_empty() {
        let message = format!("[{prefix}target] is empty: no [{prefix}target.NAME] says what the machines are");
        reader.problem("no-target", &section.span(), message, example());
    }
    let mut targets = Vec::new();
    for key in section.keys() {
        if TARGET.contains(&key) && section.table_at(key, String::new()).is_none() {
            let message = format!("`{key}` stands in [{prefix}target], which holds a table for each kind of machine");
            let fix = format!("name the machines: write [{prefix}target.NAME] above it");
            reader.problem("misplaced-key", &section.key_span(key), message, fix);
        } else if let Some(table) = reader.section(&section, key, format!("[{prefix}target.{key}]")) {
            targets.extend(target(reader, &table, key, section.key_span(key), prefix, places));
        }
    }
    targets
}

fn target(
    reader: &mut Reader<'_>,
    section: &Section<'_>,
    name: &str,
    name_span: Option<std::ops::Range<usize>>,
    prefix: &str,
    places: &mut Places,
) -> Option<Target> {
    let meant = reader.only(section, &TARGET, |key| match key {
        "gpu" => Some("did you mean `gpus`? It is a list: `gpus = [\"..\"]`".into()),
        _ => misplaced(key, prefix),
    });
    let what = format!("target `{name}`");
    reader.parsed(&Text { value: name, span: name_span.clone() }, &what, plain_name);
    places.insert(format!("target.{name}"), reader.place(&section.span().or(name_span)));
    for key in TARGET.into_iter().filter(|key| section.has(key)) {
        places.insert(format!("target.{name}.{key}"), reader.place(&section.value_span(key)));
    }
    let platform = match section.has("platform") {
        true => reader.value(section, "platform", value::parse_platform),
        false => Some(Default::default()),
    };
    let glibc = reader.value(section, "glibc", value::parse_glibc);
    let driver = reader.value(section, "driver", value::parse_driver);
    let forward_compat = reader.flag(section, "forward-compat").unwrap_or(false);
    let gpus = match meant.contains(&"gpus") && !section.has("gpus") {
        true => Vec::new(),
        false => gpus(reader, section, name, places),
    };
    Some(Target { name: name.into(), platform: platform?, glibc, gpus, driver, forward_compat })
}

fn gpus(reader: &mut Reader<'_>, section: &Section<'_>, target: &str, places: &mut Places) -> Vec<String> {
    let fix = "list product names or compute capabilities: `gpus = [\"RTX 5090\", \"sm_90\"]`; `nvidia-smi -L` prints \
               those of a machine";
    if !section.has("gpus") {
        let message = format!("target `{target}` names no GPUs");
        reader.problem("no-gpu", &section.span(), message, fix);
        return Vec::new();
    }
    let texts = reader.texts(section, "gpus").unwrap_or_default();
    if section.is_empty_array("gpus") {
        let message = format!("`gpus` in {} is empty: nothing says which GPUs the stack must run on", section.name);
        reader.problem("no-gpu", &section.value_span("gpus"), message, fix);
    }
    let mut gpus: Vec<String> = Vec::new();
    let mut seen = BTreeSet::new();
    for text in texts {
        let Some(gpu) = reader.parsed(&text, &format!("`gpus` in {}", section.name), value::parse_text) else {
            continue;
        };
        if seen.insert(gpu.clone()) {
            places.insert(format!("target.{target}.gpus.{gpu}"), reader.place(&text.span));
            gpus.push(gpu);
        }
    }
    gpus
}

fn indexes(reader: &mut Reader<'_>, root: &Section<'_>, prefix: &str) -> Vec<Index> {
    let title = format!("[[{prefix}index]]");
    let mut indexes: Vec<Index> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut claimed: BTreeMap<PackageName, String> = BTreeMap::new();
    for section in reader.sections(root, "index", &title) {
        let meant = reader.only(&section, &INDEX, |_| None);
        let missing = |key: &&str| !section.has(key) && !meant.contains(key);
        for key in ["name", "url"].into_iter().filter(missing) {
            let fix = match key {
                "name" => "add a name of your choice: `name = \"torch-cu126\"`",
                _ => "add the address of the simple index: `url = \"https://..\"`",
            };
            reader.problem("missing-key", &section.span(), format!("{title} without `{key}`"), fix);
        }
        let name = reader.value(&section, "name", plain_name);
        let url = reader.value(&section, "url", index_url);
        let packages = names(reader, &section, "packages");
        if missing(&"packages") || section.is_empty_array("packages") {
            let span = section.value_span("packages").or_else(|| section.span());
            let message = format!("{title} names no packages, so nothing would come from it");
            reader.problem("missing-key", &span, message, "say what it is for: `packages = [\"torch\"]`");
        }
        let (Some(name), Some(url)) = (name, url) else { continue };
        if !seen.insert(name.clone()) {
            let message = format!("two indexes are named `{name}`");
            reader.problem("duplicate-key", &section.value_span("name"), message, "give each its own name");
        }
        for package in &packages {
            if let Some(other) = claimed.insert(package.clone(), name.clone()).filter(|other| *other != name) {
                let message = format!("`{package}` is to come from `{other}` and from `{name}`");
                let fix = "a package comes from one index: keep it in one of the two";
                reader.problem("duplicate-key", &section.value_span("packages"), message, fix);
            }
        }
        indexes.push(Index { name, url, packages });
    }
    indexes
}

/// A name that may stand in a file name, a flag and a Dockerfile's stage.
fn plain_name(text: &str) -> Result<String, Invalid> {
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.chars().all(good) {
        return Ok(text.into());
    }
    Err(Invalid {
        code: "invalid-value",
        message: format!("`{text}` is not a name"),
        fix: Some("use letters, digits, `-`, `_` and `.`, beginning with a letter or digit".into()),
    })
}

fn index_url(text: &str) -> Result<String, Invalid> {
    index_address(text).map_err(|why| Invalid {
        code: "invalid-value",
        message: format!("`{}` is not the address of an index: {why}", without_credentials(text.trim())),
        fix: Some(
            "write a URL that begins with https:// or http://, without `?` and `#`; logins go into netrc or the variables \
             GPULOCK_INDEX_<NAME>_USERNAME and _PASSWORD"
                .into(),
        ),
    })
}

fn image(reader: &mut Reader<'_>, section: &Section<'_>) -> BTreeMap<String, String> {
    reader.only(section, &IMAGE, |_| None);
    let mut image = BTreeMap::new();
    let os = reader.value(section, "os", value::parse_text);
    let flavor = reader.value(section, "flavor", flavor);
    image.extend(os.map(|os| ("os".to_owned(), os)));
    image.extend(flavor.map(|flavor| ("flavor".to_owned(), flavor)));
    image
}

fn flavor(text: &str) -> Result<String, Invalid> {
    if FLAVORS.contains(&text) {
        return Ok(text.into());
    }
    let fix = match crate::diag::did_you_mean(text, FLAVORS) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("write one of: {}", FLAVORS.join(", ")),
    };
    Err(Invalid { code: "invalid-value", message: format!("unknown flavor `{text}`"), fix: Some(fix) })
}

fn env(reader: &mut Reader<'_>, section: &Section<'_>, places: &mut Places) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for key in section.keys() {
        if !is_variable(key) {
            let message = format!("`{key}` in {} is not the name of an environment variable", section.name);
            reader.problem("invalid-value", &section.key_span(key), message, "use letters, digits and `_`");
        }
        // An empty value is a value: it clears the variable.
        let value = reader.text(section, key);
        if value.as_ref().is_some_and(|value| value.value.contains('\0')) {
            let message = format!("`{key}` in {} has a NUL, where a variable ends", section.name);
            reader.problem("invalid-value", &section.value_span(key), message, "leave the NUL out");
        }
        if seen.insert(key) {
            places.insert(format!("env.{key}"), reader.place(&section.key_span(key)));
            env.extend(value.map(|value| (key.to_owned(), value.value.to_owned())));
        }
    }
    env
}
