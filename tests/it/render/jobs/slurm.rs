//! Jobs of Slurm, read by bash.

use gpulock::diag::Class;
use gpulock::lock::Code;
use gpulock::render::Options;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{format, lock, odd_lines, refused, run, with};

fn text(options: Options) -> String {
    with(format("slurm"), &lock(), options).unwrap()
}

/// What runs before any node is looked at, and then prints words that end in NUL.
fn words(text: &str, print: &str) -> Vec<String> {
    let (head, _) = text.split_once("\n# Runs on every node").unwrap();
    let printed = run("bash", &["-s"], &format!("{head}\nprintf '%s\\0' {print}\n"));
    printed.split_terminator('\0').map(str::to_owned).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_value_changes_the_structure(values in vec(odd_lines(), 2), name in odd_lines(), gpu in odd_lines()) {
        let mut lock = lock();
        lock.targets[0].env = ["A", "B"].map(str::to_owned).into_iter().zip(values.clone()).collect();
        lock.targets[0].name = format!("x{name}");
        lock.targets[0].gpus[0].name = gpu;
        let options = Options { command: vec!["python".into(), values[0].clone()], ..Options::default() };
        let text = with(format("slurm"), &lock, options).map_err(|failure| TestCaseError::fail(failure.to_string()))?;
        let expected = [values[0].clone(), values[1].clone(), "python".into(), values[0].clone()];
        prop_assert_eq!(words(&text, "\"$A\" \"$B\" \"$@\""), expected);
        // Slurm reads its options from the comments before the first command.
        let comments = text.split("\nset -euo").next().unwrap();
        let options: Vec<&str> = comments.lines().filter(|line| line.starts_with("#SBATCH")).collect();
        prop_assert_eq!(options.len(), 2);
        prop_assert!(comments.lines().all(|line| line.starts_with('#')), "{}", comments);
    }
}

#[test]
fn options_become_those_of_slurm() {
    let plain = text(Options::default());
    assert!(plain.starts_with("#!/bin/bash\n# Written by `gpulock export slurm`"), "{plain}");
    assert!(plain.contains("\n#SBATCH --job-name=cluster\n#SBATCH --gpus-per-node=1\nset -euo pipefail\n"), "{plain}");
    assert!(plain.ends_with("\nsrun \"$@\"\n") && plain.contains("local least='525.60.13' gpus='12.0'"), "{plain}");
    let shaped = text(Options {
        gpus: std::num::NonZeroU32::new(4),
        constraint: Some("a100&[rack1|rack2]".into()),
        command: vec!["python".into(), "train.py".into()],
        ..Options::default()
    });
    assert!(shaped.contains("\n#SBATCH --gpus-per-node=4\n#SBATCH --constraint=a100&[rack1|rack2]\n"), "{shaped}");
    assert!(shaped.contains("set -- 'python' 'train.py'\n"), "{shaped}");
}

#[test]
fn tasks_have_the_cpus_of_the_job() {
    let text = text(Options { command: vec!["true".into()], ..Options::default() });
    let (head, _) = text.split_once("\n# Runs on every node").unwrap();
    for (set, cpus) in [("SLURM_CPUS_PER_TASK=7", "7\n"), ("unset SLURM_CPUS_PER_TASK", "\n")] {
        let script = format!("{set}\n{head}\nbash -c 'echo \"${{SRUN_CPUS_PER_TASK:-}}\"'\n");
        assert_eq!(run("bash", &["-s"], &script), cpus);
    }
}

#[test]
fn the_container_is_that_of_pyxis_or_of_apptainer() {
    for (image, line) in [
        ("/shared/train.sif", "srun apptainer exec --nv '/shared/train.sif' \"$@\"\n"),
        ("/shared/train.sqsh", "srun --container-image='/shared/train.sqsh' \"$@\"\n"),
        ("ghcr.io/team/train:1", "srun --container-image='ghcr.io#team/train:1' \"$@\"\n"),
        ("localhost:5000/train:1", "srun --container-image='localhost:5000#train:1' \"$@\"\n"),
        ("team/train:1", "srun --container-image='team/train:1' \"$@\"\n"),
    ] {
        let text = text(Options { image: Some(image.into()), ..Options::default() });
        assert!(text.ends_with(line), "{image}: {text}");
    }
}

#[test]
fn what_cannot_be_written_is_refused() {
    let with_options = |options| with(format("slurm"), &lock(), options);
    let digest = Options { image: Some(format!("a/b@sha256:{}", "7".repeat(64))), ..Options::default() };
    refused(with_options(digest), Class::Unanswerable, "template-invalid", "pyxis takes no digest");
    for odd in ["a b", "a\n#SBATCH -x", "a\"", "#", ""] {
        let odd = Options { constraint: Some(odd.into()), ..Options::default() };
        refused(with_options(odd), Class::Unanswerable, "template-invalid", "is not the list of features of nodes");
    }
    for name in ["UID", "EUID", "PPID", "BASHOPTS", "SHELLOPTS", "BASH_VERSINFO"] {
        // What bash says of itself.
        run("bash", &["-s"], &format!("declare -p {name} | grep -q '^declare -[a-z]*r'"));
        let mut lock = lock();
        lock.targets[0].env.insert(name.into(), "5".into());
        let failure = with(format("slurm"), &lock, Options::default());
        refused(failure, Class::No, "env-value", &format!("slurm cannot hold {name} of [env]: bash has it"));
    }
}

/// The check of a node, with an nvidia-smi that prints this: what it says, and whether it lets the job run.
fn node(lock: &gpulock::lock::Lock, driver: Option<&str>, capabilities: Option<&str>) -> (bool, String) {
    let text = with(format("slurm"), lock, Options::default()).unwrap();
    let (_, rest) = text.split_once("\n# Runs on every node").unwrap();
    let (function, _) = rest.split_once("\nsrun ").unwrap();
    let answer = |value: Option<&str>| value.map_or("return 9".into(), |value| format!("printf '%s\\n' '{value}'"));
    let script = format!(
        "nvidia-smi() {{ case \"$*\" in *driver_version*) {} ;; *compute_cap*) {} ;; esac; }}\n\
         #{function}\ncheck_node 2>&1 && echo let\n:\n",
        answer(driver),
        answer(capabilities),
    );
    let said = run("bash", &["-s"], &script);
    (said.ends_with("let\n"), said)
}

#[test]
fn a_node_needs_the_driver_and_a_gpu() {
    let lock = lock();
    for (driver, capabilities, runs, words) in [
        (Some("525.60.13"), Some("12.0"), true, ""),
        (Some("570.124.06"), Some("7.5\n12.0"), true, ""),
        (Some("1000.1"), None, true, "GPUs are not checked"),
        (Some("525.60.2"), Some("12.0"), false, "driver 525.60.2, and the lock needs 525.60.13 or later"),
        (Some("470.256.02"), Some("12.0"), false, "driver 470.256.02"),
        (None, Some("12.0"), false, "driver none"),
        (Some("570.1"), Some("8.0\n9.0"), false, "compute capability 8.0, 9.0, and the lock is for 12.0"),
        (Some("570.1"), Some("2.0"), false, "compute capability 2.0"),
    ] {
        let (let_run, said) = node(&lock, driver, capabilities);
        assert!(let_run == runs && said.contains(words), "{driver:?} {capabilities:?}: {said}");
    }
    // The driver compiles PTX only as new as itself.
    let mut ptx = lock.clone();
    ptx.targets[0].gpus[0].code = Code::Ptx;
    assert!(!node(&ptx, Some("570.1"), Some("12.0")).0);
    assert!(node(&ptx, Some("570.26"), Some("12.0")).0);
    let mut unknown = lock.clone();
    unknown.targets[0].driver = gpulock::lock::DriverSupport::default();
    assert!(node(&unknown, Some("450.1"), Some("12.0")).0);
    let (let_run, said) = node(&unknown, None, Some("12.0"));
    assert!(!let_run && said.contains("driver none, and the lock needs one\n"), "{said}");
}
