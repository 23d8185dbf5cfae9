//! An environment of real wheels, and what `gpulock verify` says of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::run::{gpulock, succeed, uv};

/// A virtual environment with packages from the index, gone when dropped.
pub struct Environment {
    folder: tempfile::TempDir,
}

impl Environment {
    /// Installs requirements with uv, for the Python that is named. `None` without uv.
    pub fn install(python: &str, requirements: &[String]) -> Option<Self> {
        let folder = crate::run::folder();
        let path = folder.path().join("venv");
        succeed(uv()?.args(["venv", "--quiet", "--python", python]).arg(&path));
        // Nothing is kept: these are gigabytes, and each release is installed once.
        let mut install = uv()?;
        install.args(["pip", "install", "--quiet", "--no-cache", "--python"]).arg(path.join("bin/python"));
        succeed(install.args(requirements));
        Some(Self { folder })
    }

    /// The environment's folder.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("venv")
    }

    /// What verify says for one GPU and driver, as JSON, and its exit code.
    pub fn verify(&self, gpu: &str, driver: &str) -> (Value, Option<i32>) {
        report(
            gpulock(self.folder.path(), &self.folder.path().join("cache")),
            &self.path(),
            &["--gpu", gpu, "--driver", driver],
        )
    }
}

/// Runs verify on a path.
pub fn report(mut gpulock: Command, path: &Path, arguments: &[&str]) -> (Value, Option<i32>) {
    let output = gpulock.arg("verify").arg(path).args(["--format", "json"]).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let report = serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)));
    (report, output.status.code())
}

/// Findings of a severity, one a line.
pub fn findings(report: &Value, severities: &[&str]) -> Vec<String> {
    let findings = report["findings"].as_array().into_iter().flatten();
    let wanted = findings.filter(|one| severities.contains(&one["severity"].as_str().unwrap_or_default()));
    wanted
        .map(|one| {
            format!("{} {}", one["code"].as_str().unwrap_or_default(), one["message"].as_str().unwrap_or_default())
        })
        .collect()
}
