//! `cuptop compare`.

use std::path::PathBuf;

use clap::Args;

use super::first::First;
use super::values::Picture;

/// `cuptop compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// The first side: a trace, or several runs of the same with commas between them (A1,A2,A3).
    pub a: PathBuf,
    /// The second side.
    pub b: PathBuf,
    /// Exit with 1 when B is shown to be slower than A by more than this ("5%"). Needs 6 runs a side; with fewer
    /// it is undecided, which is said, and the exit code is 0.
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    pub fail_over: Option<f64>,
    /// Print JSON.
    #[arg(long, conflicts_with = "markdown")]
    pub json: bool,
    /// Print Markdown, for a pull request.
    #[arg(long)]
    pub markdown: bool,
    /// Leave out command lines, folders of paths and names of hosts, for handing it to others; says what it leaves out.
    #[arg(long, conflicts_with = "screen")]
    pub anonymous: bool,
    /// Open the screen: both above each other on one axis, and all of B in the other views. Takes one run a side.
    #[arg(long, conflicts_with_all = ["json", "markdown", "fail_over"])]
    pub screen: bool,
    /// Where the picture goes, if one is wanted.
    #[command(flatten)]
    pub picture: Picture,
    /// What is shown first.
    #[command(flatten)]
    pub first: First,
}

/// "5%" as 0.05.
fn share(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').unwrap_or(text.trim());
    match number.trim().parse::<f64>() {
        Ok(percent) if (0.0..1e6).contains(&percent) => Ok(percent / 100.0),
        _ => Err("expected a percentage, for example 5%".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_read() {
        assert_eq!(
            (share("5%"), share("2.5 %"), share("0")),
            (Ok(0.05), Ok(0.025), Ok(0.0))
        );
        assert!(share("-1%").is_err() && share("x").is_err() && share("nan").is_err());
    }
}
