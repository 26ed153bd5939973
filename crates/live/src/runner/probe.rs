//! What this machine has, asked in a process of its own: a driver can crash or hang, and `doctor` must
//! not.

use std::time::Duration;

use super::child::{Child, ChildEvent};
use super::driver::Driver;
use super::found::{Part, Probe, Rejected};
use super::nvrtc::{self, Nvrtc};
use super::protocol::{Event, RunnerJob};
use scenario::{Overrides, Source};

/// How long a driver may take to answer. The first use after boot, or with many GPUs and no persistence
/// daemon, takes several seconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// Asks a process of its own what this machine has. Whatever happens to that process, there is an answer.
pub fn probe() -> Probe {
    let answer = |event| match event {
        Event::Probe(probe) => Some(*probe),
        _ => None,
    };
    ask(&RunnerJob::Probe, answer).unwrap_or_else(|text| Probe {
        driver: Part::missing(
            text,
            "look at nvidia-smi and at dmesg for what the driver says",
        ),
        ..Probe::default()
    })
}

/// Compiles a scenario's kernels in a process of its own, for the GPUs here; without one, for that of the simulator.
/// Returns those that the compiler rejects.
///
/// # Errors
/// Why none could be compiled.
pub fn compile(source: &Source, overrides: &Overrides) -> Result<Vec<Rejected>, String> {
    let job = RunnerJob::Compile {
        source: source.clone(),
        overrides: overrides.clone(),
    };
    ask(&job, |event| match event {
        Event::Compiled { rejected } => Some(rejected),
        _ => None,
    })
}

/// Has a process of its own do a job, and waits for its answer.
fn ask<T>(job: &RunnerJob, answer: impl Fn(Event) -> Option<T>) -> Result<T, String> {
    let child = Child::start(job);
    let mut child = child.map_err(|error| format!("the probe cannot be started: {error}"))?;
    let deadline = std::time::Instant::now() + PATIENCE;
    let mut found = None;
    loop {
        let left = deadline.saturating_duration_since(std::time::Instant::now());
        match child.recv(left) {
            ChildEvent::Event(event) => match *event {
                Event::Error { message, .. } => return Err(message),
                event => found = answer(event).or(found),
            },
            ChildEvent::Output { .. } => {}
            ChildEvent::Nothing => {
                let seconds = PATIENCE.as_secs();
                return Err(format!("the driver did not answer within {seconds} s"));
            }
            ChildEvent::End => break,
        }
    }
    let end = child.end();
    found.ok_or_else(|| format!("the driver made the probe fail: {}", end.describe()))
}

/// The child's part: looks at this machine.
pub(crate) fn run() -> Probe {
    let mut probe = Probe::default();
    match Driver::start(None) {
        Ok(driver) => probe.driver = probe_driver(&driver, &mut probe).unwrap_or_else(|lack| lack),
        Err(error) => probe.driver = Part::missing(error.to_string(), error.help()),
    }
    // Only with a driver, because libcupti 13.2 crashes without one.
    probe.cupti = if probe.driver.is_usable {
        match cupti_sys::Cupti::load(cupti_sys::Caller::Program) {
            Ok(cupti) => Part::usable(cupti.describe()),
            Err(cupti_sys::LoadError::NoneFits(error)) => {
                let major = probe.cuda.map(|(major, _)| major);
                Part::missing(
                    error.to_string(),
                    wheel_of_cupti(major).unwrap_or(error.wanted.help),
                )
            }
            Err(error) => Part::missing(error.to_string(), error.help()),
        }
    } else {
        Part::missing("not looked for: it needs the driver", "")
    };
    let major = probe.cuda.map_or(nvrtc::NEWEST, |(major, _)| major);
    probe.nvrtc = match Nvrtc::find(major) {
        Ok(nvrtc) => {
            let (major, minor) = nvrtc.version;
            Part::usable(format!("NVRTC {major}.{minor} ({})", nvrtc.path.display()))
        }
        Err(error) => Part::missing(error.to_string(), error.wanted.help),
    };
    probe
}

/// How to get the libcupti that fits a driver of this CUDA version; docs/INSTALL.md has the same.
fn wheel_of_cupti(major: Option<u32>) -> Option<&'static str> {
    match major? {
        12 => Some(
            "pip install 'nvidia-cuda-cupti-cu12==12.9.*' fits this driver (the wheel's extra: cupti12), or set CUPTOP_CUPTI to the \
             path of a libcupti.so.12",
        ),
        13 => Some(
            "pip install 'nvidia-cuda-cupti>=13.0.85,!=13.2.*' fits this driver (the wheel's extra: cupti13), or set CUPTOP_CUPTI to \
             the path of a libcupti.so.13",
        ),
        _ => None,
    }
}

/// The GPUs go to the probe, what is to be said of the driver comes back: as an error where it does not answer.
fn probe_driver(driver: &Driver, probe: &mut Probe) -> Result<Part, Part> {
    let silent = |error, doing: &str| {
        let text = format!("the driver cannot {doing}: {error}");
        Part::missing(text, "look at nvidia-smi")
    };
    let version = driver.version().unwrap_or((0, 0));
    probe.cuda = Some(version);
    let count = driver.device_count();
    for ordinal in 0..count.map_err(|error| silent(error, "list its GPUs"))? {
        let gpu = driver.gpu(ordinal);
        let doing = format!("describe GPU {ordinal}");
        probe.gpus.push(gpu.map_err(|error| silent(error, &doing))?);
    }
    let kernel = kernel_driver().map_or_else(String::new, |v| format!("{v}, "));
    let text = format!("{kernel}CUDA {}.{}", version.0, version.1);
    if probe.gpus.is_empty() {
        let text = format!("{text}, but no GPU is visible");
        return Err(Part::missing(text, "look at CUDA_VISIBLE_DEVICES"));
    }
    Ok(Part::usable(text))
}

/// The kernel module's version ("580.159.04"), from the file that it keeps.
fn kernel_driver() -> Option<String> {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    module_version(&text).map(str::to_owned)
}

/// "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build …"
fn module_version(text: &str) -> Option<&str> {
    text.lines()
        .find(|line| line.starts_with("NVRM version:"))?
        .split_whitespace()
        .find(|word| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_version_is_read_from_both_kinds_of_module() {
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (builder@host)\nGCC version: 12.2.0\n";
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n";
        assert_eq!(module_version(open), Some("580.159.04"));
        assert_eq!(module_version(closed), Some("535.104.05"));
        assert_eq!(module_version("GCC version: 12.2.0\n"), None);
    }
    /// The requirements are those of the wheel's extras in pyproject.toml.
    #[test]
    fn the_libcupti_that_fits_is_that_of_the_wheels_extra() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../pyproject.toml");
        let extras = std::fs::read_to_string(path).expect("the wheel's description");
        for (major, extra) in [(12, "cupti12"), (13, "cupti13")] {
            let line = extras
                .lines()
                .find(|it| it.starts_with(extra))
                .expect("the extra");
            let wanted = line.split('"').nth(1).expect("a requirement");
            let said = wheel_of_cupti(Some(major)).expect("a wheel");
            assert!(said.contains(wanted) && said.contains(extra), "{said}");
        }
        assert_eq!(wheel_of_cupti(Some(11)), None);
    }
}
