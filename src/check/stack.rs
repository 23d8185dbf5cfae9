//! What an environment is made of, as its own libraries say it: takes a case, gives the versions that rules compare.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diag::Failure;
use crate::elf::Identity;
use crate::inventory::{Distribution, Inventory, Library};
use crate::link::LinkModel;
use crate::matrix::Matrix;
use crate::python::{PackageName, Requirement};
use crate::version::Cuda;

/// Who a library says it is.
pub fn identity(library: &Library) -> Option<&Identity> {
    library.object.as_ref().ok()?.identity.as_ref()
}

/// The version that a library says it has, where it says it is `name`.
pub fn version_of<'l>(library: &'l Library, name: &str) -> Option<&'l str> {
    identity(library).filter(|identity| identity.library == name)?.version.as_deref()
}

/// The package that installed a library.
pub fn package<'i>(inventory: &'i Inventory, library: &Library) -> Option<&'i Distribution> {
    inventory.packages.get(library.package?)
}

/// An installed package by its normalised name.
pub fn distribution<'i>(inventory: &'i Inventory, name: &str) -> Option<&'i Distribution> {
    distribution_index(inventory, name).map(|at| &inventory.packages[at])
}

/// The same as an index into the inventory's packages.
pub fn distribution_index(inventory: &Inventory, name: &str) -> Option<usize> {
    inventory.packages.iter().position(|package| package.name.as_str() == name)
}

/// The CUDA runtimes that some process loads, each minor once with the library that is it. Where the library does not
/// tell (on other processors than x86-64), its package does.
pub fn runtimes(inventory: &Inventory, links: &LinkModel) -> BTreeMap<Cuda, Arc<Library>> {
    let loads = links.contexts.iter().flat_map(|context| &context.loads);
    let minor = |library: &Library| {
        identity(library).filter(|identity| identity.library == "cudart")?;
        let by_package = || {
            let package = package(inventory, library)?;
            package.name.as_str().contains("cuda-runtime").then_some(package.version.as_str())
        };
        cuda(version_of(library, "cudart").or_else(by_package)?)
    };
    loads.filter_map(|load| Some((minor(&load.library)?, Arc::clone(&load.library)))).collect()
}

/// The minor of a version such as `12.8` or `12.8.90`.
fn cuda(version: &str) -> Option<Cuda> {
    let mut numbers = version.split('.');
    format!("{}.{}", numbers.next()?, numbers.next()?).parse().ok()
}

/// The stack in words: `torch 2.8.0, CUDA 12.8, cuDNN 9.10.2, NCCL 2.27.3`, as far as it is known.
pub fn words(inventory: &Inventory, links: &LinkModel) -> Vec<String> {
    let loaded = |name: &str| {
        let loads = links.contexts.iter().flat_map(|context| &context.loads);
        loads.filter_map(|load| version_of(&load.library, name)).next().map(str::to_owned)
    };
    let present = |name: &str| {
        loaded(name).or_else(|| inventory.libraries().iter().find_map(|one| version_of(one, name)).map(str::to_owned))
    };
    let torch = distribution(inventory, "torch").map(|package| format!("torch {}", package.version));
    let cuda = runtimes(inventory, links).into_keys().next_back().map(|cuda| format!("CUDA {cuda}"));
    let cudnn = present("cudnn").map(|version| format!("cuDNN {version}"));
    let nccl = present("nccl").map(|version| format!("NCCL {version}"));
    [torch, cuda, cudnn, nccl].into_iter().flatten().collect()
}

/// Whether a library is torch's own.
pub fn is_torch(inventory: &Inventory, library: &Library) -> bool {
    package(inventory, library).is_some_and(|package| package.name.as_str() == "torch")
}

/// How names of torch's C++ namespaces begin in mangled symbols (Itanium C++ ABI: length and name), and its C functions.
const NAMESPACES: [&str; 6] = ["3c10", "2at", "5torch", "6caffe2", "8torchgen", "4c10d"];
const FUNCTIONS: [&str; 3] = ["aoti_torch_", "torch_", "THP"];

/// Whether a symbol is one of torch's: its name, or a type in it, is of torch's namespaces.
pub fn is_symbol_of_torch(symbol: &str) -> bool {
    if FUNCTIONS.iter().any(|start| symbol.starts_with(start)) {
        return true;
    }
    let Some(mangled) = symbol.strip_prefix("_Z") else { return false };
    NAMESPACES.iter().any(|name| mangled.contains(&format!("N{name}")) || mangled.contains(&format!("NK{name}")))
}

/// Whether there is any library that has to do with GPUs: torch's, NVIDIA's, one with GPU code or one that asks for a
/// CUDA library.
///
/// # Errors
/// When the matrix cannot be read.
pub fn is_gpu_stack(inventory: &Inventory, matrix: &Matrix) -> Result<bool, Failure> {
    let packages = matrix.package()?;
    Ok(inventory.libraries().iter().any(|library| {
        library.object.as_ref().is_ok_and(|object| {
            object.identity.is_some()
                || !object.gpu_code.is_empty()
                || !object.gpu_code_embedded.is_empty()
                || object.needed.iter().any(|needed| packages.is_gpu_library(needed))
        })
    }))
}

/// A requirement of a package on torch that the installed torch does not meet.
pub fn unmet_torch(inventory: &Inventory, package: &Distribution) -> Option<Requirement> {
    let version = distribution(inventory, "torch")?.pep440()?.without_local();
    // What holds for an extra or a platform alone may not hold here.
    let plain = package.requires.iter().filter(|text| !text.contains(';'));
    let mut asked = plain.filter_map(|text| text.parse::<Requirement>().ok());
    let asks = asked.find(|requirement| requirement.package.as_str() == "torch")?;
    (!asks.specifiers.contains(&version)).then_some(asks)
}

/// Installs the same release of a package once more.
pub fn reinstall(package: &Distribution) -> String {
    format!("pip install --force-reinstall --no-deps {}=={}", package.name, package.version)
}

/// What the installed packages require of a package together: `nvidia-nccl-cu12==2.27.3`; `None` where none of them names
/// a version.
pub fn required(inventory: &Inventory, package: &PackageName) -> Option<Requirement> {
    let all = inventory.packages.iter().flat_map(Distribution::requirements);
    let mut named = all.filter(|one| one.package == *package && !one.specifiers.is_empty());
    let first = named.next()?;
    let mut specifiers: Vec<_> = first.specifiers.iter().cloned().collect();
    for specifier in named.flat_map(|one| one.specifiers.iter().cloned().collect::<Vec<_>>()) {
        if !specifiers.contains(&specifier) {
            specifiers.push(specifier);
        }
    }
    Some(first.with_specifiers(specifiers.into_iter().collect()))
}

/// Whether an installed package is of a release that the others require.
pub fn is_required(inventory: &Inventory, package: &Distribution) -> bool {
    let required = required(inventory, &package.name);
    package.pep440().zip(required).is_some_and(|(version, required)| required.specifiers.contains(&version))
}

/// Installs the release of an installed package that the others require: once more where it is the one that is recorded,
/// since then its files are not what the record says. `None` where nobody requires a release.
pub fn install_required(inventory: &Inventory, package: &Distribution) -> Option<String> {
    let required = required(inventory, &package.name)?;
    Some(if is_required(inventory, package) {
        reinstall(package)
    } else {
        format!("pip install '{}{}'", required.package, required.specifiers)
    })
}
