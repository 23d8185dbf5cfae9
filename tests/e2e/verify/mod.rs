//! `gpulock verify` on environments that pip or uv made of real wheels.

mod broken;
mod contained;
mod core;
pub mod environment;
mod packages;
mod running;
mod sweep;
mod tried;
mod watched;
