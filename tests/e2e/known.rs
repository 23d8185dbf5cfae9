//! What the matrix knows, read from its files as any other program would: torch builds, the GPU family, the snapshot's
//! date.

use std::path::{Path, PathBuf};

use serde_json::Value;
use toml_edit::{DocumentMut, Item};

/// A CUDA build of torch on the default index.
pub struct Build {
    pub torch: String,
    /// Python versions with a build that is not free-threaded, oldest first: `3.11`.
    pub pythons: Vec<String>,
    /// Its CUDA: `cu128`.
    pub variant: String,
    /// The list of its GPU code.
    pub code: Vec<String>,
    /// The releases that belong to it, best first.
    pub torchvision: Option<String>,
    pub torchaudio: Option<String>,
}

fn matrix(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("compat-matrix").join(path)
}

fn read(path: &Path) -> DocumentMut {
    std::fs::read_to_string(path).unwrap().parse().unwrap()
}

fn strings(item: Option<&Item>) -> Vec<String> {
    let array = item.and_then(Item::as_array);
    array.into_iter().flatten().map(|value| value.as_str().unwrap().to_owned()).collect()
}

/// Numbers of a version, to sort by.
pub fn numbers(version: &str) -> Vec<u32> {
    version.split('.').map(|part| part.parse().unwrap()).collect()
}

/// The CUDA builds of `platform` (`linux-x86_64`) on the default index, oldest torch first.
pub fn builds(platform: &str) -> Vec<Build> {
    let mut builds = Vec::new();
    for file in std::fs::read_dir(matrix("torch")).unwrap() {
        let document = read(&file.unwrap().path());
        for release in document["release"].as_array_of_tables().unwrap() {
            let builds_of = release.get("build").and_then(Item::as_array_of_tables);
            for build in builds_of.into_iter().flatten() {
                let is = |key: &str, value: &str| build[key].as_str() == Some(value);
                if !is("index", "pypi") || !is("platform", platform) || is("variant", "cpu") {
                    continue;
                }
                let tags = strings(build.get("python"));
                let minors = tags.iter().filter_map(|tag| tag.strip_prefix("cp3")?.parse::<u32>().ok());
                let mut minors: Vec<u32> = minors.collect();
                minors.sort_unstable();
                builds.push(Build {
                    torch: release["version"].as_str().unwrap().to_owned(),
                    pythons: minors.iter().map(|minor| format!("3.{minor}")).collect(),
                    variant: build["variant"].as_str().unwrap().to_owned(),
                    code: strings(build.get("code")),
                    torchvision: strings(release.get("torchvision")).into_iter().next(),
                    torchaudio: strings(release.get("torchaudio")).into_iter().next(),
                });
            }
        }
    }
    builds.sort_by_key(|build| numbers(&build.torch));
    builds
}

/// The moment after which uploads are newer than the snapshot, as uv takes it.
pub fn exclude_newer() -> String {
    read(&matrix("snapshot/INDEX.toml"))["exclude-newer"].as_str().unwrap().to_owned()
}

/// Whether a package belongs to the GPU stack.
pub fn is_gpu(package: &str) -> bool {
    strings(read(&matrix("package.toml")).get("gpu")).iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => package.starts_with(start),
        None => package == pattern,
    })
}

/// The only target of a lock that was printed as JSON.
pub fn target(json: &str) -> Value {
    let mut lock: Value = serde_json::from_str(json).unwrap();
    assert_eq!(lock["schema"], "gpulock.lock/1");
    let targets = lock["targets"].as_array_mut().unwrap();
    assert_eq!(targets.len(), 1);
    targets.remove(0)
}

/// A text in a lock that was printed as JSON.
pub fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_else(|| panic!("no text `{key}` in {value}"))
}

/// The packages of a target.
pub fn packages(target: &Value) -> &[Value] {
    target["packages"].as_array().unwrap()
}

/// Bytes to download for a target.
pub fn download(target: &Value) -> u64 {
    packages(target).iter().map(|package| package["size"].as_u64().unwrap()).sum()
}
