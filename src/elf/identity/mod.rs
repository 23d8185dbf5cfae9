//! Which NVIDIA or PyTorch library a file is, and its exact version, as the file itself says it.
//!
//! The name comes from the soname, or from what is exported where there is none. The version comes from constants that
//! the library returns, exported objects and texts; what it does not tell stays unknown.

mod constant;
mod cudnn;
mod text;
mod torch;

use super::layout::Layout;
use super::object::Machine;
use super::read::Source;
use super::symbols::Symbols;

/// What a file says it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// `cudnn cublas cublaslt cudart cufft curand cusolver cusparse cusparselt nccl nvjitlink nvrtc cupti torch`.
    pub library: &'static str,
    /// The part of the library, where it has parts: `ops` of cuDNN, `cuda` of torch; the shim libcudnn.so has none.
    pub component: Option<String>,
    /// Version, when the file tells it and all its tellings agree: `9.10.2`. libcudart and libcupti tell two numbers, `12.8`.
    pub version: Option<String>,
    /// Each telling, and how it was read.
    pub readings: Vec<Reading>,
    /// torch alone: the cuDNN that it was compiled against.
    pub built_against_cudnn: Option<Reading>,
}

/// One telling of a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The version: `9.10.2`.
    pub version: String,
    /// How it was read, for evidence: "exported object cudnn_ops_infer_version".
    pub method: String,
}

impl Reading {
    fn new(numbers: &[u32], method: impl Into<String>) -> Self {
        let version: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        Self { version: version.join("."), method: method.into() }
    }
}

/// How a version is one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Digits {
    /// 11303 is 11.3.3.
    Thousands,
    /// 120804 is 12.8.4.
    TenThousands,
    /// 12080 is 12.8.
    Cuda,
    /// 130202 is 13.2: the last two digits count releases of an interface.
    Interface,
    /// Thousands below 9000, else ten thousands: 2804 is 2.8.4 and 22703 is 2.27.3.
    ByMagnitude,
}

impl Digits {
    /// The numbers of a version; `None` for what can be none.
    fn split(self, value: u32) -> Option<Vec<u32>> {
        let thousands = vec![value / 1000, value / 100 % 10, value % 100];
        let ten_thousands = vec![value / 10_000, value / 100 % 100, value % 100];
        let numbers = match self {
            Self::Thousands if value >= 100 => thousands,
            Self::TenThousands if value >= 10_000 => ten_thousands,
            Self::Cuda if value >= 1000 && value.is_multiple_of(10) => vec![value / 1000, value % 1000 / 10],
            Self::Interface if value >= 10_000 => vec![value / 10_000, value / 100 % 100],
            Self::ByMagnitude if (1000..10_000).contains(&value) => thousands,
            Self::ByMagnitude if value >= 10_000 => ten_thousands,
            _ => return None,
        };
        (numbers[0] < 100).then_some(numbers)
    }
}

/// How a library tells its version.
enum Tells {
    /// A function that stores or returns it as one number.
    Number(&'static str, Digits),
    /// A function that stores major and minor, and the text of NVIDIA's compilers.
    Pair(&'static str),
    /// Not in any way that is known.
    Nothing,
}

/// Names of libraries up to `.so`, what they are, and how they tell their version.
const LIBRARIES: [(&str, &str, Tells); 12] = [
    ("libcublas", "cublas", Tells::Nothing),
    ("libcublasLt", "cublaslt", Tells::Number("cublasLtGetVersion", Digits::TenThousands)),
    ("libcudart", "cudart", Tells::Number("cudaRuntimeGetVersion", Digits::Cuda)),
    ("libcufft", "cufft", Tells::Number("cufftGetVersion", Digits::Thousands)),
    ("libcurand", "curand", Tells::Number("curandGetVersion", Digits::Thousands)),
    ("libcusolver", "cusolver", Tells::Number("cusolverGetVersion", Digits::Thousands)),
    ("libcusparse", "cusparse", Tells::Number("cusparseGetVersion", Digits::Thousands)),
    ("libcusparseLt", "cusparselt", Tells::Number("cusparseLtGetVersion", Digits::Thousands)),
    ("libnccl", "nccl", Tells::Number("ncclGetVersion", Digits::ByMagnitude)),
    ("libnvJitLink", "nvjitlink", Tells::Pair("nvJitLinkVersion")),
    ("libnvrtc", "nvrtc", Tells::Pair("nvrtcVersion")),
    // Before 13 the number counts releases of the interface, and says no version.
    ("libcupti", "cupti", Tells::Number("cuptiGetVersion", Digits::Interface)),
];

/// What of a file the methods look at.
struct Subject<'s, 'f> {
    source: &'s Source<'f>,
    layout: &'s Layout,
    symbols: &'s Symbols,
    /// Whether its machine code is x86-64, the only one whose constants are read.
    x86: bool,
}

/// Reads which library a file is.
pub(super) fn read(
    source: &Source<'_>,
    layout: &Layout,
    machine: Machine,
    soname: Option<&str>,
    symbols: &Symbols,
) -> Option<Identity> {
    let subject = Subject { source, layout, symbols, x86: machine == Machine::X86_64 };
    let stem = soname.map(stem);
    if let Some(part) = stem.and_then(|stem| stem.strip_prefix("libcudnn")) {
        let component = part.strip_prefix('_').map(str::to_owned);
        if !part.is_empty() && component.is_none() {
            return None;
        }
        let readings = cudnn::readings(&subject, component.as_deref());
        return Some(identity("cudnn", component, readings));
    }
    if let Some(component) = stem.and_then(torch::component) {
        let readings = torch::version(&subject).into_iter().collect();
        let mut identity = identity("torch", component, readings);
        identity.built_against_cudnn = torch::built_against_cudnn(&subject);
        return Some(identity);
    }
    let (_, library, tells) = LIBRARIES.iter().find(|(name, _, tells)| match (stem, tells) {
        (Some(stem), _) => stem == *name,
        (None, Tells::Number(function, _) | Tells::Pair(function)) => symbols.find(function).len() > 0,
        (None, Tells::Nothing) => false,
    })?;
    let mut readings = Vec::new();
    match tells {
        Tells::Nothing => {}
        Tells::Number(function, digits) => {
            let value = constant::only(&subject, function, |value| digits.split(value).is_some());
            let numbers = value.and_then(|value| digits.split(value));
            readings.extend(numbers.map(|numbers| Reading::new(&numbers, format!("constant in {function}"))));
        }
        Tells::Pair(function) => {
            let stored = constant::stored(&subject, function);
            if let [major @ 1..100, minor @ 0..100, ..] = stored[..] {
                readings.push(Reading::new(&[major, minor], format!("constants in {function}")));
            }
            readings.extend(text::compiler(&subject));
        }
    }
    if *library == "nccl" {
        readings.extend(text::nccl(&subject));
    }
    Some(identity(library, None, readings))
}

fn identity(library: &'static str, component: Option<String>, readings: Vec<Reading>) -> Identity {
    Identity { library, component, version: agreed(&readings), readings, built_against_cudnn: None }
}

/// The longest version, if the others are its beginnings.
fn agreed(readings: &[Reading]) -> Option<String> {
    let longest = readings.iter().max_by_key(|reading| reading.version.split('.').count())?;
    let begins = |reading: &Reading| {
        longest.version.strip_prefix(&reading.version).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    readings.iter().all(begins).then(|| longest.version.clone())
}

/// A soname without what follows `.so`, and without the hash that auditwheel (`-1a2b3c4d`) or torchvision's builds
/// (`.1a2b3c4d`) put before it.
fn stem(soname: &str) -> &str {
    let stem = soname.split_once(".so").map_or(soname, |(stem, _)| stem);
    match stem.rsplit_once(['-', '.']) {
        Some((name, hash)) if hash.len() >= 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => stem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_hashes() {
        assert_eq!(stem("libcudnn.so.9"), "libcudnn");
        assert_eq!(stem("libcudnn_ops-1a2b3c4d.so.9"), "libcudnn_ops");
        assert_eq!(stem("libcudart.e8e8b82a.so.12"), "libcudart");
        assert_eq!(stem("libnvrtc-builtins.so.12.8"), "libnvrtc-builtins");
    }

    #[test]
    fn numbers_are_versions() {
        let split = |digits: Digits, value| digits.split(value).unwrap_or_default();
        assert_eq!(split(Digits::Thousands, 11303), [11, 3, 3]);
        assert_eq!(split(Digits::Thousands, 701), [0, 7, 1]);
        assert_eq!(split(Digits::TenThousands, 120804), [12, 8, 4]);
        assert_eq!(split(Digits::Cuda, 12080), [12, 8]);
        assert_eq!(split(Digits::ByMagnitude, 2804), [2, 8, 4]);
        assert_eq!(split(Digits::ByMagnitude, 22703), [2, 27, 3]);
        assert_eq!(split(Digits::Interface, 130202), [13, 2]);
        assert_eq!(Digits::Interface.split(26), None);
        assert_eq!(Digits::TenThousands.split(u32::MAX), None);
    }

    #[test]
    fn tellings_must_agree() {
        let readings = |versions: &[&str]| -> Vec<Reading> {
            versions.iter().map(|version| Reading { version: (*version).into(), method: String::new() }).collect()
        };
        assert_eq!(agreed(&readings(&["12.8", "12.8.93"])).as_deref(), Some("12.8.93"));
        assert_eq!(agreed(&readings(&["12.8", "12.7.0"])), None);
        assert_eq!(agreed(&readings(&["12.8", "12.80.1"])), None);
        assert_eq!(agreed(&[]), None);
    }
}
