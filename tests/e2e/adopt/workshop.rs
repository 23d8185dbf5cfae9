//! Tools, a copy of this repository as it stands, and a repository that adopts it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::run::{self, folder, python, stdout, succeed};

const MANIFEST: &str =
    "[stack]\ntorch = \"2.8.0\"\npython = \"3.11\"\n\n[target.a]\ngpus = [\"A100\"]\ndriver = \"580\"\n";

/// pre-commit and the schemas, a copy of this repository as it stands, and a repository that adopts it.
pub struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
    pub fn open() -> Self {
        let workshop = Self { folder: folder() };
        succeed(Command::new("python3").args(["-m", "venv"]).arg(workshop.at("tools")));
        let mut pip = python(&workshop.at("tools/bin/python"));
        succeed(pip.args(["-m", "pip", "install", "--quiet", "pre-commit", "check-jsonschema"]));
        fs::create_dir(workshop.at("source")).unwrap();
        let copy = format!(
            "git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -T - -c | tar -x -C '{}'",
            workshop.at("source").display()
        );
        succeed(Command::new("sh").args(["-c", &copy]).current_dir(env!("CARGO_MANIFEST_DIR")));
        workshop.commit("source");
        fs::create_dir(workshop.at("repo")).unwrap();
        workshop.put("gpulock.toml", MANIFEST);
        workshop.gpulock(&["resolve", "--offline", "-q"]);
        workshop.gpulock(&["export", "requirements", "-o", "requirements.txt"]);
        workshop.gpulock(&["dockerfile", "-qq", "-o", "Dockerfile"]);
        workshop.commit("repo");
        workshop
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn put(&self, name: &str, text: &str) {
        fs::write(self.at("repo").join(name), text).unwrap();
    }

    pub fn edit(&self, name: &str, from: &str, to: &str) {
        let text = fs::read_to_string(self.at("repo").join(name)).unwrap();
        assert!(text.contains(from), "{name} has no {from}");
        self.put(name, &text.replacen(from, to, 1));
    }

    fn gpulock(&self, arguments: &[&str]) {
        succeed(run::gpulock(&self.at("repo"), &self.at("cache")).args(arguments));
    }

    /// Everything in a folder becomes a commit.
    pub fn commit(&self, name: &str) {
        succeed(self.git(name).args(["init", "--quiet"]));
        succeed(self.git(name).args(["add", "--all"]));
        succeed(self.git(name).args(["commit", "--quiet", "--no-verify", "--allow-empty", "-m", "all"]));
    }

    pub fn git(&self, name: &str) -> Command {
        let mut git = Command::new("git");
        git.current_dir(self.at(name));
        git.args(["-c", "user.name=a", "-c", "user.email=a@example.invalid"]);
        self.surroundings(&mut git);
        git
    }

    /// The gpulock that is tested first on PATH, pre-commit's own cache, and a build that takes a minute instead of ten.
    pub fn surroundings(&self, command: &mut Command) {
        let program = run::program();
        let binary = program.parent().unwrap();
        let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        command.env("PATH", path).env("PRE_COMMIT_HOME", self.at("hooks")).env("GPULOCK_CACHE_DIR", self.at("cache"));
        command.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("install"));
        for (key, value) in [("LTO", "off"), ("OPT_LEVEL", "0"), ("CODEGEN_UNITS", "16"), ("STRIP", "none")] {
            command.env(format!("CARGO_PROFILE_RELEASE_{key}"), value);
        }
    }

    /// The repository takes these hooks, and its git runs them before each commit.
    pub fn adopt(&self, hooks: &str) {
        let source = self.at("source");
        let head = stdout(self.git("source").args(["rev-parse", "HEAD"]));
        let config = format!("repos:\n  - repo: {}\n    rev: {head}\n    hooks:\n{hooks}", source.display());
        self.put(".pre-commit-config.yaml", &config);
        self.commit("repo");
        succeed(self.pre_commit().args(["validate-config", ".pre-commit-config.yaml"]));
        succeed(self.pre_commit().args(["install", "--overwrite"]));
    }

    pub fn pre_commit(&self) -> Command {
        let mut program = Command::new(self.at("tools/bin/pre-commit"));
        program.current_dir(self.at("repo"));
        self.surroundings(&mut program);
        program
    }

    /// Commits all that changed: whether the hooks let it, and what they print.
    pub fn try_commit(&self) -> (bool, String) {
        succeed(self.git("repo").args(["add", "--all"]));
        let output = self.git("repo").args(["commit", "--quiet", "-m", "change"]).output().unwrap();
        (output.status.success(), said(&output))
    }
}

pub fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
