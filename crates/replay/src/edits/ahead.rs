//! `prefetch:NAME`: what a thread does in ranges of a name is done ahead by workers.

use super::{Bound, Editing, names, within};
use activity::units::duration;
use activity::{Ns, Span};

/// The most that taking over what a worker made is allowed for. Between the processes of a PyTorch `DataLoader` a batch
/// of 128 KiB took 1.6 ms (`docs/measured/h200.md`).
const HAND_OVER_MAX: Ns = 2_000_000;

/// What a thread did in one range.
struct Turn {
    /// The first call after it.
    call: u32,
    /// What the thread did in it between calls.
    work: Ns,
    /// From its end to that call.
    tail: Ns,
}

/// Workers do the CPU work in ranges of this name while the rest goes on. A range takes no time, but the next one does
/// not end before a worker's share of the work since the last is done. CUDA calls in the ranges stay where they are.
///
/// # Errors
/// When only one such range has work, so that nothing goes on beside it.
pub(super) fn prefetch(on: &mut Editing<'_, '_>, name: &str, workers: u32) -> Result<(), String> {
    let mut ranges = within::ranges(on.scene.trace, name);
    ranges.values_mut().for_each(outermost);
    let calls = 0..on.program.calls.len() as u32;
    let mut lanes: Vec<u32> = calls.map(|call| on.program.lane(call)).collect();
    lanes.sort_unstable();
    lanes.dedup();
    let mut was_single = false;
    let mut most = 0;
    for lane in lanes {
        let turns = turns(on, lane, &ranges);
        was_single |= turns.len() == 1;
        for pair in turns.windows(2) {
            let [last, turn] = pair else { continue };
            let made = turn.work / Ns::from(workers);
            let delay = (made + turn.tail - last.tail).max(0);
            let hand_over = match on.scene.bound {
                Bound::Most => turn.work.min(HAND_OVER_MAX),
                Bound::Least | Bound::Likely => 0,
            };
            let call = &mut on.program.calls[turn.call as usize];
            call.think += hand_over;
            on.program.not_before.insert(turn.call, (last.call, delay));
            most = most.max(turn.work.min(HAND_OVER_MAX));
            on.applied.count += 1;
        }
    }
    if on.applied.count == 0 && was_single {
        return Err("nothing to prefetch: this range has CPU work only once".to_owned());
    }
    if most > 0 {
        on.applied.note(format!(
            "assumes that `{name}` needs nothing from the previous step: a worker does it one step ahead, in the same time"
        ));
        on.applied.unknown(format!(
            "passing a result on from a worker is assumed to take no time; it may take up to {}",
            duration(most)
        ));
    }
    Ok(())
}

/// Takes the work in ranges from a thread, but for that of the first one, which nothing goes on beside.
fn turns(on: &mut Editing<'_, '_>, lane: u32, ranges: &within::Ranges) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    let mut at = None;
    let calls = 0..on.program.calls.len() as u32;
    for c in calls
        .filter(|&c| on.program.lane(c) == lane)
        .collect::<Vec<_>>()
    {
        if on.program.calls[c as usize].is_gone || !on.has_call(c) {
            continue;
        }
        let work = names::think_in(on, c, ranges);
        if work == 0 {
            continue;
        }
        let start = on.program.call_span(c).start;
        let list = names::of_thread(on, c, ranges);
        let place = list.partition_point(|span| span.start < start);
        let end = list[..place].last().map_or(start, |span| span.end);
        let tail = (start - end).max(0);
        match turns.last_mut() {
            Some(turn) if at == Some(place) => {
                (turn.call, turn.tail) = (c, tail);
                turn.work += work;
            }
            _ => turns.push(Turn {
                call: c,
                work,
                tail,
            }),
        }
        at = Some(place);
        if turns.len() > 1 {
            on.program.calls[c as usize].think -= work;
        }
    }
    turns
}

/// Leaves ranges out that lie within another of the list.
fn outermost(list: &mut Vec<Span>) {
    let mut until = Ns::MIN;
    list.retain(|span| {
        let is_outer = span.start >= until;
        until = until.max(span.end);
        is_outer
    });
}
