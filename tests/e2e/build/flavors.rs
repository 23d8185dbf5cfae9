//! Flavors of nvidia/cuda and of a system whose Python is not the locked one. Bases and torch are stand-ins (the names are
//! real, what is in them is small), uv and pip are what they are everywhere: every instruction of the templates runs.

use std::path::Path;
use std::process::Command;

use super::super::buildah::Buildah;
use super::super::nginx::{Nginx, Site, page};
use super::super::run::{self, succeed};
use super::super::wheels::{Made, recipe};
use super::base::{BARE, UV, bare};
use super::{World, inside, write};

const TORCH: &str = "torch-2.8.0+cu128-cp311-cp311-manylinux_2_28_x86_64.whl";
/// What torch 2.8.0 pins, and another release.
const RUNTIME: &str = "nvidia-cuda-runtime-cu12==12.8.90";
const OTHER_RUNTIME: &str = "nvidia-cuda-runtime-cu12==12.6.77";
/// A base with a CUDA of its own.
const CUDA: &str = "localhost/cuda";

/// Compiles something where the toolkit is, with what the lock says of it.
const EXTENSION: &str = r#"{% extends "Dockerfile" %}
{% block extensions %}
RUN test "${TORCH_CUDA_ARCH_LIST} ${CUDA_HOME} $(command -v python)" = "8.0 /usr/local/cuda /opt/venv/bin/python" \
    && printf 'built = True\n' > "$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/extension.py"
{% endblock %}
"#;

/// A library with as many bytes as the one that it replaces.
const CHANGED: &str = r#"{% extends "Dockerfile" %}
{% block extensions %}
RUN printf 'changed' | dd of=/opt/venv/lib/python3.11/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12 conv=notrunc bs=1 seek=700000
{% endblock %}
"#;

pub fn are_built(world: &World, tree: &Path) {
    let folder = world.folder.path();
    bare(&world.buildah, folder, tree);
    world.buildah.push_index(&[UV], "astral-sh/uv:0.13.0");
    world.buildah.push_index(&[BARE], "library/ubuntu:22.04");
    let Some(nginx) = Nginx::start(&index(&torch(folder)), "", |_| String::new()) else { panic!("nginx is installed") };
    let manifest = |flavor: &str| {
        format!(
            "[stack]\npython = \"3.11\"\ntorch = \"2.8.0\"\n[target.node]\nplatform = \"linux-x86_64\"\ngpus = [\"A100\"]\n\
             driver = \"570.124.06\"\n[[index]]\nname = \"torch\"\nurl = \"http://127.0.0.1:{}/whl\"\npackages = [\"torch\"]\n\
             [image]\nos = \"ubuntu22.04\"\nflavor = \"{flavor}\"\n",
            nginx.port
        )
    };
    let script =
        "python -c 'import sys, torch; print(sys.version.split()[0], sys.base_prefix, torch.__version__)'; id -u";
    let says = "3.11.2 /opt/python/cpython-3.11.2-linux-x86_64-gnu 2.8.0+cu128\n10001";

    let slim = world.project("slim", &manifest("slim"));
    slim.resolve();
    slim.builds("localhost/slim", &[], &[]);
    assert_eq!(inside(&world.buildah, "localhost/slim", script), says);
    std::fs::write(slim.folder.join("changed.j2"), CHANGED).unwrap();
    slim.fails(
        "localhost/changed",
        &["--template", "changed.j2"],
        &[],
        &["error[library-modified]", "libcudart.so.12"],
    );

    for flavor in ["base", "runtime", "devel"] {
        world.buildah.push_index(&[BARE], &format!("nvidia/cuda:12.8.1-{flavor}-ubuntu22.04"));
    }
    for flavor in ["base", "runtime"] {
        let project = world.project(flavor, &manifest(flavor));
        project.resolve();
        project.builds(&format!("localhost/{flavor}"), &[], &[]);
        assert_eq!(inside(&world.buildah, &format!("localhost/{flavor}"), script), says);
    }
    let devel = world.project("devel", &manifest("devel"));
    devel.resolve();
    std::fs::write(devel.folder.join("extension.j2"), EXTENSION).unwrap();
    for (image, target, arch_list) in [("localhost/devel", "devel", "8.0"), ("localhost/small", "runtime", "")] {
        let said = devel.builds(image, &["--template", "extension.j2"], &["--target", target]);
        // The small base is another one, so the result is checked on it too.
        assert_eq!(said.matches("RUN --mount=type=bind,from=verify").count(), usize::from(target == "runtime"));
        let script = format!("python -c 'import extension'; echo \"[$TORCH_CUDA_ARCH_LIST]\"; ls -A /mnt; {script}");
        assert_eq!(inside(&world.buildah, image, &script), format!("[{arch_list}]\n{says}"));
    }

    cuda(&world.buildah, folder);
    world.buildah.push_index(&[CUDA], "nvidia/cuda:12.8.1-runtime-ubuntu22.04");
    let shadowed = world.project("shadowed", &manifest("runtime"));
    shadowed.resolve();
    let words = ["error[shadowed-library]", "/usr/local/cuda/lib64/libcudart.so.12", "12.6"];
    shadowed.fails("localhost/shadowed", &[], &[], &words);
}

/// Files of a wheel.
fn unpacked(requirement: &str, to: &Path) {
    let mut pip = run::python(Path::new("python3"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", requirement, "--target"]);
    succeed(pip.arg(to));
}

/// A base whose library path has another CUDA than torch's wheels.
fn cuda(buildah: &Buildah, folder: &Path) {
    let other = folder.join("cuda");
    unpacked(OTHER_RUNTIME, &other);
    buildah.image(CUDA, BARE, |container| {
        let libraries = other.join("nvidia/cuda_runtime/lib");
        succeed(buildah.command(&["add", "--quiet", container]).arg(libraries).arg("/usr/local/cuda/lib64"));
        buildah.run(&["config", "--env", "LD_LIBRARY_PATH=/usr/local/cuda/lib64", container]);
    });
}

/// A torch that is two libraries, the first of which needs the CUDA runtime, with DT_RUNPATH as cuDNN's wheels have it.
fn torch(folder: &Path) -> Made {
    let (runtime, built) = (folder.join("runtime"), folder.join("torch-built"));
    unpacked(RUNTIME, &runtime);
    write(
        &built.join("deps.c"),
        "int cudaRuntimeGetVersion(int *); int version(void) { int v; cudaRuntimeGetVersion(&v); return v; }\n",
    );
    write(&built.join("c.c"), "int version(void); int PyInit__C(void) { return version(); }\n");
    let compile = |source: &str, library: &str, needed: &Path, run_path: &str| {
        let mut cc = Command::new("cc");
        cc.current_dir(&built).args(["-shared", "-fPIC", source, "-o", library, &format!("-Wl,-soname,{library}")]);
        cc.arg(needed).args([
            "-Wl,--enable-new-dtags",
            "-Wl,--allow-shlib-undefined",
            &format!("-Wl,-rpath,{run_path}"),
        ]);
        succeed(&mut cc);
        std::fs::read(built.join(library)).unwrap()
    };
    let cudart = runtime.join("nvidia/cuda_runtime/lib/libcudart.so.12");
    let deps = compile("deps.c", "libtorch_global_deps.so", &cudart, "$ORIGIN/../../nvidia/cuda_runtime/lib");
    let module = "_C.cpython-311-x86_64-linux-gnu.so";
    let module_bytes = compile("c.c", module, &built.join("libtorch_global_deps.so"), "$ORIGIN/lib");
    let version = "2.8.0+cu128";
    let mut torch = recipe("torch", version);
    torch.metadata = format!(
        "Metadata-Version: 2.1\nName: torch\nVersion: {version}\nRequires-Python: >=3.9\nRequires-Dist: {RUNTIME}\n\nText\n"
    );
    torch.files = vec![
        ("torch/__init__.py".into(), format!("__version__ = \"{version}\"\n").into()),
        ("torch/version.py".into(), format!("__version__ = \"{version}\"\ncuda = \"12.8\"\n").into()),
        ("torch/lib/libtorch_global_deps.so".into(), deps),
        (format!("torch/{module}"), module_bytes),
        (
            format!("torch-{version}.dist-info/WHEEL"),
            b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: false\nTag: cp311-cp311-manylinux_2_28_x86_64\n"
                .into(),
        ),
    ];
    let mut made = torch.make();
    made.file = TORCH.into();
    made
}

fn index(torch: &Made) -> Site {
    let link = (format!("/whl/{TORCH}"), torch.sha256.clone(), TORCH.to_owned());
    Site::from([
        (format!("whl/{TORCH}"), torch.bytes.clone()),
        ("whl/torch/index.html".to_owned(), page("torch", &[link])),
    ])
}
