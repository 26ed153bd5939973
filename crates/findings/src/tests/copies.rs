//! What copies take, and what could run beside them.

use super::*;
use activity::RangeKind;
use trace::testing::Sentence;

/// A copy of 16 MiB at `gbps`, and its end.
fn large(scene: &mut Scene, copy: Copy, start: Ns, gbps: f64) -> Ns {
    let end = start + (copy.bytes as f64 / gbps) as Ns;
    scene.copy_of(copy, start, end);
    end
}

#[test]
fn pageable_copies() {
    let copy = |from| Copy {
        from,
        ..pinned(Direction::H2D, 1, 16 << 20)
    };
    let scene = |kind, gbps| {
        let mut scene = Scene::new();
        scene.kernel("k", 1, 0, 1_000_000);
        large(&mut scene, copy(kind), 1_000_000, gbps);
        scene
    };
    let found = sick("pageable-copy", &mut scene(MemoryKind::Pageable, 10.0));
    // 16 MiB at 10 GB/s take 1.678 ms, at the peak of 55 they take 0.305.
    assert_eq!(found.bound_ns, 1_677_721 - 305_041);
    assert_eq!((found.count, found.severity), (1, Severity::Warning));
    // Which way they go: those of the other direction may be pinned.
    let title = "1 H2D copy of pageable memory runs at 10.0 GB/s";
    found.title.must_begin(title);
    let mut both = scene(MemoryKind::Pageable, 10.0);
    let back = Copy {
        to: MemoryKind::Pageable,
        ..pinned(Direction::D2H, 1, 16 << 20)
    };
    large(&mut both, back, 5_000_000, 10.0);
    let found = sick("pageable-copy", &mut both);
    found.title.must_begin("2 copies of pageable memory run");
    // Once pinned it may run beside what comes back on another stream, for the 305 us that it takes then.
    for (stream, beside) in [(1, 0), (2, 305_041)] {
        let mut other = scene(MemoryKind::Pageable, 10.0);
        large(
            &mut other,
            pinned(Direction::D2H, stream, 16 << 20),
            5_000_000,
            50.0,
        );
        let found = sick("pageable-copy", &mut other);
        assert_eq!(
            (found.bound_ns, found.beside_ns),
            (1_677_721 - 305_041, beside)
        );
    }
    cured("pageable-copy", &mut scene(MemoryKind::Pinned, 55.0));
    // Where nobody measured the link, what one of the GPU's generation reaches at best: 13 GB/s, for 1.291 ms.
    let mut older = scene(MemoryKind::Pageable, 10.0);
    older.device(DeviceInfo {
        capability: (7, 5),
        ..DeviceInfo::default()
    });
    let unknown = Peaks { h2d: None, ..PEAKS };
    let found = in_scope(&older.trace(), None, unknown, all);
    assert_eq!(found[0].bound_ns, 1_677_721 - 1_290_556);
    // Eight lanes of PCIe 4.0 carry 13.5 GB/s, for 1.243 ms.
    let mut known = scene(MemoryKind::Pageable, 10.0);
    known.device(DeviceInfo {
        link: "PCIe 4.0 x8".to_owned(),
        capability: (8, 9),
        ..DeviceInfo::default()
    });
    let found = in_scope(&known.trace(), None, unknown, all);
    assert_eq!(found[0].bound_ns, 1_677_721 - 1_242_757);
    // Where the GPU has a link of its own to the CPU, or its memory, nobody knows what they reach.
    for (name, capability) in [("NVIDIA GH200 480GB", (9, 0)), ("Orin", (8, 7))] {
        let mut older = scene(MemoryKind::Pageable, 10.0);
        older.device(DeviceInfo {
            name: name.to_owned(),
            capability,
            ..DeviceInfo::default()
        });
        let found = in_scope(&older.trace(), None, unknown, all);
        assert_eq!(found[0].bound_ns, 1_677_721);
        // A link of its own may be faster than any card's for pageable memory, too.
        let mut fast = scene(MemoryKind::Pageable, 160.0);
        fast.device(DeviceInfo {
            name: name.to_owned(),
            capability,
            ..DeviceInfo::default()
        });
        let all = in_scope(&fast.trace(), None, unknown, all);
        assert!(
            all.iter().all(|it| it.rule != Rule::PageableCopy),
            "{all:?}"
        );
    }
    // A little one is taken along at once.
    let mut small = Scene::new();
    let small_copy = Copy {
        bytes: 4096,
        ..copy(MemoryKind::Pageable)
    };
    small
        .copy_of(small_copy, 0, 2_000)
        .kernel("k", 1, 3_000, 9_000);
    cured("pageable-copy", &mut small);
}

#[test]
fn a_pageable_copy_saves_its_own_time_and_idle_time_in_its_call() {
    let copy = Copy {
        from: MemoryKind::Pageable,
        ..pinned(Direction::H2D, 1, 16 << 20)
    };
    // 3 ms of the CPU's own work stand behind a call of 1.7 ms, whose copy takes 1.678: they stay.
    let scene = |first: bool| {
        let mut scene = Scene::new();
        if first {
            scene.kernel("k", 1, -1_010_000, -10_000);
        }
        scene.call("cudaMemcpyAsync", 0, 1_700_000);
        large(&mut scene, copy, 10_000, 10.0);
        scene
            .call("cudaLaunchKernel", 4_700_000, 4_701_000)
            .kernel("k", 1, 4_703_000, 5_703_000);
        scene
    };
    // At the peak it takes 0.305 ms. In the call the GPU idles from 0 to 10 us, and for 12.279 behind the copy.
    let bound = 1_677_721 - 305_041 + 10_000 + 12_279;
    assert_eq!(sick("pageable-copy", &mut scene(true)).bound_ns, bound);
    // What is copied once before the first kernel is set-up, unless it takes much of all: 29 % here, 6 % with a longer kernel.
    assert_eq!(sick("pageable-copy", &mut scene(false)).count, 1);
    let mut long = scene(false);
    cured("pageable-copy", long.kernel("k", 1, 5_703_000, 25_703_000));
    // Copied again, it is not.
    let mut again = scene(false);
    for at in [6_000_000, 9_000_000] {
        large(&mut again, copy, at, 20.0);
        again.kernel("k", 1, at + 900_000, at + 2_900_000);
    }
    assert_eq!(sick("pageable-copy", &mut again).count, 3);
}

#[test]
fn tiny_copies_and_the_waits_between_them() {
    let mut scene = Scene::new();
    for i in 0..100 {
        let at = i * 20_000;
        scene.call("cudaMemcpyAsync", at, at + 3_000).copy(
            Direction::D2H,
            1,
            4,
            at + 4_000,
            at + 5_500,
        );
        scene.call("cudaStreamSynchronize", at + 3_500, at + 12_000);
    }
    let trace_of = |scene: &mut Scene| scene.take();
    let batch = trace_of(&mut scene);
    let found = sick("tiny-copies", Scene::new().put(batch.clone()));
    // The first copy, and what the host does for each of the others: between two copies nothing but 8 us.
    assert_eq!((found.count, found.bound_ns), (100, 99 * 20_000 + 1_500));
    // On the device each takes 1.5 us, its call 3.
    let told = "150 µs, their calls 300 µs, with what lies between 1.98 ms";
    assert!(found.title.ends_with(told), "{}", found.title);
    let found = sick("sync-in-loop", Scene::new().put(batch));
    // The gaps are 18.5 us each, but the waits last 8.5: without them no more is won.
    assert_eq!((found.count, found.bound_ns), (99, 99 * 8_500));
    // Work of the host between the copies stays: 50 us of it are none of theirs.
    let mut busy = Scene::new();
    for i in 0..100 {
        let at = i * 60_000;
        busy.call("cudaMemcpyAsync", at, at + 10_000).copy(
            Direction::D2H,
            1,
            4,
            at + 8_000,
            at + 9_500,
        );
    }
    assert_eq!(sick("tiny-copies", &mut busy).bound_ns, 99 * 10_000 + 1_500);
    // A kernel that is launched and waited for between two of them is no part of a copy: each costs its call of 3 us.
    let mut apart = Scene::new();
    for at in (0..100).map(|it| it * 20_000) {
        apart.call("cudaLaunchKernel", at, at + 2_000);
        apart.kernel("k", 2, at + 3_000, at + 10_000);
        apart.call("cudaStreamSynchronize", at + 2_500, at + 11_000);
        apart.call("cudaMemcpyAsync", at + 11_500, at + 14_500);
        apart.copy(Direction::D2H, 1, 4, at + 15_000, at + 16_500);
    }
    let found = sick("tiny-copies", &mut apart);
    assert_eq!(found.bound_ns, 99 * 3_000 + 1_500);
    // Nor is memory that is pinned for each.
    let mut pins = Scene::new();
    for at in (0..100).map(|it| it * 20_000) {
        pins.call("cudaHostAlloc", at, at + 11_000);
        pins.call("cudaMemcpyAsync", at + 11_500, at + 14_500);
        pins.copy(Direction::D2H, 1, 4, at + 15_000, at + 16_500);
    }
    let found = sick("tiny-copies", &mut pins);
    assert_eq!(found.bound_ns, 99 * 3_000 + 1_500);
    let mut cure = Scene::new();
    cure.call("cudaMemcpyAsync", 0, 3_000)
        .copy(Direction::D2H, 1, 400, 4_000, 6_000);
    cure.call("cudaStreamSynchronize", 3_500, 12_000);
    let batch = cure.take();
    cured("tiny-copies", Scene::new().put(batch.clone()));
    cured("sync-in-loop", Scene::new().put(batch));
}

#[test]
fn a_copy_back_and_the_wait_behind_it_are_one_wait_for_a_value() {
    // As `.item()` does it, every 60 us: the copy's call takes 10 us, the wait behind it 4.
    let mut scene = Scene::new();
    for at in (0..50).map(|i| i * 60_000) {
        scene.call("cudaMemcpyAsync", at, at + 10_000);
        let copy = Copy {
            to: MemoryKind::Pageable,
            ..pinned(Direction::D2H, 1, 4)
        };
        scene.copy_of(copy, at + 8_000, at + 9_500);
        scene.call("cudaStreamSynchronize", at + 10_500, at + 14_500);
    }
    // 49 pauses, for each of which the CPU had waited for 14 us before.
    let all = all_of(&mut scene);
    let found = all.iter().find(|it| it.rule.name() == "sync-in-loop");
    let found = found.expect("sync-in-loop");
    assert_eq!((found.count, found.bound_ns), (49, 49 * 14_000));
    let change = found.change[0].to_string();
    assert_eq!(
        change,
        "cudaMemcpy: many values at once, or not in each round"
    );
}

/// Eight batches of upload and kernel, one after the other or overlapped.
fn batches(is_async: bool, is_overlapped: bool) -> Scene {
    let mut scene = Scene::new();
    for i in 0..8u32 {
        let step = if is_overlapped { 300_000 } else { 600_000 };
        let at = Ns::from(i) * step;
        let copy = Copy {
            is_async,
            ..pinned(Direction::H2D, i, 15_000_000)
        };
        scene.copy_of(copy, at, at + 290_000);
        scene.kernel("k", i, at + 300_000, at + 590_000);
    }
    scene
}

#[test]
fn engines_that_take_turns() {
    let found = sick("no-overlap", &mut batches(true, false));
    // All copies could run beside kernels, which are as busy. Whether the batches allow that is not known.
    // With the 10 us between a copy and its kernel.
    assert_eq!(found.bound_ns, 8 * (290_000 + 10_000));
    assert_eq!(found.severity, Severity::Info);
    // 2.32 of 4.79 ms.
    let why = found.says.expect("as long as kernels").why;
    assert_eq!(why, "copies 48 %, one after another");
    cured("no-overlap", &mut batches(true, true));
    // The same graph again works in the same memory: these are no independent batches.
    let launched = |name: &str| {
        let mut scene = Scene::new();
        for at in (0..8).map(|i| i * 600_000) {
            scene.call("cudaMemcpyAsync", at - 90_000, at - 85_000);
            scene.copy(Direction::H2D, 1, 15_000_000, at, at + 290_000);
            scene.call(name, at - 80_000, at - 75_000);
            scene.kernel("k", 1, at + 300_000, at + 590_000);
        }
        scene
    };
    sick("no-overlap", &mut launched("cudaLaunchKernel"));
    cured("no-overlap", &mut launched("cudaGraphLaunch"));
    // A program that hardly copies has nothing to overlap.
    let mut kernels = Scene::new();
    kernels
        .copy(Direction::H2D, 1, 1 << 20, 0, 20_000)
        .kernel("k", 1, 20_000, 9_000_000);
    cured("no-overlap", &mut kernels);
}

/// An upload of 1 ms, a kernel of 8 over a grid of so many blocks, and the way back of 1 ms.
#[test]
fn one_batch_of_pinned_memory_may_go_in_chunks() {
    let scene = |blocks: u32, is_pinned: bool, kernels: &[&str]| {
        let mut scene = Scene::new();
        scene.device(h200());
        let shape = LaunchShape {
            grid: [blocks, 1, 1],
            block: [1024, 1, 1],
            registers: 32,
            ..LaunchShape::default()
        };
        for (direction, at) in [(Direction::H2D, 0), (Direction::D2H, 9_000_000)] {
            let mut copy = pinned(direction, 1, 50_000_000);
            if !is_pinned {
                (copy.from, copy.to) = (MemoryKind::Pageable, MemoryKind::Pageable);
            }
            scene.copy_of(copy, at, at + 1_000_000);
        }
        let each = 8_000_000 / kernels.len() as Ns;
        for (at, name) in (0..).zip(kernels) {
            let at = 1_000_000 + at * each;
            scene.shaped(shape, name, 1, at, at + each);
        }
        scene
    };
    // Two blocks fit each of 132 SMs: eight waves. Both copies could hide beside the kernel.
    let found = sick("no-overlap", &mut scene(2_112, true, &["gemm(float*)"]));
    assert_eq!(
        (found.severity, found.bound_ns),
        (Severity::Info, 2_000_000)
    );
    assert!(found.advice.contains("in chunks"), "{}", found.advice);
    // One wave has no half that fills the GPU. A kernel that comes again has all of the data to go through.
    for cured_scene in [
        &mut scene(264, true, &["gemm(float*)"]),
        &mut scene(2_112, true, &["sort(float*)", "sort(float*)"]),
        &mut scene(2_112, false, &["gemm(float*)"]),
    ] {
        cured("no-overlap", cured_scene);
    }
}

#[test]
fn streams_that_are_waited_for_one_after_another_have_a_batch_each() {
    // All uploads, then all kernels, then all that comes back: on a stream each, or on one.
    let scene = |streams: u32| {
        let mut scene = Scene::new();
        for i in 0..4 {
            let (at, stream) = (Ns::from(i) * 1_000_000, 1 + i % streams);
            scene.copy(Direction::H2D, stream, 50_000_000, at, at + 1_000_000);
            scene.kernel("k", stream, at + 4_000_000, at + 5_000_000);
            scene.copy(
                Direction::D2H,
                stream,
                50_000_000,
                at + 8_000_000,
                at + 9_000_000,
            );
        }
        scene
    };
    // Two of the three engines could be hidden.
    assert_eq!(sick("no-overlap", &mut scene(4)).bound_ns, 8_000_000);
    cured("no-overlap", &mut scene(1));
}

#[test]
fn a_single_copy_engine_overlaps_no_directions() {
    let scene = |copy_engines: u32| {
        let mut scene = Scene::new();
        scene.device(DeviceInfo {
            copy_engines,
            ..DeviceInfo::default()
        });
        for i in 0..16 {
            let direction = [Direction::H2D, Direction::D2H][i as usize % 2];
            let at = Ns::from(i) * 100_000;
            scene.copy(direction, 1 + i % 2, 4 << 20, at, at + 95_000);
        }
        scene
    };
    sick("no-overlap", &mut scene(2));
    cured("no-overlap", &mut scene(1));
}

#[test]
fn directions_that_are_queued_on_streams_of_their_own_are_told_no_such_thing() {
    // Copies up and down by turns, each called when the one before it ended, or all at first.
    let scene = |is_ahead: bool, streams: u32| {
        let mut scene = Scene::new();
        scene.memset(9, 4, 990_000, 991_000);
        for i in 0..16 {
            let at = 1_000_000 + Ns::from(i) * 100_000;
            let call = if is_ahead {
                Ns::from(i) * 3_000
            } else {
                at - 5_000
            };
            scene.call("cudaMemcpyAsync", call, call + 2_000);
            let direction = [Direction::H2D, Direction::D2H][i as usize % 2];
            scene.copy(direction, 1 + i % streams, 4 << 20, at, at + 95_000);
        }
        scene
    };
    let told = |scene: &mut Scene| {
        let advice = sick("no-overlap", scene).advice;
        advice.must_have("put the two directions on two streams");
    };
    told(&mut scene(false, 2));
    cured("no-overlap", &mut scene(true, 2));
    // What other operations have streams for is no matter of the copies.
    told(&mut scene(true, 1));
}

/// Eight batches of two uploads and a copy back, each on its own stream, and all called at first.
#[test]
fn uploads_that_a_driver_runs_before_all_that_comes_back() {
    let scene = |are_beside: bool| {
        let mut scene = Scene::new();
        for i in 0..8 {
            let call = Ns::from(i) * 10_000;
            let up = 1_000_000 + Ns::from(i) * 2_000_000;
            let back = match are_beside {
                true => up + 2_000_000,
                false => 17_000_000 + Ns::from(i) * 1_000_000,
            };
            for (number, start) in [up, up + 1_000_000].into_iter().enumerate() {
                let call = call + number as Ns * 3_000;
                scene.call("cudaMemcpyAsync", call, call + 2_000);
                scene.copy(Direction::H2D, 1 + i, 13 << 20, start, start + 1_000_000);
            }
            scene.call("cudaMemcpyAsync", call + 6_000, call + 8_000);
            scene.copy(Direction::D2H, 1 + i, 13 << 20, back, back + 1_000_000);
        }
        scene
    };
    // 8 ms of copies back could lie beside 16 ms of uploads.
    let found = sick("no-overlap", &mut scene(false));
    assert_eq!(
        (found.bound_ns, found.severity),
        (8_000_000, Severity::Info)
    );
    found.title.must_have("though queued ahead on 8 streams");
    found.advice.must_have("cudaStreamQuery behind each batch");
    cured("no-overlap", &mut scene(true));
}

/// Four batches on a stream each: pinned, they copy in both directions at once.
#[test]
fn pageable_copies_of_both_directions_on_several_streams() {
    let scene = |streams: u32, engines: u32| {
        let mut scene = Scene::new();
        scene.device(DeviceInfo {
            copy_engines: engines,
            ..DeviceInfo::default()
        });
        for i in 0..4 {
            let at = Ns::from(i) * 4_000_000;
            let stream = 1 + i % streams;
            let staged = |way| Copy {
                from: [MemoryKind::Pageable, MemoryKind::Device]
                    [usize::from(way == Direction::D2H)],
                to: [MemoryKind::Device, MemoryKind::Pageable][usize::from(way == Direction::D2H)],
                ..pinned(way, stream, 16 << 20)
            };
            large(&mut scene, staged(Direction::H2D), at, 10.0);
            scene.kernel("k", stream, at + 1_700_000, at + 1_710_000);
            large(&mut scene, staged(Direction::D2H), at + 1_710_000, 10.0);
        }
        sick("pageable-copy", &mut scene)
    };
    // Each of 8 copies takes 1,677,722 ns, and 305,041 at 55 GB/s. Of four up and four back those of one direction stay, but for
    // 40 us beside kernels.
    let found = scene(4, 2);
    let alone = 8 * (1_677_721 - 305_041);
    let near = |a: Ns, b: Ns| assert!((a - b).abs() < 20, "{a} {b}");
    near(found.bound_ns, alone);
    near(found.beside_ns, 4 * 305_041 + 40_000);
    // With one engine both directions stay.
    near(scene(4, 1).beside_ns, 40_000);
}

#[test]
fn large_copies_below_the_calibrated_peak() {
    let scene = |gbps: f64| {
        let mut scene = Scene::new();
        let end = large(&mut scene, pinned(Direction::D2H, 1, 16 << 20), 0, gbps);
        large(&mut scene, pinned(Direction::D2H, 1, 16 << 20), end, gbps);
        scene
    };
    let found = sick("low-bandwidth", &mut scene(27.5));
    assert_eq!(found.count, 2);
    // Half the peak takes twice the time: half of it could be saved, give or take a rounding.
    assert!((found.bound_ns - 610_080).abs() <= 2, "{}", found.bound_ns);
    cured("low-bandwidth", &mut scene(52.0));
    // Two at once share the link: each sees half of it, together they fill it.
    let mut shared = Scene::new();
    for stream in 1..=2 {
        large(
            &mut shared,
            pinned(Direction::D2H, stream, 16 << 20),
            0,
            27.5,
        );
    }
    cured("low-bandwidth", &mut shared);
}

/// NVIDIA's data sheets: PCIe 5.0 x16 of an H100 carries 64 GB/s each way, of which copies get 57; 4.0 x16 of an A100 carries 32.
#[test]
fn large_copies_at_half_of_what_the_link_of_a_card_gives() {
    let found = |gbps: f64, capability: (u32, u32), from: MemoryKind| {
        let mut scene = Scene::new();
        scene.device(DeviceInfo {
            capability,
            ..h200()
        });
        let copy = Copy {
            from,
            ..pinned(Direction::H2D, 1, 160 << 20)
        };
        let end = large(&mut scene, copy, 0, gbps);
        large(&mut scene, copy, end, gbps);
        let none = Peaks::default();
        let all = in_scope(&scene.trace(), None, none, all);
        all.into_iter().find(|it| it.rule.name() == "low-bandwidth")
    };
    let half = found(27.7, (9, 0), MemoryKind::Pinned).expect("half of it");
    half.title.must_have("27.7 GB/s, 49 % of the 57.0 GB/s");
    assert_eq!(half.severity, Severity::Info);
    for (gbps, capability, from) in [
        // Nearly all of it, and the same rate where that is nearly all: of an A100, and of a card that is not known.
        (52.0, (9, 0), MemoryKind::Pinned),
        (26.0, (8, 0), MemoryKind::Pinned),
        (27.7, (0, 0), MemoryKind::Pinned),
        // Other memory is slow whatever the link.
        (12.0, (9, 0), MemoryKind::Pageable),
        (12.0, (9, 0), MemoryKind::Unknown),
    ] {
        assert_eq!(found(gbps, capability, from), None, "{gbps} {capability:?}");
    }
}

#[test]
fn parameters_that_fsdp_keeps_in_the_cpus_memory_are_named() {
    let told = |range: &str| {
        let mut scene = Scene::new();
        for at in (0..10).map(|it| it * 4_200_000) {
            scene.range(RangeKind::Nvtx, range, 0, at, at + 20_000);
            scene.call("cudaMemcpyAsync", at + 1_000, at + 5_000);
            scene.copy(Direction::H2D, 1, 160 << 20, at + 6_000, at + 4_006_000);
            scene.call("cudaLaunchKernel", at + 6_000, at + 9_000);
            scene.kernel("gemm", 1, at + 4_006_000, at + 4_100_000);
        }
        let found = sick("copy-bound", &mut scene);
        (found.title, found.change.len())
    };
    // torch/distributed/fsdp: the range in which the parameters of a layer come.
    let (title, changes) = told("FSDP::pre_forward (encoder.block.3.layer.1), op_id = 317020");
    title.must_end("bring FSDP's parameters from the CPU's memory");
    assert_eq!(changes, 1);
    // That in which the batch comes, and any other.
    for other in ["FSDP::root_pre_forward", "forward"] {
        assert_eq!(told(other).1, 0, "{other}");
    }
}

/// A picture comes, is made grey, counted and smoothed, and comes back twice; or the same for so many pictures.
#[test]
fn what_is_launched_once_has_no_batches() {
    let scene = |pictures: i64| {
        let mut scene = Scene::new();
        for at in (0..pictures).map(|it| it * 60_000_000) {
            scene.copy(Direction::H2D, 7, 24 << 20, at, at + 10_000_000);
            scene.kernel("grey", 7, at + 10_000_000, at + 15_000_000);
            scene.copy(Direction::D2H, 7, 8 << 20, at + 15_000_000, at + 20_000_000);
            scene.kernel("count", 7, at + 20_000_000, at + 25_000_000);
            scene.copy(Direction::H2D, 7, 8 << 20, at + 25_000_000, at + 30_000_000);
            scene.kernel("smooth", 7, at + 30_000_000, at + 35_000_000);
            scene.copy(Direction::D2H, 7, 8 << 20, at + 35_000_000, at + 40_000_000);
        }
        scene
    };
    cured("no-overlap", &mut scene(1));
    sick("no-overlap", &mut scene(2));
}

#[test]
fn copying_all_the_while() {
    let scene = |kernel: Ns| {
        let mut scene = Scene::new();
        for i in 0..10 {
            let at = i * (100_000 + kernel);
            scene.copy(Direction::H2D, 1, 4 << 20, at, at + 100_000);
            scene.kernel("k", 1, at + 100_000, at + 100_000 + kernel);
        }
        scene
    };
    let found = sick("copy-bound", &mut scene(2_000));
    assert_eq!((found.count, found.bound_ns), (10, 1_000_000));
    assert!(
        found.title.ends_with("H2D copies take most"),
        "{}",
        found.title
    );
    // Results that take as long, give or take little: none of a tie takes most.
    let mut tie = scene(2_000);
    tie.copy(Direction::D2H, 1, 4 << 20, 1_020_000, 2_030_000);
    let tie = sick("copy-bound", &mut tie).title;
    assert!(
        tie.ends_with("H2D and D2H copies take equally long"),
        "{tie}"
    );
    // With more to compute overlap is what is missing.
    let mut more = scene(50_000);
    assert_eq!(sick("no-overlap", &mut more).rule.name(), "no-overlap");
    cured("copy-bound", &mut scene(50_000));
    // A GPU that is idle for more copies five times as long as it computes, or twice.
    let idle = |kernel: Ns| {
        let mut scene = Scene::new();
        for at in (0..20).map(|i| i * 300_000) {
            scene.copy(Direction::H2D, 1, 4 << 20, at, at + 100_000);
            scene.kernel("k", 1, at + 100_000, at + 100_000 + kernel);
        }
        scene
    };
    let found = sick("copy-bound", &mut idle(20_000));
    assert_eq!(
        (found.severity, found.bound_ns),
        (Severity::Warning, 2_000_000)
    );
    cured("copy-bound", &mut idle(50_000));
    // One batch has nothing to be beside: 100 us of 150 are its copy.
    let mut one = Scene::new();
    one.copy(Direction::H2D, 1, 4 << 20, 0, 100_000);
    one.kernel("k", 1, 100_000, 150_000);
    assert_eq!(sick("copy-bound", &mut one).bound_ns, 100_000);
}

/// Results of 4 MiB, each fetched by a call that waits: of pageable memory that is no matter of syncs.
#[test]
fn what_nobody_writes_between_rounds_may_stay_on_the_gpu() {
    // Twelve rounds: 64 MiB up and down at 10 GB/s, a kernel between, and so long in no call. At 50 GB/s it takes 1.34 ms to write them.
    let advice = |pause: Ns, kernel: &str| {
        let mut scene = Scene::new();
        let mut at = 0;
        for _ in 0..12 {
            for direction in [Direction::H2D, Direction::D2H] {
                let copy = pinned(direction, 1, 64 << 20);
                let memory = MemoryKind::Pageable;
                let copy = match direction {
                    Direction::H2D => Copy {
                        from: memory,
                        ..copy
                    },
                    _ => Copy { to: memory, ..copy },
                };
                let end = at + 6_710_886;
                // PyTorch has no other call for copies.
                let calls = ["cudaMemcpy", "cudaMemcpyAsync"];
                scene.call(calls[usize::from(kernel.contains("at::"))], at, end);
                scene.copy_of(copy, at, end);
                if direction == Direction::H2D {
                    scene.call("cudaLaunchKernel", end + 2_000, end + 6_000);
                    scene.kernel(kernel, 1, end + 8_000, end + 300_000);
                }
                at = end + 10_000;
            }
            at += pause;
        }
        sick("pageable-copy", &mut scene).advice
    };
    let same = "writes no new data between rounds";
    advice(20_000, "add").must_have(same);
    advice(1_400_000, "add").must_lack(same);
    // Another process brings PyTorch its batches.
    advice(20_000, "void at::native::add").must_lack(same);
}

#[test]
fn a_blocking_copy_of_pageable_memory_is_no_sync() {
    let scene = |to| {
        let mut scene = Scene::new();
        for at in (0..20).map(|i| i * 1_000_000) {
            scene.call("cudaLaunchKernel", at, at + 5_000);
            scene.kernel("k", 1, at + 8_000, at + 208_000);
            scene.call("cudaMemcpy", at + 10_000, at + 900_000);
            let copy = Copy {
                to,
                is_async: false,
                ..pinned(Direction::D2H, 1, 4 << 20)
            };
            scene.copy_of(copy, at + 210_000, at + 890_000);
        }
        scene
    };
    cured("sync-in-loop", &mut scene(MemoryKind::Pageable));
    sick("pageable-copy", &mut scene(MemoryKind::Pageable));
    // 19 pauses of 118 us, from the end of a copy to the next kernel.
    let found = sick("sync-in-loop", &mut scene(MemoryKind::Pinned));
    assert_eq!((found.count, found.bound_ns), (19, 19 * 118_000));
}

#[test]
fn copies_of_one_direction_on_two_streams() {
    let scene = |other: Direction| {
        let mut scene = Scene::new();
        for i in 0..20u32 {
            let at = Ns::from(i) * 100_000;
            let direction = if i % 2 == 0 { Direction::H2D } else { other };
            scene
                .call(
                    "cudaMemcpyAsync",
                    Ns::from(i) * 1_000,
                    Ns::from(i) * 1_000 + 900,
                )
                .copy(direction, 1 + i % 2, 4 << 20, at + 50_000, at + 150_000);
        }
        scene
    };
    let found = all_of(&mut scene(Direction::H2D));
    let found = found
        .iter()
        .find(|f| f.rule.name() == "same-direction-streams");
    assert_eq!(found.map(|f| (f.count, f.bound_ns)), Some((19, 0)));
    let cure = all_of(&mut scene(Direction::D2H));
    assert!(
        cure.iter()
            .all(|f| f.rule.name() != "same-direction-streams"),
        "{cure:?}"
    );
    // Those of two processes take turns.
    let mut of_two = scene(Direction::H2D).take();
    let is_second =
        |at: &activity::Activity| matches!(at.what, What::Copy(it) if it.place.stream == 2);
    let mut other = of_two.clone();
    other.process = 1;
    other.items.retain(is_second);
    of_two.items.retain(|it| !is_second(it));
    let mut trace = trace::Trace::default();
    trace.apply(of_two);
    trace.apply(other);
    let found = in_scope(&trace, None, PEAKS, all);
    let none = |f: &Finding| f.rule.name() != "same-direction-streams";
    assert!(found.iter().all(none));
    assert_eq!(figures::testing::whole(&trace)[0].stream_count, 2);
}

/// Rounds of two copies up and two down, on two streams: those down begin behind those up, or beside the second one.
#[test]
fn copies_up_and_down_that_never_overlap_may_have_one_engine() {
    let advice = |beside: Ns| {
        let mut scene = Scene::new();
        for i in 0..20i64 {
            let (call, at) = (i * 4_000, 100_000 + i * 400_000);
            let round = [(Direction::H2D, 0), (Direction::D2H, 200_000 - beside)];
            for (n, (direction, begin)) in (0..).zip(round) {
                for (stream, begin) in [(1, begin), (2, begin + 100_000)] {
                    let call = call + i64::from(n * 2 + stream) * 900;
                    scene.call("cudaMemcpyAsync", call, call + 800);
                    scene.copy(direction, stream, 4 << 20, at + begin, at + begin + 100_000);
                }
            }
        }
        let all = all_of(&mut scene).into_iter();
        let mut found = all.filter(|f| f.rule.name() == "same-direction-streams");
        found.next().expect("one engine").advice
    };
    advice(0).must_have("never overlap here either");
    advice(50_000).must_have("helps kernels and the other direction");
}

#[test]
fn communication_that_nothing_runs_beside() {
    // Steps of a kernel of 70 us and a collective of 30, on a stream of its own, and the same beside each other.
    let beside = |beside: Ns, gemm: Ns| {
        let mut scene = Scene::new();
        for i in 0..10 {
            let at = i * 100_000;
            scene.kernel("gemm", 1, at, at + gemm);
            let from = at + gemm - beside;
            let name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)";
            scene.kernel(name, 2, from, from + 30_000);
        }
        scene
    };
    let scene = |is_beside: bool| beside(if is_beside { 30_000 } else { 0 }, 70_000);
    let found = sick("exposed-communication", &mut scene(false));
    assert_eq!((found.count, found.bound_ns), (10, 300_000));
    let words = "take 300 µs (30 %), mostly ncclDevKernel";
    assert!(found.title.contains(words), "{}", found.title);
    cured("exposed-communication", &mut scene(true));
    // One that takes 2 ms, ten times what all others do, waits for another rank: overlap hides the 20 us that the second
    // longest takes, and those of the other nine.
    let mut late = beside(0, 70_000);
    late.kernel("ncclDevKernel_AllGather_RING_LL", 2, 1_000_000, 3_000_000);
    let found = sick("exposed-communication", &mut late);
    assert_eq!(found.bound_ns, 10 * 30_000 + 30_000);
    // Of exchanges one that takes five times as long as the next waits, too, though it is not half of all.
    let mut exchange = beside(0, 70_000);
    for (i, length) in [80_000, 80_000, 80_000, 400_000].into_iter().enumerate() {
        let at = 1_000_000 + i as Ns * 500_000;
        exchange.kernel("ncclDevKernel_SendRecv", 2, at, at + length);
    }
    let found = sick("exposed-communication", &mut exchange);
    let words = "1 most likely waited for another rank (400 µs)";
    assert!(found.title.contains(words), "{}", found.title);
    // A rank by itself: 30 us of each 100, of which 3 have nothing beside them; and a tenth of that.
    let found = sick("exposed-communication", &mut beside(27_000, 97_000));
    let words = "; 30.0 µs (3 %) of it is not overlapped";
    assert!(found.title.contains(words), "{}", found.title);
    assert!(found.advice.starts_with("Overlap:"), "{}", found.advice);
    cured("exposed-communication", &mut beside(29_700, 99_700));
    // Of 60 us 57 are hidden: nothing is left to be split.
    let mut hidden = Scene::new();
    for at in (0..10).map(|it| it * 100_000) {
        hidden.kernel("gemm", 1, at, at + 97_000);
        hidden.kernel(
            "void deep_ep::internode::dispatch<1>()",
            2,
            at + 40_000,
            at + 100_000,
        );
    }
    let advice = sick("exposed-communication", &mut hidden).advice;
    advice.must_begin("Nearly all of it is hidden already");
    // Beside kernels of 10 us, collectives of 30 can hide no more than these.
    let found = sick("exposed-communication", &mut beside(0, 10_000));
    assert_eq!(found.bound_ns, 10 * 10_000);
    // Where hardly anything else runs there is nothing to hide them behind.
    cured("exposed-communication", &mut beside(0, 200));
}

#[test]
fn pages_that_the_driver_moves() {
    let scene = |stream: u32| {
        let mut scene = Scene::new();
        scene.call("cudaLaunchKernel", 0, 3_000);
        scene.kernel("matmul_naive(float*)", 1, 5_000, 1_005_000);
        scene.without_call();
        for i in 0..100 {
            let at = 10_000 + i * 9_000;
            let direction = if i % 4 == 0 {
                Direction::D2H
            } else {
                Direction::H2D
            };
            scene.copy(direction, stream, 4 << 10, at, at + 2_000);
        }
        scene
    };
    let found = sick("page-migration", &mut scene(activity::Place::NO_STREAM));
    // The kernel waits from its start on until the last page is there. 400 KiB have to be moved in any case, at 55 GB/s in 7.447 us.
    assert_eq!((found.count, found.bound_ns), (100, 898_000 - 7_447));
    let words = "75 times to the GPU and 25 times back: 400 KiB in 200 µs";
    assert!(found.title.contains(words), "{}", found.title);
    // Nobody asked for them, so that nobody can gather them.
    cured("tiny-copies", &mut scene(activity::Place::NO_STREAM));
    cured("page-migration", &mut scene(2));
    // No library multiplies sooner what is not there.
    cured("own-kernels", &mut scene(activity::Place::NO_STREAM));
    sick("own-kernels", &mut scene(2));
    // Nor is anything to be prefetched that was.
    cured("page-migration", &mut scene(activity::Place::PREFETCHED));
    // Without calls on the timeline nothing is said of them.
    let found = sick("tiny-copies", &mut scene(2));
    assert!(!found.title.contains("calls"), "{}", found.title);
}

/// A kernel of 10 ms to which 50 pages of 2 MiB come, while 40 go back: as others need their room, or as the CPU touches them.
#[test]
fn pages_that_make_room_for_others_need_less_memory_and_no_prefetch() {
    let of = |stream: u32| {
        let mut scene = Scene::new();
        scene.call("cudaLaunchKernel", 0, 3_000);
        scene.kernel("k", 1, 5_000, 10_005_000);
        scene.without_call();
        for i in 0..50 {
            let at = 10_000 + i * 190_000;
            if i < 40 {
                scene.copy(Direction::D2H, stream, 2 << 20, at, at + 80_000);
            }
            let from = at + 90_000;
            scene.copy(
                Direction::H2D,
                activity::Place::NO_STREAM,
                2 << 20,
                from,
                from + 80_000,
            );
        }
        sick("page-migration", &mut scene)
    };
    let evicted = of(activity::Place::EVICTED);
    let told = "50 times to the GPU and 40 times back: 180 MiB in 7.20 ms, 80 MiB of it evicted to make room";
    evicted.title.must_have(told);
    evicted
        .advice
        .must_begin("The card is too small for all of it");
    let touched = of(activity::Place::NO_STREAM);
    assert!(!touched.title.contains("evicted"), "{}", touched.title);
    touched.advice.must_begin("Prefetch it");
    assert_eq!(evicted.bound_ns, touched.bound_ns);
}

#[test]
fn what_page_faults_cost_is_told_apart_from_what_the_cpu_does_with_pages() {
    // Twenty pages of 4 and 64 KiB by turns come back. The CPU is at work on each for 2 ns a byte, and a fault takes 50 us.
    let scene = |fault: Ns| {
        let mut scene = Scene::new();
        scene.call("cudaLaunchKernel", 0, 3_000);
        scene.kernel("k", 1, 5_000, 105_000);
        scene.without_call();
        let mut at = 200_000;
        for bytes in [4096, 65_536].repeat(10) {
            scene.copy(
                Direction::D2H,
                activity::Place::NO_STREAM,
                bytes,
                at,
                at + 5_000,
            );
            at += 5_000 + fault + 2 * bytes as Ns;
        }
        scene
    };
    // 10 * (4,096 + 65,536) bytes take 12.66 us at 55 GB/s; 19 pauses lie between two pages.
    let found = sick("page-migration", &mut scene(50_000));
    let off = found.bound_ns - (20 * 5_000 - 12_660 + 19 * 50_000);
    assert!(off.abs() < 20, "{found:?}");
    found
        .title
        .must_have("about 950 µs for the CPU's page faults");
}

/// Twenty launches of one kernel: the first ten take 5 ms, with a page of 2 us coming in the middle, and the others so long without.
#[test]
fn what_kernels_wait_for_pages_is_known_from_those_without() {
    let title = |free: Ns| {
        let (mut scene, mut at) = (Scene::new(), 0);
        for i in 0..20 {
            let took = if i < 10 { 5_000_000 } else { free };
            scene.call("cudaLaunchKernel", at, at + 3_000);
            scene.kernel("k", 1, at + 5_000, at + 5_000 + took);
            if i < 10 {
                let (stream, page) = (activity::Place::NO_STREAM, at + 2_500_000);
                scene.without_call();
                scene.copy(Direction::H2D, stream, 64 << 10, page, page + 2_000);
            }
            at += took + 10_000;
        }
        sick("page-migration", &mut scene).title
    };
    title(500_000).must_have("and about 45.0 ms in which kernels wait for pages");
    // They take as long without: 50 us before each page, and 500 before the first, is what nobody knows better.
    title(5_000_000).must_have("and about 5.00 ms in which kernels wait for pages");
}

#[test]
fn pages_that_the_cpu_draws_back_are_told() {
    // 64 MiB are prefetched before or behind the CPU's access to them, and the kernel has them come page by page where that was
    // before. Half of the time goes to the CPU's work on 16 pages.
    let scene = |is_before: bool, works: Ns| {
        let mut scene = Scene::new();
        let prefetch = |scene: &mut Scene, at| {
            let stream = activity::Place::PREFETCHED;
            scene.copy(Direction::H2D, stream, 64 << 20, at, at + 2_000_000);
        };
        let page = |scene: &mut Scene, way, at| {
            scene.copy(way, activity::Place::NO_STREAM, 4 << 20, at, at + 100_000);
        };
        scene.call("cudaMemPrefetchAsync", -9_000, -1_000);
        scene.without_call();
        if is_before {
            prefetch(&mut scene, 0);
        }
        let mut at = 2_000_000;
        for _ in 0..16 {
            page(&mut scene, Direction::D2H, at);
            at += 100_000 + works;
        }
        if !is_before {
            prefetch(&mut scene, at);
        }
        at += 2_000_000;
        scene.call("cudaLaunchKernel", at, at + 4_000);
        scene.kernel("k", 1, at + 5_000, at + 10_005_000);
        scene.without_call();
        for i in 0..16 {
            page(&mut scene, Direction::H2D, at + 10_000 + i * 200_000);
        }
        sick("page-migration", &mut scene)
    };
    let found = scene(true, 1_000_000);
    found.advice.must_have("drew 64 MiB back");
    let told = "while the CPU touches it";
    assert!(found.title.contains(told), "{}", found.title);
    let found = scene(false, 10_000);
    assert!(!found.advice.contains("drew"), "{}", found.advice);
    assert!(!found.title.contains(told), "{}", found.title);
}

#[test]
fn uploads_that_end_before_the_first_kernel_are_moved_once_and_waited_for_by_no_loop() {
    // Twenty weights, each staged and waited for, before kernels of twenty kinds; or half of them behind the first.
    let scene = |before: usize| {
        let (mut scene, mut at) = (Scene::new(), 0);
        let copy = Copy {
            from: MemoryKind::Pageable,
            ..pinned(Direction::H2D, 1, 16 << 20)
        };
        let kernel = |scene: &mut Scene, name: usize, at: Ns| {
            scene.call("cudaLaunchKernel", at, at + 4_000);
            scene.kernel(
                &format!("void at::native::k{name}"),
                1,
                at + 5_000,
                at + 900_000,
            );
            at + 900_000
        };
        for i in 0..20 {
            if i == before {
                at = kernel(&mut scene, 0, at);
            }
            scene.call("cudaMemcpyAsync", at, at + 4_000_000);
            let end = large(&mut scene, copy, at + 10_000, 4.0);
            scene.call("cudaStreamSynchronize", at + 4_001_000, end + 5_000);
            at = end + 700_000;
        }
        for i in 1..21 {
            at = kernel(&mut scene, i, at);
        }
        scene
    };
    let advice = |before| sick("pageable-copy", &mut scene(before)).advice;
    assert!(advice(20).starts_with("The program moves this once"));
    assert!(advice(1).starts_with("Pin"));
    cured("sync-in-loop", &mut scene(20));
}

#[test]
fn what_pytorch_moves_once_is_not_worth_pinning() {
    // 256 MiB of weights before the work, or as much in the middle of it.
    let advice = |is_first: bool, op: &str| {
        let mut scene = Scene::new();
        let copy = Copy {
            from: MemoryKind::Pageable,
            ..pinned(Direction::H2D, 1, 256 << 20)
        };
        let mut at = 0;
        for i in 0..20 {
            if i == if is_first { 0 } else { 10 } {
                scene.call("cudaMemcpyAsync", at, at + 80_000_000);
                at = large(&mut scene, copy, at, 4.0);
            }
            scene.range(RangeKind::CpuOp, op, 0, at, at + 5_000);
            scene.call("cudaLaunchKernel", at, at + 4_000);
            scene.kernel("k", 1, at + 5_000, at + 10_000_000);
            at += 10_000_000;
        }
        let found = sick("pageable-copy", &mut scene);
        (found.advice, found.change[0].to_string())
    };
    let (said, change) = advice(true, "aten::mm");
    assert!(said.starts_with("The program moves this once"), "{said}");
    assert!(change.starts_with("torch.device"), "{change}");
    for (is_first, op) in [(false, "aten::mm"), (true, "solve")] {
        let (said, _) = advice(is_first, op);
        assert!(said.starts_with("Pin the host memory"), "{said}");
    }
}

/// 256 MiB come before twenty kernels. A range takes 1 s before them; all is of training, or of inference.
#[test]
fn a_batch_is_no_data_to_make_on_the_gpu() {
    let advice = |range: &str, op: &str, arrays: Ns| {
        let mut scene = Scene::new();
        let copy = Copy {
            from: MemoryKind::Pageable,
            ..pinned(Direction::H2D, 1, (256 << 20) / arrays as u64)
        };
        scene.range(RangeKind::Nvtx, range, 0, -1_100_000_000, -100_000_000);
        let mut at = 0;
        for _ in 0..arrays {
            scene.call("cudaMemcpyAsync", at, at + 80_000_000 / arrays);
            at = large(&mut scene, copy, at, 4.0);
        }
        for _ in 0..20 {
            scene.range(RangeKind::CpuOp, op, 0, at, at + 5_000);
            scene.range(RangeKind::CpuOp, "aten::mm", 0, at, at + 4_000);
            scene.call("cudaLaunchKernel", at, at + 4_000);
            scene.kernel("k", 1, at + 5_000, at + 10_000_000);
            at += 10_000_000;
        }
        sick("pageable-copy", &mut scene).advice
    };
    let loader = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__";
    let backward = "autograd::engine::evaluate_function: MmBackward0";
    for (range, op, arrays) in [(loader, "aten::mm", 1), ("start", backward, 1)] {
        advice(range, op, arrays).must_begin("Pin the host memory");
    }
    // A model has many arrays, and what the program draws it may draw there.
    for (range, op, arrays) in [
        ("start", "aten::mm", 1),
        ("start", backward, 8),
        ("aten::randn", backward, 1),
    ] {
        advice(range, op, arrays).must_begin("The program moves this once");
    }
}

/// Rounds on two GPUs: each gets 8 MiB, works, and sends as much. In an `exchange` the first round has no copies up: what comes
/// later was sent before. In a `line` the second GPU gets what the first has sent, and sends nothing.
fn slices(exchange: bool, line: bool) -> Scene {
    let mut scene = Scene::new();
    let copy = |direction, id| {
        let mut copy = pinned(direction, 7, 8 << 20);
        copy.place.device = id;
        copy.place.context = id + 1;
        copy
    };
    for id in 0..2 {
        scene.device(DeviceInfo { id, ..h200() });
    }
    for round in 0..20 {
        for id in 0..2 {
            let at = round * 20_000_000 + i64::from(id) * 100_000;
            let is_last = line && id == 1;
            let up = at + if is_last { 9_000_000 } else { 10_000 };
            if round > 0 || !exchange {
                scene.call("cudaMemcpyAsync", at, at + 4_000);
                scene.copy_of(copy(Direction::H2D, id), up, up + 1_000_000);
            }
            if !is_last {
                scene.call("cudaMemcpyAsync", at + 5_000, at + 9_000);
                scene.copy_of(copy(Direction::D2H, id), at + 8_000_000, at + 9_000_000);
            }
        }
    }
    scene
}

#[test]
fn slices_of_equal_size_do_not_go_from_gpu_to_gpu() {
    cured("through-host", &mut slices(false, false));
    sick("through-host", &mut slices(true, false));
    sick("through-host", &mut slices(false, true));
}

/// Rounds of an upload of 24 bytes, which the CPU waits for or not, and so many kernels of 2 us, one every 20 us.
fn uploads(is_waited: bool, kernels: i64) -> Scene {
    let mut scene = Scene::new();
    for at in (0..100).map(|it| it * 20_000 * kernels) {
        scene.call("cudaMemcpyToSymbol", at, at + 3_000);
        scene.copy(Direction::H2D, 1, 24, at + 4_000, at + 5_500);
        if is_waited {
            scene.call("cudaStreamSynchronize", at + 3_100, at + 6_000);
        }
        for kernel in 0..kernels {
            let at = at + 7_000 + kernel * 20_000;
            scene.call("cudaLaunchKernel", at, at + 3_000);
            scene.kernel("k", 1, at + 4_000, at + 6_000);
        }
    }
    scene
}

#[test]
fn little_that_is_uploaded_before_every_kernel_is_what_bounds() {
    let found = sick("tiny-copies", &mut uploads(true, 1));
    let told = "24 B are uploaded before every kernel";
    let title = format!("{told}, by cudaMemcpyToSymbol");
    assert!(found.title.starts_with(&title), "{}", found.title);
    let says = found.says.expect("a headline");
    assert_eq!((says.bound, says.why.as_str()), (Bound::Sync, told));
    cured("launch-bound", &mut uploads(true, 1));
    // What is not waited for, and what stands before many kernels, is no more than copies.
    let says = |scene: &mut Scene| {
        let found = all_of(scene).into_iter();
        let mut found = found.filter(|it| it.rule.name() == "tiny-copies");
        found.next().and_then(|it| it.says)
    };
    assert_eq!(says(&mut uploads(false, 1)), None);
    assert_eq!(says(&mut uploads(true, 8)), None);
}

#[test]
fn gradients_that_go_back_to_the_cpu_are_not_pinned() {
    // Each 20 ms a kernel of 10, then 16 MiB come back in 5, and the CPU adds them.
    let scene = |op: &str| {
        let mut scene = Scene::new();
        for at in (0..4).map(|it| it * 20_000_000) {
            scene.call("cudaLaunchKernel", at - 10_000, at - 5_000);
            scene.kernel("k", 1, at, at + 10_000_000);
            let copied = at + 15_000_000;
            scene.range(RangeKind::CpuOp, op, 0, at, copied + 1_000);
            scene.call("cudaMemcpyAsync", at + 1_000, copied);
            let copy = Copy {
                to: MemoryKind::Pageable,
                ..pinned(Direction::D2H, 1, 16 << 20)
            };
            scene.copy_of(copy, at + 10_000_000, copied);
        }
        scene
    };
    let found = sick("round-trips", &mut scene("ToCopyBackward0"));
    let said = "4 gradients go back to tensors on the CPU: 64 MiB in 20.0 ms, and the GPU is idle for 15.0 ms behind them";
    assert_eq!(found.title, said);
    assert!((35_000_000 - found.bound_ns).abs() < 50_000, "{found:?}");
    for silent in ["pageable-copy", "no-overlap"] {
        cured(silent, &mut scene("ToCopyBackward0"));
        sick(silent, &mut scene("aten::to"));
    }
    cured("round-trips", &mut scene("aten::to"));
}

#[test]
fn gpus_that_work_one_after_another_could_work_together() {
    // Each gets 100 MB in 10 ms and computes for 10; the next one begins so long after that. What one brings back the next may need.
    let scene = |next: Ns, brings: bool| {
        let mut scene = Scene::new();
        for device in 0..3 {
            let at = Ns::from(device) * next;
            let of = |copy: Copy| Copy {
                place: activity::Place {
                    device,
                    ..copy.place
                },
                peer: device,
                ..copy
            };
            let up = of(pinned(Direction::H2D, 1, 100_000_000));
            scene.copy_of(up, at, at + 10_000_000);
            let way = if brings {
                Direction::D2H
            } else {
                Direction::H2D
            };
            let last = of(pinned(way, 1, 1_000_000));
            scene.copy_of(last, at + 10_000_000, at + 20_000_000);
        }
        scene
    };
    let found = sick("idle-gpu", &mut scene(21_000_000, false));
    assert_eq!(found.bound_ns, 42_000_000);
    let told = "3 GPUs work one after another: each for 20.0 ms of 62.0 ms";
    assert_eq!(found.title, told);
    cured("idle-gpu", &mut scene(21_000_000, true));
    cured("idle-gpu", &mut scene(1_000_000, false));
}

/// Ten rounds of 900 us of a kernel and of 8 MiB that are copied within the GPU in so many microseconds.
#[test]
fn copies_within_a_gpu_that_take_a_tenth_of_the_time() {
    let of = |micros: Ns| {
        let mut scene = Scene::new();
        for i in 0..10 {
            let at = i * (900 + micros).max(1_000) * 1000;
            scene.kernel("stencil", 1, at, at + 900_000);
            scene.copy(
                Direction::D2D,
                1,
                8 << 20,
                at + 900_000,
                at + 900_000 + micros * 1000,
            );
        }
        scene
    };
    let found = sick("device-copies", &mut of(100));
    assert_eq!(
        (found.severity, found.bound_ns),
        (Severity::Info, 1_000_000)
    );
    // 80 MiB in a millisecond.
    found
        .title
        .must_begin("10 copies within the GPU move 80 MiB at 83.9 GB/s: 1.00 ms (10 %)");
    assert_eq!(
        found.change[0].to_string(),
        "pointers: swapped in place of cudaMemcpyDeviceToDevice"
    );
    cured("device-copies", &mut of(80));
    // What takes more than all else is worth a warning.
    let most = sick("device-copies", &mut of(1_000));
    assert_eq!(most.severity, Severity::Warning);
    let gain = most.gain(0.0);
    assert_eq!(
        gain.as_deref(),
        Some("up to 10.0 ms from swapping pointers")
    );
}

/// A hundred copies of so many bytes within the GPU, of 2 us each, and each 8 us behind the call before it; then a kernel of 9 ms.
#[test]
fn tiny_copies_within_the_gpu_are_told_with_their_calls() {
    let of = |bytes: u64, number: Ns| {
        let mut scene = Scene::new();
        for at in (0..number).map(|i| i * 10_000) {
            scene.call("cudaMemcpy", at, at + 5_000);
            scene.copy(Direction::D2D, 1, bytes, at + 8_000, at + 10_000);
        }
        let at = number * 10_000;
        scene.call("cudaLaunchKernel", at, at + 5_000);
        scene.kernel("k", 1, at + 8_000, at + 9_000_000);
        scene
    };
    let found = sick("device-copies", &mut of(16, 200));
    // Of the first the pause is not known.
    assert_eq!(found.bound_ns, 200 * 2_000 + 199 * 8_000);
    found.title.must_have("(18 %) with the pauses before them");
    assert_eq!(found.severity, Severity::Warning);
    // Few of them, or large ones that take as little, are no such thing.
    cured("device-copies", &mut of(16, 60));
    cured("device-copies", &mut of(1 << 20, 200));
}

/// Rounds of a kernel, a copy back, a call between or around, and a copy up; the CPU works for `own` behind that call.
fn exchange(name: &str, bytes: u64, around: bool, own: Ns) -> Scene {
    let mut scene = Scene::new();
    for at in (0..40).map(|i| i * (61_000 + own)) {
        scene.call("cudaLaunchKernel", at, at + 3_000);
        scene.kernel("stencil", 1, at + 5_000, at + 25_000);
        scene.call("cudaMemcpyAsync", at + 10_000, at + 13_000);
        scene.copy(Direction::D2H, 1, bytes, at + 26_000, at + 28_000);
        scene.call("cudaStreamSynchronize", at + 14_000, at + 30_000);
        let up = at + own + 52_000;
        let (from, to) = match around {
            true => (at + 9_000, up + 8_500),
            false => (at + 31_000, at + 51_000),
        };
        scene.range(RangeKind::CpuOp, name, 0, from, to);
        scene.call("cudaMemcpyAsync", up, up + 3_000);
        scene.copy(Direction::H2D, 1, bytes, up + 4_000, up + 6_000);
        scene.call("cudaStreamSynchronize", up + 3_500, up + 8_000);
    }
    scene
}

#[test]
fn data_that_mpi_sends_through_the_host() {
    for around in [false, true] {
        let found = sick(
            "host-exchange",
            &mut exchange("MPI_Sendrecv", 8192, around, 0),
        );
        // From its call to the end of the wait for the copy up a round takes 50 us, of which the kernel runs for 15. The last copy ends
        // 2 us before that.
        assert_eq!((found.count, found.bound_ns), (40, 40 * 35_000 - 2_000));
        found.title.must_begin("processes exchange data through the host's memory, by MPI_Sendrecv: 40 copies of 8 KiB back, and as many up");
        let is_given = found
            .advice
            .starts_with("MPI was given pointers of the GPU");
        assert_eq!(is_given, around, "{}", found.advice);
        for rule in ["sync-in-loop", "tiny-copies", "no-overlap"] {
            cured(rule, &mut exchange("MPI_Sendrecv", 8192, around, 0));
        }
    }
    // Values that the CPU looks at, results that it works on, and a barrier are no exchange.
    for (name, bytes, own) in [
        ("MPI_Allreduce", 8, 0),
        ("MPI_Sendrecv", 8192, 120_000),
        ("MPI_Barrier", 8192, 0),
    ] {
        cured("host-exchange", &mut exchange(name, bytes, false, own));
        sick("tiny-copies", &mut exchange(name, bytes, false, own));
    }
    sick("sync-in-loop", &mut exchange("MPI_Barrier", 8192, false, 0));
}

/// Kernels of 1.6 ms, gaps of so long among them, and 16 MiB that are copied back at 4 GB/s.
fn beside_gaps(gaps: &[Ns]) -> Vec<Finding> {
    let (mut scene, mut at) = (Scene::new(), 0);
    for i in 0..16 {
        if i % 5 == 4 {
            at += gaps.get(i / 5).copied().unwrap_or_default();
        }
        scene.call("cudaLaunchKernel", at, at + 5_000);
        scene.kernel("k", 1, at + 7_000, at + 107_000);
        at += 108_000;
    }
    let back = Copy {
        to: MemoryKind::Pageable,
        ..pinned(Direction::D2H, 1, 16 << 20)
    };
    scene.call("cudaMemcpy", at, at + 4_300_000);
    large(&mut scene, back, at + 5_000, 4.0);
    all_of(&mut scene)
}

#[test]
fn beside_one_long_gap_other_findings_are_told_as_remarks() {
    let told = |gaps: &[Ns]| {
        let mut found = beside_gaps(gaps).into_iter();
        found.find(|it| it.rule == Rule::PageableCopy)
    };
    let it = told(&[1_000_000_000]).expect("pageable-copy");
    it.title
        .must_begin("beside that gap: 1 D2H copy of pageable memory runs at 4.00 GB/s");
    assert_eq!((it.severity, it.says), (Severity::Info, None));
    // Several gaps are what bounds the program; without any the copy is told as ever.
    assert_eq!(told(&[400_000_000; 3]), None);
    let ever = told(&[]).expect("pageable-copy");
    ever.title.must_begin("1 D2H copy");
}

#[test]
fn a_thread_that_takes_results_holds_nothing_up() {
    // Forty kernels of 0.1 ms, of which each `nth` is launched 20 us late. Another thread waits for each of them.
    let scene = |nth: i64| {
        let (mut scene, mut at) = (Scene::new(), 0);
        for i in 0..40 {
            let call = at + if i % nth == 0 { 1_000 } else { -60_000 };
            scene
                .on_thread(0)
                .call("cudaLaunchKernel", call, call + 5_000);
            scene.kernel("k", 1, at + 10_000, at + 110_000);
            scene.on_thread(1);
            scene.call("cudaEventSynchronize", at + 30_000, at + 115_000);
            scene.call("cudaEventDestroy", at + 115_500, at + 116_500);
            at += if (i + 1) % nth == 0 { 140_000 } else { 100_000 };
        }
        scene
    };
    cured("sync-in-loop", &mut scene(4));
    sick("sync-in-loop", &mut scene(1));
}

/// Ten rounds: an upload of pageable memory, a kernel on a stream of the round's own, and small copies beside it or the large one.
fn rounds(size: impl Fn(Ns) -> u64, own: bool) -> Scene {
    let mut scene = Scene::new();
    for i in 0..10 {
        let (at, stream) = (i * 40_000_000, 20 + i as u32);
        let upload = Copy {
            from: MemoryKind::Pageable,
            ..pinned(Direction::H2D, if own { stream } else { 7 }, size(i))
        };
        scene.call("cudaMemcpy", at, at + 10_000_000);
        scene.copy_of(upload, at + 10_000, at + 9_990_000);
        scene.call("cudaMemcpyAsync", at + 10_005_000, at + 10_010_000);
        scene.copy(
            Direction::H2D,
            stream,
            16 << 10,
            at + 10_012_000,
            at + 10_020_000,
        );
        scene.call("cudaLaunchKernel", at + 10_012_000, at + 10_016_000);
        scene.kernel("k", stream, at + 10_021_000, at + 20_000_000);
        scene.call("cudaMemcpyAsync", at + 10_017_000, at + 10_020_000);
        scene.copy(
            Direction::D2H,
            stream,
            16 << 10,
            at + 20_001_000,
            at + 20_010_000,
        );
        scene.call("cudaStreamSynchronize", at + 10_021_000, at + 20_020_000);
    }
    scene
}

#[test]
fn streams_that_bring_little_have_no_batches() {
    let advice = |own| sick("no-overlap", &mut rounds(|_| 100 << 20, own)).advice;
    assert!(advice(true).starts_with("Each stream has a batch"));
    assert!(advice(false).starts_with("Cut the work"));
}

#[test]
fn what_comes_again_by_as_many_bytes_may_stay_on_the_gpu() {
    let stays = "what of them stays the same, keep on the GPU";
    let same = sick("pageable-copy", &mut rounds(|_| 100 << 20, false)).advice;
    assert!(same.contains(stays), "{same}");
    let other = |i| (100 + 10 * i as u64) << 20;
    let grows = sick("pageable-copy", &mut rounds(other, false)).advice;
    assert!(!grows.contains(stays), "{grows}");
}

/// Ten kernels of 1 ms, half of each beside a copy of 1 ms in a range of this name.
#[test]
fn tensors_that_tensorflow_swaps_are_told_though_some_of_it_is_hidden() {
    let scene = |name: &str, copy: Ns| {
        let mut scene = Scene::new();
        for at in (0..10).map(|i| i * 1_500_000) {
            scene.range(RangeKind::CpuOp, name, 0, at, at + 1_000);
            scene.kernel("Conv2D", 1, at, at + 1_000_000);
            scene.copy(Direction::D2H, 2, 0, at + 500_000, at + 500_000 + copy);
        }
        scene
    };
    let found = sick("copy-bound", &mut scene("_CopyFromGpuToHost", 1_000_000));
    // Half a millisecond of each lies alone: a third of the time.
    assert_eq!(found.bound_ns, 5_000_000);
    let says = found.says.expect("a headline");
    assert_eq!(says.why, "33 % goes to copies that swap tensors");
    // Other copies, and what kernels hide for nearly all of it.
    cured("copy-bound", &mut scene("other", 1_000_000));
    cured("copy-bound", &mut scene("_CopyFromGpuToHost", 550_000));
}
