//! `[checks]`: how grave a rule's findings are. A rule that is made milder needs a reason, which reports show.

use std::collections::BTreeMap;

use super::model::{Check, Level};
use super::reader::{Reader, Section};
use super::value::Invalid;
use crate::diag::did_you_mean;

/// The rules that a level can be set for; their names are stable.
pub const RULES: [&str; 85] = [
    "architecture-mismatch",
    "base-digest-drift",
    "cpu-build-installed",
    "cpu-fallback",
    "cuda-compat-wrong-target",
    "cuda-major-mixed",
    "cuda-stub-linked",
    "cudnn-major-mismatch",
    "cudnn-older-than-built",
    "cudnn-sublibrary-missing",
    "cudnn-symbol-missing",
    "cudnn-version-mixed",
    "deleted-mapping",
    "device-cgroup-denied",
    "device-node-missing",
    "device-node-restricted",
    "dockerfile-arg-disagrees",
    "dockerfile-arg-unused",
    "dockerfile-base-cuda",
    "dockerfile-base-torch",
    "dockerfile-cudnn-base",
    "dockerfile-floating-tag",
    "dockerfile-image-deleted",
    "dockerfile-index-computed",
    "dockerfile-index-unknown",
    "dockerfile-torch-not-locked",
    "dockerfile-without-hashes",
    "driver-libraries-missing",
    "driver-library-in-image",
    "driver-minor-version",
    "driver-module-mismatch",
    "driver-not-loaded",
    "driver-too-new",
    "driver-too-old",
    "duplicate-soname",
    "env-variable-renamed",
    "env-variable-unknown",
    "executable-stack",
    "fabric-manager-missing",
    "file-stale",
    "file-unchecked",
    "glibc-too-new",
    "gpu-code-jit",
    "gpu-code-missing",
    "gpu-held-by-other-driver",
    "gpu-hidden",
    "gpu-memory-errors",
    "gpu-missing",
    "gpu-models-mixed",
    "gpu-not-answering",
    "gpu-throttled",
    "image-driver-floor",
    "image-partly-read",
    "infiniband-node-missing",
    "library-modified",
    "library-unreadable",
    "libstdcxx-too-old",
    "loaded-from-elsewhere",
    "loaded-twice",
    "lock-drift",
    "lock-edited",
    "lock-missing",
    "lock-stale",
    "machine-not-target",
    "matrix-old",
    "memlock-limited",
    "mig-empty",
    "nccl-mismatch",
    "not-loaded",
    "nvjitlink-mismatch",
    "open-modules-required",
    "open-modules-unsupported",
    "ptx-jit-unavailable",
    "second-cudnn-in-image",
    "shadowed-library",
    "shm-small",
    "symbol-version-missing",
    "toolkit-newer-than-driver",
    "torch-abi-mismatch",
    "torch-cuda-mismatch",
    "undefined-symbol",
    "unresolved-needed",
    "variable-left-over",
    "wsl-driver-installed",
    "xid-logged",
];

const LEVELS: [(&str, Level); 4] =
    [("off", Level::Off), ("note", Level::Note), ("warning", Level::Warning), ("error", Level::Error)];

/// Reads `[checks]`.
pub(super) fn read(reader: &mut Reader<'_>, section: &Section<'_>) -> BTreeMap<String, Check> {
    let mut checks = BTreeMap::new();
    for rule in section.keys() {
        if !RULES.contains(&rule) {
            let fix = match did_you_mean(rule, RULES) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("rules: {}", RULES.join(", ")),
            };
            let message = format!("unknown rule `{rule}` in {}", section.name);
            reader.problem("unknown-key", &section.key_span(rule), message, fix);
            // One mistake, one error: how its level is written matters once the rule is one.
            continue;
        }
        let (level, reason, span) = match section.table_at(rule, format!("`{rule}` of {}", section.name)) {
            Some(table) => {
                let meant = reader.only(&table, &["level", "reason"], |_| None);
                if !meant.contains(&"level") && !table.has("level") {
                    let message = format!("{} has no `level`", table.name);
                    reader.problem("missing-key", &table.span(), message, "add `level = \"warning\"`");
                }
                let level = reader.value(&table, "level", level);
                let reason = reader.text(&table, "reason").map(|text| text.value.trim().to_owned());
                let reason = reason.filter(|reason| !reason.is_empty());
                let reason = reason.or_else(|| meant.contains(&"reason").then(String::new));
                (level, reason, table.span())
            }
            None => (reader.value(section, rule, level), None, section.value_span(rule)),
        };
        let Some(level) = level else { continue };
        if level < Level::Error && reason.is_none() {
            let name = name(level);
            let message = format!("`{rule}` is set to {name} without a reason");
            let fix = format!("say why it is right here: `{rule} = {{ level = \"{name}\", reason = \"..\" }}`");
            reader.problem("missing-reason", &span, message, fix);
        }
        checks.insert(rule.to_owned(), Check { level, reason });
    }
    checks
}

/// The level's name in the manifest.
pub(super) fn name(level: Level) -> &'static str {
    LEVELS.iter().find(|(_, other)| *other == level).map_or("error", |(name, _)| name)
}

fn level(text: &str) -> Result<Level, Invalid> {
    if let Some((_, level)) = LEVELS.iter().find(|(name, _)| *name == text) {
        return Ok(*level);
    }
    let near = match text.to_lowercase().as_str() {
        "warn" => Some("warning"),
        "allow" | "ignore" | "none" | "disabled" | "false" => Some("off"),
        "deny" | "fail" | "forbid" => Some("error"),
        "info" | "hint" => Some("note"),
        other => did_you_mean(other, LEVELS.map(|(name, _)| name)),
    };
    let fix = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("write one of: {}", LEVELS.map(|(name, _)| name).join(", ")),
    };
    Err(Invalid { code: "invalid-value", message: format!("unknown level `{text}`"), fix: Some(fix) })
}
