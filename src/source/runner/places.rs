//! Where CUDA's run-time libraries lie: beside PyTorch in a Python environment, in conda, in a toolkit,
//! or where the system's loader looks.
//!
//! The order is the one NVIDIA's own cuda-pathfinder uses: wheels, conda, toolkit, system. The first is
//! what a Python program on this machine would load, so cuptop sees the same versions.

use std::path::{Path, PathBuf};

/// What of the environment decides where to look.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    /// `VIRTUAL_ENV`, then the prefix of each Python on `PATH`.
    pub(crate) python_prefixes: Vec<PathBuf>,
    /// `CONDA_PREFIX`.
    pub(crate) conda: Option<PathBuf>,
    /// `CUDA_PATH`, `CUDA_HOME`, then the usual places.
    pub(crate) toolkits: Vec<PathBuf>,
}

impl Surroundings {
    /// Those of this process.
    pub(crate) fn here() -> Surroundings {
        let variable = |name| {
            std::env::var_os(name)
                .filter(|v| !v.is_empty())
                .map(PathBuf::from)
        };
        let mut python_prefixes: Vec<PathBuf> = variable("VIRTUAL_ENV").into_iter().collect();
        if let Some(path) = std::env::var_os("PATH") {
            for bin in std::env::split_paths(&path) {
                if bin.ends_with("bin")
                    && bin.join("python3").exists()
                    && let Some(prefix) = bin.parent()
                {
                    python_prefixes.push(prefix.to_owned());
                }
            }
        }
        let mut toolkits: Vec<PathBuf> = ["CUDA_PATH", "CUDA_HOME"]
            .into_iter()
            .filter_map(variable)
            .collect();
        toolkits.push("/usr/local/cuda".into());
        // Newest first.
        let mut versions = children(Path::new("/usr/local"), "cuda-");
        versions.reverse();
        toolkits.append(&mut versions);
        toolkits.push("/opt/cuda".into());
        Surroundings {
            python_prefixes,
            conda: variable("CONDA_PREFIX"),
            toolkits,
        }
    }

    /// Folders that may hold a library; `wheel` is the folder of its CUDA 12 wheel ("cuda_nvrtc").
    pub(crate) fn folders(&self, wheel: &str) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        for prefix in &self.python_prefixes {
            // The newest Python first.
            let pythons = children(&prefix.join("lib"), "python3").into_iter().rev();
            for site in pythons.flat_map(|p| [p.join("site-packages"), p.join("dist-packages")]) {
                folders.push(site.join("nvidia/cu13/lib"));
                folders.push(site.join("nvidia").join(wheel).join("lib"));
            }
        }
        let machine = format!("targets/{}-linux/lib", std::env::consts::ARCH);
        // NVIDIA calls 64-bit Arm servers "sbsa".
        let targets = [machine.as_str(), "targets/sbsa-linux/lib"];
        if let Some(conda) = &self.conda {
            folders.push(conda.join("lib"));
            folders.extend(targets.iter().map(|t| conda.join(t)));
        }
        for toolkit in &self.toolkits {
            folders.extend(targets.iter().map(|t| toolkit.join(t)));
            folders.push(toolkit.join("lib64"));
            folders.push(toolkit.join("lib"));
        }
        folders.push(format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH).into());
        folders.push("/usr/lib64".into());
        let mut seen = std::collections::HashSet::new();
        folders.retain(|folder| seen.insert(folder.clone()));
        folders
    }
}

/// The children of `folder` whose names begin with `start`, sorted by name. Empty when there is none.
fn children(folder: &Path, start: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(start))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheels_come_before_conda_and_conda_before_a_toolkit() {
        let root = tempfile::tempdir().expect("a directory");
        let venv = root.path().join("venv");
        std::fs::create_dir_all(venv.join("lib/python3.12")).expect("a directory");
        let surroundings = Surroundings {
            python_prefixes: vec![venv.clone(), venv.clone()],
            conda: Some("/conda".into()),
            toolkits: vec!["/toolkit".into()],
        };
        let folders = surroundings.folders("cuda_nvrtc");
        let at = |path: PathBuf| {
            folders
                .iter()
                .position(|f| *f == path)
                .unwrap_or_else(|| panic!("{} is looked at", path.display()))
        };
        let site = venv.join("lib/python3.12/site-packages/nvidia");
        assert_eq!(at(site.join("cu13/lib")), 0);
        assert_eq!(at(site.join("cuda_nvrtc/lib")), 1);
        assert!(at("/conda/lib".into()) < at("/toolkit/lib64".into()));
        let cu13 = folders.iter().filter(|f| f.ends_with("cu13/lib")).count();
        assert_eq!(cu13, 2, "a prefix that is named twice is looked at once");
    }
}
