//! Python environments.

use std::fs;
use std::path::Path;

use super::{library, link, names, package, read, venv, write};
use gpulock::inventory::{Inventory, Options, PythonKind};

fn sites(inventory: &Inventory, root: &Path) -> Vec<String> {
    let root = root.canonicalize().unwrap();
    let sites = inventory.pythons.iter().flat_map(|python| &python.site_packages);
    sites.map(|site| site.strip_prefix(&root).unwrap_or(site).display().to_string()).collect()
}

#[test]
fn a_venv_knows_its_interpreter() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("base");
    write(&base, "bin/python3.11", library("python"));
    write(&base, "lib/libpython3.11.so.1.0", library("libpython"));
    let prefix = folder.path().join("venv");
    write(&prefix, "pyvenv.cfg", format!("home = {}\nversion_info = 3.11.7.final.0\n", base.join("bin").display()));
    fs::create_dir_all(prefix.join("lib/python3.11/site-packages")).unwrap();
    fs::create_dir_all(prefix.join("lib/python3.9/site-packages")).unwrap();
    link("lib", &prefix, "lib64");
    link(base.join("bin/python3.11"), &prefix, "bin/python");
    let inventory = read(&prefix);
    let [python] = &inventory.pythons[..] else { panic!("{:?}", inventory.pythons) };
    assert_eq!((python.kind, python.version.unwrap().to_string()), (PythonKind::Venv, "3.11".into()));
    assert!(python.command.as_ref().unwrap().ends_with("venv/bin/python"));
    assert!(python.interpreter.as_ref().unwrap().ends_with("base/bin/python3.11"));
    assert!(python.shared_library.as_ref().unwrap().ends_with("base/lib/libpython3.11.so.1.0"));
    assert_eq!(sites(&inventory, &prefix), ["lib/python3.11/site-packages"]);
}

/// The variable of the job, and none of the test's own.
#[test]
fn pythonpath_comes_before_the_packages_of_a_venv() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().join("venv");
    write(&prefix, "pyvenv.cfg", "home = /usr/bin\nversion = 3.11.7\n");
    package(&prefix.join("lib/python3.11/site-packages"), "own", "1.0", "");
    let deps = folder.path().canonicalize().unwrap().join("deps");
    package(&deps, "other", "1.0", "");
    let variables = [("PYTHONPATH".to_owned(), format!("{}:/nowhere", deps.display()))].into();
    let inventory = Inventory::read(&prefix, &Options { variables, jobs: None }).unwrap();
    assert_eq!(inventory.pythons[0].site_packages[0], deps);
    let packages = |inventory: &Inventory| -> Vec<String> {
        inventory.packages.iter().map(|package| package.name.to_string()).collect()
    };
    assert_eq!(packages(&inventory), ["other", "own"]);
    assert_eq!(packages(&read(&prefix)), ["own"]);
}

#[test]
fn a_venv_may_share_the_packages_of_its_base() {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("base");
    let shared = base.join("lib/python3.11/site-packages");
    write(&shared, "torch/libtorch.so", library("torch"));
    package(&shared, "torch", "2.8.0", "torch/libtorch.so,,\n");
    let prefix = folder.path().join("venv");
    let site = venv(&prefix);
    package(&site, "x", "1", "x/libx.so,,\n");
    write(&site, "x/libx.so", library("x"));
    let config = |shares: bool| {
        let home = base.join("bin");
        format!("home = {}\ninclude-system-site-packages = {shares}\nversion = 3.11.7\n", home.display())
    };
    write(&prefix, "pyvenv.cfg", config(false));
    assert_eq!(names(&read(&prefix)), ["x/libx.so"]);
    write(&prefix, "pyvenv.cfg", config(true));
    let inventory = read(&prefix);
    assert_eq!(names(&inventory), ["torch/libtorch.so", "x/libx.so"]);
    assert_eq!(inventory.packages.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["x", "torch"]);
}

#[test]
fn pth_files_add_folders_and_run_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let site = venv(folder.path());
    let elsewhere = tempfile::tempdir().unwrap();
    write(elsewhere.path(), "ext.so", library("ext"));
    let mark = elsewhere.path().join("ran");
    write(
        &site,
        "a.pth",
        format!("# comment\nimport os; open({mark:?}, 'w')\n\n{}\nsub\nnowhere\n/\n", elsewhere.path().display()),
    );
    write(&site, ".hidden.pth", "sub2\n");
    fs::create_dir_all(site.join("sub")).unwrap();
    fs::create_dir_all(site.join("sub2")).unwrap();
    let inventory = read(folder.path());
    let own = "lib/python3.11/site-packages";
    let added = elsewhere.path().canonicalize().unwrap().display().to_string();
    assert_eq!(sites(&inventory, folder.path()), [own.to_owned(), added, format!("{own}/sub")]);
    assert_eq!(names(&inventory), ["ext.so"]);
    assert!(!mark.exists());
}

#[test]
fn all_pythons_of_a_root_filesystem() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(root, "etc/os-release", "ID=ubuntu\n");
    write(root, "usr/bin/python3.10", library("python"));
    link("python3.10", root, "usr/bin/python3");
    package(&root.join("usr/lib/python3/dist-packages"), "six", "1.16", "");
    package(&root.join("usr/local/lib/python3.10/dist-packages"), "torch", "2.8.0", "");
    venv(&root.join("opt/venv"));
    write(root, "opt/conda/conda-meta/history", "");
    write(root, "opt/conda/bin/python3.12", library("conda's python"));
    fs::create_dir_all(root.join("opt/conda/lib/python3.12/site-packages")).unwrap();
    write(root, "proc/1/root/opt/venv/pyvenv.cfg", "");
    let inventory = read(root);
    let shown: Vec<_> = inventory
        .pythons
        .iter()
        .map(|p| format!("{:?} {} {}", p.kind, p.prefix.display(), p.version.map_or("-".into(), |v| v.to_string())))
        .collect();
    assert_eq!(shown, ["Conda /opt/conda 3.12", "Venv /opt/venv 3.11", "Base /usr 3.10"]);
    let system = &inventory.pythons[2];
    assert_eq!(system.interpreter.as_deref(), Some(Path::new("/usr/bin/python3.10")));
    let mut sites: Vec<_> = system.site_packages.iter().map(|site| site.to_str().unwrap()).collect();
    sites.sort_unstable();
    assert_eq!(sites, ["/usr/lib/python3/dist-packages", "/usr/local/lib/python3.10/dist-packages"]);
    assert_eq!(inventory.packages.len(), 2);
}
