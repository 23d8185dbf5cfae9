//! Accepted manifests.

use gpulock::manifest::{Level, Manifest, PythonAsk, parse, parse_pyproject, render};
use gpulock::python::Platform;

/// Every table and every form of value.
const WHOLE: &str = r#"
[stack]
python = "3.11"
torch = ">=2.7,<2.9"
torchvision = "*"
same-torch = true
cuda = "12"
cudnn = ">=9.1"
nccl = "2.27"
variant = "cu128"

[packages]
numpy = "<3"
Typing_Extensions = { version = "4", extras = [] }
accelerate = { extras = ["test"] }

[target.cluster]
platform = "linux-x86_64"
glibc = "2.31"
gpus = ["RTX 5090", "A100", "sm_90"]
driver = "550.54.15"
forward-compat = false

[target.edge]
platform = "linux-aarch64"
gpus = ["GH200"]
driver = ">=570"

[[index]]
name = "torch-cu126"
url = "https://user:secret@index.invalid/whl/cu126"
packages = ["torch", "torchvision"]

[image]
os = "ubuntu22.04"
flavor = "runtime"

[env]
NCCL_DEBUG = "WARN"
EMPTY = ""

[checks]
duplicate-soname = { level = "warning", reason = "two copies, same bytes" }
glibc-too-new = "error"
"#;

fn whole() -> Manifest {
    parse(WHOLE, "gpulock.toml").expect("the manifest is good")
}

#[test]
fn everything_is_read() {
    let manifest = whole();
    assert_eq!(manifest.stack.python, Some(PythonAsk::Exact("3.11".parse().unwrap())));
    assert!(manifest.stack.same_torch);
    let asks: Vec<String> =
        manifest.packages.iter().map(|ask| format!("{} {} {:?}", ask.package, ask.specifiers, ask.extras)).collect();
    assert_eq!(asks, ["numpy <3 []", "typing-extensions ==4.* []", "accelerate  [test]"]);
    let names: Vec<&str> = manifest.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["cluster", "edge"]);
    assert_eq!(manifest.targets[0].gpus, ["RTX 5090", "A100", "sm_90"]);
    assert_eq!(manifest.targets[1].platform, Platform::LinuxAarch64);
    assert_eq!(manifest.indexes[0].packages.len(), 2);
    assert_eq!(manifest.image["os"], "ubuntu22.04");
    assert_eq!(manifest.env["EMPTY"], "");
    assert_eq!(manifest.checks["duplicate-soname"].level, Level::Warning);
}

#[test]
fn places_are_known_for_later_errors() {
    let manifest = whole();
    for path in ["stack.torch", "packages.numpy", "target.cluster", "target.cluster.driver", "target.cluster.gpus.A100"]
    {
        assert!(manifest.place(path).is_some(), "{path}");
    }
    assert!(manifest.place("stack.torchaudio").is_none());
}

#[test]
fn what_is_written_is_read_back() {
    let manifest = whole();
    let written = render(&manifest);
    let again = parse(&written, "gpulock.toml").unwrap_or_else(|failure| panic!("{failure}\n{written}"));
    assert_eq!(again.normalised(), manifest.normalised());
    assert_eq!(again.checks, manifest.checks);
    assert!(!written.contains("secret"));
}

#[test]
fn the_normal_form_sees_meaning_only() {
    let normal = |text: &str| parse(text, "gpulock.toml").expect("good").normalised();
    let plain = "[stack]\ntorch = '>=2.7,<2.9'\n[packages]\na = '1'\nb = '2'\n[target.a]\ngpus = ['A100']\n";
    let same = "# comment\n[target.a]\ngpus = [ \"A100\" ] \nplatform = 'linux-x86_64'\nforward-compat = false\n\
                [packages]\nB = '==2.*'\na = '1'\n[stack]\nsame-torch = false\ntorch = \"<2.9, >=2.7\"\n";
    assert_eq!(normal(plain), normal(same));
    assert!(!whole().normalised().contains("secret"));
    for (from, to) in [("2.9", "2.8"), ("A100", "H100"), ("b = '2'", "b = '3'"), ("target.a", "target.c")] {
        assert_ne!(normal(plain), normal(&plain.replace(from, to)), "{from}");
    }
}

#[test]
fn pyproject_has_the_same_tables() {
    let inside: String = WHOLE.lines().fold(String::from("[project]\nname = 'x'\n"), |mut text, line| {
        let line = match line.strip_prefix("[[").or(line.strip_prefix("[")) {
            Some(rest) => format!("{}tool.gpulock.{rest}", &line[..line.len() - rest.len()]),
            None => line.to_owned(),
        };
        text.push_str(&line);
        text.push('\n');
        text
    });
    let manifest = parse_pyproject(&inside, "pyproject.toml").unwrap().expect("the table is there");
    assert_eq!(manifest.normalised(), whole().normalised());
    assert!(parse_pyproject("[project]\nname = 'x'\n[tool.other]\n", "pyproject.toml").unwrap().is_none());
}

#[test]
fn dotted_and_inline_tables_are_tables() {
    let text = "stack.torch = '2.8'\ntarget.a = { gpus = ['A100'], driver = '580' }\nindex = [{ name = 'x', url = \
                'https://index.invalid/simple', packages = ['torch'] }]\n";
    let manifest = parse(text, "gpulock.toml").expect("good");
    assert_eq!((manifest.targets.len(), manifest.indexes.len()), (1, 1));
}
