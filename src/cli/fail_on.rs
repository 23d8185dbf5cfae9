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
    /// Whether a finding of that severity fails.
    pub fn fails(self, severity: Severity) -> bool {
        match self {
            Self::Error => severity >= Severity::Error,
            Self::Warning => severity >= Severity::Warning,
            Self::Note => true,
            Self::Never => false,
        }
    }
}
