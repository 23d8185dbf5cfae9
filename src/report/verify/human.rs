//! The report for people: what was read, for which machines, each finding with its evidence and fix, and the count.

use std::fmt::Write;

use super::Report;
use crate::diag::Severity;
use crate::report::{Style, findings, human};

/// The report, down to findings of severity `least`.
pub fn report(report: &Report<'_>, least: Severity, style: Style) -> String {
    let mut out = format!("{}\n", human::printable(&headline(report)));
    if let Some(target) = &report.target {
        let gpus: Vec<String> = target.gpus.iter().map(|(name, sm)| named(name, sm)).collect();
        let name = target.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
        let driver = target.driver.as_ref().map_or("no driver declared".into(), |driver| format!("driver {driver}"));
        let gpus = if gpus.is_empty() { "no GPU declared".into() } else { gpus.join(", ") };
        let _ = writeln!(out, "for {}", human::printable(&format!("{name}{gpus}, {driver}")));
    }
    for finding in report.findings.findings.iter().filter(|finding| finding.severity >= least) {
        let _ = write!(out, "\n{}", human::diagnostic(finding, style));
    }
    if let Some(run) = report.run {
        let _ = write!(out, "\n{}", human::printable(&super::run::human(run)));
    }
    out.push('\n');
    if least == Severity::Note {
        // Rules that lack the same thing are one line.
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for (code, reason) in &report.findings.skipped {
            match reasons.iter_mut().find(|(known, _)| known == reason) {
                Some((_, codes)) => codes.push(code),
                None => reasons.push((reason, vec![code])),
            }
        }
        for (reason, codes) in reasons {
            let _ = writeln!(out, "skipped, {reason}: {}", codes.join(", "));
        }
    }
    out + &verdict(report, style) + "\n"
}

fn headline(report: &Report<'_>) -> String {
    let stack = match report.stack.is_empty() {
        true => String::new(),
        false => format!("{}; ", report.stack.join(", ")),
    };
    let files = report.files.map(|files| format!("{files} {}", if files == 1 { "file" } else { "files" }));
    let libraries = (report.files.is_none() || report.libraries > 0).then(|| {
        let word = if report.libraries == 1 { "library" } else { "libraries" };
        format!("{} {word}, {}", report.libraries, size(report.bytes))
    });
    let seen: Vec<String> = files.into_iter().chain(libraries).collect();
    format!("{}: {stack}{}", report.path, seen.join(", "))
}

fn named(name: &str, sm: &str) -> String {
    if name == sm { name.to_owned() } else { format!("{name} ({sm})") }
}

/// `6.5 GB`, in powers of ten as package indexes print sizes.
fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match UNITS.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / *unit as f64),
        None => format!("{bytes} bytes"),
    }
}

fn verdict(report: &Report<'_>, style: Style) -> String {
    let counts = findings::counted(report.findings.findings.iter());
    match (report.count(Severity::Error), report.count(Severity::Warning), counts.is_empty()) {
        (0, 0, true) if report.is_empty => findings::NOTHING.into(),
        (0, 0, false) if report.is_empty => format!("{}; {counts}", findings::NOTHING),
        (0, 0, true) => style.good("clean"),
        (0, 0, false) => style.good(&format!("clean, {counts}")),
        (0, _, _) => counts,
        (_, _, _) => style.error(&counts),
    }
}
