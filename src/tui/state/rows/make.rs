//! Which rows there are, in which order, under which names.

use rustc_hash::{FxHashMap, FxHashSet};

use super::counters::Counters;
use crate::tui::state::{Row, RowKind, nest};
use activity::{Direction, RangeKind, Span, What};
use trace::{LaneId, LaneKey, LaneKind, Measure, SourceKind, Trace, describe};

/// The rows with something to show in `scope`. `is_whole` says that it is the whole run, where the
/// passes of a scenario are worth a row too.
pub fn all(trace: &Trace, scope: Span, is_whole: bool, counters: Counters) -> Vec<Row> {
    let mut rows = Vec::new();
    let busy = |&d: &usize| trace.devices()[d].usage.time(Measure::Busy, scope) > 0;
    // Of a program that was running already only the hardware is known.
    let is_used = |d: &usize| match trace.operations_extent() {
        Some(_) => busy(d),
        None => trace.readings(*d).is_some(),
    };
    let mut used: Vec<usize> = (0..trace.devices().len()).filter(is_used).collect();
    // By their numbers, where each has one of its own: those of several hosts have the same.
    let number = |device: &usize| trace.devices()[*device].info.id;
    let numbers: FxHashSet<u32> = used.iter().map(number).collect();
    if numbers.len() == used.len() {
        used.sort_by_key(number);
    }
    let mut streams: Vec<(LaneId, LaneKey)> = visible(trace, scope)
        .filter(|(_, key)| matches!(key.kind, LaneKind::Stream { .. }))
        .collect();
    streams.sort_by_cached_key(|&(id, key)| stream_order(trace, scope, id, key));
    let of = |it: &(LaneId, LaneKey)| match it.1.kind {
        LaneKind::Stream { device, .. } | LaneKind::Memory { device } => Some(device),
        _ => None,
    };
    let others =
        visible(trace, scope).filter(|(_, key)| matches!(key.kind, LaneKind::Memory { .. }));
    let allocating: FxHashSet<_> = others.map(|it| of(&it)).collect();
    for &device in &used {
        let from = streams.partition_point(|it| of(it) < Some(device));
        let until = streams.partition_point(|it| of(it) <= Some(device));
        let streams = &streams[from..until];
        // What is of one process stands under one title.
        let owner = streams.first().map(|(_, key)| key.process);
        let owner = owner.filter(|&it| streams.iter().all(|(_, key)| key.process == it));
        let is_alone = used.len() == 1;
        if !is_alone {
            let of = owner.map_or_else(String::new, |it| of_process(trace, it));
            let title = format!("{}{of}", describe::device(trace, device));
            rows.push(Row::new(RowKind::Title, title));
        }
        let id = describe::device_id(trace, device);
        if busy(&device) {
            let label = if is_alone { "GPU" } else { &id };
            rows.push(Row::new(RowKind::Gpu(device), label));
        }
        device_rows(trace, device, scope, &mut rows);
        if allocating.contains(&Some(device)) {
            rows.push(Row::new(RowKind::Memory(device), "memory"));
        }
        for metric in counters.metrics(trace, device) {
            rows.push(Row::new(RowKind::Counter(device, metric), metric.label()));
        }
        let mut group = owner.filter(|_| !is_alone);
        for &(lane, key) in streams {
            if group.replace(key.process) != Some(key.process) {
                let gpu = if is_alone {
                    String::new()
                } else {
                    format!(" · {id}")
                };
                let title = format!("streams{gpu}{}", of_process(trace, key.process));
                rows.push(Row::new(RowKind::Title, title));
            }
            rows.push(Row::new(RowKind::Stream(lane), stream(trace, lane, key)));
        }
    }
    host_rows(trace, scope, is_whole, &mut rows);
    rows
}

/// So many of a stream's first operations tell what it is for.
const FIRST_OPERATIONS: usize = 32;

/// A stream's name; beside it NCCL's, where most of its kernels are that.
fn stream(trace: &Trace, lane: LaneId, key: LaneKey) -> String {
    let label = describe::stream(trace, key);
    let kept = trace.lanes()[lane].kept().take(FIRST_OPERATIONS);
    let names = kept.filter_map(|row| match trace.what(lane, row) {
        What::Kernel(kernel) => Some(trace.names().full(trace.shape(kernel.shape).name)),
        _ => None,
    });
    let is_nccl = |name: &str| name.contains("nccl");
    let (its, others): (Vec<&str>, Vec<&str>) = names.partition(|it| is_nccl(it));
    match its.len() > others.len() && !is_nccl(&label.to_lowercase()) {
        true => format!("{label} NCCL"),
        false => label,
    }
}

/// Whose rows they are, where there are several processes.
fn of_process(trace: &Trace, process: usize) -> String {
    match trace.processes().len() {
        1 => String::new(),
        _ => format!(" · {}", describe::process(trace, process)),
    }
}

/// Puts the rows of a prediction under the streams.
pub(super) fn put_prediction(rows: &mut Vec<Row>, prediction: Vec<Row>) {
    let is_stream = |row: &Row| matches!(row.kind, RowKind::Stream(_));
    let last = rows.iter().rposition(is_stream);
    let at = last.map_or(rows.len(), |last| last + 1);
    rows.splice(at..at, prediction);
}

fn device_rows(trace: &Trace, device: usize, scope: Span, rows: &mut Vec<Row>) {
    let usage = &trace.devices()[device].usage;
    for direction in [Direction::H2D, Direction::D2H, Direction::P2P] {
        if usage.time(Measure::Direction(direction), scope) > 0 {
            rows.push(Row::new(
                RowKind::Bandwidth(device, direction),
                direction.label(),
            ));
        }
    }
    if usage.time(Measure::Concurrent, scope) > 0 {
        rows.push(Row::new(RowKind::Overlap(device), "parallel"));
    }
}

fn host_rows(trace: &Trace, scope: Span, is_whole: bool, rows: &mut Vec<Row>) {
    let mut lanes: Vec<(LaneId, LaneKey)> = visible(trace, scope)
        .filter(|(_, key)| match key.kind {
            LaneKind::Thread { .. } | LaneKind::Overhead => true,
            LaneKind::Range { kind, .. } => nests(kind) || is_whole,
            _ => false,
        })
        .collect();
    let launching = launching(trace);
    let launches = |key: LaneKey| match key.kind {
        LaneKind::Range { thread, .. } => {
            // Where nothing launches, the main thread is what a program does.
            launching.contains(&(key.process, thread))
                || (trace.threads_in(key.process).next().is_none()
                    && trace.processes()[key.process].info.pid == thread)
        }
        _ => true,
    };
    lanes.sort_by_key(|&(id, key)| (key.process, host_order(key.kind, launches(key)), id));
    let numbers = numbers(trace, &lanes);
    let mut group = None;
    for (id, key) in lanes {
        if group != Some(key.process) {
            group = Some(key.process);
            let text = format!("host{}", of_process(trace, key.process));
            rows.push(Row::new(RowKind::Title, text));
        }
        let (kind, label) = match key.kind {
            LaneKind::Range { kind, thread } => {
                let label = range_label(trace, id, key.process, kind, thread);
                (RowKind::Range(id, 0), label)
            }
            LaneKind::Overhead => (RowKind::Overhead(id), "overhead".to_owned()),
            LaneKind::Thread { thread } => {
                let label = thread_label(&describe::thread(trace, key.process, thread));
                let number = numbers.get(&(key.process, thread));
                let number = number.map_or_else(String::new, |it| format!(" #{it}"));
                (RowKind::Thread(id), label + &number)
            }
            _ => (RowKind::Thread(id), String::new()),
        };
        rows.push(Row::new(kind, label));
        let depths = match launches(key) {
            true => depths(trace, id, key.kind, scope),
            // Threads that launch nothing would crowd out those that do.
            false => 1,
        };
        for depth in 1..depths {
            rows.push(Row::new(RowKind::Range(id, depth), ""));
        }
    }
}

/// Numbers of the threads of a process that are called as one before them is, from 2 on.
fn numbers(trace: &Trace, lanes: &[(LaneId, LaneKey)]) -> FxHashMap<(usize, u32), usize> {
    let threads = lanes.iter().filter_map(|(_, key)| match key.kind {
        LaneKind::Thread { thread } => Some((key.process, thread)),
        _ => None,
    });
    let mut seen: FxHashMap<(usize, String), usize> = FxHashMap::default();
    let numbered = threads.map(|it| {
        let label = thread_label(&describe::thread(trace, it.0, it.1));
        let number = seen.entry((it.0, label)).or_default();
        *number += 1;
        (it, *number)
    });
    let numbered: Vec<_> = numbered.collect();
    numbered.into_iter().filter(|it| it.1 > 1).collect()
}

/// A number alone says nothing; ids differ in their last digits. A name may be anything.
fn thread_label(name: &str) -> String {
    match short_thread(name) {
        it if it.bytes().all(|byte| byte.is_ascii_digit()) => {
            format!("thread …{}", &it[it.len().saturating_sub(4)..])
        }
        it => it.to_owned(),
    }
}

/// How many rows a lane of ranges needs.
fn depths(trace: &Trace, id: LaneId, kind: LaneKind, scope: Span) -> usize {
    match kind {
        LaneKind::Range { kind, .. } if nests(kind) => {
            nest::levels(trace, id, scope, nest::USUAL).map_or(1, |levels| levels.len())
        }
        _ => 1,
    }
}

/// Whether ranges of a kind lie in each other, which takes several rows.
fn nests(kind: RangeKind) -> bool {
    matches!(
        kind,
        RangeKind::Phase | RangeKind::Nvtx | RangeKind::Python | RangeKind::Function
    )
}

/// The threads that call CUDA.
pub(super) fn launching(trace: &Trace) -> FxHashSet<(usize, u32)> {
    let keys = trace.lanes().iter().map(|lane| lane.key());
    keys.filter_map(|key| match key.kind {
        LaneKind::Thread { thread } => Some((key.process, thread)),
        _ => None,
    })
    .collect()
}

/// What a lane of ranges is called: what they are, and of which thread where several have some.
fn range_label(trace: &Trace, id: LaneId, process: usize, kind: RangeKind, thread: u32) -> String {
    /// Rows that are looked at for what a lane holds.
    const GLANCE: usize = 32;
    let what = match kind {
        RangeKind::Variant => "variants",
        RangeKind::Warmup => "warm-up",
        RangeKind::Repeat => "repeats",
        RangeKind::Phase => "phases",
        RangeKind::Nvtx | RangeKind::CpuOp => {
            let is_op = |row: usize| matches!(trace.activity(id, row).what, What::Range(it) if it.kind == RangeKind::CpuOp);
            match trace.lanes()[id].kept().take(GLANCE).any(is_op) {
                true => "CPU ops",
                false => "nvtx",
            }
        }
        // Nsight Systems samples native functions.
        RangeKind::Python if trace.source.kind == SourceKind::Nsys => "CPU samples",
        RangeKind::Python | RangeKind::Function => "python",
    };
    let is_like = |key: LaneKey| matches!(key.kind, LaneKind::Range { kind: k, thread: t } if k == kind && t != thread);
    let is_alone = !trace.others_in(process).any(|it| is_like(it.1.key()));
    if is_alone || kind < RangeKind::Nvtx {
        return what.to_owned();
    }
    // "ops 2919752": the gutter has room for eleven letters.
    let what = match what {
        "CPU ops" => "ops",
        "CPU samples" => "cpu",
        "python" => "py",
        what => what,
    };
    let name = describe::thread(trace, process, thread);
    format!("{what} {}", short_thread(&name))
}

/// A thread's name for the gutter. Of "thread 4711 (pt_autograd_0)" it is "autograd_0", unless the interpreter gave the name.
/// Of a long number it is that alone, which differs from others in its last digits.
fn short_thread(name: &str) -> &str {
    /// Ids that are longer have no room behind "thread".
    const ROOM: usize = 4;
    let rest = name.strip_prefix("thread ").unwrap_or("");
    let (number, own) = rest.split_once(" (").unwrap_or((rest, "python"));
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return name;
    }
    match own.starts_with("python") {
        false => own.trim_end_matches(')').trim_start_matches("pt_"),
        true if number.len() > ROOM => number,
        true => &name[.."thread ".len() + number.len()],
    }
}

/// What cuptop's own runs are made of, then threads that call CUDA, each with its ranges above its calls, then the others.
fn host_order(kind: LaneKind, launches: bool) -> (u8, u32, u8) {
    match kind {
        LaneKind::Range { kind, thread } if kind < RangeKind::Nvtx => (kind as u8, thread, 0),
        LaneKind::Range { kind, thread } if launches => (10, thread, kind as u8),
        LaneKind::Range { kind, thread } => (30, thread, kind as u8),
        LaneKind::Thread { thread } => (10, thread, 20),
        _ => (20, 0, 0),
    }
}

/// Lanes that have something in `scope`.
fn visible(trace: &Trace, scope: Span) -> impl Iterator<Item = (LaneId, LaneKey)> + '_ {
    let lanes = trace.lanes().iter().enumerate();
    let lanes = lanes.filter(move |(_, lane)| !lane.rows(scope).is_empty());
    lanes.map(|(id, lane)| (id, lane.key()))
}

/// Shows more depths than [`nest::USUAL`] of lanes that have more, in turn, while there is `room` for all rows. Where there is less, the
/// deepest of all lanes go before other rows do.
pub fn deepen(trace: &Trace, scope: Span, room: usize, rows: &mut Vec<Row>) {
    for least in (nest::LEAST..nest::USUAL).rev() {
        if rows.len() > room && room > 0 {
            rows.retain(|row| !matches!(row.kind, RowKind::Range(_, depth) if depth >= least));
        }
    }
    let mut wanted: Vec<(LaneId, usize)> = rows
        .iter()
        .filter_map(|row| match row.kind {
            RowKind::Range(id, depth) if depth + 1 == nest::USUAL => {
                let levels = nest::levels(trace, id, scope, nest::DEEPEST)?;
                Some((id, levels.len()))
            }
            _ => None,
        })
        .collect();
    for depth in nest::USUAL..nest::DEEPEST {
        wanted.retain(|&(_, levels)| levels > depth);
        for &(id, _) in &wanted {
            if rows.len() >= room {
                return;
            }
            let above = RowKind::Range(id, depth - 1);
            if let Some(at) = rows.iter().position(|row| row.kind == above) {
                rows.insert(at + 1, Row::new(RowKind::Range(id, depth), ""));
            }
        }
    }
}

/// Streams stand by device and process, in the order of their first use in `scope`. Of those that begin at once the
/// default stream is first, then by name with numbers in it compared as numbers.
fn stream_order(trace: &Trace, scope: Span, id: LaneId, key: LaneKey) -> impl Ord {
    let LaneKind::Stream {
        device,
        context,
        stream,
    } = key.kind
    else {
        return (0, 0, 0, true, String::new(), 0, 0, id);
    };
    let lane = &trace.lanes()[id];
    let rows = lane.rows(scope);
    let first = (!rows.is_empty()).then(|| lane.span(rows.start).start);
    let first = first.unwrap_or(scope.start).max(scope.start);
    let info = describe::stream_info(trace, key);
    let name = info.map_or("", |s| s.name.as_str());
    let digits = name.find(|c: char| c.is_ascii_digit());
    let digits = digits.unwrap_or(name.len());
    let number: u64 = name[digits..].parse().unwrap_or(0);
    (
        device,
        key.process,
        first,
        !info.is_some_and(|s| s.is_default),
        name[..digits].to_owned(),
        number,
        u64::from(context) << 32 | u64::from(stream),
        id,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use activity::{Batch, Def};
    use trace::testing::Scene;

    #[test]
    fn a_thread_may_be_called_by_any_number() {
        for (name, label) in [
            ("140001234", "thread …1234"),
            ("7", "thread …7"),
            ("", "thread …"),
        ] {
            assert_eq!(thread_label(name), label);
        }
    }

    #[test]
    fn a_stream_of_collectives_is_named() {
        let mut scene = Scene::new();
        for at in (0..4).map(|it| it * 1_000) {
            let exchanges = "ncclKernel_AllReduce_RING_LL_Sum_float";
            scene.kernel("gemm", 7, at, at + 100);
            scene.kernel(exchanges, 40, at, at + 100);
        }
        let rows = all(
            &scene.trace(),
            Span::new(0, 4_000),
            true,
            Counters::default(),
        );
        let streams = rows.iter();
        let streams = streams.filter(|it| matches!(it.kind, RowKind::Stream(_)));
        let labels: Vec<&str> = streams.map(|it| it.label.as_str()).collect();
        assert_eq!(labels, ["stream 7", "stream 40 NCCL"]);
    }

    #[test]
    fn gpus_stand_in_the_order_of_their_numbers() {
        let mut scene = Scene::new();
        scene.kernel("k", 7, 0, 100).kernel("k", 7, 200, 300);
        let mut batch = scene.take();
        // The first one that is seen is the second GPU.
        if let What::Kernel(kernel) = &mut batch.items[0].what {
            kernel.place.device = 1;
        }
        let trace = scene.put(batch).trace();
        let rows = all(&trace, Span::new(0, 300), true, Counters::default());
        let gpus = rows.iter().filter(|it| matches!(it.kind, RowKind::Gpu(_)));
        let labels: Vec<&str> = gpus.map(|it| it.label.as_str()).collect();
        assert_eq!(labels, ["GPU 0", "GPU 1"]);
    }

    #[test]
    fn threads_of_one_name_are_numbered() {
        let mut scene = Scene::new();
        for thread in 1..4 {
            scene.on_thread(thread);
            scene.call(
                "cudaLaunchKernel",
                10 * i64::from(thread),
                10 * i64::from(thread) + 5,
            );
            scene.kernel(
                "k",
                1,
                100 * i64::from(thread),
                100 * i64::from(thread) + 50,
            );
        }
        let mut trace = scene.trace();
        let named = |thread, text: &str| Def::Thread {
            thread,
            name: text.to_owned(),
        };
        trace.apply(Batch {
            defs: vec![named(2, "python3"), named(3, "loader"), named(4, "python3")],
            ..Batch::default()
        });
        let rows = all(&trace, Span::new(0, 1_000), true, Counters::default());
        let threads = rows
            .iter()
            .filter(|it| matches!(it.kind, RowKind::Thread(_)));
        let labels: Vec<&str> = threads.map(|it| it.label.as_str()).collect();
        assert_eq!(labels, ["python3", "loader", "python3 #2"]);
    }

    #[test]
    fn threads_called_after_long_ids_differ_within_the_gutter() {
        for (name, expected) in [
            ("thread 2919752 (python3.10)", "2919752"),
            ("thread 2919752", "2919752"),
            ("thread 10", "thread 10"),
            ("thread 629 (python3)", "thread 629"),
            ("thread 1916 (pt_autograd_0)", "autograd_0"),
            ("main", "main"),
            ("thread pool", "thread pool"),
        ] {
            assert_eq!(short_thread(name), expected);
        }
    }

    #[test]
    fn the_deepest_rows_go_where_others_have_no_room() {
        let depths = |room: usize| {
            let stack = |lane| (0..nest::USUAL).map(move |depth| RowKind::Range(lane, depth));
            let kinds = [RowKind::Gpu(0)]
                .into_iter()
                .chain(stack(1))
                .chain(stack(2));
            let mut rows: Vec<Row> = kinds.map(|kind| Row::new(kind, "")).collect();
            deepen(&Trace::default(), Span::default(), room, &mut rows);
            rows.len()
        };
        assert_eq!((depths(8), depths(7)), (7, 7));
        // Two of each stay.
        assert_eq!((depths(6), depths(3)), (5, 5));
    }
}
