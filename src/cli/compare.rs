//! `cuptop compare`: whether one side is faster, and why.

use std::path::{Path, PathBuf};

use super::args::Compare;
use super::exit::{self, Ending};
use super::print;
use super::report::load;
use crate::report::compare::{Answer, Run};

/// Prints how B compares with A. Exits 1 only when `--fail-over` is decided against B.
pub(super) fn compare(args: &Compare) -> Result<u8, Ending> {
    let (a, code_a) = side(&args.a)?;
    let (b, code_b) = side(&args.b)?;
    let nothing = || Ending::input("there is no operation of a GPU to compare");
    let answer = Answer::new(&a, &b, args.fail_over).ok_or_else(nothing)?;
    if args.json {
        let mut text = answer.json().map_err(Ending::input)?;
        text.push('\n');
        print(&text)?;
    } else if args.markdown {
        print(&answer.markdown())?;
    } else {
        print(&answer.text(&super::text_options()))?;
    }
    let regressed = if answer.has_regressed() {
        exit::EXPECTATION
    } else {
        exit::FINE
    };
    Ok(code_a.max(code_b).max(regressed))
}

/// The runs of a side: a file, or several with commas between them.
fn side(text: &Path) -> Result<(Vec<Run>, u8), Ending> {
    let mut runs = Vec::new();
    let mut code = exit::FINE;
    for path in paths(text) {
        // One after another, so that only one timeline is in memory.
        let (trace, damaged) = load(&[path])?;
        runs.push(Run::of(&trace));
        code = code.max(damaged);
    }
    Ok((runs, code))
}

/// A name with a comma in it is one file when there is such a file.
fn paths(text: &Path) -> Vec<PathBuf> {
    match text.to_str() {
        Some(several) if several.contains(',') && !text.exists() => {
            let parts = several.split(',').filter(|part| !part.is_empty());
            parts.map(PathBuf::from).collect()
        }
        _ => vec![text.to_path_buf()],
    }
}
