//! Single values of the manifest, as typed in `gpulock.toml` or after a flag: text in, typed value or [`Invalid`] out.
//!
//! Python packages follow PEP 440, where a bare version is widened to what people mean by it: `2.8` is `==2.8.*`.

use std::fmt;
use std::str::FromStr;

use super::model::{Ask, PythonAsk};
use crate::diag::did_you_mean;
use crate::python::{PackageName, Platform, PythonVersion, Requirement};
use crate::version::pep440::{self, Operator, VersionSpecifier};
use crate::version::{
    Constrained, Constraint, Cuda, Cudnn, Driver, Family, Glibc, Nccl, ParseError, Pep440, Specifiers,
};

/// Why a value is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// Code of the diagnostic.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub fix: Option<String>,
}

impl Invalid {
    fn new(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { code: "invalid-value", message: message.into(), fix: Some(fix.into()) }
    }

    fn contradictory(text: &str) -> Self {
        Self {
            code: "contradictory-bounds",
            message: format!("`{text}` contradicts itself: no version satisfies all of it"),
            fix: Some("drop one of the bounds".into()),
        }
    }
}

impl From<ParseError> for Invalid {
    fn from(error: ParseError) -> Self {
        Self { code: "invalid-value", message: error.to_string(), fix: None }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.fix.iter().try_for_each(|fix| write!(f, "; {fix}"))
    }
}

impl std::error::Error for Invalid {}

/// Versions of a Python package: `>=2.7,<2.9`, `==2.8.0+cu126`, `2.8` (any 2.8), `2.8.0` (that one), `*` (any).
///
/// # Errors
/// Text that is none of these, and bounds that exclude each other.
pub fn parse_specifiers(text: &str) -> Result<Specifiers, Invalid> {
    let trimmed = not_empty(text)?;
    if trimmed == "*" {
        return Ok(Specifiers::empty());
    }
    let widened: Vec<String> = trimmed.split(',').map(|part| widen(part.trim())).collect();
    let specifiers: Specifiers = widened.join(",").parse().map_err(|_| specifier_error(trimmed))?;
    if pep440::to_set(&specifiers).is_empty() {
        return Err(Invalid::contradictory(trimmed));
    }
    Ok(specifiers)
}

/// Turns a bare version into the specifier that is meant: two numbers leave the third open.
fn widen(part: &str) -> String {
    if !part.starts_with(|c: char| c.is_ascii_digit()) {
        return part.into();
    }
    match part.parse::<Pep440>() {
        Ok(version)
            if version.release().len() < 3 && !version.is_local() && version.is_stable() && !version.is_post() =>
        {
            format!("=={part}.*")
        }
        _ => format!("=={part}"),
    }
}

fn specifier_error(text: &str) -> Invalid {
    let message = format!("`{text}` is not a version specifier (PEP 440)");
    let fix = match text.as_bytes() {
        [b'^', ..] | [b'~', b'0'..=b'9', ..] => format!("write bounds, such as `{}`", bounds_of(&text[1..])),
        [b'=', second, ..] if *second != b'=' => format!("write `={text}`"),
        _ if text.ends_with(".x") => format!("write `{}.*`", text.trim_end_matches(".x")),
        _ if text.eq_ignore_ascii_case("latest") => "write `*` for any version; the newest that fits is chosen".into(),
        _ => "write such as `2.8`, `==2.8.0`, `>=2.7,<2.9` or `*`".into(),
    };
    Invalid::new(message, fix)
}

/// What `^2.8` of other tools means, as bounds.
fn bounds_of(version: &str) -> String {
    let next = version.split('.').next().and_then(|major| major.trim().parse::<u64>().ok()).map(|major| major + 1);
    next.map_or_else(|| ">=2.7,<2.9".into(), |next| format!(">={version},<{next}"))
}

/// The Python of the stack: `3.11`, `3.13t` (free-threaded), or a range such as `>=3.10,<3.13`.
///
/// Wheels do not depend on the patch release, so that is dropped: `>=3.11.4` is `>=3.11`.
///
/// # Errors
/// Text that is neither, and ranges that hold no Python 3.
pub fn parse_python(text: &str) -> Result<PythonAsk, Invalid> {
    let trimmed = not_empty(text)?;
    if trimmed.starts_with(|c: char| c.is_ascii_digit()) && !trimmed.contains([',', '*']) {
        return trimmed.parse().map(PythonAsk::Exact).map_err(|error: ParseError| {
            Invalid::new(error.to_string(), "write such as `3.11`, `3.13t` or `>=3.10,<3.13`")
        });
    }
    let invalid = || {
        let message = format!("`{trimmed}` is not a Python version or a range of them");
        Invalid::new(message, "write such as `3.11`, `3.13t` or `>=3.10,<3.13`")
    };
    let specifiers = parse_specifiers(trimmed).map_err(|error| match error.code {
        "contradictory-bounds" => error,
        _ => invalid(),
    })?;
    let range: Specifiers = specifiers.iter().filter_map(without_patch).collect();
    let ask = PythonAsk::Range(range);
    let minor = |minor| PythonVersion { major: 3, minor, free_threaded: false };
    // No Python 3 minor is near a hundred; a range that allows none of these allows none.
    if !(0..100).any(|n| ask.allows(minor(n))) {
        return Err(Invalid::new(format!("no Python 3 is in `{trimmed}`"), "write such as `3.11` or `>=3.10,<3.13`"));
    }
    Ok(ask)
}

/// The same bound on minors; `None` when a bound on patches says nothing about them.
fn without_patch(specifier: &VersionSpecifier) -> Option<VersionSpecifier> {
    let release = specifier.version().release();
    let [major, minor, _, ..] = release[..] else { return Some(specifier.clone()) };
    let minor = Pep440::new([major, minor]);
    let same = |operator| VersionSpecifier::from_version(operator, minor.clone()).ok();
    match specifier.operator() {
        Operator::GreaterThan | Operator::GreaterThanEqual => same(Operator::GreaterThanEqual),
        Operator::Equal | Operator::ExactEqual | Operator::TildeEqual => same(Operator::EqualStar),
        Operator::NotEqual | Operator::NotEqualStar => None,
        _ => Some(specifier.clone()),
    }
}

/// CUDA: `12` (the family), `12.8`, `cu128`, `>=12.4,<13`.
///
/// # Errors
/// Text that is none of these, and bounds that exclude each other.
pub fn parse_cuda(text: &str) -> Result<Constraint<Cuda>, Invalid> {
    let trimmed = not_empty(text)?;
    let release = trimmed.trim_start_matches(|c: char| !c.is_ascii_digit());
    let minor: Vec<&str> = release.split('.').take(2).collect();
    let shown = if release.split('.').count() == 3 && !release.contains(',') {
        format!(
            "write `{}{}`: builds are made for a CUDA minor, not for a patch release",
            &trimmed[..trimmed.len() - release.len()],
            minor.join(".")
        )
    } else {
        "write such as `12`, `12.8` or `>=12.4,<13`".into()
    };
    constraint(trimmed, &shown)
}

/// cuDNN: `9`, `9.10`, `>=9.1`.
///
/// # Errors
/// Text that is none of these, and bounds that exclude each other.
pub fn parse_cudnn(text: &str) -> Result<Constraint<Cudnn>, Invalid> {
    constraint(not_empty(text)?, "write such as `9`, `9.10.2` or `>=9.1`")
}

/// NCCL: `2.27`, `>=2.21`.
///
/// # Errors
/// Text that is none of these, and bounds that exclude each other.
pub fn parse_nccl(text: &str) -> Result<Constraint<Nccl>, Invalid> {
    constraint(not_empty(text)?, "write such as `2.27` or `>=2.21`")
}

/// Driver: `570.124.06`, `570` (any of that branch), `>=570`.
///
/// # Errors
/// Text that is none of these, and bounds that exclude each other.
pub fn parse_driver(text: &str) -> Result<Constraint<Driver>, Invalid> {
    let fix = "write what `nvidia-smi` prints as \"Driver Version\", such as `570.124.06`, or `>=570`";
    constraint(not_empty(text)?, fix)
}

/// glibc: `2.31`, or `>=2.31`, which says the same: the oldest of the machines.
///
/// # Errors
/// Text that is not two or three numbers.
pub fn parse_glibc(text: &str) -> Result<Glibc, Invalid> {
    let fix = "write what `ldd --version` prints, such as `2.31`";
    let trimmed = not_empty(text)?;
    let version = trimmed.strip_prefix(">=").unwrap_or(trimmed).trim();
    version.parse().map_err(|error: ParseError| Invalid::new(error.to_string(), fix))
}

/// Platform: `linux-x86_64` or `linux-aarch64`.
///
/// # Errors
/// Any other text; the fix names the platform that is meant.
pub fn parse_platform(text: &str) -> Result<Platform, Invalid> {
    let trimmed = not_empty(text)?;
    if let Ok(platform) = trimmed.parse() {
        return Ok(platform);
    }
    let names = Platform::ALL.map(|platform| platform.to_string());
    let lower = trimmed.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let fix = if has(&["win", "mac", "darwin"]) {
        "CUDA builds are locked for Linux: write `linux-x86_64` or `linux-aarch64`".into()
    } else if has(&["x86", "amd64", "x64"]) {
        "write `linux-x86_64`".into()
    } else if has(&["aarch64", "arm64", "sbsa"]) {
        "write `linux-aarch64`".into()
    } else {
        match did_you_mean(trimmed, names.iter().map(String::as_str)) {
            Some(name) => format!("did you mean `{name}`?"),
            None => format!("write {}", names.map(|name| format!("`{name}`")).join(" or ")),
        }
    };
    Err(Invalid::new(format!("unknown platform `{trimmed}`"), fix))
}

/// The label of a wheel: `cu128`.
///
/// # Errors
/// Text that no CUDA build is labelled with.
pub fn parse_variant(text: &str) -> Result<String, Invalid> {
    let trimmed = not_empty(text)?;
    let digits = trimmed.strip_prefix("cu").unwrap_or_default();
    if (2..=4).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(trimmed.into());
    }
    let fix = match trimmed.parse::<Cuda>() {
        Ok(cuda) => format!("write `cu{}{}`, or `cuda = \"{cuda}\"`", cuda.major, cuda.minor),
        Err(_) => "write the label of a CUDA build, such as `cu128`".into(),
    };
    Err(Invalid::new(format!("`{trimmed}` is not the label of a CUDA build"), fix))
}

/// Text that only has to be there: the name of a GPU, which the resolver looks up, or of an operating system.
///
/// # Errors
/// Empty text.
pub fn parse_text(text: &str) -> Result<String, Invalid> {
    not_empty(text).map(str::to_owned)
}

/// A package with versions, as after a flag: `numpy`, `numpy<3`, `accelerate[test]>=1`.
///
/// # Errors
/// Text that is not a requirement, or has bounds that exclude each other.
pub fn parse_package(text: &str) -> Result<Ask, Invalid> {
    let trimmed = not_empty(text)?;
    let requirement = Requirement::from_str(trimmed)
        .map_err(|error| Invalid::new(error.to_string(), "write such as `numpy` or `numpy>=1.26,<3`"))?;
    if pep440::to_set(&requirement.specifiers).is_empty() {
        return Err(Invalid::contradictory(trimmed));
    }
    Ok(Ask { package: requirement.package, extras: requirement.extras, specifiers: requirement.specifiers })
}

/// The name of a package, in its normal form.
///
/// # Errors
/// Text that is not such a name; a requirement is said to be one.
pub fn parse_package_name(text: &str) -> Result<PackageName, Invalid> {
    not_empty(text)?.parse().map_err(|error: ParseError| match Requirement::from_str(text) {
        Ok(requirement) => Invalid::new(error.to_string(), format!("write the name alone: `{}`", requirement.package)),
        Err(_) => error.into(),
    })
}

/// Longer than any value that means something, in bytes: the parts of one are compared with each other.
const LONGEST: usize = 4 << 10;

fn not_empty(text: &str) -> Result<&str, Invalid> {
    match text.trim() {
        "" => Err(Invalid::new("the value is empty", "leave the key out if anything will do")),
        long if long.len() > LONGEST => {
            let message = format!("the value has {} bytes, and more than {LONGEST} are not read", long.len());
            Err(Invalid::new(message, "write less: bounds such as `>=2.7,<2.9` leave out all that lies beyond them"))
        }
        trimmed => Ok(trimmed),
    }
}

fn constraint<T: Constrained + Family>(text: &str, fix: &str) -> Result<Constraint<T>, Invalid> {
    let constraint: Constraint<T> = text.parse().map_err(|error: ParseError| {
        // A part of a longer text is at fault; say which text it is a part of.
        let message = match error.given.trim() == text {
            true => error.to_string(),
            false => format!("{error} (in `{text}`)"),
        };
        Invalid::new(message, fix)
    })?;
    if constraint.is_contradictory() {
        return Err(Invalid::contradictory(text));
    }
    Ok(constraint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specifiers(text: &str) -> String {
        parse_specifiers(text).map_or_else(|error| error.to_string(), |specifiers| specifiers.to_string())
    }

    #[test]
    fn bare_versions_mean_what_people_mean() {
        for (given, meant) in [
            ("2.8", "==2.8.*"),
            ("2", "==2.*"),
            ("2.8.0", "==2.8.0"),
            ("2.2.*", "==2.2.*"),
            ("*", ""),
            ("==2.8.0+cu126", "==2.8.0+cu126"),
            ("2.8.0+cu126", "==2.8.0+cu126"),
            ("2.8.0rc1", "==2.8.0rc1"),
            (" >= 2.7 , < 2.9 ", ">=2.7, <2.9"),
            ("~=2.7.0", "~=2.7.0"),
        ] {
            assert_eq!(specifiers(given), meant, "{given}");
        }
    }

    #[test]
    fn what_other_tools_write_is_explained() {
        for (given, told) in [
            ("^2.8", ">=2.8,<3"),
            ("=2.8", "`==2.8`"),
            ("latest", "`*`"),
            ("", "empty"),
            ("abc", "PEP 440"),
            (">=13,<12", "contradicts itself"),
            ("==2.8.*,==2.7.*", "contradicts itself"),
        ] {
            assert!(specifiers(given).contains(told), "{given}: {}", specifiers(given));
        }
    }

    #[test]
    fn python_is_a_minor() {
        let allows = |ask: &str, python: &str| parse_python(ask).unwrap().allows(python.parse().unwrap());
        assert!(allows("3.11", "3.11") && allows("3.11.4", "3.11") && !allows("3.11", "3.12"));
        assert!(allows("3.13t", "3.13t") && !allows("3.13t", "3.13"));
        assert!(allows(">=3.10,<3.13", "3.12") && !allows(">=3.10,<3.13", "3.13"));
        assert!(allows(">=3.11.4", "3.11") && allows("==3.11.*", "3.11") && allows("~=3.11.2", "3.11"));
        assert!(allows("<3.12.1", "3.12") && allows("==3.11.4", "3.11") && allows("!=3.11.3", "3.11"));
        for text in ["", "2.7", "abc", ">=3.13,<3.10", ">3.11,<3.12", "3", ">=4"] {
            assert!(parse_python(text).is_err(), "{text}");
        }
    }

    #[test]
    fn refusals_say_what_to_write() {
        let told = |error: Invalid| error.to_string();
        assert!(told(parse_driver("abc").unwrap_err()).contains("nvidia-smi"));
        assert!(told(parse_driver(">=570,<x").unwrap_err()).contains("(in `>=570,<x`)"));
        assert!(told(parse_cuda("12.8.1").unwrap_err()).contains("write `12.8`"));
        assert!(told(parse_cuda(">=13,<12").unwrap_err()).contains("contradicts itself"));
        assert!(told(parse_platform("linux/amd64").unwrap_err()).contains("`linux-x86_64`"));
        assert!(told(parse_platform("windows").unwrap_err()).contains("Linux"));
        assert!(told(parse_variant("12.8").unwrap_err()).contains("`cu128`"));
        assert!(told(parse_package_name("numpy<3").unwrap_err()).contains("`numpy`"));
        assert!(told(parse_package("numpy>2,<1").unwrap_err()).contains("contradicts"));
        assert_eq!(parse_package("accelerate[test]>=1").unwrap().extras.len(), 1);
    }
}
