//! `gpulock matrix show`: tables of the matrix.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args as ClapArgs, ValueEnum};

use crate::cli::{Answer, Form, Globals, output};
use crate::diag::Failure;
use crate::manifest::{parse_platform, parse_specifiers};
use crate::matrix::{Gpu, Matrix};
use crate::python::Platform;
use crate::report::matrix::{Ask, Tables, Topic};
use crate::resolve::bad_gpu_name;
use crate::version::Specifiers;

/// Flags of `gpulock matrix show`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// What to show [default: one line a torch build with all that goes with it]
    topic: Option<TopicArg>,
    /// These torch releases only: "2.8", ">=2.7,<2.9"
    #[arg(long, value_parser = parse_specifiers, env = "GPULOCK_TORCH")]
    torch: Option<Specifiers>,
    /// What goes with this GPU only: "RTX 5090", "H100", "sm_90"; with all of them where repeated
    #[arg(long = "gpu", value_name = "GPU", env = "GPULOCK_GPU", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    gpus: Vec<String>,
    /// Builds for this platform: linux-x86_64 or linux-aarch64
    #[arg(long, value_parser = parse_platform, default_value_t, env = "GPULOCK_PLATFORM")]
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

/// Runs it.
///
/// # Errors
/// When the matrix cannot be read, or the GPU is not known.
pub fn run(args: &Args, globals: &Globals) -> Result<Answer, Failure> {
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
        gpus: args.gpus.iter().map(|name| find_gpu(&matrix, name)).collect::<Result<_, _>>()?,
        platform: args.platform,
    };
    let tables = Tables::gather(&matrix, &ask)?;
    output::write(globals, &if globals.form() == Form::Json { tables.json() } else { tables.human() })?;
    Ok(if tables.is_empty() { Answer::No } else { Answer::Yes })
}

fn find_gpu(matrix: &Matrix, name: &str) -> Result<Gpu, Failure> {
    let facts = matrix.gpu()?;
    facts.find(name).map_err(|error| Failure::unanswerable(bad_gpu_name(name, &error, facts)))
}
