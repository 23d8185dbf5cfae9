//! DESIGN section 7: a module imports only from rows above it, named crates stay in named modules, and only a few
//! places touch files, network and processes.
//!
//! Reads the source as tokens, without comments, literals and `#[cfg(test)]` items, and looks at every path in it.

use std::fs;
use std::path::Path;

/// Rows of modules, the lowest first.
const LAYERS: &[&[&str]] = &[
    &["version", "diag"],
    &["python", "file", "dockerfile", "digest", "child"],
    &["manifest", "matrix", "elf"],
    &["resolve", "registry", "inventory"],
    &["lock", "link"],
    &["render", "check", "refresh"],
    &["report"],
    &["cli"],
];

/// Crates, and the only modules that may use them.
const CONFINED: &[(&str, &[&str])] = &[
    ("semver", &["version"]),
    ("pep440_rs", &["version"]),
    ("pep508_rs", &["python"]),
    ("toml_edit", &["manifest", "matrix", "lock"]),
    ("pubgrub", &["resolve"]),
    ("reqwest", &["registry"]),
    ("goblin", &["elf"]),
    ("backhand", &["inventory"]),
    ("tar", &["inventory"]),
    ("flate2", &["inventory", "matrix"]),
    ("zstd", &["inventory"]),
    ("roxmltree", &["inventory"]),
    ("minijinja", &["render"]),
    ("clap", &["cli"]),
    ("clap_complete", &["cli"]),
    ("clap_mangen", &["cli"]),
    ("indicatif", &["cli"]),
    ("walkdir", &["cli"]),
    ("signal_hook", &["cli"]),
    ("rustix", &["cli", "inventory"]),
];

/// Modules that may touch the outside; of `matrix` only one file.
const OUTSIDE: &[&str] = &["file.rs", "child.rs", "registry", "inventory", "cli", "matrix/load.rs"];
/// Parts of `std` that touch the outside.
const OUTSIDE_STD: &[&str] = &["fs", "net", "process"];
/// Methods of `Path` that do so without naming one of these.
const OUTSIDE_METHODS: &[&str] =
    &["exists", "try_exists", "is_file", "is_dir", "is_symlink", "read_dir", "read_link", "canonicalize"];

#[test]
fn modules_keep_to_their_layer() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    find(&source, "", &mut files);
    assert!(files.len() > 50, "{} files is not the whole source", files.len());
    let found: Vec<String> =
        files.iter().flat_map(|file| violations(file, &fs::read_to_string(source.join(file)).unwrap())).collect();
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn planted_violations_are_found() {
    let clean = "
        //! See crate::cli and reqwest::Client.
        use crate::{diag::{Diagnostic, Failure}, version::Cuda};
        use super::package::Package; /* crate::cli */
        use std::{collections::BTreeMap, fmt};
        fn f() { let text = \"crate::cli::main() /* \\\" */\"; let c = '\"'; let r = r#\"std::fs\"#; let fs = 1; }
        fn g<'a>(pubgrub: &'a str, semver: u8) -> &'a str { if semver > 0 { pubgrub } else { self.reqwest } }
        #[cfg(test)]
        mod tests { use crate::cli::main; fn read() { std::fs::read(\"}\"); } }
    ";
    assert_eq!(violations("matrix/gpu.rs", clean), [""; 0]);
    let finds = |file: &str, text: &str, what: &str| {
        let found = violations(file, text);
        assert!(found.len() == 1 && found[0].contains(what), "{file}: {text}: {found:?}");
    };
    finds("matrix/gpu.rs", "use crate::resolve::Context;", "`resolve`");
    finds("matrix/gpu.rs", "use crate::{diag::Failure, lock::Lock};", "`lock`");
    finds("matrix/gpu.rs", "fn f() { crate::cli::main() }", "`cli`");
    finds("matrix/gpu.rs", "use super::super::registry::Client;", "`registry`");
    finds("matrix/mod.rs", "use super::manifest::Manifest;", "`manifest`");
    finds("matrix/gpu.rs", "use crate as c;", "crate itself");
    finds("manifest/a.rs", "// one\nuse\n  crate::matrix::Matrix;", "manifest/a.rs:3");
    finds("render/a.rs", "#[cfg(test)] use crate::cli::A; use crate::report::B;", "`report`");
    finds("resolve/a.rs", "fn f() -> reqwest::Result<()> {}", "`reqwest`");
    finds("python/a.rs", "use semver::Version;", "`semver`");
    finds("report/a.rs", "use {clap::Parser, std::fmt};", "`clap`");
    finds("report/a.rs", "use ::minijinja::Environment;", "`minijinja`");
    finds("report/a.rs", "use toml_edit as t;", "`toml_edit`");
    finds("lock/write.rs", "use std::{fmt, fs::{self, File}};", "std::fs");
    finds("matrix/gpu.rs", "fn f() { std::fs::read(\"a\"); }", "std::fs");
    finds("resolve/a.rs", "fn f(p: &Path) -> bool { p.exists() }", "`.exists()`");
    finds("brand_new/a.rs", "", "no layer");
    finds("main.rs", "use gpulock::resolve::Context;", "`resolve`");
    assert_eq!(violations("matrix/load.rs", "use std::fs;"), [""; 0]);
    assert_eq!(violations("cli/a.rs", "use crate::report::human; use clap::Parser; use std::fs;"), [""; 0]);
}

/// Source files below a folder, as paths from `src`.
fn find(folder: &Path, below: &str, files: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{below}{}", entry.file_name().to_str().unwrap());
        if entry.path().is_dir() {
            find(&entry.path(), &format!("{name}/"), files);
        } else if name.ends_with(".rs") {
            files.push(name);
        }
    }
}

/// What is wrong with a file, which is named by its path below `src`.
fn violations(file: &str, text: &str) -> Vec<String> {
    let mut modules: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
    if modules.last() == Some(&"mod") {
        modules.pop();
    }
    // The roots of library and program have no row: one lists the modules, the other calls the command line.
    let own = if file == "lib.rs" || file == "main.rs" { "" } else { modules[0] };
    let row = |module: &str| LAYERS.iter().position(|row| row.contains(&module));
    if row(own).is_none() && !own.is_empty() {
        return vec![format!("{file}: module `{own}` has no layer")];
    }
    let tokens = without_tests(tokens(text));
    let mut found = Vec::new();
    let mut violation = |line: usize, what: String| found.push(format!("{file}:{line}: {what}"));
    let inside = !own.is_empty() && !OUTSIDE.iter().any(|place| *place == own || *place == file);
    for (path, line) in paths(&tokens) {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        match path[0] {
            "crate" | "gpulock" if path.len() == 1 => violation(line, "imports the crate itself".into()),
            "crate" | "gpulock" | "super" => {
                let Some(module) = named(&path, &modules).filter(|module| *module != own) else { continue };
                let allowed = match file {
                    "lib.rs" => true,
                    "main.rs" => module == "cli",
                    _ => row(module) < row(own),
                };
                if !allowed {
                    violation(line, format!("`{module}` is not in a row above it"));
                }
            }
            "std" if inside => {
                if path.get(1).is_some_and(|part| OUTSIDE_STD.contains(part)) {
                    violation(line, format!("std::{} where nothing may touch the outside", path[1]));
                }
            }
            name => {
                if let Some((_, places)) = CONFINED.iter().find(|(confined, _)| *confined == name)
                    && !places.contains(&own)
                {
                    violation(line, format!("only {} may use `{name}`", places.join(", ")));
                }
            }
        }
    }
    for [dot, method, call] in tokens.array_windows().filter(|_| inside) {
        if dot.text == "." && call.text == "(" && OUTSIDE_METHODS.contains(&method.text.as_str()) {
            violation(method.line, format!("`.{}()` where nothing may touch the outside", method.text));
        }
    }
    // A group may name the same thing twice.
    found.dedup();
    found
}

/// The top-level module that a path names, from inside `modules`; `None` when it stays below the first.
fn named<'p>(path: &[&'p str], modules: &[&'p str]) -> Option<&'p str> {
    if path[0] != "super" {
        return path.get(1).copied();
    }
    let up = path.iter().take_while(|part| **part == "super").count();
    (up >= modules.len()).then(|| path.get(up).copied()).flatten()
}

#[derive(Debug, Clone)]
struct Token {
    text: String,
    line: usize,
}

/// Words, `::` and single signs; no comments, and literals as an empty word.
fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let (mut i, mut line) = (0, 1);
    while i < chars.len() {
        let (start, first) = (i, at(i));
        let mut literal = false;
        if first == '/' && at(i + 1) == '/' {
            while i < chars.len() && at(i) != '\n' {
                i += 1;
            }
        } else if first == '/' && at(i + 1) == '*' {
            let mut depth = 0;
            loop {
                match (at(i), at(i + 1)) {
                    ('/', '*') => (depth, i) = (depth + 1, i + 2),
                    ('*', '/') => (depth, i) = (depth - 1, i + 2),
                    _ => i += 1,
                }
                if depth == 0 || i >= chars.len() {
                    break;
                }
            }
        } else if word(first) {
            while word(at(i)) {
                i += 1;
            }
            let prefix: String = chars[start..i].iter().collect();
            let hashes = (i..).take_while(|j| at(*j) == '#').count();
            if ["r", "br", "cr"].contains(&prefix.as_str()) && at(i + hashes) == '"' {
                i += hashes + 1;
                while i < chars.len() && !(at(i) == '"' && (1..=hashes).all(|j| at(i + j) == '#')) {
                    i += 1;
                }
                i += hashes + 1;
                literal = true;
            } else {
                tokens.push(Token { text: prefix, line });
            }
        } else if first == '"' || first == '\'' && (at(i + 1) == '\\' || at(i + 2) == '\'') {
            i += 1;
            while i < chars.len() && at(i) != first {
                i += if at(i) == '\\' { 2 } else { 1 };
            }
            i += 1;
            literal = true;
        } else if first == ':' && at(i + 1) == ':' {
            i += 2;
            tokens.push(Token { text: "::".into(), line });
        } else {
            i += 1;
            if !first.is_whitespace() {
                tokens.push(Token { text: first.into(), line });
            }
        }
        if literal {
            tokens.push(Token { text: String::new(), line });
        }
        line += chars[start..i.min(chars.len())].iter().filter(|c| **c == '\n').count();
    }
    tokens
}

/// Without the items that `#[cfg(test)]` stands before.
fn without_tests(tokens: Vec<Token>) -> Vec<Token> {
    const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        let is_test = tokens[i..].iter().zip(TEST).filter(|(token, text)| token.text == *text).count() == TEST.len();
        if !is_test {
            kept.push(tokens[i].clone());
            i += 1;
            continue;
        }
        let mut depth = 0;
        i += TEST.len();
        while i < tokens.len() {
            let text = tokens[i].text.as_str();
            i += 1;
            match text {
                "{" => depth += 1,
                "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 && (text == "}" || text == ";") {
                break;
            }
        }
    }
    kept
}

/// Every path with more than one part and every imported one, groups taken apart, with its line.
fn paths(tokens: &[Token]) -> Vec<(Vec<String>, usize)> {
    let mut paths = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        let before = i.checked_sub(1).map_or("", |j| tokens[j].text.as_str());
        let imported = before == "use";
        let next = tokens.get(i + 1).map_or("", |token| token.text.as_str());
        let starts = is_word(&tokens[i].text) && tokens[i].text != "use" && next == "::" && before != ".";
        if starts || imported {
            i = tree(tokens, i, &[], &mut paths).max(i + 1);
        } else {
            i += 1;
        }
    }
    paths
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Reads one path or group from `i` on, below `prefix`; gives where it ends.
fn tree(tokens: &[Token], mut i: usize, prefix: &[String], paths: &mut Vec<(Vec<String>, usize)>) -> usize {
    let text = |i: usize| tokens.get(i).map_or("", |token: &Token| token.text.as_str());
    let mut path = prefix.to_vec();
    let line = tokens.get(i).map_or(0, |token| token.line);
    if text(i) == "::" {
        i += 1;
    }
    loop {
        if is_word(text(i)) {
            path.push(text(i).to_owned());
            i += 1;
        } else if text(i) == "{" {
            i += 1;
            while i < tokens.len() && text(i) != "}" {
                let end = tree(tokens, i, &path, paths).max(i + 1);
                i = end;
                // `as name` and the comma.
                while i < tokens.len() && !matches!(text(i), "," | "}") {
                    i += 1;
                }
                if text(i) == "," {
                    i += 1;
                }
            }
            return i + 1;
        } else {
            break;
        }
        if text(i) != "::" {
            break;
        }
        i += 1;
    }
    if !path.is_empty() {
        paths.push((path, line));
    }
    i
}
