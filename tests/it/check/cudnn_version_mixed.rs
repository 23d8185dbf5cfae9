//! Parts of cuDNN of different releases.

use super::venv::{Venv, assert_error, assert_quiet, cudnn, the_problem, words};

const CODE: &str = "cudnn-version-mixed";

#[test]
fn fires() {
    let venv = Venv::with_torch();
    let (path, ops) = cudnn("ops", [9, 8, 0]);
    venv.put(&path, &ops);
    let findings = venv.check();
    let said = ["libcudnn_ops.so.9 is 9.8.0", "9.10.2", "(1002)", "nvidia-cudnn-cu12==9.10.2.21"];
    assert_error(the_problem(&findings, CODE), "nvidia/cudnn/lib/libcudnn_ops.so.9", &said);
}

#[test]
fn fires_where_a_part_says_its_version_only_in_a_text() {
    let venv = Venv::with_torch();
    let (path, engines) = cudnn("engines_precompiled", [9, 8, 0]);
    venv.put(&path, &engines);
    let said = ["libcudnn_engines_precompiled.so.9 is 9.8.0", "(9 * 10000 + 8 * 100 + 0)"];
    assert_error(the_problem(&venv.check(), CODE), &path, &said);
}

/// The other release's parts need a symbol of it: the loader's complaint is this rule's evidence, not one of its own.
#[test]
fn explains_what_the_loader_says() {
    let venv = Venv::with_torch();
    let (path, cnn) = cudnn("cnn", [9, 8, 0]);
    venv.put(&path, &cnn.needed(&["libcudnn_graph.so.9"]).asks(&["_ZN5cudnn5graph4goneEv"]));
    let said = ["libcudnn_cnn.so.9 is 9.8.0", "undefined symbol: _ZN5cudnn5graph4goneEv", "cannot be loaded"];
    assert_error(the_problem(&venv.check(), CODE), &path, &said);
}

/// The file that programs are linked with only forwards, to parts of any release.
/// What parts of two releases lack of each other is a list that nobody reads to its end.
#[test]
fn says_the_first_symbols() {
    let venv = Venv::with_torch();
    let (path, cnn) = cudnn("cnn", [9, 11, 0]);
    let gone: Vec<String> = (0..40).map(|at| format!("_ZN5cudnn4goneEv{at}")).collect();
    let gone: Vec<&str> = gone.iter().map(String::as_str).collect();
    venv.put(&path, &cnn.needed(&["libcudnn_graph.so.9"]).asks(&gone));
    let findings = venv.check();
    assert_eq!(words(the_problem(&findings, CODE)).matches("undefined symbol").count(), 11);
}

#[test]
fn stays_quiet() {
    let venv = Venv::with_torch();
    let (path, shim) = cudnn("", [9, 8, 0]);
    venv.put(&path, &shim);
    assert_quiet(&venv.check(), CODE);
}
