//! Files that start jobs: no name or value changes their structure, and what they do on a machine.

mod apptainer;
mod ci;
mod guard;
mod slurm;

use std::io::Write as _;
use std::process::{Command, Stdio};

use gpulock::diag::{Class, Failure};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

pub use super::files::{lock, with};
pub use super::values::format;

/// Text with everything that means something to a shell, to Python, YAML, a definition file or GitHub's expressions.
pub fn odd() -> impl Strategy<Value = String> {
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
        "\\u0041",
        ";",
        "&&",
        "|",
        "{",
        "{{ A }}",
        "}}",
        "${{ github.token }}",
        "${{ '${{' }}",
        "{% raw %}",
        "--",
        "%post",
        "%s",
        ": ",
        "- ",
        "*",
        "[",
        "@",
        "!",
        "!!python",
        "\u{1f600}",
        "\u{2028}",
        "\u{85}",
        "\"\"\"",
        "None",
    ];
    vec(select(parts), 0..6).prop_map(|parts| parts.concat())
}

/// The same with lines.
pub fn odd_lines() -> impl Strategy<Value = String> {
    (odd(), select(vec!["", "\n", "\n%post\n", "\r\n", "\n#SBATCH --x\n", "\u{1b}"]), odd())
        .prop_map(|(one, between, other)| format!("{one}{between}{other}"))
}

/// What a program prints for `input`; it must end well.
pub fn run(program: &str, arguments: &[&str], input: &str) -> String {
    let mut child = Command::new(program)
        .args(arguments)
        .env_remove("GPULOCK_GUARD")
        .env_remove("LD_LIBRARY_PATH")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}\n{input}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub fn refused(result: Result<String, Failure>, class: Class, code: &str, words: &str) {
    let failure = result.unwrap_err();
    assert_eq!((failure.class, failure.diagnostics[0].code), (class, code), "{failure:?}");
    let said = format!("{failure} {:?}", failure.diagnostics[0]);
    assert!(said.contains(words), "{words}: {said}");
}
