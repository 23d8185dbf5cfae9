//! Which cuDNN is found, and whether all of it is of one release.

use super::image::Image;
use super::torch::{Torch, cudnn8, install_cudnn9, torch};
use super::{assert_healthy, on};
use crate::check::venv::{Question, Venv, assert_error, cudnn, module, the_problem, words};
use crate::link::fixture::Elf;

/// cuDNN 9.20 of NVIDIA's wheel asks for a part that it does not have, and the system has one.
#[test]
fn dnn_01_incomplete_wheel_plus_system_cudnn() {
    const PART: &str = "engines_tensor_ir";
    let with = |version: [u8; 3], ships_it: bool, system: bool| {
        let image = Image::debian();
        let site = image.venv("opt/venv");
        torch("2.12.1", 13000).cudnn(version).install(&site, &site);
        if ships_it {
            install_cudnn9(&site, "nvidia-cudnn-cu13", version, &[&super::torch::PARTS_9[..], &[PART]].concat());
        }
        for part in super::torch::PARTS_9.iter().chain([&PART]).filter(|_| system) {
            let (path, elf) = cudnn(part, [9, 23, 2]);
            let elf = elf.needed(if *part == PART { &["libcudnn_graph.so.9"] } else { &[] });
            image.put(&path.replace("nvidia/cudnn/lib", "usr/lib/x86_64-linux-gnu"), &elf);
        }
        image.ask(&Question { gpus: &["RTX 4090"], driver: Some("580.65.06"), ..Question::default() })
    };
    let findings = with([9, 20, 0], false, true);
    let said = [
        "libcudnn_engines_tensor_ir.so.9 is 9.23.2, the other parts are 9.20.0",
        "CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH (1002)",
        "keep the loader away from /usr/lib/x86_64-linux-gnu: it is not of nvidia-cudnn-cu13 9.20.0",
    ];
    let subject = "usr/lib/x86_64-linux-gnu/libcudnn_engines_tensor_ir.so.9";
    assert_error(the_problem(&findings, "cudnn-version-mixed"), subject, &said);
    // cuDNN goes on without the part; from 9.21 on it has it.
    assert_healthy(&with([9, 20, 0], false, false));
    assert_healthy(&with([9, 21, 0], true, true));
}

/// CTranslate2 as its wheels have it: with the file of cuDNN that opens the parts, under a name of its own.
fn with_ctranslate2(torch: Option<Torch>, version: &str, carried: (&str, Elf)) -> Venv {
    let venv = torch.map_or_else(Venv::empty, |torch| torch.venv());
    let (name, shim) = carried;
    let library = format!("libctranslate2-bc15bf3f.so.{version}");
    let core = Elf::library(&library).needed(&[name]).rpath("$ORIGIN");
    let extension = module("_ext").needed(&[&library]).rpath("$ORIGIN/../ctranslate2.libs");
    let shim = Elf { soname: Some(name.into()), runpath: None, ..shim }.rpath("ctranslate2.libs");
    let files = [
        ("ctranslate2/_ext.cpython-311-x86_64-linux-gnu.so", extension),
        (&format!("ctranslate2.libs/{library}"), core),
        (&format!("ctranslate2.libs/{name}"), shim),
    ];
    venv.install("ctranslate2", version, &["setuptools", "numpy", "pyyaml<7,>=5.3"], &files);
    venv
}

const CARRIED_8: &str = "libcudnn-463fd6d5.so.8.9.7";
const CARRIED_9: &str = "libcudnn-74a4c495.so.9.1.0";

fn for_cudnn_8(torch: Option<Torch>) -> Venv {
    with_ctranslate2(torch, "4.4.0", (CARRIED_8, Elf::default()))
}

fn for_cudnn_9(torch: Option<Torch>) -> Venv {
    with_ctranslate2(torch, "4.5.0", (CARRIED_9, cudnn("", [9, 1, 0]).1))
}

/// The folder of cuDNN's package is on the loader's path.
fn with_path(mut venv: Venv) -> Venv {
    let folder = venv.site().canonicalize().unwrap().join("nvidia/cudnn/lib");
    venv.set("LD_LIBRARY_PATH", &folder.display().to_string());
    venv
}

#[test]
fn dnn_03_ct2_wants_cudnn8() {
    let torch_2_5 = || torch("2.5.1", 12040).cudnn([9, 1, 0]);
    let findings = on(&for_cudnn_8(Some(torch_2_5())), "A100", "550.120");
    let said = [
        "ctranslate2 4.4.0 wants cuDNN 8 and the environment has cuDNN 9",
        "libcudnn_ops_infer.so.8 cannot be opened",
        "take a release of ctranslate2 that is built for cuDNN 9",
    ];
    let subject = "ctranslate2.libs/libcudnn-463fd6d5.so.8.9.7";
    assert_error(the_problem(&findings, "cudnn-major-mismatch"), subject, &said);
    // The published pairs, where the loader finds what they bring.
    assert_healthy(&on(&with_path(for_cudnn_9(Some(torch_2_5()))), "A100", "550.120"));
    let torch_2_3 = torch("2.3.1", 12010).cudnn([8, 9, 2]);
    assert_healthy(&on(&with_path(for_cudnn_8(Some(torch_2_3))), "A100", "550.120"));
}

/// The files are there, and CTranslate2 does not look where they are.
#[test]
fn dnn_04_ct2_cudnn9_installed_not_found() {
    let torch_2_5 = || torch("2.5.1", 12040).cudnn([9, 1, 0]);
    let venv = for_cudnn_9(Some(torch_2_5()));
    let findings = on(&venv, "A100", "550.120");
    let finding = the_problem(&findings, "cudnn-sublibrary-missing");
    let folder = venv.site().canonicalize().unwrap().join("nvidia/cudnn/lib");
    let fix = format!("put {} on LD_LIBRARY_PATH", folder.display());
    let said = [
        "libcudnn_graph.so.9 and 3 more are not found by ctranslate2.libs/libcudnn-74a4c495.so.9.1.0",
        "nvidia/cudnn/lib/libcudnn_graph.so.9 is there, where the loader does not look for it",
        "libcudnn_cnn.so.9",
        fix.as_str(),
    ];
    assert_error(finding, "ctranslate2.libs/libcudnn-74a4c495.so.9.1.0", &said);
    assert_healthy(&on(&with_path(for_cudnn_9(Some(torch_2_5()))), "A100", "550.120"));

    // It works on processors too: without a GPU in question, and without cuDNN, nothing is wrong.
    let alone = for_cudnn_9(None);
    assert_healthy(&alone.check());
    let findings = on(&alone, "A100", "550.120");
    let finding = the_problem(&findings, "cudnn-sublibrary-missing");
    assert!(words(finding).contains("`import ctranslate2` may succeed"), "{finding:#?}");
}

/// TensorFlow opens cuDNN by name; the first folder of LD_LIBRARY_PATH has an older one than its package.
#[test]
fn dnn_08_tf_ld_order() {
    let with_path = |own_first: bool| {
        let mut venv = Venv::empty();
        let framework = Elf::library("libtensorflow_framework.so.2").runpath("$ORIGIN/");
        let internal = module("_pywrap_tensorflow_internal").needed(&["libtensorflow_framework.so.2"]);
        let files = [
            ("tensorflow/libtensorflow_framework.so.2", framework),
            ("tensorflow/python/_pywrap_tensorflow_internal.so", internal.runpath("$ORIGIN/:$ORIGIN/..")),
        ];
        venv.install("tensorflow", "2.12.0", &["numpy<1.24,>=1.22"], &files);
        super::torch::install_cudnn8(&venv.site(), "nvidia-cudnn-cu11", [8, 6, 0]);
        let mut folders = vec![venv.site().canonicalize().unwrap().join("nvidia/cudnn/lib").display().to_string()];
        for (name, elf) in cudnn8([8, 1, 1]) {
            let folder = venv.beside(&format!("usr/local/cuda/lib64/{name}"), &elf);
            folders.truncate(1);
            folders.push(folder);
        }
        if !own_first {
            folders.reverse();
        }
        venv.set("LD_LIBRARY_PATH", &folders.join(":"));
        (venv.check(), folders)
    };
    let (findings, folders) = with_path(false);
    let taken = format!("libcudnn.so.8 and 6 more are taken from {} by LD_LIBRARY_PATH", folders[0]);
    let said = [taken.as_str(), "8.1.1, in place of nvidia/cudnn/lib/libcudnn_ops_infer.so.8 (8.6.0)"];
    let subject = format!("{}/libcudnn.so.8", folders[0]);
    assert_error(the_problem(&findings, "shadowed-library"), &subject, &said);
    assert_healthy(&with_path(true).0);
}
