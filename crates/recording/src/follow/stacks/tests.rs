//! What is seen comes back as it was seen, also when a block in the middle is lost.

use super::super::decoder::Decoder as _;
use super::Stacks;
use super::encode::Encoder;
use activity::{Batch, Def, Frame, Ns, SampleDef, Sampling, Seen, StackId};

fn frame(file: &str, function: &str, line: u32) -> Frame {
    Frame {
        file: file.to_owned(),
        function: function.to_owned(),
        line,
    }
}

/// The id of a stack, given from the outermost frame to the innermost.
fn stack<const N: usize>(encoder: &mut Encoder, frames: [&Frame; N]) -> StackId {
    frames.into_iter().fold(0, |caller, frame| {
        encoder.deeper(caller, frame).expect("room")
    })
}

fn seen(thread: u32, stack: StackId) -> Seen {
    Seen {
        thread,
        stack,
        is_running: thread == 7,
    }
}

/// Blocks of a program whose thread 7 goes from line to line under `main` while thread 8 waits, and then ends.
fn blocks() -> Vec<Vec<u8>> {
    let mut encoder = Encoder::default();
    encoder.process("python train.py");
    encoder.thread(8, "pin_memory");
    let main = frame("train.py", "<module>", 3);
    let waits = stack(&mut encoder, [&frame("queue.py", "get", 180)]);
    let mut blocks = Vec::new();
    for block in 0..3_u32 {
        for look in 0..4_u32 {
            let line = 10 + block;
            let stack = stack(&mut encoder, [&main, &frame("train.py", "step", line)]);
            let time = Ns::from(block * 4 + look) * 10 + 1_700_000_000_000_000_000;
            let both = [seen(7, stack), seen(8, waits)];
            let is_over = block == 2 && look > 1;
            encoder.look(time, if is_over { &both[..1] } else { &both });
        }
        let totals = Sampling {
            hz: 100,
            torn: block.into(),
            ..Sampling::default()
        };
        blocks.extend(encoder.block(&totals));
    }
    blocks
}

/// Every look as text: time, and what each thread was doing then, "-" where that is not known.
fn told(blocks: &[Vec<u8>]) -> (Vec<String>, Batch) {
    let mut decoder = Stacks::new(5, 42);
    let mut batch = Batch::default();
    for block in blocks {
        decoder.decode(block, &mut batch).expect("sound");
    }
    let samples = batch.samples.clone().expect("samples");
    let name = |stack: StackId| -> String {
        let mut words = Vec::new();
        let mut next = stack;
        while next != 0 {
            let Some((caller, frame)) = samples.defs.iter().find_map(|def| match def {
                SampleDef::Stack { id, caller, frame } if *id == next => Some((*caller, *frame)),
                _ => None,
            }) else {
                words.push("?".to_owned());
                break;
            };
            let found = samples.defs.iter().find_map(|def| match def {
                SampleDef::Frame { id, frame: it } if *id == frame => {
                    Some(format!("{}:{} {}", it.file, it.line, it.function))
                }
                _ => None,
            });
            words.push(found.unwrap_or_else(|| "?".to_owned()));
            next = caller;
        }
        words.reverse();
        words.join(" > ")
    };
    let mut state = std::collections::BTreeMap::new();
    let mut lines = Vec::new();
    for look in &samples.looks {
        for seen in &look.changed {
            state.insert(seen.thread, *seen);
        }
        state.retain(|_, seen| seen.stack != 0);
        let words: Vec<String> = state
            .values()
            .map(|it| {
                format!(
                    "{}{}: {}",
                    it.thread,
                    if it.is_running { "*" } else { "" },
                    name(it.stack)
                )
            })
            .collect();
        lines.push(format!(
            "{} {}",
            look.time - 1_700_000_000_000_000_000,
            words.join(", ")
        ));
    }
    (lines, batch)
}

#[test]
fn what_was_seen_comes_back() {
    let (lines, batch) = told(&blocks());
    let expected: Vec<String> = (0..12)
        .map(|at| {
            let line = 10 + at / 4;
            let waits = if at < 10 { ", 8: queue.py:180 get" } else { "" };
            format!(
                "{} 7*: train.py:3 <module> > train.py:{line} step{waits}",
                at * 10
            )
        })
        .collect();
    assert_eq!(lines, expected);
    let samples = batch.samples.expect("samples");
    assert_eq!(
        (
            samples.series,
            samples.sampling.looks,
            samples.sampling.torn
        ),
        (5, 12, 2)
    );
    assert!(
        matches!(&batch.defs[..], [Def::Process(it), Def::Thread { thread: 8, .. }] if it.pid == 42 && it.command == "python train.py")
    );
}

#[test]
fn a_lost_block_costs_its_own_looks_and_the_names_that_it_defined() {
    let mut blocks = blocks();
    blocks.remove(1);
    let (lines, batch) = told(&blocks);
    let sampling = batch.samples.expect("samples").sampling;
    assert_eq!((sampling.looks, sampling.lost), (8, 4));
    // The third block names its own line; what the first defined still stands.
    assert_eq!(
        lines[4],
        "80 7*: train.py:3 <module> > train.py:12 step, 8: queue.py:180 get"
    );
}

#[test]
fn saved_samples_are_the_same() {
    let directory = tempfile::tempdir().expect("a directory");
    let (expected, batch) = told(&blocks());
    let samples = batch.samples.expect("samples");
    let mut copier = super::Copier::create(directory.path(), 42, 9).expect("a file");
    copier.save(&samples).expect("written");
    let path = directory.path().join("42-9.stacks");
    let mut file = crate::file::beside::Reader::open(&path).expect("a file");
    let mut blocks = Vec::new();
    while file
        .read(&mut |block| blocks.push(block.to_vec()))
        .expect("readable")
    {}
    assert_eq!(told(&blocks).0, expected);
}

proptest::proptest! {
    #[test]
    fn no_block_is_too_strange(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300), cut in 0_usize..200) {
        let mut decoder = Stacks::new(0, 1);
        let mut batch = Batch::default();
        let first = &blocks()[0];
        // An unreadable rest costs nothing of what came before it.
        let _ = decoder.decode(&first[..cut.min(first.len())], &mut batch);
        let _ = decoder.decode(&bytes, &mut batch);
        let samples = batch.samples.unwrap_or_default();
        for look in &samples.looks {
            for seen in &look.changed {
                proptest::prop_assert!(seen.stack < 1 << 21);
            }
        }
    }
}
