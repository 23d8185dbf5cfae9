//! The guard, run by Python with a torch that only says what it is.

use std::fs;
use std::path::Path;
use std::process::Command;

use gpulock::render::Options;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{format, lock, odd_lines, run, with};

/// A torch that has these versions and nothing else; cuDNN by its own number.
fn torch(version: &str, cuda: &str, cudnn: &str, nccl: &str, flags: &str) -> String {
    format!(
        "from types import SimpleNamespace as N\n__version__ = '{version}'\nversion = N(cuda={cuda})\n\
         def cudnn_version():\n    {cudnn}\nbackends = N(cudnn=N(version=cudnn_version))\n\
         cuda = N(nccl=N(version=lambda: {nccl}))\n_C = N(_cuda_getArchFlags=lambda: {flags})\n"
    )
}

fn right() -> String {
    torch("2.8.0+cu128", "'12.8'", "return 91002", "(2, 27, 3)", "'sm_90 sm_120'")
}

/// A folder with the guard of the sample's lock, for the Python that runs it, and a torch.
struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    fn new(torch: Option<&str>) -> Option<Self> {
        let output = Command::new("python3").args(["-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).output();
        let python = String::from_utf8(output.ok()?.stdout).unwrap();
        let mut lock = lock();
        lock.targets[0].python = python.trim().parse().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let text = with(format("guard"), &lock, Options::default()).unwrap();
        fs::write(folder.path().join("gpulock_guard.py"), text).unwrap();
        if let Some(torch) = torch {
            fs::write(folder.path().join("torch.py"), torch).unwrap();
        }
        Some(Self { folder })
    }

    /// What the guard says as a program, with its exit status.
    fn says(&self, demand: &str) -> (Option<i32>, String) {
        let output = self.python().args(["-m", "gpulock_guard"]).env("GPULOCK_GUARD", demand).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap())
    }

    /// What Python code prints that has the guard as `guard`.
    fn prints(&self, code: &str) -> String {
        let code = format!("import gpulock_guard as guard\n{code}");
        let output = self.python().args(["-c", &code]).env("GPULOCK_GUARD", "off").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn python(&self) -> Command {
        let mut python = Command::new("python3");
        python.current_dir(self.folder.path()).env("PYTHONDONTWRITEBYTECODE", "1").env_remove("LD_LIBRARY_PATH");
        python.env_remove("CUDA_VISIBLE_DEVICES");
        python
    }
}

#[test]
fn software_that_is_the_locks_passes_and_all_else_is_named() {
    let cases = [
        (right(), &[][..]),
        // A build without a label.
        (torch("2.8.0", "'12.8'", "return 91002", "(2, 27, 3)", "'sm_120'"), &[]),
        // A build without NCCL, and one that does not tell its code.
        (torch("2.8.0+cu128", "'12.8'", "return 91002", "None", "None"), &[]),
        (
            torch("2.8.1+cu128", "'12.8'", "return 91002", "(2, 27, 3)", "'sm_120'"),
            &["torch: the lock has 2.8.0+cu128, here is 2.8.1+cu128"],
        ),
        (
            torch("2.8.0+cu129", "'12.9'", "return 91002", "(2, 27, 3)", "'sm_120'"),
            &["torch: ", "CUDA of torch: the lock has 12.8, here is 12.9"],
        ),
        (
            torch("2.8.0+cu128", "'12.8'", "return 8902", "(2, 27, 3)", "'sm_120'"),
            &["cuDNN: the lock has 9.10.2.21, here is 8.9.2"],
        ),
        (
            torch("2.8.0+cu128", "'12.8'", "return 91100", "(2, 27, 3)", "'sm_120'"),
            &["cuDNN: the lock has 9.10.2.21, here is 9.11.0"],
        ),
        (
            torch("2.8.0+cu128", "'12.8'", "return None", "(2, 27, 3)", "'sm_120'"),
            &["cuDNN: the lock has 9.10.2.21, here is none"],
        ),
        (
            torch("2.8.0+cu128", "'12.8'", "raise RuntimeError('incompatible')", "(2, 27, 3)", "'sm_120'"),
            &["one that torch refuses (incompatible)"],
        ),
        (
            torch("2.8.0+cu128", "'12.8'", "return 91002", "(2, 20, 5)", "'sm_120'"),
            &["NCCL: the lock has 2.27.3, here is 2.20.5"],
        ),
        (
            torch("2.8.0+cu128", "'12.8'", "return 91002", "(2, 27, 3)", "'sm_90 compute_120'"),
            &["GPU code of torch for RTX 5090: the lock has sm_120, here is sm_90 compute_120"],
        ),
        (
            torch("2.8.0+cpu", "None", "return None", "None", "None"),
            &["torch: ", "none: this torch is not built for CUDA"],
        ),
        (
            "raise OSError('libcudart.so.12: cannot open shared object file')".into(),
            &["none that can be imported (OSError: libcudart.so.12"],
        ),
    ];
    for (torch, words) in cases {
        let Some(stage) = Stage::new(Some(&torch)) else { return };
        let (code, said) = stage.says("software");
        let differs = said.matches("\n    in: ").count();
        assert_eq!((code, differs), (Some(i32::from(!words.is_empty())), words.len()), "{torch}{said}");
        assert!(words.iter().all(|word| said.contains(word)), "{words:?}: {said}");
        assert_eq!(said.contains("\nlock sha256:"), !words.is_empty(), "{said}");
    }
    let (code, said) = Stage::new(None).unwrap().says("software");
    assert!(code == Some(1) && said.contains("No module named 'torch'"), "{said}");
}

#[test]
fn half_a_torch_is_told_and_never_a_traceback() {
    let whole = right();
    let without = |part: &str| {
        whole.lines().filter(|line| !line.starts_with(part)).fold(String::new(), |all, line| all + line + "\n")
    };
    let odd = |cudnn: &str, nccl: &str, flags: &str| torch("2.8.0+cu128", "'12.8'", cudnn, nccl, flags);
    let cases = [
        (without("version ="), Some("none: this torch is not built for CUDA")),
        (without("backends ="), Some("cuDNN: the lock has 9.10.2.21, here is one that torch refuses")),
        (without("_C ="), None),
        (without("__version__ ="), Some("something named torch that has no version")),
        (odd("return '9.10.2'", "(2, 27, 3)", "'sm_120'"), None),
        (odd("return '9.1'", "(2, 27, 3)", "'sm_120'"), Some("here is 9.1")),
        (odd("raise OSError('gone')", "(2, 27, 3)", "'sm_120'"), Some("one that torch refuses (gone)")),
        (odd("return 91002", "1 / 0", "1 / 0"), None),
    ];
    let judge = |stage: &Stage, words: Option<&str>| {
        let (code, said) = stage.says("software");
        assert!(code == Some(i32::from(words.is_some())) && !said.contains("Traceback"), "{said}");
        assert!(words.is_none_or(|words| said.contains(words)), "{words:?}: {said}");
    };
    for (torch, words) in cases {
        let Some(stage) = Stage::new(Some(&torch)) else { return };
        judge(&stage, words);
    }
    // A folder of that name, such as a checkout that was not built.
    let stage = Stage::new(None).unwrap();
    fs::create_dir(stage.folder.path().join("torch")).unwrap();
    judge(&stage, Some("something named torch that has no version"));
}

#[test]
fn the_machine_is_looked_at_wherever_the_guard_is() {
    let Some(stage) = Stage::new(Some(&right())) else { return };
    let at = |name: &str| stage.folder.path().join(name);
    let looks = |from: &str, code: &str| {
        let mut python = stage.python();
        python.env("GPULOCK_GUARD", "off").env("PYTHONPATH", from);
        let output = python.args(["-c", code]).output().unwrap();
        let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success() && out.ends_with("['driver', 'error', 'gpus']\n"), "{out}{err}");
    };
    // Beside modules that are named as those of the standard library.
    fs::create_dir(at("package")).unwrap();
    fs::copy(at("gpulock_guard.py"), at("package/gpulock_guard.py")).unwrap();
    fs::write(at("package/json.py"), "raise ImportError('another json')").unwrap();
    looks("", "from package import gpulock_guard as guard\nprint(sorted(guard.probe()))");
    // In an archive.
    let code = "import zipfile\nzipfile.ZipFile('app.zip', 'w').write('gpulock_guard.py', 'zipped_guard.py')";
    assert!(stage.python().args(["-c", code]).status().unwrap().success());
    looks("app.zip", "import zipped_guard as guard\nprint(sorted(guard.probe()))");
    // Where what starts with Python prints.
    fs::create_dir(at("site")).unwrap();
    fs::write(at("site/sitecustomize.py"), "print('hello')\nimport atexit\natexit.register(print, 'bye', flush=True)")
        .unwrap();
    let code = "import gpulock_guard as guard, os\nprint(sorted(guard.probe()), flush=True)\nos._exit(0)";
    looks("site", code);
    // What cannot be looked at is one thing that differs.
    let code = "guard.sys.executable = '/none/python'\ntry:\n    guard.probe()\nexcept guard.GuardError as error:\n    print(error.mismatches[0].found[:7])";
    assert_eq!(stage.prints(code), "unknown\n");
}

#[test]
fn a_machine_is_judged_by_driver_and_gpus() {
    let Some(stage) = Stage::new(Some(&right())) else { return };
    let machine = |driver: &str, gpus: &str, error: &str| {
        stage.prints(&format!(
            "import warnings\nwarnings.simplefilter('error')\ntry:\n    found = guard.check_machine({{'driver': {driver}, \
             'gpus': [{gpus}], 'error': {error}}})\n    print(*found, sep='\\n')\nexcept UserWarning as said:\n    print('warns:', said)\n"
        ))
    };
    let (rtx, a100) = ("{'name': 'RTX 5080', 'sm': 'sm_120'}", "{'name': 'A100', 'sm': 'sm_80'}");
    assert_eq!(machine("'570.124.06'", rtx, "None"), "\n");
    assert_eq!(machine("'525.60.13'", rtx, "None"), "\n");
    assert_eq!(machine("'1000.1'", &format!("{rtx}, {rtx}"), "None"), "\n");
    let said = machine("'525.60.2'", rtx, "None");
    assert!(said.starts_with("driver: the lock has 525.60.13 or later, here is 525.60.2\n"), "{said}");
    let said = machine("None", "", "'libcuda.so.1: no such file'");
    assert!(
        said.contains("here is none\n")
            && said.contains("GPU: the lock has RTX 5090 (sm_120), here is none (libcuda.so.1"),
        "{said}"
    );
    assert!(said.contains("GPULOCK_GUARD=software"), "{said}");
    let said = machine("'570.1'", a100, "None");
    assert!(
        said.starts_with("GPU: the lock has RTX 5090 (sm_120), here is A100 (sm_80)\n")
            && said.contains("gpulock.toml"),
        "{said}"
    );
    // One GPU that the lock has is there: another one beside it, which the program may not use, is only told of.
    let said = machine("'570.1'", &format!("{a100}, {rtx}"), "None");
    assert_eq!(said, "warns: not among the lock's GPUs, and nothing is known of it: A100 (sm_80)\n");
}

#[test]
fn what_is_asked_for_is_chosen() {
    let Some(stage) = Stage::new(None) else { return };
    assert_eq!(stage.says("off").0, Some(0));
    let (code, said) = stage.says("sofware");
    assert!(code == Some(2) && said.contains("it takes all, software, off"), "{said}");
    let imported = stage.python().args(["-c", "import gpulock_guard"]).env_remove("GPULOCK_GUARD").output().unwrap();
    let said = String::from_utf8(imported.stderr).unwrap();
    assert!(!imported.status.success() && said.contains("GuardError: this is not target cluster"), "{said}");
    let code = "try:\n    guard.check('all', lambda: {'driver': '1.0', 'gpus': [], 'error': None})\n\
                except guard.GuardError as error:\n    print([one.what for one in error.mismatches])\n";
    assert_eq!(stage.prints(code), "['torch', 'driver', 'GPU']\n");
    let code = "print([guard.driver_of_kernel(text) for text in (\n\
                'NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.06  Wed Jun 26 06:46:07 UTC 2024\\nGCC version:  gcc version 12.2.0\\n',\n\
                'NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (builder@host)\\n', '')])";
    assert_eq!(stage.prints(code), "['535.183.06', '570.86.15', None]\n");
}

/// libcuda and NVML that say what variables name: what Python calls is what NVIDIA documents.
const CUDA: &str = r#"
#include <stdlib.h>
#include <string.h>
static int number(const char *name) { return atoi(getenv(name)); }
int cuInit(unsigned flags) { return number("FAKE_ERROR"); }
int cuGetErrorName(int error, const char **name) { *name = "CUDA_ERROR_NO_DEVICE"; return 0; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDeviceGet(int *device, int index) { *device = index + 7; return 0; }
int cuDeviceGetName(char *name, int size, int device) { strncpy(name, "Fake", size); return device != 7; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    *value = attribute == 75 ? number("FAKE_SM") / 10 : number("FAKE_SM") % 10;
    return device != 7;
}
int nvmlInit_v2(void) { return 0; }
int nvmlSystemGetDriverVersion(char *version, unsigned size) { strncpy(version, getenv("FAKE_DRIVER"), size); return 0; }
"#;

#[test]
fn the_driver_and_cuda_are_asked() {
    let Some(stage) = Stage::new(Some(&right())) else { return };
    let source = stage.folder.path().join("fake.c");
    fs::write(&source, CUDA).unwrap();
    let fake = stage.folder.path().join("fake");
    fs::create_dir(&fake).unwrap();
    for name in ["libcuda.so.1", "libnvidia-ml.so.1"] {
        let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(fake.join(name)).arg(&source).status();
        if !built.is_ok_and(|status| status.success()) {
            return;
        }
    }
    let says = |error: &str, sm: &str, driver: &str| {
        let mut python = stage.python();
        python.args(["-m", "gpulock_guard"]).env("LD_LIBRARY_PATH", &fake).env_remove("GPULOCK_GUARD");
        let output = python.envs([("FAKE_ERROR", error), ("FAKE_SM", sm), ("FAKE_DRIVER", driver)]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    if Path::new("/proc/driver/nvidia/version").exists() {
        return;
    }
    assert_eq!(says("0", "120", "570.124.06"), (Some(0), String::new()));
    let (code, said) = says("0", "89", "520.61.05");
    assert!(code == Some(1) && said.contains("here is 520.61.05") && said.contains("here is Fake (sm_89)"), "{said}");
    let (code, said) = says("100", "120", "570.124.06");
    assert!(code == Some(1) && said.contains("none (CUDA error 100 CUDA_ERROR_NO_DEVICE)"), "{said}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn no_value_changes_the_structure(values in vec(odd_lines(), 4)) {
        if Command::new("python3").arg("-V").output().is_err() {
            return Ok(());
        }
        let plain = with(format("guard"), &lock(), Options::default()).unwrap();
        let mut lock = lock();
        let target = &mut lock.targets[0];
        target.name = values[0].clone();
        target.variant = values[1].clone();
        target.gpus[0].name = values[2].clone();
        target.gpus[0].from = Some(values[3].clone());
        let text = with(format("guard"), &lock, Options::default()).unwrap();
        let code = "import ast, json, sys\ntree = ast.parse(sys.stdin.read())\nlock = ast.literal_eval(next(node.value for node in \
                    tree.body if isinstance(node, ast.Assign) and node.targets[0].id == 'LOCK'))\n\
                    print(json.dumps([[type(node).__name__ for node in ast.walk(tree)], [lock['target'], lock['variant'], \
                    lock['gpus'][0]['name'], lock['gpus'][0]['from']], len(lock['gpus'])]))";
        let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(&run("python3", &["-X", "utf8", "-c", code], text)).unwrap();
        let (parsed, plain) = (parsed(&text), parsed(&plain));
        prop_assert_eq!(&parsed[0], &plain[0]);
        prop_assert_eq!(&parsed[1], &serde_json::json!(values));
        prop_assert_eq!(&parsed[2], &plain[2]);
    }
}
