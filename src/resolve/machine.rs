//! A target as facts: its GPUs found in the matrix, its driver reduced to the one that decides.

use super::Request;
use crate::diag::{Class, Diagnostic, Evidence, Failure};
use crate::matrix::schema::GpuClass;
use crate::matrix::{CudaFacts, Gpu, GpuFacts, GpuNameError, Matrix};
use crate::version::{Constraint, Cuda, Driver, PtxIsa};

/// The machines of a target.
#[derive(Debug, Clone)]
pub struct Machine {
    /// GPUs, in the order given.
    pub gpus: Vec<Gpu>,
    /// The driver; `None` when the target does not name one.
    pub driver: Option<DriverAsk>,
    /// cuda-compat may be used: allowed by the target, and every GPU is a data-centre GPU.
    pub forward: bool,
    /// Unknown GPUs and the like.
    pub warnings: Vec<Diagnostic>,
}

/// The driver of a target.
#[derive(Debug, Clone)]
pub struct DriverAsk {
    /// As given.
    pub given: String,
    /// The driver to judge with: the given one; for a bare branch the oldest of it, since any may be meant; for bounds
    /// the newest that they and the GPUs allow, since the user controls it.
    pub decides: Driver,
    /// Bounds were given: the lock may ask for more than the lower one.
    pub controlled: bool,
    /// The oldest driver that was given.
    pub lowest: Option<Driver>,
    /// The newest PTX that the deciding driver compiles.
    pub ptx_isa: Option<PtxIsa>,
}

impl Machine {
    /// Finds the GPUs and the driver of a request.
    ///
    /// # Errors
    /// GPU names that are unknown or ambiguous, a driver range that holds no driver; exit class 2.
    pub fn of(request: &Request, matrix: &Matrix) -> Result<Self, Failure> {
        let facts = matrix.gpu()?;
        let mut gpus: Vec<Gpu> = Vec::new();
        let mut warnings = Vec::new();
        let mut errors = Vec::new();
        for name in &request.target.gpus {
            match facts.find(name) {
                Ok(gpu) => {
                    if !gpus.contains(&gpu) {
                        warnings.extend((!gpu.known).then(|| unknown_capability(&gpu)));
                        gpus.push(gpu);
                    }
                }
                Err(error) => errors.push(bad_gpu_name(name, &error, facts)),
            }
        }
        if !errors.is_empty() {
            return Err(Failure { class: Class::Unanswerable, diagnostics: errors });
        }
        let data_centre = |gpu: &Gpu| gpu.class == Some(GpuClass::DataCenter);
        let forward = request.target.forward_compat && gpus.iter().all(data_centre);
        if request.target.forward_compat && !forward {
            let other: Vec<&str> = gpus.iter().filter(|gpu| !data_centre(gpu)).map(|gpu| gpu.name.as_str()).collect();
            let message = format!(
                "forward compatibility is for data-centre GPUs alone, so it is not used for {}",
                other.join(", ")
            );
            warnings.push(Diagnostic::warning(
                "forward-compat-unused",
                message,
                Evidence::fact(
                    "cuda-compat supports data-centre GPUs only",
                    "NVIDIA CUDA Compatibility, \"Forward Compatibility\"",
                ),
            ));
        }
        let last_branch = gpus.iter().filter_map(|gpu| facts.get(gpu.capability)?.last_branch).min();
        let driver = match &request.target.driver {
            Some(constraint) => Some(DriverAsk::of(constraint, matrix.cuda()?, last_branch)?),
            None => None,
        };
        if let Some(ask) = &driver {
            warnings.extend(beyond_matrix(ask, matrix.cuda()?));
        }
        Ok(Self { gpus, driver, forward, warnings })
    }
}

impl DriverAsk {
    /// The driver that a constraint stands for; `last_branch` is the newest that has code for the GPUs, where one ended.
    ///
    /// # Errors
    /// `driver-unknown`: no driver is within the bounds.
    pub fn of(constraint: &Constraint<Driver>, facts: &CudaFacts, last_branch: Option<u32>) -> Result<Self, Failure> {
        let given = constraint.to_string();
        if let Some(driver) = constraint.exact() {
            let oldest = (driver.precision() == 1).then(|| facts.oldest_of_branch(driver.major())).flatten();
            let decides = oldest.unwrap_or_else(|| driver.clone());
            let ptx_isa = facts.ptx_isa(&decides).cloned();
            return Ok(Self { given, lowest: Some(decides.clone()), decides, controlled: false, ptx_isa });
        }
        // Drivers that the matrix names, and the bounds themselves: answers change nowhere else.
        let mut known: Vec<Driver> = facts.drivers().into_iter().map(|row| row.driver).collect();
        known.extend(constraint.bounds().iter().map(|bound| bound.version.clone()));
        known.retain(|driver| constraint.allows(driver));
        known.sort();
        // A bare branch as a bound stands for its oldest driver, as it does alone.
        let branch = |driver: Driver| match driver.precision() {
            1 => facts.oldest_of_branch(driver.major()).unwrap_or(driver),
            _ => driver,
        };
        let lowest = known.first().cloned().map(branch);
        let supported = known.iter().rev().find(|driver| last_branch.is_none_or(|last| driver.major() <= last));
        let decides = supported.or(known.last()).cloned().ok_or_else(|| {
            let evidence = Evidence::observed("driver", given.clone());
            Failure::unanswerable(
                Diagnostic::error("driver-unknown", format!("no known driver is {given}"), evidence)
                    .fix("name the oldest driver of these machines, such as 570.124.06, or a lower bound"),
            )
        })?;
        let ptx_isa = facts.ptx_isa(&decides).cloned();
        Ok(Self { given, decides, controlled: true, lowest, ptx_isa })
    }
}

/// The first driver that supports a GPU, and whether that is inferred.
pub fn first_driver(matrix: &Matrix, gpu: &Gpu) -> Result<Option<(Driver, String, String, bool)>, Failure> {
    let Some(row) = matrix.gpu()?.get(gpu.capability) else { return Ok(None) };
    if let Some(driver) = &row.first_driver {
        let claim = format!("{} ({}) is supported from driver {driver} on", gpu.name, gpu.capability.sm());
        return Ok(Some((driver.clone(), claim, row.source.clone(), false)));
    }
    let Some(first) = row.first_cuda.and_then(|cuda: Cuda| Some((cuda, matrix.cuda().ok()?.native(cuda)?))) else {
        return Ok(None);
    };
    let (cuda, native) = first;
    let claim = format!(
        "{} ({}) is first known to CUDA {cuda}, which was released with driver {} (inferred: no document names the \
         GPU's first driver)",
        gpu.name,
        gpu.capability.sm(),
        native.driver
    );
    Ok(Some((native.driver, claim, row.source.clone(), true)))
}

/// A driver of a branch newer than any that the matrix knows, which may be a slip of the pen.
fn beyond_matrix(ask: &DriverAsk, facts: &CudaFacts) -> Option<Diagnostic> {
    let newest = facts.branches.iter().map(|row| row.branch).max()?;
    (!ask.controlled && ask.decides.major() > newest).then(|| {
        let message = format!("driver {} is newer than this matrix, which ends with R{newest}", ask.given);
        let evidence = Evidence::observed("driver.toml", format!("no branch above {newest}"));
        Diagnostic::warning("driver-unknown", message, evidence).fix("it is taken to run every CUDA that is known here")
    })
}

fn unknown_capability(gpu: &Gpu) -> Diagnostic {
    let message = format!(
        "{} is newer than this matrix; only a build with PTX that the driver can compile is considered to serve it",
        gpu.name
    );
    Diagnostic::warning("gpu-unknown", message, Evidence::observed("gpu.toml", format!("no row {}", gpu.capability)))
        .fix("`gpulock matrix update` or a newer gpulock may know it")
}

/// What is wrong with the name of a GPU.
pub fn bad_gpu_name(name: &str, error: &GpuNameError, facts: &GpuFacts) -> Diagnostic {
    let (message, fix) = match error {
        GpuNameError::Unknown(near) if near.is_empty() => (
            format!("unknown GPU `{name}`"),
            "use a product name such as \"RTX 5090\" or a compute capability such as \"sm_90\"; `gpulock matrix show \
             gpu` lists them"
                .to_owned(),
        ),
        GpuNameError::Unknown(near) => (
            format!("unknown GPU `{name}`"),
            format!("did you mean {}? A compute capability such as \"sm_90\" works too", or_list(near)),
        ),
        GpuNameError::Ambiguous(candidates) if candidates.is_empty() => (
            format!("`{name}` is several GPUs of different compute capabilities"),
            "write the compute capability, such as \"sm_50\"".to_owned(),
        ),
        GpuNameError::Ambiguous(candidates) => (
            format!("`{name}` is several GPUs of different compute capabilities"),
            format!("write {}, or the compute capability", or_list(candidates)),
        ),
    };
    let count: usize = facts.file().products.iter().map(|row| row.names.len()).sum();
    let evidence = Evidence::observed("gpu.toml", format!("{count} product names, none that is this one alone"));
    Diagnostic::error("gpu-unknown", message, evidence).fix(fix)
}

/// `"a", "b" or "c"`
fn or_list(items: &[String]) -> String {
    let quoted: Vec<String> = items.iter().map(|item| format!("\"{item}\"")).collect();
    match &quoted[..] {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} or {last}", rest.join(", ")),
    }
}
