//! Rows of the tables, as data.

use serde::Serialize;

use super::Ask;
use crate::diag::Failure;
use crate::matrix::schema::{self, Basis, GpuClass, TorchBuildRow, TorchReleaseRow};
use crate::matrix::{Gpu, Matrix, Served};
use crate::python::Platform;
use crate::version::{Capability, Cuda as CudaMinor, Cudnn as CudnnVersion, Glibc, GpuCode, Nccl};
use crate::version::{CudaRelease, Driver as DriverVersion, PtxIsa};

/// One torch build with all that goes with it.
#[derive(Debug, Serialize)]
pub(super) struct Build<'m> {
    pub(super) torch: String,
    pub(super) variant: &'m str,
    pub(super) index: &'m str,
    pub(super) platform: Platform,
    pub(super) cuda: Option<CudaMinor>,
    pub(super) driver: Option<Support>,
    pub(super) cudnn: Option<&'m CudnnVersion>,
    pub(super) nccl: Option<&'m Nccl>,
    pub(super) triton: Option<&'m str>,
    pub(super) python: Option<&'m [String]>,
    pub(super) glibc: Option<&'m Glibc>,
    pub(super) code: Option<&'m [GpuCode]>,
    /// What of `code` serves the GPUs that were asked for, as far as it is known: `sm_80, sm_90`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) serves_by: Option<String>,
    pub(super) torchvision: Option<Vec<String>>,
    pub(super) torchaudio: Option<Vec<String>>,
    pub(super) basis: &'static str,
    pub(super) source: &'m str,
    pub(super) retrieved: &'m str,
}

/// Drivers that support a CUDA.
#[derive(Debug, Serialize)]
pub(super) struct Support {
    pub(super) floor: Option<DriverVersion>,
    pub(super) native: Option<DriverVersion>,
}

/// One torch release.
#[derive(Debug, Serialize)]
pub(super) struct Torch<'m> {
    pub(super) version: String,
    pub(super) released: Option<&'m str>,
    pub(super) requires_python: Option<&'m str>,
    pub(super) torchvision: Option<Vec<String>>,
    pub(super) torchaudio: Option<Vec<String>>,
    pub(super) variants: Vec<Variant<'m>>,
    pub(super) source: &'m str,
}

/// A variant of a release on the platform that was asked for.
#[derive(Debug, Serialize)]
pub(super) struct Variant<'m> {
    pub(super) variant: &'m str,
    pub(super) index: &'m str,
}

/// One CUDA release.
#[derive(Debug, Serialize)]
pub(super) struct Cuda<'m> {
    pub(super) version: &'m CudaRelease,
    pub(super) driver: Option<&'m DriverVersion>,
    pub(super) minor: CudaMinor,
    pub(super) support: Support,
    pub(super) forward_branches: &'m [u32],
    pub(super) ptx_isa: Option<&'m PtxIsa>,
    pub(super) gpus: Vec<Capability>,
    pub(super) source: &'m str,
}

/// One driver branch.
#[derive(Debug, Serialize)]
pub(super) struct Driver<'m> {
    pub(super) branch: u32,
    pub(super) cuda: Option<CudaMinor>,
    /// CUDA families that it runs, natively or by minor-version compatibility.
    pub(super) families: Vec<u32>,
    /// CUDA minors whose cuda-compat package may be used on it.
    pub(super) forward: Vec<CudaMinor>,
    pub(super) designation: Option<&'m str>,
    pub(super) eol: Option<&'m str>,
    pub(super) source: &'m str,
}

/// One compute capability.
#[derive(Debug, Serialize)]
pub(super) struct GpuRow<'m> {
    pub(super) capability: Capability,
    pub(super) architecture: &'m str,
    pub(super) first_cuda: Option<CudaMinor>,
    pub(super) last_cuda: Option<CudaMinor>,
    pub(super) first_driver: Option<DriverVersion>,
    pub(super) last_branch: Option<u32>,
    pub(super) tegra: bool,
    pub(super) products: Vec<Products<'m>>,
    pub(super) source: &'m str,
}

/// Products of one capability and class.
#[derive(Debug, Serialize)]
pub(super) struct Products<'m> {
    pub(super) class: &'static str,
    pub(super) names: &'m [String],
}

/// One cuDNN build.
#[derive(Debug, Serialize)]
pub(super) struct Cudnn<'m> {
    pub(super) version: &'m CudnnVersion,
    pub(super) yanked: bool,
    pub(super) cuda: u32,
    pub(super) cuda_range: Option<&'m str>,
    pub(super) driver: Option<&'m DriverVersion>,
    pub(super) code: Option<&'m [GpuCode]>,
    pub(super) capabilities: Option<&'m [Capability]>,
    pub(super) platforms: &'m [Platform],
    pub(super) glibc: Option<&'m Glibc>,
    pub(super) source: &'m str,
}

pub(super) fn builds<'m>(matrix: &'m Matrix, ask: &Ask) -> Result<Vec<Build<'m>>, Failure> {
    let mut rows = Vec::new();
    for release in releases(matrix, ask)? {
        for build in release.builds.iter().filter(|build| build.platform == ask.platform) {
            let Some(serves_by) = serves(matrix, build.code.as_deref(), build.cuda, &ask.gpus)? else {
                continue;
            };
            rows.push(row(matrix, release, build, serves_by, &ask.gpus)?);
        }
    }
    Ok(rows)
}

fn row<'m>(
    matrix: &'m Matrix,
    release: &'m TorchReleaseRow,
    build: &'m TorchBuildRow,
    serves_by: Vec<GpuCode>,
    gpus: &[Gpu],
) -> Result<Build<'m>, Failure> {
    let mut driver = build.cuda.map(|cuda| support(matrix, cuda)).transpose()?;
    for row in capabilities(matrix, gpus)? {
        let Some(support) = &mut driver else { break };
        // A driver that does not know the GPU runs nothing on it.
        let first = first_driver(matrix, row.first_driver.as_ref(), row.first_cuda)?;
        support.floor = support.floor.take().max(first);
    }
    Ok(Build {
        torch: release.version.to_string(),
        variant: &build.variant,
        index: &build.index,
        platform: build.platform,
        cuda: build.cuda,
        driver,
        cudnn: build.cudnn.as_ref(),
        nccl: build.nccl.as_ref(),
        triton: build.triton.as_deref(),
        python: build.python.as_deref(),
        glibc: build.glibc.as_ref(),
        code: build.code.as_deref(),
        serves_by: (!serves_by.is_empty())
            .then(|| serves_by.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
        torchvision: release.torchvision.as_ref().map(|list| texts(list)),
        torchaudio: release.torchaudio.as_ref().map(|list| texts(list)),
        basis: match build.basis {
            Basis::Read => "read",
            Basis::Documented => "documented",
            Basis::Inferred => "inferred",
        },
        source: &build.source,
        retrieved: &build.retrieved,
    })
}

/// What of `code` serves the GPUs: `None` when one of them is not served, nothing when that is not known or not asked.
fn serves(
    matrix: &Matrix,
    code: Option<&[GpuCode]>,
    cuda: Option<CudaMinor>,
    gpus: &[Gpu],
) -> Result<Option<Vec<GpuCode>>, Failure> {
    if gpus.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let Some(cuda) = cuda else { return Ok(None) };
    let Some(code) = code else { return Ok(Some(Vec::new())) };
    let isa = matrix.cuda()?.get(cuda).and_then(|file| file.ptx_isa.as_ref());
    let mut by = Vec::new();
    for gpu in gpus {
        match matrix.gpu()?.serve(code, gpu.capability, Some(cuda), isa, None) {
            Served::Sass(code) | Served::Ptx(code) => by.push(code),
            Served::PtxTooNew(_) | Served::No => return Ok(None),
        }
    }
    by.dedup();
    Ok(Some(by))
}

/// The rows of GPUs, of those that the matrix knows.
fn capabilities<'m>(matrix: &'m Matrix, gpus: &[Gpu]) -> Result<Vec<&'m schema::GpuRow>, Failure> {
    let facts = matrix.gpu()?;
    Ok(gpus.iter().filter_map(|gpu| facts.get(gpu.capability)).collect())
}

fn support(matrix: &Matrix, cuda: CudaMinor) -> Result<Support, Failure> {
    let facts = matrix.cuda()?;
    Ok(Support { floor: facts.floor(cuda).map(|row| row.driver), native: facts.native(cuda).map(|row| row.driver) })
}

/// The torch releases that are asked for, newest first.
fn releases<'m>(matrix: &'m Matrix, ask: &Ask) -> Result<impl Iterator<Item = &'m TorchReleaseRow>, Failure> {
    let wanted = ask.torch.clone();
    let fits = move |row: &&TorchReleaseRow| wanted.as_ref().is_none_or(|wanted| wanted.contains(&row.version));
    Ok(matrix.torch()?.releases().iter().rev().map(AsRef::as_ref).filter(fits))
}

fn texts<T: ToString>(list: &[T]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

pub(super) fn torch<'m>(matrix: &'m Matrix, ask: &Ask) -> Result<Vec<Torch<'m>>, Failure> {
    let mut rows = Vec::new();
    for release in releases(matrix, ask)? {
        let mut variants = Vec::new();
        for build in release.builds.iter().filter(|build| build.platform == ask.platform) {
            if serves(matrix, build.code.as_deref(), build.cuda, &ask.gpus)?.is_some() {
                variants.push(Variant { variant: &build.variant, index: &build.index });
            }
        }
        if variants.is_empty() && !ask.gpus.is_empty() {
            continue;
        }
        rows.push(Torch {
            version: release.version.to_string(),
            released: release.released.as_deref(),
            requires_python: release.requires_python.as_deref(),
            torchvision: release.torchvision.as_ref().map(|list| texts(list)),
            torchaudio: release.torchaudio.as_ref().map(|list| texts(list)),
            variants,
            source: &release.source,
        });
    }
    Ok(rows)
}

pub(super) fn cuda<'m>(matrix: &'m Matrix, ask: &Ask) -> Result<Vec<Cuda<'m>>, Failure> {
    let facts = matrix.cuda()?;
    let mut used: Option<Vec<CudaMinor>> = None;
    if ask.torch.is_some() {
        let builds = releases(matrix, ask)?.flat_map(|release| &release.builds);
        used = Some(builds.filter_map(|build| build.cuda).collect());
    }
    let mut rows = Vec::new();
    for file in facts.cudas.iter().rev() {
        let supported: Vec<Capability> = matrix
            .gpu()?
            .file()
            .gpus
            .iter()
            .filter(|row| row.first_cuda.is_none_or(|first| first <= file.cuda))
            .filter(|row| row.last_cuda.is_none_or(|last| last >= file.cuda))
            .map(|row| row.capability)
            .collect();
        let gpu_fits = ask.gpus.iter().all(|gpu| supported.contains(&gpu.capability));
        let torch_fits = used.as_ref().is_none_or(|used| used.contains(&file.cuda));
        if !gpu_fits || !torch_fits {
            continue;
        }
        for release in file.releases.iter().rev() {
            rows.push(Cuda {
                version: &release.version,
                driver: release.driver.as_ref(),
                minor: file.cuda,
                support: support(matrix, file.cuda)?,
                forward_branches: facts.forward_branches(file.cuda),
                ptx_isa: file.ptx_isa.as_ref(),
                gpus: supported.clone(),
                source: &release.source,
            });
        }
    }
    Ok(rows)
}

pub(super) fn driver<'m>(matrix: &'m Matrix, ask: &Ask) -> Result<Vec<Driver<'m>>, Failure> {
    let facts = matrix.cuda()?;
    let mut first = None;
    let mut last: Option<u32> = None;
    for row in capabilities(matrix, &ask.gpus)? {
        first = first.max(first_driver(matrix, row.first_driver.as_ref(), row.first_cuda)?);
        last = last.into_iter().chain(row.last_branch).min();
    }
    let fits = |branch: u32| {
        first.as_ref().is_none_or(|first| branch >= first.major()) && last.is_none_or(|last| branch <= last)
    };
    let row = |row: &'m crate::matrix::schema::BranchRow| Driver {
        branch: row.branch,
        cuda: row.cuda,
        families: facts
            .families
            .iter()
            .filter(|family| family.floor.major() <= row.branch)
            .map(|family| family.cuda)
            .collect(),
        forward: facts.forward.iter().filter(|f| f.branches.contains(&row.branch)).map(|f| f.cuda).collect(),
        designation: row.designation.as_deref(),
        eol: row.eol.as_deref(),
        source: &row.source,
    };
    Ok(facts.branches.iter().rev().filter(|row| fits(row.branch)).map(row).collect())
}

/// The first driver of a GPU: as documented, else that of the first CUDA that knows it.
fn first_driver(
    matrix: &Matrix,
    documented: Option<&DriverVersion>,
    first_cuda: Option<CudaMinor>,
) -> Result<Option<DriverVersion>, Failure> {
    let facts = matrix.cuda()?;
    Ok(documented.cloned().or_else(|| facts.native(first_cuda?).map(|row| row.driver)))
}

pub(super) fn gpus<'m>(matrix: &'m Matrix, ask: &Ask) -> Result<Vec<GpuRow<'m>>, Failure> {
    let file = matrix.gpu()?.file();
    let mut rows = Vec::new();
    for row in file.gpus.iter().rev() {
        if !ask.gpus.is_empty() && ask.gpus.iter().all(|gpu| gpu.capability != row.capability) {
            continue;
        }
        let products = file.products.iter().filter(|product| product.capability == row.capability);
        rows.push(GpuRow {
            capability: row.capability,
            architecture: &row.architecture,
            first_cuda: row.first_cuda,
            last_cuda: row.last_cuda,
            first_driver: first_driver(matrix, row.first_driver.as_ref(), row.first_cuda)?,
            last_branch: row.last_branch,
            tegra: row.tegra,
            products: products.map(|row| Products { class: class(row.class), names: &row.names }).collect(),
            source: &row.source,
        });
    }
    Ok(rows)
}

fn class(class: GpuClass) -> &'static str {
    match class {
        GpuClass::Geforce => "geforce",
        GpuClass::Workstation => "workstation",
        GpuClass::DataCenter => "data-center",
        GpuClass::Jetson => "jetson",
    }
}

pub(super) fn cudnn<'m>(matrix: &'m Matrix, ask: &Ask) -> Result<Vec<Cudnn<'m>>, Failure> {
    let mut used: Option<Vec<&CudnnVersion>> = None;
    if ask.torch.is_some() {
        let builds = releases(matrix, ask)?.flat_map(|release| &release.builds);
        used = Some(builds.filter_map(|build| build.cudnn.as_ref()).collect());
    }
    let mut releases: Vec<_> = matrix.cudnn()?.into_iter().flat_map(|file| &file.releases).collect();
    releases.sort_by(|a, b| b.version.cmp(&a.version));
    let mut rows = Vec::new();
    for release in releases {
        if used.as_ref().is_some_and(|used| !used.contains(&&release.version)) {
            continue;
        }
        for build in release.builds.iter().rev() {
            let documented = |gpu: &Gpu| build.capabilities.as_ref().is_none_or(|all| all.contains(&gpu.capability));
            let newest = matrix.cuda()?.cudas.iter().rev().map(|file| file.cuda).find(|cuda| cuda.major == build.cuda);
            let fits = match &build.code {
                Some(code) => serves(matrix, Some(code), newest, &ask.gpus)?.is_some(),
                None => ask.gpus.iter().all(documented),
            };
            if !fits {
                continue;
            }
            rows.push(Cudnn {
                version: &release.version,
                yanked: release.yanked,
                cuda: build.cuda,
                cuda_range: build.cuda_range.as_deref(),
                driver: build.driver.as_ref(),
                code: build.code.as_deref(),
                capabilities: build.capabilities.as_deref(),
                platforms: &build.platforms,
                glibc: build.glibc.as_ref(),
                source: &build.source,
            });
        }
    }
    Ok(rows)
}
