//! What several commands take, and how it is read.

use std::path::PathBuf;

use clap::Args;

/// Picture of the screen without a terminal.
#[derive(Clone, Debug, Default, Args)]
pub struct Picture {
    /// When done, save the screen to this file (.svg, .png, .txt or .ansi) instead of showing it.
    #[arg(long, value_name = "FILE")]
    pub screenshot: Option<PathBuf>,
    /// Size of that screen in columns and rows.
    #[arg(long, value_name = "COLSxROWS", default_value = "120x40", value_parser = size)]
    pub size: (u16, u16),
}

/// "n=4" as a name and a value.
pub(super) fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected NAME=VALUE, for example n=4096".to_owned()),
    }
}

/// "120x40" as columns and rows.
pub(super) fn size(text: &str) -> Result<(u16, u16), String> {
    let parse = || {
        let (columns, rows) = text.split_once(['x', 'X'])?;
        let (columns, rows) = (columns.parse().ok()?, rows.parse().ok()?);
        ((1..=1000).contains(&columns) && (1..=500).contains(&rows)).then_some((columns, rows))
    };
    parse().ok_or_else(|| "expected COLSxROWS, for example 120x40 (at most 1000x500)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_assignments_are_read() {
        assert_eq!(size("80x24"), Ok((80, 24)));
        assert!(size("80").is_err() && size("0x5").is_err() && size("80x99999").is_err());
        assert_eq!(assignment("n = 4"), Ok(("n".to_owned(), "4".to_owned())));
        assert!(assignment("n").is_err() && assignment("=4").is_err());
    }
}
