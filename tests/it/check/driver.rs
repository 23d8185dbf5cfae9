//! Drivers that are too old or too new, or that run a newer CUDA by its rules for compatibility.

use gpulock::check::Findings;
use gpulock::diag::Severity;

use super::venv::{CUDART, Question, Venv, assert_error, assert_finding, assert_quiet, the_finding, the_problem};

fn on(gpu: &str, driver: &str, forward: bool) -> Findings {
    Venv::with_torch().ask(&Question { gpus: &[gpu], driver: Some(driver), forward, ..Question::default() })
}

mod too_old {
    use super::*;

    const CODE: &str = "driver-too-old";

    #[test]
    fn fires() {
        let findings = on("A100", "470.82.01", false);
        let said = [
            "driver 470.82.01 is too old for CUDA 12.8",
            "CUDA driver version is insufficient",
            "525.60.13",
            "CUDA runtime 12.8",
        ];
        assert_error(the_problem(&findings, CODE), CUDART, &said);
    }

    #[test]
    fn fires_for_a_gpu_that_the_driver_does_not_know() {
        let findings = on("RTX 5090", "560.35.05", false);
        let said = ["driver 560.35.05 does not know RTX 5090", "install driver 570"];
        assert_error(the_problem(&findings, CODE), "", &said);
    }

    #[test]
    fn stays_quiet() {
        assert_quiet(&on("A100", "525.60.13", false), CODE);
        // cuda-compat lets an older branch run it, on data-centre GPUs.
        assert_quiet(&on("A100", "535.54.03", true), CODE);
    }
}

mod too_new {
    use super::*;

    const CODE: &str = "driver-too-new";

    #[test]
    fn fires() {
        let findings = on("sm_61", "590.44.01", false);
        let said =
            ["driver 590.44.01 no longer supports", "R580 is the last driver branch", "stay on driver branch 580"];
        assert_error(the_problem(&findings, CODE), "", &said);
    }

    #[test]
    fn stays_quiet() {
        assert_quiet(&on("sm_61", "580.65.06", false), CODE);
        assert_quiet(&on("A100", "590.44.01", false), CODE);
    }
}

mod minor_version {
    use super::*;

    const CODE: &str = "driver-minor-version";

    #[test]
    fn fires() {
        let findings = on("A100", "550.54.15", false);
        let said = ["driver 550.54.15 runs CUDA 12.8", "PTX of this CUDA cannot be compiled", "driver 570"];
        assert_finding(the_finding(&findings, CODE), Severity::Note, CUDART, &said);
    }

    #[test]
    fn stays_quiet() {
        assert_quiet(&on("A100", "570.26", false), CODE);
    }
}
