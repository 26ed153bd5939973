//! The protocol by which a recording is published and followed, checked over its interleavings. A reader may look at
//! the file at any moment. It may see the status page in two pieces of different moments, and the entries at a third.
//!
//! Both sides are the code itself. The steps are the writes that a [`Writer`] makes, in its order, and a reader may
//! meet each half done. A [`Reader`] reads the file that they leave. The kernel's promise that is relied on: what one
//! `pwrite` has returned from is seen by every `pread` that begins later.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use activity::{Activity, Frame, Health, Memset, Place, SampleDef, Span, What};
use proptest::prelude::*;

use super::header::SLOTS;
use super::{Clocks, Entry, HEADER, Identity, Reader, State, Writer};

use seen::Step;

/// Where the second slot begins: what is before it and what is behind it may be of different moments.
const BETWEEN_SLOTS: usize = SLOTS[1];
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
            node: 0,
        }),
    }
}

/// Writes a recording in publications of [`RECORDS`], after `prepare`.
fn write(directory: &Path, prepare: impl FnOnce(&mut Writer)) {
    let identity = Identity {
        pid: 1,
        start: Clocks::now(),
        ..Identity::default()
    };
    let mut writer = Writer::create(directory, identity, 0).expect("a recording");
    prepare(&mut writer);
    let (mut number, mut health) = (0, Health::default());
    for count in RECORDS {
        for _ in 0..count {
            writer.record(&record(number));
            number += 1;
        }
        health.received += count;
        writer.publish(&health);
    }
    writer.close(&health, State::Closed);
}

/// Where a write may have come to when a reader looks: blocks by their units, slots by their fields.
fn pieces(step: &Step) -> Vec<usize> {
    let length = step.bytes.len();
    let mut ends: Vec<usize> = match step.offset < HEADER {
        true => vec![8, 16, 24, 88, 152],
        false => (64..length).step_by(64).collect(),
    };
    ends.retain(|end| *end < length);
    ends.push(length);
    ends
}

fn put(file: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    file.resize(file.len().max(end), 0);
    file[offset..end].copy_from_slice(bytes);
}

/// Every state of the file that a reader can meet, in order, from the first that says it is a recording.
fn states() -> Vec<Vec<u8>> {
    let directory = tempfile::tempdir().expect("a directory");
    let steps = seen::collect(|| write(directory.path(), |_| {}));
    let mut file = Vec::new();
    let mut states = Vec::new();
    for step in &steps {
        // The header page comes first and once; before it is whole there is no recording.
        let is_header = step.offset == 0;
        assert_eq!(is_header, states.is_empty());
        for end in pieces(step) {
            put(&mut file, step.offset, &step.bytes[..end]);
            if !is_header || end == step.bytes.len() {
                states.push(file.clone());
            }
        }
    }
    let written = directory.path().read_dir().expect("there").next();
    let path = written.expect("a recording").expect("there").path();
    assert!(
        std::fs::read(path).expect("readable") == file,
        "nothing else was written"
    );
    states
}

/// A file that is in one state after another, with somebody who holds the writer's lock.
struct StagedFile {
    file: File,
    path: std::path::PathBuf,
    _directory: tempfile::TempDir,
    _writer: File,
}

impl StagedFile {
    fn new() -> StagedFile {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("1-1.cuptop");
        let file = File::create(&path).expect("a file");
        let writer = File::open(&path).expect("a file");
        writer.try_lock().expect("nobody else has it");
        StagedFile {
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
    let shown = StagedFile::new();
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
    assert_eq!((reader.lost, reader.damage()), (0, None), "{looks:?}");
    assert_eq!(reader.status.state, State::Closed);
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

#[test]
fn a_part_that_says_it_goes_on_has_a_next_one_that_can_be_read_whole() {
    let directory = tempfile::tempdir().expect("a directory");
    let steps = seen::collect(|| {
        write(directory.path(), |writer| {
            // Every publication begins another part, which repeats what was said for all.
            writer.keep_last(Duration::ZERO);
            writer.add(&Entry::Thread(7, b"worker"));
        });
    });
    let mut files: Vec<(u64, Vec<u8>)> = Vec::new();
    let mut went_on = 0;
    for step in &steps {
        if step.offset == 0 {
            files.push((step.file, Vec::new()));
        }
        // A number may be that of a file which was removed, too.
        let at = files.iter().rposition(|(file, _)| *file == step.file);
        let at = at.expect("its header page is written first");
        for end in pieces(step) {
            put(&mut files[at].1, step.offset, &step.bytes[..end]);
            let shown: Vec<_> = files.iter().map(|(_, file)| opened(file)).collect();
            for (part, reader) in shown.iter().enumerate() {
                let goes_on = reader
                    .as_ref()
                    .is_some_and(|(it, _)| it.status.state == State::Continued);
                if goes_on {
                    let (next, _) = shown[part + 1].as_ref().expect("there and a recording");
                    assert_eq!(usize::try_from(next.identity.part), Ok(part + 1));
                    assert!(next.status.published > HEADER as u64, "defines the thread");
                    went_on += 1;
                }
            }
        }
    }
    assert!(went_on > RECORDS.len());
    assert!(files.len() > RECORDS.len());
}

#[test]
fn a_writer_that_ends_in_the_middle_of_any_step_leaves_what_it_published() {
    let states = states();
    let end = states.len() - 1;
    let mut published = Vec::new();
    let mut counted = 0;
    for state in &states {
        // Nobody holds the writer's lock.
        let (reader, seen) = opened(state).expect("a recording");
        assert_ne!(reader.writer_lives(), Some(true));
        let before = published.last().copied().unwrap_or(0);
        assert!(seen >= before, "{seen} where {before} were seen before");
        published.push(seen);
        let received = reader.status.health.received;
        assert!(received >= counted, "the counters are those of before");
        counted = received;
    }
    assert_eq!(published[end], RECORDS.iter().sum::<u64>());
    // Every publication was seen, and nothing but publications.
    published.dedup();
    let mut sum = 0;
    let sums: Vec<u64> = std::iter::once(0)
        .chain(RECORDS.map(|count| {
            sum += count;
            sum
        }))
        .collect();
    assert_eq!(published, sums);
}

/// What a reader makes of a file in this state, and how many records it finds; `None` while it is none.
fn opened(state: &[u8]) -> Option<(Reader, u64)> {
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), state).expect("written");
    let mut reader = Reader::open(file.path()).ok()?;
    let mut seen = 0;
    while reader
        .read(&mut |entry| seen += u64::from(matches!(entry, Entry::Record(_))))
        .expect("readable")
    {}
    Some((reader, seen))
}

/// The writes, as they are made.
pub(super) mod seen {
    use std::cell::RefCell;
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;

    /// One write.
    pub(crate) struct Step {
        /// The file's number.
        pub(crate) file: u64,
        pub(crate) offset: usize,
        pub(crate) bytes: Vec<u8>,
    }

    thread_local! {
        static STEPS: RefCell<Option<Vec<Step>>> = const { RefCell::new(None) };
    }

    pub(in super::super) fn note(file: &File, bytes: &[u8], offset: u64) {
        STEPS.with_borrow_mut(|steps| {
            if let Some(steps) = steps {
                steps.push(Step {
                    file: file.metadata().expect("an open file").ino(),
                    offset: usize::try_from(offset).expect("a small file"),
                    bytes: bytes.to_vec(),
                });
            }
        });
    }

    /// The writes that `body` makes in this thread, in their order.
    pub(crate) fn collect(body: impl FnOnce()) -> Vec<Step> {
        STEPS.set(Some(Vec::new()));
        body();
        STEPS.take().unwrap_or_default()
    }
}

#[test]
fn a_part_repeats_stacks_however_much_else_was_defined() {
    let directory = tempfile::tempdir().expect("a directory");
    let frame = |id| {
        let frame = Frame {
            file: "train.py".to_owned(),
            ..Frame::default()
        };
        Entry::SampleDef(SampleDef::Frame { id, frame })
    };
    write(directory.path(), |writer| {
        writer.keep_last(Duration::ZERO);
        let nodes = vec![(1, 1); 4096];
        for _ in 0..120 {
            writer.add(&Entry::SampleDef(SampleDef::Nodes(nodes.clone())));
        }
        writer.add(&frame(1));
        writer.publish(&Health::default());
        writer.add(&frame(2));
    });
    let parts = directory.path().read_dir().expect("there");
    let paths = parts.map(|it| it.expect("there").path());
    let mut readers: Vec<Reader> = paths.map(|it| Reader::open(&it).expect("one")).collect();
    let last = readers
        .iter_mut()
        .max_by_key(|it| it.identity.part)
        .expect("one");
    let mut frames = Vec::new();
    let mut note = |entry: Entry<'_>| {
        if let Entry::SampleDef(SampleDef::Frame { id, .. }) = entry {
            frames.push(id);
        }
    };
    while last.read(&mut note).expect("readable") {}
    assert_eq!((frames, last.lost), (vec![1, 2], 0));
}

#[test]
fn a_status_that_claims_more_records_than_can_be_is_damage() {
    let mut status = super::Status {
        sequence: 1,
        ..super::Status::default()
    };
    status.health.received = 1 << 40;
    assert_eq!(super::Status::decode(&status.encode()), Some(status));
    status.health.lost = u64::MAX;
    assert_eq!(super::Status::decode(&status.encode()), None);
}
