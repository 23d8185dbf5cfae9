//! A machine in five layers: takes its facts, gives lines, each *ok*, *problem* or *not checked* with the reason.
//!
//! What a line finds has a code, a level and a page as the rules of environments have. What could not be read is not
//! checked, and no claim is made of it.

mod application;
mod cuda;
mod driver;
mod gpu;
mod hardware;
mod libraries;
mod lock;
mod nodes;
mod variables;

use std::collections::BTreeMap;

use crate::diag::{Diagnostic, Evidence, Failure, Severity, hide_secrets};
use crate::inventory::machine::{Facts, Reading};
use crate::lock::Target;
use crate::manifest::Check;
use crate::matrix::Matrix;

pub use gpu::{SeenGpu, gpus};

/// Where a line belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// GPUs.
    Hardware,
    /// Kernel module, libraries, devices and services.
    Driver,
    /// Toolkits, cuda-compat and where libraries are looked for.
    Cuda,
    /// The Python environment.
    Framework,
    /// Variables, and what the job is given.
    Application,
}

impl Layer {
    /// All, in order.
    pub const ALL: [Self; 5] = [Self::Hardware, Self::Driver, Self::Cuda, Self::Framework, Self::Application];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hardware => "hardware",
            Self::Driver => "driver",
            Self::Cuda => "cuda",
            Self::Framework => "framework",
            Self::Application => "application",
        }
    }
}

/// How a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Looked at, and nothing is wrong.
    Ok,
    /// Something is wrong.
    Problem,
    /// Not looked at; the line says why.
    NotChecked,
}

impl State {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Problem => "problem",
            Self::NotChecked => "not checked",
        }
    }
}

/// One line of the report.
#[derive(Debug, Clone)]
pub struct Line {
    /// Where it belongs.
    pub layer: Layer,
    /// What it is about, in a word or two.
    pub topic: &'static str,
    /// How it is.
    pub state: State,
    /// What is so, or why it was not checked.
    pub text: String,
    /// What was looked at.
    pub how: String,
    /// What is wrong.
    pub findings: Vec<Diagnostic>,
}

impl Line {
    /// What was looked at, with what was found wrong of it; findings that are notes do not make a problem.
    pub fn judged(
        layer: Layer,
        topic: &'static str,
        text: impl Into<String>,
        how: impl Into<String>,
        findings: Vec<Diagnostic>,
    ) -> Self {
        let state = state_of(&findings);
        Self { layer, topic, state, text: hide_secrets(&text.into()), how: how.into(), findings }
    }

    /// What was looked at and is well.
    pub fn ok(layer: Layer, topic: &'static str, text: impl Into<String>, how: impl Into<String>) -> Self {
        Self::judged(layer, topic, text, how, Vec::new())
    }

    /// What was not looked at.
    pub fn not_checked(layer: Layer, topic: &'static str, why: impl Into<String>, how: impl Into<String>) -> Self {
        Self { layer, topic, state: State::NotChecked, text: why.into(), how: how.into(), findings: Vec::new() }
    }

    /// What could not be read.
    pub fn unread<T>(layer: Layer, topic: &'static str, reading: &Reading<T>, absent: &str) -> Self {
        let why = match reading {
            Reading::Unread { why, .. } => why.as_str(),
            _ => absent,
        };
        Self::not_checked(layer, topic, why, reading.how())
    }

    /// Gives its findings the levels of `[checks]`.
    pub fn leveled(mut self, checks: &BTreeMap<String, Check>) -> Self {
        let mut checks = checks.clone();
        checks.retain(|code, _| self.findings.iter().any(|finding| finding.code == code));
        self.findings = super::exceptions(self.findings, &checks);
        if self.state != State::NotChecked {
            self.state = state_of(&self.findings);
        }
        self
    }
}

fn state_of(findings: &[Diagnostic]) -> State {
    match findings.iter().any(|finding| finding.severity > Severity::Note) {
        true => State::Problem,
        false => State::Ok,
    }
}

/// A fault of machines.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// Its stable name, which `[checks]` and `gpulock explain` use.
    pub code: &'static str,
    /// How grave its findings are unless they say otherwise.
    pub level: Severity,
    /// What it means, why it happens and what to do, in Markdown.
    pub page: &'static str,
}

impl Fault {
    const fn new(code: &'static str, level: Severity, page: &'static str) -> Self {
        Self { code, level, page }
    }

    fn found(&self, message: impl Into<String>, evidence: Evidence) -> Diagnostic {
        Diagnostic { severity: self.level, ..Diagnostic::error(self.code, message, evidence) }
    }
}

macro_rules! faults {
    ($($name:ident $code:literal $level:ident;)*) => {
        $(const $name: Fault = Fault::new($code, Severity::$level, include_str!(concat!("../page/", $code, ".md")));)*
        /// All, by code.
        pub const ALL: &[Fault] = &[$($name),*];
    };
}

faults! {
    CGROUP "device-cgroup-denied" Error;
    NODE_MISSING "device-node-missing" Error;
    NODE_RESTRICTED "device-node-restricted" Note;
    LIBRARIES_MISSING "driver-libraries-missing" Error;
    MISMATCH "driver-module-mismatch" Error;
    NOT_LOADED "driver-not-loaded" Error;
    FABRIC "fabric-manager-missing" Error;
    HELD "gpu-held-by-other-driver" Error;
    HIDDEN "gpu-hidden" Warning;
    MEMORY "gpu-memory-errors" Error;
    MISSING "gpu-missing" Error;
    NOT_ANSWERING "gpu-not-answering" Error;
    MIXED "gpu-models-mixed" Warning;
    THROTTLED "gpu-throttled" Warning;
    INFINIBAND "infiniband-node-missing" Note;
    NOT_TARGET "machine-not-target" Error;
    MEMLOCK "memlock-limited" Note;
    MIG "mig-empty" Error;
    OPEN_REQUIRED "open-modules-required" Error;
    OPEN_UNSUPPORTED "open-modules-unsupported" Error;
    SHM "shm-small" Warning;
    TOOLKIT "toolkit-newer-than-driver" Note;
    LEFT_OVER "variable-left-over" Warning;
    WSL_DRIVER "wsl-driver-installed" Error;
    XID "xid-logged" Warning;
}

/// What a machine is judged with.
pub struct Context<'a> {
    /// What was read of it.
    pub facts: &'a Facts,
    /// Its GPUs.
    pub gpus: &'a [SeenGpu],
    /// Facts about drivers and GPUs.
    pub matrix: &'a Matrix,
    /// The targets of the lock, of which it is to be one; none without a lock.
    pub targets: &'a [&'a Target],
    /// Whether variables are judged with the environment that reads them.
    pub with_environment: bool,
}

impl Context<'_> {
    /// The target that describes the machine, else the only one that there is.
    pub fn target(&self) -> Option<&Target> {
        let fits = |target: &&&Target| lock::differences(self, target).is_empty();
        let only = || self.targets.first().filter(|_| self.targets.len() == 1);
        self.targets.iter().find(fits).or_else(only).copied()
    }

    /// The GPUs that NVIDIA's driver has or could have: none that another driver holds.
    pub fn ours(&self) -> impl Iterator<Item = &SeenGpu> {
        self.gpus.iter().filter(|gpu| !gpu.is_elsewhere())
    }

    /// Whether anything of NVIDIA's works here, or should: a GPU, or a module that runs.
    pub fn is_gpu_machine(&self) -> bool {
        let of_windows = self.facts.system.is_wsl() && !self.facts.libraries.is_empty();
        !self.gpus.is_empty() || self.facts.module.version.value().is_some() || of_windows
    }
}

/// Judges all layers but the framework's own environment.
///
/// # Errors
/// When the matrix cannot be read.
pub fn judge(context: &Context<'_>) -> Result<Vec<Line>, Failure> {
    let driver = driver::judge(context)?;
    // Without libraries of the module's version and its nodes, NVML reaches nothing.
    let explains = |finding: &Diagnostic| {
        let codes = [LIBRARIES_MISSING, MISMATCH, NODE_MISSING].map(|fault| fault.code);
        finding.severity == Severity::Error && codes.contains(&finding.code)
    };
    let mut lines = hardware::judge(context, driver.iter().flat_map(|line| &line.findings).any(explains))?;
    lines.extend(driver);
    lines.extend(cuda::judge(context)?);
    lines.extend(lock::judge(context));
    lines.extend(application::judge(context)?);
    Ok(lines)
}
