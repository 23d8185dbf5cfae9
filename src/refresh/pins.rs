//! What a torch wheel's requirements say of CUDA, cuDNN, NCCL and triton.

use crate::python::{MarkerEnv, PackageName, Platform, PythonVersion, Requirement};
use crate::version::pep440::Operator;
use crate::version::{Cuda, CudaRelease, Cudnn, Nccl, Pep440, Specifiers};

/// The pins of one wheel; absent where it does not pin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pins {
    /// The CUDA release of its runtime, where that is known.
    pub(super) toolkit: Option<CudaRelease>,
    /// The CUDA minor of its runtime.
    pub(super) cuda: Option<Cuda>,
    pub(super) cudnn: Option<Cudnn>,
    pub(super) nccl: Option<Nccl>,
    /// A version, or a specifier that is no pin.
    pub(super) triton: Option<String>,
    /// All CUDA packages that it pins, without markers: `nvidia-cudnn-cu12==9.10.2.21`.
    pub(super) packages: Vec<String>,
}

/// Releases of `cuda-toolkit` with their requirements: which runtime belongs to which CUDA release.
pub(super) type Toolkits = Vec<(CudaRelease, Vec<Requirement>)>;

/// Reads the requirements of a wheel for `python` on `platform`. Requirements that nobody understands pin nothing.
pub(super) fn read(requires: &[String], python: PythonVersion, platform: Platform, toolkits: &Toolkits) -> Pins {
    let env = MarkerEnv::new(python, platform);
    let parsed = requires.iter().filter_map(|text| text.parse::<Requirement>().ok());
    let mut pins = Pins::default();
    let mut pinned: Vec<(PackageName, Pep440)> = Vec::new();
    for requirement in parsed.filter(|requirement| requirement.applies(&env, &[])) {
        let name = requirement.package.as_str();
        let exact = exact(&requirement.specifiers);
        if name == "triton" {
            pins.triton = Some(exact.map_or_else(|| requirement.specifiers.to_string(), ToString::to_string));
            continue;
        }
        if !name.starts_with("nvidia-") && !name.starts_with("cuda-") {
            continue;
        }
        let Some(exact) = exact else { continue };
        pins.packages.push(shown(&requirement, exact));
        pinned.push((requirement.package.clone(), exact.clone()));
        let text = exact.to_string();
        if family(name, "nvidia-cudnn").is_some() {
            pins.cudnn = text.parse().ok();
        } else if family(name, "nvidia-nccl").is_some() {
            pins.nccl = text.parse().ok();
        } else if name == "cuda-toolkit" {
            pins.toolkit = release(exact);
        } else if family(name, "nvidia-cuda-runtime").is_some() {
            // The first two numbers of a runtime are those of its CUDA.
            pins.cuda = minor(exact);
        }
    }
    pins.toolkit = pins.toolkit.or_else(|| toolkit_of(&pinned, pins.cuda?, toolkits));
    pins.cuda = pins.toolkit.as_ref().map(CudaRelease::cuda).or(pins.cuda);
    pins
}

/// The CUDA family of a package of `stem`: `nvidia-nccl-cu12`, or `nvidia-cuda-runtime` for 13 and later.
pub(super) fn family<'n>(name: &'n str, stem: &str) -> Option<Option<&'n str>> {
    let rest = name.strip_prefix(stem)?;
    if rest.is_empty() { Some(None) } else { rest.strip_prefix("-cu").map(Some) }
}

fn shown(requirement: &Requirement, exact: &Pep440) -> String {
    let extras: Vec<&str> = requirement.extras.iter().map(PackageName::as_str).collect();
    let extras = if extras.is_empty() { String::new() } else { format!("[{}]", extras.join(",")) };
    format!("{}{extras}=={exact}", requirement.package)
}

/// The version of a lone `==`.
fn exact(specifiers: &Specifiers) -> Option<&Pep440> {
    match specifiers.iter().collect::<Vec<_>>()[..] {
        [one] if *one.operator() == Operator::Equal => Some(one.version()),
        _ => None,
    }
}

/// The one release of `cuda` whose packages are those that are pinned.
fn toolkit_of(pinned: &[(PackageName, Pep440)], cuda: Cuda, toolkits: &Toolkits) -> Option<CudaRelease> {
    let agrees = |requires: &[Requirement]| {
        pinned.iter().all(|(package, version)| {
            let mut wanted = requires.iter().filter(|requirement| requirement.package == *package);
            wanted.all(|requirement| requirement.specifiers.contains(version))
        })
    };
    let mut found = toolkits.iter().filter(|(release, requires)| release.cuda() == cuda && agrees(requires));
    let (first, _) = found.next()?;
    found.next().is_none().then(|| first.clone())
}

/// `12.8.2.0` is CUDA 12.8.2.
fn release(version: &Pep440) -> Option<CudaRelease> {
    match version.release() {
        [major, minor, patch, ..] => format!("{major}.{minor}.{patch}").parse().ok(),
        _ => None,
    }
}

fn minor(version: &Pep440) -> Option<Cuda> {
    match version.release() {
        [major, minor, ..] => Some(Cuda::new(u32::try_from(*major).ok()?, u32::try_from(*minor).ok()?)),
        _ => None,
    }
}

/// The toolkits that lines of `cuda-toolkit` describe.
pub(super) fn toolkits(lines: &[super::line::Line]) -> Toolkits {
    let toolkit = |line: &super::line::Line| {
        let requires = line.requires.iter().flatten().filter_map(|text| text.parse().ok()).collect();
        Some((release(&line.version.parse().ok()?)?, requires))
    };
    lines.iter().filter_map(toolkit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Files;
    use crate::refresh::line;

    #[test]
    fn of_real_releases() {
        let files = Files::default();
        let lines = |package: &str| line::read(files.text(&format!("snapshot/{package}.jsonl")).unwrap()).unwrap();
        let toolkits = toolkits(&lines("cuda-toolkit"));
        let torch = lines("torch");
        let pins = |version: &str, platform: Platform| {
            let release = torch.iter().find(|line| line.version == version).unwrap();
            let machine = platform.machine();
            let wheel = release.wheels.iter().find(|wheel| wheel.file.contains(machine)).unwrap();
            let pins = read(release.requires_of(wheel), "3.11".parse().unwrap(), platform, &toolkits);
            let text = |value: Option<String>| value.unwrap_or_else(|| "-".into());
            [
                text(pins.cuda.map(|v| v.to_string())),
                text(pins.toolkit.map(|v| v.to_string())),
                text(pins.cudnn.map(|v| v.to_string())),
                text(pins.nccl.map(|v| v.to_string())),
                text(pins.triton),
            ]
            .join(" ")
        };
        assert_eq!(pins("2.15.0", Platform::LinuxX86_64), "13.2 13.2.2 9.26.0.51 2.30.7 ~=3.9.0");
        assert_eq!(pins("2.8.0", Platform::LinuxX86_64), "12.8 12.8.1 9.10.2.21 2.27.3 3.4.0");
        assert_eq!(pins("2.8.0", Platform::LinuxAarch64), "- - - - -");
        assert_eq!(pins("2.0.0", Platform::LinuxX86_64), "11.7 - 8.5.0.96 2.14.3 2.0.0");
    }
}
