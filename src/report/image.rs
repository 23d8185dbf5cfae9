//! What `gpulock inspect image:FILE` shows of an image or an environment, as text and as JSON (`gpulock.inspect/1`).

use std::fmt::Write;

use serde::Serialize;

use super::human::printable;
use crate::check::image::{Answer, Requirement};
use crate::version::Capability;

/// An image and what it demands.
pub struct InspectedImage<'i> {
    /// As the user named it.
    pub given: String,
    /// `linux/amd64`, where it says so.
    pub platform: Option<&'i str>,
    /// Number of layers; absent where it is a folder.
    pub layers: Option<usize>,
    /// The program that a container of it starts, with its arguments.
    pub command: &'i [String],
    /// The Python that is judged: its prefix and its version; absent where there is none.
    pub python: Option<(&'i str, Option<String>)>,
    /// What it demands.
    pub answer: Answer,
}

/// `gpulock.inspect/1`, with images instead of files.
pub fn json(images: &[InspectedImage<'_>]) -> String {
    #[derive(Serialize)]
    struct Json<'i> {
        schema: &'static str,
        files: [(); 0],
        images: Vec<ImageJson<'i>>,
    }
    let images = images.iter().map(ImageJson::new).collect();
    super::json::text(&Json { schema: "gpulock.inspect/1", files: [], images })
}

#[derive(Serialize)]
struct ImageJson<'i> {
    path: &'i str,
    platform: Option<&'i str>,
    layers: Option<usize>,
    command: &'i [String],
    python: Option<PythonJson<'i>>,
    stack: &'i [String],
    driver: DriverJson,
    requirements: Vec<RequirementJson<'i>>,
    gpus: GpusJson,
}

/// The least drivers: for any GPU, for the libraries alone, and the first that knows their CUDA.
#[derive(Serialize)]
struct DriverJson {
    least: Option<String>,
    libraries: Option<String>,
    native: Option<String>,
}

#[derive(Serialize)]
struct PythonJson<'i> {
    prefix: &'i str,
    version: Option<&'i str>,
}

#[derive(Serialize)]
struct RequirementJson<'i> {
    variable: &'i str,
    text: &'i str,
    driver: Option<String>,
    branches: &'i [u32],
}

#[derive(Serialize)]
struct GpusJson {
    sass: Vec<String>,
    ptx: Vec<String>,
    none: Vec<String>,
}

impl<'i> ImageJson<'i> {
    fn new(image: &'i InspectedImage<'_>) -> Self {
        let answer = &image.answer;
        let floor = answer.libraries.as_ref();
        let requirement = |one: &'i Requirement| RequirementJson {
            variable: &one.variable,
            text: &one.text,
            driver: one.driver.as_ref().map(ToString::to_string),
            branches: &one.branches,
        };
        Self {
            path: &image.given,
            platform: image.platform,
            layers: image.layers,
            command: image.command,
            python: image.python.as_ref().map(|(prefix, version)| PythonJson { prefix, version: version.as_deref() }),
            stack: &answer.stack,
            driver: DriverJson {
                least: answer.driver().map(ToString::to_string),
                libraries: floor.map(|floor| floor.driver.to_string()),
                native: floor.and_then(|floor| floor.native.as_ref()).map(ToString::to_string),
            },
            requirements: answer.requirements.iter().map(requirement).collect(),
            gpus: GpusJson { sass: names(&answer.sass), ptx: names(&answer.ptx), none: names(&answer.none) },
        }
    }
}

fn names(gpus: &[Capability]) -> Vec<String> {
    gpus.iter().map(|gpu| gpu.sm()).collect()
}

/// For people; a blank line between images.
pub fn human(images: &[InspectedImage<'_>]) -> String {
    images.iter().map(block).collect::<Vec<_>>().join("\n")
}

fn block(image: &InspectedImage<'_>) -> String {
    let answer = &image.answer;
    let mut text = format!("{}\n", printable(&image.given));
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            let _ = writeln!(text, "  {name:<12} {}", printable(&value).replace(['\n', '\t'], " "));
        }
    };
    let layers = image.layers.map(|layers| format!("{layers} {}", if layers == 1 { "layer" } else { "layers" }));
    line("image", image.platform.map(str::to_owned).into_iter().chain(layers).collect::<Vec<_>>().join(", "));
    line("starts", image.command.join(" "));
    let python = image.python.as_ref().map(|(prefix, version)| match version {
        Some(version) => format!("{version} of {prefix}"),
        None => format!("that of {prefix}"),
    });
    line("Python", python.unwrap_or_default());
    line("holds", answer.stack.join(", "));
    line("driver", answer.driver().map_or_else(|| "not known".to_owned(), |driver| format!("{driver} or later")));
    for one in &answer.requirements {
        line("", required(one));
    }
    if let Some(floor) = &answer.libraries {
        let native = floor.native.as_ref().map(|native| format!(", natively from {native} on")).unwrap_or_default();
        line("", format!("its libraries (CUDA {}) run from {} on{native}", floor.cuda, floor.driver));
    }
    line("code for", names(&answer.sass).join(" "));
    line("partly PTX", names(&answer.ptx).join(" "));
    line("no code for", names(&answer.none).join(" "));
    text
}

fn required(one: &Requirement) -> String {
    let first = one.text.split(' ').find(|group| !group.is_empty()).unwrap_or_default();
    let driver = one.driver.as_ref().map(|driver| format!(" (driver {driver})")).unwrap_or_default();
    let branches: Vec<String> = one.branches.iter().map(|branch| format!("R{branch}")).collect();
    let but = match branches.is_empty() {
        true => String::new(),
        false => format!(", or {} for the brands of GPU that it lists", branches.join(", ")),
    };
    format!("{} asks for {first}{driver}{but}", one.variable)
}
