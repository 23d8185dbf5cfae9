//! `gpulock matrix`: the compatibility matrix itself.

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::{Answer, Format, Globals, output};
use crate::diag::{Class, Diagnostic, Evidence, Failure};
use crate::manifest::{parse_platform, parse_specifiers};
use crate::matrix::check::{Depth, check};
use crate::matrix::{Gpu, GpuNameError, Matrix};
use crate::python::Platform;
use crate::report::json;
use crate::report::matrix::{Ask, Tables, Topic};
use crate::version::Specifiers;

/// Flags of `gpulock matrix`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show what goes with what: torch builds, CUDA, drivers, cuDNN, GPUs
    Show(ShowArgs),
    /// Validate the matrix: every problem at once
    Check,
}

/// Runs it.
///
/// # Errors
/// When the matrix cannot be read, or (for `check`) is not clean.
pub fn run(args: &Args, globals: &Globals) -> Result<Answer, Failure> {
    match &args.action {
        Action::Show(args) => show(args, globals),
        Action::Check => run_check(globals),
    }
}

#[derive(Debug, ClapArgs)]
struct ShowArgs {
    /// What to show [default: one line a torch build with all that goes with it]
    topic: Option<TopicArg>,
    /// These torch releases only: "2.8", ">=2.7,<2.9"
    #[arg(long, value_parser = parse_specifiers)]
    torch: Option<Specifiers>,
    /// What goes with this GPU only: "RTX 5090", "H100", "sm_90"
    #[arg(long)]
    gpu: Option<String>,
    /// Builds for this platform: linux-x86_64 or linux-aarch64
    #[arg(long, value_parser = parse_platform, default_value_t)]
    platform: Platform,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum TopicArg {
    /// torch releases, with torchvision and torchaudio
    Torch,
    /// CUDA releases, with their drivers
    Cuda,
    /// Driver branches
    Driver,
    /// GPUs by compute capability, with product names
    Gpu,
    /// cuDNN releases
    Cudnn,
    /// All tables
    All,
}

fn show(args: &ShowArgs, globals: &Globals) -> Result<Answer, Failure> {
    let matrix = globals.matrix()?;
    let ask = Ask {
        topic: match args.topic {
            None => Topic::Stacks,
            Some(TopicArg::Torch) => Topic::Torch,
            Some(TopicArg::Cuda) => Topic::Cuda,
            Some(TopicArg::Driver) => Topic::Driver,
            Some(TopicArg::Gpu) => Topic::Gpu,
            Some(TopicArg::Cudnn) => Topic::Cudnn,
            Some(TopicArg::All) => Topic::All,
        },
        torch: args.torch.clone(),
        gpu: args.gpu.as_deref().map(|name| find_gpu(&matrix, name)).transpose()?,
        platform: args.platform,
    };
    let tables = Tables::gather(&matrix, &ask)?;
    output::write(globals, &if globals.format == Format::Json { tables.json() } else { tables.human() })?;
    Ok(if tables.is_empty() { Answer::No } else { Answer::Yes })
}

fn find_gpu(matrix: &Matrix, name: &str) -> Result<Gpu, Failure> {
    matrix.gpu()?.find(name).map_err(|error| {
        let (message, fix) = match error {
            GpuNameError::Unknown(near) if near.is_empty() => ("is not known", "see `gpulock matrix show gpu`".into()),
            GpuNameError::Unknown(near) => ("is not known", format!("did you mean {}?", near.join(", "))),
            GpuNameError::Ambiguous(all) => ("is the name of several GPUs", format!("say which: {}", all.join(", "))),
        };
        let evidence = Evidence::observed("--gpu", name);
        Failure::unanswerable(Diagnostic::error("gpu-unknown", format!("GPU `{name}` {message}"), evidence).fix(fix))
    })
}

fn run_check(globals: &Globals) -> Result<Answer, Failure> {
    let matrix = match &globals.matrix {
        Some(directory) => Matrix::with_overlay(directory)?,
        None => Matrix::embedded(),
    };
    let failure = Failure { class: Class::No, diagnostics: check(matrix.files(), Depth::Everything) };
    if !failure.diagnostics.is_empty() {
        return Err(failure);
    }
    let files = matrix.files().paths("", "").len();
    let text = match globals.format {
        Format::Human => format!("The matrix is clean: {files} files.\n"),
        Format::Json => json::failure(&failure),
    };
    output::write(globals, &text)?;
    Ok(Answer::Yes)
}
