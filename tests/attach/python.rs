//! Python programs are seen from outside: their lines, their workers, their end. They need no CUDA for that.

use std::collections::BTreeMap;

use activity::What;
use activity::feed::{Message, Outcome};
use live::attach;
use trace::{LaneKind, SourceInfo, Trace};

use crate::harness::{has_python, request};

const PROGRAM: &str = r#"
import os, sys, time

def reads():
    time.sleep(float(sys.argv[1]))

def computes(until):
    while time.monotonic() < until:
        sum(range(1000))

def main():
    pid = os.fork() if len(sys.argv) > 2 else -1
    if pid == 0:
        reads()
        os._exit(0)
    reads()
    computes(time.monotonic() + float(sys.argv[1]))
    if pid > 0:
        os.waitpid(pid, 0)

main()
"#;

type Ran = (Trace, Vec<String>, Outcome, tempfile::TempDir);

fn run(hz: Option<u32>, arguments: &[&str]) -> Ran {
    run_program(PROGRAM, hz, arguments)
}

fn run_program(text: &str, hz: Option<u32>, arguments: &[&str]) -> Ran {
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("train.py");
    std::fs::write(&program, text).expect("written");
    let mut command = vec!["python3".into(), program.into()];
    command.extend(arguments.iter().map(Into::into));
    let mut request = request(command, directory.path());
    request.collect.waits = false;
    request.python = hz;
    let (feed, _) = attach::run(request).expect("started");
    let (mut trace, mut notices, mut outcome) = (
        Trace::new(SourceInfo::default()),
        Vec::new(),
        Outcome::Stopped,
    );
    for message in feed.receiver() {
        match message {
            Message::Batch(batch) => trace.apply(batch),
            Message::Notice { text, .. } => notices.push(text),
            Message::Finished(it) => outcome = it,
            _ => {}
        }
    }
    (trace, notices, outcome, directory)
}

/// By process, how many samples its main thread has with each innermost own function.
fn functions(trace: &Trace) -> Vec<BTreeMap<String, usize>> {
    let of = |process: &trace::Process| {
        let mut counts = BTreeMap::new();
        let Some(extent) = process.sampled.extent() else {
            return counts;
        };
        let whole = activity::Span::new(extent.start, extent.end + 1);
        for sample in process.sampled.within(process.info.pid, whole) {
            if let Some((own, _)) = trace.stacks().own_line(sample.stack) {
                *counts.entry(own.function.clone()).or_insert(0) += 1;
            }
        }
        counts
    };
    trace.processes().iter().map(of).collect()
}

fn count(counts: &BTreeMap<String, usize>, name: &str) -> usize {
    counts.get(name).copied().unwrap_or(0)
}

#[test]
fn the_lines_of_a_python_program_are_seen_and_found_again_when_it_is_opened() {
    if !has_python() {
        return;
    }
    // How soon two processes are found and looked at is a matter of load: what is too short for that is done again, longer.
    let mut done = None;
    for seconds in [0.7, 3.0, 12.0] {
        let all = run(Some(200), &[&seconds.to_string(), "fork"]);
        let processes = functions(&all.0);
        // The one that forked has the lower id, whichever is found first.
        let first = all.0.processes().iter().map(|it| it.info.pid);
        let first = first.enumerate().min_by_key(|it| it.1).map_or(0, |it| it.0);
        let seen = |process: usize, name| processes.get(process).map_or(0, |it| count(it, name));
        let (reads, computes) = (seen(first, "reads"), seen(first, "computes"));
        let least = [reads, computes, seen(1 - first, "reads")];
        let is_enough = processes.len() == 2 && least.iter().all(|n| *n >= 20);
        done = Some((all, processes, first, least, seconds));
        if is_enough {
            break;
        }
    }
    let ((trace, notices, outcome, directory), processes, first, seen, seconds) =
        done.expect("done once at least");
    assert!(
        matches!(outcome, Outcome::Failed(_)),
        "it used no CUDA: {outcome:?}"
    );
    assert_eq!(processes.len(), 2, "{notices:?}");
    let worker = &processes[1 - first];
    // 0.7 s of each at 200 Hz are 140 samples; a loaded machine gives fewer.
    let most = (200.0 * seconds * 1.4) as usize;
    assert!(
        seen.iter().all(|n| (20..=most).contains(n)),
        "{processes:?} {notices:?}"
    );
    assert_eq!(count(worker, "computes"), 0);
    let totals = trace.processes()[first].sampled.totals();
    assert!(totals.looks > totals.torn, "{totals:?}");
    // The lane under the main thread shows the functions that samples saw.
    let lane = trace.lanes().iter().position(|lane| matches!(lane.key().kind, LaneKind::Range { thread, .. } if thread == trace.processes()[first].info.pid));
    let lane = lane.expect("a lane of frames");
    let names: Vec<String> = (0..trace.lanes()[lane].len())
        .filter_map(|row| match trace.activity(lane, row).what {
            What::Range(range) => Some(trace.names().full(range.name).to_owned()),
            _ => None,
        })
        .collect();
    for wanted in [
        "train.py:21 <module>",
        "train.py:16 main",
        "train.py:5 reads",
        "computes",
    ] {
        assert!(
            names.iter().any(|name| name.contains(wanted)),
            "{wanted}: {names:?}"
        );
    }

    let run = directory.path().join("run");
    let feed = recording::open(&[run]).expect("a recording");
    let mut opened = Trace::new(SourceInfo::default());
    for message in feed.receiver() {
        match message {
            Message::Batch(batch) => opened.apply(batch),
            Message::Finished(it) => assert_eq!(it, Outcome::Complete),
            _ => {}
        }
    }
    assert_eq!(functions(&opened), processes);
}

#[test]
fn nothing_is_looked_at_when_it_is_off() {
    if !has_python() {
        return;
    }
    let (trace, _, _, directory) = run(None, &["0.2"]);
    assert!(trace.processes().is_empty());
    let files = std::fs::read_dir(directory.path().join("run")).expect("a directory");
    assert_eq!(files.count(), 0);
}

/// A folder in the place of PyTorch: the file's path and its function's name are what is known of a profiler from outside.
#[test]
fn a_profiler_of_the_programs_own_is_told_what_it_loses() {
    if !has_python() {
        return;
    }
    let said = |call: &str| {
        let library = tempfile::tempdir().expect("a directory");
        let folder = library.path().join("torch/profiler");
        std::fs::create_dir_all(&folder).expect("made");
        // Until somebody has seen it.
        let text = "import time\nclass Profile:\n    time.sleep(0.5)\n    def start(self):\n        time.sleep(1)\n";
        std::fs::write(folder.join("profiler.py"), text).expect("written");
        let program = format!(
            "import sys\nsys.path.insert(0, sys.argv[1])\nfrom torch.profiler import profiler\n{call}\n"
        );
        let (_, notices, _, _directory) = run_program(
            &program,
            Some(500),
            &[&library.path().display().to_string()],
        );
        notices
            .iter()
            .filter(|it| it.contains("torch.profiler sees no GPU work"))
            .count()
    };
    assert_eq!(said("profiler.Profile().start()"), 1);
    // Everybody who imports PyTorch imports it.
    assert_eq!(said("import time; time.sleep(0.5)"), 0);
}
