//! Where a scenario's text comes from: a file, or the binary itself.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use activity::door;
use serde::{Deserialize, Serialize};

use super::bundled::{self, Library};
use super::diagnostics::{instead, quoted};

/// A scenario's text and where it came from.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Source {
    /// As messages name it: the path as given, or "pipeline.toml" for a bundled one.
    pub name: String,
    /// The file, unless it is a bundled one.
    pub path: Option<PathBuf>,
    /// The TOML text.
    pub text: Arc<str>,
    /// Where kernel files are looked for before the bundled ones: here, in `kernels/`, in `../kernels/`.
    pub kernel_dir: Option<PathBuf>,
    /// What is bundled with the program: another process of it has its own.
    #[serde(skip)]
    pub library: Library,
}

/// Why a scenario was not found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// No file and no bundled scenario has that name.
    #[error("there is no scenario {}; {help}", quoted(name))]
    Unknown {
        /// As asked for.
        name: String,
        /// A suggestion, or the list of the bundled ones.
        help: String,
    },
    /// The file cannot be read.
    #[error("cannot read the scenario {}: {error}{}", path.display(), advice(path, error))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Names the command for a file that is no text: most likely it is a trace.
fn advice(path: &Path, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::FileTooLarge => {
            let path = path.display();
            format!("\n  help: a trace is opened: cuptop open {path}")
        }
        _ => String::new(),
    }
}

impl Library {
    /// The scenario of this name, ready to be compiled.
    pub fn get(&self, name: &str) -> Option<Source> {
        let bundled = self.scenarios.iter().find(|it| it.name == name)?;
        Some(self.source(bundled))
    }

    /// A scenario of it, ready to be compiled.
    pub fn source(&self, bundled: &bundled::Bundled) -> Source {
        Source {
            name: format!("{}.toml", bundled.name),
            path: None,
            text: bundled.text.into(),
            kernel_dir: None,
            library: *self,
        }
    }
}

impl Source {
    /// A file's path, or the name of a bundled scenario or the beginning of one name.
    ///
    /// # Errors
    /// When there is neither, with a suggestion; when the file cannot be read.
    pub fn find(arg: &str, library: Library) -> Result<Source, FindError> {
        let path = Path::new(arg);
        let is_path = arg.ends_with(".toml") || arg.contains(['/', '\\']);
        if is_path || path.is_file() {
            return Source::read(path, library);
        }
        let begun = library.beginning(arg);
        let name = match begun.as_slice() {
            [one] => one,
            _ => arg,
        };
        let names: Vec<&str> = library.names().collect();
        library.get(name).ok_or_else(|| FindError::Unknown {
            name: arg.to_owned(),
            help: match begun.len() {
                // Every name begins with nothing.
                2.. if !arg.is_empty() => bundled::which(&begun),
                _ => instead(arg, "the bundled ones are", names.iter().copied()),
            },
        })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read as text. A missing file whose name is close to a bundled scenario's says so.
    pub fn read(path: &Path, library: Library) -> Result<Source, FindError> {
        let name = path.display().to_string();
        let text = door::read_text(path, door::TEXT).map_err(|error| {
            let mut bundled = library.names();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            let of_it = bundled.find(|name| Some(*name) == stem);
            match of_it.filter(|_| error.kind() == io::ErrorKind::NotFound) {
                Some(stem) => FindError::Unknown {
                    name: name.clone(),
                    help: format!(
                        "there is no such file, but a bundled scenario: {}",
                        quoted(stem)
                    ),
                },
                None => FindError::Unreadable {
                    path: path.to_owned(),
                    error,
                },
            }
        })?;
        let folder = door::folder_of(path);
        Ok(Source {
            name,
            path: Some(path.to_owned()),
            text: text.into(),
            kernel_dir: Some(folder.to_owned()),
            library,
        })
    }
}
