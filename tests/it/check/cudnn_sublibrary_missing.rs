//! Parts of cuDNN that are not there.

use super::venv::{Venv, assert_error, assert_quiet, the_problem, words};

const CODE: &str = "cudnn-sublibrary-missing";
const ENGINES: &str = "nvidia/cudnn/lib/libcudnn_engines_precompiled.so.9";

#[test]
fn fires() {
    let venv = Venv::with_torch();
    venv.remove(ENGINES);
    let said = [
        "libcudnn_engines_precompiled.so.9 is missing",
        "`import torch` may succeed",
        "the first convolution or attention on a GPU",
        "looked for in",
        "pip install --force-reinstall --no-deps nvidia-cudnn-cu12==9.10.2.21",
    ];
    let findings = venv.check();
    let finding = the_problem(&findings, CODE);
    assert_error(finding, "nvidia/cudnn/lib/libcudnn_graph.so.9", &said);
    // Four names are tried in it; it is said once.
    assert_eq!(words(finding).matches("DT_RUNPATH of nvidia/cudnn/lib/libcudnn_graph.so.9").count(), 1, "{finding:#?}");
}

/// JAX opens NVIDIA's libraries by their paths, without torch.
#[test]
fn fires_for_jax() {
    let venv = Venv::empty();
    venv.install_cudnn([9, 10, 2]);
    venv.install("jax-cuda12-pjrt", "0.6.2", &[], &[]);
    assert_quiet(&venv.check(), CODE);
    venv.remove(ENGINES);
    let said = ["libcudnn_engines_precompiled.so.9 is missing: an import may succeed"];
    assert_error(the_problem(&venv.check(), CODE), "nvidia/cudnn/lib/libcudnn_graph.so.9", &said);
}

#[test]
fn names_a_link_that_leads_to_nothing() {
    let venv = Venv::with_torch();
    venv.link(ENGINES, "/gone/libcudnn_engines_precompiled.so.9");
    let said = [format!("{ENGINES} is a link to /gone/libcudnn_engines_precompiled.so.9, which is not there")];
    assert_error(the_problem(&venv.check(), CODE), "nvidia/cudnn/lib/libcudnn_graph.so.9", &[&said[0]]);
}

/// The first of the names that cuDNN tries is the one with its own version.
#[test]
fn stays_quiet() {
    let venv = Venv::with_torch();
    venv.rename(ENGINES, "nvidia/cudnn/lib/libcudnn_engines_precompiled.so.9.10.2");
    assert_quiet(&venv.check(), CODE);
}
