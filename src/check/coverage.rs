//! Whether the GPU code of a library serves a GPU: takes what its containers hold, gives a [`Verdict`] by kind of library.
//!
//! A library that was compiled for a list of architectures holds the same list in most containers, so the share that
//! serves a GPU decides. NVIDIA's own libraries keep a container for each architecture, so the share says nothing and
//! one that serves is enough (in torch 2.8's stack cuBLASLt serves A100 with 477 of 2918 containers).

use crate::elf::{Code, CodeKind, GpuCodes, Object};
use crate::matrix::{Gpu, GpuFacts, Served};
use crate::version::{self, Capability, Cuda, GpuCode, PtxIsa};

/// A GPU counts as served when this share of the containers serve it, in hundredths. Measured: what a build lists is in
/// all containers of torch and its extensions but for a few kernels of one architecture.
const SERVED_PERCENT: usize = 90;

/// How the containers of a library relate to the GPUs that it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Each container holds the whole list of architectures.
    List,
    /// Each architecture has containers of its own.
    PerArchitecture,
}

/// The machine's side of the question.
#[derive(Debug, Clone, Copy)]
pub struct Device<'a> {
    /// The GPU.
    pub gpu: &'a Gpu,
    /// The newest PTX that the driver compiles; `None` where no driver is declared: any.
    pub driver_isa: Option<&'a PtxIsa>,
    /// The CUDA that the library was built with, where known.
    pub built: Option<Cuda>,
}

/// How many containers serve a GPU, each counted once, by the best that it offers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Machine code.
    pub sass: usize,
    /// PTX that the driver compiles.
    pub jit: usize,
    /// PTX that is newer than the driver compiles.
    pub too_new: usize,
    /// Nothing.
    pub none: usize,
}

/// What a library offers a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It holds no GPU code.
    NoCode,
    /// Served by machine code.
    Sass,
    /// Served, in whole or in part by PTX that the driver compiles when it is first used.
    Jit,
    /// Some of it is served, too little to call the library built for this GPU.
    Part,
    /// Only PTX would serve it, and that is newer than the driver compiles.
    PtxTooNew,
    /// Not served.
    Missing,
}

impl Tally {
    /// Counts the containers of a library: those of its own sections, and where each architecture has containers of its
    /// own also those that are embedded elsewhere.
    pub fn of(object: &Object, layout: Layout, device: Device<'_>, facts: &GpuFacts, stubs: &[Capability]) -> Self {
        let mut tally = Self::default();
        let embedded = layout == Layout::PerArchitecture || object.gpu_code.is_empty();
        let sections = [Some(&object.gpu_code), Some(&object.gpu_code_embedded).filter(|_| embedded)];
        for codes in sections.into_iter().flatten() {
            tally.add(codes, layout, device, facts, stubs);
        }
        tally
    }

    fn add(&mut self, codes: &GpuCodes, layout: Layout, device: Device<'_>, facts: &GpuFacts, stubs: &[Capability]) {
        for (container, count) in &codes.containers {
            // What the CUDA runtime leaves in every library that is linked with it holds no kernel of the library.
            let stub = |code: &Code| stubs.contains(&code.capability);
            if layout == Layout::PerArchitecture && *count == 1 && container.iter().all(stub) {
                continue;
            }
            match serve(container, device, facts) {
                Some(Served::Sass(_)) => self.sass += count,
                Some(Served::Ptx(_)) => self.jit += count,
                Some(Served::PtxTooNew(_)) => self.too_new += count,
                Some(Served::No) => self.none += count,
                None => {}
            }
        }
    }

    /// Whether at least half of the containers serve.
    pub fn is_mostly_served(self) -> bool {
        (self.sass + self.jit) * 2 >= self.total()
    }

    /// All that hold code for some GPU.
    pub fn total(self) -> usize {
        self.sass + self.jit + self.too_new + self.none
    }

    /// What it comes to.
    pub fn verdict(self, layout: Layout) -> Verdict {
        let enough = |count: usize| match layout {
            Layout::List => count * 100 >= self.total() * SERVED_PERCENT,
            Layout::PerArchitecture => count > 0,
        };
        match self {
            _ if self.total() == 0 => Verdict::NoCode,
            _ if enough(self.sass) => Verdict::Sass,
            _ if enough(self.sass + self.jit) => Verdict::Jit,
            _ if self.sass + self.jit > 0 => Verdict::Part,
            _ if self.too_new > 0 => Verdict::PtxTooNew,
            _ => Verdict::Missing,
        }
    }
}

/// What of one container serves a GPU; `None` for a container of link-time code alone.
fn serve(container: &[Code], device: Device<'_>, facts: &GpuFacts) -> Option<Served> {
    let gpu = device.gpu.capability;
    let known = |codes: &mut dyn Iterator<Item = &Code>| -> Vec<GpuCode> { codes.filter_map(plain).collect() };
    let all = known(&mut container.iter());
    if all.is_empty() {
        return None;
    }
    let too_new = |code: &&Code| matches!((&code.isa, device.driver_isa), (Some(isa), Some(driver)) if isa > driver);
    let usable = known(&mut container.iter().filter(|code| !too_new(code)));
    Some(match facts.serve(&usable, gpu, device.built, None, None) {
        Served::No => match facts.serve(&all, gpu, device.built, None, None) {
            Served::Ptx(ptx) => Served::PtxTooNew(ptx),
            other => other,
        },
        served => served,
    })
}

/// The code as the matrix speaks of it.
fn plain(code: &Code) -> Option<GpuCode> {
    let kind = match code.kind {
        CodeKind::Sass => version::CodeKind::Sass,
        CodeKind::Ptx => version::CodeKind::Ptx,
        CodeKind::LtoIr => return None,
    };
    Some(GpuCode { capability: code.capability, suffix: code.suffix, kind })
}
