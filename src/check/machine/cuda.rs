//! CUDA on the machine: toolkits, cuda-compat, and where the job's loader is told to look.

use super::libraries::{is_compat, is_stub};
use super::{Context, Layer, Line, MISMATCH, TOOLKIT};
use crate::diag::{Diagnostic, Evidence, Failure};
use crate::inventory::machine::{DriverLibrary, Toolkit};
use crate::inventory::shown;
use crate::matrix::schema::GpuClass;
use crate::version::Cuda;

const LAYER: Layer = Layer::Cuda;
const COMPAT: &str = "cuda-compat-wrong-target";
/// Where the container runtime takes cuda-compat from.
const MOUNTED: &str = "/usr/local/cuda/compat";

pub(super) fn judge(context: &Context<'_>) -> Result<Vec<Line>, Failure> {
    Ok(vec![toolkits(context)?, compat(context), path(context)])
}

fn toolkits(context: &Context<'_>) -> Result<Line, Failure> {
    const TOPIC: &str = "toolkits";
    let all = &context.facts.toolkits;
    let Some(first) = all.first() else {
        return Ok(Line::ok(LAYER, TOPIC, "none; torch brings the CUDA that it needs", "/usr/local/cuda*"));
    };
    let words = |toolkit: &Toolkit| {
        let release = toolkit.release.value().map_or("a release that it does not tell", String::as_str);
        match &toolkit.leads_to {
            Some(folder) => format!("{} in {} ({folder})", release, toolkit.path),
            None => format!("{} in {}", release, toolkit.path),
        }
    };
    let text: Vec<String> = all.iter().map(words).collect();
    Ok(Line::judged(LAYER, TOPIC, text.join(", "), first.release.how(), newer(context, first)?.into_iter().collect()))
}

/// The toolkit that programs are built with by default, where what it builds does not run here.
fn newer(context: &Context<'_>, toolkit: &Toolkit) -> Result<Option<Diagnostic>, Failure> {
    let (Some(driver), Some(release)) = (context.facts.module.version.fact(), toolkit.release.fact()) else {
        return Ok(None);
    };
    let mut numbers = release.value.split('.');
    let minor = numbers.next().zip(numbers.next()).map(|(major, minor)| format!("{major}.{minor}"));
    let Some(cuda) = minor.and_then(|text| text.parse::<Cuda>().ok()) else { return Ok(None) };
    let facts = context.matrix.cuda()?;
    let Some(floor) = facts.floor(cuda).filter(|floor| driver.value < floor.driver) else { return Ok(None) };
    let message = format!(
        "{} is CUDA {cuda}, and driver {} is older than CUDA {}.x asks for: what it builds fails with 35",
        toolkit.path, driver.value, cuda.major
    );
    let finding = TOOLKIT.found(message, release.seen.clone()).and(driver.seen.clone()).about(&*toolkit.path);
    let fix = format!("use an older toolkit, or install driver {} or later", floor.driver);
    Ok(Some(finding.and(Evidence::fact(floor.claim, floor.source)).fix(fix)))
}

/// A cuda-compat that is found before the driver's own library.
fn compat(context: &Context<'_>) -> Line {
    const TOPIC: &str = "cuda-compat";
    let facts = context.facts;
    let of_toolkits = facts.toolkits.iter().filter_map(|toolkit| toolkit.compat.as_ref());
    let on_path = facts.libraries.iter().filter(|library| is_compat(library));
    let mut all: Vec<&DriverLibrary> = Vec::new();
    for library in of_toolkits.chain(on_path) {
        if !all.iter().any(|known| known.file == library.file) {
            all.push(library);
        }
    }
    let Some(first) = all.first() else { return Line::ok(LAYER, TOPIC, "none", "/usr/local/cuda*/compat") };
    let words: Vec<String> = all
        .iter()
        .map(|library| match &library.version {
            Some(version) => format!("{version} in {}", shown(folder(library))),
            None => format!("in {}", shown(folder(library))),
        })
        .collect();
    if facts.module.version.value().is_none() {
        return Line::not_checked(
            LAYER,
            TOPIC,
            format!("{}; no driver to compare with", words.join(", ")),
            &*first.path,
        );
    }
    let findings = all.iter().filter_map(|library| wrong(context, library)).collect();
    Line::judged(LAYER, TOPIC, words.join(", "), &*first.path, findings)
}

fn folder(library: &DriverLibrary) -> &std::path::Path {
    library.file.parent().unwrap_or(&library.file)
}

fn wrong(context: &Context<'_>, library: &DriverLibrary) -> Option<Diagnostic> {
    let facts = context.facts;
    let (driver, version) = (facts.module.version.fact()?, library.version.as_ref()?);
    let compat = shown(folder(library));
    let told = |place: &str| {
        place.trim_end_matches('/') == compat
            || shown(std::path::Path::new(place)) == library.path.trim_end_matches("/libcuda.so.1")
    };
    let by_variable = library_path(context).iter().any(|place| told(place));
    let searched = by_variable || facts.search.configured.iter().any(|place| told(place));
    // The container runtime puts the one of an image before an older driver by itself.
    let mounted = facts.system.container.fact().is_some()
        && library.path.starts_with(MOUNTED)
        && version.major() > driver.value.major();
    // One of exactly the driver's version is the driver's own library.
    if !searched && !mounted || driver.value == *version {
        return None;
    }
    let other = |gpu: &&super::SeenGpu| matches!(gpu.class, Some(GpuClass::Geforce | GpuClass::Workstation));
    let (message, seen) = if driver.value > *version {
        (
            format!("cuda-compat {version} comes before driver {}, which is newer: CUDA fails with 803", driver.value),
            driver.seen.clone(),
        )
    } else {
        let gpu = context.ours().find(other)?;
        let message = format!(
            "cuda-compat {version} comes before driver {}, and {} is no data-centre GPU: CUDA fails with 804",
            driver.value,
            gpu.words()
        );
        (message, gpu.seen.clone())
    };
    let place = if by_variable {
        "LD_LIBRARY_PATH"
    } else if searched {
        "/etc/ld.so.conf"
    } else {
        "the container runtime"
    };
    let found = Evidence::observed(&*library.path, format!("found by {place} before the driver's own"));
    let fact = Evidence::fact(
        "cuda-compat is for older drivers and data-centre GPUs only",
        "NVIDIA CUDA Compatibility, \"Forward Compatibility\"",
    );
    let finding = Diagnostic::error(COMPAT, message, found).and(seen).and(fact).about(&*library.path);
    let fix = match searched {
        true => format!("take {compat} out of {place}, or remove the package cuda-compat"),
        false => format!("remove it in the image: rm -rf {MOUNTED}"),
    };
    Some(finding.fix(fix))
}

/// The folders of `LD_LIBRARY_PATH`.
fn library_path<'a>(context: &'a Context<'_>) -> Vec<&'a str> {
    let variables = context.facts.variables.value();
    let path = variables.and_then(|variables| variables.get("LD_LIBRARY_PATH")).map_or("", String::as_str);
    path.split(':').filter(|folder| !folder.is_empty()).collect()
}

fn path(context: &Context<'_>) -> Line {
    const TOPIC: &str = "library path";
    let facts = context.facts;
    if facts.variables.value().is_none() {
        return Line::unread(LAYER, TOPIC, &facts.variables, "the variables of the job are not there");
    }
    let folders = library_path(context);
    let mut findings = Vec::new();
    for library in &facts.on_path {
        let seen = Evidence::observed(&*library.path, format!("leads to {}", shown(&library.file)));
        if is_stub(library) {
            let message =
                format!("LD_LIBRARY_PATH leads to {}, which is for linking only: CUDA fails with 34", library.path);
            let finding = Diagnostic::error("cuda-stub-linked", message, seen).about(&*library.path);
            findings.push(finding.fix("take the stubs folder out of LD_LIBRARY_PATH"));
        } else if let (Some(version), Some(module)) = (&library.version, facts.module.version.fact())
            && *version != module.value
            && !is_compat(library)
        {
            let message = format!(
                "LD_LIBRARY_PATH leads to {} of {version}, and the kernel module is {}: CUDA fails with 803",
                library.name, module.value
            );
            let finding = MISMATCH.found(message, seen).and(module.seen.clone()).about(&*library.path);
            findings.push(finding.fix("take its folder out of LD_LIBRARY_PATH"));
        }
    }
    let text = match folders.len() {
        0 => "LD_LIBRARY_PATH is not set".to_owned(),
        _ => format!("LD_LIBRARY_PATH={}", folders.join(":")),
    };
    Line::judged(LAYER, TOPIC, text, facts.variables.how(), findings)
}
