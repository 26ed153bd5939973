//! The scenarios and kernels that travel inside the binary, so that `cuptop run pipeline` works from
//! anywhere. The tables are the folders `scenarios/` and `kernels/`; a test holds them together.

use scenario::bundled::{Bundled, Library};

macro_rules! scenarios {
    ($($name:literal),* $(,)?) => {
        &[$(Bundled {
            name: $name,
            text: include_str!(concat!("../scenarios/", $name, ".toml")),
        }),*]
    };
}

macro_rules! kernels {
    ($($file:literal),* $(,)?) => {
        &[$(($file, include_str!(concat!("../kernels/", $file)))),*]
    };
}

/// All bundled scenarios, in the order to show them.
const SCENARIOS: &[Bundled] = scenarios![
    "pipeline",
    "pinned_vs_pageable",
    "copy_engines",
    "tiny_copies",
    "fused_sin",
    "warmup",
    "cpu_or_gpu",
    "roofline",
    "alloc_in_loop",
    "transpose",
    "sync_points",
    "cuda_graph",
    "three_streams",
    "memory_peak",
    "cross_stream_reuse",
    "two_gpus",
];

/// All bundled kernels: file name and CUDA C++ text.
const KERNELS: &[(&str, &str)] = kernels![
    "add.cu",
    "copy.cu",
    "empty.cu",
    "fma.cu",
    "matmul.cu",
    "oob.cu",
    "reduce.cu",
    "sin.cu",
    "spin.cu",
    "transpose.cu",
];

/// The bundled scenarios and kernels.
pub const LIBRARY: Library = Library {
    scenarios: SCENARIOS,
    kernels: KERNELS,
};

#[cfg(test)]
mod tests {
    use super::*;

    /// File names in a folder of the repository with one extension, without it.
    fn stems(folder: &str, extension: &str) -> Vec<String> {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let mut names: Vec<String> = std::fs::read_dir(path)
            .expect("the folder exists")
            .map(|entry| entry.expect("readable").path())
            .filter(|path| path.extension().is_some_and(|e| e == extension))
            .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn every_file_of_the_folders_is_bundled() {
        let mut bundled: Vec<&str> = SCENARIOS.iter().map(|s| s.name).collect();
        bundled.sort_unstable();
        assert_eq!(bundled, stems("scenarios", "toml"));
        let kernels: Vec<&str> = KERNELS
            .iter()
            .map(|(file, _)| file.trim_end_matches(".cu"))
            .collect();
        assert_eq!(kernels, stems("kernels", "cu"));
    }

    #[test]
    fn every_kernel_with_a_result_is_compared_with_the_cpu() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/gpu/kernels.py");
        let checks = std::fs::read_to_string(path).expect("the checks");
        let mut entries = 0;
        for (file, text) in KERNELS {
            for rest in text.split("__global__ void ").skip(1) {
                // `__launch_bounds__(256, 2)` can stand before the name.
                let rest = rest.strip_prefix("__launch_bounds__").map_or(rest, |rest| {
                    rest.split_once(')').expect("its end").1.trim_start()
                });
                let name = rest.split('(').next().expect("a name");
                assert!(checks.contains(&format!("\"{name}\"")), "{name} of {file}");
                entries += 1;
            }
        }
        assert!(entries >= KERNELS.len(), "{entries}");
    }
}
