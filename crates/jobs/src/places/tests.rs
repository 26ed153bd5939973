//! Two ranks that launch at their own pace: now one is ahead, now the other one.

use activity::{Def, DeviceInfo, Ns, ProcessInfo};
use causes::Causes;
use causes::graph::Graph;
use figures::steps;
use trace::Trace;
use trace::testing::{Scene, h200};

use crate::{Lateness, MatchedCollectives, Pattern};

const STEPS: usize = 60;
/// Collectives a step, and before each as many kernels.
const PLACES: usize = 10;
const KERNELS: usize = 4;
/// What a rank takes to launch one of them, ns.
const PACE: Ns = 100_000;

/// How much longer than usual a rank takes to launch in a step: by up to a fifth, for a while.
fn wave(rank: usize, step: usize) -> f64 {
    let phase = step as f64 / 7.0 + rank as f64 * 2.0;
    1.0 + 0.1 * (phase.sin() + (phase * 0.31).sin())
}

/// When the collectives were launched, of each rank, by when it sleeps before a step.
fn launches(sleep: fn(usize, usize) -> Ns) -> [Vec<Vec<Ns>>; 2] {
    [0, 1].map(|rank| {
        let mut now = 0;
        let mut all = Vec::new();
        for step in 0..STEPS {
            now += sleep(rank, step);
            for _ in 0..PLACES {
                let calls = (0..=KERNELS).map(|_| {
                    now += (PACE as f64 * wave(rank, step)) as Ns;
                    now
                });
                all.push(calls.collect());
            }
        }
        all
    })
}

/// The job as it is recorded. Each collective ends 20 us after the last one of the ranks has come.
fn job(sleep: fn(usize, usize) -> Ns, has_calls: bool) -> Trace {
    let launches = launches(sleep);
    let mut scenes = [0, 1].map(|rank| {
        let mut scene = Scene::new();
        scene.device(DeviceInfo {
            uuid: Some([rank as u8 + 1; 16]),
            ..h200()
        });
        let mut batch = scene.take();
        batch.process = rank;
        batch.defs.push(Def::Process(ProcessInfo {
            pid: 1_000 + rank,
            rank: Some(rank),
            world: Some(2),
            ..ProcessInfo::default()
        }));
        scene.put(batch);
        scene
    });
    let mut free = [0, 0];
    let [first, second] = &launches;
    for (place, launched) in first.iter().zip(second).enumerate() {
        let launched = [launched.0, launched.1];
        let mut came = [0, 0];
        for (rank, scene) in scenes.iter_mut().enumerate() {
            let (calls, last) = launched[rank].split_at(KERNELS);
            for (kernel, call) in calls.iter().enumerate() {
                let start = free[rank].max(call + 5_000);
                free[rank] = start + 10_000;
                if has_calls {
                    scene.call("cudaLaunchKernel", *call, call + 4_000);
                }
                let name = format!("k{}_{kernel}", place % PLACES);
                scene.kernel(&name, 7, start, free[rank]);
            }
            if has_calls {
                scene.call("cudaLaunchKernel", last[0], last[0] + 4_000);
            }
            came[rank] = free[rank].max(last[0] + 5_000);
        }
        let end = came[0].max(came[1]) + 20_000;
        for (rank, scene) in scenes.iter_mut().enumerate() {
            scene.kernel(
                "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
                7,
                came[rank],
                end,
            );
            free[rank] = end;
        }
    }
    let mut trace = Trace::default();
    for scene in &mut scenes {
        trace.apply(scene.take());
    }
    trace
}

fn late(sleep: fn(usize, usize) -> Ns) -> Vec<Lateness> {
    late_of(job(sleep, true))
}

fn late_of(mut trace: Trace) -> Vec<Lateness> {
    crate::align_clocks(&mut trace);
    let graph = Graph::new(&trace);
    let causes = Causes::new(&trace, &graph);
    let steps = steps::find(&trace, None);
    assert_eq!(steps.len(), 2);
    let matched = MatchedCollectives::of(&trace).expect("a job");
    matched.judge(&trace, Some(&causes), &steps).late
}

/// Of 5 ms steps. What the rank does not sleep it launches sooner; the other one is as often ahead as behind.
#[test]
fn a_place_at_which_time_is_lost_is_told_though_ranks_run_apart_by_more() {
    let apart = launches(|_, _| 0).map(|it| it.last().expect("some")[KERNELS]);
    assert!((apart[0] - apart[1]).abs() > 1_000_000, "{apart:?}");
    assert_eq!(late(|_, _| 0), []);
    let [each] = &late(|rank, _| if rank == 1 { 500_000 } else { 0 })[..] else {
        panic!("one is late");
    };
    assert_eq!((each.rank, each.pattern), (1, Pattern::Steady));
    let [tenth] = &late(|rank, step| Ns::from(rank == 1 && step % 10 == 5) * 5_000_000)[..] else {
        panic!("one is late");
    };
    assert_eq!(tenth.rank, 1);
    assert!(matches!(
        tenth.pattern,
        Pattern::ByTurns { late: 5 | 6, .. }
    ));
    for it in [each, tenth] {
        let saving = it.saving.expect("a replay");
        let saved = saving.now_ns - saving.without_ns;
        assert!((saved - 500_000).abs() < 100_000, "{saving:?}");
    }
}

/// Of kernels alone nobody knows who is held up by his launching: then it is told by steps or not at all.
#[test]
fn without_calls_there_are_no_places() {
    let sleep = |rank, _| if rank == 1 { 2_000_000 } else { 0 };
    let found = late_of(job(sleep, false));
    assert!(found.iter().all(|it| it.rank == 1), "{found:?}");
}
