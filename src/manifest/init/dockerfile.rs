//! A Dockerfile: base images, variables, and the pip and Python that its RUN lines install.

use std::ops::Range;

use super::{Findings, SystemPythons};
use crate::diag::{Evidence, SourceText};
use crate::dockerfile::{PIP_VALUED, Variables, Word, commands, image_parts, instructions, pip_install};
use crate::manifest::model::PythonAsk;
use crate::manifest::value::{parse_cuda, parse_cudnn, parse_python, parse_specifiers};
use crate::python::PackageName;
use crate::version::Capability;

pub(super) fn read(source: SourceText<'_>, pythons: &SystemPythons, found: &mut Findings) {
    let mut variables = Variables::new();
    let mut stages: Vec<String> = Vec::new();
    let mut system = System { pythons, name: None, installs: None };
    for instruction in instructions(source.text) {
        let commands = commands(source.text, &instruction, &variables);
        match instruction.keyword.as_str() {
            "ARG" => {
                for word in commands.iter().flatten() {
                    let (name, value) = word.text.split_once('=').unwrap_or((&word.text, ""));
                    if name == "TORCH_CUDA_ARCH_LIST" {
                        architectures(value, source.span(Some(word.span.clone())), found);
                    }
                    if !value.is_empty() {
                        variables.insert(name.to_owned(), value.to_owned());
                    }
                }
            }
            "ENV" => environment(source, commands.first().map_or(&[], Vec::as_slice), &mut variables, found),
            "FROM" => from(source, commands.first().map_or(&[], Vec::as_slice), &mut stages, &mut system, found),
            "RUN" => commands.iter().for_each(|words| command(source, words, &mut system, found)),
            _ => {}
        }
    }
    system.python(found);
}

/// The operating system of the image, which may bring the Python.
struct System<'p> {
    pythons: &'p SystemPythons,
    /// Its name, as `pythons` has it.
    name: Option<String>,
    /// Where its `python3` is installed.
    installs: Option<Evidence>,
}

impl System<'_> {
    /// Another image begins; `name` is what it says of its system.
    fn begin(&mut self, name: &str) {
        self.installs = None;
        self.name = self.pythons.contains_key(name).then(|| name.to_owned());
    }

    /// Takes the system's Python where it is installed and nothing else says which.
    fn python(self, found: &mut Findings) {
        let (None, Some(place)) = (&found.stack.python, self.installs) else { return };
        match self.name.and_then(|name| Some((self.pythons.get(&name)?, name))) {
            Some((python, name)) => {
                found.understood(place, format!("[stack] python = \"{python}\": what {name} calls python3"));
                found.stack.python = Some(PythonAsk::Exact(*python));
            }
            None => {
                let message = "which Python this system calls python3 is not known here";
                found.not_understood(place, message, "set `python` in [stack]");
            }
        }
    }
}

/// Whether a package of an operating system is its own Python, or something for it.
fn is_system_python(package: &str) -> bool {
    package == "python3" || package.starts_with("python3-") || package == "python-is-python3"
}

/// `ENV NAME=value NAME=value`, or `ENV NAME value`.
fn environment(source: SourceText<'_>, words: &[Word], variables: &mut Variables, found: &mut Findings) {
    let pairs: Vec<(String, String, Range<usize>)> = match words {
        [name, value @ ..] if !name.text.contains('=') && !value.is_empty() => {
            let text: Vec<&str> = value.iter().map(|word| word.text.as_str()).collect();
            vec![(name.text.clone(), text.join(" "), name.span.clone())]
        }
        _ => words
            .iter()
            .filter_map(|word| {
                word.text.split_once('=').map(|(name, value)| (name.into(), value.into(), word.span.clone()))
            })
            .collect(),
    };
    const CARRIED: [&str; 6] = ["NCCL_", "PYTORCH_", "TORCH_", "CUDA_", "CUBLAS_", "OMP_"];
    const LEFT: [&str; 4] = ["CUDA_HOME", "CUDA_PATH", "CUDA_VERSION", "PYTORCH_VERSION"];
    for (name, value, span) in pairs {
        let place = source.span(Some(span));
        if name == "TORCH_CUDA_ARCH_LIST" {
            architectures(&value, place, found);
        } else if CARRIED.iter().any(|prefix| name.starts_with(prefix))
            && !LEFT.contains(&name.as_str())
            && !value.contains('$')
        {
            found.understood(place, format!("[env] {name} = \"{value}\""));
            found.env.insert(name.clone(), value.clone());
        }
        variables.insert(name, value);
    }
}

/// `TORCH_CUDA_ARCH_LIST`: the GPUs that extensions are compiled for.
fn architectures(value: &str, place: Evidence, found: &mut Findings) {
    for one in value.split([' ', ';', ',']).filter(|one| !one.is_empty()) {
        let number = one.trim_end_matches("+PTX").trim_end_matches(['a', 'f']);
        match number.parse::<Capability>() {
            Ok(capability) if !found.gpus.contains(&capability.sm()) => {
                found.understood(place.clone(), format!("GPU {} of TORCH_CUDA_ARCH_LIST", capability.sm()));
                found.gpus.push(capability.sm());
            }
            Ok(_) => {}
            Err(_) => {
                let message = format!("`{one}` of TORCH_CUDA_ARCH_LIST is not a number");
                found.not_understood(place.clone(), message, "add the GPUs to `gpus` of the target");
            }
        }
    }
}

fn from(
    source: SourceText<'_>,
    words: &[Word],
    stages: &mut Vec<String>,
    system: &mut System<'_>,
    found: &mut Findings,
) {
    let mut rest = words;
    while let [flag, after @ ..] = rest {
        let Some(flag_text) = flag.text.strip_prefix("--") else { break };
        if flag_text.strip_prefix("platform=").is_some_and(|platform| platform.starts_with("linux/arm64")) {
            found.understood(source.span(Some(flag.span.clone())), "platform = \"linux-aarch64\"");
            found.platform.get_or_insert(crate::python::Platform::LinuxAarch64);
        }
        rest = after;
    }
    let Some(image) = rest.first() else { return };
    let place = source.span(Some(image.span.clone()));
    let named = stages.contains(&image.text.to_lowercase());
    if let [_, as_word, stage] = rest
        && as_word.text.eq_ignore_ascii_case("as")
    {
        stages.push(stage.text.to_lowercase());
    }
    if named || image.text == "scratch" {
        return;
    }
    let (path, tag, _) = image_parts(&image.text);
    let tag = tag.unwrap_or("latest");
    let mut parts = path.rsplit('/');
    let (last, owner) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    // `slim` and the like say nothing about the system's Python.
    let as_system = format!("{last}:{}", tag.split('-').next().unwrap_or_default());
    system.begin(&as_system);
    match (owner, last) {
        ("nvidia", "cuda") => cuda_image(tag, place, system, found),
        ("nvidia", "pytorch") => {
            let message = format!("`{}` holds NVIDIA's own build of torch, which is on no index", image.text);
            found.not_understood(place, message, "say in [stack] which torch is wanted instead");
        }
        ("pytorch", "pytorch") => torch_image(tag, place, found),
        (_, "python") => match parse_python(tag.split('-').next().unwrap_or_default()) {
            Ok(ask @ PythonAsk::Exact(_)) => found.python(ask, place),
            _ => found.not_understood(
                place,
                format!("`{}` does not say which Python", image.text),
                "set `python` in [stack]",
            ),
        },
        _ if system.name.is_some() => {}
        _ => {
            let fix = "if it brings Python, CUDA or torch, say in [stack] which are wanted";
            found.not_understood(place, format!("the image `{}` is not known here", image.text), fix);
        }
    }
}

/// `nvidia/cuda:12.1.1-cudnn8-runtime-ubuntu22.04`.
fn cuda_image(tag: &str, place: Evidence, system: &mut System<'_>, found: &mut Findings) {
    let parts: Vec<&str> = tag.split('-').collect();
    let major = parts[0].split('.').next().unwrap_or_default();
    match parse_cuda(major) {
        Ok(cuda) if found.stack.cuda.is_none() && !major.is_empty() => {
            let why = "wheels bring their own CUDA, so only the family is asked for";
            found.understood(place.clone(), format!("[stack] cuda = \"{major}\": {why}"));
            found.stack.cuda = Some(cuda);
            found.cuda_of_base = Some(place.clone());
        }
        Ok(_) => {}
        Err(_) => {
            found.not_understood(place.clone(), format!("`{tag}` does not say which CUDA"), "set `cuda` in [stack]")
        }
    }
    for part in &parts[1..] {
        if part.starts_with("cudnn") {
            found.understood(place.clone(), format!("`{part}` is left out: torch's wheels bring their own cuDNN"));
            continue;
        }
        let key = match *part {
            "base" | "runtime" | "devel" => "flavor",
            part if part.starts_with(|c: char| c.is_ascii_alphabetic())
                && part.ends_with(|c: char| c.is_ascii_digit()) =>
            {
                system.begin(part);
                "os"
            }
            _ => continue,
        };
        found.understood(place.clone(), format!("[image] {key} = \"{part}\""));
        found.image.insert(key.into(), (*part).into());
    }
}

/// The cuDNN of an image's tag, by its major; newer tags do not say which.
fn cudnn(version: &str, place: &Evidence, found: &mut Findings) {
    match parse_cudnn(version) {
        Ok(cudnn) if found.stack.cudnn.is_none() => {
            found.understood(place.clone(), format!("[stack] cudnn = \"{version}\""));
            found.stack.cudnn = Some(cudnn);
        }
        Ok(_) => {}
        Err(_) => found.understood(place.clone(), "cuDNN in a version that the tag does not tell: left to torch"),
    }
}

/// `pytorch/pytorch:2.3.0-cuda12.1-cudnn8-runtime`.
fn torch_image(tag: &str, place: Evidence, found: &mut Findings) {
    for (at, part) in tag.split('-').enumerate() {
        if let Some(version) = part.strip_prefix("cuda") {
            if let Ok(cuda) = parse_cuda(version) {
                found.understood(place.clone(), format!("[stack] cuda = \"{version}\""));
                found.stack.cuda = Some(cuda);
            }
        } else if let Some(version) = part.strip_prefix("cudnn") {
            cudnn(version, &place, found);
        } else if ["runtime", "devel"].contains(&part) {
            found.understood(place.clone(), format!("[image] flavor = \"{part}\""));
            found.image.insert("flavor".into(), part.into());
        } else if at == 0 {
            match (part.parse(), parse_specifiers(part)) {
                (Ok::<PackageName, _>(_), Ok(specifiers)) => {
                    if let Ok(torch) = "torch".parse() {
                        found.ask(torch, Vec::new(), specifiers, place.clone());
                    }
                }
                _ => found.not_understood(
                    place.clone(),
                    format!("`{tag}` does not say which torch"),
                    "set `torch` in [stack]",
                ),
            }
        }
    }
}

fn command(source: SourceText<'_>, words: &[Word], system: &mut System<'_>, found: &mut Findings) {
    let is = |at: usize, text: &str| words.get(at).is_some_and(|word| word.text == text);
    let place = |word: &Word| source.span(Some(word.span.clone()));
    if let Some(first) = pip_install(words) {
        return packages(source, &words[first..], found);
    }
    if let Some(at) = (0..words.len()).find(|at| is(*at, "uv") && is(at + 1, "add")) {
        return packages(source, &words[at + 2..], found);
    }
    if words.iter().any(|word| ["conda", "mamba", "micromamba"].contains(&word.text.as_str())) {
        const WANTED: [&str; 3] = ["pytorch", "torch", "pytorch-cuda"];
        for (at, word) in words.iter().enumerate() {
            let name = word.text.split(['=', '<', '>']).next().unwrap_or_default();
            let channel = at > 0 && (is(at - 1, "-c") || is(at - 1, "--channel"));
            if !WANTED.contains(&name) || channel {
                continue;
            }
            let message = format!("`{}` is a conda package, which is not locked", word.text);
            found.not_understood(place(word), message, "say in [stack] which torch and CUDA are wanted");
        }
        if let Some((word, version)) = words.iter().find_map(|word| Some((word, word.text.strip_prefix("python=")?))) {
            python(version.trim_start_matches('='), place(word), found);
        }
        return;
    }
    const SYSTEM_INSTALLERS: [&str; 6] = ["apt", "apt-get", "aptitude", "dnf", "microdnf", "yum"];
    if words.iter().any(|word| SYSTEM_INSTALLERS.contains(&word.text.as_str()))
        && words.iter().any(|word| word.text == "install")
        && let Some(word) = words.iter().find(|word| is_system_python(&word.text))
    {
        system.installs.get_or_insert_with(|| place(word));
    }
    let uv_python = is(0, "uv") && (is(1, "venv") || is(1, "python"));
    for (at, word) in words.iter().enumerate() {
        let version = match word.text.strip_prefix("python") {
            Some(version) if words.iter().any(|word| word.text == "install") => {
                version.split('-').next().unwrap_or_default()
            }
            _ if uv_python && (is(at.wrapping_sub(1), "--python") || is(at.wrapping_sub(1), "install")) => {
                word.text.as_str()
            }
            _ => continue,
        };
        if version.contains('.') {
            python(version, place(word), found);
        }
    }
}

fn python(version: &str, place: Evidence, found: &mut Findings) {
    match parse_python(version) {
        Ok(ask) if found.stack.python.as_ref() != Some(&ask) => found.python(ask, place),
        Ok(_) => {}
        Err(error) => found.not_understood(place, error.message, "set `python` in [stack]"),
    }
}

fn packages(source: SourceText<'_>, words: &[Word], found: &mut Findings) {
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let place = source.span(Some(word.span.clone()));
        let (option, inline) = match word.text.split_once('=').filter(|_| word.text.starts_with("--")) {
            Some((option, value)) => (option, Some(value.to_owned())),
            None => (word.text.as_str(), None),
        };
        let mut value = || inline.clone().or_else(|| rest.next().map(|word| word.text.clone())).unwrap_or_default();
        match option {
            "-i" | "--index-url" | "--extra-index-url" | "--default-index" | "--index" | "-f" | "--find-links" => {
                found.index(None, &value(), &[], place);
            }
            "-r" | "--requirement" | "-c" | "--constraint" => {
                let message = format!("`{}` is installed here", value());
                found.not_understood(place, message, "name that file to `gpulock init` too, if it has not been");
            }
            "-e" | "--editable" => found.understood(place, format!("`{}` is a project of your own: left out", value())),
            option if PIP_VALUED.contains(&option) => drop(value()),
            option if option.starts_with('-') || option.starts_with('<') || option.starts_with('>') => {}
            path if path.starts_with(['.', '/']) => {
                found.not_understood(place, format!("`{path}` is a file"), "it cannot be locked");
            }
            requirement if requirement.contains('$') => {
                let message = format!("`{requirement}` has a variable without a value");
                found.not_understood(place, message, "say in [stack] or [packages] which version is wanted");
            }
            "pip" | "setuptools" | "wheel" | "uv" => {}
            requirement => found.requirement(requirement, place),
        }
    }
}
