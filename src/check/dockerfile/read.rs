//! A Dockerfile as its stages: takes the text, gives what each is built on, sets and installs with pip.
//!
//! Variables have the values that the file gives them; a build may give others. What stays unknown keeps its `$`.

use std::ops::Range;

use super::install::Install;
use super::shell;
use crate::diag::{Lines, SourceText};
use crate::dockerfile::{Instruction, Variables, Word, commands, image_parts, instructions};
use crate::python::Platform;

/// The most stages of a file that is judged: no build has more, and what each is built on has to be followed.
pub const MOST_STAGES: usize = 256;

/// The most that the values of a stage's variables hold together, in bytes: a value that is made of others can be as long as the
/// file, and there can be as many.
const MOST_HELD: usize = 1 << 20;

/// A Dockerfile.
pub struct Dockerfile<'t> {
    /// Its text, with places.
    pub lines: Lines<'t>,
    /// Its stages, in order.
    pub stages: Vec<Stage>,
    /// Every ARG.
    pub args: Vec<Arg>,
    /// Every instruction, with the stage that it is in: none before the first FROM.
    pub instructions: Vec<(Instruction, Option<usize>)>,
    /// How long the values before the first FROM are, in bytes.
    held: usize,
}

/// From one FROM to the next.
pub struct Stage {
    /// Its name in lower case, where it has one.
    pub name: Option<String>,
    /// The image or stage that it is built on.
    pub image: Word,
    /// The stage that it is built on, where it is one.
    pub parent: Option<usize>,
    /// What it is built for; `None` where that is another one or a variable.
    pub platform: Option<Platform>,
    /// Its ENV: names, values and places.
    pub env: Vec<(String, String, Range<usize>)>,
    /// All variables that its instructions see, those of its parents too.
    pub variables: Variables,
    /// How long their values were when they were set, in bytes.
    held: usize,
    /// What pip installs, a command each.
    pub installs: Vec<Install>,
    /// It removes the torch that it finds.
    pub without_torch: bool,
    /// Stages whose Python packages are copied into it.
    pub copied: Vec<usize>,
    /// Images that files are copied from.
    pub sources: Vec<Word>,
    /// Packages of the system that have a cuDNN.
    pub cudnn: Vec<Word>,
}

/// An ARG.
pub struct Arg {
    /// Its name.
    pub name: String,
    /// Its default, variables filled in.
    pub value: Option<String>,
    /// Where it stands.
    pub span: Range<usize>,
    /// The stage that it is in: none before the first FROM.
    pub stage: Option<usize>,
}

impl Stage {
    /// The name of an image without its tag and digest, and the tag.
    pub fn repository(&self) -> (&str, Option<&str>) {
        let (name, tag, _) = image_parts(&self.image.text);
        (name, tag)
    }
}

impl<'t> Dockerfile<'t> {
    /// Reads a text; `beside` gives that of a requirements file, where it can be read.
    pub fn read(source: SourceText<'t>, beside: &dyn Fn(&str) -> Option<String>) -> Self {
        let mut file =
            Self { lines: Lines::new(source), stages: Vec::new(), args: Vec::new(), instructions: Vec::new(), held: 0 };
        let mut global = Variables::new();
        for instruction in instructions(source.text) {
            if file.stages.len() > MOST_STAGES {
                break;
            }
            let at = file.stages.len().checked_sub(1);
            // FROM sees what stands before the first one alone.
            let in_stage = file.stages.last().filter(|_| instruction.keyword != "FROM");
            let variables = in_stage.map_or(&global, |stage| &stage.variables);
            let commands = commands(source.text, &instruction, variables);
            let words = commands.first().map_or(&[][..], Vec::as_slice);
            match instruction.keyword.as_str() {
                "ARG" => file.arg(commands.iter().flatten(), &mut global),
                "FROM" => file.from(words),
                keyword => {
                    if let Some(stage) = file.stages.len().checked_sub(1) {
                        match keyword {
                            "ENV" => file.env(stage, words),
                            "COPY" => file.copy(stage, words),
                            "RUN" => file.run(stage, &instruction, beside),
                            _ => {}
                        }
                    }
                }
            }
            let at = if instruction.keyword == "FROM" { file.stages.len().checked_sub(1) } else { at };
            file.instructions.push((instruction, at));
        }
        file
    }

    /// The text of a range as written.
    pub fn raw(&self, span: &Range<usize>) -> &'t str {
        self.lines.source.text.get(span.clone()).unwrap_or_default()
    }

    /// A stage and those that it is built on, the nearest first.
    pub fn chain(&self, stage: usize) -> Vec<usize> {
        let mut chain = vec![stage];
        // A stage is only ever built on an earlier one.
        while let Some(parent) = chain.last().and_then(|last| self.stages[*last].parent) {
            chain.push(parent);
        }
        chain
    }

    fn arg<'w>(&mut self, words: impl Iterator<Item = &'w Word>, global: &mut Variables) {
        let stage = self.stages.len().checked_sub(1);
        for word in words {
            let (variables, held) = match self.stages.last_mut() {
                Some(stage) => (&mut stage.variables, &mut stage.held),
                None => (&mut *global, &mut self.held),
            };
            let (name, value) = match word.text.split_once('=') {
                Some((name, value)) => (name, hold(value, held)),
                None => (word.text.as_str(), None),
            };
            // ENV wins over ARG; an ARG without default has that of the one before the first FROM.
            let known = value.clone().or_else(|| stage.and_then(|_| global_value(&self.args, name)));
            if let Some(value) = known {
                variables.entry(name.to_owned()).or_insert(value);
            }
            self.args.push(Arg { name: name.to_owned(), value, span: word.span.clone(), stage });
        }
    }

    fn from(&mut self, words: &[Word]) {
        let flags = words.iter().take_while(|word| word.text.starts_with("--")).count();
        let platform = words[..flags].iter().find_map(|word| word.text.strip_prefix("--platform="));
        let Some(image) = words.get(flags) else { return };
        let name = match &words[flags + 1..] {
            [word, name, ..] if word.text.eq_ignore_ascii_case("as") => Some(name.text.to_lowercase()),
            _ => None,
        };
        let parent = self.stage(&image.text);
        self.stages.push(Stage {
            name,
            parent,
            platform: match (platform, parent) {
                (None, Some(parent)) => self.stages[parent].platform,
                // The builder's, and the one that is built for, are that one unless somebody says otherwise.
                (None | Some("$BUILDPLATFORM" | "${BUILDPLATFORM}" | "$TARGETPLATFORM" | "${TARGETPLATFORM}"), _)
                | (Some("linux/amd64"), _) => Some(Platform::LinuxX86_64),
                (Some("linux/arm64" | "linux/arm64/v8"), _) => Some(Platform::LinuxAarch64),
                (Some(_), _) => None,
            },
            env: Vec::new(),
            variables: parent.map(|parent| self.stages[parent].variables.clone()).unwrap_or_default(),
            held: parent.map_or(0, |parent| self.stages[parent].held),
            installs: Vec::new(),
            without_torch: false,
            copied: Vec::new(),
            sources: Vec::new(),
            cudnn: Vec::new(),
            image: image.clone(),
        });
    }

    /// The stage of that name.
    fn stage(&self, name: &str) -> Option<usize> {
        let name = name.to_lowercase();
        self.stages.iter().rposition(|stage| stage.name.as_deref() == Some(&name))
    }

    fn env(&mut self, stage: usize, words: &[Word]) {
        let stage = &mut self.stages[stage];
        let pairs: Vec<(String, String, Range<usize>)> = match words {
            [name, value @ ..] if !name.text.contains('=') && !value.is_empty() => {
                let text: Vec<&str> = value.iter().map(|word| word.text.as_str()).collect();
                vec![(name.text.clone(), text.join(" "), name.span.clone())]
            }
            _ => {
                let pair = |word: &Word| {
                    let (name, value) = word.text.split_once('=')?;
                    Some((name.to_owned(), value.to_owned(), word.span.start..word.span.start + name.len()))
                };
                words.iter().filter_map(pair).collect()
            }
        };
        for (name, value, span) in pairs {
            let value = hold(&value, &mut stage.held);
            match value.clone() {
                Some(value) => stage.variables.insert(name.clone(), value),
                None => stage.variables.remove(&name),
            };
            stage.env.push((name, value.unwrap_or_default(), span));
        }
    }

    fn run(&mut self, stage: usize, instruction: &Instruction, beside: &dyn Fn(&str) -> Option<String>) {
        let stage = &mut self.stages[stage];
        shell::run(self.lines.source.text, instruction, &mut stage.variables, |words, exported, variables| {
            stage.without_torch |= removes_torch(words);
            stage.cudnn.extend(cudnn_of_system(words).cloned());
            stage.installs.extend(Install::read(words, [exported, variables], beside));
        });
    }

    fn copy(&mut self, stage: usize, words: &[Word]) {
        let Some((word, from)) = words.iter().find_map(|word| Some((word, word.text.strip_prefix("--from=")?))) else {
            return;
        };
        let source = self.stage(from).or_else(|| from.parse().ok().filter(|number| *number < stage));
        match source {
            Some(source) => {
                // Environments move from stage to stage as folders.
                let holds = |word: &Word| word.text.contains("venv") || word.text.contains("site-packages");
                if words.iter().any(holds) {
                    self.stages[stage].copied.push(source);
                }
            }
            None => {
                let span = word.span.start + "--from=".len()..word.span.end;
                self.stages[stage].sources.push(Word { text: from.to_owned(), span });
            }
        }
    }
}

/// A value, where there is room for it.
fn hold(value: &str, held: &mut usize) -> Option<String> {
    *held += value.len();
    (*held <= MOST_HELD).then(|| value.to_owned())
}

fn global_value(args: &[Arg], name: &str) -> Option<String> {
    args.iter().find(|arg| arg.stage.is_none() && arg.name == name).and_then(|arg| arg.value.clone())
}

/// Whether a command is `pip uninstall torch`, or conda's of that kind.
fn removes_torch(words: &[Word]) -> bool {
    const PROGRAMS: [&str; 4] = ["pip", "conda", "mamba", "micromamba"];
    let is_program = |word: &Word| {
        let name = word.text.rsplit('/').next().unwrap_or_default();
        PROGRAMS.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'))
    };
    let after = |verb: &str| words.iter().position(|word| word.text == verb);
    let Some(verb) = after("uninstall").or_else(|| after("remove")) else { return false };
    words[..verb].iter().any(is_program) && words[verb..].iter().any(|word| ["torch", "pytorch"].contains(&&*word.text))
}

/// The packages with a cuDNN that a command installs for the whole system.
fn cudnn_of_system(words: &[Word]) -> impl Iterator<Item = &Word> {
    const PROGRAMS: [&str; 7] = ["apt", "apt-get", "aptitude", "dnf", "microdnf", "yum", "zypper"];
    let after = words.iter().position(|word| PROGRAMS.contains(&word.text.rsplit('/').next().unwrap_or_default()));
    let rest = after.map_or(&[][..], |after| &words[after + 1..]);
    let verb = rest.iter().position(|word| word.text == "install" || word.text == "in");
    rest[verb.unwrap_or(rest.len())..].iter().filter(|word| has_cudnn(&word.text))
}

/// Whether a package of a distribution has a cuDNN, or brings one: `libcudnn8`, `libcudnn9-dev-cuda-12`, `cudnn9-cuda-12`,
/// `nvidia-cudnn`.
/// That with its headers alone, and its frontend, are none.
fn has_cudnn(package: &str) -> bool {
    let name = package.split(['=', ':', '/', '<', '>']).next().unwrap_or_default();
    let own = name.strip_prefix("lib").or_else(|| name.strip_prefix("nvidia-")).unwrap_or(name);
    let rest = own.strip_prefix("cudnn");
    let is_of_release = |rest: &str| rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit() || c == '-');
    rest.is_some_and(is_of_release) && !["headers", "frontend", "samples"].iter().any(|other| name.contains(other))
}
