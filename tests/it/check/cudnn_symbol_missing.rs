//! Parts of cuDNN that tell one release and do not fit together.

use super::venv::{Venv, assert_error, assert_quiet, cudnn, the_problem};

const CODE: &str = "cudnn-symbol-missing";
const SYMBOL: &str = "_ZN5cudnn5graph5setUpEv";

fn with_ops_that_ask_graph(defined: &[&str]) -> Venv {
    let venv = Venv::with_torch();
    let (path, ops) = cudnn("ops", [9, 10, 2]);
    venv.put(&path, &ops.needed(&["libcudnn_graph.so.9"]).asks(&[SYMBOL]));
    let (path, graph) = cudnn("graph", [9, 10, 2]);
    venv.put(&path, &graph.defines(defined));
    venv
}

#[test]
fn fires() {
    let said = [SYMBOL, "are not of one cuDNN release", "nvidia-cudnn-cu12==9.10.2.21"];
    let findings = with_ops_that_ask_graph(&[]).check();
    assert_error(the_problem(&findings, CODE), "nvidia/cudnn/lib/libcudnn_ops.so.9", &said);
}

#[test]
fn stays_quiet() {
    assert_quiet(&with_ops_that_ask_graph(&[SYMBOL]).check(), CODE);
}
