//! For each rule a small timeline that triggers it, and its cured twin that does not.

mod anew;
mod copies;
mod first_use;
mod graphs;
mod host;
mod limits;
mod machine;
mod named;
mod promises;
mod truth;

use super::*;
use crate::testing::in_scope;
use activity::{Batch, Copy, DeviceInfo, Direction, HostCall, LaunchShape, MemoryKind, Span, What};
use figures::Peaks;
use trace::testing::{Scene, Sentence as _, h200, pinned};

/// A launch of so many blocks of so many threads.
fn launch(blocks: u32, threads: u32) -> LaunchShape {
    LaunchShape {
        grid: [blocks, 1, 1],
        block: [threads, 1, 1],
        ..LaunchShape::default()
    }
}

const PEAKS: Peaks = Peaks {
    h2d: Some(55.0),
    d2h: Some(55.0),
    d2d: None,
    p2p: None,
    memory: None,
    flops: None,
};

fn all(scope: &Scope<'_>) -> Vec<Finding> {
    find(scope, &Stop::default())
}

fn findings(scene: &mut Scene) -> Vec<Finding> {
    let all = all_of(scene);
    for finding in &all {
        assert!(finding.bound_ns >= thresholds::WORTH_NS, "{finding:?}");
        // Nothing was predicted.
        assert_eq!((finding.saving_ns, finding.alone_ns), (None, None));
        assert!(!finding.evidence.is_empty() && finding.evidence.len() <= EVIDENCE_MAX);
        assert!(finding.count >= finding.evidence.len() as u64);
        assert!(
            !finding.title.is_empty() && finding.advice.ends_with(['.', '?']),
            "{finding:?}"
        );
    }
    all
}

fn all_of(scene: &mut Scene) -> Vec<Finding> {
    in_scope(&scene.trace(), None, PEAKS, all)
}

/// What the sick scene triggers and the cured one does not. Other rules may find something in both.
fn sick(rule: &str, scene: &mut Scene) -> Finding {
    let all = findings(scene);
    let names: Vec<_> = all.iter().map(|f| f.rule.name()).collect();
    all.into_iter()
        .find(|f| f.rule.name() == rule)
        .unwrap_or_else(|| panic!("{rule} is not among {names:?}"))
}

fn cured(rule: &str, scene: &mut Scene) {
    if let Some(found) = findings(scene).into_iter().find(|f| f.rule.name() == rule) {
        panic!("{found:?}");
    }
}

#[test]
fn every_rule_has_a_name_of_its_own() {
    let mut names: Vec<_> = RULES.iter().map(|row| row.rule.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), RULES.len());
}

#[test]
fn every_cure_is_an_edit() {
    for cure in RULES.iter().flat_map(|rule| rule.cures) {
        assert!(cure.parse::<EditSet>().is_ok(), "{cure}");
    }
}

/// Kernels of 2 us. Launched 12 us apart onto an idle GPU, or ahead of a busy one.
fn short_kernels(is_ahead: bool) -> Scene {
    let mut scene = Scene::new();
    for i in 0..100 {
        let call = i * if is_ahead { 1_000 } else { 12_000 };
        scene.call("cudaLaunchKernel", call, call + 900);
        let start = if is_ahead {
            200_000 + i * 2_100
        } else {
            call + 6_000
        };
        scene.kernel("k", 1, start, start + 2_000);
    }
    scene
}

#[test]
fn kernels_that_leave_most_of_the_gpu_empty() {
    let named = |name: &str, blocks: u32, streams: u32| {
        let mut scene = Scene::new();
        scene.device(h200());
        let shape = launch(blocks, 256);
        for i in 0..8u32 {
            let at = Ns::from(i / streams) * 100_000;
            scene.shaped(shape, name, i % streams, at, at + 100_000);
        }
        scene
    };
    let scene = |blocks, streams| named("reduce", blocks, streams);
    let found = sick("under-filled-gpu", &mut scene(33, 1));
    // An SM holds eight such blocks, all of them 1,056: of 800 us all but a 32nd.
    assert_eq!((found.count, found.bound_ns), (8, 775_000));
    let said =
        "8 kernels with 33 blocks for 132 SMs: 800 µs (100 % of kernel time), all of it reduce";
    assert_eq!(found.title, said);
    // Launched ahead and yet 5 us apart, which fewer launches save seven times.
    let mut apart = Scene::new();
    apart.device(h200());
    for i in 0..8 {
        apart.call("cudaLaunchKernel", i * 1_000, i * 1_000 + 900);
        let shape = launch(33, 256);
        let at = 20_000 + i * 105_000;
        apart.shaped(shape, "reduce", 1, at, at + 100_000);
    }
    let apart = sick("under-filled-gpu", &mut apart);
    assert_eq!(apart.bound_ns, 810_000);
    let said = "800 µs (100 % of kernel time), 835 µs with what lies between, all of it reduce";
    assert!(apart.title.ends_with(said), "{}", apart.title);
    // Each of 100 us may be split; 30 us are little to do, whatever they are launched as.
    assert_eq!(found.severity, Severity::Warning);
    let mut short = Scene::new();
    short.device(h200());
    for i in 0..8 {
        let shape = launch(33, 256);
        short.shaped(shape, "reduce", 1, i * 30_000, (i + 1) * 30_000);
    }
    let short = sick("under-filled-gpu", &mut short);
    assert_eq!((short.bound_ns, short.severity), (232_500, Severity::Info));
    // Seven launches of 10 us, and two of the same grid that have more to do: all but a 32nd of 10.07 ms.
    let mut uneven = Scene::new();
    uneven.device(h200());
    let shape = launch(33, 256);
    for i in 0..7 {
        uneven.shaped(shape, "reduce", 1, i * 10_000, (i + 1) * 10_000);
    }
    for at in [70_000, 5_070_000] {
        uneven.shaped(shape, "reduce", 1, at, at + 5_000_000);
    }
    let uneven = sick("under-filled-gpu", &mut uneven);
    assert_eq!((uneven.count, uneven.bound_ns), (9, 9_755_312));
    let mut one = scene(1, 1);
    let one = sick("under-filled-gpu", &mut one);
    assert!(one.title.starts_with("8 kernels with 1 block for"));
    cured("under-filled-gpu", &mut scene(132, 1));
    cured("under-filled-gpu", &mut scene(128, 1));
    // Four beside each other fill it.
    cured("under-filled-gpu", &mut scene(33, 4));
    // With managed memory they wait for pages, or read over the link those that stay with the CPU.
    let mut managed = scene(33, 1);
    managed.copy(
        Direction::D2H,
        activity::Place::NO_STREAM,
        4 << 10,
        900_000,
        902_000,
    );
    cured("under-filled-gpu", &mut managed);
    // Pages come to one kernel of 2 ms, one each 40 us: that more blocks would save anything nobody knows.
    let faulting = |pages: Ns| {
        let mut scene = Scene::new();
        scene.device(h200());
        scene.shaped(shape, "add", 1, 0, 2_000_000);
        for at in (0..pages).map(|it| 100_000 + it * 40_000) {
            let stream = activity::Place::NO_STREAM;
            scene.copy(Direction::H2D, stream, 64 << 10, at, at + 15_000);
        }
        let found = all_of(&mut scene).into_iter();
        found.map(|it| (it.rule, it.bound_ns)).collect::<Vec<_>>()
    };
    assert!(faulting(40).contains(&(Rule::UnderFilledGpu, 0)));
    // Five take from 50 to 275 us: of the rest all but a 32nd may go.
    assert!(faulting(5).contains(&(Rule::UnderFilledGpu, 1_719_531)));
    // What exchanges data takes few SMs on purpose, whoever wrote it.
    for name in ["multimem_all_reduce_kernel", "ncclDevKernel_AllGather"] {
        cured("under-filled-gpu", &mut named(name, 33, 1));
    }
}

/// Eight kernels of 33 blocks, and as many of 1,024 blocks of 8 threads that take half as long: two lacks.
#[test]
fn blocks_are_told_of_the_kernels_that_leave_sms_empty() {
    let mut scene = Scene::new();
    scene.device(h200());
    for at in (0..8).map(|i| i * 150_000) {
        scene.shaped(launch(33, 256), "reduce", 1, at, at + 100_000);
        scene.shaped(launch(1_024, 8), "walk", 1, at + 100_000, at + 150_000);
    }
    let found = sick("under-filled-gpu", &mut scene);
    found
        .title
        .must_begin("8 kernels with 33 blocks for 132 SMs: 800 µs (67 % of kernel time)");
}

#[test]
fn threads_count_too_and_a_kernel_that_does_nothing_does_not() {
    let one = |name: &str, [blocks, threads]: [u32; 2]| {
        let mut scene = Scene::new();
        scene.device(h200());
        let shape = launch(blocks, threads);
        scene.shaped(shape, name, 1, 0, 168_960);
        scene
    };
    // 1 of 132 SMs with 128 lanes each, for 10 ns times 132 times 128: all but 10 ns.
    let found = sick("under-filled-gpu", &mut one("add(int)", [1, 1]));
    assert_eq!(found.bound_ns, 168_950);
    let said = "1 kernel with 1 block of 1 thread for 132 SMs";
    assert!(found.title.starts_with(said), "{}", found.title);
    // There is no other kernel to run beside it.
    assert!(!found.advice.contains("streams"), "{}", found.advice);
    // An SM holds eight blocks of 256 threads, all of them 1,056: eight blocks leave all but 1.28 us empty.
    let found = sick("under-filled-gpu", &mut one("add(int)", [8, 256]));
    assert_eq!(found.bound_ns, 168_960 - 1_280);
    // Of two launches the pause between them goes, too.
    let mut two = one("add(int)", [8, 256]);
    let shape = launch(8, 256);
    two.call("cudaLaunchKernel", -9_000, -6_000);
    two.shaped(shape, "add(int)", 1, 170_000, 170_000 + 168_960);
    let found = sick("under-filled-gpu", &mut two);
    assert_eq!(found.bound_ns, 2 * (168_960 - 1_280) + 1_040);
    // Blocks for all SMs, but of a quarter of a warp.
    let found = sick("under-filled-gpu", &mut one("add(int)", [13_200, 8]));
    assert_eq!(found.bound_ns, 168_960 * 3 / 4);
    assert!(
        found.advice.starts_with("Launch larger blocks"),
        "{found:?}"
    );
    cured("under-filled-gpu", &mut one("add(int)", [13_200, 32]));
    cured("under-filled-gpu", &mut one("emptyKernel()", [1, 22]));
}

#[test]
fn launches_that_failed_are_told_and_sell_no_cold_start() {
    let scene = |good: i64| {
        let mut scene = Scene::new();
        let failed = scene.name("cudaLaunchKernel");
        for (i, code) in [(1, 222), (2, 222)] {
            let call = HostCall {
                thread: 1,
                name: failed,
                code,
            };
            let end = if i == 1 { 100_000_000 } else { 200_010_000 };
            scene.push(i * 1_000 + (i - 1) * 200_000_000, end, 0, What::Call(call));
        }
        for i in 0..good {
            scene.call(
                "cudaLaunchKernel",
                300_000_000 + i * 9_000,
                300_002_000 + i * 9_000,
            );
            scene.kernel("k", 1, 300_004_000 + i * 9_000, 300_008_000 + i * 9_000);
        }
        scene.call("cudaMemcpyAsync", 400_000_000, 400_001_000);
        scene.copy(Direction::H2D, 1, 4, 400_003_000, 400_004_000);
        scene
    };
    let told = |good| {
        let all = all_of(&mut scene(good));
        let all = all.into_iter().filter(|it| it.rule.name() != "no-cure");
        let all = all.map(|it| (it.rule.name(), it.gain.unwrap_or_default()));
        all.collect::<Vec<_>>()
    };
    let failed = |all: i64| {
        let why = "PTX too new for the driver";
        (
            "failed-calls",
            format!("2 of {all} launches failed (error 222: {why})"),
        )
    };
    // It is the whole headline (`verdict`), and the only finding.
    assert_eq!(told(0), [("failed-calls", String::new())]);
    assert_eq!(told(3)[0], failed(5));
    // Each of these calls and what it returned.
    let told = |calls: &[(&str, i32)]| {
        let mut scene = Scene::new();
        for (i, &(name, code)) in calls.iter().enumerate() {
            let (name, at) = (scene.name(name), 10_000 * i as i64);
            let call = HostCall {
                thread: 1,
                name,
                code,
            };
            scene.push(at, at + 5_000, 0, What::Call(call));
        }
        scene.call("cudaLaunchKernel", 100_000, 103_000);
        scene.kernel("k", 1, 105_000, 900_000);
        let found = all_of(&mut scene).into_iter();
        let mut found = found.filter(|it| it.rule.name() == "failed-calls");
        found.next().and_then(|it| it.gain)
    };
    // A hint that is not taken fails nothing, nor does a wait without a context at the end.
    let refused = ("cudaMemPrefetchAsync_v8000", 1);
    assert_eq!(told(&[refused, ("cuCtxSynchronize", 201)]), None);
    let copies = told(&[refused, ("cudaMemcpy", 1)]);
    assert_eq!(
        copies.as_deref(),
        Some("1 of 1 copies failed (error 1: an argument is not valid)")
    );
    // A crash comes first, whichever calls tell of it.
    let crash = told(&[
        ("cudaMemcpy", 1),
        ("cudaDeviceSynchronize", 700),
        ("cudaFree", 700),
    ]);
    let said = "a kernel crashed (error 700: illegal memory access)";
    assert_eq!(crash.as_deref(), Some(said));
    // What found no memory before it is the first error; what comes behind it is its work.
    let (starved, crashed) = (("cudaMalloc", 2), ("cudaDeviceSynchronize", 700));
    let first = told(&[starved, starved, crashed]);
    let expected = format!("2 allocations found no memory (error 2), then {said}");
    assert_eq!(first, Some(expected));
    assert_eq!(told(&[crashed, starved]), crash);
    // Work that is not done yet is no failure.
    let mut asked = Scene::new();
    asked.push(
        0,
        1_000,
        0,
        What::Call(HostCall {
            thread: 1,
            name: 0,
            code: 600,
        }),
    );
    assert!(all_of(asked.kernel("cudaLaunchKernel", 1, 2_000, 3_000)).is_empty());
}

#[test]
fn more_blocks_are_advised_unless_launches_with_more_take_as_long() {
    // Launches of 1 and of 35 blocks by turns; those of 1 take 61 us.
    let scene = |many: Ns| {
        let mut scene = Scene::new();
        scene.device(h200());
        let mut at = 0;
        for (blocks, time) in [(1, 61_000), (35, many)].repeat(4) {
            let grid = [blocks, 1, 1];
            let shape = LaunchShape {
                grid,
                ..LaunchShape::default()
            };
            scene.shaped(shape, "solve", 1, at, at + time);
            at += time;
        }
        scene
    };
    cured("under-filled-gpu", &mut scene(59_700));
    let found = sick("under-filled-gpu", &mut scene(20_000));
    let few = "8 kernels with 1 to 35 blocks for 132 SMs";
    assert!(found.title.starts_with(few), "{}", found.title);
    assert!(found.advice.starts_with("Launch more blocks"));
    // Thirty launches of 16 blocks take 690 us each. One of 40 takes 1.9 ms: it has more to do, and disproves nothing.
    let mut scene = Scene::new();
    scene.device(h200());
    let mut at = 0;
    for (blocks, time) in [(16, 690_000); 30].into_iter().chain([(40, 1_900_000)]) {
        let grid = [blocks, 1, 1];
        let shape = LaunchShape {
            grid,
            ..LaunchShape::default()
        };
        scene.shaped(shape, "sort", 1, at, at + time);
        at += time;
    }
    let found = sick("under-filled-gpu", &mut scene);
    // 20.7 ms on 16 of 132 SMs and 1.9 ms on 40: 18,190,909 and 1,324,242 ns are left empty.
    assert_eq!((found.count, found.bound_ns), (31, 19_515_151));
}

#[test]
fn a_pass_is_judged_by_what_starts_in_it() {
    let mut scene = short_kernels(false);
    // Far behind the short kernels, a pass with one long one.
    scene
        .call("cudaLaunchKernel", 5_000_000, 5_001_000)
        .kernel("k", 1, 5_010_000, 9_000_000);
    let trace = scene.trace();
    let window = Some(Span::new(5_000_000, 10_000_000));
    assert_eq!(in_scope(&trace, window, PEAKS, all), []);
}

#[test]
fn json_has_the_fields_of_the_contract() {
    let found = sick("launch-bound", &mut short_kernels(false));
    let json = serde_json::to_value(&found).expect("json");
    assert_eq!(json["rule"], "launch-bound");
    assert_eq!(json["severity"], "warning");
    let evidence = json["evidence"][0].as_object().expect("evidence");
    for key in ["device", "stream", "start_ns", "end_ns"] {
        assert!(evidence.contains_key(key), "{key}");
    }
    assert!(json["title"].is_string() && json["advice"].is_string());
    assert_eq!(json["bound_ns"], 990_000);
    assert!(json["saving_ns"].is_null() && json["alone_ns"].is_null());
    assert_eq!(json["edit"], "graph");
}

#[test]
fn places_in_a_headline() {
    let mut found = sick("launch-bound", &mut short_kernels(false));
    found.title = "slow".to_owned();
    let mut told = |places: &[&str]| {
        found.places = places.iter().map(|&place| place.to_owned()).collect();
        found.headline()
    };
    assert_eq!(told(&["GPU 0"]), "GPU 0: slow");
    assert_eq!(
        told(&["GPU 0", "GPU 1"]),
        "GPUs 0 and 1 (figures from the worst of them): slow"
    );
    let points = ["at size=4 KiB", "at size=1 MiB", "at size=1 GiB"];
    assert_eq!(
        told(&points),
        "at size=4 KiB to 1 GiB (figures from the worst of them): slow"
    );
}

#[test]
fn what_two_runs_differ_by_is_silent() {
    // Pageable, but all of it takes 9 us.
    let mut scene = Scene::new();
    let copy = Copy {
        from: MemoryKind::Pageable,
        bytes: 100 << 10,
        ..pinned(Direction::H2D, 1, 0)
    };
    scene.copy_of(copy, 0, 9_000).kernel("k", 1, 9_000, 19_000);
    assert_eq!(findings(&mut scene), []);
}

#[test]
fn what_is_sure_to_save_most_stands_first() {
    let order = |least: Ns| -> Vec<Ns> {
        let bound = |bound_ns| Finding {
            bound_ns,
            ..Finding::default()
        };
        let estimated = Some([least, 2 * least]);
        let mut all = [
            bound(100),
            bound(50),
            Finding {
                estimated,
                ..bound(70)
            },
        ];
        put_surest_first(&mut all);
        all.map(|it| it.bound_ns).into()
    };
    assert_eq!(order(101), [70, 100, 50]);
    assert_eq!(order(99), [100, 50, 70]);
}
