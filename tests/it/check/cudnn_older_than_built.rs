//! A cuDNN that is older than torch was compiled for.

use super::venv::{Venv, assert_error, assert_quiet, the_problem};

const CODE: &str = "cudnn-older-than-built";

#[test]
fn fires() {
    let venv = Venv::with_torch();
    venv.install_cudnn([9, 8, 0]);
    let said = [
        "cuDNN 9.8.0 is loaded and torch was compiled against 9.10.2",
        "build option CUDNN_VERSION",
        "pip install 'nvidia-cudnn-cu12>=9.10'",
    ];
    assert_error(the_problem(&venv.check(), CODE), "nvidia/cudnn/lib/libcudnn_graph.so.9", &said);
}

/// Patch releases of one minor serve each other, and a later minor serves an earlier one.
#[test]
fn stays_quiet() {
    let venv = Venv::with_torch();
    for version in [[9, 10, 1], [9, 12, 0]] {
        venv.install_cudnn(version);
        assert_quiet(&venv.check(), CODE);
    }
}
