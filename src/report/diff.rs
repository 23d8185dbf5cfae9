//! What moved between two locks, for people, for a pull request and for programs.

use std::fmt::Write;

use serde::Serialize;

use super::human::one_line;
use super::json::text;
use super::markdown::{code, words};
use crate::lock::{Floor, LockDiff, Moved, Presence, TargetDiff};

/// Lines of text.
pub fn human(diff: &LockDiff) -> String {
    let mut out = String::new();
    for target in &diff.targets {
        let _ = writeln!(out, "{}", one_line(&headline(target)));
        if let Some(floor) = &target.driver {
            let _ = writeln!(out, "  {}", one_line(&driver(floor)));
        }
        for (title, all) in parts(target) {
            if !all.is_empty() {
                let _ = writeln!(out, "  {title}");
            }
            for one in all {
                let _ = writeln!(out, "    {}", one_line(&format!("{} {}", one.what, change(one))));
            }
        }
    }
    for one in &diff.indexes {
        let _ = writeln!(out, "index {}", one_line(&format!("{} {}", one.what, change(one))));
    }
    if diff.is_empty() {
        out.push_str("no difference in what is installed\n");
    }
    out
}

/// A heading and a table for each target.
pub fn markdown(diff: &LockDiff) -> String {
    let mut out = String::new();
    for target in &diff.targets {
        let _ = writeln!(out, "### {}\n", words(&headline(target)));
        if let Some(floor) = &target.driver {
            let _ = writeln!(out, "**{}**\n", words(&driver(floor)));
        }
        for (title, all) in parts(target).into_iter().filter(|(_, all)| !all.is_empty()) {
            let _ = writeln!(out, "| {title} | was | is |\n|---|---|---|");
            for one in all {
                let side = |side: &Option<String>| side.as_deref().map_or_else(|| "-".to_owned(), code);
                let _ = writeln!(out, "| {} | {} | {} |", words(&one.what), side(&one.was), side(&one.is));
            }
            out.push('\n');
        }
    }
    for one in &diff.indexes {
        let _ = writeln!(out, "- index {} {}", code(&one.what), words(&change(one)));
    }
    if diff.is_empty() {
        out.push_str("No difference in what is installed.\n");
    }
    out.trim_end().to_owned() + "\n"
}

/// `gpulock.diff/1`.
pub fn json(diff: &LockDiff) -> String {
    #[derive(Serialize)]
    struct Json<'d> {
        schema: &'static str,
        targets: Vec<TargetJson<'d>>,
        indexes: Vec<MovedJson<'d>>,
    }
    #[derive(Serialize)]
    struct TargetJson<'d> {
        name: &'d str,
        change: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        driver: Option<FloorJson>,
        gpus: Vec<MovedJson<'d>>,
        facts: Vec<MovedJson<'d>>,
        packages: Vec<MovedJson<'d>>,
    }
    #[derive(Serialize)]
    struct FloorJson {
        was: Option<String>,
        is: Option<String>,
    }
    #[derive(Serialize)]
    struct MovedJson<'d> {
        what: &'d str,
        was: Option<&'d str>,
        is: Option<&'d str>,
    }
    fn all(moved: &[Moved]) -> Vec<MovedJson<'_>> {
        moved.iter().map(|one| MovedJson { what: &one.what, was: one.was.as_deref(), is: one.is.as_deref() }).collect()
    }
    let shown = |version: &Option<crate::version::Driver>| version.as_ref().map(ToString::to_string);
    let targets = diff.targets.iter().map(|target| TargetJson {
        name: &target.name,
        change: match target.presence {
            Presence::Added => "added",
            Presence::Removed => "removed",
            Presence::Both => "changed",
        },
        driver: target.driver.as_ref().map(|floor| FloorJson { was: shown(&floor.was), is: shown(&floor.is) }),
        gpus: all(&target.gpus),
        facts: all(&target.facts),
        packages: all(&target.packages),
    });
    text(&Json { schema: "gpulock.diff/1", targets: targets.collect(), indexes: all(&diff.indexes) })
}

fn headline(target: &TargetDiff) -> String {
    let what = match target.presence {
        Presence::Added => " is new",
        Presence::Removed => " is gone",
        Presence::Both => "",
    };
    format!("target {}{what}", target.name)
}

fn driver(floor: &Floor) -> String {
    let shown = |version: &Option<crate::version::Driver>| version.as_ref().map_or("unknown".into(), |v| v.to_string());
    let follows = match floor.rises() {
        Some(true) => ": machines with an older one drop out",
        Some(false) => ": older ones will do",
        None => "",
    };
    format!("driver floor {} -> {}{follows}", shown(&floor.was), shown(&floor.is))
}

fn parts(target: &TargetDiff) -> [(&'static str, &[Moved]); 3] {
    [("GPUs", &target.gpus), ("stack", &target.facts), ("packages", &target.packages)]
}

fn change(moved: &Moved) -> String {
    match (&moved.was, &moved.is) {
        (Some(was), Some(is)) => format!("{was} -> {is}"),
        (None, Some(is)) => format!("added: {is}"),
        (Some(was), None) => format!("removed: {was}"),
        (None, None) => String::new(),
    }
}
