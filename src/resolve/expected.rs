//! What a build that nobody here has seen will require, as far as the matrix knows.

use crate::matrix::schema::TorchBuildRow;
use crate::python::Requirement;
use crate::version::Specifiers;

/// The CUDA packages of a build: what the matrix says it pins; where it does not say, its cuDNN and NCCL alone. triton
/// is asked for in the same cases as by `sibling`, the CUDA packages of the default index's build of the same release.
pub fn cuda_packages(row: &TorchBuildRow, sibling: &[Requirement]) -> Vec<Requirement> {
    let mut packages: Vec<Requirement> = match &row.requires {
        Some(pins) => pins.iter().filter_map(|pin| pin.parse().ok()).collect(),
        None => libraries(row).iter().filter_map(|pin| pin.parse().ok()).collect(),
    };
    let pinned = |packages: &[Requirement]| packages.iter().any(|package| package.package.as_str() == "triton");
    if let Some(version) = row.triton.as_ref().filter(|_| !pinned(&packages)) {
        let bare = version.starts_with(|c: char| c.is_ascii_digit());
        let specifiers = if bare { format!("=={version}") } else { version.clone() };
        if let Ok(specifiers) = specifiers.parse::<Specifiers>() {
            let triton = sibling.iter().find(|requirement| requirement.package.as_str() == "triton").cloned();
            let triton = triton.or_else(|| "triton".parse().ok());
            packages.extend(triton.map(|triton: Requirement| triton.with_specifiers(specifiers)));
        }
    }
    packages
}

fn libraries(row: &TorchBuildRow) -> Vec<String> {
    let Some(cuda) = row.cuda else { return Vec::new() };
    let cudnn = row.cudnn.as_ref().map(|version| format!("nvidia-cudnn-cu{}=={version}", cuda.major));
    let nccl = row.nccl.as_ref().map(|version| format!("nvidia-nccl-cu{}=={version}", cuda.major));
    cudnn.into_iter().chain(nccl).collect()
}
