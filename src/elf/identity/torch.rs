//! The version of PyTorch's libraries, and of the cuDNN that they were compiled against: `caffe2::GetBuildOptions` in
//! libtorch_cpu makes a table of names and values, which the compiler keeps as texts or as constants in the code.

use super::constant::{self, pointers, slot_of, text_at};
use super::text::dotted;
use super::{Reading, Subject};

const NAMES: [&str; 2] = ["_ZN6caffe215GetBuildOptionsB5cxx11Ev", "_ZN6caffe215GetBuildOptionsEv"];

/// The part of torch that a library is: `cuda` of `libtorch_cuda`, `c10`, none of `libtorch`; `None` for other libraries.
pub(super) fn component(stem: &str) -> Option<Option<String>> {
    match stem {
        "libtorch" => Some(None),
        "libtorch_cpu"
        | "libtorch_cuda"
        | "libtorch_cuda_linalg"
        | "libtorch_python"
        | "libtorch_global_deps"
        | "libtorch_nvshmem" => Some(stem.strip_prefix("libtorch_").map(str::to_owned)),
        "libc10" | "libc10_cuda" => Some(stem.strip_prefix("lib").map(str::to_owned)),
        _ => None,
    }
}

/// The version that it was built as: `2.8.0`.
pub(super) fn version(subject: &Subject<'_, '_>) -> Option<Reading> {
    option(subject, "TORCH_VERSION", b"TORCH_VE")
}

/// The cuDNN that it was compiled against.
pub(super) fn built_against_cudnn(subject: &Subject<'_, '_>) -> Option<Reading> {
    option(subject, "CUDNN_VERSION", b"CUDNN_VE")
}

/// The value of a build option. `start` is how its name begins, which is one constant where the name is no text.
fn option(subject: &Subject<'_, '_>, name: &str, start: &[u8; 8]) -> Option<Reading> {
    let (code, address) = NAMES.iter().find_map(|function| constant::body(subject, function))?;
    let method = format!("build option {name}");
    // A pair of two texts, name and value: each a pointer, a length, and 16 bytes for the text itself.
    const FROM_NAME_TO_VALUE: i32 = 32;
    let in_code = slot_of(&code, start).and_then(|slot| text_at(&code, slot.checked_add(FROM_NAME_TO_VALUE)?));
    if let Some(text) = in_code {
        let version = String::from_utf8(text).ok().filter(|text| dotted(text).as_ref() == Some(text))?;
        return Some(Reading { version, method: method + ", a constant" });
    }
    let mut texts = pointers(&code, address).into_iter().filter_map(|(_, target)| {
        let bytes = constant::read(subject, target, 32)?;
        let end = memchr::memchr(0, &bytes)?;
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    });
    texts.find(|text| text == name)?;
    // Between the two the code may point to the end of the name.
    let version = texts.take(3).find_map(|text| dotted(&text).filter(|version| *version == text))?;
    Some(Reading { version, method: method + ", a text" })
}
