//! What tests need of scenarios.

use std::path::Path;
use std::sync::LazyLock;

use crate::bundled::{Bundled, Library};

/// The scenarios and kernels of the repository, in order of name: what the program bundles.
///
/// # Panics
/// When the folders `scenarios` and `kernels` are not beside the crates.
pub fn library() -> Library {
    static LIBRARY: LazyLock<Library> = LazyLock::new(|| Library {
        scenarios: read("scenarios", "toml")
            .into_iter()
            .map(|(name, text)| Bundled {
                name: name.trim_end_matches(".toml"),
                text,
            })
            .collect::<Vec<_>>()
            .leak(),
        kernels: read("kernels", "cu").leak(),
    });
    *LIBRARY
}

/// The files of a folder with this ending: name and text.
fn read(folder: &str, ending: &str) -> Vec<(&'static str, &'static str)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(folder);
    let mut files: Vec<_> = folder
        .read_dir()
        .expect("the repository's folder")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|it| it == ending))
        .collect();
    files.sort();
    files
        .iter()
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy();
            let text = std::fs::read_to_string(path).expect("a text");
            (&*name.into_owned().leak(), &*text.leak())
        })
        .collect()
}
