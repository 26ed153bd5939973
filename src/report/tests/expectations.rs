//! Expectations against runs written down by hand.

use super::*;

fn check_one(figure: Figure, compare: Compare, value: f64) -> Checked {
    let variants = vec![variant("slow", None), variant("fast", None)];
    let plan = plan(variants, vec![expectation("fast", figure, compare, value)]);
    let report = Report::new(&scene().trace(), Some(&plan), known(PEAKS));
    report.expectations.expect("a run")[0].clone()
}

/// A GPU twice as fast as the scene's kernel is at memory, and four times at arithmetic, with a link of 62.5 GB/s.
const PEAKS: Peaks = Peaks {
    h2d: Some(62.5),
    d2h: None,
    d2d: None,
    p2p: None,
    memory: Some(8.0),
    flops: Some(4e10),
};

#[test]
fn a_share_of_a_peak_that_nobody_knows_is_neither_held_nor_failed() {
    let figure = Figure::new(Kind::PeakShare, "add");
    let expected = expectation("fast", figure, Compare::AtLeast, 0.4);
    let variants = vec![variant("slow", None), variant("fast", None)];
    let plan = plan(variants, vec![expected]);
    let trace = scene().trace();
    let report = Report::new(&trace, Some(&plan), KnownGpus::default());
    let found = &report.expectations.as_ref().expect("a run")[0];
    assert!(!found.ok && found.not_judged && found.measured.is_none());
    assert!(report.is_as_expected() && !report.is_judged());
    let text = text::render(&report, &text::Options::default());
    assert!(
        text.contains("not judged") && text.contains("cuptop calibrate"),
        "{text}"
    );
    assert!(Report::new(&trace, Some(&plan), known(PEAKS)).is_judged());
}

#[test]
fn every_figure_is_measured() {
    let rate = 2.0 * 400.0 / 200.0;
    let cases = [
        (Figure::new(Kind::SpeedupOver, "slow"), 4.0),
        (Figure::new(Kind::WallSpeedupOver, "slow"), 1.0),
        (Figure::new(Kind::Overlap, ""), 0.5),
        (Figure::new(Kind::Idle, ""), (250.0 - 55.0 - 150.0) / 250.0),
        (Figure::new(Kind::Makespan, ""), 250.0),
        (Figure::new(Kind::Wall, ""), 1600.0),
        (Figure::new(Kind::H2dGbps, ""), 50.0),
        (Figure::new(Kind::H2dShare, ""), 0.8),
        (Figure::new(Kind::KernelGbps, "add"), rate),
        (Figure::new(Kind::KernelFlops, "add"), 1e10),
        (Figure::new(Kind::PeakShare, "add"), rate / 8.0),
        (Figure::new(Kind::PeakMemory, ""), 4096.0),
        (Figure::new(Kind::Phase, "load"), 60.0),
        (Figure::new(Kind::Ops, ""), 3.0),
        (Figure::new(Kind::Kernels, ""), 2.0),
    ];
    for (figure, value) in cases {
        let name = format!("{figure:?}");
        let found = check_one(figure.clone(), Compare::AtLeast, value - 1e-9);
        assert!(found.ok, "{name}: {found:?}");
        assert!(
            (found.measured.expect("measured") - value).abs() < 1e-9,
            "{name}"
        );
        assert!(
            !check_one(figure, Compare::Above, value + 1e-3).ok,
            "{name}"
        );
    }
}

#[test]
fn what_cannot_be_measured_fails_and_says_why() {
    let cases = [
        (
            Figure::new(Kind::SpeedupOver, "other"),
            "`other` was not run",
        ),
        (Figure::new(Kind::D2hGbps, ""), "nothing was copied D2H"),
        (Figure::new(Kind::KernelGbps, "sub"), "no kernel `sub`"),
        (
            Figure::new(Kind::Phase, "save"),
            "no phase `save` was recorded",
        ),
    ];
    for (figure, why) in cases {
        let found = check_one(figure, Compare::AtLeast, 0.0);
        assert!(!found.ok && found.measured.is_none());
        assert_eq!(found.why.as_deref(), Some(why));
    }
    let missing = vec![expectation(
        "third",
        Figure::new(Kind::Ops, ""),
        Compare::AtLeast,
        0.0,
    )];
    let report = Report::new(
        &scene().trace(),
        Some(&plan(vec![], missing)),
        KnownGpus::default(),
    );
    assert!(!report.is_as_expected());
}

#[test]
fn a_kernel_that_was_recorded_too_few_times_has_no_rate() {
    let mut fast = variant("fast", None);
    fast.ops.push(fast.ops[0]);
    let e = expectation(
        "fast",
        Figure::new(Kind::KernelGbps, "add"),
        Compare::AtLeast,
        0.0,
    );
    let plan = plan(vec![variant("slow", None), fast], vec![e]);
    let report = Report::new(&scene().trace(), Some(&plan), KnownGpus::default());
    assert_eq!(
        report.expectations.expect("a run")[0].why.as_deref(),
        Some("3 launches of `add` were planned and 2 recorded")
    );
}

#[test]
fn kernels_that_share_an_entry_point_are_told_apart_by_their_configuration() {
    let mut fast = variant("fast", None);
    fast.kernels.push(kernel("add_wide", "add_kernel"));
    fast.launches.push(launch(1, 9));
    fast.ops.push(op(OpKind::Launch {
        launch: 1,
        stream: 0,
    }));
    let mut scene = scene();
    let wide = LaunchShape {
        grid: [9, 1, 1],
        ..shape()
    };
    scene.shaped(wide, "add_kernel", 1, 3260, 3280);
    let rates = |name: &str, launches: Vec<LaunchSpec>, scene: &mut Scene| {
        let e = expectation(
            "fast",
            Figure::new(Kind::KernelGbps, name),
            Compare::AtLeast,
            0.0,
        );
        let fast = VariantPlan {
            launches,
            ..fast.clone()
        };
        let plan = plan(vec![variant("slow", None), fast], vec![e]);
        let report = Report::new(&scene.trace(), Some(&plan), KnownGpus::default());
        report.expectations.expect("a run")[0].clone()
    };
    let batch = scene.take();
    let again = || {
        let mut scene = Scene::new();
        scene.put(batch.clone());
        scene
    };
    let found = rates("add_wide", fast.launches.clone(), &mut again());
    assert_eq!(found.measured, Some(20.0));
    let found = rates("add", fast.launches.clone(), &mut again());
    assert_eq!(found.measured, Some(4.0));
    // Launched alike, nothing tells them apart.
    let alike = vec![launch(0, 4), launch(1, 4)];
    assert!(rates("add", alike, &mut again()).why.is_some());
}

#[test]
fn at_every_point_of_a_sweep_means_at_the_worst() {
    let mut scene = Scene::new();
    for (i, busy) in [400, 100, 300].into_iter().enumerate() {
        let at = 1000 * i as Ns;
        scene.range(RangeKind::Variant, "v", i as u32, at, at + 900);
        scene.range(RangeKind::Repeat, "v", 0, at, at + 800);
        scene.kernel("k", 1, at, at + busy);
    }
    let variants = [10, 20, 30].map(|p| variant("v", Some(p))).to_vec();
    let mut at_20 = expectation("v", Figure::new(Kind::Makespan, ""), Compare::AtMost, 350.0);
    at_20.point = Some(20);
    let everywhere = expectation("v", Figure::new(Kind::Makespan, ""), Compare::AtMost, 350.0);
    let report = Report::new(
        &scene.trace(),
        Some(&plan(variants, vec![at_20, everywhere])),
        KnownGpus::default(),
    );
    let found = report.expectations.expect("a run");
    assert_eq!(
        (found[0].ok, found[0].measured, found[0].point),
        (true, Some(100.0), Some(20))
    );
    assert_eq!(
        (found[1].ok, found[1].measured, found[1].point),
        (false, Some(400.0), Some(10))
    );
    let points: Vec<_> = report
        .variants
        .expect("a run")
        .iter()
        .map(|v| v.figures.variant.point)
        .collect();
    assert_eq!(points, [Some(10), Some(20), Some(30)]);
}
