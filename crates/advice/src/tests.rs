//! What verdicts and findings of one timeline say together.

mod saving;

use crate::{Facts, JudgedPart, verdict};
use activity::feed::Stop;
use activity::{HostCall, LaunchShape, Ns, RangeKind, What};
use causes::graph::Graph;
use causes::{Bound, Causes};
use figures::Peaks;
use findings::testing::in_scope;
use findings::{Finding, OfSteps, Rule, Scope};
use trace::testing::{Scene, Sentence, h200};

fn all(scope: &Scope<'_>) -> Vec<Finding> {
    findings::find(scope, &Stop::default())
}

/// Frames come 25 times a second, whatever runs in them. Kernels of one block take 5 of the 40 ms.
#[test]
fn steps_that_something_else_paces_have_nothing_to_gain() {
    let scene = |period: Ns| {
        let mut scene = Scene::new();
        scene.device(h200());
        for at in (0..60).map(|i| i * period) {
            for (name, at) in [("a", at), ("b", at + 3_000_000)] {
                scene.call("cudaLaunchKernel", at, at + 5_000);
                let shape = LaunchShape {
                    grid: [1, 1, 1],
                    block: [256, 1, 1],
                    ..LaunchShape::default()
                };
                scene.shaped(shape, name, 1, at + 6_000, at + 2_506_000);
                scene.call("cudaDeviceSynchronize", at + 6_000, at + 2_507_000);
            }
        }
        let trace = scene.trace();
        let facts = Facts::new(&trace);
        let judged = facts.judgement(JudgedPart::Whole);
        let judged = judged.expect("not stopped");
        (judged.findings, judged.verdicts[0].headline())
    };
    let (found, headline) = scene(40_040_000);
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].title.must_begin("25 steps a second");
    assert!(headline.ends_with("a timer likely paces it"), "{headline}");
    assert!(scene(35_000_000).0.len() > 1);
}

/// Sixty steps, 144 a second, of 14 kernels: launched one by one all along, or all at their begin.
#[test]
fn steps_that_launch_all_along_are_paced_by_nothing() {
    let headline = |apart: Ns, asks: Ns| {
        let mut scene = Scene::new();
        for i in 0..60 * 14 {
            let (step, launch) = (i / 14, i % 14);
            let at = step * 6_944_444 + launch * apart;
            if asks > 0 {
                scene.call("cudaMemGetInfo", at, at + asks - 1_000);
            }
            scene.call("cudaLaunchKernel", at + asks, at + apart - 1_000);
            scene.kernel(&format!("k{launch}"), 1, at + apart - 2_000, at + apart);
        }
        let trace = scene.trace();
        let facts = Facts::new(&trace);
        let judged = facts.judgement(JudgedPart::Whole).expect("not stopped");
        judged.verdicts[0].headline()
    };
    let paced = "a timer likely paces it";
    assert!(
        headline(5_000, 0).ends_with(paced),
        "{}",
        headline(5_000, 0)
    );
    let launches = headline(496_000, 0);
    assert!(
        launches.starts_with("launch-bound") && !launches.contains(paced),
        "{launches}"
    );
    // Nor are those that ask before each launch.
    headline(496_000, 400_000).must_have("in cudaMemGetInfo between launches");
}

/// Two kernels, each waited for; every fourth step takes another time than the others' 10 ms.
fn of_steps(fourth: Ns) -> (OfSteps, Option<Ns>) {
    let mut scene = Scene::new();
    let mut at = 0;
    for i in 0..60 {
        for (name, at) in [("a", at), ("b", at + 3_000_000)] {
            scene.call("cudaLaunchKernel", at, at + 5_000);
            scene.kernel(name, 1, at + 6_000, at + 2_506_000);
            scene.call("cudaDeviceSynchronize", at + 6_000, at + 2_507_000);
        }
        at += if i % 4 == 3 { fourth } else { 10_000_000 };
    }
    let trace = scene.trace();
    let facts = Facts::new(&trace);
    let judged = facts.judgement(JudgedPart::Whole).expect("not stopped");
    let of = judged.findings[0].step.expect("steps");
    (of, judged.verdicts[0].scope.step_ns)
}

/// Of 100 ms: 10 at the median, and 32.5 in the mean.
#[test]
fn of_uneven_steps_a_saving_is_of_the_mean_one() {
    let (of, _) = of_steps(100_000_000);
    assert_eq!(of.one, of.all / of.count as Ns);
    assert!((31_000_000..34_000_000).contains(&of.one), "{of:?}");
}

/// Of 6 ms: the headline's share is of 10, and so is a bound beside it, though the mean is 9.
#[test]
fn of_even_steps_a_saving_is_of_the_length_that_the_headline_has() {
    let (of, length) = of_steps(6_000_000);
    assert_eq!((of.one, length), (10_000_000, Some(10_000_000)));
}

#[test]
fn what_is_of_the_whole_run_says_so_beside_steps() {
    let mut scene = Scene::new();
    for at in (0..40).map(|i| i * 10_000_000) {
        scene.call("cudaLaunchKernel", at, at + 5_000);
        scene.kernel("k", 1, at + 10_000, at + 6_010_000);
        scene.call("cudaDeviceSynchronize", at + 10_000, at + 6_015_000);
    }
    let name = scene.name("cudaLaunchKernel");
    let (thread, code) = (1, 700);
    let call = HostCall { thread, name, code };
    scene.push(7_000_000, 7_001_000, 0, What::Call(call));
    let trace = scene.trace();
    let facts = Facts::new(&trace);
    let judged = facts.judgement(JudgedPart::Whole).expect("not stopped");
    assert!(judged.start_up.is_some(), "there are steps");
    let mut all = judged.findings.iter();
    let failed = all
        .find(|it| it.rule == Rule::FailedCalls)
        .expect("one failed");
    assert!(failed.headline().starts_with("whole run: "), "{failed:?}");
    assert_eq!(failed.step, None);
}

#[test]
fn work_behind_a_sync_has_one_account() {
    // Ten kernels of 6 ms that are waited for, and 5 ms of the CPU behind each: 5.015 ms idle nine times, of 105.135.
    let mut scene = Scene::new();
    for at in (0..10).map(|i| i * 11_015_000) {
        scene.call("cudaLaunchKernel", at, at + 5_000);
        scene.kernel("k", 1, at + 10_000, at + 6_010_000);
        scene.call("cudaDeviceSynchronize", at + 10_000, at + 6_015_000);
    }
    let trace = scene.trace();
    let graph = Graph::new(&trace);
    let causes = Causes::new(&trace, &graph);
    let mut groups = causes::Shares::default();
    for (gap, pieces) in causes.gaps_with_pieces(0, None) {
        for piece in &*pieces {
            groups[causes.group(gap, piece) as usize] += piece.span.len();
        }
    }
    let host = groups[causes::Group::Host as usize];
    assert_eq!((host, groups.iter().sum::<Ns>()), (45_000_000, 45_135_000));
    let devices = figures::count(&trace, None, None);
    let verdict = verdict::find(&trace, &causes, (None, &devices), (&[], None), None).remove(0);
    assert_eq!(verdict.bound_by, Bound::Host);
    assert!(
        (verdict.share - 45_000.0 / 105_135.0).abs() < 1e-9,
        "{verdict:?}"
    );
    let found = in_scope(&trace, None, Peaks::default(), all);
    let of = |rule: &str| {
        found
            .iter()
            .find(|it| it.rule.name() == rule)
            .expect("found")
    };
    // Whether the CPU could work beside the GPU nobody knows.
    assert!(!found.iter().any(|it| it.rule.name() == "sync-in-loop"));
    assert_eq!(of("no-cure").bound_ns, 45_000_000);
}

#[test]
fn a_host_that_launches_thousands_of_short_kernels_is_told_to_launch_less() {
    // Eager decoding: kernels of 2.3 us with 70 us of Python between them.
    let mut scene = Scene::new();
    for i in 0..5_000 {
        let at = i * 75_000;
        scene.range(RangeKind::CpuOp, "aten::mul", 1, at + 4_000, at + 70_000);
        scene.call("cudaLaunchKernel", at, at + 4_000);
        scene.kernel("elementwise", 1, at + 5_000, at + 7_300);
    }
    let trace = scene.trace();
    in_scope(&trace, None, Peaks::default(), |scope| {
        let mut verdicts = verdict::find(
            &trace,
            scope.causes,
            (None, scope.devices),
            (&[], None),
            None,
        );
        let all = all(scope);
        assert_eq!(all[0].rule.name(), "launch-bound");
        assert!(all[0].advice.contains("CUDA graph"), "{}", all[0].advice);
        assert!(all.iter().all(|it| it.rule.name() != "host-bound"));
        verdict::promise(&mut verdicts, &all);
        // 5,000 × 2.3 us of 4,999 × 75 + 2.3 us run.
        let told = "launch-bound: GPU idle 97 % of 375 ms, while the CPU launches 5,000 kernels of 2.30 µs · \
                    up to 363 ms from using a CUDA graph";
        assert_eq!(verdicts[0].headline(), told);
    });
}

/// A kernel, half a second in which nothing was traced, and kernels one behind the other.
#[test]
fn a_headline_without_a_cure_says_what_to_do() {
    let headline = |before: Ns, behind: Ns| {
        let mut scene = Scene::new();
        let start = 500_000_000 - before * 1_000_000;
        for at in (0..before).chain(500..500 + behind) {
            let at = at * 1_000_000 + if at < 500 { start } else { 500_000_000 };
            scene.call("cudaLaunchKernel", at, at + 5_000);
            scene.kernel("k", 1, at + 10_000, at + 1_000_000);
        }
        let trace = scene.trace();
        let facts = Facts::new(&trace);
        let judged = facts.judgement(JudgedPart::Whole).expect("not stopped");
        judged.verdicts[0].headline()
    };
    // What lies before nearly all of the work is set-up, and what lies behind it a check; in the middle of it neither.
    for (before, behind) in [(1, 11), (11, 1)] {
        let told = headline(before, behind);
        told.must_begin("CPU-bound: GPU idle 98 %");
        told.must_end(" · it happens once: do not measure set-up");
    }
    headline(6, 6).must_end(" · mark the CPU's code with NVTX ranges to see what it does");
}
