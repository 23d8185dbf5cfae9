//! METADATA of a wheel: takes its text, gives what a resolver needs (core metadata specification, PEP 566 and 643).

use serde::{Deserialize, Serialize};

use crate::python::{PackageMetadata, PackageName, WheelName};
use crate::version::Pep440;

/// What is kept of METADATA, as it stands there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Facts {
    /// `Requires-Dist`, in its order.
    pub requires: Vec<String>,
    /// `Requires-Python`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub python: Option<String>,
    /// `Provides-Extra`, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extras: Vec<String>,
}

/// More requirements than this are no package's; the largest real ones have two thousand.
const MOST: usize = 10_000;

/// Why METADATA is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Unreadable(String),
    Mismatch(String),
}

impl Facts {
    /// Reads METADATA, which must belong to `wheel`.
    pub(super) fn read(bytes: &[u8], wheel: &WheelName) -> Result<Self, Refusal> {
        let text = String::from_utf8_lossy(bytes);
        let mut facts = Self::default();
        let (mut name, mut version) = (None, None);
        for (key, value) in headers(&text) {
            match key.to_ascii_lowercase().as_str() {
                "name" => name = name.or(Some(value)),
                "version" => version = version.or(Some(value)),
                "requires-dist" => facts.requires.push(value),
                "requires-python" => facts.python = Some(value),
                "provides-extra" => facts.extras.push(value),
                _ => {}
            }
        }
        let missing = |what: &str| Refusal::Unreadable(format!("its METADATA has no {what}"));
        let name = name.ok_or_else(|| missing("Name"))?;
        let version = version.ok_or_else(|| missing("Version"))?;
        if name.parse::<PackageName>().ok().as_ref() != Some(&wheel.package) {
            return Err(Refusal::Mismatch(format!("Name is {name}, not {}", wheel.package)));
        }
        if version.parse::<Pep440>().ok().as_ref() != Some(&wheel.version) {
            return Err(Refusal::Mismatch(format!("Version is {version}, not {}", wheel.version)));
        }
        Ok(facts)
    }

    /// Takes the requirements apart.
    pub(super) fn understand(&self) -> Result<PackageMetadata, String> {
        if self.requires.len() > MOST {
            return Err(format!(
                "its METADATA has {} requirements, and more than {MOST} are not read",
                self.requires.len()
            ));
        }
        let requires = self
            .requires
            .iter()
            .map(|text| text.parse().map_err(|error| format!("its METADATA requires something unclear: {error}")))
            .collect::<Result<_, _>>()?;
        Ok(PackageMetadata {
            requires,
            // A constraint that cannot be read constrains nothing, as pip has it.
            requires_python: self.python.as_ref().and_then(|text| text.parse().ok()),
            extras: self.extras.iter().filter_map(|text| text.parse().ok()).collect(),
        })
    }
}

/// The header fields up to the empty line, continuation lines joined.
fn headers(text: &str) -> Vec<(String, String)> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in text.trim_start_matches('\u{feff}').lines() {
        // A line of blanks continues a field: licences have such.
        if line.is_empty() {
            break;
        }
        if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = fields.last_mut() {
                value.push(' ');
                value.push_str(line.trim());
            }
        } else if let Some((key, value)) = line.split_once(':') {
            fields.push((key.trim().into(), value.trim().into()));
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Metadata-Version: 2.1\r\nname: Typing_Extensions\r\nVersion: 1.0+cu126\r\n\
        Requires-Python: >=3.9\r\nDescription: first\r\n  \r\n  second: line\r\nRequires-Dist: numpy>=1;\r\n\textra == 'x'\r\n\
        Requires-Dist: sympy (>1.13)\r\nProvides-Extra: x\r\n\r\nRequires-Dist: not-a-header\r\n";

    fn wheel(file: &str) -> WheelName {
        file.parse().unwrap()
    }

    #[test]
    fn headers_only() {
        let facts = Facts::read(TEXT.as_bytes(), &wheel("typing_extensions-1.0+cu126-py3-none-any.whl")).unwrap();
        assert_eq!(facts.requires, ["numpy>=1; extra == 'x'", "sympy (>1.13)"]);
        let metadata = facts.understand().unwrap();
        assert_eq!(metadata.requires[1].package.as_str(), "sympy");
        assert_eq!(metadata.requires_python.unwrap().to_string(), ">=3.9");
        assert_eq!(metadata.extras, ["x".parse().unwrap()]);
    }

    #[test]
    fn another_name_or_version_is_refused() {
        for file in ["typing_extensions-1.0-py3-none-any.whl", "typing_extension-1.0+cu126-py3-none-any.whl"] {
            assert!(matches!(Facts::read(TEXT.as_bytes(), &wheel(file)), Err(Refusal::Mismatch(_))), "{file}");
        }
        assert!(matches!(Facts::read(b"", &wheel("x-1-py3-none-any.whl")), Err(Refusal::Unreadable(_))));
    }

    #[test]
    fn there_is_an_end_to_requirements() {
        let facts = |count| Facts { requires: vec!["x; extra == 'a'".into(); count], ..Facts::default() };
        assert_eq!(facts(MOST).understand().unwrap().requires.len(), MOST);
        assert!(facts(MOST + 1).understand().unwrap_err().contains("10001 requirements"));
    }

    #[test]
    fn an_address_is_no_version() {
        let facts = Facts { requires: vec!["x @ https://h/x.whl".into()], ..Facts::default() };
        assert!(facts.understand().unwrap_err().contains("x @ https://h/x.whl"));
    }
}
