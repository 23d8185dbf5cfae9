//! Edits of `pyproject.toml` keep what the user wrote.

use std::collections::BTreeMap;

use gpulock::manifest::pyproject::{UvPins, pin};

fn pins(index: Option<&str>) -> UvPins {
    let name = |text: &str| text.parse().unwrap();
    UvPins {
        dependencies: BTreeMap::from([
            (name("torch"), "torch".into()),
            (name("accelerate"), "accelerate[test]".into()),
        ]),
        constraints: BTreeMap::from([
            (name("torch"), "2.8.0".parse().unwrap()),
            (name("sympy"), "1.14.0".parse().unwrap()),
        ]),
        sources: BTreeMap::from([(name("torch"), index.map(str::to_owned)), (name("sympy"), None)]),
        indexes: BTreeMap::from([
            ("pypi".to_owned(), "https://pypi.invalid/simple".to_owned()),
            ("torch-cu126".to_owned(), "https://torch.invalid/cu126".to_owned()),
        ]),
        environment: "sys_platform == 'linux'".into(),
        requires_python: "==3.11.*".into(),
    }
}

/// The text after the edit, which must not change when edited again.
fn edited(text: &str, index: Option<&str>) -> String {
    let once = pin(text, "pyproject.toml", "My_Project", &pins(index)).unwrap();
    let twice = pin(&once, "pyproject.toml", "My_Project", &pins(index)).unwrap();
    assert_eq!(once, twice, "not the same when written again");
    once
}

#[test]
fn a_project_is_begun() {
    let expected = r#"[project]
name = "my-project"
version = "0.1.0"
requires-python = "==3.11.*"
dependencies = [
    "accelerate[test]",
    "torch",
]

[tool.uv]
environments = [
    # Locked by gpulock; `gpulock export uv` writes all below anew.
    "sys_platform == 'linux'",
]
constraint-dependencies = [
    # Locked by gpulock; `gpulock export uv` writes all below anew.
    "sympy==1.14.0",
    "torch==2.8.0",
]
"#;
    assert_eq!(edited("", None), expected);
}

#[test]
fn comments_order_and_the_users_own_entries_stay() {
    let text = r#"# top
[project]
name = "x" # name
requires-python = ">=3.10"
dependencies = [
    # the framework
    "Torch>=2",  # why
    "rich" # last, no comma
]

[tool.ruff]
line-length = 100

[tool.uv]
environments = ["sys_platform == 'darwin'"]
constraint-dependencies = [
    "idna<4", # mine
]

[tool.uv.sources]
Torch = { index = "mine" } # old
rich = { path = "../rich" }

[[tool.uv.index]]
name = "torch-cu126"
url = "https://old.invalid"
"#;
    let expected = r#"# top
[project]
name = "x" # name
requires-python = ">=3.10"
dependencies = [
    # the framework
    "Torch>=2",  # why
    "rich", # last, no comma
    "accelerate[test]",
]

[tool.ruff]
line-length = 100

[tool.uv]
environments = ["sys_platform == 'darwin'"]
constraint-dependencies = [
    "idna<4", # mine
    # Locked by gpulock; `gpulock export uv` writes all below anew.
    "sympy==1.14.0",
    "torch==2.8.0",
]

[tool.uv.sources]
Torch = { index = "torch-cu126" }
rich = { path = "../rich" }

[[tool.uv.index]]
name = "torch-cu126"
url = "https://torch.invalid/cu126"
"#;
    assert_eq!(edited(text, Some("torch-cu126")), expected);
}

#[test]
fn another_lock_takes_away_what_the_first_wrote() {
    let first = edited("", Some("torch-cu126"));
    assert!(first.contains("torch = { index = \"torch-cu126\" }") && first.contains("explicit = true"));
    let second = edited(&first, None);
    assert!(!second.contains("torch = { index"), "{second}");
    let mut fewer = pins(None);
    fewer.constraints.pop_first();
    let third = pin(&second, "pyproject.toml", "x", &fewer).unwrap();
    assert!(!third.contains("sympy==") && third.contains("torch==2.8.0"), "{third}");
}

#[test]
fn one_line_arrays_stay_on_one_line() {
    let text =
        "[project]\nname = 'x'\nversion = '1'\nrequires-python = '>=3.9'\ndependencies = [\"torch\", \"rich\"]\n";
    assert!(edited(text, None).contains("dependencies = [\"torch\", \"rich\", \"accelerate[test]\"]\n"));
}

#[test]
fn inline_tables_are_edited_too() {
    let text = "project = { name = 'x', version = '1' }\ntool = { uv = { index = [{ name = 'a', url = 'b' }] } }\n";
    let text = edited(text, Some("torch-cu126"));
    let document: toml_edit::DocumentMut = text.parse().expect("TOML");
    assert_eq!(document["tool"]["uv"]["index"].as_array().unwrap().len(), 2);
    assert_eq!(document["tool"]["uv"]["sources"]["torch"]["index"].as_str(), Some("torch-cu126"));
}

#[test]
fn dynamic_dependencies_are_left_to_their_maker() {
    let text = "[project]\nname = 'x'\ndynamic = ['version', 'dependencies']\n";
    assert!(!edited(text, None).contains("dependencies = [\"torch"));
}

#[test]
fn what_cannot_be_edited_is_said() {
    let said = |text: &str| pin(text, "pyproject.toml", "x", &pins(None)).unwrap_err().to_string();
    assert!(said("[tool.poetry]\nname = 'x'\n").contains("Poetry"));
    assert!(said("project = 1\n").contains("[project] in pyproject.toml must be a table"));
    assert!(said("[project]\ndependencies = 'torch'\n").contains("must be an array"));
    assert!(said("[tool.uv]\nsources = 1\n[project]\nname = 'x'\n").contains("[tool.uv.sources]"));
    assert!(said("[project\n").contains("not valid TOML"));
}
