//! The lock as text: what is written is read back, and what is damaged is explained.

mod damaged;
mod diff;
mod image;
mod roundtrip;

/// A lock with two targets, a pending package and shared libraries.
pub(crate) const SAMPLE: &str = r#"# Written by gpulock. Change gpulock.toml and run `gpulock resolve`.
version = 1
revision = 0
inputs = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
matrix = "sha256:2222222222222222222222222222222222222222222222222222222222222222"

[[index]]
name = "pypi"
url = "https://pypi.invalid/simple"

[[index]]
name = "torch-cu129"
url = "https://torch.invalid/whl/cu129"

[[target]]
name = "cluster"
platform = "linux-x86_64"
glibc = "2.28"
python = "3.11"
torch = "2.8.0"
variant = "cu128"
cuda = "12.8"
cudnn = "9.10.2.21"
nccl = "2.27.3"
driver = { given = "570.124.06", floor = "525.60.13", native = "570.26", tier = "native" }
gpus = [
    { name = "RTX 5090", sm = "sm_120", code = "sass", from = "sm_120" },
]
packages = [
    { name = "filelock", version = "3.20.0", wheel = "filelock-3.20.0-py3-none-any.whl", needed-by = ["torch"] },
    { name = "torch", version = "2.8.0", wheel = "torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl", needed-by = ["gpulock.toml"] },
]

[[target]]
name = "edge"
platform = "linux-x86_64"
python = "3.11"
torch = "2.13.0"
variant = "cu129"
driver = {}
gpus = [
    { name = "sm_130", sm = "sm_130", code = "unknown" },
]
inferred = ["python tags of torch 2.13.0+cu129"]
packages = [
    { name = "filelock", version = "3.20.0", wheel = "filelock-3.20.0-py3-none-any.whl", needed-by = ["torch"] },
    { name = "torch", version = "2.13.0+cu129", extras = ["opt-einsum"], index = "torch-cu129", pending = true, needed-by = ["gpulock.toml"] },
]

[wheel]
"filelock-3.20.0-py3-none-any.whl" = { index = "pypi", sha256 = "3333333333333333333333333333333333333333333333333333333333333333", size = 15000 }
"torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl" = { index = "pypi", sha256 = "4444444444444444444444444444444444444444444444444444444444444444", size = 888000000, libraries = 1 }

[library."torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl"]
"torch/lib/libc10.so" = { sha256 = "5555555555555555555555555555555555555555555555555555555555555555", size = 1 }
"#;
