//! What a program does outside CUDA's calls before its first operation and behind its last one.

use activity::units::{duration, percent, share};
use activity::{NameId, Ns, RangeKind, Span, What};
use causes::first_use::pins;
use causes::graph::OpId;
use causes::stacks::StackCounts;
use causes::{Causes, sum_by};
use figures::driver;
use rustc_hash::FxHashSet;
use trace::{LaneId, LaneKey, LaneKind, SourceKind, Trace, describe};

/// It is told from so long on, where it is also a tenth of the recording. The profiler's own start is no matter of the program.
const OUTSIDE_MIN: Ns = 500_000_000;

/// Between two calls of CUDA no profiler starts: so long is told, where it is half of all that ran. From so many times that on it is no
/// driver's start either.
const BETWEEN_MIN: Ns = 100_000_000;
const BETWEEN_TIMES: Ns = 10;

/// And so is what calls of CUDA take behind the last operation.
const GIVEN_BACK_MIN: Ns = 10_000_000;

/// Where it lies.
pub(super) const BEFORE: &str = "before the first operation";

/// An operator with this part of it says what it is.
const NEARLY_ALL: f64 = 0.8;

/// Pieces of it that are shorter lie between two calls, and are looked at no closer.
const PIECE_MIN: Ns = 1_000_000;

/// Calls of the system that wait for processes, as a compiler's, and from which part of the time on they are told together.
const CHILDREN: [&str; 5] = ["waitpid", "wait", "wait4", "waitid", "system"];
const CHILDREN_SHARE: f64 = 0.33;

/// "2.26 s outside CUDA before the first operation, 82 % of it in rand, called by main in add_gpu", and how long that is.
pub(super) fn told(trace: &Trace, causes: &Causes<'_>) -> Vec<(Ns, String)> {
    let Some((all, ops)) = recorded(trace).zip(trace.operations_extent()) else {
        return Vec::new();
    };
    let ops_of = &causes.graph().ops;
    let each = || 0..ops_of.len() as OpId;
    let before = Span::new(begins(trace).unwrap_or(all.start).min(ops.start), ops.start);
    let all = Span::new(before.start, all.end.max(before.start));
    let behind = Span::new(ops.end, all.end.max(ops.end));
    let ends = [(before, BEFORE), (behind, "after the last operation")];
    let told = ends.into_iter().filter_map(|(span, which)| {
        let mut free = free(trace, span);
        let sum = |free: &[Span]| free.iter().map(|it| it.len()).sum::<Ns>();
        let is_short = sum(&free) < OUTSIDE_MIN;
        if is_short && span == before {
            let calls = trace.threads().filter_map(|it| it.1.extent());
            let first = calls.map(|it| it.start).min().unwrap_or(span.end);
            free.retain(|it| it.start >= first);
            // Before a call made the context the driver may be at work.
            if sum(&free) < ops.len().saturating_mul(BETWEEN_TIMES) {
                let made = opened(trace).unwrap_or(span.end);
                free.retain(|it| it.start >= made);
            }
        }
        let time = sum(&free);
        let is_between = || time >= BETWEEN_MIN.max(ops.len() / 2);
        let is_long = !is_short || span == before && is_between();
        if !is_long || !cases::LARGE_SHARE.is_reached_by(share(time, all.len())) {
            return None;
        }
        let op = match span == before {
            true => each().min_by_key(|it| ops_of.start[*it as usize]),
            false => each().max_by_key(|it| ops_of.end[*it as usize]),
        };
        let loaded = describe::loads(trace, span.end).filter(|_| span == before);
        let loaded = loaded.map(|it| (it > time / 2, duration(it.min(time))));
        let in_part = |is_most| {
            let loaded = loaded.as_ref().filter(|it| it.0 == is_most);
            loaded.map(|it| format!("{} of it in DataLoader", it.1))
        };
        let op = op?;
        let named = in_part(true)
            .or_else(|| name(trace, causes, (span, &free, time), op))
            .or_else(|| in_part(false));
        // There the driver may be at work.
        if is_short && named.as_ref().is_some_and(|it| it.ends_with(" ioctl")) {
            return None;
        }
        let named = named.map_or_else(String::new, |it| format!(", {it}"));
        let text = format!("{} outside CUDA {which}{named}", duration(time));
        Some((time, text))
    });
    told.chain(given_back(trace)).collect()
}

/// "479 ms in CUDA calls after the last operation, most of it in cuModuleUnload", and how long that is.
pub(super) fn given_back(trace: &Trace) -> Option<(Ns, String)> {
    let (all, ops) = recorded(trace).zip(trace.operations_extent())?;
    let (behind, all) = (Span::new(ops.end, all.end.max(ops.end)), all.len());
    let calls = trace.threads().flat_map(|(id, lane, _)| {
        let rows = lane.starting(behind);
        rows.filter_map(move |row| match trace.what(id, row) {
            What::Call(it) => Some((it.name, lane.span(row), id)),
            _ => None,
        })
    });
    let calls: Vec<(NameId, Span, LaneId)> = calls.collect();
    let time = Span::union_len(calls.iter().map(|it| it.1).collect());
    if time < GIVEN_BACK_MIN || !cases::LARGE_SHARE.is_reached_by(share(time, all)) {
        return None;
    }
    let by = sum_by(calls.iter().map(|it| (it.0, it.1.len())));
    let most = by.first().filter(|it| it.1 > time / 2);
    let resets = |name: NameId| trace.names().full(name).contains("Reset");
    // What the reset took down, the next call that needs it makes anew.
    let makes = |name: NameId, sum: Ns| {
        let first = |lane: LaneId| calls.iter().find(|it| it.2 == lane && resets(it.0));
        let is_behind = |it: &(NameId, Span, LaneId)| {
            it.0 == name
                && 2 * it.1.len() > sum
                && first(it.2).is_some_and(|of| of.1.end <= it.1.start)
        };
        !resets(name) && calls.iter().any(is_behind)
    };
    let most = most.map(|&(name, sum)| {
        let anew = match makes(name, sum) {
            true => ", which makes the context anew after a reset",
            false => "",
        };
        format!(", most of it in {}{anew}", trace.names().short(name))
    });
    let time_told = duration(time);
    let told = match pinning(trace, ops.start).filter(|it| *it >= time) {
        Some(pinned) => format!(
            "{} pinning memory {BEFORE}, {time_told} in CUDA calls after the last one",
            duration(pinned)
        ),
        None => format!("{time_told} in CUDA calls after the last operation"),
    };
    Some((time, told + &most.unwrap_or_default()))
}

/// How long calls pin memory until then.
fn pinning(trace: &Trace, until: Ns) -> Option<Ns> {
    let calls = trace.threads().flat_map(|(id, lane, _)| {
        let rows = lane.starting(Span::new(Ns::MIN / 4, until));
        rows.filter_map(move |row| match trace.what(id, row) {
            What::Call(it) if pins(trace.names().full(it.name)) => Some(lane.span(row)),
            _ => None,
        })
    });
    let spans: Vec<Span> = calls.collect();
    (!spans.is_empty()).then(|| Span::union_len(spans))
}

/// All that was recorded, samples too.
pub(super) fn recorded(trace: &Trace) -> Option<Span> {
    let sampled = trace.processes().iter();
    let sampled = sampled.filter_map(|it| it.sampled.extent());
    trace.extent().into_iter().chain(sampled).reduce(Span::hull)
}

/// When the first call that takes long came back: it makes the context.
fn opened(trace: &Trace) -> Option<Ns> {
    let calls = trace.threads().flat_map(|(_, lane, _)| {
        let rows = lane.kept().map(|row| lane.span(row));
        rows.filter(|it| it.len() >= PIECE_MIN)
    });
    calls.min_by_key(|it| it.start).map(|it| it.end)
}

/// When the first record of a process comes that calls CUDA: a launcher is there before it.
fn begins(trace: &Trace) -> Option<Ns> {
    let its: FxHashSet<usize> = trace.threads().map(|it| it.1.key().process).collect();
    let lanes = trace.lanes().iter();
    let lanes = lanes.filter(|it| its.contains(&it.key().process));
    let records = lanes.filter_map(|it| it.extent());
    let sampled = its
        .iter()
        .filter_map(|it| trace.processes()[*it].sampled.extent());
    records.chain(sampled).map(|it| it.start).min()
}

/// The parts of a stretch in which no thread is in a call, the driver does not set itself up, and the profiler does nothing.
fn free(trace: &Trace, span: Span) -> Vec<Span> {
    let calls = trace.threads().flat_map(|(_, lane, _)| {
        let rows = lane.starting(span);
        rows.map(|row| lane.span(row))
    });
    let driver = driver::set_up(trace).into_iter().map(|it| it.1);
    let taken = calls.chain(causes::profilers(trace, span)).chain(driver);
    let taken = Span::merged(taken.map(|it| it.intersect(span)).collect());
    let mut from = span.start;
    let mut free = Vec::new();
    for it in taken.into_iter().chain([Span::new(span.end, span.end)]) {
        free.push(Span::new(from, it.start.max(from)));
        from = from.max(it.end);
    }
    free.retain(|it| !it.is_empty());
    free
}

/// A stretch, its free parts, and how long those are.
type Stretch<'a> = (Span, &'a [Span], Ns);

/// What the thread did meanwhile that launched an operation: by the program's own ranges, by samples, or by calls of the system.
fn name(
    trace: &Trace,
    causes: &Causes<'_>,
    (span, free, time): Stretch<'_>,
    op: OpId,
) -> Option<String> {
    let holds = |it: Span| within(free, it) > time / 2;
    let most = |it: &str| format!("most of it in {it}");
    let by = operators(trace, causes.launcher(op), (span, free));
    // What holds nearly all of it says more than the range around it; of several the innermost one. Calls of the system say less.
    let named = by.iter().rev().find(|it| share(it.1, time) >= NEARLY_ALL);
    if let Some(it) = named.filter(|_| trace.source.kind == SourceKind::Kineto) {
        return Some(most(trace.names().full(it.0)));
    }
    let own = describe::ranges(trace, span.end).filter(|it| it.1 == RangeKind::Nvtx && holds(it.0));
    if let Some(it) = own.min_by_key(|it| it.0.len()) {
        return Some(most(it.2));
    }
    let mut seen = StackCounts::default();
    let long = free.iter().filter(|it| it.len() >= PIECE_MIN);
    long.for_each(|it| causes.add_samples(op, *it, &mut seen));
    let by_samples = seen.work(trace);
    by_samples.or_else(|| {
        let of_most = by.first().filter(|it| it.1 > time / 2);
        let of_most = of_most.map(|it| most(trace.names().full(it.0)));
        let waits = |it: &&(NameId, Ns)| CHILDREN.contains(&trace.names().full(it.0));
        let children: Ns = by.iter().filter(waits).map(|it| it.1).sum();
        let part = share(children, time);
        of_most.or_else(|| {
            let told = || format!("{} of it waiting for child processes", percent(part));
            (part >= CHILDREN_SHARE).then(told)
        })
    })
}

/// How much of a stretch's free parts a thread is in each operator, most first: they lie among its ranges.
fn operators(
    trace: &Trace,
    launcher: Option<(usize, u32)>,
    (span, free): (Span, &[Span]),
) -> Vec<(NameId, Ns)> {
    let lane = launcher.and_then(|(process, thread)| {
        let kind = RangeKind::Nvtx;
        let kind = LaneKind::Range { kind, thread };
        trace.lane_id(LaneKey { process, kind })
    });
    let named = lane.into_iter().flat_map(|id| {
        let lane = &trace.lanes()[id];
        lane.rows(span)
            .filter_map(move |row| match trace.what(id, row) {
                What::Range(of) if of.kind == RangeKind::CpuOp => {
                    Some((of.name, within(free, lane.span(row))))
                }
                _ => None,
            })
    });
    sum_by(named)
}

/// How much of a span lies in free parts.
fn within(free: &[Span], span: Span) -> Ns {
    let from = free.partition_point(|it| it.end <= span.start);
    let parts = free[from..].iter().take_while(|it| it.start < span.end);
    parts.map(|it| it.intersect(span).len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use activity::{Frame, SampleDef, SampledThread, Samples, Sampling, StackSample};
    use causes::graph::Graph;
    use trace::testing::Scene;

    const S: Ns = 1_000_000_000;

    /// What 100 looks a second saw of the CPU in two seconds before a kernel of so long: these stacks by turns, outermost function first.
    fn told_of(stacks: &[&[(&str, &str)]], kernel: Ns) -> Vec<String> {
        let trace = sampled(stacks, kernel);
        let graph = Graph::new(&trace);
        let told = told(&trace, &Causes::new(&trace, &graph));
        told.into_iter().map(|it| it.1).collect()
    }

    fn sampled(stacks: &[&[(&str, &str)]], kernel: Ns) -> Trace {
        let mut scene = Scene::new();
        scene.call("cudaLaunchKernel", 2 * S, 2 * S + 5_000);
        scene.kernel("k", 7, 2 * S + 6_000, 2 * S + kernel);
        let (mut defs, mut ends, mut id) = (Vec::new(), Vec::new(), 0);
        for stack in stacks {
            for (depth, (file, function)) in stack.iter().enumerate() {
                id += 1;
                let caller = if depth == 0 { 0 } else { id - 1 };
                let (file, function) = ((*file).to_owned(), (*function).to_owned());
                let frame = Frame {
                    file,
                    function,
                    line: 0,
                };
                let stack = SampleDef::Stack {
                    id,
                    caller,
                    frame: id,
                };
                defs.extend([SampleDef::Frame { id, frame }, stack]);
            }
            ends.push(id);
        }
        let looks = (0..200).map(|i: i64| StackSample {
            time: i * S / 100,
            changed: vec![SampledThread {
                thread: 1,
                stack: ends[i as usize % ends.len()],
                is_running: true,
            }],
        });
        let mut batch = scene.take();
        batch.samples = Some(Samples {
            series: 0,
            defs,
            looks: looks.collect(),
            sampling: Sampling {
                hz: 100,
                ..Sampling::default()
            },
        });
        scene.put(batch).trace()
    }

    #[test]
    fn work_between_the_context_and_the_first_operation_is_told_from_half_of_what_ran_on() {
        const MS: Ns = 1_000_000;
        let told = |first: &str, made: Ns, ran: Ns| {
            let mut scene = Scene::new();
            scene.call(first, 0, made);
            let at = made + 250 * MS;
            scene.call("cudaLaunchKernel", at, at + 5_000);
            scene.kernel("k", 7, at + 6_000, at + ran);
            let trace = scene.trace();
            let graph = Graph::new(&trace);
            let told = told(&trace, &Causes::new(&trace, &graph));
            told.into_iter().map(|it| it.1).collect::<Vec<_>>().concat()
        };
        let text = "250 ms outside CUDA before the first operation";
        assert_eq!(told("cudaMallocHost", 100 * MS, 400 * MS), text);
        assert_eq!(told("cudaMallocHost", 100 * MS, 600 * MS), "");
        // Behind a question of no time the driver may make the context.
        assert_eq!(told("cuModuleGetLoadingMode", 1_000, 400 * MS), "");
    }

    #[test]
    fn a_library_that_writes_files_is_known_by_its_outermost_function() {
        let output = |stacks: &[&[(&str, &str)]]| {
            let trace = sampled(stacks, S);
            let mut seen = StackCounts::default();
            seen.add_samples(&trace, 0, 1, Span::new(0, 2 * S));
            seen.output(&trace)
        };
        // Cut before the program's own function.
        let swaps: &[_] = &[("solver", "put_varm"), ("solver", "ncmpii_in_swapn")];
        let opens: &[_] = &[("libmpi.so", "PMPI_File_open"), ("libc.so", "open64")];
        let works: &[_] = &[("solver", "main"), ("solver", "update")];
        assert_eq!(output(&[swaps, swaps, opens]), Some("PnetCDF"));
        assert_eq!(output(&[opens]), Some("MPI-IO"));
        // Half of the samples are not most of them.
        assert_eq!(output(&[swaps, works]), None);
        assert_eq!(output(&[works]), None);
    }

    #[test]
    fn memory_that_is_pinned_for_longer_than_it_is_given_back_is_told_beside_it() {
        let told = |pinned: Ns| {
            let mut scene = Scene::new();
            scene.call("cudaHostAlloc", 0, pinned);
            scene.call("cudaLaunchKernel", 4 * S, 4 * S + 5_000);
            scene.kernel("k", 7, 4 * S + 6_000, 5 * S);
            scene.call("cudaFreeHost", 5 * S, 6 * S);
            given_back(&scene.trace()).expect("a sixth of it").1
        };
        let behind = "1.00 s in CUDA calls after the last";
        let freed = "most of it in cudaFreeHost";
        let both =
            format!("3.00 s pinning memory before the first operation, {behind} one, {freed}");
        assert_eq!(told(3 * S), both);
        assert_eq!(told(S / 2), format!("{behind} operation, {freed}"));
    }

    #[test]
    fn a_call_after_a_reset_makes_the_context_anew() {
        let told = |calls: [&str; 2]| {
            let mut scene = Scene::new();
            scene.call("cudaLaunchKernel", 0, 5_000);
            scene.kernel("k", 7, 6_000, S);
            scene.call(calls[0], S, S + S / 20);
            scene.call(calls[1], S + S / 10, S + S / 4);
            given_back(&scene.trace()).expect("a sixth of it").1
        };
        let text = "200 ms in CUDA calls after the last operation, most of it in cudaFree";
        let anew = ", which makes the context anew after a reset";
        assert_eq!(
            told(["cudaDeviceReset", "cudaFree"]),
            format!("{text}{anew}")
        );
        assert_eq!(told(["cudaEventDestroy", "cudaFree"]), text);
    }

    #[test]
    fn samples_say_what_the_cpu_does_before_the_first_operation() {
        let compiler: &[_] = &[
            ("solver", "main"),
            ("<libnvrtc.so.13>", "libnvrtc"),
            ("<libc.so.6>", "getc"),
        ];
        let fills: &[_] = &[("solver", "main"), ("<libc.so.6>", "rand")];
        let before = "2.00 s outside CUDA before the first operation, ";
        let told = |stacks: &[&[(&str, &str)]]| told_of(stacks, S).concat();
        assert_eq!(
            told(&[compiler]),
            format!("{before}100 % of it in libnvrtc: compiling")
        );
        assert_eq!(
            told(&[fills]),
            format!("{before}100 % of it in rand, called by main in solver")
        );
        // Of three, in turn, no one holds most: two hold a quarter each, or more.
        let of = |name: &'static str| [("solver", name), ("<libz.so>", "deflate")];
        let several: [&[_]; 5] = [
            &of("read"),
            &of("write"),
            &[("<libx.so>", "a")],
            &[("<liby.so>", "b")],
            &[("<libz.so>", "c")],
        ];
        assert_eq!(
            told(&several),
            "2.00 s outside CUDA before the first operation"
        );
        let several: [&[_]; 3] = [&of("read"), &of("write"), &[("<libx.so>", "a")]];
        // 67 of 200 looks each.
        let named = "34 % of it in read in solver, 34 % of it in write in solver";
        assert_eq!(told(&several), format!("{before}{named}"));
    }

    #[test]
    fn the_innermost_operator_that_holds_nearly_all_of_it_is_named() {
        // An operator of 1.8 s in one of 1.9, in a range of the program around all 2 s; with 1.2 of 2 s the range is named.
        for (inner, named) in [(9, "aten::normal_"), (6, "inference")] {
            let mut scene = Scene::new();
            scene.call("cudaLaunchKernel", 2 * S, 2 * S + 5_000);
            scene.kernel("k", 7, 2 * S + 6_000, 3 * S);
            let ranges = [
                (RangeKind::Nvtx, "inference", 0, 2 * S + 10_000),
                (
                    RangeKind::CpuOp,
                    "aten::randn",
                    S / 10,
                    S / 10 + S * (inner + 1) / 5,
                ),
                (
                    RangeKind::CpuOp,
                    "aten::normal_",
                    S / 10,
                    S / 10 + S * inner / 5,
                ),
            ];
            for (kind, name, start, end) in ranges {
                scene.range(kind, name, 1, start, end);
            }
            let mut trace = scene.trace();
            trace.source.kind = SourceKind::Kineto;
            let graph = Graph::new(&trace);
            let told = told(&trace, &Causes::new(&trace, &graph));
            let wanted = format!("most of it in {named}");
            assert!(told[0].1.ends_with(&wanted), "{told:?}");
        }
    }

    #[test]
    fn a_tenth_of_the_recording_is_told() {
        // Two seconds of 19, and of 22.
        assert_eq!(told_of(&[&[("solver", "main")]], 17 * S).len(), 1);
        assert_eq!(told_of(&[&[("solver", "main")]], 20 * S).len(), 0);
    }
}
