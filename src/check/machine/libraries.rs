//! The driver's libraries in user space against its kernel module: both come from one package, and have to be of one version.

use super::{Context, LIBRARIES_MISSING, Layer, Line, MISMATCH, WSL_DRIVER};
use crate::diag::{Diagnostic, Evidence, Severity};
use crate::inventory::machine::DriverLibrary;
use crate::inventory::machine::libraries::{NIXOS, WSL};
use crate::inventory::shown;

const LAYER: Layer = Layer::Driver;
const TOPIC: &str = "libraries";
const CUDA: &str = "libcuda.so.1";

/// Nothing is said of a machine that has neither libraries nor a reason to have them.
pub(super) fn judge(context: &Context<'_>) -> Option<Line> {
    let found: Vec<&DriverLibrary> = first_of_each(&context.facts.libraries);
    let cuda = found.iter().find(|library| library.name == CUDA);
    if !context.is_gpu_machine() {
        let library = cuda?;
        return Some(Line::not_checked(
            LAYER,
            TOPIC,
            format!("{}, and no kernel module runs", words(library)),
            &*library.path,
        ));
    }
    let is_searched = |library: &&&DriverLibrary| {
        library.searched || context.facts.system.is_wsl() || context.facts.system.jetson.fact().is_some()
    };
    // Without the loader's own folders, LD_LIBRARY_PATH leads to it, as in the pods of GKE; that line judges its version.
    let on_path = context.facts.on_path.iter().find(|library| library.name == CUDA && !is_aside(library));
    Some(match (cuda.filter(is_searched), on_path, cuda) {
        (Some(library), ..) => there(context, library, &found),
        (None, Some(library), _) => {
            Line::ok(LAYER, TOPIC, format!("{}, by LD_LIBRARY_PATH", words(library)), &*library.path)
        }
        (None, None, Some(library)) if library.path.starts_with(NIXOS) => nixos(library),
        (None, None, library) => missing(context, library.copied()),
    })
}

/// The driver on NixOS, which its own packages are built to find; others need to be told.
fn nixos(library: &DriverLibrary) -> Line {
    let message = format!("{CUDA} lies in {NIXOS}, where programs of Nixpkgs look, and wheels from elsewhere do not");
    let claim = "packages of Nixpkgs have /run/opengl-driver/lib in their RUNPATH";
    let source = "https://github.com/NixOS/nixpkgs, pkgs/by-name/ad/addDriverRunpath/setup-hook.sh";
    let finding = LIBRARIES_MISSING.found(message, seen(library)).and(Evidence::fact(claim, source));
    let finding = Diagnostic { severity: Severity::Note, ..finding.about(&*library.path) };
    let fix = format!("start programs that are not of Nixpkgs with LD_LIBRARY_PATH={NIXOS}");
    Line::judged(LAYER, TOPIC, words(library), &*library.path, vec![finding.fix(fix)])
}

/// Whether a library is no driver's own: a cuda-compat, or a stub that is there for linking.
fn is_aside(library: &DriverLibrary) -> bool {
    is_compat(library) || is_stub(library)
}

/// Whether a library is for linking only.
pub(super) fn is_stub(library: &DriverLibrary) -> bool {
    library.file.parent().is_some_and(|folder| folder.ends_with("stubs"))
}

/// The file that the loader finds first by each name; a cuda-compat on its way is judged with CUDA.
fn first_of_each(all: &[DriverLibrary]) -> Vec<&DriverLibrary> {
    let mut first: Vec<&DriverLibrary> = Vec::new();
    for library in all.iter().filter(|library| !is_compat(library)) {
        if !first.iter().any(|known| known.name == library.name) {
            first.push(library);
        }
    }
    first
}

/// Whether a library is that of a cuda-compat package.
pub(super) fn is_compat(library: &DriverLibrary) -> bool {
    library.file.parent().is_some_and(|folder| folder.ends_with("compat"))
}

fn words(library: &DriverLibrary) -> String {
    match &library.version {
        Some(version) => format!("{} of {version}", library.name),
        None => format!("{}, whose file name has no version", library.name),
    }
}

fn seen(library: &DriverLibrary) -> Evidence {
    Evidence::observed(&*library.path, format!("leads to {}", shown(&library.file)))
}

fn missing(context: &Context<'_>, aside: Option<&DriverLibrary>) -> Line {
    let facts = context.facts;
    let version = facts.module.version.value();
    let runs =
        version.map_or_else(|| "there is a GPU".to_owned(), |version| format!("driver {version} runs in the kernel"));
    let container = facts.system.container.fact();
    let refused = container.and_then(|_| refused(context));
    let fix = match (container, aside) {
        (Some(_), _) if let Some((_, fix)) = &refused => (*fix).to_owned(),
        (Some(container), _) => format!(
            "start the container with its GPUs: --gpus all ({}), or the device plugin of the cluster",
            container.value
        ),
        (None, Some(_)) => {
            "make the loader find it: finish the package's installation (update-alternatives, ldconfig)".to_owned()
        }
        (None, None) => match version {
            Some(version) => format!(
                "install the libraries of driver {version} (libcuda1, nvidia-compute-utils, nvidia-driver-cuda)"
            ),
            None => "install the driver".to_owned(),
        },
    };
    let (text, message, evidence) = match aside {
        Some(library) => (
            format!("{}, where the loader does not look", words(library)),
            format!(
                "{runs}, and the loader does not find {CUDA}: it lies in {}",
                shown(library.file.parent().unwrap_or(&library.file))
            ),
            seen(library),
        ),
        None => (
            format!("no {CUDA}"),
            format!("{runs}, and there is no {CUDA}: torch finds no GPU"),
            Evidence::observed("the loader's folders", format!("no {CUDA}")),
        ),
    };
    let mut finding = LIBRARIES_MISSING.found(message, evidence);
    if let Some(container) = container {
        finding = finding.and(container.seen.clone());
    }
    let finding = refused.into_iter().fold(finding, |finding, (seen, _)| finding.and(seen));
    Line::judged(LAYER, TOPIC, text, "the loader's folders", vec![finding.fix(fix)])
}

/// A variable by which a container asks NVIDIA's runtime for no GPU, or for none of the libraries that compute, and what to
/// say instead (NVIDIA Container Toolkit, "Environment variables (OCI spec)").
fn refused(context: &Context<'_>) -> Option<(Evidence, &'static str)> {
    let variables = context.facts.variables.value()?;
    let seen = |name: &str, value: &str| Evidence::observed("environment", format!("{name}={value}"));
    let (gpus, parts) = ("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES");
    if let Some(value) = variables.get(gpus).filter(|value| ["", "none", "void"].contains(&value.trim())) {
        let fix = "start the container with GPUs: --gpus all, a request of nvidia.com/gpu in Kubernetes, or \
                   NVIDIA_VISIBLE_DEVICES=all, where it asks for none now";
        return Some((seen(gpus, value), fix));
    }
    let value = variables.get(parts).filter(|value| !value.is_empty())?;
    let computes = value.split(',').any(|part| ["all", "compute"].contains(&part.trim()));
    (!computes).then(|| (seen(parts, value), "start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility"))
}

fn there(context: &Context<'_>, cuda: &DriverLibrary, found: &[&DriverLibrary]) -> Line {
    let facts = context.facts;
    let how = cuda.path.as_str();
    if facts.system.is_wsl() {
        return Line::judged(LAYER, TOPIC, format!("{} in {}", cuda.name, folder(&cuda.path)), how, wsl(cuda));
    }
    if facts.system.jetson.fact().is_some() && cuda.version.is_none() {
        return Line::ok(LAYER, TOPIC, words(cuda), how);
    }
    let Some(module) = facts.module.version.fact() else {
        return Line::not_checked(
            LAYER,
            TOPIC,
            format!("{}, and no kernel module to compare it with", words(cuda)),
            how,
        );
    };
    if cuda.version.is_none() {
        return Line::not_checked(LAYER, TOPIC, words(cuda), how);
    }
    let apart = |library: &&&DriverLibrary| library.version.as_ref().is_some_and(|version| *version != module.value);
    let others: Vec<&DriverLibrary> = found.iter().filter(apart).copied().collect();
    let findings = others.first().map(|first| mismatch(context, first, &others, &module.seen)).into_iter().collect();
    Line::judged(LAYER, TOPIC, words(cuda), how, findings)
}

fn mismatch(context: &Context<'_>, first: &DriverLibrary, others: &[&DriverLibrary], module: &Evidence) -> Diagnostic {
    let (Some(runs), Some(version)) = (context.facts.module.version.value(), &first.version) else {
        return MISMATCH.found("module and libraries are of different versions", module.clone());
    };
    let names: Vec<&str> = others.iter().map(|library| library.name).collect();
    let verb = if names.len() == 1 { "is" } else { "are" };
    let message = format!(
        "the kernel module is {runs}, and {} {verb} of {version}: NVML fails with \"Driver/library version \
         mismatch\", and CUDA with 803",
        names.join(", ")
    );
    let fix = match context.facts.system.container.fact() {
        Some(_) => "start the container anew, so that it gets the libraries of the driver that runs now; if they \
                    are part of the image, take them out"
            .to_owned(),
        None if version > runs => "the driver was upgraded while the old module runs: restart the machine, or \
                                   unload all nvidia modules and load them again"
            .to_owned(),
        None => format!(
            "install libraries and modules of one version: these libraries are older than the module, \
                         {runs}"
        ),
    };
    let finding = MISMATCH.found(message, module.clone()).about(&*first.path);
    others.iter().fold(finding, |finding, library| finding.and(seen(library))).fix(fix)
}

/// A driver of Linux inside WSL comes before that of Windows. That of Windows has no version in its names, wherever a
/// container is given it (libnvidia-container, `mount_files` in `nvc_mount.c`: the folder of the image's own libraries).
fn wsl(cuda: &DriverLibrary) -> Vec<Diagnostic> {
    if cuda.version.is_none() || cuda.file.starts_with(WSL) {
        return Vec::new();
    }
    let message =
        format!("inside WSL, {} of a Linux driver comes before that of Windows: CUDA finds no device", cuda.path);
    let claim = "under WSL 2 no NVIDIA driver of Linux is to be installed";
    let fact = Evidence::fact(claim, "https://docs.nvidia.com/cuda/wsl-user-guide");
    vec![
        WSL_DRIVER
            .found(message, seen(cuda))
            .and(fact)
            .about(&*cuda.path)
            .fix("remove the driver's packages from this Linux; toolkits without a driver (cuda-toolkit) may stay"),
    ]
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}
