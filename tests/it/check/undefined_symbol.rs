//! Symbols that nothing defines, and no rule knows why.

use gpulock::diag::Severity;

use super::venv::{
    CUDART, Venv, assert_error, assert_finding, assert_quiet, cudart, module, the_finding, the_problem, torch_cpu,
};

const CODE: &str = "undefined-symbol";

fn with_extension_that_asks(symbols: &[&str]) -> Venv {
    let venv = Venv::with_torch();
    venv.install("ext", "1.0", &["torch"], &[("ext/_C.abi3.so", module("_C").needed(&["libc10.so"]).asks(symbols))]);
    venv
}

#[test]
fn fires() {
    let findings = with_extension_that_asks(&["blend_rows", "blend_columns"]).check();
    let said = ["nothing defines blend_", "and 1 more", "blend_rows", "blend_columns", "`import ext", "ext 1.0"];
    assert_error(the_problem(&findings, CODE), "ext/_C.abi3.so", &said);
}

/// The version of the symbol names a library, and that says which release it is.
#[test]
fn names_the_release_that_lacks_it() {
    let venv = Venv::with_torch();
    let asks = ["cudaGraphFuture@libcudart.so.12/libcudart.so.12"];
    let extension = module("_C").needed(&["libcudart.so.12"]).asks(&asks);
    venv.install("ext", "1.0", &["torch", "nvidia-cuda-runtime-cu12>=12.9"], &[("ext/_C.abi3.so", extension)]);
    venv.put(CUDART, &cudart("libcudart.so.12", 12080).defines(&["cudaMalloc@@libcudart.so.12"]));
    let said = [
        "cudart 12.8 is loaded and lacks cudaGraphFuture, which ext/_C.abi3.so needs",
        "pip install 'nvidia-cuda-runtime-cu12>=12.9'",
    ];
    assert_error(the_problem(&venv.check(), CODE), "ext/_C.abi3.so", &said);
}

/// A weak symbol may be missing.
#[test]
fn stays_quiet() {
    assert_quiet(&with_extension_that_asks(&["blend_rows?"]).check(), CODE);
}

/// A module for torch of a package that does without it, where there is no torch; not where the package requires it.
#[test]
fn a_module_for_an_absent_package_is_a_note() {
    let with = |requires: &[&str]| {
        let venv = Venv::empty();
        let bridge = module("_bridge").asks(&["aoti_torch_dtype_float32"]);
        venv.install("ext", "1.0", requires, &[("ext/_bridge.abi3.so", bridge)]);
        venv.check()
    };
    for requires in [&[][..], &["torch; extra == \"all\""]] {
        let said =
            ["ext/_bridge.abi3.so is for processes with torch, which is not installed: `import ext._bridge` fails"];
        let findings = with(requires);
        assert_finding(the_finding(&findings, CODE), Severity::Note, "ext/_bridge.abi3.so", &said);
    }
    assert_error(the_problem(&with(&["torch>=2"]), CODE), "ext/_bridge.abi3.so", &["nothing defines aoti_torch"]);
}

/// Symbols of a library that is opened for its own package alone: a module that asks it for nothing else counts on Python
/// code; one that is linked with another library of that package does not fit.
#[test]
fn what_a_hidden_library_defines_is_a_note() {
    let with = |needed: &[&str]| {
        let venv = Venv::with_torch();
        venv.put("torch/lib/libtorch_cpu.so", &torch_cpu().needed(&["libcudnn.so.9"]).defines(&["aoti_torch_grad"]));
        let bridge = module("_bridge").needed(needed).asks(&["aoti_torch_grad"]);
        venv.install("ext", "1.0", &["torch"], &[("ext/_bridge.abi3.so", bridge)]);
        venv.check()
    };
    let said = ["is in torch/lib/libtorch_cpu.so", "RTLD_GLOBAL first"];
    assert_finding(the_finding(&with(&[]), CODE), Severity::Note, "ext/_bridge.abi3.so", &said);
    assert_error(the_problem(&with(&["libc10.so"]), CODE), "ext/_bridge.abi3.so", &["nothing defines aoti_torch_grad"]);
}
