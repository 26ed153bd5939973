//! `cuptop calibrate`: a profile of this GPU.

use super::args::Calibrate;
use super::drain::ProgressLine;
use super::exit::{self, Ending};
use super::{eprint, print};
use crate::source::runner;

/// Measures GPU 0 and writes its profile.
pub(super) fn calibrate(args: &Calibrate) -> Result<u8, Ending> {
    let mut line = ProgressLine::default();
    let calibration = runner::calibrate(|progress| line.show(progress));
    line.clear();
    let calibration = calibration?;
    let text = calibration.to_toml().map_err(Ending::input)?;
    match &args.output {
        None => print(&text)?,
        Some(path) => {
            std::fs::write(path, &text).map_err(|error| {
                Ending::input(format!("cannot write {}: {error}", path.display()))
            })?;
            eprint(&format!(
                "cuptop: wrote {}; use it with --profile, or from the simulator: \
                 cuptop run pipeline --backend sim --profile {}\n",
                path.display(),
                path.display()
            ));
        }
    }
    Ok(exit::FINE)
}
