//! Two locks, target by target: takes the old and the new, gives what moved.

use std::cmp::Ordering;

use super::model::{Code, Gpu, Lock, Package, Target};
use crate::version::Driver;

/// What differs between two locks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LockDiff {
    /// The targets that differ: the new lock's in its order, then those that are gone.
    pub targets: Vec<TargetDiff>,
    /// Addresses of indexes.
    pub indexes: Vec<Moved>,
}

/// What differs for a target. One that is new or gone has everything on one side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetDiff {
    /// Its name.
    pub name: String,
    /// Whether it is in both locks, or in which.
    pub presence: Presence,
    /// How the least driver moved.
    pub driver: Option<Floor>,
    /// GPUs, and what serves them.
    pub gpus: Vec<Moved>,
    /// What the stack is made of, the image and the variables.
    pub facts: Vec<Moved>,
    /// Packages, torch first.
    pub packages: Vec<Moved>,
}

/// Where a target is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// In the new lock alone.
    Added,
    /// In the old lock alone.
    Removed,
    /// In both.
    Both,
}

/// One thing that moved; absent on the side that does not have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// What it is: `cuDNN`, a package, a GPU.
    pub what: String,
    /// In the old lock.
    pub was: Option<String>,
    /// In the new lock.
    pub is: Option<String>,
}

/// How the least driver that runs a stack moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Floor {
    /// In the old lock; absent where it was unknown.
    pub was: Option<Driver>,
    /// In the new lock; absent where it is unknown.
    pub is: Option<Driver>,
}

impl Floor {
    /// Whether a newer driver is needed than before; `None` where one side is unknown.
    pub fn rises(&self) -> Option<bool> {
        Some(self.was.as_ref()?.cmp(self.is.as_ref()?) == Ordering::Less)
    }
}

impl LockDiff {
    /// From `old` to `new`.
    pub fn new(old: &Lock, new: &Lock) -> Self {
        let here = new.targets.iter().map(|target| (old.target(&target.name), Some(target)));
        let gone = old.targets.iter().filter(|target| new.target(&target.name).is_none());
        let pairs = here.chain(gone.map(|target| (Some(target), None)));
        let targets = pairs.filter_map(|(was, is)| target(old, was, new, is)).collect();
        let indexes = moved(old.indexes.iter(), new.indexes.iter(), |(name, url)| (name.clone(), url.clone()));
        Self { targets, indexes }
    }

    /// Whether nothing that is installed or built differs.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty() && self.indexes.is_empty()
    }
}

fn target(old: &Lock, was: Option<&Target>, new: &Lock, is: Option<&Target>) -> Option<TargetDiff> {
    let floor = |target: Option<&Target>| target.and_then(|target| target.driver.floor.clone());
    let driver = Floor { was: floor(was), is: floor(is) };
    let gpus = |target: Option<&Target>| target.map(|target| target.gpus.clone()).unwrap_or_default();
    let packages = |lock: &Lock, target: Option<&Target>| -> Vec<(String, String)> {
        let Some(target) = target else { return Vec::new() };
        // What everything else follows from comes first.
        let (torch, others): (Vec<_>, Vec<_>) = target.packages.iter().partition(|(name, _)| name.as_str() == "torch");
        let both = torch.into_iter().chain(others);
        both.map(|(name, package)| (name.to_string(), of_package(lock, package))).collect()
    };
    let diff = TargetDiff {
        name: is.or(was)?.name.clone(),
        presence: match (was, is) {
            (None, _) => Presence::Added,
            (_, None) => Presence::Removed,
            _ => Presence::Both,
        },
        driver: (driver.was != driver.is).then_some(driver),
        gpus: moved(gpus(was).iter(), gpus(is).iter(), |gpu| (gpu.name.clone(), of_gpu(gpu))),
        facts: moved(facts(was).into_iter(), facts(is).into_iter(), |pair| pair),
        packages: short(moved(packages(old, was).into_iter(), packages(new, is).into_iter(), |pair| pair)),
    };
    let same = diff.driver.is_none() && diff.gpus.is_empty() && diff.facts.is_empty() && diff.packages.is_empty();
    (!same || diff.presence != Presence::Both).then_some(diff)
}

/// Version, and what else tells one file from another.
fn of_package(lock: &Lock, package: &Package) -> String {
    match lock.wheel(package) {
        Some((file, wheel)) => format!("{} {file} sha256:{} from {}", package.version, wheel.sha256, wheel.index),
        None => format!("{} pending from {}", package.version, lock.index_of(package).unwrap_or("nowhere")),
    }
}

/// Versions alone where those differ; where they are the same, what else does.
fn short(packages: Vec<Moved>) -> Vec<Moved> {
    let version = |text: &String| text.split(' ').next().unwrap_or_default().to_owned();
    let short = |one: Moved| match (one.was.as_ref().map(version), one.is.as_ref().map(version)) {
        (was, is) if was == is => one,
        (was, is) => Moved { was, is, ..one },
    };
    packages.into_iter().map(short).collect()
}

fn of_gpu(gpu: &Gpu) -> String {
    let served = match (&gpu.from, gpu.code) {
        (Some(from), Code::Sass) => format!("runs {from} code"),
        (Some(from), Code::Ptx) => format!("runs {from}, compiled by the driver"),
        _ => "not known whether its code runs".into(),
    };
    format!("{} {served}", gpu.sm)
}

fn facts(target: Option<&Target>) -> Vec<(String, String)> {
    let Some(target) = target else { return Vec::new() };
    let shown = |value: Option<&dyn ToString>| value.map(ToString::to_string);
    let image = target.image.as_ref().and_then(|image| image.base.as_ref());
    let mut facts: Vec<(String, String)> = [
        ("torch", Some(format!("{} ({})", target.torch, target.variant))),
        ("Python", Some(target.python.to_string())),
        ("CUDA", shown(target.cuda.as_ref().map(|value| value as _))),
        ("cuDNN", shown(target.cudnn.as_ref().map(|value| value as _))),
        ("NCCL", shown(target.nccl.as_ref().map(|value| value as _))),
        ("native driver", shown(target.driver.native.as_ref().map(|value| value as _))),
        ("given driver", target.driver.given.clone()),
        ("driver support", target.driver.tier.map(|tier| tier.name().to_owned())),
        ("platform", Some(target.platform.to_string())),
        ("glibc", shown(target.glibc.as_ref().map(|value| value as _))),
        ("image", image.map(|image| image.name.clone())),
        ("image digest", image.and_then(|image| image.digest.clone())),
    ]
    .into_iter()
    .filter_map(|(what, value)| Some((what.to_owned(), value?)))
    .collect();
    facts.extend(target.env.iter().map(|(name, value)| (format!("variable {name}"), value.clone())));
    facts.extend(target.inferred.iter().map(|fact| (format!("inferred: {fact}"), "yes".to_owned())));
    facts
}

/// What is on one side alone or differs: in the new order, then what is gone.
fn moved<T>(
    was: impl Iterator<Item = T>,
    is: impl Iterator<Item = T>,
    pair: impl Fn(T) -> (String, String),
) -> Vec<Moved> {
    let was: Vec<(String, String)> = was.map(&pair).collect();
    let is: Vec<(String, String)> = is.map(&pair).collect();
    let find = |all: &[(String, String)], what: &str| {
        all.iter().find(|(name, _)| name == what).map(|(_, value)| value.clone())
    };
    let mut all = Vec::new();
    for (what, value) in &is {
        let before = find(&was, what);
        if before.as_ref() != Some(value) {
            all.push(Moved { what: what.clone(), was: before, is: Some(value.clone()) });
        }
    }
    for (what, value) in was.iter().filter(|(what, _)| find(&is, what).is_none()) {
        all.push(Moved { what: what.clone(), was: Some(value.clone()), is: None });
    }
    all
}
