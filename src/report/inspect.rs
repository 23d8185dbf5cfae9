//! What `gpulock inspect` shows of ELF files, as text and as JSON (`gpulock.inspect/1`).

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;

use crate::elf::{Code, CodeKind, GpuCodes, Identity, Kind, Machine, Object, Stack, Unreadable};

/// A file and what it says, or why that is not known.
pub struct Inspected<'i> {
    /// As the user named it.
    pub path: String,
    /// What it says.
    pub object: &'i Result<Object, Unreadable>,
}

/// `gpulock.inspect/1`.
pub fn json(files: &[Inspected<'_>]) -> String {
    #[derive(Serialize)]
    struct Json<'i> {
        schema: &'static str,
        files: Vec<FileJson<'i>>,
    }
    let files = files.iter().map(|file| match file.object {
        Ok(object) => FileJson::Object(Box::new(ObjectJson::new(&file.path, object))),
        Err(problem) => FileJson::Unreadable { path: &file.path, unreadable: problem.to_string() },
    });
    super::json::text(&Json { schema: "gpulock.inspect/1", files: files.collect() })
}

#[derive(Serialize)]
#[serde(untagged)]
enum FileJson<'i> {
    Object(Box<ObjectJson<'i>>),
    Unreadable { path: &'i str, unreadable: String },
}

#[derive(Serialize)]
struct ObjectJson<'i> {
    path: &'i str,
    machine: String,
    kind: &'static str,
    soname: Option<&'i str>,
    needed: &'i [String],
    rpath: &'i [String],
    runpath: &'i [String],
    interpreter: Option<&'i str>,
    build_id: Option<&'i str>,
    executable_stack: bool,
    glibc: Option<&'i str>,
    glibcxx: Option<&'i str>,
    cxxabi: Option<&'i str>,
    identity: Option<IdentityJson<'i>>,
    gpu_code: CodesJson,
    gpu_code_embedded: CodesJson,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    damaged: Vec<String>,
}

#[derive(Serialize)]
struct IdentityJson<'i> {
    library: &'static str,
    component: Option<&'i str>,
    version: Option<&'i str>,
    readings: Vec<ReadingJson<'i>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    built_against_cudnn: Option<&'i str>,
}

#[derive(Serialize)]
struct ReadingJson<'i> {
    version: &'i str,
    method: &'i str,
}

/// How often each code occurs; a form that does not occur is left out.
#[derive(Serialize)]
struct CodesJson {
    containers: usize,
    sass: BTreeMap<String, usize>,
    ptx: BTreeMap<String, usize>,
    ltoir: BTreeMap<String, usize>,
}

impl<'i> ObjectJson<'i> {
    fn new(path: &'i str, object: &'i Object) -> Self {
        Self {
            path,
            machine: machine(object.machine),
            kind: kind(object.kind),
            soname: object.soname.as_deref(),
            needed: &object.needed,
            rpath: &object.rpath,
            runpath: &object.runpath,
            interpreter: object.interpreter.as_deref(),
            build_id: object.build_id.as_deref(),
            executable_stack: object.stack != Stack::Plain,
            glibc: object.floor("GLIBC"),
            glibcxx: object.floor("GLIBCXX"),
            cxxabi: object.floor("CXXABI"),
            identity: object.identity.as_ref().map(IdentityJson::new),
            gpu_code: CodesJson::new(&object.gpu_code),
            gpu_code_embedded: CodesJson::new(&object.gpu_code_embedded),
            damaged: damaged(object).map(ToString::to_string).collect(),
        }
    }
}

impl<'i> IdentityJson<'i> {
    fn new(identity: &'i Identity) -> Self {
        let reading =
            |reading: &'i crate::elf::Reading| ReadingJson { version: &reading.version, method: &reading.method };
        Self {
            library: identity.library,
            component: identity.component.as_deref(),
            version: identity.version.as_deref(),
            readings: identity.readings.iter().map(reading).collect(),
            built_against_cudnn: identity.built_against_cudnn.as_ref().map(|reading| reading.version.as_str()),
        }
    }
}

impl CodesJson {
    fn new(codes: &GpuCodes) -> Self {
        let of = |kind: CodeKind| counted(codes, kind).into_iter().map(|(code, count)| (name(&code), count)).collect();
        Self { containers: codes.len(), sass: of(CodeKind::Sass), ptx: of(CodeKind::Ptx), ltoir: of(CodeKind::LtoIr) }
    }
}

fn name(code: &(crate::version::Capability, Option<char>, CodeKind)) -> String {
    let (capability, suffix, kind) = code;
    Code::name(*kind, *capability, *suffix)
}

/// Codes of a form with how often they occur, by capability.
fn counted(codes: &GpuCodes, kind: CodeKind) -> BTreeMap<(crate::version::Capability, Option<char>, CodeKind), usize> {
    let mut counted = BTreeMap::new();
    for (code, count) in codes.codes().filter(|(code, _)| code.kind == kind) {
        *counted.entry((code.capability, code.suffix, kind)).or_default() += count;
    }
    counted
}

fn machine(machine: Machine) -> String {
    match machine {
        Machine::X86_64 => "x86_64".into(),
        Machine::Aarch64 => "aarch64".into(),
        Machine::Other(number) => format!("machine {number}"),
    }
}

fn kind(kind: Kind) -> &'static str {
    match kind {
        Kind::Shared => "shared library",
        Kind::Executable => "program",
        Kind::Other(_) => "not loadable",
    }
}

fn damaged(object: &Object) -> impl Iterator<Item = &Unreadable> {
    object.damaged.iter().chain(&object.gpu_code.damaged).chain(&object.gpu_code_embedded.damaged)
}

/// For people; a blank line between files.
pub fn human(files: &[Inspected<'_>]) -> String {
    let blocks: Vec<String> = files
        .iter()
        .map(|file| match file.object {
            Ok(object) => block(&file.path, object),
            Err(problem) => format!("{}\n  cannot be read: {problem}\n", file.path),
        })
        .collect();
    blocks.join("\n")
}

fn block(path: &str, object: &Object) -> String {
    let mut text = format!("{path}\n");
    let mut line = |name: &str, value: String| {
        if !value.is_empty() {
            let _ = writeln!(text, "  {name:<12} {value}");
        }
    };
    line("is", object.identity.as_ref().map(identity).unwrap_or_default());
    line("built with", built_with(object));
    line("file", format!("{} for {}", kind(object.kind), machine(object.machine)));
    line("soname", object.soname.clone().unwrap_or_default());
    line("needs", object.needed.join(" "));
    line("rpath", object.rpath.join(":"));
    line("runpath", object.runpath.join(":"));
    let floors = [("glibc", "GLIBC"), ("libstdc++", "GLIBCXX"), ("C++ ABI", "CXXABI")];
    let floors = floors.iter().filter_map(|(name, family)| Some(format!("{name} {}", object.floor(family)?)));
    line("at least", floors.collect::<Vec<_>>().join(", "));
    line("build id", object.build_id.clone().unwrap_or_default());
    if object.stack != Stack::Plain {
        line("stack", "executable".into());
    }
    for (where_from, codes) in [("GPU code", &object.gpu_code), ("embedded", &object.gpu_code_embedded)] {
        for (kind, form) in [(CodeKind::Sass, "SASS"), (CodeKind::Ptx, "PTX"), (CodeKind::LtoIr, "LTO-IR")] {
            let counted = counted(codes, kind);
            let codes: Vec<_> = counted.iter().map(|(code, count)| format!("{} x{count}", name(code))).collect();
            if !codes.is_empty() {
                line(where_from, format!("{form} {}", codes.join(", ")));
            }
        }
    }
    for problem in damaged(object) {
        line("damaged", problem.to_string());
    }
    text
}

fn identity(identity: &Identity) -> String {
    let component = identity.component.as_ref().map(|part| format!("/{part}")).unwrap_or_default();
    let version = identity.version.as_deref().unwrap_or("of a version that it does not tell");
    let methods: Vec<&str> = identity.readings.iter().map(|reading| reading.method.as_str()).collect();
    let methods = if methods.is_empty() { String::new() } else { format!(" ({})", methods.join("; ")) };
    format!("{}{component} {version}{methods}", identity.library)
}

fn built_with(object: &Object) -> String {
    let against = object.identity.as_ref().and_then(|identity| identity.built_against_cudnn.as_ref());
    against.map(|reading| format!("cuDNN {} ({})", reading.version, reading.method)).unwrap_or_default()
}
