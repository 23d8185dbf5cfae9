//! How a Dockerfile's pip comes to its torch: the index that it asks, and the hashes that it does not.

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
    for (instruction, stage) in &file.instructions {
        let body = file.raw(&instruction.body);
        // An index or a build is meant, not a file or a folder that is called so.
        let about = ["http", "torch"].iter().any(|word| body.contains(word));
        let mut from = 0;
        while let Some(found) = body[from..].find("cu$").filter(|_| about) {
            let at = from + found;
            from = at + "cu$".len();
            let starts = !body[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
            let expression = &body[at + 2..];
            if !starts || !is_computed(expression, file) {
                continue;
            }
            let length = expression_length(expression);
            let span = instruction.body.start + at..instruction.body.start + at + 2 + length;
            let written = file.raw(&span);
            let message = format!(
                "`{written}` is computed from a version of CUDA: not every CUDA has builds of torch, and a patch release gives a \
                 label that nothing has"
            );
            let place = file.lines.span(Some(span.clone()));
            let finding = Diagnostic::warning(COMPUTED.code, message, place);
            let labels = labels(context)?;
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
fn is_computed(expression: &str, file: &Dockerfile<'_>) -> bool {
    let takes_apart = |text: &str| {
        let braces = text.strip_prefix("${").and_then(|rest| rest.split('}').next());
        let inside = braces.is_some_and(|inside| inside.contains('/'));
        inside || (text.starts_with("$(") && ["tr ", "sed ", "cut "].iter().any(|tool| text.contains(tool)))
    };
    if takes_apart(expression) {
        return true;
    }
    let name: String = expression
        .trim_start_matches(['$', '{'])
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
        .collect();
    let assigned = |body: &str| {
        let sign = format!("{name}=");
        let mut places = body.match_indices(&sign);
        places.any(|(at, _)| takes_apart(body[at + sign.len()..].trim_start_matches('"')))
    };
    !name.is_empty() && file.instructions.iter().any(|(instruction, _)| assigned(file.raw(&instruction.body)))
}

/// How long the expansion at the beginning of a text is.
fn expression_length(text: &str) -> usize {
    let close = match text.as_bytes().get(1) {
        Some(b'{') => '}',
        Some(b'(') => ')',
        _ => return 1 + text[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len() - 1),
    };
    text.find(close).map_or(text.len(), |end| end + 1)
}

/// The label with its variables filled in, where all are known.
fn filled(written: &str, variables: &crate::dockerfile::Variables) -> Option<String> {
    let words = crate::dockerfile::commands(written, 0..written.len(), variables);
    let [word] = words.first()?.as_slice() else { return None };
    (!word.text.contains(['$', '(', '/'])).then(|| word.text.clone())
}

/// The labels of torch's builds.
fn labels(context: &Context<'_>) -> Result<Vec<String>, Failure> {
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
        for install in stage.installs.iter().filter(|install| !install.hashes) {
            let Some((_, span)) = install.of("torch") else { continue };
            let all = torch::of_stage(file, at, context.matrix)?;
            let torch = all.iter().find(|torch| torch.span == *span);
            // A build for CPUs is for something else than the machines of a lock.
            if torch.is_some_and(|torch| torch.is_cpu) {
                continue;
            }
            let words = torch.map_or("torch".into(), |torch| torch.words());
            let locked: Vec<String> =
                lock.targets.iter().map(|target| format!("{} for {}", target.torch, target.name)).collect();
            let message = format!(
                "{words} is installed by name, though there is a lock: neither its version nor its file is the lock's"
            );
            let seen = Evidence::observed("the lock", format!("torch {}", locked.join(", ")));
            let place = file.lines.span(Some(span.clone()));
            findings.push(Diagnostic::warning(HASHES.code, message, place).and(seen).fix(
                "`gpulock export requirements -o requirements.txt`, and `pip install --require-hashes -r requirements.txt` \
                 here; or `gpulock dockerfile`",
            ));
        }
    }
    Ok(findings)
}
