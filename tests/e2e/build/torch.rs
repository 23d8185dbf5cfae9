//! A real torch, with ctranslate2, in an image: what is installed runs, and what would not run stops the build.

use super::super::known::text;
use super::base::SYSTEM;
use super::{World, inside};

/// The torch of the default index with the smallest download (1.8 GB).
const MANIFEST: &str = r#"[stack]
python = "3.11"
torch = "1.13.1"
[packages]
numpy = "<2"
ctranslate2 = "<4"
[target.node]
platform = "linux-x86_64"
gpus = ["A100"]
driver = "525.105.17"
[image]
flavor = "slim"
[env]
NCCL_DEBUG = "WARN"
"#;

/// Another release of one wheel, installed after the lock's.
const SWAPPED: &str = r#"{% extends "Dockerfile" %}
{% block extensions %}
RUN /opt/venv/bin/pip install --no-cache-dir --no-deps nvidia-cuda-runtime-cu11==11.8.89
{% endblock %}
"#;

pub fn is_built(world: &World) {
    let pushed = world.buildah.push_index(&[SYSTEM], "library/python:3.11-slim-bookworm");
    let project = world.project("torch", MANIFEST);
    let lock = project.resolve();
    let image = &lock["targets"][0]["image"];
    assert_eq!((text(image, "ref"), text(image, "digest")), ("python:3.11-slim-bookworm", &*pushed));

    // ctranslate2 3 has libcudnn.so.8 in its wheel, and takes the parts of cuDNN from where the loader looks.
    let missing = ["error[cudnn-sublibrary-missing]", "nvidia/cudnn/lib on LD_LIBRARY_PATH", "1 error"];
    project.fails("localhost/alone", &[], &[], &missing);

    project.add("LD_LIBRARY_PATH = \"/opt/venv/lib/python3.11/site-packages/nvidia/cudnn/lib\"\n");
    project.resolve();
    let said = project.builds("localhost/torch", &[], &[]);
    assert!(said.contains("Using cache") && !said.contains("error["), "{said}");
    let code =
        "import ctranslate2, torch; print(torch.__version__, torch.backends.cudnn.version(), ctranslate2.__version__)";
    let script = format!("id -u; pwd; command -v python; ls -A /opt; echo $NCCL_DEBUG; python -W ignore -c '{code}'");
    let expected = ["10001", "/home/app", "/opt/venv/bin/python", "venv", "WARN", "1.13.1+cu117 8500 3.24.0"];
    assert_eq!(inside(&world.buildah, "localhost/torch", &script), expected.join("\n"));
    let label = "{{index .OCIv1.Config.Labels \"gpulock.lock\"}}";
    let labelled = world.buildah.run(&["inspect", "--type", "image", "--format", label, "localhost/torch"]);
    let locked = std::fs::read_to_string(project.folder.join("gpulock.lock")).unwrap();
    assert_eq!(labelled, gpulock::lock::Lock::parse(&locked, "gpulock.lock").unwrap().digest());

    world.buildah.run(&["rmi", "localhost/torch"]);

    std::fs::write(project.folder.join("swapped.j2"), SWAPPED).unwrap();
    let drift = ["error[lock-drift]", "nvidia-cuda-runtime-cu11: 11.8.89 is installed; the lock has 11.7.99"];
    project.fails("localhost/swapped", &["--template", "swapped.j2"], &[], &drift);
    let images = world.buildah.run(&["images", "--format", "{{.Name}}"]);
    assert!(!images.contains("swapped") && !images.contains("alone"), "{images}");
}
