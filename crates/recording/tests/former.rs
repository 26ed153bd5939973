//! What was written beside recordings before it was of their format is read as it is.

mod common;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use activity::feed::Message;
use activity::{Def, Hardware, OffCpu, Owner, SampleDef, SampledThread, Samples, StackSample};
use proptest::prelude::*;
use recording::Follower;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/before_one_format")
}

/// The stacks of one series in words, by their ids.
#[derive(Default)]
struct Stacks {
    frames: HashMap<u32, String>,
    stacks: HashMap<u32, String>,
}

impl Stacks {
    fn define(&mut self, def: &SampleDef) {
        match def {
            SampleDef::Frame { id, frame } => {
                let words = format!("{}:{} {}", frame.file, frame.line, frame.function);
                self.frames.insert(*id, words);
            }
            SampleDef::Stack { id, caller, frame } => {
                let mut words = match caller {
                    0 => String::new(),
                    caller => format!("{} > ", self.stacks[caller]),
                };
                words.push_str(&self.frames[frame]);
                self.stacks.insert(*id, words);
            }
        }
    }

    fn look(&self, pid: u32, look: &StackSample) -> String {
        let unknown = String::new();
        let seen = |it: &SampledThread| {
            let stack = self.stacks.get(&it.stack).unwrap_or(&unknown);
            format!(" [{} {} {stack}]", it.thread, u8::from(it.is_running))
        };
        let seen: String = look.changed.iter().map(seen).collect();
        format!("look {pid} {}{seen}", look.time)
    }
}

fn hardware(it: &Hardware) -> String {
    let hex = |uuid: &[u8; 16]| -> String { uuid.iter().map(|it| format!("{it:02x}")).collect() };
    match it {
        Hardware::Gpu(it) => format!("gpu {} {} {}", hex(&it.uuid), it.index, it.name),
        Hardware::Limits(it) => {
            let most = it.most.iter();
            let most = most.map(|(metric, most)| format!(" [{} {most:.3}]", metric.key()));
            let lacks = it.lacks.iter();
            let lacks = lacks.map(|(metric, why)| format!(" [{} {why}]", metric.key()));
            let all: String = most.chain(lacks).collect();
            format!(
                "limits {} {}{all}",
                hex(&it.uuid),
                u8::from(it.tells_slowdowns)
            )
        }
        Hardware::Reading(it) | Hardware::Sample(it) => {
            let (span, values) = (it.span, it.values.iter());
            let values = values.map(|(metric, value)| format!(" [{} {value:.6}]", metric.key()));
            let (uuid, values) = (hex(&it.uuid), values.collect::<String>());
            format!(
                "reading {uuid} {} {} {}{values}",
                span.start, span.end, it.reasons
            )
        }
        Hardware::Occupants { uuid, time, all } => {
            let all = all.iter().map(|it| {
                let owner = match it.owner {
                    Owner::Program => 0,
                    Owner::Other => 1,
                    Owner::Unknown => 2,
                };
                let memory = it.memory.map_or("-".to_owned(), |it| it.to_string());
                format!(" [{} {owner} {memory} {}]", it.pid, it.name)
            });
            format!("occupants {} {time}{}", hex(uuid), all.collect::<String>())
        }
        Hardware::Note(text) => format!("note {text}"),
        Hardware::Cost(it) => {
            format!(
                "cost {} {} {} {}",
                it.rounds, it.cpu_ns, it.wall_ns, it.lost
            )
        }
    }
}

fn off_cpu(pid: u32, it: &OffCpu) -> String {
    match it {
        OffCpu::Thread(it) => {
            let (thread, span) = (it.thread, it.span);
            let times = format!("{} {} {} {}", span.start, span.end, it.running, it.waiting);
            format!("window {pid} {thread} {times}")
        }
        OffCpu::Group(it) => format!(
            "group {pid} {} {} {} {} {} {:.3}",
            it.span.start, it.span.end, it.periods, it.throttled_periods, it.throttled, it.cores
        ),
        OffCpu::Note(text) => format!("why {pid} {text}"),
    }
}

/// All that a folder holds of what was seen from outside, a line each, and what was said of it.
fn told(folder: &Path) -> (Vec<String>, Vec<String>) {
    let mut follower = Follower::open(folder).expect("a folder");
    let (mut batches, mut notices) = (Vec::new(), Vec::new());
    follower
        .finish_into(&mut |message| {
            match message {
                Message::Batch(batch) => batches.push(batch),
                Message::Notice { text, .. } => notices.push(text),
                _ => {}
            }
            Ok(())
        })
        .expect("somebody listens");
    let pids: Vec<u32> = follower.states().iter().map(|it| it.pid).collect();
    let mut lines = Vec::new();
    let mut stacks: HashMap<(u32, u32), Stacks> = HashMap::new();
    let mut last: HashMap<u32, Samples> = HashMap::new();
    for batch in batches {
        let pid = pids.get(batch.process as usize).copied().unwrap_or(0);
        lines.extend(batch.hardware.iter().map(hardware));
        lines.extend(batch.off_cpu.iter().map(|it| off_cpu(pid, it)));
        let Some(samples) = batch.samples else {
            continue;
        };
        for def in &batch.defs {
            match def {
                Def::Process(it) => lines.push(format!("process {} {}", it.pid, it.command)),
                Def::Thread { thread, name } => lines.push(format!("thread {pid} {thread} {name}")),
                _ => {}
            }
        }
        let stacks = stacks.entry((pid, samples.series)).or_default();
        samples.defs.iter().for_each(|def| stacks.define(def));
        lines.extend(samples.looks.iter().map(|look| stacks.look(pid, look)));
        last.insert(pid, samples);
    }
    for (pid, samples) in last {
        let it = samples.sampling;
        let totals = format!(
            "{} {} {} {} {}",
            it.hz, it.torn, it.lost, it.cost_ns, it.looks
        );
        lines.push(format!("sampling {pid} {totals}"));
    }
    lines.sort();
    (lines, notices)
}

/// The expected lines were read by another program, `expected.py`, after the description of that format.
#[test]
fn a_recording_of_before_is_read_with_what_lies_beside_it() {
    let expected = std::fs::read_to_string(folder().join("expected.txt")).expect("readable");
    let mut expected: Vec<&str> = expected.lines().collect();
    expected.sort_unstable();
    let (lines, notices) = told(&folder());
    // Of what watching took there is the newest.
    let costs = expected.iter().filter(|it| it.starts_with("cost "));
    let cost = (*costs.max().expect("a cost")).to_owned();
    expected.retain(|it| !it.starts_with("cost ") || *it == cost);
    assert_eq!(lines, expected);
    assert!(notices.is_empty(), "{notices:?}");
}

fn copied(change: impl Fn(&str, &mut Vec<u8>)) -> tempfile::TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    for file in folder().read_dir().expect("a folder") {
        let path = file.expect("a file").path();
        let mut bytes = std::fs::read(&path).expect("readable");
        let end = path.extension().and_then(|it| it.to_str()).expect("a name");
        change(end, &mut bytes);
        let to = copy.path().join(path.file_name().expect("a name"));
        std::fs::write(to, bytes).expect("written");
    }
    copy
}

#[test]
fn a_file_of_before_is_read_up_to_where_it_is_damaged() {
    let (whole, _) = told(&folder());
    let copy = copied(|end, bytes| match end {
        // The first block, whose payload begins behind the header of 64 bytes and its own of 16.
        "stacks" => bytes[64 + 16] ^= 1,
        // One entry without sense, in a block of its own.
        "hardware" => {
            let entry = [9, 1, 0, 0];
            let mut head = b"+blk".to_vec();
            head.extend(4_u32.to_le_bytes());
            head.extend(common::crc32(&entry).to_le_bytes());
            head.extend(common::crc32(&head).to_le_bytes());
            bytes.extend(head);
            bytes.extend(entry);
            bytes.extend([0; 12]);
        }
        _ => {}
    });
    let (lines, notices) = told(copy.path());
    let count = |lines: &[String], kind| lines.iter().filter(|it| it.starts_with(kind)).count();
    assert_eq!(count(&lines, "reading"), count(&whole, "reading"));
    assert_eq!(count(&lines, "window"), count(&whole, "window"));
    assert_eq!(count(&lines, "look"), 0, "{lines:#?}");
    assert_eq!(notices.len(), 2, "{notices:?}");
    let damage = |it: &String| it.contains("it is damaged at byte ");
    assert!(notices.iter().all(damage), "{notices:?}");
    assert!(
        notices.iter().any(|it| it.contains("at byte 64: ")),
        "{notices:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Damage never costs more than what it is in, and nothing is made up.
    #[test]
    fn no_damage_to_a_file_of_before_makes_anything_up(
        flips in prop::collection::vec((any::<prop::sample::Index>(), 1_u8..=255), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let (whole, _) = told(&folder());
        let copy = copied(|end, bytes| {
            if end == "hardware" || end == "host" {
                for (index, mask) in &flips {
                    let at = index.index(bytes.len());
                    bytes[at] ^= mask;
                }
                bytes.truncate(cut.index(2 * bytes.len()).max(1));
            }
        });
        let (lines, notices) = told(copy.path());
        let is_missing = lines.len() < whole.len();
        prop_assert!(lines.iter().all(|line| whole.contains(line) || line.starts_with("cost ")));
        prop_assert!(!is_missing || !notices.is_empty());
    }
}
