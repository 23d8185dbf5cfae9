//! Definition files, read as Apptainer reads them.

use gpulock::diag::Class;
use gpulock::lock::{Lock, Reference, Tier, choose_image};
use gpulock::matrix::Matrix;
use gpulock::render::Options;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;

use super::{format, lock, odd, refused, run, with};
use crate::render::dockerfile::IMAGES;
use crate::render::names_torch;

fn of(lock: &Lock) -> Result<String, gpulock::diag::Failure> {
    with(format("apptainer"), lock, Options::default())
}

/// Header and sections of each stage: a line whose first word begins with `%` begins a section, one with `Bootstrap:` a stage
/// (pkg/build/types/parser/deffile.go).
fn sections(text: &str) -> Vec<(String, String)> {
    let mut sections = vec![(String::new(), String::new())];
    for line in text.lines() {
        if line.to_lowercase().starts_with("bootstrap:") {
            sections.push(("stage".into(), String::new()));
        }
        if line.trim_start().starts_with('%') {
            sections.push((line.trim().to_owned(), String::new()));
            continue;
        }
        let body = &mut sections.last_mut().unwrap().1;
        body.push_str(line);
        body.push('\n');
    }
    sections
}

fn section(text: &str, name: &str) -> String {
    sections(text).into_iter().find(|(one, _)| one == name).unwrap().1
}

fn names(text: &str) -> Vec<String> {
    sections(text).into_iter().map(|(name, _)| name).collect()
}

/// Whether a build argument stands outside of comments: `{{\s*\w+\s*}}` (internal/pkg/build/args/reader.go).
fn has_argument(text: &str) -> bool {
    let inside = |rest: &str| rest.split_once("}}").map(|(inside, _)| inside.trim().to_owned());
    let named = |name: String| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.flat_map(|line| line.match_indices("{{").map(|(at, _)| &line[at + 2..])).filter_map(inside).any(named)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_value_changes_the_structure(values in vec(odd(), 2), gpu in odd(), url in odd()) {
        let values = values.iter().map(|value| value.replace('\u{85}', "")).collect::<Vec<_>>();
        let plain = of(&lock()).unwrap();
        let mut lock = lock();
        lock.targets[0].env = ["A", "B"].map(str::to_owned).into_iter().zip(values.clone()).collect();
        lock.targets[0].gpus[0].name = format!("{gpu}\n%post\nBootstrap: x");
        let url = url.replace(['\u{85}', ' ', '\t'], "");
        lock.wheels.values_mut().for_each(|wheel| wheel.url = Some(format!("https://files.invalid/{url}")));
        let text = of(&lock).map_err(|failure| TestCaseError::fail(failure.to_string()))?;
        prop_assert_eq!(names(&text), names(&plain), "{}", text);
        prop_assert!(!has_argument(&text), "{}", text);
        let environment = section(&text, "%environment");
        let printed = run("sh", &["-s"], &format!("{environment}\nprintf '%s\\0' \"$A\" \"$B\""));
        prop_assert_eq!(printed.split_terminator('\0').collect::<Vec<_>>(), values.clone());
        let test = section(&text, "%test").replace("cd /opt/gpulock", "").replace("./gpulock verify", "printf '%s\\0'");
        let words = run("sh", &["-s"], &test);
        let mut expected = ["/opt/venv", "--integrity", "--lock", "gpulock.lock", "--target", "cluster"].map(str::to_owned).to_vec();
        expected.extend([("A", &values[0]), ("B", &values[1])].into_iter().flat_map(|(name, value)| ["--set-env".into(), format!("{name}={value}")]));
        prop_assert_eq!(words.split_terminator('\0').collect::<Vec<_>>(), expected);
        let post = section(&text, "%post");
        let printf = &post[post.find("printf").unwrap()..post.find(" > /opt").or(post.find("        > /opt")).unwrap()];
        let lines = run("sh", &["-s"], printf.trim_end().trim_end_matches('\\'));
        let url = format!("https://files.invalid/{url}");
        prop_assert!(lines.lines().any(|one| names_torch(one, &url)), "{}", lines);
    }
}

#[test]
fn every_flavor_and_system() {
    for (flavor, os) in IMAGES {
        let mut lock = lock();
        let ask = BTreeMap::from([("flavor".to_owned(), flavor.to_owned()), ("os".to_owned(), os.to_owned())]);
        lock.targets[0].image = Some(choose_image(&lock.targets[0], &ask, &Matrix::embedded()).unwrap().0);
        let text = of(&lock).unwrap();
        let image = lock.targets[0].image.as_ref().unwrap();
        let from: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("From: ")).collect();
        let expected: Vec<&str> = image.uv.iter().chain(&image.base).map(|one| &*one.name).collect();
        assert_eq!(from, expected);
        let found: Vec<String> =
            names(&text).into_iter().filter(|name| name != "%files from uv" && name != "stage").collect();
        let expected = ["", "%files", "%setup", "%post", "%environment", "%labels", "%test", "%runscript"];
        assert_eq!(found, expected, "{text}");
        assert_eq!(text.contains("\nStage: uv\n"), image.uv.is_some());
        assert_eq!(text.contains("TORCH_CUDA_ARCH_LIST='12.0'"), flavor == "devel");
        run("sh", &["-n"], &section(&text, "%post"));
        let labels = section(&text, "%labels");
        assert!(labels.contains(&format!("\n    gpulock.lock {}\n", lock.digest())), "{labels}");
        assert!(
            labels.contains("\n    gpulock.torch 2.8.0+cu128\n") && labels.contains("gpulock.driver.floor 525.60.13\n")
        );
    }
}

#[test]
fn an_image_is_named_by_digest_or_tag() {
    let mut lock = lock();
    let digest = format!("sha256:{}", "7".repeat(64));
    for (name, bare) in [
        ("python:3.11-slim-bookworm", "python"),
        ("localhost:5000/a/b:1", "localhost:5000/a/b"),
        ("localhost:5000/c", "localhost:5000/c"),
    ] {
        let image = lock.targets[0].image.as_mut().unwrap();
        image.base = Some(Reference { name: name.into(), digest: Some(digest.clone()) });
        let text = of(&lock).unwrap();
        assert!(text.contains(&format!("\n# {name}\nBootstrap: docker\nFrom: {bare}@{digest}\n")), "{text}");
        assert!(text.contains(&format!("    org.opencontainers.image.base.digest {digest}\n")), "{text}");
    }
}

#[test]
fn what_cannot_be_written_is_refused() {
    let with = |change: &dyn Fn(&mut Lock)| {
        let mut lock = lock();
        change(&mut lock);
        of(&lock)
    };
    refused(with(&|lock| lock.targets[0].image = None), Class::No, "image-missing", "add [image]");
    for value in ["a\n%post", "a\r", "\u{85}"] {
        let value = with(&|lock| drop(lock.targets[0].env.insert("A".into(), value.into())));
        refused(value, Class::No, "env-value", "apptainer cannot hold A of [env]");
    }
    for name in ["UID", "EUID", "GID"] {
        let name = with(&|lock| drop(lock.targets[0].env.insert(name.into(), "5".into())));
        refused(name, Class::No, "env-value", "of [env]: ");
    }
    let forward = with(&|lock| lock.targets[0].driver.tier = Some(Tier::Forward));
    refused(forward, Class::No, "image-without-compat", "set `flavor = ");
    for name in ["a\nb", " a", "{{ a }}"] {
        let name = with(&|lock| lock.targets[0].name = name.into());
        refused(name, Class::Unanswerable, "template-invalid", "cannot be the value of a label");
    }
}

/// As in the image: what libraries it has beside those of the wheels, and the levels of the manifest that was here.
#[test]
fn the_test_is_that_of_the_dockerfile() {
    let text = of(&lock()).unwrap();
    let test = section(&text, "%test").replace("cd /opt/gpulock", "").replace("./gpulock verify", "printf '%s\\n'");
    let words = run("sh", &["-s"], &format!("LD_LIBRARY_PATH='/a:/b c'\n{test}"));
    assert!(words.starts_with("/opt/venv\n--integrity\n"), "{words}");
    assert!(words.contains("\n--set-env\nLD_LIBRARY_PATH=/a:/b c\n--target\n"), "{words}");
    let words = run("sh", &["-s"], &format!("unset LD_LIBRARY_PATH\n{test}"));
    assert!(!words.contains("LD_LIBRARY_PATH"), "{words}");
    for (here, copied) in
        [("gpulock.toml", "gpulock.toml\n"), ("pyproject.toml", "pyproject.toml\n"), ("other.toml", "")]
    {
        let folder = tempfile::tempdir().unwrap();
        let setup = format!(
            "set -e\ncd {0}\nmkdir root\necho a > {here}\nexport APPTAINER_ROOTFS={0}/root\n{1}\nls root/opt/gpulock",
            folder.path().display(),
            section(&text, "%setup"),
        );
        assert_eq!(run("sh", &["-s"], &setup), copied);
    }
}

#[test]
fn cuda_compat_by_what_the_driver_does() {
    let mut lock = lock();
    let ask = BTreeMap::from([("flavor".to_owned(), "base".to_owned()), ("os".to_owned(), "ubuntu22.04".to_owned())]);
    lock.targets[0].image = Some(choose_image(&lock.targets[0], &ask, &Matrix::embedded()).unwrap().0);
    for (tier, words) in [
        (Some(Tier::Native), "driver. The lock's driver supports this CUDA natively.\n"),
        (
            Some(Tier::MinorVersion),
            "driver. On the lock's driver, which is older than\n    # this CUDA, the stack runs",
        ),
        (None, "driver. The lock does not count on it.\n"),
    ] {
        lock.targets[0].driver.tier = tier;
        let text = of(&lock).unwrap();
        assert!(text.contains(words) && text.contains("\n    rm -rf /usr/local/cuda*/compat\n"), "{text}");
    }
}
