//! An NCCL that lacks what torch asks of it.

use super::venv::{NCCL, Venv, assert_error, assert_quiet, module, nccl, the_problem};

const CODE: &str = "nccl-mismatch";

#[test]
fn fires() {
    let venv = Venv::with_torch();
    venv.put(NCCL, &nccl(22005));
    let said = [
        "NCCL 2.20.5 is loaded and lacks ncclGroupSimulateEnd, which torch/lib/libtorch_cuda.so needs",
        "`import torch` fails",
        "undefined symbol: ncclGroupSimulateEnd",
        "pip install --force-reinstall --no-deps nvidia-nccl-cu12==2.27.3",
    ];
    assert_error(the_problem(&venv.check(), CODE), NCCL, &said);
}

/// An older release that has all that is asked.
#[test]
fn stays_quiet() {
    let venv = Venv::with_torch();
    venv.put(NCCL, &nccl(22005).defines(&["ncclGroupSimulateEnd"]));
    assert_quiet(&venv.check(), CODE);
}

/// A package without torch, in which nothing but the extension that fails loads NCCL.
#[test]
fn fires_without_torch() {
    let venv = Venv::empty();
    let extension = module("_C").needed(&["libnccl.so.2"]).asks(&["ncclGroupSimulateEnd"]);
    let extension = extension.rpath("$ORIGIN/../nvidia/nccl/lib");
    venv.install("ext", "1.0", &["nvidia-nccl-cu12>=2.22"], &[("ext/_C.abi3.so", extension)]);
    venv.install("nvidia-nccl-cu12", "2.20.5", &[], &[(NCCL, nccl(22005))]);
    let said = ["NCCL 2.20.5 is loaded and lacks ncclGroupSimulateEnd", "pip install 'nvidia-nccl-cu12>=2.22'"];
    assert_error(the_problem(&venv.check(), CODE), NCCL, &said);
}
