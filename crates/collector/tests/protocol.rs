//! The protocol by which a recording is published and followed, checked over its interleavings: a reader may look at the file
//! at any moment, see the status page in two pieces of different moments, and the entries at a third.
//!
//! The writer's steps are taken from the file itself: what a publication changed is a block at the end, then one of the two status
//! slots, each of which a reader may meet half written. The kernel's promise that is relied on: what one `pwrite` has returned from
//! is seen by every `pread` that begins later.

use std::fs::File;
use std::os::unix::fs::FileExt;

use activity::{Activity, Health, Memset, Place, Span, What};
use collector::recording::{Clocks, Entry, HEADER, Identity, Reader, State, Writer};
use proptest::prelude::*;

/// Where the second slot begins: what is before it and what is behind it may be of different moments.
const BETWEEN_SLOTS: usize = 1024;
const SLOTS: [usize; 2] = [512, BETWEEN_SLOTS];
const SLOT: usize = 160;
/// Records of each publication.
const RECORDS: [u64; 4] = [2, 1, 3, 2];

fn record(number: i64) -> Activity {
    Activity {
        span: Span::new(number, number + 1),
        correlation: 0,
        what: What::Memset(Memset {
            place: Place::default(),
            bytes: 1,
            graph: 0,
        }),
    }
}

/// Every state of the file that a reader can meet, in order.
fn states() -> Vec<Vec<u8>> {
    let directory = tempfile::tempdir().expect("a directory");
    let identity = Identity {
        pid: 1,
        start: Clocks::now(),
        ..Identity::default()
    };
    let mut writer = Writer::create(directory.path(), identity, 0).expect("a recording");
    let path = writer.path().to_path_buf();
    let read = || std::fs::read(&path).expect("readable");
    let mut whole = vec![read()];
    let (mut number, mut health) = (0, Health::default());
    for count in RECORDS {
        for _ in 0..count {
            writer.record(&record(number));
            number += 1;
        }
        health.received += count;
        writer.publish(&health);
        whole.push(read());
    }
    writer.close(&health, State::Closed);
    whole.push(read());

    let mut states = vec![whole[0].clone()];
    for pair in whole.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        let mut file = before.clone();
        // The block, a unit at a time; then its slot, in pieces.
        for end in (before.len()..after.len())
            .step_by(64)
            .skip(1)
            .chain([after.len()])
        {
            file.resize(end, 0);
            file[before.len().min(end)..end].copy_from_slice(&after[before.len().min(end)..end]);
            states.push(file.clone());
        }
        let slot = SLOTS
            .into_iter()
            .find(|&at| before[at..at + SLOT] != after[at..at + SLOT])
            .expect("a publication writes a slot");
        for end in [8, 16, 24, 88, 152, SLOT] {
            file[slot..slot + end].copy_from_slice(&after[slot..slot + end]);
            states.push(file.clone());
        }
        assert_eq!(&file, after, "nothing else is written");
    }
    states
}

/// A file that is in one state after another, with somebody who holds the writer's lock.
struct Shown {
    file: File,
    path: std::path::PathBuf,
    _directory: tempfile::TempDir,
    _writer: File,
}

impl Shown {
    fn new() -> Shown {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("1-1.cuptop");
        let file = File::create(&path).expect("a file");
        let writer = File::open(&path).expect("a file");
        writer.try_lock().expect("nobody else has it");
        Shown {
            file,
            path,
            _directory: directory,
            _writer: writer,
        }
    }

    /// The page in two pieces of two moments, as one read may return it.
    fn page(&self, first: &[u8], second: &[u8]) {
        let mut page = first[..BETWEEN_SLOTS].to_vec();
        page.extend(&second[BETWEEN_SLOTS..HEADER]);
        self.file.write_all_at(&page, 0).expect("written");
        self.file.set_len(second.len() as u64).expect("set");
        self.file
            .write_all_at(&second[HEADER..], HEADER as u64)
            .expect("written");
    }

    fn all(&self, state: &[u8]) {
        self.page(state, state);
    }
}

/// Hands on what the reader has, and looks that it is the beginning of what was written.
fn take(reader: &mut Reader, seen: &mut i64) {
    while reader
        .read(&mut |entry| {
            if let Entry::Record(record) = entry {
                assert_eq!(record.span.start, *seen, "in order, none twice");
                *seen += 1;
            }
        })
        .expect("readable")
    {}
}

/// A reader that looks at these moments: of the page's first piece, of its second, and of the entries.
fn follow(states: &[Vec<u8>], looks: &[[usize; 3]]) {
    let shown = Shown::new();
    let last = states.last().expect("some");
    let mut seen = 0;
    let mut reader: Option<Reader> = None;
    for &[first, second, entries] in looks {
        shown.page(&states[first], &states[second]);
        match &mut reader {
            Some(reader) => reader.refresh().expect("readable"),
            None => reader = Some(Reader::open(&shown.path).expect("a recording")),
        }
        shown.all(&states[entries]);
        take(reader.as_mut().expect("opened"), &mut seen);
    }
    let mut reader = reader.expect("looked at least once");
    shown.all(last);
    reader.refresh().expect("readable");
    take(&mut reader, &mut seen);
    let all = RECORDS.iter().sum::<u64>();
    assert_eq!(seen.cast_unsigned(), all, "{looks:?}");
    assert_eq!((reader.lost(), reader.damage()), (0, None), "{looks:?}");
    assert_eq!(reader.status().state, State::Closed);
}

#[test]
fn one_look_at_any_moment_sees_a_beginning_and_the_next_one_all() {
    let states = states();
    assert!(states.len() > 40, "{} states", states.len());
    for first in 0..states.len() {
        for second in first..states.len() {
            // Later entries than these change nothing for a reader that knows how far they go.
            for entries in [second, (second + 1).min(states.len() - 1), states.len() - 1] {
                follow(&states, &[[first, second, entries]]);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn several_looks_see_each_record_once(mut moments in prop::collection::vec(0_usize..1_000, 6..15)) {
        let states = states();
        moments.sort_unstable();
        let at = |moment: usize| moment * states.len() / 1_000;
        let looks: Vec<[usize; 3]> = moments.chunks_exact(3).map(|it| [at(it[0]), at(it[1]), at(it[2])]).collect();
        follow(&states, &looks);
    }
}
