//! The syntax of a Dockerfile: instructions and the shell words in them, each with its place in the text.
//!
//! <https://docs.docker.com/reference/dockerfile/>; what that leaves open is as BuildKit does it.

mod instructions;
mod variables;
mod words;

use std::collections::BTreeMap;
use std::ops::Range;

pub use instructions::instructions;
pub(crate) use variables::filled_in;
pub use variables::is_variable;
pub use words::commands;

/// One instruction.
#[derive(Debug, Clone)]
pub struct Instruction {
    /// Its keyword, in capitals; for ONBUILD that of the instruction which it holds.
    pub keyword: String,
    /// Where its arguments stand, in bytes.
    pub body: Range<usize>,
    /// The character that continues a line.
    pub escape: char,
}

impl Instruction {
    /// A text that is the arguments of a RUN.
    pub fn run(text: &str) -> Self {
        Self { keyword: "RUN".into(), body: 0..text.len(), escape: '\\' }
    }
}

/// A word of an instruction, variables filled in, and where it stands.
#[derive(Debug, Clone)]
pub struct Word {
    /// The word.
    pub text: String,
    /// Where it stands, in bytes; quotes belong to it.
    pub span: Range<usize>,
}

/// Variables that a Dockerfile sets, as `$NAME` or `${NAME}` stands for them.
pub type Variables = BTreeMap<String, String>;

/// The name of an image without its tag and digest, the tag and the digest.
pub fn image_parts(image: &str) -> (&str, Option<&str>, Option<&str>) {
    let (image, digest) = image.split_once('@').map_or((image, None), |(image, digest)| (image, Some(digest)));
    match image.rsplit_once(':') {
        // A colon before a slash is that of a port.
        Some((path, tag)) if !tag.contains('/') => (path, Some(tag), digest),
        _ => (image, None, digest),
    }
}

/// Options of `pip install` with a value that says nothing about what is installed from where.
pub const PIP_VALUED: [&str; 18] = [
    "-t",
    "--target",
    "--prefix",
    "--root",
    "--python",
    "-p",
    "--timeout",
    "--retries",
    "--proxy",
    "--cert",
    "--trusted-host",
    "--cache-dir",
    "--progress-bar",
    "--no-binary",
    "--only-binary",
    "--platform",
    "--upgrade-strategy",
    "--root-user-action",
];

/// Where the arguments of `pip install` begin in a command, of whatever pip: `uv pip install`, `/opt/venv/bin/pip3 install`,
/// `pip --no-cache-dir install`.
pub fn pip_install(words: &[Word]) -> Option<usize> {
    let is_pip = |word: &Word| word.text.rsplit('/').next().unwrap_or_default().starts_with("pip");
    let after = |pip: usize| {
        let mut at = pip + 1;
        while let Some(option) = words.get(at).filter(|word| word.text.starts_with('-')) {
            at += if PIP_VALUED.contains(&option.text.as_str()) { 2 } else { 1 };
        }
        words.get(at).is_some_and(|word| word.text == "install").then_some(at + 1)
    };
    (0..words.len()).filter(|at| is_pip(&words[*at])).find_map(after)
}

/// The character that continues a line: `\`, or what the directive `# escape=` at the beginning of the file says.
fn escape(text: &str) -> char {
    let mut directives = text.lines().map_while(directive);
    match directives.find(|(name, _)| name.eq_ignore_ascii_case("escape")) {
        Some((_, "`")) => '`',
        _ => '\\',
    }
}

/// Name and value of `# name=value`.
fn directive(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.trim().strip_prefix('#')?.split_once('=')?;
    let name = name.trim();
    (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric())).then_some((name, value.trim()))
}
