//! The matrix as tables: takes a [`Matrix`] and an [`Ask`], gives text for people or JSON (`gpulock.matrix/1`).

mod changes;
mod human;
mod rows;
mod table;

use serde::Serialize;

pub use changes::{audited, audited_json, updated, updated_json};

use super::human::printable;
use crate::diag::Failure;
use crate::matrix::{Gpu, Matrix};
use crate::python::Platform;
use crate::version::Specifiers;

/// What to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// What goes with what: one row a torch build.
    Stacks,
    /// torch releases with their companions.
    Torch,
    /// CUDA releases with their drivers.
    Cuda,
    /// Driver branches.
    Driver,
    /// GPUs by compute capability.
    Gpu,
    /// cuDNN releases.
    Cudnn,
    /// All of these.
    All,
}

/// What to show, and of what.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Which tables.
    pub topic: Topic,
    /// torch releases to show; all when absent.
    pub torch: Option<Specifiers>,
    /// What goes with all of these GPUs only.
    pub gpus: Vec<Gpu>,
    /// Builds for this platform.
    pub platform: Platform,
}

/// The tables that were asked for; newest first.
#[derive(Debug, Serialize)]
pub struct Tables<'m> {
    schema: &'static str,
    platform: Platform,
    /// The GPUs that were asked for: `sm_90`, or `sm_80, sm_90`.
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    builds: Option<Vec<rows::Build<'m>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    torch: Option<Vec<rows::Torch<'m>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cuda: Option<Vec<rows::Cuda<'m>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    driver: Option<Vec<rows::Driver<'m>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpus: Option<Vec<rows::GpuRow<'m>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cudnn: Option<Vec<rows::Cudnn<'m>>>,
    commands: &'static [Command],
    #[serde(skip)]
    default_index: &'m str,
}

/// What shows a part of the chain on a machine.
#[derive(Debug, Serialize)]
pub struct Command {
    shows: &'static str,
    command: &'static str,
}

/// Commands that show, on a machine, what the tables speak of.
pub const COMMANDS: &[Command] = &[
    Command { shows: "GPU and driver", command: "nvidia-smi --query-gpu=name,compute_cap,driver_version --format=csv" },
    Command { shows: "driver", command: "cat /proc/driver/nvidia/version" },
    Command {
        shows: "torch, CUDA",
        command: "python -c \"import torch; print(torch.__version__, torch.version.cuda)\"",
    },
    Command { shows: "cuDNN", command: "python -c \"import torch; print(torch.backends.cudnn.version())\"" },
    Command { shows: "NCCL", command: "python -c \"import torch; print(torch.cuda.nccl.version())\"" },
    Command { shows: "GPU code", command: "python -c \"import torch; print(torch.cuda.get_arch_list())\"" },
    Command { shows: "glibc", command: "ldd --version" },
    Command { shows: "CUDA toolkit", command: "nvcc --version" },
];

/// Capabilities, each once: `sm_80, sm_90`.
fn sm_list(gpus: &[Gpu]) -> String {
    let mut names: Vec<String> = gpus.iter().map(|gpu| gpu.capability.sm()).collect();
    names.dedup();
    names.join(", ")
}

impl<'m> Tables<'m> {
    /// Gathers what `ask` asks for.
    ///
    /// # Errors
    /// When a file of the matrix does not have its form.
    pub fn gather(matrix: &'m Matrix, ask: &Ask) -> Result<Self, Failure> {
        let wanted = |topic: Topic| ask.topic == topic || ask.topic == Topic::All;
        let of = |topic: Topic| wanted(topic).then_some(());
        let default = matrix.index()?.indexes.iter().find(|row| row.default);
        Ok(Self {
            schema: "gpulock.matrix/1",
            platform: ask.platform,
            gpu: (!ask.gpus.is_empty()).then(|| sm_list(&ask.gpus)),
            builds: of(Topic::Stacks).map(|()| rows::builds(matrix, ask)).transpose()?,
            torch: of(Topic::Torch).map(|()| rows::torch(matrix, ask)).transpose()?,
            cuda: of(Topic::Cuda).map(|()| rows::cuda(matrix, ask)).transpose()?,
            driver: of(Topic::Driver).map(|()| rows::driver(matrix, ask)).transpose()?,
            gpus: of(Topic::Gpu).map(|()| rows::gpus(matrix, ask)).transpose()?,
            cudnn: of(Topic::Cudnn).map(|()| rows::cudnn(matrix, ask)).transpose()?,
            commands: COMMANDS,
            default_index: default.map_or("", |row| row.name.as_str()),
        })
    }

    /// Whether nothing fits what was asked.
    pub fn is_empty(&self) -> bool {
        fn none<T>(rows: &Option<Vec<T>>) -> bool {
            rows.as_ref().is_none_or(Vec::is_empty)
        }
        none(&self.builds)
            && none(&self.torch)
            && none(&self.cuda)
            && none(&self.driver)
            && none(&self.gpus)
            && none(&self.cudnn)
    }

    /// As JSON; ends with a line feed.
    pub fn json(&self) -> String {
        // Strings, numbers and lists always have a form in JSON.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// As text for people; ends with a line feed.
    pub fn human(&self) -> String {
        printable(&human::text(self))
    }
}
