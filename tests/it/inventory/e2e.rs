//! Real environments, compared with what their own Python and `find` say of them.
//!
//! `GPULOCK_TEST_ENVIRONMENTS` names them, separated by colons; without it nothing is compared.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{names, read};
use gpulock::inventory::Role;

fn environments() -> Vec<PathBuf> {
    let named = std::env::var("GPULOCK_TEST_ENVIRONMENTS").unwrap_or_default();
    named.split(':').filter(|path| !path.is_empty()).map(PathBuf::from).collect()
}

fn python(prefix: &Path, code: &str, argument: &Path) -> String {
    let output = Command::new(prefix.join("bin/python")).args(["-I", "-c", code]).arg(argument).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn packages_are_those_of_importlib() {
    const CODE: &str = "import importlib.metadata as m, json, os, sys\n\
        for d in m.distributions():\n print(d.metadata['Name'], d.version, len(d.requires or []), d.read_text('INSTALLER') and d.read_text('INSTALLER').strip(), sep='\\t')";
    for prefix in environments() {
        let theirs: BTreeSet<String> =
            python(&prefix, CODE, Path::new("")).lines().map(|line| line.to_lowercase().replace('_', "-")).collect();
        let inventory = read(&prefix);
        let ours: BTreeSet<String> = inventory
            .packages
            .iter()
            .map(|p| {
                format!("{}\t{}\t{}\t{}", p.name, p.version, p.requires.len(), p.installer.as_deref().unwrap_or("none"))
            })
            .map(|line| line.to_lowercase())
            .collect();
        assert_eq!(ours, theirs, "{}", prefix.display());
        assert!(inventory.troubles.is_empty(), "{:?}", inventory.troubles);
    }
}

#[test]
fn owners_are_those_of_importlib() {
    const CODE: &str = "import importlib.metadata as m, os, sys\n\
        for d in m.distributions():\n for f in d.files or []:\n  if ('.so.' in f.name or f.name.endswith('.so')) and os.path.exists(f.locate()): print(f, d.metadata['Name'].lower().replace('_', '-'), f.size, sep='\\t')";
    for prefix in environments() {
        let theirs: BTreeSet<String> = python(&prefix, CODE, Path::new("")).lines().map(str::to_owned).collect();
        let inventory = read(&prefix);
        let libraries = inventory.libraries().iter().filter(|library| library.role == Role::Library);
        let ours: BTreeSet<String> = libraries
            .map(|l| {
                format!("{}\t{}\t{}", l.name, l.package.map_or("-", |at| inventory.packages[at].name.as_str()), l.size)
            })
            .collect();
        assert_eq!(ours, theirs, "{}", prefix.display());
    }
}

#[test]
fn libraries_are_those_that_find_finds() {
    for prefix in environments() {
        let output = Command::new("find")
            .arg(&prefix)
            .args(["(", "-name", "*.so", "-o", "-name", "*.so.*", ")", "-type", "f", "-printf", "%i\\n"])
            .output()
            .unwrap();
        let inodes: BTreeSet<u64> =
            String::from_utf8(output.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect();
        let inventory = read(&prefix);
        let libraries = inventory.libraries().iter().filter(|library| library.role == Role::Library);
        assert_eq!(libraries.map(|library| library.inode.1).collect::<BTreeSet<_>>(), inodes, "{}", prefix.display());
        assert!(!names(&inventory).is_empty());
    }
}

#[test]
fn folders_are_those_of_site() {
    const CODE: &str = "import site, os\nfor p in site.getsitepackages(): print(os.path.realpath(p))";
    for prefix in environments() {
        let inventory = read(&prefix);
        let theirs: BTreeSet<PathBuf> = python(&prefix, CODE, Path::new("")).lines().map(PathBuf::from).collect();
        let ours: BTreeSet<PathBuf> = inventory.pythons[0].site_packages.iter().cloned().collect();
        assert_eq!(ours, theirs);
    }
}
