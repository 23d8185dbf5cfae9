//! Which torchvision and torchaudio releases belong to a torch release: those whose METADATA asks for it.

use super::line::Line;
use crate::matrix::schema::PackageFile;
use crate::python::Requirement;
use crate::version::{Pep440, Specifiers};

/// A companion release with what it asks of torch.
#[derive(Debug, Clone)]
pub(super) struct Companion {
    pub(super) version: Pep440,
    /// `None` when it does not say which torch it is for.
    pub(super) torch: Option<Specifiers>,
}

/// The companions that lines describe, newest first.
pub(super) fn companions(lines: &[Line]) -> Vec<Companion> {
    let companion = |line: &Line| {
        let requires = line.wheels.iter().filter(|entry| !entry.yanked).flat_map(|entry| line.requires_of(entry));
        let torch =
            requires.filter_map(|text| text.parse::<Requirement>().ok()).find(|r| r.package.as_str() == "torch");
        let torch = torch.map(|requirement| requirement.specifiers).filter(|specifiers| !specifiers.is_empty());
        let alive = line.wheels.iter().any(|entry| !entry.yanked);
        Some(Companion { version: line.version.parse().ok()?, torch }).filter(|_| alive)
    };
    let mut all: Vec<Companion> = lines.iter().filter_map(companion).collect();
    all.sort_by(|a, b| b.version.cmp(&a.version));
    all
}

/// The companions of a torch release, newest first.
///
/// A companion that is known not to import with that torch is none, whatever its METADATA says.
pub(super) fn of(torch: &Pep440, name: &str, companions: &[Companion], packages: &PackageFile) -> Vec<Pep440> {
    let fits = |companion: &&Companion| {
        companion.torch.as_ref().is_some_and(|wanted| wanted.contains(torch))
            && !packages.is_unfit(name, &companion.version, torch)
    };
    companions.iter().filter(fits).map(|companion| companion.version.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;
    use crate::refresh::line;

    #[test]
    fn the_embedded_pairs_are_accepted_by_the_wheels() {
        let matrix = Matrix::embedded();
        let read = |name: &str| line::read(matrix.files().text(&format!("snapshot/{name}.jsonl")).unwrap()).unwrap();
        let (vision, audio) = (companions(&read("torchvision")), companions(&read("torchaudio")));
        for release in matrix.torch().unwrap().releases() {
            let lists = [("torchvision", &vision, &release.torchvision), ("torchaudio", &audio, &release.torchaudio)];
            for (name, known, list) in lists {
                let Some(list) = list else { continue };
                // A companion that does not say which torch it is for is a pair by other sources.
                let silent = |v: &Pep440| known.iter().any(|c| c.version == *v && c.torch.is_none());
                let found = of(&release.version, name, known, matrix.package().unwrap());
                let wrong: Vec<_> =
                    list.iter().filter(|version| !silent(version) && !found.contains(version)).collect();
                assert!(wrong.is_empty(), "torch {}: {wrong:?}", release.version);
            }
        }
    }
}
