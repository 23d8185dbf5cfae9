//! Variables of the job that the installed releases do not read.

use gpulock::diag::Severity;

use super::venv::{NCCL, Venv, assert_finding, assert_quiet, nccl, the_problem};

/// An NCCL that has these names as text.
fn job_with(name: &str, texts: &[u8]) -> Venv {
    let mut venv = Venv::with_torch();
    let library = nccl(22703).defines(&["ncclGroupSimulateEnd"]).section(".rodata", texts.to_vec());
    venv.put(NCCL, &library);
    venv.set(name, "1");
    venv
}

mod renamed {
    use super::*;

    const CODE: &str = "env-variable-renamed";

    #[test]
    fn fires() {
        let findings = job_with("PYTORCH_ALLOC_CONF", b"").check();
        let said = ["torch 2.8.0 does not read it yet", "set PYTORCH_CUDA_ALLOC_CONF instead"];
        assert_finding(the_problem(&findings, CODE), Severity::Warning, "PYTORCH_ALLOC_CONF", &said);
    }

    #[test]
    fn stays_quiet() {
        assert_quiet(&job_with("PYTORCH_CUDA_ALLOC_CONF", b"").check(), CODE);
    }
}

mod unknown {
    use super::*;

    const CODE: &str = "env-variable-unknown";

    #[test]
    fn fires() {
        let findings = job_with("NCCL_NEWER_KNOB", b"\0NCCL_OTHER_KNOB\0").check();
        assert_finding(the_problem(&findings, CODE), Severity::Warning, "NCCL_NEWER_KNOB", &["NCCL_NEWER_KNOB"]);
    }

    /// No list has the name, and NCCL itself does.
    #[test]
    fn stays_quiet() {
        assert_quiet(&job_with("NCCL_NEWER_KNOB", b"\0NCCL_NEWER_KNOB\0").check(), CODE);
    }
}
