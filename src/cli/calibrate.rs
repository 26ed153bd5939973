//! `cuptop calibrate`: a profile of this GPU.

use std::path::Path;

use super::args::Calibrate;
use super::collect::ProgressLine;
use super::exit::{self, Ending};
use super::{print, profile, say};

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
    let written = match &args.output {
        Some(path) => std::fs::write(path, &text),
        None => keep(&path, &text),
    };
    written.map_err(|error| Ending::input(format!("cannot write {}: {error}", path.display())))?;
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

/// Saves a profile in its place, the whole file or none of it. So it is written beside that place and then moved there.
fn keep(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let beside = path.with_extension("toml.new");
    std::fs::write(&beside, text)?;
    std::fs::rename(&beside, path)
}
