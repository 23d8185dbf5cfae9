//! The images that a Dockerfile is built on, against the torch that its pip installs.

use super::install::packages;
use super::read::{Dockerfile, Stage};
use super::torch::{self, Torch};
use super::{Context, Lint};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::dockerfile::{Word, image_parts};
use crate::matrix::requirement::first;
use crate::matrix::schema::GoneTagRow;
use crate::python::Platform;
use crate::version::{Cuda, CudaRelease, Cudnn};

/// CUDA of the base is not torch's.
pub const CUDA: Lint = Lint {
    code: "dockerfile-base-cuda",
    level: Severity::Warning,
    page: include_str!("../page/dockerfile-base-cuda.md"),
    run: cuda,
};

/// The base, or a package of the system, has a cuDNN of its own.
pub const CUDNN: Lint = Lint {
    code: "dockerfile-cudnn-base",
    level: Severity::Warning,
    page: include_str!("../page/dockerfile-cudnn-base.md"),
    run: cudnn,
};

/// A tag that may name another image tomorrow.
pub const FLOATING: Lint = Lint {
    code: "dockerfile-floating-tag",
    level: Severity::Warning,
    page: include_str!("../page/dockerfile-floating-tag.md"),
    run: floating,
};

/// A tag whose image was deleted.
pub const DELETED: Lint = Lint {
    code: "dockerfile-image-deleted",
    level: Severity::Error,
    page: include_str!("../page/dockerfile-image-deleted.md"),
    run: deleted,
};

/// An image of nvidia/cuda, by its tag.
struct CudaBase<'s> {
    /// `12.1.1`
    release: Option<CudaRelease>,
    cuda: Cuda,
    /// What follows the release: `cudnn8`, `runtime`, `ubuntu22.04`.
    parts: Vec<&'s str>,
    tag: &'s str,
}

fn cuda_base(stage: &Stage) -> Option<CudaBase<'_>> {
    let (name, tag) = stage.repository();
    let tag = tag.filter(|tag| !tag.contains('$'))?;
    if !(name == "nvidia/cuda" || name.ends_with("/nvidia/cuda")) || stage.parent.is_some() {
        return None;
    }
    let mut parts = tag.split('-');
    let release = parts.next().unwrap_or_default();
    let minor: Vec<&str> = release.split('.').take(2).collect();
    Some(CudaBase { release: release.parse().ok(), cuda: minor.join(".").parse().ok()?, parts: parts.collect(), tag })
}

/// A stage on a base of nvidia/cuda, with the torch that is installed on top of it.
struct Built<'d> {
    stage: &'d Stage,
    base: CudaBase<'d>,
    torch: Vec<Torch>,
}

/// All such stages of a file.
fn with_torch<'d>(file: &'d Dockerfile<'_>, context: &Context<'_>) -> Result<Vec<Built<'d>>, Failure> {
    let mut all: Vec<Built<'_>> = Vec::new();
    for at in 0..file.stages.len() {
        let Some(root) = file.chain(at).last().map(|root| &file.stages[*root]) else { continue };
        let Some(base) = cuda_base(root) else { continue };
        let mut torch = torch::of_stage(file, at, context.matrix)?;
        // Of several, of which a condition may choose one, that of the base's CUDA is the one that is meant.
        if torch.iter().any(|torch| torch.cuda() == Some(base.cuda)) {
            torch.retain(|torch| torch.cuda() == Some(base.cuda));
        }
        match all.iter_mut().find(|known| known.stage.image.span == root.image.span) {
            Some(known) => known.torch.extend(torch),
            None => all.push(Built { stage: root, base, torch }),
        }
    }
    Ok(all)
}

fn cuda(file: &Dockerfile<'_>, context: &Context<'_>) -> Result<Vec<Diagnostic>, Failure> {
    let mut findings = Vec::new();
    for Built { stage, base, torch } in with_torch(file, context)? {
        let found = torch.iter().find_map(|torch| Some((torch, torch.cuda()?)));
        let Some((torch, cuda)) = found.filter(|(_, cuda)| *cuda != base.cuda) else { continue };
        let devel = base.parts.contains(&"devel");
        let same_family = cuda.major == base.cuda.major;
        if same_family && !devel && base.cuda < cuda {
            // An older CUDA of the same family beside the one that is used asks for nothing more.
            continue;
        }
        let torch_words = torch.words();
        let message = match (same_family, devel) {
            (_, true) => format!(
                "the base brings the compiler of CUDA {}, and {torch_words} was built with CUDA {cuda}: extensions that are \
                 compiled here are of another CUDA",
                base.cuda
            ),
            (false, false) => format!(
                "the base brings CUDA {}, and {torch_words} its own CUDA {cuda}: what looks for CUDA in the system gets another \
                 one than torch",
                base.cuda
            ),
            (true, false) => format!(
                "the base brings CUDA {}, and {torch_words} its own CUDA {cuda}: the image asks for a newer driver than torch does",
                base.cuda
            ),
        };
        let place = file.lines.span(Some(stage.image.span.clone()));
        let mut finding = Diagnostic::warning(CUDA.code, message, place).and(file.lines.span(Some(torch.span.clone())));
        if let Some(build) = &torch.build {
            finding =
                finding.and(Evidence::fact(format!("{torch_words} is built with CUDA {cuda}"), &build.row().source));
        }
        if same_family && !devel {
            finding.severity = Severity::Note;
            let platform = stage.platform.unwrap_or(Platform::LinuxX86_64);
            if let Some(row) = context.matrix.image()?.requirement(base.cuda, platform) {
                let claim = format!("images of CUDA {} ask for a driver with {}", base.cuda, first(&row.expression));
                finding = finding.and(Evidence::fact(claim, &row.source));
            }
        }
        let os = base.parts.last().copied().unwrap_or_default();
        let newest = context.matrix.image()?.newest(cuda, os);
        let flavor = if devel { "devel" } else { "runtime" };
        findings.push(finding.fix(match newest {
            Some(release) => format!(
                "build on nvidia/cuda:{release}-{flavor}-{os}, or where nothing is compiled on a base without CUDA: wheels bring \
                 their own"
            ),
            None => format!("build on an image of CUDA {cuda}, or on one without CUDA: wheels bring their own"),
        }));
    }
    Ok(findings)
}

fn cudnn(file: &Dockerfile<'_>, context: &Context<'_>) -> Result<Vec<Diagnostic>, Failure> {
    let facts = context.matrix.package()?;
    let installs = || file.stages.iter().flat_map(|stage| &stage.installs);
    let named = installs().flat_map(|install| install.requirements.iter().chain(&install.wheels));
    let texts = installs().flat_map(|install| &install.files).filter_map(|(path, _)| (context.read)(path));
    let listed: Vec<_> = texts.flat_map(|text| packages(&text)).collect();
    let named = named.map(|(one, _)| (one.package.clone(), one.extras.clone()));
    if named.chain(listed).any(|(package, extras)| facts.loads_system_cudnn(&package, &extras)) {
        return Ok(Vec::new());
    }
    let mut findings = Vec::new();
    let mut of_bases = Vec::new();
    for Built { stage, base, torch } in with_torch(file, context)? {
        let Some(part) = base.parts.iter().find(|part| part.starts_with("cudnn")) else { continue };
        let Some(torch) = torch.iter().find(|torch| torch.is_cuda && !torch.is_other) else { continue };
        let without = base.tag.replacen(&format!("-{part}"), "", 1);
        let fix = format!("build on the same image without cuDNN: {}:{without}", stage.repository().0);
        findings.push(second_cudnn("the base has a cuDNN", &stage.image, torch, file).fix(fix));
        of_bases.push(stage.image.span.clone());
    }
    for at in 0..file.stages.len() {
        let chain = file.chain(at);
        if chain.last().is_some_and(|root| of_bases.contains(&file.stages[*root].image.span)) {
            continue;
        }
        let Some(package) = chain.iter().find_map(|stage| file.stages[*stage].cudnn.first()) else { continue };
        let all = torch::of_stage(file, at, context.matrix)?;
        let Some(torch) = all.iter().find(|torch| torch.is_cuda && !torch.is_other) else { continue };
        // Two of the same release are one as far as anybody notices.
        let pinned = torch.build.as_ref().and_then(|build| build.row().cudnn.as_ref());
        let given = package.text.split(['=', '-', '+']).filter(|part| part.contains('.'));
        let mut given = given.filter_map(|part| part.parse::<Cudnn>().ok());
        if given.next().zip(pinned).is_some_and(|(given, pinned)| given.covers(pinned)) {
            continue;
        }
        let finding = second_cudnn(&format!("{} is a cuDNN", package.text), package, torch, file);
        if !findings.iter().any(|known: &Diagnostic| known.evidence.first() == finding.evidence.first()) {
            findings.push(finding.fix(format!("leave {} out: torch brings its own cuDNN", package.text)));
        }
    }
    Ok(findings)
}

/// What is said of a cuDNN that is there beside torch's.
fn second_cudnn(other: &str, at: &Word, torch: &Torch, file: &Dockerfile<'_>) -> Diagnostic {
    let words = torch.words();
    let message = format!("{other} beside the one that {words} brings: the loader could take either");
    let place = file.lines.span(Some(at.span.clone()));
    let finding = Diagnostic::warning(CUDNN.code, message, place).and(file.lines.span(Some(torch.span.clone())));
    match torch.build.as_ref().and_then(|build| Some((build, build.row().cudnn.as_ref()?))) {
        Some((build, cudnn)) => finding.and(Evidence::fact(format!("{words} pins cuDNN {cudnn}"), &build.row().source)),
        None => finding,
    }
}

fn floating(file: &Dockerfile<'_>, context: &Context<'_>) -> Result<Vec<Diagnostic>, Failure> {
    // What cannot be pulled does not float. A plain word behind a variable (`ARG BASE=base`) stands for what the build names.
    let is_there = |stage: &&Stage| {
        let is_variable = file.raw(&stage.image.span).trim_start_matches(['"', '\'']).starts_with('$');
        let is_named = is_variable && !stage.image.text.contains(['/', ':']);
        !is_named && gone(stage, context).is_ok_and(|row| row.is_none())
    };
    let bases = file.stages.iter().filter(|stage| stage.parent.is_none()).filter(is_there).map(|stage| &stage.image);
    // A plain word may be a folder that the build names (`--build-context`).
    let is_image = |word: &&Word| word.text.contains(['/', ':']);
    let images = bases.chain(file.stages.iter().flat_map(|stage| &stage.sources).filter(is_image));
    let mut findings = Vec::new();
    for image in images.filter(|image| image.text != "scratch" && !image.text.contains(['$', '@'])) {
        let (name, tag, _) = image_parts(&image.text);
        let message = match tag {
            None => format!("{name} has no tag, which means `latest`: the next build may be of another image"),
            Some("latest") => format!("{name}:latest is another image whenever one is pushed"),
            Some(_) => continue,
        };
        let place = file.lines.span(Some(image.span.clone()));
        findings.push(
            Diagnostic::warning(FLOATING.code, message, place)
                .fix("name the release, and best its digest too: NAME:TAG@sha256:.."),
        );
    }
    Ok(findings)
}

/// What to do about a tag that names no release.
const NAME_A_RELEASE: &str = "name a release, such as nvidia/cuda:12.8.1-runtime-ubuntu22.04";

/// The tag of a stage's nvidia/cuda, where that was removed.
fn gone<'m>(stage: &Stage, context: &Context<'m>) -> Result<Option<&'m GoneTagRow>, Failure> {
    let (name, tag) = stage.repository();
    let images = context.matrix.image()?;
    let is_it = images.is_nvidias_cuda(name) && stage.parent.is_none() && !stage.image.text.contains(['@', '$']);
    Ok(if is_it { images.gone(tag.unwrap_or("latest")) } else { None })
}

/// A tag that names a CUDA minor alone, where those were removed.
fn minor_gone(
    stage: &Stage,
    base: &CudaBase<'_>,
    file: &Dockerfile<'_>,
    context: &Context<'_>,
) -> Result<Option<Diagnostic>, Failure> {
    let (name, _) = stage.repository();
    let images = context.matrix.image()?;
    let is_it = images.is_nvidias_cuda(name) && !stage.image.text.contains('@');
    let minor = base.cuda.to_string();
    let is_alone = base.tag.split('-').next() == Some(&*minor);
    let row = images.gone_minor(base.cuda);
    Ok(row.filter(|_| is_it && is_alone).map(|row| {
        let message =
            format!("nvidia/cuda has no tags of CUDA {minor} without a patch release any more: it cannot be pulled");
        let place = file.lines.span(Some(stage.image.span.clone()));
        let fact = Evidence::fact(format!("tags such as {} were removed", base.tag), &row.source);
        let fix = match &row.successor {
            Some(successor) => format!("build on {name}:{}", base.tag.replacen(&minor, &successor.to_string(), 1)),
            None => NAME_A_RELEASE.to_owned(),
        };
        Diagnostic::error(DELETED.code, message, place).and(fact).fix(fix)
    }))
}

fn deleted(file: &Dockerfile<'_>, context: &Context<'_>) -> Result<Vec<Diagnostic>, Failure> {
    let images = context.matrix.image()?;
    let mut findings = Vec::new();
    for stage in &file.stages {
        if let Some(row) = gone(stage, context)? {
            let message = format!("nvidia/cuda has no tag `{}` any more: it cannot be pulled", row.tag);
            let place = file.lines.span(Some(stage.image.span.clone()));
            let fact = Evidence::fact(format!("nvidia/cuda:{} was removed", row.tag), &row.source);
            findings.push(Diagnostic::error(DELETED.code, message, place).and(fact).fix(NAME_A_RELEASE));
        }
        let Some(base) = cuda_base(stage) else { continue };
        findings.extend(minor_gone(stage, &base, file, context)?);
        let Some(row) = base.release.as_ref().and_then(|release| images.deleted(release)) else { continue };
        // A digest may be held by a mirror; other registries keep what they have.
        let (name, _) = stage.repository();
        if stage.image.text.contains('@') || !images.is_nvidias_cuda(name) {
            continue;
        }
        let there = base.tag.replacen(&row.cuda.to_string(), &row.successor.to_string(), 1);
        let message = format!("the images of CUDA {} were deleted: {name}:{} cannot be pulled", row.cuda, base.tag);
        let place = file.lines.span(Some(stage.image.span.clone()));
        let fact = Evidence::fact(format!("{} is the release of that minor that stayed", row.successor), &row.source);
        findings
            .push(Diagnostic::error(DELETED.code, message, place).and(fact).fix(format!("build on {name}:{there}")));
    }
    Ok(findings)
}
