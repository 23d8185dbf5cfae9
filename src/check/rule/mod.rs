//! All rules, those that know a cause before those that name the loader's symptom.

mod architecture_mismatch;
mod base_digest_drift;
mod cpu_build_installed;
mod cpu_fallback;
mod cuda_compat_wrong_target;
mod cuda_major_mixed;
mod cuda_stub_linked;
mod cudnn_major_mismatch;
mod cudnn_older_than_built;
mod cudnn_sublibrary_missing;
mod cudnn_symbol_missing;
mod cudnn_version_mixed;
mod deleted_mapping;
mod driver_library_in_image;
mod driver_minor_version;
mod driver_too_new;
mod driver_too_old;
mod duplicate_soname;
pub(super) mod env_variable_renamed;
pub(super) mod env_variable_unknown;
mod executable_stack;
mod glibc_too_new;
mod gpu_code_jit;
mod gpu_code_missing;
mod image_driver_floor;
mod image_partly_read;
pub mod library_modified;
mod library_unreadable;
mod libstdcxx_too_old;
mod loaded_from_elsewhere;
mod loaded_twice;
mod lock_drift;
mod mismatch;
mod nccl_mismatch;
mod not_loaded;
mod nvjitlink_mismatch;
mod ptx_jit_unavailable;
mod second_cudnn_in_image;
mod shadowed_library;
mod symbol_version_missing;
mod torch_abi_mismatch;
mod torch_cuda_mismatch;
mod undefined_symbol;
mod unresolved_needed;

use super::Rule;

/// In the order in which they run.
pub const ALL: &[Rule] = &[
    deleted_mapping::RULE,
    library_unreadable::RULE,
    nccl_mismatch::RULE,
    nvjitlink_mismatch::RULE,
    loaded_twice::RULE,
    loaded_from_elsewhere::RULE,
    not_loaded::RULE,
    shadowed_library::RULE,
    cudnn_version_mixed::RULE,
    cudnn_major_mismatch::RULE,
    cudnn_sublibrary_missing::RULE,
    cudnn_older_than_built::RULE,
    cudnn_symbol_missing::RULE,
    torch_abi_mismatch::RULE,
    torch_cuda_mismatch::RULE,
    glibc_too_new::RULE,
    libstdcxx_too_old::RULE,
    unresolved_needed::RULE,
    symbol_version_missing::RULE,
    undefined_symbol::RULE,
    cuda_major_mixed::RULE,
    duplicate_soname::RULE,
    cuda_stub_linked::RULE,
    driver_library_in_image::RULE,
    cuda_compat_wrong_target::RULE,
    second_cudnn_in_image::RULE,
    image_driver_floor::RULE,
    image_partly_read::RULE,
    base_digest_drift::RULE,
    executable_stack::RULE,
    architecture_mismatch::RULE,
    cpu_build_installed::RULE,
    cpu_fallback::RULE,
    driver_too_old::RULE,
    driver_too_new::RULE,
    driver_minor_version::RULE,
    gpu_code_missing::RULE,
    ptx_jit_unavailable::RULE,
    gpu_code_jit::RULE,
    env_variable_renamed::RULE,
    env_variable_unknown::RULE,
    lock_drift::RULE,
    library_modified::RULE,
];

/// The rule of that name.
pub fn find(code: &str) -> Option<&'static Rule> {
    ALL.iter().find(|rule| rule.code == code)
}
