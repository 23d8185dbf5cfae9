//! The program itself, run in a folder of its own with nothing from this machine's environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gpulock::matrix::Matrix;
use serde_json::Value;

/// A manifest that has an answer.
pub const GOOD: &str =
    "[stack]\ntorch = \"2.8.0\"\npython = \"3.11\"\n\n[target.a]\ngpus = [\"A100\"]\ndriver = \"580\"\n";

/// A folder for one test: `work`, where the program runs, beside a cache and a home that are empty.
pub struct Place {
    root: tempfile::TempDir,
}

/// What a run gave.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Place {
    pub fn empty() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["work", "home"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        Self { root }
    }

    pub fn with(manifest: &str) -> Self {
        let place = Self::empty();
        place.put("gpulock.toml", manifest);
        place
    }

    /// A good manifest with its lock.
    pub fn locked() -> Self {
        let place = Self::with(GOOD);
        place.run(&["resolve", "--offline", "-q"]).code(0);
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join("work").join(name)
    }

    pub fn cache(&self) -> PathBuf {
        self.root.path().join("cache")
    }

    pub fn put(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).unwrap();
    }

    pub fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn lock(&self) -> String {
        self.text("gpulock.lock")
    }

    /// Everything in the folder: names, and what the files hold.
    pub fn all(&self) -> Vec<(String, Vec<u8>)> {
        fn read(folder: &Path, below: &str, all: &mut Vec<(String, Vec<u8>)>) {
            for entry in fs::read_dir(folder).unwrap() {
                let entry = entry.unwrap();
                let name = format!("{below}{}", entry.file_name().to_str().unwrap());
                if entry.path().is_dir() {
                    all.push((format!("{name}/"), Vec::new()));
                    read(&entry.path(), &format!("{name}/"), all);
                } else {
                    all.push((name, fs::read(entry.path()).unwrap()));
                }
            }
        }
        let mut all = Vec::new();
        read(&self.path(""), "", &mut all);
        all.sort();
        all
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_gpulock"));
        command.args(arguments);
        command
    }

    /// The same with every index of the matrix at `url`.
    pub fn mirrored(&self, url: &str, arguments: &[&str]) -> Command {
        let matrix = Matrix::embedded();
        let indexes = &matrix.index().unwrap().indexes;
        let mirrors: Vec<String> = indexes.iter().map(|index| format!("{0}={url}/{0}/simple", index.name)).collect();
        let mut command = self.command(arguments);
        command.env("GPULOCK_MIRROR", mirrors.join(" ")).env("GPULOCK_HTTP_TIMEOUT", "0.5");
        command
    }

    /// A line of shell.
    pub fn shell(&self, line: &str) -> Command {
        let mut command = self.program("/bin/sh");
        command.args(["-c", line]);
        command
    }

    fn program(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path(""))
            .env_clear()
            .env("HOME", self.root.path().join("home"))
            .env("GPULOCK_CACHE_DIR", self.cache());
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    /// Runs what must fail with this exit code and leave the folder as it is.
    pub fn refuses(&self, arguments: &[&str], code: i32) -> Ran {
        let before = self.all();
        let ran = self.run(arguments).code(code);
        assert_eq!(ran.out, "", "data goes to standard output, and there is none");
        assert!(self.all() == before, "{arguments:?} changed {:?}", self.names());
        ran
    }

    pub fn names(&self) -> Vec<String> {
        self.all().into_iter().map(|(name, _)| name).collect()
    }
}

impl Ran {
    pub fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Checks the exit code; whatever it is, nothing may have panicked.
    pub fn code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert!(!self.err.contains("panicked"), "{self:?}");
        self
    }

    /// Checks that standard error has all these words, whatever its line breaks.
    pub fn says(self, words: &[&str]) -> Self {
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let said = flat(&self.err);
        words.iter().for_each(|word| assert!(said.contains(&flat(word)), "`{word}` is not in\n{}", self.err));
        self
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}
