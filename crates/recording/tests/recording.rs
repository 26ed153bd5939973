//! The recording: what is written is read, whatever else happens to the file.

mod common;

use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use activity::{
    Activity, Collective, Copy, DeviceInfo, Direction, EventRecord, Graph, Health, HostCall,
    Kernel, LaunchShape, MemoryAction, MemoryKind, MemoryOp, Memset, Overhead, Place, ProcessInfo,
    Range, RangeKind, Span, StreamInfo, Sync, SyncKind, What,
};
use recording::file::{Clocks, Entry, HEADER, Identity, Reader, State, UNIT, WriteError, Writer};

fn identity() -> Identity {
    Identity {
        pid: 4242,
        start: Clocks::now(),
        ..Identity::default()
    }
}

fn record(start: i64, what: What) -> Activity {
    Activity {
        span: Span::new(start, start + 10),
        correlation: 7,
        what,
    }
}

fn memset(start: i64) -> Activity {
    let memset = Memset {
        place: Place::default(),
        bytes: 64,
        graph: 0,
        node: 0,
    };
    record(start, What::Memset(memset))
}

/// One of every kind of record, each field with a value of its own.
fn all_kinds(name: u32, shape: u32) -> Vec<What> {
    let place = Place {
        device: 1,
        context: 2,
        stream: 3,
    };
    vec![
        What::Kernel(Kernel {
            place,
            shape,
            graph: 5,
            node: 1 << 40,
        }),
        What::Copy(Copy {
            place,
            direction: Direction::P2P,
            from: MemoryKind::Pageable,
            to: MemoryKind::Pinned,
            is_async: true,
            bytes: 1 << 41,
            peer: 4,
            graph: 5,
            node: 0,
        }),
        What::Memset(Memset {
            place,
            bytes: 9,
            graph: 5,
            node: 0,
        }),
        What::Graph(Graph { place, graph: 19 }),
        What::Call(HostCall {
            thread: 11,
            name,
            code: -3,
        }),
        What::Sync(Sync {
            kind: SyncKind::Stream,
            context: 12,
            stream: Some(13),
            event: None,
        }),
        What::Overhead(Overhead { name, thread: 14 }),
        What::Memory(MemoryOp {
            action: MemoryAction::Free,
            kind: MemoryKind::Device,
            place,
            bytes: 15,
            address: 0x7fff_0000_1234,
            is_async: true,
        }),
        What::Event(EventRecord { place, event: 16 }),
        What::Range(Range {
            kind: RangeKind::Nvtx,
            name,
            thread: 17,
            index: 18,
        }),
    ]
}

/// Everything readable now, each entry as its debug text.
fn read_all(reader: &mut Reader) -> Vec<String> {
    let mut seen = Vec::new();
    reader.refresh().expect("readable");
    while reader
        .read(&mut |entry| seen.push(format!("{entry:?}")))
        .expect("readable")
    {}
    seen
}

fn the_only_file(directory: &Path) -> std::path::PathBuf {
    let mut entries = std::fs::read_dir(directory).expect("a directory");
    let path = entries.next().expect("a file").expect("a file").path();
    assert!(entries.next().is_none());
    path
}

#[test]
fn what_is_written_is_read_in_order_and_only_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut writer = Writer::create(directory.path(), identity(), 0).expect("a recording");
    let mut reader = Reader::open(writer.path()).expect("a recording");
    assert_eq!(reader.identity.pid, 4242);
    assert!(read_all(&mut reader).is_empty());

    let mut expected = Vec::new();
    let name = writer.name(b"kernel \xff\x1b[31m");
    expected.push(format!("{:?}", Entry::Name(1, b"kernel \xff\x1b[31m")));
    let shape = LaunchShape {
        name,
        grid: [1, 2, 3],
        block: [4, 5, 6],
        registers: 7,
        static_shared: 8,
        dynamic_shared: 9,
        local: 10,
        cluster: [11, 12, 13],
        collective: 0,
    };
    let collective = Collective {
        operation: "allreduce".to_owned(),
        group: "0 [0, 1]".to_owned(),
        size: 2,
        elements: [1 << 22, 1 << 40],
        element: "Float".to_owned(),
        peer: Some(3),
    };
    assert_eq!(writer.shape(&shape), 1);
    assert_eq!(writer.shape(&shape), 1, "the same shape is defined once");
    expected.push(format!("{:?}", Entry::Shape(1, shape)));
    for what in all_kinds(name, 1) {
        writer.record(&record(1_000, what));
        expected.push(format!("{:?}", Entry::Record(record(1_000, what))));
    }
    assert!(
        read_all(&mut reader).is_empty(),
        "nothing is seen before it is published"
    );
    writer.publish(&Health::default());
    assert_eq!(read_all(&mut reader), expected);
    assert_eq!(read_all(&mut reader), Vec::<String>::new());

    let device = DeviceInfo {
        id: 1,
        name: "x".repeat(3 * UNIT),
        link: "PCIe 5.0 x16".to_owned(),
        alike: 0,
        capability: (9, 0),
        multiprocessors: 132,
        clock_khz: 1_980_000,
        memory: 1 << 37,
        memory_bandwidth: 1 << 42,
        copy_engines: 10,
        max_warps_per_sm: 64,
        max_blocks_per_sm: 32,
        shared_per_sm: 233_472,
        registers_per_sm: 65_536,
        warp_size: 32,
        uuid: Some([7; 16]),
    };
    let stream = StreamInfo {
        device: 1,
        context: 2,
        stream: 3,
        name: "upload".to_owned(),
        priority: -5,
        is_default: true,
    };
    let process = ProcessInfo {
        pid: 4242,
        command: "python train.py".to_owned(),
        rank: Some(3),
        local_rank: None,
        world: Some(8),
        host: "node-7".to_owned(),
        versions: "CUPTI 130001".to_owned(),
        ended_well: None,
        has_tensors: None,
    };
    writer.add(&Entry::Device(device.clone()));
    writer.add(&Entry::Stream(stream.clone()));
    writer.add(&Entry::Thread(5, b"main"));
    writer.add(&Entry::Process(process.clone()));
    writer.add(&Entry::Collective(1, collective.clone()));
    writer.notice(true, "beware");
    let health = Health {
        received: 9,
        dropped: 1,
        lost: 2,
        no_timestamp: 3,
        end_before_start: 4,
        bad_clock: 5,
        unknown: 6,
        oldest_open: Some(7),
    };
    writer.close(&health, State::Closed);
    assert_eq!(
        read_all(&mut reader),
        [
            format!("{:?}", Entry::Device(device)),
            format!("{:?}", Entry::Stream(stream)),
            format!("{:?}", Entry::Thread(5, b"main")),
            format!("{:?}", Entry::Process(process)),
            format!("{:?}", Entry::Collective(1, collective)),
            format!("{:?}", Entry::Notice(true, b"beware")),
        ]
    );
    assert_eq!(reader.status.state, State::Closed);
    assert_eq!(reader.status.health, health);
    assert_eq!(reader.writer_lives(), Some(false));
    assert_eq!((reader.lost, reader.unknown, reader.damage()), (0, 0, None));
}

#[test]
fn only_the_owner_may_read_it() {
    let root = tempfile::tempdir().expect("a directory");
    let directory = root.path().join("deep/run");
    recording::file::create_directory(&directory).expect("created");
    let writer = Writer::create(&directory, identity(), 0).expect("a recording");
    let mode = |path: &Path| path.metadata().expect("exists").permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    assert_eq!(mode(writer.path()), 0o600);
}

/// Who shares /tmp could lead a recording or an export to a place of theirs. Only root can make the link of another here.
#[test]
fn another_users_link_in_a_shared_folder_is_not_followed() {
    let root = tempfile::tempdir().expect("a directory");
    let (link, own) = (root.path().join("link"), root.path().join("own"));
    std::fs::create_dir(&own).expect("created");
    std::fs::set_permissions(&own, PermissionsExt::from_mode(0o700)).expect("set");
    std::os::unix::fs::symlink(&own, &link).expect("made");
    let home = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::symlink(&link, home.path().join("by")).expect("made");
    let is_another = std::os::unix::fs::lchown(&link, Some(12_345), None).is_ok();
    for (mode, owner, is_shared) in [
        (0o700, 0, false),
        (0o1777, 0, true),
        (0o777, 0, true),
        (0o777, 12_345, true),
        (0o2775, 0, true),
    ] {
        if is_another {
            std::os::unix::fs::chown(root.path(), Some(owner), None).expect("root may");
        }
        std::fs::set_permissions(root.path(), PermissionsExt::from_mode(mode)).expect("set");
        let refused = is_another && is_shared;
        // One's own link that leads to it is no better.
        for to in [&link, &home.path().join("by")] {
            let made = recording::file::create_directory(to);
            assert_eq!(made.is_err(), refused, "{mode:o}: {made:?}");
        }
        for at in ["", "x.csv", "below/"] {
            let inside = recording::file::refuse_foreign_links(&link.join(at));
            assert_eq!(inside.is_err(), refused, "{mode:o} {at}: {inside:?}");
        }
        let below = recording::file::create_directory(&link.join("below"));
        assert_eq!(below.is_err(), refused, "{mode:o}: {below:?}");
    }
}

#[test]
fn a_writer_that_is_gone_is_noticed() {
    let directory = tempfile::tempdir().expect("a directory");
    let writer = Writer::create(directory.path(), identity(), 0).expect("a recording");
    let reader = Reader::open(writer.path()).expect("a recording");
    assert_eq!(reader.writer_lives(), Some(true));
    drop(writer);
    assert_eq!(reader.writer_lives(), Some(false));
    assert_eq!(reader.status.state, State::Running);
}

#[test]
fn over_the_size_limit_everything_is_counted_and_nothing_written() {
    let directory = tempfile::tempdir().expect("a directory");
    let limit = (HEADER + 100 * UNIT) as u64;
    let mut writer = Writer::create(directory.path(), identity(), limit).expect("a recording");
    for batch in 0..3 {
        for at in 0..60 {
            writer.record(&memset(1 + batch * 60 + at));
        }
        writer.publish(&Health::default());
    }
    writer.record(&memset(1_000));
    let path = writer.path().to_path_buf();
    writer.close(&Health::default(), State::Closed);
    assert!(path.metadata().expect("exists").len() <= limit);
    let mut reader = Reader::open(&path).expect("a recording");
    // 60 fit, 120 would not: 121 of 181 are lost.
    assert_eq!(read_all(&mut reader).len(), 60);
    assert_eq!(reader.status.health.lost, 121);
    assert_eq!(reader.status.error, WriteError::SizeLimit);
    assert_eq!(reader.status.state, State::Closed);
}

#[test]
fn a_deleted_recording_is_not_written_on_and_its_follower_learns_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut writer = Writer::create(directory.path(), identity(), 0).expect("a recording");
    let mut reader = Reader::open(writer.path()).expect("a recording");
    writer.record(&memset(1));
    writer.publish(&Health::default());
    assert_eq!(read_all(&mut reader).len(), 1);
    std::fs::remove_dir_all(directory.path()).expect("removed");
    writer.record(&memset(2));
    writer.record(&memset(3));
    writer.publish(&Health::default());
    assert!(read_all(&mut reader).is_empty());
    assert_eq!(reader.status.error, WriteError::Deleted);
    assert_eq!(reader.status.health.lost, 2);
}

#[test]
fn a_torn_status_slot_leaves_the_older_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut writer = Writer::create(directory.path(), identity(), 0).expect("a recording");
    writer.record(&memset(1));
    writer.publish(&Health::default());
    let newest = Reader::open(writer.path())
        .expect("a recording")
        .status
        .sequence;
    let path = writer.path().to_path_buf();
    drop(writer);
    // Slots are written in turn, the one with an odd number at 1024.
    let slot = if newest % 2 == 1 { 1024 } else { 512 };
    let file = std::fs::File::options()
        .write(true)
        .open(&path)
        .expect("writable");
    file.write_all_at(&[0xaa; 16], slot).expect("written");
    let mut reader = Reader::open(&path).expect("a recording");
    assert_eq!(reader.status.sequence, newest - 1);
    // The older slot says that there is nothing yet, but the blocks speak for themselves.
    assert_eq!(read_all(&mut reader).len(), 1);
    let damage = reader.damage().expect("it is noticed").to_string();
    assert!(damage.contains("status is damaged"), "{damage}");
}

#[test]
fn a_file_cut_short_gives_what_is_there_and_counts_the_rest() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut writer = Writer::create(directory.path(), identity(), 0).expect("a recording");
    for at in 0..10 {
        writer.record(&memset(at));
        if at == 5 {
            writer.publish(&Health::default());
        }
    }
    writer.close(
        &Health {
            received: 10,
            ..Health::default()
        },
        State::Closed,
    );
    let path = the_only_file(directory.path());
    let file = std::fs::File::options()
        .write(true)
        .open(&path)
        .expect("writable");
    // The second block loses its tail.
    file.set_len((HEADER + 7 * UNIT + 3 * UNIT + 17) as u64)
        .expect("cut");
    let mut reader = Reader::open(&path).expect("a recording");
    assert_eq!(read_all(&mut reader).len(), 6);
    assert_eq!(reader.lost, 4);
    let damage = reader.damage().expect("it is noticed").to_string();
    assert_eq!(damage, "it is cut short");
}

/// Three blocks: one name and one record, a second name, and records that use both.
fn three_blocks(directory: &Path) -> (std::path::PathBuf, u64, u64) {
    let mut writer = Writer::create(directory, identity(), 0).expect("a recording");
    let call = |name| {
        record(
            1,
            What::Call(HostCall {
                thread: 1,
                name,
                code: 0,
            }),
        )
    };
    let first = writer.name(b"first");
    writer.record(&call(first));
    let mut health = Health {
        received: 1,
        ..Health::default()
    };
    writer.publish(&health);
    let path = writer.path().to_path_buf();
    let length = || path.metadata().expect("exists").len();
    let second_at = length();
    let second = writer.name(b"second");
    writer.record(&call(second));
    writer.record(&call(first));
    health.received = 3;
    writer.publish(&health);
    let third_at = length();
    for name in [first, second, first] {
        writer.record(&call(name));
    }
    health.received = 6;
    writer.close(&health, State::Closed);
    (path, second_at, third_at)
}

#[test]
fn behind_a_damaged_block_the_next_one_is_read_and_what_is_missing_is_known_exactly() {
    // The block's first unit, and one of its entries.
    for flipped in [5, UNIT as u64 + 20] {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, second_at, third_at) = three_blocks(directory.path());
        let mut bytes = std::fs::read(&path).expect("readable");
        bytes[(second_at + flipped) as usize] ^= 1;
        std::fs::write(&path, bytes).expect("written");
        let mut reader = Reader::open(&path).expect("a recording");
        // The first block has a name and a record, and of the third one's records two use a name that is known.
        assert_eq!(read_all(&mut reader).len(), 2 + 2);
        // Two records of the second block, and the one of the third that uses its name.
        assert_eq!(reader.lost, 3);
        let damage = reader.damage().expect("it is noticed").to_string();
        let skipped = third_at - second_at;
        assert_eq!(
            damage,
            format!("it is damaged at byte {second_at}: {skipped} bytes were skipped")
        );
    }
}

#[test]
fn a_recording_of_another_format_or_with_another_header_is_refused_in_words() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, ..) = three_blocks(directory.path());
    let bytes = std::fs::read(&path).expect("readable");
    let refusal = |at: usize, value: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = value;
        std::fs::write(&path, bytes).expect("written");
        Reader::open(&path).expect_err("refused").to_string()
    };
    assert!(refusal(8, 1).contains("format 1; this version of cuptop reads format 2"));
    assert!(refusal(16, 0xff).contains("is damaged"));
    assert!(refusal(0, b'C').contains("not a recording"));
}

#[test]
fn unknown_tags_are_skipped_and_records_among_them_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut writer = Writer::create(directory.path(), identity(), 0).expect("a recording");
    for at in 0..3 {
        writer.record(&memset(at));
    }
    writer.close(&Health::default(), State::Closed);
    let path = the_only_file(directory.path());
    let mut bytes = std::fs::read(&path).expect("readable");
    bytes[HEADER + UNIT] = 63;
    bytes[HEADER + 2 * UNIT] = 200;
    common::reseal(&mut bytes);
    std::fs::write(&path, bytes).expect("written");
    let mut reader = Reader::open(&path).expect("a recording");
    assert_eq!(read_all(&mut reader).len(), 1);
    assert_eq!((reader.unknown, reader.lost), (1, 0));
}

#[test]
fn references_to_what_was_never_defined_are_not_handed_on() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut writer = Writer::create(directory.path(), identity(), 0).expect("a recording");
    for what in all_kinds(9, 9) {
        writer.record(&record(5, what));
    }
    writer.close(&Health::default(), State::Closed);
    let mut reader = Reader::open(&the_only_file(directory.path())).expect("a recording");
    // Of the ten, the kernel, the call, the overhead and the range refer to a name or a shape.
    assert_eq!(read_all(&mut reader).len(), 6);
    assert_eq!(reader.lost, 4);
}

/// The bytes of a process's entry as they were before world and host stood behind its texts.
#[test]
fn a_process_written_before_worlds_were_known_has_none() {
    let mut bytes = vec![0; 64];
    bytes[0] = 69;
    bytes[2] = 1;
    bytes[4..8].copy_from_slice(&7u32.to_le_bytes());
    bytes[8] = 30;
    bytes[12] = 10;
    bytes[16..24].fill(0xff);
    bytes[24..64].fill(b'x');
    // Texts that end in the middle of the entry, and texts that fill it.
    for versions in [2u8, 10] {
        bytes[12] = versions;
        bytes[54 + usize::from(versions)..].fill(0);
        let Ok(Entry::Process(process)) = Entry::decode(&bytes) else {
            panic!("a process");
        };
        assert_eq!(process.versions.len(), usize::from(versions));
        assert_eq!((process.world, process.host.as_str()), (None, ""));
        bytes[24..64].fill(b'x');
    }
}

#[test]
fn names_of_a_megabyte_are_cut_and_stay_two() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut writer = Writer::create(directory.path(), Identity::default(), 0).expect("a recording");
    let long = vec![b'k'; 1 << 20];
    let ids = [b"1", b"2"].map(|end| writer.name(&[&long[..], end].concat()));
    assert_ne!(ids[0], ids[1]);
    let path = writer.path().to_path_buf();
    writer.close(&Health::default(), State::Closed);
    assert!(path.metadata().expect("there").len() < 64 * 1024);
    let mut texts = Vec::new();
    let mut reader = Reader::open(&path).expect("a recording");
    while reader
        .read(&mut |entry| {
            if let Entry::Name(_, text) = entry {
                texts.push(text.to_vec());
            }
        })
        .expect("readable")
    {}
    assert_eq!((texts.len(), reader.lost), (2, 0));
    assert_ne!(texts[0], texts[1]);
}
