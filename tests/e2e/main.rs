//! End to end: the program as it is built, with real registries and real tools (pip, uv, nginx).
//!
//! Tests named `network_*` ask the registries and run only with GPULOCK_TEST_NETWORK=1; those named `nginx_*` need
//! nginx alone, those named `slurm_*` Slurm and root, those named `network_root_*` root and buildah as well. `cargo test
//! --test e2e -- --nocapture --test-threads=1` shows the figures; GPULOCK_TEST_PROGRAM names another program than the one
//! built with the tests.

mod adopt;
mod agreement;
mod build;
mod buildah;
mod dockerfile;
mod doctor;
mod exports;
mod gpu_code;
mod image;
mod image_made;
mod install;
mod jobs;
mod known;
mod link;
mod matrix;
mod registry_digest;
mod run;
mod same_bytes;
mod token;
mod torch_index;
mod verify;

#[path = "../it/registry/nginx_server.rs"]
mod nginx;
use nginx as nginx_server;
#[path = "../it/registry/registry_server.rs"]
mod registry_server;
#[allow(dead_code)] // The tests of the registry client answer in more ways.
#[path = "../it/registry/server.rs"]
mod server;
#[allow(dead_code)] // The tests of the registry client make more kinds of wheels.
#[path = "../it/registry/wheels.rs"]
mod wheels;
// Optimised, the resolver answers more of the random questions.
#[cfg(not(debug_assertions))]
#[path = "../it/resolve/mod.rs"]
mod resolve;
