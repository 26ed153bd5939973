use super::*;
use crate::shapes::ShapeRow;
use activity::{Hardware, LaunchShape, Reading};
use trace::testing::{Scene, h200};

const UUID: [u8; 16] = [9; 16];

/// Numbers that look like chance, the same every time.
struct Chance(u64);

impl Chance {
    /// 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / (1u64 << 31) as f64
    }

    fn between(&mut self, least: i64, most: i64) -> i64 {
        least + (self.next() * (most - least) as f64) as i64
    }
}

/// A made program: kernels one after the other with a known DRAM share each, and samples at equal distances, each the mean of
/// what ran in it and some noise.
struct Made {
    scene: Scene,
    spans: Vec<(Span, f64)>,
    at: Ns,
}

impl Made {
    fn new() -> Made {
        let mut scene = Scene::new();
        scene.device(activity::DeviceInfo {
            uuid: Some(UUID),
            ..h200()
        });
        Made {
            scene,
            spans: Vec::new(),
            at: 0,
        }
    }

    fn kernel(&mut self, name: &str, length: Ns, dram: f64) {
        let shape = LaunchShape {
            grid: [1024, 1, 1],
            block: [256, 1, 1],
            ..LaunchShape::default()
        };
        let span = Span::new(self.at, self.at + length);
        self.scene.shaped(shape, name, 7, span.start, span.end);
        self.spans.push((span, dram));
        self.at = span.end;
    }

    fn idle(&mut self, length: Ns) {
        self.at += length;
    }

    fn trace(mut self, length: Ns, noise: f64) -> Trace {
        let mut chance = Chance(7);
        let mut samples = Vec::new();
        let mut first = 0;
        for start in (0..self.at).step_by(length as usize) {
            let span = Span::new(start, start + length);
            while self.spans.get(first).is_some_and(|it| it.0.end <= start) {
                first += 1;
            }
            let inside = self.spans[first..]
                .iter()
                .take_while(|it| it.0.start < span.end);
            let dram: f64 = inside
                .map(|it| it.1 * it.0.intersect(span).len() as f64 / length as f64)
                .sum();
            let value = dram + noise * (chance.next() - 0.5);
            samples.push(Hardware::Sample(Reading {
                uuid: UUID,
                span,
                values: vec![
                    (Metric::Dram, value),
                    (Metric::DramRead, value * 4e12),
                    (Metric::DramWrite, 0.0),
                ],
                reasons: 0,
            }));
        }
        let mut batch = self.scene.take();
        batch.hardware = samples;
        self.scene.put(batch);
        self.scene.trace()
    }
}

/// What is told of the kernel of this name.
fn told(trace: &Trace, name: &str) -> Counted {
    let found = find(trace, None);
    let is_it = |id: ShapeId| trace.names().full(trace.shape(id).name) == name;
    let it = found
        .iter()
        .find(|(key, _)| is_it(key.0))
        .expect("told apart");
    *it.1
}

/// Counters and clocks are not read at once: what fills a sample but for a gap may have all of it.
#[test]
fn a_share_is_no_more_than_the_whole() {
    let mut made = Made::new();
    for _ in 0..40 {
        made.kernel("gemm", 199_000, 1.005);
        made.idle(1_000);
    }
    let dram = told(&made.trace(200_000, 0.0), "gemm").dram;
    assert_eq!(dram.map(|it| it.value), Some(1.0));
}

/// Some libraries' matrix products come with a memset of a microsecond each; one of half a sample is something else.
#[test]
fn a_short_memset_beside_a_kernel_is_nothing_and_a_long_one_is_left_out() {
    for (memset, is_told) in [(1_000, true), (60_000, false)] {
        let mut made = Made::new();
        for _ in 0..40 {
            let start = made.at;
            made.scene.memset(7, 64, start, start + memset);
            made.at += memset;
            made.kernel("gemm", 200_000 - memset, 0.3);
        }
        let gemm = told(&made.trace(200_000, 0.02), "gemm");
        assert_eq!(gemm.dram.is_some(), is_told, "{gemm:?}");
        if let Some(dram) = gemm.dram {
            assert!((dram.value - 0.3).abs() < 0.01 && gemm.is_own, "{gemm:?}");
        }
    }
}

/// Bursts of ten samples of 50 µs, one each quarter of a second: what is busy in all of them is busy between them.
#[test]
fn a_gpu_that_is_busy_with_nothing_recorded_is_told_by_bursts() {
    for (busy, seconds) in [(12, true), (2, false)] {
        let mut made = Made::new();
        made.kernel("add", 1_000_000, 0.9);
        let mut batch = made.scene.take();
        for nth in 1..=12 {
            for k in 0..10 {
                let start = nth * 250_000_000 + k * 50_000;
                let sm = if nth <= busy { 0.5 } else { 0.0 };
                batch.hardware.push(Hardware::Sample(Reading {
                    uuid: UUID,
                    span: Span::new(start, start + 50_000),
                    values: vec![(Metric::Sm, sm)],
                    reasons: 0,
                }));
            }
        }
        made.scene.put(batch);
        let trace = made.scene.trace();
        let devices = crate::testing::whole(&trace);
        let notes = crate::hardware::measure(&trace, &devices)
            .expect("asked")
            .notes;
        // 11 quarters, and the last burst's half a millisecond.
        let said = notes
            .iter()
            .any(|it| it.contains("was busy for 2.75 s in which none"));
        assert_eq!(said, seconds, "{notes:?}");
    }
}

#[test]
fn a_kernel_longer_than_samples_is_told_by_its_own() {
    let mut made = Made::new();
    for _ in 0..20 {
        made.kernel("add", 1_000_000, 0.9);
        made.kernel("gemm", 1_000_000, 0.3);
        made.idle(300_000);
    }
    let trace = made.trace(100_000, 0.02);
    let add = told(&trace, "add");
    let dram = add.dram.expect("told");
    assert!(
        (dram.value - 0.9).abs() < 0.005 && dram.half < 0.01,
        "{dram:?}"
    );
    let rate = add.rate.expect("told");
    assert!((rate.value / 3.6e12 - 1.0).abs() < 0.01, "{rate:?}");
    // 20 times a millisecond has 8 to 10 samples in it.
    assert!(add.is_own && (160..=200).contains(&add.samples), "{add:?}");
    assert_eq!(add.tensor, None);
    let rows = crate::tables::kernels(&trace, None);
    let row = rows.iter().find(|it| it.name == "add").expect("ran");
    assert_eq!(
        row.shapes[0].sentence(),
        format!(
            "limited by memory: DRAM at 90 % of the peak (± {}, {} own samples)",
            activity::units::percent(dram.half),
            add.samples
        )
    );
    let both = crate::shapes::Use::of(&row.shapes).expect("sampled");
    assert_eq!(both.class, crate::class::Class::Memory);
    // 20 ms of 40 each: the other one's tensor cores are not known, so its class is not. Half of the steps in the window, of which each ran
    // alike, have that share of theirs: it is none of the window's sum.
    for part in [1, 2] {
        let told = rows.iter().map(|it| (it.id, it.total_ns / part));
        let told: FxHashMap<_, _> = told.collect();
        let all = told.values().sum();
        let of = crate::busy::KernelTime::new(all, all);
        assert_eq!(
            crate::busy::words(&trace, None, &told, of).expect("sampled"),
            "50 % of their time memory-bound at 90 % of DRAM's peak"
        );
    }
}

#[test]
fn kernels_shorter_than_samples_are_told_by_their_mixtures() {
    let mut chance = Chance(3);
    let mut made = Made::new();
    let truth = [("a", 0.85), ("b", 0.1), ("c", 0.5)];
    for _ in 0..30_000 {
        let (name, dram) = truth[(chance.next() * 3.0) as usize];
        made.kernel(name, chance.between(3_000, 40_000), dram);
        made.idle(chance.between(0, 8_000));
    }
    let trace = made.trace(500_000, 0.03);
    for (name, dram) in truth {
        let it = told(&trace, name);
        let found = it.dram.expect("told");
        assert!(!it.is_own && it.samples > 900, "{it:?}");
        // The truth lies where it is said to lie; of 95 %, with room for the other 5.
        assert!(
            (found.value - dram).abs() < 2.0 * found.half && found.half < 0.05,
            "{name} {found:?}"
        );
    }
}

#[test]
fn what_always_comes_together_is_not_told_and_the_others_are() {
    let mut chance = Chance(5);
    let mut made = Made::new();
    for _ in 0..4000 {
        // Ten of each within every sample, however it falls; a third kernel comes as it likes.
        if chance.next() < 0.3 {
            let length = 100_000 * chance.between(1, 4);
            made.kernel("other", length, 0.7);
        } else {
            for _ in 0..10 {
                made.kernel("left", 6_000, 0.9);
                made.kernel("right", 4_000, 0.1);
            }
        }
    }
    let trace = made.trace(100_000, 0.0);
    assert_eq!(
        (told(&trace, "left").dram, told(&trace, "right").dram),
        (None, None)
    );
    let other = told(&trace, "other").dram.expect("told");
    assert!((other.value - 0.7).abs() < 1e-6, "{other:?}");
}

#[test]
fn launches_of_one_kernel_that_overlap_are_its_own() {
    let mut made = Made::new();
    for _ in 0..60 {
        made.kernel("gemm", 150_000, 0.3);
        // The next begins while the last blocks of this one end.
        made.at -= 10_000;
    }
    for span in &mut made.spans[1..] {
        // The GPU does one kernel's work at a time, whatever its record says.
        span.0.start += 10_000;
    }
    let it = told(&made.trace(400_000, 0.0), "gemm");
    let dram = it.dram.expect("told");
    assert!(it.is_own && (dram.value - 0.3).abs() < 0.003, "{it:?}");
    assert_eq!(it.samples, 21);
}

#[test]
fn few_samples_and_kernels_at_once_tell_nothing() {
    let mut made = Made::new();
    made.kernel("once", 700_000, 0.9);
    made.idle(1_000_000);
    let once = told(&made.trace(100_000, 0.0), "once");
    assert_eq!((once.dram, once.samples), (None, 7));
    let said = |counted| ShapeRow {
        counted,
        ..ShapeRow::default()
    };
    let why = [
        (once, "7 samples of 8"),
        (Counted::default(), "no sample holds it"),
        (
            Counted {
                samples: 90,
                ..once
            },
            "its 90 samples leave it open",
        ),
    ];
    for (counted, why) in why {
        let sentence = said(counted).sentence();
        assert_eq!(sentence, format!("what limits it is unknown: {why}"));
    }
    // Two streams at once.
    let mut made = Made::new();
    for nth in 0..50 {
        made.kernel("add", 1_000_000, 0.9);
        let shape = LaunchShape {
            grid: [1, 1, 1],
            ..LaunchShape::default()
        };
        made.scene
            .shaped(shape, "beside", 8, nth * 1_000_000, (nth + 1) * 1_000_000);
    }
    let trace = made.trace(100_000, 0.0);
    assert_eq!(
        (told(&trace, "add").dram, told(&trace, "beside").dram),
        (None, None)
    );
    // A copy beside it takes bandwidth, too.
    let mut made = Made::new();
    for _ in 0..50 {
        made.kernel("add", 1_000_000, 0.9);
    }
    made.scene
        .copy(activity::Direction::D2D, 9, 1 << 30, 0, 50_000_000);
    assert_eq!(told(&made.trace(100_000, 0.0), "add").dram, None);
}
