//! `cudnn/*.toml`.

use super::place::{Step, steps};
use super::{Book, Findings};
use crate::version::{Constraint, Cuda};

pub(super) fn check(book: &Book<'_>, findings: &mut Findings) {
    for sheet in &book.cudnns {
        let file = &sheet.value;
        if file.cudnn.to_string() != sheet.stem() {
            let message = format!("cuDNN {} does not belong in {}.toml", file.cudnn, sheet.stem());
            findings.add("matrix-invalid", message, sheet.at(steps!["cudnn"]));
        }
        let versions: Vec<_> = file.releases.iter().map(|row| &row.version).collect();
        findings.ascending(&versions, ToString::to_string, |row| sheet.at(steps!["release", row, "version"]));
        for (i, release) in file.releases.iter().enumerate() {
            if !file.cudnn.covers(&release.version) {
                let message = format!("{} is no release of cuDNN {}", release.version, file.cudnn);
                findings.add("matrix-invalid", message, sheet.at(steps!["release", i, "version"]));
            }
            let families: Vec<_> = release.builds.iter().map(|row| row.cuda).collect();
            let name = |cuda: &u32| format!("the build for CUDA {cuda}");
            findings.ascending(&families, name, |row| sheet.at(steps!["release", i, "build", row, "cuda"]));
            for (j, build) in release.builds.iter().enumerate() {
                let at = |key: &str| sheet.at(steps!["release", i, "build", j, key]);
                book.needs_family(build.cuda, findings, || at("cuda"));
                if let Some(driver) = &build.driver {
                    book.needs_branch(driver.major(), findings, || at("driver"));
                }
                match build.cuda_range.as_deref().map(str::parse::<Constraint<Cuda>>) {
                    Some(Err(error)) => findings.add("matrix-invalid", error.to_string(), at("cuda-range")),
                    Some(Ok(range)) => {
                        for bound in range.bounds() {
                            book.needs_cuda(bound.version, findings, || at("cuda-range"));
                        }
                    }
                    None => {}
                }
                for (k, code) in build.code.iter().flatten().enumerate() {
                    let place = || sheet.at(steps!["release", i, "build", j, "code", k]);
                    book.needs_code(*code, findings, place);
                }
                for (k, capability) in build.capabilities.iter().flatten().enumerate() {
                    let place = || sheet.at(steps!["release", i, "build", j, "capabilities", k]);
                    book.needs_gpu(*capability, findings, place);
                }
            }
        }
    }
}
