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
    /// Whether it applies in `env` when `extras` of the requiring package are asked for.
    pub fn applies(&self, env: &MarkerEnv, extras: &[Extra]) -> bool {
        if self.marker.is_true() {
            return true;
        }
        let extras: Vec<ExtraName> = extras.iter().filter_map(|e| ExtraName::new(e.to_string()).ok()).collect();
        self.marker.evaluate(&env.0, &extras)
    }
}

impl FromStr for Requirement {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let error = || ParseError { given: text.into(), expected: "a requirement with version, such as `numpy>=1.26`" };
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
}
