//! Environment variables: takes `env-vars.toml`, answers by name.

use std::path::Path;

use super::gpu_code::matches;
use super::schema::{
    DebuggingVariablesRow, EnvVarsFile, KnownVariablesRow, RenamedVariablesRow, UnreadVariablesRow, VariableFamilyRow,
    VariableReader,
};
use crate::diag::{misspelt, mistakes};
use crate::version::Pep440;

/// What is known about environment variables.
#[derive(Debug)]
pub struct EnvVarFacts {
    file: EnvVarsFile,
}

/// A variable that has an old and a new name.
#[derive(Debug, Clone, Copy)]
pub struct Renamed<'a> {
    /// The old name.
    pub old: &'a str,
    /// The new name.
    pub new: &'a str,
    /// Since when, and whose it is.
    pub row: &'a RenamedVariablesRow,
}

impl EnvVarFacts {
    pub(super) fn new(file: EnvVarsFile) -> Self {
        Self { file }
    }

    /// The family that a name belongs to, and the prefix that says so.
    pub fn family(&self, name: &str) -> Option<(&VariableFamilyRow, &str)> {
        self.file.families.iter().find_map(|row| {
            let prefix = row.prefixes.iter().find(|prefix| name.len() > prefix.len() && name.starts_with(*prefix))?;
            Some((row, prefix.as_str()))
        })
    }

    /// The old and the new name of a variable, whichever of the two is given.
    pub fn renamed(&self, name: &str) -> Option<Renamed<'_>> {
        let pairs = self.file.renamed.iter().flat_map(|row| row.names.iter().map(move |(old, new)| (old, new, row)));
        pairs
            .filter(|(old, new, _)| *old == name || *new == name)
            .map(|(old, new, row)| Renamed { old, new, row })
            .next()
    }

    /// Why nobody reads a name, where that is known.
    pub fn unread(&self, name: &str) -> Option<&UnreadVariablesRow> {
        self.file.unread.iter().find(|row| row.names.iter().any(|one| one == name))
    }

    /// What a variable does that is set to look for a fault.
    pub fn debugging(&self, name: &str, value: &str) -> Option<&DebuggingVariablesRow> {
        let does = |row: &&DebuggingVariablesRow| match &row.values[..] {
            [] => !matches!(value, "" | "0"),
            values => values.iter().any(|one| one.eq_ignore_ascii_case(value)),
        };
        self.file.debugging.iter().find(|row| row.names.iter().any(|one| one == name) && does(row))
    }

    /// Whether something that is not in the environment reads a name.
    pub fn is_known(&self, name: &str) -> bool {
        self.file.known.iter().any(|row| row.names.iter().any(|one| one == name))
    }

    /// The name that is known and that was meant by a mistyped one.
    pub fn near_known(&self, name: &str) -> Option<(&str, &KnownVariablesRow)> {
        let near = misspelt(name, self.file.known.iter().flat_map(|row| &row.names).map(String::as_str))?;
        let row = self.file.known.iter().find(|row| row.names.iter().any(|one| one == near))?;
        Some((near, row))
    }

    /// The name that was meant by one that is misspelt, as far as the names alone tell: with who reads it, and the source.
    pub fn misspelt(&self, name: &str) -> Option<(&str, VariableReader, &str)> {
        // With more mistakes it is another name, and of shorter ones too many are alike.
        let most = match name.len() {
            0..9 => return None,
            9..12 => 1,
            _ => 2,
        };
        let spelled = self.file.spelled.iter().flat_map(|row| {
            let one = move |name| (name, row.reader, row.source.as_str());
            row.names.iter().map(String::as_str).map(one)
        });
        let renamed = self.file.renamed.iter().flat_map(|row| {
            let one = move |name| (name, row.reader, row.source.as_str());
            row.names.iter().flat_map(|(old, new)| [old.as_str(), new.as_str()]).map(one)
        });
        let rows: Vec<(&str, VariableReader, &str)> = spelled.chain(renamed).collect();
        // Those of other families are nobody's here, and far from all.
        let family = name.split('_').next().unwrap_or_default();
        let is_family = |known: &str| mistakes(family, known.split('_').next().unwrap_or_default()) <= 1;
        if !rows.iter().any(|row| is_family(row.0)) {
            return None;
        }
        if rows.iter().any(|row| row.0 == name) || self.is_known(name) || self.unread(name).is_some() {
            return None;
        }
        let alike = rows.into_iter().filter(|row| row.0.len().abs_diff(name.len()) <= most);
        let (count, near) = alike.map(|row| (mistakes(name, row.0), row)).min_by_key(|(mistakes, _)| *mistakes)?;
        (count <= most).then_some(near)
    }

    /// Whether a Python file names variables only to print them.
    pub fn is_listing(&self, path: &Path) -> bool {
        self.file.listings.iter().flat_map(|row| &row.files).any(|file| path.ends_with(file))
    }
}

impl VariableFamilyRow {
    /// Whether a library is one of those that the family belongs to.
    pub fn owns(&self, file_name: &str) -> bool {
        matches(&self.libraries, file_name)
    }
}

impl VariableReader {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Torch => "torch",
            Self::Nccl => "NCCL",
        }
    }
}

impl RenamedVariablesRow {
    /// Whether a release reads the new names.
    pub fn reads_new(&self, release: &Pep440) -> bool {
        *release >= self.since
    }

    /// Whether a release reads the old names.
    pub fn reads_old(&self, release: &Pep440) -> bool {
        self.until.as_ref().is_none_or(|until| release <= until)
    }
}
