//! What an image of Apptainer says of itself in `/.singularity.d`: takes a root, gives the variables that a container of
//! it is started with, its labels and its program.
//!
//! Apptainer sources the scripts in `env` in the order of their names. What a Docker image sets lies in
//! `10-docker2singularity.sh` as `export NAME="${NAME:-"VALUE"}"`, what a definition file sets in `90-environment.sh`
//! (github.com/apptainer/apptainer, `internal/pkg/build/sources/conveyorPacker_oci.go`). No shell is run here:
//! assignments are read, and what else a script does is said to be not known.

mod words;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::Root;
use crate::dockerfile::is_variable;
use words::Words;

/// Larger files are not what their name says, in bytes.
const LIMIT: u64 = 1 << 20;
/// Values of variables within values, of all lines together, in bytes: as much as the largest script that is read.
const MOST_VALUES: usize = 1 << 20;
const FOLDER: &str = "/.singularity.d";
/// Scripts of Apptainer's own, which set nothing that matters here: `99-base.sh` adds the folder that the driver is
/// mounted into.
const OWN: [&[u8]; 4] = [b"01-", b"94-", b"95-", b"99-"];
/// How a line begins that leads to others: what they do depends on more than the line.
const COMPOUND: [&str; 10] = ["if", "for", "while", "until", "case", "{", "(", "function", "!", "[["];
/// Commands that set no variable.
const HARMLESS: [&str; 8] = ["set", "umask", ":", "true", "ulimit", "echo", "test", "["];

/// What an image of Apptainer says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// The variables that a container is started with.
    pub(super) variables: BTreeMap<String, String>,
    /// Its labels.
    pub(super) labels: BTreeMap<String, String>,
    /// The entry point and the command of the image that it was built from.
    pub(super) command: Vec<String>,
    /// Lines of scripts that were not understood, each behind the name of its file.
    pub(super) unread: Vec<(String, String)>,
}

/// Whether a root filesystem is that of an image of Apptainer.
pub(super) fn is_there(root: &Root) -> bool {
    root.is_folder(Path::new(FOLDER))
}

/// Reads `/.singularity.d`; says nothing where there is none.
pub(super) fn read(root: &Root) -> Said {
    let mut said = Said::default();
    let folder = Path::new(FOLDER).join("env");
    let mut left = MOST_VALUES;
    for name in root.list(&folder).iter().filter(|name| name.as_bytes().ends_with(b".sh")) {
        if !OWN.iter().any(|own| name.as_bytes().starts_with(own)) {
            said.script(&text(root, &folder.join(name)), name, &mut left);
        }
    }
    let labels = text(root, &Path::new(FOLDER).join("labels.json"));
    said.labels = serde_json::from_str(&labels).unwrap_or_default();
    let run = text(root, &Path::new(FOLDER).join("runscript"));
    for name in ["OCI_ENTRYPOINT=", "OCI_CMD="] {
        // One word for the shell, which holds words.
        let set = run.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        let inner = Words::new(set, &BTreeMap::new(), &mut left).all().unwrap_or_default().concat();
        said.command.extend(Words::new(&inner, &BTreeMap::new(), &mut left).all().unwrap_or_default());
    }
    said
}

fn text(root: &Root, path: &Path) -> String {
    String::from_utf8_lossy(&root.read(path, LIMIT).unwrap_or_default()).into_owned()
}

impl Said {
    /// Reads the assignments of a script, up to what depends on more than its line.
    fn script(&mut self, text: &str, name: &OsStr, left: &mut usize) {
        for line in text.lines().map(str::trim) {
            let first = line.split_whitespace().next().unwrap_or_default();
            if line.is_empty() || line.starts_with('#') || HARMLESS.contains(&first) {
                continue;
            }
            let assigned = self.assign(line, left);
            if assigned.is_none() {
                self.unread.push((name.to_string_lossy().into_owned(), line.to_owned()));
            }
            // A quotation that goes on, too.
            let opens = |quote: char| line.matches(quote).count() % 2 == 1;
            let goes_on = line.ends_with(['\\', '{', '(']) || opens('"') || opens('\'');
            if assigned.is_none() && goes_on || COMPOUND.contains(&first) {
                break;
            }
        }
    }

    /// Takes `NAME=WORD`, `export NAME=WORD`, `export NAME` and `unset NAME`; `None` for any other line, whose variables
    /// are not known then.
    fn assign(&mut self, line: &str, left: &mut usize) -> Option<()> {
        let (first, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
        if first == "unset" {
            for name in rest.split_whitespace() {
                self.variables.remove(name);
            }
            return Some(());
        }
        let exports = first == "export";
        let words = Words::new(if exports { rest } else { line }, &self.variables, left).all();
        let Some(words) = words else {
            if let Some((name, _)) = if exports { rest } else { line }.split_once('=') {
                self.variables.remove(name.trim());
            }
            return None;
        };
        for word in words {
            match word.split_once('=') {
                Some((name, value)) if is_variable(name) => {
                    self.variables.insert(name.to_owned(), value.to_owned());
                }
                None if exports && is_variable(&word) => {}
                _ => return None,
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_assignments() {
        let mut said = Said::default();
        let script = r##"#!/bin/sh
export PATH="/usr/bin:/bin"
export A="${A:-"a b"}"
export B="${B:-"x\"y"}"   # a comment
C='single $A'; export C
D=$A:${B}
export E="$E:/e" F=f
export G="${G:-}"
export H="$(uname)"
. /opt/setup.sh
set -e
export UNSET=1
unset UNSET
"##;
        said.script(script, OsStr::new("10-docker2singularity.sh"), &mut { MOST_VALUES });
        let variables: Vec<(&str, &str)> = said.variables.iter().map(|(name, value)| (&**name, &**value)).collect();
        let expected = [
            ("A", "a b"),
            ("B", "x\"y"),
            ("C", "single $A"),
            ("D", "a b:x\"y"),
            ("E", ":/e"),
            ("F", "f"),
            ("G", ""),
            ("PATH", "/usr/bin:/bin"),
        ];
        assert_eq!(variables, expected);
        let lines: Vec<&str> = said.unread.iter().map(|(_, line)| &**line).collect();
        assert_eq!(lines, ["export H=\"$(uname)\"", ". /opt/setup.sh"]);
    }

    #[test]
    fn what_comes_behind_a_condition_is_not_known() {
        let mut said = Said::default();
        said.script("A=1\nif true; then\n  A=2\nfi\nB=3\n", OsStr::new("90-environment.sh"), &mut { MOST_VALUES });
        assert_eq!(said.variables, BTreeMap::from([("A".into(), "1".into())]));
        assert_eq!(said.unread, [("90-environment.sh".into(), "if true; then".into())]);
    }

    #[test]
    fn values_that_grow_without_end() {
        for doubled in ["A=$A$A", "A=${A}${A}", "export A=\"${B:-$A$A}\""] {
            let mut said = Said::default();
            let script = format!("A=0123456789\n{}C=1\n", format!("{doubled}\n").repeat(18));
            said.script(&script, OsStr::new("90-environment.sh"), &mut { MOST_VALUES });
            assert!(said.unread.iter().any(|(_, line)| line == doubled), "{doubled}");
            assert!(said.variables.values().map(String::len).sum::<usize>() <= MOST_VALUES, "{doubled}");
            assert_eq!(said.variables.get("C").map(String::as_str), Some("1"), "{doubled}");
        }
    }
}
