//! End to end: the program as it is built, with real registries and real tools (pip, uv, nginx).
//!
//! Tests named `network_*` ask the registries and run only with GPULOCK_TEST_NETWORK=1; those named `nginx_*` need
//! nginx alone, those named `slurm_*` Slurm and root. `cargo test --release --test e2e -- --nocapture --test-threads=1`
//! shows the figures.

mod adopt;
mod agreement;
mod dockerfile;
mod exports;
mod gpu_code;
mod install;
mod jobs;
mod known;
mod link;
mod matrix;
mod run;
mod same_bytes;
mod torch_index;
mod verify;

#[path = "../it/registry/nginx_server.rs"]
mod nginx;
#[allow(dead_code)] // The tests of the registry client make more kinds of wheels.
#[path = "../it/registry/wheels.rs"]
mod wheels;
// Optimised, the resolver answers more of the random questions.
#[cfg(not(debug_assertions))]
#[path = "../it/resolve/mod.rs"]
mod resolve;
