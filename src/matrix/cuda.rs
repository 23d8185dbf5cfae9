//! Drivers and CUDA: which driver runs which CUDA, and how it is supported.
//!
//! Takes `cuda/*.toml` and `driver.toml`. The three tiers are those of NVIDIA's CUDA Compatibility document.

use super::files::Files;
use super::schema::{BranchRow, CudaFile, DriverFile, FamilyRow, ForwardRow};
use crate::diag::Failure;
use crate::version::{Cuda, Driver, PtxIsa};

/// How a driver supports a CUDA minor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// The driver is at least the one that this CUDA was released with.
    Native,
    /// An older driver of the same family: everything but JIT of newer PTX and new features.
    MinorVersion,
    /// An older family, by the cuda-compat package.
    Forward,
}

impl Tier {
    /// The name in locks: `native`, `minor-version`, `forward`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::MinorVersion => "minor-version",
            Self::Forward => "forward",
        }
    }

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Native => "natively",
            Self::MinorVersion => "by minor-version compatibility",
            Self::Forward => "by forward compatibility (the cuda-compat package)",
        }
    }
}

/// A driver that the matrix names, and why.
#[derive(Debug, Clone)]
pub struct DriverRow {
    /// The driver.
    pub driver: Driver,
    /// What makes it worth naming.
    pub claim: String,
    /// Where that is from.
    pub source: String,
}

/// CUDA releases and drivers.
#[derive(Debug)]
pub struct CudaFacts {
    /// By minor, ascending.
    pub cudas: Vec<CudaFile>,
    /// Family floors.
    pub families: Vec<FamilyRow>,
    /// Branches, ascending.
    pub branches: Vec<BranchRow>,
    /// Forward compatibility.
    pub forward: Vec<ForwardRow>,
}

impl CudaFacts {
    pub(super) fn read(files: &Files) -> Result<Self, Failure> {
        let mut cudas: Vec<CudaFile> =
            files.paths("cuda/", ".toml").into_iter().map(|path| files.read(path)).collect::<Result<_, _>>()?;
        cudas.sort_by_key(|file| file.cuda);
        let DriverFile { families, mut branches, forward } = files.read("driver.toml")?;
        branches.sort_by_key(|row| row.branch);
        Ok(Self { cudas, families, branches, forward })
    }

    /// The facts about one minor.
    pub fn get(&self, cuda: Cuda) -> Option<&CudaFile> {
        self.cudas.iter().find(|file| file.cuda == cuda)
    }

    /// The least driver that supports `cuda` natively: the one bundled with its first release; where none is bundled,
    /// the first of its branch.
    pub fn native(&self, cuda: Cuda) -> Option<DriverRow> {
        let file = self.get(cuda)?;
        let bundled = file.releases.iter().find_map(|row| row.driver.clone().map(|driver| (driver, row)));
        match (bundled, file.branch) {
            (Some((driver, row)), _) => Some(DriverRow {
                claim: format!("CUDA {} was released with driver {driver}", row.version),
                driver,
                source: row.source.clone(),
            }),
            (None, Some(branch)) => Some(DriverRow {
                driver: branch.to_string().parse().ok()?,
                claim: format!("CUDA {cuda} goes with driver branch {branch}"),
                source: file.source.clone(),
            }),
            (None, None) => None,
        }
    }

    /// The driver of [`CudaFacts::native`] alone.
    pub fn native_driver(&self, cuda: Cuda) -> Option<Driver> {
        let file = self.get(cuda)?;
        let bundled = file.releases.iter().find_map(|row| row.driver.clone());
        bundled.or_else(|| file.branch?.to_string().parse().ok())
    }

    /// The least driver of the family of `cuda`.
    pub fn floor(&self, cuda: Cuda) -> Option<DriverRow> {
        self.families.iter().find(|row| row.cuda == cuda.major).map(|row| DriverRow {
            driver: row.floor.clone(),
            claim: format!("CUDA {}.x runs on driver {} and later", row.cuda, row.floor),
            source: row.source.clone(),
        })
    }

    /// How `driver` supports `cuda`; `forward` says that cuda-compat may be used. `None` is: not at all.
    pub fn tier(&self, driver: &Driver, cuda: Cuda, forward: bool) -> Option<Tier> {
        let floor = self.families.iter().find(|row| row.cuda == cuda.major).map(|row| &row.floor);
        if self.native_driver(cuda).is_some_and(|native| *driver >= native) {
            Some(Tier::Native)
        } else if floor.is_some_and(|floor| driver >= floor) {
            Some(Tier::MinorVersion)
        } else if forward && self.forward_branches(cuda).contains(&driver.major()) {
            Some(Tier::Forward)
        } else {
            None
        }
    }

    /// Driver branches on which cuda-compat of `cuda` may be used.
    pub fn forward_branches(&self, cuda: Cuda) -> &[u32] {
        self.forward.iter().find(|row| row.cuda == cuda).map_or(&[], |row| &row.branches)
    }

    /// The newest CUDA that `driver` supports natively.
    pub fn native_cuda(&self, driver: &Driver) -> Option<Cuda> {
        let native = |file: &&CudaFile| self.native_driver(file.cuda).is_some_and(|native| *driver >= native);
        self.cudas.iter().rev().find(native).map(|file| file.cuda)
    }

    /// The newest PTX that `driver` compiles.
    pub fn ptx_isa(&self, driver: &Driver) -> Option<&PtxIsa> {
        self.get(self.native_cuda(driver)?)?.ptx_isa.as_ref()
    }

    /// The oldest driver of a branch that the matrix knows: what a bare branch is taken for, since it means any of it.
    pub fn oldest_of_branch(&self, branch: u32) -> Option<Driver> {
        self.drivers().into_iter().map(|row| row.driver).filter(|driver| driver.major() == branch).min()
    }

    /// Every driver that the matrix names, ascending: where answers can change.
    pub fn drivers(&self) -> Vec<DriverRow> {
        let bundled = self.cudas.iter().flat_map(|file| &file.releases).filter_map(|row| {
            let driver = row.driver.clone()?;
            let claim = format!("CUDA {} was released with driver {driver}", row.version);
            Some(DriverRow { driver, claim, source: row.source.clone() })
        });
        let unbundled = self.cudas.iter().filter_map(|file| self.native(file.cuda));
        let floors = self.families.iter().filter_map(|row| self.floor(Cuda::new(row.cuda, 0)));
        let mut drivers: Vec<DriverRow> = bundled.chain(unbundled).chain(floors).collect();
        drivers.sort_by(|a, b| a.driver.cmp(&b.driver));
        drivers.dedup_by(|a, b| a.driver == b.driver);
        drivers
    }
}
