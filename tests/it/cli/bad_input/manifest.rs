//! Manifests that are wrong, and those that ask for what does not exist.

use crate::cli::program::{GOOD, Place, Ran};

const RESOLVE: [&str; 2] = ["resolve", "--offline"];

/// Resolves a manifest, with no lock and with one, neither of which may be touched.
fn refused(manifest: &str, code: i32, words: &[&str]) -> Ran {
    let with_lock = Place::locked();
    with_lock.put("gpulock.toml", manifest);
    with_lock.refuses(&RESOLVE, code);
    Place::with(manifest).refuses(&RESOLVE, code).says(words)
}

#[test]
fn broken_toml() {
    let words = ["error[broken-toml]: gpulock.toml is not valid TOML", "gpulock.toml:1:7", "help:"];
    refused(&format!("[stack\n{GOOD}"), 2, &words);
    refused("[stack]\ntorch = 2.8.0\n", 2, &["gpulock.toml:2", "write `torch = \"2.8.0\"`"]);
    refused("<<<<<<< ours\n[stack]\n=======\n>>>>>>> theirs\n", 2, &["merge conflicts", "lines 1 to 4", "help:"]);
}

#[test]
fn unknown_key() {
    let words = ["error[unknown-key]", "`touch` in [stack]", "gpulock.toml:2:1", "did you mean `torch`?"];
    refused(&GOOD.replace("torch", "touch"), 2, &words);
    refused(&GOOD.replace("gpus", "gpu"), 2, &["unknown key `gpu` in [target.a]", "did you mean `gpus`?"]);
}

#[test]
fn values_that_mean_nothing() {
    let words = ["`driver` in [target.a]", "`abc` is not a driver version", "gpulock.toml:7:10", "nvidia-smi"];
    refused(&GOOD.replace("\"580\"", "\"abc\""), 2, &words);
    let words = ["error[no-gpu]", "`gpus` in [target.a] is empty", "gpulock.toml:6:8", "[\"RTX 5090\", \"sm_90\"]"];
    refused(&GOOD.replace("[\"A100\"]", "[]"), 2, &words);
    refused("[stack]\ntorch = \"2.8\"\n", 2, &["no [target.NAME]", "[target.cluster]"]);
    refused("", 2, &["no [target.NAME]", "[target.cluster]"]);
}

#[test]
fn all_problems_at_once() {
    let manifest = "[stack]\ntouch = \"2\"\ncuda = \"abc\"\n[target.a]\ngpus = []\ndriver = 570\n";
    let ran = refused(manifest, 2, &["`touch`", "`abc`", "`gpus`", "write `driver = \"570\"`"]);
    assert_eq!(ran.err.matches("error[").count(), 4, "{}", ran.err);
}

#[test]
fn a_torch_that_does_not_exist() {
    let words = ["no stack for target `a`", "No torch ==9.9 is known", "1.13.0 to 2.15.0", "torch <9.9"];
    refused(&GOOD.replace("2.8.0", "==9.9"), 1, &words);
}

#[test]
fn contradictory_pins() {
    let words = ["error[contradictory-bounds]", "`>=2.9,<2.8` contradicts itself", "gpulock.toml:2:9", "drop one"];
    refused(&GOOD.replace("2.8.0", ">=2.9,<2.8"), 2, &words);
    let two = GOOD.replace("\n\n", "\ntorchvision = \"0.22.0\"\n\n");
    refused(&two, 1, &["torch ==2.8.0", "torchvision ==0.22.0", "what would work", "torchvision >=0.23"]);
}

#[test]
fn gpus_that_are_none() {
    let gpu = |name: &str| GOOD.replace("A100", name);
    let words = ["error[gpu-unknown]", "unknown GPU `RTX 9999`", "did you mean \"GeForce RTX "];
    refused(&gpu("RTX 9999"), 2, &words);
    let words = ["`RTX 6000` is several GPUs", "Quadro RTX 6000", "RTX 6000 Ada Generation", "compute capability"];
    refused(&gpu("RTX 6000"), 2, &words);
    refused(&gpu("sm_81"), 2, &["unknown GPU `sm_81`", "did you mean"]);
    // What people call a GPU that is none: the capabilities that go by it.
    for (name, meant) in [
        ("hopper", "did you mean \"sm_90\"?"),
        ("Ada", "did you mean \"sm_89\"?"),
        ("ampere", "did you mean \"sm_80\", \"sm_86\" or \"sm_87\"?"),
        ("sm_90a", "did you mean \"sm_90\"?"),
        ("compute_120", "did you mean \"sm_120\"?"),
        ("90", "did you mean \"sm_90\"?"),
    ] {
        refused(&gpu(name), 2, &[&format!("unknown GPU `{name}`"), meant]);
    }
    let both = gpu("RTX 9999").replace("[\"RTX 9999\"]", "[\"RTX 9999\", \"RTX 6000\"]");
    refused(&both, 2, &["`RTX 9999`", "`RTX 6000`"]);
}

#[test]
fn a_gpu_of_the_future_gets_a_warning_and_no_wrong_stack() {
    let ran =
        refused(&GOOD.replace("A100", "sm_130"), 1, &["warning[gpu-unknown]", "sm_130 is newer than this matrix"]);
    assert!(ran.err.contains("no stack for target `a`"), "{}", ran.err);
}

#[test]
fn what_was_never_released() {
    let cuda = GOOD.replace("torch = \"2.8.0\"", "cuda = \"12.7\"");
    refused(&cuda, 1, &["CUDA 12.7 was never released", "12.6, 12.8", "what would work"]);
    let variant = GOOD.replace("torch = \"2.8.0\"", "variant = \"cu127\"");
    refused(&variant, 1, &["There is no torch variant cu127", "cu126, cu128", "what would work"]);
}

#[test]
fn same_torch_where_there_is_none() {
    let manifest = "[stack]\nsame-torch = true\n[target.old]\ngpus = [\"A100\"]\ndriver = \"470.57.02\"\n\
                    [target.new]\ngpus = [\"RTX 5090\"]\ndriver = \"570.124.06\"\n";
    refused(manifest, 1, &["target `old` allows", "target `new` allows", "same-torch = false"]);
    let alone = Place::with(&manifest.replace("true", "false"));
    alone.run(&RESOLVE).code(0);
    assert_eq!(alone.lock().matches("[[target]]").count(), 2);
}

#[test]
fn one_target_without_stack_stops_all() {
    let manifest = format!("{GOOD}[target.b]\ngpus = [\"RTX 5090\"]\ndriver = \"550.54.15\"\n");
    let ran = refused(&manifest, 1, &["no stack for target `b`", "570.26", "what would work"]);
    assert!(!ran.err.contains("target `a`"), "{}", ran.err);
}

#[test]
fn pyproject() {
    let place = Place::empty();
    place.put("pyproject.toml", "[project]\nname = \"x\"\n");
    place.refuses(&RESOLVE, 2).says(&["error[manifest-missing]", "gpulock init"]);
    let named = ["resolve", "--offline", "--manifest", "pyproject.toml"];
    place.refuses(&named, 2).says(&["pyproject.toml has no [tool.gpulock]", "gpulock init"]);
    let table = GOOD.replace("[stack]", "[tool.gpulock.stack]").replace("[target", "[tool.gpulock.target");
    place.put("pyproject.toml", format!("[project]\nname = \"x\"\n\n{}", table.replace("torch", "touch")));
    place.refuses(&RESOLVE, 2).says(&["`touch` in [tool.gpulock.stack]", "pyproject.toml:5:1", "`torch`"]);
    place.put("pyproject.toml", format!("[project]\nname = \"x\"\n\n{table}"));
    place.run(&RESOLVE).code(0);
    assert_eq!(place.lock(), Place::locked().lock(), "the same as from gpulock.toml");
}

#[test]
fn files_that_are_no_manifest() {
    let place = Place::empty();
    place.refuses(&RESOLVE, 2).says(&["there is no manifest here", "--gpu"]);
    place.refuses(&["resolve", "--manifest", "none.toml"], 2).says(&["none.toml does not exist", "help:"]);
    place.refuses(&["resolve", "--manifest", "."], 2).says(&[". is a folder", "help:"]);
    place.put("gpulock.toml", b"[stack]\ntorch = \"\xff\"\n");
    place.refuses(&RESOLVE, 2).says(&["gpulock.toml is not UTF-8 text", "line 2", "save it as UTF-8"]);
}

#[test]
fn files_that_grow_when_they_are_read() {
    let place = Place::empty();
    let doubling: String = (0..40).map(|i| format!("ENV A{}=${{A{i}}}${{A{i}}}\n", i + 1)).collect();
    place.put("Dockerfile", format!("FROM x\nENV A0=xxxxxxxxxx\n{doubling}RUN pip install torch==$A40\n"));
    let nested = "(".repeat(50_000);
    let nested = format!("[project]\nname = 'a'\ndependencies = [\"torch>=2; python_version < '3' and {nested}\"]\n");
    place.put("pyproject.toml", nested);
    place.run(&["init"]).code(0);
    place.run(&["init", "--force", "/dev/zero"]).code(2);
}
