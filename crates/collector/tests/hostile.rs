//! A recording made to do harm: the reader neither panics nor hangs nor hands on what is not there.

use std::io::Write;

use activity::{Activity, Health, Kernel, LaunchShape, Place, Span, What};
use collector::recording::{Entry, HEADER, Identity, Reader, State, UNIT, Writer};
use proptest::prelude::*;

/// A recording with a few of everything.
fn sample() -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a directory");
    let mut writer = Writer::create(directory.path(), Identity::default(), 0).expect("a recording");
    let name = writer.name(&[b'k'; 200]);
    let shape = writer.shape(&LaunchShape {
        name,
        ..LaunchShape::default()
    });
    for at in 0..20 {
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
    let path = writer.path().to_path_buf();
    let health = Health {
        received: 20,
        ..Health::default()
    };
    writer.close(&health, State::Closed);
    std::fs::read(path).expect("readable")
}

/// Reads a file of these bytes to its end, and checks what was handed over. Returns entries seen.
fn read(bytes: &[u8]) -> usize {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(bytes).expect("written");
    let Ok(mut reader) = Reader::open(file.path()) else {
        return 0;
    };
    let (mut names, mut shapes, mut entries) = (0, 0, 0);
    let mut rounds = 0;
    loop {
        let more = reader
            .read(&mut |entry| {
                entries += 1;
                match entry {
                    Entry::Name(id, _) => {
                        names += 1;
                        assert_eq!(id, names);
                    }
                    Entry::Shape(id, shape) => {
                        shapes += 1;
                        assert_eq!(id, shapes);
                        assert!(shape.name <= names);
                    }
                    Entry::Record(record) => {
                        assert!(0 <= record.span.start && record.span.start <= record.span.end);
                        if let What::Kernel(kernel) = record.what {
                            assert!((1..=shapes).contains(&kernel.shape));
                        }
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
    assert_eq!(read(&sample()), 1 + 1 + 20 + 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..3 * HEADER)) {
        read(&bytes);
    }

    #[test]
    fn any_entries(entries in proptest::collection::vec(any::<u8>(), 0..4096), claimed in any::<u64>()) {
        let mut bytes = sample()[..HEADER].to_vec();
        bytes.extend(&entries);
        let length = bytes.len() as u64;
        publish(&mut bytes, if claimed % 2 == 0 { length } else { claimed });
        read(&bytes);
    }

    #[test]
    fn mutated(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12), cut in any::<Option<prop::sample::Index>>()) {
        let mut bytes = sample();
        for (at, value) in changes {
            let at = HEADER + at.index(bytes.len() - HEADER);
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(HEADER + cut.index(bytes.len() - HEADER));
        }
        read(&bytes);
    }
}
