//! Whether a program could be traced here, found out by tracing one. It is a process of our own, started as `trace`
//! starts a program, and does nothing but use the driver.
//!
//! The driver loads what is to be injected without a word, also when it cannot be loaded. So the process loads it once by
//! hand first, and says what the loader said.

mod inside;
mod why;

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

pub use inside::process_main;

use super::{Collect, Graphs, Lines, environment, library::Library};
use crate::ending::await_end;
use crate::runner::Part;
use activity::Def;
use activity::feed::Message;
use cupti_sys::stalls::untried;
use inside::Step;
use recording::{Follower, scratch};

/// The hidden subcommand that is the process: its whole work is [`process_main`].
pub const PROCESS_COMMAND: &str = "try-injection";

/// How long the driver may take, as in a probe.
const PATIENCE: Duration = Duration::from_secs(20);

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    pub end: TrialEnd,
    /// What is worth knowing beside it, each a sentence.
    pub remarks: Vec<String>,
}

/// How far it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrialEnd {
    /// The driver loaded the library, and it records.
    Records {
        /// Where the library lies.
        library: PathBuf,
        /// What it records with, in words.
        with: String,
        /// Why `--stalls` does not work with that.
        no_stalls: Option<String>,
    },
    /// The library loads and begins, but there is no driver that would load it.
    NoDriver { library: PathBuf, why: String },
    /// Something stops it.
    Stopped(Part),
}

fn stopped(why: impl Into<String>, help: impl Into<String>) -> TrialEnd {
    TrialEnd::Stopped(Part::missing(why, help))
}

/// Tries it. Takes some seconds where the driver takes them.
pub fn trial(content: &'static [u8]) -> Trial {
    let mut remarks = Vec::new();
    if let Err(error) = environment::check(|name| std::env::var_os(name)) {
        let end = stopped(error.to_string(), "unset CUDA_INJECTION64_PATH");
        return Trial { end, remarks };
    }
    let library = match Library::unpack(content) {
        Ok(library) => library,
        Err(error) => {
            let why = format!("the library to be injected cannot be unpacked: {error}");
            let end = stopped(why, "set XDG_CACHE_HOME to a folder of your own");
            return Trial { end, remarks };
        }
    };
    if let Some(reason) = &library.not_cached {
        remarks.push(format!(
            "the injected library lies in memory, which is as good while cuptop runs, because the cache does not take it: {reason}"
        ));
    }
    if let Some(other) = environment::nvtx_of_another() {
        remarks.push(format!(
            "NVTX ranges will be missing: NVTX_INJECTION64_PATH is set already, to {}",
            other.display()
        ));
    }
    if let Some(preloaded) = std::env::var_os("LD_PRELOAD").filter(|it| !it.is_empty()) {
        remarks.push(format!(
            "LD_PRELOAD is set: {} will be loaded into traced programs too",
            preloaded.display()
        ));
    }
    let end =
        start(&library).unwrap_or_else(|error| stopped(format!("it cannot be tried: {error}"), ""));
    Trial { end, remarks }
}

fn start(library: &Library) -> io::Result<TrialEnd> {
    let scratch = scratch::directory()?;
    let recordings = scratch.path().join("run");
    recording::file::create_directory(&recordings)?;
    let (out, err) = (scratch.path().join("out"), scratch.path().join("err"));
    let mut child = Command::new(std::env::current_exe()?)
        .arg(PROCESS_COMMAND)
        .envs(variables(&recordings, &library.path))
        .stdin(Stdio::null())
        // Files and no pipes: nobody has to read while it runs, and what a library leaves running holds nothing up.
        .stdout(File::create(&out)?)
        .stderr(File::create(&err)?)
        .spawn()?;
    let status = await_end(&mut child, PATIENCE, || {}).ok();
    let said = std::fs::read_to_string(&out).unwrap_or_default();
    let steps: Vec<Step> = said.lines().filter_map(Step::parse).collect();
    let complaints = std::fs::read(&err).unwrap_or_default();
    let last_words = last_line(&String::from_utf8_lossy(&complaints));
    Ok(conclude(
        &library.path,
        status,
        &steps,
        &last_words,
        &recordings,
    ))
}

fn variables(directory: &Path, library: &Path) -> Vec<(&'static str, OsString)> {
    let collect = Collect {
        library: &[],
        flush_period: Duration::from_millis(20),
        max_bytes: 16 << 20,
        keep: None,
        waits: false,
        stalls: false,
        graphs: Graphs::Nodes,
        lines: Lines::Off,
    };
    environment::variables(&collect, None, directory, library)
}

fn last_line(text: &str) -> String {
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    line.map(|line| line.trim().chars().take(300).collect())
        .unwrap_or_default()
}

fn conclude(
    library: &Path,
    status: Option<ExitStatus>,
    steps: &[Step],
    last_words: &str,
    recordings: &Path,
) -> TrialEnd {
    let is_done = steps.last() == Some(&Step::Done);
    if let Some(Step::NotLoaded(why)) = steps.iter().find(|it| matches!(it, Step::NotLoaded(_))) {
        let text = format!("the library to be injected cannot be loaded: {why}");
        return stopped(text, why::help(why, library));
    }
    if !is_done {
        let at = match steps.last() {
            None => "before it could load the library",
            Some(Step::Loaded) => "in the driver's cuInit, or in what the driver loads there",
            Some(_) => "after the driver's cuInit",
        };
        let how = match status {
            None => format!("did not end within {} s", PATIENCE.as_secs()),
            Some(status) => format!("ended ({status})"),
        };
        let mut text = format!("a process that does nothing but use the driver {how}, {at}");
        if !last_words.is_empty() {
            text.push_str(": ");
            text.push_str(last_words);
        }
        return stopped(text, "look at dmesg for what the driver says");
    }
    let (traced, with, refusal) = match read(recordings) {
        Ok(found) => found,
        Err(error) => return stopped(format!("its recording cannot be read: {error}"), ""),
    };
    let no_driver = steps.iter().find_map(|step| match step {
        Step::NoDriver(why) => Some(why.clone()),
        _ => None,
    });
    let branch = steps.iter().find_map(|step| match step {
        Step::Driver(branch) => Some(*branch),
        _ => None,
    });
    match (traced, no_driver) {
        (None, _) if branch.is_some() => stopped(
            "the driver was initialised and did not call the injected library, which loads",
            "a driver ignores CUDA_INJECTION64_PATH in set-user-id programs, and so may what stands in a driver's place",
        ),
        (None, _) => stopped("the injected library loads, and left no recording", ""),
        (Some(_), Some(why)) => TrialEnd::NoDriver {
            library: library.to_path_buf(),
            why,
        },
        (Some(true), None) => TrialEnd::Records {
            library: library.to_path_buf(),
            no_stalls: untried(version(&with).unwrap_or(0), branch.flatten()),
            with,
        },
        (Some(false), None) => stopped(refusal, ""),
    }
}

/// The number in "CUPTI 130001 (…)".
fn version(with: &str) -> Option<u32> {
    with.split(' ').nth(1)?.parse().ok()
}

/// Whether the process was traced (nothing: it left no recording), with what, and what its recording complains of.
fn read(recordings: &Path) -> io::Result<(Option<bool>, String, String)> {
    let mut follower = Follower::open(recordings)?;
    let (mut with, mut complaints) = (String::new(), Vec::new());
    // This consumer is never gone.
    let _ = follower.finish_into(&mut |message| {
        match message {
            Message::Batch(batch) => {
                for def in batch.defs {
                    if let Def::Process(info) = def
                        && !info.versions.is_empty()
                    {
                        with = info.versions;
                    }
                }
            }
            Message::Notice {
                is_warning: true,
                text,
            } => complaints.push(match text.split_once("runs untraced: ") {
                Some((_, why)) => why.to_owned(),
                None => text,
            }),
            _ => {}
        }
        Ok(())
    });
    let traced = follower.states().first().map(|process| process.traced);
    Ok((traced, with, complaints.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;

    fn came_to(status: Option<i32>, steps: &[Step], last_words: &str) -> TrialEnd {
        let empty = tempfile::tempdir().expect("a folder");
        let status = status.map(ExitStatus::from_raw);
        let library = Path::new("/cache/inject.so");
        conclude(library, status, steps, last_words, empty.path())
    }

    fn why(end: TrialEnd) -> String {
        match end {
            TrialEnd::Stopped(it) => it.text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_end_is_told_by_where_it_came() {
        let crashed = why(came_to(Some(11), &[Step::Loaded], "NVRM: broken"));
        assert!(
            crashed.contains("SIGSEGV") && crashed.contains("cuInit"),
            "{crashed}"
        );
        assert!(crashed.ends_with("NVRM: broken"), "{crashed}");
        let hung = why(came_to(None, &[Step::Loaded], ""));
        assert!(hung.contains("within 20 s"), "{hung}");
        let refused = Step::NotLoaded("libc.so.6: version `GLIBC_2.34' not found".into());
        let old = came_to(Some(0), &[refused, Step::Done], "");
        assert!(
            matches!(&old, TrialEnd::Stopped(it) if it.help.contains("glibc")),
            "{old:?}"
        );
        let silent = why(came_to(
            Some(0),
            &[Step::Loaded, Step::Driver(None), Step::Done],
            "",
        ));
        assert!(silent.contains("did not call"), "{silent}");
    }
}
