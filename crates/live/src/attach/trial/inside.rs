//! The process that is traced on trial.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use cupti_sys::driver;
use cupti_sys::injection::Injected;

/// What it says, a line each: how far it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The loader took the library.
    Loaded,
    /// It did not, and why.
    NotLoaded(String),
    /// The driver is initialised.
    Driver,
    /// It is not, and why.
    NoDriver(String),
    /// Nothing comes after this.
    Done,
}

/// What every line of ours begins with: libraries print too.
const OURS: &str = "cuptop-trial ";

impl Step {
    pub(super) fn parse(line: &str) -> Option<Step> {
        let said = line.strip_prefix(OURS)?;
        let (word, rest) = said.split_once(' ').unwrap_or((said, ""));
        Some(match word {
            "loaded" => Step::Loaded,
            "not-loaded" => Step::NotLoaded(rest.to_owned()),
            "driver" => Step::Driver,
            "no-driver" => Step::NoDriver(rest.to_owned()),
            "done" => Step::Done,
            _ => return None,
        })
    }

    fn say(&self) -> io::Result<()> {
        let text = match self {
            Step::Loaded => "loaded".to_owned(),
            Step::NotLoaded(why) => format!("not-loaded {}", one_line(why)),
            Step::Driver => "driver".to_owned(),
            Step::NoDriver(why) => format!("no-driver {}", one_line(why)),
            Step::Done => "done".to_owned(),
        };
        let mut out = io::stdout().lock();
        writeln!(out, "{OURS}{text}")?;
        out.flush()
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The process. Its exit code says nothing; its lines do.
pub fn process_main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn run() -> io::Result<()> {
    let path = PathBuf::from(std::env::var_os("CUDA_INJECTION64_PATH").unwrap_or_default());
    let injected = match Injected::load(&path) {
        Ok(injected) => injected,
        Err(why) => {
            Step::NotLoaded(why).say()?;
            return Step::Done.say();
        }
    };
    Step::Loaded.say()?;
    match driver::initialise() {
        Ok(_) => Step::Driver.say()?,
        Err(error) => {
            // Nobody else does; a driver that failed later than here may have, and it begins only once.
            injected.initialise();
            Step::NoDriver(error.to_string()).say()?;
        }
    }
    Step::Done.say()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_libraries_print_is_no_step() {
        assert_eq!(Step::parse("loaded"), None);
        assert_eq!(Step::parse("cuptop-trial loaded"), Some(Step::Loaded));
        assert_eq!(
            Step::parse("cuptop-trial not-loaded a b"),
            Some(Step::NotLoaded("a b".to_owned()))
        );
    }
}
