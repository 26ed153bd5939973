//! The command for a bare first word: it runs a scenario or opens a trace.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use super::exit::Ending;
use super::help;
use crate::bundled::LIBRARY;
use hosts::Place;
use scenario::bundled::which;
use scenario::did_you_mean;

/// Adds the missing command to a command line. `bare` is what stands behind the options of the program, the bare word
/// first.
pub(super) fn complete(
    mut line: Vec<OsString>,
    bare: &[OsString],
) -> Result<Vec<OsString>, Ending> {
    if let Some(word) = bare.first() {
        line.insert(line.len() - bare.len(), command(word)?.into());
    }
    Ok(line)
}

/// The command that a word asks for: `run` for a scenario's name, its beginning or its file, `open` for every other
/// file or folder. A bundled scenario goes before a folder of its name.
fn command(word: &OsStr) -> Result<&'static str, Ending> {
    let path = Path::new(word);
    let is_scenario_file = path.extension().is_some_and(|e| e == "toml");
    if path.is_file() {
        return Ok(if is_scenario_file { "run" } else { "open" });
    }
    let word = word.to_string_lossy();
    if LIBRARY.names().any(|name| name == word) {
        return Ok("run");
    }
    if path.exists() || Place::parse(path).is_some() {
        return Ok("open");
    }
    let unknown = Ending::input(format!("there is no command, scenario or file `{word}`"));
    if is_scenario_file || word.contains('/') {
        return Err(Ending::input(format!("there is no file {word}")));
    }
    let commands = help::commands();
    let begun = |name: &&String| name.starts_with(&*word);
    let scenarios = LIBRARY.beginning(&word);
    // A word that is nearly a command is not taken for a scenario.
    match (scenarios.as_slice(), commands.iter().find(begun)) {
        ([_], None) => return Ok("run"),
        (_, Some(command)) => return Err(unknown.help(format!("did you mean `cuptop {command}`?"))),
        ([], None) => {}
        (several, None) => return Err(unknown.help(which(several))),
    }
    let scenarios = LIBRARY.names().map(|name| -> &str { name });
    let names = commands.iter().map(String::as_str).chain(scenarios);
    let help = did_you_mean(&word, names);
    Err(unknown.help(help.unwrap_or_else(|| {
        "`cuptop help` names the commands, `cuptop list` the scenarios".to_owned()
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(word: &str) -> Result<&'static str, String> {
        command(OsStr::new(word)).map_err(|ending| ending.failure.help)
    }

    #[test]
    fn a_word_is_a_scenario_or_a_file_or_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, "").expect("written");
            path.to_string_lossy().into_owned()
        };
        assert_eq!(meant("pipeline"), Ok("run"));
        assert_eq!(meant("pinned"), Ok("run"));
        assert_eq!(meant(&file("a.toml")), Ok("run"));
        assert_eq!(meant(&file("trace.json.gz")), Ok("open"));
        assert_eq!(meant(&folder.path().to_string_lossy()), Ok("open"));
        let help = |word| meant(word).expect_err("unknown");
        assert_eq!(help("piepline"), "did you mean `pipeline`?");
        assert_eq!(help("reprot"), "did you mean `report`?");
        assert_eq!(help("pi"), "it could be `pipeline` or `pinned_vs_pageable`");
        // `transpose` begins so too.
        assert_eq!(help("tra"), "did you mean `cuptop trace`?");
        assert!(help("xyzzy").contains("cuptop list"));
    }

    #[test]
    fn the_command_stands_behind_the_options_of_the_program() {
        let words = |line: &str| -> Vec<OsString> { line.split(' ').map(OsString::from).collect() };
        assert_eq!(
            complete(
                words("cuptop --ascii pipeline --headless"),
                &words("pipeline --headless")
            ),
            Ok(words("cuptop --ascii run pipeline --headless"))
        );
    }
}
