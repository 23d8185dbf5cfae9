//! The image that a target gets: what `[image]` asks for, looked up in the matrix for the stack that was locked.

use std::collections::BTreeMap;

use super::base;
use super::model::{Image, Reference, Target};
use crate::diag::{Diagnostic, Evidence, Failure, did_you_mean};
use crate::matrix::{CudaImage, ImageFacts, Matrix};
use crate::version::CudaRelease;

/// The flavor that is not made of nvidia/cuda.
pub const SLIM: &str = "slim";
/// Wheels bring their CUDA, so a small system is enough; of these, one with images of every Python.
const SLIM_OS: &str = "debian12";
/// The system that nvidia/cuda has in most releases.
const CUDA_OS: &str = "ubuntu22.04";

/// The image for `target`; `ask` is `[image]` of the manifest: `os` and `flavor`, each of which may be left out. Besides,
/// why there is none, or what it needs more than the stack does.
///
/// # Errors
/// When the matrix cannot be read.
pub fn choose(
    target: &Target,
    ask: &BTreeMap<String, String>,
    matrix: &Matrix,
) -> Result<(Image, Vec<Diagnostic>), Failure> {
    let facts = matrix.image()?;
    let flavor = ask.get("flavor").map_or(SLIM, String::as_str);
    let os = ask.get("os").map_or(if flavor == SLIM { SLIM_OS } else { CUDA_OS }, String::as_str);
    let mut image =
        Image { os: os.to_owned(), flavor: flavor.to_owned(), base: None, uv: None, small: None, requires: None };
    match fill(&mut image, target, matrix, facts) {
        Ok(warnings) => Ok((image, warnings)),
        Err(Reason::Unreadable(failure)) => Err(failure),
        // Without a part there is no image, and none of the others is of use.
        Err(Reason::None(why)) => {
            Ok((Image { base: None, uv: None, small: None, requires: None, ..image }, vec![*why]))
        }
    }
}

/// Why there is no image.
enum Reason {
    None(Box<Diagnostic>),
    Unreadable(Failure),
}

impl From<Failure> for Reason {
    fn from(failure: Failure) -> Self {
        Self::Unreadable(failure)
    }
}

fn none(code: &'static str, message: String, evidence: Evidence, fix: String) -> Reason {
    Reason::None(Box::new(Diagnostic::warning(code, message, evidence).fix(fix)))
}

fn fill(image: &mut Image, target: &Target, matrix: &Matrix, facts: &ImageFacts) -> Result<Vec<Diagnostic>, Reason> {
    let os = image.os.clone();
    let Some(system) = facts.system(&os) else {
        let known: Vec<&str> = facts.systems().collect();
        let evidence = Evidence::observed("image/os.toml", format!("known: {}", known.join(", ")));
        let fix = match did_you_mean(&os, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("set `os` in [image] to one of: {}", known.join(", ")),
        };
        let message =
            format!("the operating system `{os}` is not known here, so there is no image for {}", target.name);
        return Err(none("image-unknown", message, evidence, fix));
    };
    if let Some(glibc) = target.glibc.as_ref().filter(|glibc| **glibc > system.glibc) {
        let message =
            format!("the wheels of {} need glibc {glibc}, and {os} has {}: no image", target.name, system.glibc);
        let evidence = Evidence::fact(format!("{os} has glibc {}", system.glibc), &*system.source);
        let fix = "choose a newer `os` in [image], or name that glibc in the target: `glibc = \"..\"`".to_owned();
        return Err(none("image-glibc", message, evidence, fix));
    }
    let bare = system.image.as_ref().map(|name| reference(name));
    let mut warnings = Vec::new();
    if image.flavor == SLIM {
        image.base = facts.python(target.python, &os).map(|name| reference(&name));
        if image.base.is_some() {
            return Ok(warnings);
        }
        image.base = bare;
    } else {
        image.base = Some(reference(&cuda(image, target, matrix, facts)?));
        image.small = bare.filter(|_| image.flavor == "devel");
        warnings.extend(base::judge(image, target, matrix)?);
    }
    match facts.uv(target.python) {
        Some(uv) => image.uv = Some(reference(uv)),
        None => {
            let message = format!("nothing is known here that brings Python {} to an image of {os}", target.python);
            let evidence = Evidence::observed("image/python.toml", format!("no Python {} for {os}", target.python));
            let fix = "choose another `python` in [stack]".to_owned();
            return Err(none("image-python", message, evidence, fix));
        }
    }
    Ok(warnings)
}

fn reference(name: &str) -> Reference {
    Reference { name: name.to_owned(), digest: None }
}

/// The image of nvidia/cuda with the CUDA that torch was built with: its own release where there are images of it, else
/// the newest of the same minor.
fn cuda(image: &Image, target: &Target, matrix: &Matrix, facts: &ImageFacts) -> Result<String, Reason> {
    let os = &image.os;
    let Some(minor) = target.cuda else {
        let message =
            format!("which CUDA the torch of {} is built with is not known, so no nvidia/cuda image", target.name);
        let evidence = Evidence::observed("gpulock.lock", format!("target {} has no `cuda`", target.name));
        return Err(none("image-unknown", message, evidence, "set `flavor = \"slim\"` in [image]".into()));
    };
    let toolkit = toolkit(target, matrix)?.filter(|release| release.cuda() == minor);
    let candidates = toolkit.iter().chain(facts.newest(minor, os));
    let mut deleted = None;
    for release in candidates {
        match facts.cuda(release, &image.flavor, os) {
            CudaImage::There(name) => return Ok(name),
            CudaImage::Deleted { successor, source } => deleted = Some((release.clone(), successor, source)),
            CudaImage::Unknown => {}
        }
    }
    let others = facts.systems_with(minor);
    let (evidence, known) = match deleted {
        Some((release, successor, source)) => {
            let claim = format!("the images of CUDA {release} were deleted; those of {successor} stayed");
            (Evidence::fact(claim, source), others)
        }
        None => {
            let what = format!(
                "images of CUDA {minor}: {}",
                if others.is_empty() { "none".into() } else { others.join(", ") }
            );
            (Evidence::observed("image/nvidia-cuda.toml", what), others)
        }
    };
    let fix = match known.is_empty() {
        true => "set `flavor = \"slim\"` in [image]: the wheels bring their own CUDA".to_owned(),
        false => format!("set `os` in [image] to one of {}, or `flavor = \"slim\"`", known.join(", ")),
    };
    let message = format!("no {} image of CUDA {minor} on {os} is known here (target {})", image.flavor, target.name);
    Err(none("image-unknown", message, evidence, fix))
}

/// The CUDA release that the build of torch was made with.
fn toolkit(target: &Target, matrix: &Matrix) -> Result<Option<CudaRelease>, Failure> {
    let build = matrix
        .torch()?
        .builds(target.platform)
        .find(|build| build.release().version == target.torch && build.row().variant == target.variant);
    Ok(build.and_then(|build| build.row().toolkit.as_ref()?.parse().ok()))
}
