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

/// The bundled scenarios, a line each: the name, and what it shows.
pub fn lessons() -> String {
    let width = LIBRARY.names().map(str::len).max().unwrap_or(0);
    let line = |it: &Bundled| format!("  {:width$}  {}\n", it.name, point(it.text));
    SCENARIOS.iter().map(line).collect()
}

/// What a scenario shows: the first sentence of its `about`.
fn point(text: &str) -> &str {
    let about = text.split_once("\nabout = \"");
    let first = about.and_then(|(_, about)| about.split_once(". "));
    first.map_or("", |(first, _)| first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_scenario_shows_fits_eighty_columns() {
        let lessons = lessons();
        assert_eq!(lessons.lines().count(), SCENARIOS.len());
        for line in lessons.lines() {
            let (name, point) = line.trim().split_once("  ").expect("what it shows");
            assert!(
                line.len() < 80 && point.trim().len() > 30,
                "{name}: {point}"
            );
        }
    }

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
