//! `torch/*.toml`.

use super::form::{Sheet, is_day};
use super::place::{Step, steps};
use super::{Book, Findings};
use crate::diag::Evidence;
use crate::matrix::schema::{TorchBuildRow, TorchFile};
use crate::python::{PythonVersion, Requirement};
use crate::version::{CudaRelease, Cudnn, Pep440, Specifiers};

pub(super) fn check(book: &Book<'_>, findings: &mut Findings) {
    for sheet in &book.torches {
        if sheet.value.torch != sheet.stem() {
            let message = format!("torch {} does not belong in {}.toml", sheet.value.torch, sheet.stem());
            findings.add("matrix-invalid", message, sheet.at(steps!["torch"]));
        }
        let versions: Vec<_> = sheet.value.releases.iter().map(|row| &row.version).collect();
        findings.ascending(&versions, ToString::to_string, |row| sheet.at(steps!["release", row, "version"]));
        releases(sheet, findings);
        for (i, release) in sheet.value.releases.iter().enumerate() {
            duplicates(sheet, i, findings);
            for (j, row) in release.builds.iter().enumerate() {
                build(book, row, |step| sheet.at(&[steps!["release", i, "build", j], step].concat()), findings);
            }
        }
    }
}

fn releases(sheet: &Sheet<'_, TorchFile>, findings: &mut Findings) {
    for (i, release) in sheet.value.releases.iter().enumerate() {
        let at = |key: &str| sheet.at(steps!["release", i, key]);
        let version = &release.version;
        let numbers = version.release();
        let minor = numbers.iter().take(2).map(ToString::to_string).collect::<Vec<_>>().join(".");
        if minor != sheet.value.torch || version.is_local() {
            let message = format!("{version} is no release of torch {}", sheet.value.torch);
            findings.add("matrix-invalid", message, at("version"));
        }
        if let Some(day) = release.released.as_deref().filter(|day| !is_day(day)) {
            findings.add("matrix-invalid", format!("`{day}` is not a day such as 2026-11-29"), at("released"));
        }
        if let Some(Err(error)) = release.requires_python.as_deref().map(str::parse::<Specifiers>) {
            let message = format!("not a set of Python versions: {}", one_line(error));
            findings.add("matrix-invalid", message, at("requires-python"));
        }
    }
}

/// A variant is there once for a platform and an index.
fn duplicates(sheet: &Sheet<'_, TorchFile>, release: usize, findings: &mut Findings) {
    let builds = &sheet.value.releases[release].builds;
    let identity = |row: &TorchBuildRow| (row.variant.clone(), row.index.clone(), row.platform);
    for (j, row) in builds.iter().enumerate() {
        if let Some(first) = builds[..j].iter().position(|other| identity(other) == identity(row)) {
            let at = |row| sheet.at(steps!["release", release, "build", row, "variant"]);
            let what = format_args!("the build {} of {} for {}", row.variant, row.index, row.platform);
            findings.twice(what, at(j), at(first));
        }
    }
}

/// Fields of a build that may be named as inferred.
const FIELDS: [&str; 11] =
    ["variant", "cuda", "toolkit", "python", "glibc", "cudnn", "cudnn-compiled", "nccl", "triton", "code", "cxx11-abi"];

fn build(book: &Book<'_>, row: &TorchBuildRow, at: impl Fn(&[Step<'_>]) -> Evidence, findings: &mut Findings) {
    book.needs_index(&row.index, findings, || at(steps!["index"]));
    match row.cuda {
        Some(cuda) => {
            book.needs_cuda(cuda, findings, || at(steps!["cuda"]));
            let digits = row.variant.strip_prefix("cu").filter(|d| d.bytes().all(|b| b.is_ascii_digit()));
            if row.variant == "cpu" || digits.is_some_and(|digits| digits != format!("{}{}", cuda.major, cuda.minor)) {
                let message = format!("variant {} contradicts CUDA {cuda}", row.variant);
                findings.add("matrix-invalid", message, at(steps!["variant"]));
            }
        }
        None if row.variant != "cpu" => {
            let message = format!("variant {} has no `cuda`", row.variant);
            findings.add("matrix-invalid", message, at(steps!["variant"]));
        }
        None => {}
    }
    toolkit(book, row, &at, findings);
    for (k, tag) in row.python.iter().flatten().enumerate() {
        if PythonVersion::from_tag(tag).is_none() {
            let message = format!("`{tag}` is not an interpreter tag such as cp311 or cp313t");
            findings.add("matrix-invalid", message, at(steps!["python", k]));
        }
    }
    for (key, version) in [("cudnn", &row.cudnn), ("cudnn-compiled", &row.cudnn_compiled)] {
        if let Some(version) = version {
            book.needs_cudnn(version, findings, || at(steps![key]));
        }
    }
    for (k, code) in row.code.iter().flatten().enumerate() {
        book.needs_code(*code, findings, || at(steps!["code", k]));
    }
    if let Some(triton) = &row.triton
        && triton.parse::<Pep440>().is_err()
        && let Err(error) = triton.parse::<Specifiers>()
    {
        let message = format!("neither a version nor a set of versions: {}", one_line(error));
        findings.add("matrix-invalid", message, at(steps!["triton"]));
    }
    for (k, text) in row.requires.iter().flatten().enumerate() {
        if let Err(error) = text.parse::<Requirement>() {
            findings.add("matrix-invalid", error.to_string(), at(steps!["requires", k]));
        }
    }
    for (k, field) in row.inferred.iter().enumerate() {
        if !FIELDS.contains(&field.as_str()) && field != "requires" && field != "index" {
            let message = format!("`{field}` is not a field of a build");
            findings.add("matrix-invalid", message, at(steps!["inferred", k]));
        }
    }
}

fn toolkit(book: &Book<'_>, row: &TorchBuildRow, at: &impl Fn(&[Step<'_>]) -> Evidence, findings: &mut Findings) {
    let Some(text) = &row.toolkit else { return };
    let release: CudaRelease = match text.parse() {
        Ok(release) => release,
        Err(error) => return findings.add("matrix-invalid", error.to_string(), at(steps!["toolkit"])),
    };
    if row.cuda.is_some_and(|cuda| cuda != release.cuda()) {
        let message = format!("CUDA {release} is no release of the CUDA that it was built with");
        return findings.add("matrix-invalid", message, at(steps!["toolkit"]));
    }
    // That its minor is missing was said of `cuda`.
    if book.cudas.iter().any(|sheet| sheet.value.cuda == release.cuda()) {
        book.needs_release(&release, findings, || at(steps!["toolkit"]));
    }
}

fn one_line(error: impl ToString) -> String {
    error.to_string().lines().next().unwrap_or_default().trim_end_matches(':').to_owned()
}

impl Book<'_> {
    fn needs_index(&self, name: &str, findings: &mut Findings, place: impl FnOnce() -> Evidence) {
        let Some(sheet) = self.index.as_ref().filter(|sheet| sheet.whole) else { return };
        if !sheet.value.indexes.iter().any(|row| row.name == name) {
            findings.dangling(format!("index `{name}` is not in the matrix"), place(), "index.toml as [[index]]");
        }
    }

    fn needs_cudnn(&self, version: &Cudnn, findings: &mut Findings, place: impl FnOnce() -> Evidence) {
        let known = self.cudnns.iter().flat_map(|sheet| &sheet.value.releases);
        if !known.into_iter().any(|row| version.covers(&row.version) || row.version.covers(version))
            && self.whole("cudnn/", &self.cudnns)
        {
            let file = format!("cudnn/{}.{}.toml as [[release]]", version.major(), version.minor());
            findings.dangling(format!("cuDNN {version} is not in the matrix"), place(), &file);
        }
    }
}
