//! The process that is traced on trial.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use cupti_sys::driver;
use cupti_sys::injection::Injected;
use serde::{Deserialize, Serialize};

/// What it says, a line each: how far it came.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) enum Step {
    /// The loader took the library.
    Loaded,
    /// It did not, and why.
    NotLoaded(String),
    /// The driver is initialised: its branch.
    Driver(Option<u32>),
    /// It is not, and why.
    NoDriver(String),
    /// Nothing comes after this.
    Done,
}

/// What every line of ours begins with: libraries print too.
const OURS: &str = "cuptop-trial ";

impl Step {
    pub(super) fn parse(line: &str) -> Option<Step> {
        serde_json::from_str(line.strip_prefix(OURS)?).ok()
    }

    fn say(&self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{OURS}{}", serde_json::to_string(self)?)?;
        out.flush()
    }
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
        Ok(_) => Step::Driver(driver::branch()).say()?,
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
        assert_eq!(Step::parse(r#""Loaded""#), None);
        assert_eq!(Step::parse("cuptop-trial loaded"), None);
        assert_eq!(Step::parse(r#"cuptop-trial "Loaded""#), Some(Step::Loaded));
        assert_eq!(
            Step::parse(r#"cuptop-trial {"NotLoaded":"a\nb"}"#),
            Some(Step::NotLoaded("a\nb".to_owned()))
        );
    }
}
