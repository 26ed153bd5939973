//! Sends and receives of two ranks, as Kineto writes them.

use activity::{Collective, Def, DeviceInfo, LaunchShape, Ns, ProcessInfo};
use trace::Trace;
use trace::testing::{Scene, h200};

use crate::MatchedCollectives;
use crate::split::Sums;

const STEPS: i64 = 20;
const US: Ns = 1_000;

/// What each rank's part of a step is: operation, and begin and end in us.
const PARTS: [[(&str, Ns, Ns); 3]; 2] = [
    [
        ("allreduce", 0, 200),
        ("send", 4_000, 4_200),
        ("recv", 7_000, 7_100),
    ],
    // It waits 3 ms for what it receives; what it sends lies ready before it is asked for.
    [
        ("allreduce", 0, 200),
        ("recv", 1_000, 4_200),
        ("send", 5_000, 5_100),
    ],
];

/// The sums of both ranks. Of each rank the parts of one operation of one step are left out.
fn sums(has_peers: bool, has_numbers: bool, lacks: [(&str, i64); 2]) -> Vec<Sums> {
    let mut trace = Trace::default();
    for rank in 0..2 {
        let mut scene = Scene::new();
        scene.device(DeviceInfo {
            uuid: Some([rank as u8 + 1; 16]),
            ..h200()
        });
        for step in 0..STEPS {
            for (at, (operation, start, end)) in PARTS[rank].iter().enumerate() {
                if lacks[rank] == (*operation, step) {
                    continue;
                }
                let shape = LaunchShape {
                    grid: [at as u32 + 1, 1, 1],
                    ..LaunchShape::default()
                };
                // Lengths of steps differ, so that one is told from the next.
                let begin = step * 10_000 + step * step * 37 % 1_000;
                let [start, end] = [start, end].map(|it| (begin + it) * US);
                scene.shaped(shape, "ncclDevKernel_SendRecv", 7, start, end);
            }
        }
        let mut batch = scene.take();
        batch.process = rank as u32;
        batch.defs.push(Def::Process(ProcessInfo {
            pid: 1_000 + rank as u32,
            rank: has_numbers.then_some(rank as u32),
            ..ProcessInfo::default()
        }));
        for (at, (operation, ..)) in PARTS[rank].iter().enumerate() {
            let collective = Collective {
                operation: (*operation).to_owned(),
                group: "0 [0, 1]".to_owned(),
                size: 2,
                elements: [64, 64],
                element: "Float".to_owned(),
                peer: (has_peers && *operation != "allreduce").then_some(1 - rank as u32),
            };
            let shape = at as u32;
            batch.defs.push(Def::Collective { shape, collective });
        }
        trace.apply(batch);
    }
    let found = MatchedCollectives::of(&trace).expect("a job");
    found.aligned.split.sums.clone()
}

/// NCCL pairs what one rank sends another by order. Who receives waits for the one who sends.
#[test]
fn a_send_and_its_receive_are_one_where_both_say_with_whom() {
    let all = [("", 0); 2];
    let told = |sums: Vec<Sums>| -> Vec<_> {
        let of = |it: &Sums| (it.judged, it.unjudged, it.wait_ns / US);
        sums.iter().map(of).collect()
    };
    assert_eq!(told(sums(true, true, all)), [(60, 0, 0), (60, 0, 60_000)]);
    // With whom is not said, or not by whom.
    for (has_peers, has_numbers) in [(false, true), (true, false)] {
        let sums = told(sums(has_peers, has_numbers, all));
        assert!(sums.iter().all(|it| it.0 <= 20 && it.2 == 0), "{sums:?}");
    }
    // One more on either side: nothing tells which of them it is.
    let lacks = told(sums(true, true, [("send", 1), ("", 0)]));
    assert_eq!(lacks, [(40, 19, 0), (40, 20, 0)]);
    // As many, but a receive would have ended before its send.
    let lacks = told(sums(true, true, [("send", 1), ("recv", STEPS - 1)]));
    assert_eq!(lacks, [(40, 19, 0), (40, 19, 0)]);
}
