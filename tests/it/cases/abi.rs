//! Extensions that were built for another torch.

use std::fs;
use std::os::unix::fs::symlink;

use super::image::Image;
use super::torch::{Torch, torch};
use super::{assert_healthy, problems};
use crate::check::venv::{Question, Venv, ask, assert_error, install, module, the_problem};
use crate::link::fixture::Elf;

const CODE: &str = "torch-abi-mismatch";
/// `c10::Error::Error(c10::SourceLocation, std::string)` in both ABIs of std::string.
const ERROR_OLD: [&str; 2] = ["_ZN3c105ErrorC1ENS_14SourceLocationESs", "_ZN3c105ErrorC2ENS_14SourceLocationESs"];
const ERROR_NEW: [&str; 2] = [
    "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
];
/// `torch::jit::parseSchemaOrName(std::string const&, bool)`.
const PARSE_OLD: &str = "_ZN5torch3jit17parseSchemaOrNameERKSsb";
const PARSE_NEW: &str = "_ZN5torch3jit17parseSchemaOrNameERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEb";
/// `c10::cuda::c10_cuda_check_implementation`, of which a parameter changed its type.
const CHECK_INT: &str = "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib";
const CHECK_UNSIGNED: &str = "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb";

/// The ABI is one of the wheel, not of the release.
#[test]
fn abi_01_same_torch_version_two_abis() {
    let with_flash_attention = |torch: Torch| {
        let venv = torch.venv();
        let name = "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so";
        let extension = module("flash_attn_2_cuda").needed(&["libc10.so"]).asks(&[ERROR_OLD[1]]);
        venv.install("flash_attn", "2.7.4.post1", &["torch"], &[(name, extension)]);
        venv.check()
    };
    let findings = with_flash_attention(torch("2.6.0+cu126", 12060).defines(&ERROR_NEW));
    let said = [
        "flash-attn 2.7.4.post1 does not fit torch 2.6.0+cu126",
        "nothing defines _ZN3c105ErrorC2ENS_14SourceLocationESs",
        "built with the C++ ABI of before C++11",
    ];
    let subject = "flash_attn_2_cuda.cpython-311-x86_64-linux-gnu.so";
    assert_error(the_problem(&findings, CODE), subject, &said);
    assert_healthy(&with_flash_attention(torch("2.6.0+cu124", 12040).defines(&ERROR_OLD)));
}

/// `abi3` is about Python.
#[test]
fn abi_03_precompiled_binary_older_torch() {
    let with_vllm = |asks: &str| {
        let venv = torch("2.10.0", 12080).defines(&[CHECK_INT]).venv();
        let core = module("_C").needed(&["libc10.so", "libc10_cuda.so"]).asks(&[asks]);
        venv.install("vllm", "0.16.0", &["torch==2.10.0"], &[("vllm/_C.abi3.so", core)]);
        venv.check()
    };
    let findings = with_vllm(CHECK_UNSIGNED);
    let said = ["vllm 0.16.0 does not fit torch 2.10.0", CHECK_UNSIGNED, "`import vllm._C` fails"];
    assert_error(the_problem(&findings, CODE), "vllm/_C.abi3.so", &said);
    assert_healthy(&with_vllm(CHECK_INT));
}

/// torch was chosen for another CUDA than the packages on top of it.
#[test]
fn abi_04_backend_flag_moves_only_torch() {
    let with_vllm_for = |runtime: &str| {
        let venv = torch("2.11.0+cu129", 12090).venv();
        let core = module("_C").needed(&["libc10.so", "libtorch_cuda.so", runtime]);
        venv.install("vllm", "0.22.0", &["torch==2.11.0"], &[("vllm/_C.abi3.so", core)]);
        venv.check()
    };
    let findings = with_vllm_for("libcudart.so.13");
    let said = [
        "libcudart.so.13 is not found, which vllm/_C.abi3.so needs",
        "the environment has nvidia/cuda_runtime/lib/libcudart.so.12",
        "install a vllm that is built for what the environment has",
    ];
    assert_error(the_problem(&findings, "unresolved-needed"), "vllm/_C.abi3.so", &said);
    assert_healthy(&with_vllm_for("libcudart.so.12"));
}

/// An image's own torch, made of what was to become 2.5, beside a wheel for the released one.
#[test]
fn abi_06_ngc_torch_is_not_pypi_torch() {
    let with_flashinfer = |asks: &str| {
        let mut image = Image::debian();
        let site = image.path("usr/local/lib/python3.11/dist-packages");
        let own = torch("2.5.0a0+872d972e41.nv24.08", 12060).defines(&[PARSE_NEW]);
        // CUDA is the image's, not of packages.
        let files = own.files();
        let files: Vec<(&str, Elf)> = files.iter().map(|(path, elf)| (*path, elf.clone())).collect();
        install(&site, "torch", own.version, &[], &files);
        image.put("usr/local/cuda/lib64/libcudart.so.12", &crate::check::venv::cudart("libcudart.so.12", 12060));
        image.put("usr/lib/x86_64-linux-gnu/libnccl.so.2", &crate::check::venv::nccl(22205));
        image.set("LD_LIBRARY_PATH", "/usr/local/cuda/lib64");
        let kernels = module("_kernels").needed(&["libtorch_cpu.so", "libc10.so"]).asks(&[asks]);
        let path = "flashinfer/_kernels.cpython-311-x86_64-linux-gnu.so";
        install(&site, "flashinfer", "0.2.1.post2+cu124torch2.5", &["torch==2.5.*"], &[(path, kernels)]);
        image.ask(&Question { gpus: &["H100"], driver: Some("550.90.07"), ..Question::default() })
    };
    let findings = with_flashinfer(PARSE_OLD);
    let said = ["does not fit torch 2.5.0a0+872d972e41.nv24.08", PARSE_OLD, "built with the C++ ABI of before C++11"];
    let subject = "dist-packages/flashinfer/_kernels.cpython-311-x86_64-linux-gnu.so";
    assert_error(the_problem(&findings, CODE), subject, &said);
    assert_healthy(&with_flashinfer(PARSE_NEW));
}

/// xformers says it in a warning and goes on without its kernels.
#[test]
fn abi_07_xformers_degrades_silently() {
    let with_xformers = |torch: Torch| {
        let venv = torch.venv();
        let kernels = Elf::default().needed(&["libc10.so", "libtorch_cpu.so", "libcudart.so.12", "libc10_cuda.so"]);
        let kernels = kernels.needed(&["libtorch_cuda.so"]).asks(&["aoti_torch_empty_strided"]);
        venv.install("xformers", "0.0.34", &["numpy", "torch==2.10.0"], &[("xformers/_C.so", kernels)]);
        venv.check()
    };
    let stable = ["aoti_torch_empty_strided"];
    let findings = with_xformers(torch("2.11.0", 13000).defines(&stable));
    let said = [
        "libcudart.so.12 is not found, which xformers/_C.so needs: loading xformers' kernels",
        "requires torch==2.10.0; 2.11.0 is installed",
        "the torch that xformers 0.0.34 requires: pip install 'torch==2.10.0'",
    ];
    assert_error(the_problem(&findings, "unresolved-needed"), "xformers/_C.so", &said);
    assert_healthy(&with_xformers(torch("2.10.0", 12080).defines(&stable)));
}

/// torch of conda-forge, as its packages lay it out, and a torchaudio of the project's own wheels.
#[test]
fn abi_09_mixing_distributors() {
    let with_torchaudio = |asks: &str| {
        let prefix = tempfile::tempdir().unwrap();
        let torch = torch("1.13.1", 11070).defines(&[PARSE_NEW]);
        conda(prefix.path(), &torch, "cuda112py311h13fee9e_200");
        let site = prefix.path().join("lib/python3.11/site-packages");
        let library = Elf::library("libtorchaudio.so").needed(&["libtorch_cpu.so", "libc10.so"]).asks(&[asks]);
        install(&site, "torchaudio", "0.13.1", &["torch==1.13.1"], &[("torchaudio/lib/libtorchaudio.so", library)]);
        ask(prefix.path(), &Default::default(), &site, &Question::default())
    };
    let findings = with_torchaudio(PARSE_OLD);
    let said = [
        "torchaudio 0.13.1 does not fit torch 1.13.1",
        "built with the C++ ABI of before C++11",
        "pytorch 1.13.1 is a package of conda, build cuda112py311h13fee9e_200; torchaudio is a wheel",
        "take both from conda, or both as wheels",
    ];
    assert_error(the_problem(&findings, CODE), "torchaudio/lib/libtorchaudio.so", &said);
    assert_healthy(&with_torchaudio(PARSE_NEW));
}

/// A prefix of conda with torch as conda-forge has it: the libraries in `lib`, links to them in torch's own folder.
pub fn conda(prefix: &std::path::Path, torch: &Torch, build: &str) {
    let site = prefix.join("lib/python3.11/site-packages");
    let cuda = build.starts_with("cuda");
    let (mut own, mut python) = (Vec::new(), Vec::new());
    for (path, elf) in torch.files() {
        let elf = Elf { rpath: elf.rpath.map(|_| "$ORIGIN:$ORIGIN/../../../..".into()), ..elf };
        match path.strip_prefix("torch/lib/") {
            Some(name) if cuda || !name.contains("cuda") && !name.contains("nvrtc") => {
                // Without CUDA nothing of it is needed.
                let needed = elf.needed.iter().filter(|name| cuda || !name.contains("cuda")).cloned().collect();
                Elf { needed, ..elf }.write(&prefix.join("lib").join(name));
                fs::create_dir_all(site.join("torch/lib")).unwrap();
                symlink(format!("../../../../{name}"), site.join(path)).unwrap();
                own.push(format!("lib/{name}"));
                python.push(format!("lib/python3.11/site-packages/{path}"));
            }
            Some(_) => {}
            None => {
                let needed = elf.needed.iter().filter(|name| cuda || !name.contains("cuda")).cloned().collect();
                Elf { needed, rpath: Some("$ORIGIN/lib:$ORIGIN/../../..".into()), ..elf }.write(&site.join(path));
                python.push(format!("lib/python3.11/site-packages/{path}"));
            }
        }
    }
    if cuda {
        crate::check::venv::cudart(torch.runtime(), torch.cuda).write(&prefix.join("lib").join(torch.runtime()));
        crate::check::venv::nccl(torch.nccl).write(&prefix.join("lib/libnccl.so.2"));
    }
    // The wheel that the package was made of leaves its description, without the files that were moved.
    install(&site, "torch", torch.version, &[], &[]);
    for (name, files) in [("libtorch", own), ("pytorch", python)] {
        let record = serde_json::json!({
            "name": name, "version": torch.version, "build": build, "channel": "conda-forge", "depends": [],
            "files": files,
        });
        let path = prefix.join(format!("conda-meta/{name}-{}-{build}.json", torch.version));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, record.to_string()).unwrap();
    }
}

/// Two torches: the older one comes first on `sys.path`, the newer one is what pip installed last.
#[test]
fn vis_01_nms_two_torches() {
    const NEW: &str = "_ZN3c104cuda9SetDeviceEab";
    let with_venv_of = |own: Option<Torch>| {
        let venv = Venv::empty();
        let base = venv.path().parent().unwrap().join("base");
        let config = format!(
            "home = {}/bin\ninclude-system-site-packages = true\nversion = 3.11.7\n",
            base.canonicalize().unwrap_or(base.clone()).display()
        );
        fs::write(venv.path().join("pyvenv.cfg"), config).unwrap();
        let site = base.join("lib/python3.11/site-packages");
        torch("2.8.0", 12080).defines(&[NEW]).install(&site, &site);
        let library = Elf::default().needed(&["libc10.so"]).asks(&[NEW]);
        install(&site, "torchvision", "0.23.0", &["torch==2.8.0"], &[("torchvision/_C.so", library)]);
        if let Some(own) = own {
            own.install(&venv.site(), &venv.site());
        }
        venv.check()
    };
    let findings = with_venv_of(Some(torch("2.6.0", 12040)));
    let said = [
        "torchvision 0.23.0 does not fit torch 2.6.0",
        "operator torchvision::nms does not exist",
        "torch 2.8.0 too, which torch 2.6.0 hides",
        "remove one of the two: torch 2.6.0",
    ];
    assert!(problems(&findings).len() == 1, "{:#?}", findings.findings);
    assert_error(the_problem(&findings, CODE), "torchvision/_C.so", &said);
    assert_healthy(&with_venv_of(None));
}
