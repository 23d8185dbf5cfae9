//! torchvision and torchaudio of another CUDA than torch's.

use gpulock::check::Findings;

use super::venv::{Venv, assert_error, assert_quiet, module, the_problem};
use crate::link::fixture::Elf;

const CODE: &str = "torch-cuda-mismatch";

/// torch 2.8.0 with a companion, each built as a variant, which `version.py` alone says.
fn with(torch: &str, name: &str, version: &str, label: &str) -> Findings {
    with_module(torch, name, version, label, None)
}

fn with_module(torch: &str, name: &str, version: &str, label: &str, module: Option<Elf>) -> Findings {
    let venv = Venv::with_torch();
    venv.put_bytes("torch/version.py", format!("__version__ = '2.8.0+{torch}'\ncuda = None\n").as_bytes());
    let path = format!("{name}/_C.abi3.so");
    let files: Vec<(&str, Elf)> = module.into_iter().map(|module| (path.as_str(), module)).collect();
    venv.install(name, version, &["torch"], &files);
    std::fs::create_dir_all(venv.site().join(name)).unwrap();
    venv.put_bytes(&format!("{name}/version.py"), format!("__version__ = '{version}+{label}'\n").as_bytes());
    venv.check()
}

#[test]
fn fires() {
    let findings = with("cu128", "torchaudio", "2.8.0", "cu126");
    let said = [
        "torchaudio 2.8.0 is built for CUDA 12.6 and torch 2.8.0 for 12.8: `import torchaudio` fails",
        "compiled with different CUDA versions",
        "torchaudio/version.py",
    ];
    assert_error(the_problem(&findings, CODE), "torchaudio", &said);
    let findings = with("cu128", "torchvision", "0.23.0", "cu118");
    assert_error(the_problem(&findings, CODE), "torchvision", &["different CUDA major versions"]);
    let findings = with("cu118", "torchvision", "0.15.2", "cu117");
    assert_error(the_problem(&findings, CODE), "torchvision", &["is built for CUDA 11.7"]);
}

/// The same; another minor where the major decides; a label that stands for no CUDA.
#[test]
fn stays_quiet() {
    for (name, version, label) in [
        ("torchaudio", "2.8.0", "cu128"),
        ("torchvision", "0.23.0", "cu126"),
        ("torchaudio", "2.8.0", "6e1c7fe"),
        ("torchaudio", "2.8.0", "cpu"),
        ("torchtext", "0.18.0", "cu118"),
    ] {
        assert_quiet(&with("cu128", name, version, label), CODE);
    }
}

/// What does not load does not come to comparing.
#[test]
fn a_companion_that_does_not_load_is_left_to_another_rule() {
    let module = module("_C").needed(&["libc10.so"]).asks(&["_ZN3c104cuda9SetDeviceEa"]);
    let findings = with_module("cu128", "torchaudio", "2.7.0", "cu126", Some(module));
    assert_error(the_problem(&findings, "torch-abi-mismatch"), "torchaudio/_C.abi3.so", &["torchaudio 2.7.0"]);
}
