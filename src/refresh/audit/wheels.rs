//! Every wheel of the snapshot: is it there, with its hash, its size, its Pythons, and withdrawn or not.

use std::collections::BTreeMap;

use super::Audit;
use crate::diag::Failure;
use crate::matrix::Matrix;
use crate::python::PackageName;
use crate::refresh::keep;
use crate::refresh::line::{self, Entry};
use crate::registry::{Client, Listed};

pub(super) fn compare(
    matrix: &Matrix,
    client: &Client,
    index: &str,
    package: &PackageName,
    until: &str,
    audit: &mut Audit,
) -> Result<(), Failure> {
    let path = format!("snapshot/{package}.jsonl");
    let lines = line::read(matrix.files().text(&path).unwrap_or("")).unwrap_or_default();
    let gpu = matrix.package()?.is_gpu(package);
    let kept = keep::kept(package, gpu, client.listed(index, package)?, until);
    let page: BTreeMap<&str, &Listed> =
        kept.values().flatten().map(|kept| (&*kept.listed.wheel.name.file, &kept.listed)).collect();
    let known: BTreeMap<&str, &Entry> =
        lines.iter().flat_map(|line| &line.wheels).map(|entry| (entry.file.as_str(), entry)).collect();
    for (file, entry) in &known {
        let listed = page.get(file);
        audit.compare("wheels", &path, file, Some("there".into()), listed.map(|_| "there".into()));
        if let Some(listed) = listed {
            one(&path, entry, listed, audit);
        }
    }
    for file in page.keys().filter(|file| !known.contains_key(*file)) {
        audit.compare("wheels", &path, file, None, Some("there".into()));
    }
    Ok(())
}

fn one(path: &str, entry: &Entry, listed: &Listed, audit: &mut Audit) {
    let wheel = &listed.wheel;
    let mut compare = |kind, fact: &str, matrix: Option<String>, index: Option<String>| {
        audit.compare(kind, path, &format!("{}: {fact}", entry.file), matrix, index);
    };
    let sha256 = wheel.sha256.as_deref().map(str::to_owned);
    compare("sha256", "sha256", Some(entry.sha256.clone()), sha256);
    compare("sizes", "size", Some(entry.size.to_string()), wheel.size.map(|size| size.to_string()));
    compare("withdrawals", "yanked", Some(entry.yanked.to_string()), Some(wheel.yanked.to_string()));
    // An index that does not say takes nothing back.
    if let Some(python) = &listed.requires_python {
        compare("Requires-Python", "Requires-Python", entry.python.clone(), Some(python.to_string()));
    }
}
