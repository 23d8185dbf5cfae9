//! Whatever names and values hold, the structure of a file stays: it is parsed back and compared.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use gpulock::diag::Class;
use gpulock::lock::Lock;
use gpulock::render::generated::{self, Origin};
use gpulock::render::{FILES, FileFormat, Options};
use jsonschema::Validator;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use super::files::{lock, options, with};
use super::names_torch;

/// As check-jsonschema 0.39.0 (PyPI) has it, from https://github.com/compose-spec/compose-go, schema/compose-spec.json.
const COMPOSE: &str = include_str!("compose-spec.json");
/// https://github.com/devcontainers/spec, schemas/devContainer.base.schema.json at c95ffee.
const DEVCONTAINER: &str = include_str!("devcontainer.json");

pub fn format(name: &str) -> &'static FileFormat {
    FILES.iter().find(|format| format.name == name).unwrap()
}

pub fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// JSON with lines of comment.
pub fn jsonc(text: &str) -> Value {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    serde_json::from_str(&lines.join("\n")).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// What Compose reads: `$$` is `$`, and any other `$` would be a variable.
fn interpolated(text: &str) -> String {
    let mut read = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        assert!(c != '$' || chars.next() == Some('$'), "a variable in {text}");
        read.push(c);
    }
    read
}

/// What Kubernetes reads, of variables that are not set: third_party/forked/golang/expansion/expand.go.
fn expanded(text: &str) -> String {
    let mut read = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match chars.peek() {
            Some('$') if c == '$' => drop(chars.next()),
            Some('(') if c == '$' => panic!("a variable in {text}"),
            _ => {}
        }
        read.push(c);
    }
    read
}

fn object(value: &Value, read: impl Fn(&str) -> String) -> BTreeMap<String, String> {
    value.as_object().unwrap().iter().map(|(name, value)| (name.clone(), read(value.as_str().unwrap()))).collect()
}

fn words(value: &Value, read: impl Fn(&str) -> String) -> Vec<String> {
    value.as_array().map_or_else(Vec::new, |words| words.iter().map(|word| read(word.as_str().unwrap())).collect())
}

/// The variables of a lock and those that formats add.
fn variables(lock: &Lock) -> BTreeMap<String, String> {
    let mut all = lock.targets[0].env.clone();
    all.entry("NVIDIA_DRIVER_CAPABILITIES".into()).or_insert("compute,utility".into());
    all.entry("NVIDIA_REQUIRE_DRIVER".into()).or_insert("driver>=525.60.13".into());
    all
}

/// All keys of a value, in their nesting, without those of `environment` and its like.
fn shape(value: &Value) -> Value {
    const FREE: [&str; 7] = ["environment", "containerEnv", "env", "command", "args", "pip", "variables"];
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), if FREE.contains(&&**key) { Value::Null } else { shape(value) }))
            .collect(),
        Value::Array(values) => values.iter().map(shape).collect(),
        Value::String(_) => json!("text"),
        other => other.clone(),
    }
}

fn parsed(format: &FileFormat, text: &str) -> Value {
    if format.name == "devcontainer" { jsonc(text) } else { yaml(text) }
}

fn valid(format: &FileFormat, value: &Value) {
    static COMPOSE_FILES: LazyLock<Validator> =
        LazyLock::new(|| jsonschema::draft202012::new(&serde_json::from_str(COMPOSE).unwrap()).unwrap());
    static DEVCONTAINERS: LazyLock<Validator> =
        LazyLock::new(|| jsonschema::draft201909::new(&serde_json::from_str(DEVCONTAINER).unwrap()).unwrap());
    let validator = match format.name {
        "compose" => &COMPOSE_FILES,
        "devcontainer" => &DEVCONTAINERS,
        _ => return,
    };
    let wrong: Vec<String> =
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{value:#}");
}

#[test]
fn published_schemas_are_kept_to() {
    for name in ["compose", "devcontainer"] {
        let format = format(name);
        let mut lock = lock();
        for platform in ["linux-x86_64", "linux-aarch64"] {
            lock.targets[0].platform = platform.parse().unwrap();
            let four = Options { gpus: std::num::NonZeroU32::new(4), command: vec!["a".into()], ..options() };
            for options in [Options::default(), options(), four] {
                valid(format, &parsed(format, &with(format, &lock, options).unwrap()));
            }
        }
        lock.targets[0].env.clear();
        lock.targets[0].driver = gpulock::lock::DriverSupport::default();
        let value = parsed(format, &with(format, &lock, options()).unwrap());
        valid(format, &value);
        // The schemas do judge.
        let mut wrong = value;
        let spoilt = wrong.pointer_mut("/services/cluster/platform").map(|platform| *platform = json!(["x"]));
        if spoilt.is_none() {
            wrong["hostRequirements"]["gpu"] = json!("sometimes");
        }
        assert!(std::panic::catch_unwind(|| valid(format, &wrong)).is_err());
    }
}

#[test]
fn what_a_format_cannot_hold_is_refused() {
    let refused = |name: &str, value: &str, why: &str| {
        let mut lock = lock();
        lock.targets[0].env.insert("A".into(), value.into());
        let failure = with(format(name), &lock, options()).unwrap_err();
        assert_eq!((failure.class, failure.diagnostics[0].code), (Class::No, "env-value"), "{failure:?}");
        assert!(failure.to_string().starts_with(&format!("{name} cannot hold A of [env]: ")), "{failure}");
        assert!(failure.to_string().contains(why) && failure.diagnostics[0].fix.is_some(), "{failure}");
    };
    refused("env", "a\nb", "a line is a variable");
    refused("env", " a", "a blank");
    refused("env", "'a'", "a quote");
    refused("env", "$HOME", "`$`");
    refused("env", "a #b", "`#`");
    for sign in ["'", "\"", "$A", "`id`", "\\", "\n", "\u{85}", "\t"] {
        refused("conda", &format!("a{sign}b"), "a sign that some shell takes for its own");
    }
    let mut low = lock();
    low.targets[0].env.insert("http_proxy".into(), "http://a.invalid".into());
    let failure = with(format("conda"), &low, options()).unwrap_err();
    assert!(failure.to_string().starts_with("conda cannot hold http_proxy of [env]: "), "{failure}");
    assert!(with(format("compose"), &low, options()).is_ok());
    for format in FILES {
        refused(format.name, "a\0b", "it has a NUL");
    }
    for name in ["localEnv:HOME", "containerEnv:PATH:x", "devcontainerId", "env", "localWorkspaceFolder"] {
        refused("devcontainer", &format!("a${{{name}}}"), "no escape");
    }
    for (name, value) in [("devcontainer", "${PATH} ${localEnv $x ${}"), ("env", "a\"b' {x}\\ é=`=\t1"), ("env", "")] {
        let mut lock = lock();
        lock.targets[0].env.insert("A".into(), value.into());
        assert!(with(format(name), &lock, options()).is_ok() != value.contains('\t'), "{value}");
    }
}

/// Text with everything that means something to YAML, JSON, a shell, Compose, Kubernetes or a template.
fn odd() -> impl Strategy<Value = String> {
    let parts = vec![
        "a",
        "\"",
        "\\",
        "$",
        "$$",
        "`",
        "'",
        " ",
        "#",
        " #",
        "\t",
        "\n",
        "\r\n",
        "${PATH}",
        "$(id)",
        "$(A)",
        "é",
        "=",
        ": ",
        "- ",
        "-",
        "!",
        "!!str",
        "&a",
        "*a",
        "|",
        ">",
        "%",
        "@",
        "{{ 7 }}",
        "{% raw %}",
        "{",
        "}",
        "[",
        "]",
        ",",
        "?",
        "yes",
        "no",
        "null",
        "~",
        "1e3",
        "0x1",
        "1:30",
        "---",
        "...",
        "//",
        "/*",
        "\u{85}",
        "\u{2028}",
        "\u{7f}",
        "\u{feff}",
        "\u{fffe}",
        "\u{ffff}",
        "😀",
        "\u{1}",
        "\u{1b}",
        "${localEnv:HOME}",
    ];
    vec(select(parts), 0..6).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_value_changes_the_structure(
        values in vec(odd(), 1..5),
        command in vec(odd(), 0..3),
        (name, variant, gpu, url) in (odd(), odd(), odd(), odd()),
        taken in select(vec!["null", "NVIDIA_REQUIRE_DRIVER", "NVIDIA_DRIVER_CAPABILITIES", "TORCH_CUDA_ARCH_LIST"]),
    ) {
        let plain = lock();
        let mut lock = plain.clone();
        let target = &mut lock.targets[0];
        let names = ["A", "NCCL_DEBUG", "Z_1", taken];
        target.env = names.into_iter().map(str::to_owned).zip(values).collect();
        // Names of targets have no blanks in a lock, and a letter of one's own to begin with here.
        target.name = format!("x{}", name.replace(|c: char| c.is_whitespace() || c.is_control(), ""));
        target.variant = variant.clone();
        target.gpus[0].name = gpu;
        for wheel in lock.wheels.values_mut() {
            wheel.url = Some(format!("https://files.invalid/{url}"));
        }
        let options = Options { command: command.clone(), ..options() };
        let label = |name: &str| {
            let sign = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
            name.chars().map(sign).take(63).collect::<String>().trim_matches('-').to_owned()
        };
        let (name, label) = (lock.targets[0].name.clone(), label(&lock.targets[0].name));
        let render = |name: &str| {
            let format = format(name);
            let text = with(format, &lock, options.clone()).map_err(|failure| TestCaseError::fail(failure.to_string()))?;
            Ok::<_, TestCaseError>(parsed(format, &text))
        };
        let plain = |name: &str| {
            let options = Options { command: command.clone(), ..options.clone() };
            parsed(format(name), &with(format(name), &plain, options).unwrap())
        };
        let env = variables(&lock);
        for format in FILES {
            let Ok(text) = with(format, &lock, options.clone()) else { continue };
            let origin = Origin { lock: &lock, with_images: &lock, lock_name: "gpulock.lock", templates: &[], place: "" };
            prop_assert_eq!(generated::judge("f", &text, &origin), None, "{}", text);
        }

        let compose = render("compose")?;
        valid(format("compose"), &compose);
        let service = &compose["services"][&label];
        prop_assert_eq!(shape(service), shape(&plain("compose")["services"]["cluster"]));
        prop_assert_eq!(object(&service["environment"], interpolated), env.clone());
        prop_assert_eq!(words(&service["command"], interpolated), command.clone());
        prop_assert_eq!(interpolated(service["labels"]["gpulock.target"].as_str().unwrap()), name.clone());

        let job = render("k8s")?;
        prop_assert_eq!(shape(&job), shape(&plain("k8s")));
        let container = &job["spec"]["template"]["spec"]["containers"][0];
        let seen = container["env"].as_array().unwrap().iter().map(|variable| {
            (variable["name"].as_str().unwrap().to_owned(), expanded(variable["value"].as_str().unwrap()))
        });
        prop_assert_eq!(seen.collect::<BTreeMap<_, _>>(), env.clone());
        prop_assert_eq!(container["env"].as_array().unwrap().len(), env.len());
        prop_assert_eq!(words(&container["args"], expanded), command.clone());
        prop_assert_eq!(job["metadata"]["name"].as_str(), Some(&*label));
        prop_assert_eq!(job["metadata"]["annotations"]["gpulock.target"].as_str(), Some(&*name));
        prop_assert_eq!(job["metadata"]["annotations"]["gpulock.torch"].as_str(), Some(&*format!("2.8.0+{variant}")));

        let url = format!("https://files.invalid/{url}");
        match with(format("conda"), &lock, options.clone()) {
            Ok(text) => {
                let conda = yaml(&text);
                prop_assert_eq!(shape(&conda), shape(&plain("conda")));
                let pip = conda["dependencies"].as_array().unwrap().last().unwrap()["pip"].as_array().unwrap().clone();
                prop_assert!(names_torch(pip[1].as_str().unwrap(), &url), "{}", text);
                prop_assert_eq!(&object(&conda["variables"], str::to_owned), &lock.targets[0].env);
            }
            Err(failure) => prop_assert_eq!(failure.diagnostics[0].code, "env-value"),
        }

        match with(format("devcontainer"), &lock, options.clone()) {
            Ok(text) => {
                let value = jsonc(&text);
                valid(format("devcontainer"), &value);
                prop_assert_eq!(shape(&value), shape(&plain("devcontainer")));
                prop_assert_eq!(object(&value["containerEnv"], str::to_owned), env);
            }
            Err(failure) => {
                prop_assert_eq!(failure.diagnostics[0].code, "env-value");
                prop_assert!(lock.targets[0].env.values().any(|value| value.contains("${localEnv:")), "{failure}");
            }
        }

        match with(format("env"), &lock, options) {
            Ok(text) => {
                // As `docker run --env-file` reads it: a line is a variable, up to its end.
                let lines = text.split('\n').filter(|line| !line.starts_with('#') && !line.is_empty());
                let seen: BTreeMap<_, _> =
                    lines.map(|line| line.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap()).collect();
                let mut expected = lock.targets[0].env.clone();
                expected.entry("TORCH_CUDA_ARCH_LIST".into()).or_insert("12.0".into());
                prop_assert_eq!(seen, expected);
            }
            Err(failure) => prop_assert_eq!(failure.diagnostics[0].code, "env-value"),
        }
    }
}
