use super::*;
use crate::Measure;
use activity::{
    Activity, Batch, Copy, DeviceInfo, Direction, Frame, GroupWindow, Hardware, Kernel, MemoryKind,
    Metric, Mode, OffCpu, Place, Reading, SampleDef, SampledThread, Samples, Sampling, StackSample,
    ThreadWindow,
};
use proptest::prelude::*;

const UUID: Uuid = [7; 16];

fn place(device: u32, stream: u32) -> Place {
    Place {
        device,
        context: 1,
        stream,
    }
}

fn kernel(device: u32, stream: u32, span: Span) -> Activity {
    Activity {
        span,
        correlation: 1,
        what: What::Kernel(Kernel {
            place: place(device, stream),
            shape: 0,
            graph: 0,
            node: 0,
        }),
    }
}

fn copy(device: u32, stream: u32, span: Span, bytes: u64) -> Activity {
    Activity {
        span,
        correlation: 0,
        what: What::Copy(Copy {
            place: place(device, stream),
            direction: Direction::H2D,
            from: MemoryKind::Pinned,
            to: MemoryKind::Device,
            is_async: true,
            bytes,
            peer: 0,
            graph: 0,
            node: 0,
        }),
    }
}

/// What a process sends: a kernel, a copy and so on for each of these.
fn batch(process: u32, device: u32, spans: &[(Ns, Ns)], by: Ns) -> Batch {
    let items = spans.iter().enumerate().map(|(i, &(start, length))| {
        let span = Span::new(start + by, start + by + length);
        match i % 2 {
            0 => kernel(device, 1 + i as u32 % 3, span),
            _ => copy(device, 9, span, 1_000),
        }
    });
    Batch {
        process,
        items: items.collect(),
        ..Batch::default()
    }
}

fn offset(offset: Ns) -> Clock {
    Clock {
        at: 0,
        offset,
        drift: 0.0,
    }
}

/// All that two timelines are asked for is the same.
fn assert_same(a: &Trace, b: &Trace, window: Span) -> Result<(), TestCaseError> {
    prop_assert_eq!(a.extent(), b.extent());
    prop_assert_eq!(a.lanes().len(), b.lanes().len());
    for (a, b) in a.lanes().iter().zip(b.lanes()) {
        prop_assert_eq!(a.key(), b.key());
        let spans = |lane: &crate::Lane| -> Vec<Span> {
            (0..lane.len()).map(|row| lane.span(row)).collect()
        };
        prop_assert_eq!(spans(a), spans(b));
        prop_assert_eq!(a.busy(window), b.busy(window));
        prop_assert_eq!(a.cursor().longest(window), b.cursor().longest(window));
    }
    for (index, (of_a, of_b)) in a.devices().iter().zip(b.devices()).enumerate() {
        for measure in [
            Measure::Busy,
            Measure::Compute,
            Measure::Copy,
            Measure::Overlap,
        ] {
            prop_assert_eq!(of_a.usage.total(measure), of_b.usage.total(measure));
            prop_assert_eq!(
                of_a.usage.time(measure, window),
                of_b.usage.time(measure, window)
            );
        }
        let all = Span::new(Ns::MIN, Ns::MAX);
        prop_assert!(of_a.usage.gaps_within(all).eq(of_b.usage.gaps_within(all)));
        let moved = |trace: &Trace| trace.bytes_moved(index, Direction::H2D, window);
        prop_assert!((moved(a) - moved(b)).abs() < 1e-6);
    }
    Ok(())
}

fn spans() -> impl Strategy<Value = Vec<(Ns, Ns)>> {
    prop::collection::vec((0i64..3_000, 0i64..40), 0..150)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Wherever records came before and after the clocks were set, once or twice, and whether processes share a GPU or not: it is the
    /// timeline of records that were made so.
    #[test]
    fn a_timeline_is_that_of_records_made_at_those_times(
        early in spans(), late in spans(), other in spans(), is_shared: bool,
        by in -5_000i64..5_000, first in -5_000i64..5_000, at in -6_000i64..9_000,
    ) {
        let device = u32::from(!is_shared);
        let mut moved = Trace::default();
        moved.apply(batch(0, 0, &other, 0));
        moved.apply(batch(1, device, &early, 0));
        moved.retime(&[Clock::default(), offset(first)]);
        moved.apply(batch(1, device, &late, 0));
        moved.retime(&[Clock::default(), offset(by)]);
        moved.apply(batch(1, device, &early, 0));

        let mut made = Trace::default();
        made.apply(batch(0, 0, &other, 0));
        made.apply(batch(1, device, &early, by));
        made.apply(batch(1, device, &late, by));
        made.apply(batch(1, device, &early, by));
        assert_same(&moved, &made, Span::new(at, at + 1_700))?;

        // And back.
        moved.retime(&[]);
        let mut raw = Trace::default();
        raw.apply(batch(0, 0, &other, 0));
        for it in [&early, &late, &early] {
            raw.apply(batch(1, device, it, 0));
        }
        assert_same(&moved, &raw, Span::new(at, at + 1_700))?;
    }

    /// With a drift all stays in its order, and nothing is more than a nanosecond from where it belongs, after twenty moves too.
    #[test]
    fn drift_keeps_the_order_and_does_not_add_up(all in spans(), ppm in -100i64..100) {
        let mut moved = Trace::default();
        moved.apply(batch(0, 0, &all, 0));
        let clock = Clock { at: 1_000, offset: 77, drift: ppm as f64 * 1e-3 };
        for _ in 0..20 {
            moved.retime(&[clock]);
            moved.retime(&[Clock { drift: 0.05, ..clock }]);
        }
        moved.retime(&[clock]);
        let mut raw = Trace::default();
        raw.apply(batch(0, 0, &all, 0));
        let exact = |time: Ns| time as f64 + 77.0 + ppm as f64 * 1e-3 * (time - 1_000) as f64;
        for (a, b) in moved.lanes().iter().zip(raw.lanes()) {
            let mut before = Ns::MIN;
            for row in 0..a.len() {
                let (is, was) = (a.span(row), b.span(row));
                prop_assert!((is.start as f64 - exact(was.start)).abs() <= 2.0, "{is:?} of {was:?}");
                prop_assert!((is.end as f64 - exact(was.end)).abs() <= 2.0);
                prop_assert!(before <= is.start);
                before = is.start;
                let back = moved.as_recorded(0, is);
                prop_assert!((back.start - was.start).abs() <= 2 && (back.end - was.end).abs() <= 2);
            }
        }
    }
}

/// Twenty parts in a million over a second are 20 us: reckoned by hand.
#[test]
fn everything_of_a_process_moves_and_nothing_of_another() {
    const SECOND: Ns = 1_000_000_000;
    let reading = Hardware::Reading(Reading {
        uuid: UUID,
        span: Span::new(0, SECOND),
        values: vec![(Metric::Sm, 0.5)],
        reasons: 0,
    });
    let of = |process: u32| Batch {
        process,
        defs: vec![
            Def::Device(DeviceInfo {
                id: process,
                uuid: Some([process as u8 + 7; 16]),
                ..DeviceInfo::default()
            }),
            Def::Mode(Mode {
                from: 0,
                recording: false,
                waits: false,
            }),
            Def::Mode(Mode {
                from: SECOND,
                recording: true,
                waits: true,
            }),
        ],
        items: vec![kernel(process, 1, Span::new(SECOND, 2 * SECOND))],
        samples: Some(Samples {
            series: 0,
            defs: vec![
                SampleDef::Frame {
                    id: 1,
                    frame: Frame::default(),
                },
                SampleDef::Stack {
                    id: 1,
                    caller: 0,
                    frame: 1,
                },
            ],
            looks: vec![StackSample {
                time: SECOND,
                changed: vec![SampledThread {
                    thread: 3,
                    stack: 1,
                    is_running: true,
                }],
            }],
            sampling: Sampling::default(),
        }),
        hardware: match process {
            0 => vec![reading.clone()],
            _ => Vec::new(),
        },
        off_cpu: vec![
            OffCpu::Thread(ThreadWindow {
                thread: 3,
                span: Span::new(0, SECOND),
                running: 5,
                waiting: 0,
            }),
            OffCpu::Group(GroupWindow {
                span: Span::new(0, SECOND),
                periods: 1,
                throttled_periods: 1,
                throttled: 9,
                cores: 1.0,
            }),
        ],
        ..Batch::default()
    };
    let clock = Clock {
        at: 0,
        offset: 1_700_000,
        drift: 20e-6,
    };
    let at = |seconds: Ns| seconds * SECOND + 1_700_000 + seconds * 20_000;
    for is_before in [false, true] {
        let mut trace = Trace::default();
        if is_before {
            trace.retime(&[clock]);
        }
        trace.apply(of(0));
        trace.apply(of(1));
        if !is_before {
            let before = trace.revision();
            assert!(trace.retime(&[clock]) && trace.revision() > before);
        }
        for (process, at) in [(0, &at as &dyn Fn(Ns) -> Ns), (1, &|it| it * SECOND)] {
            let lane = trace.lanes().iter().find(|it| it.key().process == process);
            assert_eq!(lane.expect("a stream").span(0), Span::new(at(1), at(2)));
            let device = &trace.devices()[process];
            assert_eq!(device.usage.span(), Some(Span::new(at(1), at(2))));
            let all = Span::new(-SECOND, 9 * SECOND);
            let off: Vec<Span> = trace.recorded(process).off(all).collect();
            assert_eq!(off, [Span::new(at(0), at(1))]);
            assert!(trace.recorded(process).knows_waits(at(1), at(5)));
            let of = &trace.processes()[process];
            let looked = of.sampled.within(3, all).next().expect("a look");
            assert_eq!(looked.time, at(1));
            let worst = of.off_cpu.throttling.worst;
            assert_eq!(worst, Some(Span::new(at(0), at(1))));
            let seen = of.off_cpu.of_thread(3, Span::new(at(1) - 10, at(1) + 10));
            assert_eq!(seen.map(|it| it.sum().round() as Ns), Some(10));
        }
        let gpu = trace.hardware().find(UUID).expect("read");
        assert_eq!(gpu.span(), Some(Span::new(at(0), at(1))));
        assert_eq!(trace.snapshot().clock(0), clock);
        assert_eq!(trace.snapshot().lanes()[0].span(0).start, at(1));
    }
}

/// What was summed up moves too: the busy time of windows is as it was, within what was summed up in proportion.
#[test]
fn what_was_forgotten_moves_too() {
    const MS: Ns = 1_000_000;
    let spans: Vec<(Ns, Ns)> = (0..2_000).map(|i| (i * MS, MS / 4)).collect();
    for by in [0, 500 * MS + 123_457] {
        let mut trace = Trace::default();
        trace.apply(batch(0, 0, &spans, 0));
        trace.evict_before(1_500 * MS);
        assert!(trace.evicted().is_some_and(|it| it.rows > 1_000));
        trace.retime(&[offset(by)]);
        assert_eq!(trace.extent().map(|it| it.start), Some(by));
        let evicted = trace.evicted().expect("as before");
        assert_eq!(evicted.before, 1_500 * MS + by);
        let usage = &trace.devices()[0].usage;
        assert_eq!(usage.total(Measure::Busy), 500 * MS);
        for (from, to) in [(0, 2_000), (0, 800), (400, 1_200), (1_600, 1_900)] {
            let window = Span::new(from * MS + by, to * MS + by);
            let busy = usage.time(Measure::Busy, window);
            let exact = (to - from) * MS / 4;
            assert!((busy - exact).abs() <= MS, "{window:?}: {busy}");
            let lanes: Ns = trace.lanes().iter().map(|it| it.busy(window)).sum();
            assert!((lanes - exact).abs() <= 4 * MS, "{window:?}: {lanes}");
            let bytes = trace.bytes_moved(0, Direction::H2D, window);
            assert!(
                (bytes - (to - from) as f64 * 500.0).abs() <= 4_000.0,
                "{bytes}"
            );
        }
        assert_eq!(usage.time(Measure::Busy, Span::new(by - 9, by)), 0);
    }
}
