//! What the rules look at.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::inventory::Inventory;
use crate::link::LinkModel;
use crate::lock::{Lock, Target};
use crate::matrix::Matrix;
use crate::resolve::Machine;
use crate::version::Glibc;

/// An environment, and what it is to run on.
pub struct Case<'a> {
    /// What was read.
    pub inventory: &'a Inventory,
    /// What loads what.
    pub links: &'a LinkModel,
    /// Facts.
    pub matrix: &'a Matrix,
    /// The machines, where they were declared.
    pub machine: Option<&'a Machine>,
    /// The oldest glibc of the machines, where declared.
    pub glibc: Option<&'a Glibc>,
    /// SHA-256 of the libraries by path, where they were read for it.
    pub digests: Option<&'a BTreeMap<PathBuf, [u8; 32]>>,
    /// The lock's target, where there is a lock.
    pub locked: Option<Locked<'a>>,
}

/// One target of a lock.
#[derive(Debug, Clone, Copy)]
pub struct Locked<'a> {
    /// The lock.
    pub lock: &'a Lock,
    /// The target.
    pub target: &'a Target,
}
