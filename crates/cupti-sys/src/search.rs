//! Where CUDA's libraries may lie, in which order, and which one fits the driver.
//!
//! What the user says (`CUPTOP_CUPTI`, `CUPTOP_NVRTC`) is the only candidate. Without it the first hit wins, in this
//! order:
//!
//! - what the process has mapped already: a second copy in one process would be a second state machine over one driver
//!   slot
//! - the wheels of the program's own Python and of the Pythons on `PATH`
//! - conda, the toolkits, the system's libraries
//! - what the system's loader finds under a name with a version
//!
//! That is the order of NVIDIA's own cuda-pathfinder, so cuptop sees the versions that a Python program on this
//! machine would load. Files are named by absolute paths: the loader's own search would take the first that happens to
//! lie around.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The driver's library, which the system's loader finds. Never `libcuda.so`, which is often the toolkit's stub.
pub const DRIVER: &str = "libcuda.so.1";

/// A library of CUDA's that is looked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Wanted {
    /// What its file names begin with ("libcupti").
    pub stem: &'static str,
    /// The variable that names the file to use.
    pub variable: &'static str,
    /// What would help where there is none.
    pub help: &'static str,
    /// Its file names, newest first.
    files: &'static [&'static str],
    /// The folder of its wheel for CUDA 11 and 12; that of CUDA 13 is one for all.
    wheel: &'static str,
    /// A folder of a toolkit that only this library lies in.
    extra: Option<&'static str>,
    /// Whether one for a newer CUDA than the driver's may do.
    newer_may_do: bool,
}

/// The library that records what a GPU does.
pub const CUPTI: Wanted = Wanted {
    stem: "libcupti",
    variable: "CUPTOP_CUPTI",
    help: "pip install nvidia-cuda-cupti (13.0.85 for a driver of CUDA 13; nvidia-cuda-cupti-cu12 for CUDA 12), or set \
           CUPTOP_CUPTI to the path of a libcupti.so of the driver's CUDA version",
    files: &[
        "libcupti.so.13",
        "libcupti.so.12",
        "libcupti.so.11.8",
        "libcupti.so",
    ],
    wheel: "cuda_cupti",
    extra: Some("extras/CUPTI/lib64"),
    // It answers "not initialised".
    newer_may_do: false,
};

/// The compiler.
pub const NVRTC: Wanted = Wanted {
    stem: "libnvrtc",
    variable: "CUPTOP_NVRTC",
    help: "install it with `pip install nvidia-cuda-nvrtc` or with a CUDA toolkit, or set CUPTOP_NVRTC to the absolute \
           path of libnvrtc.so.13",
    files: &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"],
    wheel: "cuda_nvrtc",
    extra: None,
    newer_may_do: true,
};

/// Folders of conda's and a toolkit's `targets` that hold code for this processor; servers with Arm's are "sbsa".
const TARGETS: &[&str] = if cfg!(target_arch = "aarch64") {
    &["targets/sbsa-linux/lib", "targets/aarch64-linux/lib"]
} else {
    &["targets/x86_64-linux/lib"]
};

/// Why a candidate is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The user names it.
    Chosen,
    /// The process has loaded it already.
    Mapped,
    /// It lies in a folder that is searched.
    Found,
    /// The system's loader may know it under this name.
    Loader,
}

/// One file to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The library: an absolute path, or for [`Why::Loader`] a name.
    pub path: PathBuf,
    /// Why there.
    pub why: Why,
    /// The CUDA major version, where the file's name tells.
    pub major: Option<u32>,
}

/// What the search looks at: the process's surroundings, replaceable in tests.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// What [`Wanted::variable`] says.
    pub chosen: Option<PathBuf>,
    /// Files mapped into this process.
    pub mapped: Vec<PathBuf>,
    /// Directories named `site-packages` that may hold NVIDIA's wheels.
    pub site_packages: Vec<PathBuf>,
    /// `$CONDA_PREFIX`.
    pub conda: Option<PathBuf>,
    /// Toolkit roots.
    pub toolkits: Vec<PathBuf>,
    /// The system's library directories.
    pub system: Vec<PathBuf>,
}

impl Surroundings {
    /// This process's.
    pub fn of_this_process(wanted: &Wanted) -> Surroundings {
        let mapped = mapped_files();
        let path = |name: &str| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let mut site_packages: Vec<PathBuf> = mapped
            .iter()
            .filter_map(|file| ancestor(file, &["site-packages", "dist-packages"]))
            .collect();
        let prefix = |program: PathBuf| Some(program.parent()?.parent()?.to_path_buf());
        let prefixes = path("VIRTUAL_ENV")
            .into_iter()
            // …/bin/python3.12 belongs to …/lib/python3.12/site-packages.
            .chain(std::env::current_exe().ok().and_then(prefix))
            // A virtual environment's python is a link to the system's: its name leads to the environment.
            .chain(path("_").and_then(prefix))
            .chain(pythons(&path("PATH").unwrap_or_default()));
        site_packages.extend(prefixes.flat_map(|prefix| site_packages_of(&prefix)));
        let toolkits = [path("CUDA_PATH"), path("CUDA_HOME")]
            .into_iter()
            .flatten()
            .chain(["/usr/local/cuda".into()])
            .chain(newest_first(Path::new("/usr/local"), "cuda-"))
            .chain(["/opt/cuda".into()])
            .collect();
        Surroundings {
            chosen: path(wanted.variable),
            mapped,
            site_packages,
            conda: path("CONDA_PREFIX"),
            toolkits,
            system: vec![
                format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH).into(),
                "/usr/lib64".into(),
            ],
        }
    }

    /// The existing files in the order of the search, without repetitions, then the names for the loader.
    pub fn candidates(&self, wanted: &Wanted) -> Vec<Candidate> {
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        let mut offer = |path: PathBuf, why| {
            if !path.is_absolute() || !path.is_file() {
                return;
            }
            let Ok(real) = path.canonicalize() else {
                return;
            };
            if seen.insert(real.clone()) {
                let major = wanted.major_of(&path).or_else(|| wanted.major_of(&real));
                found.push(Candidate { path, why, major });
            }
        };
        if let Some(path) = &self.chosen {
            // Who names a library wants that one: another in its place would be a surprise.
            offer(path.clone(), Why::Chosen);
            return found;
        }
        for path in self.mapped.iter().filter(|path| wanted.is_it(path)) {
            offer(path.clone(), Why::Mapped);
        }
        for directory in self.directories(wanted) {
            for file in wanted.files {
                offer(directory.join(file), Why::Found);
            }
        }
        found.extend(wanted.files.iter().filter_map(|file| {
            let path = PathBuf::from(file);
            let major = Some(wanted.major_of(&path)?);
            let why = Why::Loader;
            Some(Candidate { path, why, major })
        }));
        found
    }

    /// The directories that are searched, existing or not, in order.
    pub fn directories(&self, wanted: &Wanted) -> Vec<PathBuf> {
        let mut all = Vec::new();
        for site in &self.site_packages {
            all.push(site.join("nvidia/cu13/lib"));
            all.push(site.join("nvidia").join(wanted.wheel).join("lib"));
        }
        if let Some(conda) = &self.conda {
            all.push(conda.join("lib"));
            all.extend(TARGETS.iter().map(|lib| conda.join(lib)));
        }
        for root in &self.toolkits {
            let libs = TARGETS.iter().chain(&["lib64", "lib"]);
            all.extend(wanted.extra.iter().chain(libs).map(|lib| root.join(lib)));
        }
        all.extend(self.system.iter().cloned());
        let mut seen = HashSet::new();
        all.retain(|directory| seen.insert(directory.clone()));
        all
    }
}

impl Wanted {
    /// Puts what fits the driver's major version first; older ones after it, newest first. Newer ones are left out, or
    /// come last where they may do. The user's choice and a mapped library stay in front: there is no way around them.
    pub fn in_order_of_fit(
        &self,
        mut candidates: Vec<Candidate>,
        driver: Option<u32>,
    ) -> Vec<Candidate> {
        let Some(driver) = driver else {
            return candidates;
        };
        let is_fixed = |it: &Candidate| matches!(it.why, Why::Chosen | Why::Mapped);
        candidates.retain(|it| {
            is_fixed(it) || self.newer_may_do || it.major.is_none_or(|major| major <= driver)
        });
        candidates.sort_by_key(|it| match it.major {
            _ if is_fixed(it) => (0, 0),
            Some(major) if major < driver => (2, driver - major),
            Some(major) if major > driver => (3, major - driver),
            _ => (1, 0),
        });
        candidates
    }

    fn is_it(&self, path: &Path) -> bool {
        path.file_name()
            .and_then(|name| name.to_str()?.strip_prefix(self.stem))
            .is_some_and(|rest| rest.starts_with(".so"))
    }

    /// `libcupti.so.13` → 13, `libcupti.so.2025.3.1` → 13: toolkits number CUPTI's file by year.
    fn major_of(&self, path: &Path) -> Option<u32> {
        let name = path.file_name()?.to_str()?;
        let numbers = name.strip_prefix(self.stem)?.strip_prefix(".so.")?;
        match numbers.split('.').next()?.parse().ok()? {
            major @ 11..=99 => Some(major),
            // 2022.x is 11.7/11.8 and 12.0, 2023.1 to 2025.2 is 12.x, 2025.3 (August 2025) is 13.0.
            2025 => {
                let release: u32 = numbers.split('.').nth(1)?.parse().ok()?;
                Some(if release >= 3 { 13 } else { 12 })
            }
            2023..=2024 => Some(12),
            2026.. => Some(13),
            _ => None,
        }
    }
}

/// Files mapped into this process, each once, in order of address.
pub fn mapped_files() -> Vec<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut seen = HashSet::new();
    maps.lines()
        .filter_map(|line| line.find('/').map(|at| &line[at..]))
        .filter(|path| !path.ends_with(" (deleted)") && seen.insert(*path))
        .map(PathBuf::from)
        .collect()
}

fn ancestor(file: &Path, names: &[&str]) -> Option<PathBuf> {
    file.ancestors()
        .find(|path| {
            path.file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| names.contains(&name))
        })
        .map(Path::to_path_buf)
}

/// The prefixes of the Pythons in the folders of a `PATH`.
fn pythons(path: &Path) -> Vec<PathBuf> {
    std::env::split_paths(path)
        .filter(|bin| bin.ends_with("bin") && bin.join("python3").exists())
        .filter_map(|bin| Some(bin.parent()?.to_path_buf()))
        .collect()
}

/// `PREFIX/lib/python3.*/site-packages`, newest python first.
fn site_packages_of(prefix: &Path) -> Vec<PathBuf> {
    ["lib", "lib64"]
        .iter()
        .flat_map(|lib| newest_first(&prefix.join(lib), "python"))
        .flat_map(|python| ["site-packages", "dist-packages"].map(|name| python.join(name)))
        .filter(|site| site.is_dir())
        .collect()
}

/// The entries of a folder whose names are `start` and a version, the newest first: 3.12 is newer than 3.9.
fn newest_first(folder: &Path, start: &str) -> Vec<PathBuf> {
    let version = |name: &str| -> Option<Vec<u32>> {
        let numbers = name.strip_prefix(start)?.split('.');
        // Python's build without a global lock is "3.13t".
        numbers
            .map(|it| it.trim_end_matches(char::is_alphabetic).parse().ok())
            .collect()
    };
    let mut found: Vec<(Vec<u32>, PathBuf)> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((version(entry.file_name().to_str()?)?, entry.path())))
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found.into_iter().map(|(_, path)| path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(wanted: &Wanted, path: &str, why: Why) -> Candidate {
        Candidate {
            path: path.into(),
            why,
            major: wanted.major_of(Path::new(path)),
        }
    }

    fn ordered(wanted: &Wanted, all: &[Candidate], driver: u32) -> Vec<String> {
        wanted
            .in_order_of_fit(all.to_vec(), Some(driver))
            .into_iter()
            .map(|it| it.path.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn file_names_tell_the_major_version() {
        let major = |name: &str| CUPTI.major_of(Path::new(name));
        assert_eq!(major("/a/libcupti.so.13"), Some(13));
        assert_eq!(major("/a/libcupti.so.11.8"), Some(11));
        assert_eq!(major("/a/libcupti.so.2025.3.1"), Some(13));
        assert_eq!(major("/a/libcupti.so.2025.1.0"), Some(12));
        assert_eq!(major("/a/libcupti.so"), None);
        assert_eq!(NVRTC.major_of(Path::new("/a/libnvrtc.so.12")), Some(12));
        assert!(!NVRTC.is_it(Path::new("/a/libnvrtc-builtins.so.13.0")));
    }

    #[test]
    fn the_drivers_major_goes_first_older_follow_newer_are_left_out() {
        let all = [
            candidate(&CUPTI, "/o/libcupti.so.11.8", Why::Found),
            candidate(&CUPTI, "/w/libcupti.so.12", Why::Found),
            candidate(&CUPTI, "/t/libcupti.so.13", Why::Found),
        ];
        assert_eq!(
            ordered(&CUPTI, &all, 13),
            [
                "/t/libcupti.so.13",
                "/w/libcupti.so.12",
                "/o/libcupti.so.11.8"
            ]
        );
        assert_eq!(
            ordered(&CUPTI, &all, 12),
            ["/w/libcupti.so.12", "/o/libcupti.so.11.8"]
        );
    }

    #[test]
    fn a_newer_compiler_comes_last() {
        let all = [
            candidate(&NVRTC, "/a/libnvrtc.so.13", Why::Found),
            candidate(&NVRTC, "/a/libnvrtc.so.11.2", Why::Found),
            candidate(&NVRTC, "/b/libnvrtc.so.12", Why::Found),
            candidate(&NVRTC, "libnvrtc.so.12", Why::Loader),
        ];
        assert_eq!(
            ordered(&NVRTC, &all, 12),
            [
                "/b/libnvrtc.so.12",
                "libnvrtc.so.12",
                "/a/libnvrtc.so.11.2",
                "/a/libnvrtc.so.13"
            ]
        );
    }

    #[test]
    fn a_mapped_library_stays_in_front_whatever_its_version() {
        let all = [
            candidate(&CUPTI, "/t/libcupti.so.13", Why::Found),
            candidate(&CUPTI, "/m/libcupti.so.14", Why::Mapped),
        ];
        assert_eq!(
            ordered(&CUPTI, &all, 13),
            ["/m/libcupti.so.14", "/t/libcupti.so.13"]
        );
    }

    #[test]
    fn both_libraries_are_found_in_the_same_order_of_places() {
        let root = tempfile::tempdir().expect("a directory");
        let file = |path: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(&path, "").expect("written");
            path
        };
        // A Python that is found on PATH, of two versions; conda; a toolkit.
        file("env/bin/python3");
        let new = file("env/lib/python3.12/site-packages/nvidia/cu13/lib/libcupti.so.13");
        let old = file("env/lib/python3.9/site-packages/nvidia/cuda_cupti/lib/libcupti.so.12");
        let conda = file("conda/lib/libcupti.so.12");
        let toolkit = file("cuda/extras/CUPTI/lib64/libcupti.so");
        let wheel = file("env/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
        let nvrtc = file("cuda/lib64/libnvrtc.so.12");
        file("elsewhere/libnvrtc.so.13");
        let path = std::env::join_paths([root.path().join("bin"), root.path().join("env/bin")]);
        let prefixes = pythons(Path::new(&path.expect("a PATH")));
        let surroundings = Surroundings {
            site_packages: prefixes.iter().flat_map(|p| site_packages_of(p)).collect(),
            conda: Some(root.path().join("conda")),
            toolkits: vec![root.path().join("cuda")],
            ..Surroundings::default()
        };
        let found = |wanted: &Wanted| -> Vec<PathBuf> {
            let all = surroundings.candidates(wanted).into_iter();
            all.filter(|it| it.why == Why::Found)
                .map(|it| it.path)
                .collect()
        };
        assert_eq!(found(&CUPTI), [new, old, conda, toolkit]);
        assert_eq!(found(&NVRTC), [wheel, nvrtc]);
    }

    #[test]
    fn what_the_user_names_is_the_only_candidate() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let with = |chosen: &Path| Surroundings {
            chosen: Some(chosen.into()),
            mapped: vec!["/usr/lib/libcupti.so.13".into()],
            ..Surroundings::default()
        };
        let found = with(file.path()).candidates(&CUPTI);
        assert_eq!(
            found,
            [candidate(
                &CUPTI,
                &file.path().to_string_lossy(),
                Why::Chosen
            )]
        );
        assert_eq!(with(Path::new("libcupti.so.13")).candidates(&CUPTI), []);
    }
}
