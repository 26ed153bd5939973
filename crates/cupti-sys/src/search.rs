//! Where a libcupti may lie, in which order, and which one fits the driver.
//!
//! What the user says (`CUPTOP_CUPTI`) is the only candidate. Without it the order is, first hit wins:
//! what the process has mapped already (a second copy in one process would be a second state machine over
//! one driver slot), the wheels next to the program's own CUDA, conda, the toolkit, the system's libraries.
//! Always absolute paths: the loader's search would take the first `libcupti.so` that happens to lie around.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The variable that names the libcupti to use.
pub const OVERRIDE: &str = "CUPTOP_CUPTI";

const FILES: [&str; 4] = [
    "libcupti.so.13",
    "libcupti.so.12",
    "libcupti.so.11.8",
    "libcupti.so",
];

/// One place to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The library, an absolute path.
    pub path: PathBuf,
    /// Why there.
    pub why: &'static str,
    /// The CUDA major version, where the file's name tells.
    pub major: Option<u32>,
}

/// What the search looks at: the process's surroundings, replaceable in tests.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// `$CUPTOP_CUPTI`.
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
    #[must_use]
    pub fn of_this_process() -> Surroundings {
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
        if let Some(environment) = path("VIRTUAL_ENV") {
            site_packages.extend(site_packages_of(&environment));
        }
        if let Ok(program) = std::env::current_exe() {
            // …/bin/python3.12 belongs to …/lib/python3.12/site-packages.
            if let Some(prefix) = program.parent().and_then(Path::parent) {
                site_packages.extend(site_packages_of(prefix));
            }
        }
        // A virtual environment's python is a link to the system's: its name leads to the environment.
        if let Some(prefix) =
            path("_").and_then(|program| Some(program.parent()?.parent()?.to_path_buf()))
        {
            site_packages.extend(site_packages_of(&prefix));
        }
        let mut toolkits: Vec<PathBuf> = ["CUDA_PATH", "CUDA_HOME"]
            .iter()
            .filter_map(|name| path(name))
            .collect();
        toolkits.push("/usr/local/cuda".into());
        toolkits.extend(numbered_toolkits(Path::new("/usr/local")));
        toolkits.push("/opt/cuda".into());
        Surroundings {
            chosen: path(OVERRIDE),
            mapped,
            site_packages,
            conda: path("CONDA_PREFIX"),
            toolkits,
            system: vec![
                "/usr/lib/x86_64-linux-gnu".into(),
                "/usr/lib/aarch64-linux-gnu".into(),
                "/usr/lib64".into(),
            ],
        }
    }

    /// The existing files in the order of the search, without repetitions.
    #[must_use]
    pub fn candidates(&self) -> Vec<Candidate> {
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
                let major = major_of(&path).or_else(|| major_of(&real));
                found.push(Candidate { path, why, major });
            }
        };
        if let Some(path) = &self.chosen {
            // Who names a library wants that one: another in its place would be a surprise.
            offer(path.clone(), "CUPTOP_CUPTI names it");
            return found;
        }
        for path in self.mapped.iter().filter(|path| is_cupti(path)) {
            offer(path.clone(), MAPPED);
        }
        for (directory, why) in self.directories() {
            for file in FILES {
                offer(directory.join(file), why);
            }
        }
        found
    }

    /// The directories that are searched, existing or not, in order.
    #[must_use]
    pub fn directories(&self) -> Vec<(PathBuf, &'static str)> {
        let mut all = Vec::new();
        for site in &self.site_packages {
            for wheel in ["nvidia/cu13/lib", "nvidia/cuda_cupti/lib"] {
                all.push((site.join(wheel), "an NVIDIA wheel"));
            }
        }
        for conda in self.conda.iter() {
            for lib in ["lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"] {
                all.push((conda.join(lib), "conda"));
            }
        }
        for root in &self.toolkits {
            for lib in [
                "extras/CUPTI/lib64",
                "targets/x86_64-linux/lib",
                "targets/sbsa-linux/lib",
                "lib64",
                "lib",
            ] {
                all.push((root.join(lib), "a CUDA toolkit"));
            }
        }
        for lib in &self.system {
            all.push((lib.clone(), "the system's libraries"));
        }
        all
    }
}

/// The reason given for a library that the process uses already.
pub const MAPPED: &str = "the process has loaded it already";

/// Puts what fits the driver's major version first; older ones after it, newer ones are left out
/// (they answer "not initialised"). The user's choice and a mapped library stay in front: there is
/// no way around them.
#[must_use]
pub fn in_order_of_fit(candidates: Vec<Candidate>, driver: Option<u32>) -> Vec<Candidate> {
    let Some(driver) = driver else {
        return candidates;
    };
    let (mut fixed, rest): (Vec<_>, Vec<_>) = candidates
        .into_iter()
        .partition(|it| it.why == MAPPED || it.why.starts_with(OVERRIDE));
    let (equal, rest): (Vec<_>, Vec<_>) = rest
        .into_iter()
        .partition(|it| it.major.is_none_or(|major| major == driver));
    fixed.extend(equal);
    fixed.extend(
        rest.into_iter()
            .filter(|it| it.major.is_some_and(|major| major < driver)),
    );
    fixed
}

/// Files mapped into this process, each once, in order of address.
#[must_use]
pub fn mapped_files() -> Vec<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut seen = HashSet::new();
    maps.lines()
        .filter_map(|line| line.find('/').map(|at| &line[at..]))
        .filter(|path| !path.ends_with(" (deleted)") && seen.insert(*path))
        .map(PathBuf::from)
        .collect()
}

fn is_cupti(path: &Path) -> bool {
    path.file_name()
        .and_then(|name| name.to_str())
        .is_some_and(|name| name.starts_with("libcupti.so"))
}

/// `libcupti.so.13` → 13, `libcupti.so.2025.3.1` → 13: toolkits number the file by year.
fn major_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    let numbers = name.strip_prefix("libcupti.so.")?;
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

fn ancestor(file: &Path, names: &[&str]) -> Option<PathBuf> {
    file.ancestors()
        .find(|path| {
            path.file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| names.contains(&name))
        })
        .map(Path::to_path_buf)
}

/// `PREFIX/lib/python3.*/site-packages`, newest python first.
#[must_use]
pub fn site_packages_of(prefix: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for lib in ["lib", "lib64"] {
        let Ok(entries) = std::fs::read_dir(prefix.join(lib)) else {
            continue;
        };
        for entry in entries.flatten() {
            if entry.file_name().to_string_lossy().starts_with("python3") {
                for name in ["site-packages", "dist-packages"] {
                    let site = entry.path().join(name);
                    if site.is_dir() {
                        found.push(site);
                    }
                }
            }
        }
    }
    found.sort_by(|a, b| b.cmp(a));
    found
}

fn numbered_toolkits(root: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("cuda-1"))
        .map(|entry| entry.path())
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(path: &str, why: &'static str) -> Candidate {
        Candidate {
            path: path.into(),
            why,
            major: major_of(Path::new(path)),
        }
    }

    #[test]
    fn file_names_tell_the_major_version() {
        let major = |name: &str| major_of(Path::new(name));
        assert_eq!(major("/a/libcupti.so.13"), Some(13));
        assert_eq!(major("/a/libcupti.so.11.8"), Some(11));
        assert_eq!(major("/a/libcupti.so.2025.3.1"), Some(13));
        assert_eq!(major("/a/libcupti.so.2025.1.0"), Some(12));
        assert_eq!(major("/a/libcupti.so"), None);
    }

    #[test]
    fn the_drivers_major_goes_first_older_follow_newer_are_left_out() {
        let all = vec![
            candidate("/w/libcupti.so.12", "an NVIDIA wheel"),
            candidate("/t/libcupti.so.13", "a CUDA toolkit"),
            candidate("/o/libcupti.so.11.8", "a CUDA toolkit"),
        ];
        let paths = |driver| -> Vec<_> {
            in_order_of_fit(all.clone(), Some(driver))
                .into_iter()
                .map(|it| it.path.to_string_lossy().into_owned())
                .collect()
        };
        assert_eq!(
            paths(13),
            [
                "/t/libcupti.so.13",
                "/w/libcupti.so.12",
                "/o/libcupti.so.11.8"
            ]
        );
        assert_eq!(paths(12), ["/w/libcupti.so.12", "/o/libcupti.so.11.8"]);
    }

    #[test]
    fn a_mapped_library_stays_in_front_whatever_its_version() {
        let all = vec![
            candidate("/m/libcupti.so.12", MAPPED),
            candidate("/t/libcupti.so.13", "a CUDA toolkit"),
        ];
        assert_eq!(
            in_order_of_fit(all, Some(13))[0].path,
            Path::new("/m/libcupti.so.12")
        );
    }
}
