//! Locks, generates and verifies GPU training environments.
//!
//! The pipeline: a [`manifest`] and the [`matrix`] go through [`resolve`] to become a [`lock`]; everything else is
//! rendered from, or checked against, that lock. A module imports only from modules listed above it.

pub mod version;

pub mod diag;

pub mod file;

pub mod digest;

mod child;

pub mod dockerfile;

pub mod python;

pub mod manifest;

pub mod matrix;

pub mod elf;

pub mod registry;

pub mod resolve;

pub mod inventory;

pub mod lock;

pub mod link;

pub mod refresh;

pub mod render;

pub mod check;

pub mod report;

pub mod cli;
