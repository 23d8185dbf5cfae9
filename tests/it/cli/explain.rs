//! `gpulock explain` of what people paste.

use gpulock::check::pages as check_pages;
use gpulock::matrix::Matrix;

use super::program::Place;

/// What is pasted, and words of what is said.
const PASTED: [(&str, &[&str]); 71] = [
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
    ("[  12.3] NVRM: Xid (PCI:0000:41:00): 79, pid=1234, name=python3, GPU has fallen off the bus.", &["# Xid 79"]),
    ("NVRM: Xid (PCI:0000:01:00): 31, pid=1, Ch 00000008", &["# Xid 31"]),
    ("error code 35", &["It is not said which library", "# CUDA 35: cudaErrorInsufficientDriver"]),
    ("CUDA error 0x23", &["# CUDA 35"]),
    ("-11", &["SIGSEGV"]),
    ("  exitcode  : -9 (pid: 1234)", &["SIGKILL"]),
    ("subprocess.CalledProcessError: died with returncode=-6", &["SIGABRT"]),
    ("worker died with signal 11", &["SIGSEGV"]),
    ("Killed", &["SIGKILL"]),
    ("rc=139", &["SIGSEGV"]),
    ("exitcode: 1 (pid: 134)", &["# Exit status 1\n", "names the error"]),
    ("No devices were found", &["# nvidia-smi finds no GPU", "gpu-not-answering"]),
    (
        "Unable to determine the device handle for GPU0000:5E:00.0: GPU is lost.  Reboot the system to recover this GPU",
        &["# The GPU is lost"],
    ),
    ("  File x.py, line 35\ntorch.OutOfMemoryError", &["# Out of GPU memory"]),
    ("bash: nvidia-smi: command not found", &["utility"]),
    ("libcuda.so.1: cannot open shared object file: No such file or directory", &["# No driver"]),
    (
        "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env \
         variable CUDA_VISIBLE_DEVICES after program start",
        &["/dev/nvidia-uvm"],
    ),
    ("RuntimeError: Cannot re-initialize CUDA in forked subprocess.", &["spawn"]),
    ("NCCL WARN Cuda failure 'initialization error'", &["spawn"]),
    (
        "misc/shmutils.cc:72 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-ABC (size 9637888)",
        &["--shm-size"],
    ),
    (
        "[E ProcessGroupNCCL.cpp:475] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, \
         OpType=ALLREDUCE, Timeout(ms)=600000)",
        &["earliest error"],
    ),
    ("Loaded runtime CuDNN library: 8.5.0 but source was compiled with: 8.6.0.", &["cudnn-older-than-built"]),
    ("XlaRuntimeError: FAILED_PRECONDITION: DNN library initialization failed.", &["XLA_PYTHON_CLIENT_PREALLOCATE"]),
    ("undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12", &["nvjitlink-mismatch"]),
    ("nvcc fatal   : Unsupported gpu architecture 'compute_120'", &["nvcc --list-gpu-arch"]),
    ("nvcc fatal: Value 'sm_120' is not defined for option 'gpu-architecture'", &["nvcc --list-gpu-arch"]),
    ("ptxas t.ptx, line 5; fatal   : Unsupported .version 8.7; current version is '8.4'", &["TRITON_PTXAS_PATH"]),
    ("failed to inject CDI devices: unresolvable CDI devices nvidia.com/gpu=all", &["nvidia-ctk cdi generate"]),
    ("nvidia-container-cli: device error: 3: unknown device: unknown", &["nvidia-smi -L"]),
    ("CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`", &["# cuBLAS 1", "memory on the GPU"]),
    ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED", &["# cuBLAS 3", "not enough free memory"]),
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

/// For programs: the same pages, and all rules where none is asked for; options may stand behind the message.
#[test]
fn pages_for_programs() {
    let place = Place::empty();
    let pages = |arguments: &[&str]| {
        let json = place.run(&[&["explain"], arguments, &["--format", "json"]].concat()).code(0).json();
        assert_eq!(json["schema"], "gpulock.explain/1");
        let remarks = json["remarks"].as_array().unwrap().len();
        (remarks, json["pages"].as_array().unwrap().clone())
    };
    let (remarks, rule) = pages(&["gpu-code-missing"]);
    assert_eq!((remarks, rule.len(), &rule[0]["title"]), (0, 1, &"gpu-code-missing".into()));
    let text = rule[0]["text"].as_str().unwrap();
    let human = place.run(&["explain", "gpu-code-missing"]).code(0).out;
    assert_eq!(human, format!("# gpu-code-missing\n\n{text}\n"));
    let (remarks, any) = pages(&["error", "code", "35"]);
    assert_eq!((remarks, &any[0]["title"]), (1, &"CUDA 35: cudaErrorInsufficientDriver".into()));
    let (remarks, many) = pages(&["1"]);
    assert_eq!((remarks, many.len()), (1, 6));
    assert_eq!(pages(&["-9"]).1[0]["title"], "Exit status 137 (SIGKILL)");
    let all = pages(&[]).1;
    assert_eq!(all.len(), check_pages().len());
    assert!(check_pages().iter().zip(&all).all(|(page, said)| said["title"] == page.code));
    let ran = place.run(&["explain", "the cat sat on the mat", "--format", "json"]).code(2);
    assert_eq!(ran.json()["errors"][0]["code"], "message-unknown");
}

/// Of several pages the one that says most comes first.
#[test]
fn the_nearest_page_comes_first() {
    for (text, first) in [
        ("libc.so.6: version `GLIBC_2.34' not found (required by /x.so)", "# The C library is too old"),
        ("libstdc++.so.6: version `CXXABI_1.3.15' not found (required by /x.so)", "# The C++ library is too old"),
        (
            "ld.so: object '/x.so' from LD_PRELOAD cannot be preloaded (cannot open shared object file): ignored.",
            "# A preloaded library is not found",
        ),
    ] {
        let said = Place::empty().run(&["explain", text]).code(0).out;
        assert!(said.starts_with(first), "{text}: {said}");
    }
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

/// A number that stands in a message and is no status of anything is none that "no component defines".
#[test]
fn numbers_that_are_no_statuses() {
    let place = Place::empty();
    for text in [
        "sm_120 and nothing else",
        "rank 3 of 8 waits",
        "ldcache error: process /sbin/ldconfig of this image failed with error code: 1",
        "Loaded something of CuDNN library: 8.5.0",
    ] {
        let ran = place.run(&["explain", text]).code(2);
        assert!(ran.err.contains("message-unknown") && ran.out.is_empty(), "{text}: {ran:?}");
    }
    // What one line is about is said once, and by nothing that its numbers happen to be.
    for text in [
        "Loaded runtime CuDNN library: 8.5.0 but source was compiled with: 8.6.0.",
        "NVRM: Xid (PCI:0000:01:00): 79, x",
    ] {
        let said = place.run(&["explain", text]).code(0).out;
        assert!(!said.contains("\n# "), "{text}: {said}");
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
            assert!(check_pages().iter().any(|page| page.code == code), "{}: no rule {code}", answer.title);
        }
    }
}
