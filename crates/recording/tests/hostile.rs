//! A recording made to do harm: the reader neither panics nor hangs nor hands on what is not there.

mod common;

use std::io::Write;
use std::path::Path;

use activity::{
    Activity, Frame, GpuIdentity, GpuLimits, GroupWindow, Hardware, Health, Kernel, LaunchShape,
    Metric, Occupant, OffCpu, Owner, Place, Reading, SampleDef, SampledThread, Sampling, Span,
    ThreadWindow, WatchCost, What,
};
use proptest::prelude::*;
use recording::file::{Entry, HEADER, Identity, Reader, StackLog, State, UNIT, Writer};

/// A recording with a few of everything.
fn sample() -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a directory");
    let mut writer = Writer::create(directory.path(), Identity::default(), 0).expect("a recording");
    let name = writer.name(&[b'k'; 200]);
    let shape = writer.shape(&LaunchShape {
        name,
        ..LaunchShape::default()
    });
    for at in 0..6 {
        writer.record(&Activity {
            span: Span::new(at, at + 1),
            correlation: 1,
            what: What::Kernel(Kernel {
                place: Place::default(),
                shape,
                graph: 0,
                node: 0,
            }),
        });
    }
    writer.notice(false, "a word");
    seen(&mut writer);
    let path = writer.path().to_path_buf();
    let health = Health {
        received: 6,
        ..Health::default()
    };
    writer.close(&health, State::Closed);
    std::fs::read(path).expect("readable")
}

/// What others may have seen: a look at a stack of two frames with its totals, and one of all else.
fn seen(writer: &mut Writer) {
    let mut log = StackLog::default();
    let mut stack = 0;
    for line in 1..3 {
        let frame = Frame {
            file: "train.py".to_owned(),
            function: "step".to_owned(),
            line,
        };
        stack = log.deeper(writer, stack, &frame);
    }
    let looked = SampledThread {
        thread: 7,
        stack,
        is_running: true,
    };
    log.add_look(writer, 5, &[looked]);
    writer.add(&Entry::Sampling(Sampling::default()));
    let uuid = [7; 16];
    let occupant = Occupant {
        pid: 1234,
        name: "pyth\u{f6}n".to_owned(),
        memory: None,
        owner: Owner::Other,
    };
    for it in [
        Hardware::Limits(GpuLimits {
            uuid,
            most: vec![(Metric::Power, 700.0)],
            lacks: vec![(Metric::NvlinkIn, "not on this GPU".to_owned())],
            tells_slowdowns: true,
        }),
        Hardware::Reading(Reading {
            uuid,
            span: Span::new(5, 105),
            values: vec![(Metric::Sm, 0.25), (Metric::Clock, 1980.0)],
            reasons: 0x44,
        }),
        Hardware::Occupants {
            uuid,
            time: 9,
            all: vec![occupant],
        },
        Hardware::Note("no NVML".to_owned()),
        Hardware::Gpu(GpuIdentity::default()),
        Hardware::Cost(WatchCost::default()),
    ] {
        writer.add(&Entry::Hardware(it));
    }
    for it in [
        OffCpu::Thread(ThreadWindow {
            thread: 77,
            span: Span::new(10, 110),
            running: 60,
            waiting: 30,
        }),
        OffCpu::Group(GroupWindow {
            span: Span::new(10, 110),
            periods: 1,
            throttled_periods: 1,
            throttled: 20,
            cores: 1.5,
        }),
        OffCpu::Note("no schedstat".to_owned()),
    ] {
        writer.add(&Entry::OffCpu(it));
    }
}

/// Reads a file of these bytes to its end, and checks what was handed over. Returns entries seen.
fn read(bytes: &[u8]) -> usize {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(bytes).expect("written");
    let Ok(mut reader) = Reader::open(file.path()) else {
        return 0;
    };
    let (mut names, mut shapes, mut entries) = (0, 0, 0);
    let (mut frames, mut stacks) = (0, 0);
    let mut rounds = 0;
    loop {
        let more = reader
            .read(&mut |entry| {
                entries += 1;
                match entry {
                    Entry::Name(id, _) => {
                        assert!(id > names);
                        names = id;
                    }
                    Entry::Shape(id, shape) => {
                        assert!(id > shapes);
                        shapes = id;
                        assert!(shape.name <= names);
                    }
                    Entry::Record(record) => {
                        assert!(0 <= record.span.start && record.span.start <= record.span.end);
                        if let What::Kernel(kernel) = record.what {
                            assert!((1..=shapes).contains(&kernel.shape));
                        }
                    }
                    Entry::SampleDef(SampleDef::Frame { id, .. }) => {
                        assert!(id > frames);
                        frames = id;
                    }
                    Entry::SampleDef(SampleDef::Stack { id, caller, frame }) => {
                        assert!(id > stacks && caller < id && frame <= frames);
                        stacks = id;
                    }
                    Entry::StackSample(look) => {
                        // One that could not be read counts, and is shown as unknown.
                        let most = bytes.len() / UNIT;
                        assert!(look.changed.iter().all(|it| it.stack as usize <= most));
                    }
                    _ => {}
                }
            })
            .expect("a file on a healthy disk");
        rounds += 1;
        assert!(rounds <= 2 + bytes.len() / UNIT, "no end");
        if !more {
            break;
        }
    }
    assert!(entries <= bytes.len() / UNIT);
    entries
}

/// A status slot that publishes the whole file, so that mutated entries are really read.
fn publish(bytes: &mut [u8], length: u64) {
    for slot in [512, 1024] {
        bytes[slot..slot + 8].copy_from_slice(&9_u64.to_le_bytes());
        bytes[slot + 8..slot + 16].copy_from_slice(&length.to_le_bytes());
        let sum = bytes[slot..slot + 152]
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
                (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
            });
        bytes[slot + 152..slot + 160].copy_from_slice(&sum.to_le_bytes());
    }
}

#[test]
fn the_sample_is_read_whole() {
    assert_eq!(read(&sample()), 1 + 1 + 6 + 1 + 2 + 2 + 1 + 1 + 6 + 3);
}

/// All that a reader says of a file's contents, and whether it says that something is wrong.
fn contents(path: &Path, bytes: &[u8]) -> (Vec<String>, bool) {
    std::fs::write(path, bytes).expect("written");
    let Ok(mut reader) = Reader::open(path) else {
        return (Vec::new(), true);
    };
    let mut seen = vec![format!("{:?}", reader.identity)];
    while reader
        .read(&mut |entry| seen.push(format!("{entry:?}")))
        .expect("readable")
    {}
    let status = reader.status;
    seen.push(format!(
        "{:?} {:?} {:?}",
        status.state, status.error, status.health
    ));
    (seen, reader.damage().is_some())
}

/// Blocks of a few records each.
fn blocks() -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a directory");
    let mut writer = Writer::create(directory.path(), Identity::default(), 0).expect("a recording");
    let mut health = Health::default();
    for block in 0..3 {
        let name = writer.name(format!("kernel {block}").as_bytes());
        let shape = writer.shape(&LaunchShape {
            name,
            ..LaunchShape::default()
        });
        for at in 0..5 {
            writer.record(&Activity {
                span: Span::new(at, at + 1),
                correlation: 1,
                what: What::Kernel(Kernel {
                    place: Place::default(),
                    shape,
                    graph: 0,
                    node: 0,
                }),
            });
        }
        health.received += 5;
        writer.publish(&health);
    }
    let path = writer.path().to_path_buf();
    writer.close(&health, State::Closed);
    std::fs::read(path).expect("readable")
}

#[test]
fn no_flipped_bit_changes_anything_without_a_word() {
    let whole = blocks();
    let file = tempfile::NamedTempFile::new().expect("a file");
    let (expected, is_damaged) = contents(file.path(), &whole);
    assert!(!is_damaged);
    assert_eq!(expected.len(), 1 + 3 * (2 + 5) + 1);
    let mut noticed = 0;
    // What the header page says, some of what it leaves free, and every byte of the blocks; in each one bit after the other.
    let free = (0..HEADER).step_by(51);
    for at in free
        .chain(0..72)
        .chain(512..672)
        .chain(1024..1184)
        .chain(HEADER..whole.len())
    {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at * 5 % 8);
        let (seen, is_noticed) = contents(file.path(), &bytes);
        assert!(is_noticed || seen == expected, "byte {at}");
        noticed += usize::from(is_noticed);
        if at >= HEADER {
            assert!(is_noticed, "byte {at} belongs to a block");
        }
    }
    assert!(noticed >= whole.len() - HEADER);
}

#[test]
fn wherever_it_is_cut_the_whole_blocks_before_are_read_and_the_rest_counted() {
    let whole = blocks();
    let block = (whole.len() - HEADER) / 3;
    let file = tempfile::NamedTempFile::new().expect("a file");
    for length in 0..whole.len() {
        std::fs::write(file.path(), &whole[..length]).expect("written");
        let opened = Reader::open(file.path());
        if length < HEADER {
            assert!(opened.is_err(), "cut at {length}");
            continue;
        }
        let mut reader = opened.expect("a recording");
        let mut kernels = 0;
        while reader
            .read(&mut |entry| kernels += u64::from(matches!(entry, Entry::Record(_))))
            .expect("readable")
        {}
        let blocks_left = ((length - HEADER) / block) as u64;
        assert_eq!(kernels, 5 * blocks_left, "cut at {length}");
        assert_eq!(reader.lost, 15 - kernels, "cut at {length}");
        assert!(reader.damage().is_some());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..3 * HEADER)) {
        read(&bytes);
    }

    #[test]
    fn any_entries(entries in proptest::collection::vec(any::<u8>(), 0..4096), claimed in any::<u64>()) {
        let mut bytes = sample()[..HEADER + UNIT].to_vec();
        bytes.extend(&entries);
        common::reseal(&mut bytes);
        let length = bytes.len() as u64;
        publish(&mut bytes, if claimed % 2 == 0 { length } else { claimed });
        read(&bytes);
    }

    #[test]
    fn mutated(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12), resealed in any::<bool>(), cut in any::<Option<prop::sample::Index>>()) {
        let mut bytes = sample();
        for (at, value) in changes {
            let at = HEADER + at.index(bytes.len() - HEADER);
            bytes[at] = value;
        }
        if resealed {
            common::reseal(&mut bytes);
        }
        if let Some(cut) = cut {
            bytes.truncate(HEADER + cut.index(bytes.len() - HEADER));
        }
        read(&bytes);
    }
}
