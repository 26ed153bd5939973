//! What is saved comes back; what ended badly is marked.

use std::path::Path;

use crate::file::{Clocks, Entry, Identity, StackLog, State, Writer};

use super::{Follower, Saver, is_simulated, open};
use activity::feed::{Message, Outcome};
use activity::{
    Activity, Batch, Collective, Copy, Def, DeviceInfo, Direction, EventRecord, Graph, Hardware,
    Health, HostCall, Kernel, LaunchShape, MemoryAction, MemoryKind, MemoryOp, Memset, Metric,
    Overhead, Place, ProcessInfo, Range, RangeKind, Reading, Sampling, Span, StreamInfo, Sync,
    SyncKind, What,
};

const PLACE: Place = Place {
    device: 1,
    context: 2,
    stream: 3,
};

fn activity(start: i64, what: What) -> Activity {
    Activity {
        span: Span::new(start, start + 5),
        correlation: 9,
        what,
    }
}

/// One of everything, with ids that a recording would not give.
fn everything() -> Batch {
    let whats = [
        What::Kernel(Kernel {
            place: PLACE,
            shape: 70,
            graph: 4,
            node: 1 << 33,
        }),
        What::Copy(Copy {
            place: PLACE,
            direction: Direction::P2P,
            from: MemoryKind::Pageable,
            to: MemoryKind::Managed,
            is_async: true,
            bytes: 1 << 35,
            peer: 6,
            graph: 7,
            node: 0,
        }),
        What::Memset(Memset {
            place: PLACE,
            bytes: 12,
            graph: 8,
            node: 0,
        }),
        What::Graph(Graph {
            place: PLACE,
            graph: 17,
        }),
        What::Call(HostCall {
            thread: 77,
            name: 50,
            code: -1,
        }),
        What::Sync(Sync {
            kind: SyncKind::StreamWaitEvent,
            context: 2,
            stream: Some(3),
            event: None,
        }),
        What::Overhead(Overhead {
            name: 60,
            thread: 0,
        }),
        What::Memory(MemoryOp {
            action: MemoryAction::Free,
            kind: MemoryKind::Pinned,
            place: PLACE,
            bytes: 13,
            address: 14,
            is_async: true,
        }),
        What::Event(EventRecord {
            place: PLACE,
            event: 15,
        }),
        What::Range(Range {
            kind: RangeKind::Repeat,
            name: 60,
            thread: 77,
            index: 16,
        }),
    ];
    Batch {
        process: 0,
        defs: vec![
            Def::Process(ProcessInfo {
                pid: 31,
                command: "a b".to_owned(),
                rank: Some(2),
                local_rank: Some(1),
                world: Some(4),
                host: "node".to_owned(),
                versions: "v".to_owned(),
                ended_well: None,
                has_tensors: None,
            }),
            Def::Name {
                id: 50,
                text: "cuLaunchKernel".to_owned(),
            },
            Def::Name {
                id: 60,
                text: "matmul".to_owned(),
            },
            Def::Shape {
                id: 70,
                shape: LaunchShape {
                    name: 60,
                    grid: [1, 2, 3],
                    block: [4, 5, 6],
                    registers: 7,
                    static_shared: 8,
                    dynamic_shared: 9,
                    local: 10,
                    cluster: [11, 12, 13],
                    collective: 0,
                },
            },
            Def::Collective {
                shape: 70,
                collective: Collective {
                    operation: "allreduce".to_owned(),
                    group: "0 [0, 1]".to_owned(),
                    size: 2,
                    elements: [3, 4],
                    element: "Float".to_owned(),
                    peer: None,
                },
            },
            Def::Device(DeviceInfo {
                id: 1,
                uuid: Some([3; 16]),
                name: "GPU".to_owned(),
                capability: (9, 0),
                multiprocessors: 132,
                memory: 5,
                memory_bandwidth: 6,
                clock_khz: 7,
                copy_engines: 8,
                max_warps_per_sm: 9,
                max_blocks_per_sm: 10,
                shared_per_sm: 11,
                registers_per_sm: 12,
                warp_size: 32,
                link: "PCIe 5.0 x16".to_owned(),
                alike: 0,
            }),
            Def::Stream(StreamInfo {
                device: 1,
                context: 2,
                stream: 3,
                name: "upload".to_owned(),
                priority: -1,
                is_default: true,
            }),
            Def::Thread {
                thread: 77,
                name: "main".to_owned(),
            },
        ],
        items: whats
            .into_iter()
            .zip(1..)
            .map(|(what, at)| activity(at * 100, what))
            .collect(),
        health: Some(Health {
            received: 20,
            dropped: 1,
            lost: 2,
            no_timestamp: 3,
            end_before_start: 4,
            bad_clock: 5,
            unknown: 6,
            oldest_open: Some(7),
        }),
        ..Batch::default()
    }
}

/// A batch with names and shapes spelled out instead of numbered, so that two numberings can be compared.
fn spelled(batches: &[Batch]) -> (Vec<String>, Vec<String>) {
    let defs: Vec<&Def> = batches.iter().flat_map(|batch| &batch.defs).collect();
    let name = |wanted: u32| -> String {
        defs.iter()
            .find_map(|def| match def {
                Def::Name { id, text } if *id == wanted => Some(text.clone()),
                _ => None,
            })
            .expect("defined")
    };
    let shape = |wanted: u32| -> String {
        defs.iter()
            .find_map(|def| match def {
                Def::Shape { id, shape } if *id == wanted => {
                    let named = name(shape.name);
                    Some(format!("{named} {:?}", LaunchShape { name: 0, ..*shape }))
                }
                _ => None,
            })
            .expect("defined")
    };
    let items = batches
        .iter()
        .flat_map(|batch| &batch.items)
        .map(|item| {
            let mut item = *item;
            let mut words = String::new();
            match &mut item.what {
                What::Kernel(kernel) => words = shape(std::mem::take(&mut kernel.shape)),
                What::Call(call) => words = name(std::mem::take(&mut call.name)),
                What::Overhead(overhead) => words = name(std::mem::take(&mut overhead.name)),
                What::Range(range) => words = name(std::mem::take(&mut range.name)),
                _ => {}
            }
            format!("{item:?} {words}")
        })
        .collect();
    let others = defs
        .iter()
        .filter(|def| !matches!(def, Def::Name { .. } | Def::Shape { .. }))
        .map(|def| match def {
            Def::Collective {
                shape: id,
                collective,
            } => format!("{collective:?} {}", shape(*id)),
            def => format!("{def:?}"),
        })
        .collect();
    (items, others)
}

#[test]
fn what_is_saved_comes_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run");
    let batch = everything();
    let mut saver = Saver::create(&path).expect("a recording");
    saver.save(&batch).expect("saved");
    saver.finish();
    assert!(
        Saver::create(&path).is_err(),
        "two recordings in one directory"
    );

    let mut follower = Follower::open(&path).expect("a directory");
    let batches = follower.poll();
    let (items, mut others) = spelled(&batches);
    let (expected_items, mut expected_others) = spelled(std::slice::from_ref(&batch));
    assert_eq!(items, expected_items);
    // The process is told again when it turns out to have ended well.
    expected_others.push(expected_others[0].replace("ended_well: None", "ended_well: Some(true)"));
    others.sort();
    expected_others.sort();
    assert_eq!(others, expected_others);
    let health = batches.iter().rev().find_map(|batch| batch.health);
    // What was open when the recording was closed is not open any more.
    let closed = batch.health.map(|health| Health {
        oldest_open: None,
        ..health
    });
    assert_eq!(health, closed);
    assert!(follower.is_simulated());
    assert!(is_simulated(&[path]));
}

fn memset(start: i64) -> Activity {
    Activity {
        span: Span::new(start, start + 1),
        correlation: 0,
        what: What::Memset(Memset {
            place: Place::default(),
            bytes: 1,
            graph: 0,
            node: 0,
        }),
    }
}

fn writer(directory: &Path, pid: u32) -> Writer {
    let identity = Identity {
        pid,
        start: Clocks::now(),
        ..Identity::default()
    };
    Writer::create(directory, identity, 0).expect("a recording")
}

fn items(batches: &[Batch], process: u32) -> usize {
    batches
        .iter()
        .filter(|batch| batch.process == process)
        .map(|batch| batch.items.len())
        .sum()
}

#[test]
fn processes_are_followed_as_they_come_and_those_that_died_are_marked() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut follower = Follower::open(directory.path()).expect("a directory");
    assert!(follower.poll().is_empty());

    let mut first = writer(directory.path(), 1);
    first.record(&memset(1));
    first.publish(&Health::default());
    assert_eq!(items(&follower.poll(), 0), 1);

    let mut second = writer(directory.path(), 2);
    for at in 0..40_000 {
        second.record(&memset(at));
    }
    second.publish(&Health::default());
    first.record(&memset(2));
    first.publish(&Health::default());
    let batches = follower.poll();
    assert_eq!((items(&batches, 0), items(&batches, 1)), (1, 40_000));
    assert!(follower.any_alive());

    first.close(&Health::default(), State::Closed);
    second.record(&memset(3));
    drop(second); // killed: what was not published is gone
    assert_eq!(items(&follower.poll(), 1), 0);
    assert!(!follower.any_alive());
    let states: Vec<_> = follower
        .states()
        .into_iter()
        .map(|it| (it.pid, it.ended_well))
        .collect();
    assert_eq!(states, [(1, Some(true)), (2, Some(false))]);
    assert!(follower.finish().is_empty(), "said once");
}

#[test]
fn a_recording_is_opened_while_it_is_written_and_ends_with_its_process() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut process = writer(directory.path(), 1);
    process.record(&memset(1));
    process.publish(&Health::default());
    let feed = open(&[directory.path().to_path_buf()]).expect("a feed");
    let mut seen = 0;
    let mut process = Some(process);
    loop {
        match feed.receiver().recv().expect("not over yet") {
            Message::Batch(batch) => {
                seen += batch.items.len();
                if let Some(mut process) = (seen == 1).then(|| process.take()).flatten() {
                    process.record(&memset(2));
                    process.close(&Health::default(), State::Closed);
                }
            }
            Message::Finished(outcome) => {
                assert_eq!(outcome, Outcome::Complete);
                break;
            }
            other => panic!("unexpected: {other:?}"),
        }
    }
    assert_eq!(seen, 2);
}

#[test]
fn an_empty_directory_is_an_input_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let feed = open(&[directory.path().to_path_buf()]).expect("a feed");
    let last = feed.receiver().iter().last().expect("a last word");
    assert!(matches!(last, Message::Finished(Outcome::Failed(_))));
    assert!(open(&["/nonexistent/x".into()]).is_err());
}

#[test]
fn other_files_are_left_alone_and_damage_is_said_and_counted() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut process = writer(directory.path(), 1);
    let path = process.path().to_path_buf();
    for received in 1..=3 {
        process.record(&memset(received));
        process.publish(&Health {
            received: received.cast_unsigned(),
            ..Health::default()
        });
    }
    process.close(
        &Health {
            received: 3,
            ..Health::default()
        },
        State::Closed,
    );
    std::fs::write(path.with_extension("others"), b"cuptop+\n").expect("written");
    std::fs::write(path.with_extension("stacks"), b"cuptop+\n").expect("written");
    let mut bytes = std::fs::read(&path).expect("readable");
    // A page of header, then blocks of two units: a byte of the second one's record.
    let second = 4096 + 128;
    bytes[second + 64 + 50] ^= 0x40;
    std::fs::write(&path, bytes).expect("written");

    let feed = open(&[directory.path().to_path_buf()]).expect("a feed");
    let (mut seen, mut health, mut notices) = (0, Health::default(), Vec::new());
    for message in feed.receiver() {
        match message {
            Message::Batch(batch) => {
                seen += batch.items.len();
                health = batch.health.unwrap_or(health);
            }
            Message::Notice { text, .. } => notices.push(text),
            Message::Finished(outcome) => {
                assert_eq!(outcome, Outcome::Complete);
                break;
            }
            _ => {}
        }
    }
    assert_eq!((seen, health.lost), (2, 1));
    let said = format!("it is damaged at byte {second}: 128 bytes were skipped");
    assert!(
        matches!(&notices[..], [damage, former] if damage.ends_with(&said) && former == "no Python lines: an older cuptop recorded this"),
        "{notices:?}"
    );
}

/// What is seen of a process from `start` on: a look at each of these times, published one by one.
fn stacks(directory: &Path, pid: u32, start: i64, times: &[i64]) -> Writer {
    let start = Clocks {
        realtime: start,
        ..Clocks::default()
    };
    let mut file = Writer::outside(directory, pid, start).expect("a file");
    let mut log = StackLog::default();
    for &time in times {
        log.add_look(&mut file, time, &[]);
        file.add(&Entry::Sampling(Sampling {
            hz: 100,
            ..Sampling::default()
        }));
        file.flush().expect("written");
    }
    file
}

/// The processes and times of all looks, and what was said.
fn looks(follower: &mut Follower, is_over: bool) -> (Vec<(u32, i64)>, Vec<String>) {
    let (mut looks, mut notices) = (Vec::new(), Vec::new());
    let mut take = |message| {
        match message {
            Message::Batch(batch) => {
                let found = batch.samples.iter().flat_map(|it| &it.looks);
                looks.extend(found.map(|look| (batch.process, look.time)));
            }
            Message::Notice { text, .. } => notices.push(text),
            _ => {}
        }
        Ok(())
    };
    let read = match is_over {
        true => follower.finish_into(&mut take),
        false => follower.poll_into(&mut take),
    };
    read.expect("somebody listens");
    (looks, notices)
}

#[test]
fn samples_go_with_the_process_that_they_are_of() {
    let directory = tempfile::tempdir().expect("a directory");
    let now = Clocks::now().realtime;
    // Sampled before CUDA began: the recording comes later, live as well as when it is opened.
    let early = stacks(directory.path(), 10, now, &[now + 1]);
    let worker = stacks(directory.path(), 20, now + 5, &[now + 2]);
    let mut live = Follower::open(directory.path()).expect("a directory");
    assert_eq!(looks(&mut live, false).0, [(0, now + 1), (1, now + 2)]);
    let first = writer(directory.path(), 10);
    first.close(&Health::default(), State::Closed);
    // The process became another program.
    std::thread::sleep(std::time::Duration::from_millis(2));
    let second_start = Clocks::now().realtime;
    let late = stacks(directory.path(), 10, second_start, &[second_start + 3]);
    std::thread::sleep(std::time::Duration::from_millis(2));
    let second = writer(directory.path(), 10);
    // Begun while the second was being written.
    let third_start = Clocks::now().realtime;
    let third = stacks(directory.path(), 10, third_start, &[third_start + 4]);
    let path = second.path().to_path_buf();

    assert_eq!(looks(&mut live, false).0.len(), 2);
    let pids: Vec<u32> = live.states().iter().map(|it| it.pid).collect();
    assert_eq!(pids, [10, 10], "a worker without CUDA is no recording");
    assert!(live.any_outside_alive());
    second.close(&Health::default(), State::Closed);
    for file in [early, worker, late, third] {
        file.finish();
    }
    assert!(!live.any_outside_alive());

    let mut opened = Follower::open(directory.path()).expect("a directory");
    let (mut found, notices) = looks(&mut opened, true);
    found.sort_unstable();
    let expected = [
        (0, now + 1),
        (1, second_start + 3),
        (1, third_start + 4),
        (2, now + 2),
    ];
    assert_eq!(found, expected);
    assert!(notices.is_empty(), "{notices:?}");

    // One recording by itself: no workers, nothing of other processes.
    let mut alone = Follower::open_all(&[path]).expect("a file");
    let mut times: Vec<i64> = looks(&mut alone, true)
        .0
        .into_iter()
        .map(|(_, time)| time)
        .collect();
    times.sort_unstable();
    assert_eq!(times, [now + 1, second_start + 3, third_start + 4]);
}

#[test]
fn what_was_seen_and_lost_is_counted_and_a_file_that_nobody_closed_is_said() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("1-1.outside.cuptop"), b"cuptop").expect("written");
    let file = stacks(directory.path(), 3, 1, &[5, 6, 7]);
    let path = file.path().to_path_buf();
    drop(file);
    let mut bytes = std::fs::read(&path).expect("readable");
    // Blocks of a look and a total each, three units: the second one's look.
    let second = 4096 + 192;
    bytes[second + 64 + 8] ^= 1;
    std::fs::write(&path, bytes).expect("written");
    let mut follower = Follower::open(directory.path()).expect("a directory");
    let (mut samples, mut notices) = (Vec::new(), Vec::new());
    follower
        .finish_into(&mut |message| {
            match message {
                Message::Batch(batch) => {
                    assert_eq!(batch.health, None, "counters are the process's own");
                    samples.extend(batch.samples);
                }
                Message::Notice { text, .. } => notices.push(text),
                _ => {}
            }
            Ok(())
        })
        .expect("somebody listens");
    let looks = samples.iter().flat_map(|it| &it.looks);
    let times: Vec<i64> = looks.map(|it| it.time).collect();
    let sampling = samples.last().expect("samples").sampling;
    assert_eq!((times, sampling.looks, sampling.lost), (vec![5, 7], 2, 1));
    notices.sort();
    let said: Vec<&str> = notices
        .iter()
        .map(|it| it.split(".outside.cuptop: ").nth(1).unwrap_or(it))
        .collect();
    let damage = format!("it is damaged at byte {second}: 192 bytes were skipped");
    let expected = [
        "not a recording of cuptop",
        &damage,
        "lost 1 record",
        "nobody closed it: what was seen after its last flush is missing",
    ];
    assert_eq!(said, expected);
}

/// What a simulator's counters have seen goes into its recording.
#[test]
fn saved_readings_are_the_same() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run");
    let hardware = vec![
        Hardware::Sample(Reading {
            uuid: [7; 16],
            span: Span::new(5, 55),
            values: vec![(Metric::DramRead, 2_199_023_255_552.0)],
            reasons: 0,
        }),
        Hardware::Note("a model".to_owned()),
    ];
    let mut saver = Saver::create(&path).expect("a recording");
    saver.save(&everything()).expect("saved");
    saver
        .save(&Batch {
            hardware: hardware.clone(),
            ..Batch::default()
        })
        .expect("saved");
    saver.finish();
    assert_eq!(path.read_dir().expect("there").count(), 1);
    let batches = Follower::open(&path).expect("a directory").finish();
    let found: Vec<Hardware> = batches.iter().flat_map(|it| it.hardware.clone()).collect();
    assert_eq!(found, hardware);
}
