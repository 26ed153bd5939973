//! Makes the fakes, runs a program under the collector, and gathers what comes of it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use activity::feed::{Message, Outcome};
use activity::{Activity, Batch, Def, Health, Mode, What};
use live::attach::{self, AttachRequest, Collect, Graphs, Lines, Output, Recorder, When};

/// To record a command into a folder of this directory, with its waits and graph nodes, and to capture what it prints.
pub(crate) fn request(command: Vec<OsString>, directory: &Path) -> AttachRequest {
    AttachRequest {
        collect: Collect {
            library: cuptop::inject::LIBRARY,
            flush_period: Duration::from_millis(20),
            max_bytes: 0,
            keep: None,
            waits: true,
            stalls: false,
            graphs: Graphs::Nodes,
            lines: Lines::Graphs,
        },
        command,
        dir: directory.join("run"),
        when: When::default(),
        hardware: false,
        counters: live::counters::Counters::Off,
        python: None,
        output: Output::Capture,
    }
}

/// The directory with the fake libraries and the program. They are made with a C compiler, which the build of
/// cuptop needs too, or were made before.
pub(crate) fn fakes() -> &'static Path {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    MADE.get_or_init(|| std::env::var_os("CUPTOP_TEST_FAKES").map_or_else(make, PathBuf::from))
}

fn make() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake");
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fake-{}", std::process::id()));
    std::fs::create_dir_all(&made).expect("a directory");
    let compile = |file: &str, output: &str, arguments: &[&str]| {
        let status = Command::new("cc")
            .args(["-O1", "-Wall", "-Werror", "-pthread"])
            .args(arguments)
            .arg("-o")
            .arg(made.join(output))
            .arg(source.join(file))
            .arg("-ldl")
            .status()
            .expect("a compiler");
        assert!(status.success(), "{file}");
    };
    // The driver's file name tells its CUDA version.
    compile(
        "libcuda.c",
        "libcuda.so.580.1.1",
        &["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"],
    );
    let _ = std::os::unix::fs::symlink("libcuda.so.580.1.1", made.join("libcuda.so.1"));
    compile(
        "libcupti.c",
        "libcupti.so.13",
        &["-shared", "-fPIC", "-Wl,-soname,libcupti.so.13"],
    );
    compile("libcudart.c", "libcudart.so.13", &["-shared", "-fPIC"]);
    compile("program.c", "program", &[]);
    compile("libnvidia-ml.c", "libnvidia-ml.so.1", &["-shared", "-fPIC"]);
    made
}

/// Whether there is a Python interpreter; says so where a test is left out for want of one.
pub(crate) fn has_python() -> bool {
    let found = Command::new("python3").arg("--version").output();
    let is_there = found.is_ok_and(|it| it.status.success());
    if !is_there {
        eprintln!("left out: there is no python3");
    }
    is_there
}

/// What a run came to.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) batches: Vec<Batch>,
    pub(crate) notices: Vec<String>,
    pub(crate) lines: Vec<(bool, String)>,
    pub(crate) outcome: Outcome,
    /// Holds the recordings.
    pub(crate) directory: tempfile::TempDir,
}

/// Runs the program with these arguments and variables.
pub(crate) fn trace(made: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Seen {
    trace_with(made, arguments, variables, |_| {})
}

pub(crate) fn trace_with(
    made: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
    change: impl FnOnce(&mut AttachRequest),
) -> Seen {
    trace_by_hand(made, arguments, variables, change, |_| {})
}

/// As [`trace_with`], while somebody has a hand on the recorder.
pub(crate) fn trace_by_hand(
    made: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
    change: impl FnOnce(&mut AttachRequest),
    act: impl FnOnce(&Recorder) + Send + 'static,
) -> Seen {
    let directory = tempfile::tempdir().expect("a directory");
    let mut command: Vec<OsString> = vec!["env".into()];
    command.push(format!("LD_LIBRARY_PATH={}", made.display()).into());
    command.push(format!("CUPTOP_CUPTI={}", made.join("libcupti.so.13").display()).into());
    for (name, value) in variables {
        command.push(format!("{name}={value}").into());
    }
    command.push(made.join("program").into());
    command.extend(arguments.iter().map(Into::into));
    let mut request = request(command, directory.path());
    change(&mut request);
    let (feed, recorder) = attach::run(request).expect("started");
    let hand = std::thread::spawn(move || act(&recorder));
    let mut seen = Seen {
        batches: Vec::new(),
        notices: Vec::new(),
        lines: Vec::new(),
        outcome: Outcome::Stopped,
        directory,
    };
    for message in feed.receiver() {
        match message {
            Message::Batch(batch) => seen.batches.push(batch),
            Message::Notice { text, .. } => seen.notices.push(text),
            Message::Output { is_error, line } => seen.lines.push((is_error, line)),
            Message::Progress(_) | Message::Status(_) => {}
            Message::Finished(outcome) => seen.outcome = outcome,
        }
    }
    hand.join().expect("no panic");
    seen
}

impl Seen {
    /// What was said of a process's recording, in order.
    pub(crate) fn modes(&self, process: u32) -> Vec<Mode> {
        let own = self.batches.iter().filter(|batch| batch.process == process);
        own.flat_map(|batch| &batch.defs)
            .filter_map(|def| match def {
                Def::Mode(mode) => Some(*mode),
                _ => None,
            })
            .collect()
    }

    pub(crate) fn processes(&self) -> usize {
        self.batches
            .iter()
            .map(|batch| batch.process as usize + 1)
            .max()
            .unwrap_or(0)
    }

    pub(crate) fn items(&self, process: u32) -> Vec<Activity> {
        self.batches
            .iter()
            .filter(|batch| batch.process == process)
            .flat_map(|batch| batch.items.iter().copied())
            .collect()
    }

    /// Whether there is exactly one kernel for each of the launches 1 to `count`.
    #[track_caller]
    pub(crate) fn has_kernels(&self, process: u32, count: u32) {
        let found = self.kernels(process);
        let same = found.iter().copied().eq(1..=count);
        assert!(same, "{} kernels of {count}, or others", found.len());
    }

    /// Correlation ids of all kernels, sorted.
    pub(crate) fn kernels(&self, process: u32) -> Vec<u32> {
        let mut found: Vec<u32> = self
            .items(process)
            .iter()
            .filter(|item| matches!(item.what, What::Kernel(_)))
            .map(|item| item.correlation)
            .collect();
        found.sort_unstable();
        found
    }

    pub(crate) fn health(&self, process: u32) -> Health {
        self.batches
            .iter()
            .rev()
            .filter(|batch| batch.process == process)
            .find_map(|batch| batch.health)
            .expect("counters")
    }

    pub(crate) fn ended_well(&self, process: u32) -> Option<bool> {
        self.batches
            .iter()
            .rev()
            .filter(|batch| batch.process == process)
            .flat_map(|batch| batch.defs.iter().rev())
            .find_map(|def| match def {
                Def::Process(info) => Some(info.ended_well),
                _ => None,
            })
            .expect("a process")
    }

    pub(crate) fn kernel_name(&self, wanted: u32) -> &str {
        let name = self
            .batches
            .iter()
            .flat_map(|batch| &batch.defs)
            .find_map(|def| match def {
                Def::Shape { id, shape } if *id == wanted => Some(shape.name),
                _ => None,
            })
            .expect("defined");
        self.names()[&name]
    }

    pub(crate) fn names(&self) -> HashMap<u32, &str> {
        self.batches
            .iter()
            .flat_map(|batch| &batch.defs)
            .filter_map(|def| match def {
                Def::Name { id, text } => Some((*id, text.as_str())),
                _ => None,
            })
            .collect()
    }
}
