//! Tracing a program from the command to the timeline, with a CUDA driver and a libcupti that are made here: the
//! injected library is the real one, the records are known to the last one.

#![cfg(target_os = "linux")]

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use cuptop::activity::feed::{Failure, FailureKind, Message, Outcome};
use cuptop::activity::{
    Activity, Batch, Def, Direction, Health, MemoryAction, RangeKind, SyncKind, What,
};
use cuptop::source::attach::{self, AttachRequest, Output};

/// The directory with the fake libraries and the program; `None` where there is no C compiler.
fn fakes() -> Option<&'static Path> {
    static MADE: OnceLock<Option<PathBuf>> = OnceLock::new();
    MADE.get_or_init(make).as_deref()
}

fn make() -> Option<PathBuf> {
    if Command::new("cc").arg("--version").output().is_err() {
        eprintln!("skipped: there is no C compiler to make the fake CUDA driver with");
        return None;
    }
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
    compile("program.c", "program", &[]);
    Some(made)
}

/// What a run came to.
#[derive(Debug)]
struct Seen {
    batches: Vec<Batch>,
    notices: Vec<String>,
    lines: Vec<(bool, String)>,
    outcome: Outcome,
    /// Holds the recordings.
    directory: tempfile::TempDir,
}

/// Runs the program with these arguments and variables.
fn trace(made: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Seen {
    trace_with(made, arguments, variables, |_| {})
}

fn trace_with(
    made: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
    change: impl FnOnce(&mut AttachRequest),
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
    let mut request = AttachRequest {
        command,
        dir: directory.path().join("run"),
        flush_period: Duration::from_millis(20),
        max_bytes: 0,
        keep: None,
        output: Output::Capture,
    };
    change(&mut request);
    let feed = attach::run(request).expect("started");
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
            Message::Progress(_) => {}
            Message::Finished(outcome) => seen.outcome = outcome,
        }
    }
    seen
}

impl Seen {
    fn processes(&self) -> usize {
        self.batches
            .iter()
            .map(|batch| batch.process as usize + 1)
            .max()
            .unwrap_or(0)
    }

    fn items(&self, process: u32) -> Vec<Activity> {
        self.batches
            .iter()
            .filter(|batch| batch.process == process)
            .flat_map(|batch| batch.items.iter().copied())
            .collect()
    }

    /// Whether there is exactly one kernel for each of the launches 1 to `count`.
    #[track_caller]
    fn has_kernels(&self, process: u32, count: u32) {
        let found = self.kernels(process);
        let same = found.iter().copied().eq(1..=count);
        assert!(same, "{} kernels of {count}, or others", found.len());
    }

    /// Correlation ids of all kernels, sorted.
    fn kernels(&self, process: u32) -> Vec<u32> {
        let mut found: Vec<u32> = self
            .items(process)
            .iter()
            .filter(|item| matches!(item.what, What::Kernel(_)))
            .map(|item| item.correlation)
            .collect();
        found.sort_unstable();
        found
    }

    fn health(&self, process: u32) -> Health {
        self.batches
            .iter()
            .rev()
            .filter(|batch| batch.process == process)
            .find_map(|batch| batch.health)
            .expect("counters")
    }

    fn ended_well(&self, process: u32) -> Option<bool> {
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

    fn kernel_name(&self, wanted: u32) -> &str {
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

    fn names(&self) -> HashMap<u32, &str> {
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

#[test]
fn a_program_that_returns_is_traced_whole() {
    let Some(made) = fakes() else { return };
    let seen = trace(made, &["return", "5000"], &[]);
    assert_eq!(seen.outcome, Outcome::Complete, "{:?}", seen.notices);
    assert_eq!(seen.processes(), 1);
    seen.has_kernels(0, 5000);
    let calls: Vec<_> = seen
        .items(0)
        .into_iter()
        .filter(|item| matches!(item.what, What::Call(_)))
        .collect();
    assert_eq!(calls.len(), 5000);
    assert!(
        seen.names()
            .values()
            .any(|name| *name == "cudaLaunchKernel")
    );
    let health = seen.health(0);
    assert_eq!((health.received, health.losses()), (10_000, 0));
    assert_eq!(seen.ended_well(0), Some(true));
    for item in seen.items(0) {
        if let What::Kernel(_) = item.what {
            // The program makes the n-th kernel 999 + n ns long.
            assert_eq!(item.span.len(), 999 + i64::from(item.correlation));
        }
    }
}

#[test]
fn buffers_that_come_late_from_other_threads_lose_nothing() {
    let Some(made) = fakes() else { return };
    let variables = [("FAKE_LATE", "1"), ("FAKE_ROOM", "100")];
    let seen = trace(made, &["return", "2000"], &variables);
    seen.has_kernels(0, 2000);
    assert_eq!(seen.health(0).losses(), 0);
}

#[test]
fn records_longer_than_any_known_are_walked_by_the_librarys_sizes() {
    let Some(made) = fakes() else { return };
    let variables = [("FAKE_EXTRA", "16"), ("FAKE_VERSION", "130900")];
    let seen = trace(made, &["return", "3000"], &variables);
    seen.has_kernels(0, 3000);
    assert_eq!(seen.health(0).losses(), 0);
    assert!(
        seen.notices.iter().any(|text| text.contains("expected")),
        "sizes that differ from those known are mentioned: {:?}",
        seen.notices
    );
}

#[test]
fn every_kind_of_record_arrives_and_what_is_wrong_is_counted() {
    let Some(made) = fakes() else { return };
    let seen = trace(made, &["everything"], &[]);
    let items = seen.items(0);
    let one = |wanted: &str, pick: &dyn Fn(&What) -> bool| -> Activity {
        let found: Vec<_> = items.iter().filter(|item| pick(&item.what)).collect();
        assert_eq!(found.len(), 1, "{wanted}: {found:?}");
        *found[0]
    };
    let kernel = one("kernel", &|what| matches!(what, What::Kernel(_)));
    assert_eq!((kernel.correlation, kernel.span.len()), (101, 20));
    let base = kernel.span.start - 10;
    let What::Kernel(details) = kernel.what else {
        unreachable!()
    };
    assert_eq!((details.graph, details.node), (5, 55));
    assert_eq!(
        (
            details.place.device,
            details.place.context,
            details.place.stream
        ),
        (0, 1, 7)
    );
    let shape = seen
        .batches
        .iter()
        .flat_map(|batch| &batch.defs)
        .find_map(|def| match def {
            Def::Shape { id, shape } if *id == details.shape => Some(*shape),
            _ => None,
        })
        .expect("defined");
    assert_eq!(
        (shape.grid, shape.block, shape.cluster),
        ([10, 11, 12], [20, 21, 22], [0, 1, 2])
    );
    assert_eq!(
        (
            shape.registers,
            shape.static_shared,
            shape.dynamic_shared,
            shape.local
        ),
        (32, 100, 200, 300)
    );
    let names = seen.names();
    assert_eq!(names[&shape.name], "_Z6matmulPf");

    let copy = one(
        "copy",
        &|what| matches!(what, What::Copy(it) if it.direction == Direction::H2D),
    );
    let What::Copy(details) = copy.what else {
        unreachable!()
    };
    assert_eq!(
        (details.bytes, details.is_async, details.place.stream),
        (4096, true, 13)
    );
    let peer = one(
        "peer copy",
        &|what| matches!(what, What::Copy(it) if it.direction == Direction::P2P),
    );
    let What::Copy(details) = peer.what else {
        unreachable!()
    };
    assert_eq!(
        (
            details.bytes,
            details.place.device,
            details.peer,
            peer.correlation
        ),
        (8192, 0, 1, 103)
    );
    let memset = one(
        "memset",
        &|what| matches!(what, What::Memset(it) if it.bytes == 512),
    );
    assert_eq!((memset.span.start - base, memset.span.end - base), (51, 60));

    let calls: Vec<_> = items
        .iter()
        .filter_map(|item| match item.what {
            What::Call(call) => Some((names[&call.name], item.correlation)),
            _ => None,
        })
        .collect();
    assert_eq!(
        calls,
        [
            ("cuLaunchKernel", 105),
            ("cudaEventRecord", 109),
            ("cudaEventRecord", 110)
        ]
    );
    let syncs: Vec<_> = items
        .iter()
        .filter_map(|item| match item.what {
            What::Sync(sync) => Some((sync.kind, sync.stream, sync.event)),
            _ => None,
        })
        .collect();
    assert_eq!(
        syncs,
        [
            (SyncKind::Event, Some(13), Some(21)),
            (SyncKind::StreamWaitEvent, Some(13), Some(21)),
            (SyncKind::Stream, Some(13), None),
            (SyncKind::Context, None, None),
        ]
    );
    let overhead = one("overhead", &|what| matches!(what, What::Overhead(_)));
    let What::Overhead(details) = overhead.what else {
        unreachable!()
    };
    assert_eq!(names[&details.name], "lazy function loading");
    let memory: Vec<_> = items
        .iter()
        .filter_map(|item| match item.what {
            What::Memory(it) => Some((it.action, it.bytes, it.address, it.is_async)),
            _ => None,
        })
        .collect();
    let (bytes, address) = (1 << 20, 0x7f00_0000_0000);
    assert_eq!(
        memory,
        [
            (MemoryAction::Alloc, bytes, address, true),
            (MemoryAction::Free, bytes, address, true)
        ]
    );
    // Events carry no time: they have the end of the call that recorded them.
    let events: Vec<_> = items
        .iter()
        .filter_map(|item| match item.what {
            What::Event(it) => Some((it.event, it.place.stream, item.span.start - base)),
            _ => None,
        })
        .collect();
    assert_eq!(events, [(21, 13, 91), (22, 13, 93)]);
    let range = one(
        "range",
        &|what| matches!(what, What::Range(it) if it.kind == RangeKind::Nvtx),
    );
    let What::Range(details) = range.what else {
        unreachable!()
    };
    assert_eq!(names[&details.name], "forward");
    assert_eq!((range.span.start - base, range.span.end - base), (100, 120));

    let defs: Vec<&Def> = seen.batches.iter().flat_map(|batch| &batch.defs).collect();
    assert!(defs.iter().any(
        |def| matches!(def, Def::Device(it) if it.name == "NVIDIA Fake" && it.multiprocessors == 132
        && it.capability == (9, 0) && it.memory == 1 << 37 && it.memory_bandwidth == 4_800_000_000)
    ));
    assert!(
        defs.iter()
            .any(|def| matches!(def, Def::Stream(it) if it.stream == 7 && it.is_default))
    );
    assert!(
        defs.iter()
            .any(|def| matches!(def, Def::Stream(it) if it.stream == 13 && it.name == "upload" && it.priority == -2))
    );
    assert!(
        defs.iter()
            .any(|def| matches!(def, Def::Thread { name, .. } if name == "the loop"))
    );
    assert!(
        defs.iter()
            .any(|def| matches!(def, Def::Process(it) if it.command.ends_with("program everything") && it.versions.contains("130001")))
    );

    // Of the rejects: two without time, one backwards, three outside the clock; one kind without a meaning here and one
    // without a size; and what CUPTI says that it dropped.
    let health = seen.health(0);
    assert_eq!(health.no_timestamp, 2);
    assert_eq!(health.end_before_start, 1);
    assert_eq!(health.bad_clock, 3);
    assert_eq!(health.unknown, 2);
    assert_eq!(health.dropped, 42);
    assert_eq!(health.lost, 0);
    // 23 records of everything, 7 rejects; the one without a size is not a record yet.
    assert_eq!(health.received, 23 + 7);
}

#[test]
fn what_was_flushed_survives_every_kind_of_end() {
    let Some(made) = fakes() else { return };
    for (how, code) in [
        ("_exit", None),
        ("abort", Some(128 + 6)),
        ("kill", Some(128 + 9)),
    ] {
        let seen = trace(made, &[how, "700"], &[]);
        seen.has_kernels(0, 700);
        assert_eq!(seen.ended_well(0), Some(false), "{how}");
        match code {
            None => assert_eq!(seen.outcome, Outcome::Complete),
            Some(code) => assert!(
                matches!(&seen.outcome, Outcome::Failed(Failure { kind: FailureKind::Program { code: it }, .. }) if *it == code),
                "{:?}",
                seen.outcome
            ),
        }
        assert!(
            seen.notices
                .iter()
                .any(|text| text.contains("without closing its recording")),
            "{how}: {:?}",
            seen.notices
        );
    }
}

#[test]
fn records_that_are_withheld_are_announced_and_come_in_the_end() {
    let Some(made) = fakes() else { return };
    let seen = trace(made, &["wait", "20"], &[("FAKE_WITHHOLD", "1")]);
    seen.has_kernels(0, 20);
    let told: Vec<i64> = seen
        .batches
        .iter()
        .filter(|batch| batch.items.is_empty())
        .filter_map(|batch| batch.health?.oldest_open)
        .collect();
    let first = seen
        .items(0)
        .iter()
        .map(|item| item.span.start)
        .min()
        .expect("items");
    // The program makes its records at once, 1 ms after the time it gives them, and nothing before.
    assert!(!told.is_empty(), "nothing was announced");
    assert!(
        told.iter().all(|time| (time - first).abs() < 1_000_000_000),
        "{told:?} {first}"
    );
    assert_eq!(seen.health(0).oldest_open, None);
}

#[test]
fn graphs_without_times_are_counted_and_explained() {
    let Some(made) = fakes() else { return };
    let seen = trace(made, &["graph", "500"], &[]);
    assert_eq!(seen.health(0).no_timestamp, 500);
    assert!(
        seen.notices
            .iter()
            .any(|text| text.contains("CUDA graphs without times")),
        "{:?}",
        seen.notices
    );
}

#[test]
fn nvtx_is_passed_on_to_the_libcupti_of_the_collector() {
    let Some(made) = fakes() else { return };
    let seen = trace(made, &["nvtx", "5"], &[]);
    assert_eq!(seen.outcome, Outcome::Complete, "{:?}", seen.notices);
    seen.has_kernels(0, 5);
}

#[test]
fn a_signal_to_us_is_passed_on_and_its_end_reported() {
    let Some(made) = fakes() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let feed = attach::run(AttachRequest {
        command: vec![made.join("program").into(), "sleep".into()],
        dir: directory.path().join("run"),
        flush_period: Duration::from_millis(20),
        max_bytes: 0,
        keep: None,
        output: Output::Inherit,
    })
    .expect("started");
    // The handler stands since before the program was started.
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM)
        .expect("sent");
    let last = feed.receiver().iter().last().expect("a last word");
    assert!(
        matches!(&last, Message::Finished(Outcome::Failed(failure)) if failure.kind == FailureKind::Program { code: 128 + 15 }),
        "{last:?}"
    );
}

#[test]
fn keeping_the_last_deletes_what_is_older_and_shows_all_of_it_live() {
    let Some(made) = fakes() else { return };
    // 1 s is kept; a launch each 10 ms for some 4 s.
    let mut seen = trace_with(made, &["slowly", "400"], &[], |request| {
        request.keep = Some(Duration::from_secs(1));
    });
    seen.has_kernels(0, 400);
    assert_eq!(seen.processes(), 1);
    assert_eq!(seen.health(0).losses(), 0);
    assert_eq!(seen.ended_well(0), Some(true));
    let names: std::collections::HashSet<&str> = seen.names().into_values().collect();
    assert!(
        names.contains("_Z3oddv")
            && names.contains("_Z4evenv")
            && names.contains("cudaLaunchKernel")
    );
    // Each part numbers its names anew: what is shown must still be each kernel's own.
    for item in seen.items(0) {
        if let What::Kernel(kernel) = item.what {
            let wanted = if item.correlation % 2 == 1 {
                "_Z3oddv"
            } else {
                "_Z4evenv"
            };
            assert_eq!(
                seen.kernel_name(kernel.shape),
                wanted,
                "{}",
                item.correlation
            );
        }
    }

    let feed =
        cuptop::source::recording::open(&[seen.directory.path().join("run")]).expect("opens");
    seen.batches.clear();
    seen.notices.clear();
    for message in feed.receiver() {
        match message {
            Message::Batch(batch) => seen.batches.push(batch),
            Message::Notice { text, .. } => seen.notices.push(text),
            _ => {}
        }
    }
    let kept = seen.kernels(0);
    assert_eq!(kept.last(), Some(&400));
    assert!(kept.len() < 350, "{}", kept.len());
    assert!(
        kept.windows(2).all(|pair| pair[0] + 1 == pair[1]),
        "no holes"
    );
    assert!(
        seen.notices
            .iter()
            .any(|text| text.contains("earlier records are gone")),
        "{:?}",
        seen.notices
    );
    assert_eq!(seen.health(0).received, 800);
}

#[test]
fn a_forked_child_disturbs_nothing() {
    let Some(made) = fakes() else { return };
    let seen = trace(made, &["fork", "300"], &[]);
    assert_eq!(seen.outcome, Outcome::Complete, "{:?}", seen.notices);
    assert_eq!(seen.processes(), 1);
    seen.has_kernels(0, 600);
    assert_eq!(seen.ended_well(0), Some(true));
}

#[test]
fn processes_that_use_cuda_each_for_itself_are_two_recordings() {
    let Some(made) = fakes() else { return };
    let seen = trace(made, &["fork-first", "100"], &[]);
    assert_eq!(seen.processes(), 2);
    let mut counts = [seen.kernels(0).len(), seen.kernels(1).len()];
    counts.sort_unstable();
    assert_eq!(counts, [100, 200]);
}

#[test]
fn a_program_that_becomes_another_is_two_recordings() {
    let Some(made) = fakes() else { return };
    let seen = trace(made, &["exec", "50"], &[]);
    assert_eq!(seen.outcome, Outcome::Complete, "{:?}", seen.notices);
    assert_eq!(seen.processes(), 2);
    assert_eq!((seen.kernels(0).len(), seen.kernels(1).len()), (50, 50));
    let mut ends = [seen.ended_well(0), seen.ended_well(1)];
    ends.sort_unstable();
    assert_eq!(ends, [Some(false), Some(true)]);
}

#[test]
fn another_profiler_is_named_and_the_program_runs_on() {
    let Some(made) = fakes() else { return };
    let seen = trace(made, &["return", "10"], &[("FAKE_TAKEN", "1")]);
    assert!(
        seen.notices
            .iter()
            .any(|text| text.contains("Some Other Profiler")),
        "{:?}",
        seen.notices
    );
    assert!(
        matches!(&seen.outcome, Outcome::Failed(failure) if failure.kind == FailureKind::Machine),
        "{:?}",
        seen.outcome
    );
}

#[test]
fn cuda_13_0_0_is_refused_and_says_why() {
    let Some(made) = fakes() else { return };
    let seen = trace(made, &["return", "10"], &[("FAKE_VERSION", "130000")]);
    assert!(
        seen.notices
            .iter()
            .any(|text| text.contains("13.0.85 or later")),
        "{:?}",
        seen.notices
    );
}

#[test]
fn a_program_without_cuda_is_said_to_be_silent() {
    let Some(made) = fakes() else { return };
    let seen = trace(made, &["no-cuda"], &[]);
    assert!(
        matches!(&seen.outcome, Outcome::Failed(failure) if failure.kind == FailureKind::Machine
            && failure.message.contains("no process of it reported in")),
        "{:?}",
        seen.outcome
    );
}

#[test]
fn the_programs_own_failure_is_passed_on() {
    let Some(made) = fakes() else { return };
    let seen = trace(made, &["fail", "10"], &[]);
    assert!(
        matches!(&seen.outcome, Outcome::Failed(failure) if failure.kind == FailureKind::Program { code: 7 }),
        "{:?}",
        seen.outcome
    );
    assert_eq!(seen.kernels(0).len(), 10);
    assert_eq!(seen.ended_well(0), Some(true));
}

#[test]
fn its_lines_come_with_the_stream_they_were_printed_to() {
    let Some(made) = fakes() else { return };
    let mut seen = trace(made, &["lines"], &[]);
    seen.lines.sort();
    assert_eq!(
        seen.lines,
        [
            (false, "to stdout".to_owned()),
            (true, "to stderr".to_owned())
        ]
    );
}

#[test]
fn a_recording_over_its_limit_ends_and_the_program_does_not() {
    let Some(made) = fakes() else { return };
    let limit = 64 * 1024;
    let seen = trace_with(made, &["return", "5000"], &[], |request| {
        request.max_bytes = limit
    });
    assert_eq!(seen.outcome, Outcome::Complete);
    let health = seen.health(0);
    let read = seen.items(0).len() as u64;
    assert_eq!(health.received, 10_000);
    assert_eq!(health.lost, 10_000 - read, "what is not there is counted");
    assert!(
        seen.notices.iter().any(|text| text.contains("size limit")),
        "{:?}",
        seen.notices
    );
}

#[test]
fn a_file_size_limit_of_the_system_is_a_full_disk_and_no_signal() {
    let Some(made) = fakes() else { return };
    let seen = trace_with(made, &[], &[], |request| {
        // ulimit counts blocks of 512 bytes.
        let script = "ulimit -f 128; exec \"$@\"";
        let program = request.command.clone();
        request.command = ["sh", "-c", script, "sh"].iter().map(Into::into).collect();
        request.command.extend(program);
        request.command.extend(["return".into(), "5000".into()]);
    });
    assert_eq!(seen.outcome, Outcome::Complete, "{:?}", seen.notices);
    let health = seen.health(0);
    assert_eq!(health.received, 10_000);
    assert_eq!(health.lost, 10_000 - seen.items(0).len() as u64);
    assert!(health.lost > 0);
    assert!(
        seen.notices.iter().any(|text| text.contains("no space")),
        "{:?}",
        seen.notices
    );
}

#[test]
fn stopping_the_feed_ends_the_program() {
    let Some(made) = fakes() else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let feed = attach::run(AttachRequest {
        command: vec![made.join("program").into(), "sleep".into()],
        dir: directory.path().join("run"),
        flush_period: Duration::from_millis(20),
        max_bytes: 0,
        keep: None,
        output: Output::Capture,
    })
    .expect("started");
    feed.stop.stop();
    let last = feed.receiver().iter().last().expect("a last word");
    assert!(
        matches!(last, Message::Finished(Outcome::Stopped)),
        "{last:?}"
    );
}

#[test]
fn a_command_that_does_not_exist_is_an_error_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let error = attach::run(AttachRequest {
        command: vec!["/nonexistent/program".into()],
        dir: directory.path().join("run"),
        flush_period: Duration::from_millis(20),
        max_bytes: 0,
        keep: None,
        output: Output::Capture,
    })
    .expect_err("nothing to start");
    assert!(
        error.to_string().contains("/nonexistent/program"),
        "{error}"
    );
}

#[test]
fn the_recording_opens_again_as_it_was_seen_live() {
    let Some(made) = fakes() else { return };
    let seen = trace(made, &["return", "1000"], &[]);
    let feed =
        cuptop::source::recording::open(&[seen.directory.path().join("run")]).expect("opens");
    let mut kernels = 0;
    for message in feed.receiver() {
        match message {
            Message::Batch(batch) => {
                kernels += batch
                    .items
                    .iter()
                    .filter(|item| matches!(item.what, What::Kernel(_)))
                    .count();
            }
            Message::Finished(outcome) => assert_eq!(outcome, Outcome::Complete),
            _ => {}
        }
    }
    assert_eq!(kernels, 1000);
}
