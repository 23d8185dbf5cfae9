//! Against the real index; only with GPULOCK_TEST_NETWORK=1.

use std::time::Instant;

use gpulock::python::Catalog;
use gpulock::registry::{Client, Options, Search};

/// A client for the default index of the matrix, with an empty cache; `None` without the network.
fn client(cache: &std::path::Path) -> Option<Client> {
    if std::env::var("GPULOCK_TEST_NETWORK").as_deref() != Ok("1") {
        println!("skipped: GPULOCK_TEST_NETWORK=1 is not set");
        return None;
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/compat-matrix/index.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let document: toml_edit::DocumentMut = text.parse().unwrap();
    let indexes = document["index"].as_array_of_tables().unwrap();
    let pypi = indexes.iter().find(|index| index["name"].as_str() == Some("pypi")).unwrap();
    let env = |name: &str| std::env::var(name).ok();
    let mut options = Options::from_environment([("pypi", pypi["url"].as_str().unwrap())], &env).unwrap();
    options.cache_dir = cache.into();
    Some(Client::new(options))
}

#[test]
fn network_torch_by_range_requests() {
    let folder = tempfile::tempdir().unwrap();
    let Some(client) = client(folder.path()) else { return };
    let torch = "torch".parse().unwrap();
    let start = Instant::now();
    let release = client.release("pypi", &torch, &"2.9.1".parse().unwrap()).unwrap().unwrap();
    let page = client.traffic();
    println!("page: {page:?} in {:?}", start.elapsed());
    let named = |end: &str| release.wheels.iter().find(|wheel| wheel.name.file.ends_with(end)).unwrap();
    let wheel = named("cp311-cp311-manylinux_2_28_x86_64.whl");

    let start = Instant::now();
    let metadata = client.metadata(wheel).unwrap();
    let after_metadata = client.traffic();
    println!("METADATA: {after_metadata:?} in {:?}", start.elapsed());
    assert!(metadata.requires.iter().any(|one| one.package.as_str() == "nvidia-cudnn-cu12"));

    let start = Instant::now();
    let libraries = client.libraries(wheel).unwrap();
    let after = client.traffic();
    let (requests, bytes) = (after.requests - after_metadata.requests, after.bytes - after_metadata.bytes);
    println!("RECORD of {} bytes: {requests} requests, {bytes} bytes in {:?}", wheel.size.unwrap(), start.elapsed());
    assert!(libraries.iter().any(|library| library.path == "torch/lib/libtorch_cuda.so"));
    assert!(requests <= 8 && bytes <= 3 << 20, "{requests} requests, {bytes} bytes");
}

#[test]
fn network_search_stops_early() {
    let folder = tempfile::tempdir().unwrap();
    let Some(client) = client(folder.path()) else { return };
    let release = client.release("pypi", &"torch".parse().unwrap(), &"2.9.1".parse().unwrap()).unwrap().unwrap();
    let end = "cp311-cp311-manylinux_2_28_x86_64.whl";
    let wheel = release.wheels.iter().find(|wheel| wheel.name.file.ends_with(end)).unwrap();
    let before = client.traffic();
    let found = client
        .search_member(wheel, "torch/version.py", &mut |part| part.windows(11).any(|window| window == b"__version__"));
    let after = client.traffic();
    println!("search: {} requests, {} bytes", after.requests - before.requests, after.bytes - before.bytes);
    assert_eq!(found.unwrap(), Search::Found);
}
