//! The cases of the layer tests, unpacked by umoci: what they expect is what is on the disk then.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::has;
use crate::image_made::cases::{OF_GNU, all};
use crate::image_made::make::{Made, Packed, shown};
use crate::run::folder;

/// The files below a folder as the cases have them.
fn files(root: &Path) -> Vec<String> {
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
            paths.push(entry.path());
        }
    }
    paths.sort();
    let mut seen: BTreeMap<u64, String> = BTreeMap::new();
    let line = |path: &PathBuf| {
        let is = fs::symlink_metadata(path).unwrap();
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        if !is.is_dir() {
            if let Some(first) = seen.get(&is.ino()) {
                return format!("{name} = {first}");
            }
            seen.insert(is.ino(), name.clone());
        }
        let kind = is.file_type();
        match () {
            () if kind.is_dir() => format!("{name} /"),
            () if kind.is_symlink() => format!("{name} -> {}", fs::read_link(path).unwrap().display()),
            () if kind.is_fifo() => format!("{name} |"),
            () if !kind.is_file() => format!("{name} #"),
            () if name.ends_with(".py") => {
                format!("{name} {}", shown(&fs::read_to_string(path).unwrap()))
            }
            () => format!("{name} ({})", is.len()),
        }
    };
    paths.iter().map(line).collect()
}

/// Needs root, for devices.
#[test]
fn network_root_umoci_unpacks_the_same_files() {
    if !crate::run::network() || !has("umoci") {
        return;
    }
    let cases = all();
    let (count, mut wrong) = (cases.len(), Vec::new());
    for (number, case) in cases.into_iter().enumerate() {
        let folder = folder();
        let (layout, bundle) = (folder.path().join("layout"), folder.path().join("bundle"));
        let packed = [Packed::Plain, Packed::Gzip][number % 2];
        Made::of(&case.layers).layout(&layout, packed);
        let image = format!("{}:latest", layout.display());
        let output = if case.name == OF_GNU {
            fs::create_dir_all(bundle.join("rootfs")).unwrap();
            fs::write(folder.path().join("layer.tar"), case.layers[0].tar()).unwrap();
            let mut tar = Command::new("tar");
            tar.arg("-xf").arg(folder.path().join("layer.tar")).arg("-C").arg(bundle.join("rootfs")).output().unwrap()
        } else {
            Command::new("umoci").args(["unpack", "--image", &image]).arg(&bundle).output().unwrap()
        };
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.success() {
            true if files(&bundle.join("rootfs")) == case.files => {}
            true => wrong.push(format!("{}: {:#?}", case.name, files(&bundle.join("rootfs")))),
            false => wrong.push(format!("{}: {said}", case.name)),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{count} images as umoci unpacks them");
}
