//! `gpu.toml`.

use std::collections::BTreeMap;

use super::form::Sheet;
use super::place::{Step, steps};
use super::{Book, Findings};
use crate::diag::{Diagnostic, Evidence};
use crate::matrix::schema::GpuFile;
use crate::version::{Capability, CodeKind, GpuCode};

pub(super) fn check(book: &Book<'_>, findings: &mut Findings) {
    let Some(sheet) = &book.gpu else { return };
    gpus(book, sheet, findings);
    products(sheet, findings);
    names(sheet, findings);
    cubins(book, sheet, findings);
    families(sheet, findings);
}

fn gpus(book: &Book<'_>, sheet: &Sheet<'_, GpuFile>, findings: &mut Findings) {
    let rows = &sheet.value.gpus;
    let capabilities: Vec<_> = rows.iter().map(|row| row.capability).collect();
    findings.ascending(&capabilities, ToString::to_string, |row| sheet.at(steps!["gpu", row, "capability"]));
    for (i, row) in rows.iter().enumerate() {
        for (key, cuda) in [("first-cuda", row.first_cuda), ("last-cuda", row.last_cuda)] {
            if let Some(cuda) = cuda {
                book.needs_cuda(cuda, findings, || sheet.at(steps!["gpu", i, key]));
            }
        }
        if let (Some(first), Some(last)) = (row.first_cuda, row.last_cuda)
            && last < first
        {
            let message = format!("its last CUDA, {last}, is older than its first, {first}");
            findings.add("matrix-order", message, sheet.at(steps!["gpu", i, "last-cuda"]));
        }
        if let Some(branch) = row.last_branch {
            book.needs_branch(branch, findings, || sheet.at(steps!["gpu", i, "last-branch"]));
        }
        if let Some(driver) = &row.first_driver {
            book.needs_branch(driver.major(), findings, || sheet.at(steps!["gpu", i, "first-driver"]));
            if row.last_branch.is_some_and(|last| last < driver.major()) {
                let message = format!("its last driver branch is older than its first driver, {driver}");
                findings.add("matrix-order", message, sheet.at(steps!["gpu", i, "last-branch"]));
            }
        }
    }
}

fn products(sheet: &Sheet<'_, GpuFile>, findings: &mut Findings) {
    for (i, row) in sheet.value.products.iter().enumerate() {
        sheet.value.needs_gpu(row.capability, sheet, findings, || sheet.at(steps!["product", i, "capability"]));
        if row.names.is_empty() {
            findings.add("matrix-invalid", "a product row without names", sheet.at(steps!["product", i, "names"]));
        }
    }
    for (i, row) in sheet.value.ambiguous.iter().enumerate() {
        // What the name may mean besides can be older than all that the matrix describes.
        let oldest = sheet.value.gpus.iter().map(|row| row.capability).min();
        for (j, capability) in row.capabilities.iter().enumerate().filter(|(_, c)| Some(**c) >= oldest) {
            let place = || sheet.at(steps!["ambiguous", i, "capabilities", j]);
            sheet.value.needs_gpu(*capability, sheet, findings, place);
        }
    }
}

/// Names that are the same to the matcher must be of one capability, unless the matrix says that they are ambiguous.
fn names(sheet: &Sheet<'_, GpuFile>, findings: &mut Findings) {
    let matcher = &sheet.value.names;
    let mut ambiguous: BTreeMap<String, usize> = BTreeMap::new();
    for (i, row) in sheet.value.ambiguous.iter().enumerate() {
        if let Some(first) = ambiguous.insert(matcher.normal_form(&row.name), i) {
            let place = sheet.at(steps!["ambiguous", i, "name"]);
            let problem = Diagnostic::error("matrix-duplicate", format!("`{}` is there twice", row.name), place);
            findings.list.push(problem.and(sheet.at(steps!["ambiguous", first, "name"])));
        }
    }
    let mut seen: BTreeMap<String, (Capability, &str, usize, usize)> = BTreeMap::new();
    for (i, row) in sheet.value.products.iter().enumerate() {
        for (j, name) in row.names.iter().enumerate() {
            let normal = matcher.normal_form(name);
            let place = |i, j| sheet.at(steps!["product", i, "names", j]);
            let Some((capability, other, oi, oj)) = seen.get(&normal).copied() else {
                seen.insert(normal, (row.capability, name, i, j));
                continue;
            };
            if other == name && capability == row.capability {
                findings.twice(format_args!("`{name}`"), place(i, j), place(oi, oj));
            } else if capability != row.capability && !ambiguous.contains_key(&normal) {
                let message = format!(
                    "`{name}` ({}) and `{other}` ({capability}) are the same name once optional words are left out",
                    row.capability
                );
                let problem = Diagnostic::error("matrix-collision", message, place(i, j)).and(place(oi, oj));
                findings.list.push(problem.fix("name both in an [[ambiguous]] row, or correct one"));
            }
        }
    }
}

fn cubins(book: &Book<'_>, sheet: &Sheet<'_, GpuFile>, findings: &mut Findings) {
    let codes: Vec<_> = sheet.value.cubins.iter().map(|row| row.code).collect();
    findings.ascending(&codes, ToString::to_string, |row| sheet.at(steps!["cubin", row, "code"]));
    for (i, row) in sheet.value.cubins.iter().enumerate() {
        plain_sass(row.code, None, findings, || sheet.at(steps!["cubin", i, "code"]));
        let lists = [("except", Some(&row.except)), ("only", row.only.as_ref())];
        for (key, list) in lists.into_iter().filter_map(|(key, list)| Some((key, list?))) {
            for (j, capability) in list.iter().enumerate() {
                sheet.value.needs_gpu(*capability, sheet, findings, || sheet.at(steps!["cubin", i, key, j]));
            }
        }
        if let Some(cuda) = row.except_until_cuda {
            book.needs_cuda(cuda, findings, || sheet.at(steps!["cubin", i, "except-until-cuda"]));
        }
        let place = || sheet.at(steps!["cubin", i]);
        match (row.from, row.below, &row.only) {
            (None, None, Some(_)) => {}
            (Some(from), below, None) if below.is_none_or(|below| from < below) => {}
            (Some(_), Some(_), None) => findings.add("matrix-order", "`below` must be above `from`", place()),
            _ => findings.add("matrix-invalid", "a cubin row has either `from` and `below`, or `only`", place()),
        }
    }
}

fn families(sheet: &Sheet<'_, GpuFile>, findings: &mut Findings) {
    let codes: Vec<_> = sheet.value.families.iter().map(|row| row.code).collect();
    findings.ascending(&codes, ToString::to_string, |row| sheet.at(steps!["family", row, "code"]));
    for (i, row) in sheet.value.families.iter().enumerate() {
        plain_sass(row.code, Some('f'), findings, || sheet.at(steps!["family", i, "code"]));
        for (j, capability) in row.serves.iter().enumerate() {
            sheet.value.needs_gpu(*capability, sheet, findings, || sheet.at(steps!["family", i, "serves", j]));
        }
    }
}

fn plain_sass(code: GpuCode, suffix: Option<char>, findings: &mut Findings, place: impl FnOnce() -> Evidence) {
    if code.kind != CodeKind::Sass || code.suffix != suffix {
        let example = suffix.map_or("sm_90", |_| "sm_100f");
        findings.add("matrix-invalid", format!("`{code}` does not belong here: code such as {example}"), place());
    }
}

impl GpuFile {
    fn needs_gpu(
        &self,
        capability: Capability,
        sheet: &Sheet<'_, Self>,
        findings: &mut Findings,
        place: impl FnOnce() -> Evidence,
    ) {
        if sheet.whole && !self.gpus.iter().any(|row| row.capability == capability) {
            let message = format!("compute capability {capability} is not in the matrix");
            findings.dangling(message, place(), "gpu.toml as [[gpu]]");
        }
    }
}

impl Book<'_> {
    /// SASS of a build has a rule that says where it runs.
    pub(super) fn needs_code(&self, code: GpuCode, findings: &mut Findings, place: impl FnOnce() -> Evidence) {
        let Some(sheet) = self.gpu.as_ref().filter(|sheet| sheet.whole) else { return };
        let (known, table) = match (code.kind, code.suffix) {
            (CodeKind::Ptx, _) => return,
            (_, None) => (sheet.value.cubins.iter().any(|row| row.code == code), "cubin"),
            (_, Some('f')) => (sheet.value.families.iter().any(|row| row.code == code), "family"),
            (_, Some(_)) => (sheet.value.gpus.iter().any(|row| row.capability == code.capability), "gpu"),
        };
        if !known {
            let message = format!("the matrix does not say where {code} runs");
            findings.dangling(message, place(), &format!("gpu.toml as [[{table}]]"));
        }
    }

    /// A capability that another file names is described.
    pub(super) fn needs_gpu(&self, capability: Capability, findings: &mut Findings, place: impl FnOnce() -> Evidence) {
        if let Some(sheet) = &self.gpu {
            sheet.value.needs_gpu(capability, sheet, findings, place);
        }
    }
}
