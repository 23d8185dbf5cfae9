//! A machine as it describes itself: takes a root and what may be asked besides, gives facts, each with how it was read or
//! why it was not. Files under `/proc` and `/sys` come first; `nvidia-smi` is asked only for what no file shows.
//!
//! Nothing is changed, and no device is opened but the kernel's log.

pub mod capture;
mod files;
pub mod libraries;
pub mod log;
pub mod module;
pub mod pci;
pub mod reading;
pub mod smi;
pub mod system;
pub mod toolkit;

use std::collections::BTreeMap;

pub use files::Files;
pub use libraries::{DriverLibrary, Search};
pub use log::Xid;
pub use module::Module;
pub use pci::PciDevice;
pub use reading::Reading;
pub use smi::{Smi, SmiGpu};
pub use system::{Node, System};
pub use toolkit::Toolkit;

use crate::diag::hide_value;

/// Where a captured tree has what nvidia-smi printed, and the variables of the shell.
const SMI: &str = "/gpulock/nvidia-smi.xml";
const VARIABLES: &str = "/gpulock/variables";
/// NVIDIA's program with the rights of root (nvidia-modprobe(1)).
const MODPROBE: &str = "/usr/bin/nvidia-modprobe";
/// The processor, as the kernel names it.
const PROCESSOR: &str = "/gpulock/processor";

/// All facts about a machine.
#[derive(Debug)]
pub struct Facts {
    /// Processor: `x86_64`.
    pub processor: Reading<String>,
    /// What kind of system it is.
    pub system: System,
    /// NVIDIA's devices on the PCI bus.
    pub devices: Reading<Vec<PciDevice>>,
    /// NVIDIA's kernel module.
    pub module: Module,
    /// Where libraries are looked for.
    pub search: Search,
    /// The driver's libraries.
    pub libraries: Vec<DriverLibrary>,
    /// Those that `LD_LIBRARY_PATH` leads to.
    pub on_path: Vec<DriverLibrary>,
    /// What nvidia-smi prints.
    pub smi: Reading<Smi>,
    /// Faults that the driver logged.
    pub faults: Reading<Vec<Xid>>,
    /// CUDA toolkits.
    pub toolkits: Vec<Toolkit>,
    /// The variables of the shell that the job is started from.
    pub variables: Reading<BTreeMap<String, String>>,
    /// Instances of MIG by the number of their GPU.
    pub instances: BTreeMap<u32, usize>,
    /// Whether there is the program that makes missing device nodes when CUDA starts.
    pub has_modprobe: bool,
}

/// Runs a program: its name and arguments become what it prints, or why there is nothing.
pub type Ask<'a> = &'a dyn Fn(&str, &[&str]) -> Result<String, String>;

/// What a live machine gives beyond its files.
pub struct Here<'a> {
    /// How programs are asked.
    pub ask: Ask<'a>,
    /// The variables of this process.
    pub variables: BTreeMap<String, String>,
    /// [`std::env::consts::ARCH`]
    pub processor: &'a str,
}

impl Facts {
    /// Reads a machine; `here` is absent for a captured one.
    pub fn read(files: &Files<'_>, here: Option<&Here<'_>>) -> Self {
        let system = system::read(files);
        let module = module::read(files, system.kernel.value().map(String::as_str));
        let search = libraries::search(files);
        let libraries = libraries::read(files, &search);
        let variables = variables(files, here);
        let path = variables.value().and_then(|all| all.get("LD_LIBRARY_PATH")).cloned().unwrap_or_default();
        let on_path = path.split(':').filter(|folder| folder.starts_with('/'));
        let on_path =
            on_path.flat_map(|folder| libraries::LIBRARIES.map(|name| libraries::at(files, folder, name, true)));
        Self {
            on_path: on_path.flatten().collect(),
            processor: match here {
                Some(here) => {
                    files.keep(PROCESSOR, &format!("{}\n", here.processor));
                    Reading::of(here.processor.to_owned(), "processor", here.processor)
                }
                None => files.text(PROCESSOR),
            },
            devices: pci::read(files),
            smi: smi(files, here),
            faults: log::read(files, here.is_some()),
            toolkits: toolkit::read(files),
            variables,
            instances: instances(files),
            has_modprobe: files.look(MODPROBE).is_some(),
            system,
            module,
            search,
            libraries,
        }
    }
}

fn smi(files: &Files<'_>, here: Option<&Here<'_>>) -> Reading<Smi> {
    let read = match here {
        Some(here) => smi::asked(here.ask),
        None => files.peek(SMI).then(|text| smi::parsed(&text.value, SMI)),
    };
    // What is kept of it is what was read, and no more.
    match &read {
        Reading::Is(smi) => files.keep(SMI, &smi.value.text()),
        Reading::Unread { why, .. } => files.unread(SMI, why),
        Reading::Absent(_) => {}
    }
    read
}

/// Variables by these beginnings have to do with GPUs; others are not captured.
const CAPTURED: [&str; 17] = [
    "CONDA_PREFIX",
    "CUBLAS",
    "CUDA_",
    "CUDNN_",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "MASTER_",
    "NCCL_",
    "NVIDIA_",
    "NVSHMEM_",
    "OMP_NUM_THREADS",
    "PYTORCH_",
    "RANK",
    "TORCH",
    "UCX_",
    "VIRTUAL_ENV",
    "WORLD_SIZE",
];

fn variables(files: &Files<'_>, here: Option<&Here<'_>>) -> Reading<BTreeMap<String, String>> {
    match here {
        Some(here) => {
            let is_captured = |name: &str| CAPTURED.iter().any(|begin| name.starts_with(begin));
            let is_line = |text: &str| !text.contains(char::is_control);
            let kept =
                here.variables.iter().filter(|(name, value)| is_captured(name) && is_line(name) && is_line(value));
            let lines: String = kept.map(|(name, value)| format!("{name}={}\n", hide_value(name, value))).collect();
            files.keep(VARIABLES, &lines);
            Reading::of(here.variables.clone(), "environment", "of this process")
        }
        None => files.text(VARIABLES).and_then(|text| {
            let pairs = text.lines().filter_map(|line| line.split_once('='));
            Some(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
        }),
    }
}

/// `/proc/driver/nvidia/capabilities/gpu0/mig/gi3` is an instance of the first GPU.
fn instances(files: &Files<'_>) -> BTreeMap<u32, usize> {
    const FOLDER: &str = "/proc/driver/nvidia/capabilities";
    let names = |path: &str| files.names(path).value().cloned().unwrap_or_default();
    let gpus = names(FOLDER).into_iter().filter_map(|name| Some((name.strip_prefix("gpu")?.parse().ok()?, name)));
    gpus.filter_map(|(number, name): (u32, String)| {
        let below = format!("{FOLDER}/{name}/mig");
        let instances: Vec<String> = names(&below).into_iter().filter(|name| name.starts_with("gi")).collect();
        for instance in &instances {
            let _ = files.look(&format!("{below}/{instance}"));
        }
        (!instances.is_empty()).then_some((number, instances.len()))
    })
    .collect()
}
