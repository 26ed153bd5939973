use super::*;
use proptest::prelude::*;

const ENGINES: [Engine; BITS] = [
    Engine::Compute,
    Engine::Copy(Direction::H2D),
    Engine::Copy(Direction::D2H),
    Engine::Copy(Direction::D2D),
    Engine::Copy(Direction::P2P),
    Engine::Copy(Direction::Other),
    Engine::Memset,
];

const ALL: Span = Span {
    start: Ns::MIN,
    end: Ns::MAX,
};

/// The definition, nanosecond by nanosecond.
fn plain(ops: &[(Span, Engine)], measure: Measure, window: Span) -> Ns {
    (window.start..window.end)
        .filter(|&t| {
            let running =
                |f: &dyn Fn(Engine) -> bool| ops.iter().any(|(s, e)| s.contains(t) && f(*e));
            let is_copy = |e: Engine| matches!(e, Engine::Copy(_));
            match measure {
                Measure::Busy => running(&|_| true),
                Measure::Compute => running(&|e| e == Engine::Compute),
                Measure::Copy => running(&is_copy),
                Measure::Overlap => running(&|e| e == Engine::Compute) && running(&is_copy),
                Measure::Memset => running(&|e| e == Engine::Memset),
                Measure::Direction(d) => running(&|e| e == Engine::Copy(d)),
                Measure::Concurrent => {
                    ENGINES
                        .into_iter()
                        .filter(|&one| running(&|e| e == one))
                        .count()
                        >= 2
                }
            }
        })
        .count() as Ns
}

fn ops() -> impl Strategy<Value = Vec<Vec<(Span, Engine)>>> {
    let op = (0i64..400, 0i64..30, 0usize..BITS)
        .prop_map(|(start, len, e)| (Span::new(start, start + len), ENGINES[e]));
    prop::collection::vec(prop::collection::vec(op, 0..60), 0..6)
}

proptest! {
    #[test]
    fn every_measure_of_every_window_is_the_definition(batches in ops(), a in -10i64..450, b in -10i64..450, min in 0i64..15) {
        let mut usage = Usage::default();
        let mut all = Vec::new();
        for batch in batches {
            all.extend(batch.iter().copied());
            usage.add(&mut batch.clone());
        }
        let window = Span::new(a.min(b), a.max(b));
        for measure in Measure::ALL {
            prop_assert_eq!(usage.time(measure, window), plain(&all, measure, window));
            let middle = window.start.midpoint(window.end);
            let halves = [Span::new(window.start, middle), Span::new(middle, window.end)];
            let times = usage.times(measure, &[window.start, middle, window.end]);
            prop_assert_eq!(times, halves.map(|half| plain(&all, measure, half)));
            let sum: Ns = usage.stretches(measure, window).map(Span::len).sum();
            prop_assert_eq!(sum, plain(&all, measure, window));
            prop_assert_eq!(usage.total(measure), plain(&all, measure, Span::new(-10, 450)));
        }
        // Gaps from the definition: the nanoseconds between the first operation and the last in which nothing ran.
        let busy = |t: Ns| all.iter().any(|(span, _)| span.contains(t));
        let mut gaps: Vec<Span> = Vec::new();
        let (first, last) = ((-10..450).find(|&t| busy(t)), (-10..450).rev().find(|&t| busy(t)));
        for t in first.unwrap_or(0)..last.unwrap_or(0) {
            match gaps.last_mut() {
                Some(gap) if !busy(t) && gap.end == t => gap.end += 1,
                _ if !busy(t) => gaps.push(Span::new(t, t + 1)),
                _ => {}
            }
        }
        let is_wide = |gap: &&Span| gap.len() >= min;
        let next = gaps.iter().filter(is_wide).find(|gap| gap.start >= a);
        prop_assert_eq!(usage.next_gap(a, min), next.copied());
        let previous = gaps.iter().filter(is_wide).rfind(|gap| gap.start < a);
        prop_assert_eq!(usage.previous_gap(a, min), previous.copied());
        let inside = gaps.iter().filter(is_wide);
        let inside = inside.filter(|gap| window.start <= gap.start && gap.end <= window.end);
        prop_assert_eq!(usage.longest_gap(window, min), inside.rev().max_by_key(|gap| gap.len()).copied());
        if let Some(span) = usage.span() {
            let idle: Ns = usage.gaps_within(ALL).map(Span::len).sum();
            prop_assert_eq!(idle, span.len() - plain(&all, Measure::Busy, span));
        }
    }
}

#[test]
fn gaps_are_found_forwards_and_backwards() {
    let mut usage = Usage::default();
    usage.add(&mut vec![
        (Span::new(0, 10), Engine::Compute),
        (Span::new(12, 20), Engine::Compute),
        (Span::new(100, 110), Engine::Memset),
    ]);
    assert_eq!(
        usage.gaps_within(ALL).collect::<Vec<_>>(),
        [Span::new(10, 12), Span::new(20, 100)]
    );
    assert_eq!(usage.next_gap(0, 5), Some(Span::new(20, 100)));
    assert_eq!(usage.previous_gap(100, 0), Some(Span::new(20, 100)));
    assert_eq!(usage.previous_gap(20, 0), Some(Span::new(10, 12)));
    assert_eq!(usage.gap_at(50), Some(Span::new(20, 100)));
    assert_eq!(usage.gap_at(5), None);
    assert_eq!(usage.gap_at(110), None);
}
