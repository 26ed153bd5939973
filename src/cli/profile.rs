//! The profiles of GPUs that the user calibrated on this machine.
//!
//! `cuptop calibrate` writes them to a folder of their own, a file for each name of a GPU. Every command reads the
//! profile of its GPU there.

use std::path::{Path, PathBuf};

use super::exit::Ending;
use crate::report::KnownGpus;
use sim::Profile;

/// `$XDG_DATA_HOME/cuptop/profiles`, or `~/.local/share/cuptop/profiles`; `None` without a home.
fn folder() -> Option<PathBuf> {
    use etcetera::BaseStrategy as _;
    let strategy = etcetera::choose_base_strategy().ok()?;
    Some(strategy.data_dir().join("cuptop").join("profiles"))
}

/// The file of a GPU's profile, "NVIDIA H200" as `NVIDIA_H200.toml`; `None` without a home.
pub(super) fn place(gpu: &str) -> Option<PathBuf> {
    let name = gpu.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
    Some(folder()?.join(format!("{name}.toml")))
}

/// The profile that the user calibrated here for a GPU.
///
/// # Errors
/// When there is one and it cannot be read.
pub(super) fn load_kept(gpu: &str) -> Result<Option<Profile>, Ending> {
    match place(gpu).filter(|path| path.exists()) {
        None => Ok(None),
        Some(path) => load(&path).map(|p| Some(p).filter(|p| p.device.name == gpu)),
    }
}

/// The profile that the user named. Without one, the profile that was calibrated here for this GPU; else the bundled one.
///
/// # Errors
/// When it cannot be read, or nothing has that name.
pub(super) fn choose(asked: Option<&str>, gpu: Option<&str>) -> Result<Profile, Ending> {
    match (asked, gpu) {
        (Some(asked), _) => named(asked),
        (None, Some(gpu)) => Ok(load_kept(gpu)?.unwrap_or_else(Profile::bundled)),
        (None, None) => Ok(Profile::bundled()),
    }
}

/// What is known of this machine's GPUs: the profiles that were calibrated here. One that cannot be read is named, and not used.
pub(super) fn kept() -> KnownGpus {
    let profiles = files().into_iter().filter_map(|path| {
        Profile::load(&path)
            .map_err(|error| super::say(&format!("{error}; the profile is not used")))
            .ok()
    });
    profiles.map(|profile| (&profile).into()).collect()
}

/// The files of the profiles that were calibrated here, by name.
fn files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = folder()
        .and_then(|folder| std::fs::read_dir(folder).ok())
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .collect();
    files.sort();
    files
}

/// A profile by its file, or by a part of the name of its GPU.
pub(super) fn named(asked: &str) -> Result<Profile, Ending> {
    let path = Path::new(asked);
    if path.exists() || asked.contains(['/', '.']) {
        return load(path);
    }
    let files = files();
    let stem = |path: &PathBuf| {
        let stem = path.file_stem().unwrap_or_default();
        stem.to_string_lossy().replace('_', " ")
    };
    let wanted = asked.to_lowercase().replace('_', " ");
    let found: Vec<&PathBuf> = (files.iter())
        .filter(|path| stem(path).to_lowercase().contains(&wanted))
        .collect();
    if let [one] = found[..] {
        return load(one);
    }
    let assumed = Profile::assumed_a100();
    if found.is_empty() && assumed.device.name.to_lowercase().contains(&wanted) {
        return Ok(assumed);
    }
    let known: Vec<String> = files.iter().map(stem).collect();
    let help = match known.len() {
        0 => "none was calibrated here: `cuptop calibrate` makes one for this machine's GPU"
            .to_owned(),
        _ => format!("calibrated here: {}", known.join(", ")),
    };
    let what = if found.is_empty() {
        "no"
    } else {
        "more than one"
    };
    Err(Ending::input(format!("{what} profile is called `{asked}`")).help(help))
}

fn load(path: &Path) -> Result<Profile, Ending> {
    Profile::load(path).map_err(Ending::input)
}
