//! The driver's own libraries inside an image: they hide those that the machine's driver brings.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use crate::check::{Case, Claims, Outcome, Rule, evidence};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::inventory::machine::libraries::WSL;
use crate::inventory::{DriverFile, DriverFileKind, Inventory, Root, SubjectKind};
use crate::version::Driver;

pub const RULE: Rule = Rule {
    code: "driver-library-in-image",
    level: Severity::Error,
    page: include_str!("../page/driver-library-in-image.md"),
    run,
};

/// Files that a finding names besides the first.
const SHOWN: usize = 4;
/// Where the container runtime's mounts are known to leave empty files.
const EMPTY: &str = "https://github.com/NVIDIA/libnvidia-container/issues/140";

fn run(case: &Case<'_>, _: &mut Claims<'_>) -> Result<Outcome, Failure> {
    // Only an image can carry what should be mounted into it.
    if !case.inventory.subject.kind.is_root() || is_machine(case.inventory) {
        return Ok(Outcome::Ran(Vec::new()));
    }
    let root = &case.inventory.root;
    let own = case.inventory.driver.iter().filter(|file| file.kind == DriverFileKind::Driver);
    let own = own.filter(|file| !file.path.starts_with(WSL));
    let own = own.filter(|file| !case.inventory.apptainer || is_named(case.inventory, file));
    let (empty, whole): (Vec<_>, Vec<_>) = own.partition(|file| is_empty(root, &file.file));
    // Only `libcuda.so.1` is known by its name alone: of others the version says whose they are.
    let whole = whole.into_iter().filter(|file| file.version.is_some() || file.is_cuda());
    let findings = by_version(whole).into_iter().map(|(version, files)| carried(version, &files));
    let left = by_version(empty.into_iter()).into_iter().map(|(version, files)| left(version, &files));
    Ok(Outcome::Ran(findings.chain(left).collect()))
}

/// Whether a root filesystem is that of a machine: it has modules for its kernel, as `depmod` lists them, and its driver's
/// libraries belong there. An image has no kernel, whatever packages left in it.
fn is_machine(inventory: &Inventory) -> bool {
    let modules = Path::new("/lib/modules");
    let listed = |name: OsString| inventory.root.resolve(&modules.join(name).join("modules.dep")).is_ok();
    inventory.subject.kind != SubjectKind::Image && inventory.root.list(modules).into_iter().any(listed)
}

/// Whether its folder is on LD_LIBRARY_PATH: what Apptainer binds comes behind that, and before all that the loader finds
/// by itself.
fn is_named(inventory: &Inventory, file: &DriverFile) -> bool {
    let path = inventory.variables.get("LD_LIBRARY_PATH").map(String::as_str).unwrap_or_default();
    let folder = file.path.parent().and_then(|folder| inventory.root.resolve(folder).ok());
    path.split(':').any(|named| folder.is_some() && inventory.root.resolve(Path::new(named)).ok() == folder)
}

/// Whether a file has nothing in it.
pub fn is_empty(root: &Root, file: &Path) -> bool {
    root.look(file).is_ok_and(|look| look.size == 0)
}

type Files<'f> = Vec<&'f DriverFile>;

fn by_version<'f>(files: impl Iterator<Item = &'f DriverFile>) -> BTreeMap<Option<&'f Driver>, Files<'f>> {
    let mut all: BTreeMap<_, Files<'_>> = BTreeMap::new();
    for file in files {
        all.entry(file.version.as_ref()).or_default().push(file);
    }
    // That which decides first.
    all.values_mut().for_each(|files| files.sort_by_key(|file| !file.is_cuda()));
    all
}

/// `libcuda, libnvidia-ml`, each once.
fn names(files: &[&DriverFile]) -> String {
    let mut names: Vec<&str> = Vec::new();
    files.iter().for_each(|file| {
        if !names.contains(&file.library) {
            names.push(file.library)
        }
    });
    names.join(", ")
}

fn seen(file: &DriverFile) -> Evidence {
    Evidence::observed(file.path.display().to_string(), format!("leads to {}", file.file.display()))
}

fn carried(version: Option<&Driver>, files: &[&DriverFile]) -> Diagnostic {
    let of = match version {
        Some(version) => format!("driver {version}"),
        None => "a driver, whose version its name does not tell,".to_owned(),
    };
    let fails = match files.iter().any(|file| file.is_cuda()) {
        true => "CUDA fails with \"system has unsupported display driver / cuda driver combination\" (803)",
        false => "they do not fit it (\"driver/library version mismatch\")",
    };
    let are = match files.iter().all(|file| file.is_cuda()) {
        true => format!("the library of {of} is part of the image"),
        false => format!("libraries of {of} are part of the image ({})", names(files)),
    };
    let message = format!("{are}: on a machine with another driver {fails}");
    let mut each = files.iter().map(|file| seen(file));
    let first = each.next().unwrap_or_else(|| Evidence::observed("the image", "a library of a driver"));
    let subject = files.first().map_or(String::new(), |file| file.path.display().to_string());
    evidence::finding(Diagnostic::error(RULE.code, message, first), each.take(SHOWN))
        .about(subject)
        .fix("do not install the driver in an image; the container runtime brings the machine's own")
}

/// What mounts leave behind: `docker commit`, and builds in which the container runtime is the default one.
fn left(version: Option<&Driver>, files: &[&DriverFile]) -> Diagnostic {
    let of = version.map_or_else(|| "a driver".to_owned(), |version| format!("driver {version}"));
    let message = format!(
        "empty files lie where the container runtime had mounted the libraries of {of} ({}): the image was made of a \
         container that ran with GPUs, and they are none",
        names(files)
    );
    let empty = |file: &&DriverFile| Evidence::observed(file.file.display().to_string(), "0 bytes");
    let mut each = files.iter().map(empty);
    let first = each.next().unwrap_or_else(|| Evidence::observed("the image", "an empty library"));
    let fact = Evidence::fact("files that are mounted while an image is built are left in it with zero bytes", EMPTY);
    let mut finding = evidence::finding(Diagnostic::error(RULE.code, message, first), each.take(SHOWN).chain([fact]));
    // The runtime mounts the machine's own beside them, or over them.
    finding.severity = Severity::Warning;
    let file = files.first().map(|file| file.file.display().to_string());
    finding
        .about(file.unwrap_or_default())
        .fix("remove them in the image; build without the NVIDIA runtime instead of `docker commit`")
}
