//! JSON Schemas (draft 2020-12) of what gpulock reads and prints.
//!
//! Results are open: fields may be added to them. The manifest is closed, as its reader is: unknown keys are errors.

/// One schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schema {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it is the schema of.
    pub about: &'static str,
    /// The schema; ends with a line feed.
    pub text: &'static str,
}

/// All schemas.
pub const ALL: [Schema; 10] = [
    Schema {
        name: "manifest",
        about: "gpulock.toml, or [tool.gpulock] of pyproject.toml",
        text: include_str!("schema/manifest.json"),
    },
    Schema { name: "lock", about: "gpulock.lock/1: the lock as JSON", text: include_str!("schema/lock.json") },
    Schema {
        name: "conflict",
        about: "gpulock.conflict/1: why there is no stack, and what would give one",
        text: include_str!("schema/conflict.json"),
    },
    Schema {
        name: "error",
        about: "gpulock.error/1: why a command gave no result",
        text: include_str!("schema/error.json"),
    },
    Schema {
        name: "why",
        about: "gpulock.why/1: why a package has its version",
        text: include_str!("schema/why.json"),
    },
    Schema {
        name: "report",
        about: "gpulock.report/1: what `verify` and `check` found",
        text: include_str!("schema/report.json"),
    },
    Schema {
        name: "doctor",
        about: "gpulock.doctor/1: what `doctor` says of a machine",
        text: include_str!("schema/doctor.json"),
    },
    Schema {
        name: "diff",
        about: "gpulock.diff/1: what moved between two locks",
        text: include_str!("schema/diff.json"),
    },
    Schema {
        name: "explain",
        about: "gpulock.explain/1: what `explain` knows of a code or a message",
        text: include_str!("schema/explain.json"),
    },
    Schema {
        name: "written",
        about: "gpulock.written/1: the files that a command wrote",
        text: include_str!("schema/written.json"),
    },
];
