//! `image/*.toml`: every name and every image once, what they refer to is there.

use super::place::{Step, steps};
use super::{Book, Findings, Seen};
use crate::diag::Evidence;
use crate::matrix::requirement::{self, Invalid, first, least_cuda};
use crate::python::PythonVersion;
use crate::version::CudaRelease;

pub(super) fn check(book: &Book<'_>, findings: &mut Findings) {
    systems(book, findings);
    cuda_images(book, findings);
    python_images(book, findings);
}

fn systems(book: &Book<'_>, findings: &mut Findings) {
    let Some(sheet) = &book.os else { return };
    let mut seen = Seen::new();
    for (row, system) in sheet.value.systems.iter().enumerate() {
        if let Err(error) = system.python.parse::<PythonVersion>() {
            findings.add("matrix-invalid", error.to_string(), sheet.at(steps!["os", row, "python"]));
        }
        for (name, text) in system.names.iter().enumerate() {
            seen.add(text.clone(), format!("`{text}`"), sheet.at(steps!["os", row, "names", name]), findings);
        }
    }
}

fn cuda_images(book: &Book<'_>, findings: &mut Findings) {
    let Some(sheet) = &book.cuda_image else { return };
    let file = &sheet.value;
    let mut seen = Seen::new();
    for (i, flavor) in file.flavors.iter().enumerate() {
        let what = format!("flavor `{}`", flavor.name);
        seen.add(what.clone(), what, sheet.at(steps!["flavor", i, "name"]), findings);
    }
    let exists = |cuda: &CudaRelease| file.releases.iter().any(|row| row.cuda == *cuda);
    for (i, row) in file.releases.iter().enumerate() {
        book.needs_release(&row.cuda, findings, || sheet.at(steps!["release", i, "cuda"]));
        for (j, os) in row.os.iter().enumerate() {
            let place = || sheet.at(steps!["release", i, "os", j]);
            needs_system(book, os, findings, place);
            seen.add(format!("{}-{os}", row.cuda), format!("CUDA {} for {os}", row.cuda), place(), findings);
        }
        let other = file.releases[..i].iter().find(|other| other.cuda == row.cuda && other.cudnn.is_some());
        if let (Some(cudnn), Some(other)) = (&row.cudnn, other)
            && other.cudnn.as_ref() != Some(cudnn)
        {
            let above = other.cudnn.as_deref().unwrap_or_default();
            let message = format!("CUDA {} has `{cudnn}` here and `{above}` above", row.cuda);
            findings.add("matrix-invalid", message, sheet.at(steps!["release", i, "cudnn"]));
        }
    }
    for (i, row) in file.deleted.iter().enumerate() {
        let what = format!("CUDA {} among the deleted", row.cuda);
        seen.add(what.clone(), what, sheet.at(steps!["deleted", i, "cuda"]), findings);
        if exists(&row.cuda) {
            let message = format!("images of CUDA {} are listed both as there and as deleted", row.cuda);
            findings.add("matrix-invalid", message, sheet.at(steps!["deleted", i, "cuda"]));
        }
        if row.successor.cuda() != row.cuda.cuda() {
            let message = format!("{} is no release of CUDA {}", row.successor, row.cuda.cuda());
            findings.add("matrix-invalid", message, sheet.at(steps!["deleted", i, "successor"]));
        }
        if sheet.whole && !exists(&row.successor) {
            let message = format!("CUDA {} has no images here", row.successor);
            findings.dangling(message, sheet.at(steps!["deleted", i, "successor"]), "[[release]]");
        }
    }
    for (i, row) in file.requirements.iter().enumerate() {
        book.needs_cuda(row.cuda, findings, || sheet.at(steps!["requirement", i, "cuda"]));
        for (j, platform) in row.platforms.iter().enumerate() {
            let what = format!("the requirement of CUDA {} on {platform}", row.cuda);
            seen.add(what.clone(), what, sheet.at(steps!["requirement", i, "platforms", j]), findings);
        }
        let place = || sheet.at(steps!["requirement", i, "expression"]);
        if least_cuda(&row.expression) != Some(row.cuda) {
            let begin = first(&row.expression);
            let message = format!("an image of CUDA {} requires `cuda>={}`, not `{begin}`", row.cuda, row.cuda);
            findings.add("matrix-invalid", message, place());
        }
        if let Err(Invalid(condition)) = requirement::check(&row.expression) {
            findings.add("matrix-invalid", format!("`{condition}` is no condition"), place());
        }
    }
}

fn python_images(book: &Book<'_>, findings: &mut Findings) {
    let Some(sheet) = &book.python_image else { return };
    let mut seen = Seen::new();
    for (i, row) in sheet.value.images.iter().enumerate() {
        needs_system(book, &row.os, findings, || sheet.at(steps!["image", i, "os"]));
        for (j, python) in row.pythons.iter().enumerate() {
            let what = format!("Python {python} on {}", row.os);
            seen.add(what.clone(), what, sheet.at(steps!["image", i, "pythons", j]), findings);
        }
    }
    for (j, python) in sheet.value.uv.pythons.iter().enumerate() {
        let what = format!("Python {python} of uv");
        seen.add(what.clone(), what, sheet.at(steps!["uv", "pythons", j]), findings);
    }
}

fn needs_system(book: &Book<'_>, os: &str, findings: &mut Findings, place: impl Fn() -> Evidence) {
    let Some(sheet) = book.os.as_ref().filter(|sheet| sheet.whole) else { return };
    if !sheet.value.systems.iter().any(|system| system.names.first().is_some_and(|name| name == os)) {
        findings.dangling(format!("`{os}` is no system of os.toml"), place(), "image/os.toml");
    }
}
