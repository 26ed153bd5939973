//! Recording on and off: what is recorded when, and what is said of the rest.

use std::time::Duration;

use activity::What;
use figures::testing;
use live::attach::When;
use trace::{SourceInfo, Trace};

use crate::harness::{Seen, fakes, trace_by_hand, trace_with};

/// The fake's records are of 1 ms before they are made.
const EARLY: i64 = 1_000_000;
/// What one thread has told the other by then, on a busy machine, too.
const SOON: i64 = 300_000_000;

fn timeline(seen: &Seen) -> Trace {
    let mut trace = Trace::new(SourceInfo::default());
    for batch in &seen.batches {
        trace.apply(batch.clone());
    }
    trace
}

#[test]
fn after_a_delay_and_for_a_while() {
    let made = fakes();
    // A launch each 10 ms for some 3 s.
    let seen = trace_with(made, &["slowly", "300"], &[], |request| {
        request.when = When {
            delay: Some(Duration::from_millis(1000)),
            duration: Some(Duration::from_millis(700)),
            range: None,
        };
    });
    let modes = seen.modes(0);
    let told: Vec<bool> = modes.iter().map(|mode| mode.recording).collect();
    assert_eq!(told, [false, true, false], "{modes:?}");
    let found = seen.kernels(0);
    // How many there are before it, in it and behind it is the machine's matter.
    assert!(found[0] > 1 && found[found.len() - 1] < 300, "{found:?}");
    assert!(
        found.windows(2).all(|pair| pair[0] + 1 == pair[1]),
        "{found:?}"
    );
    for item in seen.items(0) {
        // Between CUPTI being told and the word of it, something may have been recorded that did not have to be.
        assert!(item.span.start + EARLY >= modes[1].from - SOON);
        assert!(item.span.start <= modes[2].from + SOON);
    }
    assert_eq!(seen.health(0).losses(), 0);
    assert!(
        seen.notices.iter().any(|text| text.contains("--duration")),
        "{:?}",
        seen.notices
    );
}

#[test]
fn a_pause_is_neither_busy_nor_idle() {
    let made = fakes();
    let seen = trace_by_hand(
        made,
        &["slowly", "300"],
        &[],
        |_| {},
        |recorder| {
            for wait in [1000, 600] {
                std::thread::sleep(Duration::from_millis(wait));
                recorder.toggle().expect("the program runs");
            }
        },
    );
    let modes = seen.modes(0);
    let told: Vec<bool> = modes.iter().map(|mode| mode.recording).collect();
    assert_eq!(told, [true, false, true], "{modes:?}");
    let trace = timeline(&seen);
    let figures = testing::whole(&trace);
    let [device] = figures.as_slice() else {
        panic!("one device");
    };
    let pause = modes[2].from - modes[1].from;
    // The gap that it fell into, which reaches to the next launch on either side: 10 ms on a quiet machine.
    assert!(device.not_recorded_ns >= pause - 2 * EARLY, "{device:?}");
    assert_eq!(
        device.idle_ns + device.busy_ns + device.not_recorded_ns,
        device.span_ns
    );
    // Outside of it every kernel is there: idle is what lies between launches.
    let kernels = seen.kernels(0);
    let longest = device.not_recorded_ns;
    assert!(
        device.gaps.longest_ns < longest && kernels.len() < 280,
        "{device:?}"
    );
    assert_eq!(seen.health(0).losses(), 0);
}

#[test]
fn only_inside_ranges_of_a_name() {
    let made = fakes();
    let of = |name: &str| {
        trace_with(made, &["ranges", "4"], &[], |request| {
            request.when.range = Some(name.to_owned());
        })
    };
    let seen = of("st*");
    let found = seen.kernels(0);
    let inside = found.iter().filter(|id| **id % 2 == 1).count();
    // Of 120 each: late by a flush period at either end.
    assert!(
        inside > 40 && found.len() - inside < 80,
        "{inside} of {}",
        found.len()
    );
    assert!(seen.modes(0).len() >= 4, "{:?}", seen.modes(0));
    let none = of("stop");
    assert!(none.kernels(0).is_empty());
    assert!(
        none.notices
            .iter()
            .any(|text| text.contains("no NVTX range called \"stop\"")),
        "{:?}",
        none.notices
    );
}

#[test]
fn waits_between_streams_are_recorded_where_they_are_asked_for() {
    let of = |waits: bool| {
        let seen = trace_with(fakes(), &["waits", "30"], &[], |request| {
            request.collect.waits = waits;
        });
        assert_eq!(seen.kernels(0).len(), 30);
        let trace = timeline(&seen);
        let end = trace.extent().expect("records").end;
        let knows = trace.recorded(0).knows_waits(end, end);
        let items = seen.items(0).into_iter();
        let syncs = items.filter(|item| matches!(item.what, What::Sync(_)));
        (syncs.count(), knows)
    };
    assert_eq!(of(true), (30, true));
    assert_eq!(of(false), (0, false));
}
