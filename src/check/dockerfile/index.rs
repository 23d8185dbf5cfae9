//! How a Dockerfile's pip comes to its torch: the index that it asks, and the hashes that it does not.

use std::collections::BTreeSet;

use super::other_torch::{is_written, releases};
use super::read::Dockerfile;
use super::{Context, Lint, torch};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};

/// An index or a label that is computed from a CUDA version.
pub const COMPUTED: Lint = Lint {
    code: "dockerfile-index-computed",
    level: Severity::Warning,
    page: include_str!("../page/dockerfile-index-computed.md"),
    run: computed,
};

/// torch by name, though there is a lock.
pub const HASHES: Lint = Lint {
    code: "dockerfile-without-hashes",
    level: Severity::Warning,
    page: include_str!("../page/dockerfile-without-hashes.md"),
    run: hashes,
};

fn computed(file: &Dockerfile<'_>, context: &Context<'_>) -> Result<Vec<Diagnostic>, Failure> {
    let mut findings = Vec::new();
    let taken_apart = taken_apart(file);
    let labels = labels(context)?;
    for (instruction, stage) in &file.instructions {
        let body = file.raw(&instruction.body);
        // An index or a build is meant, not a file or a folder that is called so.
        let small = body.to_lowercase();
        let about = ["http", "torch", "index"].iter().any(|word| small.contains(word));
        let mut from = 0;
        let mut said = BTreeSet::new();
        while let Some(found) = body[from..].find("cu$").filter(|_| about) {
            let at = from + found;
            from = at + "cu$".len();
            let starts = !body[..at].ends_with(is_of_name);
            let expression = &body[at + 2..];
            let expression = &expression[..expression_length(expression)];
            if !starts || !is_computed(expression, &taken_apart) || !said.insert(expression) {
                continue;
            }
            let length = expression.len();
            let span = instruction.body.start + at..instruction.body.start + at + 2 + length;
            let written = file.raw(&span);
            let message = format!(
                "`{written}` is computed from a version of CUDA: not every CUDA has builds of torch, and a patch release gives a \
                 label that nothing has"
            );
            let place = file.lines.span(Some(span.clone()));
            let finding = Diagnostic::warning(COMPUTED.code, message, place);
            let said = format!("indexes of torch: {}", labels.join(", "));
            let filled = stage.and_then(|stage| filled(written, &file.stages[stage].variables));
            let finding = match filled {
                Some(filled) if labels.contains(&filled) => finding.fix(format!("write {filled}")),
                Some(filled) => {
                    let message =
                        format!("`{written}` gives {filled}, which is no index or build of torch that is known");
                    Diagnostic { message, ..finding }.fix("write the label of a build that there is")
                }
                None => finding.fix("write the label of a build that there is"),
            };
            findings.push(finding.and(Evidence::fact(said, "index.toml of the matrix")));
        }
    }
    Ok(findings)
}

/// Whether an expansion takes a version apart, itself or in the variable that it names.
fn is_computed(expression: &str, taken_apart: &BTreeSet<&str>) -> bool {
    let name = expression.trim_start_matches(['$', '{']);
    takes_apart(expression) || taken_apart.contains(&name[..name.find(|c| !is_of_name(c)).unwrap_or(name.len())])
}

/// Whether an expansion takes a value apart. What leaves its major alone (`12`) is no label of torch's: flash-attn and others
/// have such labels.
fn takes_apart(expression: &str) -> bool {
    match expression.as_bytes() {
        [b'$', b'{', ..] => {
            let operation = expression[2..].trim_start_matches(is_of_name);
            let is_slice =
                operation.strip_prefix(':').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
            let is_major = operation.starts_with("%%") || is_slice && expression.matches('$').count() == 1;
            !is_major && (operation.starts_with(['/', '%', '#']) || is_slice)
        }
        [b'$', b'(', ..] => {
            let is_major =
                ["-f1)", "-f 1)", "-f1 -d", "-f 1 -d", "print $1}"].iter().any(|end| expression.contains(end));
            !is_major && ["tr ", "sed ", "cut ", "awk "].iter().any(|tool| expression.contains(tool))
        }
        _ => false,
    }
}

/// Variables whose value is another one taken apart: `CU=${CUDA//./}`.
fn taken_apart<'t>(file: &Dockerfile<'t>) -> BTreeSet<&'t str> {
    let mut names = BTreeSet::new();
    for (instruction, _) in &file.instructions {
        let body = file.raw(&instruction.body);
        for (at, _) in body.match_indices("=").filter(|(at, _)| body[at + 1..].trim_start_matches('"').starts_with('$'))
        {
            let value = body[at + 1..].trim_start_matches('"');
            let before = body[..at].trim_end_matches(is_of_name).len();
            if before < at && takes_apart(&value[..expression_length(value)]) {
                names.insert(&body[before..at]);
            }
        }
    }
    names
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The longest expansion that is looked at, in bytes.
const LONGEST: usize = 256;

/// How long the expansions at the beginning of a text are: several that follow each other are one label.
fn expression_length(text: &str) -> usize {
    let mut length = 0;
    while length < LONGEST && text[length..].starts_with('$') {
        length += one_length(&text[length..]);
    }
    length
}

fn one_length(text: &str) -> usize {
    let text = &text[..text.floor_char_boundary(LONGEST)];
    let close = match text.as_bytes().get(1) {
        Some(b'{') => '}',
        Some(b'(') => ')',
        _ => return 1 + text[1..].find(|c| !is_of_name(c)).unwrap_or(text.len() - 1),
    };
    text.find(close).map_or(text.len(), |end| end + 1)
}

/// The label with its variables filled in, where all are known.
fn filled(written: &str, variables: &crate::dockerfile::Variables) -> Option<String> {
    let words = crate::dockerfile::commands(written, &crate::dockerfile::Instruction::run(written), variables);
    let [word] = words.first()?.as_slice() else { return None };
    (!word.text.contains(['$', '(', '/'])).then(|| word.text.clone())
}

/// The labels of torch's builds.
pub(super) fn labels(context: &Context<'_>) -> Result<Vec<String>, Failure> {
    let releases = context.matrix.torch()?.releases();
    let builds = releases.iter().flat_map(|release| &release.builds);
    let mut labels: Vec<String> = builds.map(|build| build.variant.clone()).filter(|label| label != "cpu").collect();
    labels.sort_unstable();
    labels.dedup();
    Ok(labels)
}

fn hashes(file: &Dockerfile<'_>, context: &Context<'_>) -> Result<Vec<Diagnostic>, Failure> {
    let Some(lock) = context.lock else { return Ok(Vec::new()) };
    let mut findings = Vec::new();
    for (at, stage) in file.stages.iter().enumerate() {
        if stage.variables.contains_key("PIP_REQUIRE_HASHES") {
            continue;
        }
        let all = torch::of_stage(file, at, context.matrix)?;
        for install in stage.installs.iter().filter(|install| !install.hashes) {
            // A wheel by its address is one file.
            let by_name = install.requirements.iter().find(|(one, _)| one.package.as_str() == "torch");
            let Some((_, span)) = by_name else { continue };
            let torch = all.iter().find(|torch| torch.span == *span);
            // A build without CUDA is for something else than the machines of a lock.
            if torch.is_some_and(|torch| torch.is_other) {
                continue;
            }
            let words = torch.map_or("torch".into(), |torch| torch.words());
            let release = torch.and_then(|torch| torch.release.as_ref());
            let pinned = release.is_some_and(|release| lock.targets.iter().any(|target| target.torch == *release));
            let mut constraints = install.constraints.iter().filter_map(|path| (context.read)(path));
            let held = match pinned || constraints.any(|text| is_written(&text)) {
                true => "nothing holds its file, and what it depends on, against the hashes of the lock",
                false => "neither its version nor its file is the lock's",
            };
            let message = format!("{words} is installed by name, though there is a lock: {held}");
            let seen = Evidence::observed("the lock", releases(lock));
            let place = file.lines.span(Some(span.clone()));
            findings.push(Diagnostic::warning(HASHES.code, message, place).and(seen).fix(
                "`gpulock export requirements -o requirements.txt`, and `pip install --require-hashes -r requirements.txt` \
                 here; or `gpulock dockerfile`",
            ));
        }
    }
    Ok(findings)
}
