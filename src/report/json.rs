//! Results as JSON for programs: fields of a version are added to, never renamed (DESIGN: machine-readable output).

use std::collections::BTreeMap;

use serde::Serialize;

use crate::diag::{Diagnostic, Evidence, Failure};
use crate::lock::{Image, Lock, Package, Reference, Target};
use crate::resolve::{Conflict, Fact, Gives, Repair};

/// `gpulock.lock/1`: the lock, with the packages of each target in full. `version` is that of the lock's format.
pub fn lock(lock: &Lock) -> String {
    #[derive(Serialize)]
    struct Json<'l> {
        schema: &'static str,
        version: u64,
        revision: u64,
        inputs: &'l str,
        matrix: &'l str,
        content: String,
        indexes: Vec<IndexJson<'l>>,
        targets: Vec<TargetJson<'l>>,
    }
    #[derive(Serialize)]
    struct IndexJson<'l> {
        name: &'l str,
        url: String,
    }
    text(&Json {
        schema: "gpulock.lock/1",
        version: crate::lock::VERSION,
        revision: crate::lock::REVISION,
        inputs: &lock.inputs,
        matrix: &lock.matrix,
        content: lock.digest(),
        indexes: lock
            .indexes
            .iter()
            .map(|(name, url)| IndexJson { name, url: crate::manifest::without_credentials(url) })
            .collect(),
        targets: lock.targets.iter().map(|target| TargetJson::new(lock, target)).collect(),
    })
}

#[derive(Serialize)]
struct TargetJson<'l> {
    name: &'l str,
    platform: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    glibc: Option<String>,
    gpus: Vec<GpuJson<'l>>,
    driver: DriverJson<'l>,
    stack: StackJson<'l>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    inferred: Vec<&'l str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<ImageJson<'l>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    env: &'l BTreeMap<String, String>,
    packages: Vec<PackageJson<'l>>,
}

#[derive(Serialize)]
struct ImageJson<'l> {
    os: &'l str,
    flavor: &'l str,
    #[serde(flatten)]
    base: Option<ReferenceJson<'l>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uv: Option<ReferenceJson<'l>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    small: Option<ReferenceJson<'l>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requires: Option<&'l str>,
}

#[derive(Serialize)]
struct ReferenceJson<'l> {
    #[serde(rename = "ref")]
    name: &'l str,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<&'l str>,
}

impl<'l> ImageJson<'l> {
    fn new(image: &'l Image) -> Self {
        let reference = |one: &'l Option<Reference>| {
            one.as_ref().map(|one| ReferenceJson { name: &one.name, digest: one.digest.as_deref() })
        };
        Self {
            os: &image.os,
            flavor: &image.flavor,
            base: reference(&image.base),
            uv: reference(&image.uv),
            small: reference(&image.small),
            requires: image.requires.as_deref(),
        }
    }
}

#[derive(Serialize)]
struct GpuJson<'l> {
    name: &'l str,
    sm: &'l str,
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'l str>,
}

#[derive(Serialize)]
struct DriverJson<'l> {
    #[serde(skip_serializing_if = "Option::is_none")]
    given: Option<&'l str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    floor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    native: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<&'static str>,
}

#[derive(Serialize)]
struct StackJson<'l> {
    python: String,
    torch: String,
    variant: &'l str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cuda: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cudnn: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nccl: Option<String>,
}

#[derive(Serialize)]
struct PackageJson<'l> {
    name: &'l str,
    version: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    extras: Vec<&'l str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<&'l str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'l str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'l str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<&'l str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    pending: bool,
    #[serde(rename = "needed-by")]
    needed_by: Vec<&'l str>,
    libraries: Vec<LibraryJson<'l>>,
}

#[derive(Serialize)]
struct LibraryJson<'l> {
    path: &'l str,
    sha256: &'l str,
    size: u64,
}

impl<'l> TargetJson<'l> {
    fn new(lock: &'l Lock, target: &'l Target) -> Self {
        let shown = |value: Option<&dyn ToString>| value.map(ToString::to_string);
        Self {
            name: &target.name,
            platform: target.platform.to_string(),
            glibc: shown(target.glibc.as_ref().map(|value| value as _)),
            gpus: target
                .gpus
                .iter()
                .map(|gpu| GpuJson { name: &gpu.name, sm: &gpu.sm, code: gpu.code.name(), from: gpu.from.as_deref() })
                .collect(),
            driver: DriverJson {
                given: target.driver.given.as_deref(),
                floor: shown(target.driver.floor.as_ref().map(|value| value as _)),
                native: shown(target.driver.native.as_ref().map(|value| value as _)),
                tier: target.driver.tier.map(|tier| tier.name()),
            },
            stack: StackJson {
                python: target.python.to_string(),
                torch: target.torch.to_string(),
                variant: &target.variant,
                cuda: shown(target.cuda.as_ref().map(|value| value as _)),
                cudnn: shown(target.cudnn.as_ref().map(|value| value as _)),
                nccl: shown(target.nccl.as_ref().map(|value| value as _)),
            },
            inferred: target.inferred.iter().map(String::as_str).collect(),
            image: target.image.as_ref().map(ImageJson::new),
            env: &target.env,
            packages: target
                .packages
                .iter()
                .map(|(name, package)| PackageJson::new(lock, name.as_str(), package))
                .collect(),
        }
    }
}

impl<'l> PackageJson<'l> {
    fn new(lock: &'l Lock, name: &'l str, package: &'l Package) -> Self {
        let wheel = lock.wheel(package);
        let libraries = wheel.iter().flat_map(|(_, wheel)| &wheel.libraries);
        Self {
            name,
            version: package.version.to_string(),
            extras: package.extras.iter().map(|extra| extra.as_str()).collect(),
            index: lock.index_of(package),
            file: wheel.map(|(file, _)| file),
            url: wheel.and_then(|(_, wheel)| wheel.url.as_deref()),
            sha256: wheel.map(|(_, wheel)| wheel.sha256.as_str()),
            size: wheel.and_then(|(_, wheel)| wheel.size),
            pending: wheel.is_none(),
            needed_by: package.needed_by.iter().map(String::as_str).collect(),
            libraries: libraries
                .map(|(path, digest)| LibraryJson { path, sha256: &digest.sha256, size: digest.size })
                .collect(),
        }
    }
}

/// `gpulock.conflict/1` of the first target without a stack; those of further targets stand in its `others`.
pub fn conflicts(conflicts: &[Conflict]) -> String {
    let [first, others @ ..] = conflicts else { return String::new() };
    text(&ConflictJson { others: others.iter().map(ConflictJson::new).collect(), ..ConflictJson::new(first) })
}

#[derive(Serialize)]
struct ConflictJson<'c> {
    schema: &'static str,
    target: &'c str,
    explanation: &'c str,
    facts: Vec<FactJson<'c>>,
    repairs: Vec<RepairJson<'c>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<ConflictJson<'c>>,
}

#[derive(Serialize)]
struct FactJson<'c> {
    claim: &'c str,
    source: &'c str,
}

#[derive(Serialize)]
struct RepairJson<'c> {
    change: &'c str,
    gives: GivesJson<'c>,
    /// What the lowest driver that `change` allows gives, where that is something else.
    #[serde(rename = "at-bound", skip_serializing_if = "Option::is_none")]
    at_bound: Option<AtBoundJson<'c>>,
}

#[derive(Serialize)]
struct AtBoundJson<'c> {
    driver: String,
    #[serde(flatten)]
    gives: GivesJson<'c>,
}

#[derive(Serialize)]
struct GivesJson<'c> {
    torch: &'c str,
    variant: Option<&'c str>,
}

impl<'c> ConflictJson<'c> {
    fn new(conflict: &'c Conflict) -> Self {
        let given = |gives: &'c Gives| GivesJson { torch: &gives.torch, variant: gives.variant.as_deref() };
        let repair = |Repair { change, gives, at_bound }: &'c Repair| RepairJson {
            change,
            gives: given(gives),
            at_bound: at_bound
                .as_ref()
                .map(|(driver, gives)| AtBoundJson { driver: driver.to_string(), gives: given(gives) }),
        };
        Self {
            schema: "gpulock.conflict/1",
            target: &conflict.target,
            explanation: &conflict.explanation,
            facts: conflict.facts.iter().map(FactJson::new).collect(),
            repairs: conflict.repairs.iter().map(repair).collect(),
            others: Vec::new(),
        }
    }
}

impl<'c> FactJson<'c> {
    fn new(Fact { claim, source }: &'c Fact) -> Self {
        Self { claim, source }
    }
}

/// Why a package of one target has its version.
#[derive(Debug)]
pub struct Why {
    /// Name of the target.
    pub target: String,
    /// The version that is locked.
    pub version: String,
    /// Who asks for it, up to the manifest: a sentence and how many steps it is from the package.
    pub chain: Vec<(usize, String)>,
    /// For torch: builds that would be preferred, with what excludes them.
    pub preferred: Vec<String>,
    /// For torch: the facts behind the choice.
    pub facts: Vec<Fact>,
}

/// `gpulock.why/1`.
pub fn why(package: &str, targets: &[Why]) -> String {
    #[derive(Serialize)]
    struct Json<'w> {
        schema: &'static str,
        package: &'w str,
        targets: Vec<WhyJson<'w>>,
    }
    #[derive(Serialize)]
    struct WhyJson<'w> {
        name: &'w str,
        version: &'w str,
        chain: Vec<&'w str>,
        preferred: &'w [String],
        facts: Vec<FactJson<'w>>,
    }
    let targets = targets.iter().map(|why| WhyJson {
        name: &why.target,
        version: &why.version,
        chain: why.chain.iter().map(|(_, sentence)| sentence.as_str()).collect(),
        preferred: &why.preferred,
        facts: why.facts.iter().map(FactJson::new).collect(),
    });
    text(&Json { schema: "gpulock.why/1", package, targets: targets.collect() })
}

/// `gpulock.written/1`: the files that a command wrote.
pub fn written(files: &[String]) -> String {
    #[derive(Serialize)]
    struct Json<'f> {
        schema: &'static str,
        files: &'f [String],
    }
    text(&Json { schema: "gpulock.written/1", files })
}

/// `gpulock.error/1`: why a command gave no result.
pub fn failure(failure: &Failure) -> String {
    #[derive(Serialize)]
    struct Json<'f> {
        schema: &'static str,
        errors: Vec<DiagnosticJson<'f>>,
    }
    text(&Json { schema: "gpulock.error/1", errors: failure.diagnostics.iter().map(DiagnosticJson::new).collect() })
}

#[derive(Serialize)]
pub(super) struct DiagnosticJson<'d> {
    code: &'d str,
    severity: crate::diag::Severity,
    message: &'d str,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'d str>,
    evidence: Vec<EvidenceJson<'d>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<&'d str>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum EvidenceJson<'d> {
    Span { path: &'d str, line: usize, column: usize, width: usize, text: &'d str },
    Fact { claim: &'d str, source: &'d str },
    Observed { path: &'d str, fact: &'d str },
    Elf { path: &'d str, fact: &'d str },
}

impl<'d> DiagnosticJson<'d> {
    pub(super) fn new(diagnostic: &'d Diagnostic) -> Self {
        let evidence = |evidence: &'d Evidence| match evidence {
            Evidence::Span { file, line, column, width, text } => {
                EvidenceJson::Span { path: file, line: *line, column: *column, width: *width, text }
            }
            Evidence::Fact { claim, source } => EvidenceJson::Fact { claim, source },
            Evidence::Observed { what, fact } => EvidenceJson::Observed { path: what, fact },
            Evidence::Elf { path, fact } => EvidenceJson::Elf { path, fact },
        };
        Self {
            code: diagnostic.code,
            severity: diagnostic.severity,
            message: &diagnostic.message,
            subject: diagnostic.subject.as_deref(),
            evidence: diagnostic.evidence.iter().map(evidence).collect(),
            fix: diagnostic.fix.as_deref(),
        }
    }
}

/// What a report is about.
#[derive(Serialize)]
pub(super) struct SubjectJson<'r> {
    pub(super) kind: &'r str,
    pub(super) path: &'r str,
}

/// A rule that could not run.
#[derive(Serialize)]
pub(super) struct SkippedJson<'r> {
    pub(super) code: &'r str,
    pub(super) reason: &'r str,
}

/// Indented, with a line feed at the end. Strings and numbers always serialise.
pub(super) fn text(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}
