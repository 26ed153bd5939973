//! A folder with traces of other profilers in it, as `tensorboard_trace_handler` and one export for each rank leave it.

use std::io;
use std::path::{Path, PathBuf};

/// What the names of traces end with.
const ENDINGS: [&str; 3] = [".json", ".json.gz", ".sqlite"];

/// The files right in a folder that may be traces by their names, in order of name.
///
/// # Errors
/// When the folder cannot be read.
pub(super) fn maybe_traces(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // What a link leads to counts, too.
        if ENDINGS.iter().any(|ending| name.ends_with(ending)) && path.is_file() {
            files.push(path);
        }
    }
    files.sort_unstable();
    Ok(files)
}
