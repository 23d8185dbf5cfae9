//! `gpulock.toml` and `[tool.gpulock]`: what is accepted, and what is said about the rest.

mod any;
mod bad;
mod good;
mod init;
mod pyproject;
