//! Rules that need what the hardware and the host did beside the records.

use super::*;
use activity::{
    GpuLimits, GroupWindow, Hardware, Metric, Occupant, OffCpu, Owner, Reading, ThreadWindow,
};
use trace::testing::Sentence;

const GPU: [u8; 16] = [9; 16];
const MS: Ns = 1_000_000;

/// A launch and a kernel of 1 ms in every 10: the host is at other work in between.
fn scene() -> Scene {
    let mut scene = Scene::new();
    scene.device(DeviceInfo {
        uuid: Some(GPU),
        ..h200()
    });
    for i in 0..100 {
        let at = i * 10 * MS;
        scene
            .call("cudaLaunchKernel", at, at + 5_000)
            .kernel("k", 1, at + 10_000, at + MS);
    }
    scene
}

/// The scene with something beside it; its findings of a rule.
fn found(rule: &str, hardware: Vec<Hardware>, off_cpu: Vec<OffCpu>) -> Option<Finding> {
    let mut scene = scene();
    let batch = scene.take();
    scene.put(Batch {
        hardware,
        off_cpu,
        ..batch
    });
    let mut all = all_of(&mut scene).into_iter();
    let found = all.find(|it| it.rule.name() == rule)?;
    assert!(
        !found.evidence.is_empty() && found.advice.ends_with('.'),
        "{found:?}"
    );
    Some(found)
}

/// Ten windows of 100 ms, of which `slowed` have these reasons.
fn clocks(mhz: f64, slowed: usize, reasons: u64) -> Vec<Hardware> {
    let limits = Hardware::Limits(GpuLimits {
        uuid: GPU,
        most: vec![(Metric::Clock, 2000.0)],
        tells_slowdowns: true,
        ..GpuLimits::default()
    });
    let window = |i: usize| {
        Hardware::Reading(Reading {
            uuid: GPU,
            span: Span::new(i as Ns * 100 * MS, (i as Ns + 1) * 100 * MS),
            values: vec![(Metric::Clock, mhz)],
            reasons: if i < slowed { reasons } else { 1 },
        })
    };
    std::iter::once(limits).chain((0..10).map(window)).collect()
}

#[test]
fn clocks_that_are_held_down() {
    let hot = found("machine", clocks(1200.0, 5, 0x20), vec![]).expect("found");
    assert_eq!(hot.severity, Severity::Warning);
    assert!(hot.is_no_matter_of_time(), "{hot:?}");
    assert!(hot.title.contains("thermal limit"), "{}", hot.title);
    // At the power limit and at full clocks nothing is wrong.
    let capped = found("machine", clocks(1990.0, 10, 0x4), vec![]).expect("found");
    assert_eq!(capped.severity, Severity::Info);
    // Idle clocks, and clocks that somebody set, are none.
    assert_eq!(found("machine", clocks(345.0, 10, 0x1 | 0x2), vec![]), None);
    assert_eq!(found("machine", clocks(1200.0, 0, 0x20), vec![]), None);
}

fn listed(owner: Owner) -> Vec<Hardware> {
    vec![Hardware::Occupants {
        uuid: GPU,
        time: 0,
        all: vec![Occupant {
            pid: 4711,
            name: "python".to_owned(),
            memory: Some(31 << 30),
            owner,
        }],
    }]
}

#[test]
fn somebody_else_on_the_gpu() {
    let it = found("machine", listed(Owner::Other), vec![]).expect("found");
    it.title.must_have("31 GiB");
    it.title.must_have("python (4711)");
    assert_eq!(found("machine", listed(Owner::Program), vec![]), None);
    assert_eq!(found("machine", listed(Owner::Unknown), vec![]), None);
}

#[test]
fn all_of_the_machine_is_in_one_line() {
    let mut hardware = clocks(1990.0, 10, 0x4);
    let one = found("machine", hardware.clone(), vec![]).expect("found");
    hardware.extend(listed(Owner::Other));
    let both = found("machine", hardware, vec![]).expect("found");
    assert_eq!(
        (one.severity, both.severity),
        (Severity::Info, Severity::Warning)
    );
    both.title.must_end(&format!(" · {}", one.title));
    assert!(both.advice.ends_with(&one.advice), "{}", both.advice);
}

fn windows(running: Ns, waiting: Ns) -> Vec<OffCpu> {
    let window = |i: Ns| {
        OffCpu::Thread(ThreadWindow {
            thread: 1,
            span: Span::new(i * 100 * MS, (i + 1) * 100 * MS),
            running: running * MS,
            waiting: waiting * MS,
        })
    };
    (0..10).map(window).collect()
}

fn group(throttled_periods: u64) -> Vec<OffCpu> {
    vec![OffCpu::Group(GroupWindow {
        span: Span::new(0, 1000 * MS),
        periods: 10,
        throttled_periods,
        throttled: throttled_periods as Ns * 30 * MS,
        cores: 2.0,
    })]
}

#[test]
fn a_launching_thread_without_a_core() {
    let it = found("no-cpu", vec![], windows(40, 40)).expect("found");
    assert_eq!(it.severity, Severity::Warning);
    // 99 gaps, of which 9 ms each lie before the launching call (what follows is the launch's own latency): 40 % of 891 ms.
    // At most the 400 ms that it waited in all, less what lies before the first kernel and behind the last.
    it.title
        .must_have("about 356 ms of the 891 ms that the GPU waited");
    assert!(
        (356 * MS..=400 * MS).contains(&it.bound_ns),
        "{}",
        it.bound_ns
    );
    // A thread that sleeps waits for something else than a core.
    assert_eq!(found("no-cpu", vec![], windows(1, 1)), None);
    assert_eq!(found("no-cpu", vec![], vec![]), None);
}

#[test]
fn a_container_that_is_stopped() {
    let it = found("no-cpu", vec![], group(6)).expect("found");
    it.title.must_have("2 cores");
    it.title.must_have("60 %");
    assert_eq!(it.bound_ns, 180 * MS);
    assert_eq!(found("no-cpu", vec![], group(1)), None);
    // A thread without a core beside it is told in the same line, with the greater bound.
    let both = [group(6), windows(40, 40)].concat();
    let both = found("no-cpu", vec![], both).expect("found");
    both.title.must_have("2 cores");
    both.title.must_have("356 ms of the 891 ms");
    assert!(both.bound_ns >= 356 * MS, "{}", both.bound_ns);
}

#[test]
fn clocks_of_cpu_and_gpu_that_are_apart_are_told() {
    // Copies back, each with a sync of 20 us behind its call of 5 us. They begin so long after the call, one of them 10 us after it.
    let told = |late: Ns, fits: bool| {
        let mut scene = Scene::new();
        for i in 0..10 {
            let at = i * MS;
            let begins = at + if fits && i == 4 { 10_000 } else { late };
            scene.call("cudaMemcpyAsync", at, at + 5_000);
            scene.copy(Direction::D2H, 1, 4, begins, begins + 2_000);
            scene.call("cudaStreamSynchronize", at + 6_000, at + 26_000);
        }
        in_scope(&scene.trace(), None, PEAKS, machine).map(|it| it.title)
    };
    // 800 ms after the call is 799.974 ms behind the sync.
    let said = told(800 * MS, false).unwrap_or_default();
    said.must_begin("clocks of CPU and GPU are at least 800 ms apart");
    assert_eq!((told(800 * MS, true), told(10_000, false)), (None, None));
}
