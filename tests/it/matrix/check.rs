//! `matrix check`: the embedded matrix is clean, and each kind of damage is found at its place.

use gpulock::diag::{Diagnostic, Evidence};
use gpulock::matrix::Files;
use gpulock::matrix::check::{Depth, check};

fn show(diagnostics: &[Diagnostic]) -> String {
    let line = |d: &Diagnostic| format!("{} | {} | {}\n", d.code, place(d), d.message);
    diagnostics.iter().map(line).collect()
}

/// `torch/2.8.toml: cuda = "12.8"`
fn place(diagnostic: &Diagnostic) -> String {
    match &diagnostic.evidence[0] {
        Evidence::Span { file, column, text, .. } => {
            let from = text.char_indices().nth(column - 1).map_or(text.len(), |(at, _)| at);
            format!("{}: {}", file.trim_start_matches("over/"), &text[from..])
        }
        Evidence::Observed { what, fact } => format!("{}: {fact}", what.trim_start_matches("over/")),
        Evidence::Fact { claim, .. } => claim.clone(),
        Evidence::Elf { .. } => panic!("the matrix has no libraries: {diagnostic:?}"),
    }
}

/// The embedded files with some replaced.
fn overlay(files: &[(&str, String)]) -> Files {
    Files {
        overlay: files.iter().map(|(path, text)| ((*path).to_owned(), text.clone())).collect(),
        overlay_name: "over".into(),
        alone: false,
    }
}

/// The embedded text of a file with `from` replaced by `to`, once.
fn edited(path: &str, from: &str, to: &str) -> (&'static str, String) {
    let path: &'static str = path.to_owned().leak();
    let files = Files::default();
    let text = files.text(path).unwrap();
    assert!(text.contains(from), "{path} has no `{from}`");
    (path, text.replacen(from, to, 1))
}

#[test]
fn the_embedded_matrix_is_clean() {
    let found = check(&Files::default(), Depth::Everything);
    assert!(found.is_empty(), "{} problems:\n{}", found.len(), show(&found));
    assert!(check(&Files::default(), Depth::Facts).is_empty());
}

/// Edits to one file, and what must be said about it: code, place, part of the message.
const DAMAGE: &[(&str, &str, &str, &str, &str, &str)] = &[
    // Devices on the PCI bus.
    ("pci.toml", "2b85 = ", "2B85 = ", "matrix-invalid", "GeForce RTX 5090", "`2B85` is no device number"),
    (
        "pci.toml",
        "1024 = \"Tesla K40c\"",
        "1001 = \"Tesla K40c\"",
        "matrix-duplicate",
        "Tesla K40c",
        "1001 is there twice",
    ),
    (
        "pci.toml",
        "capability = \"12.1\"",
        "capability = \"12.7\"",
        "matrix-reference",
        "12.7",
        "unknown capability 12.7",
    ),
    // Form.
    ("torch/2.8.toml", "torch = \"2.8\"", "torch = 2.8.0", "matrix-invalid", "torch/2.8.toml: ", ""),
    ("torch/2.8.toml", "released = ", "relesed = ", "matrix-invalid", "relesed = ", "unknown key `relesed`"),
    ("torch/2.8.toml", "glibc = \"2.28\"", "glibc = 2.28", "matrix-invalid", ": 2.28", "expected a"),
    ("torch/2.8.toml", "[[release.build]]", "[[release.builds]]", "matrix-invalid", "builds]]", "unknown key `builds`"),
    (
        "cuda/12.8.toml",
        "retrieved = \"2026-11-29\"",
        "",
        "matrix-invalid",
        "cuda/12.8.toml: ",
        "`retrieved` is missing",
    ),
    ("cuda/12.8.toml", "2026-11-29", "29.11.2026", "matrix-invalid", "\"29.11.2026\"", "not a day"),
    ("cuda/12.8.toml", "driver = \"570.26\"", "driver = \"new\"", "matrix-invalid", "\"new\"", "a driver version"),
    ("gpu.toml", "capability = \"12.0\"", "capability = \"12\"", "matrix-invalid", "\"12\"", "a compute capability"),
    ("package.toml", "source = \"Requires", "source = \"\" #", "matrix-invalid", "\"\"", "`source` is empty"),
    // Order and what is there twice.
    ("cuda/12.8.toml", "\"12.8.0\"", "\"12.8.3\"", "matrix-order", "\"12.8.1\"", "stands after 12.8.3"),
    ("cuda/12.8.toml", "\"12.8.1\"", "\"12.8.0\"", "matrix-duplicate", "\"12.8.0\"", "12.8.0 is there twice"),
    ("cuda/12.8.toml", "\"12.8.1\"", "\"12.9.1\"", "matrix-invalid", "\"12.9.1\"", "no release of CUDA 12.8"),
    (
        "cuda/12.8.toml",
        "cuda = \"12.8\"",
        "cuda = \"12.5\"",
        "matrix-invalid",
        "\"12.5\"",
        "does not belong in 12.8.toml",
    ),
    (
        "torch/2.8.toml",
        "torch = \"2.8\"",
        "torch = \"2.9\"",
        "matrix-invalid",
        "\"2.9\"",
        "does not belong in 2.8.toml",
    ),
    ("cudnn/9.10.toml", "cuda = 12", "cuda = 11", "matrix-duplicate", "11", "the build for CUDA 11 is there twice"),
    ("cudnn/9.10.toml", "\"9.10.1.4\"", "\"9.11.1.4\"", "matrix-invalid", "\"9.11.1.4\"", "no release of cuDNN 9.10"),
    ("driver.toml", "cuda = 12\n", "cuda = 11\n", "matrix-duplicate", "11", "CUDA 11 is there twice"),
    ("gpu.toml", "\"12.1\"", "\"12.0\"", "matrix-duplicate", "\"12.0\"", "12.0 is there twice"),
    ("index.toml", "\"torch-cu126\"", "\"torch-cu118\"", "matrix-duplicate", "\"torch-cu118\"", "there twice"),
    ("index.toml", "default = true", "default = false", "matrix-invalid", "index.toml: ", "no index is the default"),
    ("index.toml", "https://", "gopher://", "matrix-invalid", "\"gopher://", "not the address of an index"),
    ("image/os.toml", "\"ubuntu:22.04\"", "\"ubuntu:20.04\"", "matrix-duplicate", "\"ubuntu:20.04\"", "is there twice"),
    ("image/os.toml", "\"3.10\"", "\"three\"", "matrix-invalid", "\"three\"", "a Python version"),
    (
        "image/nvidia-cuda.toml",
        "successor = \"11.7.1\"",
        "successor = \"11.6.2\"",
        "matrix-invalid",
        "\"11.6.2\"",
        "no release of CUDA 11.7",
    ),
    (
        "image/nvidia-cuda.toml",
        "cuda = \"11.7.0\"",
        "cuda = \"11.7.1\"",
        "matrix-invalid",
        "\"11.7.1\"",
        "both as there and as deleted",
    ),
    (
        "image/nvidia-cuda.toml",
        "\"cuda>=11.2\"",
        "\"cuda>=11.1\"",
        "matrix-invalid",
        "\"cuda>=11.1\"",
        "requires `cuda>=11.2`",
    ),
    ("image/nvidia-cuda.toml", "\"11.1.1\"", "\"11.0.3\"", "matrix-duplicate", "\"ubuntu20.04\"", "CUDA 11.0.3 for"),
    ("image/python.toml", "\"3.8\", \"3.9\"", "\"3.8\", \"3.8\"", "matrix-duplicate", "\"3.8\"", "Python 3.8 on"),
    // References.
    ("index.toml", "\"torch-cu126\"", "\"torch-cu999\"", "matrix-reference", "\"torch-cu126\"", "index `torch-cu126`"),
    ("torch/2.8.toml", "index = \"pypi\"", "index = \"pipy\"", "matrix-reference", "\"pipy\"", "index `pipy`"),
    ("torch/2.8.toml", "cuda = \"12.8\"", "cuda = \"12.7\"", "matrix-reference", "\"12.7\"", "CUDA 12.7 is not"),
    ("torch/2.8.toml", "cuda = \"12.8\"", "cuda = \"12.6\"", "matrix-invalid", "\"cu128\"", "contradicts CUDA 12.6"),
    ("torch/2.8.toml", "toolkit = \"12.8.1\"", "toolkit = \"12.8.9\"", "matrix-reference", "\"12.8.9\"", "CUDA 12.8.9"),
    ("torch/2.8.toml", "cudnn = \"9.10.2.21\"", "cudnn = \"9.10.9\"", "matrix-reference", "\"9.10.9\"", "cuDNN 9.10.9"),
    ("torch/2.8.toml", "\"cp311\"", "\"py311\"", "matrix-invalid", "\"py311\"", "not an interpreter tag"),
    ("torch/2.8.toml", "\"sm_90\"", "\"sm_94\"", "matrix-reference", "\"sm_94\"", "where sm_94 runs"),
    ("gpu.toml", "first-cuda = \"12.8\"", "first-cuda = \"12.7\"", "matrix-reference", "\"12.7\"", "CUDA 12.7 is not"),
    ("gpu.toml", "last-branch = 580", "last-branch = 581", "matrix-reference", "581", "driver branch 581"),
    ("gpu.toml", "except = [\"8.7\"]", "except = [\"8.4\"]", "matrix-reference", "\"8.4\"", "capability 8.4"),
    ("gpu.toml", "serves = [\"12.1\"]", "serves = [\"12.4\"]", "matrix-reference", "\"12.4\"", "capability 12.4"),
    ("gpu.toml", "only = [\"8.7\"]", "", "matrix-invalid", "[[cubin]]", "either `from` and `below`, or `only`"),
    ("driver.toml", "cuda = 12\n", "cuda = 14\n", "matrix-reference", "\"12.0\"", "floor of CUDA 12.x"),
    ("driver.toml", "branches = [535]", "branches = [536]", "matrix-reference", "536", "driver branch 536"),
    ("cudnn/9.10.toml", "<=12.9\"", "<=12.7\"", "matrix-reference", "\">=12.0,<=12.7\"", "CUDA 12.7 is not"),
    ("image/nvidia-cuda.toml", "\"11.1.1\"", "\"11.1.9\"", "matrix-reference", "\"11.1.9\"", "CUDA 11.1.9 is not"),
    ("image/nvidia-cuda.toml", "\"ubi8\"", "\"ubi7\"", "matrix-reference", "\"ubi7\"", "no system of os.toml"),
    ("image/python.toml", "os = \"debian13\"", "os = \"debian14\"", "matrix-reference", "\"debian14\"", "no system of"),
    (
        "image/nvidia-cuda.toml",
        "driver<419\"",
        "driver<x\"",
        "matrix-invalid",
        "driver<x\"",
        "`driver<x` is no condition",
    ),
    ("image/nvidia-cuda.toml", "[\"linux-aarch64\"]", "[\"linux-x86_64\"]", "matrix-duplicate", "", "on linux-x86_64"),
    // Names.
    ("gpu.toml", "\"A100 80GB PCIe\"", "\"A100 PCIe\", \"NVIDIA RTX 5090\"", "matrix-collision", "", "same name"),
    // The snapshot.
    ("snapshot/torch.jsonl", "\"sha256\":\"", "\"sha256\":\"x", "matrix-invalid", "{\"version\":\"1.13.0\"", "SHA-256"),
    ("snapshot/torch.jsonl", "{\"version\":\"2.0.0\"", "{\"version\":\"2.0.9\"", "matrix-invalid", "", "at or after"),
    ("snapshot/torch.jsonl", "{\"version\":\"2.0.0\",", "{\"version\":\"2.0.0\",,", "matrix-invalid", "2.0.0", "key"),
    ("snapshot/torch.jsonl", "\"size\":", "\"seize\":", "matrix-invalid", "1.13.0", "unknown field"),
    (
        "snapshot/triton.jsonl",
        "\"version\":\"3.4.0\"",
        "\"version\":\"3.4.7\"",
        "matrix-reference",
        "\"3.4.0\"",
        "triton",
    ),
    ("snapshot/INDEX.toml", "\"torch\"", "\"torch-x\"", "matrix-reference", "\"torch-x\"", "the snapshot of torch-x"),
    (
        "snapshot/INDEX.toml",
        "\"torch\"",
        "\"torch-x\"",
        "matrix-reference",
        "[packages]",
        "torch.jsonl is not in the list",
    ),
    ("snapshot/INDEX.toml", "\"sympy\"", "\"Sympy_\"", "matrix-invalid", "\"Sympy_\"", "package name"),
];

#[test]
fn each_kind_of_damage_is_found_at_its_place() {
    for (path, from, to, code, at, message) in DAMAGE {
        let files = overlay(&[edited(path, from, to)]);
        // What an overlay says is checked in full at either depth, save for the snapshot.
        let depth = if path.starts_with("snapshot/") { Depth::Everything } else { Depth::Facts };
        let found = check(&files, depth);
        let hit = found.iter().any(|d| d.code == *code && place(d).contains(at) && d.message.contains(message));
        assert!(hit, "{path}: `{from}` -> `{to}` gives no {code} at `{at}` with `{message}`:\n{}", show(&found));
    }
}

#[test]
fn everything_is_said_at_once() {
    let files = overlay(&[
        edited("cuda/12.8.toml", "\"12.8.1\"", "\"12.9.1\""),
        edited("torch/2.8.toml", "index = \"pypi\"", "indx = \"pypi\""),
        edited("gpu.toml", "last-branch = 580", "last-branch = \"580\""),
        ("torch/2.99.toml", "torch = \"2.99\"\nsource = \"x\"\nretrieved = \"2026-11-29\"\n[[release]]\n".into()),
    ]);
    let found = show(&check(&files, Depth::Facts));
    for part in ["no release of CUDA 12.8", "unknown key `indx`", "string \"580\"", "torch/2.99.toml: [[release]]"] {
        assert!(found.contains(part), "no `{part}` in\n{found}");
    }
}

#[test]
fn a_damaged_file_makes_no_reference_to_it_dangle() {
    let files = overlay(&[edited("gpu.toml", "[[gpu]]\ncapability", "[[gpu]]\ncapabilty")]);
    let found = check(&files, Depth::Facts);
    assert_eq!(found.len(), 1, "{}", show(&found));
    assert_eq!(found[0].fix.as_deref(), Some("did you mean `capability`?"));
}

#[test]
fn a_file_that_nothing_reads_is_a_mistake() {
    for (path, near) in [("gpus.toml", "gpu.toml"), ("tourch/2.8.toml", "torch/"), ("snapshot/x.toml", "snapshot/")] {
        let found = check(&overlay(&[(path, String::new())]), Depth::Facts);
        assert_eq!(found.len(), 1, "{}", show(&found));
        assert!(found[0].fix.as_ref().is_some_and(|fix| fix.contains(near)), "{path}: {:?}", found[0].fix);
    }
}
