//! Which files a recording directory holds, and on what kind of file system.
//!
//! Several ranks on several hosts share a directory when each has a folder of its own in it: `HOST-PID.run`, made by
//! `cuptop trace --out`. Folders of other names are left alone: they may hold runs that have nothing to do with each other.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use activity::door;

use crate::file::{EXTENSION, HEADER, MAGIC, OUTSIDE, create_directory};

/// The end of the name of such a folder.
const RUN: &str = "run";
/// Folders that are looked into; a job has one for each rank or host.
const MOST_FOLDERS: usize = 16_384;

/// The recordings of a folder, oldest name first.
pub(super) fn files_of(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        // A recording that was kept is a folder, and may be called so too.
        if is_known(&path) && !entry.file_type().is_ok_and(|it| it.is_dir()) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Whether a file of this name may be a recording.
pub fn is_known(path: &Path) -> bool {
    path.extension().is_some_and(|it| it == EXTENSION)
}

/// Whether a file of this name was written from outside of the process that it is of.
fn is_outside(path: &Path) -> bool {
    let stem = path.file_stem().map(Path::new);
    is_known(path) && stem.is_some_and(|it| it.extension() == Some(OsStr::new(OUTSIDE)))
}

/// The process that a file's name is about. The name alone says whether a file may belong to a recording that was opened by itself.
fn pid_of(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?;
    name.split_once('-')?.0.parse().ok()
}

/// A recording directory, and the folders in it that ranks have to themselves, in order of their names.
pub(crate) fn folders_of(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut folders = vec![directory.to_path_buf()];
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if is_run(Path::new(&entry.file_name()))
            && entry.file_type()?.is_dir()
            && folders.len() < MOST_FOLDERS
        {
            folders.push(entry.path());
        }
    }
    folders[1..].sort();
    Ok(folders)
}

/// Whether this is the name of a folder that a rank has to itself.
pub fn is_run(folder: &Path) -> bool {
    folder.extension() == Some(OsStr::new(RUN))
}

/// The files of a recording. Of a directory these are all, also in the folders of its ranks. Of a file named by itself,
/// they are what lies beside it under its own process id.
pub fn paths_of(place: &Path) -> Vec<PathBuf> {
    if place.is_dir() {
        // One that was deleted has nothing new; what was opened before is still read.
        return all_of(place).unwrap_or_default();
    }
    let others = files_of(door::folder_of(place)).unwrap_or_default();
    let pid = pid_of(place);
    let is_its = |path: &PathBuf| is_outside(path) && pid_of(path) == pid && path != place;
    // Under the name that it has when it is opened by itself too.
    let name = |path: PathBuf| Some(place.with_file_name(path.file_name()?));
    let mut paths = vec![place.to_path_buf()];
    paths.extend(others.into_iter().filter(is_its).filter_map(name));
    paths
}

/// All files of a directory and of the folders in it. A folder that cannot be read is left out: it may just have gone.
pub(super) fn all_of(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let folders = folders_of(directory)?;
    let files = folders
        .iter()
        .flat_map(|it| files_of(it).unwrap_or_default());
    Ok(files.collect())
}

/// Whether stack samples lie in a directory as they were written before they were of a recording's own format.
pub(super) fn has_former_stacks(directory: &Path) -> bool {
    let folders = folders_of(directory).unwrap_or_default();
    let files = folders.iter().filter_map(|it| std::fs::read_dir(it).ok());
    let mut files = files.flatten().flatten().map(|it| it.path());
    files.any(|it| it.extension() == Some(OsStr::new("stacks")))
}

/// Makes a folder in `directory` (and that, where it is not there yet) for the recordings of one of several `cuptop trace`.
///
/// # Errors
/// When it cannot be made, or others may write to the directory.
pub fn folder_in(directory: &Path) -> io::Result<PathBuf> {
    create_directory(directory)?;
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "_-".contains(*c);
    // Without its domain.
    let host: String = host.chars().take_while(is_plain).take(40).collect();
    let pid = std::process::id();
    for n in 1..1_000 {
        let name = match n {
            1 => format!("{host}-{pid}.{RUN}"),
            // Containers of one host may have the same name and the same ids.
            n => format!("{host}-{pid}-{n}.{RUN}"),
        };
        let folder = directory.join(name);
        match std::fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(()) => {
                private(&folder)?;
                return Ok(folder);
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))
}

/// Whether a directory holds nothing (but hidden files, folders, and the control page), so that recordings may yet come into
/// it. One that holds other files is probably another than was meant.
pub(super) fn is_bare(directory: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return false;
    };
    entries.flatten().all(|entry| {
        let name = entry.file_name();
        let is_folder = entry.file_type().is_ok_and(|it| it.is_dir());
        is_folder || name == crate::file::CONTROL || name.as_encoded_bytes().starts_with(b".")
    })
}

/// Whether a file of a recording is there and not even its header: there was no room for it.
fn is_stunted(path: &Path) -> bool {
    let begun = |it: Vec<u8>| it.len() < HEADER && (it.is_empty() || it.starts_with(&MAGIC));
    is_known(path) && door::read(path, HEADER as u64).is_ok_and(begun)
}

/// Whether a process began a recording in this directory for whose header there was no room.
pub fn had_no_room(directory: &Path) -> bool {
    files_of(directory).is_ok_and(|files| files.iter().any(|it| is_stunted(it)))
}

/// Why a file that is no recording is none.
pub(super) fn why_none(path: &Path) -> String {
    match is_stunted(path) {
        true => "its header is missing: no space was left for it, or it has only just begun",
        false => "not a recording of cuptop",
    }
    .to_owned()
}

/// Whether other machines may write to the file system that holds this. Then sizes and contents arrive here some time
/// later, and a lock may be seen on its own machine alone.
pub fn is_shared(path: &Path) -> bool {
    // From <linux/magic.h> and the file systems' own sources.
    const SHARED: [u32; 14] = [
        0x6969,      // NFS
        0xff53_4d42, // CIFS
        0xfe53_4d42, // SMB2
        0x517b,      // SMB
        0x0bd0_0bd0, // Lustre
        0x4750_4653, // GPFS
        0x00c3_6400, // Ceph
        0x5346_414f, // OpenAFS
        0x6b41_4653, // AFS
        0x1983_0326, // BeeGFS
        0x6573_5546, // FUSE: sshfs, GlusterFS, and others of which nothing is known
        0x0116_1970, // GFS2
        0x7461_636f, // OCFS2
        0x0102_1997, // 9P
    ];
    // The type of the field differs by platform; magic numbers have 32 bits.
    rustix::fs::statfs(path).is_ok_and(|it| SHARED.contains(&(it.f_type as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_ones_own_is_found_and_others_are_left_alone() {
        let root = tempfile::tempdir().expect("a directory");
        let directory = root.path().join("job");
        let (first, second) = (folder_in(&directory), folder_in(&directory));
        let (first, second) = (first.expect("made"), second.expect("made"));
        assert_ne!(first, second);
        std::fs::create_dir(directory.join("yesterday.cuptop")).expect("made");
        assert!(is_bare(&directory));
        let mut folders = vec![first, second];
        folders.sort();
        folders.insert(0, directory.clone());
        assert_eq!(folders_of(&directory).expect("readable"), folders);
        std::fs::write(folders[1].join("7-1.cuptop"), "").expect("written");
        std::fs::write(directory.join("yesterday.cuptop/8-1.cuptop"), "").expect("written");
        let files = all_of(&directory).expect("readable");
        assert_eq!(files, [folders[1].join("7-1.cuptop")]);
        std::fs::write(directory.join("train.py"), "").expect("written");
        assert!(!is_bare(&directory));
    }
}
