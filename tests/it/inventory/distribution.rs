//! Installed packages and who owns a library.

use std::fs;

use super::{library, package, read, troubles, venv, write};
use gpulock::inventory::DistributionKind;

#[test]
fn a_wheel_as_pip_installs_it() {
    let folder = tempfile::tempdir().unwrap();
    let site = venv(folder.path());
    let info = "nvidia_cudnn_cu12-9.10.2.21.dist-info";
    write(
        &site,
        &format!("{info}/METADATA"),
        "Metadata-Version: 2.1\r\nName: nvidia-cudnn-cu12\r\nVersion: 9.10.2.21\r\nSummary: a\r\n  longer one\r\n\
         Requires-Dist: nvidia-cublas-cu12\r\nrequires-dist: x>=1;\r\n  extra == 'a'\r\n\r\nName: not-this\r\n",
    );
    write(&site, &format!("{info}/INSTALLER"), "pip\n");
    write(&site, &format!("{info}/direct_url.json"), r#"{"url": "https://u:p@host/w.whl", "archive_info": {}}"#);
    write(
        &site,
        &format!("{info}/RECORD"),
        "nvidia/cudnn/lib/libcudnn.so.9,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,64\n\
         nvidia/__init__.py,sha256=x,1\n../../../bin/tool,,\nnvidia/cudnn/lib/libgone.so.9,,5\n",
    );
    write(&site, "nvidia/cudnn/lib/libcudnn.so.9", library("cudnn"));
    let inventory = read(folder.path());
    let [package] = &inventory.packages[..] else { panic!("{:?}", inventory.packages) };
    assert_eq!((package.kind, package.name.as_str()), (DistributionKind::DistInfo, "nvidia-cudnn-cu12"));
    assert_eq!((package.version.as_str(), package.installer.as_deref()), ("9.10.2.21", Some("pip")));
    assert_eq!(package.url.as_deref(), Some("https://host/w.whl"));
    assert_eq!(package.requires, ["nvidia-cublas-cu12", "x>=1; extra == 'a'"]);
    assert_eq!(package.requirements().count(), 2);
    let prefix = folder.path().canonicalize().unwrap();
    let files: Vec<_> = package.files.iter().map(|file| file.path.strip_prefix(&prefix).unwrap().to_owned()).collect();
    let lib = "lib/python3.11/site-packages/nvidia/cudnn/lib";
    assert_eq!(
        files.iter().map(|p| p.to_str().unwrap()).collect::<Vec<_>>(),
        [format!("{lib}/libcudnn.so.9"), "bin/tool".into(), format!("{lib}/libgone.so.9"),]
    );
    assert_eq!((package.files[0].size, package.files[2].size), (Some(64), Some(5)));
    assert_eq!(inventory.libraries()[0].package, Some(0));
}

/// Two versions of one package, after an upgrade that was interrupted, and what pip left behind.
#[test]
fn the_record_with_the_right_size_owns() {
    let folder = tempfile::tempdir().unwrap();
    let site = venv(folder.path());
    let bytes = library("new");
    write(&site, "x/libx.so", &bytes);
    package(&site, "x", "1.0", "x/libx.so,,1\n");
    package(&site, "x", "2.0", &format!("x/libx.so,,{}\n", bytes.len()));
    package(&site, "y", "1.0", "x/libx.so,,3\n");
    package(&site, "~x", "0.9", "x/libx.so,,3\n");
    fs::create_dir_all(site.join("left-1.0.dist-info")).unwrap();
    let inventory = read(folder.path());
    let versions: Vec<_> = inventory.packages.iter().map(|p| format!("{} {}", p.name, p.version)).collect();
    assert_eq!(versions, ["x 1.0", "x 2.0", "y 1.0"]);
    assert_eq!(inventory.libraries()[0].package, Some(1));
}

#[test]
fn a_file_that_nobody_recorded_is_nobodys() {
    let folder = tempfile::tempdir().unwrap();
    let site = venv(folder.path());
    write(&site, "x/libx.so", library("x"));
    assert_eq!(read(folder.path()).libraries()[0].package, None);
}

#[test]
fn eggs() {
    let folder = tempfile::tempdir().unwrap();
    let site = venv(folder.path());
    write(&site, "PyYAML-6.0.egg-info", "Metadata-Version: 1.2\nName: PyYAML\nVersion: 6.0\n");
    write(&site, "apex-0.1-py3.11.egg-info/PKG-INFO", "Metadata-Version: 2.1\nName: apex\nVersion: 0.1\n");
    write(&site, "apex-0.1-py3.11.egg-info/installed-files.txt", "../apex_C.so\n../apex/__init__.py\nPKG-INFO\n");
    write(&site, "apex_C.so", library("apex"));
    let inventory = read(folder.path());
    let shown: Vec<_> = inventory.packages.iter().map(|p| format!("{:?} {} {}", p.kind, p.name, p.version)).collect();
    assert_eq!(shown, ["EggInfo pyyaml 6.0", "EggInfo apex 0.1"]);
    assert_eq!(inventory.libraries()[0].package, Some(1));
}

#[test]
fn conda_and_pip_together() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path();
    let site = prefix.join("lib/python3.11/site-packages");
    write(prefix, "conda-meta/history", "==> 2026 <==\n");
    write(
        prefix,
        "conda-meta/cudnn-9.10.1-h1.json",
        r#"{"name": "cudnn", "version": "9.10.1.4", "build": "h1", "channel": "https://conda.anaconda.org/conda-forge/linux-64",
            "depends": ["cuda-version >=12,<13"], "files": ["lib/libcudnn.so.9", "include/cudnn.h"], "link": {"type": 1},
            "paths_data": {"paths_version": 1, "paths": [
              {"_path": "lib/libcudnn.so.9", "path_type": "hardlink", "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "size_in_bytes": 64},
              {"_path": "lib/libprefixed.so", "path_type": "hardlink", "sha256": "00", "sha256_in_prefix": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "size_in_bytes": 9},
              {"_path": "../outside.so", "path_type": "hardlink"}, {"_path": "include/cudnn.h"}]}}"#,
    );
    write(prefix, "conda-meta/_libgcc_mutex-0.1.json", r#"{"name": "_libgcc_mutex", "version": "0.1", "files": []}"#);
    write(prefix, "conda-meta/broken.json", "{");
    write(prefix, "lib/libcudnn.so.9", library("conda's"));
    write(&site, "torch/lib/libtorch.so", library("torch"));
    package(&site, "torch", "2.8.0", "torch/lib/libtorch.so,,\n");
    let inventory = read(prefix);
    let shown: Vec<_> = inventory.packages.iter().map(|p| format!("{:?} {} {}", p.kind, p.name, p.version)).collect();
    assert_eq!(shown, ["DistInfo torch 2.8.0", "Conda libgcc-mutex 0.1", "Conda cudnn 9.10.1.4"]);
    let cudnn = &inventory.packages[2];
    assert_eq!(
        (cudnn.build.as_deref(), cudnn.requires.as_slice()),
        (Some("h1"), &["cuda-version >=12,<13".to_owned()][..])
    );
    assert_eq!(
        cudnn.files.iter().map(|file| (file.size, file.sha256.is_some())).collect::<Vec<_>>(),
        [(Some(64), true), (None, true)]
    );
    let owners: Vec<_> = inventory.libraries().iter().map(|l| (l.name.as_str(), l.package)).collect();
    assert_eq!(owners, [("lib/libcudnn.so.9", Some(2)), ("torch/lib/libtorch.so", Some(0))]);
    assert_eq!(inventory.subject.kind.name(), "conda");
    let troubles = troubles(&inventory);
    assert!(
        troubles.len() == 1 && troubles[0].starts_with("conda-meta/broken.json: it does not describe"),
        "{troubles:?}"
    );
}

#[test]
fn damaged_records_are_named_and_the_rest_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let site = venv(folder.path());
    package(&site, "good", "1", "good/a.so,,\n");
    fs::create_dir_all(site.join("bad-1.dist-info/METADATA")).unwrap();
    fs::write(site.join("bad-1.dist-info/RECORD"), [0xff, b',', b'\n', b'"', b'a', b'.', b's', b'o', b'\n']).unwrap();
    write(&site, "empty-1.dist-info/METADATA", "");
    let inventory = read(folder.path());
    let shown: Vec<_> = inventory.packages.iter().map(|p| format!("{} {}", p.name, p.version)).collect();
    assert_eq!(shown, ["bad 1", "empty 1", "good 1"]);
    assert_eq!(troubles(&inventory).len(), 1);
    assert!(troubles(&inventory)[0].contains("bad-1.dist-info/METADATA: it cannot be read: it is a folder"));
}

#[test]
fn descriptions_without_end_are_named_and_the_rest_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let site = venv(folder.path());
    package(&site, "good", "1", "good/a.so,,\n");
    package(&site, "many", "1", &"a\n".repeat(1_000_000));
    package(&site, "quoted", "1", &"\"a\"\n".repeat(1_000_000));
    package(&site, "large", "1", "");
    // A gigabyte that takes no room.
    for name in ["METADATA", "RECORD"] {
        fs::File::create(site.join("large-1.dist-info").join(name)).unwrap().set_len(1 << 30).unwrap();
    }
    let inventory = read(folder.path());
    let shown: Vec<_> =
        inventory.packages.iter().map(|p| format!("{} {} {}", p.name, p.version, p.files.len())).collect();
    assert_eq!(shown, ["good 1 1", "many 1 0", "quoted 1 0"]);
    let troubles = troubles(&inventory);
    let said = [
        "large-1.dist-info/RECORD: it cannot be read: it is larger than",
        "many-1.dist-info/RECORD: it has more than 200000 libraries and programs",
        "quoted-1.dist-info/RECORD: it has more than 200000 libraries and programs",
    ];
    assert_eq!(troubles.len(), said.len(), "{troubles:?}");
    troubles.iter().zip(said).for_each(|(trouble, said)| assert!(trouble.starts_with(said), "{trouble}"));
}

/// Paths in a RECORD that lead elsewhere name files elsewhere, which are never libraries of the subject.
#[test]
fn records_may_name_what_is_not_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let site = venv(folder.path());
    let elsewhere = tempfile::tempdir().unwrap();
    let outside = write(elsewhere.path(), "libx.so", library("outside"));
    let record = format!("{}etc/x.so,,\n{},,\n/dev/zero,,\n,,\n\n,\n", "../".repeat(20), outside.display());
    package(&site, "x", "1", &record);
    let inventory = read(folder.path());
    assert_eq!(inventory.packages[0].files.len(), 3);
    assert!(inventory.libraries().is_empty());
    assert_eq!(troubles(&inventory), [""; 0]);
}
