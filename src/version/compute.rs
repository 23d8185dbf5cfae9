//! Compute capabilities of GPUs (`12.0`) and the code that is compiled for them (`sm_120`, `compute_90a`).

use std::fmt;
use std::str::FromStr;

use super::{ParseError, serde_as_text};

/// Compute capability of a GPU: `9.0` is Hopper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Capability {
    /// Generation.
    pub major: u32,
    /// Member of the generation.
    pub minor: u32,
}

impl Capability {
    /// The architecture name of the compiler: 12.0 is `sm_120`.
    pub fn sm(self) -> String {
        format!("sm_{}{}", self.major, self.minor)
    }

    /// Reads the digits of `sm_120`: all but the last are the major.
    fn from_digits(digits: &str) -> Option<Self> {
        if !(2..=4).contains(&digits.len()) || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let (major, minor) = digits.split_at(digits.len() - 1);
        Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? })
    }
}

impl FromStr for Capability {
    type Err = ParseError;

    /// Takes `9.0` and `sm_90`.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let trimmed = text.trim();
        let capability = match trimmed.strip_prefix("sm_").or_else(|| trimmed.strip_prefix("SM_")) {
            Some(digits) => Self::from_digits(digits),
            None => trimmed.split_once('.').and_then(|(major, minor)| {
                let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
                (digits(major) && digits(minor) && minor.len() == 1)
                    .then(|| Some(Self { major: major.parse().ok()?, minor: minor.parse().ok()? }))
                    .flatten()
            }),
        };
        capability
            .ok_or_else(|| ParseError { given: text.into(), expected: "a compute capability such as 9.0 or sm_90" })
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{}", self.major, self.minor))
    }
}

serde_as_text!(Capability);

/// What kind of code a build carries for an architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CodeKind {
    /// Machine code (a cubin), `sm_120`.
    Sass,
    /// Intermediate code that the driver compiles, `compute_120`.
    Ptx,
}

/// One entry of a build's code list: `sm_90`, `sm_90a`, `sm_100f`, `compute_120`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GpuCode {
    /// Architecture that it was compiled for.
    pub capability: Capability,
    /// `a` (that GPU alone) or `f` (its family).
    pub suffix: Option<char>,
    /// SASS or PTX.
    pub kind: CodeKind,
}

impl FromStr for GpuCode {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = || ParseError { given: text.into(), expected: "GPU code such as sm_90, sm_90a or compute_120" };
        let (kind, digits) = match (text.strip_prefix("sm_"), text.strip_prefix("compute_")) {
            (Some(digits), _) => (CodeKind::Sass, digits),
            (_, Some(digits)) => (CodeKind::Ptx, digits),
            _ => return Err(error()),
        };
        let suffix = digits.chars().last().filter(|c| matches!(c, 'a' | 'f'));
        let digits = digits.strip_suffix(['a', 'f']).unwrap_or(digits);
        let capability = Capability::from_digits(digits).ok_or_else(error)?;
        Ok(Self { capability, suffix, kind })
    }
}

impl fmt::Display for GpuCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            CodeKind::Sass => "sm",
            CodeKind::Ptx => "compute",
        };
        write!(f, "{kind}_{}{}", self.capability.major, self.capability.minor)?;
        self.suffix.map_or(Ok(()), |suffix| write!(f, "{suffix}"))
    }
}

serde_as_text!(GpuCode);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written_back() {
        for text in ["sm_50", "sm_90a", "sm_100f", "sm_120", "compute_37", "compute_120"] {
            assert_eq!(text.parse::<GpuCode>().unwrap().to_string(), text);
        }
        assert_eq!("sm_121".parse::<Capability>().unwrap(), Capability { major: 12, minor: 1 });
        assert_eq!("8.9".parse::<Capability>().unwrap().sm(), "sm_89");
        for text in ["", "sm_", "sm_9", "9", "9.", "9.0.1", "sm_9x", "compute"] {
            assert!(text.parse::<Capability>().is_err(), "{text}");
        }
    }
}
