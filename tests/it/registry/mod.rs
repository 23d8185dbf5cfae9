//! The registry client against servers on loopback, and on request against the real index.

mod cache;
mod helper;
mod local;
mod names;
mod network;
mod nginx;
mod nginx_server;
mod oci;
mod pages;
mod patience;
mod proxy;
mod registry_server;
pub mod server;
mod trouble;
mod wheel;
pub mod wheels;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gpulock::python::PackageName;
use gpulock::registry::{Client, Mode, Options, Timing};

/// Options for one index, `test`, that do not look at this machine's environment.
fn options(url: &str, cache: &Path) -> Options {
    let cache = cache.to_str().unwrap().to_owned();
    let env = move |name: &str| (name == "GPULOCK_CACHE_DIR").then(|| cache.clone());
    let mut options = Options::from_environment([("test", url)], &env).unwrap();
    options.timing = Timing {
        connect: Duration::from_secs(5),
        read: Duration::from_millis(500),
        retries: 2,
        backoff: Duration::from_millis(5),
    };
    options
}

fn client(url: &str, cache: &Path) -> Client {
    Client::new(options(url, cache))
}

fn offline(url: &str, cache: &Path) -> Client {
    Client::new(Options { mode: Mode::CacheOnly, ..options(url, cache) })
}

fn package(name: &str) -> PackageName {
    name.parse().unwrap()
}

/// The only wheel that the index lists for `name`.
fn only_wheel(client: &Client, name: &str) -> Arc<gpulock::python::Wheel> {
    let mut wheels = client.list("test", &package(name)).unwrap();
    assert_eq!(wheels.len(), 1);
    wheels.remove(0)
}
