//! Requirements (PEP 508) and the environment that their markers are judged in.

use std::str::FromStr;

use pep508_rs::{ExtraName, MarkerEnvironment, MarkerEnvironmentBuilder, VerbatimUrl, VersionOrUrl};

use super::{PackageName, Platform, PythonVersion};
use crate::version::{ParseError, Specifiers};

/// Name of an extra, normalised.
pub type Extra = PackageName;

/// One requirement: `nvidia-cudnn-cu12==9.10.2.21; platform_system == "Linux"`.
#[derive(Debug, Clone)]
pub struct Requirement {
    /// The package asked for.
    pub package: PackageName,
    /// Its extras.
    pub extras: Vec<Extra>,
    /// Versions that will do.
    pub specifiers: Specifiers,
    marker: pep508_rs::MarkerTree,
}

impl Requirement {
    /// The same with other versions.
    pub fn with_specifiers(self, specifiers: Specifiers) -> Self {
        Self { specifiers, ..self }
    }

    /// Whether it applies in `env` when `extras` of the requiring package are asked for.
    pub fn applies(&self, env: &MarkerEnv, extras: &[Extra]) -> bool {
        if self.marker.is_true() {
            return true;
        }
        let extras: Vec<ExtraName> = extras.iter().filter_map(|e| ExtraName::new(e.to_string()).ok()).collect();
        self.marker.evaluate(&env.0, &extras)
    }
}

/// Longer than any real requirement, in bytes.
const LONGEST: usize = 16 << 10;
/// More parentheses than any real one has; they are read by recursion.
const DEEPEST: usize = 64;

impl FromStr for Requirement {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = || ParseError { given: text.into(), expected: "a requirement with version, such as `numpy>=1.26`" };
        // pep508_rs panics on a name or extra that ends in a separator (`a-]`), on `~=` between what are no versions, and
        // on some text beyond ASCII, which PEP 508 has no place for outside URLs.
        let sane = text.len() <= LONGEST && text.matches('(').count() <= DEEPEST;
        if !sane || !text.is_ascii() || !is_well_named(text) || !compares_versions(text) {
            return Err(error());
        }
        let parsed: pep508_rs::Requirement<VerbatimUrl> = text.parse().map_err(|_| error())?;
        let specifiers = match parsed.version_or_url {
            None => Specifiers::empty(),
            Some(VersionOrUrl::VersionSpecifier(specifiers)) => specifiers,
            Some(VersionOrUrl::Url(_)) => return Err(error()),
        };
        Ok(Self {
            package: parsed.name.as_ref().parse()?,
            extras: parsed.extras.iter().map(|e| e.as_ref().parse()).collect::<Result<_, _>>()?,
            specifiers,
            marker: parsed.marker,
        })
    }
}

/// Whether every `~=` of the marker has a version to compare on one side.
fn compares_versions(text: &str) -> bool {
    const VERSIONS: [&str; 3] = ["python_version", "python_full_version", "implementation_version"];
    let marker = text.split_once(';').map_or("", |(_, marker)| marker);
    let other = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    marker.match_indices("~=").all(|(at, sign)| {
        let before = marker[..at].trim_end().rsplit(other).next().unwrap_or_default();
        let after = marker[at + sign.len()..].trim_start().split(other).next().unwrap_or_default();
        VERSIONS.contains(&before) || VERSIONS.contains(&after)
    })
}

/// Whether the name and the extras that `text` begins with are names.
fn is_well_named(text: &str) -> bool {
    let text = text.trim_start();
    let name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let (package, rest) = text.split_at(text.find(|c| !name(c)).unwrap_or(text.len()));
    let extras = rest.trim_start().strip_prefix('[').map_or("", |rest| rest.split(']').next().unwrap_or(rest));
    let extras = extras.split(',').map(str::trim).filter(|extra| !extra.is_empty());
    std::iter::once(package).chain(extras).all(|name| name.parse::<PackageName>().is_ok())
}

/// The environment that markers are judged in: CPython under Linux.
#[derive(Debug, Clone)]
pub struct MarkerEnv(MarkerEnvironment);

impl MarkerEnv {
    /// CPython `python` on `platform`. The patch release, which a lock does not fix, counts as zero.
    pub fn new(python: PythonVersion, platform: Platform) -> Self {
        let short = format!("{}.{}", python.major, python.minor);
        let full = format!("{short}.0");
        let builder = MarkerEnvironmentBuilder {
            implementation_name: "cpython",
            implementation_version: &full,
            os_name: "posix",
            platform_machine: platform.machine(),
            platform_python_implementation: "CPython",
            platform_release: "",
            platform_system: "Linux",
            platform_version: "",
            python_full_version: &full,
            python_version: &short,
            sys_platform: "linux",
        };
        Self(builder.try_into().expect("numbers and fixed names make an environment"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_must_be_names() {
        for text in ["a-]", "a.", "a->=1", "a[b-]", "a[b,c.]>=1", "a[b-", "-", "", "[a]", "é"] {
            assert!(text.parse::<Requirement>().is_err(), "{text}");
        }
        let requirement: Requirement = " A_b [ c , D.e ] >=1 ".parse().unwrap();
        assert_eq!((requirement.package.as_str(), requirement.extras.len()), ("a-b", 2));
    }

    #[test]
    fn markers_choose_the_platform() {
        let cudnn: Requirement =
            r#"nvidia-cudnn-cu12==9.10.2.21; platform_system == "Linux" and platform_machine == "x86_64""#.parse().unwrap();
        let python = "3.11".parse().unwrap();
        assert!(cudnn.applies(&MarkerEnv::new(python, Platform::LinuxX86_64), &[]));
        assert!(!cudnn.applies(&MarkerEnv::new(python, Platform::LinuxAarch64), &[]));
        let extra: Requirement = r#"nvidia-cublas==13.1.0.3; extra == "cublas""#.parse().unwrap();
        let env = MarkerEnv::new(python, Platform::LinuxX86_64);
        assert!(!extra.applies(&env, &[]));
        assert!(extra.applies(&env, &["cublas".parse().unwrap()]));
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig { failure_persistence: None, cases: 2000, ..Default::default() })]

        #[test]
        fn no_text_panics(pieces in proptest::collection::vec(proptest::sample::select(vec![
            "a", "torch", "-", ".", "[", "]", ",", ">=", "==", "~=", "===", "1.0", "2.*", "+cu1", ";", " ", "(", ")", "python_version",
            "sys_platform", "extra", "'3.8'", "'linux'", "in", "not in", "and", "or", "@", "https://x", "${A}", "é", "\"", "#", "/", "*", "!=",
        ]), 0..10)) {
            let text = pieces.concat();
            let env = MarkerEnv::new("3.11".parse().unwrap(), Platform::LinuxX86_64);
            if let Ok(requirement) = text.parse::<Requirement>() {
                requirement.applies(&env, &[]);
            }
            let spaced = format!("torch>=1; {}", pieces.join(" "));
            if let Ok(requirement) = spaced.parse::<Requirement>() {
                requirement.applies(&env, &[]);
            }
        }
    }
}
