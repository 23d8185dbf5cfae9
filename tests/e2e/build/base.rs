//! Bases: Debian 12 from the mirror that apt asks, alone and as stand-in for systems that cannot be had from there.

use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use super::super::buildah::Buildah;
use super::super::run::{self, stdout, succeed};
use super::write;

/// Debian 12 with its Python 3.11.
pub const SYSTEM: &str = "localhost/system";
/// The same without Python, where uv takes the build of `python_build` for the one that it knows.
pub const BARE: &str = "localhost/bare";
/// The image that holds uv, of the release that the matrix names.
pub const UV: &str = "localhost/uv";

/// Makes the image of the system; gives its files.
pub fn system(buildah: &Buildah, folder: &Path) -> PathBuf {
    let tree = folder.join("system");
    let mut command = Command::new("debootstrap");
    // Debian keeps it where only root looks.
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    // The tree is of use only as a whole: no file needs to be on disk before the next.
    command.env("DPKG_FORCE", "unsafe-io");
    command.args(["--variant=minbase", "--include=python3,python3-venv,ca-certificates", "bookworm"]).arg(&tree);
    succeed(command.args(mirror()));
    buildah.image(SYSTEM, "scratch", |container| {
        succeed(buildah.command(&["add", "--quiet", container]).arg(&tree).arg("/"));
    });
    tree
}

/// The mirror that apt is configured for, where that is Debian's archive.
fn mirror() -> Option<String> {
    let format = "$(LABEL) $(COMPONENT) $(REPO_URI)";
    let targets = stdout(Command::new("apt-get").args(["indextargets", "--format", format, "Created-By: Packages"]));
    targets.lines().find_map(|line| line.strip_prefix("Debian main ").map(str::to_owned))
}

/// Makes [`BARE`] and [`UV`]. `tree` is the system; its Python is packed as one for uv to install, since the builds that
/// uv knows are on no package registry.
pub fn bare(buildah: &Buildah, folder: &Path, tree: &Path) {
    let (build, facts) = python_build(folder, tree);
    write(&folder.join("downloads.json"), &facts);
    write(&folder.join("uv.toml"), "python-downloads-json-url = \"file:///mirror/downloads.json\"\n");
    buildah.image(BARE, SYSTEM, |container| {
        buildah.run(&["run", container, "--", "rm", "/usr/bin/python3", "/usr/bin/python3.11"]);
        for (file, to) in [("uv.toml", "/etc/uv/uv.toml"), ("downloads.json", "/mirror/downloads.json")] {
            succeed(buildah.command(&["add", "--quiet", container]).arg(folder.join(file)).arg(to));
        }
        // `add` would unpack it.
        succeed(buildah.command(&["copy", "--quiet", container]).arg(&build).arg("/mirror/python.tar.gz"));
    });
    let wheel = folder.join("uv");
    // The wheel for musl holds the program that is in the image.
    let platform = format!("musllinux_1_1_{}", std::env::consts::ARCH);
    let mut pip = run::python(Path::new("python3"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:", "--platform", &platform]);
    succeed(pip.args(["uv==0.13.0", "--target"]).arg(&wheel));
    buildah.image(UV, "scratch", |container| {
        succeed(buildah.command(&["add", "--quiet", container]).arg(wheel.join("bin/uv")).arg("/uv"));
    });
}

/// The archive of a Python as uv installs it, and the list of one that names it.
fn python_build(folder: &Path, tree: &Path) -> (PathBuf, String) {
    let python = folder.join("build/python");
    std::fs::create_dir_all(python.join("bin")).unwrap();
    std::fs::create_dir(python.join("lib")).unwrap();
    std::fs::copy(tree.join("usr/bin/python3.11"), python.join("bin/python3.11")).unwrap();
    succeed(Command::new("cp").arg("-a").arg(tree.join("usr/lib/python3.11")).arg(python.join("lib")));
    // uv takes no archive with an absolute link.
    std::fs::remove_file(python.join("lib/python3.11/sitecustomize.py")).unwrap();
    let archive = folder.join("python.tar.gz");
    succeed(Command::new("tar").arg("-C").arg(folder.join("build")).arg("-czf").arg(&archive).arg("python"));
    let sha256: String =
        Sha256::digest(std::fs::read(&archive).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect();
    let arch = std::env::consts::ARCH;
    let facts = serde_json::json!({format!("cpython-3.11.2-linux-{arch}-gnu"): {
        "name": "cpython", "arch": {"family": arch, "variant": null}, "os": "linux", "libc": "gnu",
        "major": 3, "minor": 11, "patch": 2, "prerelease": "", "variant": null, "build": "20260101",
        "url": "file:///mirror/python.tar.gz", "sha256": sha256}});
    (archive, facts.to_string())
}
