//! An index in a folder on this machine.

use gpulock::python::Catalog;
use gpulock::registry::{Mode, Options};

use super::wheels::{Made, recipe};
use super::{client, only_wheel, options, package};

fn folder_index(made: &Made) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("simple/x");
    std::fs::create_dir_all(&page).unwrap();
    let anchor = format!("<a href=\"../../files/{}#sha256={}\">x</a>", made.file, made.sha256);
    std::fs::write(page.join("index.html"), anchor).unwrap();
    std::fs::create_dir(folder.path().join("files")).unwrap();
    std::fs::write(folder.path().join("files").join(&made.file), &made.bytes).unwrap();
    let url = format!("file://{}/simple", folder.path().display());
    (folder, url)
}

#[test]
fn a_folder_is_an_index() {
    let made = recipe("x", "1.0").make();
    let (folder, url) = folder_index(&made);
    let cache = tempfile::tempdir().unwrap();
    for mode in [Mode::Online, Mode::CacheOnly] {
        let client = gpulock::registry::Client::new(Options { mode, ..options(&url, cache.path()) });
        let wheel = only_wheel(&client, "x");
        assert_eq!(client.metadata(&wheel).unwrap().requires.len(), 2);
        assert_eq!(client.libraries(&wheel).unwrap().len(), 1);
        assert!(client.versions("test", &package("y")).unwrap().is_empty());
    }
    std::fs::remove_file(folder.path().join("files").join(&made.file)).unwrap();
    let client = client(&url, cache.path());
    let failure = client.metadata(&only_wheel(&client, "x")).unwrap_err();
    assert!(failure.to_string().contains("No such file"), "{failure}");
    assert_eq!(std::fs::read_dir(cache.path()).unwrap().count(), 0, "a cache would only copy it");
}
