//! The README's transcripts, run as they stand.
//!
//! In a `console` block, lines that begin with `$ ` are commands, the others what they print on both outputs; `[..]`
//! stands for any text in a line. `<!-- folder -->` begins in an empty
//! folder, `<!-- file: NAME -->` stands before a block that is the text of that file, and `<!-- machine: NAME -->` makes
//! a folder that is laid out as a machine with faults. `SNAPSHOTS=overwrite` writes what
//! was printed into the README.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use snapbox::IntoData;

use super::program::Place;
use crate::machine::tree::Machine;

#[test]
fn transcripts_are_true() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(&file).unwrap();
    let mut place = Place::empty();
    let mut printed = String::new();
    let mut name = None;
    let mut lines = readme.lines();
    while let Some(line) = lines.next() {
        printed += &format!("{line}\n");
        if line == "<!-- folder -->" {
            place = Place::empty();
        }
        if let Some(folder) = line.strip_prefix("<!-- machine: ").and_then(|rest| rest.strip_suffix(" -->")) {
            Machine::of_readme(place.path(folder));
        }
        if let Some(file) = line.strip_prefix("<!-- file: ") {
            name = file.strip_suffix(" -->");
        }
        let Some(language) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let block: String = block.iter().map(|line| format!("{line}\n")).collect();
        match (language, name.take()) {
            ("console", _) => printed += &transcript(&block, &place),
            (_, Some(name)) => {
                place.put(name, &block);
                printed += &block;
            }
            _ => printed += &block,
        }
        printed += "```\n";
    }
    if std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite") {
        fs::write(file, printed).unwrap();
    }
}

#[test]
fn the_first_two_code_lines_are_cargo() {
    let readme = include_str!("../../../README.md");
    let block = readme.split("```").nth(1).unwrap();
    let code: Vec<&str> = block.lines().skip(1).collect();
    assert!(code[0].starts_with("cargo run --release -- resolve --offline") && code[1] == "cargo test", "{code:?}");
}

/// Runs the commands of a block; gives it with what they print.
fn transcript(block: &str, place: &Place) -> String {
    let mut steps: Vec<(&str, String)> = Vec::new();
    for line in block.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push((command, String::new())),
            (None, Some((_, expected))) => *expected += &format!("{line}\n"),
            (None, None) => panic!("a transcript begins with `$ `, not with `{line}`"),
        }
    }
    let mut code = 0;
    let mut text = String::new();
    for (command, expected) in &steps {
        let (printed, ended) = run(command, code, place);
        code = ended;
        let overwrite = std::env::var_os("SNAPSHOTS").is_some_and(|value| value == "overwrite");
        let same = snapbox::Assert::new().normalize_paths(false).try_eq(
            Some(command),
            printed.clone().into_data(),
            expected.into_data(),
        );
        text += &format!("$ {command}\n");
        match same {
            Ok(()) => text += expected,
            Err(_) if overwrite => text += &printed,
            Err(difference) => panic!("{difference}\nSNAPSHOTS=overwrite writes what is printed into the README"),
        }
    }
    text
}

/// Runs a line of shell with `gpulock` on its path, after a command that ended with `code`.
fn run(line: &str, code: i32, place: &Place) -> (String, i32) {
    let binary = Path::new(env!("CARGO_BIN_EXE_gpulock"));
    let path = format!("{}:/usr/bin:/bin", binary.parent().unwrap().display());
    let mut command = place.shell(&format!("exec 2>&1; (exit {code}); {line}"));
    let output = command.env("PATH", path).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (text, output.status.code().unwrap())
}
