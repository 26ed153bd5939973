//! A Python program that uses CUDA (the fakes, through ctypes): idle time has the lines that the program was made to wait at.

use activity::Span;
use activity::feed::{Message, Outcome};
use causes::explain;
use cuptop::report::KnownGpus;
use cuptop::report::{self, Report};
use live::attach;
use trace::{SourceInfo, Trace};

use crate::harness::{fakes, has_python, request};

/// Each round waits 90 ms at line 11 and 30 ms at line 14, then launches: of the idle time 75 % and 25 %.
const PROGRAM: &str = r#"import ctypes, os, signal, sys, time

cuda = ctypes.CDLL(os.path.join(os.environ["FAKES"], "libcuda.so.1"))
assert cuda.cuInit(0) == 0
cupti = ctypes.CDLL(os.environ["CUPTOP_CUPTI"])
launch = cupti.fake_launch
launch.argtypes = [ctypes.c_uint32, ctypes.c_uint64]


def load():
    time.sleep(0.09)

def prepare():
    time.sleep(0.03)

rounds, quiet = int(sys.argv[1]), int(sys.argv[2])
for step in range(1, rounds + 1):
    if quiet and step == quiet:
        os.kill(os.getppid(), signal.SIGUSR2)
    load()
    prepare()
    launch(step, 2000)
"#;

fn run(rounds: u32, quiet: u32) -> (Trace, Vec<String>) {
    let made = fakes();
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("train.py");
    std::fs::write(&program, PROGRAM).expect("written");
    // No `env` in between, which would be the program's parent: variables that only the fakes read go to all.
    let command = format!(
        "import os, runpy, sys; os.environ.update(FAKES={:?}, CUPTOP_CUPTI={:?}); sys.argv = sys.argv[1:]; \
         runpy.run_path(sys.argv[0], run_name='__main__')",
        made.display().to_string(),
        made.join("libcupti.so.13").display().to_string(),
    );
    let mut words: Vec<std::ffi::OsString> = vec!["python3".into(), "-c".into(), command.into()];
    words.push(program.into());
    words.extend([rounds.to_string().into(), quiet.to_string().into()]);
    let mut request = request(words, directory.path());
    request.collect.waits = false;
    request.python = Some(200);
    let (feed, _) = attach::run(request).expect("started");
    let (mut trace, mut said) = (Trace::new(SourceInfo::default()), Vec::new());
    for message in feed.receiver() {
        match message {
            Message::Batch(batch) => trace.apply(batch),
            Message::Notice { text, .. } => said.push(text),
            Message::Output { line, .. } => said.push(line),
            Message::Finished(it) => assert_eq!(it, Outcome::Complete, "{said:?}"),
            Message::Progress(_) | Message::Status(_) => {}
        }
    }
    (trace, said)
}

#[test]
fn idle_time_is_told_by_line_wherever_its_cause_is() {
    if !has_python() {
        return;
    }
    // 29 gaps of 120 ms with a look each 5 ms: a busy machine has fewer looks, and longer to look.
    let looked = [30, 60, 120].map(|rounds| move || run(rounds, 0));
    let looked = looked.into_iter().map(|run| run()).map(|(trace, said)| {
        let report = Report::new(&trace, None, KnownGpus::default());
        (trace, said, report)
    });
    let mut enough = looked.skip_while(|it| it.2.lines.first().is_none_or(|it| it.samples <= 100));
    let (trace, said, report) = enough.next().expect("looks");
    let [device] = &report.lines[..] else {
        panic!("{said:?}")
    };
    let shares: Vec<(&str, f64)> = device
        .lines
        .iter()
        .take(2)
        .map(|it| (it.place.as_str(), it.share))
        .collect();
    assert_eq!(shares[0].0, "train.py:11", "{shares:?}");
    assert_eq!(shares[1].0, "train.py:14", "{shares:?}");
    assert!((0.65..0.85).contains(&shares[0].1), "{shares:?}");

    let told = report.verdicts[0].line.as_ref().expect("a line");
    assert_eq!(
        (told.place.as_str(), told.function.as_str()),
        ("train.py:11", "load")
    );
    let text = &report.verdicts[0].text;
    // The program sleeps there.
    assert!(
        text.contains("asleep or waiting for input at train.py:11"),
        "{text}"
    );
    assert!(!text.contains("that was not traced"), "{text}");
    let cause = &report.devices[0].idle[0];
    let line = cause.line.as_ref().expect("a line");
    assert_eq!(
        (cause.cause.id(), line.place.as_str()),
        ("host work", "train.py:11")
    );
    let finding = report.findings.iter().find(|it| it.rule.name() == "asleep");
    let title = &finding.expect("asleep").title;
    assert!(title.contains("at train.py:11 for "), "{title}");
    let page = report::text::render(&report, &report::text::Options::default());
    assert!(page.contains("CPU work, at train.py:11 ("), "{page}");

    // One gap: what was seen in it and no more.
    let gap = trace.devices()[0]
        .usage
        .gaps_within(trace.operations_extent().expect("operations"));
    let gap: Span = gap.into_iter().nth(7).expect("gaps");
    let lanes: Vec<_> = trace.streams_of(0).map(|(id, _)| id).collect();
    let sentence = explain(&trace, None, &lanes, gap).sentence;
    assert!(
        sentence.starts_with("The CPU was outside CUDA for ")
            && sentence.ends_with(" stack samples saw the CPU in load at train.py:11."),
        "{sentence}"
    );
}

#[test]
fn while_nobody_looks_idle_time_is_no_lines() {
    if !has_python() {
        return;
    }
    // The program asks for a pause at its fifteenth round.
    let (trace, said) = run(30, 15);
    assert!(
        said.iter()
            .any(|it| it.contains("looking from outside pauses")),
        "{said:?}"
    );
    let report = Report::new(&trace, None, KnownGpus::default());
    let lines = &report.lines[0];
    // The gaps before the pause, 14 of 29, and at most a part of two more; how soon the first look comes is the machine's matter.
    let extent = trace.operations_extent().expect("operations");
    let gaps: Vec<Span> = trace.devices()[0].usage.gaps_within(extent).collect();
    let first = |count: usize| gaps[..count].iter().map(|gap| gap.len()).sum::<i64>();
    assert!(
        (1..=first(16)).contains(&lines.idle_ns) && lines.samples > 0,
        "{} {lines:?}",
        first(14)
    );
    assert_eq!(lines.lines[0].place, "train.py:11");
}
