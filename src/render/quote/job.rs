//! Values in what starts jobs: scripts of bash, definition files of Apptainer, workflows of GitHub Actions.

use minijinja::Error;

use super::{dockerfile, only, reference, refused};
use crate::dockerfile::image_parts;

/// One word of a script of bash; it may have lines.
pub(super) fn bash(text: &str) -> Result<String, Error> {
    match nul_refuses(text) {
        Some(why) => Err(refused(format!("{text:?} is no word of a shell: {why}"))),
        None => Ok(dockerfile::shell_word(text)),
    }
}

/// Why no variable can have a value.
pub(in crate::render) fn nul_refuses(text: &str) -> Option<&'static str> {
    text.contains('\0').then_some("it has a NUL, where a variable ends")
}

/// Why a variable cannot be set by a script of bash.
///
/// Source: Bash Reference Manual, "Bash Variables": what is said to be readonly there.
pub(in crate::render) fn bash_refuses(name: &str, _: &str) -> Option<&'static str> {
    const READONLY: [&str; 6] = ["BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"];
    READONLY.contains(&name).then_some("bash has it for its own and lets no script set it")
}

/// Why a container of Kubernetes may not set a variable: the device plugin sets it for the GPUs that it gives, and what the
/// container sets itself would stand instead.
///
/// Source: https://github.com/NVIDIA/k8s-device-plugin, README ("NVIDIA_VISIBLE_DEVICES", `DEVICE_LIST_STRATEGY`).
pub(in crate::render) fn k8s_refuses(name: &str, _: &str) -> Option<&'static str> {
    (name == "NVIDIA_VISIBLE_DEVICES").then_some("the device plugin sets it, for the GPUs that it gives the container")
}

/// Why a variable cannot be set by a definition file. A shell reads its environment: one of those that keep names read-only
/// (https://github.com/mvdan/sh, interp/api.go, which Apptainer has).
pub(in crate::render) fn definition_refuses(name: &str, value: &str) -> Option<&'static str> {
    let own = if name == "GID" { Some("the shell of Apptainer has it for its own") } else { bash_refuses(name, value) };
    own.or_else(|| {
        (!dockerfile::fits(value))
            .then_some("it has a line feed or another control character, and a line could begin a section")
    })
}

/// One word of a script in a definition file. A line that begins with `%` begins a section there, so it has one line; and
/// `{{ NAME }}` is a build argument wherever it stands, so no two braces stand side by side.
///
/// Source: https://github.com/apptainer/apptainer, pkg/build/types/parser/deffile.go and internal/pkg/build/args/reader.go.
pub(super) fn definition(text: &str) -> Result<String, Error> {
    let quoted = dockerfile::shell(text)?;
    let mark = &quoted[..1];
    let mut word = String::new();
    for c in quoted.chars() {
        if c == '{' && word.ends_with('{') {
            // The quote ends and begins again.
            word.push_str(&mark.repeat(2));
        }
        word.push(c);
    }
    Ok(word)
}

/// The value of a label in a definition file: the rest of its line, without blanks at its ends; nothing is escaped there.
pub(super) fn setting(text: &str) -> Result<String, Error> {
    let bare = text.trim() == text && !text.is_empty() && !text.contains("{{") && dockerfile::fits(text);
    match bare {
        true => Ok(text.to_owned()),
        false => Err(refused(format!("{text:?} cannot be the value of a label in a definition file"))),
    }
}

/// Name of an image for what takes a tag or a digest, and not both: by its digest where it has one.
///
/// Source: https://github.com/containers/image, docker/docker_transport.go ("Docker references with both a tag and digest
/// are currently not supported").
pub(super) fn digested(text: &str) -> Result<String, Error> {
    let name = reference(text)?;
    Ok(match image_parts(&name) {
        (bare, _, Some(digest)) => format!("{bare}@{digest}"),
        _ => name,
    })
}

/// Name of an image, or path of one, for pyxis: `REGISTRY#NAME:TAG`.
///
/// Source: https://github.com/NVIDIA/pyxis/wiki/Usage (`[USER@][REGISTRY#]IMAGE[:TAG]|PATH`);
/// https://github.com/NVIDIA/enroot, src/docker.sh (what stands before `@` is a user).
pub(super) fn pyxis(text: &str) -> Result<String, Error> {
    let name = reference(text)?;
    if name.starts_with(['/', '.']) {
        return Ok(name);
    }
    if name.contains('@') {
        return Err(refused(format!(
            "pyxis takes no digest: name {text} by its tag, or the path of a .sif or .sqsh file"
        )));
    }
    Ok(match name.split_once('/') {
        Some((registry, rest)) if registry.contains(['.', ':']) || registry == "localhost" => {
            format!("{registry}#{rest}")
        }
        _ => name,
    })
}

/// Features of nodes, as `--constraint` of sbatch takes them.
pub(super) fn constraint(text: &str) -> Result<String, Error> {
    only(text, "list of features of nodes: letters, digits and `_ - . : & | , * ( ) [ ]`", |c| {
        c.is_ascii_alphanumeric() || "_-.:&|,*()[]".contains(c)
    })
}

/// A string in a workflow of GitHub Actions, whose expressions (`${{ .. }}`) are replaced wherever they stand.
pub(super) fn workflow(text: &str) -> String {
    super::data::json(&text.replace("${{", "${{ '${{' }}"))
}
