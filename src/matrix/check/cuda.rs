//! `cuda/*.toml` and `driver.toml`.

use super::place::{Step, steps};
use super::{Book, Findings};
use crate::version::{Cuda, CudaRelease};

/// The first CUDA that the matrix describes; facts may name older ones.
const FIRST: Cuda = Cuda { major: 11, minor: 0 };

pub(super) fn check(book: &Book<'_>, findings: &mut Findings) {
    releases(book, findings);
    families(book, findings);
    branches(book, findings);
    forward(book, findings);
}

fn releases(book: &Book<'_>, findings: &mut Findings) {
    for sheet in &book.cudas {
        let file = &sheet.value;
        if file.cuda.to_string() != sheet.stem() {
            let message = format!("CUDA {} does not belong in {}.toml", file.cuda, sheet.stem());
            findings.add("matrix-invalid", message, sheet.at(steps!["cuda"]));
        }
        if let Some(branch) = file.branch {
            book.needs_branch(branch, findings, || sheet.at(steps!["branch"]));
        }
        let versions: Vec<_> = file.releases.iter().map(|row| &row.version).collect();
        findings.ascending(&versions, ToString::to_string, |row| sheet.at(steps!["release", row, "version"]));
        for (i, row) in file.releases.iter().enumerate() {
            if row.version.cuda() != file.cuda {
                let message = format!("{} is no release of CUDA {}", row.version, file.cuda);
                findings.add("matrix-invalid", message, sheet.at(steps!["release", i, "version"]));
            }
            if let Some(driver) = &row.driver {
                book.needs_branch(driver.major(), findings, || sheet.at(steps!["release", i, "driver"]));
            }
        }
    }
}

fn families(book: &Book<'_>, findings: &mut Findings) {
    let Some(sheet) = &book.driver else { return };
    let families: Vec<_> = sheet.value.families.iter().map(|row| row.cuda).collect();
    findings.ascending(&families, |cuda| format!("CUDA {cuda}"), |row| sheet.at(steps!["family", row, "cuda"]));
    for (i, row) in sheet.value.families.iter().enumerate() {
        book.needs_branch(row.floor.major(), findings, || sheet.at(steps!["family", i, "floor"]));
    }
    if !sheet.whole {
        return;
    }
    for cuda in &book.cudas {
        if !families.contains(&cuda.value.cuda.major) {
            let message = format!("the driver floor of CUDA {}.x is not in the matrix", cuda.value.cuda.major);
            findings.dangling(message, cuda.at(steps!["cuda"]), "driver.toml as [[family]]");
        }
    }
}

fn branches(book: &Book<'_>, findings: &mut Findings) {
    let Some(sheet) = &book.driver else { return };
    let branches: Vec<_> = sheet.value.branches.iter().map(|row| row.branch).collect();
    findings.ascending(&branches, |branch| format!("branch {branch}"), |row| sheet.at(steps!["branch", row, "branch"]));
    for (i, row) in sheet.value.branches.iter().enumerate() {
        // Not its minor: a driver may support one that no toolkit was released for (565: 12.7).
        if let Some(cuda) = row.cuda {
            book.needs_family(cuda.major, findings, || sheet.at(steps!["branch", i, "cuda"]));
        }
        if let Some(eol) = &row.eol
            && !is_month_or_day(eol)
        {
            let message = format!("`{eol}` is not a month such as 2026-02");
            findings.add("matrix-invalid", message, sheet.at(steps!["branch", i, "eol"]));
        }
    }
}

fn forward(book: &Book<'_>, findings: &mut Findings) {
    let Some(sheet) = &book.driver else { return };
    let cudas: Vec<_> = sheet.value.forward.iter().map(|row| row.cuda).collect();
    findings.ascending(&cudas, |cuda| format!("CUDA {cuda}"), |row| sheet.at(steps!["forward", row, "cuda"]));
    for (i, row) in sheet.value.forward.iter().enumerate() {
        book.needs_cuda(row.cuda, findings, || sheet.at(steps!["forward", i, "cuda"]));
        for (j, branch) in row.branches.iter().enumerate() {
            book.needs_branch(*branch, findings, || sheet.at(steps!["forward", i, "branches", j]));
        }
    }
}

fn is_month_or_day(text: &str) -> bool {
    super::form::is_day(text) || super::form::is_day(&format!("{text}-01"))
}

impl Book<'_> {
    /// A CUDA that something refers to is described, unless it is older than all that are.
    pub(super) fn needs_cuda(
        &self,
        cuda: Cuda,
        findings: &mut Findings,
        place: impl FnOnce() -> crate::diag::Evidence,
    ) {
        let known = self.cudas.iter().any(|sheet| sheet.value.cuda == cuda);
        if cuda >= FIRST && !known && self.whole("cuda/", &self.cudas) {
            let message = format!("CUDA {cuda} is not in the matrix");
            findings.dangling(message, place(), &format!("the matrix as cuda/{cuda}.toml"));
        }
    }

    /// A CUDA release that something refers to is described; a minor that is not described at all is another finding.
    pub(super) fn needs_release(
        &self,
        release: &CudaRelease,
        findings: &mut Findings,
        place: impl Fn() -> crate::diag::Evidence,
    ) {
        self.needs_cuda(release.cuda(), findings, &place);
        let Some(sheet) = self.cudas.iter().find(|sheet| sheet.value.cuda == release.cuda()) else { return };
        if sheet.whole && !sheet.value.releases.iter().any(|known| known.version == *release) {
            let message = format!("CUDA {release} is not in the matrix");
            findings.dangling(message, place(), &format!("{} as [[release]]", sheet.path));
        }
    }

    /// A CUDA family that something refers to has a driver floor, unless it is older than all that are described.
    pub(super) fn needs_family(
        &self,
        cuda: u32,
        findings: &mut Findings,
        place: impl FnOnce() -> crate::diag::Evidence,
    ) {
        let Some(sheet) = self.driver.as_ref().filter(|sheet| sheet.whole) else { return };
        if cuda >= FIRST.major && !sheet.value.families.iter().any(|row| row.cuda == cuda) {
            let message = format!("CUDA {cuda}.x is not in the matrix");
            findings.dangling(message, place(), "driver.toml as [[family]]");
        }
    }

    /// A driver branch that something refers to is described.
    pub(super) fn needs_branch(
        &self,
        branch: u32,
        findings: &mut Findings,
        place: impl FnOnce() -> crate::diag::Evidence,
    ) {
        let Some(sheet) = self.driver.as_ref().filter(|sheet| sheet.whole) else { return };
        if !sheet.value.branches.iter().any(|row| row.branch == branch) {
            let message = format!("driver branch {branch} is not in the matrix");
            findings.dangling(message, place(), "driver.toml as [[branch]]");
        }
    }
}
