//! pip's requirements files: requirements, the options that name indexes, and what cannot be locked.

use super::Findings;
use crate::diag::SourceText;

/// The files that a requirements file includes with `-r`, as written there.
pub fn includes(text: &str) -> Vec<String> {
    logical_lines(text).into_iter().filter_map(|(_, line)| option_value(&line, &["-r", "--requirement"])).collect()
}

pub(super) fn read(source: SourceText<'_>, found: &mut Findings) {
    for (at, line) in logical_lines(source.text) {
        let place = source.span(Some(at..at + line.lines().next().unwrap_or_default().trim_end().len()));
        let index = option_value(&line, &["-i", "--index-url", "--extra-index-url", "-f", "--find-links"]);
        if let Some(url) = index {
            found.index(None, &url, &[], place);
        } else if option_value(&line, &["-r", "--requirement"]).is_some() {
            // The caller reads it as a source of its own.
        } else if let Some(file) = option_value(&line, &["-c", "--constraint"]) {
            let fix = "copy what you rely on to [stack] or [packages]";
            found.not_understood(place, format!("constraints of `{file}` are not taken over"), fix);
        } else if line.starts_with("-e") || line.starts_with("--editable") || line.starts_with('.') {
            found.understood(place, format!("`{line}` is a project of your own: left out"));
        } else if line.starts_with('-') {
            found.understood(place, format!("`{line}` is an option of pip: left out"));
        } else {
            // Hashes and other options of one requirement follow it.
            let requirement = line.split(" --").next().unwrap_or(&line).trim();
            found.requirement(requirement, place);
        }
    }
}

/// Lines without comments, continued lines joined; with the byte where each begins.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut at = 0;
    let mut continued = false;
    for raw in text.split_inclusive('\n') {
        let line = raw.trim_end();
        let line = match line.find('#') {
            Some(0) => "",
            Some(hash) if line[..hash].ends_with(char::is_whitespace) => line[..hash].trim_end(),
            _ => line,
        };
        let (body, goes_on) = match line.strip_suffix('\\') {
            Some(body) => (body.trim(), true),
            None => (line.trim(), false),
        };
        match lines.last_mut().filter(|_| continued) {
            Some((_, last)) => {
                last.push(' ');
                last.push_str(body);
            }
            None => lines.push((at + (raw.len() - raw.trim_start().len()), body.to_owned())),
        }
        continued = goes_on;
        at += raw.len();
    }
    lines.retain(|(_, line)| !line.trim().is_empty());
    lines
}

/// The value of one of these options, written `-r x`, `--requirement x` or `--requirement=x`.
fn option_value(line: &str, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| {
        let rest = line.strip_prefix(name)?;
        let rest = match rest.strip_prefix('=') {
            Some(rest) => rest,
            None if rest.starts_with(char::is_whitespace) || !name.starts_with("--") => rest,
            None => return None,
        };
        rest.split_whitespace().next().map(|value| value.trim_matches(['"', '\'']).to_owned())
    })
}
