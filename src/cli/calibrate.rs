//! `cuptop calibrate`: a profile of this GPU.

use super::args::Calibrate;
use super::collect::ProgressLine;
use super::exit::{self, Ending};
use super::{print, profile, say};
use crate::export::{Readers, to_file};

/// Measures GPU 0 and writes its profile.
pub(super) fn calibrate(args: &Calibrate) -> Result<u8, Ending> {
    let mut line = ProgressLine::default();
    let calibration =
        ::calibrate::calibrate(crate::bundled::LIBRARY, |progress| line.show(progress));
    line.clear();
    let calibration = calibration?;
    let text = calibration.to_toml().map_err(Ending::input)?;
    let gpu = &calibration.profile.device.name;
    let path = match &args.output {
        Some(path) if path.as_os_str() == "-" => return print(&text),
        Some(path) => path.clone(),
        None => profile::place(gpu).ok_or_else(|| {
            Ending::input("neither XDG_DATA_HOME nor HOME names a folder")
                .help("name a file with --output")
        })?,
    };
    let folder = path.parent().filter(|_| args.output.is_none());
    if let Some(Err(error)) = folder.map(std::fs::create_dir_all) {
        return Err(Ending::input(format!(
            "cannot write {}: {error}",
            path.display()
        )));
    }
    to_file(&path, Readers::AsUmask, |out| {
        out.write_all(text.as_bytes())
    })
    .map_err(Ending::input)?;
    let simulator = match &args.output {
        Some(_) => format!("use it with --profile {}", path.display()),
        None => format!(
            "runs and predictions on an {gpu} use it; so does the simulator with --profile {:?}",
            gpu.as_str()
        ),
    };
    say(&format!("wrote {}; {simulator}", path.display()));
    Ok(exit::FINE)
}
