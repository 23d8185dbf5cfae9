//! What a torch wheel says of itself beyond its METADATA, read out of the archive by range: the CUDA that it was built
//! with, the code that it carries, the ABI of its C++ library.

use crate::diag::Failure;
use crate::python::Wheel;
use crate::registry::Client;
use crate::version::{Cuda, GpuCode};

/// What was read; absent where the wheel does not have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Probe {
    pub(super) cuda: Option<Cuda>,
    pub(super) code: Option<Vec<GpuCode>>,
    pub(super) cxx11_abi: Option<bool>,
}

/// Reads a wheel.
///
/// # Errors
/// When it cannot be had.
pub(super) fn probe(client: &Client, wheel: &Wheel) -> Result<Probe, Failure> {
    let mut version = Vec::new();
    client.search_member(wheel, "torch/version.py", &mut |part| {
        // Small: one part is all of it.
        version.extend_from_slice(part);
        false
    })?;
    let cuda = cuda(&String::from_utf8_lossy(&version));
    let mut code = None;
    if cuda.is_some() {
        client.search_member(wheel, "torch/lib/libtorch_python.so", &mut |part| {
            code = arch_flags(part);
            code.is_some()
        })?;
    }
    let mut cxx11_abi = None;
    client.search_member(wheel, "torch/lib/libc10.so", &mut |part| {
        cxx11_abi = abi(part);
        cxx11_abi.is_some()
    })?;
    Ok(Probe { cuda, code, cxx11_abi })
}

/// `cuda: Optional[str] = '13.2'`
fn cuda(version: &str) -> Option<Cuda> {
    let line = version.lines().find(|line| line.split([':', '=']).next().is_some_and(|name| name.trim() == "cuda"))?;
    let (_, value) = line.rsplit_once('=')?;
    value.trim().trim_matches(['\'', '"']).parse().ok()
}

/// The list that torch was compiled for, as `torch.cuda.get_arch_list()` prints it: a string by itself.
fn arch_flags(bytes: &[u8]) -> Option<Vec<GpuCode>> {
    let mut from = 0;
    while let Some(at) = find(&bytes[from..], b"\0sm_") {
        let start = from + at + 1;
        let length = bytes[start..].iter().position(|byte| *byte == 0)?;
        let text = std::str::from_utf8(&bytes[start..start + length]).unwrap_or_default();
        let codes: Option<Vec<GpuCode>> = text.split(' ').map(|word| word.parse().ok()).collect();
        // A lone name is a message's or a compiler's, not the list.
        if let Some(codes) = codes.filter(|codes| codes.len() > 1) {
            return Some(codes);
        }
        from = start;
    }
    None
}

/// Which `std::string` the constructor of `c10::Error` takes.
fn abi(bytes: &[u8]) -> Option<bool> {
    if find(bytes, b"_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_string").is_some() {
        Some(true)
    } else {
        find(bytes, b"_ZN3c105ErrorC2ENS_14SourceLocationESs").map(|_| false)
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_out_of_a_wheel() {
        assert_eq!(cuda("debug = False\ncuda: Optional[str] = '13.2'\nhip = None\n"), Some(Cuda::new(13, 2)));
        assert_eq!(cuda("cuda = None\n"), None);
        let flags = arch_flags(b"\0sm_90\0x\0sm_75 sm_80 compute_80\0sm_").unwrap();
        assert_eq!(flags.iter().map(ToString::to_string).collect::<Vec<_>>(), ["sm_75", "sm_80", "compute_80"]);
        assert_eq!(arch_flags(b"\0sm_90 is not\0"), None);
        // Cut off at the end of a part: the next one repeats it.
        assert_eq!(arch_flags(b"\0sm_75 sm_8"), None);
        assert_eq!(abi(b"\0_ZN3c105ErrorC2ENS_14SourceLocationESs\0"), Some(false));
        assert_eq!(abi(b"\0_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcS"), Some(true));
    }
}
