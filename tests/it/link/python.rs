//! Processes of Python, in site-packages folders made for the purpose.

use std::fs;
use std::path::{Path, PathBuf};

use gpulock::inventory::{Inventory, Options};
use gpulock::link::{Context, LinkModel, Problem};
use gpulock::matrix::Matrix;

use super::fixture::Elf;

/// A site-packages folder with a torch of that version in it.
struct Site(tempfile::TempDir);

impl Site {
    fn with_torch(version: &str) -> Self {
        let site = Self(tempfile::tempdir().unwrap());
        site.package("torch", version, &[]);
        let deps = Elf::library("libtorch_global_deps.so").needed(&["libcudart.so.12"]);
        site.put("torch/lib/libtorch_global_deps.so", &deps.rpath("$ORIGIN/../../nvidia/cuda_runtime/lib:$ORIGIN"));
        let core = Elf::library("libtorch_cpu.so").needed(&["libc10.so"]).rpath("$ORIGIN").defines(&["at_empty"]);
        site.put("torch/lib/libtorch_cpu.so", &core);
        site.put("torch/lib/libc10.so", &Elf::library("libc10.so").defines(&["c10_check"]));
        site.put(
            "torch/_C.cpython-311-x86_64-linux-gnu.so",
            &module("_C").needed(&["libtorch_cpu.so"]).rpath("$ORIGIN/lib"),
        );
        let runtime = Elf::library("libcudart.so.12").defines(&["cudaMalloc@@libcudart.so.12"]);
        site.put("nvidia/cuda_runtime/lib/libcudart.so.12", &runtime);
        site
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("lib/python3.11/site-packages")
    }

    fn put(&self, below: &str, elf: &Elf) {
        elf.write(&self.path().join(below));
    }

    fn remove(&self, below: &str) {
        fs::remove_file(self.path().join(below)).unwrap();
    }

    fn package(&self, name: &str, version: &str, requires: &[&str]) {
        let info = self.path().join(format!("{name}-{version}.dist-info"));
        fs::create_dir_all(&info).unwrap();
        let requires: String = requires.iter().map(|text| format!("Requires-Dist: {text}\n")).collect();
        fs::write(
            info.join("METADATA"),
            format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{requires}"),
        )
        .unwrap();
        fs::write(info.join("RECORD"), "").unwrap();
    }

    fn model(&self) -> LinkModel {
        let inventory = Inventory::read(&self.path(), &Options { jobs: Some(1), ..Options::default() }).unwrap();
        let matrix = Matrix::embedded();
        LinkModel::new(&inventory, matrix.dlopen().unwrap())
    }
}

fn module(name: &str) -> Elf {
    Elf { soname: None, ..Elf::library("") }.defines(&[&format!("PyInit_{name}")]).asks(&["PyModule_Create2"])
}

fn context<'m>(model: &'m LinkModel, name: &str) -> &'m Context {
    let names: Vec<&str> = model.contexts.iter().map(|context| context.name.as_str()).collect();
    model.contexts.iter().find(|context| context.name == name).unwrap_or_else(|| panic!("no {name} in {names:?}"))
}

/// All that is wrong anywhere.
fn problems(model: &LinkModel) -> Vec<String> {
    let all = model.contexts.iter().flat_map(|context| {
        context
            .problems
            .iter()
            .chain(context.edges.iter().filter(|edge| edge.optional.is_none()).flat_map(|edge| &edge.problems))
    });
    let unreached = model.unreached.iter().flat_map(|unreached| &unreached.problems);
    all.chain(unreached).filter(|problem| problem.optional().is_none()).map(Problem::to_string).collect()
}

fn loads(context: &Context, name: &str) -> bool {
    context.loads.iter().any(|load| load.path.file_name() == Some(Path::new(name).as_os_str()))
}

#[test]
fn importing_torch_makes_its_libraries_known_by_name() {
    let site = Site::with_torch("2.8.0");
    site.package("ext", "1.0", &["torch"]);
    // No search path at all, as in torchaudio: what it needs is loaded before.
    site.put("ext/_C.abi3.so", &module("_C").needed(&["libtorch_cpu.so", "libcudart.so.12"]).asks(&["at_empty"]));
    let model = site.model();
    assert_eq!(problems(&model), [""; 0]);
    assert!(loads(context(&model, "import torch"), "libcudart.so.12"));
    assert_eq!(context(&model, "ext, after torch").roots.len(), 1);
    // Opened with RTLD_LOCAL: the symbols of others are not there unless they are asked for by name.
    site.put("ext/_C.abi3.so", &module("_C").asks(&["at_empty"]));
    assert_eq!(problems(&site.model()), ["ext/_C.abi3.so: undefined symbol: at_empty"]);
}

#[test]
fn a_symbol_that_torch_no_longer_has() {
    let site = Site::with_torch("2.8.0");
    site.package("torchvision", "0.22.0", &["torch"]);
    site.put("torchvision/_C.so", &Elf::default().needed(&["libc10.so"]).asks(&["c10_check", "c10_gone"]));
    let model = site.model();
    assert_eq!(problems(&model), ["torchvision/_C.so: undefined symbol: c10_gone"]);
    let when = &context(&model, "torchvision, after torch").roots[0].when;
    assert_eq!(when, "`import torchvision` (\"operator torchvision::nms does not exist\")");
}

#[test]
fn what_torch_preloads_depends_on_its_version() {
    for (version, loaded) in [("2.3.0", false), ("2.8.0", true), ("2.15.0", true)] {
        let site = Site::with_torch(version);
        site.put("nvidia/cuda_nvrtc/lib/libnvrtc.so.12", &Elf::library("libnvrtc.so.12"));
        let model = site.model();
        let import = context(&model, "import torch");
        assert_eq!(loads(import, "libnvrtc.so.12"), loaded, "{version}");
        assert_eq!(problems(&model), [""; 0], "{version}");
    }
}

#[test]
fn a_library_that_is_not_there() {
    let site = Site::with_torch("2.8.0");
    site.remove("nvidia/cuda_runtime/lib/libcudart.so.12");
    let model = site.model();
    let [Problem::Unresolved { needed, by, tried, optional: None }] = &context(&model, "import torch").problems[..]
    else {
        panic!("{:?}", problems(&model))
    };
    assert_eq!((needed.as_str(), by.name.as_str()), ("libcudart.so.12", "torch/lib/libtorch_global_deps.so"));
    assert!(
        tried.iter().any(|step| step.rule.to_string().starts_with("DT_RPATH of torch/lib/libtorch_global_deps.so"))
    );
}

#[test]
fn a_package_of_its_own_may_have_what_it_needs_from_torch() {
    let site = Site::with_torch("2.8.0");
    site.package("onnx", "1.0", &[]);
    site.put(
        "onnx/core.abi3.so",
        &module("core").needed(&["libcudart.so.12"]).asks(&["cudaMalloc@libcudart.so.12/libcudart.so.12"]),
    );
    assert_eq!(problems(&site.model()), [""; 0]);
    site.put("onnx/core.abi3.so", &module("core").needed(&["libcudart.so.13"]));
    let model = site.model();
    assert_eq!(problems(&model), ["libcudart.so.13: cannot open shared object file: No such file or directory"]);
    assert!(!context(&model, "onnx").after_torch);
}

#[test]
fn sub_libraries_are_opened_under_the_names_that_their_caller_tries() {
    let site = Site::with_torch("2.8.0");
    let caller = Elf::library("libcudnn.so.9").runpath("$ORIGIN");
    site.put("nvidia/cudnn/lib/libcudnn.so.9", &caller);
    let core = Elf::library("libtorch_cpu.so").needed(&["libc10.so", "libcudnn.so.9"]);
    site.put("torch/lib/libtorch_cpu.so", &core.rpath("$ORIGIN:$ORIGIN/../../nvidia/cudnn/lib"));
    for part in ["graph", "ops", "cnn", "adv", "engines_precompiled", "engines_runtime_compiled", "heuristic"] {
        let name = format!("libcudnn_{part}.so.9");
        site.put(&format!("nvidia/cudnn/lib/{name}"), &Elf::library(&name).runpath("$ORIGIN"));
    }
    let model = site.model();
    assert_eq!(problems(&model), [""; 0]);
    let import = context(&model, "import torch");
    let opened: Vec<&str> = import.edges.iter().filter_map(|edge| Some(edge.opened.as_ref()?.0.as_str())).collect();
    assert!(opened.contains(&"libcudnn_graph.so.9") && opened.contains(&"libcudnn_heuristic.so.9"), "{opened:?}");
    site.remove("nvidia/cudnn/lib/libcudnn_engines_precompiled.so.9");
    let found = problems(&site.model());
    assert!(found.len() == 1 && found[0].starts_with("libcudnn_engines_precompiled.so"), "{found:?}");
}

#[test]
fn what_the_driver_brings_is_no_problem() {
    let site = Site::with_torch("2.8.0");
    site.package("ext", "1.0", &["torch"]);
    site.put("ext/_C.abi3.so", &module("_C").needed(&["libc10.so", "libcuda.so.1"]).asks(&["cuInit", "other"]));
    let model = site.model();
    assert_eq!(problems(&model), ["ext/_C.abi3.so: undefined symbol: other"]);
    let optional =
        context(&model, "ext, after torch").problems.iter().filter_map(Problem::optional).collect::<Vec<_>>();
    assert!(optional.len() == 1 && optional[0].contains("driver"), "{optional:?}");
}
