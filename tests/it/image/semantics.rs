//! The files that layers make up together.

use std::collections::BTreeMap;
use std::path::Path;

use gpulock::inventory::{FileKind, Root};

use super::cases;
use super::make::{Made, Packed, shown};

/// The files of a root as the cases have them.
pub fn files(root: &Root) -> Vec<String> {
    let mut paths = Vec::new();
    let mut folders = vec![Path::new("/").to_owned()];
    while let Some(folder) = folders.pop() {
        for (name, kind) in root.entries(&folder).unwrap() {
            let path = folder.join(name);
            if kind == FileKind::Folder {
                folders.push(path.clone());
            }
            paths.push(path);
        }
    }
    paths.sort();
    let mut seen: BTreeMap<(u64, u64), String> = BTreeMap::new();
    let line = |path: &std::path::PathBuf| {
        let look = root.look(path).unwrap();
        let name = path.strip_prefix("/").unwrap().to_str().unwrap().to_owned();
        if look.kind != FileKind::Folder {
            if let Some(first) = seen.get(&look.inode) {
                return format!("{name} = {first}");
            }
            seen.insert(look.inode, name.clone());
        }
        match look.kind {
            FileKind::Folder => format!("{name} /"),
            FileKind::Link => format!("{name} -> {}", root.read_link(path).unwrap().display()),
            FileKind::Pipe | FileKind::Socket => format!("{name} |"),
            FileKind::Device => format!("{name} #"),
            FileKind::File if name.ends_with(".py") => {
                let text = String::from_utf8(root.read(path, 1 << 20).unwrap()).unwrap();
                assert_eq!(text.len() as u64, look.size);
                format!("{name} {}", shown(&text))
            }
            FileKind::File => format!("{name} ({})", look.size),
        }
    };
    paths.iter().map(line).collect()
}

#[test]
fn layers_make_up_what_they_make_up_on_a_disk() {
    let cases = cases::all();
    assert!(cases.len() > 30);
    for case in cases {
        let folder = tempfile::tempdir().unwrap();
        Made::of(&case.layers).layout(folder.path(), Packed::Gzip);
        let inventory = super::layout(folder.path(), None).unwrap_or_else(|failure| panic!("{}: {failure}", case.name));
        assert_eq!(files(&inventory.root), case.files, "{}", case.name);
    }
}
