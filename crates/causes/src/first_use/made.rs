//! Kernels that the CPU made ready before their first launch.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;

use super::{Busy, Made, is_outlier, is_system_wait, kernel};
use crate::graph::{CallId, CallKind, Graph, NONE, OpId};
use crate::stacks::StackCounts;
use activity::{NameId, Ns, Span, What};
use trace::{Lane, LaneId, LaneKind, Trace};

/// So long before a launch, with code loaded last of all, something made that code.
const JIT_MIN: Ns = 100_000_000;

/// What is as long again so often is no making.
const AGAIN: usize = 3;

/// A kernel's first launch, the time since the launch or wait before, and the shortest such time before a later launch.
struct Making {
    op: OpId,
    span: Span,
    later: Ns,
    /// How often it was at least half as long before a later launch.
    again: usize,
    /// Whether a tenth of it loaded code, and whether a name says that the kernel was compiled.
    loads: bool,
    compiles: bool,
    /// Whether ranges or samples show that.
    is_seen: bool,
    /// Whether a library was started meanwhile: it asks the driver where each function is.
    starts: bool,
}

/// What a thread does between two launches.
#[derive(Clone, Copy)]
struct Between {
    /// Since the launch or wait before, or since a load waited for the GPU; and what was longest before such a load.
    since: Ns,
    before: Span,
    /// How long it loaded code, until when, and of how many functions it asked where they are.
    loading: Ns,
    loaded: Ns,
    asked: usize,
    /// Whether it linked what a compiler made, and whether what it loaded last lay in memory.
    links: bool,
    brings: bool,
    /// When its last call returned, whether that was such a question, and since when it was at something else than CUDA.
    ended: Ns,
    asks: bool,
    works: Option<Ns>,
}

impl Between {
    /// Takes a call in. A library that starts is not without calls for long, once it has asked all of its questions.
    fn pass(&mut self, call: Span, asks: bool) {
        let is_quiet = call.start - self.ended >= JIT_MIN && !self.asks;
        if self.works.is_none() && cases::WORKS_ON.holds(is_quiet && self.has_asked()) {
            self.works = Some(self.ended);
        }
        (self.ended, self.asks) = (call.end, asks);
        self.asked += usize::from(asks);
    }

    /// Whether a library asked the driver where its functions are.
    fn has_asked(&self) -> bool {
        cases::STARTS_LIBRARY.is_reached_by(self.asked)
    }

    /// Whether what lies before a launch ends with loading a kernel that the program made, or found in a cache.
    /// Nothing else of CUDA comes before its launch. A load that takes most of it waits for the GPU, or compiles PTX by itself.
    fn ends_with_code(&self, launch: Ns) -> bool {
        let made = launch - self.since;
        self.brings && self.loaded >= launch - made / 10 && 2 * self.loading < made
    }

    /// Which waits are for a compiler, where it loads something behind them that late: for processes, and for threads whose work it links.
    fn waits(&self, since: Ns) -> impl Fn(&str) -> bool {
        let (loads, links) = (self.loaded >= since, self.links);
        move |name| {
            let of_processes = ["poll", "ppoll", "waitpid", "wait4"].contains(&name);
            loads && (of_processes || links && is_system_wait(name))
        }
    }

    /// Counts a call that loads code. Its wait for the GPU, which is over by then, makes nothing.
    fn load(&mut self, name: &str, call: Span, own: Span) {
        if own.start > call.start {
            self.before = self.made(call.start);
            self.since = own.start;
        }
        (self.loading, self.loaded) = (self.loading + own.len(), call.end);
        self.links |= name.starts_with("cuLinkComplete");
        if name.contains("Load") {
            self.brings = name.contains("LoadData");
        }
    }

    /// What may have made something ready until then.
    fn made(&self, until: Ns) -> Span {
        let last = Span::new(self.since.min(until), until);
        match self.before.len() > last.len() {
            true => self.before,
            false => last,
        }
    }

    fn from(since: Ns) -> Between {
        Between {
            since,
            before: Span::new(since, since),
            loading: 0,
            loaded: Ns::MIN,
            asked: 0,
            links: false,
            brings: false,
            ended: since,
            asks: false,
            works: None,
        }
    }
}

/// First launches of a kernel that the CPU made ready, each with the time since the launch or wait before. Libraries that
/// compile at run time look for it, build it and load it there; others are started, which is told beside it. A kernel that is
/// loaded anew before a later launch was compiled anew: for another shape, or another constant.
pub(super) fn made(trace: &Trace, graph: &Graph) -> FxHashMap<OpId, Made> {
    let calls = &graph.calls;
    let mut threads: FxHashMap<LaneId, Between> = FxHashMap::default();
    let mut kernels: FxHashMap<(usize, NameId), Making> = FxHashMap::default();
    let (mut anew, mut busy) = (Vec::new(), Busy::default());
    for call in 0..calls.len() as CallId {
        let (lane, span) = (calls.at(call).0, calls.span(call));
        let (kind, name) = (calls.kind[call as usize], || graph.function(trace, call));
        if let Some(it) = threads.get_mut(&lane) {
            // It asks the driver where a function is.
            it.pass(
                span,
                kind == CallKind::Other && name().starts_with("cuGetProcAddress"),
            );
        }
        match kind {
            CallKind::Load => {
                let process = trace.lanes()[lane].key().process;
                let own = busy.without_wait(trace, process, span);
                let threads = threads.entry(lane);
                threads.and_modify(|it| it.load(name(), span, own));
            }
            // A wait for nothing parts nothing.
            kind if kind.is_wait() && calls.waited[call as usize] == NONE => {}
            kind if kind.is_wait() || matches!(kind, CallKind::Copy | CallKind::Launch) => {
                let op = calls.first_op[call as usize];
                let before = threads.insert(lane, Between::from(span.end));
                let Some((before, name)) = before.zip(kernel(trace, graph, op)) else {
                    let links = || linked(trace, graph, (call, before), &threads);
                    let links = (op != NONE && kind == CallKind::Copy).then(links);
                    anew.extend(links.flatten().map(|it| (op, it)));
                    continue;
                };
                let new = || Making::of(trace, graph, (call, name), before);
                match kernels.entry((trace.lanes()[lane].key().process, name)) {
                    Entry::Vacant(it) => {
                        it.insert(new());
                    }
                    Entry::Occupied(mut it) => {
                        let is_anew = cases::COMPILED_ANEW.holds(before.ends_with_code(span.start));
                        match is_anew.then(new).filter(|it| it.compiles) {
                            Some(new) => anew.push((new.op, new.made())),
                            None => it.get_mut().add(before.made(span.start).len()),
                        }
                    }
                }
            }
            _ => {}
        }
    }
    let mut kept = kept(kernels);
    kept.extend(anew);
    kept
}

impl Making {
    fn of(
        trace: &Trace,
        graph: &Graph,
        (call, kernel): (CallId, NameId),
        before: Between,
    ) -> Making {
        let calls = &graph.calls;
        let (lane, start) = (calls.at(call).0, calls.start[call as usize]);
        let made = before.made(start);
        let few = made.len() / cases::OUTLIER.value();
        let name = trace.names().full(kernel);
        let is_drivers = graph.function(trace, call).starts_with("cuLaunchKernel");
        let seen = || compiles(trace, lane, made, &before.waits(start - few));
        let is_seen = cases::COLD_MIN.is_reached_by(made.len()) && seen();
        let is_known = is_seen
            || cases::FEW_MIN.is_reached_by(made.len())
                && cases::COMPILED_NAME.holds(is_compiled(name));
        let compiles = is_known
            || is_drivers
                && made.len() >= JIT_MIN
                && before.ends_with_code(start)
                && !is_librarys(name);
        let starts = before.has_asked() || before.loading >= few && is_librarys(name);
        // What the program does behind a library's start is its own work.
        let end = before.works.filter(|_| starts && !is_known);
        let end = end.map_or(made.end, |it| it.max(made.start));
        Making {
            op: calls.first_op[call as usize],
            span: Span { end, ..made },
            loads: cases::BUILDS.holds(before.loading >= few),
            compiles,
            is_seen,
            starts,
            later: Ns::MAX,
            again: 0,
        }
    }

    fn made(&self) -> Made {
        let is_quick = !cases::FEW_MIN.is_reached_by(self.span.len());
        Made {
            span: self.span,
            starts: self.starts,
            compiles: self.compiles || !cases::QUICKLY_LOADED.holds(is_quick),
            is_seen: self.is_seen,
        }
    }

    /// Counts a later launch, so long behind the launch or wait before.
    fn add(&mut self, since: Ns) {
        let since = since.max(0);
        self.later = self.later.min(since);
        self.again += usize::from(2 * since >= self.span.len());
    }
}

/// How a copy came to be late where a thread of its process linked something last of all, behind a wait. What it is for was compiled
/// meanwhile.
fn linked(
    trace: &Trace,
    graph: &Graph,
    (copy, before): (CallId, Option<Between>),
    threads: &FxHashMap<LaneId, Between>,
) -> Option<Made> {
    let process = |lane: LaneId| trace.lanes()[lane].key().process;
    let (lane, start) = (graph.calls.at(copy).0, graph.calls.start[copy as usize]);
    let since = before.map_or(Ns::MIN, |it| it.since);
    let of_one = |(thread, it): (LaneId, Between)| {
        let span = Span::new(since.max(it.since).min(start), start);
        let late = start - span.len() / cases::OUTLIER.value();
        let is_linked = it.links && it.loaded >= late && process(thread) == process(lane);
        let is_one = cases::LINKED_BEFORE_COPY.holds(is_linked)
            && cases::FEW_MIN.is_reached_by(span.len())
            && compiles(trace, thread, span, &it.waits(late));
        is_one.then_some(Made {
            span,
            starts: false,
            compiles: true,
            is_seen: true,
        })
    };
    let others = threads.iter().map(|it| (*it.0, *it.1));
    let all = others.chain(before.map(|it| (lane, it)));
    all.filter_map(of_one).max_by_key(|it| it.span)
}

/// Those that were made ready, and how. What loads code for long before a launch most likely compiled it.
fn kept(mut kernels: FxHashMap<(usize, NameId), Making>) -> FxHashMap<OpId, Made> {
    // Other work may lie between, too: reading a file takes much longer than loading.
    kernels.retain(|_, it| {
        let is_usual = it.later != Ns::MAX && !is_outlier(it.span.len(), it.later);
        // The first kernel of a step comes once a step behind all that lies between steps.
        !cases::WAITS_AGAIN.holds(is_usual || it.again >= AGAIN)
            && cases::COLD_MIN.is_reached_by(it.span.len())
            && (it.loads || it.compiles || it.starts)
    });
    let is_shown = kernels.values().any(|it| it.later != Ns::MAX);
    kernels.retain(|_, it| it.compiles || it.starts || !cases::NEVER_AGAIN.holds(!is_shown));
    let all = kernels.into_values();
    all.map(|it| (it.op, it.made())).collect()
}

/// Whether a kernel is named as `torch.compile`, nvFuser, CuPy and Julia name what they compile at run time. Numba appends
/// `$` and a number, TorchScript a hash.
fn is_compiled(name: &str) -> bool {
    let number_after = |mark: char| {
        let (_, end) = name.split('(').next()?.rsplit_once(mark)?;
        end.bytes()
            .all(|it| it.is_ascii_digit())
            .then_some(end.len())
    };
    let makers = ["triton_", "nvfuser_", "cupy_", "julia_"];
    makers.iter().any(|maker| name.starts_with(maker))
        || number_after('$') > Some(0)
        || name.starts_with("fused_") && number_after('_') >= Some(10)
}

/// Whether a kernel comes built with cuBLAS or cuDNN, by its name: before its first launch the library is loaded.
fn is_librarys(name: &str) -> bool {
    let name = name.trim_start_matches("void ");
    let makers = [
        "ampere_", "volta_", "turing_", "maxwell_", "nvjet_", "cutlass", "gemv",
    ];
    let of_arch = name.strip_prefix("sm").and_then(|it| it.chars().next());
    makers.iter().any(|it| name.starts_with(it)) || of_arch.is_some_and(|it| it.is_ascii_digit())
}

/// Whether a thread was in ranges named like compiling for half of a time, or in one of these waits, or samples saw a compiler.
fn compiles(trace: &Trace, thread: LaneId, span: Span, waits: &dyn Fn(&str) -> bool) -> bool {
    let key = trace.lanes()[thread].key();
    let LaneKind::Thread { thread } = key.kind else {
        return false;
    };
    let is_mine =
        |lane: &Lane| matches!(lane.key().kind, LaneKind::Range { thread: of, .. } if of == thread);
    let lanes = trace.others_in(key.process).filter(|it| is_mine(it.1));
    let rows = lanes.flat_map(|(id, lane)| lane.rows(span).map(move |row| (id, row)));
    let named = rows.filter(|&(id, row)| {
        let What::Range(range) = trace.what(id, row) else {
            return false;
        };
        let name = trace.names().full(range.name).to_lowercase();
        // A file of Python may be called so whatever its functions do: "vllm/compilation/decorators.py(167): __call__".
        let name = name.split_once(".py(").map_or(&*name, |it| it.1);
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        cases::WAITS_FOR_COMPILER.holds(waits(name))
            || cases::COMPILING.holds(has(&["nvrtc", "compil", "jit"]))
                && !cases::COMPILED_RUNS.holds(has(&["compiled", "jitter"]))
    });
    let named = named.map(|(id, row)| trace.lanes()[id].span(row).intersect(span));
    let named = Span::merged(named.collect()).into_iter().map(Span::len);
    let is_seen = || {
        let mut seen = StackCounts::default();
        seen.add_samples(trace, key.process, thread, span);
        seen.tell(trace) && seen.are_of_building(trace)
    };
    2 * named.sum::<Ns>() >= span.len() || is_seen()
}
