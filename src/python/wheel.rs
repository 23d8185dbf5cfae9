//! Wheel file names: `torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl` (the wheel specification, PEP 425, PEP 600).

use std::fmt;
use std::str::FromStr;

use super::{PackageName, PythonVersion, Runtime};
use crate::version::{Glibc, ParseError, Pep440};

/// A wheel's file name, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WheelName {
    /// The name as it stands on the index.
    pub file: Box<str>,
    /// Normalised package.
    pub package: PackageName,
    /// Version, with local label.
    pub version: Pep440,
    /// Build number: breaks ties, the higher wins.
    pub build: Option<u64>,
    /// Tags.
    pub tags: WheelTags,
}

/// The three tag sets of a wheel, each as the file name has it: with dots between the tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WheelTags {
    python: Box<str>,
    abi: Box<str>,
    platform: Box<str>,
}

impl FromStr for WheelName {
    type Err = ParseError;

    fn from_str(file: &str) -> Result<Self, ParseError> {
        let error = || ParseError { given: file.into(), expected: "the file name of a wheel" };
        let stem = file.strip_suffix(".whl").ok_or_else(error)?;
        if !Self::is_safe(file) {
            return Err(error());
        }
        let parts: Vec<&str> = stem.split('-').collect();
        let (name, version, build, tags) = match parts[..] {
            [name, version, python, abi, platform] => (name, version, None, [python, abi, platform]),
            [name, version, build, python, abi, platform] => (name, version, Some(build), [python, abi, platform]),
            _ => return Err(error()),
        };
        let [python, abi, platform] = tags.map(Into::into);
        let leading_number = |text: &str| {
            let digits = text.bytes().take_while(u8::is_ascii_digit).count();
            text[..digits].parse().ok()
        };
        Ok(Self {
            file: file.into(),
            package: name.parse()?,
            version: version.parse().map_err(|_| error())?,
            build: build.map(leading_number).unwrap_or_default(),
            tags: WheelTags { python, abi, platform },
        })
    }
}

impl WheelName {
    /// Whether a file name has only characters that the binary distribution format has a use for: those of names and
    /// versions (PEP 440, `!` and `+` included), tags, and what stands between them. Such a name cannot leave a folder,
    /// steer a terminal or end a line of another tool's file.
    pub fn is_safe(file: &str) -> bool {
        file.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._+!-".contains(&byte)) && !file.starts_with('.')
    }
}

impl fmt::Display for WheelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)
    }
}

/// How well a wheel fits; the greater, the better: exact interpreter before stable ABI before any Python, then the
/// newest glibc that still fits.
pub type Fit = (u32, u32);

impl WheelTags {
    /// How well the wheel fits `runtime`; `None` if it cannot be installed there.
    pub fn fit(&self, runtime: &Runtime) -> Option<Fit> {
        let python = self
            .python
            .split('.')
            .flat_map(|python| self.abi.split('.').map(move |abi| (python, abi)))
            .filter_map(|(python, abi)| python_fit(python, abi, runtime.python))
            .max()?;
        let platform = self.platforms().filter_map(|tag| platform_fit(tag, runtime)).max()?;
        Some((python, platform))
    }

    /// The least glibc among the platform tags for `machine`, if any names one.
    pub fn glibc(&self, machine: &str) -> Option<Glibc> {
        self.platforms().filter_map(|tag| manylinux(tag, machine)).map(|(major, minor)| glibc(major, minor)).min()
    }

    /// The CPython versions that the tags name (`cp311`, `cp313t`).
    pub fn interpreters(&self) -> Vec<PythonVersion> {
        let free_threaded = self.abi.split('.').any(|abi| abi.starts_with("cp") && abi.ends_with('t'));
        let named = self.python.split('.').filter_map(PythonVersion::from_tag);
        named.map(|python| PythonVersion { free_threaded, ..python }).collect()
    }

    /// True when no platform is named.
    pub fn any_platform(&self) -> bool {
        self.platforms().any(|tag| tag == "any")
    }

    /// True when the wheel is for `machine` under Linux with glibc.
    pub fn linux(&self, machine: &str) -> bool {
        self.platforms().any(|tag| manylinux(tag, machine).is_some() || tag.strip_prefix("linux_") == Some(machine))
    }

    fn platforms(&self) -> impl Iterator<Item = &str> {
        self.platform.split('.')
    }
}

/// `cpXY-cpXY` and `cpXY-none` fit that Python, `cpXY-abi3` that and later ones, `py3-none` all.
fn python_fit(python: &str, abi: &str, target: PythonVersion) -> Option<u32> {
    let plain = PythonVersion { free_threaded: false, ..target };
    let older = |tag: PythonVersion| tag.major == target.major && tag.minor <= target.minor;
    match PythonVersion::from_tag(python) {
        Some(tag) if PythonVersion::from_tag(abi) == Some(target) => (tag == plain).then_some(1000),
        // Until 3.7 the ABI tag said that pymalloc is in: `cp37m`.
        Some(tag) if abi.strip_suffix('m').and_then(PythonVersion::from_tag) == Some(target) => {
            (tag == plain && tag.minor <= 7).then_some(1000)
        }
        Some(tag) if abi == "abi3" => {
            (!target.free_threaded && older(tag)).then_some(500_u32.saturating_add(tag.minor))
        }
        Some(tag) if abi == "none" => (tag == plain).then_some(400),
        Some(_) => None,
        None if abi == "none" => {
            let digits =
                python.strip_prefix("py").filter(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))?;
            let (major, minor) = digits.split_at(1);
            let minor: u32 = if minor.is_empty() { 0 } else { minor.parse().ok()? };
            (major == "3" && minor <= target.minor).then_some(100_u32.saturating_add(minor))
        }
        None => None,
    }
}

fn platform_fit(tag: &str, runtime: &Runtime) -> Option<u32> {
    let machine = runtime.platform.machine();
    if tag == "any" {
        return Some(0);
    }
    if tag.strip_prefix("linux_") == Some(machine) {
        return Some(1);
    }
    let (major, minor) = manylinux(tag, machine)?;
    let fits = runtime.glibc.as_ref().is_none_or(|have| glibc(major, minor) <= *have);
    fits.then_some(major.saturating_mul(1000).saturating_add(minor))
}

/// The glibc that a manylinux tag promises to need at most, as (major, minor).
fn manylinux(tag: &str, machine: &str) -> Option<(u32, u32)> {
    let rest = tag.strip_suffix(machine)?.strip_suffix('_')?;
    match rest {
        "manylinux1" => Some((2, 5)),
        "manylinux2010" => Some((2, 12)),
        "manylinux2014" => Some((2, 17)),
        _ => {
            let (major, minor) = rest.strip_prefix("manylinux_")?.split_once('_')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        }
    }
}

fn glibc(major: u32, minor: u32) -> Glibc {
    format!("{major}.{minor}").parse().expect("two numbers are a glibc version")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(file: &str, python: &str, platform: &str, glibc: Option<&str>) -> Option<Fit> {
        let wheel: WheelName = file.parse().unwrap();
        wheel.tags.fit(&Runtime {
            platform: platform.parse().unwrap(),
            python: python.parse().unwrap(),
            glibc: glibc.map(|g| g.parse().unwrap()),
        })
    }

    #[test]
    fn tags_decide() {
        let torch = "torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl";
        assert!(fit(torch, "3.11", "linux-x86_64", None).is_some());
        assert!(fit(torch, "3.12", "linux-x86_64", None).is_none());
        assert!(fit(torch, "3.11", "linux-aarch64", None).is_none());
        assert!(fit(torch, "3.11", "linux-x86_64", Some("2.17")).is_none());
        let free = "torch-2.8.0-cp313-cp313t-manylinux_2_28_x86_64.whl";
        assert!(fit(free, "3.13", "linux-x86_64", None).is_none());
        assert!(fit(free, "3.13t", "linux-x86_64", None).is_some());
        assert!(fit("x-1-cp37-cp37m-manylinux1_x86_64.whl", "3.7", "linux-x86_64", None).is_some());
        assert!(fit("x-1-cp38-cp38m-manylinux1_x86_64.whl", "3.8", "linux-x86_64", None).is_none());
        let abi3 = "x-1-cp38-abi3-manylinux2014_x86_64.whl";
        assert!(fit(abi3, "3.11", "linux-x86_64", Some("2.17")).is_some());
        assert!(fit(abi3, "3.7", "linux-x86_64", None).is_none());
        assert!(fit("x-1-py3-none-any.whl", "3.11", "linux-aarch64", Some("2.17")).is_some());
        assert!(fit("x-1-py2.py3-none-any.whl", "3.13t", "linux-x86_64", None).is_some());
        assert!(
            fit("x-1-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl", "3.9", "linux-x86_64", None).is_some()
        );
        assert!(fit("x-1-cp311-cp311-musllinux_1_2_x86_64.whl", "3.11", "linux-x86_64", None).is_none());
    }

    #[test]
    fn tags_with_huge_numbers_do_no_harm() {
        let glibc = "x-1-py3-none-manylinux_4294967295_4294967295_x86_64.whl";
        assert!(fit(glibc, "3.11", "linux-x86_64", Some("2.31")).is_none());
        assert!(fit(glibc, "3.11", "linux-x86_64", None).is_some());
        assert!(fit("x-1-cp34294967295-abi3-manylinux1_x86_64.whl", "3.11", "linux-x86_64", None).is_none());
    }

    #[test]
    fn the_exact_interpreter_wins() {
        let exact = fit("x-1-cp311-cp311-manylinux2014_x86_64.whl", "3.11", "linux-x86_64", None);
        let abi3 = fit("x-1-cp39-abi3-manylinux2014_x86_64.whl", "3.11", "linux-x86_64", None);
        let any = fit("x-1-py3-none-any.whl", "3.11", "linux-x86_64", None);
        assert!(exact > abi3 && abi3 > any);
    }
}
