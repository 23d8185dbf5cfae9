//! What the rules look at.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use super::device_code::Offer;
use crate::inventory::Inventory;
use crate::link::LinkModel;
use crate::lock::{Lock, Target};
use crate::matrix::Matrix;
use crate::matrix::requirement::requirements;
use crate::resolve::{DriverAsk, Machine};
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
    /// What the libraries offer the GPUs: judged when a rule first asks.
    pub offers: OnceCell<Vec<Offer<'a>>>,
    /// The lock's target, where there is a lock.
    pub locked: Option<Locked<'a>>,
}

impl<'a> Case<'a> {
    /// The machines and their driver, where one is declared.
    pub fn driver(&self) -> Option<(&'a Machine, &'a DriverAsk)> {
        self.machine.and_then(|machine| Some((machine, machine.driver.as_ref()?)))
    }

    /// What the image requires before it is started, by the name of the variable. Apptainer asks for nothing.
    pub fn image_requirements(&self) -> Vec<(&'a str, String)> {
        if self.inventory.apptainer { Vec::new() } else { requirements(&self.inventory.variables) }
    }
}

/// One target of a lock.
#[derive(Debug, Clone, Copy)]
pub struct Locked<'a> {
    /// The lock.
    pub lock: &'a Lock,
    /// The target.
    pub target: &'a Target,
}
