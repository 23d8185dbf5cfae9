//! Dockerfiles: made from the lock alone, for every flavor and system; no name or value changes their structure.

use std::collections::BTreeMap;
use std::process::Command;

use gpulock::diag::{Class, Failure};
use gpulock::lock::{Image, Lock, Reference, Tier, choose_image};
use gpulock::matrix::Matrix;
use gpulock::render::dockerfile::{TEMPLATE, Template, drift, render};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::names_torch;
use crate::lock::SAMPLE;

/// Every flavor and system that there is an image for.
pub const IMAGES: [(&str, &str); 22] = [
    ("slim", "debian12"),
    ("slim", "debian13"),
    ("slim", "ubuntu20.04"),
    ("slim", "ubuntu22.04"),
    ("slim", "ubuntu24.04"),
    ("slim", "ubi8"),
    ("slim", "ubi9"),
    ("base", "ubuntu20.04"),
    ("base", "ubuntu22.04"),
    ("base", "ubuntu24.04"),
    ("base", "ubi8"),
    ("base", "ubi9"),
    ("runtime", "ubuntu20.04"),
    ("runtime", "ubuntu22.04"),
    ("runtime", "ubuntu24.04"),
    ("runtime", "ubi8"),
    ("runtime", "ubi9"),
    ("devel", "ubuntu20.04"),
    ("devel", "ubuntu22.04"),
    ("devel", "ubuntu24.04"),
    ("devel", "ubi8"),
    ("devel", "ubi9"),
];

/// The lock of the sample's first target, with an image.
pub fn lock(flavor: &str, os: &str) -> Lock {
    let mut lock = Lock::parse(SAMPLE, "gpulock.lock").unwrap();
    lock.targets.truncate(1);
    let ask = BTreeMap::from([("flavor".to_owned(), flavor.to_owned()), ("os".to_owned(), os.to_owned())]);
    let (image, warnings) = choose_image(&lock.targets[0], &ask, &Matrix::embedded()).unwrap();
    assert!(image.base.is_some() && warnings.is_empty(), "{warnings:?}");
    lock.targets[0].image = Some(image);
    lock.targets[0].env.insert("NCCL_DEBUG".into(), "WARN".into());
    lock
}

pub fn text(lock: &Lock) -> Result<String, Failure> {
    render(lock, &lock.targets[0], "gpulock.lock", Template::default())
}

fn with_template(lock: &Lock, template: &str) -> Result<String, Failure> {
    render(lock, &lock.targets[0], "gpulock.lock", Template { name: "mine.j2", text: template })
}

/// Instructions of a Dockerfile, as the reference has them: comment lines are left out, a `\` at the end of a line
/// joins the next one.
fn instructions(text: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut current = String::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let trimmed = line.trim_end();
        if let Some(begun) = trimmed.strip_suffix('\\') {
            current.push_str(begun);
            continue;
        }
        current.push_str(line);
        if !current.trim().is_empty() {
            let (name, rest) = current.trim_start().split_once(' ').unwrap();
            all.push((name.to_owned(), rest.trim_start().to_owned()));
        }
        current.clear();
    }
    assert_eq!(current, "", "the file ends inside an instruction");
    all
}

/// `NAME=VALUE` pairs of ENV and LABEL: split and unquoted as the reference says.
fn pairs(rest: &str) -> Vec<(String, String)> {
    let mut words = vec![String::new()];
    let mut chars = rest.chars();
    let mut quoted = false;
    while let Some(c) = chars.next() {
        let word = words.last_mut().unwrap();
        match c {
            '"' => quoted = !quoted,
            '\\' => match chars.next().unwrap() {
                escaped if !quoted || "\"$\\".contains(escaped) => word.push(escaped),
                other => word.extend(['\\', other]),
            },
            // A variable of the image; only the template's own have one.
            '$' => word.push('\u{1}'),
            ' ' | '\t' if !quoted => words.push(String::new()),
            c => word.push(c),
        }
    }
    assert!(!quoted, "a quote is open: {rest}");
    let pair = |word: &String| word.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())).unwrap();
    words.iter().filter(|word| !word.is_empty()).map(pair).collect()
}

/// Words of a line of shell that has quotes and escapes alone.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                let word = word.get_or_insert_default();
                word.extend(chars.by_ref().take_while(|c| *c != '\''));
            }
            '"' => {
                let word = word.get_or_insert_default();
                while let Some(c) = chars.next().filter(|c| *c != '"') {
                    match c {
                        '\\' => word.push(chars.next().filter(|c| "\\\"$`".contains(*c)).unwrap()),
                        // Would expand; only the template's own may.
                        '$' | '`' => word.push('\u{1}'),
                        c => word.push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next().unwrap()),
            c if c.is_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

pub fn all_pairs(text: &str, instruction: &str) -> BTreeMap<String, String> {
    instructions(text).iter().filter(|(name, _)| name == instruction).flat_map(|(_, rest)| pairs(rest)).collect()
}

#[test]
fn every_flavor_and_system() {
    for (flavor, os) in IMAGES {
        let lock = lock(flavor, os);
        let text = text(&lock).unwrap();
        let all = instructions(&text);
        let image = lock.targets[0].image.as_ref().unwrap();
        let from: Vec<&str> = all.iter().filter(|(name, _)| name == "FROM").map(|(_, rest)| &**rest).collect();
        let base = &image.base.as_ref().unwrap().name;
        match &image.small {
            Some(small) => assert_eq!(
                from,
                [
                    format!("{} AS python", small.name),
                    format!("{base} AS toolkit"),
                    "toolkit AS build".into(),
                    "build AS verify".into(),
                    "python AS runtime".into(),
                    "toolkit AS devel".into()
                ]
            ),
            None => assert_eq!(
                from,
                [
                    format!("{base} AS python"),
                    "python AS build".into(),
                    "build AS verify".into(),
                    "python AS runtime".into()
                ]
            ),
        }
        assert_eq!(text.contains("uv python install"), image.uv.is_some(), "{flavor} {os}");
        assert_eq!(text.contains("NVIDIA_REQUIRE_CUDA to cuda>=12.8"), flavor != "slim");
        assert_eq!(text.contains("TORCH_CUDA_ARCH_LIST=\"12.0\""), flavor == "devel");
        // A link to the interpreter, as uv makes it, would be no home for a virtual environment.
        assert!(text.contains("\"$(readlink -f \"$(command -v python3.11)\")\" -m venv /opt/venv"));
        assert!(!text.contains("cudnn-"), "a second cuDNN: {text}");
        let user = all.iter().rposition(|(name, _)| name == "USER").unwrap();
        assert_eq!(all[user].1, "10001");
        // What runs is copied from the stage that checks it, so no build can leave that out.
        assert!(
            all.iter()
                .filter(|(name, rest)| name == "COPY" && rest.starts_with("--from="))
                .all(|(_, rest)| rest == "--from=verify /opt/venv /opt/venv")
        );
        // On each base that something runs on, with the library path that it sets.
        let library_path = "--set-env \"LD_LIBRARY_PATH=${LD_LIBRARY_PATH}\"";
        let verified: Vec<_> = all.iter().filter(|(_, rest)| rest.contains("./gpulock verify /opt/venv")).collect();
        assert_eq!(verified.len(), if image.small.is_some() { 2 } else { 1 }, "{flavor} {os}");
        assert!(verified.iter().all(|(_, rest)| rest.contains(library_path) && rest.contains(" --integrity ")));
        let labels = all_pairs(&text, "LABEL");
        assert_eq!(labels["gpulock.lock"], lock.digest());
        assert_eq!(labels["gpulock.driver.floor"], "525.60.13");
        assert_eq!(labels.get("gpulock.driver.base").map(String::as_str), (flavor != "slim").then_some("570.26"));
        assert_eq!(labels["org.opencontainers.image.base.name"], *base);
        let env = all_pairs(&text, "ENV");
        assert_eq!((&*env["NVIDIA_VISIBLE_DEVICES"], &*env["NCCL_DEBUG"]), ("all", "WARN"));
        assert!(text.lines().all(|line| line.trim_end() == line) && text.ends_with("CMD [\"python\"]\n"), "{text}");
        assert_eq!(text, super::dockerfile::text(&lock).unwrap());
    }
}

#[test]
fn the_closure_is_installed_with_hashes() {
    let mut lock = lock("slim", "debian12");
    lock.wheels.values_mut().last().unwrap().index = "torch-cu129".into();
    let text = text(&lock).unwrap();
    let run = &instructions(&text).into_iter().find(|(_, rest)| rest.contains("printf")).unwrap().1;
    let words = shell_words(run);
    let from = words.iter().position(|word| word == "%s\\n").unwrap() + 1;
    let to = words.iter().position(|word| word == ">").unwrap();
    let expected = [
        "--extra-index-url https://torch.invalid/whl/cu129".to_owned(),
        format!("filelock==3.20.0 --hash=sha256:{}", "3".repeat(64)),
        format!("torch==2.8.0 --hash=sha256:{}", "4".repeat(64)),
    ];
    assert_eq!(words[from..to], expected);
    assert!(run.contains("--require-hashes") && run.contains("--mount=type=cache,target=/root/.cache/pip"));
}

#[test]
fn digests_stand_beside_tags() {
    let mut lock = lock("base", "ubuntu22.04");
    let digest = format!("sha256:{}", "7".repeat(64));
    let image = lock.targets[0].image.as_mut().unwrap();
    image.base.as_mut().unwrap().digest = Some(digest.clone());
    image.uv.as_mut().unwrap().digest = Some(digest.clone());
    let text = text(&lock).unwrap();
    assert!(text.contains(&format!("FROM nvidia/cuda:12.8.1-base-ubuntu22.04@{digest} AS python\n")));
    assert!(text.contains(&format!("from=ghcr.io/astral-sh/uv:0.13.0@{digest},")));
    assert_eq!(all_pairs(&text, "LABEL")["org.opencontainers.image.base.digest"], digest);
}

#[test]
fn cuda_compat_only_where_it_is_needed() {
    let mut lock = lock("base", "ubuntu22.04");
    for (tier, words) in [
        (Some(Tier::Native), "The lock's\n# driver supports this CUDA natively.\n"),
        (Some(Tier::MinorVersion), "On the\n# lock's driver, which is older than this CUDA, the stack runs without it"),
        (None, "The\n# lock does not count on it.\n"),
    ] {
        lock.targets[0].driver.tier = tier;
        let text = text(&lock).unwrap();
        assert!(text.contains("rm -rf /usr/local/cuda*/compat") && text.contains(words), "{text}");
    }
    lock.targets[0].driver.tier = Some(Tier::Forward);
    let forward = text(&lock).unwrap();
    assert!(!forward.contains("rm -rf /usr/local") && forward.contains("LD_LIBRARY_PATH=\"/usr/local/cuda/compat:"));
    lock.targets[0].image.as_mut().unwrap().flavor = "slim".into();
    refused(text(&lock), Class::No, "image-without-compat", "set `flavor = ");
}

fn refused(result: Result<String, Failure>, class: Class, code: &str, words: &str) {
    let failure = result.unwrap_err();
    assert_eq!((failure.class, failure.diagnostics[0].code), (class, code), "{failure:?}");
    let said = format!("{failure} {:?}", failure.diagnostics[0]);
    assert!(said.contains(words), "{words}: {said}");
}

#[test]
fn what_cannot_be_written_is_refused() {
    let good = lock("slim", "debian12");
    let with = |change: &dyn Fn(&mut Lock)| {
        let mut lock = good.clone();
        change(&mut lock);
        text(&lock)
    };
    let no_image = with(&|lock| lock.targets[0].image = None);
    refused(no_image, Class::No, "image-missing", "add [image]");
    let no_base = with(&|lock| lock.targets[0].image.as_mut().unwrap().base = None);
    refused(no_base, Class::No, "image-missing", "flavor slim on debian12");
    for value in ["a\nRUN x", "a\r", "\u{1}", "\u{1b}[0m"] {
        let value = with(&|lock| drop(lock.targets[0].env.insert("A".into(), value.into())));
        refused(
            value,
            Class::No,
            "env-value",
            "a Dockerfile cannot hold A of [env]: it has a line feed or another control character",
        );
    }
    let edge = Lock::parse(SAMPLE, "gpulock.lock").unwrap();
    let pending = render(&edge, &edge.targets[1], "gpulock.lock", Template::default());
    refused(pending, Class::No, "pending-artefact", "a Dockerfile needs the hash of every package");
    // A lock that was made by code, and that no file could hold.
    let name = with(&|lock| drop(lock.targets[0].env.insert("A B".into(), "x".into())));
    refused(name, Class::Unanswerable, "template-invalid", "is not the name of an environment variable");
    let base = Reference { name: "debian:12\nRUN x".into(), digest: None };
    let base = with(&|lock| lock.targets[0].image.as_mut().unwrap().base = Some(base.clone()));
    refused(base, Class::Unanswerable, "template-invalid", "is not the name of an image");
    let file = render(&good, &good.targets[0], "a b.lock", Template::default());
    refused(file, Class::Unanswerable, "usage", "rename the lock");
}

#[test]
fn a_template_of_ones_own() {
    let lock = lock("devel", "ubuntu22.04");
    let whole =
        with_template(&lock, "FROM {{ image.base.at | reference }}\nENV A={{ target.name | quote }}\n").unwrap();
    assert!(whole.starts_with("# Written by `gpulock dockerfile`"));
    assert!(whole.ends_with("FROM nvidia/cuda:12.8.1-devel-ubuntu22.04\nENV A=\"cluster\"\n"), "{whole}");
    let extended = "{% extends \"Dockerfile\" %}{% block extensions %}\nCOPY ext /src/ext\nRUN pip install /src/ext\n{% endblock %}";
    let extended = with_template(&lock, extended).unwrap();
    let names = |text: &str| instructions(text).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let (plain, more) = (names(&text(&lock).unwrap()), names(&extended));
    assert_eq!(more.len(), plain.len() + 2);
    assert!(extended.find("RUN pip install /src/ext") < extended.find("FROM build AS verify"));
    let directive = with_template(&lock, "# syntax=docker/dockerfile:1\n# check=skip=all\nFROM scratch\n").unwrap();
    assert!(directive.starts_with("# syntax=docker/dockerfile:1\n# check=skip=all\n# Written by"), "{directive}");
    let bad = |template: &str, words: &str| {
        refused(with_template(&lock, template), Class::Unanswerable, "template-invalid", words);
    };
    bad("# escape=`\nFROM scratch\n", "escape");
    bad("FROM x\n{{ nonsense }}\n", "mine.j2:2");
    bad("FROM x\n{% if %}\n", "mine.j2:2");
    bad("{% extends 'other' %}", "other");
    bad("{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}", "fuel");
    bad("{{ 'a\\nb' | quote }}", "line feed");
}

#[test]
fn drift_is_told_apart() {
    let lock = lock("slim", "debian12");
    let new = text(&lock).unwrap();
    let says = |old: &str, message: &str, fact: &str| {
        let problem = drift("Dockerfile", old, &new, "gpulock dockerfile -o Dockerfile").unwrap();
        assert!(problem.code == "file-stale" && problem.message.contains(message), "{problem:?}");
        assert!(format!("{:?}", problem.evidence).contains(fact), "{problem:?}");
    };
    assert_eq!(drift("Dockerfile", &new, &new, "gpulock"), None);
    let mut other = lock.clone();
    other.targets[0].env.insert("A".into(), "1".into());
    says(&text(&other).unwrap(), "was written for another lock", &other.digest());
    says(&with_template(&lock, "FROM scratch\n").unwrap(), "by another template", "sha256:");
    says(&new.replace("USER 10001", "USER root"), "was changed since", "USER root");
    says(&new.replace("CMD [\"python\"]\n", ""), "it ends early", "CMD");
    says("FROM scratch\n", "was not written by gpulock", "no header");
}

/// Text with everything that means something to a Dockerfile, a shell or a template.
fn odd() -> impl Strategy<Value = String> {
    let parts = vec![
        "a",
        "\"",
        "\\",
        "$",
        "`",
        "'",
        " ",
        "#",
        "\t",
        "${PATH}",
        "$(id)",
        "<<EOF",
        "é",
        "=",
        "\\n",
        ";",
        "&&",
        "|",
        "{{ 7 }}",
        "{% raw %}",
        "--",
        "RUN x",
        ",",
        "*",
        "[",
        "@",
        "%s",
    ];
    vec(select(parts), 0..6).prop_map(|parts| parts.concat())
}

fn word() -> impl Strategy<Value = String> {
    odd().prop_map(|text| format!("x{}", text.replace([' ', '\t'], "")))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_value_changes_the_structure(
        (flavor, os) in select(IMAGES.to_vec()),
        values in vec(odd(), 1..4),
        (name, variant, gpu, url) in (word(), word(), odd(), word()),
        control in any::<bool>(),
    ) {
        let plain = lock(flavor, os);
        let mut lock = plain.clone();
        let target = &mut lock.targets[0];
        let names = ["A", "NCCL_DEBUG", "Z_1"];
        target.env = names.into_iter().map(str::to_owned).zip(values).collect();
        target.name = name.clone();
        target.variant = variant.clone();
        // Only comments show it.
        target.gpus[0].name = if control { format!("{gpu}\nRUN x\r\u{85}\u{2028}") } else { gpu };
        for wheel in lock.wheels.values_mut() {
            wheel.url = Some(format!("https://files.invalid/{url}"));
        }
        let text = text(&lock).map_err(|failure| TestCaseError::fail(failure.to_string()))?;
        let shape = |text: &str| instructions(text).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let expected = super::dockerfile::text(&plain).unwrap();
        // A variable more or less is part of one instruction.
        prop_assert_eq!(shape(&text), shape(&expected), "{}", text);
        let env = all_pairs(&text, "ENV");
        for (name, value) in &lock.targets[0].env {
            prop_assert_eq!(&env[name], value, "{}", text);
        }
        let labels = all_pairs(&text, "LABEL");
        prop_assert_eq!(&labels["gpulock.target"], &name);
        prop_assert_eq!(&labels["gpulock.torch"], &format!("2.8.0+{variant}"));
        let runs: Vec<Vec<String>> =
            instructions(&text).iter().filter(|(name, _)| name == "RUN").map(|(_, rest)| shell_words(rest)).collect();
        let set = lock.targets[0].env.iter().flat_map(|(name, value)| ["--set-env".into(), format!("{name}={value}")]);
        let expected: Vec<String> = std::iter::once(name.clone()).chain(set).collect();
        for verify in runs.iter().filter(|words| words.contains(&"./gpulock".to_owned())) {
            let target = verify.iter().position(|word| word == "--target").unwrap();
            prop_assert_eq!(&verify[target + 1..], &expected[..]);
        }
        prop_assert!(runs.iter().any(|words| words.contains(&"./gpulock".to_owned())));
        let url = format!("https://files.invalid/{url}");
        prop_assert!(runs.iter().flatten().any(|word| names_torch(word, &url)), "{}", text);
    }
}

#[test]
fn a_real_shell_reads_the_words() {
    let mut lock = lock("slim", "debian12");
    let url = "https://files.invalid/a'b\"c$(id)`id`\\;&&|<<EOF";
    lock.wheels.values_mut().for_each(|wheel| wheel.url = Some(url.into()));
    let text = text(&lock).unwrap();
    let run = instructions(&text).into_iter().find(|(_, rest)| rest.contains("printf")).unwrap().1;
    let printf = &run[run.find("printf").unwrap()..run.find(" > /opt").unwrap()];
    let printed = Command::new("/bin/sh").args(["-c", printf]).output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), 2);
    assert!(names_torch(lines[1], url), "{printed}");
}

#[test]
fn the_template_names_what_it_offers() {
    for filter in ["quote", "shell", "reference", "variable", "word", "comment"] {
        assert!(TEMPLATE.contains(&format!("\n  {filter} ")), "{filter}");
    }
    let image = Image { os: "x".into(), flavor: "slim".into(), base: None, uv: None, small: None, requires: None };
    assert_eq!(image.references().count(), 0);
}
