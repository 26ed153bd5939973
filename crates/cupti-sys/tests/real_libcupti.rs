//! Against real libcupti builds, without a driver. `CUPTOP_TEST_CUPTI` names them: absolute paths
//! with colons between; each must be of a release up to 13.1 (later ones do nothing without a driver).

use std::path::PathBuf;

use cupti_sys::library::{Library, Visibility};
use cupti_sys::names::callback_name;
use cupti_sys::{Api, RecordSizes, kinds};

/// A libcupti as it is: without a driver, whatever its version.
struct Real {
    api: Api,
    path: PathBuf,
    version: u32,
}

fn libraries() -> Vec<Real> {
    let list = std::env::var_os("CUPTOP_TEST_CUPTI").expect("CUPTOP_TEST_CUPTI names them");
    std::env::split_paths(&list)
        .filter(|path| !path.as_os_str().is_empty())
        .map(|path| {
            let library = Library::open(&path, Visibility::Local).expect("a library");
            // SAFETY: the variable names a libcupti.
            let api = unsafe { Api::resolve(library) }.expect("a libcupti");
            let mut version = 0;
            // SAFETY: writes one u32.
            let code = unsafe { (api.get_version)(&raw mut version) };
            assert_eq!(code, 0, "{}", path.display());
            Real { api, path, version }
        })
        .collect()
}

#[test]
#[ignore = "needs a libcupti, named by CUPTOP_TEST_CUPTI"]
fn sizes_asked_of_the_library_are_those_of_the_table() {
    for cupti in libraries() {
        let sizes = RecordSizes::of(&cupti.api, cupti.version);
        assert_eq!(
            sizes.surprises,
            Vec::<String>::new(),
            "{}",
            cupti.path.display()
        );
        for kind in [
            kinds::CONCURRENT_KERNEL,
            kinds::MEMCPY,
            kinds::MEMCPY2,
            kinds::MEMSET,
            kinds::RUNTIME,
            kinds::SYNCHRONIZATION,
            kinds::OVERHEAD,
            kinds::MEMORY2,
            kinds::CUDA_EVENT,
            kinds::STREAM,
            kinds::DEVICE,
            kinds::CONTEXT,
            kinds::MARKER,
            kinds::NAME,
        ] {
            assert!(
                sizes.get(kind).is_some(),
                "kind {kind} of {}",
                cupti.path.display()
            );
            if let Some(table) = cupti_sys::sizes::known_size(kind, cupti.version).map(usize::from)
            {
                assert_eq!(
                    sizes.get(kind),
                    Some(table),
                    "kind {kind} of {}",
                    cupti.path.display()
                );
            }
        }
    }
}

#[test]
#[ignore = "needs a libcupti, named by CUPTOP_TEST_CUPTI"]
fn functions_have_the_names_of_the_header() {
    for cupti in libraries() {
        // cupti_runtime_cbid.h and cupti_driver_cbid.h
        for (domain, id, name) in [
            (kinds::domain::RUNTIME_API, 211, "cudaLaunchKernel"),
            (kinds::domain::RUNTIME_API, 41, "cudaMemcpyAsync"),
            (kinds::domain::RUNTIME_API, 165, "cudaDeviceSynchronize"),
            (kinds::domain::DRIVER_API, 307, "cuLaunchKernel"),
            (kinds::domain::DRIVER_API, 277, "cuMemcpyHtoDAsync_v2"),
        ] {
            assert_eq!(callback_name(&cupti.api, domain, id).as_deref(), Some(name));
        }
        assert_eq!(
            callback_name(&cupti.api, kinds::domain::RUNTIME_API, 100_000),
            None
        );
    }
}
