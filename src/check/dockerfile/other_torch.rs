//! Another torch than the one that is there or that is locked: that of the base under pip's, that of a requirements file
//! beside a lock, and one of an index that never was.

use std::ops::Range;

use super::index::labels;
use super::read::{Dockerfile, Stage};
use super::torch;
use super::{Context, Lint};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::lock::Lock;
use crate::matrix::schema::TorchImageRow;
use crate::python::{MarkerEnv, Platform, PythonVersion, Requirement};
use crate::version::Pep440;
use crate::version::pep440::{Operator, local_label, meets};

/// The base has a torch, and pip or the lock another one.
pub const BASE: Lint = Lint {
    code: "dockerfile-base-torch",
    level: Severity::Warning,
    page: include_str!("../page/dockerfile-base-torch.md"),
    run: base,
};

/// A requirements file has another torch than the lock.
pub const LOCKED: Lint = Lint {
    code: "dockerfile-torch-not-locked",
    level: Severity::Warning,
    page: include_str!("../page/dockerfile-torch-not-locked.md"),
    run: locked,
};

/// An index, or the label of a build, that PyTorch never had.
pub const INDEX: Lint = Lint {
    code: "dockerfile-index-unknown",
    level: Severity::Error,
    page: include_str!("../page/dockerfile-index-unknown.md"),
    run: index,
};

/// The torch of a base, as far as the name of its image tells.
pub(super) enum BaseTorch {
    /// That release.
    Release(Pep440),
    /// One, or maybe one, and nobody knows which.
    Unknown,
    /// None.
    None,
}

/// The torch that a stage has from its base.
///
/// # Errors
/// When the matrix cannot be read.
pub(super) fn torch_of_base(file: &Dockerfile<'_>, stage: usize, context: &Context<'_>) -> Result<BaseTorch, Failure> {
    if file.chain(stage).iter().any(|stage| file.stages[*stage].without_torch) {
        return Ok(BaseTorch::Unknown);
    }
    if let Some(Base { version: Some(version), .. }) = of_base(file, stage, context)? {
        return Ok(BaseTorch::Release(version.only_release()));
    }
    let root = file.chain(stage).last().map(|root| &file.stages[*root]);
    let Some(root) = root.filter(|root| root.parent.is_none()) else { return Ok(BaseTorch::Unknown) };
    let has_none = context.matrix.image()?.is_without_torch(root.repository().0);
    Ok(if has_none { BaseTorch::None } else { BaseTorch::Unknown })
}

/// The torch of a base.
struct Base<'d> {
    stage: &'d Stage,
    row: &'d TorchImageRow,
    /// Its release with the label of its build; `None` for a build of its own.
    version: Option<Pep440>,
}

impl Base<'_> {
    fn words(&self) -> String {
        match &self.version {
            Some(version) => format!("torch {}", version.clone().without_local()),
            None => format!("{}'s own build of torch", self.row.by),
        }
    }

    /// Whether what is asked for is there already, or may be.
    fn has(&self, asked: &Requirement) -> bool {
        match &self.version {
            Some(version) => meets(&asked.specifiers, version),
            // A build of its own is no release: a pin of one is never met, bounds may be.
            None => {
                !asked.specifiers.iter().any(|one| matches!(one.operator(), Operator::Equal | Operator::ExactEqual))
            }
        }
    }
}

fn of_base<'d>(file: &'d Dockerfile<'_>, stage: usize, context: &Context<'d>) -> Result<Option<Base<'d>>, Failure> {
    let Some(root) = file.chain(stage).last().map(|root| &file.stages[*root]) else { return Ok(None) };
    let (name, tag) = root.repository();
    let row = context.matrix.image()?.torch(name).filter(|_| root.parent.is_none());
    let (Some(row), Some(tag)) = (row, tag.filter(|tag| !tag.contains('$'))) else { return Ok(None) };
    if !row.release {
        return Ok(Some(Base { stage: root, row, version: None }));
    }
    let mut parts = tag.split('-');
    let release = parts.next().unwrap_or_default();
    let cuda = parts.find_map(|part| part.strip_prefix("cuda")).map(|cuda| cuda.replace('.', ""));
    let version = match cuda {
        Some(cuda) => format!("{release}+cu{cuda}").parse(),
        None => release.parse(),
    };
    // Of `latest` and the like nobody knows which it is.
    Ok(version.ok().map(|version| Base { stage: root, row, version: Some(version) }))
}

fn base(file: &Dockerfile<'_>, context: &Context<'_>) -> Result<Vec<Diagnostic>, Failure> {
    let mut findings: Vec<Diagnostic> = Vec::new();
    for at in 0..file.stages.len() {
        let Some(base) = of_base(file, at, context)? else { continue };
        let place = file.lines.span(Some(base.stage.image.span.clone()));
        if findings.iter().any(|finding| finding.evidence.first() == Some(&place)) {
            continue;
        }
        let chain = file.chain(at);
        // Then the one of the base is only in its layers.
        if chain.iter().any(|stage| file.stages[*stage].without_torch) {
            continue;
        }
        let installs = chain.iter().flat_map(|stage| &file.stages[*stage].installs);
        let asked =
            installs.filter_map(|install| install.of("torch")).find(|(asked, _)| applies(asked) && !base.has(asked));
        let fact = Evidence::fact(format!("images of {} have {}", base.row.names[0], base.words()), &base.row.source);
        if let Some((asked, span)) = asked {
            let message = format!(
                "the base has {}, and pip installs torch {} besides: one of the two is in the image for nothing, and what was \
                 compiled for the base's may not load",
                base.words(),
                asked.specifiers
            );
            let finding = Diagnostic::warning(BASE.code, message, place).and(file.lines.span(Some(span.clone())));
            findings.push(
                finding.and(fact).fix("build on an image without torch, or on the one of the torch that is wanted"),
            );
        } else if let Some(lock) = context.lock.filter(|lock| !has(lock, base.version.as_ref())) {
            let message = format!("the base has {}, and the lock {}", base.words(), releases(lock));
            let seen = Evidence::observed("the lock", releases(lock));
            let fix = "build on the image that `gpulock dockerfile` gives, or lock the torch of the base";
            findings.push(Diagnostic::warning(BASE.code, message, place).and(seen).and(fact).fix(fix));
        }
    }
    Ok(findings)
}

/// Whether gpulock wrote a text, by its header.
pub(super) fn is_written(text: &str) -> bool {
    text.lines().take(10).any(|line| line.starts_with("# Written by `gpulock "))
}

fn locked(file: &Dockerfile<'_>, context: &Context<'_>) -> Result<Vec<Diagnostic>, Failure> {
    let Some(lock) = context.lock else { return Ok(Vec::new()) };
    let mut findings = Vec::new();
    for (at, stage) in file.stages.iter().enumerate() {
        let all = torch::of_stage(file, at, context.matrix)?;
        // Those that gpulock wrote are held against the lock themselves.
        let ours = |span: &Range<usize>| {
            let mut files = stage.installs.iter().flat_map(|install| &install.files);
            let text = files.find(|(_, at)| at == span).and_then(|(path, _)| (context.read)(path));
            text.is_some_and(|text| is_written(&text))
        };
        for (asked, span) in stage.installs.iter().flat_map(|install| &install.listed) {
            let is_other = || all.iter().any(|torch| torch.is_other && torch.span == *span);
            if asked.package.as_str() != "torch" || !applies(asked) || is_other() || ours(span) {
                continue;
            }
            let mut versions = lock.targets.iter().flat_map(|target| {
                let labelled = format!("{}+{}", target.torch, target.variant).parse::<Pep440>().ok();
                labelled.into_iter().chain([target.torch.clone()])
            });
            if versions.any(|version| meets(&asked.specifiers, &version)) {
                continue;
            }
            let name = file.raw(span);
            let message = format!("{name} asks for torch {}, and the lock has {}", asked.specifiers, releases(lock));
            let place = file.lines.span(Some(span.clone()));
            let finding = Diagnostic::warning(LOCKED.code, message, place);
            findings.push(finding.and(Evidence::observed("the lock", releases(lock))).fix(
                "`gpulock export requirements -o FILE` writes one of the lock; or ask for another torch in gpulock.toml and resolve",
            ));
        }
    }
    Ok(findings)
}

fn index(file: &Dockerfile<'_>, context: &Context<'_>) -> Result<Vec<Diagnostic>, Failure> {
    let mut installs = file.stages.iter().flat_map(|stage| &stage.installs);
    if !installs.any(|install| install.index.is_some() || !install.extra.is_empty() || install.of("torch").is_some()) {
        return Ok(Vec::new());
    }
    let known = labels(context)?;
    let numbers: Vec<u32> = known.iter().filter_map(|label| label.strip_prefix("cu")?.parse().ok()).collect();
    let (Some(least), Some(most)) = (numbers.iter().min(), numbers.iter().max()) else { return Ok(Vec::new()) };
    // Older ones are not in the matrix, newer ones not yet.
    let never_was = |label: &str| {
        let number = label.strip_prefix("cu").and_then(|number| number.parse::<u32>().ok());
        number.is_some_and(|number| (least..=most).contains(&&number)) && known.iter().all(|one| one != label)
    };
    let of_urls = |urls: &mut dyn Iterator<Item = &String>| -> Result<Vec<String>, Failure> {
        let rest = urls.map(|url| torch::beside_indexes(url, context.matrix)).collect::<Result<Vec<_>, _>>()?;
        Ok(rest.into_iter().flatten().map(|label| label.trim_end_matches('/').to_owned()).collect())
    };
    let mut findings: Vec<Diagnostic> = Vec::new();
    for stage in &file.stages {
        for install in &stage.installs {
            let torch = install.of("torch");
            let at = || torch.map_or_else(|| stage.image.span.clone(), |(_, span)| span.clone());
            let of_pin =
                torch.and_then(|(asked, _)| asked.specifiers.iter().find_map(|one| local_label(one.version())));
            let alone = of_urls(&mut install.index.iter())?.into_iter().chain(of_pin);
            let alone = alone.map(|label| (label, Severity::Error));
            let besides = of_urls(&mut install.extra.iter())?.into_iter().map(|label| (label, Severity::Warning));
            for (label, severity) in alone.chain(besides).filter(|(label, _)| never_was(label)) {
                let place = file.lines.span(Some(written(file, &label).unwrap_or_else(at)));
                if findings.iter().any(|finding| finding.evidence.first() == Some(&place)) {
                    continue;
                }
                let message = format!("PyTorch has no index and no build `{label}`: pip finds no torch there");
                let fact =
                    Evidence::fact(format!("builds of torch: {}", known.join(", ")), "torch/*.toml of the matrix");
                let finding = Diagnostic::error(INDEX.code, message, place).and(fact);
                let fix = "take one that there is: a driver of a CUDA runs the builds of earlier ones of its family";
                findings.push(Diagnostic { severity, ..finding.fix(fix) });
            }
        }
    }
    Ok(findings)
}

/// Where a label stands as an index or as a local version.
fn written(file: &Dockerfile<'_>, label: &str) -> Option<Range<usize>> {
    let text = file.lines.source.text;
    let find = |before: &str| text.find(&format!("{before}{label}")).map(|at| at + before.len());
    find("/whl/").or_else(|| find("+")).map(|at| at..at + label.len())
}

/// Whether a requirement is for the machines that an image runs on.
fn applies(asked: &Requirement) -> bool {
    let python = PythonVersion { major: 3, minor: 11, free_threaded: false };
    asked.applies(&MarkerEnv::new(python, Platform::LinuxX86_64), &[])
}

/// Whether a target of the lock has that torch.
fn has(lock: &Lock, version: Option<&Pep440>) -> bool {
    version.is_some_and(|version| lock.targets.iter().any(|target| target.torch == version.clone().without_local()))
}

/// The torch of each target, for people.
pub(super) fn releases(lock: &Lock) -> String {
    let all: Vec<String> = lock.targets.iter().map(|target| format!("{} for {}", target.torch, target.name)).collect();
    format!("torch {}", all.join(", "))
}
