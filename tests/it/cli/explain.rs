//! `gpulock explain` of what people paste.

use gpulock::check::pages;
use gpulock::matrix::Matrix;

use super::program::Place;

/// What is pasted, and words of what is said.
const PASTED: [(&str, &[&str]); 40] = [
    ("35", &["CUDA 35: cudaErrorInsufficientDriver", "driver-too-old"]),
    ("100", &["CUDA_ERROR_NO_DEVICE, cudaErrorNoDevice"]),
    ("209", &["CUDA_ERROR_NO_BINARY_FOR_GPU, cudaErrorNoKernelImageForDevice", "gpu-code-missing"]),
    ("222", &["cudaErrorUnsupportedPtxVersion", "ptx-jit-unavailable"]),
    ("802", &["nvidia-fabricmanager"]),
    ("803", &["kernel module"]),
    ("804", &["cuda-compat", "data-centre GPUs only"]),
    ("cudaErrorNoKernelImageForDevice", &["# CUDA 209", "gpu-code-missing"]),
    ("cudaerrornokernelimagefordevice", &["# CUDA 209"]),
    ("CUDA error: no kernel image is available for execution on the device", &["gpu-code-missing"]),
    ("RuntimeError: CUDA error: device-side assert triggered", &["index or a class label"]),
    ("CUDA error 209", &["# CUDA 209"]),
    ("cudaError_t 716 returned", &["cudaErrorMisalignedAddress"]),
    ("1002", &["cuDNN 9 1002: CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH", "cudnn-version-mixed"]),
    ("CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH", &["# cuDNN 9 3007", "gpu-code-missing"]),
    ("CUDNN_STATUS_EXECUTION_FAILED", &["# cuDNN 8 8", "# cuDNN 9 5000"]),
    ("ncclUnhandledCudaError", &["# NCCL 1", "NCCL_DEBUG=INFO"]),
    ("NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)", &["/dev/shm"]),
    ("CUBLAS_STATUS_ALLOC_FAILED", &["# cuBLAS 3"]),
    ("libcudnn.so.9: cannot open shared object file: No such file or directory", &["unresolved-needed"]),
    ("/x/_C.so: undefined symbol: _ZN3c104cuda9SetDeviceEa", &["undefined-symbol"]),
    ("/lib/libc.so.6: version `GLIBC_2.38' not found (required by /x.so)", &["glibc-too-new"]),
    ("libstdc++.so.6: version `GLIBCXX_3.4.32' not found (required by /x.so)", &["libstdcxx-too-old"]),
    ("version `libnvJitLink.so.12' not found (required by libcusparse.so.12)", &["symbol-version-missing"]),
    ("libgomp.so.1: cannot allocate memory in static TLS block", &["LD_PRELOAD"]),
    ("cannot enable executable stack as shared object requires: Invalid argument", &["executable-stack"]),
    (
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update",
        &["NVIDIA_REQUIRE_CUDA"],
    ),
    (
        "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open",
        &["# The container runtime finds no driver"],
    ),
    ("could not select device driver \"\" with capabilities: [[gpu]]", &["nvidia-container-toolkit"]),
    ("Failed to initialize NVML: Driver/library version mismatch", &["kernel module"]),
    ("AssertionError: Torch not compiled with CUDA enabled", &["cpu-build-installed"]),
    ("RuntimeError: operator torchvision::nms does not exist", &["torch-abi-mismatch"]),
    (
        "RuntimeError: cuDNN version incompatibility: PyTorch was compiled  against (9, 8, 0)",
        &["cudnn-older-than-built"],
    ),
    ("139", &["Exit status 139 (SIGSEGV)", "gpulock verify -- python job.py"]),
    ("134", &["Exit status 134 (SIGABRT)"]),
    ("exited with exit code 137", &["SIGKILL", "memory"]),
    ("Segmentation fault (core dumped)", &["Exit status 139"]),
    ("cuda-memcheck", &["compute-sanitizer", "CUDA 12.0"]),
    ("nvprof: command not found", &["Nsight Systems"]),
    ("gpu-code-missing", &["# gpu-code-missing"]),
];

#[test]
fn what_people_paste() {
    let place = Place::empty();
    for (pasted, words) in PASTED {
        let said = place.run(&["explain", pasted]).code(0).out;
        for word in words {
            assert!(said.contains(word), "{pasted}: nothing of `{word}`:\n{said}");
        }
    }
    let said = place.run(&["explain", "CUDA", "error:", "out", "of", "memory"]).code(0).out;
    assert!(said.contains("enough free memory") || said.contains("cudaErrorMemoryAllocation"), "{said}");
}

/// The line of the error, not numbers that stand around it.
#[test]
fn a_log_is_searched_for_its_error() {
    let log = "Traceback (most recent call last):\n  File \"x.py\", line 719, in <module>\nRuntimeError: CUDA error: no kernel \
               image is available for execution on the device\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n";
    let said = Place::empty().run(&["explain", log]).code(0).out;
    assert!(said.contains("gpu-code-missing") && said.matches("\n# ").count() == 0, "{said}");
}

#[test]
fn numbers_that_are_none() {
    let place = Place::empty();
    for text in ["5090", "error 5090", "RuntimeError: error code 5090", "4294967295"] {
        let said = place.run(&["explain", text]).code(0).out;
        for word in ["No component defines", "CUDA_LAUNCH_BLOCKING=1", "TORCH_SHOW_CPP_STACKTRACES=1", "core file"] {
            assert!(said.contains(word), "{text}: {said}");
        }
    }
}

#[test]
fn what_nobody_knows_is_said() {
    let place = Place::empty();
    let near = place.run(&["explain", "gpu-code-mising"]).code(2);
    assert!(near.err.contains("did you mean `gpu-code-missing`?"), "{}", near.err);
    let other = place.run(&["explain", "the cat sat on the mat"]).code(2);
    assert!(other.err.contains("message-unknown"), "{}", other.err);
    place.run(&["explain", ""]).code(2);
    place.run(&["explain", &"x".repeat(100_000)]).code(2);
}

/// Every rule that an answer names has a page.
#[test]
fn answers_name_rules_that_are() {
    let matrix = Matrix::embedded();
    for answer in &matrix.message().unwrap().answers {
        if let Some(code) = &answer.rule {
            assert!(pages().iter().any(|page| page.code == code), "{}: no rule {code}", answer.title);
        }
    }
}
