//! A resolver's solutions as a lock.

use std::collections::{BTreeMap, BTreeSet};

use super::{Artefact, Code, DriverSupport, FileDigest, Gpu, Lock, Package, Target, Tier, Wheel};
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::matrix;
use crate::python::Catalog;
use crate::resolve::{Chosen, Solution};
use crate::version::CodeKind;

/// What a lock holds besides its solutions.
pub struct Origin<'a> {
    /// Hash of what was asked.
    pub inputs: String,
    /// Hash of the facts.
    pub matrix: String,
    /// URL of an index by its name, without credentials.
    pub url: &'a dyn Fn(&str) -> Option<String>,
    /// Whether a package's shared libraries are locked.
    pub has_libraries: &'a dyn Fn(&Chosen) -> bool,
    /// Where RECORDs come from.
    pub catalog: &'a dyn Catalog,
}

impl Lock {
    /// The lock of these solutions.
    ///
    /// # Errors
    /// When the libraries of a wheel cannot be had, or an index told no hash.
    pub fn of(solutions: &[Solution], origin: &Origin<'_>) -> Result<Self, Failure> {
        let mut lock = Self { inputs: origin.inputs.clone(), matrix: origin.matrix.clone(), ..Self::default() };
        for solution in solutions {
            for chosen in &solution.packages {
                let index = &*chosen.index;
                let url = (origin.url)(index).unwrap_or_default();
                lock.indexes.entry(index.to_owned()).or_insert(url);
                if let Some(wheel) = &chosen.wheel
                    && !lock.wheels.contains_key(&*wheel.name.file)
                {
                    lock.wheels.insert(wheel.name.file.to_string(), locked(chosen, wheel, origin)?);
                }
            }
            lock.targets.push(target(solution));
        }
        Ok(lock)
    }
}

fn locked(chosen: &Chosen, wheel: &crate::python::Wheel, origin: &Origin<'_>) -> Result<Wheel, Failure> {
    let sha256 = wheel.sha256.as_deref().map(str::to_owned).ok_or_else(|| {
        let evidence = Evidence::observed(format!("index {}", chosen.index), format!("no hash for {}", wheel.name));
        let message = format!("the index {} tells no hash of {}, so it cannot be locked", chosen.index, wheel.name);
        Failure::unanswerable(
            Diagnostic::error("hash-missing", message, evidence)
                .fix("use an index that tells hashes (`#sha256=` in its links, or PEP 691)"),
        )
    })?;
    let libraries = if (origin.has_libraries)(chosen) { origin.catalog.libraries(wheel)? } else { Vec::new() };
    let digest =
        |library: crate::python::Library| (library.path, FileDigest { sha256: library.sha256, size: library.size });
    Ok(Wheel {
        index: chosen.index.to_string(),
        sha256,
        size: wheel.size,
        url: None,
        libraries: libraries.into_iter().map(digest).collect(),
    })
}

fn target(solution: &Solution) -> Target {
    let stack = &solution.stack;
    let gpu = |gpu: &crate::resolve::GpuService| Gpu {
        name: gpu.name.clone(),
        sm: gpu.sm.clone(),
        code: match gpu.code.map(|code| code.kind) {
            Some(CodeKind::Sass) => Code::Sass,
            Some(CodeKind::Ptx) => Code::Ptx,
            None => Code::Unknown,
        },
        from: gpu.code.map(|code| code.to_string()),
    };
    let package = |chosen: &Chosen| {
        let mut needed_by: BTreeSet<String> = chosen.needed_by.iter().map(ToString::to_string).collect();
        if chosen.asked {
            needed_by.insert(Package::MANIFEST.to_owned());
        }
        let artefact = match &chosen.wheel {
            Some(wheel) => Artefact::Wheel(wheel.name.file.to_string()),
            None => Artefact::Pending { index: chosen.index.to_string() },
        };
        let extras = chosen.extras.iter().cloned().collect();
        (chosen.package.clone(), Package { version: chosen.version.clone(), extras, artefact, needed_by })
    };
    Target {
        name: solution.target.clone(),
        platform: solution.platform,
        glibc: solution.glibc.clone(),
        python: stack.python,
        torch: stack.torch.clone(),
        variant: stack.variant.clone().unwrap_or_else(|| "unknown".into()),
        cuda: stack.cuda,
        cudnn: stack.cudnn.as_ref().and_then(|version| version.parse().ok()),
        nccl: stack.nccl.as_ref().and_then(|version| version.parse().ok()),
        driver: DriverSupport {
            given: solution.driver.given.clone(),
            floor: solution.driver.floor.clone(),
            native: solution.driver.native.clone(),
            tier: solution.driver.tier.map(|tier| match tier {
                matrix::Tier::Native => Tier::Native,
                matrix::Tier::MinorVersion => Tier::MinorVersion,
                matrix::Tier::Forward => Tier::Forward,
            }),
        },
        gpus: solution.gpus.iter().map(gpu).collect(),
        inferred: solution.inferred.iter().cloned().collect(),
        image: None,
        env: BTreeMap::new(),
        packages: solution.packages.iter().map(package).collect::<BTreeMap<_, _>>(),
    }
}
