//! What a path is, and what is said of one that is nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{library, link, names, package, read, venv, write};
use gpulock::diag::{Class, Diagnostic};
use gpulock::inventory::{Inventory, Options, SubjectKind};

fn refused(path: &Path) -> Diagnostic {
    let failure = Inventory::read(path, &Options::default()).unwrap_err();
    assert_eq!(failure.class, Class::Unanswerable);
    failure.diagnostics.into_iter().next().unwrap()
}

#[test]
fn every_kind() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let site = venv(&at("venv"));
    package(&at("target"), "x", "1", "");
    write(&at("conda"), "conda-meta/history", "");
    write(&at("root"), "etc/ld.so.conf", "");
    write(&at("root"), "usr/lib/x", "");
    fs::create_dir_all(at("usr/lib/python3/dist-packages")).unwrap();
    write(&site, "x/libx.so", library("x"));
    let kind = |path: &Path| read(path).subject.kind;
    assert_eq!(kind(&at("venv")), SubjectKind::Venv);
    assert_eq!(kind(&site), SubjectKind::SitePackages);
    assert_eq!(kind(&at("target")), SubjectKind::SitePackages);
    assert_eq!(kind(&at("usr/lib/python3/dist-packages")), SubjectKind::SitePackages);
    assert_eq!(kind(&at("conda")), SubjectKind::Conda);
    assert_eq!(kind(&at("root")), SubjectKind::RootFilesystem);
    assert_eq!(kind(&site.join("x/libx.so")), SubjectKind::Library);
}

#[test]
fn a_site_packages_folder_belongs_to_its_venv() {
    let folder = tempfile::tempdir().unwrap();
    let site = venv(folder.path());
    let inventory = read(&site);
    assert_eq!(inventory.pythons[0].prefix, folder.path().canonicalize().unwrap());
    assert_eq!(inventory.pythons[0].version.unwrap().to_string(), "3.11");
}

#[test]
fn one_library_is_read_in_its_environment() {
    let folder = tempfile::tempdir().unwrap();
    let site = venv(folder.path());
    write(&site, "x/libx.so", library("x"));
    write(&site, "x/liby.so", library("y"));
    package(&site, "x", "1", "x/libx.so,,\n");
    link("x/libx.so", &site, "link.so");
    let inventory = read(site.join("x/libx.so"));
    assert_eq!(names(&inventory), ["x/libx.so"]);
    assert_eq!((inventory.packages.len(), inventory.libraries()[0].package), (1, Some(0)));
    // `$ORIGIN` is where the link is.
    let inventory = read(site.join("link.so"));
    assert_eq!((names(&inventory), inventory.libraries()[0].package), (vec!["link.so"], Some(0)));
    assert!(inventory.libraries()[0].path.ends_with("x/libx.so"));
}

#[test]
fn what_is_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    assert!(refused(&at("nowhere")).message.ends_with("nowhere does not exist"));
    write(folder.path(), "text", "text");
    let text = refused(&at("text"));
    assert!(text.message.ends_with("text is neither an ELF file nor a wheel"), "{}", text.message);
    write(folder.path(), "empty.so", "");
    assert!(refused(&at("empty.so")).message.contains("neither"));
    assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    let pipe = refused(&at("pipe"));
    assert!(pipe.message.ends_with("pipe is neither a file nor a folder"), "{}", pipe.message);
    assert!(refused(Path::new("/dev/zero")).message.ends_with("is neither a file nor a folder"));
    link("b", folder.path(), "a");
    link("a", folder.path(), "b");
    assert!(refused(&at("a")).message.ends_with("a cannot be read"));
    fs::create_dir(at("folder")).unwrap();
    assert!(refused(&at("folder")).message.ends_with("folder is not an environment"));
}

#[test]
fn the_environment_in_a_project_is_named() {
    let folder = tempfile::tempdir().unwrap();
    venv(&folder.path().join(".venv"));
    let fix = refused(folder.path()).fix.unwrap();
    assert_eq!(fix, format!("name the environment in it: {}/.venv", folder.path().display()));
    let python = tempfile::tempdir().unwrap();
    fs::create_dir_all(python.path().join("lib/python3.12/site-packages")).unwrap();
    assert!(refused(python.path()).fix.unwrap().ends_with("/lib/python3.12/site-packages"));
}

#[test]
fn variables_are_those_that_are_given() {
    let folder = tempfile::tempdir().unwrap();
    venv(folder.path());
    assert!(read(folder.path()).variables.is_empty());
    let variables = [("LD_LIBRARY_PATH".to_owned(), "/x".to_owned())].into();
    let options = Options { variables, jobs: None };
    assert_eq!(Inventory::read(folder.path(), &options).unwrap().variables["LD_LIBRARY_PATH"], "/x");
}
