//! The bytes of entries are those that the format says, and numbers that mean nothing are not made into values.

use activity::entry::{Entry, UNIT, Unreadable, length};
use activity::{
    Activity, Copy, Direction, GroupWindow, Hardware, MemoryAction, MemoryKind, Metric, OffCpu,
    Place, ProcessInfo, RangeKind, Reading, SampledThread, Sampling, Span, StackSample, Sync,
    SyncKind, ThreadWindow, What,
};

fn bytes_of(what: What) -> Vec<u8> {
    let record = Activity {
        span: Span::new(0x0102_0304_0506, 0x0102_0304_0507),
        correlation: 0x0a0b_0c0d,
        what,
    };
    let mut bytes = Vec::new();
    Entry::Record(record).encode(&mut bytes);
    bytes
}

/// Written down by hand from the description of the format.
#[test]
fn a_copy_lies_where_the_format_says() {
    let bytes = bytes_of(What::Copy(Copy {
        place: Place {
            device: 1,
            context: 2,
            stream: 3,
        },
        direction: Direction::P2P,
        from: MemoryKind::Pageable,
        to: MemoryKind::Managed,
        is_async: true,
        bytes: 0x1122_3344_5566_7788,
        peer: 4,
        graph: 5,
        node: 6,
    }));
    let mut expected = vec![
        2, 0, 1, 0, 0x0d, 0x0c, 0x0b, 0x0a, // tag, length, correlation
        6, 5, 4, 3, 2, 1, 0, 0, 7, 5, 4, 3, 2, 1, 0, 0, // start, end
        1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, // place
        4, 0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, // peer, graph, node
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, // bytes
        3, 1, 5, 1, // direction, from, to, asynchronous
    ];
    expected.resize(UNIT, 0);
    assert_eq!(bytes, expected);
    assert_eq!(length(&bytes), Some(UNIT));
}

/// Written down by hand from the description of the format, and read back.
#[test]
fn what_is_seen_lies_where_the_format_says() {
    let look = Entry::StackSample(StackSample {
        time: 0x0102_0304_0506,
        changed: vec![
            SampledThread {
                thread: 7,
                stack: 3,
                is_running: true,
            },
            SampledThread {
                thread: 8,
                stack: 0,
                is_running: false,
            },
        ],
    });
    let mut expected = vec![
        32, 0, 1, 0, 16, 0, 0, 0, // tag, length, length of the list
        6, 5, 4, 3, 2, 1, 0, 0, 6, 5, 4, 3, 2, 1, 0, 0, // start, end
        7, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, // threads and stacks
    ];
    expected.resize(UNIT, 0);
    let mut bytes = Vec::new();
    look.encode(&mut bytes);
    assert_eq!(bytes, expected);
    assert_eq!(Entry::decode(&bytes), Ok(look));

    let reading = Entry::Hardware(Hardware::Reading(Reading {
        uuid: [9; 16],
        span: Span::new(1, 2),
        values: vec![(Metric::Occupancy, 0.5)],
        reasons: 0x44,
    }));
    let mut expected = vec![
        33, 0, 1, 0, 5, 0, 0, 0, // tag, length, length of the list
        1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, // start, end
        9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, // UUID
        0x44, 0, 0, 0, 0, 0, 0, 0, // reasons
        1, 0, 0, 0, 0x3f, // a metric and its value
    ];
    expected.resize(UNIT, 0);
    let mut bytes = Vec::new();
    reading.encode(&mut bytes);
    assert_eq!(bytes, expected);
    assert_eq!(Entry::decode(&bytes), Ok(reading));
    // No number; a list that ends within an item.
    bytes[52] = 0x7f;
    bytes[51] = 0x80;
    assert_eq!(Entry::decode(&bytes), Err(Unreadable::Damaged));
    expected[4] = 4;
    assert_eq!(Entry::decode(&expected), Err(Unreadable::Damaged));
    expected[0] = 50;
    assert_eq!(Entry::decode(&expected), Err(Unreadable::UnknownRecord));
    expected[0] = 100;
    assert_eq!(Entry::decode(&expected), Err(Unreadable::UnknownDefinition));
}

#[test]
fn a_number_without_a_meaning_makes_an_unknown_record_and_no_value() {
    let mut bytes = bytes_of(What::Sync(Sync {
        kind: SyncKind::Context,
        context: 1,
        stream: None,
        event: Some(2),
    }));
    assert!(Entry::decode(&bytes).is_ok());
    bytes[24] = 4;
    assert_eq!(Entry::decode(&bytes), Err(Unreadable::UnknownRecord));
    bytes[0] = 63;
    assert_eq!(Entry::decode(&bytes), Err(Unreadable::UnknownRecord));
    bytes[0] = 255;
    assert_eq!(Entry::decode(&bytes), Err(Unreadable::UnknownDefinition));
}

#[test]
fn each_number_is_that_of_at_most_one_value() {
    fn check<T: PartialEq + Copyable>(from: fn(u8) -> Option<T>, code: fn(T) -> u8, count: u8) {
        for number in 0..=u8::MAX {
            assert_eq!(from(number).map(code), (number < count).then_some(number));
        }
    }
    use std::marker::Copy as Copyable;
    check(Direction::from_code, Direction::code, 5);
    check(MemoryKind::from_code, MemoryKind::code, 6);
    check(SyncKind::from_code, SyncKind::code, 4);
    check(MemoryAction::from_code, MemoryAction::code, 2);
    check(RangeKind::from_code, RangeKind::code, 8);
}

#[test]
fn what_is_known_of_a_process_stays_when_less_is_said_later() {
    let mut known = ProcessInfo {
        pid: 42,
        command: "python".to_owned(),
        rank: Some(3),
        host: "node1".to_owned(),
        versions: "CUPTI 13.0".to_owned(),
        ..ProcessInfo::default()
    };
    // As a file of stack samples says it.
    known.add(ProcessInfo {
        pid: 42,
        command: "python train.py".to_owned(),
        ..ProcessInfo::default()
    });
    assert_eq!(known.command, "python train.py");
    assert_eq!((known.rank, known.host.as_str()), (Some(3), "node1"));
    assert_eq!(known.versions, "CUPTI 13.0");
    known.add(ProcessInfo {
        ended_well: Some(true),
        ..ProcessInfo::default()
    });
    assert_eq!((known.pid, known.ended_well), (42, Some(true)));
}

#[test]
fn totals_that_nobody_comes_to_are_damage() {
    let span = Span::new(0, 1_000_000);
    let group = |throttled, cores| {
        let window = GroupWindow {
            span,
            periods: 10,
            throttled_periods: 1,
            throttled,
            cores,
        };
        Entry::OffCpu(OffCpu::Group(window))
    };
    let thread = |running, waiting| {
        let window = ThreadWindow {
            span,
            thread: 7,
            running,
            waiting,
        };
        Entry::OffCpu(OffCpu::Thread(window))
    };
    let lost = |lost| {
        Entry::Sampling(Sampling {
            lost,
            ..Sampling::default()
        })
    };
    for (entry, is_sound) in [
        (group(5, 2.0), true),
        (group(-5, 2.0), false),
        (group(5, f64::NAN), false),
        (thread(1_000_001, 0), true),
        (thread(i64::MAX, 0), false),
        (thread(0, i64::MAX), false),
        (lost(1_000_000), true),
        (lost(u64::MAX), false),
    ] {
        let mut bytes = Vec::new();
        entry.encode(&mut bytes);
        assert_eq!(Entry::decode(&bytes).is_ok(), is_sound, "{entry:?}");
    }
}
