//! Situations as a table: what threads were seen doing, and what may be said of it.

use super::*;
use activity::Frame;

const LOOKED: Duration = Duration::from_millis(1400);
const TORCH: &str = "/venv/lib/python3.12/site-packages/torch";

fn s(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds))
}

fn frame(file: &str, function: &str) -> Frame {
    Frame {
        file: file.to_owned(),
        function: function.to_owned(),
        line: 9,
    }
}

/// A thread at these frames, innermost first ("torch/x.py f" is an installed file's, "f" the program's own).
fn thread(frames: &[&str], doing: Doing) -> ThreadSeen {
    let python = frames.iter().map(|it| match it.split_once(' ') {
        Some((file, function)) => frame(
            &file
                .replacen("torch", TORCH, 1)
                .replacen("std", "/usr/lib/python3.12", 1),
            function,
        ),
        None => frame("train.py", it),
    });
    ThreadSeen {
        is_main: true,
        python: python.collect(),
        doing,
        ..ThreadSeen::default()
    }
}

fn rank(thread: ThreadSeen) -> Process {
    Process {
        threads: vec![thread],
        gpu: Some(0),
        ..Process::default()
    }
}

fn job(ranks: Vec<Process>) -> Job {
    Job {
        ranks,
        looked: LOOKED,
        ..Job::default()
    }
}

fn said(ranks: Vec<Process>) -> (State, Vec<usize>) {
    let verdict = job(ranks).verdict();
    (verdict.state, verdict.behind)
}

/// Waits in an all-reduce, as it was seen on four H200s: it spins in the call by which the CPU waits.
fn waits() -> Process {
    let spins = ThreadSeen {
        native: Some("cudaStreamSynchronize".to_owned()),
        ..thread(&["main"], Doing::Stays(None))
    };
    Process {
        gpu: Some(100),
        ..rank(spins)
    }
}

fn in_call(number: i64, it: ThreadSeen) -> ThreadSeen {
    ThreadSeen {
        call: Some((number, 0)),
        ..it
    }
}

fn asleep(number: i64, frames: &[&str], seconds: u64) -> Process {
    rank(in_call(number, thread(frames, Doing::Asleep(s(seconds)))))
}

fn works(it: Process) -> Process {
    Process { works: true, ..it }
}

fn listens(it: Process) -> Process {
    Process {
        listens: true,
        ..it
    }
}

fn busy(gpu: u32, it: Process) -> Process {
    Process {
        gpu: Some(gpu),
        ..it
    }
}

const LOCK: i64 = libc::SYS_futex;
const SLEEP: i64 = libc::SYS_clock_nanosleep;
const EPOLL: i64 = libc::SYS_epoll_pwait;

/// A kernel of each step takes seconds: one rank was seen to go on to the next one, the other not yet.
#[test]
fn nobody_waits_for_a_rank_that_waits_itself_and_went_on() {
    let went_on = || {
        let sync = thread(
            &["torch/cuda/__init__.py synchronize", "main"],
            Doing::Moves,
        );
        busy(100, rank(sync))
    };
    assert_eq!(said(vec![went_on(), waits()]), (State::Moves, vec![]));
    // Who is elsewhere is still the one.
    let late = asleep(SLEEP, &["load_batch"], 12);
    assert_eq!(said(vec![went_on(), waits(), late]).1, [2]);
}

#[test]
fn who_is_behind_is_named() {
    let moves = || rank(thread(&["main"], Doing::Moves));
    let held = |life| Process {
        life,
        ..Process::default()
    };
    let cases: Vec<(&str, Process)> = vec![
        ("asleep in its own code", asleep(SLEEP, &["load_batch"], 12)),
        (
            "a deadlock of a loader",
            asleep(
                LOCK,
                &[
                    "std/threading.py wait",
                    "torch/utils/data/dataloader.py __next__",
                    "main",
                ],
                60,
            ),
        ),
        (
            "in a debugger's prompt",
            asleep(
                libc::SYS_read,
                &["std/cmd.py cmdloop", "std/pdb.py interaction", "main"],
                40,
            ),
        ),
        (
            "reads from a file system that is gone",
            rank(thread(&["load"], Doing::InDevice(s(30)))),
        ),
        (
            "a deadlock of a loader, whose main thread looks for its workers each 5 s",
            rank(in_call(
                libc::SYS_ppoll,
                thread(
                    &[
                        "std/selectors.py select",
                        "torch/utils/data/dataloader.py __next__",
                        "main",
                    ],
                    Doing::Stays(s(9)),
                ),
            )),
        ),
        ("stopped", held(Life::Stopped)),
        ("gone", held(Life::Gone)),
        (
            "asleep in a message",
            asleep(libc::SYS_recvfrom, &["download"], 8),
        ),
    ];
    for (what, late) in cases {
        let ranks = vec![waits(), waits(), late.clone(), waits()];
        assert_eq!(said(ranks), (State::Still, vec![2]), "{what}");
        // Its twin: before the time is over, or while another one goes on.
        if late.life == Life::Lives {
            let mut young = late.clone();
            young.threads[0].doing = Doing::Asleep(s(2));
            assert_eq!(
                said(vec![waits(), young]),
                (State::WaitsForRanks, vec![1]),
                "{what}"
            );
            assert_eq!(
                said(vec![waits(), works(late)]).0,
                State::WaitsForRanks,
                "{what}"
            );
        } else {
            assert_ne!(said(vec![moves(), late]).0, State::Still, "{what}");
        }
    }
    // The interpreter held by C code that computes: it is waited for, and not said to be hung.
    let holds = works(rank(thread(&["compute"], Doing::Stays(None))));
    assert_eq!(said(vec![waits(), holds]), (State::WaitsForRanks, vec![1]));
}

#[test]
fn a_symmetric_hang_has_nobody_behind() {
    let sleeps = |seconds| {
        let mut it = waits();
        it.threads[0].doing = Doing::Asleep(s(seconds));
        it
    };
    // A GPU that is busy may be in a long step.
    assert_eq!(
        said(vec![sleeps(12), sleeps(12)]),
        (State::SamePlace, vec![])
    );
    assert_eq!(said(vec![sleeps(31), sleeps(40)]), (State::Still, vec![]));
    assert_eq!(job(vec![sleeps(31), sleeps(40)]).verdict().since, s(31));
    assert_eq!(
        said(vec![busy(0, sleeps(12)), busy(0, sleeps(6))]),
        (State::Still, vec![])
    );
    assert_eq!(said(vec![waits(), waits()]), (State::SamePlace, vec![]));
    let long = Job {
        looked: LONG,
        ..job(vec![waits(), waits()])
    };
    assert_eq!(long.verdict().state, State::Still);
    // One program whose threads wait for each other.
    assert_eq!(
        said(vec![asleep(LOCK, &["std/threading.py wait", "main"], 20)]),
        (State::Still, vec![])
    );
}

/// Situations that are no hang, none of which may be said to stand still.
#[test]
fn what_is_no_hang_is_never_called_one() {
    let moves = || rank(thread(&["main"], Doing::Moves));
    let stays = |frames: &[&str]| rank(thread(frames, Doing::Stays(None)));
    let wait_thread = [
        "std/threading.py wait",
        "std/concurrent/futures/_base.py result",
        "main",
    ];
    let select = [
        "std/selectors.py select",
        "std/asyncio/base_events.py _run_once",
        "serve",
    ];
    let beside = |mut process: Process, other: ThreadSeen| {
        process.threads.push(ThreadSeen {
            is_main: false,
            ..other
        });
        process
    };
    let own_thread = |doing| thread(&["worker"], doing);
    let situations: Vec<(&str, Vec<Process>)> = vec![
        ("a step", vec![moves()]),
        ("steps of ranks", vec![moves(), moves()]),
        (
            "one rank moves while another waits for a moment",
            vec![moves(), waits()],
        ),
        ("a long step ends in a sync", vec![waits()]),
        (
            "a long step of all ranks",
            vec![waits(), waits(), waits(), waits()],
        ),
        (
            "a blocking sync of 8 s while the GPU works",
            vec![busy(
                99,
                rank(ThreadSeen {
                    native: Some("cudaStreamSynchronize".into()),
                    ..thread(&["main"], Doing::Asleep(s(8)))
                }),
            )],
        ),
        (
            "a checkpoint is written",
            vec![works(rank(thread(
                &["torch/serialization.py save", "main"],
                Doing::InDevice(s(3)),
            )))],
        ),
        (
            "rank 0 writes a checkpoint for 30 s",
            vec![
                works(rank(thread(&["save"], Doing::InDevice(s(30))))),
                waits(),
                waits(),
            ],
        ),
        (
            "rank 0 writes one, and wakes between pieces",
            vec![
                works(stays(&["torch/serialization.py save", "main"])),
                waits(),
            ],
        ),
        (
            "workers compile for 60 s",
            vec![works(asleep(LOCK, &wait_thread, 60))],
        ),
        (
            "all ranks compile",
            vec![
                works(asleep(LOCK, &wait_thread, 60)),
                works(asleep(LOCK, &wait_thread, 40)),
            ],
        ),
        (
            "one rank compiles while others wait",
            vec![waits(), works(asleep(LOCK, &wait_thread, 60))],
        ),
        (
            "compiles in its own process",
            vec![works(stays(&["torch/_inductor/codecache.py load", "main"]))],
        ),
        (
            "an idle server",
            vec![listens(asleep(EPOLL, &select, 3_600))],
        ),
        (
            "an idle server whose GPU worker waits for its lock",
            vec![listens(beside(
                asleep(EPOLL, &select, 600),
                in_call(
                    LOCK,
                    thread(&["std/queue.py get", "loop"], Doing::Asleep(s(600))),
                ),
            ))],
        ),
        (
            "an idle server of threads",
            vec![listens(beside(
                asleep(LOCK, &["std/threading.py join", "main"], 600),
                in_call(
                    libc::SYS_accept4,
                    thread(
                        &["std/socketserver.py serve_forever"],
                        Doing::Asleep(s(600)),
                    ),
                ),
            ))],
        ),
        (
            "an idle server of two ranks, the second in a broadcast on CPUs",
            vec![
                listens(asleep(EPOLL, &select, 60)),
                busy(
                    0,
                    rank(in_call(
                        EPOLL,
                        thread(
                            &["torch/distributed/distributed_c10d.py broadcast", "run"],
                            Doing::Asleep(s(60)),
                        ),
                    )),
                ),
            ],
        ),
        (
            "a notebook between cells",
            vec![listens(asleep(EPOLL, &select, 7_200))],
        ),
        (
            "a prompt of Python",
            vec![asleep(libc::SYS_read, &["std/code.py interact"], 600)],
        ),
        (
            "waits for a key",
            vec![asleep(libc::SYS_read, &["main"], 600)],
        ),
        ("sleeps between rounds", vec![asleep(SLEEP, &["main"], 60)]),
        ("polls each second", vec![stays(&["main"])]),
        (
            "downloads slowly",
            vec![asleep(
                libc::SYS_recvfrom,
                &["std/ssl.py read", "download"],
                7,
            )],
        ),
        (
            "uploads",
            vec![works(stays(&["std/ssl.py send", "upload"]))],
        ),
        (
            "waits for a child that works",
            vec![works(asleep(
                libc::SYS_wait4,
                &["std/subprocess.py wait", "main"],
                100,
            ))],
        ),
        (
            "waits for its loader's workers, which work",
            vec![works(asleep(
                LOCK,
                &[
                    "std/queue.py get",
                    "torch/utils/data/dataloader.py __next__",
                    "main",
                ],
                9,
            ))],
        ),
        (
            "trains in a thread",
            vec![beside(
                asleep(LOCK, &["std/threading.py join", "main"], 900),
                own_thread(Doing::Moves),
            )],
        ),
        (
            "a thread waits for the GPU in a long step",
            vec![beside(
                asleep(LOCK, &["std/threading.py join", "main"], 900),
                ThreadSeen {
                    native: Some("cuStreamSynchronize".into()),
                    ..own_thread(Doing::Stays(None))
                },
            )],
        ),
        ("stays in C code", vec![works(stays(&["simulate"]))]),
        (
            "a rank is late by 2 s",
            vec![waits(), asleep(SLEEP, &["load"], 2)],
        ),
        (
            "one stands in a lock for 3 s",
            vec![asleep(LOCK, &["std/threading.py wait", "main"], 3)],
        ),
        (
            "the driver compiles",
            vec![rank(ThreadSeen {
                native: Some("cuModuleLoadDataEx".into()),
                ..thread(&["main"], Doing::Asleep(s(50)))
            })],
        ),
        (
            "nothing can be read",
            vec![Process {
                lacks: Some("no".into()),
                ..Process::default()
            }],
        ),
        ("no process", vec![]),
    ];
    assert!(situations.len() >= 30);
    for (what, ranks) in situations {
        assert_ne!(said(ranks).0, State::Still, "{what}");
    }
}

#[test]
fn an_idle_server_waits_for_requests_and_its_twin_does_not() {
    let select = ["std/selectors.py select", "serve"];
    let idle = listens(asleep(EPOLL, &select, 60));
    assert_eq!(said(vec![idle.clone()]).0, State::WaitsForRequests);
    assert_ne!(
        said(vec![busy(80, idle.clone())]).0,
        State::WaitsForRequests
    );
    // A rank that serves and is waited for in NCCL, whose kernel keeps the GPU busy.
    assert_eq!(said(vec![idle, waits()]), (State::Still, vec![0]));
}
