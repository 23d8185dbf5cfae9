//! Where the matrix and the index differ: every fact that an index can confirm is compared.

mod cudnn;
mod torch;
mod wheels;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::diag::Failure;
use crate::matrix::Matrix;
use crate::matrix::schema::SnapshotFile;
use crate::python::{PackageName, Wheel};
use crate::registry::{Client, MetadataText};

/// Two sides of one fact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The file of the matrix.
    pub file: String,
    /// What it is about: `torch 2.8.0, cu128 for linux-x86_64: cudnn`.
    pub what: String,
    /// As the matrix has it.
    pub matrix: String,
    /// As the index has it.
    pub index: String,
}

/// What an audit found.
#[derive(Debug, Default)]
pub struct Audit {
    /// Where the two differ.
    pub differences: Vec<Difference>,
    /// How many facts of each kind were compared.
    pub compared: Vec<(&'static str, usize)>,
    /// What could not be compared, and why.
    pub unchecked: Vec<String>,
}

impl Audit {
    /// Compares two texts; an absent one is written `-`.
    fn compare(&mut self, kind: &'static str, file: &str, what: &str, matrix: Option<String>, index: Option<String>) {
        match self.compared.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => self.compared.push((kind, 1)),
        }
        if matrix != index {
            let text = |side: Option<String>| side.unwrap_or_else(|| "-".into());
            let (matrix, index) = (text(matrix), text(index));
            self.differences.push(Difference { file: file.into(), what: what.into(), matrix, index });
        }
    }
}

/// Compares the matrix with its indexes; `default` is the one that the snapshot was taken of.
///
/// # Errors
/// When that index cannot be asked, or the matrix does not have its form.
pub fn audit(matrix: &Matrix, client: &Client, default: &str) -> Result<Audit, Failure> {
    let list: SnapshotFile = matrix.files().read("snapshot/INDEX.toml")?;
    let names: Vec<PackageName> = list.packages.gpu.iter().chain(&list.packages.other).cloned().collect();
    if let Some(first) = names.first() {
        // An index that is out of reach is asked for one page, not for all.
        client.list(default, first)?;
    }
    client.prefetch(default, &names);
    let mut audit = Audit::default();
    for name in &names {
        wheels::compare(matrix, client, default, name, &list.exclude_newer, &mut audit)?;
    }
    torch::compare(matrix, client, default, &list.exclude_newer, &mut audit)?;
    cudnn::compare(matrix, client, default, &mut audit)?;
    audit.unchecked.push("GPU code, cuDNN compiled against, C++ ABI: not in the metadata of wheels".into());
    audit.unchecked.push("drivers, CUDA releases, GPUs: documented, not on a package index".into());
    Ok(audit)
}

/// METADATA of wheels by file, read at the same time.
fn texts(client: &Client, wheels: &[Arc<Wheel>]) -> HashMap<Box<str>, Result<MetadataText, Failure>> {
    let answers = Mutex::new(HashMap::new());
    client.each(
        wheels,
        |wheel| wheel.name.to_string(),
        |wheel| {
            let text = client.metadata_text(wheel);
            answers.lock().unwrap_or_else(PoisonError::into_inner).insert(wheel.name.file.clone(), text);
        },
    );
    answers.into_inner().unwrap_or_else(PoisonError::into_inner)
}
