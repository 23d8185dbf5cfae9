//! The files of `compat-matrix/` as data: one struct a table, keys in kebab-case, unknown keys refused.
//!
//! What is not known is absent. Every table says where it is from (`source`) and when that was read (`retrieved`).

mod cuda;
mod cudnn;
mod dlopen;
mod env_vars;
mod gpu;
mod gpu_code;
mod image;
mod index;
mod message;
mod pci;
mod torch;

use serde::Deserialize;

pub use cuda::{BranchRow, CudaFile, CudaReleaseRow, DriverFile, FamilyRow, ForwardRow};
pub use cudnn::{CudnnBuildRow, CudnnFile, CudnnReleaseRow};
pub use dlopen::{
    AbsentRow, DlopenFile, EdgeRow, FallbackRow, ImportRow, InterpreterRow, OnFailure, OnMissing, OpenRow, StepRow,
    WorkloadRow,
};
pub use env_vars::{
    DebuggingVariablesRow, EnvVarsFile, KnownVariablesRow, RenamedVariablesRow, UnreadVariablesRow, VariableFamilyRow,
    VariableListingRow, VariableReader,
};
pub use gpu::{AmbiguousRow, CodeFamilyRow, CubinRow, GpuClass, GpuFile, GpuRow, NamesRow, ProductRow};
pub use gpu_code::{GpuCodeFile, OptionalCodeRow, PerArchitectureRow, StubRow};
pub use image::{
    CudaImageFile, CudaImageRow, DeletedImageRow, FlavorRow, GoneMinorRow, GoneTagRow, ImageRequirementRow, OsFile,
    OsRow, PythonImageFile, PythonImageRow, TorchImageRow, UvRow,
};
pub use index::{
    CudaDigits, IndexFile, IndexRow, PackageFile, PrivateRow, SameCudaRow, SnapshotFile, SnapshotPackages,
    SystemCudnnRow, UnfitRow,
};
pub use message::{AnswerRow, ComponentRow, ExitRow, MessageFile, ToolRow, UnknownRow};
pub use pci::{ChipRow, ModulesRow, OpenModules, PciFile};
pub use torch::{TorchBuildRow, TorchFile, TorchReleaseRow};

/// How a fact is known; read beats the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// Read from the artefact itself.
    Read,
    /// A document of the vendor or project says so.
    #[default]
    Documented,
    /// Derived from other facts.
    Inferred,
}
