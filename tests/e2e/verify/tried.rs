//! An environment broken in ten further ways, each of another kind, and three changes that break nothing. Each is run for
//! real and verified: one error names what the run shows, and a change that the run does not feel gives none.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::environment::{Case, Changed, healthy, part};
use crate::run::{network, succeed};

const IMPORT: &str = "import torch";
const NCCL: &str = "nvidia/nccl/lib/libnccl.so.2";
const CUDART_12_1: &str = "nvidia-cuda-runtime-cu12==12.1.105";

/// Compiles a kernel, which needs no GPU.
const COMPILE: &str = r"
import torch, ctypes, os
nvrtc = ctypes.CDLL(os.path.join(torch.__path__[0], '../nvidia/cuda_nvrtc/lib/libnvrtc.so.12'))
program, size = ctypes.c_void_p(), ctypes.c_size_t()
nvrtc.nvrtcCreateProgram(ctypes.byref(program), b'__global__ void k() {}', b'k.cu', 0, None, None)
nvrtc.nvrtcCompileProgram(program, 0, None)
nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
log = ctypes.create_string_buffer(size.value)
nvrtc.nvrtcGetProgramLog(program, log)
print(log.value.decode())
";

const BREAKS: [Case; 10] = [
    Case {
        name: "nvJitLink of another minor",
        change: |env| env.replace("nvidia-nvjitlink-cu12==12.4.127", "nvidia/nvjitlink"),
        run: Some((IMPORT, "undefined symbol: __nvJitLinkCreate_12_8")),
        code: "nvjitlink-mismatch",
        words: &["12.4.127", "__nvJitLinkCreate_12_8", "--force-reinstall --no-deps nvidia-nvjitlink-cu12==12.8.93"],
    },
    Case {
        name: "another CUDA runtime in LD_PRELOAD",
        change: |env| {
            env.set("LD_PRELOAD", &part(CUDART_12_1, None).join("nvidia/cuda_runtime/lib/libcudart.so.12"));
        },
        run: Some((IMPORT, "undefined symbol: cudaGetDriverEntryPointByVersion")),
        code: "shadowed-library",
        words: &["LD_PRELOAD", "12.1 in place of 12.8", "cudaGetDriverEntryPointByVersion", "`import torch` fails"],
    },
    // A copy that was interrupted: all that the loader reads is there, not all that it maps.
    Case {
        name: "a file that is cut short",
        change: |env| env.cut(NCCL, 0x1885_e000),
        run: Some((IMPORT, "signal 7")),
        code: "library-unreadable",
        words: &[NCCL, "is cut short", "SIGBUS", "nvidia-nccl-cu12==2.27.3"],
    },
    Case {
        name: "a link to nothing",
        change: |env| env.link("nvidia/cusparse/lib/libcusparse.so.12", "/opt/cuda/lib/libcusparse.so.12.5.8"),
        run: Some((IMPORT, "libcusparse.so.12: cannot open shared object file")),
        code: "unresolved-needed",
        words: &["libcusparse.so.12 is a link to /opt/cuda/lib/libcusparse.so.12.5.8, which is not there"],
    },
    Case {
        name: "an uninstallation that was interrupted",
        change: |env| {
            env.rename("nvidia/cudnn", "nvidia/~udnn");
            env.rename("nvidia_cudnn_cu12-9.10.2.21.dist-info", "~vidia_cudnn_cu12-9.10.2.21.dist-info");
        },
        run: Some((IMPORT, "libcudnn.so.9: cannot open shared object file")),
        code: "unresolved-needed",
        words: &["libcudnn.so.9 is not found", "pip install 'nvidia-cudnn-cu12==9.10.2.21'"],
    },
    Case {
        name: "a package with several libraries that is not installed",
        change: |env| {
            env.remove("nvidia/cublas");
            env.remove("nvidia_cublas_cu12-12.8.4.1.dist-info");
        },
        run: Some((IMPORT, "libcublas.so.12: cannot open shared object file")),
        code: "unresolved-needed",
        words: &["libcublas.so.12 and libcublasLt.so.12", "pip install 'nvidia-cublas-cu12==12.8.4.1'"],
    },
    Case {
        name: "torch's libraries without their run paths",
        change: |env| {
            for name in ["global_deps", "python", "cpu", "cuda"] {
                env.patchelf("--remove-rpath", &format!("torch/lib/libtorch_{name}.so"));
            }
            for name in ["lib/libtorch.so", "lib/libc10_cuda.so", "_C.cpython-311-x86_64-linux-gnu.so"] {
                env.patchelf("--remove-rpath", &format!("torch/{name}"));
            }
        },
        run: Some((IMPORT, "libtorch_python.so: cannot open shared object file")),
        code: "unresolved-needed",
        words: &["libtorch_python.so", "where the loader does not look", "--force-reinstall --no-deps torch==2.8.0"],
    },
    Case {
        name: "torch for another Python",
        change: |env| {
            env.rename("torch/_C.cpython-311-x86_64-linux-gnu.so", "torch/_C.cpython-310-x86_64-linux-gnu.so");
        },
        run: Some((IMPORT, "Failed to load PyTorch C extensions")),
        code: "unresolved-needed",
        words: &["torch/_C.cpython-310-x86_64-linux-gnu.so is for another Python"],
    },
    Case {
        name: "a library for another processor",
        change: |env| {
            let (package, platform) = ("nvidia-cuda-cupti-cu12==12.8.90", "aarch64-unknown-linux-gnu");
            env.replace_for(package, Some(platform), "nvidia/cuda_cupti/lib/libcupti.so.12");
        },
        run: Some((IMPORT, "libcupti.so.12: cannot open shared object file")),
        code: "unresolved-needed",
        words: &["libcupti.so.12 is for another processor", "nvidia-cuda-cupti-cu12==12.8.90"],
    },
    Case {
        name: "half of NVRTC",
        change: |env| env.remove("nvidia/cuda_nvrtc/lib/libnvrtc-builtins.so.12.8"),
        run: Some((COMPILE, "failed to open libnvrtc-builtins.so.12.8")),
        code: "unresolved-needed",
        words: &[
            "libnvrtc-builtins.so.12.8",
            "compiling a kernel at run time fails",
            "nvidia-cuda-nvrtc-cu12==12.8.93",
        ],
    },
];

type Change = (&'static str, fn(&mut Changed));

const HARMLESS: [Change; 3] = [
    ("what is not needed is gone: NVTX, the run path of a library that is loaded after those that have one", |env| {
        env.remove("nvidia/nvtx");
        env.patchelf("--remove-rpath", "torch/lib/libtorch_cuda.so");
    }),
    ("files that nobody loads: another release, another processor, a linker script, a link to nothing, text", |env| {
        let old = part(CUDART_12_1, None).join("nvidia/cuda_runtime/lib/libcudart.so.12");
        env.write("torch/share/old/libcudart.so.12", &fs::read(old).unwrap());
        let arm = part("nvidia-cuda-cupti-cu12==12.8.90", Some("aarch64-unknown-linux-gnu"));
        env.write(
            "torch/share/arm/libcupti.so.12",
            &fs::read(arm.join("nvidia/cuda_cupti/lib/libcupti.so.12")).unwrap(),
        );
        env.write("torch/lib/libnccl.so", b"/* GNU ld script */\nINPUT(libnccl.so.2)\n");
        env.link("torch/lib/libcudnn.so", "libcudnn.so.9");
        env.write("torch/lib/libtorch.so.md", b"What is in this folder.\n");
    }),
    ("packages moved elsewhere and reached by a link", |env| {
        let elsewhere = env.path.with_file_name("packages");
        succeed(Command::new("mv").arg(env.site()).arg(&elsewhere));
        std::os::unix::fs::symlink(&elsewhere, env.site()).unwrap();
    }),
];

#[test]
fn network_ten_breaks_are_found_and_three_changes_are_not() {
    if !network() {
        return;
    }
    let Some(healthy) = healthy() else { return };
    for case in &BREAKS {
        case.check(&healthy.path());
    }
    for (name, change) in &HARMLESS {
        harmless(&healthy.path(), name, *change);
    }
}

fn harmless(healthy: &Path, name: &str, change: fn(&mut Changed)) {
    let mut changed = Changed::copy(healthy);
    change(&mut changed);
    let text = changed.run("import torch, torchvision, torchaudio; print('imported')");
    assert!(text.contains("imported"), "{name}: {text}");
    changed.ask(&["--gpu", "RTX 5090", "--driver", "570.124.06"]);
    let (report, code) = changed.verify();
    println!("{name}: {}", report["summary"]);
    let summary = &report["summary"];
    assert_eq!((code, &summary["error"], &summary["warning"]), (Some(0), &0.into(), &0.into()), "{name}: {report:#}");
}
