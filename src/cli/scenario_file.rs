//! Makes scenario files of the user's own: from the template, or a copy of another scenario. It never overwrites a file.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use super::args::New;
use super::exit::Ending;
use super::print;
use crate::bundled::LIBRARY;
use activity::door;
use activity::text::printable;
use scenario::{Overrides, Source, compile, fork, template};

/// Writes a new scenario file from the template.
pub(super) fn new(args: &New) -> Result<u8, Ending> {
    let stem = args.name.trim_end_matches(".toml");
    let path = Path::new(stem).with_extension("toml");
    let text = match &args.from {
        None => template(stem),
        Some(from) => fork(&Source::find(from, LIBRARY).map_err(Ending::input)?.text),
    };
    write_new(&path, &text).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Ending::input(format!("{} is there already", path.display()))
            .help("choose another name, or remove the file first"),
        _ => Ending::input(format!("cannot write {}: {error}", path.display())),
    })?;
    let shown = printable(&path.display().to_string());
    print(&format!("wrote {shown}\n"))?;
    // A copy in another folder may lack kernels of its own, which stay where they are.
    let source = Source::read(&path, LIBRARY).map_err(Ending::input)?;
    if let Err(diagnostics) = compile(&source, &Overrides::default()) {
        let rendered = diagnostics.render(super::stderr_has_color());
        return Err(Ending::diagnostics(rendered).help(format!(
            "{shown} needs this mended before it runs, and the files that it names beside it"
        )));
    }
    print(&format!(
        "next: cuptop run {}    (edit the file while it runs)\n",
        printable(&as_argument(&path))
    ))
}

/// The file of a scenario, for an editor. A bundled one is copied into the working directory, under a free name or the
/// name of an unchanged copy.
pub(super) fn editable(name: &str) -> Result<PathBuf, String> {
    let source = Source::find(name, LIBRARY).map_err(|error| error.to_string())?;
    if let Some(path) = source.path {
        return Ok(path);
    }
    let text = fork(&source.text);
    let stem = source.name.trim_end_matches(".toml");
    let names = (1..100).map(|n| match n {
        1 => PathBuf::from(format!("{stem}.toml")),
        n => PathBuf::from(format!("{stem}-{n}.toml")),
    });
    for path in names {
        match write_new(&path, &text) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if door::read_text(&path, door::TEXT).is_ok_and(|there| there == text) {
                    return Ok(path);
                }
            }
            Err(error) => return Err(format!("cannot write {}: {error}", path.display())),
        }
    }
    Err(format!("there are 99 files {stem}-N.toml here already"))
}

fn write_new(path: &Path, text: &str) -> io::Result<()> {
    recording::file::refuse_foreign_links(path)?;
    let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
    // What is there in part would only be in the way.
    file.write_all(text.as_bytes()).inspect_err(|_| {
        let _ = std::fs::remove_file(path);
    })
}

/// A file's name as a shell and cuptop take it.
fn as_argument(path: &Path) -> String {
    let text = path.display().to_string();
    let text = match text.starts_with('-') {
        true => format!("./{text}"),
        false => text,
    };
    let is_plain = |c: char| c.is_alphanumeric() || "._-/+,:@%=".contains(c);
    match text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}
