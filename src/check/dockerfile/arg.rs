//! ARGs that say a version of the stack, against what uses them and what torch pins.

use std::collections::{BTreeMap, BTreeSet};

use super::read::{Arg, Dockerfile};
use super::torch::{self, Torch};
use super::{Context, Lint};
use crate::diag::{Diagnostic, Evidence, Failure, Severity};
use crate::dockerfile::Instruction;
use crate::version::{Cudnn, Nccl};

/// A version that nothing uses.
pub const UNUSED: Lint = Lint {
    code: "dockerfile-arg-unused",
    level: Severity::Warning,
    page: include_str!("../page/dockerfile-arg-unused.md"),
    run: unused,
};

/// A version that is not the one that torch pins.
pub const DISAGREES: Lint = Lint {
    code: "dockerfile-arg-disagrees",
    level: Severity::Warning,
    page: include_str!("../page/dockerfile-arg-disagrees.md"),
    run: disagrees,
};

/// What `NAME_VERSION` is a version of. Other ARGs may be meant for any program that a RUN starts.
const STACK: [&str; 8] = ["CUDA", "CUDNN", "NCCL", "PYTHON", "PYTORCH", "TORCH", "TORCHAUDIO", "TORCHVISION"];

/// The part of the stack that an ARG is a version of.
fn part(arg: &Arg) -> Option<&'static str> {
    let name = arg.name.strip_suffix("_VERSION").or_else(|| arg.name.strip_suffix("_VER"))?;
    STACK.into_iter().find(|part| *part == name)
}

/// Each version once, where it has its value.
fn versions<'d>(file: &'d Dockerfile<'_>) -> impl Iterator<Item = (&'d Arg, &'static str, &'d str)> {
    file.args.iter().filter_map(|arg| Some((arg, part(arg)?, arg.value.as_deref()?)))
}

fn unused(file: &Dockerfile<'_>, context: &Context<'_>) -> Result<Vec<Diagnostic>, Failure> {
    let mut findings = Vec::new();
    let (torch, used) = (all_torch(file, context)?, used(file, context));
    for (arg, part, value) in versions(file).filter(|(arg, ..)| !used[&*arg.name]) {
        let place = file.lines.span(Some(arg.span.clone()));
        let mut finding =
            Diagnostic::warning(UNUSED.code, format!("nothing uses {}: {value} has no effect", arg.name), place);
        if let Some((torch, pinned)) = torch.iter().find_map(|torch| Some((torch, pinned(torch, part)?))) {
            let source = torch.build.as_ref().map_or("", |build| &build.row().source);
            finding.message.push_str(&format!(", {} pins {pinned}", torch.words()));
            finding =
                finding.and(Evidence::fact(format!("{} pins {} {pinned}", torch.words(), part.to_lowercase()), source));
        }
        let fix = match is_elsewhere(arg, file) {
            true => format!("`ARG {}` again after FROM, which ends what stands before it; or remove it", arg.name),
            false => format!("remove {}", arg.name),
        };
        findings.push(finding.fix(fix));
    }
    Ok(findings)
}

fn disagrees(file: &Dockerfile<'_>, context: &Context<'_>) -> Result<Vec<Diagnostic>, Failure> {
    let torch = all_torch(file, context)?;
    let mut findings = Vec::new();
    let mut named: BTreeMap<&str, bool> = BTreeMap::new();
    for (arg, part, value) in versions(file) {
        // What only may read it, or only shows it (LABEL, ENV), says nothing of what it installs.
        if !*named.entry(&arg.name).or_insert_with(|| installs(&arg.name, file)) {
            continue;
        }
        let Some((torch, pinned)) = torch.iter().find_map(|torch| Some((torch, pinned(torch, part)?))) else {
            continue;
        };
        if value.contains('$') || agree(part, value, &pinned) || is_of_base(arg, file) {
            continue;
        }
        let message = format!("{} is {value}, and {} brings {pinned}: there will be two", arg.name, torch.words());
        let place = file.lines.span(Some(arg.span.clone()));
        let source = torch.build.as_ref().map_or("", |build| &build.row().source);
        let fact = Evidence::fact(format!("{} pins {} {pinned}", torch.words(), part.to_lowercase()), source);
        findings.push(
            Diagnostic::warning(DISAGREES.code, message, place)
                .and(file.lines.span(Some(torch.span.clone())))
                .and(fact)
                .fix(format!("remove {} and what it installs, or make it {pinned}", arg.name)),
        );
    }
    Ok(findings)
}

fn all_torch(file: &Dockerfile<'_>, context: &Context<'_>) -> Result<Vec<Torch>, Failure> {
    let mut all = Vec::new();
    for stage in 0..file.stages.len() {
        all.extend(torch::of_stage(file, stage, context.matrix)?);
    }
    Ok(all)
}

/// What a build of torch brings of a part of the stack.
fn pinned(torch: &Torch, part: &str) -> Option<String> {
    let row = torch.build.as_ref()?.row();
    match part {
        "CUDA" => row.cuda.map(|cuda| cuda.to_string()),
        "CUDNN" => row.cudnn.as_ref().map(ToString::to_string),
        "NCCL" => row.nccl.as_ref().map(ToString::to_string),
        _ => None,
    }
}

/// Whether a version is the pinned one, as far as both say; what is no version agrees with all.
fn agree(part: &str, given: &str, pinned: &str) -> bool {
    // The packages of distributions append their own: 2.20.5-1+cuda12.4.
    let given = given.split(['-', '+']).next().unwrap_or_default();
    match part {
        "CUDNN" => match (given.parse::<Cudnn>(), pinned.parse::<Cudnn>()) {
            (Ok(given), Ok(pinned)) => given.covers(&pinned) || pinned.covers(&given),
            _ => true,
        },
        "NCCL" => match (given.parse::<Nccl>(), pinned.parse::<Nccl>()) {
            (Ok(given), Ok(pinned)) => given.covers(&pinned) || pinned.covers(&given),
            _ => true,
        },
        _ => {
            let numbers =
                given.split('.').all(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()));
            let same = std::iter::zip(given.split('.'), pinned.split('.')).all(|(a, b)| a == b);
            !numbers || same
        }
    }
}

/// Whether each of the versions is used, by name.
fn used<'d>(file: &'d Dockerfile<'_>, context: &Context<'_>) -> BTreeMap<&'d str, bool> {
    let mut used = BTreeMap::new();
    for (arg, ..) in versions(file) {
        used.entry(&*arg.name).or_insert_with(|| is_used(arg, file, context));
    }
    used
}

/// Whether it says the version of an image that the file is built on: the lints of bases judge that.
fn is_of_base(arg: &Arg, file: &Dockerfile<'_>) -> bool {
    let from = file.instructions.iter().filter(|(instruction, _)| instruction.keyword == "FROM");
    from.into_iter().any(|(instruction, _)| mentions(file.raw(&instruction.body), &arg.name))
}

/// Whether anything uses an ARG, or may: by its name, or as the variable that it is for what a RUN starts.
fn is_used(arg: &Arg, file: &Dockerfile<'_>, context: &Context<'_>) -> bool {
    let of_name = file.args.iter().filter(|one| one.name == arg.name);
    let stages: BTreeSet<usize> = of_name.filter_map(|one| one.stage).collect();
    is_named(arg, file) || stages.iter().any(|stage| may_read(*stage, &arg.name, file, context))
}

/// Whether something uses an ARG by its name.
fn is_named(arg: &Arg, file: &Dockerfile<'_>) -> bool {
    let is_declared = is_declared(&arg.name, file);
    file.instructions.iter().any(|(instruction, stage)| {
        // Of what stands before the first FROM, a stage sees what it declares again.
        if stage.is_some() && instruction.keyword != "FROM" && !is_declared {
            return false;
        }
        let body = file.raw(&instruction.body);
        // Its own declarations are no use; what another ARG takes from it is one.
        match instruction.keyword.as_str() {
            "ARG" => takes(body, &arg.name),
            _ => mentions(body, &arg.name),
        }
    })
}

/// Whether a stage declares a variable.
fn is_declared(name: &str, file: &Dockerfile<'_>) -> bool {
    let as_env = file.stages.iter().flat_map(|stage| &stage.env).any(|(one, ..)| one == name);
    as_env || file.args.iter().any(|one| one.stage.is_some() && one.name == name)
}

/// Whether a stage names an ARG that it does not declare.
fn is_elsewhere(arg: &Arg, file: &Dockerfile<'_>) -> bool {
    let names = |(one, at): &(Instruction, Option<usize>)| {
        at.is_some() && one.keyword != "FROM" && mentions(file.raw(&one.body), &arg.name)
    };
    !is_declared(&arg.name, file) && file.instructions.iter().any(names)
}

/// Whether a RUN, or what fetches files, uses an ARG by its name, or by that of a variable which is made of it.
fn installs(name: &str, file: &Dockerfile<'_>) -> bool {
    /// Through how many variables a value is followed.
    const MOST: usize = 3;
    let mut names = BTreeSet::from([name.to_owned()]);
    let of = |keywords: &'static [&str]| {
        file.instructions.iter().map(|(one, _)| one).filter(|one| keywords.contains(&one.keyword.as_str()))
    };
    for _ in 0..MOST {
        let mut made = Vec::new();
        for instruction in of(&["ARG", "ENV"]) {
            let pairs = file.raw(&instruction.body).split_whitespace().filter_map(|word| word.split_once('='));
            made.extend(pairs.filter(|(_, value)| names.iter().any(|name| takes(value, name))).map(|(made, _)| made));
        }
        names.extend(made.into_iter().map(str::to_owned));
    }
    names.retain(|name| is_declared(name, file));
    of(&["RUN", "ADD", "COPY"]).any(|one| names.iter().any(|name| mentions(file.raw(&one.body), name)))
}

/// Whether a value is made of a variable.
fn takes(value: &str, name: &str) -> bool {
    value.match_indices('$').any(|(at, _)| mentions(&value[at..], name))
}

/// Whether a text has a name as a whole word.
fn mentions(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| !text[..at].ends_with(part) && !text[at + name.len()..].starts_with(part))
}

/// Programs that read no variable of such a name.
const PROGRAMS: [&str; 42] = [
    "[",
    "add-apt-repository",
    "adduser",
    "apk",
    "apt",
    "apt-get",
    "cat",
    "cd",
    "chmod",
    "chown",
    "cp",
    "curl",
    "dnf",
    "dpkg",
    "echo",
    "export",
    "find",
    "gpg",
    "grep",
    "groupadd",
    "ldconfig",
    "ln",
    "locale-gen",
    "ls",
    "mkdir",
    "mv",
    "pip",
    "pip3",
    "printf",
    "rm",
    "sed",
    "set",
    "sha256sum",
    "tar",
    "tee",
    "test",
    "touch",
    "true",
    "unzip",
    "update-alternatives",
    "useradd",
    "wget",
];

/// Whether a RUN of the stage, or of one that is built on it, starts what may read any variable.
fn may_read(stage: usize, name: &str, file: &Dockerfile<'_>, context: &Context<'_>) -> bool {
    let installs = &file.stages[stage].installs;
    // pip fills in `${NAME}` in requirements files.
    let in_file = |(path, _): &(String, _)| (context.read)(path).is_none_or(|text| mentions(&text, name));
    if installs.iter().any(|install| install.builds || install.files.iter().any(in_file)) {
        return true;
    }
    let runs = file.instructions.iter().filter(|(one, at)| one.keyword == "RUN" && *at == Some(stage));
    runs.into_iter().any(|(run, _)| {
        let text = file.lines.source.text;
        // The lines of a here-document are a program of their own.
        let is_document = file.raw(&run.body).contains("<<");
        let commands = crate::dockerfile::commands(text, run, &file.stages[stage].variables);
        is_document || commands.iter().any(|words| !is_harmless(words))
    })
}

fn is_harmless(words: &[crate::dockerfile::Word]) -> bool {
    let mut words = words.iter().map(|word| word.text.as_str()).skip_while(|word| {
        word.starts_with("--")
            || word.contains('=')
            || ["sudo", "exec", "then", "if", "do", "{", "(", "!"].contains(word)
    });
    let Some(program) = words.next() else { return true };
    let rest: Vec<&str> = words.collect();
    match program.rsplit('/').next().unwrap_or_default() {
        "fi" | "done" | "}" | ")" | "else" => rest.is_empty(),
        "uv" => true,
        python if python.starts_with("python") => rest.starts_with(&["-m", "pip"]) || rest.starts_with(&["-m", "venv"]),
        pip if pip.starts_with("pip") => true,
        other => PROGRAMS.contains(&other),
    }
}
