//! One environment, packed in every way: the same verdict as on its root filesystem.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::make::{Layer, Made, Packed, archived};
use crate::check::venv::Venv;
use crate::cli::program::{Place, Ran};

/// The files of a folder as a layer.
fn layer(folder: &Path, below: &str, mut layer: Layer) -> Layer {
    use std::os::unix::fs::PermissionsExt;
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(Result::unwrap).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = format!("{below}{}", entry.file_name().to_str().unwrap());
        let metadata = entry.metadata().unwrap();
        layer = match () {
            () if metadata.is_dir() => self::layer(&entry.path(), &format!("{path}/"), layer.folder(&path)),
            () if metadata.is_symlink() => layer.link(&path, fs::read_link(entry.path()).unwrap().to_str().unwrap()),
            () => layer.bytes(&path, metadata.permissions().mode(), &fs::read(entry.path()).unwrap()),
        };
    }
    layer
}

/// All but the subject, which comes first, and the layers, which only images have.
fn verdict(ran: &Ran) -> String {
    let mut json = ran.json();
    json["subject"] = json!(null);
    for finding in json["findings"].as_array_mut().unwrap() {
        let is_layer = |evidence: &Value| evidence["path"].as_str().is_some_and(|path| path.starts_with("layer "));
        finding["evidence"].as_array_mut().unwrap().retain(|evidence| !is_layer(evidence));
    }
    serde_json::to_string_pretty(&json).unwrap()
}

#[test]
fn the_same_verdict_however_it_is_packed() {
    let venv = Venv::with_torch();
    venv.install_cudnn([9, 10, 2]);
    venv.remove("nvidia/nccl/lib/libnccl.so.2");
    let place = Place::empty();
    let folder = place.path("root");
    venv.put_into_root(&folder);
    let flags =
        ["--gpu", "A100", "--driver", "570.124.06", "--format", "json", "--integrity", "--set-env", "NCCL_DEBUGG=1"];
    let run = |subject: &str, code: i32| {
        let arguments = [&["verify", subject][..], &flags].concat();
        verdict(&place.run(&arguments).code(code))
    };
    let expected = run("root", 1);
    assert!(expected.contains("libnccl.so.2"), "{expected}");
    let mut made = Made::of(&[layer(&folder, "", Layer::default())]);
    made.history = vec!["/bin/sh -c pip install torch".into()];
    for (name, packed) in [("plain", Packed::Plain), ("gzip", Packed::Gzip), ("zstd", Packed::Zstd)] {
        let layout = place.path(name);
        made.layout(&layout, packed);
        assert_eq!(run(&format!("oci:{name}"), 1), expected);
        assert_eq!(run(&format!("oci:{name}:latest"), 1), expected, "from the cache");
        place.put(&format!("{name}.tar"), archived(&layout).tar());
        assert_eq!(run(&format!("image:{name}.tar"), 1), expected);
    }
    place.put("saved.tar", made.saved().tar());
    for tag in ["", ":latest", ":made:latest"] {
        assert_eq!(run(&format!("image:saved.tar{tag}"), 1), expected);
    }
    let ran = place.run(&["verify", "oci:gzip"]).code(1);
    assert!(ran.out.contains("layer 1 of 1: RUN pip install torch"), "{}", ran.out);
    let shown = place.run(&["inspect", "oci:gzip", "image:saved.tar"]).code(0).out;
    for part in [
        "image:saved.tar",
        "linux/amd64, 1 layer",
        "torch 2.8.0, CUDA 12.8",
        "driver       525.60.13 or later",
        "natively from 570.26 on",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(shown.contains("\n  Python       3.11 of /opt/venv\n"), "{shown}");
    let json = place.run(&["inspect", "oci:gzip", "--format", "json"]).code(0).json();
    assert_eq!(json["images"][0]["python"], json!({"prefix": "/opt/venv", "version": "3.11"}));
    made.start = json!({
        "Entrypoint": ["python", "a\nb"],
        "Env": ["NVIDIA_REQUIRE_CUDA=cuda>=12.4", "NVIDIA_REQUIRE_DRIVER=driver>=560"],
    });
    place.put("requires.tar", made.saved().tar());
    let shown = place.run(&["inspect", "image:requires.tar"]).code(0).out;
    assert!(shown.contains("  starts       python a b\n"), "{shown}");
    assert!(shown.contains("  driver       560 or later\n"), "{shown}");
    assert!(shown.contains("NVIDIA_REQUIRE_DRIVER asks for driver>=560 (driver 560)"), "{shown}");
    assert_eq!(json["images"][0]["driver"]["least"], "525.60.13");
    // Of the folder that it was made of.
    let folder = place.run(&["inspect", "root"]).code(0).out;
    let below = |shown: &str| {
        shown
            .lines()
            .filter(|line| line.starts_with("  holds") || line.contains("driver "))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(below(&folder), below(&place.run(&["inspect", "oci:gzip"]).code(0).out));
    assert!(folder.starts_with("root\n  Python       3.11 of /opt/venv\n  holds        torch 2.8.0"), "{folder}");
    let json = place.run(&["inspect", "root", "--format", "json"]).code(0).json();
    assert_eq!((&json["images"][0]["path"], &json["images"][0]["layers"]), (&json!("root"), &json!(null)));
    place.run(&["inspect", "root/etc"]).code(2).says(&["error[not-a-subject]", "root/etc is not an environment"]);
    place.run(&["verify", "image:saved.tar:other"]).code(2).says(&["there is no image other in it, only made:latest"]);
    place.run(&["verify", "image:none.tar"]).code(2).says(&["error[cannot-read]", "image:none.tar"]);
    place.run(&["verify", "registry:"]).code(2).says(&["error[not-a-subject]", "registry: names no image"]);
    place.run(&["verify", "registry:a/b:1", "--offline"]).code(2).says(&["error[offline]", "--offline forbids"]);
    place.run(&["verify", "oci:none"]).code(2).says(&["error[cannot-read]", "oci:none"]);
}
