//! Refused manifests: each row is a text, the line and column that are pointed at, and words of what is said.

use gpulock::diag::{Class, Evidence, Failure};
use gpulock::manifest::{parse, parse_pyproject};
use gpulock::report::human::{Style, failure};

/// A good target, for texts that are about something else.
const TARGET: &str = "[target.a]\ngpus = ['A100']\n";

fn refuse(text: &str) -> Failure {
    match parse(text, "gpulock.toml") {
        Err(failure) => failure,
        Ok(_) => panic!("accepted:\n{text}"),
    }
}

/// Asserts that exactly one thing is wrong, at `place`, and that what is said holds all `words`.
fn one(text: &str, code: &str, place: (usize, usize), words: &[&str]) {
    let refused = refuse(text);
    let shown = failure(&refused, Style::default());
    if std::env::var_os("SHOW").is_some() {
        println!("{shown}");
    }
    assert_eq!(refused.class, Class::Unanswerable);
    assert_eq!(refused.diagnostics.len(), 1, "{shown}");
    assert_eq!(refused.diagnostics[0].code, code, "{shown}");
    match &refused.diagnostics[0].evidence[0] {
        Evidence::Span { line, column, .. } => assert_eq!((*line, *column), place, "{shown}"),
        other => panic!("{other:?}"),
    }
    let flat = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    words.iter().for_each(|word| assert!(flat.contains(word), "`{word}` is not in\n{shown}"));
}

#[test]
fn broken_toml() {
    one("[stack\ntorch = '2'\n", "broken-toml", (1, 7), &["gpulock.toml is not valid TOML", "expected `]`"]);
    one("[stack]\ntorch = >=2.7\n", "broken-toml", (2, 10), &["write `torch = \">=2.7\"`"]);
    one("[target.a]\ndriver = 570.124.06\n", "broken-toml", (2, 17), &["write `driver = \"570.124.06\"`"]);
    one("[target.a]\n[target.a]\n", "duplicate-key", (2, 9), &["`a` is defined twice", "rename"]);
    one("[stack]\ncuda = '12'\ncuda = '13'\n", "duplicate-key", (3, 1), &["`cuda` is defined twice"]);
}

#[test]
fn a_mistyped_key_is_not_missing_besides() {
    let with = |text: &str| format!("{text}\n{TARGET}");
    let rule = "[checks]\nduplicate-soname = ";
    one(&with(&format!("{rule}{{ levle = 'error' }}")), "unknown-key", (2, 22), &["did you mean `level`?"]);
    one(&with(&format!("{rule}{{ level = 'off', raeson = 'x' }}")), "unknown-key", (2, 37), &["`reason`?"]);
    one("[target.a]\ngpu = ['A100']\n", "unknown-key", (2, 1), &["did you mean `gpus`?"]);
    one("[targets.a]\ngpus = ['A100']\n", "unknown-key", (1, 2), &["did you mean `target`?"]);
    one(
        &with("[[index]]\nname = 'x'\nurl = 'https://x.invalid'\npackage = ['a']"),
        "unknown-key",
        (4, 1),
        &["did you mean `packages`?"],
    );
}

#[test]
fn unknown_keys() {
    let with = |text: &str| format!("{text}\n{TARGET}");
    one(&with("[stack]\ntourch = '2'"), "unknown-key", (2, 1), &["`tourch` in [stack]", "did you mean `torch`?"]);
    one(&with("[stcak]\ntorch = '2'"), "unknown-key", (1, 2), &["did you mean `stack`?"]);
    one(&with("torch = '2'"), "unknown-key", (1, 1), &["`torch` belongs in [stack]"]);
    one(&with("[stack]\ngpus = ['A100']"), "unknown-key", (2, 1), &["belongs in [target.NAME]"]);
    one(&with("[stack]\nnumpy = '2'"), "unknown-key", (2, 1), &["belong in [packages]"]);
    one(&with("[stack]\nzzz = '2'"), "unknown-key", (2, 1), &["known keys: python, torch,"]);
    one("[target.a]\ngpu = ['A100']\ngpus = ['A100']\n", "unknown-key", (2, 1), &["did you mean `gpus`?"]);
    one(&with("[checks]\nduplicate-sonames = 'error'"), "unknown-key", (2, 1), &["did you mean `duplicate-soname`?"]);
    one(&with("[checks]\nduplicate-sonames = 'off'"), "unknown-key", (2, 1), &["did you mean `duplicate-soname`?"]);
    one(&with("[image]\nflavour = 'base'"), "unknown-key", (2, 1), &["did you mean `flavor`?"]);
    one(
        &with("[packages]\nnumpy = { version = '1', extra = [] }"),
        "unknown-key",
        (2, 26),
        &["did you mean `extras`?"],
    );
}

#[test]
fn wrong_types_show_the_right_form() {
    let with = |text: &str| format!("{text}\n{TARGET}");
    one(
        &with("[stack]\npython = 3.11"),
        "wrong-type",
        (2, 10),
        &["must be a string, not a float", "`python = \"3.11\"`"],
    );
    one(&with("[stack]\ncuda = 12.8"), "wrong-type", (2, 8), &["`cuda = \"12.8\"`"]);
    one(&with("[stack]\nsame-torch = 'yes'"), "wrong-type", (2, 14), &["true or false"]);
    one(&with("stack = 1"), "wrong-type", (1, 9), &["must be a table, not an integer", "[stack]"]);
    one(&with("[index]\nname = 'x'"), "wrong-type", (1, 1), &["array of tables", "[[index]]"]);
    one(&with("[packages]\nnumpy = 2"), "wrong-type", (2, 9), &["`numpy = \"2\"`"]);
    one("[target.a]\ngpus = 'A100'\n", "wrong-type", (2, 8), &["`gpus = [\"A100\"]`"]);
    one("[target.a]\ngpus = [9.0]\n", "wrong-type", (2, 9), &["`\"9.0\"`"]);
    one("target = 'A100'\n", "wrong-type", (1, 10), &["must be a table"]);
    one(&with("[env]\nOMP_NUM_THREADS = 4"), "wrong-type", (2, 19), &["`OMP_NUM_THREADS = \"4\"`"]);
}

#[test]
fn bad_values() {
    let with = |text: &str| format!("{text}\n{TARGET}");
    let target = |line: &str| format!("{TARGET}{line}\n");
    one(
        &target("driver = 'abc'"),
        "invalid-value",
        (3, 10),
        &["`driver` in [target.a]", "`abc` is not a driver", "nvidia-smi"],
    );
    one(&target("driver = ''"), "invalid-value", (3, 10), &["is empty"]);
    one(&target("platform = 'windows'"), "invalid-value", (3, 12), &["unknown platform `windows`", "linux-x86_64"]);
    one(&target("platform = 'linux-x86-64'"), "invalid-value", (3, 12), &["write `linux-x86_64`"]);
    one(&target("glibc = 'new'"), "invalid-value", (3, 9), &["ldd --version"]);
    one(&with("[stack]\ntorch = 'new'"), "invalid-value", (2, 9), &["not a version specifier (PEP 440)"]);
    one(&with("[stack]\ncuda = '>=13,<12'"), "contradictory-bounds", (2, 8), &["`>=13,<12` contradicts itself"]);
    one(&with("[stack]\ntorch = '>=2.9,<2.7'"), "contradictory-bounds", (2, 9), &["contradicts itself"]);
    one(&with("[stack]\nvariant = '12.8'"), "invalid-value", (2, 11), &["`cu128`"]);
    one(&with("[image]\nflavor = 'runtmie'"), "invalid-value", (2, 10), &["did you mean `runtime`?"]);
    one(&with("[packages]\n'a b' = '1'"), "invalid-value", (2, 1), &["not a Python package name"]);
    one(&with("[packages]\na = { version = 'x' }"), "invalid-value", (2, 17), &["`version` in `a` of [packages]"]);
    one("[target.'a b']\ngpus = ['A100']\n", "invalid-value", (1, 9), &["target `a b`", "not a name"]);
    one("[target.a]\ngpus = ['']\n", "invalid-value", (2, 9), &["is empty"]);
    one(&with("[env]\n'A-B' = ''"), "invalid-value", (2, 1), &["not the name of an environment variable"]);
}

#[test]
fn machines_must_be_named() {
    one("", "no-target", (1, 1), &["no [target.NAME]", "[target.cluster]"]);
    one("[stack]\ntorch = '2'\n", "no-target", (1, 1), &["[target.cluster]"]);
    one("[target]\n", "no-target", (1, 1), &["is empty"]);
    one("[target]\ngpus = ['A100']\n", "misplaced-key", (2, 1), &["write [target.NAME] above"]);
    one("[target.a]\ngpus = []\n", "no-gpu", (2, 8), &["`gpus` in [target.a] is empty", "nvidia-smi -L"]);
    one("[target.a]\ndriver = '570'\n", "no-gpu", (1, 1), &["target `a` names no GPUs"]);
}

#[test]
fn indexes_are_whole_and_apart() {
    let with = |text: &str| format!("{TARGET}{text}\n");
    one(&with("[[index]]\nurl = 'https://x.invalid'\npackages = ['a']"), "missing-key", (3, 1), &["without `name`"]);
    one(&with("[[index]]\nname = 'x'\npackages = ['a']"), "missing-key", (3, 1), &["without `url`"]);
    one(&with("[[index]]\nname = 'x'\nurl = 'https://x.invalid'"), "missing-key", (3, 1), &["names no packages"]);
    one(&with("[[index]]\nname = 'x'\nurl = 'x.invalid'\npackages = ['a']"), "invalid-value", (5, 7), &["https://"]);
    let index = |name: &str, package: &str| {
        format!("[[index]]\nname = '{name}'\nurl = 'https://x.invalid'\npackages = ['{package}']\n")
    };
    one(&with(&format!("{}{}", index("x", "a"), index("x", "b"))), "duplicate-key", (8, 8), &["two indexes are named"]);
    one(&with(&format!("{}{}", index("x", "a"), index("y", "A"))), "duplicate-key", (10, 12), &["`x` and from `y`"]);
}

#[test]
fn credentials_are_not_repeated() {
    let text = format!("{TARGET}[[index]]\nname = 'x'\nurl = 'ftp://me:secret@x.invalid'\npackages = ['a']\n");
    let shown = failure(&refuse(&text), Style::default());
    assert!(shown.contains("x.invalid") && !shown.contains("secret"), "{shown}");
}

#[test]
fn packages_stand_once_and_in_their_table() {
    let with = |text: &str| format!("{text}\n{TARGET}");
    one(&with("[packages]\na-b = '1'\nA_b = '2'"), "duplicate-key", (3, 1), &["`a-b` stands twice"]);
    one(&with("[packages]\ntorch = '2'"), "misplaced-key", (2, 1), &["part of the stack"]);
}

#[test]
fn exceptions_need_a_reason() {
    let with = |text: &str| format!("{text}\n{TARGET}");
    let rule = "[checks]\nduplicate-soname = ";
    one(&with(&format!("{rule}'off'")), "missing-reason", (2, 20), &["without a reason", "reason = \"..\""]);
    one(&with(&format!("{rule}{{ level = 'note', reason = ' ' }}")), "missing-reason", (2, 20), &["set to note"]);
    one(&with(&format!("{rule}'warn'")), "invalid-value", (2, 20), &["did you mean `warning`?"]);
    one(&with(&format!("{rule}{{ reason = 'x' }}")), "missing-key", (2, 20), &["no `level`"]);
}

#[test]
fn all_problems_are_told_at_once_in_order() {
    let text = "[stack]\npython = 3.11\ntourch = '2'\ncuda = '>=13,<12'\n[target.a]\ngpus = []\ndriver = 'abc'\n";
    let lines: Vec<usize> = refuse(text)
        .diagnostics
        .iter()
        .map(|problem| match &problem.evidence[0] {
            Evidence::Span { line, .. } => *line,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(lines, [2, 3, 4, 6, 7]);
}

#[test]
fn pyproject_names_its_own_tables() {
    let said = |text: &str| failure(&parse_pyproject(text, "pyproject.toml").unwrap_err(), Style::default());
    assert!(said("[tool.gpulock]\ntorch = '2'\n").contains("`torch` belongs in [tool.gpulock.stack]"));
    assert!(said("[tool]\ngpulock = 1\n").contains("must be a table"));
    assert!(said("[tool.gpulock.stack]\n").contains("[tool.gpulock.target.cluster]"));
}

#[test]
fn no_text_is_too_odd() {
    for text in
        ["\0", "\u{feff}", "[", "=", "[[target]]\n", "target = []", "[target.a.b.c]", "\u{1b}[2J = 1", "a.b.c.d = 1"]
    {
        let _ = failure(&refuse(text), Style::default());
    }
}
