//! `--fail-on`: how grave a finding has to be to fail a command.

use clap::ValueEnum;

use crate::diag::Severity;

/// The least severity that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Errors
    Error,
    /// Warnings and errors
    Warning,
    /// Everything
    Note,
    /// Nothing
    Never,
}

impl FailOn {
    /// The least severity that fails; `None` where nothing does.
    pub fn least(self) -> Option<Severity> {
        match self {
            Self::Error => Some(Severity::Error),
            Self::Warning => Some(Severity::Warning),
            Self::Note => Some(Severity::Note),
            Self::Never => None,
        }
    }

    /// Whether a finding of that severity fails.
    pub fn fails(self, severity: Severity) -> bool {
        self.least().is_some_and(|least| severity >= least)
    }
}
