//! Names of CUDA API functions by callback id.
//!
//! Ids have never been renumbered, but every release adds some: the library at hand is asked.

use std::ffi::CStr;

use crate::api::{Api, SUCCESS};

/// One more than the highest callback id that is asked for. CUDA 13.0 ends at about 820 (driver) and 523 (runtime).
pub const LIMIT: u32 = 2048;

/// The function's name in `domain` ([`crate::kinds::domain`]) without its `_v7000` suffix; `None` when the
/// library knows no such id.
pub fn callback_name(api: &Api, domain: u32, id: u32) -> Option<String> {
    let mut name = std::ptr::null();
    // SAFETY: writes one pointer to a static string of the library.
    let code = unsafe { (api.callback_name)(domain, id, &raw mut name) };
    if code != SUCCESS || name.is_null() {
        return None;
    }
    // SAFETY: a success with a pointer means a string that lives as long as the library.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    Some(strip_version(&name).to_owned())
}

/// `cudaLaunchKernel_v7000` and `cudaMemcpyAsync_ptsz_v7000` without the version.
pub fn strip_version(name: &str) -> &str {
    match name.rfind("_v") {
        // cuMemAlloc_v2 is a name; versions of the runtime have four digits or more.
        Some(at)
            if name.len() - at >= 6 && name[at + 2..].bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            &name[..at]
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_versions_of_the_runtime_are_stripped() {
        assert_eq!(strip_version("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
        assert_eq!(
            strip_version("cudaMemcpyAsync_ptsz_v7000"),
            "cudaMemcpyAsync_ptsz"
        );
        assert_eq!(strip_version("cudaMalloc_v13000"), "cudaMalloc");
        assert_eq!(strip_version("cuMemAlloc_v2"), "cuMemAlloc_v2");
        assert_eq!(strip_version("cuLaunchKernel"), "cuLaunchKernel");
    }
}
