//! `no-sync`: the host does not wait between the first operation and the end.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Editing, copies};
use crate::program::{Dep, List, NONE, Program};
use activity::{Direction, MemoryKind, What};
use causes::graph::{CallKind, EdgeKind};
use causes::needs;
use trace::LaneId;

/// Waits go, but for the last. Where one kept operations of two streams in order between which data may have
/// gone, an event keeps them so.
pub(super) fn no_sync(on: &mut Editing<'_, '_>) {
    let is_wait = |on: &Editing<'_, '_>, c: u32| {
        let is_gone = on.program.calls[c as usize].is_gone;
        !is_gone && (on.program.kind(c).is_wait() || is_blocking_copy(on, c))
    };
    let mut own = None;
    let calls = 0..on.program.calls.len() as u32;
    let mut last: FxHashMap<usize, u32> = FxHashMap::default();
    for c in calls.clone().filter(|&c| is_wait(on, c)) {
        last.insert(process(on, c), c);
    }
    let first = on.program.begin();
    let events_order_streams = calls
        .clone()
        .any(|c| on.call_name(c).contains("StreamWaitEvent"));
    let mut removed: Vec<(u32, Vec<u32>)> = Vec::new();
    for c in calls {
        let is_last = last.get(&process(on, c)) == Some(&c);
        let is_early = first.is_none_or(|first| on.program.call_span(c).end < first);
        if !is_wait(on, c) || is_last || is_early || !on.has_call(c) {
            continue;
        }
        if needs::is_needed(on.scene.trace, on.scene.graph, on.program.call_id(c)) {
            on.applied
                .note("keeps each sync behind which the CPU works on a large copy that came back");
            continue;
        }
        let waited = on.program.waits(c).iter().map(|wait| wait.op);
        removed.push((c, waited.collect()));
        if on.program.kind(c) == CallKind::Copy {
            // The copy stays, and returns as soon as one that nobody waits for.
            let own = *own.get_or_insert_with(|| copies::copy_call(on));
            let call = &mut on.program.calls[c as usize];
            call.own = call.own.min(own.unwrap_or(call.own));
            call.waits = List::default();
            on.applied.count += 1;
            continue;
        }
        on.remove_call(c);
        if on.program.kind(c) == CallKind::WaitEvent && !events_order_streams {
            remove_record(on, c);
        }
    }
    if !removed.is_empty() {
        on.applied
            .note("assumes that the CPU needs no result of the GPU before its last sync");
    }
    keep_order(on, &removed);
}

/// Whether a call returns only when its copy is there. Pageable memory that goes to the device is read before: `pin` is the cure of that.
fn is_blocking_copy(on: &Editing<'_, '_>, call: u32) -> bool {
    let waited = on.program.waits(call).first();
    let waited = waited.filter(|_| on.program.kind(call) == CallKind::Copy);
    waited.is_some_and(|wait| match on.what(wait.op) {
        What::Copy(copy) => copy.direction != Direction::H2D || copy.from != MemoryKind::Pageable,
        _ => false,
    })
}

/// How many calls before a wait the record of its event is looked for.
const BACK: usize = 16;

/// Without the wait for it nothing needs the event that a thread recorded before.
fn remove_record(on: &mut Editing<'_, '_>, wait: u32) {
    let mut before = on.program.previous(wait);
    for _ in 0..BACK {
        if before == NONE || on.program.calls[before as usize].is_gone {
            return;
        }
        if on.call_name(before).contains("EventRecord") {
            on.remove_call(before);
            return;
        }
        before = on.program.previous(before);
    }
}

fn process(on: &Editing<'_, '_>, call: u32) -> usize {
    let lane = on.program.lane(call) as LaneId;
    on.scene.trace.lanes()[lane].key().process
}

/// Of more streams an operation takes no data, and of none waited for longer ago: a made file may wait for
/// hundreds before each.
const STREAMS: usize = 32;
const WAITED: usize = 1024;

/// An operation depends on what a removed sync before it waited for, if that ran on another stream and can have made
/// its input.
pub(super) fn keep_order(on: &mut Editing<'_, '_>, removed: &[(u32, Vec<u32>)]) {
    let mut seen: FxHashMap<u32, usize> = FxHashMap::default();
    let mut kept = 0;
    for i in 0..on.program.ops.len() {
        let (stream, engine, call) = {
            let op = &on.program.ops[i];
            (op.stream, op.engine, op.call)
        };
        if call == NONE {
            continue;
        }
        let to = removed.partition_point(|wait| wait.0 < call);
        let from = seen.insert(stream, to).unwrap_or(0).min(to);
        let mut met: FxHashSet<u32> = FxHashSet::default();
        // The last one first: it ends after all others of its stream.
        let sources = removed[from..to].iter().rev().flat_map(|it| &it.1);
        for &source in sources.take(WAITED) {
            let before = &on.program.ops[source as usize];
            let may_bring = before.stream != stream
                && (source as usize) < i
                && Program::carries(before.engine, engine);
            if !may_bring || !met.insert(before.stream) {
                continue;
            }
            if met.len() > STREAMS {
                break;
            }
            let deps = on.program.lists.get(on.program.ops[i].deps);
            if deps.iter().all(|dep| dep.op != source) {
                let (delay, class) = on.program.delay(EdgeKind::Event, before.engine, engine);
                let deps = &mut on.program.ops[i].deps;
                on.program
                    .lists
                    .push(deps, Dep::on_end(source, delay, class));
                kept += 1;
            }
        }
    }
    if kept > 0 {
        on.applied.note(
            "assumes an event wherever streams may share data, and separate buffers for each batch",
        );
    }
}
