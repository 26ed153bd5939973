//! Savings on small timelines, against times worked out by hand, and what holds of any timeline.

use proptest::prelude::*;

use crate::Facts;
use activity::feed::Stop;
use activity::units::duration;
use activity::{Direction, MemoryKind, Ns, RangeKind};
use figures::Peaks;
use findings::testing::in_scope;
use findings::{Finding, OfSteps, Severity, weighed};
use replay::program::GpuRates;
use replay::testing::known;
use replay::whatif::WhatIf;
use scenario::edit::EditSet;
use trace::Trace;
use trace::testing::{Scene, Sentence, pinned, waits};

fn all_of(trace: &Trace) -> Vec<Finding> {
    weigh(trace, &known())
}

fn weigh(trace: &Trace, known: &GpuRates) -> Vec<Finding> {
    let mut facts = Facts::new(trace);
    facts.known = known.clone();
    in_scope(trace, None, Peaks::default(), |scope| {
        let whatif = || WhatIf::of_steps(facts.basis(), None, None);
        weighed(scope, whatif, &Stop::default())
    })
}

#[test]
fn a_saving_is_what_the_replay_of_its_edit_takes_less() {
    let found = all_of(&waits(20).trace());
    let names: Vec<&str> = found.iter().map(|f| f.rule.name()).collect();
    assert_eq!(names, ["sync-in-loop"]);
    // From 5 to 785. Without the waits a kernel follows another after 1: 20 of 20 us and 19 pauses.
    let saving = 780_000 - (400_000 + 19_000);
    assert_eq!(found[0].saving_ns, Some(saving));
    assert_eq!(found[0].alone_ns, Some(saving));
    assert_eq!(found[0].edit, "no-sync".parse().ok());
    assert_eq!(found[0].severity, Severity::Warning);
    let words = format!(
        "; predicted to save {} of {}",
        duration(saving),
        duration(780_000)
    );
    assert_eq!(found[0].worth(), words);
    // Above 95 % no figure stands beside one that looks the same.
    for (on_top, said) in [(741_000, "741 µs of"), (742_000, "nearly all of")] {
        let mut much = found[0].clone();
        much.predicted.as_mut().expect("a prediction").on_top = on_top;
        assert_eq!(much.worth(), format!("; predicted to save {said} 780 µs"));
    }
    // The headline has the same figure, also where the steps looked at are not all like the median one.
    let steps = Some(OfSteps {
        one: 50_000,
        all: 780_000,
        count: 15,
        of: 15,
        ..OfSteps::default()
    });
    let (in_steps, unpredicted) = (
        Finding {
            step: steps,
            ..found[0].clone()
        },
        None,
    );
    let gain = in_steps.gain(0.0);
    assert_eq!(gain.as_deref(), Some("removing the syncs saves 361 µs"));
    // It is 46 % of the time: more than a GPU can lose that is idle for 40 % of it, so that kernels overlap, too.
    let left = in_steps.gain(0.4);
    assert_eq!(left.as_deref(), Some("removing the syncs: 780 µs → 419 µs"));
    // Of a bound it is the part of one step, in both: 50 of 780 us of the bound.
    let predicted = unpredicted;
    let bounded = Finding {
        predicted,
        saving_ns: None,
        bound_ns: 390_000,
        ..in_steps
    };
    let gain = bounded.gain(0.0);
    assert_eq!(
        gain.as_deref(),
        Some("up to 25.0 µs from removing the syncs")
    );
    assert_eq!(bounded.worth(), "; could save at most 25.0 µs a step");
    // Twice the time of all steps is no more than a whole one.
    let of = bounded.step.expect("steps");
    let above = Finding {
        bound_ns: 2 * of.all,
        ..bounded
    };
    assert_eq!(above.most(), of.one);
}

#[test]
fn a_cpu_that_runs_ahead_of_one_wait_fills_the_pauses_behind_others() {
    // A kernel of 50 us and one of 2, each launched once the one before was waited for: 8 us and 40 us of idle time follow.
    let mut made = Scene::new();
    for at in (0..10).map(|i| i * 100_000) {
        for (at, kernel) in [(at, 50_000), (at + 58_000, 2_000)] {
            made.call("cudaLaunchKernel", at, at + 3_000);
            made.kernel("k", 7, at + 5_000, at + 5_000 + kernel);
            made.call("cudaDeviceSynchronize", at + 4_000, at + 7_000 + kernel);
        }
    }
    // From 5 to 965. Without waits the CPU needs 42 us a round, and the GPU 52 and two pauses of 1: what-if says the same.
    let trace = made.trace();
    let found = all_of(&trace);
    let saving = 960_000 - (10 * 52_000 + 19_000);
    assert_eq!(
        (found[0].rule.name(), found[0].saving_ns),
        ("sync-in-loop", Some(saving))
    );
    let mut facts = Facts::new(&trace);
    facts.known = known();
    let whatif = WhatIf::of_steps(facts.basis(), None, None).expect("operations");
    let edit = "no-sync".parse().expect("an edit");
    let outcome = whatif.likely(&edit).expect("predicted");
    assert_eq!(outcome.whole_saving, saving);
    // In and behind the waits it idles for 8 us, and for the 5 that the second one lasts. Only the replay knows of the rest.
    assert_eq!(found[0].bound_ns, saving);
}

#[test]
fn what_cannot_be_predicted_says_why() {
    // Launches 20 us apart of kernels of 5: nobody knows what launching a graph takes.
    let mut made = Scene::new();
    for i in 0..100 {
        let at = 20_000 * i;
        made.call("cudaLaunchKernel", at, at + 3_000);
        made.kernel("k", 7, at + 6_000, at + 11_000);
    }
    let found = all_of(&made.trace());
    let bound = found.iter().find(|f| f.rule.name() == "launch-bound");
    let bound = bound.expect("launch-bound");
    assert_eq!((bound.saving_ns, bound.alone_ns), (None, None));
    bound
        .refusal()
        .must_begin("Cannot predict `graph`: the time of a graph launch");
    bound.worth().must_begin("; could save at most ");
}

#[test]
fn steps_of_one_launch_need_larger_batches_and_no_graph() {
    let mut made = Scene::new();
    for i in 0..100 {
        let at = 20_000 * i;
        made.range(RangeKind::Nvtx, "step", 0, at, at + 12_000);
        made.call("cudaLaunchKernel", at + 1_000, at + 4_000);
        made.kernel("k", 7, at + 6_000, at + 11_000);
    }
    let trace = made.trace();
    let steps = figures::steps::find(&trace, None);
    let facts = Facts::new(&trace);
    let found = in_scope(&trace, None, Peaks::default(), |scope| {
        let whatif = || WhatIf::of_steps(facts.basis(), steps.first(), None);
        weighed(scope, whatif, &Stop::default())
    });
    let bound = found.iter().find(|f| f.rule.name() == "launch-bound");
    let bound = bound.expect("launch-bound");
    bound.refusal().must_have("nothing to capture");
    assert_eq!((bound.cure, bound.change.len()), ("larger batches", 0));
}

#[test]
fn what_is_cured_by_another_edit_saves_nothing_on_top() {
    // Waits for each copy back keep the engines from working beside each other, on streams of their own.
    let mut made = Scene::new();
    for i in 0..10u32 {
        let (at, stream) = (Ns::from(i) * 340_000, 1 + i);
        made.call("cudaMemcpyAsync", at, at + 2_000);
        made.copy(Direction::H2D, stream, 4_950_000, at + 4_000, at + 104_000);
        made.call("cudaLaunchKernel", at + 3_000, at + 6_000);
        made.kernel("k", stream, at + 105_000, at + 205_000);
        made.call("cudaMemcpyAsync", at + 7_000, at + 9_000);
        made.copy(
            Direction::D2H,
            stream,
            4_950_000,
            at + 206_000,
            at + 306_000,
        );
        made.call("cudaStreamSynchronize", at + 10_000, at + 308_000);
    }
    let found = all_of(&made.trace());
    let told: Vec<_> = found
        .iter()
        .map(|f| (f.rule.name(), f.edit.clone()))
        .collect();
    let no_sync: Option<EditSet> = "no-sync".parse().ok();
    assert_eq!(
        told,
        [("sync-in-loop", no_sync.clone()), ("no-overlap", no_sync)]
    );
    // Three engines work for 1 ms each, and only one at a time.
    let told = ", and the work around each apart for at most 2.00 ms more";
    assert!(found[0].title.contains(told), "{}", found[0].title);
    assert_eq!(found[1].saving_ns, Some(0));
    assert_eq!(found[1].alone_ns, found[0].saving_ns);
    // Of 3366 us, copies of each direction take 1000 and follow one another after 1; the first kernel and the
    // last copy back have 202 beside them at least.
    let saved = found[0].saving_ns.expect("predicted");
    let least = 1_000_000 + 9_000 + 202_000;
    assert!(
        (3_366_000 - least - 20_000..=3_366_000 - least).contains(&saved),
        "{saved}"
    );
    found[1]
        .worth()
        .must_end(", but nothing after the cures above");
}

#[test]
fn a_cure_that_needs_pinned_memory_is_not_predicted_without_its_rate() {
    // Copies of 32 MB up and down, in 4 ms each, and a kernel of 1 ms: a staged copy blocks its caller on any stream.
    let mut made = Scene::new();
    for i in 0..8u32 {
        let at = Ns::from(i) * 9_100_000;
        let copy = |direction| activity::Copy {
            from: MemoryKind::Pageable,
            to: MemoryKind::Pageable,
            ..pinned(direction, 1, 32_000_000)
        };
        made.call("cudaMemcpyAsync", at, at + 4_010_000);
        made.copy_of(copy(Direction::H2D), at + 5_000, at + 4_005_000);
        made.call("cudaLaunchKernel", at + 4_015_000, at + 4_018_000);
        made.kernel("k", 1, at + 4_025_000, at + 5_025_000);
        made.call("cudaMemcpyAsync", at + 4_020_000, at + 9_060_000);
        made.copy_of(copy(Direction::D2H), at + 5_030_000, at + 9_050_000);
    }
    let trace = made.trace();
    let told = |known: &GpuRates| {
        let found = weigh(&trace, known);
        let overlap = found.into_iter().find(|f| f.rule.name() == "no-overlap");
        let overlap = overlap.expect("no-overlap");
        (overlap.saving_ns, overlap.refusal())
    };
    let (saving, refusal) = told(&GpuRates {
        h2d_gbps: None,
        d2h_gbps: None,
        ..known()
    });
    assert_eq!(saving, None);
    refusal.must_have("only helps together with `pin`");
    // With one it is.
    let (saving, refusal) = told(&known());
    assert!(saving.is_some() && refusal.is_empty(), "{refusal}");
}

/// Rounds of a pageable or pinned copy, kernels, a copy back, a wait, memory taken and given back, each there or not.
fn rounds(each: &[(bool, u8, bool, bool, bool)], think: Ns) -> Trace {
    let mut made = Scene::new();
    let (mut host, mut device) = (0, 0);
    for &(is_pageable, kernels, copies_back, waits, allocates) in each {
        if allocates {
            let end = device.max(host + 2_000) + 1_000;
            made.call("cudaFree", host, end);
            host = end + think;
        }
        let from = if is_pageable {
            MemoryKind::Pageable
        } else {
            MemoryKind::Pinned
        };
        let copy = activity::Copy {
            from,
            ..pinned(Direction::H2D, 7, 1_000_000)
        };
        let start = device.max(host + 3_000) + 1_000;
        device = start + if is_pageable { 100_000 } else { 21_000 };
        let end = if is_pageable { device } else { host + 2_000 };
        made.call("cudaMemcpyAsync", host, end);
        made.copy_of(copy, start, device);
        host = end + think;
        for _ in 0..kernels {
            made.call("cudaLaunchKernel", host, host + 3_000);
            let start = device.max(host + 4_000) + 1_000;
            device = start + 30_000;
            made.kernel("k", 7, start, device);
            host += 3_000 + think;
        }
        if copies_back {
            made.call("cudaMemcpyAsync", host, host + 2_000);
            let start = device.max(host + 3_000) + 1_000;
            device = start + 21_000;
            made.copy(Direction::D2H, 7, 1_000_000, start, device);
            host += 2_000 + think;
        }
        if waits {
            let end = device.max(host) + 2_000;
            made.call("cudaStreamSynchronize", host, end);
            host = end + think;
        }
    }
    made.trace()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn savings_sum_to_the_replay_of_all_of_them(
        each in prop::collection::vec((any::<bool>(), 0..4u8, any::<bool>(), any::<bool>(), any::<bool>()), 10..40),
        think in 0..30_000i64,
    ) {
        let trace = rounds(&each, think);
        let found = all_of(&trace);
        let mut facts = Facts::new(&trace);
        facts.known = known();
        let whatif = WhatIf::of_steps(facts.basis(), None, None).expect("operations");
        let stacked = || found.iter().filter(|f| f.saving_ns.is_some_and(|saving| saving > 0));
        let edit = |f: &Finding| f.edit.clone().expect("an edit");
        let saved = |set: &EditSet| {
            let outcome = whatif.predict(set).outcome.expect("predicted");
            outcome.whole_saving
        };
        for f in &found {
            if let Some(alone) = f.alone_ns {
                prop_assert_eq!(alone, saved(&edit(f)), "{}", f.rule.name());
                prop_assert!(alone <= f.bound_ns, "{}: {} of {}", f.rule.name(), alone, f.bound_ns);
            }
        }
        for f in stacked() {
            let all: Vec<_> = found
                .iter()
                .map(|f| (f.rule.name(), &f.edit, f.saving_ns, f.alone_ns, f.bound_ns, &f.with))
                .collect();
            prop_assert!(f.saving_ns <= Some(f.bound_ns), "{}: {:?}", f.rule.name(), all);
        }
        if let Some(all) = stacked().map(edit).reduce(|all, one| all.join(&one)) {
            let sum: Ns = stacked().filter_map(|f| f.saving_ns).sum();
            prop_assert_eq!(sum, saved(&all));
            prop_assert!(sum <= whatif.whole());
        }
    }
}
