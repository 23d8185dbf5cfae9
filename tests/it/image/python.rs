//! Which Python of an image is judged, and from where it imports.

use std::path::Path;

use gpulock::inventory::Inventory;
use serde_json::{Value, json};

use super::make::{Layer, Made};
use super::{archive, put};
use crate::link::fixture::Elf;

/// A system with its Python, two virtual environments and conda.
fn system() -> Layer {
    let mut layer = Layer::default()
        .file("etc/os-release", "ID=debian\n")
        .file("usr/bin/python3.11", "")
        .link("usr/bin/python3", "python3.11")
        .file("usr/bin/tini", "")
        .file("usr/lib/python3/dist-packages/system.py", "")
        .file("opt/conda/bin/python3.12", "")
        .link("opt/conda/bin/python", "python3.12")
        .file("opt/conda/conda-meta/history", "")
        .file("opt/conda/lib/python3.12/site-packages/conda.py", "");
    for name in ["a", "b"] {
        layer = layer
            .file(&format!("opt/{name}/pyvenv.cfg"), "home = /usr/bin\nversion = 3.11.2\n")
            .link(&format!("opt/{name}/bin/python"), "/usr/bin/python3.11")
            .file(&format!("opt/{name}/bin/torchrun"), "#!/opt/a/bin/python\n")
            .file(&format!("opt/{name}/lib/python3.11/site-packages/x.py"), "");
    }
    layer
}

fn read(layer: &Layer, start: Value) -> Inventory {
    let folder = tempfile::tempdir().unwrap();
    let made = Made { start, ..Made::of(std::slice::from_ref(layer)) };
    archive(&put(folder.path(), "x.tar", &made.saved().tar())).unwrap()
}

#[test]
fn the_one_that_is_started_comes_first() {
    let usual = "PATH=/usr/local/bin:/usr/bin";
    for (entry, command, path, first) in [
        (json!(null), json!(null), usual, "/opt/a"),
        (json!(["/opt/b/bin/python", "-m", "x"]), json!(null), usual, "/opt/b"),
        (json!(["tini", "--"]), json!(["/opt/b/bin/torchrun", "x.py"]), usual, "/opt/b"),
        (json!(["/bin/sh", "-c", "exec /opt/b/bin/python x.py"]), json!(null), usual, "/opt/b"),
        (json!(null), json!(["python3", "x.py"]), usual, "/usr"),
        (json!(null), json!(["python3.11"]), usual, "/usr"),
        (json!(null), json!(["python", "x.py"]), "PATH=/opt/conda/bin:/usr/bin", "/opt/conda"),
        (json!(null), json!(["bash"]), "PATH=/opt/b/bin:/usr/bin", "/opt/b"),
        (json!(["/usr/bin/tini"]), json!(["bash"]), usual, "/opt/a"),
        // Nothing of that name.
        (json!(["/nowhere/python"]), json!(null), usual, "/opt/a"),
    ] {
        let inventory = read(&system(), json!({"Entrypoint": entry, "Cmd": command, "Env": [path]}));
        assert_eq!(inventory.pythons[0].prefix, Path::new(first), "{entry} {command} {path}");
        assert_eq!(inventory.pythons.len(), 4);
    }
}

/// As `CMD [".venv/bin/python", ..]` is looked for.
#[test]
fn a_program_below_the_folder_that_it_is_started_in() {
    for (word, folder, first) in [
        ("bin/python", json!("/opt/b"), "/opt/b"),
        ("./bin/torchrun", json!("/opt/b/"), "/opt/b"),
        ("../b/bin/python", json!("/opt/a"), "/opt/b"),
        ("opt/b/bin/python", json!(null), "/opt/b"),
        ("bin/python", json!(""), "/opt/a"),
    ] {
        let inventory = read(&system(), json!({"Cmd": [word], "WorkingDir": folder, "Env": ["PATH=/usr/bin"]}));
        assert_eq!(inventory.pythons[0].prefix, Path::new(first), "{word} {folder}");
    }
}

#[test]
fn pythonpath_is_imported_from() {
    let module = Elf::library("").bytes();
    let layer = system()
        .file("app/deps/ext-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: ext\nVersion: 1.0\n")
        .bytes("app/deps/ext/_C.abi3.so", 0o755, &module);
    let with = |value: &str| read(&layer, json!({"Env": [format!("PYTHONPATH={value}")]}));
    let names = |inventory: &Inventory| -> Vec<String> {
        inventory.packages.iter().map(|package| package.name.to_string()).collect()
    };
    let inventory = with("/app/deps:/nowhere::relative:/app/deps/");
    assert_eq!(names(&inventory), ["ext"]);
    for python in &inventory.pythons {
        assert_eq!(python.site_packages[0], Path::new("/app/deps"));
        assert_eq!(python.site_packages.iter().filter(|site| site.ends_with("deps")).count(), 1);
    }
    for other in ["", "/nowhere", "/", "/proc"] {
        assert_eq!(names(&with(other)), [""; 0], "{other}");
    }
    // Without any folder of packages there is the system's Python.
    let bare = Layer::default()
        .file("etc/os-release", "ID=debian\n")
        .file("usr/bin/python3.11", "")
        .link("usr/bin/python3", "python3.11")
        .file("app/deps/ext-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: ext\nVersion: 1.0\n");
    let inventory = read(&bare, json!({"Env": ["PYTHONPATH=/app/deps"]}));
    assert_eq!(names(&inventory), ["ext"]);
    assert_eq!(inventory.pythons[0].interpreter.as_deref(), Some(Path::new("/usr/bin/python3.11")));
}

/// What an image says that it is for, where that is not what it holds or what it is started on.
#[test]
fn platforms_of_images() {
    use crate::check::venv::{Question, assert_quiet, judge, the_finding};
    let own = |machine: u16| Elf { machine: Some(machine), ..Elf::library("") }.bytes();
    let of = |architecture: &str, machine: u16| {
        let layer = Layer::default()
            .file("etc/os-release", "ID=debian\n")
            .bytes("usr/bin/python3.11", 0o755, &own(machine))
            .file("usr/lib/python3.11/site-packages/x.py", "");
        let made = Made::of(&[layer]);
        let mut config = made.config();
        config["architecture"] = json!(architecture);
        let list = json!([{"Config": "c.json", "RepoTags": null, "Layers": ["l"]}]);
        let saved = Layer::default().bytes("l", 0o644, &made.layers[0]).file("c.json", &config.to_string());
        let folder = tempfile::tempdir().unwrap();
        archive(&put(folder.path(), "x.tar", &saved.file("manifest.json", &list.to_string()).tar())).unwrap()
    };
    const CODE: &str = "architecture-mismatch";
    let ask = |inventory: &Inventory, gpu: &str| {
        judge(inventory, Path::new("/"), &Question { gpus: &[gpu], ..Question::default() })
    };
    let findings = ask(&of("arm64", 183), "RTX 4090");
    let note = the_finding(&findings, CODE);
    assert_eq!(note.severity, gpulock::diag::Severity::Note);
    assert!(note.message.contains("for linux/arm64: it starts only on machines of that kind"), "{}", note.message);
    assert_quiet(&ask(&of("amd64", 62), "RTX 4090"), CODE);
    assert_quiet(&ask(&of("arm64", 183), "Jetson AGX Orin"), CODE);
    let findings = ask(&of("arm64", 62), "RTX 4090");
    let problem = the_finding(&findings, CODE);
    assert_eq!(problem.severity, gpulock::diag::Severity::Error);
    assert!(problem.message.contains("says that it is for linux/arm64, and its programs are for x86_64"));
}
